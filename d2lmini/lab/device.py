"""What a run computes on: the best device there is, and what a record says of it."""

import platform
from pathlib import Path

import torch


def best_device():
    """``"cuda"``, ``"mps"`` or ``"cpu"``, the first that is there."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def describe(device):
    """Kind and name of the processor that does the work, as a record has them: a dict."""
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
