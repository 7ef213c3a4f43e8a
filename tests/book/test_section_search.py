"""The search: what it looks through, and where it leads, on a small book and on the large one."""

import re

import pytest
from conftest import ROOT, serving
from docutils import nodes
from docutils.core import publish_doctree
from small_book import build

from tools import glossary, section_index


def test_a_heading_has_its_own_text_alone():
    source = "One\n===\n\nApple.\n\nTwo\n---\n\nPear :math:`x^2` tree.\n\n::\n\n   code of no cell\n"
    doctree = publish_doctree(source, settings_overrides={"doctitle_xform": False})
    assert section_index.sections(doctree) == [
        ("One", "one", "Apple."),
        ("Two", "two", "Pear  tree.".replace("  ", " ")),
    ]


def test_no_setup_no_prints_no_solutions():
    section = nodes.section("", nodes.title("", "One"), ids=["one"])
    for classes, inside in (
        (["tag_setup"], nodes.paragraph("", "setup words")),
        (["tag_hide-input"], nodes.paragraph("", "solution words")),
        ([], nodes.container("", nodes.literal_block("", "d2l.GPT(config)"), classes=["cell_input"])),
        (
            [],
            nodes.container(
                "", nodes.literal_block("", "printed"), nodes.paragraph("", "said"), classes=["cell_output"]
            ),
        ),
    ):
        section += nodes.container("", inside, classes=classes)
    section += [
        nodes.raw("", "<details><summary>Hint</summary>"),
        nodes.paragraph("", "hint"),
        nodes.raw("", "</details>"),
    ]
    section += nodes.paragraph("", "after")
    assert section_index.sections(section) == [("One", "one", "said after config")]


def test_terms_numbers_and_synonyms():
    terms = {entry[1]: entry for entry in section_index.terms()}
    assert terms.keys() == glossary.terms().keys()
    numbers = {entry[1].split(":")[0]: entry for entry in section_index.numbers()}
    assert numbers["D2L 11.3"][3].startswith("chapters/03_attention_scoring.html#")
    assert numbers["UDL equation 12.9"][3].startswith("chapters/0")
    chapters = sorted((ROOT / "chapters").glob("*.ipynb"))
    said = " ".join(path.read_text(encoding="utf-8") for path in chapters).casefold()
    for word, phrases in section_index.synonyms().items():
        assert word == word.casefold() and phrases, word
        assert any(phrase.casefold() in said for phrase in phrases), f"{word}: {phrases} are in no chapter"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return build(tmp_path_factory.mktemp("small") / ".")


@pytest.mark.parametrize("where", ["http", "file"])
def test_a_find_leads_to_its_section_and_opens_its_fold(open_page, small, where):
    with serving(small) as url:
        page = open_page(f"{url if where == 'http' else small.as_uri()}/search.html?q=huckleberry")
        links = page.locator(".book-search a")
        links.first.wait_for()
        assert links.all_text_contents() == ["Deep inside"]
        assert page.locator(".book-search mark").first.text_content() == "huckleberry"
        assert page.get_by_role("status").text_content().startswith("1 place for")
        links.first.click()
        page.wait_for_function("location.hash === '#deep-inside'")
        assert page.get_by_text("The huckleberry is deep inside").is_visible()
        assert not [request for request in page.log if "searchindex" in str(request)]


def test_what_is_typed_is_text_and_nothing_found_is_said(open_page, small):
    page = open_page(f"{small.as_uri()}/search.html?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.get_by_role("status").wait_for()
    assert page.locator("main img").count() == 0
    page.locator("main input[name=q]").fill("zebra")
    assert "Nothing in the book has all the words of “zebra”" in page.get_by_role("status").text_content()
    page.locator("main input[name=q]").fill("")
    assert page.locator("#search-results").text_content() == ""


@pytest.mark.parametrize(
    ("query", "leads"),
    [
        ("RoPE", "06_self_attention_and_position.html#"),
        ("rotary", "06_self_attention_and_position.html#"),
        ("beam", "16_decoding.html#"),
        ("KV cache", "_decoding.html#"),
        ("11.3", "03_attention_scoring.html#"),
        ("UDL equation 12.9", "chapters/0"),
        ("MHA", "05_multi_head_attention.html#"),
        ("MLM", "13_bert.html#"),
        ("layer norm", "07_transformer.html#"),
    ],
)
def test_the_first_finds_are_sections_of_the_right_chapter(open_page, book_url, query, leads):
    page = open_page(f"{book_url}/search.html?q={query}")
    page.locator(".book-search a").first.wait_for()
    found = page.locator(".book-search a").evaluate_all("nodes => nodes.map((node) => node.getAttribute('href'))")
    assert any(leads in re.sub(r"\?[^#]*", "", address) for address in found[:3]), found[:6]
    assert all("#" in address for address in found)


def test_no_page_loads_the_index_of_sphinx(open_page, book_url):
    page = open_page(f"{book_url}/chapters/03_attention_scoring.html")
    page.wait_for_load_state("networkidle")
    assert not page.locator("script[src*=searchindex], script[src*=searchtools]").count()
