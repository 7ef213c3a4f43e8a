"""Exporting: what does not fit is refused, int8 is taken where it costs little, and the costs are written down."""

import json
from dataclasses import dataclass

import pytest
import torch

from d2lmini import results
from d2lmini.__main__ import main
from d2lmini.lab import export as exporting
from d2lmini.lab.export import Export, Source, export, lost_points, overview
from d2lmini.models.weights import files, trained

W = torch.tensor([[1.0, 0.3], [0.0, 2.0]])


@dataclass(frozen=True)
class Config:
    size: int = 2
    seeds: tuple = (0,)


class Toy(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.W = torch.nn.Parameter(torch.zeros(size, size))


class Module:
    __name__ = "toy"
    PRESETS = {"cpu": Config()}  # noqa: RUF012


def sensitive(worth):
    """A score of which each millesimal of an error of a weight takes ``worth``."""
    return lambda model: {"score": 50 - 1000 * worth * (model.W - W).abs().max().item(), "other": 1.0}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The folder, the record, and the export of a toy run whose score int8 and float16 change."""
    monkeypatch.setitem(trained.MODELS, "Toy", Toy)
    kept, record = tmp_path / "kept", tmp_path / "toy.cpu.json"
    kept.mkdir()
    config = {"size": 2, "seeds": [0]}
    (kept / "run.json").write_text(
        json.dumps({"meant": {"experiment": "toy", "preset": "cpu", "config": config}, "commit": "abc"})
    )
    said = {
        **{"experiment": "toy", "preset": "cpu", "config": config, "seeds": [0], "curves": {}, "data": {}},
        **{"metrics": {"headline": "fifty"}, "source": {"commit": "abc", "dirty": False}, "device": {"name": "cpu"}},
        **{"versions": {"python": "3", "torch": "2", "numpy": "2", "d2lmini": "0"}, "wall_s": 1.0, "date": "today"},
        "command": results.command("toy", "cpu"),
    }
    record.write_text(json.dumps(said))

    def make(measure=sensitive(0.0), metric="points", recorded=50.0):
        source = Source({"W": W}, {"size": 2}, None, {"labels": ["a"]}, measure, recorded)
        return Export("toys", "Toy", "toy", "cpu", metric, lambda *_: source)

    return kept, record, make


def run(toy, tmp_path, *args, **options):
    kept, record, make = toy
    return export(make(*args, **options), Module(), kept, tmp_path / "out", record)


def test_what_is_written(toy, tmp_path):
    path, costs = run(toy, tmp_path)
    tensors, said = files.read(path)
    assert tensors["W"].dtype == torch.int8 and said["extra"] == {"labels": ["a"]}
    assert said["rounding"] == {"kind": "int8", "metric": "score", "before": 50.0, "after": 50.0}
    assert said["run"]["headline"] == "fifty" and said["run"]["commit"] == "abc"
    assert json.loads((tmp_path / "out" / "live_rounding.json").read_text()) == {"toys": costs}
    assert costs["before"] == {"score": 50.0, "other": 1.0} and costs["parameters"] == 4
    assert costs["bytes"] == path.stat().st_size and costs["lost_points"] == {"int8": 0.0}


def test_costs_of_other_models_stay(toy, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "live_rounding.json").write_text('{"zebra": 1, "ant": 2}')
    run(toy, tmp_path)
    assert list(json.loads((tmp_path / "out" / "live_rounding.json").read_text())) == ["ant", "toys", "zebra"]


def test_float16_where_int8_costs_more_than_allowed(toy, tmp_path):
    error = (0.3 * 127 - round(0.3 * 127)) / 127
    just, more = (abs(points / (1000 * error)) for points in (0.19, 0.21))
    assert run(toy, tmp_path, sensitive(just))[1]["kind"] == "int8"
    path, costs = run(toy, tmp_path, sensitive(more))
    assert costs["kind"] == "float16" and list(costs["lost_points"]) == ["int8", "float16"]
    assert costs["lost_points"]["int8"] == pytest.approx(0.21, abs=1e-3)
    assert files.read(path).tensors["W"].dtype == torch.float16
    assert files.read(path).metadata["rounding"]["after"] == pytest.approx(50, abs=0.1)


def test_a_point():
    assert lost_points("points", 63.5, 63.2) == pytest.approx(0.3)
    assert lost_points("points", 63.2, 63.5) == pytest.approx(-0.3)
    assert lost_points("nats", 1.4, 1.4) == 0
    assert lost_points("nats", 1.4, 1.402) == pytest.approx(0.2002, abs=1e-4)
    assert lost_points("bits", 1.0, 2.0) == pytest.approx(100)  # half as likely: the perplexity doubles


@pytest.mark.parametrize(
    ("what", "change", "message"),
    [
        (
            "record",
            {"preset": "full", "command": results.command("toy", "full")},
            "is of toy, preset full, but toys of",
        ),
        ("record", {"config": {"size": 3, "seeds": [0]}}, "is of another configuration than the preset: `python -m"),
        ("record", {"source": {"commit": "xyz", "dirty": False}}, "is of commit abc, but .* of xyz"),
        ("record", {"date": 3}, "is no record: date is a int"),
        ("run", {"experiment": "other"}, "is of other, preset cpu, but toys of toy, preset cpu"),
        (
            "run",
            {"config": {"size": 5, "seeds": [0]}},
            "another configuration than .*\n  size: 5 in the checkpoint, now 2",
        ),
    ],
)
def test_another_run_is_refused(toy, tmp_path, what, change, message):
    kept, record, _ = toy
    path = record if what == "record" else kept / "run.json"
    said = json.loads(path.read_text())
    if what == "record":
        said |= change
    else:
        said["meant"] |= change
    path.write_text(json.dumps(said))
    with pytest.raises(ValueError, match=message):
        run(toy, tmp_path)
    assert not (tmp_path / "out").exists()


def test_what_is_not_there(toy, tmp_path):
    kept, record, _ = toy
    with pytest.raises(ValueError, match=r"is 50\.0000, but .* says 49\.7000: are they of the same run"):
        run(toy, tmp_path, recorded=49.7)
    run(toy, tmp_path, recorded=49.9)
    record.rename(tmp_path / "moved")
    with pytest.raises(ValueError, match=r"there is no .*toy\.cpu\.json: `python -m d2lmini run toy --preset cpu`"):
        run(toy, tmp_path)
    record.write_text("{")
    with pytest.raises(ValueError, match=r"toy\.cpu\.json is damaged"):
        run(toy, tmp_path)
    (tmp_path / "moved").replace(record)
    (kept / "run.json").unlink()
    with pytest.raises(ValueError, match=r"there is no .*run\.json: expected the folder of a run with --checkpoint"):
        run(toy, tmp_path)


def test_the_table(toy, tmp_path):
    run(toy, tmp_path, sensitive(0.0))
    _, _, make = toy
    there, missing = make(), Export("others", "Toy", "toy", "full", "nats", None)
    lines = overview([there, missing], tmp_path / "out").splitlines()
    size = f"{files.path_of('toys', tmp_path / 'out').stat().st_size:,}"
    assert lines[1].split() == ["toys", size, "int8:", "score", "50", "to", "50", "toy,", "preset", "cpu"]
    assert lines[2].split() == ["others", "missing", "toy,", "preset", "full"]
    assert lines[3].split() == ["all", size]


def test_the_command(capsys, tmp_path):
    assert main(["export", "--list"]) == 0
    assert "translator_grammar" in capsys.readouterr().out
    assert main(["export", "nothing", "--checkpoint", str(tmp_path)]) == 1
    assert "there is no model 'nothing' to export, only translator_grammar" in capsys.readouterr().err
    assert main(["export", "translator_grammar"]) == 1
    assert "error: --checkpoint is missing: the folder of the run of translation_transformer" in capsys.readouterr().err
    assert main(["export", "translator_grammar", "--checkpoint", str(tmp_path)]) == 1
    assert "run.json: expected the folder of a run" in capsys.readouterr().err
    assert exporting.ALLOWED == 0.2
