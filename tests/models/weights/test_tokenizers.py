"""Tokenizers in files: they come back the same, and what is said of each kind is enough to write it anew."""

import json
import re
import unicodedata
from itertools import pairwise

import pytest

from d2lmini.data.grammar import make_sentences
from d2lmini.experiments.bert import lower_case
from d2lmini.metrics import corpus_bleu
from d2lmini.models.weights.tokenizers import as_json, from_json
from d2lmini.tokenization import BPETokenizer, WordTokenizer
from d2lmini.tokenization.characters import CharacterTokenizer

PAIRS = [(s.english, s.french) for s in make_sentences(1000, 0)["train"]][:300]
TEXTS = [
    *(text for pair in PAIRS[:40] for text in pair),
    "The king's dog isn't l'homme's: what's 's? rock-n-roll, x--y 3.14 ½ Ⅷ _a_ 'quoted' 's",
    "naïve café cafe\u0301 ÀÉÎ ẞ ﬁ İstanbul ΣΑΣ ΟΔΟΣ",
    "  tabs\tand\nlines\r\n \u00a0nbsp\u2003em\u3000 \x1c\x85",
    "soft\u00adhyphen zero\u200bwidth bom\ufeff joined\u200dup \x00nul",
    "<eos> <pad> [MASK] [CLS] ##s <unk>",
    "emoji 👩‍👩‍👧 🇫🇷 ❤️ 漢字かな한국어 عربي हिन्दी नि 𝒳𝓎 𠀀",
    "a" * 99 + " " + "a" * 100 + " " + "a" * 101,
    "!?…—’“”«»$+<=>^`|~°© don’t l’eau",
    "\U0001e8d0a\u0898b \U00016fe2 \ua7cb\u1c89 replaced\ufffd",
]


def category(text):
    return unicodedata.category(text)[0]


def cleaned(text):
    return " ".join(text.replace("\u200b", "").replace("\xad", "").split())


WORD = r"\w"  # of Python: letters, numbers and the low line, as the test below tells


def test_letters_and_numbers_are_what_is_said():
    for point in (*range(0xD800), *range(0xE000, 0x110000)):
        assert bool(re.match(r"\w", chr(point))) == (category(chr(point)) in "LN" or chr(point) == "_")


# ---- each kind, written anew from the description


def words(said, text):
    w = WORD
    pattern = rf"'s(?!{w})|{w}+(?:-{w}+)*(?='s(?!{w}))|{w}+(?:-{w}+)*'?|[^\w ]"
    pieces = re.findall(pattern, cleaned(text))
    ids = {token: index for index, token in enumerate(said["tokens"])}
    return [ids.get(piece, ids["<unk>"]) for piece in pieces]


def words_text(said, ids):
    left_out = ("<pad>", "<bos>", "<eos>")
    text = " ".join(said["tokens"][index] for index in ids if said["tokens"][index] not in left_out)
    return re.sub(rf" (?=[.,!]|'s(?!{WORD}))", "", text).replace("' ", "'")


def letters(text):
    """Of each character: L, N, a space, or another mark."""
    return "".join(category(c) if category(c) in "LN" else " " if c == " " else "x" for c in text)


SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [b for b in range(256) if b not in SHOWN]
BYTE = {b: chr(b) if b in SHOWN else chr(256 + OTHERS.index(b)) for b in range(256)}


def byte_pairs(said, text):
    tokens, ranks = said["tokens"], {tuple(pair): rank for rank, pair in enumerate(said["merges"])}
    number = {token: index for index, token in enumerate(tokens)}
    ids = []
    for word in cleaned(text).split(" "):
        word = " " + word
        kinds = "".join("'" if c in "'’" else kind for c, kind in zip(word, letters(word), strict=True))
        for match in re.finditer(r" ?L+'?| ?N+| ?[x']+| +", kinds):
            part = [number[BYTE[b]] for b in word[match.start() : match.end()].encode()]
            while True:
                pairs = [(ranks.get(pair, len(ranks)), i) for i, pair in enumerate(pairwise(part))]
                rank, i = min(pairs, default=(len(ranks), 0))
                if rank == len(ranks):
                    break
                part[i : i + 2] = [number[tokens[part[i]] + tokens[part[i + 1]]]]
            ids += part
    return ids


