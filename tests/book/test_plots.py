"""Plots in the page: what becomes of a file of matplotlib, which drawing gets the caption, and what the book shows."""

import io
import re
from xml.etree import ElementTree

import matplotlib
import pytest
from conftest import BOOK, ROOT, sphinx_extension
from docutils import nodes
from docutils.utils import new_document

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from d2lmini.plot_style import PALETTE
from d2lmini.plotting import plot, show_heatmaps

plots = sphinx_extension("plots")
CSS = (ROOT / "tools" / "sphinx_ext" / "static" / "plots.css").read_text(encoding="utf-8")
CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("*.ipynb"))
ALT = "Two curves, of which one rises & the other falls."


pytestmark = pytest.mark.usefixtures("book_plots")


def saved():
    stream = io.BytesIO()
    plt.savefig(stream, format="svg")
    return stream.getvalue()


def curves():
    plot([1, 10, 100], [[1, 2, 3], [3, 2, 1]], "step", "loss", legend=["$x_i$ rises", "falls"], xscale="log")
    plt.plot([1, 10], [1, 1], "ko", markeredgecolor="white")
    return saved()


def test_a_plot_has_no_card_and_its_black_and_white_follow_the_theme():
    before, element = curves().decode(), plots.inline(curves(), "a-", ALT)
    assert before.count("fill: #ffffff") >= 2 and "stroke: #000000" in before
    assert "#ffffff" not in element and "#000000" not in element
    assert "fill: var(--plot-paper)" not in element  # no background is left
    assert "stroke: var(--plot-paper)" in element and "stroke: currentColor" in element
    assert ElementTree.fromstring(element).get("fill") == "currentColor"


def test_colours_of_curves_are_variables_that_each_theme_sets():
    element = plots.inline(curves(), "a-", ALT)
    assert "stroke: var(--curve-1)" in element and "fill: var(--curve-2)" in element
    assert not any(colour in element for colour in PALETTE)
    light, dark = (re.search(rf"{rule} {{(.*?)}}", CSS, re.S)[1] for rule in ("html", r'html\[data-theme="dark"\]'))
    names = {value for value in plots.COLOURS.values() if value.startswith("var(--curve")}
    assert len(names) == len(PALETTE)
    assert all(f"{name[4:-1]}: #" in rule for name in names for rule in (light, dark))


def test_curves_have_the_contrast_of_text_in_both_themes():
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)) + 0.05

    colours = re.findall(r"--curve-\d: (#\w{6})", CSS)
    light, dark = colours[: len(PALETTE)], colours[len(PALETTE) : 2 * len(PALETTE)]
    assert [c for c in light if luminance("#ffffff") / luminance(c) < 4.5] == []
    assert [c for c in dark if luminance(c) / luminance("#14181e") < 4.5] == []


def test_several_plots_share_a_page():
    elements = [ElementTree.fromstring(plots.inline(curves(), prefix, ALT)) for prefix in ("a-", "b-")]
    ids = [{node.get("id") for node in element.iter() if node.get("id")} for element in elements]
    assert ids[0] and not ids[0] & ids[1] and all(name.startswith("a-") for name in ids[0])
    text = ElementTree.tostring(elements[0], encoding="unicode")
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert {name for pair in used for name in pair if name} == ids[0]
    assert "<style" not in text  # it would be for the whole page


def test_a_plot_says_what_there_is_to_see_and_is_text_in_the_font_of_the_page():
    root = ElementTree.fromstring(plots.inline(curves(), "a-", ALT))
    assert (root.get("role"), root.get("aria-label"), root.get("class")) == ("img", ALT, "plot")
    assert "width" not in root.attrib and "--width: 720px" in root.get("style")
    text = ElementTree.tostring(root, encoding="unicode")
    assert "DejaVu" not in text and "font-size" in text and ">falls<" in text and ">loss<" in text


def test_maps_and_pictures_keep_their_colours():
    show_heatmaps([[[[0.0, 1.0], [1.0, 0.0]]]], "keys", "queries")
    svg = saved()
    assert svg.count(b"data:image/png") >= 1
    assert plots.inline(svg, "a-", ALT).count("data:image/png") == svg.count(b"data:image/png")
    plt.close("all")
    plt.pcolormesh([[0, 1], [1, 0]], cmap="gray")
    before, after = saved().decode(), plots.inline(saved(), "a-", ALT)
    assert "QuadMesh" in before and after.count("fill: #ffffff") == 2
    assert after.count("fill: #000000") == 2


