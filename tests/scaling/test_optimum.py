"""Budgets: the closed form against a search, profiles against the law that they were made of."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.scaling import (
    PowerLaw,
    compute_frontier,
    compute_optimal,
    interpolate_log,
    isoflop_optimum,
    isoflop_profile,
)
from d2lmini.scaling.literature import PUBLISHED_LAWS

LAW = PowerLaw(1.2, (40.0, 300.0), (0.35, 0.4))


@settings(max_examples=40, deadline=None)
@given(st.floats(0.1, 0.9), st.floats(0.1, 0.9), st.floats(1, 1e3), st.floats(1, 1e3), st.floats(1e12, 1e25))
def test_no_other_split_is_better(alpha, beta, A, B, flops):
    law = PowerLaw(1.0, (A, B), (alpha, beta))
    best = compute_optimal(law, flops)
    assert 6 * best.parameters * best.tokens == pytest.approx(flops)
    assert best.loss == law(best.parameters, best.tokens)
    for factor in (0.5, 0.98, 1.02, 2):
        n, d = best.parameters * factor, best.tokens / factor
        if n >= 1 and d >= 1:
            assert best.loss <= law(n, d) * (1 + 1e-12)


def test_the_best_size_grows_as_the_paper_says():
    one = PUBLISHED_LAWS["chinchilla"]
    small, large = (compute_optimal(one.law, flops) for flops in (1e20, 1e24))
    growth = math.log(large.parameters / small.parameters) / math.log(1e4)
    assert growth == pytest.approx(one.best_parameters)


def test_at_the_edge_the_best_is_the_edge():
    free = compute_optimal(LAW, 1e14)
    held = compute_optimal(LAW, 1e14, min_parameters=4 * free.parameters)
    assert held.parameters == pytest.approx(4 * free.parameters) and held.loss > free.loss
    held = compute_optimal(LAW, 1e14, min_tokens=4 * free.tokens)
    assert held.tokens == pytest.approx(4 * free.tokens)


def test_a_budget_may_be_too_small():
    for flops in (5.0, 0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="too small for any model"):
            compute_optimal(LAW, flops)
    with pytest.raises(ValueError, match="1000 parameters and 1e\\+06 tokens take 6e\\+09"):
        compute_optimal(LAW, 5e9, min_parameters=1e3, min_tokens=1e6)
    with pytest.raises(ValueError, match="falls with parameters and tokens"):
        compute_optimal(PowerLaw(0.0, (3.0,), (0.1,)), 1e14)
    with pytest.raises(ValueError, match="falls with parameters and tokens"):
        compute_optimal(PowerLaw(0.0, (3.0, 3.0), (0.1, -0.1)), 1e14)


def test_a_power_law_is_straight_between_points():
    points = [(x, 3 * x**-0.3) for x in (9.0, 1.0, 4.0)]
    assert interpolate_log(points, 2.5) == pytest.approx(3 * 2.5**-0.3)
    assert interpolate_log(points, 1.0) == pytest.approx(3)
    assert interpolate_log(points, 0.9) is None and interpolate_log(points, 9.1) is None
    assert interpolate_log(points[:1], 9.0) is None


def runs():
    grid = [(n, d) for n in (1e4, 2e4, 4e4, 8e4, 16e4, 32e4) for d in (1e5, 4e5, 16e5, 64e5)]
    return [list(column) for column in zip(*[(n, d, LAW(n, d)) for n, d in grid], strict=True)]


def test_profiles_find_the_optimum_of_the_law():
    flops = 6 * 6e4 * 1e6
    parameters, tokens, losses = isoflop_profile(*runs(), flops)
    assert parameters == [4e4, 8e4, 16e4, 32e4] or len(parameters) >= 4
    for n, d, loss in zip(parameters, tokens, losses, strict=True):
        assert 6 * n * d == pytest.approx(flops) and loss == pytest.approx(LAW(n, d), rel=0.01)
    exact = [LAW(n, d) for n, d in zip(parameters, tokens, strict=True)]
    best, found = compute_optimal(LAW, flops), isoflop_optimum(parameters, exact, flops)
    assert found.parameters == pytest.approx(best.parameters, rel=0.15)
    assert found.loss == pytest.approx(best.loss, rel=0.01)
    assert 6 * found.parameters * found.tokens == pytest.approx(flops)


def test_a_parabola_is_found_exactly():
    sizes = [1e3, 2e3, 5e3, 9e3]
    losses = [2 + 0.1 * (math.log(n / 3e3)) ** 2 for n in sizes]
    assert isoflop_optimum(sizes, losses, 6e9) == pytest.approx((3e3, 1e9 / 3e3, 2.0))


def test_profiles_that_tell_no_optimum():
    with pytest.raises(ValueError, match="no size was trained"):
        isoflop_profile(*runs(), 6.0)
    with pytest.raises(ValueError, match="needs three sizes, got 2"):
        isoflop_optimum([1e3, 2e3], [2.0, 1.9], 1e9)
    sizes = [1e3, 2e3, 4e3]
    with pytest.raises(ValueError, match="train larger"):
        isoflop_optimum(sizes, [2.0, 1.8, 1.7], 1e9)
    with pytest.raises(ValueError, match="train smaller"):  # the parabola opens downwards
        isoflop_optimum([1e5, 2e5, 4e5], [3.19, 3.49, 3.67], 1e18)
    with pytest.raises(ValueError, match="train smaller"):
        isoflop_optimum(sizes, [1.7, 1.8, 2.0], 1e9)
    with pytest.raises(ValueError, match="not between its sizes"):
        isoflop_optimum(sizes, [1.7, 1.8, 1.7], 1e9)  # a maximum is no optimum


def test_the_frontier_is_beaten_by_none():
    assert compute_frontier([1, 2, 3, 3, 4], [5, 6, 4, 3, 3]) == [0, 3]
    assert compute_frontier([], []) == []
