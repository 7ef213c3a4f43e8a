"""Find an experiment, run one of its presets, and record all that is needed to believe and repeat it."""

import json
import math
import os
import pkgutil
import platform
import random
import re
import time
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path

import numpy
import torch

import d2lmini
from d2lmini import experiments, results
from d2lmini.experiments._parts import Parts, begun_at
from d2lmini.training.device import device_named, num_processes

_NO_RECORDS = ":(exclude)d2lmini/results/*.json*"
_UNRECORDED = {"smoke": "seconds", "cpu": "about a minute, or in the chapter"}


def list_experiments():
    """Names of the experiments, sorted."""
    modules = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    return sorted(name for name in modules if name != "runner" and not name.startswith("_"))


def find(name):
    """The module of an experiment.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in list_experiments():
        raise ValueError(f"there is no experiment {name!r}, only {', '.join(list_experiments())}")
    return import_module(f"{experiments.__name__}.{name}")


def overview():
    """A table of all experiments and presets: when and on what each was recorded, and how long it took or may take.

    Returns:
        str, a line for each preset.
    """
    rows, there = [("experiment", "preset", "recorded", "time", "device")], set(results.recorded())
    for name in list_experiments():
        presets = find(name).PRESETS
        records = {preset: results.load(name, preset) for preset in presets if (name, preset) in there}
        for preset in presets:
            if preset in records:
                record = records[preset]
                rows.append((name, preset, record["date"][:10], _minutes(record), record["device"]["name"]))
            elif preset in _UNRECORDED:
                rows.append((name, preset, "never", _UNRECORDED[preset], ""))
            elif preset == "laptop" and name in results.WAITING:
                rows.append((name, preset, "missing", results.WAITING[name], ""))
            else:
                known = max(records.values(), key=lambda record: record["wall_s"], default=None)
                known = f"unknown; {known['preset']} took {_minutes(known)}" if known else "unknown"
                rows.append((name, preset, "missing", known, ""))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in rows)


def _minutes(record):
    return f"{record['wall_s'] / 60:.1f} min"


def preset_of(name, preset):
    """The configuration of a preset.

    Raises:
        ValueError: there is no such experiment, or it has no such preset.
    """
    presets = find(name).PRESETS
    if preset not in presets:
        raise ValueError(f"{name} has no preset {preset!r}, only {', '.join(presets)}")
    return presets[preset]


def execute(name, preset="cpu", device=None, checkpoint=None, max_minutes=None):
    """Run an experiment, writing nothing.

    Args:
        name: of the experiment.
        preset: ``"smoke"``, ``"cpu"``, ``"full"``, or what else its ``PRESETS`` have.
        device: name of a torch device; None for the best there is.
        checkpoint: folder for what is finished, from which the experiment goes on where it was killed; None: it starts
            anew.
        max_minutes: stop after so many, at the end of the part or the step at work; None: never.

    Returns:
        dict, the record; `d2lmini.results.FIELDS` names what is in it.

    Raises:
        ValueError: no such experiment, preset or device, or `torchrun` started processes that cannot share the batches
            of a step (``batches_per_step`` of the preset, else 1) evenly, or ``max_minutes`` without ``checkpoint``, or
            a number that came out is not finite.
        TypeError: it returned what JSON cannot hold.
        DataError: its data are not here and cannot be fetched.
        CheckpointError: the checkpoint is damaged, or of another configuration.
        Unfinished: the time is up; what is finished is in ``checkpoint``.
    """
    module, config = find(name), preset_of(name, preset)
    batches, processes = getattr(config, "batches_per_step", 1), num_processes()
    if batches % processes:
        noun = "batch" if batches == 1 else "batches"
        raise ValueError(
            f"a step of {name}, {preset}, has {batches} {noun}, which {processes} processes cannot share evenly: "
            f"run `{results.command(name, preset)}` instead"
        )
    if max_minutes is not None and not (checkpoint and max_minutes > 0):
        what = f"is {max_minutes}, expected more than 0" if checkpoint else "needs a folder for what is finished"
        raise ValueError(f"max_minutes {what}: --checkpoint FOLDER --max-minutes 20")
    chosen = device_named(device or best_device())
    seeds = list(config.seeds)
    random.seed(seeds[0])
    numpy.random.seed(seeds[0])
    torch.manual_seed(seeds[0])
    source = _source()  # of the code that was loaded: by the end of a long run the files may be others
    start = time.perf_counter()
    meant = {"experiment": name, "preset": preset, "config": results.as_json(config), "device": chosen.type}
    parts = Parts(checkpoint, meant, max_minutes and 60 * max_minutes, source["commit"])
    outcome = module.run(config, chosen, parts=parts)
    wall_s = time.perf_counter() - start + parts.seconds_before
    if parts.begun_at != source["commit"]:
        source["begun_at"] = parts.begun_at
    for part in outcome:
        _refuse(outcome[part], part)
    return {
        "experiment": name,
        "preset": preset,
        "config": results.as_json(config),
        "seeds": seeds,
        "metrics": outcome["metrics"],
        "curves": outcome["curves"],
        "data": outcome.get("data", {}),
        "source": source,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "d2lmini": d2lmini.__version__,
        },
        "device": _described(chosen) | ({"processes": processes} if processes > 1 else {}),
        "wall_s": round(wall_s, 2),
        "command": results.command(name, preset, processes) + (f" --device {device}" if device else ""),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def run(name, preset="cpu", device=None, out=None, checkpoint=None, max_minutes=None):
    """Run an experiment and record it.

    Where `torchrun` started several processes, all of them run it and the first one writes.

    Args:
        name: of the experiment.
        preset: ``"smoke"``, ``"cpu"``, ``"full"``, or what else its ``PRESETS`` have.
        device: name of a torch device; None for the best there is.
        out: folder of the record; None for the results of the package.
        checkpoint, max_minutes: as `execute`.

    Returns:
        Path of the record, which appears whole or not at all.

    Raises:
        as `execute`; OSError where `out` cannot be written, and ValueError where ``out`` is None and the package is not
        at a commit, unchanged, that has the experiment. Both are found out before the experiment starts.
    """
    preset_of(name, preset)
    if not out:
        _refuse_unrepeatable(name, preset, checkpoint)
    folder = Path(out) if out else results.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.{preset}.json"
    if int(os.environ.get("RANK", 0)):
        execute(name, preset, device, checkpoint, max_minutes)
        return path
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.touch()  # hours before it is written: whether it can be
    half.unlink()  # a run that is killed leaves nothing
    text = dump(execute(name, preset, device, checkpoint, max_minutes))
    try:
        half.write_text(text, encoding="utf-8")
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)
    return path


def dump(record):
    """A record as JSON, one line for each list of numbers."""
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    flat = r"\[\n\s+([^\[\]{}]*?)\n\s+\]"  # a list that holds no list; in JSON, no string holds a line end
    return re.sub(flat, lambda match: "[" + re.sub(r",\n\s+", ", ", match[1]) + "]", text) + "\n"


def best_device():
    """``"cuda"``, ``"mps"`` or ``"cpu"``, the first that is there."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _refuse(value, where):
    """Raise for what a record must not hold, and say where it is."""
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, a {type(key).__name__}; expected a str")
            _refuse(part, f"{where}.{key}")
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            _refuse(part, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}: the run diverged or divided by zero, and is not recorded")
    elif not isinstance(value, (str, int, float, bool, type(None))):
        raise TypeError(f"{where} is a {type(value).__name__}, expected plain numbers (`.tolist()`)")


def _source():
    """The commit that this package is checked out at, and whether it was changed since; None elsewhere.

    Records are no source: one experiment after another may write its own.
    """
    commit = results.git("rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(results.git("status", "--porcelain", "--", ".", _NO_RECORDS))}


def _refuse_unrepeatable(name, preset, checkpoint):
    """Raise where a record of the package could not be made again."""
    source, begun = _source(), begun_at(checkpoint)
    if begun not in (None, source["commit"]):
        source["begun_at"] = begun
    reasons = results.unrepeatable({"experiment": name, "preset": preset, "source": source})
    if reasons:
        raise ValueError(
            f"the results of the package hold what can be repeated, but of this record {'; '.join(reasons)}: commit "
            "first, or write it elsewhere by --out FOLDER"
        )


def _described(device):
    """Kind and name of the processor that did the work."""
    if device.type == "cuda":
        return {"kind": "cuda", "name": torch.cuda.get_device_name(device)}
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()  # Linux alone has it
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    threads = torch.get_num_threads()
    counted = "1 thread" if threads == 1 else f"{threads} threads"
    return {"kind": device.type, "name": f"{name}, {counted}", "threads": threads}
