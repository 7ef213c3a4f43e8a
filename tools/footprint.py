"""Measure what the book's environment takes on disk, for the README: `python -m tools.footprint`; not part of sync."""

import argparse
import json
import os
import platform
import sys
from datetime import datetime, timezone
from pathlib import Path

import torch

from d2lmini.results import FOLDER

RECORD = FOLDER / "footprint.json"


def on_disk(folder):
    """MB (10^6 bytes) that the files of a folder occupy, each counted once. Returns: float."""
    seen, total = set(), 0
    for place, _, files in os.walk(folder):
        for name in files:
            of = os.lstat(os.path.join(place, name))
            if (of.st_dev, of.st_ino) not in seen:
                seen.add((of.st_dev, of.st_ino))
                total += of.st_blocks * 512
    return total / 1e6


def main():
    argparse.ArgumentParser(prog="python -m tools.footprint", description="write the record anew").parse_args()
    if sys.prefix == sys.base_prefix:
        sys.exit("run it with the Python of the book's environment: .venv/bin/python -m tools.footprint")
    record = {
        "venv_mb": round(on_disk(Path(sys.prefix))),
        "system": f"{platform.system()}, torch {torch.__version__}",
        "python": platform.python_version(),
        "command": "python -m tools.footprint",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"{record['venv_mb']} MB")


if __name__ == "__main__":
    main()
