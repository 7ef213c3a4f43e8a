"""Measure how long each chapter runs, for its opening: `python -m tools.run_times [NAME ...]`; not part of sync."""

import json
import platform
import sys
import time

import nbformat
import torch
from nbclient import NotebookClient

import d2lmini
from tools._generated import ROOT

RECORD = ROOT / "d2lmini" / "results" / "run_times.json"


def measure(path):
    """Execute one chapter from its first cell to its last. Returns: float, seconds, the kernel's start included."""
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    return time.perf_counter() - start


def main():
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    kind = "gpu" if torch.cuda.is_available() else "cpu"
    device = torch.cuda.get_device_name(0) if kind == "gpu" else f"{torch.get_num_threads()} CPU cores"
    names = sys.argv[1:] or [path.stem for path in sorted((ROOT / "chapters").glob("*.ipynb"))]
    for path in (ROOT / "chapters" / f"{name}.ipynb" for name in names):
        record.setdefault(path.stem, {})[kind] = {
            "seconds": round(measure(path), 1),
            "device": device,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "d2lmini": d2lmini.__version__,
            "command": "python -m tools.run_times",
        }
        print(path.stem, record[path.stem][kind]["seconds"])
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")  # kept if the next one fails


if __name__ == "__main__":
    main()
