"""Five kinds of tokenizer behind one interface: where pieces come from, special tokens, what is refused."""

import pytest
import torch
from tokenizers import Tokenizer, models
from toy_texts import SENTENCES, TOKENIZERS, each_tokenizer, published

from d2lmini.data.text_encoder import TextEncoder, check_lists
from d2lmini.tokenization import SubwordTokenizer, WordTokenizer

TEXTS = ["  A naïve café,  isn't it? 😂", "the cat sees him .", *SENTENCES[:5]]


@each_tokenizer
def test_offsets_cover_the_text_once_and_in_order(tokenizer):
    for text, (ids, offsets) in zip(TEXTS, TextEncoder(tokenizer).encode(TEXTS), strict=True):
        assert len(ids) == len(offsets) > 1
        covered = "".join(text[start:end] for start, end in dict.fromkeys(offsets))  # pieces of an emoji have it all
        assert covered == "".join(text.split()), "a letter is lost, came twice or out of order"
        assert all(text[a:b] == text[a:b].strip() for a, b in offsets)


@each_tokenizer
def test_special_tokens_are_distinct_and_no_text_is_taken_for_one(tokenizer):
    encoder = TextEncoder(tokenizer)
    assert len(set(encoder.special_ids)) == 4 and max(encoder.special_ids) < len(encoder)
    if getattr(tokenizer, "kind", "") != "unigram":
        for name in ("[CLS]", "[SEP]", "[PAD]", "[MASK]", "<bos>", "<eos>", "<pad>"):
            assert not {*encoder.special_ids} & {*encoder.encode([f"it {name} is"])[0][0]}
    assert encoder.join([7, 8], [9]) == (
        [encoder.cls_id, 7, 8, encoder.sep_id, 9, encoder.sep_id],
        [0, 0, 0, 0, 1, 1],
    )
    assert encoder.join([7]) == ([encoder.cls_id, 7, encoder.sep_id], [0, 0, 0])


def test_a_published_tokenizer_is_copied_without_its_cutting_and_padding():
    tokenizer = published()
    before = tokenizer.to_str()
    encoder = TextEncoder(tokenizer)
    assert len(encoder.encode(["the cat " * 9])[0][0]) >= 18 and len(encoder.encode(["the"])[0][0]) == 1
    assert tokenizer.to_str() == before and len(tokenizer.encode("the").ids) == 8
    assert encoder.special_ids == [2, 3, 0, 4]

    class Fast:
        backend_tokenizer = tokenizer

    assert TextEncoder(Fast()).encode(TEXTS) == encoder.encode(TEXTS)


@each_tokenizer
def test_words_of_pieces(tokenizer):
    encoder = TextEncoder(tokenizer)
    sentences = [["naïve", "café", ",", "isn't", "it?"], ["😂"], ["the", "cat"]]
    for words, (ids, owners) in zip(sentences, encoder.encode_words(sentences), strict=True):
        assert len(ids) == len(owners)
        assert [word for word in dict.fromkeys(owners) if word >= 0] == list(range(len(words)))
        for number, word in enumerate(words):
            ((_, offsets),) = encoder.encode([f"x {word}"])
            inside = sum(start < end and start >= 2 for start, end in offsets)
            assert owners.count(number) in (inside, inside + (number == 0)), "unigram begins a text with a ▁ of its own"


def test_a_word_may_have_no_piece():
    ((_, owners),) = TextEncoder(TOKENIZERS["published"]).encode_words([["the", "\ufe0f", "cat"]])
    assert set(owners) == {0, 2}


@each_tokenizer
def test_names_of_pieces(tokenizer):
    encoder = TextEncoder(tokenizer)
    ids = encoder.encode(["the cat sees him"])[0][0]
    names = encoder.pieces(torch.tensor(ids))
    letters = "".join(name.replace("##", "").strip("▁Ġ") for name in names)
    assert letters == "thecatseeshim" and len(names) == len(ids)
    assert encoder.pieces([encoder.mask_id])[0] in ("[MASK]", "<unk>") and encoder.pieces([]) == []


@each_tokenizer
def test_word_starts(tokenizer):
    encoder = TextEncoder(tokenizer)
    words = ["somebody", "sees", "Elizabethans"]
    ((ids, owners),) = encoder.encode_words([words])
    starts = encoder.word_starts(torch.tensor([ids, [encoder.cls_id] * len(ids)]))
    assert starts[1].all()
    begun = starts[0].nonzero().flatten().tolist()
    if getattr(tokenizer, "kind", "") == "bpe":  # GPT-2's: the first word of a text has no space before it
        begun = [0, *begun]
    # a space may be a piece of its own
    assert [owners[place] if owners[place] >= 0 else owners[place + 1] for place in begun] == [0, 1, 2]
    assert all(owners[place] not in owners[:place] or owners[place] < 0 for place in begun)


def test_bad_input():
    encoder = TextEncoder(TOKENIZERS["ours"])
    with pytest.raises(TypeError, match="got one str: put it into a list"):
        encoder.encode("text")
    with pytest.raises(TypeError, match="text 1 is a NoneType, expected str"):
        encoder.encode(["a", None])
    with pytest.raises(ValueError, match="text 1 is empty"):
        encoder.encode(["a", " \n"])
    with pytest.raises(ValueError, match="sentence 1 has no words"):
        encoder.encode_words([["a"], []])
    for word in ("", "two words", " a"):
        with pytest.raises(ValueError, match=f"sentence 0 has the word {word!r}, expected one without spaces"):
            encoder.encode_words([["a", word]])
    with pytest.raises(TypeError, match="the tokenizer is a WordTokenizer, expected a BPETokenizer"):
        TextEncoder(WordTokenizer(["a"]))
    with pytest.raises(ValueError, match=r"has none of \[CLS\], <s>, <cls>, <bos>: train it with special tokens"):
        TextEncoder(SubwordTokenizer.train("wordpiece", SENTENCES, 200))
    with pytest.raises(ValueError, match=r"has none of \[CLS\]"):
        TextEncoder(Tokenizer(models.WordPiece({"a": 0}, unk_token="a")))


def test_one_str_is_no_list_of_texts():
    check_lists(["a cat"], ("un chat",))
    with pytest.raises(TypeError, match="got one str: put it into a list"):
        check_lists(["a cat"], "un chat")
