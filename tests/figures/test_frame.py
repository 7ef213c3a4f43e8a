"""What every figure inherits, in a browser: on a phone and on a wide screen, in the light and in a dark theme."""

import re

import pytest
from examples import EXAMPLES

import d2lmini.figures as figures

GROUPS = "svg, .d2lmini-maps, tbody"  # of things among which the focus moves by keys
FOUND = """(frame) => {
  const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width;
  const say = (node) => node.outerHTML.slice(0, 90);
  const box = frame.getBoundingClientRect(), small = [], cut = [], narrow = [];
  const texts = [...frame.querySelectorAll('*')].filter((node) => seen(node)
    && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  for (const node of texts) {
    const scale = node.getScreenCTM ? node.getScreenCTM().a : 1;
    const size = parseFloat(getComputedStyle(node).fontSize) * scale;
    if (size < 11) small.push([size, say(node)]);
    const within = (node.closest('svg') ?? frame).getBoundingClientRect(), own = node.getBoundingClientRect();
    const scrolls = node.closest('.d2lmini-scroll') && !node.closest('svg');
    if (!scrolls && (own.left < within.left - 1 || own.right > within.right + 1 || own.top < within.top - 1
      || own.bottom > within.bottom + 1)) cut.push(say(node));
  }
  for (const node of frame.querySelectorAll('svg, .d2lmini-control, button, figure, table')) {
    const own = node.getBoundingClientRect();
    if (seen(node) && !node.closest('.d2lmini-scroll') && own.right > box.right) cut.push(say(node));
  }
  for (const node of frame.querySelectorAll('button, select, input, [role=button]')) {
    const touched = (node.type === 'checkbox' ? node.closest('label') : node).getBoundingClientRect();
    const size = Math.min(touched.width, touched.height);
    if (seen(node) && size < 23.9) narrow.push([size, say(node)]);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  const captions = [...frame.querySelectorAll('figcaption, caption')];
  const bold = captions.filter((node) => getComputedStyle(node).fontWeight > 400);
  return { small, cut, narrow, wide, bold: bold.length };
}"""
LOOK = """(frame) => [frame.innerHTML.replace(/d2lmini-(hatch|token)-\\w+/g, ''),
  ...[...frame.querySelectorAll('input, select')].map((node) => [node.value, node.checked])]"""


IDLE = "!document.querySelector('.d2lmini-load, [aria-busy=true]')"  # a live model is there, and has answered
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"  # observers had their turn


def frame_of(open_page, tmp_path, name, **options):
    """Shows a figure in a page of its own, as wide as the column of the book."""
    path = tmp_path / "figure.html"
    shown = EXAMPLES[name]()._repr_html_()
    path.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin: 16px">{shown}')
    page = open_page(path.as_uri(), **options)
    page.wait_for_selector("[data-ready=yes]")
    loads = page.get_by_role("button", name=re.compile("^Load "))
    while loads.count():  # one model may offer another
        load = loads.first.element_handle()
        load.click()
        page.wait_for_function("node => !node.isConnected", arg=load)
    page.wait_for_function(IDLE)
    page.evaluate(SETTLED)
    return page, page.locator(".d2lmini-figure")


def test_there_is_an_example_of_every_figure():
    assert sorted(EXAMPLES) == sorted(figures.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_small_or_cut_or_hard_to_touch(open_page, tmp_path, name, width):
    _, frame = frame_of(open_page, tmp_path, name, width=width)
    found = frame.evaluate(FOUND)
    assert found == {"small": [], "cut": [], "narrow": [], "wide": 0, "bold": 0}
    assert frame.locator(".d2lmini-title").inner_text() == getattr(figures, name).title
    assert frame.locator(".d2lmini-hint").inner_text() == getattr(figures, name).hint


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith("Live")])  # these: with a model
def test_reset_brings_back_the_first_state(open_page, tmp_path, name):
    page, frame = frame_of(open_page, tmp_path, name)
    before = frame.evaluate(LOOK)
    for node in frame.locator("select").all():
        node.select_option(index=1) if node.is_visible() and node.locator("option").count() > 1 else None
    for node in frame.locator("input[type=range]").all():
        node.press("ArrowLeft") if node.is_visible() else None
    for node in frame.locator("input[type=checkbox]").all():
        node.click() if node.is_visible() else None
    for node in frame.locator(".d2lmini-handle, .d2lmini-maps button").all()[-2:]:
        node.press("Enter")
        node.press("ArrowUp")
    assert frame.evaluate(LOOK) != before
    frame.get_by_role("button", name="Reset").click()
    page.mouse.move(1, 1)
    page.wait_for_function(IDLE)
    page.evaluate(SETTLED)
    assert frame.evaluate(LOOK) == before
    assert frame.get_by_role("button", name="Reset").evaluate("node => node === document.activeElement")
    assert page.log["errors"] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_keys_stay_in_the_figure(open_page, tmp_path, name):
    page, frame = frame_of(open_page, tmp_path, name)
    page.evaluate("window.heard = []; document.addEventListener('keydown', (event) => heard.push(event.key))")
    for node in frame.locator("button:visible, select:visible, input:visible, svg [tabindex='0']").element_handles():
        if not node.is_visible():  # a key before has taken it away
            continue
        node.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("j")
    assert page.evaluate("heard") == []
    page.keyboard.press("Control+s")
    assert page.evaluate("heard") == ["Control", "s"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_tab_stops_once_in_a_group_and_keys_move_inside(open_page, tmp_path, name):
    page, frame = frame_of(open_page, tmp_path, name)
    focusable = "all => all.filter((node) => node.tabIndex >= 0).length"
    for group in frame.locator(GROUPS).all():
        stops = group.locator("button, [role=button]")
        if stops.count() < 2:
            continue
        inside = stops.evaluate_all(focusable)
        assert inside == 1, group.evaluate("node => node.outerHTML.slice(0, 200)")
        start = stops.evaluate_all(
            "all => { const first = all.find((node) => node.tabIndex >= 0); first.focus(); return all.indexOf(first); }"
        )
        reached = set()
        for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "PageDown"):
            page.keyboard.press(key)
            reached.add(stops.evaluate_all("all => all.indexOf(document.activeElement)"))
        assert reached - {start} and -1 not in reached
        assert stops.evaluate_all(focusable) == 1


@pytest.mark.parametrize("theme", ["html data-theme=dark", "body data-jp-theme-light=false", "html theme=dark"])
def test_the_dark_themes_of_the_book_of_jupyterlab_and_of_colab(open_page, tmp_path, theme):
    page, frame = frame_of(open_page, tmp_path, "QueryPlane")
    colour = "node => [getComputedStyle(node).getPropertyValue('--blue'), getComputedStyle(node).colorScheme]"
    assert frame.evaluate(colour) == ["#1f77b4", "normal"]
    node, name, value = re.split("[ =]", theme)
    page.evaluate(f"document.querySelector('{node}').setAttribute('{name}', '{value}')")
    assert frame.evaluate(colour) == ["#57a5dd", "dark"]


def test_a_figure_is_alive_before_the_rest_of_the_page_is_there(open_page, tmp_path):
    path = tmp_path / "figure.html"
    seen = "<script>window.early = document.querySelector('[data-ready=yes]') !== null</script>"
    path.write_text(f"<!doctype html>{EXAMPLES['QueryPlane']()._repr_html_()}{seen}")
    assert open_page(path.as_uri()).evaluate("early")
