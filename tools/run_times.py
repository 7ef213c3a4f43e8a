"""Measure how long each chapter runs, for its opening, and the memory that it takes, for the page on troubleshooting:
`python -m tools.run_times [NAME ...]`, on Linux; not part of sync."""

import argparse
import json
import platform
import time

import nbformat
import torch
from nbclient import NotebookClient

import d2lmini
from tools._generated import ROOT

# maximum resident set of the kernel's process, in KiB: what Linux counts; other systems count otherwise
PEAK = "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
RECORD = ROOT / "d2lmini" / "results" / "run_times.json"


def measure(path):
    """Execute one chapter from its first cell to its last.

    Returns:
        tuple: seconds, the kernel's start included; and the peak of the kernel's memory in MB.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PEAK))
    start = time.perf_counter()
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    return time.perf_counter() - start, int(notebook.cells[-1].outputs[0].text) * 1024 / 1e6


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.run_times", description="measure chapters")
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 07_transformer; none: all")
    names = parser.parse_args().names
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    kind = "gpu" if torch.cuda.is_available() else "cpu"
    device = torch.cuda.get_device_name(0) if kind == "gpu" else f"{torch.get_num_threads()} CPU cores"
    names = names or [path.stem for path in sorted((ROOT / "chapters").glob("*.ipynb"))]
    for path in (ROOT / "chapters" / f"{name}.ipynb" for name in names):
        seconds, peak_mb = measure(path)
        record.setdefault(path.stem, {})[kind] = {
            "seconds": round(seconds, 1),
            "peak_mb": round(peak_mb),
            "device": device,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "d2lmini": d2lmini.__version__,
            "command": "python -m tools.run_times",
        }
        print(f"{path.stem}: {seconds:.1f} s, {peak_mb:.0f} MB", flush=True)
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")  # kept if the next one fails


if __name__ == "__main__":
    main()
