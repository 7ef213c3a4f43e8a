"""Verdicts as they come, in a file beside the table: a run that was killed goes on from there."""

import json
from dataclasses import asdict
from pathlib import Path

import d2lmini


class Journal:
    """The verdicts of the notebooks that were judged: a line each, behind one with the rules.

    Those of other rules, of another version, or of a notebook that has changed count for nothing.

    Args:
        table: the file that the verdicts are to be written to; the journal lies beside it.
        rules: a `Rules`.

    Raises:
        OSError: nothing can be written there.
    """

    def __init__(self, table, rules):
        self.path, head = _place(table), {"rules": asdict(rules), "version": d2lmini.__version__}
        lines = _lines(self.path)
        self.kept = {line["notebook"]: line["rows"] for line in lines[1:]} if lines[:1] == [head] else {}
        self.file = open(self.path, "a" if self.kept else "w", encoding="utf-8")  # noqa: SIM115 - closed by `done`
        if not self.kept:
            self._write(head)

    def find(self, name, notebook):
        """Return the rows of a notebook that was judged under this name, or None; its content is its ``digest``."""
        return self.kept.get(f"{notebook['digest']} {name}")

    def add(self, name, notebook, rows):
        """Keep the rows of a notebook."""
        self._write({"notebook": f"{notebook['digest']} {name}", "rows": rows})

    def _write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def close(self):
        self.file.close()

    def done(self):
        """The table is written: the journal has served."""
        self.close()
        self.path.unlink()


def kept_seed(table) -> int | None:
    """Return the seed of a run that was killed before it wrote this table; None if there is none."""
    try:
        return int(_lines(_place(table))[0]["rules"]["seed"])
    except (IndexError, LookupError, TypeError, ValueError):
        return None


def _place(table):
    table = Path(table)
    return table.with_name(table.name + ".partial")


def _lines(path):
    """Return what the lines hold, up to the first that is none: a kill may have cut it."""
    lines = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            lines.append(json.loads(line))
    except (OSError, ValueError):
        pass
    return lines
