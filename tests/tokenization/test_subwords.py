"""Pieces of words by the library: what each kind keeps and loses, and that it is what the papers describe."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.data.grammar import make_sentences
from d2lmini.data.text import book_text
from d2lmini.tokenization import BytePairEncoding, SubwordTokenizer
from d2lmini.tokenization.subwords import KINDS

TEXTS = book_text()[:200]
TRAINED = {kind: SubwordTokenizer.train(kind, TEXTS, 700) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_size_and_shorter_than_characters(kind):
    tokenizer = TRAINED[kind]
    assert 0.95 * 700 <= len(tokenizer) <= 700
    ids = tokenizer.encode_batch(TEXTS)
    assert ids == [tokenizer.encode(text) for text in TEXTS]
    assert sum(map(len, ids)) < 0.5 * sum(map(len, TEXTS))
    assert tokenizer.num_unknown([index for line in ids for index in line]) == 0
    assert all(0 <= index < len(tokenizer) for line in ids for index in line)


@settings(deadline=None, max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_bytes_lose_nothing(text):
    assert TRAINED["bpe"].decode(TRAINED["bpe"].encode(text)) == text


def test_what_the_others_lose():
    strange, text = "漢", "It doesn't  split (this)."
    assert TRAINED["bpe"].num_unknown(TRAINED["bpe"].encode(strange)) == 0
    for kind in ("wordpiece", "unigram"):
        assert TRAINED[kind].num_unknown(TRAINED[kind].encode(f"the {strange} the")) == 1
    assert TRAINED["unigram"].decode(TRAINED["unigram"].encode(text)) == text
    assert TRAINED["wordpiece"].decode(TRAINED["wordpiece"].encode(text)) == "It doesn ' t split ( this ) ."
    # one unknown character makes a whole word unknown for WordPiece, and no more than itself for unigram
    assert TRAINED["wordpiece"].tokens(f"attention{strange}") == ["<unk>"]
    assert TRAINED["unigram"].tokens(f"attention{strange}")[-1] == "<unk>"
    assert len(TRAINED["unigram"].tokens(f"attention{strange}")) > 1


def test_how_pieces_look():
    assert TRAINED["bpe"].tokens(" the the") == ["▁the", "▁the"]
    assert TRAINED["unigram"].tokens("the the") == ["▁the", "▁the"]
    pieces = TRAINED["wordpiece"].tokens("thes")
    assert len(pieces) > 1 and all(piece.startswith("##") for piece in pieces[1:])


def test_wordpiece_takes_the_longest_piece():
    known = {TRAINED["wordpiece"].to_tokens([index])[0] for index in range(len(TRAINED["wordpiece"]))}

    def longest_first(word):
        pieces = []
        while word:
            mark = "##" if pieces else ""
            end = next(end for end in range(len(word), 0, -1) if mark + word[:end] in known)
            pieces.append(mark + word[:end])
            word = word[end:]
        return pieces

    words = {word for text in TEXTS for word in text.split() if word.isalpha()}
    assert len(words) > 500
    for word in words:
        assert TRAINED["wordpiece"].tokens(word) == longest_first(word)


def test_by_hand_is_the_same_encoding():
    ours = TRAINED["bpe"].by_hand()
    assert isinstance(ours, BytePairEncoding) and len(ours) == len(TRAINED["bpe"])
    for text in [*TEXTS[:50], "漢字 and \n\t more  ", ""]:
        assert ours.encode(text) == TRAINED["bpe"].encode(text)
        assert ours.tokens(text) == TRAINED["bpe"].tokens(text)
    assert len(ours.encode(TEXTS[3], 0.5, random.Random(0))) > len(ours.encode(TEXTS[3]))
    with pytest.raises(ValueError, match="by_hand is of kind 'bpe', this is 'unigram'"):
        TRAINED["unigram"].by_hand()


def test_byte_pairs_and_unigram_repeat_themselves():
    sentences = [made.french for made in make_sentences(1000)["train"]]
    for kind in ("bpe", "unigram"):
        first, second = (SubwordTokenizer.train(kind, sentences, 500) for _ in range(2))
        assert [first.tokens(text) for text in TEXTS] == [second.tokens(text) for text in TEXTS]


def test_bad_input():
    with pytest.raises(ValueError, match="kind is 'words', expected one of 'bpe', 'wordpiece', 'unigram'"):
        SubwordTokenizer.train("words", ["a"], 300)
    with pytest.raises(TypeError, match="expected a list of texts, got one str"):
        SubwordTokenizer.train("bpe", "a text", 300)
    for kind in KINDS:
        with pytest.raises(ValueError, match="no text to learn from"):
            SubwordTokenizer.train(kind, ["", " "], 300)
    with pytest.raises(ValueError, match="vocab_size is 255, expected at least 256: the bytes must have room"):
        SubwordTokenizer.train("bpe", ["a"], 255)
    with pytest.raises(ValueError, match="vocab_size is 3, expected at least 4: the characters of the texts must have"):
        SubwordTokenizer.train("unigram", ["abc"], 3)
    for kind, tokenizer in TRAINED.items():
        with pytest.raises(ValueError, match="one half of a surrogate pair"):
            SubwordTokenizer.train(kind, ["ab", "\ud800"], 300)
        with pytest.raises(ValueError, match="one half of a surrogate pair"):
            tokenizer.encode("a\udfff")
        for index in (-1, len(tokenizer)):
            with pytest.raises(ValueError, match=f"id {index} is outside the vocabulary of {len(tokenizer)} tokens"):
                tokenizer.decode([index])
            with pytest.raises(ValueError, match="outside the vocabulary"):
                tokenizer.to_tokens([index])
        with pytest.raises(TypeError, match="expected a list of texts, got one str"):
            tokenizer.encode_batch("a text")
        with pytest.raises(TypeError, match="a text is a NoneType, expected str"):
            tokenizer.encode(None)
        assert tokenizer.encode("") == tokenizer.tokens("") == [] and tokenizer.decode([]) == ""
    assert len(SubwordTokenizer.train("wordpiece", ["ab ab"], 5_000)) < 10, "there is no more, and len says so"


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens(kind):
    special = ["[PAD]", "[CLS]", "[MASK]"]
    tokenizer = SubwordTokenizer.train(kind, TEXTS, 700, special)
    assert sorted(tokenizer[token] for token in special) == [0, 1, 2] and len(tokenizer) <= 700
    spelt = tokenizer.encode("a [MASK] here")
    assert (tokenizer["[MASK]"] in spelt) == (kind == "unigram")
    with pytest.raises(KeyError, match=r"'\[SEP\]' is no token"):
        tokenizer["[SEP]"]
    with pytest.raises(ValueError, match="by_hand"):
        tokenizer.by_hand()


@pytest.mark.parametrize("kind", KINDS)
def test_offsets(kind):
    texts = ["Attention is all.", *TEXTS[:5]]
    for text, ids, (same, offsets) in zip(
        texts, TRAINED[kind].encode_batch(texts), TRAINED[kind].encode_with_offsets(texts), strict=True
    ):
        assert same == ids and len(offsets) == len(ids)
        assert "".join("".join(text[start:end].split()) for start, end in offsets) == "".join(text.split())
