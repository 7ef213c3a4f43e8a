"""Patterns against loops over pairs; layers against a walk from pair to pair."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.efficient.patterns import (
    bigbird_mask,
    block_local_mask,
    count_pairs,
    full_mask,
    global_mask,
    interaction_matrices,
    layers_per_pair,
    layers_to_reach,
    random_mask,
    strided_mask,
)
from d2lmini.masks import causal_mask, sliding_window_mask

few = settings(max_examples=40, deadline=None, derandomize=True)
tokens = st.integers(0, 9)


def by_loop(T, allowed, causal):
    return [[bool(allowed(t, s)) and not (causal and s > t) for s in range(T)] for t in range(T)]


@few
@given(tokens, st.integers(1, 11), st.booleans())
def test_blocks_and_strides_by_loop(T, n, causal):
    assert block_local_mask(T, n, causal=causal).tolist() == by_loop(T, lambda t, s: t // n == s // n, causal)
    assert strided_mask(T, n, causal=causal).tolist() == by_loop(T, lambda t, s: abs(t - s) % n == 0, causal)
    assert full_mask(T).tolist() == by_loop(T, lambda t, s: True, False)


@few
@given(st.data(), tokens, st.booleans(), st.booleans(), st.booleans())
def test_global_tokens_by_loop(data, T, rows, columns, causal):
    positions = data.draw(st.lists(st.integers(0, T - 1), unique=True)) if T else []
    mask = global_mask(T, positions, rows=rows, columns=columns, causal=causal)
    assert mask.tolist() == by_loop(T, lambda t, s: (rows and t in positions) or (columns and s in positions), causal)
    n = len(positions)
    assert torch.equal(global_mask(T, n), global_mask(T, list(range(n))))


@few
@given(tokens, st.integers(0, 11), st.booleans(), st.integers(0, 99))
def test_random_keys_are_as_many_as_asked_for_and_repeat(T, n, causal, seed):
    draw = [random_mask(T, n, causal=causal, generator=torch.Generator().manual_seed(seed)) for _ in range(2)]
    assert torch.equal(*draw)
    assert draw[0].sum(-1).tolist() == [min(n, t + 1 if causal else T) for t in range(T)]
    assert not causal or not draw[0].triu(1).any()


def test_random_keys_are_all_alike_likely():
    generator = torch.Generator().manual_seed(0)
    share = sum(random_mask(8, 2, generator=generator).float() for _ in range(2000)) / 2000
    torch.testing.assert_close(share, torch.full((8, 8), 0.25), rtol=0, atol=0.06)  # six standard deviations


def test_bigbird_is_its_three_parts():
    T = 12
    mask = bigbird_mask(T, 2, 1, 3, generator=torch.Generator().manual_seed(1))
    drawn = random_mask(T, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(mask, sliding_window_mask(T, 2, causal=False) | global_mask(T, 1) | drawn)
    assert layers_to_reach(mask) == 2
    causal = bigbird_mask(T, 2, 1, 0, causal=True)
    assert not causal.triu(1).any() and layers_to_reach(causal) == T - 2  # only the window brings position 1 to the end


def test_the_nine_of_the_figure():
    T = 16
    masks = interaction_matrices(T, generator=torch.Generator().manual_seed(0))
    assert len(masks) == 9 and all(mask.shape == (T, T) and mask.diagonal().all() for mask in masks.values())
    for name, mask in masks.items():
        assert ("decoder" in name) == (not mask.triu(1).any())
    pairs = {name: count_pairs(mask) for name, mask in masks.items()}
    assert pairs["encoder"] == T * T and pairs["decoder"] == T * (T + 1) // 2
    assert pairs["local, encoder"] == 3 * T - 2 and pairs["local, decoder"] == 2 * T - 1
    assert pairs["dilation 2, decoder"] == 2 * T - 2 and pairs["dilation 3, decoder"] == 2 * T - 3
    assert masks["chosen tokens, decoder"].sum(-1).tolist() == [t + 1 if t % 4 == 0 else 2 for t in range(T)]
    assert masks["global tokens, encoder"][:2].all() and masks["global tokens, encoder"][:, :2].all()
    assert layers_to_reach(masks["local, encoder"]) == layers_to_reach(masks["local, decoder"]) == T - 1
    assert layers_to_reach(masks["dilation 2, decoder"]) is None  # odd offsets are never met
    assert layers_to_reach(masks["global tokens, encoder"]) == layers_to_reach(masks["BigBird, encoder"]) == 2


def walk(masks, t, s, most):
    """The least number of layers along which what is at s can come to t: all sets of positions, layer by layer."""
    there = {s}
    for n in range(most + 1):
        if t in there:
            return n
        mask = masks[n % len(masks)]
        there |= {a for a in range(len(mask)) if any(mask[a, b] for b in there)}
    return -1


@few
@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 9999), st.sampled_from([0.1, 0.2, 0.4]))
def test_layers_of_pairs_by_walking(T, several, seed, share):
    masks = torch.rand(several, T, T, generator=torch.Generator().manual_seed(seed)) < share
    layers = layers_per_pair(list(masks))
    most = several * T * T
    want = [[walk(masks, t, s, most) for s in range(T)] for t in range(T)]
    assert layers.tolist() == want
    worst = [n for row in want for n in row]
    upper = any(mask.triu(1).any() for mask in masks)
    asked = worst if upper else [want[t][s] for t, s in itertools.product(range(T), repeat=2) if s <= t]
    assert layers_to_reach(list(masks)) == (None if -1 in asked else max(asked))


def test_what_layers_reach_is_where_a_network_has_gradients():
    """Layers that add to each token what attention brings from others: its Jacobian is where the pattern says."""
    T, masks = 9, [strided_mask(9, 4, causal=True), sliding_window_mask(9, 2)]
    for depth in range(4):

        def network(x, depth=depth):
            for n in range(depth):
                x = x + torch.tanh(masks[n % 2].double() @ x)
            return x

        jacobian = torch.autograd.functional.jacobian(network, torch.rand(T, dtype=torch.float64))
        layers = layers_per_pair(masks)
        assert torch.equal(jacobian != 0, (layers >= 0) & (layers <= depth))


def test_layers_of_known_patterns():
    assert layers_to_reach(full_mask(7)) == layers_to_reach(causal_mask(7)) == 1
    assert layers_to_reach(full_mask(1)) == layers_to_reach(full_mask(0)) == 0
    assert layers_to_reach(sliding_window_mask(13, 4)) == 4  # three positions a layer, twelve to go
    assert layers_to_reach(block_local_mask(12, 4)) is None
    assert layers_to_reach([block_local_mask(12, 4), full_mask(12)]) == 2
    assert layers_to_reach([block_local_mask(12, 4), strided_mask(12, 4)]) == 2
    assert layers_to_reach(strided_mask(16, 4, causal=True) | sliding_window_mask(16, 4)) == 2
    assert layers_to_reach(iter([block_local_mask(12, 4), full_mask(12)])) == 2
    near = torch.arange(13)[:, None] - torch.arange(13) < 4
    assert layers_to_reach(sliding_window_mask(13, 4), near.tril()) == 1
    assert layers_to_reach(sliding_window_mask(13, 4), full_mask(13)) is None  # later inputs, of a causal pattern


def test_pairs_grow_as_they_should():
    """Full with the square, local with the length, strided and local with the power 1.5."""
    pairs = {T: [full_mask(T), sliding_window_mask(T, 8), strided_mask(T, int(T**0.5))] for T in (256, 1024)}
    ratios = [count_pairs(b) / count_pairs(a) for a, b in zip(*pairs.values(), strict=True)]
    assert ratios[0] == 16 and abs(ratios[1] - 4) < 0.1 and abs(ratios[2] - 8) < 0.2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: full_mask(-1), ValueError, "num_tokens is -1"),
        (lambda: random_mask(-1, 2), ValueError, "num_tokens is -1"),
        (lambda: block_local_mask(3, 0), ValueError, "block_size is 0"),
        (lambda: strided_mask(3, 0), ValueError, "stride is 0"),
        (lambda: random_mask(3, -1), ValueError, "num_random is -1"),
        (lambda: global_mask(3, 4), ValueError, "tokens are 4, expected a number from 0 to 3"),
        (lambda: global_mask(3, -1), ValueError, "tokens are -1, expected a number from 0 to 3"),
        (lambda: global_mask(3, [-1]), ValueError, "positions below it"),
        (lambda: count_pairs(torch.ones(2, 2)), TypeError, "mask has dtype torch.float32"),
        (lambda: layers_per_pair(torch.ones(2, 3).bool()), ValueError, r"expected \(T, T\)"),
        (lambda: layers_per_pair([full_mask(2), full_mask(3)]), ValueError, "the same for all"),
        (lambda: layers_per_pair([]), ValueError, "masks have shapes"),
        (lambda: layers_per_pair(torch.ones(2, 2)), TypeError, "expected boolean ones"),
        (lambda: layers_to_reach(full_mask(2), full_mask(3)), ValueError, r"expected boolean \(2, 2\)"),
    ],
)
def test_what_makes_no_pattern(make, error, message):
    with pytest.raises(error, match=message):
        make()
