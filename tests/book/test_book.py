"""The built book in a real browser: alive, self-contained, readable in both themes and without JavaScript."""

import functools
import json
import re
from datetime import date

import pytest
import torch
from browser_actions import SPOKEN, faults_of, set_range
from conftest import BOOK, ROOT

from tools import site

PAGES = sorted(
    [f"chapters/{path.stem}.html" for path in (ROOT / "chapters").glob("*.ipynb")]
    + [f"exercises/{path.stem}.html" for path in (ROOT / "exercises").glob("*.ipynb")]
    + [
        "intro.html",
        "measured.html",
        "playground.html",
        "your_progress.html",
        "real_model.html",
        "notation.html",
        "coverage.html",
        "api.html",
        "troubleshooting.html",
    ]
    + [
        "glossary.html",
        "book_index.html",
        "lecturers.html",
        "write_exercise.html",
        "bibliography.html",
        "accessibility.html",
        "licences.html",
    ]
)
PLANE = "chapters/01_queries_keys_values.html"
# thousands of words of code have a dozen colours: axe is shown each colour of a page once
UNWRAP_REPEATED_COLOURS = """() => {
  const seen = new Set();
  const look = (node) => {
    const style = getComputedStyle(node);
    return [style.color, style.backgroundColor, style.fontWeight, style.fontSize, style.opacity].join();
  };
  const repeated = [...document.querySelectorAll('div.highlight span')].filter((word) => {
    const colour = look(word) + look(word.closest('div.highlight'));
    return !word.innerText.trim() || seen.has(colour) || !seen.add(colour);
  });
  for (const word of repeated) word.replaceWith(...word.childNodes);
}"""


# what has no switch, the setup of exercises, is opened by hand
OPEN_FOLDS = "for (const fold of document.querySelectorAll('article details.fold')) fold.open = true"


@pytest.fixture
def open_page(open_page):
    """Folded parts are seen, too: in this file every reader has everything open."""
    return functools.partial(open_page, everything=True)


def weights(page):
    return [float(cell) for cell in page.locator("d2lmini-query-plane td.shade").all_inner_texts()]


