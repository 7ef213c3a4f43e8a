"""What the experiments measured, one JSON file a run: ``<experiment>.<preset>.json``."""

import dataclasses
import json
import subprocess
from pathlib import Path

from .. import renamed

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent  # of the repository, where the package is not installed without one
SIZES = "full", "laptop", "compact", "hour", "cpu"  # presets of an experiment as such, the largest first
# Experiments and presets that are not recorded yet, and why: the time is that of one thread of an AMD EPYC.
WAITING = {}
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
    name = renamed.now(name)
    path = FOLDER / f"{name}.{preset}.json"
    if not path.is_file():
        raise FileNotFoundError(f"there is no record {path.name} in {FOLDER}: `{command(name, preset)}` makes it")
    return json.loads(path.read_text(encoding="utf-8"))


def largest(*names):
    """The records of the largest preset, by the order of `SIZES`, that was run for all of some experiments.

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

    A setting that came into the experiment, or into what it configures, after the record matters only where it has not
    its default.

    Args:
        record: what `load` returns.
        config: the dataclass instance of the preset.

    Returns:
        bool.
    """
    return _matches(config, record["config"])


def _matches(value, recorded):
    """Whether ``recorded``, read from JSON, is a setting, down to the configurations inside of it."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: field.default for field in dataclasses.fields(value)}
        if not isinstance(recorded, dict) or recorded.keys() - fields.keys():
            return False
        return all(
            _matches(getattr(value, name), recorded[name]) if name in recorded else getattr(value, name) == default
            for name, default in fields.items()
        )
    if isinstance(value, dict):
        same = isinstance(recorded, dict) and {str(key) for key in value} == recorded.keys()
        return same and all(_matches(inside, recorded[str(key)]) for key, inside in value.items())
    if isinstance(value, (list, tuple)):
        same = isinstance(recorded, list) and len(value) == len(recorded)
        return same and all(map(_matches, value, recorded))
    return json.loads(json.dumps(value)) == recorded


def problems(record):
    """Look for what a record lacks.

    Args:
        record: dict.

    Returns:
        list of str, empty if it is complete.
    """
    faults = []
    for field, kind in FIELDS.items():
        if field not in record:
            faults.append(f"{field} is missing")
        elif not isinstance(record[field], kind):
            faults.append(f"{field} is a {type(record[field]).__name__}, expected a {kind.__name__}")
    faults += [f"{field} is not a field of a record" for field in record.keys() - FIELDS.keys()]
    if not faults:
        expected = command(record["experiment"], record["preset"], record["device"].get("processes", 1))
        if not record["command"].startswith(expected):
            faults.append(f"command is {record['command']!r}, expected {expected!r}")
        if not record["metrics"].get("headline"):
            faults.append("metrics have no headline")
        inside = {"source": "commit dirty", "versions": "python torch numpy d2lmini", "device": "name"}
        for part, keys in inside.items():
            faults += [f"{part} has no {key}" for key in keys.split() if key not in record[part]]
    return faults


def unrepeatable(record):
    """Look for why a record cannot be made again: its source has to be clean, at a commit that holds the experiment.

    Where the history is not at hand, in an installed package or a shallow clone, what the record itself says is all.

    Args:
        record: dict, as `load` gives it.

    Returns:
        list of str, empty if nothing speaks against it.
    """
    name, preset, source = record["experiment"], record["preset"], record["source"]
    commit = source.get("commit")
    if commit is None:
        return ["its source has no commit"]
    reasons = ["its source was changed since the commit"] if source.get("dirty") is not False else []
    if "begun_at" in source:
        reasons.append(f"it was begun at commit {source['begun_at']} and ended at {commit}")
    if git("rev-parse", "--is-shallow-repository") != "false":
        return reasons
    if git("cat-file", "-t", commit) != "commit":
        return [*reasons, f"its commit {commit} is not in the history"]
    files = (git("ls-tree", "-r", "--name-only", commit, "d2lmini/experiments/") or "").splitlines()
    called = {f"{each}.py" for each in (name, *(old for old, new in renamed.NAMES.items() if new == name))}
    path = next((file for file in files if Path(file).name in called), None)  # in a folder, or when they had none
    code = path and git("show", f"{commit}:{path}")
    if code is None:
        return [*reasons, f"its commit {commit} does not hold the experiment"]
    if f'"{preset}"' not in code:
        reasons.append(f"at its commit {commit} the experiment has no preset {preset!r}")
    return reasons


def git(*words):
    """What git says of the repository that this package is checked out in; None: it says no, or there is none."""
    try:
        top = subprocess.run(["git", "-C", ROOT, "rev-parse", "--show-toplevel"], capture_output=True, text=True)
        # in an environment that lies inside another checkout, the commit would be somebody else's
        if top.returncode or Path(top.stdout.strip()).resolve() != ROOT.resolve():
            return None
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


def command(name, preset, processes=1):
    """The command line that makes a record."""
    start = "python" if processes == 1 else f"torchrun --nproc-per-node {processes}"
    return f"{start} -m d2lmini run {name} --preset {preset}"
