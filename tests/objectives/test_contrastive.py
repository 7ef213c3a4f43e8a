"""InfoNCE: a loop, the value of chance, both ways, and that it pulls the right ones together."""

import math

import pytest
import torch

from d2lmini.objectives import info_nce


def draw(B=6, D=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, B, D, generator=generator, dtype=torch.float64).unbind()


def by_loop(queries, keys, temperature):
    total = 0
    for n, query in enumerate(queries):
        scores = [(query @ key / query.norm() / key.norm() / temperature).exp() for key in keys]
        total -= math.log(scores[n] / sum(scores))
    return total / len(queries)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 2])
def test_by_loop(temperature):
    queries, keys = draw()
    one, other = by_loop(queries, keys, temperature), by_loop(keys, queries, temperature)
    assert one != pytest.approx(other)
    assert info_nce(queries, keys, temperature).item() == pytest.approx(one)
    assert info_nce(queries, keys, temperature, symmetric=True).item() == pytest.approx((one + other) / 2)


def test_only_directions_matter():
    queries, keys = draw()
    assert info_nce(3 * queries, keys / 7).item() == pytest.approx(info_nce(queries, keys).item())


def test_chance_and_certainty():
    queries, keys = draw(5)
    assert info_nce(queries, keys[:1].expand(5, 4)).item() == pytest.approx(math.log(5))
    apart = torch.eye(5)
    assert info_nce(apart, apart).item() < 1e-5
    assert info_nce(apart, apart.roll(1, 0)).item() == pytest.approx(1 / 0.07, rel=1e-5)


def test_it_brings_the_right_ones_together():
    queries, keys = draw(8, 5)
    queries = queries.clone().requires_grad_()
    for _ in range(100):
        (gradient,) = torch.autograd.grad(info_nce(queries, keys, symmetric=True), queries)
        queries = (queries - gradient).detach().requires_grad_()
    assert (
        torch.cdist(torch.nn.functional.normalize(queries, dim=1), torch.nn.functional.normalize(keys, dim=1)).argmin(1)
        == torch.arange(8)
    ).all()


def test_bad_arguments():
    queries, keys = draw()
    for one, other in [(queries, keys[1:]), (queries, keys[:, 1:]), (queries[0], keys[0]), (queries[None], keys[None])]:
        with pytest.raises(ValueError, match=r"expected \(B, D\) of both"):
            info_nce(one, other)
    with pytest.raises(ValueError, match="the batch is 1, expected at least 2: there is no negative"):
        info_nce(queries[:1], keys[:1])
    with pytest.raises(ValueError, match="row 1 of the keys is of length 0, and has no direction"):
        info_nce(queries, keys * (torch.arange(len(keys)) != 1)[:, None])
    for temperature in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="temperature is"):
            info_nce(queries, keys, temperature)


def test_what_is_no_negative_is_not_told_apart():
    queries, keys = draw(5)
    negatives = torch.ones(5, 5, dtype=torch.bool)
    negatives[0, 3] = False
    temperature = torch.tensor(0.3, dtype=torch.float64)
    scores = torch.nn.functional.cosine_similarity(queries[:, None], keys, dim=-1) / temperature
    others = [[m for m in range(5) if (n, m) != (0, 3)] for n in range(5)]
    want = -sum(scores[n, n] - scores[n, others[n]].logsumexp(0) for n in range(5)) / 5
    assert info_nce(queries, keys, temperature, negatives=negatives).item() == pytest.approx(want.item())
    # a key is right for its own query whatever is said
    assert info_nce(queries, keys, negatives=torch.zeros(5, 5, dtype=torch.bool)).item() == 0
    back = [[m for m in range(5) if (m, n) != (0, 3)] for n in range(5)]
    other = -sum(scores[n, n] - scores[back[n], n].logsumexp(0) for n in range(5)) / 5
    both = info_nce(queries, keys, temperature, symmetric=True, negatives=negatives)
    assert both.item() == pytest.approx(((want + other) / 2).item())
    for wrong in (negatives[1:], negatives.float()):
        with pytest.raises(ValueError, match=r"expected booleans of shape \(5, 5\)"):
            info_nce(queries, keys, negatives=wrong)