def everything(page):
    """What is asked of a page, as one load of it takes seconds."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(OPEN_FOLDS)
    dollars = "$" in page.locator("article").inner_text()
    found = {
        "unset mathematics": dollars and page.locator("mjx-container").count() == 0,
        "alt": page.locator("article .cell_output :is(img, svg.plot)").evaluate_all(
            "nodes => nodes.map(n => n.alt ?? n.getAttribute('aria-label') ?? '')"
        ),
        "overflow": page.evaluate("document.documentElement.scrollWidth - window.innerWidth"),
        "cut": page.locator("article pre").evaluate_all(
            "all => all.filter((n) => n.scrollWidth > n.clientWidth + 1).length"
        ),
        "cut equations": page.locator("article mjx-container[display=true]").evaluate_all(
            "all => all.filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.closest('section').id)"
        ),
        "theme": page.evaluate("document.documentElement.dataset.theme"),
        "unseen": page.locator("article :is(details.fold:not([open]), .predict-answer[hidden])").count(),
        **{kind: list(seen) for kind, seen in page.log.items()},  # axe adds to it
    }
    page.evaluate(UNWRAP_REPEATED_COLOURS)
    # hundreds of entries of the API look alike: each day another tenth
    other = f"(node, i) => i % 10 !== {date.today().toordinal() % 10} && node.remove()"
    page.evaluate(f"document.querySelectorAll('section > dl.py').forEach({other})")
    asked = {"resultTypes": ["violations"]}
    if found["theme"] == "dark":  # what is read aloud is the same in both
        asked["runOnly"] = {"type": "rule", "values": ["color-contrast", "scrollable-region-focusable"]}
    rules = Axe().run(page, context="article", options=asked).response["violations"]
    severe = [rule for rule in rules if rule["impact"] in ("serious", "critical")]
    found["axe"] = [(rule["id"], node["html"][:120]) for rule in severe for node in rule["nodes"]]
    if found["theme"] == "light":
        found["axe"] += faults_of(page, *SPOKEN)
    page.set_viewport_size({"width": 320, "height": 900})  # 1280 pixels at 400 per cent
    found["overflow when enlarged"] = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return found


@pytest.fixture(params=["light", "dark"])
def seen(request, look_at):
    """A function from the name of a page to what `everything` found: on a wide light screen or on a dark phone."""
    width = {"light": 1280, "dark": 390}[request.param]

    def seen(name):
        found = look_at(name, everything, theme=request.param, width=width, everything=True)
        assert found["theme"] == request.param and found["unseen"] == 0
        return found

    return seen


def of_each_page(test):
    """A test of what one visit has `seen`, by turn."""
    return pytest.mark.by_turn("seen", "name")(pytest.mark.parametrize("name", PAGES)(test))


@of_each_page
def test_a_page_asks_only_its_own_host_and_logs_no_error(seen, book_url, name):
    outside = [u for u in seen(name)["requests"] if not u.startswith((book_url, "data:", "blob:"))]
    assert outside == [] and seen(name)["errors"] == [] and not seen(name)["unset mathematics"]


@of_each_page
def test_no_page_is_wider_than_the_screen(seen, name):
    assert seen(name)["overflow"] <= 0 and seen(name)["overflow when enlarged"] <= 0


@of_each_page
def test_no_line_of_code_is_cut_off(seen, name):
    assert seen(name)["cut"] == 0


@pytest.mark.parametrize("seen", ["light"], indirect=True)
@of_each_page
def test_no_equation_is_cut_off_on_a_wide_screen(seen, name):
    assert seen(name)["cut equations"] == []


# of each line of code: its text, and how far to the left each of its rows begins, in pixels
ROWS = """all => all.map((line) => {
  const words = [...line.querySelectorAll('span')].filter((word) => word.innerText.trim());
  const boxes = words.flatMap((word) => [...word.getClientRects()]);
  const starts = {};
  for (const box of boxes) starts[box.bottom] = Math.min(box.left, starts[box.bottom] ?? Infinity);
  return [line.textContent, Object.keys(starts).sort((a, b) => a - b).map((row) => starts[row])];
})"""


def test_a_long_line_of_code_goes_on_to_the_right_of_where_it_began(open_page, book_url):
    page = open_page(f"{book_url}/chapters/17_scaling.html")
    found = page.locator("article .cell_input pre .line").evaluate_all(ROWS)
    wrapped = [(text, rows) for text, rows in found if len(rows) > 1]
    assert wrapped and [text for text, (first, *others) in wrapped if min(others) < first + 20] == []


def test_the_code_that_is_copied_is_the_code_of_the_cell(open_page, book_url):
    page = open_page(f"{book_url}/chapters/17_scaling.html")
    shown = page.locator("article .cell_input pre").evaluate_all("all => all.map((node) => node.textContent.trim())")
    cells = json.loads((ROOT / "chapters" / "17_scaling.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert shown == [re.sub(r"^# @title .*\n", "", source).strip() for source in sources]  # the title is the fold's


@of_each_page
def test_every_picture_has_a_text(seen, name):
    assert [alt for alt in seen(name)["alt"] if len(alt) < 20 or re.search(r"\.(png|svg)$", alt)] == []


@of_each_page
def test_axe_finds_nothing_serious_in_the_text(seen, name):
    assert seen(name)["axe"] == []


@pytest.mark.parametrize("where", ["http", "file"])
def test_a_slider_changes_the_numbers(open_page, book_url, where):
    base = book_url if where == "http" else BOOK.as_uri()
    page = open_page(f"{base}/{PLANE}")
    page.wait_for_selector("d2lmini-query-plane[data-ready=yes]")
    before = weights(page)
    assert sum(before) == pytest.approx(1, abs=0.002)
    set_range(page, "temperature", -1.7)  # the slider walks powers of ten: 0.02
    assert max(weights(page)) > 0.99 > max(before)
    set_range(page, "temperature", 1.3)
    assert max(weights(page)) - min(weights(page)) < 0.06


def test_the_page_computes_what_the_package_computes(open_page, book_url):
    from d2lmini.figures import QueryPlane

    page = open_page(f"{book_url}/{PLANE}")
    page.wait_for_selector("d2lmini-query-plane[data-ready=yes]")
    state = page.evaluate("JSON.parse(document.querySelector('d2lmini-query-plane').dataset.state)")
    state["keys"] = state.pop("key_points")
    for score in ("dot", "distance"):
        page.get_by_role("combobox", name="score").select_option(score)
        expected = QueryPlane(**{**state, "score": score})
        assert weights(page) == pytest.approx(expected.weights.tolist(), abs=6e-4)


def test_the_width_slider_trades_the_two_errors(open_page, book_url):
    page = open_page(f"{book_url}/chapters/02_attention_pooling.html")
    figure = page.locator("d2lmini-kernel-pooling[data-ready=yes]")

    def errors():
        rows = figure.locator("tr").all_inner_texts()
        return [float(row.split()[-1]) for row in rows if "error" in row or "leaving" in row]

    slider = figure.get_by_role("slider", name="width")
    for bound, better in (("min", lambda now, then: now[0] < then[0]), ("max", lambda now, then: now[0] > then[0])):
        before = errors()
        set_range(figure, "width", slider.get_attribute(bound))
        assert better(errors(), before) and errors()[1] > 0


def test_the_score_matrix_shows_the_weights_of_the_package(open_page, book_url):
    from d2lmini.scoring import masked_softmax

    page = open_page(f"{book_url}/chapters/03_attention_scoring.html")
    figure = page.locator("d2lmini-score-matrix[data-ready=yes]")
    figure.get_by_label("causal mask").check()
    cells = figure.locator("tbody td").all_inner_texts()
    first = [float(cell or 0) for cell in cells[:6]]
    expected = masked_softmax(torch.zeros(1, 1, 6), torch.tensor([1]))
    assert first == pytest.approx(expected[0, 0].tolist(), abs=0.01)


def test_a_query_moves_by_keyboard_and_by_pointer(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}")
    query = page.locator("d2lmini-query-plane").get_by_role("button", name=re.compile("query"))
    query.scroll_into_view_if_needed()
    before = weights(page)
    query.press("ArrowLeft")
    after = weights(page)
    assert after != before
    box = query.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + 40)
    page.mouse.up()
    assert weights(page) != after


def test_without_javascript_the_figure_is_a_table(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}", java_script_enabled=False)
    table = page.locator("d2lmini-query-plane table")
    assert table.is_visible() and "the output is" in table.inner_text()


def test_dark_mode_leaves_no_white_box_behind_a_figure(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}", theme="dark")
    page.wait_for_selector("d2lmini-query-plane[data-ready=yes]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    box = page.locator(".text_html", has=page.locator("d2lmini-query-plane"))
    assert box.evaluate("node => getComputedStyle(node).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_the_icons_show_without_the_script_of_all_icons(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}")
    assert not any("fontawesome.js" in url for url in page.log["requests"])
    page.evaluate("document.fonts.ready")
    icons = page.locator("i.fas:visible, i.fab:visible, i.fa-solid:visible")
    glyphs = icons.evaluate_all("all => all.map((node) => getComputedStyle(node, '::before').content)")
    assert len(glyphs) >= 5 and "none" not in glyphs
    assert page.evaluate("document.fonts.check('900 1em \"Font Awesome 6 Free\"', '\\uf135')")


def test_what_asks_to_predict_stands_in_a_box(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}")
    boxes = page.locator("p.predict")
    assert boxes.count() >= 3
    assert all(text.startswith(("Predict", "Before you touch")) for text in boxes.all_inner_texts())
    assert boxes.first.evaluate("node => getComputedStyle(node).borderLeftWidth") == "4px"


def test_a_citation_leads_to_the_bibliography(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}")
    page.get_by_role("link", name="Zhang et al., 2023a").first.click()
    page.wait_for_url("**/bibliography.html#*")
    assert "Dive into Deep Learning" in page.locator(":target").inner_text()


def test_search_finds_a_chapter(open_page, book_url):
    page = open_page(f"{book_url}/search.html?q=hypernetwork")
    page.wait_for_selector(".book-search a")
    assert any("01_queries" in a.get_attribute("href") for a in page.locator(".book-search a").all())


def test_colab_opens_the_notebook(open_page, book_url):
    page = open_page(f"{book_url}/{PLANE}")
    links = page.locator("a[href*='colab.research.google.com']").evaluate_all("nodes => nodes.map(n => n.href)")
    assert site.colab("chapters/01_queries_keys_values.ipynb") in links


def test_the_pages_are_those_of_the_table_of_contents():
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert sorted(f"{site.served(name)}.html" for name in re.findall(r"(?:file|root): (\S+)", toc)) == PAGES
