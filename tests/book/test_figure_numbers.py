"""Everything that a chapter shows has a number, and the text points at it."""

import re
from types import SimpleNamespace

import pytest
from conftest import BOOK, ROOT, sphinx_extension
from docutils import nodes
from docutils.utils import new_document

from d2lmini.figures import QueryPlane, diagrams
from d2lmini.show import Table

figure_numbers = sphinx_extension("figure_numbers")
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))


def page(*outputs, source="diagrams.encoder_block()", docname="chapters/07_one", links=()):
    """A document of one cell with these outputs and a text with links, as myst leaves it. Read by the transform."""
    document = new_document("page")
    document.settings.env = SimpleNamespace(docname=docname)
    cell = nodes.container("", nodes.literal_block("", source))
    output = nodes.container("", nb_element="cell_code_output")
    for html in outputs:
        output += nodes.container("", nodes.raw("", html, format="html"), mime_type="text/html")
    cell += output
    document += cell
    document += nodes.paragraph(
        "", "", *[nodes.reference("", "the figure", refuri=f"#{n}", id_link=True) for n in links]
    )
    transform = figure_numbers.Numbers(document)
    transform.apply()
    return document


def test_a_diagram_is_a_figure_with_its_caption_and_the_name_of_its_function():
    document = page(diagrams.encoder_block()._repr_html_())
    (figure,) = document.findall(nodes.figure)
    assert figure["ids"] == ["fig-encoder-block"]
    assert figure.children[-1].astext() == diagrams.encoder_block().caption
    assert "<figcaption>" not in figure.astext() and "<svg" in figure.astext()


def test_a_live_figure_says_what_it_is_and_a_second_one_has_no_second_name():
    html = QueryPlane([0.9, 0.6], [[1.0, 0.0]], [[1.0, 1.0]])._repr_html_()
    first, second = page(html, html, source="").findall(nodes.figure)
    assert first["ids"] == ["fig-query-plane"] and second["ids"] == []
    assert re.search(r"query among 1 key", first.children[-1].astext())


def test_tables_with_a_caption_run_on():
    tables = [Table([[1]], ["a"], caption)._repr_html_() for caption in ("Who & what", None, "And `more`")]
    raws = list(page(*tables, source="").findall(nodes.raw))
    assert [re.findall(r">(Table [\d.]+) <", raw.astext()) for raw in raws] == [["Table 7.1"], [], ["Table 7.2"]]
    assert [raw.parent["ids"] for raw in raws] == [["tab-who-what"], [], ["tab-and-more"]]


def test_pages_that_are_no_chapters_stay_as_they_are():
    assert list(page(diagrams.encoder_block()._repr_html_(), docname="measured").findall(nodes.figure)) == []


def test_a_link_finds_its_figure_and_another_is_left_for_the_warning_of_myst():
    document = page(diagrams.encoder_block()._repr_html_(), links=["fig-encoder-block", "fig-decoder-block"])
    found, lost = document.findall(nodes.reference)
    assert found["refid"] == "fig-encoder-block" and "id_link" not in found
    assert lost["refuri"] == "#fig-decoder-block" and lost["id_link"]


def test_an_equation_with_a_name_is_counted_and_others_are_not(caplog):
    document = page()
    for name in ("eq-cube", None, "eq-lost"):
        if name:
            tags = [nodes.raw("", tag, format="html") for tag in (f'<a id="{name}">', "</a>")]
            document += nodes.paragraph("", "", *tags)
        if name != "eq-lost":
            document += nodes.math_block("", "y = x^3", number=None)
    figure_numbers.Numbers(document).apply()
    first, second = document.findall(nodes.math_block)
    assert first["ids"] == ["eq-cube"] and first["number"] and second["ids"] == [] and not second["number"]
    assert "no equation follows the name eq-lost" in caplog.text


def test_a_built_equation_has_the_number_that_points_at_it(exercise_book):
    html = (exercise_book / "chapters" / "03_attention_scoring.html").read_text(encoding="utf-8")
    (number,) = re.findall(r'<span class="eqno">\((\d+\.\d+)\)<a class="headerlink" href="#eq-attention"', html)
    assert f'href="#eq-attention"><span>Equation {number}</span>' in html
    without = re.search(r"<noscript>(.*?)<math", html[html.index('id="eq-attention"') :], re.S)
    assert without[1] == f'<span class="eqno">({number})</span>'


@pytest.mark.parametrize("name", CHAPTERS)
def test_all_figures_of_a_chapter_have_a_number_and_what_points_has_it_too(name):
    path = BOOK / "chapters" / f"{name}.html"
    if not path.exists():
        pytest.skip("the book is not built (make book)")
    html = path.read_text(encoding="utf-8")
    numbers = re.findall(r'<span class="caption-number">Figure (\d+)\.(\d+) </span>', html)
    assert [int(part) for _, part in numbers] == list(range(1, len(numbers) + 1))
    drawn = re.findall(r'<figure class="d2lmini-diagram|<d2lmini-[a-z0-9-]+ role="group"', html)
    assert drawn and len(drawn) < len(numbers)  # with the plots that have a caption
    assert len(re.findall(r'<figure class="align-default" id="', html)) == len(numbers)
    points = re.findall(r'href="#((?:fig|tab|eq)-[^"]+)"><span>(\w+) (\d+)\.\d+</span>', html)
    source = (ROOT / "chapters" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert [target for target, *_ in points] == re.findall(r"\]\(#((?:fig|tab|eq)-[a-z0-9-]+)\)", source)
    assert all(int(number) == int(name[:2]) and f'id="{target}"' in html for target, _, number in points)
