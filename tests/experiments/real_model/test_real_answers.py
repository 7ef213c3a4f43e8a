"""What is asked of a model and seen in it: scores that a made model must have, and a cache without a position."""

from dataclasses import replace

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


def test_random_sequences_are_said_twice_without_a_repeated_token(toy):
    tokens = real_answers.random_sequences(toy[0], SMOKE)
    once = tokens[:, : SMOKE.period]
    assert torch.equal(once, tokens[:, SMOKE.period :]) and tokens.shape == (SMOKE.sequences, 2 * SMOKE.period)
    assert all(len(set(row)) == SMOKE.period for row in once.tolist())


def test_the_weight_on_the_first_token_is_a_mean_over_later_queries():
    maps = torch.zeros(2, 3, 4, 10, 10)  # (L, N, H, T, T)
    maps[1, :, 2, 5:, 0] = 0.25
    maps[:, :, :, :5, 0] = 1.0  # earlier queries do not count
    found = real_answers.first_weights(maps, 5)
    assert found.shape == (2, 4) and found[1, 2] == 0.25 and found.sum() == 0.25


def test_a_position_is_taken_out_of_every_cache_and_the_others_stay(toy):
    model, tokenizer = toy
    with torch.no_grad():
        _, state = model.extend(torch.tensor([tokenizer.encode("abcdef")]), model.empty_state(1))
    short = real_answers.without_position(state, 2)
    assert short.length == 5 and state.length == 6
    for cut, cache in zip(short.caches, state.caches, strict=True):
        for mine, whole in zip(cut, cache, strict=True):
            assert torch.equal(mine, torch.cat([whole[:, :, :2], whole[:, :, 3:]], 2))


def test_the_last_layer_says_what_the_model_does_and_the_first_what_the_embedding_would(toy):
    model, tokenizer = toy
    tokens = torch.tensor(tokenizer.encode("The capital"))
    with torch.no_grad():
        said, wanted = real_answers.layers(model, tokens), model(tokens[None])[0, -1].log_softmax(-1)
        embedded = model.dense(model.norm(model.embedding(tokens[-1]))).log_softmax(-1)
    assert said.shape == (len(model.blks) + 1, model.config.vocab_size)
    torch.testing.assert_close(said[-1], wanted)
    torch.testing.assert_close(said[0], embedded)
    assert not model.norm._forward_pre_hooks and not model.blks[0]._forward_pre_hooks


def test_heads_are_switched_off_by_their_scores():
    config = replace(SMOKE, off=(0, 16))
    found = real_answers.looked(config)
    assert found["off"]["0"]["strongest"] == found["halves"]
    assert found["off"]["16"]["strongest"] != found["halves"] == found["off"]["16"]["others"][0]  # there are no others


def test_without_the_weights_the_laptop_preset_says_what_is_missing(monkeypatch):
    def missing():
        raise smollm2.DataError("the weights are not here")

    monkeypatch.setattr(smollm2, "smollm2_path", missing)
    with pytest.raises(smollm2.DataError, match="not here"):
        real_answers.run(PRESETS["laptop"], torch.device("cpu"))
