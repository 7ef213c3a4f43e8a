"""The glossary and the index: each link resolves, what is linked uses the term, in the order of the alphabet."""

import re

import pytest
import yaml

from tools import coverage, glossary

TERMS = glossary.terms()
GLOSSARY, INDEX = glossary.glossary(), glossary.index()


def test_there_are_enough_terms():
    assert len(TERMS) >= 120


@pytest.mark.parametrize("term", TERMS)
def test_the_section_that_explains_a_term_uses_it(term):
    entry = TERMS[term]
    section = coverage.find(entry["at"])
    assert section.path.startswith("chapters/") and glossary.uses(term, section.markdown), entry["at"]
    assert set(entry) <= {"at", "short", "says", "words", "only"}
    assert entry["says"][-1] == "." and len(re.findall(r"[.?!](?:\s|$)", entry["says"])) <= 3


@pytest.mark.parametrize("term", TERMS)
def test_the_index_leads_to_sections_that_use_the_term(term):
    start = rf"^- \[{re.escape(term)}\]\(glossary\.md#{term[0].lower()}\): "
    row = re.search(f"{start}(.*)$", INDEX, re.M)
    linked = re.findall(r"\(\.\./(chapters/(\d\d)\w*\.ipynb)#([^)]+)\)", row[1])
    assert linked and len(set(linked)) == len(linked)
    for path, number, slug in linked:
        assert slug in coverage.sections(path)
        assert glossary.uses(term, coverage.sections(path)[slug].markdown), f"{number}#{slug}"
    assert row[1].count("**[") == 1


def test_an_abbreviation_stands_at_its_term():
    assert "- **rotary encoding (RoPE)**: " in GLOSSARY
    shorts = [entry["short"] for entry in TERMS.values() if "short" in entry]
    assert len(shorts) == len({short.casefold() for short in shorts}) >= 15
    for short in shorts:
        assert GLOSSARY.count(f" ({short})**: ") == 1, short


def test_the_order_of_the_alphabet_and_no_term_twice():
    for page in (GLOSSARY, INDEX):
        names = re.findall(r"^- (?:\*\*|\[)(.+?)(?:\*\*: |\]\(glossary)", page, re.M)
        assert names == sorted(names, key=str.casefold) and len(names) == len(TERMS)
        assert len({name.casefold() for name in names}) == len(names)
    text = glossary.DATA.read_text(encoding="utf-8")
    assert len(re.findall(r"^[^\s#].*:$", text, re.M)) == len(yaml.safe_load(text)), "a term stands there twice"


def test_what_only_names_is_there():
    headings = list(glossary.parts())
    starts = [(term, start) for term, entry in TERMS.items() for start in entry.get("only", [])]
    assert [pair for pair in starts if not any(heading.startswith(pair[1]) for heading in headings)] == []


def test_what_a_term_is_found_by():
    found = glossary.pattern
    assert found("bits per byte").search("its bits\nper byte") and found("beam").search("two Beams")
    assert not found("entropy").search("the cross-entropy") and not found("CLIP").search("we clip")
    assert not found("head").search("heading")
