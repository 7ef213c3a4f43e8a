"""Citations: readable in a notebook, and Sphinx's own in the book."""

import html
import importlib.util
import json
import re

import pytest
from conftest import BOOK, ROOT

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


def test_no_two_works_have_one_label():
    keys = list(citations._entries())
    labels = [citations.label(key) for key in keys]
    assert len(set(labels)) == len(keys) > 100
    assert {label for label in labels if label.startswith("Wei et al., 2022")} == {
        f"Wei et al., 2022{letter}" for letter in "abc"
    }


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_citation_links_to_the_bibliography(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    bare = re.compile(r"\[\[[^\[\]]+\]\](?!\(\.\./pages/bibliography\.md#)")
    assert not [found for text in texts for found in bare.findall(text)]


def test_letters_are_in_the_order_of_the_bibliography():
    listed = list(extension._AuthorYear().format_entries(citations._entries().values()))
    lettered = [entry.label for entry in listed if re.search(r"\d[a-z]$", entry.label)]
    for whose in {label[:-1] for label in lettered}:
        group = [label for label in lettered if label[:-1] == whose]
        assert len(group) > 1 and group == [whose + letter for letter in "abcdefgh"[: len(group)]]
    assert len(lettered) >= 16
    # the year in the text of the entry has the letter, too
    (zhang,) = [entry for entry in listed if entry.label == "Zhang et al., 2023a"]
    assert "2023a" in str(zhang.text)


# of a citation in the list of the book: its id, its label, its text
LISTED = re.compile(
    r'<div class="citation" id="([^"]+)"[^>]*>\s*<span class="label"><span class="fn-bracket">\[</span>(.*?)'
    r'<span class="fn-bracket">\]</span></span>\s*(.*?)</div>',
    re.S,
)


def words(text):
    return " ".join(re.findall(r"\w+", html.unescape(re.sub(r"<.*?>", "", text)).lower()))


def test_labels_of_the_book_are_those_of_the_notebooks(book_url):
    """Sphinx writes the same label, letter by letter, in the list and where the work is cited."""
    page = (BOOK / "bibliography.html").read_text(encoding="utf-8")
    listed = {name: (html.unescape(label), text) for name, label, text in LISTED.findall(page)}
    title_of = {citations.label(key): entry.fields["title"] for key, entry in citations._entries().items()}
    assert len(listed) > 100
    for label, text in listed.values():
        assert "\\" in title_of[label] or words(title_of[label].replace("{", "").replace("}", "")) in words(text), label
    cited = 0
    for path in [BOOK / "intro.html", *sorted((BOOK / "chapters").glob("*.html"))]:
        found = re.findall(r'bibliography\.html#(id\d+)"[^>]*>(.*?)</a>', path.read_text(encoding="utf-8"))
        for name, label in found:
            assert html.unescape(re.sub(r"<.*?>", "", label)) == listed[name][0], path.name
            cited += 1
    assert cited > 100


def test_a_citation_becomes_a_link_and_stays_one():
    text = "The Transformer {cite}`vaswani2017attention` and\n{cite}`prince2023understanding`."
    once = citations.readable(text, "../pages/")
    assert once.startswith(
        "The Transformer [[Vaswani et al., 2017]](../pages/bibliography.md#vaswani2017attention) and\n[[Prin"
    )
    assert citations.readable(once, "../pages/") == once
    old = "[[Somebody\nelse, 1999]](../bibliography.md#vaswani2017attention)"
    assert citations.readable(old, "../pages/").startswith("[[Vaswani et al., 2017]]")


def test_what_the_bibliography_lacks_is_refused():
    for text in ("{cite}`nobody1999`", "[[Nobody, 1999]](../bibliography.md#nobody1999)"):
        with pytest.raises(ValueError, match="'nobody1999' is cited"):
            citations.readable(text, "../pages/")


def test_the_book_gets_citations_of_sphinx_again():
    text = "The Transformer {cite}`vaswani2017attention` and\n{cite}`prince2023understanding`."
    notebook = json.dumps([line + "\n" for line in citations.readable(text, "../pages/").split("\n")], indent=1)
    source = [notebook]
    extension._cite(None, "chapters/x", source)
    assert "".join(json.loads(source[0])) == text + "\n"
    assert extension.LINK.pattern == citations.LINK.pattern


def test_the_bibliography_is_no_list_without_items():
    body = '<div role="list" class="list"><div class="citation" id="id3" role="doc-biblioentry">Works</div></div>'
    for page, left in (("pages/bibliography", 0), ("other", 2)):
        context = {"body": body}
        extension._plain(None, page, "page.html", context, None)
        assert context["body"].count("role=") == left and "Works" in context["body"]


def test_no_raw_citation_is_left_and_every_link_leads_somewhere():
    texts = [(ROOT / "intro.md").read_text(encoding="utf-8")]
    texts += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "chapters").glob("*.ipynb"))]
    keys = [key for text in texts for key in re.findall(r"pages/bibliography\.md#([\w-]+)", text)]
    assert [text[:80] for text in texts if "{cite}" in text] == [] and len(keys) > 50
    assert [key for key in keys if key not in citations._entries()] == []
