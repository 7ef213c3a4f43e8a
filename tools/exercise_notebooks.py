"""Write the notebooks of the exercises: unsolved ones for the reader, solved ones whose outputs the book shows.

    python -m tools.exercise_notebooks             # write; executes solved ones that changed
    python -m tools.exercise_notebooks --check     # only tell
    python -m tools.exercise_notebooks --execute   # execute all solved ones again

Their cells come from `tools/exercise_cells.py`. A solved notebook is kept WITH its outputs: the tests run it
again and compare. It remembers the hash of its exercises, so that a changed check makes it stale too; where nothing but
text around the code changed, it keeps its outputs.
"""

import argparse
import hashlib
import os
import sys
import tempfile

import nbformat
from nbclient import NotebookClient

from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.document import take_apart
from d2lmini.exercises.engine.model import Choice
from tools._generated import ROOT, put
from tools.chapters import METADATA
from tools.exercise_cells import CHAPTERS, solved, unsolved

COMMAND = "python -m tools.exercise_notebooks"
CELL_TIMEOUT = 120  # seconds


def execute(notebook):
    """Run a notebook in place, strictly: a check that does not pass raises."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {
            "D2LMINI_STRICT": "1",
            "D2LMINI_PROGRESS": os.path.join(scratch, "progress.json"),
        }
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,  # whether a line comes in one piece or in two is up to the clock
        )
        client.execute(env=environment)
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def _origin(chapter):
    """Returns: the hash of what decides on outputs: code, and choices, whose verdicts have their reasons."""
    total = hashlib.sha256()
    for key in registry.keys(chapter):
        for part in take_apart(registry.path(key)).parts:
            pieces = [part.prompt.text] if part.kind == Choice.kind else [block.text for block in part.code]
            total.update("\0".join(pieces).encode())
    return total.hexdigest()


def in_step(path, fresh, origin):
    """Whether the solved notebook at `path` has the sources of `fresh`, its origin, and outputs."""
    found = _read(path)
    return found is not None and _sources(found) == _sources(fresh) and _executed(found, origin)


def carry_over(path, fresh, origin):
    """Give `fresh` the outputs of the notebook at `path`, if its code is the same. Returns: bool, whether it is."""
    found = _read(path)
    if found is None or not _executed(found, origin) or _code(found) != _code(fresh):
        return False
    had = {cell.id: cell for cell in found.cells}
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = had[cell.id].outputs, had[cell.id].execution_count
    return True


def _read(path):
    try:
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.reader.NotJSONError):
        return None


def _sources(notebook):
    return [(c.id, c.cell_type, c.source, dict(c.metadata)) for c in notebook.cells]


def _code(notebook):
    """What is executed; the metadata only says how it is shown."""
    return [(c.id, c.source) for c in notebook.cells if c.cell_type == "code"]


def _executed(notebook, origin):
    code = [c for c in notebook.cells if c.cell_type == "code"]
    return (
        notebook.metadata.get("d2lmini", {}).get("origin") == origin
        and all(c.execution_count for c in code)
        and not any(o.output_type == "error" for c in code for o in c.outputs)
    )


def sync(check, again=False):
    """Bring all notebooks in step, or only tell.

    Args:
        check: only tell.
        again: execute solved notebooks even where nothing changed.

    Returns:
        list of the files that were out of step.
    """
    stale = []
    for chapter, (name, _) in CHAPTERS.items():
        stale += put(ROOT / f"exercises/{name}.ipynb", nbformat.writes(unsolved(chapter)) + "\n", check)
        path, fresh, origin = ROOT / f"exercises/solutions/{name}.ipynb", solved(chapter), _origin(chapter)
        if in_step(path, fresh, origin) and not (again and not check):
            continue
        if check:
            stale.append(str(path.relative_to(ROOT)))
            continue
        if again or not carry_over(path, fresh, origin):
            execute(fresh)
        fresh.metadata["d2lmini"] = {"origin": origin}
        stale += put(path, nbformat.writes(fresh) + "\n", check)
    return stale


def main():
    parser = argparse.ArgumentParser(description="write the notebooks of the exercises")
    parser.add_argument("--check", action="store_true", help="only tell what is out of step")
    parser.add_argument("--execute", action="store_true", help="execute all solved notebooks again")
    options = parser.parse_args()
    stale = sync(options.check, again=options.execute)
    for path in stale:
        print(f"{'out of step' if options.check else 'written'}: {path}")
    if options.check and stale:
        sys.exit(f"mend with: {COMMAND}")


if __name__ == "__main__":
    main()