def test_a_mark_on_a_picture_stays_white_and_its_frame_follows_the_theme():
    plt.imshow([[0, 1], [1, 0]])
    plt.plot([0], [0], "wo")
    plt.title("a title")
    element = plots.inline(saved(), "a-", ALT)
    assert "fill: #ffffff" in element and "plot-paper" not in element and ">a title<" in element
    assert element.count("stroke: currentColor") > 4


def document(*cells):
    """A page of myst-nb: of each cell the outputs, each a list of its forms, and whether it has a caption."""
    page = new_document("page")
    for outputs in cells:
        output = nodes.container(nb_element="cell_code_output")
        for forms in outputs:
            bundle = nodes.container(
                "", *[nodes.container("", nodes.raw("", text), mime_type=kind) for kind, text in forms]
            )
            output += nodes.figure("", bundle, nodes.caption("", "What to see."))
        page += nodes.container("", output, nb_element="cell_code")
    return page


def test_the_last_drawing_of_a_cell_has_the_caption_and_no_table_has(caplog):
    plain, table = ("text/plain", "x"), ("text/html", '<table class="table d2lmini-table">')
    svg, figure = ("image/svg+xml", "<svg>"), ("text/html", "<d2lmini-plane>")
    page = document([[plain], [svg, plain], [svg]], [[table], [figure, plain], [("text/markdown", "*a*")]], [[table]])
    transform = plots.OneCaption(page)
    transform.apply()
    outputs = plots.outputs(page)
    assert [[type(node).__name__ for node in output] for output in outputs] == [
        ["container", "container", "figure"],
        ["container", "figure", "container"],
        ["container"],
    ]
    assert [figure["ids"] for figure in page.findall(nodes.figure)] == [["figure-1"], ["figure-2"]]


def page_of(name):
    path = BOOK / "chapters" / f"{name}.html"
    if not path.exists():
        pytest.skip("the book is not built (make book)")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_plot_is_a_picture_that_cannot_follow_the_theme(name):
    page = page_of(name)
    assert re.findall(r'<img [^>]*src="[^"]*_images/[^"]*\.svg"', page) == []
    ids = re.findall(r'\sid="(plot[^"]*)"', page)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_have_the_number_of_their_chapter_and_run_on(name):
    numbers = re.findall(r'<span class="caption-number">Figure (\d+)\.(\d+) </span>', page_of(name))
    assert numbers == [(str(int(name[:2])), str(i)) for i in range(1, len(numbers) + 1)]


# of each plot: how far its texts reach over its frame, and which of them cover another, in pixels of the screen
TEXTS = """all => all.map((svg) => {
  const frame = svg.getBoundingClientRect();
  const turn = (text) => Math.abs(/rotate\\((\\S+)/.exec(text.getAttribute('transform'))?.[1] ?? 0);
  const slanted = (text) => ![0, 90].includes(turn(text));  // the box of such a text is larger than the text
  const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent.trim() && !slanted(text));
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const beyond = (b) => [frame.left - b.left, b.right - frame.right, b.bottom - frame.bottom];
  const over = Math.max(0, ...boxes.flatMap(beyond));
  const covered = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, k) => {
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 2 && y > 5) covered.push([texts[i].textContent, texts[i + 1 + k].textContent]);
  }));
  return [svg.getAttribute('aria-label').slice(0, 40), over, covered];
})"""


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_text_of_a_plot_covers_another_or_is_cut(open_page, book_url, name):
    page = open_page(f"{book_url}/chapters/{name}.html")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    found = page.locator("article svg.plot").evaluate_all(TEXTS)
    assert [(label, over) for label, over, _ in found if over > 3] == []
    assert [(label, covered) for label, _, covered in found if covered] == []


def test_a_plot_changes_with_the_theme(open_page, book_url):
    def look(theme):
        page = open_page(f"{book_url}/chapters/02_attention_pooling.html", theme=theme)
        plot = page.locator("article svg.plot").first
        colour = "node => getComputedStyle(node).color"
        return plot.evaluate(colour), page.locator("article p").first.evaluate(colour)

    light, dark = look("light"), look("dark")
    assert light[0] == light[1] != dark[0] == dark[1]
