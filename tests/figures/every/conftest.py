"""One visit of each figure and screen, which all tests of a file share: a model is loaded once for all of them."""

import sys
from dataclasses import dataclass

import pytest
from conftest import ROOT, open_in

sys.path.append(str(ROOT / "tests" / "figures"))  # where the examples are
from examples import EXAMPLES
from framed import IDLE, SETTLED, shown

# all that a figure shows, and what its controls are set to
LOOK = """(frame) => [frame.innerHTML.replace(/d2lmini-(hatch|token|axes)-\\w+/g, ''),
  ...[...frame.querySelectorAll('input, select')].map((node) => [node.value, node.checked])]"""

# what listens to a pointer that goes down, and what of it takes hold of the pointer
PRESSED = """
window.pressed = new Set();
window.heard = [];
const listen = EventTarget.prototype.addEventListener, hold = Element.prototype.setPointerCapture;
EventTarget.prototype.addEventListener = function (kind, ...more) {
  if (kind === "pointerdown" && this instanceof SVGElement) pressed.add(this);
  return listen.call(this, kind, ...more);
};
Element.prototype.setPointerCapture = function (id) {
  heard.push("held");
  return hold.call(this, id);
};
for (const kind of ["pointermove", "pointercancel"])
  document.addEventListener(kind, () => heard.push(kind), { capture: true });
"""


@dataclass
class Visit:
    """The page of a figure, and what it showed at first."""

    page: object
    first: list

    @property
    def frame(self):
        return self.page.locator(".d2lmini-figure")

    def anew(self):
        """The visit, with the figure as it was at first."""
        self.frame.get_by_role("button", name="Reset").click()
        self.page.mouse.move(1, 1)
        self.page.evaluate("document.activeElement.blur()")
        self.page.wait_for_function(IDLE)
        self.page.evaluate(SETTLED)
        return self


@pytest.fixture(scope="module", params=list(EXAMPLES))
def name(request):
    """Of a figure: the tests that take it are run figure by figure."""
    return request.param


@pytest.fixture(scope="module")
def visit(chromium, name, tmp_path_factory):
    """A function that visits the figure, its model loaded, on a screen."""
    pages = []

    def visit(**options):
        path = tmp_path_factory.mktemp("visit") / "figure.html"
        page, frame = shown(lambda url: open_in(chromium, url, **options), path, name)
        pages.append(page)
        return Visit(page, frame.evaluate(LOOK))

    yield visit
    for page in pages:
        page.context.close()


@pytest.fixture(scope="module")
def on_screen(visit):
    return visit()


@pytest.fixture(scope="module")
def on_phone(visit):
    return visit(width=390, has_touch=True, is_mobile=True, script=PRESSED)


@pytest.fixture
def wide(on_screen):
    """The figure on a wide screen."""
    return on_screen.anew()


@pytest.fixture
def phone(on_phone):
    """The figure on a phone, whose page knows what in it can be pressed."""
    return on_phone.anew()
