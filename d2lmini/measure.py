"""What a computation costs: seconds, peak memory, the largest tensor, the bytes that are moved."""

import json
import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from torch.autograd.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode


def seconds(step, device="cpu"):
    """Wall-clock time of one call.

    Args:
        step: function without arguments.
        device: ``torch.device`` or its name; on CUDA it is waited for.

    Returns:
        float, seconds.
    """
    device = torch.device(device)
    _wait(device)
    start = time.perf_counter()
    step()
    _wait(device)
    return time.perf_counter() - start


def median_seconds(steps, repeats=5, device="cpu", *, after_s=0.0):
    """Median time of each of several functions, which take turns, so that a busy machine disturbs all alike.

    Compare the results as ratios; each function is called once before, to warm up.

    Args:
        steps: dict from a name to a function without arguments.
        repeats: how many calls of each are timed; at least 1.
        device: as `seconds`.
        after_s: each timed call follows calls of its own kind that take at least so many seconds together, so that the
            processor has at hand what it would have in a row of such calls, and not what another function left there.

    Returns:
        dict from the names to float, seconds.

    Raises:
        ValueError: ``repeats`` is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}, expected at least 1")
    for step in steps.values():
        step()

    def timed(step):
        start = time.perf_counter()
        while time.perf_counter() - start < after_s:
            step()
        return seconds(step, device)

    rounds = [{name: timed(step) for name, step in steps.items()} for _ in range(repeats)]
    return {name: median(times[name] for times in rounds) for name in steps}


def peak_bytes(step, device="cpu"):
    """The most memory that a call holds at once, beyond what was there before.

    On a CPU torch's profiler counts every allocation, on a GPU the caching allocator does. What the call returns is
    freed.

    Args:
        step: function without arguments.
        device: a CPU or a CUDA device, or its name.

    Returns:
        int, bytes.

    Raises:
        ValueError: another kind of device.
    """
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return torch.cuda.max_memory_allocated(device) - before
    if device.type != "cpu":
        raise ValueError(f"peak memory is measured on cpu or cuda, not on {device.type}: use --device cpu")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler announces itself in every notebook
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with profile(profile_memory=True) as record:
            step()
        record.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    held = peak = 0
    for event in sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"]):
        held += event["args"]["Bytes"]
        peak = max(peak, held)
    return peak


class LargestTensor(TorchDispatchMode):
    """Within ``with LargestTensor() as seen:``, ``seen.numel`` is the size of the largest storage made or viewed.

    Counted is storage, so an expanded view costs nothing.
    """

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in _tensors(out):
            self.numel = max(self.numel, x.untyped_storage().nbytes() // x.element_size())
        return out


class Traffic(TorchDispatchMode):
    """Within ``with Traffic() as seen:``, ``seen.bytes`` adds up what each operation reads and writes.

    Views move nothing and are not counted.
    """

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view and func._schema.name != "aten::_unsafe_view":
            self.bytes += sum(x.numel() * x.element_size() for x in (*_tensors(args), *_tensors(out)))
        return out


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
