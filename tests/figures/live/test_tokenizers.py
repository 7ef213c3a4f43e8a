"""The tokenizers of the page give Python's ids and Python's texts, whatever is typed."""

import gzip
import os
import random
import unicodedata
from pathlib import Path

import pytest

from d2lmini.models.weights import tokenizers
from tests.javascript.cases import tokenizers as made

PIECES = [
    *"abcdestnr ABIé'’-_.,!?0579 \t",
    *[
        "'s",
        "l'",
        "the ",
        " man",
        "e\u0301",
        "\u0308",
        "中",
        "\u200d",
        "😀",
        "🏽",
        "ש",
        "م",
        "ﬁ",
        "½",
        "Σ",
        "İ",
        "\u00a0",
    ],
    *[
        "\u200b",
        "\xad",
        "\ufeff",
        "\x1c",
        "\x85",
        "\u2028",
        "[MASK]",
        "<eos>",
        "##",
        "ß",
        "٣",
        "한",
        "𝒜",
        "\ud800",
        "ａ",
    ],
]


def _known(text):
    """Without what Python's tables do not have, which a browser's may."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cn")


def _fuzz(number, seed=0):
    draw = random.Random(seed)
    for _ in range(number):
        if draw.random() < 0.7:
            yield "".join(draw.choices(PIECES, k=draw.randrange(1, 40)))
        else:
            tops = [0x250, 0x3000, 0x10000, 0x30000]
            yield _known("".join(chr(draw.randrange(draw.choice(tops))) for _ in range(draw.randrange(1, 30))))


@pytest.fixture(scope="module")
def texts():
    """What is typed: thousands of made texts, and real ones where they are."""
    found = [*made.ODD, *_fuzz(3000)]
    for folder in filter(None, os.environ.get("D2LMINI_DATA", "").split(os.pathsep)):
        for name in ("train.en.gz", "train.fr.gz"):
            if (path := Path(folder) / "multi30k" / name).exists():
                found += gzip.decompress(path.read_bytes()).decode().splitlines()[::29]
        for path in sorted((Path(folder) / "gutenberg").glob("*.txt"))[:8]:
            found += [line for line in path.read_text(encoding="utf-8").splitlines()[::17] if line.strip()]
    return found


SOURCES = """
const tokenizer = live.makeTokenizer(given.said);
return given.texts.map((text) => {
  try { return tokenizer.source(text); } catch (error) { return error.message; }
});
"""


def _same(got, want, texts):
    differ = []
    for text, one, other in zip(texts, got, want, strict=True):
        same = one.startswith(other) if isinstance(one, str) and isinstance(other, str) else one == other
        if not same:
            differ.append((text, one, other))
    assert not differ, f"{len(differ)} texts differ: {[tuple(map(ascii, one)) for one in differ[:5]]}"


@pytest.mark.parametrize("kind", ["words", "byte_pairs"])
def test_sources_are_pythons(kind, live, texts):
    python = getattr(made, kind)()
    said = tokenizers.as_json(python, max_len=made.MOST)
    assert said["kind"] == kind
    want = list(made.sources(python, texts))
    assert {"there is no text", "the text is too long"} <= {one for one in want if isinstance(one, str)}
    _same(live(SOURCES, {"said": said, "texts": texts}), want, texts)


@pytest.mark.parametrize("kind", ["words", "byte_pairs"])
def test_texts_and_pieces_are_pythons(kind, live):
    python = getattr(made, kind)()
    said = tokenizers.as_json(python, max_len=made.MOST)
    draw = random.Random(1)
    ids = [[draw.randrange(len(python)) for _ in range(draw.randrange(30))] for _ in range(2000)]
    ids += [[draw.choice([0, 1, 2, 3, 5, 6]) for _ in range(6)] for _ in range(50)]
    ids += [[*row, python["<eos>"], *row] for row in ids[:300]]
    if kind == "words":  # marks and apostrophes, which have their own spaces
        close = [i for i, token in enumerate(said["tokens"]) if token in ["'s", *".,!?"] or token[-1] == "'"]
        ids += [[draw.choice([*close, 7]) for _ in range(12)] for _ in range(500)]
    end = python["<eos>"]
    texts = [python.decode(row[: row.index(end)] if end in row else row) for row in ids]
    got = live(
        "const t = live.makeTokenizer(given.said); return given.ids.map((ids) => [t.text(ids), t.pieces(ids)]);",
        {"said": said, "ids": ids},
    )
    for row, text, (got_text, pieces) in zip(ids, texts, got, strict=True):
        assert got_text == text, row
        assert pieces == python.to_tokens(row)


def test_word_pieces_are_pythons(live, texts):
    python = made.word_pieces()
    said = tokenizers.as_json(python)  # asks the library for every code point
    texts = [text for text in texts if not any(special in text for special in said["special"])]
    want = list(made.wordpiece_ids(python, texts))
    got = live(SOURCES.replace("source", "encode"), {"said": said, "texts": texts})
    _same(got, want, texts)
