"""Byte-pair encoding by hand: the library's merges, nothing is lost, ties are broken as stated."""

import json
import os
import random
import warnings
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from d2lmini.data.store import DataError
from d2lmini.data.text import load_text
from d2lmini.tokenization import BytePairEncoding
from d2lmini.tokenization.bpe import BYTES, learn, merge, visible

RHYME = (
    "a sailor went to sea sea sea to see what he could see see see but all that he could see see see was the bottom "
    "of the deep blue sea sea sea "
)
BOOK = load_text("book")[:60_000]
OF_BYTES = BytePairEncoding.train(BOOK, 300, "bytes")
OF_RHYME = BytePairEncoding.train(RHYME + "\n", 30)


def of_library(text, num_merges, level, min_frequency=2):
    """The `tokenizers` library's model, and its merges in our tokens."""
    library = Tokenizer(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet() if level == "bytes" else []
    if level == "bytes":
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        ours = dict(zip(sorted(alphabet), BYTES, strict=True))
    else:
        library.pre_tokenizer = pre_tokenizers.Split(Regex(r"\S*\s|\S+"), "isolated")
        ours = {character: character for character in text}
    trainer = trainers.BpeTrainer(
        vocab_size=num_merges + len(ours if level == "bytes" else set(text)),
        min_frequency=min_frequency,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    library.train_from_iterator([text], trainer)
    merges = json.loads(library.to_str())["model"]["merges"]
    empty = b"" if level == "bytes" else ""
    return library, [tuple(empty.join(ours[c] for c in part) for part in pair) for pair in merges]


@pytest.mark.parametrize("level", ["bytes", "characters"])
def test_the_book_gives_the_merges_and_ids_of_the_library(level):
    ours = BytePairEncoding.train(BOOK, 500, level, min_frequency=2)
    library, merges = of_library(BOOK, 500, level)
    assert len(merges) == 500 and ours.merges == merges
    assert ours.encode(BOOK) == library.encode(BOOK).ids
    assert len(ours) == library.get_vocab_size()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"), [("tinyshakespeare", None), ("gutenberg", "11"), ("wikitext2", "valid"), ("gutenberg", "503")]
)
def test_other_texts_do_too(name, part):
    try:
        text = load_text(name, part, download=False)[:400_000]
    except DataError as error:
        assert not os.environ.get("D2LMINI_DATA"), error
        warnings.warn(f"NOT COMPARED ON {name}: set D2LMINI_DATA", stacklevel=1)
        pytest.skip(f"{name} is not here")
    ours = BytePairEncoding.train(text, 1000, "bytes", min_frequency=2)
    library, merges = of_library(text, 1000, "bytes")
    assert len(merges) == 1000 and ours.merges == merges
    assert ours.encode(text) == library.encode(text).ids


def slowly(words, symbols, num_merges):
    """Merges and steps by counting everything anew each time."""
    words = {tuple(word): n for word, n in words.items()}
    ids, merges, steps = list(symbols), [], []
    while True:
        used = Counter()
        counts = Counter()
        for word, n in words.items():
            for token in word:
                used[token] += n
            for pair in pairwise(word):
                counts[pair] += n
        steps.append((used.total(), len(used), len(ids)))
        if len(merges) == num_merges or not counts:
            return merges, steps
        best = sorted(counts, key=lambda p: (-counts[p], ids.index(p[0]), ids.index(p[1])))[0]
        words = {tuple(merge(list(word), best)): n for word, n in words.items()}
        merges.append(best)
        ids += [best[0] + best[1]] if best[0] + best[1] not in ids else []


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 5), min_size=1), st.integers(0, 12))
@example({"abcx": 3, "abx": 2, "bcx": 5}, 9)
def test_equal_to_counting_anew(words, num_merges):
    symbols = sorted(set("".join(words)))
    steps = list(learn(words, symbols, num_merges))
    merges, expected = slowly(words, symbols, num_merges)
    assert [step.pair for step in steps[1:]] == merges
    assert [step[2:] for step in steps] == expected


def test_the_rhyme_of_udl():
    trained = BytePairEncoding.train(RHYME, 100)
    steps = trained.steps
    assert [step.pair for step in steps[:3]] == [None, ("s", "e"), ("e", " ")]
    assert (steps[0].num_symbols, steps[0].num_tokens) == (19, len(RHYME))
    words = set(RHYME.split())
    assert steps[-1].num_symbols == len(words) == 18 and steps[-1].num_tokens == len(RHYME.split())
    assert trained.tokens(RHYME) == [f"{word}▁" for word in RHYME.split()]
    in_use = [step.num_symbols for step in steps]
    peak = in_use.index(max(in_use))
    assert max(in_use) > 19 and 0 < peak < len(steps) - 1  # rises, then falls
    known = [step.vocab_size for step in steps]
    assert known == list(range(19, 19 + len(steps)))  # what is known only grows


