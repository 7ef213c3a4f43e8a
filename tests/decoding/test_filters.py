"""Filters against those of transformers, against all subsets, and in words."""

import itertools
import math

import pytest
import torch

from d2lmini.decoding import (
    Filters,
    block_repeated_ngrams,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalize_repetition,
    with_temperature,
)

INF = torch.inf


def draw(*shape, seed=0):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def kept(logits):
    return (logits > -INF).nonzero()[:, -1].tolist()


def processors():
    return pytest.importorskip("transformers").generation.logits_process


# ---- those of transformers, whose tokens are integers (B, n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_equals_that_of_transformers(dtype):
    theirs = processors()
    logits = draw(5, 40).to(dtype)
    previous = torch.randint(40, (5, 30), generator=torch.Generator().manual_seed(1))
    previous[:, -2:] = previous[:, :2]  # so that an n-gram threatens
    for ours, warper in [
        (with_temperature(logits, 0.7).log_softmax(-1), theirs.TemperatureLogitsWarper(0.7)),
        (keep_top_k(logits, 7), theirs.TopKLogitsWarper(7)),
        (keep_top_k(logits, 40), theirs.TopKLogitsWarper(40)),
        (keep_top_p(logits, 0.8), theirs.TopPLogitsWarper(0.8)),
        (keep_top_p(logits, 0.05), theirs.TopPLogitsWarper(0.05)),
        (keep_min_p(logits, 0.1), theirs.MinPLogitsWarper(0.1)),
        (penalize_repetition(logits, previous, 1.7), theirs.RepetitionPenaltyLogitsProcessor(1.7)),
        (penalize_repetition(logits, previous, 0.5), theirs.RepetitionPenaltyLogitsProcessor(0.5)),
        (block_repeated_ngrams(logits, previous, 3), theirs.NoRepeatNGramLogitsProcessor(3)),
        (block_repeated_ngrams(logits, previous, 1), theirs.NoRepeatNGramLogitsProcessor(1)),
    ]:
        want = warper(previous, logits.clone())
        if isinstance(warper, theirs.TemperatureLogitsWarper):
            want = want.log_softmax(-1)
        assert not torch.equal(want, logits) or isinstance(warper, theirs.TopKLogitsWarper)
        torch.testing.assert_close(ours, want)


def test_all_together_equal_those_of_transformers():
    theirs = processors()
    logits = draw(50, 40, seed=2)
    previous = torch.randint(40, (50, 12), generator=torch.Generator().manual_seed(3))
    ours = Filters(temperature=1.5, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.3, no_repeat_ngram_size=1)
    want = logits
    for filter in (
        theirs.RepetitionPenaltyLogitsProcessor(1.3),
        theirs.NoRepeatNGramLogitsProcessor(1),
        theirs.TemperatureLogitsWarper(1.5),
        theirs.TopKLogitsWarper(20),
        theirs.TopPLogitsWarper(0.9),
        theirs.MinPLogitsWarper(0.02),
    ):
        want = filter(previous, want.clone())
    torch.testing.assert_close(ours.probabilities(logits, previous), want.softmax(-1))
    assert Filters(temperature=0.5).probabilities(logits).shape == (50, 40)


# ---- each in words


def test_temperature():
    logits = draw(3, 9)
    for temperature in (0.3, 1.0, 2.5):
        want = (logits.double() / temperature).softmax(-1)
        torch.testing.assert_close(with_temperature(logits, temperature).softmax(-1).double(), want)
    cold = Filters(temperature=0).probabilities(logits)
    assert torch.equal(cold, torch.nn.functional.one_hot(logits.argmax(-1), 9).float())
    for tiny in (1e-30, 1e-45, 5e-324):
        assert torch.equal(Filters(temperature=tiny).probabilities(100 * logits), cold)
    assert Filters(temperature=0).probabilities(torch.tensor([1.0, 3, 3])).tolist() == [0, 1, 0]  # the lowest of ties


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_top_k_keeps_exactly_k_and_of_ties_the_lowest_ids(k):
    logits = torch.tensor([[1.0, 2, 2, 0, 2], [0, 0, 0, 0, 0], [-INF, 5, -INF, 1, 1]])
    orders = [[1, 2, 4, 0, 3], [0, 1, 2, 3, 4], [1, 3, 4, 0, 2]]
    for row, order in zip(keep_top_k(logits, k), orders, strict=True):
        assert kept(row[None]) == sorted(i for i in order[:k] if row[i] > -INF)
    several = draw(3, 4, 6)
    assert ((keep_top_k(several, k) > -INF).sum(-1) == k).all()


