"""The page "Coverage": every item of the sources has its row, and each row leads to what speaks of it."""

import re
from itertools import pairwise
from urllib.parse import unquote

import pytest
import yaml
from conftest import ROOT

import d2lmini
from d2lmini.exercises.engine import registry
from tools import coverage

ROWS = coverage.rows()
PLACES = [(row, verb, target) for row in ROWS.values() for verb, targets in row.targets.items() for target in targets]
SOURCES = ("d2l", "udl", "final", "borealis", "slides")


def numbers(pattern, *ranges):
    """From "12.{}" and pairs of first and last, "12.1", "12.2", ..."""
    return [pattern.format(n) for first, last in ranges for n in range(first, last + 1)]


# counted in the sources, not read from coverage.yml
D2L_EQUATIONS = {"11.1": 3, "11.2": 3, "11.3": 7, "11.4": 1, "11.5": 2, "11.6": 3}
D2L_FIGURES = {"11.1": 1, "11.3": 1, "11.4": 2, "11.5": 1, "11.6": 1, "11.7": 1, "11.8": 1, "11.9": 12}
D2L_PROBLEMS = {"11.1": 4, "11.2": 4, "11.3": 3, "11.4": 2, "11.5": 2, "11.6": 3, "11.7": 5, "11.8": 3, "11.9": 4}
D2L_SECTIONS = {"11.1": 3, "11.2": 5, "11.3": 6, "11.4": 5, "11.5": 4, "11.6": 5, "11.7": 8, "11.8": 7, "11.9": 7}
UDL_SECTIONS = {"12.1": 0, "12.2": 4, "12.3": 3, "12.4": 0, "12.5": 3, "12.6": 2, "12.7": 4}
UDL_SECTIONS |= {"12.8": 0, "12.9": 0, "12.10": 3, "12.11": 0}


def numbered(of):
    return [f"{section}.{n}" for section, last in of.items() for n in range(1, last + 1)]


EXPECTED = {
    ("d2l", "section"): ["11", *D2L_SECTIONS, *numbered(D2L_SECTIONS)],
    ("d2l", "equation"): numbered(D2L_EQUATIONS),
    ("d2l", "figure"): numbered(D2L_FIGURES),
    ("d2l", "problem"): numbered(D2L_PROBLEMS),
    ("udl", "section"): ["12", *UDL_SECTIONS, *numbered(UDL_SECTIONS), "Notes", "Problems"],
    ("udl", "equation"): numbers("12.{}", (1, 20)),
    ("udl", "figure"): numbers("12.{}", (1, 19)),
    ("udl", "problem"): numbers("12.{}", (1, 11)),
    ("udl", "part"): [
        *("language before networks", "recurrent networks", "from recurrence to Transformers", "applications"),
        *("language models", "tokenizers", "decoding", "types of attention", "relations to other models"),
        *("position encodings", "long sequences", "training", "vision", "from pixels to video", "pictures and texts"),
    ],
    ("final", "section"): ["12", "12.1", "12.2", "12.2.1", "12.2.2", "equations"],
    ("final", "equation"): ["layer", "values", "output", "queries and keys", "weights"],
    ("borealis", "section"): [
        *("Motivation", "Dot-product self-attention", "Computing and weighting values", "Computing attention weights"),
        *("Self-attention summary", "Matrix form", "Extensions", "Positional encoding", "Scaled dot product"),
        *("Multiple heads", "Transformer layers", "How transformers are used in NLP", "Tokenization", "Embeddings"),
        *("Transformer layers (three kinds)", "BERT", "Pre-training", "Fine-tuning", "GPT3", "Language modeling"),
        *("Masked self-attention", "Generating text", "Few-shot", "Encoder-decoder", "Summary"),
    ],
    ("borealis", "equation"): numbers("{}", (1, 11)),
    ("borealis", "figure"): numbers("{}", (1, 11)),
    ("slides", "section"): [
        *("History", "Uses", "Motivation", "Self-attention", "Applying", "Multi-head", "Order", "Layer", "Three types"),
        *("BERT", "GPT3", "Encoder-decoder"),
    ],
    ("slides", "part"): [
        *("Bengio 2003", "Sutskever 2014", "Bahdanau 2014", "Vaswani 2017", "similarity", "cosine", "counts"),
        *("hypernetwork", "positions at the input or at each layer", "relative positions", "layer norm", "masking"),
        *("generation", "table of BERT and GPT-3"),
    ],
}


