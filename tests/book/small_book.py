"""A book of a few cells, built in seconds with the extensions and the settings of the large one, and never executed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
from conftest import ROOT
from docutils.utils import new_document
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import folds, setup_cell
from tools.chapters import METADATA


def text(source, *tags):
    return new_markdown_cell(source, metadata={"tags": list(tags)} if tags else {})


def code(source, *tags, prints=None, shows=None):
    """A cell of code with its output: what it prints, or text that it shows as Markdown."""
    outputs = [new_output("stream", name="stdout", text=prints)] if prints else []
    if shows:
        outputs.append(new_output("display_data", data={"text/markdown": shows, "text/plain": shows}))
    metadata = {"tags": list(tags)} if tags else {}
    return new_code_cell(source, metadata=metadata, outputs=outputs, execution_count=1)


def notebook(*cells):
    """A notebook of such cells, in step with their tags."""
    made = new_notebook(cells=list(cells), metadata=METADATA)
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number:02d}"
    return folds.fold(made)


MORE = "\n\nAnd more." * 40  # than a screen is high
SETUP = code(setup_cell.source("import gooseberry"), "setup", "fold", prints="measured in a jiffy\n")
PAGES = {
    "chapters/01_one": (
        text("# One\n\nTo [the inside](#deep-inside), to [the fold](#going-further), to [a caveat](#caveats-of-two)."),
        SETUP,
        text("## Ideas\n\n**Predict:** how many are they, (a) one, (b) two or (c) three?"),
        code("apricot = 2  # comment of the first answer", prints="apricot 2\n"),
        text("They are two apricots.\n\n- a point of the first answer\n\nBehind the first answer."),
        code("# @title Check: the package agrees\nassert blueberry", "fold", prints="the package agrees, 12 sizes\n"),
        text("**Predict:** what is the number $x^2$?"),
        code("cherry = 4"),
        code('# @title Record: the number\nd2l.show_text("damson")', "fold", shows="The number is **damson**."),
        text("Behind the second answer.\n\n**Before you touch it:** what will it do?"),
        code("elderberry = 5", prints="elderberry 5\n"),
        text("It does this."),
        text("**Predict:** is it answered at once?"),
        text("It is answered by the fig.\n\n$$y = x^3$$\n\nBehind the third answer."),
        text("### Caveats of two", "fold"),
        text("The caveat is a grape.\n\n## Summary\n\n1. One." + MORE),
        text("## Going further", "fold"),
        text(
            "The hazelnut is further.\n\n### Deep inside\n\nThe huckleberry is deep inside.\n\n**Predict:** and here?"
        ),
        code("jujube = 6", prints="jujube 6\n"),
        text("Here it is the jackfruit." + MORE),
    ),
    "chapters/02_two": (
        text("# Two\n\nTo [the first](01_one.ipynb#deep-inside)."),
        text("## Going further", "fold"),
        text("The kiwi is further.\n\n| | colour |\n|---|---|\n| gage | green |"),
    ),
    "exercises/01_one": (
        text("# Exercises\n\n<details><summary>Hint 1</summary>\n\nA lime.\n\n</details>\n\n**Predict** the number."),
        SETUP,
        code("lychee = ..."),
    ),
}

# what a reader of the first page does not see at first, and what is open
FOLDED = ("gooseberry", "measured in a jiffy", "blueberry", "grape", "hazelnut", "huckleberry")
ANSWERS = ("apricot = 2", "apricot 2", "two apricots", "point of the first", "cherry = 4", "damson", "by the fig")
OPEN = ("agrees, 12 sizes", "Behind the first", "Behind the second", "elderberry 5", "Behind the third")


def empty_page(docname="chapters/01_one"):
    """An empty document that Sphinx reads."""
    document = new_document("page")
    document.settings.env = SimpleNamespace(docname=docname)
    return document


def sees(page, *words):
    """Which of these words a reader sees."""
    article = page.locator("article.bd-article")
    return [word for word in words if article.get_by_text(word).locator("visible=true").count()]


def fold(page, title="Going further"):
    return page.locator("article details.fold", has=page.locator("> summary", has_text=title))


def ask(page, number=0):
    return page.locator(".predict-place").nth(number)


def is_open(fold):
    return fold.evaluate("node => node.open")


def build(folder):
    """Build the small book. Returns: path of its pages."""
    for name, cells in PAGES.items():
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(nbformat.writes(notebook(*cells)), encoding="utf-8")
    (folder / "intro.md").write_text(
        "# A small book\n\n[A link](chapters/01_one.ipynb#deep-inside)\n", encoding="utf-8"
    )
    toc = ["format: jb-book", "root: intro", "chapters:", *(f"- file: {name}" for name in PAGES)]
    return _made(folder, toc)


def build_exercises(folder, chapter="03_attention_scoring"):
    """Build a book of a chapter, not executed, its exercises and the pages on them. Returns: path of its pages."""
    for name in (f"chapters/{chapter}", f"exercises/{chapter}", f"exercises/solutions/{chapter}"):
        path = folder / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f"{name}.ipynb", path)
    (folder / "intro.md").write_text("# A small book\n\n```{progress} line\n```\n", encoding="utf-8")
    part = ["- caption: One", "  numbered: true", "  chapters:", f"  - file: chapters/{chapter}", "    sections:"]
    part += [f"    - file: exercises/{chapter}", "      title: Exercises"]
    part += [f"  - file: pages/{page}" for page in ("your_progress", "troubleshooting", "lecturers")]
    return _made(folder, ["format: jb-book", "root: intro", "parts:", *part])


def build_pages(folder, names):
    """Build a book of some of `pages/`, without the chapters that they lead to. Returns: path of its pages."""
    (folder / "intro.md").write_text("# A small book\n", encoding="utf-8")
    return _made(folder, ["format: jb-book", "root: intro", "chapters:", *(f"- file: pages/{name}" for name in names)])


def _made(folder, toc):
    (folder / "_toc.yml").write_text("\n".join(toc), encoding="utf-8")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config, changed = re.subn("execute_notebooks: cache", 'execute_notebooks: "off"', config)
    assert changed == 1
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    shutil.copytree(ROOT / "pages", folder / "pages")
    (folder / "d2lmini").mkdir()
    (folder / "tools").mkdir()
    os.symlink(ROOT / "tools" / "sphinx_ext", folder / "tools" / "sphinx_ext")
    return again(folder)


def again(folder, *flags):
    """Build what is in the folder. Returns: path of its pages."""
    command = Path(sys.executable).with_name("jupyter-book")
    done = subprocess.run([command, "build", *flags, folder], capture_output=True, text=True)
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "_build" / "html"
