"""Every figure in the column of the book, wide and on a phone: nothing cut, small, hard to touch, or too high."""

import pytest
from framed import SETTLED

import d2lmini.figures as figures

pytestmark = pytest.mark.by_turn("name")
# of a screen: how wide the book's column is there; 1265: a bar of 15 px that scrolls the page, as on Windows
COLUMNS = {1280: 736, 1265: 721, 390: 358}
HIGHEST = 900  # px on a phone: what one touches and what it does are on one screen
FOUND = """(frame) => {
  const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width;
  const say = (node) => node.outerHTML.slice(0, 90);
  const box = frame.getBoundingClientRect(), small = [], cut = [], narrow = [], hidden = [], scrolled = [];
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
  for (const node of frame.querySelectorAll('button, select, input, textarea, summary, a, [role=button]')) {
    const touched = (node.type === 'checkbox' ? node.closest('label') : node).getBoundingClientRect();
    const size = Math.min(touched.width, touched.height);
    if (seen(node) && size < 23.9) narrow.push([size, say(node)]);
  }
  for (const node of frame.querySelectorAll('*')) {
    const clips = getComputedStyle(node).overflowX !== 'visible' && node.localName !== 'svg' && !node.closest('svg');
    if (!clips || !seen(node) || node.matches('input, select, textarea, [aria-live]')) continue;
    const more = [node.scrollWidth - node.clientWidth, node.scrollHeight - node.clientHeight];
    if (Math.max(...more) <= 1) continue;
    if (more[0] > 1) scrolled.push(say(node));
    const cue = node.nextElementSibling;
    if (node.tabIndex !== 0 || !cue?.matches('.d2lmini-cue') || !seen(cue)) hidden.push([...more, say(node)]);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  const captions = [...frame.querySelectorAll('figcaption, caption')];
  const bold = captions.filter((node) => getComputedStyle(node).fontWeight > 400);
  return { small, cut, narrow, hidden, scrolled, wide, bold: bold.length, width: box.width, height: box.height };
}"""


def problems(visit, screen, name):
    """What is wrong with a figure on a screen. Returns: dict of what is not as it should be."""
    page, frame = visit.page, visit.frame
    page.set_viewport_size({"width": screen, "height": 900})
    page.evaluate(SETTLED)
    found = frame.evaluate(FOUND)
    height, scrolled = found.pop("height"), found.pop("scrolled")
    right = {"small": [], "cut": [], "narrow": [], "hidden": [], "wide": 0, "bold": 0, "width": COLUMNS[screen]}
    wrong = {key: found[key] for key in right if found[key] != right[key]}
    if height > HIGHEST if screen == 390 else scrolled:
        wrong |= {"height": height, "scrolled": scrolled}
    assert frame.locator(".d2lmini-title").inner_text() == getattr(figures, name).title
    return wrong


def test_nothing_is_small_or_cut_or_hard_to_touch_or_too_high(wide, phone, name):
    assert {screen: problems(phone if screen == 390 else wide, screen, name) for screen in COLUMNS} == {
        screen: {} for screen in COLUMNS
    }


# steps back to the first, then on to the last; where on the way a table was wider than its box
STEPS = """(frame) => {
  const press = (sign) => {
    const node = [...frame.querySelectorAll('button')].find(({ textContent }) => textContent.includes(sign));
    if (!node || node.ariaDisabled === 'true') return false;
    node.click();
    return true;
  };
  const wide = [];
  for (let n = 0; n < 60 && press('←'); n++);
  for (let n = 0; n < 60 && (!n || press('next →')); n++)
    for (const box of frame.querySelectorAll('.d2lmini-scroll:has(> table)'))
      if (box.scrollWidth - box.clientWidth > 1) wide.push([n, box.outerHTML.slice(0, 90)]);
  return wide;
}"""


def test_no_step_makes_a_table_wider_than_its_column(wide):
    wide.page.set_viewport_size({"width": 1265, "height": 900})
    assert wide.frame.evaluate(STEPS) == []
