"""Browsers for the tests of all engines, each opened once; what goes wrong in a page is written down by the page."""

import os
import sys
from contextlib import ExitStack

import pytest
from conftest import ROOT, SKIPPED

from .browsers import ENGINES, Chromium

# in the head of every page: errors are kept where a test finds them
WATCH = """<script>
window.wrong = [];
addEventListener("error", ({ message, filename, target }) =>
  wrong.push(message ? `${message} (${filename})` : `not loaded: ${target.src ?? target.href}`), true);
addEventListener("unhandledrejection", ({ reason }) => wrong.push(`unhandled: ${reason}`));
for (const kind of ["error", "warn"]) {
  const own = console[kind];
  console[kind] = (...told) => { wrong.push(told.join(" ")); own.apply(console, told); };
}
</script>"""
sys.path.append(str(ROOT / "tests" / "figures"))  # for the examples of figures


@pytest.fixture(scope="session")
def browsers(chromium):
    """A function that gives a browser by the name of its engine; skips, loudly, where it is not on this machine."""
    with ExitStack() as open_ones:
        found = {"chromium": Chromium(chromium)}

        def browser(name):
            if name not in found:
                start, needs = ENGINES[name]
                missing = [package for package, there in needs.items() if not there]
                if missing:
                    refuse = pytest.fail if os.environ.get("D2LMINI_REQUIRE_BROWSER") == "1" else pytest.skip
                    refuse(f"{SKIPPED}: there is no {' and no '.join(missing)} on this machine (make system)")
                found[name] = open_ones.enter_context(start())
            return found[name]

        yield browser


@pytest.fixture(params=["firefox", "webkit"])
def other(request, browsers):
    """A browser that is not Chromium."""
    return browsers(request.param)
