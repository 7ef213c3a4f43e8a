"""Inside a model: scores that made weights must have, a cache without a position, and what blocks would say."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments.abilities import induction
from d2lmini.experiments.real_model import bases, opened
from d2lmini.experiments.real_model.real_answers import PRESETS

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def toy():
    return bases.load("toy")


def test_random_sequences_are_said_twice_without_a_repeated_token(toy):
    tokens = opened.random_sequences(toy[0], SMOKE)
    once = tokens[:, : SMOKE.period]
    assert torch.equal(once, tokens[:, SMOKE.period :]) and tokens.shape == (SMOKE.sequences, 2 * SMOKE.period)
    assert all(len(set(row)) == SMOKE.period for row in once.tolist())


def test_the_weight_on_the_first_token_is_a_mean_over_later_queries():
    maps = torch.zeros(2, 3, 4, 10, 10)  # (L, N, H, T, T)
    maps[1, :, 2, 5:, 0] = 0.25
    maps[:, :, :, :5, 0] = 1.0  # earlier queries do not count
    found = opened.first_weights(maps, 5)
    assert found.shape == (2, 4) and found[1, 2] == 0.25 and found.sum() == 0.25


def test_a_position_is_taken_out_of_every_cache_and_the_others_stay(toy):
    model, tokenizer = toy
    with torch.no_grad():
        _, state = model.extend(torch.tensor([tokenizer.encode("abcdef")]), model.empty_state(1))
    short = opened.without_position(state, 2)
    assert short.length == 5 and state.length == 6
    for cut, cache in zip(short.caches, state.caches, strict=True):
        for mine, whole in zip(cut, cache, strict=True):
            assert torch.equal(mine, torch.cat([whole[:, :, :2], whole[:, :, 3:]], 2))


def test_the_last_layer_says_what_the_model_does_and_the_first_what_the_embedding_would(toy):
    model, tokenizer = toy
    tokens = torch.tensor(tokenizer.encode("The capital"))
    with torch.no_grad():
        said, wanted = opened.layers(model, tokens), model(tokens[None])[0, -1].log_softmax(-1)
        embedded = model.dense(model.norm(model.embedding(tokens[-1]))).log_softmax(-1)
    assert said.shape == (len(model.blks) + 1, model.config.vocab_size)
    torch.testing.assert_close(said[-1], wanted)
    torch.testing.assert_close(said[0], embedded)
    assert not model.norm._forward_pre_hooks and not model.blks[0]._forward_pre_hooks


def test_heads_are_switched_off_by_their_scores(toy):
    model, _ = toy
    found = opened.looked(replace(SMOKE, off=(0, 1)))
    best = divmod(torch.tensor(found["induction"]).argmax().item(), model.config.num_heads)
    with induction.without(model, [best]):
        want = induction.halves(induction.losses(model, opened.random_sequences(model, SMOKE)), SMOKE.period)
    assert found["off"]["1"]["strongest"] == pytest.approx(want, rel=1e-9)
    assert found["off"]["0"]["strongest"] == found["halves"] != found["off"]["1"]["strongest"]