def test_ties_go_to_the_smallest_ids():
    # three pairs, each twice: of symbols in sorted order, then of merges in theirs
    assert BytePairEncoding.train(["zy", "yx", "xz"] * 2, 3).merges == [
        ("x", "z"),
        ("y", "x"),
        ("z", "y"),
    ]
    # the left one counts first, and a merge comes after every symbol
    assert BytePairEncoding.train(["abc", "abd"], 3).merges[1:] == [("ab", "c"), ("ab", "d")]
    assert BytePairEncoding.train(["bz", "az"], 2).merges == [("a", "z"), ("b", "z")]


def test_no_merge_reaches_over_a_word():
    spaces = BytePairEncoding.train(["in in in in a  a\n\na\tb"] * 3, 50)
    assert all(not token[:-1] or token[:-1].isalpha() for token in spaces.vocabulary)
    left = BytePairEncoding.train("a b a b a b ", 9)
    assert all(not pair[0].endswith(" ") for pair in left.merges) and "a b " not in left.vocabulary
    right = BytePairEncoding.train(" a. b a. b a. b", 9, "bytes")
    assert right.tokens(" a. b") == ["▁a", ".", "▁b"]
    # words of one text never meet those of the next
    assert BytePairEncoding.train(["ab", "cd"], 9).merges == [("a", "b"), ("c", "d")]


def test_the_rules_of_gpt2_cut_words():
    text = "It's 12½ km (m² Ⅷ) by_bus,\tdon't  you're l'été x\u0301y\u2003क्षि  "
    library = pre_tokenizers.ByteLevel(add_prefix_space=False)
    lengths = [end - start for _, (start, end) in library.pre_tokenize_str(text)]
    words = OF_BYTES._words(text)
    assert b"".join(words).decode() == text
    assert [len(word.decode()) for word in words] == lengths


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("")
@example("  two  spaces ")
@example("l'homme n'a pas vu l’été.\n\tÇa va\u202f?")
@example("क्षि e\u0301 👩‍👩‍👧 \x00\x1f\x7f\r\n\u2028")
@example("▁Ġ<0x0A> <eos>")
def test_round_trip(text):
    ids = OF_BYTES.encode(text)
    assert OF_BYTES.decode(ids) == text
    assert OF_BYTES.decode(torch.tensor(ids, dtype=torch.long)) == text
    assert OF_BYTES.decode(OF_BYTES.encode(text, 0.5, random.Random(0))) == text


@settings(deadline=None)
@given(st.text("".join(set(RHYME)) + "\n"))
def test_round_trip_of_characters(text):
    assert OF_RHYME.decode(OF_RHYME.encode(text)) == text
    assert "".join(OF_RHYME.tokens(text)) == text.replace(" ", "▁")


