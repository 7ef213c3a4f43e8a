"""Masks: forms, alignment, and every way to get them wrong."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.masks import (
    as_mask,
    causal_mask,
    check_lens,
    key_mask,
    padding_mask,
    prefix_mask,
    sliding_window_mask,
    token_mask,
)

few = settings(max_examples=40, deadline=None, derandomize=True)
sizes = st.integers(0, 5)


@few
@given(st.data(), sizes, sizes, sizes)
def test_padding_mask_by_loop(data, B, T, S):
    valid_lens = data.draw(st.lists(st.lists(st.integers(0, S), min_size=T, max_size=T), min_size=B, max_size=B))
    mask = padding_mask(torch.tensor(valid_lens, dtype=torch.long).reshape(B, T), S)
    assert mask.shape == (B, T, S) and mask.dtype == torch.bool
    for b in range(B):
        for t in range(T):
            assert mask[b, t].tolist() == [s < valid_lens[b][t] for s in range(S)]


@few
@given(st.data(), sizes, sizes)
def test_padding_mask_of_one_length_an_example(data, B, S):
    valid_lens = data.draw(st.lists(st.integers(0, S), min_size=B, max_size=B))
    mask = padding_mask(torch.tensor(valid_lens, dtype=torch.int32), S)
    assert mask.shape == (B, 1, S)
    assert [row.sum().item() for row in mask[:, 0]] == valid_lens


@few
@given(sizes, sizes)
def test_causal_mask_by_loop(T, extra):
    S = T + extra
    mask = causal_mask(T, S)
    assert mask.shape == (T, S)
    assert mask.tolist() == [[s - extra <= t for s in range(S)] for t in range(T)]


def test_causal_mask_with_a_cache_is_the_end_of_the_whole():
    assert torch.equal(causal_mask(2, 5), causal_mask(5)[-2:])
    assert torch.equal(causal_mask(1, 5), torch.ones(1, 5, dtype=torch.bool))


@few
@given(sizes, sizes, st.integers(1, 7), st.booleans(), st.integers(1, 3))
def test_sliding_window_mask_by_loop(T, extra, window, causal, dilation):
    S = T + extra
    mask = sliding_window_mask(T, window, causal=causal, num_keys=S, dilation=dilation)
    assert mask.shape == (T, S)
    for t in range(T):
        for s in range(S):
            steps, between = divmod(t + extra - s, dilation)
            assert mask[t, s].item() == (not between and (0 <= steps < window if causal else -window < steps < window))


def test_a_window_as_long_as_the_sequence_is_the_causal_mask():
    assert torch.equal(sliding_window_mask(6, 6), causal_mask(6))
    assert torch.equal(sliding_window_mask(6, 1, causal=False), torch.eye(6, dtype=torch.bool))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: causal_mask(3, 2), "there are 3 queries but 2 keys"),
        (lambda: causal_mask(-1), "num_queries is -1"),
        (lambda: sliding_window_mask(3, 0), "window is 0, expected at least 1"),
        (lambda: sliding_window_mask(3, 1, dilation=0), "dilation is 0, expected at least 1"),
        (lambda: sliding_window_mask(3, 1, num_keys=2), "there are 3 queries but 2 keys"),
    ],
)
def test_sizes_that_make_no_mask(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@few
@given(st.sampled_from([(2, 3, 4), (2, 5, 3, 4)]), st.data())
def test_as_mask_broadcasts_to_the_scores(shape, data):
    B, T, S = shape[0], shape[-2], shape[-1]
    forms = [(T, S), (1, S), (B, T, S), (B, 1, S), (1, T, S), (B, T, 1), (T, 1)]
    forms += [(B, 5, T, S), (1, 5, 1, S)] if len(shape) == 4 else []
    form = data.draw(st.sampled_from(forms))
    mask = torch.rand(form) < 0.5
    result = as_mask(shape, mask=mask)
    assert result.dim() == len(shape)
    # three dimensions are an example's, never a head's
    aligned = mask[:, None] if len(form) == 3 and len(shape) == 4 else mask
    assert torch.equal(result.expand(shape), aligned.expand(shape))


def test_as_mask_of_three_dimensions_is_per_example_when_heads_equal_the_batch():
    mask = torch.zeros(2, 3, 4, dtype=torch.bool)
    mask[0] = True
    result = as_mask((2, 2, 3, 4), mask=mask).expand(2, 2, 3, 4)
    assert result[0].all() and not result[1].any()


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 5, 3, 4)])
def test_as_mask_of_lens_and_of_both(shape):
    valid_lens = torch.tensor([1, 4])
    from_lens = as_mask(shape, valid_lens).expand(shape)
    assert torch.equal(from_lens, as_mask(shape, valid_lens[:, None].expand(2, 3)).expand(shape))
    assert from_lens.sum(-1).unique(dim=0).shape[0] == 2
    causal = causal_mask(3, 4)
    assert torch.equal(as_mask(shape, valid_lens, causal).expand(shape), from_lens & causal)


def test_key_mask_is_that_of_all_queries():
    valid_lens = torch.tensor([1, 4])
    assert key_mask((2, 3, 4)) is None
    assert torch.equal(key_mask((2, 3, 4), valid_lens), torch.arange(4) < valid_lens[:, None])
    assert key_mask((2, 5, 3, 4), valid_lens).shape == (2, 1, 4)
    mask = torch.rand(2, 5, 1, 4) < 0.5
    assert torch.equal(key_mask((2, 5, 3, 4), mask=mask), mask[:, :, 0])
    assert torch.equal(
        key_mask((2, 5, 3, 4), valid_lens, mask), mask[:, :, 0] & (torch.arange(4) < valid_lens[:, None, None])
    )
    for shape, arguments in (((2, 3, 4), (valid_lens[:, None].expand(2, 3),)), ((2, 3, 4), (None, causal_mask(3, 4)))):
        with pytest.raises(ValueError, match="the queries have masks of their own"):
            key_mask(shape, *arguments)


def test_real_tokens_are_those_that_some_token_may_attend_to():
    valid_lens = torch.tensor([4, 2, 0])
    right = torch.arange(4) < valid_lens[:, None]
    left = right.flip(1)
    assert token_mask((3, 4)) is None
    assert torch.equal(token_mask((3, 4), valid_lens), right)
    assert torch.equal(token_mask((3, 4), mask=left[:, None]), left)
    assert torch.equal(token_mask((3, 4), valid_lens, left[:, None]), right & left)
    assert torch.equal(token_mask((3, 4), valid_lens, causal_mask(4)), right)
    assert token_mask((3, 4), mask=causal_mask(4)).shape == (3, 4)
    with pytest.raises(ValueError, match=r"valid_lens has length 3 but the batch is 2"):
        token_mask((2, 4), valid_lens)


def test_as_mask_of_nothing_is_none():
    assert as_mask((2, 3, 4)) is None


def ints(*values):
    return torch.tensor(values)


@pytest.mark.parametrize(
    ("shape", "valid_lens", "error", "message"),
    [
        ((2, 3, 4), ints(1, 2, 3), ValueError, "valid_lens has length 3 but the batch is 2"),
        ((2, 3, 4), ints(1, -2), ValueError, "valid_lens holds -2, expected lengths from 0 to 4"),
        ((2, 3, 4), ints(1, 5), ValueError, "valid_lens holds 5 but there are only 4 keys"),
        (
            (2, 3, 4),
            ints([1, 2], [1, 2]),
            ValueError,
            r"valid_lens has shape \(2, 2\) but there are 3 queries",
        ),
        ((2, 3, 4), torch.tensor(2), ValueError, r"valid_lens has shape \(\), expected \(B,\) or \(B, T\)"),
        ((2, 3, 4), torch.ones(2, 3, 1).long(), ValueError, r"expected \(B,\) or \(B, T\)"),
        ((3, 4), ints(1, 2, 3), ValueError, "valid_lens needs a batch"),
        ((2, 3, 4), torch.tensor([1.0, 2.5]), TypeError, r"dtype torch.float32, expected integers: cast it"),
        ((2, 3, 4), torch.tensor([True, False]), TypeError, "valid_lens is boolean.*argument `mask`"),
        ((2, 3, 4), [1, 2], TypeError, "valid_lens is a list"),
        ((2, 3, 4), torch.ones(2, dtype=torch.long, device="meta"), ValueError, "valid_lens is on meta"),
        ((4,), ints(1), ValueError, r"scores have shape \(4,\)"),
    ],
)
def test_bad_valid_lens(shape, valid_lens, error, message):
    with pytest.raises(error, match=message):
        as_mask(shape, valid_lens, device=torch.device("cpu"))
    if len(shape) > 1:
        with pytest.raises(error, match=message):
            check_lens(shape, valid_lens, device=torch.device("cpu"))


@pytest.mark.parametrize(
    ("shape", "mask", "error", "message"),
    [
        ((2, 3, 4), torch.ones(3, 4), TypeError, "mask is of dtype torch.float32, expected a boolean"),
        ((2, 3, 4), torch.ones(3, 4).long(), TypeError, "mask is of dtype torch.int64, expected a boolean"),
        ((2, 3, 4), [[True]], TypeError, "mask is a list"),
        (
            (2, 3, 4),
            torch.ones(4).bool(),
            ValueError,
            r"mask has shape \(4,\), expected \(T, S\) or \(B, T, S\)",
        ),
        ((2, 3, 4), torch.ones(2, 1, 3, 4).bool(), ValueError, r"mask has shape \(2, 1, 3, 4\)"),
        (
            (2, 3, 4),
            torch.ones(2, 4).bool(),
            ValueError,
            r"a row an example, as for padding, is mask\[:, None, :\]",
        ),
        ((2, 3, 4), torch.ones(2, 3, 5).bool(), ValueError, r"\(2, 3, 5\), which does not broadcast"),
        (
            (2, 3, 4),
            torch.ones(3, 4, device="meta").bool(),
            ValueError,
            "mask is on meta but the queries are on cpu",
        ),
    ],
)
def test_bad_mask(shape, mask, error, message):
    with pytest.raises(error, match=message):
        as_mask(shape, mask=mask, device=torch.device("cpu"))


@few
@given(st.data(), sizes, sizes, sizes)
def test_prefix_mask_by_loop(data, B, T, extra):
    S = T + extra
    valid_lens = data.draw(st.lists(st.integers(0, S), min_size=B, max_size=B))
    mask = prefix_mask(torch.tensor(valid_lens, dtype=torch.long), T, S)
    assert mask.shape == (B, T, S) and mask.dtype == torch.bool
    assert mask.tolist() == [[[s < n or s - extra <= t for s in range(S)] for t in range(T)] for n in valid_lens]


def test_a_prefix_mask_goes_from_the_causal_one_to_none():
    mask = prefix_mask(torch.tensor([0, 1, 3, 5]), 5)
    assert torch.equal(mask[0], causal_mask(5)) and torch.equal(mask[1], causal_mask(5))
    assert mask[2].sum() == 5 * 3 + 1 + 2 and mask[3].all()


@pytest.mark.parametrize(
    ("lens", "error", "message"),
    [
        ([2, 3], TypeError, "prefix_lens is a list"),
        (torch.tensor([2.0]), TypeError, "prefix_lens has dtype torch.float32"),
        (torch.tensor([True]), TypeError, "prefix_lens is boolean"),
        (torch.tensor([-1]), ValueError, "prefix_lens holds -1, expected lengths from 0 to 5"),
        (torch.tensor([6]), ValueError, "prefix_lens holds 6 but there are only 5 keys"),
        (
            torch.tensor([[1, 2, 3]]),
            ValueError,
            r"prefix_lens has shape \(1, 3\), expected \(B,\): a length an example",
        ),
        (torch.tensor(3), ValueError, r"prefix_lens has shape \(\)"),
    ],
)
def test_bad_prefixes(lens, error, message):
    with pytest.raises(error, match=message):
        prefix_mask(lens, 3, 5)
    with pytest.raises(ValueError, match="there are 3 queries but 2 keys"):
        prefix_mask(torch.tensor([1]), 3, 2)
