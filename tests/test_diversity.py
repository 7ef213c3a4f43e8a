"""Numbers for variety and repetition, by hand and against sacrebleu."""

import random
import time

import pytest
import torch

from d2lmini.diversity import distinct_n, repetition_rate, self_bleu


def split(*texts):
    return [text.split() for text in texts]


@pytest.mark.parametrize(
    ("texts", "n", "value"),
    [
        (["a b c", "d e"], 1, 1),
        (["a b a", "a c"], 1, 3 / 5),
        (["a b a b", "a b"], 2, 2 / 4),
        (["a b a b", "c"], 2, 2 / 3),  # one word has no pairs
        (["a a a a a"], 1, 1 / 5),
    ],
)
def test_distinct(texts, n, value):
    assert distinct_n(split(*texts), n) == pytest.approx(value)


@pytest.mark.parametrize(
    ("texts", "n", "value"),
    [
        (["a b c", "a b c"], 1, 0),  # in another text is not before in the same
        (["a b a b a", "c d e"], 2, (2 / 4 + 0) / 2),
        (["a b a b a", "c"], 2, 2 / 4),
        (["x x x x"], 1, 3 / 4),
        (["x x x x"], 3, 1 / 2),
    ],
)
def test_repetition(texts, n, value):
    assert repetition_rate(split(*texts), n) == pytest.approx(value)
    one_by_one = []
    for words in split(*texts):
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        if grams:
            one_by_one.append(sum(gram in grams[:i] for i, gram in enumerate(grams)) / len(grams))
    assert repetition_rate(split(*texts), n) == pytest.approx(sum(one_by_one) / len(one_by_one))


@pytest.mark.parametrize("n", [1, 2, 4, 5])
@pytest.mark.parametrize("V", [3, 30])
def test_self_bleu_equals_sacrebleu(n, V):
    from sacrebleu.metrics import BLEU

    rng = random.Random(n + V)
    texts = [[rng.randrange(V) for _ in range(rng.randint(1, 25))] for _ in range(9)]
    metric = BLEU(tokenize="none", force=True, max_ngram_order=n, effective_order=True, smooth_method="floor")
    lines = [" ".join(map(str, text)) for text in texts]
    each = [metric.sentence_score(line, lines[:i] + lines[i + 1 :]).score for i, line in enumerate(lines)]
    assert self_bleu(texts, n) == pytest.approx(sum(each) / len(each) / 100)
    assert 0 < self_bleu(texts, n) < 1


def test_self_bleu_of_copies_and_of_strangers():
    assert self_bleu([[1, 2, 3, 4, 5]] * 3) == pytest.approx(1)
    strangers = [[10 * i + j for j in range(10)] for i in range(4)]
    assert self_bleu(strangers) < 0.02
    assert self_bleu(split("le chat dort ici", "le chat dort là"), 2) == pytest.approx((3 / 4 * 2 / 3) ** 0.5)


def test_tensors_are_texts_too():
    rows = torch.tensor([[1, 2, 1, 2], [3, 3, 1, 2]])
    for number in (distinct_n, repetition_rate, self_bleu):
        assert number(rows, 2) == number(list(rows), 2) == number(rows.tolist(), 2)


def test_many_long_texts_take_no_time():
    """Against each other text anew it would be 90,000 pairs."""
    rng = random.Random(0)
    texts = [[rng.randrange(200) for _ in range(200)] for _ in range(300)]
    began = time.process_time()
    assert 0 < self_bleu(texts) < 1
    assert time.process_time() - began < 5


@pytest.mark.parametrize("number", [distinct_n, repetition_rate, self_bleu])
def test_bad_input(number):
    with pytest.raises(ValueError, match="n is 0"):
        number([[1, 2], [3]], 0)
    with pytest.raises(TypeError, match="got a str: split it"):
        number(["le chat", "dort"], 2)
    with pytest.raises(TypeError, match="got a str"):
        number("le chat", 2)
    with pytest.raises(ValueError, match="expected two texts or more" if number is self_bleu else "none with 2 tokens"):
        number([[]], 2)
    with pytest.raises(ValueError, match=r"their lengths are \[2, 0\]" if number is self_bleu else "none with 3"):
        number([[1, 2], []], 3)
