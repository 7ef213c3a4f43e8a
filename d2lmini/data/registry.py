"""Data sets by name: fetch them, find their files, see what is here."""

import os

from . import store
from .catalogue import SETS


def get(name):
    """The `DataSet` called `name`.

    Raises:
        ValueError: there is none; the message lists those that there are.
    """
    if name not in SETS:
        raise ValueError(f"there is no data set {name!r}, only {', '.join(SETS)}")
    return SETS[name]


def path(name, file, download=True):
    """A verified file of a set; see `d2lmini.data.store.obtain`."""
    return store.obtain(get(name), file, download)


def fetch(name):
    """Bring every file of a set to this machine, or find that it is here already.

    Args:
        name: of the set.

    Returns:
        dict from file name to path; every file has been verified.

    Raises:
        ValueError: there is no such set.
        DataError: a file is damaged, or could be neither found nor fetched.
    """
    return {file.name: path(name, file.name) for file in get(name).files}


def checksums(name, files):
    """What to write beside a result: dict from "set/file" to the hash that it has."""
    return {f"{name}/{file}": get(name).file(file).hash for file in files}


def num_here():
    """How many sets are on this machine, whole by the names of their files; nothing is verified."""
    there = [
        all(any((folder / file.name).is_file() for folder in store.candidates(s)) for file in s.files)
        for s in SETS.values()
    ]
    return sum(there)


def status():
    """Say of each set whether it is here and intact, and what to do where it is not.

    Returns:
        str of several lines. Reads every file that it finds (a second for all of them).
    """
    lines = ["data sets, looked for in"]
    for folder in store.data_folders():
        lines.append(f"  {folder} (D2LMINI_DATA){'' if os.path.isdir(folder) else ': THERE IS NO SUCH FOLDER'}")
    lines += [f"  {store.cache_folder()} (the cache; D2LMINI_CACHE sets it)", "and where systems keep them:"]
    for name, dataset in SETS.items():
        here, missing, damaged = set(), [], []
        for file in dataset.files:
            try:
                path = store.find(dataset, file.name)
            except store.DataError as error:
                damaged.append(str(error))
                continue
            if path:
                here.add(str(path.parent))
            else:
                missing.append(file)
        size = sum(file.size for file in dataset.files) / 1e6
        state = "damaged" if damaged else "missing" if not here else "incomplete" if missing else "complete"
        lines.append(f"  {name:26} {state:10} {size:6.1f} MB  {dataset.title}")
        lines += [f"    in {folder}" for folder in sorted(here)]
        lines += [f"    {line}" for line in damaged]
        if missing:
            lines.append(f"    missing: {', '.join(file.name for file in missing)}")
            if all(file.urls for file in missing):
                lines.append(f"    python -m d2lmini data --fetch {name}")
            else:
                lines.append(f"    {dataset.pitfalls}")
    return "\n".join(lines)
