"""Write a generated file, or say that it is out of step."""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def put(path, text, check):
    """Bring `path` to `text`. Returns: list of the files that were out of step (at most this one)."""
    path = Path(path)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return []
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(path.name + ".tmp")
        half.write_text(text, encoding="utf-8")
        os.replace(half, path)
    return [str(path.relative_to(ROOT))]


def between(text, name, body):
    """`text` with what stands between its `<!-- name -->` markers replaced.

    Raises:
        ValueError: the markers are missing.
    """
    start, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
    if start not in text or end not in text:
        raise ValueError(f"the markers {start.strip()} and {end} are missing")
    head, rest = text.split(start, 1)
    return head + start + body.rstrip("\n") + "\n" + end + rest.split(end, 1)[1]


def main(*syncs, command):
    """The command line of a tool: mend, or with --check only tell, and exit with 1 when something was out of step."""
    parser = argparse.ArgumentParser(description=f"{command}: write generated files; --check only compares")
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = [path for sync in syncs for path in sync(check)]
    for path in stale:
        print(f"{'out of step' if check else 'written'}: {path}")
    if check and stale:
        sys.exit(f"mend with: {command}")
