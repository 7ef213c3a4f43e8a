"""Optimisers: who differs from whom in what, that all see as much, and which rate is the best."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import optimizers
from d2lmini.experiments.optimization.deep_gpts import Text
from d2lmini.experiments.optimization.optimizers import CONTESTANTS, PRESETS, Contestant, best, learn, make, summary
from d2lmini.lab.parts import Parts
from d2lmini.training import MuonWithAdamW

CPU = torch.device("cpu")
SMOKE = PRESETS["smoke"]
TEXT = Text.read("book")
BY_NAME = {one.name: one for one in CONTESTANTS}


def trained(name="Adam", rate=1e-2, **changes):
    return learn(BY_NAME[name], rate, 0, replace(SMOKE, **changes), TEXT, CPU)


def test_contestants_differ_in_what_their_names_say():
    base, words = CONTESTANTS[0], {
        "no warm-up": "warmup", "no clipping": "gradient_clip_val", "the rate stays": "decay", "batch": "times",
        "post-norm": "norms", "in the gradient": "weight_decay", "AdamW": "weight_decay",
    }  # fmt: skip
    for one in CONTESTANTS:
        said = {field for word, field in words.items() if word in one.name}
        assert said == {field for field in words.values() if getattr(one, field) != getattr(base, field)}, one.name
        assert (
            one.optimizer
            == {"Adam": "adam", "AdamW": "adamw", "SGD": "sgd", "Muon": "muon"}[one.name.split()[0].strip(",")]
        )
        assert list(one.rates) == sorted(one.rates) and len(one.rates) >= 4
    assert base.name == "Adam" and base.warmup and base.gradient_clip_val and base.decay
    for config in PRESETS.values():
        optimizers.check(config)


def test_all_begin_at_the_same_weights():
    models = [make(BY_NAME[name], 0.1, SMOKE, TEXT, CPU, 3)[0] for name in ("Adam", "Muon", "SGD with momentum")]
    for other in models[1:]:
        assert all(map(torch.equal, models[0].parameters(), other.parameters()))


def test_who_moves_how():
    def optimizer(name):
        return make(BY_NAME[name], 0.123, SMOKE, TEXT, CPU, 0)[1]

    assert type(optimizer("Adam")) is torch.optim.Adam and type(optimizer("AdamW")) is torch.optim.AdamW
    assert optimizer("Adam").param_groups[0]["betas"] == SMOKE.betas
    sgd, muon = optimizer("SGD with momentum"), optimizer("Muon")
    assert type(sgd) is torch.optim.SGD and sgd.param_groups[0]["momentum"] == SMOKE.momentum
    assert type(muon) is MuonWithAdamW
    assert {g["kind"]: g["lr"] for g in muon.param_groups} == {"muon": 0.123, "adamw": SMOKE.lr_others}
    assert {g["lr"] for name in ("Adam", "AdamW") for g in optimizer(name).param_groups} == {0.123}
    assert [optimizer(name).param_groups[0]["weight_decay"] for name in ("Adam", "AdamW")] == [0.0, 0.1]


@pytest.mark.parametrize("name", ["Adam", "Adam, a quarter of the batch", "Adam, four times the batch"])
def test_all_see_equally_much(name, monkeypatch):
    real, seen = optimizers.train, []

    def spied(model, batches, *args, **options):
        def counted():
            for X, Y in batches:
                seen.append(X.numel())
                yield X, Y

        return real(model, counted(), *args, **options)

    monkeypatch.setattr(optimizers, "train", spied)
    trained(name)
    assert sum(seen) == SMOKE.batch_size * SMOKE.steps * SMOKE.model.max_len
    assert len(seen) == SMOKE.steps / BY_NAME[name].times


@pytest.mark.train
def test_the_mean_of_the_weights():
    assert trained(averaging=0.0)["averaged"] == pytest.approx(trained()["loss"], abs=1e-6)  # the last weights alone
    found = trained(averaging=0.9)
    assert found["loss"] == pytest.approx(trained()["loss"]) and found["averaged"] != found["loss"]
    model = make(BY_NAME["Adam"], 1e-2, SMOKE, TEXT, CPU, 0)[0]
    stays = optimizers.score(model, TEXT, SMOKE)
    # the mean begins at the weights of the first step, at a tenth of the rate, and nothing else comes in
    config = replace(SMOKE, averaging=1.0)
    assert learn(replace(BY_NAME["Adam"], warmup=0.5), 1e-6, 0, config, TEXT, CPU)["averaged"] == pytest.approx(stays)


@pytest.mark.train
def test_what_is_recorded_of_a_training():
    found = trained(steps=16, points=4)
    assert found["steps"] == 16 and len(found["losses"]) == 4
    median, largest = found["norms"]
    assert 0 < median < largest and 0 <= found["clipped"] <= 1
    tight = learn(replace(BY_NAME["Adam"], gradient_clip_val=1e-6), 1e-3, 0, SMOKE, TEXT, CPU)
    assert tight["clipped"] == 1.0 and trained("Adam, no clipping")["clipped"] == 0.0
    inside = found["inside"]
    assert {len(values) for kind in inside.values() for values in kind.values()} == {SMOKE.model.num_blks}
    assert set(inside) == {"gradients", "updates", "second_moments"}
    assert inside["updates"]["queries"][0] > 0  # at the full rate, though the schedule ends at 0
    for name in ("Muon", "SGD with momentum"):
        assert trained(name)["inside"]["second_moments"] == {}


def test_a_training_that_diverges_is_a_result():
    found = trained("SGD with momentum, no clipping", 1e20)
    assert found["verdict"] == "diverged" and found["loss"] is found["averaged"] is found["inside"] is None
    assert 1 <= found["steps"] < SMOKE.steps


def row(loss, averaged=None, norms=(1.0, 2.0)):
    inside = {"of": loss}
    return {
        "loss": loss, "averaged": averaged, "verdict": "trains", "norms": norms, "clipped": 0.5, "inside": inside,
    }  # fmt: skip


def test_the_best_rate():
    rows = [[row(3.0, 2.0), row(3.0, 4.0)], [row(2.0, 3.5), row(3.0, 3.5)], [row(1.0, 1.0), row(None)]]
    rates = 0.1, 0.2, 0.3
    assert best(rows, rates) == 1 and best(rows, rates, "averaged") == 0
    found = summary(rows, rates)
    assert found["rate"] == 0.2 and found["loss"] == 2.5 and found["at_edge"] is False
    assert found["averaged_rate"] == 0.1 and found["averaged_loss"] == 3.0
    assert found["losses"] == [[3.0, 3.0], [2.0, 3.0], [1.0, None]] and found["inside"] == {"of": 2.0}
    assert summary(rows[:2], rates[:2])["at_edge"] is True
    lost = summary([[row(None)], [row(None)]], rates[:2])
    assert lost["loss"] is lost["rate"] is lost["inside"] is lost["averaged_loss"] is lost["at_edge"] is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contestants": CONTESTANTS[:1] * 2}, "each name once"),
        ({"batch_size": 2, "contestants": (Contestant("small", times=0.25),)}, "the batch would be 0.5"),
        ({"steps": 6, "contestants": (Contestant("large", times=4.0),)}, "number of steps would be 1.5"),
    ],
)
def test_bad_settings(wrong, message):
    with pytest.raises(ValueError, match=message):
        optimizers.run(replace(SMOKE, **wrong), CPU)


@pytest.mark.train
def test_the_record_tells_of_every_contestant(tmp_path, monkeypatch):
    config = replace(SMOKE, seeds=(0, 1))
    found = optimizers.run(config, CPU, Parts(tmp_path))
    metrics = found["metrics"]
    of = metrics["contestants"]
    assert list(of) == [one.name for one in config.contestants]
    first, muon, sgd = of.values()
    assert first["rates"] == [1e-3, 1e9] and first["rate"] == 1e-3 and first["losses"][1] == [None, None]
    assert first["behind"] == 0 and muon["behind"] == muon["loss"] - first["loss"]
    assert sgd["loss"] is None and sgd["behind"] is None and metrics["headline"].endswith("SGD with momentum diverged")
    assert first["loss"] == pytest.approx(sum(first["losses"][0]) / 2)
    want = learn(config.contestants[1], 0.01, 1, config, TEXT, CPU)["loss"]
    assert muon["losses"] == [[pytest.approx(muon["losses"][0][0]), pytest.approx(want)]]
    assert metrics["characters"] == config.batch_size * config.steps * config.model.max_len
    assert set(found["curves"]) == {f"{one.name}, {rate:g}" for one in config.contestants for rate in one.rates}

    monkeypatch.setattr(optimizers, "learn", None)  # a run that is finished trains nothing again
    assert optimizers.run(config, CPU, Parts(tmp_path)) == found
