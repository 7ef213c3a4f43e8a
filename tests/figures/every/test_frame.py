"""What every figure inherits, in a browser: on a phone and on a wide screen, in the light and in a dark theme."""

import io
import re

import matplotlib.pyplot as plt
import pytest
import torch
from browser_actions import SPOKEN, faults_of
from examples import EXAMPLES
from framed import IDLE, SETTLED, frame_of
from painted import stroke_of_a_finger

import d2lmini.figures as figures

from .conftest import LOOK

pytestmark = pytest.mark.by_turn("name")  # all that is asked of a figure
GROUPS = "svg, .d2lmini-maps, tbody"  # of things among which the focus moves by keys
WHERE = """(node) => { // a point near its middle where a finger hits it; some are painted in their upper half alone
  node.scrollIntoView({ block: "center" });
  window.heard = [];
  const { left, top, width, height } = node.getBoundingClientRect();
  const tenths = [4, 5, 6, 3, 7, 2, 8, 1, 9].map((i) => i / 10);
  const points = tenths.flatMap((x) => tenths.map((y) => [left + x * width, top + y * height]));
  return points.find((at) => node.contains(document.elementFromPoint(...at)));
}"""


def test_there_is_an_example_of_every_figure():
    assert sorted(EXAMPLES) == sorted(figures.__all__)


def test_what_to_do_is_said_for_a_mouse_and_for_a_finger(wide, phone, name):
    hint, finger = getattr(figures, name).hint, phone.frame
    assert wide.frame.locator(".d2lmini-hint").inner_text() == hint
    said = finger.locator(".d2lmini-hint").inner_text()
    assert not re.search(r"(?i)\b(click|point(ed)? at|keyboard|keys|mouse)\b", said), said
    assert said[:9] == hint[:9] or re.search("(?i)point at|click", hint)
    assert said.endswith((".", "?"))
    assert not re.search(r"(?i)\b(click|pointed? at)\b", finger.inner_text())


def test_what_a_finger_holds_follows_it_up_and_down(phone):
    page, frame = phone.page, phone.frame
    page.evaluate("document.body.style.padding = '3000px 0'")
    nodes = page.evaluate_handle("[...pressed].filter((node) => node.isConnected && node.checkVisibility())")
    held = 0
    for node in nodes.get_properties().values():
        say = node.evaluate("node => node.outerHTML.slice(0, 90)")
        x, y = node.evaluate(WHERE)
        page.evaluate(SETTLED)
        at = page.evaluate("scrollY")
        stroke_of_a_finger(page, [(x, y + 10 * move) for move in range(7)])
        heard = page.evaluate("heard")
        if "held" in heard:  # else it is pointed at, and the page scrolls
            held += 1
            assert heard == ["held", *["pointermove"] * 6] and page.evaluate("scrollY") == at, say
    assert held >= frame.locator(".d2lmini-handle:visible, [role=application]:visible").count()


def test_what_is_seen_on_a_button_is_in_its_name_and_no_header_is_empty(wide):
    assert faults_of(wide.page, *SPOKEN[:2]) == []


def test_two_of_a_kind_on_a_page_share_no_id(open_page, tmp_path, name):
    page, frames = frame_of(open_page, tmp_path, name, load=False, times=2)
    assert frames.count() == 2
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
    assert len(set(ids)) == len(ids)
    assert page.locator("[data-ready=yes]").count() == 2 and page.log["errors"] == []
    if name.startswith("Live"):
        return
    first, second = (frames.nth(i) for i in range(2))
    inputs = second.locator("input[type=range]:visible, select:visible")
    before = first.evaluate(LOOK)
    if inputs.count():  # each lives by itself
        inputs.first.press("ArrowRight")
        assert first.evaluate(LOOK) == before


def test_home_and_end_stay_in_the_figure(wide):
    page, frame = wide.page, wide.frame
    page.evaluate("document.body.style.padding = '3000px 0'")
    reachable = "button:visible, summary:visible, svg [tabindex='0'], [tabindex='0']:visible"
    for node in frame.locator(reachable).element_handles():
        if not node.is_visible():
            continue
        node.focus()
        at = page.evaluate("scrollY")
        for key in ("End", "Home"):
            page.keyboard.press(key)
            page.evaluate(SETTLED)
            assert abs(page.evaluate("scrollY") - at) < 900, node.evaluate("node => node.outerHTML.slice(0, 90)")


