"""Regression in a prompt: what a model is compared with, against numpy and closed forms; and that it sees no answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from d2lmini.experiments import in_context
from d2lmini.experiments.abilities.in_context import PRESETS, Contestant, Regressor

B, N, D = 4, 9, 3


@pytest.fixture
def tasks():
    return in_context.draw(B, N, D, noise=0.3, generator=torch.Generator().manual_seed(5))


def each(X, y):
    """Examples before each x, in numpy: task, number of them, X, y, x."""
    X, y = X.double().numpy(), y.double().numpy()
    return [(b, k, X[b, :k], y[b, :k], X[b, k]) for b in range(len(X)) for k in range(X.shape[1])]


def test_least_squares_is_numpys(tasks):
    found = in_context.least_squares(*tasks)
    assert found.shape == (B, N) and found.dtype == torch.float64
    for b, k, X, y, x in each(*tasks):
        want = x @ np.linalg.lstsq(X, y, rcond=None)[0] if k else 0.0
        assert found[b, k].item() == pytest.approx(want, abs=1e-9)


def test_ridge_is_the_mean_of_the_posterior(tasks):
    noise, variance = 0.3, 1 / D
    found = in_context.ridge(*tasks, noise**2 / variance)
    for b, k, X, y, x in each(*tasks):
        # y of the examples and y at x are Gaussian together: condition the last on the others
        seen = variance * X @ X.T + noise**2 * np.eye(k)
        want = variance * x @ X.T @ np.linalg.solve(seen, y) if k else 0.0
        assert found[b, k].item() == pytest.approx(want, abs=1e-9)
    assert torch.allclose(in_context.ridge(*tasks, 1e-9)[:, D + 1 :], in_context.least_squares(*tasks)[:, D + 1 :])


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_a_step_of_gradient_descent_has_the_best_length(noise):
    X, y = in_context.draw(100_000, 4, D, noise=noise, generator=torch.Generator().manual_seed(1))
    k = 3
    guess = in_context.gradient_step(X, y, noise)[:, k]
    clean = in_context.draw(100_000, 4, D, generator=torch.Generator().manual_seed(1))[1].double()  # the same w and X

    def error(factor):
        return (factor * guess - clean[:, k]).square().mean().item()

    assert error(1.0) == pytest.approx(1 - k / (k + D + 1 + D * noise**2), rel=0.02)
    assert error(1.0) < min(error(0.9), error(1.1))
    # it is a step down the slope of the squared error from zero
    w = torch.zeros(D, dtype=torch.float64, requires_grad=True)
    X, y = X[0].double(), y[0].double()
    (slope,) = torch.autograd.grad((y[:k] - X[:k] @ w).square().sum() / 2, w)
    assert guess[0].item() == pytest.approx((-slope / (k + D + 1 + D * noise**2) @ X[k]).item())


def test_ridge_reckons_with_the_noise_that_there_is():
    config = replace(PRESETS["smoke"], tasks=20_000)
    X, y = dict(in_context.prompts(config))["noise"]
    noise = in_context.PROMPTS["noise"]["noise"]
    best = in_context.references(config, noise, X, y)["ridge"]

    def error(found):
        return (found - y)[:, 2].square().mean().item()

    penalty = config.dim * noise**2
    assert error(best) < min(error(in_context.ridge(X, y, factor * penalty)) for factor in (0.5, 2.0))


def test_draws():
    def moments(**options):
        X, y = in_context.draw(20_000, 2, D, generator=torch.Generator().manual_seed(2), **options)
        return X.var((0, 1)), y.var().item()

    X, y = moments()
    assert torch.allclose(X, torch.ones(D), rtol=0.05) and y == pytest.approx(1, rel=0.05)
    X, y = moments(input_scale=2.0, weight_scale=0.5, noise=3.0)
    assert torch.allclose(X, 4 * torch.ones(D), rtol=0.05) and y == pytest.approx(1 + 9, rel=0.05)
    X, y = moments(skewed=True)
    assert torch.allclose(X[0] / X, torch.arange(1.0, D + 1) ** 2, rtol=0.05) and X.sum().item() == pytest.approx(
        D, rel=0.05
    )


def test_a_prompt_holds_examples_in_turn():
    X, y = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([[5.0, 6.0]])
    assert in_context.as_sequence(X, y).tolist() == [[[1, 2, 0], [0, 0, 5], [3, 4, 0], [0, 0, 6]]]


@pytest.mark.parametrize("positions", ["rotary", None])
def test_no_prediction_sees_its_answer(positions):
    config = PRESETS["smoke"]
    torch.manual_seed(0)
    model = Regressor(config, Contestant("a", 2, positions)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    X, y = in_context.draw(1, 5, config.dim)
    y.requires_grad_()
    X.requires_grad_()
    for i, prediction in enumerate(model(X, y)[0]):
        of_x, of_y = torch.autograd.grad(prediction, (X, y), retain_graph=True)
        assert of_x[0, : i + 1].any(-1).all() and not of_x[0, i + 1 :].any()
        assert of_y[0, :i].all() and not of_y[0, i:].any()


def test_scores_are_of_the_same_tasks():
    config = PRESETS["smoke"]
    references = in_context.score_references(config)
    for name, (_, y) in in_context.prompts(config):
        assert references[name]["zero"] == pytest.approx(y.square().mean(0).tolist(), abs=1e-5)
        assert len(references[name]["least squares"]) == config.longer
        if "noise" not in in_context.PROMPTS[name]:
            assert references[name]["least squares"][config.dim :] == pytest.approx(
                [0] * (config.longer - config.dim), abs=1e-6
            )
    assert "ridge" in references["noise"] and "ridge" not in references["as trained"]

    class Zero(torch.nn.Module):
        dense = torch.nn.Linear(1, 1)

        def forward(self, X, y):
            return torch.zeros_like(y)

    found = in_context.score(Zero(), Contestant("a", 1, noise=0.5), config)
    for name in references:
        assert found["errors"][name] == pytest.approx(references[name]["zero"], abs=1e-5)
    assert found["distance"]["zero"] == [0] * config.longer and found["distance"].keys() == references["noise"].keys()
