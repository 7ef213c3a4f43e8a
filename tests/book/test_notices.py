"""What is shipped and not ours is named with its licence: in the package, in the built book, among the slides."""

import gzip
import json
import re
from fnmatch import fnmatch

import pytest
import tomllib
from conftest import BOOK, ROOT

from d2lmini.data import registry
from d2lmini.data.catalogue import SETS
from d2lmini.data.store import DataError
from d2lmini.models.weights import files, smollm2
from tools import notices, slides

PACKAGE = ROOT / "d2lmini"
PARTS = notices.table()["parts"]
ENTRIES = [entry for part in PARTS.values() for entry in part["entries"]]
IN_FULL = {
    "MIT": "Permission is hereby granted",
    "BSD": "Redistribution",
    "Apache": "Apache License",
    "OFL": "SIL OPEN FONT LICENSE",
}


def below(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(folder).as_posix() for path in found)


def written_slides():
    """Names of the files that `tools.slides` puts beside the slides."""
    ours = [path.name for path in (ROOT / "tools" / "slides_page").iterdir()]
    return [f"reveal/{name.rsplit('/', 1)[-1]}" for name in [*slides.REVEAL, *ours]]


def test_every_file_of_the_package_is_ours_or_named():
    found = below(PACKAGE)
    assert len(found) > 400 and notices.foreign(found, "package") == []


def test_every_file_of_a_built_book_is_ours_or_named(small_book):
    for folder in (small_book[0], *([BOOK] if (BOOK / "_static").exists() else [])):
        found = below(folder / "_static")
        assert len(found) > 200 and notices.foreign(found, "book") == []


def test_every_file_of_the_slides_is_ours_or_named():
    found = [*written_slides(), *below(BOOK / "slides")]
    assert len(found) > 5 and notices.foreign(found, "slides") == []


@pytest.mark.parametrize(
    "part, path",
    [("package", "data/assets/poems.txt"), ("package", "models/weights/bought.safetensors"),
     ("package", "data/assets/fashion_mnist/cats.gz"), ("book", "scripts/jquery.js"), ("book", "live/bought.js"),
     ("book", "vendor/fontawesome/other.css"), ("slides", "reveal/theme.css")],
)  # fmt: skip
def test_a_foreign_file_is_found(part, path):
    assert notices.foreign([path], part) == [path]


@pytest.mark.parametrize("part", PARTS)
def test_the_table_names_nothing_that_is_not_there(part, small_book):
    found = {"package": below(PACKAGE), "book": below(small_book[0] / "_static"), "slides": written_slides()}[part]
    of = PARTS[part]
    patterns = [*of["ours"], *(pattern for entry in of["entries"] for pattern in entry["files"])]
    if not smollm2.is_there():  # a book without these weights
        patterns = [one for one in patterns if not one.startswith("real_model/") and "smollm2" not in one]
    found += ["a.html"] * (part == "slides")
    assert [one for one in patterns if not any(fnmatch(path, one) for path in found)] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"].split(",")[0])
def test_a_licence_is_there_in_full_or_by_its_address(entry):
    kind = next((kind for kind in IN_FULL if entry["licence"].startswith(kind)), None)
    text = notices.text_of(entry)
    if kind:
        assert IN_FULL[kind] in text and re.search(r"(?i)copyright", text)
    else:
        assert text == "" and ("notice" in entry or entry["licence"] == "public domain")
        assert not entry["licence"].startswith("CC") or "creativecommons.org/licenses/by" in entry["notice"]


def test_the_built_page_serves_the_notices():
    page = BOOK / "licences.html"
    if not page.exists():
        pytest.skip("the book is not built (make book)")
    links = re.findall(r'href="(_downloads/[^"]+)"', page.read_text(encoding="utf-8"))
    served = {(BOOK / link).name: (BOOK / link).read_text(encoding="utf-8") for link in links}
    assert {"LICENSE", "LICENSE-TEXT"} < {*served} and served[notices.NOTICES.name] == notices.NOTICES.read_text(
        "utf-8"
    )


def test_a_package_without_a_licence_is_told():
    with pytest.raises(LookupError, match="mathjax-offline brings no licence"):
        notices.of_package("sphinx-mathjax-offline")


def test_the_package_carries_its_licences():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {notices.NOTICES.name, "LICENSE", "LICENSE-TEXT"} == {*project["license-files"]}
    container = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert all(f" {name} " in container for name in project["license-files"])


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if "learned_from" in entry], ids=lambda e: e["name"])
def test_weights_learned_from_what_is_named_and_hold_words_alone(entry):
    for path in entry["files"]:
        said = files.read(PACKAGE / path)[1]
        record = json.loads((PACKAGE / f"results/{said['run']['experiment']}.{said['run']['preset']}.json").read_text())
        assert {*entry["learned_from"]} <= {name.split("/")[0] for name in record["data"]}
        words = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(said["tokenizer"]))
        assert len(words) > 8000 and max(map(len, words)) < 50 and not any(" " in word.strip() for word in words)


@pytest.mark.parametrize("name", notices.table()["quoted"])
def test_records_that_repeat_sentences_know_their_data(name):
    for record in notices.table()["quoted"][name]:
        held = json.loads((PACKAGE / "results" / f"{record}.json").read_text(encoding="utf-8"))
        assert any(name in key.split("/") for key in held["data"])
        if name == "multi30k":  # as the page says
            assert len(held["metrics"]["samples"]) == 50


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for part in pair for text in strings(part))
    elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        yield " ".join(value)
    elif isinstance(value, list):
        yield from (text for one in value for text in strings(one))


def runs(text, number=9):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + number]) for i in range(len(words) - number + 1)}


@pytest.mark.slow
@pytest.mark.parametrize("name, file", [("multi30k", "test_2016_flickr.en.gz"), ("rt_polarity", "rt-polarity.pos")])
def test_every_record_that_repeats_nine_words_of_a_data_set_is_named(name, file):
    try:
        path = registry.path(name, file, download=False)
    except DataError as error:
        pytest.skip(str(error))
    assert path and name in SETS
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    known = set().union(*(runs(line) for line in raw.decode("utf-8").splitlines()))
    found = {
        record.stem
        for record in (PACKAGE / "results").glob("*.json")
        if any(runs(text) & known for text in strings(json.loads(record.read_text(encoding="utf-8"))))
    }
    assert found and found <= {*notices.table()["quoted"][name]}
