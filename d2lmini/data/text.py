"""Texts by name: novels, plays, Wikipedia articles, a manual in six languages, and a copy of this book's own prose.

The prose of this book and a stretch of Shakespeare's plays come with the package, each with a checksum.
"""

import gzip
import hashlib
import re
from pathlib import Path

from . import registry
from .store import DataError

BOOK = Path(__file__).parent / "assets" / "book.txt"
# the book's prose of November 2026: models train on it, so an edit of a chapter must not change it
BOOK_SHA256 = "03a9a24429d8c6f8ea11c5b54c7287cff144d1b77ac9039c4bafb2aab743bd8b"
SHAKESPEARE = Path(__file__).parent / "assets" / "shakespeare.txt"
SHAKESPEARE_SHA256 = "8256a020fbc19d31e553583a6c8c0fbaccb3e3f8104c876f2f6921068a52dc7c"
NAMES = Path(__file__).parent / "assets" / "names.txt"
LANGUAGES = "en", "de", "fr", "it", "ja", "zh-cn"  # of the manual
_MARK = re.compile(r"^\*\*\* ?(START|END) OF TH(?:IS|E) PROJECT GUTENBERG EBOOK.*$", re.M)
_CREDIT = re.compile(r"\A(?:Produced by|An Anonymous Volunteer).*?\n\n+", re.S)
_TITLE = re.compile(r"\n *\n = (?!= ).*(?<! =) = \n *(?=\n)")  # a heading of one =, with empty lines around
_HEADING = re.compile(r" (?:= )+.*(?: =)+ $")
_LETTER = re.compile(r"[^\W\d_]")
_END = re.compile(r"[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]*(?:[^\W_a-zà-ÿ]|<unk>))")
_ABBREVIATION = re.compile(r"(?<![\w.])(?:[A-Z]|Mr|Mrs|Ms|Messrs|Dr|St|Prof|Rev|Hon|Capt|Col|Gen|Lt|Sgt|Sr|Jr|vs)\.$")
_CLOSING = re.compile(r"\n[ \t]*End of (?:the )?Project Gutenberg.*\Z", re.S)


def load_text(name, part=None, download=True):
    """Read a text.

    Args:
        name: ``"shakespeare"`` or ``"book"``, which come with the package; ``"tinyshakespeare"``, ``"gutenberg"``,
            ``"wikitext2"``, ``"wikitext2_train_reordered"`` (the training articles in another order: prefer
            ``"wikitext2"``) or ``"debian_reference"``. ``"shakespeare"`` is the beginning of ``"tinyshakespeare"``:
            399,862 characters, which end with a speech.
        part: of ``"wikitext2"``: ``"train"``, ``"valid"`` or ``"test"``. Of ``"gutenberg"``: a book's
            number there, such as 35; None for all, one after the other, in the order of their numbers. Of
            ``"debian_reference"``: ``"en"``, ``"de"``, ``"fr"``, ``"it"``, ``"ja"`` or ``"zh-cn"``; its prose, a
            paragraph a line, without what is left in English in the other five.
        download: whether to fetch what is not on this machine.

    Returns:
        str with ``\\n`` as the only line end.

    Raises:
        ValueError: there is no such text or part.
        DataError: a file is missing or damaged.

    Source: of the plays, Karpathy's char-rnn of 2015; Shakespeare's text is in the public domain.
    """
    if name == "book" and part is None:
        return "\n\n".join(book_text())
    if name == "shakespeare" and part is None:
        return _shipped(SHAKESPEARE, SHAKESPEARE_SHA256)
    if name == "tinyshakespeare" and part is None:
        return _read(registry.path(name, "input.txt", download))
    if name == "wikitext2" and part in ("train", "valid", "test"):
        return _read(registry.path(name, f"{part}.txt", download))
    if name == "wikitext2_train_reordered" and part is None:
        return _read(registry.path(name, "train.articles-sorted.txt.gz", download), gzip.open)
    if name == "gutenberg":
        files = [file.name for file in registry.get(name).files]
        if part is not None:
            files = [file for file in files if file == f"{part}.txt"]
        if files:
            books = [strip_gutenberg(_read(registry.path(name, file, download))) for file in files]
            return "\n\n\n".join(books)
    if name == "debian_reference" and part in LANGUAGES:
        return _manual(part, download)
    raise ValueError(
        f"there is no text {name!r} with part {part!r}, expected 'shakespeare', 'book', 'tinyshakespeare', 'gutenberg' "
        "(part: None or a book's number), 'wikitext2' (part: 'train', 'valid' or 'test'), 'wikitext2_train_reordered' "
        f"or 'debian_reference' (part: {', '.join(map(repr, LANGUAGES))})"
    )


