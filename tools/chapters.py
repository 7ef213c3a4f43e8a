"""Keep the chapters sources only: no outputs, stable cell ids, the common setup cell, no metadata of one machine but
that which folds, citations that read well in a notebook."""

import nbformat

from tools import citations, folds, setup_cell
from tools._generated import ROOT, main, put

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def normalize(notebook):
    """Strip a notebook to its source, in place. Returns: the notebook.

    Raises:
        ValueError: a cell that is tagged fold has not the shape that tools/folds.py wants.
    """
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        for key in ("execution", "collapsed", "jupyter", "trusted", "scrolled", "id", "colab", "outputId"):
            cell.metadata.pop(key, None)
        if cell.cell_type != "code":
            cell.source = citations.readable(cell.source, "../pages/")
            continue
        cell.outputs, cell.execution_count = [], None
        if "setup" in cell.metadata.get("tags", []):
            cell.source = setup_cell.source(setup_cell.page(cell.source))
            cell.metadata.tags = list(setup_cell.TAGS)
    return folds.fold(notebook)


def sync(check):
    """Returns: list of the chapters that were out of step."""
    stale = []
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        notebook = normalize(nbformat.read(path, as_version=4))
        nbformat.validate(notebook)
        stale += put(path, nbformat.writes(notebook) + "\n", check)
    return stale


if __name__ == "__main__":
    main(sync, command="python -m tools.chapters")
