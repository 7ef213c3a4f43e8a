"""How long the chapters were measured to run: what ``tools/run_times.py`` recorded."""

import json
from importlib.resources import files


def run_time(chapter):
    """Say how long a chapter takes, on each kind of device that it was measured on.

    Args:
        chapter: name of the notebook, ``"01_queries_keys_values"``.

    Returns:
        str, one sentence; also where nothing is recorded, so that a new chapter can be run to be measured.
    """
    record = json.loads(files("d2lmini.results").joinpath("run_times.json").read_text(encoding="utf-8"))
    if chapter not in record:
        return f"The run time of this chapter is not measured yet: python -m tools.run_times {chapter}"
    measured = [
        f"{record[chapter][kind]['seconds']:.0f} s on {record[chapter][kind]['device']}"
        if kind in record[chapter]
        else f"not yet measured on a {kind.upper()}"
        for kind in ("cpu", "gpu")
    ]
    return f"Measured run time of this chapter: {'; '.join(measured)}."