def smallest_set(probabilities, p):
    """All sets of tokens by size: of the smallest with mass p the likeliest, of these the first."""
    for size in range(1, len(probabilities) + 1):
        sets = list(itertools.combinations(range(len(probabilities)), size))
        masses = [math.fsum(probabilities[i] for i in s) for s in sets]
        if max(masses) >= p - 1e-9:
            return list(max(zip(masses, [[-i for i in s] for s in sets], strict=True))[1])
    raise AssertionError


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.75, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_the_nucleus_is_the_smallest_set_with_mass_p(p, seed):
    logits = draw(6, 8, seed=seed)
    for row, given in zip(keep_top_p(logits, p), logits, strict=True):
        want = [-i for i in smallest_set(given.double().softmax(-1).tolist(), p)]
        assert kept(row[None]) == sorted(want)
        assert torch.equal(row[want], given[want])


def test_the_nucleus_at_its_edges():
    logits = torch.tensor([0.5, 0.25, 0.125, 0.125]).log()
    sizes = {0.1: 1, 0.5: 1, 0.500001: 2, 0.75: 2, 0.7501: 3, 0.875: 3, 0.9: 4, 1: 4}
    assert {p: len(kept(keep_top_p(logits, p)[None])) for p in sizes} == sizes
    assert kept(keep_top_p(logits, 0.8)[None]) == [0, 1, 2]  # of the tie the lower id
    assert kept(keep_top_p(torch.zeros(1, 10), 0.3)) == [0, 1, 2]
    hundredths = torch.randint(1, 30, (200, 6), generator=torch.Generator().manual_seed(0)).sort(descending=True)[0]
    rows = (hundredths / hundredths.sum(1, keepdim=True)).log()  # in float32: their sums are a little off
    for row, given in zip(rows, hundredths.tolist(), strict=True):
        for n in range(1, 6):
            assert len(kept(keep_top_p(row, sum(given[:n]) / sum(given))[None])) == n
    peaked = torch.tensor([[30.0, 0, 0, 0]])
    assert kept(keep_top_p(peaked, 0.999999)) == [0] and kept(keep_top_p(peaked, 1)) == [0, 1, 2, 3]
    assert kept(keep_top_p(peaked, 1e-300)) == [0]
    large = draw(2, 50_000).half()  # sums in half precision would stop growing
    mass = (large.double().softmax(-1) * (keep_top_p(large, 0.9) > -INF)).sum(-1)
    assert (mass >= 0.9 - 1e-6).all() and (mass < 0.9001).all()


def test_min_p():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert kept(keep_min_p(logits, 0.35)) == [0, 1] and kept(keep_min_p(logits, 1)) == [0]
    assert kept(keep_min_p(logits, 0.01)) == [0, 1, 2, 3]


def test_a_penalty_lowers_what_has_occurred_whatever_its_sign():
    logits = torch.tensor([[3.0, -3, 1, -1, -INF]])
    assert penalize_repetition(logits, torch.tensor([[0, 1, 1, 4, -1]]), 2).tolist() == [[1.5, -6, 1, -1, -INF]]
    assert torch.equal(penalize_repetition(logits, torch.full((1, 3), -1), 2), logits)
    shared = penalize_repetition(draw(2, 3, 6).abs(), torch.tensor([2]), 2)  # the same tokens for all rows
    torch.testing.assert_close(shared[..., 2], draw(2, 3, 6).abs()[..., 2] / 2)


def test_ngrams_that_would_repeat():
    logits = torch.zeros(3, 6)
    previous = torch.tensor([[1, 2, 3, 1, 2], [-1, -1, 4, 4, 4], [0, 1, 2, 3, 4]])
    assert [kept(row[None]) for row in block_repeated_ngrams(logits, previous, 3)] == [
        [0, 1, 2, 4, 5],  # 1 2 3 again
        [0, 1, 2, 3, 5],  # 4 4 4 again
        [0, 1, 2, 3, 4, 5],
    ]
    assert torch.equal(block_repeated_ngrams(logits, previous, 6), logits)  # too short
    assert kept(block_repeated_ngrams(logits[:1], previous[:1], 1)) == [0, 4, 5]


