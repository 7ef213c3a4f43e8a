"""The trained byte-pair encoding: nothing is lost, nothing is mistaken for a special token, training repeats itself."""

import os
import random
import subprocess
import sys

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from d2lmini.data.grammar import make_sentences
from d2lmini.tokenization import SPECIAL_TOKENS, BPETokenizer

SENTENCES = [side for made in make_sentences(1_000)["train"] for side in (made.english, made.french)]
TOKENIZER = BPETokenizer.train(SENTENCES, 600)
FIRST = len(SPECIAL_TOKENS)


@settings(deadline=None)
@given(st.text())
@example("")
@example(" ")
@example("  two  spaces ")
@example("l'homme n'a pas vu l’été.\n\tÇa va\u202f?")
@example("<eos><pad> <unk>")
@example("▁Ġ<0x0A>")
@example("क्षि e\u0301 👩‍👩‍👧 \x00\r\n")
def test_round_trip(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert TOKENIZER.decode(torch.tensor(ids, dtype=torch.long)) == text
    assert all(FIRST <= index < len(TOKENIZER) for index in ids), "text became a special token"


def test_merges_shorten_what_they_were_learnt_from():
    # bytes alone would need one token each
    ratio = sum(map(len, TOKENIZER.encode_batch(SENTENCES))) / sum(len(text.encode()) for text in SENTENCES)
    assert ratio < 0.35 and len(TOKENIZER) == 600


def test_a_batch_equals_one_by_one():
    texts = ["", *SENTENCES[:50], "a  b", " a"]
    assert TOKENIZER.encode_batch(texts) == [TOKENIZER.encode(text) for text in texts]
    # and what tokenizers makes of the whole text, although ours goes word by word
    assert TOKENIZER.encode_batch(SENTENCES) == [TOKENIZER._tokenizer.encode(" " + text).ids for text in SENTENCES]


@settings(deadline=None)
@given(st.text())
@example("")
@example("  two  spaces ")
@example("l'été 😂 क्षि\n")
def test_offsets(text):
    ((ids, offsets),) = TOKENIZER.encode_with_offsets([text])
    assert ids == TOKENIZER.encode(text) and len(ids) == len(offsets)
    bounds = [place for pair in offsets for place in pair]
    assert [pair[0] for pair in offsets] == sorted(pair[0] for pair in offsets) and all(
        0 <= b <= len(text) for b in bounds
    )
    for index, (start, end) in zip(ids, offsets, strict=True):
        piece = TOKENIZER.to_tokens(index)
        if "\ufffd" not in piece + text:  # a whole character or more
            assert piece.replace("▁", "").strip() == text[start:end].replace("▁", "").strip()
    covered = {place for start, end in offsets for place in range(start, end)}
    assert covered == set(range(len(text)))


def test_no_token_reaches_over_a_word():
    tokenizer = BPETokenizer.train(["l'homme de la ville, dit-il"] * 9, 400)
    assert tokenizer.to_tokens(tokenizer.encode("l'homme de la ville, dit-il")) == [
        "▁l'", "homme", "▁de", "▁la", "▁ville", ",", "▁dit", "-", "il",
    ]  # fmt: skip


def test_the_order_of_sentences_and_the_number_of_threads_do_not_matter():
    shuffled = random.Random(0).sample(SENTENCES, len(SENTENCES))
    assert BPETokenizer.train(shuffled, 600)._tokenizer.to_str() == TOKENIZER._tokenizer.to_str()
    code = (
        "import sys; from d2lmini.data.grammar import make_sentences; from d2lmini.tokenization import BPETokenizer\n"
        "made = make_sentences(1_000)['train']\n"
        "t = BPETokenizer.train([side for s in made for side in (s.english, s.french)], 600)\n"
        "sys.stdout.buffer.write(t._tokenizer.to_str().encode())"
    )
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=120, check=True)
    assert done.stdout.decode() == TOKENIZER._tokenizer.to_str()


def test_it_stands_where_a_vocab_does():
    assert [TOKENIZER[token] for token in SPECIAL_TOKENS] == [0, 1, 2, 3]
    assert TOKENIZER.to_tokens([0, 1, 2, 3]) == list(SPECIAL_TOKENS) and TOKENIZER.unk == 3
    assert TOKENIZER.to_tokens(2) == TOKENIZER.to_tokens(torch.tensor(2)) == "<eos>"
    assert TOKENIZER.to_tokens([2]) == TOKENIZER.to_tokens(torch.tensor([2])) == ["<eos>"]
    ids = TOKENIZER.encode("le chat")
    assert TOKENIZER.to_tokens(ids)[0] == "▁le" and TOKENIZER[TOKENIZER.to_tokens(ids)] == ids
    assert TOKENIZER["qqqq"] == TOKENIZER.unk
    assert TOKENIZER.decode([1, *ids, 2, 2, 0]) == "le chat"


def test_bytes_that_are_no_text():
    start = TOKENIZER.encode("é")[-1:] if len(TOKENIZER.encode("é")) > 1 else TOKENIZER.encode("क")[:2]
    assert "\ufffd" in TOKENIZER.decode(start)


def test_save_and_load(tmp_path):
    TOKENIZER.save(tmp_path / "bpe.json")
    loaded = BPETokenizer.load(tmp_path / "bpe.json")
    texts = [*SENTENCES[:20], "<eos> Ünseen 漢字"]
    assert loaded.encode_batch(texts) == TOKENIZER.encode_batch(texts) and len(loaded) == len(TOKENIZER)
    assert loaded.decode(loaded.encode("<eos> l'été")) == "<eos> l'été"


def test_load_what_is_not_ours(tmp_path):
    with pytest.raises(FileNotFoundError):
        BPETokenizer.load(tmp_path / "none.json")
    for content in (b"", b'{"version": "1.0"', b'{"a": 1}', b"\x80\x04pickle"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.json is no saved tokenizer"):
            BPETokenizer.load(tmp_path / "bad.json")
    Tokenizer(models.BPE()).save(str(tmp_path / "other.json"))
    with pytest.raises(
        ValueError, match=r"other\.json gives <pad>, .* the ids \[None, None, None, None\], expected 0 to 3"
    ):
        BPETokenizer.load(tmp_path / "other.json")


def test_bad_input():
    with pytest.raises(ValueError, match="vocab_size is 259, expected at least 260: 256 bytes and 4 special tokens"):
        BPETokenizer.train(["a"], 259)
    with pytest.raises(ValueError, match="no text to learn from"):
        BPETokenizer.train(["", ""], 300)
    with pytest.raises(TypeError, match="got one str: put it into a list"):
        BPETokenizer.train("a text", 300)
    with pytest.raises(TypeError, match="sentence 1 is a NoneType, expected str"):
        TOKENIZER.encode_batch(["a", None])
    with pytest.raises(ValueError, match=r"character 1 of the text is '\\ud800', one half of a surrogate pair"):
        TOKENIZER.encode("a\ud800")
    with pytest.raises(ValueError, match="one half of a surrogate pair"):
        BPETokenizer.train(["a", "\udc00"], 300)
    for index in (-1, len(TOKENIZER)):
        with pytest.raises(ValueError, match=f"id {index} is outside the vocabulary of 600 tokens"):
            TOKENIZER.decode([index])
        with pytest.raises(ValueError, match="outside the vocabulary"):
            TOKENIZER.to_tokens([index])
    assert len(BPETokenizer.train(["ab"], 5_000)) == 260, "there is nothing to merge, and len says so"
