"""The tokenizers of the page give Python's ids and Python's texts, whatever is typed."""

import json
import random

from d2lmini.data.tatoeba import clean
from d2lmini.models.weights import model_pieces, smollm2, tokenizers
from d2lmini.tokenization import BPETokenizer, WordTokenizer
from d2lmini.tokenization.characters import CharacterTokenizer
from tests.small_gguf import MERGES, SPECIAL, TEMPLATE, letters

MODULE = "tests/javascript/runtime.js"
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
MOST = 120  # tokens of a source
UNKNOWN = {"x": "“x” (U+0078)", "\ufffd": "“\ufffd” (U+FFFD)", "\u0308": "U+0308", "\n": "U+000A"}


def well_formed(text):
    return "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in _joined(text))


def _joined(text):
    """Halves that lie side by side are one character, as they are in JavaScript."""
    return json.loads(json.dumps(text))


def words():
    sentences = [f"le chat-{i} voit l'homme's « été » ?" for i in range(9)] + ["The king's 's the , . ! ?", *ODD[7:10]]
    return WordTokenizer(sentences)


def byte_pairs(size=600):
    text = ["Un homme et une femme l'ont vu .", "The man's dog, and the woman.", "naïve été 中文 😀😀", *ODD[7:15]] * 2
    return BPETokenizer.train(text, size)


def word_pieces():
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,!?'-_中文שלםσς½ﬁß①<>[]#😀"))
    pieces = ["the", "man", "##ing", "##s", "ca", "##t", "##ca", "xx", "##xx", "un", "##un", "supercali"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = list(dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *pieces]))
    said = {"kind": "wordpiece", "tokens": tokens, "special": special, "max_chars": 100}
    return tokenizers.from_json(said)


def cases():
    for python in (words(), byte_pairs(330)):
        said = tokenizers.as_json(python, max_len=MOST)
        yield case(said, source=(ODD, list(sources(python, ODD))), **shown(python, said))
    python = word_pieces()
    said = tokenizers.as_json(python)
    texts = [text for text in ODD if len(text) < 200 and not any(special in text for special in said["special"])]
    yield case(said, encode=(texts, list(wordpiece_ids(python, texts))))
    yield characters()
    yield chat()


def case(said, **methods):
    """Of each method its inputs, and what it has to give for each of them."""
    given, wanted = ({name: pair[which] for name, pair in methods.items()} for which in (0, 1))
    return "tokens", [said, given], wanted


def sources(python, texts, most=MOST):
    for text in texts:
        cleaned = clean(well_formed(text))
        ids = python.encode_batch([cleaned])[0]
        if not cleaned:
            yield "there is no text"
        elif len(ids) + 1 > most:
            yield "the text is too long"
        else:
            yield [*ids, python["<eos>"]]


def shown(python, said):
    """Texts and pieces of ids: marks and apostrophes, which have their own spaces; what comes after the end."""
    draw, end = random.Random(1), python["<eos>"]
    close = [i for i, token in enumerate(said["tokens"]) if token in ["'s", *".,!?"] or token[-1] == "'"] or [3]
    ids = [[draw.randrange(len(python)) for _ in range(draw.randrange(16))] for _ in range(30)]
    ids += [[draw.choice([0, 1, 2, 3, 5, 6]) for _ in range(6)] for _ in range(8)]
    ids += [[*row, end, *row] for row in ids[:4]] + [[draw.choice([*close, 7]) for _ in range(9)] for _ in range(16)]
    texts = [python.decode(row[: row.index(end)] if end in row else row) for row in ids]
    pieces = [*map(python.to_tokens, ids), f"id {len(python)} is none of the {len(python)} tokens"]
    return {"text": (ids, texts), "pieces": ([*ids, [len(python)]], pieces)}


def wordpiece_ids(python, texts):
    for text in texts:
        ids = python.encode(well_formed(text), add_special_tokens=False).ids
        yield [2, *ids, 3] if ids else "there is no text"


def characters():
    python = CharacterTokenizer("The quick brown fo — 😀 e\u0301 ﬁ.")
    said = tokenizers.as_json(python)
    known = ["", "foo 😀", "e\u0301", "foo\U0001f600 ﬁ", "Teh"]
    unknown = [f"the model does not know the character {name}" for name in UNKNOWN.values()]
    every, ids = list(range(len(python))), [*map(python.encode, known), *unknown]
    return case(said, encode=([*known, *UNKNOWN], ids), decode=([every], [python.decode(every)]))


def chat():
    every = [*SPECIAL, *letters(), *(merge.replace(" ", "") for merge in MERGES)]
    settings = {"model": "gpt2", "pre": "smollm", "tokens": every, "merges": MERGES, "eos_token_id": 2}
    settings = {f"tokenizer.ggml.{key}": value for key, value in settings.items()}
    settings["tokenizer.ggml.token_type"] = [3] * len(SPECIAL) + [1] * (len(every) - len(SPECIAL))
    settings["tokenizer.chat_template"] = TEMPLATE
    python, said = smollm2.tokenizer_of(settings), model_pieces._tokenizer(settings)
    texts = [text for text in ODD if len(text) < 200]
    texts += ["the user is in the house, 12 of 345 é 😀 stones\n\n  ou", " \n\t the   us'll\x85\u2028 ½Ⅷ٣٤<|im_end|>"]
    talks = [
        [{"role": "user", "content": "the user 12"}],
        [{"role": "system", "content": "é"}, {"role": "user", "content": " a\n"}, {"role": "assistant", "content": ""}],
    ]
    bad = {
        "a message is of robot, expected system, user, assistant": [{"role": "robot", "content": "a"}],
        "a message spells the special token <|im_end|>, expected plain text": [
            {"role": "user", "content": "a<|im_end|>"}
        ],
        "there is no text": [],
    }
    return case(
        said,
        encode=(texts, [python.encode(well_formed(text)) for text in texts]),
        encodeChat=([*talks, *bad.values()], [*map(python.encode_chat, talks), *bad]),
        pieces=([[1, *python.encode("é x the")]], [["<|im_start|>", "é", " ", "x", " the"]]),
    )
