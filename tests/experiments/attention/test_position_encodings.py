"""The experiment of chapter 06: its tasks ask what they say, and its models differ in the encoding alone."""

import dataclasses

import pytest
import torch

from d2lmini.experiments import position_encodings as experiment
from d2lmini.experiments.attention.position_encodings import ENCODINGS, NO_ANSWER, Config, Tagger

CONFIG = Config()


def draw(task, length=9, size=20):
    return experiment.draw(task, length, size, CONFIG, torch.Generator().manual_seed(0))


def test_back_asks_for_the_token_three_places_before():
    tokens, answers = draw("back")
    assert (answers[:, :3] == NO_ANSWER).all() and torch.equal(answers[:, 3:], tokens[:, :-3])


def test_place_asks_for_one_place_everywhere():
    tokens, answers = draw("place")
    assert all((row == line[3]).all() for line, row in zip(tokens, answers, strict=True))


def test_side_asks_whether_the_mark_comes_before():
    for line, row in zip(*draw("side"), strict=True):
        (mark,) = (line == CONFIG.num_symbols).nonzero().flatten().tolist()
        assert row.tolist() == [NO_ANSWER if t == mark else int(mark < t) for t in range(9)]


@pytest.mark.parametrize("name", ENCODINGS)
def test_only_the_model_without_positions_is_equivariant(name):
    torch.manual_seed(0)
    model, tokens = Tagger(CONFIG, name), draw("back")[0]
    same = torch.allclose(model(tokens.flip(1)).flip(1), model(tokens), atol=1e-5)
    assert same == (name == "none")
    assert model(tokens).shape == (20, 9, CONFIG.num_symbols)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_model_takes_lengths_beyond_those_of_training(name):
    assert Tagger(CONFIG, name)(draw("back", max(CONFIG.beyond))[0]).isfinite().all()


def test_accuracy_counts_the_places_that_are_asked():
    class Oracle(torch.nn.Module):
        def forward(self, tokens):
            return torch.nn.functional.one_hot(tokens.roll(3, 1), CONFIG.num_symbols).float()

    assert experiment.accuracy(Oracle(), "back", 16, CONFIG, "cpu") == 1.0
    assert experiment.accuracy(Oracle(), "place", 16, CONFIG, "cpu") < 0.3


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_s_own_parameters_are_all_that_it_has_more_than_the_model_without(name):
    own, all_of_it, without = (
        sum(p.numel() for p in parameters)
        for parameters in (
            Tagger(CONFIG, name).of_encoding(),
            Tagger(CONFIG, name).parameters(),
            Tagger(CONFIG, "none").parameters(),
        )
    )
    assert own == all_of_it - without
    assert (own > 0) == (name in ("learned", "shaw", "t5"))


def test_only_the_encoding_s_own_parameters_get_another_rate():
    config = dataclasses.replace(CONFIG, steps=1)
    start, ends = experiment.make("t5", config, 0), {}
    for times in (1, 10):
        model = experiment.make("t5", config, 0)
        experiment.train(model, "back", config, 0, "cpu", times=times)
        ends[times] = model
    moved = {times: (model.relative[0].weight - start.relative[0].weight).abs().mean() for times, model in ends.items()}
    assert 9 < moved[10] / moved[1] < 11
    assert torch.equal(ends[1].dense.weight, ends[10].dense.weight)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_is_tuned_alike_and_by_the_validation_loss_alone(monkeypatch, name):
    def attempt(task, encoding, rate, times, config, device):  # lowest at 0.01, and there at 3 times the rate
        loss = abs(rate - 0.01) + (times != 3)
        return {
            "loss": loss,
            "accuracy": {"64": loss},
        }  # beyond the trained lengths another pair is best: it has no say

    def parts(name, work, *args):
        return work(*args)

    monkeypatch.setattr(experiment, "attempt", attempt)
    rate, times, tried = experiment.choose("back", name, CONFIG, "cpu", parts)
    has_parameters = name in ("learned", "shaw", "t5")
    assert (rate, times) == (0.01, 3 if has_parameters else None)
    pairs = [(made["rate"], made["times"]) for made in tried]
    assert pairs[: len(CONFIG.rates)] == [(rate, 1) for rate in CONFIG.rates]
    assert pairs[len(CONFIG.rates) :] == [(0.01, times) for times in CONFIG.multipliers[1:] if has_parameters]


def test_the_rate_that_was_chosen_trains_the_scored_models(monkeypatch):
    asked = []
    monkeypatch.setattr(experiment, "attempt", lambda task, encoding, rate, times, *_: {"loss": 1 / rate / times})
    monkeypatch.setattr(experiment, "train", lambda *args: asked.append(args[-2:]) or [0.0] * 8)
    experiment.run(dataclasses.replace(experiment.PRESETS["smoke"], tasks=("back",), encodings=("rotary", "t5")), "cpu")
    assert asked == [(1e-2, 1), (1e-2, 10)]


def test_rates_are_chosen_on_sequences_that_no_score_uses():
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, tokens):
            seen.append(tokens)
            return torch.zeros(*tokens.shape, CONFIG.num_symbols)

    experiment.validation_loss(Spy(), "back", CONFIG, "cpu")
    experiment.accuracy(Spy(), "back", CONFIG.within[0], CONFIG, "cpu")
    assert [x.shape[1] for x in seen] == [*CONFIG.within, CONFIG.within[0]]
    assert not torch.equal(seen[0], seen[-1]) and CONFIG.validation_seed not in CONFIG.seeds


@pytest.mark.train
def test_training_lowers_the_loss():
    config = dataclasses.replace(CONFIG, steps=60)
    torch.manual_seed(0)
    losses = experiment.train(Tagger(config, "shaw"), "back", config, 0, "cpu")
    assert sum(losses[-10:]) < 0.85 * sum(losses[:10])
