"""Citations: readable in a notebook, and Sphinx's own in the book."""

import importlib.util
import json
import re

import pytest
from conftest import ROOT

from tools import citations

SPEC = importlib.util.spec_from_file_location("cite_links", ROOT / "tools" / "sphinx_ext" / "citations.py")
extension = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(extension)


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("prince2023understanding", "Prince, 2023"),
        ("milakov2018online", "Milakov and Gimelshein, 2018"),
        ("vaswani2017attention", "Vaswani et al., 2017"),
    ],
)
def test_the_label_names_authors_and_year(key, label):
    assert citations.label(key) == label


def test_a_citation_becomes_a_link_and_stays_one():
    text = "The Transformer {cite}`vaswani2017attention` and\n{cite}`prince2023understanding`."
    once = citations.readable(text, "../")
    assert once.startswith(
        "The Transformer [[Vaswani et al., 2017]](../bibliography.md#vaswani2017attention) and\n[[Prin"
    )
    assert citations.readable(once, "../") == once
    old = "[[Somebody\nelse, 1999]](../bibliography.md#vaswani2017attention)"
    assert citations.readable(old, "../").startswith("[[Vaswani et al., 2017]]")


def test_what_the_bibliography_lacks_is_refused():
    for text in ("{cite}`nobody1999`", "[[Nobody, 1999]](../bibliography.md#nobody1999)"):
        with pytest.raises(ValueError, match="'nobody1999' is cited"):
            citations.readable(text, "../")


def test_the_book_gets_citations_of_sphinx_again():
    text = "The Transformer {cite}`vaswani2017attention` and\n{cite}`prince2023understanding`."
    notebook = json.dumps([line + "\n" for line in citations.readable(text, "../").split("\n")], indent=1)
    source = [notebook]
    extension._cite(None, "chapters/x", source)
    assert "".join(json.loads(source[0])) == text + "\n"
    source = [(ROOT / "bibliography.md").read_text(encoding="utf-8")]
    extension._cite(None, "bibliography", source)
    assert source[0].count("{bibliography}") == 1 and "Vaswani" not in source[0]
    assert extension.LINK.pattern == citations.LINK.pattern


def test_no_raw_citation_is_left_and_every_link_leads_somewhere():
    page = (ROOT / "bibliography.md").read_text(encoding="utf-8")
    texts = [(ROOT / "intro.md").read_text(encoding="utf-8")]
    texts += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "chapters").glob("*.ipynb"))]
    keys = [key for text in texts for key in re.findall(r"bibliography\.md#([\w-]+)", text)]
    assert [text[:80] for text in texts if "{cite}" in text] == [] and len(keys) > 50
    assert [key for key in keys if f'<a id="{key}">' not in page] == []
