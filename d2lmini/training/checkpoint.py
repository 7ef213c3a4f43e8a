"""Checkpoints: a folder that appears whole or not at all.

    <folder>/step-00000120/weights.safetensors   the model's parameters and buffers
                           state.pt              optimizer, schedule and random numbers, tensors and plain values only
                           manifest.json         position, history, configuration
                           SHA256SUMS            of the other three, as sha256sum writes and checks them

A checkpoint is written under another name and renamed when all of it is on the disk; only then is the one before
removed. So there is a whole one at every moment after the first, whenever the process is killed or the disk is full.

A folder belongs to one run at a time: `claim` locks ``<folder>/.lock``. The operating system opens the lock when the
process ends, however it ends.
"""

import hashlib
import json
import os
import pickle
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout

_FORMAT = "d2lmini checkpoint 1"
_PARTIAL, _LOCK = ".partial-", ".lock"
_WEIGHTS, _STATE, _MANIFEST, _SUMS = "weights.safetensors", "state.pt", "manifest.json", "SHA256SUMS"


_PATIENCE = 10  # seconds; the workers of a loader outlive a killed run for some, and the lock with them


class CheckpointError(RuntimeError):
    """A checkpoint is damaged, foreign, of another configuration, or cannot be written; the message says what to do."""


@contextmanager
def claim(folder):
    """Makes a folder and keeps it for one run until the end of the ``with``.

    Raises:
        CheckpointError: it cannot be written, or another run is at work in it.
    """
    path = Path(folder) / _LOCK
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=_PATIENCE)
    except Timeout:
        raise CheckpointError(
            f"another run is at work in {folder}: wait for its end, or give this one a folder of its own"
        ) from None
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint folder {folder} cannot be written ({error.strerror}): name a folder that can"
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open
            path.unlink()
        lock.release()


def latest(folder):
    """Path of the newest checkpoint in a folder, None where there is none."""
    return max(_all(folder), key=lambda path: int(path.name.removeprefix("step-")), default=None)


def trained_seconds(folder):
    """Seconds of training that the newest checkpoints of all runs in the folders below a folder hold together.

    Raises:
        CheckpointError: as `read`.
    """
    newest = {latest(path.parent) for path in Path(folder).rglob("step-*")} - {None}
    return sum(read(path)[2]["seconds"] for path in newest)


def is_of_step(folder, step):
    """Whether the newest checkpoint of a folder is that of a step."""
    path = latest(folder)
    return path is not None and path.name == _name(step)


def _all(folder):
    return [path for path in Path(folder).glob("step-*") if re.fullmatch(r"step-\d{8,}", path.name)]


def _name(step):
    return f"step-{step:08d}"


def write(folder, step, write_weights, state, manifest):
    """Writes a checkpoint and removes the one before.

    Args:
        folder: of the run's checkpoints; made where it does not exist.
        step: the number that names the checkpoint; higher than before.
        write_weights: function that writes the weights to the path that it is given.
        state: what ``torch.save`` can write and ``torch.load(weights_only=True)`` can read.
        manifest: what JSON can hold.

    Returns:
        Path of the checkpoint.

    Raises:
        CheckpointError: it cannot be written, as on a full disk; the one before stays.
    """
    from safetensors import SafetensorError

    folder = Path(folder)
    final = folder / _name(step)
    partial = folder / f"{_PARTIAL}{final.name}"
    try:
        return _write(folder, final, partial, write_weights, state, manifest)
    except (OSError, RuntimeError, SafetensorError) as error:  # torch tells of a full disk by a RuntimeError
        shutil.rmtree(partial, ignore_errors=True)
        before = latest(folder)
        kept = f"{before.name} is still there, and resume=True goes on from it" if before else "there is none before it"
        with suppress(OSError):
            kept += f"; {shutil.disk_usage(folder).free / 1e6:,.1f} MB are free on that disk"
        raise CheckpointError(
            f"the checkpoint of step {step} could not be written to {folder} ({_reason(error)}): {kept}"
        ) from error


