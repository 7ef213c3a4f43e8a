"""WNUT-17: tags at the first pieces of words and back; the official sentences."""

import pytest
import torch
from toy_pairs import needs
from toy_texts import TOKENIZERS, each_tokenizer, put

from d2lmini.data.store import DataError
from d2lmini.data.tagging import ENTITIES, TAGS, EmergingEntities, parse_conll
from d2lmini.objectives.masking import IGNORE_INDEX

CONLL = """somebody\tO
met\tO
Elizabeth\tB-person
Montgomery\tI-person
\t
Empire\tB-location
State\tI-location
\ufe0f\tO
café\tB-product

"""


@pytest.fixture
def small(folder, monkeypatch):
    for file in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        put(folder, monkeypatch, "wnut17", file, CONLL)


def gold(data, split):
    """What a model that is always right predicts for the tokens."""
    return [torch.tensor([max(label, 0) for label in item[-1]]) for item in data._encoded(split)]


def test_tags():
    assert len(TAGS) == len(set(TAGS)) == 13 and TAGS[0] == "O"
    assert all(TAGS[TAGS.index(f"B-{entity}") + 1] == f"I-{entity}" for entity in ENTITIES)


@each_tokenizer
@pytest.mark.parametrize("label_all", [False, True])
def test_first_pieces_have_the_tags(small, tokenizer, label_all):
    data = EmergingEntities(tokenizer, label_all=label_all, download=False)
    for (tokens, _, labels), (words, tags) in zip(data._encoded("train"), data.examples("train"), strict=True):
        assert len(tokens) == len(labels) and labels[0] == labels[-1] == IGNORE_INDEX
        ((_, owners),) = data.encoder.encode_words([words])
        wanted, seen = [], set()
        for word in owners:
            tag = None if word < 0 or (word in seen and not label_all) else tags[word]
            if tag and word in seen:
                tag = tag.replace("B-", "I-")
            seen.add(word)
            wanted.append(IGNORE_INDEX if tag is None else TAGS.index(tag))
        assert labels[1:-1] == wanted and len(owners) > len(words)
    batch = next(iter(data.loader("test")))
    assert batch[3].shape == batch[0].shape
    padding = torch.arange(batch[0].shape[1]) >= batch[2][:, None]
    assert (batch[3][padding] == IGNORE_INDEX).all() and padding.any()


@each_tokenizer
def test_back_to_words(small, tokenizer):
    data = EmergingEntities(tokenizer, download=False)
    sentences, tags = zip(*data.examples("test"), strict=True)
    assert data.word_tags(sentences, gold(data, "test")) == list(tags)
    padded = [torch.cat([row, torch.full((5,), 3)]) for row in gold(data, "test")]
    assert data.word_tags(sentences, padded) == list(tags)
    # what is predicted for other pieces counts nothing
    noisy = [
        torch.where(torch.tensor(item[-1]) == IGNORE_INDEX, 5, row)
        for item, row in zip(data._encoded("test"), gold(data, "test"), strict=True)
    ]
    found = data.word_tags(sentences, noisy)
    assert found == list(tags)


def test_score(small):
    pytest.importorskip("seqeval", reason="SPAN F1 NOT TESTED: pip install seqeval")
    data = EmergingEntities(TOKENIZERS["ours"], batch_size=1, download=False)
    assert data.score("test", gold(data, "test")).f1 == 100
    nothing = [torch.zeros(len(row), dtype=torch.long) for row in gold(data, "test")]
    assert data.score("test", nothing) == (0, 0, 0)
    in_batches = [batch[3].clamp(min=0) for batch in data.loader("test")]
    assert data.score("test", data.in_order("test", in_batches)).f1 == 100


def test_what_is_cut_off_is_missed(small):
    pytest.importorskip("seqeval", reason="SPAN F1 NOT TESTED: pip install seqeval")
    whole = EmergingEntities(TOKENIZERS["ours"], download=False)
    ((_, owners),) = whole.encoder.encode_words([whole.examples("test")[0][0]])
    data = EmergingEntities(TOKENIZERS["ours"], max_len=2 + owners.index(2), truncate=True, download=False)
    assert max(len(item[0]) for item in data._encoded("test")) == 2 + owners.index(2)
    found = data.word_tags([words for words, _ in data.examples("test")], gold(data, "test"))
    assert found[0] == ["O"] * 4 and data.cut["test"] == 2
    assert data.score("test", gold(data, "test")).recall < 70


def test_build(small):
    data = EmergingEntities(TOKENIZERS["published"], download=False)
    tokens, segments, valid_lens = data.build([["the", "cat"], ["Elizabeth"]])
    assert tokens.shape == segments.shape and valid_lens.max() == tokens.shape[1]
    labels = data.build([["the", "cat"]], [["O", "B-person"]])[3]
    assert labels.tolist() == [[IGNORE_INDEX, 0, TAGS.index("B-person"), IGNORE_INDEX]]


def test_bad_input(small, folder):
    data = EmergingEntities(TOKENIZERS["published"], download=False)
    with pytest.raises(ValueError, match="there are no sentences"):
        data.build([])
    with pytest.raises(ValueError, match="sentence 0 has 2 words but 1 tags"):
        data.build([["the", "cat"]], [["O"]])
    with pytest.raises(ValueError, match="sentence 0 has the tag 'B-animal', expected one of O, B-corp"):
        data.build([["the", "cat"]], [["O", "B-animal"]])
    with pytest.raises(ValueError, match="there are 1 sentences but tags of 2"):
        data.build([["the"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="there are 2 sentences but predictions of 1"):
        data.word_tags([["a"], ["b"]], [[0]])
    with pytest.raises(ValueError, match="sentence 0 has 4 tokens, but 3 were predicted"):
        data.word_tags([["the", "cat"]], [[0, 0, 0]])
    for line in ("word", "two words\tO", "word\tB-animal", "\tO"):
        with pytest.raises(DataError, match=r"line 2 of the text is .*expected a word, a tab"):
            parse_conll(f"a\tO\n{line}\n")
    (folder / "emerging.dev.conll").unlink()
    with pytest.raises(DataError, match=r"emerging.dev.conll of wnut17 is not on this machine"):
        EmergingEntities(TOKENIZERS["published"], download=False)


@needs("wnut17")
def test_the_official_sentences():
    data = EmergingEntities(TOKENIZERS["published"], max_len=400, download=False)
    assert [len(data.examples(split)) for split in data.splits] == [3394, 1009, 1287]
    entities = [sum(t.startswith("B") for _, tags in data.examples(s) for t in tags) for s in data.splits]
    assert entities == [1975, 836, 1079]
    texts = [{" ".join(words).lower() for words, _ in data.examples(split)} for split in data.splits]
    assert not texts[0] & texts[1] and not texts[2] & (texts[0] | texts[1])
    sentences, tags = zip(*data.examples("test"), strict=True)
    assert data.word_tags(sentences, gold(data, "test")) == list(tags)
