"""Text to pretrain on: two parts, sentences as ids, full windows, and objectives that can be repeated."""

import pytest
import torch
from toy_pairs import needs
from toy_texts import SENTENCES, TOKENIZERS, each_tokenizer

from d2lmini.data import pretraining
from d2lmini.data.pretraining import TextWindows, encode_sentences, join_sentences, pack_windows, pretraining_documents
from d2lmini.data.text_encoder import TextEncoder
from d2lmini.training.batches import epoch_batches

ENCODER = TextEncoder(TOKENIZERS["published"])
DOCUMENTS = [[" ".join(SENTENCES[i : i + 4]).capitalize() for i in range(j, j + 40, 4)] for j in (0, 40, 80)]


def test_two_parts(monkeypatch):
    monkeypatch.setattr(
        pretraining, "documents", lambda *args, **kwargs: [["a" * 50, "b" * 40, "c" * 10], ["d" * 9], []]
    )
    train, val = pretraining_documents("gutenberg", 0.1)
    assert train == [["a" * 50, "b" * 40]] and val == [["c" * 10], ["d" * 9], []]
    assert pretraining_documents("gutenberg", 0.11)[0] == [["a" * 50]]
    for share in (0, 1):
        with pytest.raises(ValueError, match=f"val_share is {share}, expected above 0"):
            pretraining_documents("gutenberg", share)


@each_tokenizer
def test_sentences_as_ids(tokenizer):
    encoder = TextEncoder(tokenizer)
    ids = encode_sentences(encoder, [["The cat sees him. He is here!", "Who?"], ["The cat."]])
    texts = [["The cat sees him.", "He is here!", "Who?"], ["The cat."]]
    assert ids == [[encoder.encode([text])[0][0] for text in document] for document in texts]


def test_sentences_without_a_piece_are_left_out():
    assert encode_sentences(ENCODER, [["\ufe0f", "the cat"]]) == [[ENCODER.encode(["the cat"])[0][0]]]


def test_join():
    documents = [[[1], [2, 2], [3], [4, 4, 4, 4, 4], [5], [6]], [[7]]]
    assert join_sentences(documents, 4) == [[[1, 2, 2, 3], [4, 4, 4, 4, 4], [5, 6]], [[7]]]
    assert documents[0][0] == [1], "the arguments stay"
    with pytest.raises(ValueError, match="max_tokens is 0"):
        join_sentences(documents, 0)


def test_full_windows():
    documents = [[[10, 11], [12]], [[13, 14, 15, 16]], [[17]]]
    cls, sep = ENCODER.cls_id, ENCODER.sep_id
    windows = pack_windows(documents, 5, ENCODER)
    # 10 11 12 | 13 14 15 16 | 17, with a separator for each |; the last separator needs no place
    assert windows.tolist() == [[cls, 10, 11, 12, sep], [cls, sep, 13, 14, sep], [cls, 15, 16, sep, sep]]
    assert windows.dtype == torch.int32
    assert pack_windows(documents, 12, ENCODER).tolist() == [[cls, 10, 11, 12, sep, 13, 14, 15, 16, sep, 17, sep]]
    with pytest.raises(ValueError, match="the documents have 10 tokens, expected at least 11 for a window"):
        pack_windows(documents, 13, ENCODER)
    with pytest.raises(ValueError, match="the documents have 0 tokens"):
        pack_windows([], 13, ENCODER)
    with pytest.raises(ValueError, match="window is 2, expected at least 3"):
        pack_windows(documents, 2, ENCODER)


def draw(tokens, generator):
    return tokens, torch.rand(tokens.shape, generator=generator)


def test_batches():
    data = TextWindows(TOKENIZERS["ours"], DOCUMENTS[:2], DOCUMENTS[2:], window=16, batch_size=4)
    for train, part in ((True, "train"), (False, "val")):
        batches = [tokens for (tokens,) in data.get_dataloader(train)]
        assert all(tokens.dtype == torch.int64 and tokens.shape[1] == 16 for tokens in batches)
        assert sorted(torch.cat(batches).tolist()) == sorted(data.windows[part].tolist())
    assert torch.equal(torch.cat(batches), data.windows["val"]), "validation windows stay in order"


def test_objectives_can_be_repeated():
    data = TextWindows(TOKENIZERS["ours"], DOCUMENTS[:2], DOCUMENTS[2:], window=16, batch_size=4, objective=draw)

    def drawn(loader, seed, epoch, skip=0):
        return [batch[1] for batch in epoch_batches(loader, seed, epoch, skip)]

    def same(one, other):
        return len(one) == len(other) and all(map(torch.equal, one, other))

    train, val = data.train_dataloader(), data.val_dataloader()
    first = drawn(train, 0, 0)
    torch.rand(3)
    assert same(drawn(train, 0, 0), first) and same(drawn(train, 0, 0, skip=3), first[3:])
    assert not same(drawn(train, 0, 1), first) and not same(drawn(train, 1, 0), first)
    assert same(drawn(val, 0, 0), drawn(val, 5, 7)) and not torch.equal(*drawn(val, 0, 0)[:2])
    other = TextWindows(TOKENIZERS["ours"], DOCUMENTS[:2], DOCUMENTS[2:], 16, 4, draw, seed=1)
    assert not same(drawn(val, 0, 0), drawn(other.val_dataloader(), 0, 0))


def test_bad_input():
    with pytest.raises(ValueError, match="batch_size is 0"):
        TextWindows(TOKENIZERS["ours"], DOCUMENTS, DOCUMENTS, batch_size=0)
    with pytest.raises(ValueError, match="expected at least 126 for a window"):
        TextWindows(TOKENIZERS["ours"], DOCUMENTS, [["The cat."]])


@needs("wikitext2_train_reordered")
@pytest.mark.slow
def test_the_real_articles():
    train, val = pretraining_documents("wikitext2_train_reordered", download=False)
    assert len(train) == 600 and len(val) == 60
    sentences = encode_sentences(ENCODER, val[:5])
    assert [len(document) > 5 for document in sentences] == [True] * 5
