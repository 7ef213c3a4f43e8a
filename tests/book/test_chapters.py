"""Every chapter keeps the contract: what it opens and closes with, what it shows, and that it defines nothing twice."""

import ast
import inspect
import math
import re
from functools import partial

import nbformat
import pytest
import torch
from conftest import ROOT

import d2lmini
from tools import chapters, core, layers, setup_cell

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
DRAWS = re.compile(r"\b(show_heatmaps|d2l\.plot|plt\.|\.imshow|\.scatter|\.bar)\(")


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return notebook_of(request.param)


def notebook_of(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.name = path.stem
    return notebook


def prose(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def from_the_books(notebook):
    """The texts of the folded section for those who know D2L or UDL. Returns: list of str, empty where it is open."""
    headings = [piece.heading for piece in layers.pieces(notebook)]
    at = headings.index("If you come from D2L or UDL")
    section = layers.pieces(notebook)[at : headings.index("Going further")]
    return [piece.text for piece in section if piece.layer == layers.CHECK and piece.kind == "prose"]


def test_there_are_chapters():
    assert len(CHAPTERS) >= 3


def test_sources_only_and_in_step():
    assert chapters.sync(check=True) == [], "mend with: python -m tools.chapters"


def test_opening(chapter):
    first = chapter.cells[0].source
    assert re.match(r"# \S", first) and "After this chapter you can" in first
    books = first if chapter.name[:2] in core.WAITING else " ".join(from_the_books(chapter))
    textbooks = r"\*Dive\sinto\sDeep\sLearning\*", r"\*Understanding\sDeep\sLearning\*"
    for words in (*textbooks, r"\]\(\.\./pages/notation\.md\)"):
        assert re.search(words, books), words
    if books is not first:
        assert "D2L" not in first and "UDL" not in first
    setup = code(chapter)[0]
    assert setup.metadata.tags == ["setup", "fold"]
    assert setup.source == setup_cell.source(page := setup_cell.page(setup.source))
    assert "import d2lmini as d2l" in page and f'd2l.run_time("{chapter.name}")' in page
    assert "Measured run time" in d2lmini.run_time(chapter.name), d2lmini.run_time(chapter.name)


def test_closing(chapter):
    text = prose(chapter)
    for heading in ("## What goes wrong in practice", "## Summary"):
        assert heading in text
    assert f"(../exercises/{chapter.name}.ipynb)" in text and "exercises/solutions/" not in text


def test_substance(chapter):
    sources = "\n".join(cell.source for cell in code(chapter))
    assert "show_source(" in sources and "assert_close(" in sources
    assert "from d2lmini.figures import" in sources and "from d2lmini.experiments import" in sources
    assert "results.largest(" in sources or ("results.load(" in sources and '"laptop"' in sources)
    assert prose(chapter).count("**Predict") + prose(chapter).count("**Before you touch") >= 3
    claims = len(re.findall(r"^\s*assert |assert_close\(", sources, re.M))
    assert claims >= 8, f"only {claims} claims are cells that can fail"


def test_no_class_that_the_package_has(chapter):
    names = {
        node.name
        for cell in code(chapter)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.ClassDef)
    }
    assert names.isdisjoint(d2lmini.__all__)


def test_what_a_chapter_shows_is_public(chapter):
    nodes = (node for cell in code(chapter) for node in ast.walk(ast.parse(cell.source)))
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert [name for name in names if re.fullmatch("_[^_].*[^_]", name)] == []


def test_every_drawing_has_a_text(chapter):
    for cell in code(chapter):
        if DRAWS.search(cell.source):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) >= 20, f"no alt text for:\n{cell.source}"


def test_nothing_that_a_build_stalls_on(chapter):
    for cell in code(chapter):
        assert not re.search(r"\b(interact|interactive|widgets\.Output|%matplotlib)\b", cell.source)
        assert not cell.source.lstrip().startswith(("!", "%"))
    assert "widgets" not in chapter.metadata


def test_no_number_with_a_percent_sign_in_prose(chapter):
    """Measured numbers are printed by a cell, not typed."""
    assert re.findall(r"\d(?:\.\d+)? ?%", prose(chapter)) == []


def printed_schedules(notebook):
    """Functions of a step that a chapter's open code defines. Returns: dict of functions by name."""
    found = {}
    for cell in code(notebook):
        for node in [] if "fold" in cell.metadata.get("tags", ()) else ast.walk(ast.parse(cell.source)):
            named = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
            function = node.value if named else node
            if (named or isinstance(node, ast.FunctionDef)) and [a.arg for a in function.args.args][:1] == ["step"]:
                names = {"math": math, "steps": 200}  # what the chapters' schedules read
                exec(compile(ast.Module([node], []), notebook.name, "exec"), names)
                name = node.targets[0].id if named else node.name
                found[name] = names[name]
    return found


def test_printed_schedules_run_in_torchs_scheduler_from_step_zero(chapter):
    for name, schedule in printed_schedules(chapter).items():
        wanted = inspect.signature(schedule).parameters
        given = {word: number for word, number in (("warmup", 20), ("total", 200)) if word in wanted}
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(schedule, **given))
        rates = scheduler.get_last_lr()
        for _ in range(200):
            optimizer.step()
            scheduler.step()
            rates += scheduler.get_last_lr()
        assert min(rates) >= 0 and max(rates) == pytest.approx(1) and max(rates[150:]) < 1, name


def test_schedules_are_found():
    found = {name for path in CHAPTERS for name in printed_schedules(notebook_of(path))}
    assert found >= {"warmup_cosine", "warmup_inverse_sqrt", "up_and_down"}