def _write(folder, final, partial, write_weights, state, manifest):
    folder.mkdir(parents=True, exist_ok=True)
    for left_over in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(left_over)
    partial.mkdir()
    write_weights(partial / _WEIGHTS)
    torch.save(state, partial / _STATE)
    manifest = {"format": _FORMAT, **manifest}
    (partial / _MANIFEST).write_text(json.dumps(manifest, allow_nan=False), encoding="utf-8")
    (partial / _SUMS).write_text(_sums(partial), encoding="utf-8")
    for path in (*partial.iterdir(), partial):
        _to_disk(path)
    os.rename(partial, final)
    _to_disk(folder)
    for old in _all(folder):
        if old != final:
            _remove(old)
    return final


def read(path):
    """Reads a checkpoint back, all but its weights, and verifies it.

    Args:
        path: of the checkpoint, from `latest`.

    Returns:
        path of the weights, the state, the manifest.

    Raises:
        CheckpointError: a file is missing, is not what was written, or was not written by this code, or the checkpoint
            has been given the name of another step.
    """
    path = Path(path)
    try:
        manifest = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is no checkpoint of a Trainer: {_MANIFEST} cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        given = manifest.get("format") if isinstance(manifest, dict) else type(manifest).__name__
        raise CheckpointError(f"{path} is no checkpoint of this Trainer: its format is {given!r}, expected {_FORMAT!r}")
    try:
        written = (path / _SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
        actual = _sums(path).splitlines()
    except OSError as error:
        raise CheckpointError(f"{path} is not whole ({error}): {_CURE}") from error
    damaged = [line.split()[-1] for line in actual if line not in written]
    if damaged:
        raise CheckpointError(f"{path} is damaged: {', '.join(damaged)} is not what {_SUMS} says: {_CURE}")
    try:
        state, step = torch.load(path / _STATE, map_location="cpu", weights_only=True), manifest["progress"]["step"]
    except pickle.UnpicklingError as error:  # torch's message says how to read the file unsafely
        raise foreign(path, f"{_STATE} holds more than tensors and plain values, or is no pickle") from error
    except Exception as error:  # of a foreign file nearly all may come
        raise foreign(path, error) from error
    if step != int(path.name.removeprefix("step-")):
        raise CheckpointError(
            f"{path} is the checkpoint of step {step} under another name: call it {_name(step)} again"
        )
    return path / _WEIGHTS, state, manifest


_CURE = "move the folder away and start again"


def foreign(path, why):
    """The error to raise where what a checkpoint holds is not what a `Trainer` writes; ``why``: str or exception."""
    return CheckpointError(f"{path} does not hold what a Trainer writes ({_reason(why)}): {_CURE}")


def _reason(error):
    """An exception in one line; a str as it is."""
    if isinstance(error, str):
        return error
    text = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}"


def difference(then, now):
    """Lines that say in what two configurations differ, one for each value; none where they are equal."""
    then, now = _flat(then), _flat(now)
    return [
        f"{key}: {then.get(key, 'nothing')!r} in the checkpoint, now {now.get(key, 'nothing')!r}"
        for key in dict.fromkeys([*then, *now])
        if then.get(key, _flat) != now.get(key, _flat)
    ]


def _flat(value, path=""):
    if not isinstance(value, dict):
        return {path: value}
    return {k: v for key, part in value.items() for k, v in _flat(part, f"{path}.{key}" if path else key).items()}


def _sums(folder):
    lines = []
    for name in (_WEIGHTS, _STATE, _MANIFEST):
        digest = hashlib.sha256()
        with open(folder / name, "rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
        lines.append(f"{digest.hexdigest()}  {name}\n")
    return "".join(lines)


def _to_disk(path):
    """Waits until a file or folder is on the disk, not only in memory."""
    if os.name == "nt" and path.is_dir():
        return  # Windows has no such thing for folders
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path):
    """Removes a checkpoint; it stops to be one in one moment."""
    doomed = path.with_name(f"{_PARTIAL}old-{path.name}")
    os.rename(path, doomed)
    shutil.rmtree(doomed)
