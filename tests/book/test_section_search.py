"""The search: what it looks through, and where it leads, on a small book and on the large one."""

import json
import re
import shutil
from types import SimpleNamespace

import pytest
from conftest import ROOT
from docutils import nodes
from docutils.core import publish_doctree
from small_book import again, build

from tools import glossary, section_index


def test_a_heading_has_its_own_text_alone():
    source = "One\n===\n\nApple.\n\nTwo\n---\n\nPear :math:`x^2` tree.\n\n::\n\n   code of no cell\n"
    doctree = publish_doctree(source, settings_overrides={"doctitle_xform": False})
    assert section_index.sections(doctree) == [
        ("One", "one", "Apple."),
        ("Two", "two", "Pear x^2 tree."),
    ]


def test_a_formula_is_short_or_an_ellipsis_and_no_key_of_a_citation_is_read():
    formulas = nodes.math("", "d = 4"), nodes.Text(" and "), nodes.math("", r"\sqrt{d}"), nodes.Text(", of Su ")
    key = nodes.inline("", nodes.literal("", "su2024roformer"), refdomain="cite")
    section = nodes.section("", nodes.title("", "One"), nodes.paragraph("", "", *formulas, key, nodes.Text(".")))
    section["ids"] = ["one"]
    assert section_index.sections(section) == [("One", "one", "d = 4 and …, of Su.")]


def test_a_section_has_its_number_in_this_book():
    env = SimpleNamespace(toc_secnumbers={"a": {"": (11,), "#one": (11, 3), "#none": None}})
    assert section_index.own_numbers(env, "a") == {"": "11", "one": "11.3"}
    assert section_index.own_numbers(env, "b") == {}


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
    assert list(terms) == [glossary.heading(term) for term in glossary.terms()]
    numbers = {entry[1].split(":")[0]: entry for entry in section_index.numbers()}
    assert numbers["D2L 11.3"][3].startswith("chapters/03_attention_scoring.html#")
    assert numbers["UDL equation 12.9"][3].startswith("chapters/0")
    chapters = sorted((ROOT / "chapters").glob("*.ipynb"))
    said = " ".join(path.read_text(encoding="utf-8") for path in chapters).casefold()
    for word, phrases in section_index.synonyms().items():
        assert word == word.casefold() and phrases, word
        assert any(phrase.casefold() in said for phrase in phrases), f"{word}: {phrases} are in no chapter"
    assert section_index.synonyms()["rope"][0] == "rotary encoding"  # from the glossary


@pytest.mark.parametrize("where", ["http", "file"])
def test_a_find_leads_to_its_section_and_opens_its_fold(open_page, small_book, where):
    folder, url = small_book
    page = open_page(f"{url if where == 'http' else folder.as_uri()}/search.html?q=huckleberry")
    links = page.locator(".book-search a")
    links.first.wait_for()
    assert links.all_text_contents() == ["Deep inside"]
    assert page.locator(".book-search mark").first.text_content() == "huckleberry"
    assert page.get_by_role("status").text_content().startswith("1 place for")
    links.first.click()
    page.wait_for_function("location.hash === '#deep-inside'")
    page.get_by_text("The huckleberry is deep inside").wait_for()
    assert not [request for request in page.log["requests"] if "searchindex" in request]


