"""Runs a preset of an experiment, and records all that is needed to believe and repeat it."""

import os
import platform
import random
import time
from datetime import datetime, timezone
from pathlib import Path

import numpy
import torch

import d2lmini

from .. import results
from ..training.device import device_named, num_processes
from . import records
from .device import best_device, describe
from .parts import Parts


def name_of(experiment):
    """The name of an experiment's module, which its records have."""
    return experiment.__name__.rpartition(".")[2]


def preset_of(experiment, preset):
    """The configuration of a preset.

    Raises:
        ValueError: the experiment has no such preset.
    """
    if preset not in experiment.PRESETS:
        raise ValueError(f"{name_of(experiment)} has no preset {preset!r}, only {', '.join(experiment.PRESETS)}")
    return experiment.PRESETS[preset]


def execute(experiment, preset="cpu", device=None, checkpoint=None, max_minutes=None):
    """Run an experiment; no record is written.

    Args:
        experiment: its module, as ``d2lmini.experiments.find(name)`` gives it.
        preset: ``"smoke"``, ``"cpu"``, ``"full"``, or what else its ``PRESETS`` have.
        device: name of a torch device; None for the best there is.
        checkpoint: folder for what is finished, from which the experiment goes on where it was killed; None: it starts
            anew.
        max_minutes: stop after so many, at the end of the part or the step at work; None: never.

    Returns:
        dict, the record; `d2lmini.results.FIELDS` names what is in it.

    Raises:
        ValueError: no such preset or device, or `torchrun` started processes that cannot share the batches of a step
            (``batches_per_step`` of the preset, else 1) evenly, or ``max_minutes`` without ``checkpoint``, or a number
            that came out is not finite.
        TypeError: it returned what JSON cannot hold.
        DataError: its data are not here and cannot be fetched.
        CheckpointError: the checkpoint is damaged, or of another configuration.
        Unfinished: the time is up; what is finished is in ``checkpoint``.
    """
    name, config = name_of(experiment), preset_of(experiment, preset)
    processes = num_processes()
    _check_share(name, preset, getattr(config, "batches_per_step", 1), processes)
    if max_minutes is not None and not (checkpoint and max_minutes > 0):
        what = f"is {max_minutes}, expected more than 0" if checkpoint else "needs a folder for what is finished"
        raise ValueError(f"max_minutes {what}: --checkpoint FOLDER --max-minutes 20")
    chosen = device_named(device or best_device())
    seeds = list(config.seeds)
    random.seed(seeds[0])
    numpy.random.seed(seeds[0])
    torch.manual_seed(seeds[0])
    source = records.source()  # of the code that was loaded: by the end of a long run the files may be others
    start = time.perf_counter()
    meant = {"experiment": name, "preset": preset, "config": results.as_json(config), "device": chosen.type}
    parts = Parts(checkpoint, meant, max_minutes and 60 * max_minutes, source["commit"])
    outcome = experiment.run(config, chosen, parts=parts)
    wall_s = time.perf_counter() - start + parts.seconds_before
    if parts.begun_at != source["commit"]:
        source["begun_at"] = parts.begun_at
    for part in outcome:
        records.check_plain(outcome[part], part)
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
        "device": describe(chosen) | ({"processes": processes} if processes > 1 else {}),
        "wall_s": round(wall_s, 2),
        "command": results.command(name, preset, processes) + (f" --device {device}" if device else ""),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def run(experiment, preset="cpu", device=None, out=None, checkpoint=None, max_minutes=None):
    """Run an experiment and record it.

    Where `torchrun` started several processes, all of them run it and the first one writes.

    Args:
        experiment, preset, device, checkpoint, max_minutes: as `execute`.
        out: folder of the record; None for the results of the package.

    Returns:
        Path of the record, which appears whole or not at all.

    Raises:
        as `execute`; OSError where `out` cannot be written, and ValueError where ``out`` is None and the package is not
        at a commit, unchanged, that has the experiment. Both are found out before the experiment starts.
    """
    name = name_of(experiment)
    preset_of(experiment, preset)
    if not out:
        records.refuse_unrepeatable(name, preset, checkpoint)
    path = Path(out or results.FOLDER) / f"{name}.{preset}.json"

    def make():
        return execute(experiment, preset, device, checkpoint, max_minutes)

    if int(os.environ.get("RANK", 0)):
        make()
    else:
        records.write(path, make)
    return path


def _check_share(name, preset, batches, processes):
    """Raise where processes cannot share the batches of a step evenly."""
    if batches % processes:
        noun = "batch" if batches == 1 else "batches"
        raise ValueError(
            f"a step of {name}, {preset}, has {batches} {noun}, which {processes} processes cannot share evenly: "
            f"run `{results.command(name, preset)}` instead"
        )
