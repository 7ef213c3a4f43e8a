"""Experiments: each smoke preset runs and its record survives a round trip; the runner refuses the rest."""

import dataclasses
import json
import re
import sys

import pytest
import torch
from conftest import ROOT
from torch.nn import functional as F

from d2lmini import results
from d2lmini.__main__ import main
from d2lmini.experiments import _translation, runner
from d2lmini.experiments import pooling_fashion_mnist as pooled
from d2lmini.experiments import translation_transformer as translator
from d2lmini.pooling import GaussianKernel, nadaraya_watson


class Toy:
    """A stand-in for the module of an experiment."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        sizes: tuple = (1, 2)
        seeds: tuple = (3,)
        batches_per_step: int = 2

    def __init__(self, outcome=None):
        self.PRESETS = {"smoke": self.Config()}
        metrics = {"headline": "one", "loss": [0.5, 1 / 3]}
        self.outcome = outcome or {"metrics": metrics, "curves": {"loss": [1.0]}}

    def run(self, config, device, parts):
        assert config == self.PRESETS["smoke"] and isinstance(device, torch.device)
        self.drawn = torch.rand(1).item()
        return self.outcome


@pytest.fixture
def toy(monkeypatch):
    def install(outcome=None):
        module = Toy(outcome)
        monkeypatch.setattr(runner, "find", lambda name: module)
        return module

    return install


@pytest.mark.train
@pytest.mark.parametrize("name", runner.list_experiments())
def test_smoke_preset_and_round_trip(name, tmp_path):
    path = runner.run(name, "smoke", device="cpu", out=tmp_path)
    assert path == tmp_path / f"{name}.smoke.json" and list(tmp_path.iterdir()) == [path]
    record = json.loads(path.read_text(encoding="utf-8"))
    assert results.problems(record) == []
    assert results.config_matches(record, runner.find(name).PRESETS["smoke"])
    assert runner.dump(record) == path.read_text(encoding="utf-8")
    assert record["wall_s"] < 60


@pytest.mark.parametrize("name", runner.list_experiments())
def test_form(name):
    module = runner.find(name)
    presets, recorded = set(module.PRESETS), {preset for other, preset in results.recorded() if other == name}
    assert {"smoke", "cpu", "laptop"} <= presets and module.__doc__
    assert presets - {"smoke", "cpu", "laptop", "full"} <= recorded  # any other is there for its record
    for config in module.PRESETS.values():
        assert isinstance(config, module.Config) and config.seeds
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.seeds = ()


def test_every_laptop_preset_is_recorded_or_waits_for_a_reason():
    recorded = {name for name, preset in results.recorded() if preset == "laptop"}
    assert results.WAITING.keys() == set(runner.list_experiments()) - recorded
    assert all(results.WAITING.values())


def test_the_overview_tells_what_is_recorded_and_what_is_missing(capsys):
    assert main(["run", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {tuple(line.split()[:2]): line for line in lines[1:]}
    assert rows.keys() == {(name, p) for name in runner.list_experiments() for p in runner.find(name).PRESETS}
    assert len(rows) == len(lines) - 1
    for (name, preset), line in rows.items():
        if (name, preset) in results.recorded():
            record = results.load(name, preset)
            assert record["date"][:10] in line and f"{record['wall_s'] / 60:.1f} min" in line
            assert line.endswith(record["device"]["name"])
        else:
            assert ("never" if preset in ("smoke", "cpu") else "missing") in line
        if preset == "laptop":
            assert results.WAITING.get(name, "") in line
    assert main(["run"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("option", ["preset", "device", "out", "checkpoint"])
def test_options_without_a_name_are_refused(option, capsys):
    assert main(["run", f"--{option}", "smoke"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--{option} without the name of an experiment, expected one of associative_recall" in line


def test_the_record_holds_everything(toy, tmp_path):
    toy()
    record = json.loads(runner.run("toy", "smoke", out=tmp_path).read_text())
    assert results.problems(record) == []
    assert record["config"] == {"sizes": [1, 2], "seeds": [3], "batches_per_step": 2} and record["seeds"] == [3]
    assert record["metrics"]["loss"] == [0.5, 1 / 3]  # to the last digit
    assert record["command"] == "python -m d2lmini run toy --preset smoke"
    assert runner.execute("toy", "smoke", device="cpu")["command"].endswith("--preset smoke --device cpu")


def test_the_commit_is_that_of_the_start(toy, monkeypatch):
    module = toy()
    seen = {"commit": "before", "dirty": False}
    monkeypatch.setattr(runner, "_source", lambda: seen | {"dirty": hasattr(module, "drawn")})
    assert runner.execute("toy", "smoke")["source"] == seen


def test_seeded(toy):
    module, drawn = toy(), []
    for _ in range(2):
        runner.execute("toy", "smoke")
        drawn.append(module.drawn)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"loss": {"test": [1.0, float("nan")]}}, ValueError, r"metrics.loss.test\[1\] is nan"),
        ({"loss": float("inf")}, ValueError, "metrics.loss is inf"),
        ({"loss": torch.ones(2)}, TypeError, "metrics.loss is a Tensor"),
        ({3: 1.0}, TypeError, "metrics has the key 3"),
    ],
)
def test_refused(toy, tmp_path, metrics, error, message):
    toy({"metrics": metrics, "curves": {}})
    with pytest.raises(error, match=message):
        runner.run("toy", "smoke", out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_keeps_the_old_record(toy, tmp_path):
    toy()
    path = runner.run("toy", "smoke", out=tmp_path)
    before = path.read_bytes()
    toy({"metrics": {"loss": float("nan")}, "curves": {}})
    with pytest.raises(ValueError, match="nan"):
        runner.run("toy", "smoke", out=tmp_path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_run_that_is_killed_leaves_nothing_in_the_folder(toy, tmp_path, monkeypatch):
    toy()
    there, execute = [], runner.execute

    def look(*arguments):
        there.extend(tmp_path.iterdir())  # what stays if the process is killed in the middle of its work
        return execute(*arguments)

    monkeypatch.setattr(runner, "execute", look)
    path = runner.run("toy", "smoke", out=tmp_path)
    assert there == [] and list(tmp_path.iterdir()) == [path]


def test_unwritable_folder_is_found_out_before_the_run(toy, tmp_path):
    module = toy()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        runner.run("toy", "smoke", out=tmp_path / "file")
    assert not hasattr(module, "drawn")


def test_of_several_processes_the_first_one_writes(toy, tmp_path, monkeypatch):
    module = toy()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    runner.run("toy", "smoke", out=tmp_path)
    assert hasattr(module, "drawn") and list(tmp_path.iterdir()) == []
    monkeypatch.setenv("RANK", "0")
    record = json.loads(runner.run("toy", "smoke", out=tmp_path).read_text())
    assert results.problems(record) == [] and record["device"]["processes"] == 2
    assert record["command"] == "torchrun --nproc-per-node 2 -m d2lmini run toy --preset smoke"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("translation_transformer", "has 2 batches, which 3 processes cannot share evenly"),
        ("vision_vit", "has 1 batch, which 3 processes .* `python -m d2lmini run vision_vit --preset smoke` instead"),
    ],
)
def test_processes_share_the_batches_of_a_step_evenly(name, message, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setattr(runner.find(name), "run", None)  # it is refused before
    with pytest.raises(ValueError, match=message):
        runner.execute(name, "smoke")


def test_the_length_penalty_is_chosen_on_the_validation_split(monkeypatch):
    asked = []

    def score(model, data, split, beam_size, penalty):
        asked.append((split, beam_size, penalty))
        return {"bleu": {0.0: 1.0, 0.5: 3.0, 1.0: 2.0}[penalty]}, []

    monkeypatch.setattr(_translation, "score", score)
    config = translator.Config(beam_size=4, length_penalties=(0.0, 0.5, 1.0))
    assert translator.best_length_penalty(None, None, config) == (0.5, {"0.0": 1.0, "0.5": 3.0, "1.0": 2.0})
    assert asked == [("val", 4, 0.0), ("val", 4, 0.5), ("val", 4, 1.0)]
    assert translator.best_length_penalty(None, None, translator.Config()) == (0.6, {}) and len(asked) == 3


def test_unknown_names(toy):
    with pytest.raises(ValueError, match="no experiment 'poling_fashion_mnist', only"):
        runner.run("poling_fashion_mnist")
    toy()
    with pytest.raises(ValueError, match="no preset 'big', only smoke"):
        runner.run("toy", "big")


def test_lists_of_numbers_take_one_line():
    record = {"a": [1.5, 2.0], "b": [[1], [2, 3]], "c": "[\n 1,\n 2\n]", "d": [], "e": [{"x": 1}]}
    text = runner.dump(record)
    assert json.loads(text) == record
    assert '"a": [1.5, 2.0]' in text and "[2, 3]" in text


# ---- attention pooling over Fashion-MNIST


@pytest.fixture
def stored():
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(40, 6, generator=generator)
    return keys, torch.randint(10, (40,), generator=generator), torch.randn(700, 6, generator=generator)


def test_pooled_classes_is_nadaraya_watson(stored):
    keys, labels, queries = stored
    got = pooled.pooled_classes(queries, keys, labels, 0.7)
    expected, _ = nadaraya_watson(keys, F.one_hot(labels, 10).float(), queries, GaussianKernel(0.7))
    torch.testing.assert_close(got, expected)


def test_leave_one_out_loss_is_what_a_loop_gives(stored):
    keys, labels, _ = (x[:12] for x in stored)
    labels = labels % 3
    labels[7] = 9  # alone in its class: cannot be predicted, does not count
    losses = []
    for i in range(8):  # the first eight are queries
        others = [j for j in range(12) if j != i]
        weights = torch.softmax(torch.stack([-((keys[i] - keys[j]) ** 2).sum() / 2 for j in others]), 0)
        right = sum(w for w, j in zip(weights, others, strict=True) if labels[j] == labels[i])
        if right:
            losses.append(-right.log())
    assert len(losses) == 7
    scores = pooled.gaussian_scores(keys[:8], keys).requires_grad_()
    loss = pooled.leave_one_out_loss(scores, labels)
    torch.testing.assert_close(loss, torch.stack(losses).mean())
    loss.backward()
    assert scores.grad.isfinite().all()


def test_learned_width_is_the_best(stored):
    keys, labels = 7 * stored[0], (stored[0][:, :2].sum(1) > 0).long()
    width, losses = pooled.learn_width(keys, labels, 40)
    assert losses[-1] < losses[0]

    def loss(width):
        return pooled.leave_one_out_loss(pooled.gaussian_scores(keys, keys) / width**2, labels)

    assert all(loss(width) <= loss(width * factor) for factor in (0.5, 0.9, 1.1, 2))


def test_oriented_gradients_see_edges():
    flat = torch.full((1, 28, 28), 200, dtype=torch.uint8)
    assert pooled.oriented_gradients(flat).abs().max() == 0
    edge = torch.zeros(1, 28, 28, dtype=torch.uint8)
    edge[:, :, 14:] = 255  # grows to the right: direction 0, the first bin
    votes = pooled.oriented_gradients(torch.cat([edge, edge.mT])).view(2, 9, 7, 7)
    assert votes[0].sum((1, 2)).argmax() == 0 and votes[0, :, :, :2].abs().max() == 0
    assert votes[0, 1:].abs().max() == 0
    assert set(votes[1].sum((1, 2)).topk(2).indices.tolist()) == {2, 3}  # a quarter turn is 2.25 bins
    assert pooled.oriented_gradients(edge).shape == (1, 441)


def test_projection_learns(stored):
    keys = stored[0].repeat(5, 1)
    noise = torch.randn(200, generator=torch.Generator().manual_seed(1))
    keys[:, 1] = 30 * noise  # a loud feature that says nothing
    labels = (keys[:, 0] > 0).long()
    config = dataclasses.replace(pooled.Config(), dim=3, lr=0.05, min_steps=60)
    torch.manual_seed(0)
    _, losses = pooled.learn_projection(keys, labels, config)
    assert sum(losses[-5:]) / 5 < 0.5 * sum(losses[:5]) / 5


def test_too_many_stored():
    config = dataclasses.replace(pooled.PRESETS["smoke"], stored=(5_000,))
    with pytest.raises(ValueError, match=r"5000 stored and 200 test images, .* \(shipped\) has 2000"):
        pooled.run(config, torch.device("cpu"))


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'd2lmini\[experiments\]'"):
        pooled.run(pooled.PRESETS["smoke"], torch.device("cpu"))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "troubleshooting.md", "lecturers.md"])
def test_commands_on_pages_name_presets_that_exist(page):
    commands = re.findall(r"d2lmini run (\w+) --preset (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    for name, preset in commands:
        assert name == "name" or preset in runner.find(name).PRESETS, f"{name} has no preset {preset!r}"