def byte_pairs_text(said, ids):
    back = {character: b for b, character in BYTE.items()}
    data = bytes(back[c] for index in ids if index >= 4 for c in said["tokens"][index])
    return data.decode("utf-8", "replace").removeprefix(" ")


def wordpiece(said, text):
    inside = {
        name: {point for first, last in ranges for point in range(first, last + 1)}
        for name, ranges in said["classes"].items()
    }
    text = "".join(c for c in text if ord(c) not in inside["dropped"])
    text = "".join(" " if ord(c) in inside["spaces"] else c for c in text)
    text = "".join(f" {c} " if ord(c) in inside["ideographs"] else c for c in text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if ord(c) not in inside["marks"])
    text = "".join(c.lower() for c in text)
    text = "".join(f" {c} " if ord(c) in inside["punctuation"] else c for c in text)
    number, ids = {token: index for index, token in enumerate(said["tokens"])}, []
    for word in text.split(" "):
        pieces, start = [], 0
        while start < len(word) <= said["max_chars"]:
            ends = range(len(word), start, -1)
            found = (number.get("##" * bool(start) + word[start:end]) for end in ends)
            end, piece = next(((e, i) for e, i in zip(ends, found, strict=True) if i is not None), (None, None))
            if piece is None:
                break
            pieces, start = [*pieces, piece], end
        if word:
            ids += pieces if start == len(word) else [number["[UNK]"]]
    return ids


@pytest.fixture(scope="module")
def made():
    texts = [text for pair in PAIRS for text in pair]
    documents = [["The king’s dog, naïve café: " + text for text in texts[:300]] * 20]
    return {
        "words": WordTokenizer([text for pair in PAIRS for text in pair]),
        "byte_pairs": BPETokenizer.train([*texts, "naïve café l’eau 👩 漢字"], 700),
        "wordpiece": lower_case.wordpiece(documents, 400),
        "characters": CharacterTokenizer("".join(texts)),
    }


def encode(tokenizer, text):
    if hasattr(tokenizer, "encode_batch_fast"):
        tokenizer.encode_special_tokens = True
        return tokenizer.encode(text, add_special_tokens=False).ids
    return tokenizer.encode_batch([cleaned(text)])[0]


@pytest.mark.parametrize("kind", ["words", "byte_pairs", "wordpiece"])
def test_the_description_gives_the_same_ids(kind, made):
    said = json.loads(json.dumps(as_json(made[kind], 64)))
    assert said["kind"] == kind
    anew = {"words": words, "byte_pairs": byte_pairs, "wordpiece": wordpiece}[kind]
    for text in TEXTS:
        assert anew(said, text) == encode(made[kind], text), text
    again = from_json(said)
    assert all(encode(again, text) == encode(made[kind], text) for text in TEXTS)


@pytest.mark.parametrize("kind", ["words", "byte_pairs"])
def test_the_description_gives_the_same_texts(kind, made):
    said = as_json(made[kind], 64)
    back = {"words": words_text, "byte_pairs": byte_pairs_text}[kind]
    for text in TEXTS:
        ids = [1, *encode(made[kind], text), 2, 0]
        if kind == "words":
            ids = [made[kind][token] for token in ("<bos>", "<pad>")] + ids
        assert back(said, ids) == made[kind].decode(ids)
    french = [pair[1] for pair in PAIRS]
    again = [back(said, encode(made[kind], text)) for text in french]
    assert corpus_bleu(again, [[text] for text in french]).value > 99.9


def test_characters(made):
    said = json.loads(json.dumps(as_json(made["characters"])))
    assert said == {"kind": "characters", "tokens": made["characters"].idx_to_token}
    again = from_json(said)
    assert again.encode(PAIRS[0][1]) == made["characters"].encode(PAIRS[0][1])
    assert "".join(said["tokens"][i] for i in again.encode(PAIRS[0][0])) == PAIRS[0][0]


def test_what_is_no_tokenizer():
    assert from_json(None) is None
    with pytest.raises(TypeError, match="a dict is no tokenizer that a file of weights can hold"):
        as_json({})
    with pytest.raises(ValueError, match="of kind 'morse', expected characters"):
        from_json({"kind": "morse"})
    with pytest.raises(ValueError, match="the tokens of the words do not make the same tokenizer again"):
        from_json({"kind": "words", "tokens": ["b", "a"]})
    with pytest.raises(ValueError, match="the first tokens are"):
        from_json({"kind": "byte_pairs", "tokens": ["a", "b"], "merges": []})
