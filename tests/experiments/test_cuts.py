"""Each smoke preset runs, its record survives a round trip, and a run that was cut or killed ends with the same one."""

import json
import re
from contextlib import suppress

import pytest

from d2lmini import experiments, results
from d2lmini.lab import records, runner
from d2lmini.lab.parts import Parts, Unfinished

TIMED = {"attention_cost", "decoding_cost"}  # what they measure is time


def without_times(value):
    """What must be equal: all but what clocks gave."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not re.search(r"_s$|^date$|^device$", k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def shape(value):
    """The keys of a record, and how long its lists are."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    return len(value) if isinstance(value, list) else type(value)


@pytest.mark.train
@pytest.mark.parametrize("name", experiments.names())
def test_smoke_preset_whole_and_cut_twice(name, tmp_path):
    experiment = experiments.find(name)
    path = runner.run(experiment, "smoke", device="cpu", out=tmp_path)
    assert path == tmp_path / f"{name}.smoke.json" and list(tmp_path.iterdir()) == [path]
    whole = json.loads(path.read_text(encoding="utf-8"))
    assert results.problems(whole) == []
    assert results.config_matches(whole, experiment.PRESETS["smoke"])
    assert records.dump(whole) == path.read_text(encoding="utf-8")
    assert whole["wall_s"] < 60

    with pytest.raises(Unfinished):  # after one step, or one part
        runner.execute(experiment, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    with suppress(Unfinished):  # some have but two parts
        runner.execute(experiment, "smoke", "cpu", tmp_path / "kept", max_minutes=1e-9)
    record = json.loads(records.dump(runner.execute(experiment, "smoke", "cpu", tmp_path / "kept")))
    assert results.problems(record) == []
    if name in TIMED:
        assert shape(record) == shape(whole)
    else:
        assert without_times(record) == without_times(whole)
    meant = {key: record[key] for key in ("experiment", "preset", "config")} | {"device": "cpu"}
    assert record["wall_s"] + 0.01 > Parts(tmp_path / "kept", meant).seconds_before > 0  # the slices before count
