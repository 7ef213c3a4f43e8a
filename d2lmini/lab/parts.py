"""A run in parts: what is finished is kept in a folder, so that a run that was killed or cut goes on from there.

In the folder:

    run.json          what is run: experiment, configuration, device, commit
    <part>.json       what a finished part gave
    <part>/step-...   the checkpoint of the training in it, as `d2lmini.training.checkpoint` writes it
"""

import json
import os
import time
from pathlib import Path

import torch

from ..training.checkpoint import CheckpointError, difference, trained_seconds


class Unfinished(Exception):
    """The time is up before the run is done. What is finished is kept."""


class Parts:
    """The parts of a run: ``parts(name, work)`` gives what ``work()`` gives, or gave when the part was finished.

    Each part is begun with torch's random numbers (CPU) as they would be if those before it had just been run.

    Args:
        folder: where finished parts are kept; None: nowhere.
        meant: dict of plain values; what is kept in the folder has to be of the same run.
        max_seconds: time from now on, after which no further part is begun and a training stops; None: any. At least
            one part, or one step of training, is done.
        commit: what the package is checked out at; `begun_at` tells of which it was when the folder was new.

    Raises:
        CheckpointError: the folder holds parts of another run, or a damaged file.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder=None, meant=None, max_seconds=None, commit=None):
        self.folder = Path(folder) if folder else None
        self.deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self.worked = False
        self.begun_at, self.seconds_before, self._finished = commit, 0.0, {}
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        description = self.folder / "run.json"
        if description.exists():
            then = _read(description)
            lines = difference(then["meant"], _plain(meant))[:10]
            if lines:
                raise CheckpointError("\n  ".join([f"{self.folder} was made with another configuration:", *lines]))
            self.begun_at = then["commit"]
        else:
            _write(description, {"meant": meant, "commit": commit})
        # read now and never again: of several processes, none may see what another one has finished meanwhile
        self._finished = {path.stem: _read(path) for path in self.folder.glob("*.json") if path != description}
        self.seconds_before = sum(part["seconds"] for part in self._finished.values())
        open_ones = (path for path in self.folder.iterdir() if path.is_dir() and path.name not in self._finished)
        self.seconds_before += sum(map(trained_seconds, open_ones))

    def __call__(self, name, work, *args):
        """The result of a part.

        Args:
            name: of the part, which may be a file's; not "run".
            work, args: function that gives what JSON can hold, and its arguments.

        Returns:
            the result as JSON gives it back: tuples are lists, keys are str.

        Raises:
            Unfinished: the time is up.
        """
        if name == "run":
            raise ValueError("a part may not be called run: run.json tells of the whole run")
        if name in self._finished:
            torch.set_rng_state(torch.frombuffer(bytearray.fromhex(self._finished[name]["random"]), dtype=torch.uint8))
            return self._finished[name]["result"]
        self.check_time()
        before = trained_seconds(self.folder_of(name)) if self.folder else 0.0
        start = time.perf_counter()
        result = _plain(work(*args))
        if self.folder and not int(os.environ.get("RANK", 0)):
            random = torch.get_rng_state().numpy().tobytes().hex()
            seconds = before + time.perf_counter() - start
            _write(self.folder / f"{name}.json", {"seconds": seconds, "random": random, "result": result})
        self.worked = True
        return result

    def folder_of(self, name):
        """Where the training in a part keeps its checkpoints; None: nowhere."""
        return self.folder and self.folder / name

    @property
    def seconds_left(self):
        """Until the time is up, above 0; None: there is no limit."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 1e-9)

    def check_time(self):
        """Raise `Unfinished` where the time is up and something was done in it."""
        if self.worked and self.deadline is not None and time.monotonic() >= self.deadline:
            kept = f"what is finished is kept in {self.folder}" if self.folder else "nothing is kept"
            raise Unfinished(f"the time is up; {kept}")


def begun_at(folder):
    """The commit at which the run in a folder was begun; None where there is none."""
    description = Path(folder) / "run.json" if folder else None
    return _read(description)["commit"] if description and description.exists() else None


def _plain(value):
    return json.loads(json.dumps(value))


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}): move it away and start again") from error


def _write(path, value):
    """The file is there whole or not at all."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with open(half, "w", encoding="utf-8") as stream:
        json.dump(value, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(half, path)
