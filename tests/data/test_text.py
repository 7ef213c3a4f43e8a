"""Texts: novels without what was put around them, and the text of the book."""

import dataclasses
import gzip
import hashlib
from pathlib import Path

import pytest

from d2lmini.data import registry, store, text
from d2lmini.data.store import DataError, DataFile

REAL = [name for name in registry.SETS if any((f / name).is_dir() for f in store.data_folders())]
HERE = {name for name in registry.SETS if any(f.is_dir() for f in store.candidates(registry.get(name))[:-1])}


@pytest.mark.skipif("gutenberg" not in REAL, reason="REAL NOVELS NOT TESTED: they are not in D2LMINI_DATA")
def test_every_novel_is_stripped():
    for file in registry.get("gutenberg").files:
        novel = text.load_text("gutenberg", int(file.name.removesuffix(".txt")), download=False)
        assert len(novel) > 0.85 * file.size, file.name
        assert "***" not in novel[:300] and "Produced by" not in novel[:300] and "\r" not in novel
        for word in ("END OF THIS PROJECT", "End of the Project Gutenberg", "FULL LICENSE", "www.gutenberg"):
            assert word not in novel, f"{file.name}: {word}"


NOVEL = """Title page

*** START OF THIS PROJECT GUTENBERG EBOOK A NOVEL ***

Produced by Someone and
Another

A NOVEL

It began.

End of Project Gutenberg's A Novel, by Nobody

*** END OF THIS PROJECT GUTENBERG EBOOK A NOVEL ***

licence
"""


def test_strip_gutenberg():
    assert text.strip_gutenberg(NOVEL) == "A NOVEL\n\nIt began."
    assert text.strip_gutenberg(NOVEL.replace("*** END OF THIS", "***END OF THE")) == "A NOVEL\n\nIt began."
    with pytest.raises(ValueError, match=r"expected one .*START.* and one END, not"):
        text.strip_gutenberg(NOVEL.replace("*** END", "END"))


def register(monkeypatch, folders, name, files):
    (folders / "one" / name).mkdir()
    for file, content in files.items():
        (folders / "one" / name / file).write_bytes(content)
    described = tuple(DataFile(f, hashlib.sha256(c).hexdigest(), len(c)) for f, c in files.items())
    monkeypatch.setitem(registry.SETS, name, dataclasses.replace(registry.get(name), files=described))


def test_load_text(folders, monkeypatch):
    novel = NOVEL.replace("\n", "\r\n").encode()
    register(monkeypatch, folders, "gutenberg", {"11.txt": novel, "35.txt": novel.replace(b"It", b"All")})
    register(monkeypatch, folders, "tinyshakespeare", {"input.txt": "Où?\n".encode()})
    register(monkeypatch, folders, "wikitext2", {"train.txt": b"a", "valid.txt": b"b", "test.txt": b"c"})
    assert text.load_text("gutenberg", 35) == "A NOVEL\n\nAll began."
    assert text.load_text("gutenberg") == "A NOVEL\n\nIt began.\n\n\nA NOVEL\n\nAll began."
    assert text.load_text("tinyshakespeare") == "Où?\n"
    assert [text.load_text("wikitext2", part) for part in ("train", "valid", "test")] == ["a", "b", "c"]
    for name, part in [
        ("gutenberg", 3),
        ("debian_reference", "nl"),
        ("wikitext2", None),
        ("tinyshakespeare", "test"),
        ("times", None),
    ]:
        with pytest.raises(ValueError, match=f"no text '{name}' with part {part!r}, expected"):
            text.load_text(name, part)


WIKI = """ \n = A <unk> = \n \n The first . It is 1 @.@ 5 m . \n = = History = = \n A second . \n = 2 <unk> C = \n
 = Another = One = \n \n 1996 \n Third , by J. <unk> . <unk> too . \n """


def test_documents(folders, monkeypatch):
    novel = NOVEL.replace("It began.", "It\nbegan.\n\n  *  *  *\n\nIt\n  went on.").encode()
    register(monkeypatch, folders, "gutenberg", {"11.txt": novel, "35.txt": novel.replace(b"It", b"All")})
    register(monkeypatch, folders, "wikitext2", {"train.txt": WIKI.encode()})
    packed, name = gzip.compress(WIKI.encode()), "train.articles-sorted.txt.gz"
    register(monkeypatch, folders, "wikitext2_train_reordered", {name: packed})
    first = ["A NOVEL", "It began.", "It went on."]
    assert text.documents("gutenberg") == [first, ["A NOVEL", "All began.", "All went on."]]
    assert text.documents("gutenberg", 11) == [first]
    articles = [["The first . It is 1 @.@ 5 m .", "A second ."], ["Third , by J. <unk> . <unk> too ."]]
    assert text.documents("wikitext2", "train") == articles == text.documents("wikitext2_train_reordered")
    assert text.load_text("wikitext2_train_reordered") == WIKI
    with pytest.raises(ValueError, match="no text 'times'"):
        text.documents("times")