def test_dropout():
    text = BOOK[:3000]
    plain, characters = OF_BYTES.encode(text), len(text.encode())
    assert OF_BYTES.encode(text, 0.0) == plain and len(OF_BYTES.encode(text, 1.0)) == characters
    lengths = [len(OF_BYTES.encode(text, p, random.Random(1))) for p in (0.0, 0.1, 0.5, 0.9)]
    assert len(plain) == lengths[0] < lengths[1] < lengths[2] < lengths[3] < characters
    first, again, other = (OF_BYTES.encode(text, 0.1, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert OF_BYTES.encode(text, 0.1) != OF_BYTES.encode(text, 0.1)  # drawn anew
    # equal words differ, and each possible merge is left out with the stated probability
    pair = BytePairEncoding.train("ab ab ab ab", 1)
    whole = sum(pair.tokens("ab", 0.3, random.Random(seed)) == ["ab"] for seed in range(2000)) / 2000
    assert abs(whole - 0.7) < 0.04
    assert len(set(pair.tokens("ab ab ab ab ab ab ab ab ", 0.5, random.Random(0)))) > 2


@pytest.mark.parametrize(
    ("merges", "expected"),
    [
        # the second merge is possible after the first only
        ([("a", "b"), ("ab", "c")], {"abc": lambda q: q * q, "ab c": lambda q: q * (1 - q), "a b c": lambda q: 1 - q}),
        # both are possible at once, and the second is made where the first is left out
        (
            [("a", "b"), ("b", "c")],
            {"ab c": lambda q: q, "a bc": lambda q: (1 - q) * q, "a b c": lambda q: (1 - q) ** 2},
        ),
    ],
)
def test_dropout_has_the_distribution_of_the_paper(merges, expected):
    encoding, rng, draws = BytePairEncoding("abc", merges), random.Random(0), 4000
    found = Counter(" ".join(encoding.tokens("abc", 0.4, rng)) for _ in range(draws))
    assert found.keys() == expected.keys()
    for tokens, probability in expected.items():
        assert abs(found[tokens] / draws - probability(0.6)) < 0.03


def test_merging_and_showing():
    assert merge(list("aaaaa"), ("a", "a")) == ["aa", "aa", "a"]
    assert merge(["a", "b", "ab", "a", "b"], ("a", "b")) == ["ab", "ab", "ab"]
    assert [visible(token) for token in ("a ", b" a", "é".encode(), "é".encode()[:1])] == ["a▁", "▁a", "é", "<0xC3>"]
    assert OF_BYTES.decode(OF_BYTES.encode("é")[:1]) in ("é", "\ufffd")
    assert OF_BYTES.decode([BYTES.index(b"\xc3")]) == "\ufffd"
    assert BYTES.index(b"!") == 0 and BYTES.index(b" ") == 220 and len(set(BYTES)) == 256


def test_merges_may_be_given():
    given = BytePairEncoding(["a", "b", "c"], [("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc")])
    assert given.vocabulary == ["a", "b", "c", "ab", "abc", "bc"]  # one token by two ways
    assert given.tokens("abcbca") == ["abc", "bc", "a"] and given.steps == []
    with pytest.raises(ValueError, match=r"the merge 'ab' \+ 'c' has a part that is no token before it"):
        BytePairEncoding(["a", "b", "c"], [("ab", "c")])


def test_little_text():
    assert BytePairEncoding.train("a", 10).merges == [] and BytePairEncoding.train("ab", 0).merges == []
    assert len(BytePairEncoding.train("ab", 10).steps) == 2, "there is nothing more to merge, and len says so"
    assert BytePairEncoding.train(["ab", "ab", "cd"], 10, min_frequency=2).merges == [("a", "b")]
    assert OF_BYTES.encode("") == OF_BYTES.tokens("") == [] and OF_BYTES.decode([]) == ""
    whole = BytePairEncoding.train("a b a b a b", 2, pattern=r"(?s).+")  # one word
    assert any(" " in token[:-1] for token in whole.vocabulary)


def test_bad_input():
    for text in ("", ["", ""], []):
        with pytest.raises(ValueError, match="no text to learn from"):
            BytePairEncoding.train(text, 5)
    with pytest.raises(ValueError, match="num_merges is -1, expected at least 0"):
        BytePairEncoding.train("a", -1)
    with pytest.raises(ValueError, match="min_frequency is 0, expected at least 1"):
        BytePairEncoding.train("a", 1, min_frequency=0)
    for number in (2.0, True, "2", None):
        with pytest.raises(TypeError, match=r"num_merges is a .*, expected an integer"):
            BytePairEncoding.train("a", number)
    with pytest.raises(ValueError, match="level is 'words', expected 'characters' or 'bytes'"):
        BytePairEncoding.train("a", 1, "words")
    for texts in (["a", None], [b"a"], b"ab"):
        with pytest.raises(TypeError, match=r"a text is a .*, expected str"):
            BytePairEncoding.train(texts, 1)
    with pytest.raises(ValueError, match=r"the pattern '\\\\w' leaves out a part of the text 'a b'"):
        BytePairEncoding.train("a b", 1, pattern=r"\w")


def test_text_that_is_none():
    for level in ("characters", "bytes"):
        with pytest.raises(ValueError, match=r"character 2 of the text is '\\ud800', one half of a surrogate pair"):
            BytePairEncoding.train("ab\ud800", 1, level)
        with pytest.raises(ValueError, match="one half of a surrogate pair"):
            BytePairEncoding.train("ab", 1, level).encode("\udfff")
    with pytest.raises(ValueError, match=r"'Z' in 'seaZ ' is unknown: .* level='bytes' knows every text"):
        BytePairEncoding.train(RHYME, 5).encode("the seaZ is")
    with pytest.raises(TypeError, match="a text is a list, expected str"):
        OF_BYTES.encode(["a"])


def test_foreign_ids_and_dropout():
    for index in (-1, len(OF_BYTES)):
        with pytest.raises(ValueError, match=f"id {index} is outside the vocabulary of {len(OF_BYTES)} tokens"):
            OF_BYTES.decode([0, index])
        with pytest.raises(ValueError, match="outside the vocabulary"):
            OF_BYTES.to_tokens(torch.tensor([index]))
    for index in (1.0, "a", None):
        with pytest.raises(TypeError, match=r"an id is a .*, expected an integer"):
            OF_BYTES.decode([index])
    for dropout in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="expected a probability from 0 to 1"):
            OF_BYTES.encode("a", dropout)
    with pytest.raises(TypeError, match=r"generator is a Generator, expected a random\.Random"):
        OF_BYTES.encode("a", 0.1, torch.Generator())
