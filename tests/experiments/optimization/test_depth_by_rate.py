"""Depth by learning rate: what is looked at, what is recorded, and that a run goes on where it was cut."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import depth_by_rate
from d2lmini.experiments.optimization.deep_gpts import MATRICES, Text, verdict
from d2lmini.experiments.optimization.depth_by_rate import FORMS, PRESETS, learn, look, make
from d2lmini.lab.parts import Parts

CPU = torch.device("cpu")
SMALL = replace(PRESETS["smoke"], depths=(1, 3), rates=(1e-3, 1e-2))
TEXT = Text.read("book")


def test_the_presets_cover_what_the_chapter_compares():
    laptop = PRESETS["laptop"]
    assert set(laptop.forms) == set(FORMS) and max(laptop.rates) / min(laptop.rates) == pytest.approx(100)
    seeds = PRESETS["seeds"]
    assert len(seeds.seeds) == 3 and seeds == replace(
        laptop, forms=seeds.forms, depths=seeds.depths, rates=seeds.rates, seeds=seeds.seeds
    )
    assert all(set(getattr(seeds, name)) < set(getattr(laptop, name)) for name in ("forms", "depths", "rates"))
    for config in PRESETS.values():
        assert list(config.depths) == sorted(config.depths) and list(config.rates) == sorted(config.rates)
        depth_by_rate.check(config)
    assert {form.warmup > 0 for name, form in FORMS.items() if "warm-up" in name} == {True}
    assert {form.warmup for name, form in FORMS.items() if "warm-up" not in name} == {0.0}


def test_a_look_before_the_first_step():
    found = look("post-norm", SMALL, TEXT, CPU)
    model, _ = make("post-norm", 3, SMALL, TEXT, CPU, SMALL.seeds[0])
    assert len(found["stream"]["size"]) == len(found["stream_gradients"]) == 4
    assert found["stream"]["size"][1:] == pytest.approx([1.0] * 3, rel=1e-3)  # which the norms see to
    assert found["gradients"].keys() == found["updates"].keys() == MATRICES.keys()
    # Adam's first step is of the size of the rate, whatever the gradient is
    sizes = [blk.attention.W_v.weight.square().mean().sqrt().item() for blk in model.blks]
    assert found["updates"]["values"] == pytest.approx([1 / size for size in sizes], rel=0.02)
    X, Y = next(TEXT.batches(SMALL.batch_size, SMALL.model.max_len, CPU, SMALL.seeds[0]))
    model.loss(model(X), Y).backward()
    want = [blk.attention.W_q.weight.grad.square().mean().sqrt().item() for blk in model.blks]
    assert found["gradients"]["queries"] == pytest.approx(want, rel=1e-3)


def test_branches_that_weigh_nothing_have_no_gradients_yet():
    found = look("no norm, residual weight", SMALL, TEXT, CPU)
    assert found["stream"]["change"] == [0.0] * 3 and found["gradients"]["values"] == [0.0] * 3
    assert len(set(found["stream_gradients"])) == 1 and found["stream_gradients"][0] > 0


@pytest.mark.parametrize("form", ["post-norm", "post-norm, warm-up"])
def test_the_rate_of_each_step(form, monkeypatch):
    seen, config = [], replace(SMALL, steps=20, decay=0.25)

    def spied(model, batches, optimizer, schedule, steps):
        rate = optimizer.param_groups[0]["lr"]
        seen.extend(rate * schedule(step) for step in range(1, steps + 1))
        return {"losses": [4.0] * steps, "norms": [1.0] * steps}

    monkeypatch.setattr(depth_by_rate, "train", spied)
    learn(form, 1, 0.1, 0, config, TEXT, CPU)
    rising = [0.1 * step / 6 for step in range(1, 7)] if "warm-up" in form else [0.1] * 6
    assert seen == pytest.approx(rising + [0.1] * 9 + [0.08, 0.06, 0.04, 0.02, 0.0])


@pytest.mark.train
def test_what_is_recorded_of_a_training():
    found = learn("pre-norm", 2, 1e-2, 0, replace(SMALL, steps=10, points=5), TEXT, CPU)
    assert found["steps"] == 10 and len(found["losses"]) == 5 and len(found["stream_gradients"]) == 3
    assert found["verdict"] == verdict(found["loss"], found["losses"][0], TEXT.unigram(SMALL), TEXT.uniform)
    lost = learn("no norm", 2, 1e9, 0, SMALL, TEXT, CPU)
    assert lost["loss"] is None and lost["verdict"] == "diverged" and lost["steps"] < SMALL.steps


def test_an_unknown_form():
    with pytest.raises(ValueError, match="'ante-norm' is none of 'post-norm'"):
        depth_by_rate.run(replace(SMALL, forms=("ante-norm",)), CPU)


@pytest.mark.train
def test_the_record_tells_of_every_setting(tmp_path, monkeypatch):
    config, verdicts = replace(SMALL, seeds=(0, 1)), iter(("trains", "stuck", "diverged", "trains"))
    real = depth_by_rate.learn

    def told(form, depth, *args):
        return real(form, depth, *args) | {"verdict": "stuck" if form != config.forms[0] else next(verdicts, "stuck")}

    monkeypatch.setattr(depth_by_rate, "learn", told)
    found = depth_by_rate.run(config, CPU, Parts(tmp_path))
    metrics, (first, second) = found["metrics"], config.forms
    for key in ("loss", "verdict", "steps", "norm", "stream_gradients"):
        for form in config.forms:
            assert [len(rows) for rows in metrics[key][form]] == [2, 2], "two depths of each of two seeds"
            assert all(len(row) == len(config.rates) for rows in metrics[key][form] for row in rows)
    assert metrics["verdict"][first] == [[["trains", "stuck"], ["diverged", "trains"]], [["stuck"] * 2] * 2]
    assert metrics["trains"] == {first: 2 / 8, second: 0.0} and metrics["deepest"] == {first: 3, second: None}
    assert metrics["headline"].endswith(f"train: {first} 2; {second} 0") and "of 8 settings" in metrics["headline"]
    assert [len(x) for x in metrics["stream_gradients"][first][0][1]] == [4, 4]  # of three blocks
    assert found["curves"].keys() == {f"{f}, {d}, {r:g}" for f in config.forms for d in (1, 3) for r in config.rates}
    want = [[real(first, d, r, 1, config, TEXT, CPU)["loss"] for r in config.rates] for d in (1, 3)]
    torch.testing.assert_close(torch.tensor(metrics["loss"][first][1]), torch.tensor(want))  # each stands at its place

    monkeypatch.setattr(depth_by_rate, "learn", None)  # a run that is finished trains nothing again
    monkeypatch.setattr(depth_by_rate, "look", None)
    assert depth_by_rate.run(config, CPU, Parts(tmp_path)) == found
