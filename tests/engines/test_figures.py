"""Every figure in Firefox and in WebKit: alive, without an error, with the words and numbers that Chromium shows."""

import re
from pathlib import Path

import pytest
from examples import EXAMPLES

from .conftest import WATCH

DRIVE = Path(__file__).with_name("drive.js").read_text(encoding="utf-8")
CLOCK = re.compile(r"[\d.,]+ s of training · [\d.,]+ steps a second")  # differs from run to run
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same(got, want):
    """Whether two texts have the same words, and numbers that differ by one in their last digit at most."""
    got, want = (CLOCK.sub("", text) for text in (got, want))
    if NUMBER.split(got) != NUMBER.split(want):
        return False
    for one, other in zip(NUMBER.findall(got), NUMBER.findall(want), strict=True):
        digits = len(one.partition(".")[2])
        if digits != len(other.partition(".")[2]) or abs(float(one) - float(other)) > 1.01 * 10**-digits * (digits > 0):
            return False
    return True


def differences(got, want):
    """Returns: list of (figure, step, what is said, what Chromium says)."""
    assert list(got) == list(want)
    found = []
    for figure, steps in want.items():
        assert [step for step, _ in got[figure]] == [step for step, _ in steps], figure
        for (step, texts), (_, others) in zip(got[figure], steps, strict=True):
            if len(texts) != len(others):
                found.append((figure, step, texts, others))
            else:
                pairs = zip(texts, others, strict=True)
                found += [(figure, step, *pair) for pair in pairs if not same(*pair)]
    return found


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """A page for each figure. Returns: dict of addresses."""
    folder = tmp_path_factory.mktemp("figures")
    found = {}
    for name, make in EXAMPLES.items():
        path = folder / f"{name}.html"
        path.write_text(f"<!doctype html><meta charset=utf-8>{WATCH}{make()._repr_html_()}", encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.fixture(scope="session")
def in_chromium(browsers, pages):
    """A function that gives what Chromium shows of a figure."""
    kept = {}

    def shown(name):
        if name not in kept:
            kept[name] = tried(browsers("chromium"), pages, name)
        return kept[name]

    return shown


def tried(browser, pages, name):
    """What a figure says, step by step, in a browser where nothing goes wrong."""
    browser.goto(pages[name])
    settings = {"most": 4, "quiet": 700 if name.startswith(("Live", "Playground")) else 0}
    told = browser.run(f"{DRIVE} return [await drive(given), window.wrong];", settings)
    assert told[1] == []
    return told[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_figure_says_what_it_says_in_chromium(other, in_chromium, pages, name):
    found, want = tried(other, pages, name), in_chromium(name)
    assert want and all(len(steps) > 1 for steps in want.values())
    assert differences(found, want) == []


def test_what_is_another_number_or_another_word_is_seen():
    assert same("0.31 of 3", "0.32 of 3") and not same("0.31 of 3", "0.33 of 3")
    assert not same("0.31 of 3", "0.31 of 4") and not same("a 1", "b 1") and not same("0.3", "0.31")
    assert differences({"a": [["x", ["1.0"]]]}, {"a": [["x", ["2.0"]]]}) == [("a", "x", "1.0", "2.0")]
