"""Past the trained length: what is compared, and on which tokens."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from d2lmini.experiments import long_context
from d2lmini.experiments.gpt.long_context import PRESETS
from d2lmini.experiments.gpt.long_positions import POSITIONS, LongLearner
from d2lmini.models.gpt import GPT

CONFIG = PRESETS["smoke"]
T, D, FACTOR = 12, 6, 4.0


def learner(positions, **changes):
    """A model all of whose weights matter: some begin as zero."""
    torch.manual_seed(0)
    model = replace(CONFIG.model, vocab_size=30, positions=POSITIONS[positions], **changes)
    found = LongLearner(replace(CONFIG, model=model), positions).eval()
    for weight in found.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return found


def drawn(rows=3, length=32):
    return torch.randint(30, (rows, length + 1), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("positions", POSITIONS)
def test_in_parts_as_at_once(positions):
    """With a cache, positions are those of the whole."""
    model, tokens = learner(positions, max_len=32), drawn()[:, :-1]
    model.window = 7
    whole = model(tokens)
    first, state = model.extend(tokens[:, :20], model.empty_state(3))
    second, _ = model.extend(tokens[:, 20:], state)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-4)


@pytest.mark.parametrize("positions", ["learned", "rotary", "none"])
def test_what_gpt_has_is_as_gpt_has_it(positions):
    model, tokens = learner(positions), drawn(length=8)[:, :-1]
    plain = GPT(model.config).eval()
    plain.load_state_dict(model.state_dict())
    assert torch.allclose(model(tokens), plain(tokens), atol=1e-5)


@pytest.mark.parametrize("positions", [name for name in POSITIONS if name != "none"])
def test_positions_are_told(positions):
    """The last token sees the others in another order, or does not: one block, so that nothing else tells."""
    model, tokens = learner(positions, num_blks=1), drawn(length=8)[:, :-1]
    other = torch.cat([tokens[:, :-1].flip(1), tokens[:, -1:]], 1)
    without = learner("none", num_blks=1)
    assert torch.allclose(without(tokens)[:, -1], without(other)[:, -1], atol=1e-4)
    assert not torch.allclose(model(tokens)[:, -1], model(other)[:, -1], atol=1e-2)


def test_a_window_hides_what_is_before_it():
    model, tokens = learner("rotary", num_blks=1), drawn()[:, :-1]
    model.window = 5
    other = tokens.clone()
    other[:, :-5] = (other[:, :-5] + 1) % 30
    assert torch.allclose(model(tokens)[:, -1], model(other)[:, -1], atol=1e-5)
    other[:, -5] = (other[:, -5] + 1) % 30
    assert not torch.allclose(model(tokens)[:, -1], model(other)[:, -1], atol=1e-3)


def test_losses_at_every_length_end_on_the_same_tokens():
    model, found = learner("rotary"), drawn()
    for length in CONFIG.lengths:
        got = long_context.losses_at(model, found, length)
        logits = model(found[:, 32 - length : 32])
        want = F.cross_entropy(logits.flatten(0, 1), found[:, 33 - length :].flatten(), reduction="none")
        assert torch.allclose(got.float().flatten(), want, atol=1e-5)


def test_passages_go_from_the_beginning_to_the_end():
    found = long_context.passages(torch.arange(100), 9, 4)
    assert found.shape == (4, 10) and found[0, 0] == 0 and found[-1, -1] == 99
    assert (found.diff(dim=1) == 1).all() and (found[:, 0].diff() == 30).all()


def test_scores_of_models():
    config, found = replace(CONFIG, scored=4, group=4), drawn()
    model = learner("rotary")
    plain = long_context.score(model, found, config)
    assert plain["more"][0] == 0 == plain["error"][0] and plain["refused"] is None
    for i, length in enumerate(CONFIG.lengths):
        losses = long_context.losses_at(model, found, length)
        assert plain["loss"][i] == pytest.approx(losses[:, -4:].mean().item())
        assert plain["more"][i] == pytest.approx(plain["loss"][i] - plain["loss"][0])
        assert len(plain["by_place"][i]) == length // 4
        assert plain["by_place"][i][-1] == pytest.approx(plain["loss"][i], abs=1e-6)
    stretched = long_context.score(model, found, config, "interpolated")
    assert stretched["loss"][0] == pytest.approx(plain["loss"][0])  # nothing to interpolate at the trained length
    for i, factor in ((1, 2.0), (2, 4.0)):
        fixed = long_context.score(model, found, config, "interpolated", factor)
        assert stretched["loss"][i] == pytest.approx(fixed["loss"][i]) != plain["loss"][i]
    assert fixed["loss"][0] != pytest.approx(plain["loss"][0])  # a tuned model is stretched at any length
    assert long_context.score(model, found, config) == plain  # and is afterwards what it was


def test_a_window_of_the_trained_length_changes_nothing_there():
    model, found = learner("ALiBi"), drawn()
    plain, window = long_context.score(model, found, CONFIG), long_context.score_window(model, found, CONFIG)
    assert window["loss"][0] == pytest.approx(plain["loss"][0]) and window["loss"][2] != pytest.approx(plain["loss"][2])
    assert model.window is None
    model.window = CONFIG.model.max_len
    assert window == long_context.score(model, found, CONFIG)


def test_only_a_length_is_refused():
    model = learner("rotary")
    with pytest.raises(ValueError, match="expected 0 to 29"):
        long_context.score(model, drawn() + 30, CONFIG)


def test_learned_positions_are_refused_past_their_length():
    found = long_context.score(learner("learned"), drawn(), CONFIG)
    assert found["loss"][0] and found["loss"][1:] == [None, None]
    assert found["refused"].startswith("there are 16 tokens but the context is 8")


def test_a_training_at_another_length_has_as_many_tokens_a_step():
    config = PRESETS["laptop"]
    recipe = long_context.tuning(config, config.longer)
    assert recipe.model.max_len * recipe.batch_size == config.model.max_len * config.batch_size
    assert recipe.lr == config.lr * config.tune_lr and recipe.steps == config.tune_steps


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="expected that of the training, 8"):
        long_context.run(replace(CONFIG, lengths=(16, 32)), torch.device("cpu"))
    with pytest.raises(ValueError, match="longer is 24, expected one of"):
        long_context.run(replace(CONFIG, longer=24), torch.device("cpu"))


@pytest.mark.train
def test_what_is_trained_for_longer_begins_with_what_was_trained(monkeypatch):
    """Where more training changes nothing, all is as at test time; and each training has rotations of its own."""
    train, rotations = long_context.language.train, {}

    def spied(recipe, *args, name, **options):
        model, history = train(recipe, *args, name=name, **options)
        rotations[name] = (model.rotary.way, model.rotary.factor, recipe.model.max_len)
        return model, history

    monkeypatch.setattr(long_context.language, "train", spied)
    config = replace(CONFIG, positions=("rotary",), tune_lr=0.0, tune_steps=1)
    metrics = long_context.run(config, torch.device("cpu"))["metrics"]
    assert rotations == {
        "rotary": ("as trained", 1.0, 8), "longer": ("as trained", 1.0, 16), "tuned-0": ("as trained", 2.0, 16),
        "tuned-1": ("interpolated", 2.0, 16), "tuned-2": ("base changed", 2.0, 16), "tuned-3": ("as trained", 1.0, 8),
    }  # fmt: skip
    models, tuned = metrics["models"]["rotary"], metrics["tuned"]
    assert list(tuned) == ["as trained, 16", "interpolated, 16", "base changed, 16", "as trained, 8"]
    for name in ("as trained, 8", "as trained, 16"):
        assert tuned[name]["loss"] == pytest.approx(models["all before"]["loss"], abs=1e-6)
    at = config.lengths.index(config.longer)
    for way in ("interpolated", "base changed"):
        assert tuned[f"{way}, 16"]["loss"][at] == pytest.approx(models[way]["loss"][at], abs=1e-6)
    seen = {name: one["tokens_seen"] for name, one in metrics["sizes"].items()}
    assert seen.pop("rotary") == seen.pop("longer") == 2 * 4 * 8 and set(seen.values()) == {4 * 8}


def test_the_headline_tells_every_model_at_the_longer_length():
    def scores(*more):
        return {"more": more}

    models = {"learned": {"all before": scores(0.0, None, None)}, "none": {"all before": scores(0.0, 0.25, 9.0)}}
    found = {"models": models, "tuned": {"interpolated, 16": scores(0.0, -0.125, 9.0)}, "longer": scores(0, -0.5, 9)}
    assert long_context.headline(found, CONFIG) == (
        "trained at 8 tokens, loss in nats at 16 less that at 8, of the same tokens: learned refused, none +0.250, "
        "tuned (interpolated, 16) -0.125, trained at 16 -0.500"
    )