@pytest.mark.parametrize(("source", "kind"), EXPECTED, ids=" ".join)
def test_every_item_of_a_source_has_a_row(source, kind):
    own = [row.number for row in ROWS.values() if (row.source, row.kind) == (source, kind)]
    assert sorted(own) == sorted(EXPECTED[source, kind])


def test_no_row_is_of_another_kind():
    assert {(row.source, row.kind) for row in ROWS.values()} == set(EXPECTED)


def test_every_row_says_where_or_why_not():
    rows = [row for row in ROWS.values() if not row.targets and not row.below]
    assert [row.name for row in rows if len(row.absent.split()) < 6] == []
    assert len(rows) <= 5, "an item that is nowhere in the book wants a place before a reason"


def test_a_section_of_problems_has_them_below():
    assert [row.name for row, following in pairwise(ROWS.values()) if row.below and following.kind == "section"] == []


def fault(row, verb, target):
    """What is wrong with a place of a row. Returns: str, empty where nothing is."""
    try:
        section = coverage.find(target)
    except ValueError as error:
        return str(error)
    if ("#" not in target) != (verb == "solved"):
        return "chapters teach, draw and compute; exercises solve"
    if row.kind != "problem" and not section.speaks_of(row.words):
        return f"has none of {row.words}"
    if verb == "taught" and section.markdown.count(" ") < 20:
        return "has hardly any text"
    if verb == "drawn" and not section.draws:
        return "draws nothing"
    if verb == "computed" and not re.search(r"\bassert|assert_close\(|print\(|plot\(", section.code):
        return "has no cell that computes something and checks or shows it"
    return ""


@pytest.mark.parametrize("source", SOURCES)
def test_every_place_is_there_and_does_what_is_said(source):
    faults = []
    for row, verb, target in PLACES:
        if row.source == source and (what := fault(row, verb, target)):
            faults.append(f"{row.name}, {verb}, {target}: {what}")
    assert "\n".join(faults) == ""


def test_no_word_is_idle():
    """Each of the words of a row stands in one of its places."""
    idle = []
    for row in ROWS.values():
        places = [] if row.same else [coverage.find(target) for targets in row.targets.values() for target in targets]
        idle += [(row.name, word) for word in row.words if places and not any(p.speaks_of([word]) for p in places)]
    assert idle == []


def test_a_problem_is_solved_by_the_exercise_of_its_number():
    sources = {exercise.key: exercise.source for exercise in registry.exercises()}
    for row in (row for row in ROWS.values() if row.kind == "problem"):
        key = f"{row.source}-{row.number}"
        assert row.targets == {"solved": [key]}, row.name
        name, number = ("D2L", row.number.rpartition(".")[2]) if row.source == "d2l" else ("UDL", row.number)
        assert sources[key].startswith(name) and sources[key].endswith(f" {number}"), sources[key]


def names_of(row):
    """By what a chapter may name where an equation or figure stands: a pattern.

    Its number, that of its section, or of one that holds this; of the notes and problems, the book.
    """
    section = ""
    for other in ROWS.values():
        section = other.number if (other.source, other.kind) == (row.source, "section") else section
        if other == row:
            break
    parts = section.split(".")
    numbers = [row.number, *(".".join(parts[:n]) for n in range(2, len(parts) + 1))]
    names = [rf"(?<![\d.]){re.escape(number)}(?!\.?\d)" for number in numbers]
    return "|".join(names if parts[1:] else [*names, r"\*Understanding Deep", "UDL problem"])


