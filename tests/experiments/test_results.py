"""Recorded results: each is complete and was made with the preset that it names."""

import dataclasses
import json
import math
import subprocess

import pytest

import benchmarks
from d2lmini import experiments, results
from d2lmini.experiments import t5_pretrain, translation_d2l
from d2lmini.lab import runner


def numbers(value):
    """Every number in a record."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize(("name", "preset"), results.recorded())
def test_recorded(name, preset):
    record = results.load(name, preset)
    assert results.problems(record) == []
    assert (record["experiment"], record["preset"]) == (name, preset)
    assert name in experiments.names(), "the experiment is gone, its record is not"
    assert all(math.isfinite(number) for number in numbers(record))
    expected = experiments.find(name).PRESETS[preset]
    again = f"its preset has changed since: {results.command(name, preset)}"
    assert results.config_matches(record, expected), again


@pytest.mark.parametrize(("name", "preset"), results.recorded())
def test_recorded_can_be_repeated(name, preset):
    reasons = results.unrepeatable(results.load(name, preset))
    assert reasons == [], f"from a clean commit: {results.command(name, preset)}"


def test_a_headline_says_what_the_record_holds():
    metrics = results.load("translation_d2l", "laptop")["metrics"]
    assert metrics["headline"] == translation_d2l.headline(metrics["summary"])
    metrics = results.load("t5_pretrain", "laptop")["metrics"]
    assert metrics["headline"] == t5_pretrain.headline(metrics, t5_pretrain.PRESETS["laptop"])
    assert "200 steps of fine-tuning" in metrics["headline"]


def test_every_file_here_is_known():
    """A record under another name would be seen by no test."""
    names = {path.name for path in results.FOLDER.glob("*.json")}
    assert names - {f"{name}.{preset}.json" for name, preset in results.recorded()} <= {
        "run_times.json",
        *(f"benchmark_{name}.json" for name in (*benchmarks.SUITE, *benchmarks.OTHERS)),
        *(f"benchmark_{name}_cuda.json" for name in benchmarks.ON_GPU),
        "figure_start.json",
        "footprint.json",
        "live_rounding.json",
    }


def test_another_config_does_not_match(tmp_path):
    name = "associative_recall"
    record = json.loads(
        runner.run(experiments.find(name), "smoke", device="cpu", out=tmp_path).read_text(encoding="utf-8")
    )
    presets = experiments.find(name).PRESETS
    assert results.config_matches(record, presets["smoke"])
    assert not results.config_matches(record, presets["laptop"])


def test_a_later_setting_matters_where_it_has_not_its_default():
    @dataclasses.dataclass(frozen=True)
    class Grown:
        sizes: tuple = (1, 2)
        precision: str = "auto"

    assert results.config_matches({"config": {"sizes": [1, 2]}}, Grown())
    assert not results.config_matches({"config": {"sizes": [1, 2]}}, Grown(precision="bf16"))
    assert not results.config_matches({"config": {"sizes": [1, 2], "precision": "bf16"}}, Grown())
    assert not results.config_matches({"config": {"precision": "auto"}}, Grown(sizes=(1,)))
    assert not results.config_matches({"config": {"sizes": [1, 2], "gone": 1}}, Grown())


def test_a_later_setting_of_what_is_configured_matters_likewise():
    @dataclasses.dataclass(frozen=True)
    class Model:
        size: int = 3
        groups: int | None = None

    @dataclasses.dataclass(frozen=True)
    class Outer:
        models: tuple = (("a", Model()), ("b", Model(4)))
        by_name: object = dataclasses.field(default_factory=lambda: {"c": Model()})

    recorded = {"models": [["a", {"size": 3}], ["b", {"size": 4}]], "by_name": {"c": {"size": 3}}}
    assert results.config_matches({"config": recorded}, Outer())
    for changed in (
        Outer(models=(("a", Model(groups=1)), ("b", Model(4)))),
        Outer(models=(("a", Model()),)),
        Outer(models=(("a", Model()), ("b", Model(5)))),
        Outer(by_name={"c": Model(), "d": Model()}),
        Outer(by_name={"c": Model(groups=2)}),
    ):
        assert not results.config_matches({"config": recorded}, changed)


def test_missing_record():
    with pytest.raises(FileNotFoundError, match="`python -m d2lmini run nothing --preset laptop` makes it"):
        results.load("nothing")


@pytest.fixture
def record():
    return {
        "experiment": "toy",
        "preset": "full",
        "config": {},
        "seeds": [0],
        "metrics": {"headline": "one"},
        "curves": {},
        "data": {},
        "source": {"commit": None, "dirty": None},
        "versions": {"python": "3", "torch": "2", "numpy": "2", "d2lmini": "0"},
        "device": {"name": "cpu"},
        "wall_s": 1.0,
        "command": "python -m d2lmini run toy --preset full",
        "date": "2000-01-01T00:00:00+00:00",
    }


def test_a_complete_record_has_no_problems(record):
    assert record.keys() == results.FIELDS.keys() and results.problems(record) == []


@pytest.mark.parametrize("field", results.FIELDS)
def test_each_field_is_asked_for(record, field):
    del record[field]
    assert results.problems(record) == [f"{field} is missing"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"wall_s": "long"}, "wall_s is a str, expected a float"),
        ({"notes": ""}, "notes is not a field of a record"),
        ({"command": "make"}, "command is 'make', expected 'python -m d2lmini run toy --preset full'"),
        ({"metrics": {"loss": 1}}, "metrics have no headline"),
        ({"versions": {"python": "3", "torch": "2", "d2lmini": "0"}}, "versions has no numpy"),
        ({"source": {"commit": None}}, "source has no dirty"),
        ({"device": {}}, "device has no name"),
    ],
)
def test_what_is_wrong_is_named(record, change, problem):
    assert results.problems(record | change) == [problem]


def test_the_largest_preset_that_all_have(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    there = {
        "a": ("full", "compact", "hour", "cpu", "smoke"),
        "b": ("hour", "cpu"),
        "c": ("cpu",),
        "d": ("smoke",),
        "e": ("compact", "hour"),
    }
    for one in (f"{name}.{preset}" for name, presets in there.items() for preset in presets):
        (tmp_path / f"{one}.json").write_text(json.dumps({"is": one}))

    def found(*names):
        return [record["is"] for record in results.largest(*names)]

    assert found("a") == ["a.full"]
    assert found("b", "a") == ["b.hour", "a.hour"]
    assert found("e") == ["e.compact"]
    assert found("a", "b", "c") == ["a.cpu", "b.cpu", "c.cpu"]
    with pytest.raises(FileNotFoundError, match="none of full, laptop, compact, hour, cpu is recorded for all of a, d"):
        results.largest("a", "d")


# ---- what can be repeated


@pytest.fixture
def repository(monkeypatch, tmp_path):
    """A repository with an experiment, as the one of the package; a function that runs git in it."""

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    (tmp_path / "d2lmini" / "experiments").mkdir(parents=True)
    (tmp_path / "d2lmini" / "results").mkdir()
    git("init", "-q")
    git("commit", "-qm", "nothing yet", "--allow-empty")
    (tmp_path / "d2lmini" / "experiments" / "toy.py").write_text('PRESETS = {"smoke": 1, "full": 2}')
    git("add", ".")
    git("commit", "-qm", "toy")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "d2lmini" / "results")
    return git


def test_a_clean_record_can_be_repeated(record, repository):
    first, second = repository("rev-list", "--reverse", "HEAD").split()
    clean = {"commit": second, "dirty": False}

    def reasons(preset="full", **source):
        return results.unrepeatable(record | {"preset": preset, "source": clean | source})

    assert reasons() == []
    assert reasons(dirty=True) == ["its source was changed since the commit"]
    assert reasons(dirty=None) == reasons(dirty=True)
    assert reasons(commit=None) == ["its source has no commit"]
    assert reasons(commit=first) == [f"its commit {first} does not hold the experiment"]
    assert reasons(commit="a" * 40) == [f"its commit {'a' * 40} is not in the history"]
    assert reasons("big") == [f"at its commit {second} the experiment has no preset 'big'"]
    assert reasons(begun_at=first) == [f"it was begun at commit {first} and ended at {second}"]


def test_a_record_from_before_the_experiments_had_folders_can_be_repeated(record, repository, tmp_path):
    (tmp_path / "d2lmini" / "experiments" / "toys").mkdir()
    repository("mv", "d2lmini/experiments/toy.py", "d2lmini/experiments/toys/toy.py")
    repository("commit", "-qm", "toys")
    for commit in repository("rev-list", "HEAD").split()[:2]:  # with the folder, and before it
        assert results.unrepeatable(record | {"source": {"commit": commit, "dirty": False}}) == []


def test_without_history_the_record_is_believed(record, monkeypatch, tmp_path):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.unrepeatable(record | {"source": {"commit": "a" * 40, "dirty": False}}) == []
    assert results.unrepeatable(record | {"source": {"commit": "a" * 40, "dirty": True}}) != []


@dataclasses.dataclass(frozen=True)
class Config:
    seeds: tuple = (0,)


class Toy:
    """A stand-in for the module of an experiment, which counts its runs."""

    def __init__(self, name="toy"):
        self.__name__ = name
        self.PRESETS, self.runs = {"smoke": Config(), "full": Config()}, 0

    def run(self, config, device, parts):
        self.runs += 1
        return {"metrics": {"headline": "one"}, "curves": {}}


@pytest.fixture
def toy():
    return Toy()


def test_only_what_can_be_repeated_goes_into_the_package(repository, toy, tmp_path):
    for preset in ("smoke", "full"):  # the first record does not spoil the tree for the second one
        path = runner.run(toy, preset)
        assert path.parent == results.FOLDER
        assert results.unrepeatable(json.loads(path.read_text())) == [] and toy.runs
    (tmp_path / "new.py").write_text("")
    before = toy.runs
    with pytest.raises(ValueError, match=r"its source was changed since the commit: commit first, or .* --out FOLDER"):
        runner.run(toy, "full")
    with pytest.raises(ValueError, match="does not hold the experiment"):
        runner.run(Toy("other"), "full")
    assert toy.runs == before
    assert json.loads(runner.run(toy, "full", out=tmp_path / "out").read_text())["source"]["dirty"] is True


def test_a_run_of_two_commits_does_not_go_into_the_package(repository, toy, tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept")
    runner.execute(toy, "full", checkpoint=kept)
    assert runner.run(toy, "full", checkpoint=kept).exists()
    repository("commit", "-qm", "another", "--allow-empty")
    with pytest.raises(ValueError, match=r"it was begun at commit .* and ended at"):
        runner.run(toy, "full", checkpoint=kept)
    record = runner.execute(toy, "full", checkpoint=kept)
    assert "it was begun at" in results.unrepeatable(record)[0]


def test_where_there_is_no_git_a_record_goes_elsewhere(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    with pytest.raises(ValueError, match=r"its source has no commit: .* --out FOLDER"):
        runner.run(toy, "full")
    assert not toy.runs
    assert runner.run(toy, "full", out=tmp_path / "out").exists()
