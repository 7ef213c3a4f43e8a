"""The tokenizers of the page give Python's ids and Python's texts, whatever is typed."""

import gzip
import json
import os
import random
import unicodedata
from pathlib import Path

import pytest

from d2lmini.data.tatoeba import clean
from d2lmini.models.weights import tokenizers
from d2lmini.tokenization import BPETokenizer, WordTokenizer
from d2lmini.tokenization.characters import CharacterTokenizer

ODD = [
    "",
    " ",
    "\u200b",
    "\xad\u200b \t",
    "\ufeff",
    "\ufeffa b\ufeff",
    "a\x1cb\x1fc\x85d\u3000e\u2028f",
    "l'homme voit l’autre, l ' homme ''s 's the king's 'sea' rock-'n'-roll a-b-c's -a- a--b s's'S",
    "Is it 3.14159, ½, ², ४२, Ⅷ or 一二三? ①",
    "👩‍👩‍👧‍👦 👍🏽 🇫🇷 ☺️ 🤷‍♂️",
    "שלום עולם مرحبا بالعالم \u202eabc\u202c",
    "e\u0301 é ạ̈ Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢ ㅎㅏㄴ 한국 각",
    "ﬁ ﬂ ﬀ ĳ Œuvre ŒUVRE ß ẞ İstanbul ıI ΣΑΣ ς ǅ ŉ",
    "中文字符 混合 text 日本語カタカナ 𠀀𪛖 豈",
    "a\u200cb\u200dc\u2060d\u00a0e\u034ff",
    "<eos> <bos> <pad> <unk> [CLS] [MASK] [SEP] [PAD] ##ing",
    "<script>alert(1)</script> &amp; <b onclick='x'>",
    "\ud800 a\udfff \ud83d\ude00 \ude00\ud83d",
    "\x00\x01\x7f\x80\x9f\ufffd\uffff\U0010ffff\ue000",
    "the_cat under_score __ _'s a_'s 9's 9'sa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " * 3,
    "x" * 100,
    "x" * 101,
    "é" * 100,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "A man . A dog ! A bird ? Un chien ?",
    "Un homme, 😀 " * 119 + "x",
    "a " * 119,
    "a " * 120,
]
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
    found = [*ODD, *_fuzz(3000)]
    for folder in filter(None, os.environ.get("D2LMINI_DATA", "").split(os.pathsep)):
        for name in ("train.en.gz", "train.fr.gz"):
            if (path := Path(folder) / "multi30k" / name).exists():
                found += gzip.decompress(path.read_bytes()).decode().splitlines()[::29]
        for path in sorted((Path(folder) / "gutenberg").glob("*.txt"))[:8]:
            found += [line for line in path.read_text(encoding="utf-8").splitlines()[::17] if line.strip()]
    return found


def well_formed(text):
    return "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in _joined(text))


def _joined(text):
    """Halves that lie side by side are one character, as they are in JavaScript."""
    return json.loads(json.dumps(text))


@pytest.fixture(scope="module")
def words():
    sentences = [f"le chat-{i} voit l'homme's « été » ?" for i in range(9)] + ["The king's 's the , . ! ?", *ODD[7:10]]
    return WordTokenizer(sentences)


@pytest.fixture(scope="module")
def byte_pairs():
    text = ["Un homme et une femme l'ont vu .", "The man's dog, and the woman.", "naïve été 中文 😀😀", *ODD[7:15]] * 2
    return BPETokenizer.train(text, 600)


@pytest.fixture(scope="module")
def word_pieces():
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,!?'-_中文שלםσς½ﬁß①<>[]#😀"))
    pieces = ["the", "man", "##ing", "##s", "ca", "##t", "##ca", "xx", "##xx", "un", "##un", "supercali"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = list(dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *pieces]))
    said = {"kind": "wordpiece", "tokens": tokens, "special": special, "max_chars": 100}
    return tokenizers.from_json(said)


@pytest.fixture(scope="module")
def said_of_pieces(word_pieces):
    return tokenizers.as_json(word_pieces)  # asks the library for every code point