def test_filters_work_one_after_another():
    """The nucleus is that of the tempered distribution, and of what top-k has left."""
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert kept(Filters(top_p=0.6).logits(logits)) == [0, 1]
    assert kept(Filters(temperature=0.25, top_p=0.6).logits(logits)) == [0]
    assert kept(Filters(top_k=2, top_p=0.5).logits(logits)) == [0]  # 4/7
    assert Filters(top_k=2).probabilities(logits)[0].tolist() == pytest.approx([4 / 7, 3 / 7, 0, 0])


def test_nothing_given_nothing_done():
    logits = draw(4, 7)
    assert torch.equal(Filters().logits(logits), logits)
    for options in ({"top_k": 7}, {"top_p": 1}, {"top_p": 1.0, "min_p": 1e-30}):
        assert torch.equal(Filters(**options).logits(logits), logits)
    for options in ({"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.5}, {"temperature": 2}, {"temperature": 0}):
        before = logits.clone()
        assert not torch.equal(Filters(**options).logits(logits), logits) and torch.equal(logits, before)


def test_a_token_that_is_out_of_the_question_stays_out():
    logits = draw(4, 7).index_fill(1, torch.tensor([0, 3]), -INF)
    for options in ({"temperature": 5}, {"top_k": 6}, {"top_p": 1.0}, {"repetition_penalty": 1.5}, {"min_p": 1e-9}):
        found = Filters(**options).probabilities(logits, torch.tensor([[0, 1]]))
        assert (found[:, [0, 3]] == 0).all() and (found[:, [1, 2, 4, 5, 6]] > 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(dtype):
    logits = draw(3, 9).to(dtype)
    options = {"temperature": 0.8, "top_k": 5, "top_p": 0.9}
    found = Filters(**options).probabilities(logits)
    assert found.dtype == torch.float32
    assert torch.equal(found, Filters(**options).probabilities(logits.float()))


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature is -0.1, expected a number 0 or more"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"top_k": 0}, "top_k is 0, expected an integer, at least 1"),
        ({"top_k": 2.5}, "top_k is 2.5"),
        ({"top_k": True}, "top_k is True, expected an integer"),
        ({"top_k": math.inf}, "top_k is inf, expected an integer"),
        ({"top_p": 0}, "top_p is 0, expected a number above 0, up to 1"),
        ({"top_p": 1.01}, "top_p is 1.01"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"min_p": 0}, "min_p is 0"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0, expected a number above 0"),
        ({"repetition_penalty": math.inf}, "repetition_penalty is inf"),
        ({"no_repeat_ngram_size": 0}, "no_repeat_ngram_size is 0"),
        *(
            ({name: wrong}, f"{name} is .*, expected a")
            for name in vars(Filters())
            for wrong in (True, "1", [1], torch.tensor([1, 2]), torch.tensor(True), b"1")
        ),
        ({"temperature": None}, "temperature is None, expected a number 0 or more"),
        ({"no_repeat_ngram_size": 2.0}, "no_repeat_ngram_size is 2.0, expected an integer"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Filters(**options)


def test_a_token_of_another_vocabulary_is_no_repetition():
    for token in (5, 7):
        with pytest.raises(ValueError, match=f"previous holds the token {token}, expected at most 4"):
            penalize_repetition(torch.zeros(2, 5), torch.tensor([[-1, 4], [3, token]]), 1.2)


def test_bad_logits():
    bad = [torch.full((5,), -INF), torch.tensor([0, math.nan, 0, 0, 0]), torch.tensor([0, INF, 0, 0, 0])]
    for row in bad:
        with pytest.raises(ValueError, match="NaN or infinite, or minus infinity for all tokens"):
            Filters(top_k=2).probabilities(torch.stack([torch.zeros(5), row]))
    with pytest.raises(ValueError, match="top_k is 6, expected an integer from 1 to 5, the number of tokens"):
        Filters(top_k=6).probabilities(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="pass previous"):
        Filters(repetition_penalty=1.1).probabilities(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="no_repeat_ngram_size of 1 leaves no token"):
        Filters(no_repeat_ngram_size=1).probabilities(torch.zeros(2, 5), torch.arange(5).expand(2, -1))
