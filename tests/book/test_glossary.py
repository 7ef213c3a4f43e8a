"""Glossary and index: every term is explained where its link leads, and every link leads somewhere."""

import re

import pytest
from conftest import ROOT

from tools import coverage, glossary

TERMS = glossary.terms()


@pytest.mark.parametrize("term", TERMS)
def test_the_section_that_is_said_to_explain_a_term_has_it(term):
    place, text, pattern = TERMS[term]
    section = coverage.find(place)
    assert pattern.search(f"{section.title}\n{section.markdown}"), (term, place)
    assert 3 <= len(text.split()) <= 45 and text.endswith((".", "?"))


def test_terms_stand_in_the_order_of_the_alphabet_and_once():
    order = [term.lower() for term in TERMS]
    assert order == sorted(set(order))
    written = re.findall(r'^"([^"]+)":', glossary.DATA.read_text(encoding="utf-8"), re.M)
    assert written == list(TERMS)  # YAML keeps the last of two in silence


def test_the_index_names_sections_that_use_the_term():
    for term in ("perplexity", "equivariant", "shifted windows"):
        _, _, pattern = TERMS[term]
        assert glossary.used_in(term) and all(
            pattern.search(coverage.find(place).markdown) for place in glossary.used_in(term)
        )
    assert glossary.used_in("perplexity")[0].startswith("15#")


@pytest.mark.parametrize("page", ["glossary", "book_index"])
def test_every_link_leads_to_a_heading(page):
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((chapters/\w+\.ipynb)#([\w-]+)\)", text)
    assert len(links) >= len(TERMS)
    assert [link for link in links if link[1] not in coverage.sections(link[0])] == []


def test_a_heading_that_is_gone_is_named():
    with pytest.raises(ValueError, match="no-such-heading"):
        glossary.link("06#no-such-heading")
