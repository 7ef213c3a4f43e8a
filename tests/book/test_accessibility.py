"""The page *Accessibility* promises only what tests hold: each of its items names them."""

import re

import pytest
from conftest import ROOT

from tools import site

PAGE = (ROOT / "pages" / "accessibility.md").read_text(encoding="utf-8")
ITEMS = re.split(r"^- ", re.search(r"<!-- rely -->\n(.*?)<!-- end rely -->", PAGE, re.S)[1], flags=re.M)[1:]
HELD = re.compile(r"<!-- (tests/\S+\.py): (test_\w+) -->")


TABLE = PAGE.split("## Browsers")[1].split("## ")[0]


@pytest.mark.parametrize("item", [*ITEMS, TABLE], ids=lambda item: item.split()[0])
def test_what_one_can_rely_on_is_held_by_tests(item):
    named = HELD.findall(item)
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {test}"


def test_the_table_of_browsers_names_the_tests_of_figures_pages_and_the_real_model():
    assert len(HELD.findall(TABLE)) == 4


def test_it_is_short_and_its_addresses_are_those_of_the_project():
    assert len(HELD.sub("", PAGE).split()) < 600
    for name in ("accessibility", "licences"):
        text = (ROOT / "pages" / f"{name}.md").read_text(encoding="utf-8")
        addresses = re.findall(r"https://github\.com/[^)\s]+", text)
        assert addresses and all(address.startswith(site.repository()["url"]) for address in addresses)
    (template,) = re.findall(r"template=(\S+?)\)", PAGE)
    assert (ROOT / ".github" / "ISSUE_TEMPLATE" / template).exists()
