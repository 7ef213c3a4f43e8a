"""Try what would be published: each file of a folder in an empty environment, away from the repository.

    python -m tools.try_package dist

What a user does first is done with each: import, `check`, an experiment, an exercise, a figure in a notebook.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

NOTEBOOK = """
import json, nbformat
from nbclient import NotebookClient
cells = ["import torch; from d2lmini.figures import QueryPlane; QueryPlane(torch.ones(2), torch.eye(2), torch.eye(2))"]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(book, kernel_name="python3").execute()
shown = [output["data"]["text/html"] for output in book.cells[0].outputs if output.output_type == "execute_result"]
assert ["<d2lmini-query-plane" in html for html in shown] == [True], book.cells[0].outputs
"""
IMPORTED = """
import sys, d2lmini
from d2lmini import check
assert d2lmini.__file__.startswith(sys.prefix), d2lmini.__file__
check("d2l-11.3.1", lambda queries, keys, values: queries @ keys.transpose(1, 2), record=False)
print(d2lmini.__version__)
"""
TRIALS = (
    ["-c", IMPORTED],
    ["-m", "d2lmini", "check"],
    ["-m", "d2lmini", "run", "associative_recall", "--preset", "smoke", "--out", "."],
    ["-c", NOTEBOOK],
)


def packages(folder):
    """The wheel and the archive of sources of a folder. Returns: list of two paths.

    Raises:
        ValueError: there are not one of each.
    """
    found = [sorted(Path(folder).glob(pattern)) for pattern in ("*.whl", "*.tar.gz")]
    if any(len(paths) != 1 for paths in found):
        names = ", ".join(path.name for paths in found for path in paths) or "neither"
        raise ValueError(f"expected one wheel and one .tar.gz in {folder}, found {names}")
    return [path.resolve() for (path,) in found]


def run(python, words, folder):
    """Runs Python in a folder, without any of this environment's paths.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    done = subprocess.run([python, "-P", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(map(str, words))[:80]} ended with {done.returncode}:\n{said}")
    return done.stdout


def attempt(package, folder, constraints=()):
    """Installs a package into a new environment in `folder`, with all that it asks for, and tries it there."""
    venv.create(folder / "env", with_pip=True)
    python, away = folder / "env" / "bin" / "python", folder / "away"
    away.mkdir()
    pinned = [word for path in constraints for word in ("-c", str(Path(path).resolve()))]
    run(python, ["-m", "pip", "install", "-q", *pinned, str(package), "ipykernel", "nbclient"], away)
    for words in TRIALS:
        run(python, words, away)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.try_package", description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="holds one wheel and one archive of sources")
    parser.add_argument("-c", "--constraints", action="append", default=[], help="a file of versions for pip")
    options = parser.parse_args()
    try:
        for package in packages(options.folder):
            with tempfile.TemporaryDirectory() as folder:
                attempt(package, Path(folder), options.constraints)
            print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, works in an empty environment", flush=True)
    except (ValueError, RuntimeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
