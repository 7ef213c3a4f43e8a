"""Texts in which what was said long ago is worth knowing: what is drawn, what can be known, and what is scored."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import long_recall
from d2lmini.experiments.gpt.long_positions import LongLearner
from d2lmini.experiments.gpt.long_recall import PRESETS
from d2lmini.objectives.masking import IGNORE_INDEX

CONFIG = PRESETS["smoke"]


def learner(positions="rotary"):
    torch.manual_seed(0)
    vocab_size = CONFIG.names * (CONFIG.words + 1) + CONFIG.words
    model = replace(CONFIG.model, vocab_size=vocab_size, positions=long_recall.POSITIONS[positions])
    found = LongLearner(replace(CONFIG, model=model), positions).eval()
    for weight in found.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return found


def test_a_text_says_where_everybody_is_and_stays_so():
    N, W = CONFIG.names, CONFIG.words
    tokens, targets = long_recall.draw(CONFIG, 50, 40, torch.Generator().manual_seed(0))
    assert tokens.shape == targets.shape == (50, 40) and (targets[:, ::2] == IGNORE_INDEX).all()
    assert tokens[:, ::2].max() < N * W <= tokens[:, 1::2].min() and tokens.max() < N * (W + 1)
    assert (targets[:, 1::2] >= N * (W + 1)).all() and targets.max() < N * (W + 1) + W
    for row, answers in zip(tokens.tolist(), targets.tolist(), strict=True):
        where = {}
        for token in row[::2]:
            assert where.setdefault(token // W, token % W) == token % W
        for token, answer in zip(row[1::2], answers[1::2], strict=True):
            assert where.get(token - N * W, answer - N * (W + 1)) == answer - N * (W + 1)
    assert len({tuple(row) for row in tokens.tolist()}) == 50


def test_distances_and_what_can_be_known():
    N, W = CONFIG.names, CONFIG.words

    def said(name):
        return name * W

    def asked(name):
        return N * W + name

    tokens = torch.tensor([[said(0), asked(3), said(1), asked(0), said(0), asked(2), said(2), asked(1)]])
    config = replace(CONFIG, scored=3, lengths=(4, 8))
    assert long_recall.distances(config, tokens).tolist() == [[3, 0, 5]]
    assert long_recall.before_questions(config, 8).tolist() == [3, 5, 7]
    found = long_recall.ideal((tokens, tokens), config)
    assert found["share"] == [0, pytest.approx(2 / 3)]  # read from the last four tokens, neither of them
    assert found["right"] == [1 / W, pytest.approx(2 / 3 + 1 / 3 / W)]


def test_answers_are_to_the_same_questions_at_every_length():
    model, texts = learner(), long_recall.texts_of_test(CONFIG)
    for length in CONFIG.lengths:
        losses, right = long_recall.answers(model, texts, length, CONFIG)
        assert losses.shape == right.shape == (CONFIG.texts, CONFIG.scored)
        logits = model(texts[0][:, -length:])[:, -1]
        assert torch.equal(right[:, -1], logits.argmax(-1) == texts[1][:, -1])
        wanted = -logits.log_softmax(-1).gather(1, texts[1][:, -1:])[:, 0]
        assert torch.allclose(losses[:, -1].float(), wanted, atol=1e-4)


def test_scores_of_models():
    texts = long_recall.texts_of_test(CONFIG)
    model = learner()
    plain = long_recall.score(model, texts, CONFIG)
    window = long_recall.score(model, texts, CONFIG, window=CONFIG.model.max_len)
    stretched = long_recall.score(model, texts, CONFIG, "interpolated")
    assert [window["loss"][0], stretched["loss"][0]] == pytest.approx([plain["loss"][0]] * 2, abs=1e-6)
    assert window["loss"][1] != plain["loss"][1] != stretched["loss"][1] and plain["refused"] is None
    assert long_recall.score(model, texts, CONFIG) == plain  # and is afterwards what it was
    assert all(part is None for part in plain["by_distance"][0][1:]) and plain["by_distance"][-1][0] is not None
    refused = long_recall.score(learner("learned"), texts, CONFIG)
    assert refused["right"][1:] == refused["by_distance"][1:] == [None, None] and "context" in refused["refused"]


def test_a_model_that_knows_all_reaches_what_can_be_known(monkeypatch):
    texts = long_recall.texts_of_test(CONFIG)
    back = long_recall.distances(CONFIG, texts[0])

    def knows(model, texts, length, config):
        right = (back > 0) & (back <= long_recall.before_questions(config, length))
        return torch.zeros(right.shape), right

    monkeypatch.setattr(long_recall, "answers", knows)
    found = long_recall.score(learner(), texts, CONFIG)
    assert found["right"] == long_recall.ideal(texts, CONFIG)["share"]
    assert {part for row in found["by_distance"] for part in row} <= {1.0, None}


def test_lengths_that_do_not_fit():
    with pytest.raises(ValueError, match="lengths begin with 16, expected that of the training, 8"):
        long_recall.run(replace(CONFIG, lengths=(16, 32)), torch.device("cpu"))
    with pytest.raises(ValueError, match="longer is 24, expected one of the lengths of the test"):
        long_recall.run(replace(CONFIG, longer=24), torch.device("cpu"))


def test_what_is_tuned_begins_with_what_was_trained(monkeypatch):
    train, begun = long_recall.train, []

    def spied(recipe, positions, device, seed, parts, name, begin=None, rotary=None):
        model, about = train(recipe, positions, device, seed, parts, name, begin, rotary)
        begun.append((name, recipe.model.max_len, recipe.batch_size, begin is not None, rotary and rotary.way))
        return model, about

    monkeypatch.setattr(long_recall, "train", spied)
    config = replace(CONFIG, positions=("none", "rotary"), seeds=(3,))
    metrics = long_recall.run(config, torch.device("cpu"))["metrics"]
    assert begun == [
        ("none-3/trained", 8, 4, False, None),
        ("rotary-3/trained", 8, 4, False, None),
        ("rotary-3/tuned-0", 16, 2, True, "as trained"),
        ("rotary-3/tuned-1", 16, 2, True, "interpolated"),
        ("rotary-3/tuned-2", 16, 2, True, "base changed"),
        ("rotary-3/tuned-3", 8, 4, True, "as trained"),
    ]
    assert metrics["models"]["none"].keys() == {"all before", "window"}
    assert metrics["models"]["rotary"].keys() == {"all before", "window", "interpolated", "base changed"}
    assert list(metrics["tuned"]) == ["as trained, 16", "interpolated, 16", "base changed, 16", "as trained, 8"]
    assert metrics["headline"].startswith(
        "share of answers that are right after 8 and after 32 tokens, trained at 8: none"
    )
