"""Rotary positions against complex numbers, past the trained length too."""

import math

import pytest
import torch

from d2lmini.rotation import ROTATIONS, RotaryEmbedding, StretchedRotary, rotary

T, D, FACTOR = 12, 6, 4.0


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("make", ["function", "module"])
def test_rotary_scores_depend_on_the_offset_alone(make, size):
    turn = rotary if make == "function" else RotaryEmbedding(size, max_len=40)
    q, k = torch.randn(2, 3, 1, size), torch.randn(2, 3, 1, size)

    def score(i, j):
        return (turn(q, i) * turn(k, j)).sum(-1)

    for back in (0, 1, 7, 30):
        for start in (0, 3, 500):  # the module goes on past its table
            torch.testing.assert_close(score(start + back, start), score(back, 0), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(score(7, 0), score(0, 0)) and not torch.allclose(score(7, 0), score(0, 7))


def test_rotary_equals_complex_numbers_and_keeps_lengths():
    X = torch.randn(2, 3, 6, 8).double()
    angles = torch.arange(4, 10)[:, None] * 100.0 ** (-torch.arange(4).double() / 4)
    expected = torch.view_as_real(torch.view_as_complex(X.unflatten(-1, (4, 2))) * torch.exp(1j * angles)).flatten(-2)
    torch.testing.assert_close(rotary(X, 4, base=100.0), expected)
    torch.testing.assert_close(RotaryEmbedding(8, base=100.0)(X, 4), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(rotary(X, 4).norm(dim=-1), X.norm(dim=-1))


@pytest.mark.parametrize("turn", [rotary, RotaryEmbedding(6), RotaryEmbedding(6).bfloat16()])
def test_rotary_in_bfloat16(turn):
    X = torch.randn(2, 3, 5, 6).bfloat16()
    assert turn(X, 3).dtype == torch.bfloat16
    torch.testing.assert_close(turn(X, 3).double(), rotary(X.double(), 3), rtol=2e-2, atol=3e-2)
    assert not RotaryEmbedding(6).state_dict()


def test_tables_keep_their_precision_where_a_model_changes_its_dtype():
    """At position 900 a table in bfloat16 turns by another angle; one in float32 is off by 1e-7 in a float64 model."""
    X = torch.randn(2, 8, dtype=torch.float64)
    for module in (RotaryEmbedding(8), RotaryEmbedding(8).bfloat16().double(), RotaryEmbedding(8).half()):
        torch.testing.assert_close(module(X, 900), rotary(X, 900), rtol=1e-12, atol=1e-12)
        assert torch.equal(module(X.float(), 900), rotary(X.float(), 900))
    assert RotaryEmbedding(8).to("meta").cos.device.type == "meta"


def by_hand(X, factor, base):
    """Each pair as a complex number, times e^(i angle), the position being divided by the factor."""
    found = torch.view_as_complex(X.double().unflatten(-1, (-1, 2)))
    for n in range(X.shape[-2]):
        for j in range(X.shape[-1] // 2):
            angle = n / factor * base ** (-2 * j / X.shape[-1])
            found[..., n, j] *= complex(math.cos(angle), math.sin(angle))
    return torch.view_as_real(found).flatten(-2).float()


def test_interpolation_scales_the_angles():
    X = torch.randn(2, 3, T, D, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(StretchedRotary(FACTOR, "interpolated")(X), by_hand(X, FACTOR, 1e4), atol=1e-6)
    base = 1e4 * FACTOR ** (D / (D - 2))
    assert torch.allclose(StretchedRotary(FACTOR, "base changed")(X), by_hand(X, 1, base), atol=1e-6)
    assert torch.equal(StretchedRotary(FACTOR, "as trained")(X, 5), rotary(X, 5))


def test_interpolated_angles_were_all_seen_in_training():
    seen = StretchedRotary().angles(T, 0, D)
    longer = StretchedRotary(FACTOR, "interpolated").angles(int(FACTOR) * T, 0, D)
    assert torch.allclose(longer[:: int(FACTOR)], seen) and (longer <= seen[-1] + seen[1]).all()


def test_a_changed_base_slows_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all():
    before, after = StretchedRotary().angles(T, 0, D), StretchedRotary(FACTOR, "base changed").angles(T, 0, D)
    assert torch.equal(after[:, 0], before[:, 0])
    assert torch.allclose(after[:, -1], before[:, -1] / FACTOR)
    assert (after[1:, 1] < before[1:, 1]).all() and (after[1:, 1] > before[1:, 1] / FACTOR).all()


def test_a_factor_of_one_changes_nothing():
    X = torch.randn(1, 1, T, D, generator=torch.Generator().manual_seed(2))
    for way in ROTATIONS:
        assert torch.allclose(StretchedRotary(1.0, way)(X, 3), rotary(X, 3), atol=1e-6)
    with pytest.raises(ValueError, match="at least 1"):
        StretchedRotary(0.5, "interpolated")
    with pytest.raises(ValueError, match="'squeezed'"):
        StretchedRotary(2.0, "squeezed")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rotary(torch.ones(2, 5)), "X has 5 features, expected an even number"),
        (lambda: rotary(torch.ones(2, 4), -1), "offset is -1"),
        (lambda: RotaryEmbedding(5), "head_size is 5, expected an even number"),
        (lambda: RotaryEmbedding(6)(torch.ones(2, 4)), r"X has 4 features, expected 6 \(head_size\)"),
        (lambda: RotaryEmbedding(6)(torch.ones(2, 6), -1), "offset is -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