def test_what_is_typed_is_text_and_nothing_found_is_said(open_page, small_book):
    page = open_page(f"{small_book[0].as_uri()}/search.html?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    page.get_by_role("status").wait_for()
    assert page.locator("main img").count() == 0
    page.locator("main input[name=q]").fill("zebra")
    assert "Nothing in the book has all the words of “zebra”" in page.get_by_role("status").text_content()
    assert "Try fewer words, or another spelling." in page.get_by_role("status").text_content()
    page.locator("main input[name=q]").fill("")
    assert page.locator("#search-results").text_content() == "Try a term, D2L 11.3, or UDL problem 12.5."


LONG = "many agooseberries " + "many " * 60 + "gooseberries of summer " + "words " * 60
SHELF = [
    *section_index.terms(),
    *section_index.numbers(),
    ["section", "Shift the windows", "One scale or many", "chapters/11.html#shift", "", "11.3"],
    ["section", "A schedule", "Training", "chapters/08.html#schedule", "The warm-up takes 100 steps."],
    ["section", "A long text", "One", "chapters/01.html#long", LONG.strip()],
    ["name", "d2lmini.training.warmup_cosine", "API", "api.html#a", ""],
    ["name", "d2lmini.rotation.rotary", "API", "api.html#r", ""],
    ["name", "d2lmini.multi_head.MultiHeadAttention", "API", "api.html#m", ""],
    ["name", "d2lmini.training.warmup_linear", "API", "api.html#b", ""],
]


@pytest.fixture(scope="module")
def find(chromium, small_book, tmp_path_factory):
    """A function from what is typed to what is shown of each find, among a few entries."""
    folder = shutil.copytree(small_book[0], tmp_path_factory.mktemp("shelf") / "html")
    data = {"entries": SHELF, "synonyms": section_index.synonyms()}
    (folder / "_static" / "sections.js").write_text(f"window.bookSections={json.dumps(data)};", encoding="utf-8")
    page = chromium.new_page()
    page.goto(f"{folder.as_uri()}/search.html")

    def find(query):
        page.locator("main input[name=q]").fill(query)
        return page.locator(".book-search li").all_inner_texts()

    yield find
    page.close()


def test_a_hyphen_a_space_and_a_joined_spelling_are_alike(find):
    first, *rest = find("warmup")
    assert first.startswith("warm-up Glossary")
    names = [hit.startswith("d2lmini.") for hit in rest]
    assert names == sorted(names) and sum(names) == 2 < len(names)  # what explains it goes before what computes it
    assert find("warm-up") == find("warm up") == find("Warmup") == [first, *rest]
    assert find("KV-cache") == find("KV cache") != []
    assert find("KV-cache")[0].startswith("key/value cache (KV cache)")
    assert find("rotary")[0].startswith("rotary encoding (RoPE)")
    for query in ("multihead", "multi head attention", "Multi-Head Attention", "MHA"):
        assert find(query)[0].startswith("multi-head attention (MHA)"), query
    assert find("MultiHeadAttention")[0].startswith("d2lmini.multi_head.MultiHeadAttention")
    assert find("long text") and find("text long")  # words that the book writes as two stay two


def test_a_number_says_of_which_book_it_is(find):
    own, *theirs = find("11.3")
    assert own.startswith("Shift the windows This book, 11.3")
    assert theirs and all(hit.startswith("D2L 11.3: ") and "Dive into Deep Learning" in hit for hit in theirs)
    assert find("D2L 11.3") == theirs
    assert all("Understanding Deep Learning" in hit for hit in find("UDL 12.5"))


def test_of_a_number_the_section_goes_first_then_the_problem(find):
    labels = [hit.split(":")[0] for hit in find("UDL 12.5")]
    assert labels == ["UDL 12.5", "UDL problem 12.5", "UDL equation 12.5", "UDL figure 12.5"]
    assert [hit.split(":")[0] for hit in find("UDL problem 12.5")] == ["UDL problem 12.5"]


def test_an_excerpt_is_cut_at_words(find):
    text = find("gooseberries")[0].partition("… ")[2]
    assert text.endswith(" …") and set(text[:-2].split()) == {"many", "gooseberries", "of", "summer", "words"}


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


@pytest.mark.slow
def test_one_page_that_changed_is_built_again_without_a_warning(tmp_path):
    build(tmp_path)
    (tmp_path / "intro.md").write_text("# A small book\n\nIt has a quince now.\n", encoding="utf-8")
    assert "quince" in (again(tmp_path, "-W") / "_static" / "sections.js").read_text(encoding="utf-8")
