"""The table of all experiments and presets: what is recorded, what is missing, how long each takes."""

from .. import results
from .runner import name_of

_UNRECORDED = {"smoke": "seconds", "cpu": "about a minute, or in the chapter"}


def overview(experiments):
    """When and on what each preset was recorded, and how long it took or may take.

    Args:
        experiments: modules.

    Returns:
        str, a line for each preset.
    """
    rows, there = [("experiment", "preset", "recorded", "time", "device")], set(results.recorded())
    for experiment in experiments:
        name, presets = name_of(experiment), experiment.PRESETS
        records = {preset: results.load(name, preset) for preset in presets if (name, preset) in there}
        for preset in presets:
            if preset in records:
                record = records[preset]
                rows.append((name, preset, record["date"][:10], _minutes(record), record["device"]["name"]))
            elif preset in _UNRECORDED:
                rows.append((name, preset, "never", _UNRECORDED[preset], ""))
            elif (name, preset) in results.WAITING:
                rows.append((name, preset, "missing", results.WAITING[name, preset], ""))
            else:
                known = max(records.values(), key=lambda record: record["wall_s"], default=None)
                known = f"unknown; {known['preset']} took {_minutes(known)}" if known else "unknown"
                rows.append((name, preset, "missing", known, ""))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in rows)


def _minutes(record):
    return f"{record['wall_s'] / 60:.1f} min"
