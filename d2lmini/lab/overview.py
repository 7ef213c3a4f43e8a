"""The table of experiments and presets: what is recorded, what is missing, how long each takes."""

import re
import textwrap

from .. import results
from .runner import name_of

_UNRECORDED = {"smoke": "seconds", "cpu": "minutes, or in the chapter"}
_LONGEST = 34  # characters of what is said of a time


def overview(experiments, preset=None):
    """When and on what each preset was recorded, and how long it took or may take.

    Args:
        experiments: modules.
        preset: of this one alone; None: of all.

    Returns:
        str, a line for each preset.

    Raises:
        ValueError: none of them has that preset.
    """
    wanted = preset
    rows, there = [("experiment", "preset", "recorded", "time", "device")], set(results.recorded())
    for experiment in experiments:
        name, presets = name_of(experiment), experiment.PRESETS
        records = {preset: results.load(name, preset) for preset in presets if (name, preset) in there}
        for preset in presets:
            if wanted not in (None, preset):
                continue
            if preset in records:
                record = records[preset]
                rows.append((name, preset, record["date"][:10], _minutes(record), _device(record)))
            elif preset in _UNRECORDED:
                rows.append((name, preset, "never", _UNRECORDED[preset], ""))
            elif (name, preset) in results.WAITING:
                rows.append((name, preset, "missing", textwrap.shorten(results.WAITING[name, preset], _LONGEST), ""))
            else:
                known = max(records.values(), key=lambda record: record["wall_s"], default=None)
                known = f"? ({known['preset']}: {_minutes(known)})" if known else "?"
                rows.append((name, preset, "missing", known, ""))
    if len(rows) == 1:
        raise ValueError(f"none of these experiments has a preset {wanted!r}")
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in rows)


def _minutes(record):
    return f"{record['wall_s'] / 60:.1f} min"


def _device(record):
    return re.sub(r"\(R\)| Processor| @ [\d.]+GHz", "", record["device"]["name"])