def documents(name, part=None, download=True):
    """The texts that a text is made of: Wikipedia's articles, novels.

    Args:
        name, part, download: as `load_text`'s.

    Returns:
        list of documents, each a list of paragraphs, each a str with single spaces. Of WikiText-2 a document is an
        article, without its headings (600 to train on, 60 to validate with, 60 to test with); of ``"gutenberg"`` a
        novel; every other text is one document, in which an empty line, or of the manual any, parts paragraphs. What
        has no letter in it (a row of stars) is left out.

    Raises: as `load_text`.
    """
    if name == "gutenberg" and part is None:
        numbers = [file.name.removesuffix(".txt") for file in registry.get(name).files]
        return [document for number in numbers for document in documents(name, number, download)]
    text = load_text(name, part, download)
    if name.startswith("wikitext2"):
        articles = _TITLE.split(f"\n{text}")[1:]  # of the train part some lines of an article look like a title
        passages = [[line for line in article.split("\n") if not _HEADING.match(line)] for article in articles]
    else:
        passages = [re.split(r"\n" if name == "debian_reference" else r"\n\s*\n", text)]
    passages = [[" ".join(paragraph.split()) for paragraph in document] for document in passages]
    return [[paragraph for paragraph in document if _LETTER.search(paragraph)] for document in passages]


def split_sentences(paragraph):
    """The sentences of a paragraph of English.

    A full stop, an exclamation or a question mark ends a sentence where a space follows (after a closing quotation mark
    or bracket) and then a capital or a digit; ``Mr.`` and its like and a single capital, as in ``J. Smith``, end none.
    It is a rule of thumb, and right often enough to pretrain with.

    Args:
        paragraph: str.

    Returns:
        list of str, which joined by spaces are the paragraph again, but for its spaces.
    """
    sentences, start = [], 0
    for end in _END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph, start, end.start() + 1):
            sentences.append(paragraph[start : end.end()])
            start = end.end()
    return [" ".join(sentence.split()) for sentence in (*sentences, paragraph[start:]) if sentence.strip()]


def book_text():
    """A frozen copy of this book's own prose, as it was in November 2026.

    Returns:
        list of str, its paragraphs.

    Raises:
        DataError: this installation of the package came without it, or it was changed.
    """
    return [paragraph.strip() for paragraph in re.split(r"\n\s*\n", _shipped(BOOK, BOOK_SHA256)) if paragraph.strip()]


def playground_text(name):
    """The text that the playground learns from.

    Args:
        name: ``"shakespeare"``: the first 100,000 characters of the text of that name; ``"names"``: first names, one a
            line.

    Returns:
        str with ``\\n`` as the only line end.

    Raises:
        ValueError: there is no such text.
        DataError: a file is missing or damaged.
    """
    if name == "shakespeare":
        return load_text(name)[:100_000]
    if name == "names":
        return _read(NAMES)
    raise ValueError(f"the playground has no text {name!r}, expected 'shakespeare' or 'names'")


def _shipped(path, expected):
    """A text that comes with the package, with its SHA-256 checked."""
    if not path.is_file():
        raise DataError(f"{path} does not exist: install d2lmini again")
    actual = hashlib.sha256(path.read_bytes()).hexdigest()
    if actual != expected:
        raise DataError(f"{path} was changed: its SHA-256 is {actual}, expected {expected}; install d2lmini again")
    return _read(path)


def strip_gutenberg(text):
    """Cut header, licence and credits off a text of Project Gutenberg.

    Args:
        text: the whole file, with ``\\n`` line ends.

    Returns:
        str, what stands between the two marks, without the line that closes it and the credits that open it.

    Raises:
        ValueError: it does not have one mark of each kind.
    """
    marks = list(_MARK.finditer(text))
    if [mark[1] for mark in marks] != ["START", "END"]:
        marked = [mark[0] for mark in marks]
        raise ValueError(f"expected one '*** START OF THIS PROJECT GUTENBERG EBOOK' and one END, not {marked}")
    body = text[marks[0].end() : marks[1].start()].strip()
    return _CLOSING.sub("", _CREDIT.sub("", body)).strip()


def prose_of_manual(text, between=" "):
    """The prose of a manual that was laid out in lines: no headings, tables, lists of links, commands and their output.

    Args:
        text: the whole manual; its body is indented by four spaces.
        between: what joins two lines of a paragraph; Japanese and Chinese have no space there.

    Returns:
        list of str, its paragraphs: what begins with a letter, ends as a sentence does, and has sixty characters or
        more (thirty where no space joins lines).
    """
    text = text.replace("\xa0", " ")  # some margins are made of these
    blocks = (block.split("\n") for block in re.split(r"\n(?: *\n)+", text))
    blocks = (block for block in blocks if all(line.startswith("    ") for line in block))
    paragraphs = (between.join(line.strip() for line in block) for block in blocks)
    least = 60 if between else 30
    return [p for p in paragraphs if len(p) >= least and p[0].isalpha() and p[-1] in ".:!?。：！？)）"]


def _manual(language, download):
    def prose(language):
        text = _read(registry.path("debian_reference", f"debian-reference.{language}.txt.gz", download), gzip.open)
        return prose_of_manual(text, "" if language in ("ja", "zh-cn") else " ")

    paragraphs = prose(language)
    if language != "en":
        english = {re.sub(r"\s", "", paragraph) for paragraph in prose("en")}
        paragraphs = [p for p in paragraphs if re.sub(r"\s", "", p) not in english]
    return "\n".join(paragraphs)


def _read(path, open=open):
    """Decode as UTF-8; universal newlines make every line end a ``\\n``."""
    try:
        with open(path, "rt", encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text ({error})") from error