def _sources(python, said, texts):
    for text in texts:
        cleaned = clean(well_formed(text))
        ids = python.encode_batch([cleaned])[0]
        if not cleaned:
            yield "there is no text"
        elif len(ids) + 1 > said["max_len"]:
            yield "the text is too long"
        else:
            yield [*ids, python["<eos>"]]


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
def test_sources_are_pythons(kind, live, texts, request):
    python = request.getfixturevalue(kind)
    said = tokenizers.as_json(python, max_len=120)
    assert said["kind"] == kind
    want = list(_sources(python, said, texts))
    assert {"there is no text", "the text is too long"} <= {one for one in want if isinstance(one, str)}
    _same(live(SOURCES, {"said": said, "texts": texts}), want, texts)


@pytest.mark.parametrize("kind", ["words", "byte_pairs"])
def test_texts_and_pieces_are_pythons(kind, live, request):
    python = request.getfixturevalue(kind)
    said = tokenizers.as_json(python, max_len=120)
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


def test_word_pieces_are_pythons(live, texts, word_pieces, said_of_pieces):
    said = said_of_pieces
    texts = [text for text in texts if not any(special in text for special in said["special"])]
    want = []
    for text in texts:
        ids = word_pieces.encode(well_formed(text), add_special_tokens=False).ids
        want.append([2, *ids, 3] if ids else "there is no text")
    got = live(SOURCES.replace("source", "encode"), {"said": said, "texts": texts})
    _same(got, want, texts)


def test_special_tokens_in_a_text_are_letters(live, said_of_pieces):
    ids = live("return live.makeTokenizer(given).encode('[MASK] [SEP]')", said_of_pieces)
    assert 4 not in ids and ids.count(3) == 1


def test_what_word_pieces_tell(live, said_of_pieces):
    told = live(
        """const t = live.makeTokenizer(given), ids = t.encode("the cats");
        return { same: t === live.makeTokenizer(given), mask: t.mask, special: t.special,
                 pieces: t.pieces(ids), text: t.text(ids) };""",
        said_of_pieces,
    )
    assert told["same"] and told["mask"] == 4 and told["special"] == [0, 1, 2, 3, 4]
    assert told["pieces"] == ["[CLS]", "the", "ca", "##t", "##s", "[SEP]"] and told["text"] == "the cats"


def test_characters_are_pythons(live):
    python = CharacterTokenizer("The quick brown fox — 😀 e\u0301 ﬁ.\n")
    said = tokenizers.as_json(python)
    texts = ["", "fox 😀", "e\u0301\n", "xyz", "\ufffd", "\ud83d", "fox\U0001f600 ﬁ", "A fox", "<b>"]
    want = []
    for text in texts:
        unknown = [letter for letter in well_formed(text) if letter not in python.token_to_idx]
        want.append("the model does not know the character " if unknown else python.encode(text))
    got = live(SOURCES.replace("source", "encode"), {"said": said, "texts": texts})
    _same(got, want, texts)
    assert got[3] == "the model does not know the character “y” (U+0079)" or "y" in python.token_to_idx
    every = list(range(len(python)))
    assert live("return live.makeTokenizer(given[0]).decode(given[1])", [said, every]) == python.decode(every)


def test_an_enormous_text_is_answered_at_once(live, byte_pairs, words, said_of_pieces):
    for python in (byte_pairs, words):
        said = tokenizers.as_json(python, max_len=120)
        (told,) = live(SOURCES.replace("given.texts", "['a'.repeat(2e6) + ' b'.repeat(1e5)]"), {"said": said})
        assert told.startswith("the text is too long")
    milliseconds = live(
        """const start = performance.now();
        live.makeTokenizer(given).encode("a".repeat(2e5) + " b".repeat(2e5));
        return performance.now() - start;""",
        said_of_pieces,
    )
    assert milliseconds < 5000


def test_an_unknown_kind_and_an_unknown_id_are_named(live, words):
    said = tokenizers.as_json(words, max_len=9)
    told = live(
        """const tried = (work) => { try { return work(); } catch (error) { return error.message; } };
        return [tried(() => live.makeTokenizer({ kind: "runes" })),
                tried(() => live.makeTokenizer(given).pieces([1e6]))];""",
        said,
    )
    assert told[0] == "the page does not know a tokenizer of kind runes"
    assert told[1] == f"id 1000000 is none of the {len(words)} tokens"