@pytest.mark.parametrize(
    "sentences",
    [
        ["It rains.", "It pours!", "Does it?", "Yes."],
        ['"Oh!', 'Mr. Bennet," said his lady to him one day, "have you heard?"', '"No.', 'I have not."'],
        ["'What?' said Alice.", "'Yes.'", "(It was so.)", "J. Smith met Mrs. Dr. St. Clare at 5 o'clock."],
        ["It is 3.5 m. tall, i.e. large... or so.", "Émile came.", "12 men left."],
        ["<unk> is here .", "<unk> is not .", "Why ?"],
        ["no stop"],
    ],
)
def test_sentences(sentences):
    assert text.split_sentences("  ".join(sentences)) == sentences


def test_no_sentence_in_nothing():
    assert text.split_sentences(" ") == []


@pytest.mark.skipif("wikitext2" not in HERE, reason="REAL ARTICLES NOT TESTED: wikitext2 is not in D2LMINI_DATA")
def test_the_official_number_of_articles():
    assert len(text.documents("wikitext2", "valid", download=False)) == 60
    assert len(text.documents("wikitext2", "test", download=False)) == 60


LONG = "and so on, and on, and on, with so many words that it is no heading at all."
MANUAL = f"""Chapter 1. A HEADING

    This is the first paragraph, {LONG}
\xa0 \xa0 It has a second line.

    Tip
\xa0 \xa0\x20
    A tip, {LONG}

    | a table, {LONG} |

    $ command --with=many --options
    Its output, {LONG} and no full stop

    Short one.
"""


def test_prose_of_a_manual():
    first, tip = f"This is the first paragraph, {LONG} It has a second line.", f"A tip, {LONG}"
    assert text.prose_of_manual(MANUAL) == [first, tip]
    japanese = "    これは、とても長くて見出しではないことが誰にでもわかる、\n    この文章の最初の段落であります。"
    assert text.prose_of_manual(f"{japanese}\n\n    短い。", "") == [
        "これは、とても長くて見出しではないことが誰にでもわかる、この文章の最初の段落であります。"
    ]


def test_what_is_not_translated_is_left_out(folders, monkeypatch):
    (folders / "one" / "debian_reference").mkdir()
    described = []
    for language, manual in {"en": MANUAL, "it": MANUAL.replace("A tip", "Un consiglio")}.items():
        name = f"debian-reference.{language}.txt.gz"
        (folders / "one" / "debian_reference" / name).write_bytes(gzip.compress(manual.encode()))
        content = manual.encode()
        described.append(DataFile(name, hashlib.sha256(content).hexdigest(), len(content), content="gzip"))
    changed = dataclasses.replace(registry.get("debian_reference"), files=tuple(described))
    monkeypatch.setitem(registry.SETS, "debian_reference", changed)
    assert text.load_text("debian_reference", "en").count("\n") == 1
    assert text.load_text("debian_reference", "it") == f"Un consiglio, {LONG}"


def test_book_text():
    assert len(text.book_text()) > 1000
    assert text.load_text("book") == "\n\n".join(text.book_text())


def test_the_shipped_plays():
    plays = text.load_text("shakespeare")
    assert len(plays) == 399_862 and plays.isascii() and "\r" not in plays
    assert plays.startswith("First Citizen:\n") and plays.endswith(":\nWhat, are they dead?\n")


def test_the_texts_of_the_playground():
    names = text.playground_text("names").splitlines()
    assert len(set(names)) == len(names) == 2000 and all(name.isascii() and name.isalpha() for name in names)
    assert names != sorted(names) and {"Mary", "James"} < set(names)
    assert text.playground_text("shakespeare") == text.load_text("shakespeare")[:100_000]
    with pytest.raises(ValueError, match="no text 'own'"):
        text.playground_text("own")


@pytest.mark.skipif("tinyshakespeare" not in REAL, reason="REAL PLAYS NOT TESTED: they are not in D2LMINI_DATA")
def test_the_shipped_plays_are_the_beginning_of_tinyshakespeare():
    whole = text.load_text("tinyshakespeare", download=False)
    plays = text.load_text("shakespeare")
    assert whole.startswith(plays + "\n") and "\n\n" not in whole[len(plays) : 400_000]


@pytest.mark.parametrize(("name", "constant"), [("book", "BOOK"), ("shakespeare", "SHAKESPEARE")])
def test_what_is_shipped_is_frozen(name, constant, tmp_path, monkeypatch):
    monkeypatch.setattr(text, constant, tmp_path / f"{name}.txt")
    with pytest.raises(DataError, match=rf"{name}\.txt does not exist: install d2lmini again"):
        text.load_text(name)
    Path(getattr(text, constant)).write_text("Another text.\n", encoding="utf-8")
    start = getattr(text, f"{constant}_SHA256")[:4]
    with pytest.raises(DataError, match=rf"{name}\.txt was changed: its SHA-256 is [0-9a-f]{{64}}, expected {start}"):
        text.load_text(name)
