"""Spans of noise: their numbers against published ones, their places against all that there are."""

import itertools

import pytest
import torch
from chance import fits
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.objectives import corrupt_spans, corrupted_lengths, random_spans, span_counts, text_length

few = settings(max_examples=60, deadline=None, derandomize=True)
densities = st.floats(0.01, 0.99)
means = st.floats(1, 12)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def runs(row):
    """The lengths of the spans of a mask."""
    return [len(list(group)) for noise, group in itertools.groupby(row) if noise]


def test_the_settings_of_t5():
    """What its authors state: 512 tokens of input are 568 of text, and 114 of target."""
    assert text_length(512, eos=True) == 568
    assert corrupted_lengths(568, closing=False, eos=True) == (512, 114)
    assert span_counts(512) == (77, 26)
    assert corrupted_lengths(568) == (511, 114)  # a closing sentinel in the place of the end


def test_one_span_up_to_thirty_tokens():
    assert span_counts(30) == (4, 1) and span_counts(31) == (5, 2)
    assert span_counts(2) == (1, 1)


@few
@given(st.integers(2, 200), densities, means)
def test_numbers_of_noise_and_of_spans(length, density, mean):
    noise, spans = span_counts(length, density, mean)
    assert noise == min(max(round(length * density), 1), length - 1)
    assert 1 <= spans <= noise and spans - 1 <= length - noise  # all kept apart
    assert spans == max(1, round(noise / mean)) or spans == length - noise + 1


@few
@given(st.integers(4, 300), densities, means, st.booleans())
def test_the_longest_text_that_fits(input_length, density, mean, eos):
    try:
        length = text_length(input_length, density, mean, eos=eos)
    except ValueError:
        pytest.fail("a text of 2 tokens fits into 4")
    fit = [n for n in range(2, 3 * length) if corrupted_lengths(n, density, mean, eos=eos)[0] <= input_length]
    assert fit == list(range(2, length + 1))


@few
@given(st.lists(st.integers(2, 40), min_size=1, max_size=6), densities, means, st.integers(0, 99))
def test_drawn_spans_have_the_stated_numbers_and_lengths(valid_lens, density, mean, seed):
    T = max(valid_lens) + 2
    mask = random_spans(
        len(valid_lens),
        T,
        valid_lens=torch.tensor(valid_lens),
        noise_density=density,
        mean_span=mean,
        generator=seeded(seed),
    )
    assert mask.shape == (len(valid_lens), T) and mask.dtype == torch.bool
    for row, n in zip(mask.tolist(), valid_lens, strict=True):
        assert (sum(row), len(runs(row))) == span_counts(n, density, mean)
        assert not any(row[n:])
    tokens = torch.arange(T).expand(len(valid_lens), T)
    got = corrupt_spans(tokens, mask, range(100, 200), valid_lens=torch.tensor(valid_lens), eos=200, padding=201)
    want = [corrupted_lengths(n, density, mean, eos=True) for n in valid_lens]
    assert list(zip(got.input_lens.tolist(), got.target_lens.tolist(), strict=True)) == want


@pytest.mark.parametrize(("length", "density", "mean"), [(7, 0.45, 1.5), (6, 0.5, 1), (5, 0.2, 3), (5, 0.8, 2)])
def test_all_ways_are_as_likely(length, density, mean):
    noise, spans = span_counts(length, density, mean)
    ways = [
        row for row in itertools.product([False, True], repeat=length) if sum(row) == noise and len(runs(row)) == spans
    ]
    assert len(ways) > 1
    options = {"noise_density": density, "mean_span": mean, "generator": seeded()}
    # rows of another length in the batch do not matter
    valid_lens = torch.tensor([length, 12] * 4000)
    drawn = random_spans(8000, 12, valid_lens=valid_lens, **options)[::2, :length]
    counts = {way: 0 for way in ways}
    for row in drawn.tolist():
        counts[tuple(row)] += 1
    assert all(fits(count, 4000, 1 / len(ways)) for count in counts.values())


def test_full_batches_and_seeds():
    once, again, other = (random_spans(8, 60, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(once, again) and not torch.equal(once, other)
    assert (once.sum(1) == 9).all() and len({tuple(row) for row in once.tolist()}) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "a text has 1 tokens, expected at least 2"),
        ((10, 0), "noise_density is 0, expected a number above 0"),
        ((10, 1), "noise_density is 1, expected below 1"),
        ((10, 1.2), "noise_density is 1.2"),
        ((10, 0.15, 0.5), "mean_span is 0.5, expected tokens, at least 1"),
        ((10, 0.15, float("inf")), "mean_span is inf"),
        ((10, 0.15, float("nan")), "mean_span is nan"),
    ],
)
def test_bad_numbers(arguments, message):
    for function in (span_counts, corrupted_lengths):
        with pytest.raises(ValueError, match=message):
            function(*arguments)


def test_bad_batches():
    with pytest.raises(ValueError, match="input_length is 1: not even a text of 2 tokens fits"):
        text_length(1)
    with pytest.raises(ValueError, match="num_rows is 0"):
        random_spans(0, 10, generator=seeded())
    with pytest.raises(ValueError, match="valid_lens holds 11"):
        random_spans(2, 10, valid_lens=torch.tensor([11, 3]), generator=seeded())
    with pytest.raises(ValueError, match="a text has 1 tokens"):
        random_spans(2, 10, valid_lens=torch.tensor([9, 1]), generator=seeded())
    with pytest.raises(TypeError, match="valid_lens is a list"):
        random_spans(2, 10, valid_lens=[9, 1], generator=seeded())
    with pytest.raises(TypeError, match=r"expected torch\.Generator"):
        random_spans(2, 10, generator=None)
