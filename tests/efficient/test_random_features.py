"""Performer's features: their average and variance over draws, the directions of their rows."""

import math

import pytest
import torch

from d2lmini.attention import scaled_dot_product_attention
from d2lmini.efficient.linear import linear_attention
from d2lmini.efficient.random_features import PositiveRandomFeatures

D, M, DRAWS = 4, 8, 6000


def estimates(queries, keys, orthogonal, **kwargs):
    """(DRAWS, T, S): the dot products of features, each of another draw."""
    generator = torch.Generator().manual_seed(1)
    features = PositiveRandomFeatures(D, M, orthogonal=orthogonal, generator=generator, **kwargs).double()
    seen = []
    for _ in range(DRAWS):
        features.redraw(generator)
        seen.append(features(queries) @ features(keys).mT)
    return torch.stack(seen), features


@pytest.fixture(scope="module")
def inputs():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, D, generator=generator, dtype=torch.float64) / 3 for n in (3, 5)]  # short: tails are light


@pytest.mark.slow
@pytest.mark.parametrize("kwargs", [{}, {"scale": 0.8}])
def test_average_and_variance_over_draws(inputs, kwargs):
    queries, keys = inputs
    exact = torch.exp(kwargs.get("scale", 1 / math.sqrt(D)) * queries @ keys.mT)
    variances = {}
    for orthogonal in (False, True):
        seen, features = estimates(queries, keys, orthogonal, **kwargs)
        standard_error = seen.std(0) / math.sqrt(DRAWS)
        assert ((seen.mean(0) - exact).abs() < 5 * standard_error).all()
        variances[orthogonal] = seen.var(0)
    formula = features.variance(queries, keys)
    # medians over the pairs, since a pair far out has so heavy a tail that its measured variance is a matter of luck
    independent, at_right_angles = ((variances[o] / formula).median() for o in (False, True))
    assert ((variances[False] / formula - 1).abs() < 0.2).all() and abs(independent - 1) < 0.03
    assert at_right_angles < 0.97


def test_variance_falls_with_the_number_of_features(inputs):
    small, large = (PositiveRandomFeatures(D, m).variance(*inputs) for m in (10, 40))
    torch.testing.assert_close(small, 4 * large)


def test_rows_are_at_right_angles_within_a_block():
    w = PositiveRandomFeatures(6, 15, generator=torch.Generator().manual_seed(0)).w
    unit = w / w.norm(dim=1, keepdim=True)
    for block in unit.split(6):
        torch.testing.assert_close(block @ block.T, torch.eye(len(block)), atol=1e-5, rtol=0)
    assert (unit[:6] @ unit[6:12].T).abs().max() > 0.1
    assert w.norm(dim=1).std() > 0.1  # lengths are those of Gaussian rows
    loose = PositiveRandomFeatures(6, 15, orthogonal=False, generator=torch.Generator().manual_seed(0)).w
    assert (loose[:6] @ loose[:6].T).triu(1).abs().max() > 0.1


def test_every_direction_is_alike():
    """Each single row of a block, so that each feature has the right average."""
    rows = torch.stack([PositiveRandomFeatures(3, 3).w for _ in range(3000)])
    mean = rows.mean(0)
    assert mean.abs().max() < 6 / math.sqrt(3000)
    torch.testing.assert_close(rows.square().mean(0), torch.ones(3, 3), atol=0.2, rtol=0)


def test_a_draw_repeats_with_its_generator_and_is_saved():
    one, two = (PositiveRandomFeatures(3, 5, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(one.w, two.w) and not list(one.parameters())
    before = one.w.clone()
    one.redraw()
    assert not torch.equal(one.w, before)
    two.load_state_dict(one.state_dict())
    assert torch.equal(one.w, two.w)


@pytest.mark.slow
def test_many_features_come_near_softmax():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, n, 8, generator=generator) / 2 for n in (20, 30, 30))
    exact = scaled_dot_product_attention(q, k, v)
    errors = []
    for num_features in (32, 512, 8192):
        runs = [PositiveRandomFeatures(8, num_features, generator=generator) for _ in range(5)]
        errors.append(sum((linear_attention(q, k, v, feature_map=f.stable) - exact).square().mean() for f in runs))
    assert errors[0] > 5 * errors[1] > 25 * errors[2]  # about 1 / M


def test_positive_and_in_the_dtype_of_the_input():
    features = PositiveRandomFeatures(3, 5)
    for dtype in (torch.float32, torch.float64):
        out = features(torch.randn(2, 4, 3, dtype=dtype))
        assert out.shape == (2, 4, 5) and out.dtype == dtype and (out > 0).all()
    for part in features.stable:
        assert part(100 * torch.randn(2, 4, 3)).amax() == 1
    assert features.stable[1](torch.randn(2, 0, 3)).shape == (2, 0, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PositiveRandomFeatures(0, 3), "num_inputs is 0"),
        (lambda: PositiveRandomFeatures(3, 0), "num_features 0"),
        (lambda: PositiveRandomFeatures(3, 3, scale=0.0), "scale is 0.0"),
        (lambda: PositiveRandomFeatures(3, 3, scale=math.nan), "scale is nan"),
        (lambda: PositiveRandomFeatures(3, 3, scale=math.inf), "scale is inf"),
    ],
)
def test_what_makes_no_features(make, message):
    with pytest.raises(ValueError, match=message):
        make()