def test_home_and_end_go_to_the_first_and_the_last_of_a_group(open_page, tmp_path):
    page, frame = frame_of(open_page, tmp_path, "ScoreMatrix")
    names = frame.locator("tbody th button")
    names.nth(2).focus()
    for key, at in (("End", names.count() - 1), ("Home", 0)):
        page.keyboard.press(key)
        assert names.nth(at).evaluate("node => node === document.activeElement")


def test_reset_brings_back_the_first_state(wide, name):
    if name.startswith("Live"):
        return  # their own tests say what a model answers again
    page, frame, before = wide.page, wide.frame, wide.first
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


def test_keys_stay_in_the_figure(wide):
    page, frame = wide.page, wide.frame
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


def test_tab_stops_once_in_a_group_and_keys_move_inside(wide):
    page, frame = wide.page, wide.frame
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


SHADED = """(frame) => [...frame.querySelectorAll("*")].map((node) => {
  const { backgroundColor, boxShadow, borderTopColor } = getComputedStyle(node);
  return [node.outerHTML.slice(0, 90), backgroundColor, boxShadow, borderTopColor === "rgba(0, 0, 0, 0)"];
}).filter(([_, background, shadow]) => background !== "rgba(0, 0, 0, 0)" || shadow !== "none")"""


def test_shades_and_states_are_seen_where_the_system_chooses_the_colours(wide):
    page, frame = wide.page, wide.frame
    before = {tuple(one) for one in frame.evaluate(SHADED)}
    page.emulate_media(forced_colors="active")
    page.evaluate(SETTLED)
    after = {tuple(one) for one in frame.evaluate(SHADED)}
    page.emulate_media(forced_colors="none")
    assert before <= after


@pytest.mark.parametrize("theme", ["html data-theme=dark", "body data-jp-theme-light=false", "html theme=dark"])
def test_the_dark_themes_of_the_book_of_jupyterlab_and_of_colab(open_page, tmp_path, theme):
    page, frame = frame_of(open_page, tmp_path, "QueryPlane")
    colour = "node => [getComputedStyle(node).getPropertyValue('--blue'), getComputedStyle(node).colorScheme]"
    assert frame.evaluate(colour) == ["#1f77b4", "normal"]
    node, name, value = re.split("[ =]", theme)
    page.evaluate(f"document.querySelector('{node}').setAttribute('{name}', '{value}')")
    assert frame.evaluate(colour) == ["#57a5dd", "dark"]


@pytest.mark.parametrize("drawn", ["plot", "imshow", "pcolormesh"])
def test_a_dark_jupyterlab_darkens_plots_and_no_pictures(open_page, tmp_path, drawn):
    file = io.BytesIO()
    chart, axes = plt.subplots(figsize=(2, 2))
    getattr(axes, drawn)(*([[0, 1]] if drawn == "plot" else [torch.eye(3).tolist()]))
    chart.savefig(file, format="svg")
    plt.close(chart)
    page, _ = frame_of(open_page, tmp_path, "QueryPlane")
    page.evaluate(
        """(svg) => {
          const output = document.body.appendChild(document.createElement("div"));
          output.className = "jp-RenderedSVG"; // what JupyterLab makes of an SVG
          output.appendChild(document.createElement("img")).src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
        }""",
        file.getvalue().decode(),
    )
    changed = "getComputedStyle(document.querySelector('.jp-RenderedSVG img')).filter !== 'none'"
    assert not page.evaluate(changed)
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    assert page.evaluate(changed) == (drawn == "plot")


def test_a_figure_is_alive_before_the_rest_of_the_page_is_there(open_page, tmp_path):
    path = tmp_path / "figure.html"
    seen = "<script>window.early = document.querySelector('[data-ready=yes]') !== null</script>"
    path.write_text(f"<!doctype html>{EXAMPLES['QueryPlane']()._repr_html_()}{seen}")
    assert open_page(path.as_uri()).evaluate("early")
