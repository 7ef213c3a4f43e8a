"""Prefix language modelling: what is counted, what may be seen, and that nothing sees its own label."""

import pytest
import torch
from chance import fits
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini import DotProductAttention
from d2lmini.objectives import IGNORE_INDEX, prefix_lm

few = settings(max_examples=60, deadline=None, derandomize=True)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@few
@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), st.integers(0, 99), st.booleans())
def test_by_loop(valid_lens, seed, given_prefixes):
    T = max(valid_lens)
    tokens = torch.randint(1, 50, (len(valid_lens), T), generator=seeded(seed))
    prefixes = torch.tensor([1 + seed % (n - 1) for n in valid_lens]) if given_prefixes else None
    got = prefix_lm(tokens, valid_lens=torch.tensor(valid_lens), prefix_lens=prefixes, generator=seeded(seed))
    assert torch.equal(got.inputs, tokens[:, :-1]) and got.mask.dtype == torch.bool
    assert not given_prefixes or torch.equal(got.prefix_lens, prefixes)
    for b, (n, prefix) in enumerate(zip(valid_lens, got.prefix_lens.tolist(), strict=True)):
        assert 1 <= prefix < n
        for t in range(T - 1):
            counted = prefix <= t + 1 < n  # the next token belongs to the target
            assert got.labels[b, t] == (tokens[b, t + 1] if counted else IGNORE_INDEX)
            seen = [s for s in range(T - 1) if s < prefix or s <= t]
            assert got.mask[b, t].nonzero()[:, 0].tolist() == seen
            if counted:
                assert t + 1 not in seen and max(seen) < n  # neither its own label nor padding


def test_each_cut_is_as_likely():
    valid_lens = torch.tensor([6, 3, 2] * 3000)
    prefixes = prefix_lm(torch.ones(9000, 6).long(), valid_lens=valid_lens, generator=seeded()).prefix_lens.reshape(
        -1, 3
    )
    for column, n in enumerate([6, 3, 2]):
        counts = prefixes[:, column].bincount().tolist()
        assert counts[0] == 0 and len(counts) == n
        assert all(fits(count, 3000, 1 / (n - 1)) for count in counts[1:])


def test_the_prefix_looks_ahead_and_the_target_does_not():
    """In two layers of attention: on which later inputs does an output depend?"""
    tokens = torch.randint(9, (1, 8), generator=seeded())
    mask = prefix_lm(tokens, prefix_lens=torch.tensor([4])).mask
    x = torch.randn(1, 7, 5, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    attend = DotProductAttention(0)
    out = attend(x, x, x, mask=mask)
    out = attend(out, out, out, mask=mask)  # (1, 7, 5)
    depends = torch.stack(
        [torch.autograd.grad(out[0, t].sum(), x, retain_graph=True)[0][0].abs().sum(-1) > 0 for t in range(7)]
    )
    assert torch.equal(depends, mask[0])
    assert depends[0, 3] and not depends[3, 4] and not depends[4, 5]


def test_seeds_types_and_what_is_left_alone():
    tokens = torch.randint(9, (8, 30), generator=seeded(), dtype=torch.int32)
    before = tokens.clone()
    once, again, other = (prefix_lm(tokens, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(once.labels, again.labels) and not torch.equal(once.labels, other.labels)
    assert once.labels.dtype == torch.int64 and once.inputs.dtype == torch.int32
    assert torch.equal(tokens, before)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TypeError, "expected torch.Generator"),
        ({"prefix_lens": torch.tensor([0, 2])}, ValueError, r"prefix_lens is \[0, 2\] for texts of \[5, 5\] tokens"),
        ({"prefix_lens": torch.tensor([2, 5])}, ValueError, r"prefix_lens is \[2, 5\] for texts of \[5, 5\] tokens"),
        (
            {"prefix_lens": torch.tensor([2, 4]), "valid_lens": torch.tensor([5, 4])},
            ValueError,
            "one less than the text",
        ),
        ({"prefix_lens": torch.tensor([2])}, ValueError, r"prefix_lens is \[2\] for texts of \[5, 5\]"),
        ({"prefix_lens": [2, 2]}, TypeError, "prefix_lens is a list"),
        ({"prefix_lens": torch.tensor([2.0, 2.0])}, TypeError, "prefix_lens has dtype torch.float32"),
        ({"valid_lens": torch.tensor([5, 1])}, ValueError, "a text has 1 tokens, expected at least 2"),
        ({"valid_lens": torch.tensor([5, 6])}, ValueError, "valid_lens holds 6"),
        ({"tokens": torch.ones(2, 5)}, TypeError, "expected integers"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        prefix_lm(**({"tokens": torch.ones(2, 5).long()} | options))
