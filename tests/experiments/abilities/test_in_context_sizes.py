"""Regression in a prompt by size: the best guess against brute force and closed forms, FLOPs, and what is compared."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from d2lmini.experiments import in_context, in_context_sizes
from d2lmini.experiments.abilities.in_context_sizes import KINDS, PRESETS, Contestant, make, task_flops
from d2lmini.lab.parts import Parts
from d2lmini.scaling import matrix_parameters

B, N, D, NOISE = 4, 7, 3, 0.3


def drawn(size=B, num=N, sparse=0.5, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return in_context_sizes.draw(size, num, D, sparse=sparse, noise=NOISE, generator=generator)


@pytest.mark.parametrize("sparse", [0.0, 1.0])
def test_kinds_differ_in_their_weights_alone(sparse):
    X, y = drawn(4_000, 40, sparse)
    assert torch.allclose(X.var((0, 1)), torch.ones(D), rtol=0.05)
    assert y.var().item() == pytest.approx(1 + NOISE**2, rel=0.05)
    w = in_context.ridge(X, y, 1e-6)  # what is found from 39 examples is near to the truth
    assert (w[:, -1] - y[:, -1]).std().item() == pytest.approx(NOISE, rel=0.1)
    weights = torch.linalg.lstsq(X, y[..., None]).solution[..., 0].abs()  # (B, d)
    large = (weights > 0.25).sum(1).float().mean().item()
    assert large < 1 if sparse else large > 1.5
    # every one of the numbers is the one that y depends on as often as the others
    share = torch.bincount(weights.argmax(1), minlength=D) / len(weights)
    assert torch.allclose(share, torch.full((D,), 1 / D), atol=0.03)


def test_a_share_of_the_prompts_is_sparse():
    dense, sparse, mixed = (drawn(2_000, sparse=share)[1] for share in (0.0, 1.0, 0.25))
    is_sparse = (mixed == sparse).all(1)
    assert ((mixed == dense).all(1) ^ is_sparse).all()
    assert is_sparse.float().mean().item() == pytest.approx(0.25, abs=0.03)


def test_the_best_guess_is_ridge_where_all_is_dense():
    X, y = drawn()
    want = in_context.ridge(X, y, D * NOISE**2)
    assert torch.allclose(in_context_sizes.best_guess(X, y, 0.0, NOISE), want, atol=1e-9)


def test_the_best_guess_is_bayes_rule():
    """Weights drawn from the prior, each weighted by the likelihood of the examples."""
    (X, y), share, random = drawn(2, 3), 0.4, np.random.default_rng(0)
    found = in_context_sizes.best_guess(X, y, share, NOISE)
    X, y, number = X.double().numpy(), y.double().numpy(), 1_000_000
    w = random.normal(size=(number, D)) / math.sqrt(D)
    one = np.eye(D)[random.integers(D, size=number)] * random.normal(size=(number, 1))
    w = np.where(random.random((number, 1)) < share, one, w)
    for b in range(2):
        for k in range(3):
            log_p = -((y[b, :k] - w @ X[b, :k].T) ** 2).sum(1) / (2 * NOISE**2)
            p = np.exp(log_p - log_p.max())
            assert found[b, k].item() == pytest.approx(p @ (w @ X[b, k]) / p.sum(), abs=0.02)


def test_no_reference_is_better_than_the_best_guess_over_both_kinds():
    config = replace(PRESETS["cpu"], tasks=5_000)
    found = in_context_sizes.score_references(config)
    names = found["dense"].keys()
    assert names == found["sparse"].keys() == {"zero", "least squares", "ridge", "gradient step", "best guess"}
    error = {name: [sum(pair) for pair in zip(*[found[kind][name] for kind in KINDS], strict=True)] for name in names}
    for k in range(1, 6):
        assert all(error["best guess"][k] < error[name][k] for name in names - {"best guess"})
    assert found["sparse"]["best guess"][2] < 0.9 * found["sparse"]["ridge"][2]
    assert found["dense"]["best guess"][2] > found["dense"]["ridge"][2]  # which knows that it is dense


def test_models_are_scored_on_the_tasks_of_the_references():
    config = PRESETS["smoke"]

    class Zero(torch.nn.Module):
        dense = torch.nn.Linear(1, 1)

        def forward(self, X, y):
            return torch.zeros_like(y)

    references = in_context_sizes.score_references(config)
    for kind, errors in in_context_sizes.score(Zero(), config).items():
        assert errors == pytest.approx(references[kind]["zero"], abs=1e-5) and len(errors) == config.examples
    assert references["dense"]["zero"] != references["sparse"]["zero"]


def test_training_and_test_have_the_settings_of_the_config(monkeypatch):
    config, calls, draw = replace(PRESETS["smoke"], sparse=0.3, noise=0.2, seeds=(0,)), [], in_context_sizes.draw

    def spied(size, num, dim, *, generator=None, **options):
        calls.append((num, dim, *options.items()))
        return draw(size, num, dim, generator=generator, **options)

    monkeypatch.setattr(in_context_sizes, "draw", spied)
    in_context_sizes.learn(config.contestants[0], config, 0, torch.device("cpu"), Parts(), "one")
    shape = config.examples, config.dim
    assert set(calls) == {(*shape, ("sparse", share), ("noise", 0.2)) for share in (0.3, 0.0, 1.0)}
    assert len(calls) == config.steps + len(KINDS)


def test_sizes_grow():
    for preset in PRESETS.values():
        models = [make(one, preset) for one in preset.contestants]
        assert all(a.num_parameters < b.num_parameters for a, b in pairwise(models))
        sizes = [(model.config.num_hiddens, model.config.num_blks) for model in models]
        assert [model.config.num_heads for model in models] == [one.num_heads for one in preset.contestants]
        assert {(model.settings.lr, model.settings.lr_matrices) for model in models} == {
            (preset.lr, preset.lr_matrices)
        }
        assert sizes == sorted(sizes) and sizes == [(one.num_hiddens, one.num_blks) for one in preset.contestants]
    laptop = [make(one, PRESETS["laptop"]).num_parameters for one in PRESETS["laptop"].contestants]
    assert len(laptop) == 5 and laptop[0] < 5_000 and laptop[-1] > 150_000
    assert {one.num_hiddens // one.num_heads for preset in PRESETS.values() for one in preset.contestants} == {16}


def test_flops_are_those_of_what_multiplies():
    config = PRESETS["smoke"]
    model = make(config.contestants[1], config)
    matrices = sum(p.numel() for p in model.parameters() if p.dim() > 1)
    assert matrices == matrix_parameters(model.config) + model.embedding.weight.numel()
    tokens = 2 * config.examples
    attention = 4 * tokens * model.config.num_hiddens * model.config.num_blks
    assert task_flops(model, config) == 3 * tokens * (2 * matrices + attention)


def test_what_the_sizes_make_of_examples():
    references = {kind: {"zero": [2.0, 2.0, 4.0], "best guess": [2.0, 1.0, 0.4]} for kind in KINDS}

    def model(parameters, *last):
        return {"parameters": parameters, "errors": [{kind: [2.0, 1.0, x] for kind in KINDS} for x in last]}

    found = in_context_sizes.compare(
        references, {"small": model(10, 4.0, 2.0), "large": model(1_000, 0.04, 2.0)}, (0, 2)
    )
    for kind in KINDS:
        none, two = found["left"][kind]["small"]
        assert none == {"mean": 1.0, "spread": 0.0}
        assert two["mean"] == 0.75 and two["spread"] == pytest.approx(math.sqrt(0.125))
        assert found["references"][kind] == {"zero": [1.0, 1.0], "best guess": [1.0, 0.1]}
        assert found["slopes"][kind][0] == [0.0, 0.0]  # of both seeds: without examples size changes nothing
        assert found["slopes"][kind][1] == pytest.approx([-1.0, 0.0])  # the first: a hundredth at a hundred times


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shots": (0, 4)}, "shots go to 4, but prompts have 4 examples"),
        ({"contestants": (Contestant(8, 1, 1),)}, "expected two different sizes or more"),
        ({"contestants": (Contestant(8, 1, 1),) * 2}, "expected two different sizes or more"),
    ],
)
def test_bad_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        in_context_sizes.run(replace(PRESETS["smoke"], **wrong), torch.device("cpu"))


@pytest.mark.train
def test_the_record_tells_what_was_trained(tmp_path, monkeypatch):
    config = PRESETS["smoke"]
    found = in_context_sizes.run(config, torch.device("cpu"), Parts(tmp_path))
    metrics, seeds = found["metrics"], len(config.seeds)
    assert list(metrics["models"]) == ["1 block of 16", "2 blocks of 16"]
    small, large = metrics["models"].values()
    assert small["tasks_seen"] == large["tasks_seen"] == config.steps * config.batch_size
    assert small["parameters"] < large["parameters"] and small["flops"] < large["flops"]
    for (name, one), contestant in zip(metrics["models"].items(), config.contestants, strict=True):
        assert one["flops"] == one["tasks_seen"] * task_flops(make(contestant, config), config)
        assert len(one["errors"]) == len(one["step_s"]) == seeds
        for kind in KINDS:
            shares = [errors[kind][3] / metrics["references"][kind]["zero"][3] for errors in one["errors"]]
            assert metrics["by_shots"]["left"][kind][name][-1]["mean"] == pytest.approx(sum(shares) / seeds)
    assert len(found["curves"]) == 2 * seeds
    best = sum(metrics["by_shots"]["references"][kind]["best guess"][-1] for kind in KINDS) / 2
    assert metrics["headline"].endswith(f"to the best guess {best:.3f}")

    monkeypatch.setattr(in_context_sizes, "learn", None)  # a run that is finished trains nothing again
    assert in_context_sizes.run(config, torch.device("cpu"), Parts(tmp_path)) == found
