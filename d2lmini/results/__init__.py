"""What the experiments measured, one JSON file a run: ``<experiment>.<preset>.json``."""

import dataclasses
import json
from pathlib import Path

FOLDER = Path(__file__).parent
SIZES = "full", "laptop", "compact", "hour", "cpu"  # presets of an experiment as such, the largest first
FIELDS = {
    "experiment": str,
    "preset": str,
    "config": dict,
    "seeds": list,
    "metrics": dict,
    "curves": dict,
    "data": dict,
    "source": dict,
    "versions": dict,
    "device": dict,
    "wall_s": float,
    "command": str,
    "date": str,
}


def load(name, preset="laptop"):
    """Read a record.

    Args:
        name: of the experiment.
        preset: one that was recorded, as ``"cpu"`` or ``"full"``.

    Returns:
        dict with the fields of `FIELDS`.

    Raises:
        FileNotFoundError: this run was never recorded; the message names the command that does.
    """
    path = FOLDER / f"{name}.{preset}.json"
    if not path.is_file():
        raise FileNotFoundError(f"there is no record {path.name} in {FOLDER}: `{command(name, preset)}` makes it")
    return json.loads(path.read_text(encoding="utf-8"))


def largest(*names):
    """The records of the largest preset that was run for all of some experiments: "full", else "hour", else "cpu".

    Args:
        names: of experiments.

    Returns:
        list of dict, in the order of the names.

    Raises:
        FileNotFoundError: none of `SIZES` was recorded for all of them.
    """
    there = recorded()
    preset = next((size for size in SIZES if all((name, size) in there for name in names)), None)
    if preset is None:
        raise FileNotFoundError(f"none of {', '.join(SIZES)} is recorded for all of {', '.join(names)} in {FOLDER}")
    return [load(name, preset) for name in names]


def recorded():
    """Every recorded run, as a list of (experiment, preset)."""
    return sorted(tuple(path.name.split(".")[:2]) for path in FOLDER.glob("*.*.json"))


def as_json(config):
    """A configuration as it looks once written and read again: a dict in which tuples are lists."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def config_matches(record, config):
    """Whether a record was made with this configuration.

    A setting that came into the experiment after the record matters only where it has not its default.

    Args:
        record: what `load` returns.
        config: the dataclass instance of the preset.

    Returns:
        bool.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    later = {name for name, default in defaults.items() if getattr(config, name) == default} - record["config"].keys()
    return record["config"] == {name: value for name, value in as_json(config).items() if name not in later}


def problems(record):
    """Look for what a record lacks.

    Args:
        record: dict.

    Returns:
        list of str, empty if it is complete.
    """
    found = []
    for field, kind in FIELDS.items():
        if field not in record:
            found.append(f"{field} is missing")
        elif not isinstance(record[field], kind):
            found.append(f"{field} is a {type(record[field]).__name__}, expected a {kind.__name__}")
    found += [f"{field} is not a field of a record" for field in record.keys() - FIELDS.keys()]
    if not found:
        expected = command(record["experiment"], record["preset"], record["device"].get("processes", 1))
        if not record["command"].startswith(expected):
            found.append(f"command is {record['command']!r}, expected {expected!r}")
        if not record["metrics"].get("headline"):
            found.append("metrics have no headline")
        inside = {"source": "commit dirty", "versions": "python torch numpy d2lmini", "device": "name"}
        for part, keys in inside.items():
            found += [f"{part} has no {key}" for key in keys.split() if key not in record[part]]
    return found


def command(name, preset, processes=1):
    """The command line that makes a record."""
    start = "python" if processes == 1 else f"torchrun --nproc-per-node {processes}"
    return f"{start} -m d2lmini run {name} --preset {preset}"