@pytest.mark.parametrize("source", ["d2l", "udl"])
def test_a_chapter_of_an_equation_or_figure_names_where_it_stands(source):
    unnamed = []
    for row in ROWS.values():
        if row.source == source and row.kind in ("equation", "figure") and row.targets and not row.same:
            paths = {coverage.find(target).path for targets in row.targets.values() for target in targets}
            texts = ["\n".join(section.markdown for section in coverage.sections(path).values()) for path in paths]
            unnamed += [] if any(re.search(names_of(row), text) for text in texts) else [(row.name, sorted(paths))]
    assert unnamed == []


def test_every_chapter_and_every_exercise_of_the_books_is_led_to():
    paths = {coverage.find(target).path for _, _, target in PLACES}
    assert [path.name for path in (ROOT / "chapters").glob("*.ipynb") if f"chapters/{path.name}" not in paths] == []
    keys = {target for _, verb, target in PLACES if verb == "solved"}
    assert [e.key for e in registry.exercises() if not e.key.startswith("own-") and e.key not in keys] == []


def test_links_are_made_to_as_many_levels_as_the_book_makes_anchors():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert config["sphinx"]["config"]["myst_heading_anchors"] == coverage.ANCHORS  # under "parse" it does nothing


def test_every_link_of_the_page_leads_to_a_heading():
    links = re.findall(r"\]\(\.\./([^)#]+\.ipynb)(?:#([^)]*))?\)", coverage.tables())
    assert len(links) > 500
    for path, slug in links:
        assert (ROOT / path).exists(), path
        if path.startswith("exercises/"):  # the page has a heading for each key
            assert slug in map(registry.anchor, registry.keys(path.removeprefix("exercises/")[:2])), f"{path}#{slug}"
        else:
            assert unquote(slug) in coverage.sections(path), f"{path}#{slug}"


def test_the_code_of_d2l_has_its_names():
    """As the page says; tests/test_d2l_names.py has all of them."""
    assert {"show_heatmaps", "nadaraya_watson", "masked_softmax", "MultiHeadAttention", "ViT"} <= set(d2lmini.__all__)


ENTRY = {"equation": "1", "title": "sum", "words": ["sum"], "taught": ["06#counting"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"taught": []}, "has places, or what it is the same as"),
        ({"absent": "as well"}, "has places, or what it is the same as"),
        ({"equation": 12.10}, "in quotes"),
        ({"figure": "2"}, "has one of"),
        ({"title": ""}, "a title"),
        ({"teached": ["06#counting"]}, "unknown fields"),
        ({"words": [340]}, "lists of texts"),
        ({"taught": "06#counting"}, "lists of texts"),
    ],
)
def test_a_wrong_entry_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        coverage.read([{"source": "x", "rows": [ENTRY | change]}])


def test_two_entries_and_a_same_that_leads_nowhere_are_refused():
    with pytest.raises(ValueError, match="x equation 1 has two entries"):
        coverage.read([{"source": "x", "rows": [ENTRY, ENTRY]}])
    same = {"equation": "2", "title": "sum", "same": "x equation 3"}
    with pytest.raises(ValueError, match="'x equation 3', which tells of no place"):
        coverage.read([{"source": "x", "rows": [ENTRY, same]}])
    found = coverage.read([{"source": "x", "rows": [ENTRY, same | {"same": "x equation 1"}]}])
    assert found["x equation 2"].targets == {"taught": ["06#counting"]}


@pytest.mark.parametrize(
    ("target", "message"),
    [("06#no-such", "has no such heading; it has"), ("99#counting", "no chapter '99'"), ("udl-12.99", "neither")],
)
def test_a_target_that_is_not_there_is_refused(target, message):
    with pytest.raises(ValueError, match=message):
        coverage.find(target)


def test_a_section_ends_where_the_next_of_its_level_begins():
    there = coverage.sections("chapters/06_self_attention_and_position.ipynb")
    outer, inner = there["going-further"], there["counting"]
    assert "capture_attention" in inner.code and "capture_attention" in outer.code
    assert "FlopCounterMode" not in outer.code
    twice = coverage.sections("chapters/03_attention_scoring.ipynb")["additive-scores-in-blocks-save-memory"]
    assert twice.title == "Additive scores in blocks save memory" and not twice.speaks_of(["Multiplications, counted"])
