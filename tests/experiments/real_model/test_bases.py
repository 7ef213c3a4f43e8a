"""The model of a preset, and the processor's time."""

import hashlib
import time

import pytest
import torch

from d2lmini.data.text import load_text
from d2lmini.experiments.real_model import bases
from d2lmini.models.weights import files


def test_a_toy_is_the_same_each_time_and_draws_nothing():
    before = torch.get_rng_state()
    (first, tokenizer), (second, _) = bases.load("toy"), bases.load("toy")
    assert torch.equal(torch.get_rng_state(), before)
    tokens = torch.tensor([bases.encode(tokenizer, "A toy é\n")])
    assert tokenizer.decode(tokens[0]) == "A toy \n"  # what it does not know is left out
    assert torch.equal(first(tokens), second(tokens)) and not first.training
    assert len({row.argmax().item() for row in first(tokens)[0]}) > 2


def test_the_book_s_own_model():
    model, tokenizer = bases.load("shakespeare")
    text = "ROMEO:\nWhat 9 light"
    assert tokenizer.decode(bases.encode(tokenizer, text)) == "ROMEO:\nWhat  light"
    assert len(tokenizer) == model.config.vocab_size
    path = files.path_of("gpt_shakespeare")
    assert bases.checksums("shakespeare") == {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    assert bases.checksums("toy") == {}


def test_unknown_base():
    with pytest.raises(ValueError, match="no base 'smol', only smollm2, shakespeare, toy"):
        bases.load("smol")


def test_the_processor_does_not_wait():
    result, seconds = bases.processor_seconds(lambda: time.sleep(0.2) or 7)
    assert result == 7 and seconds < 0.1

    def work():
        start = time.process_time()
        while time.process_time() - start < 0.02:
            pass

    found = bases.median_processor_seconds({"work": work, "nothing": lambda: None}, 3)
    assert found["nothing"] < 0.01 < 0.02 <= found["work"]


def test_one_thread_for_a_while():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with pytest.raises(KeyError), bases.one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_checksums_of_texts():
    digest = hashlib.sha256(load_text("shakespeare").encode()).hexdigest()
    assert bases.text_checksums("shakespeare") == {"shakespeare.txt": digest}
    assert list(bases.text_checksums("book")) == ["book.txt"]
