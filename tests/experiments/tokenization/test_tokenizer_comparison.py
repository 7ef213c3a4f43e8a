"""The comparison of tokenizers: that it counts what it says."""

import random
from collections import Counter

import pytest

from d2lmini.experiments import tokenizer_comparison as compared
from d2lmini.tokenization import SubwordTokenizer

TOKENIZER = SubwordTokenizer.train("wordpiece", ["aa bb aa ab"] * 5, 5)  # <unk> and four characters, no merges


@pytest.mark.slow
def test_texts_are_split_and_told():
    for name in ("book", "grammar.en", "grammar.fr"):
        train, test, sums = compared.load(name)
        assert len(train) > 5 * len(test) > 0 and sums == {}
        assert not set(train) & set(test) and all(line.strip() for line in train + test)
    assert any("é" in line for line in compared.load("grammar.fr")[0])
    for name in ("grammar.de", "debian.nl", "times", "multi30k"):
        with pytest.raises(ValueError, match=f"there is no text '{name}', expected one as in the presets"):
            compared.load(name)


def test_a_sample_is_of_whole_lines_and_keeps_to_the_limit():
    lines = [str(i) * 10 for i in range(10)]
    chosen = compared.sample(lines, 45, random.Random(0))
    assert len(chosen) == 4 and set(chosen) < set(lines)
    assert sorted(compared.sample(lines, 1000, random.Random(0))) == lines
    assert len(compared.sample(lines, 1, random.Random(0))) == 1


def test_lengths():
    assert TOKENIZER.tokens("aab b") == ["a", "##a", "##b", "b"]
    assert compared.lengths(TOKENIZER, ["aab b", "a", "cc"]) == {"tokens": 6, "pairs": 16 + 1 + 1, "unknown": 1}
    found = compared.plain_lengths(["été, no", "no"], {"no", ","}, True)
    assert found["characters"] == {"tokens": 9, "pairs": 49 + 4, "unknown": 0}
    assert found["bytes"]["tokens"] == 11 and found["bytes"]["pairs"] == 81 + 4
    assert found["words"] == {"tokens": 4, "pairs": 9 + 1, "unknown": 1}
    assert "words" not in compared.plain_lengths(["a"], set(), False)


def test_rare_words():
    frequency = Counter({"aa": 1, "bbb": 4, "ab": 1000})
    found = compared.pieces_by_frequency(TOKENIZER, frequency, ["aa", "bbb", "ab", "aabb"])
    assert found == [4, 2, 3, None, None, 2]


def test_a_typo_changes_one_inner_letter():
    rng = random.Random(0)
    for _ in range(100):
        wrong = compared.with_typo("abcde", "abcdefg", rng)
        differ = [i for i, (a, b) in enumerate(zip("abcde", wrong, strict=True)) if a != b]
        assert len(differ) == 1 and differ[0] in (1, 2, 3)
    found = compared.typos(TOKENIZER, ["aaaa", "bbbbb", "no", "a1aa"], 200, rng)  # the last two are not asked
    assert 4 < found["before"] == found["after"] < 5
    assert found["new"] == 1 and found["unknown"] == 0
