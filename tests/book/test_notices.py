"""What is shipped and not ours is named with its licence: in the package, in the built book, among the slides."""

import dataclasses
import gzip
import json
import re
import subprocess
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
ENTRIES = notices.entries()
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
     ("package", "models/weights/translator_bought.safetensors"), ("book", "live/translator_bought.js"),
     ("book", "vendor/fontawesome/other.css"), ("slides", "reveal/theme.css")],
)  # fmt: skip
def test_a_foreign_file_is_found(part, path):
    assert notices.foreign([path], part) == [path]


@pytest.mark.parametrize("part", PARTS)
def test_the_table_names_nothing_that_is_not_there(part, small_book):
    found = {"package": below(PACKAGE), "book": below(small_book[0] / "_static"), "slides": written_slides()}[part]
    patterns = [*PARTS[part]["ours"], *(one for entry in ENTRIES if entry["part"] == part for one in entry["files"])]
    patterns += [one for entry in ENTRIES for one in entry["served"] if part == "book"]
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
    carried = {path for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert carried == {ROOT / "LICENSE", ROOT / "licences" / "LICENSE-TEXT", notices.NOTICES}
    container = (ROOT / "tools" / "Containerfile").read_text(encoding="utf-8")
    assert " LICENSE " in container and "\nCOPY licences " in container


def test_the_metadata_name_the_licences_of_all_that_ships():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == notices.expression()
    assert {"MIT", "CC-BY-SA-4.0", "CC-BY-SA-3.0", "LicenseRef-CC-BY-2.0-FR"} <= {*notices.expression().split(" AND ")}
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")  # its `license` could name alternatives alone
    assert "licences.md" in cited and "\nlicense:" not in cited


@pytest.mark.parametrize("name", files.names())
def test_weights_take_over_the_terms_of_the_data_that_their_record_names(name):
    made_of = {data.name for data in notices.made_of(name)}
    assert all(SETS[data].spdx for data in made_of), "data that may not be passed on"
    of = [entry for entry in ENTRIES if name in entry.get("weights", [])]
    if name in notices.our_weights():
        assert of == []
        return
    [entry] = of
    assert made_of == {*entry["learned_from"], *entry.get("scored_on", [])}
    assert {SETS[data].spdx for data in entry["learned_from"]} == {*entry["licence"].split(" AND ")}
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(files.read(files.path_of(name)).metadata["tokenizer"]))
    assert len(words) > 4000 and max(map(len, words)) < 50 and not any(" " in word.strip() for word in words)


def test_weights_of_data_that_may_not_be_passed_on_are_foreign(monkeypatch):
    path, served = "models/weights/vit_fashion.safetensors", "live/vit_fashion.js"
    assert notices.foreign([path], "package") == notices.foreign([served], "book") == []
    monkeypatch.setitem(SETS, "fashion_mnist", dataclasses.replace(SETS["fashion_mnist"], spdx=None))
    assert notices.foreign([path], "package") == [path] and notices.foreign([served], "book") == [served]


@pytest.mark.parametrize("name", notices.table()["quoted"])
def test_records_that_repeat_sentences_know_their_data(name):
    assert SETS[name].spdx
    for record in notices.table()["quoted"][name]:
        held = json.loads((PACKAGE / "results" / f"{record}.json").read_text(encoding="utf-8"))
        assert any(name in key.split("/") for key in held["data"])


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


def sentences(name, file):
    """Runs of nine words of a file of a data set. Skips where it is not on this machine."""
    try:
        path = registry.path(name, file, download=False)
    except DataError as error:
        pytest.skip(str(error))
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return set().union(*(runs(line) for line in raw.decode("utf-8").splitlines()))


@pytest.mark.slow
def test_every_record_that_repeats_nine_words_of_a_data_set_is_named():
    known = sentences("rt_polarity", "rt-polarity.pos")
    found = {
        record.stem
        for record in (PACKAGE / "results").glob("*.json")
        if any(runs(text) & known for text in strings(json.loads(record.read_text(encoding="utf-8"))))
    }
    assert found and found <= {*notices.table()["quoted"]["rt_polarity"]}


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "fr"])
def test_no_caption_of_multi30k_is_in_a_file_that_ships(language):
    """Nine words in a row, in no text of the repository and of the built book."""
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
    known = set().union(*(sentences("multi30k", f"{split}.{language}.gz") for split in splits))
    assert len(known) > 50_000
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for name in tracked.split("\0") if (path := ROOT / name).is_file()]
    paths += [path for path in BOOK.rglob("*") if path.suffix in (".html", ".js", ".txt")]
    assert len(paths) > 800
    quoting = {}
    for path in paths:
        text = path.read_bytes().decode("utf-8", "ignore").lower()
        if found := runs(text) & known:
            quoting[path.relative_to(ROOT).as_posix()] = sorted(found)
    assert quoting == {}
