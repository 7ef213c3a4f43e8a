"""What is asked of a model and seen in it: scores that a made model must have, and a cache without a position."""

import pytest
import torch

from d2lmini.experiments import real_answers
from d2lmini.experiments.real_model import bases
from d2lmini.experiments.real_model.real_answers import PRESETS
from d2lmini.models.weights import smollm2

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def toy():
    return bases.load("toy")


def test_an_answer_ends_at_the_stop_and_is_as_long_as_wanted(toy):
    model, tokenizer = toy
    (said,) = real_answers.answers(model, tokenizer, tokenizer.encode("Hello"), SMOKE, temperature=0)
    assert len(said) == SMOKE.new_tokens
    generator = torch.Generator().manual_seed(0)
    drawn = real_answers.answers(
        model, tokenizer, tokenizer.encode("Hello"), SMOKE, num_samples=3, generator=generator, temperature=3.0
    )
    assert len(drawn) == 3 == len(set(drawn))


def test_right_is_what_has_the_word_as_it_is_written():
    assert real_answers.is_right("It is Bern.", ("Bern",)) and real_answers.is_right("It has 8 legs", ("eight", "8"))
    assert not real_answers.is_right("It is bern.", ("Bern",))


def test_what_is_expected_next_sums_to_one_and_has_the_likeliest(toy):
    model, tokenizer = toy
    found = real_answers.expected(SMOKE)
    log_probs = torch.tensor(found["log_probs"], dtype=torch.float64)
    assert log_probs.shape == (len(SMOKE.begun), len(found["tokens"])) and found["tokens"][-1] == "all others"
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(len(SMOKE.begun)).double(), rtol=0, atol=1e-3)
    prompt = tokenizer.encode("What is the capital of France?\nThe capital of France is")
    with torch.no_grad():
        best = model(torch.tensor([prompt]))[0, -1].argmax()
    assert found["tokens"][log_probs[0, :-1].argmax()] == tokenizer.decode([best.item()])


def test_without_the_weights_the_laptop_preset_says_what_is_missing(monkeypatch):
    def missing():
        raise smollm2.DataError("the weights are not here")

    monkeypatch.setattr(smollm2, "smollm2_path", missing)
    with pytest.raises(smollm2.DataError, match="not here"):
        real_answers.run(PRESETS["laptop"], torch.device("cpu"))
