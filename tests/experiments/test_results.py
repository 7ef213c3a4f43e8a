"""Recorded results: each is complete and was made with the preset that it names."""

import json
import math

import pytest

from d2lmini import results
from d2lmini.experiments import runner


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
    assert name in runner.list_experiments(), "the experiment is gone, its record is not"
    assert all(math.isfinite(number) for number in numbers(record))
    expected = runner.find(name).PRESETS[preset]
    again = f"its preset has changed since: {results.command(name, preset)}"
    assert results.config_matches(record, expected), again


def test_every_file_here_is_known():
    """A record under another name would be seen by no test."""
    names = {path.name for path in results.FOLDER.glob("*.json")}
    assert names - {f"{name}.{preset}.json" for name, preset in results.recorded()} <= {"run_times.json"}


def test_another_config_does_not_match(tmp_path):
    name = "associative_recall"
    record = json.loads(runner.run(name, "smoke", device="cpu", out=tmp_path).read_text(encoding="utf-8"))
    presets = runner.find(name).PRESETS
    assert results.config_matches(record, presets["smoke"])
    assert not results.config_matches(record, presets["laptop"])


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
