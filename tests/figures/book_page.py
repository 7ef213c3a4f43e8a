"""A figure as a page of the book has it: its scripts are files beside the page."""

import pytest
from conftest import sphinx_extension

from d2lmini.figures.base import IN_BOOK


def shown_in_book(folder, figure):
    """The HTML of a figure for a page in a folder, into which its scripts are written. Returns: str."""
    extension = sphinx_extension("figure_scripts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(IN_BOOK, "1")
        shown = figure._repr_html_()
    scripts = extension.figure_scripts()
    at = folder / "_static" / "figures"
    at.mkdir(parents=True, exist_ok=True)
    for name in ("base", figure.name):
        (at / f"{name}.js").write_text(scripts[name], encoding="utf-8")
    return extension.with_files(shown, "_static/figures", scripts)
