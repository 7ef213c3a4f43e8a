"""Repeated random pieces: how they are drawn, and scores of heads on attention made by hand."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from d2lmini.experiments import induction
from d2lmini.experiments.abilities.induction import PRESETS, Contestant, Learner
from d2lmini.figures.induction_head import InductionHead

CONFIG = PRESETS["smoke"]


def test_what_the_training_sees():
    torch.manual_seed(0)
    config = replace(CONFIG, num_tokens=40, reserved=12, pieces=3, shortest=2, longest=5, length=60)
    tokens, lengths = induction.draw(config, 200), set()
    ordinary = config.num_tokens - config.reserved
    assert tokens.shape == (200, config.length + 1) and tokens.min() >= 0 and tokens.max() < config.num_tokens
    assert (tokens >= ordinary).any()  # the reserved ones are read
    for row in tokens.tolist():
        single = [token for token in row if token >= ordinary]
        assert len(set(single)) == len(single)  # and never said again
        follows = {}
        for token, after in pairwise(row):
            follows.setdefault(token, set()).add(after)
        # within a piece a token has one successor; what comes after a piece is drawn anew
        begins, pieces = {row[0]}, []
        for token, after in pairwise(row):
            if len(follows[token]) > 1 or token >= ordinary or after >= ordinary:
                begins.add(after)
        for token in row:
            if token >= ordinary or token in begins:
                pieces.append([])
            pieces[-1].append(token)
        said = {tuple(piece) for piece in pieces[:-1] if piece[0] < ordinary}
        assert len(said) <= config.pieces
        assert sum(map(len, said)) == len({token for piece in said for token in piece})  # no token twice in them
        lengths |= {len(piece) for piece in said}
    assert set(range(config.shortest, config.longest + 1)) <= lengths


def test_when_no_single_token_is_left():
    torch.manual_seed(0)
    tokens = induction.draw(replace(CONFIG, reserved=1, shortest=1, longest=1, length=40), 50)
    assert ((tokens == CONFIG.num_tokens - 1).sum(1) <= 1).all() and (tokens == CONFIG.num_tokens - 1).any()


@pytest.mark.parametrize("reserved", [False, True])
def test_repetitions(reserved):
    tokens = induction.repetitions(CONFIG, 5, 13, seed=1, reserved=reserved)
    assert tokens.shape == (CONFIG.sequences, 13) and torch.equal(tokens[:, 5:], tokens[:, :-5])
    assert all(len(set(row[:5])) == 5 for row in tokens.tolist())
    assert ((tokens >= CONFIG.num_tokens - CONFIG.reserved) == reserved).all()


def test_scores_on_attention_made_by_hand():
    period, T = 3, 8
    weights = torch.zeros(1, 2, 4, T, T)  # of four heads
    for t in range(T):
        weights[:, :, 0, t, max(0, t - period + 1)] = 1  # the token after the previous occurrence
        weights[:, :, 1, t, max(0, t - 1)] = 1
        weights[:, :, 2, t, max(0, t - period)] = 1  # the previous occurrence itself
        weights[:, :, 3, t, : t + 1] = 1 / (t + 1)
    found = induction.induction_scores(weights, period)
    assert found.shape == (1, 4)
    even = sum(1 / (t + 1) for t in range(period, T)) / (T - period)  # queries that were said before
    assert found[0].tolist() == pytest.approx([1, 0, 0, even])
    previous = induction.previous_scores(weights)
    assert previous[0].tolist() == pytest.approx(
        [1 / (T - 1), 1, 1 / (T - 1), sum(1 / (t + 1) for t in range(1, T)) / (T - 1)]
    )


def test_halves_leave_out_the_token_that_begins_the_repetition():
    period = 4
    losses = torch.tensor([[1.0, 1.0, 4.0, 100.0, 5.0, 5.0, 8.0]])  # of tokens 1 to 7; token 4 begins anew
    assert induction.halves(losses, period) == (2.0, 6.0)


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = Learner(CONFIG, Contestant("a", 2)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def test_losses_are_of_what_follows(model):
    tokens = induction.repetitions(CONFIG, 3, 7, seed=2)
    found = induction.losses(model, tokens)
    for row in range(2):
        for i in range(1, 7):
            scores = model(tokens[row : row + 1, :i])[0, -1].log_softmax(-1)
            assert found[row, i - 1].item() == pytest.approx(-scores[tokens[row, i]].item(), abs=1e-4)


def test_heads_are_switched_off_by_their_place(model):
    tokens = induction.repetitions(CONFIG, 3, 7, seed=2)
    whole = induction.losses(model, tokens)
    with induction.without(model, [(1, 0), (0, 1)]):
        off = induction.losses(model, tokens)
    for block, head in ((1, 0), (0, 1)):
        size = CONFIG.num_hiddens // CONFIG.num_heads
        model.blks[block].attention.W_o.weight.data[:, head * size : (head + 1) * size] = 0
    assert torch.allclose(off, induction.losses(model, tokens), atol=1e-5) and not torch.allclose(off, whole, atol=1e-2)


def test_what_is_written_down_of_a_model(model):
    found = induction.look(model, CONFIG, 0)
    assert found["off_in_order"][1] == found["off"][found["order"][0][0]][found["order"][0][1]]
    assert found["off_in_order"][0] != found["off_in_order"][-1] and len(found["off_in_order"]) == 5
    scores = [found["induction"][block][head] for block, head in found["order"]]
    assert scores == sorted(scores, reverse=True)
    assert found["others"].keys() == {"reserved", "3 in 8"}
    assert all(0 < other["induction"] < 1 for other in found["others"].values())
    shown = induction.example(model, CONFIG, 0)
    weights, T = torch.tensor(shown["weights"]), 2 * CONFIG.example
    assert weights.shape == (2, 2, T, T) and torch.allclose(weights.sum(-1), torch.ones(2, 2, T), atol=0.01)
    assert not weights.triu(1).any() and shown["tokens"][CONFIG.example :] == shown["tokens"][: CONFIG.example + 1]
    off = torch.tensor(shown["without"])
    assert len(shown["losses"]) == T and off.shape == (2, 2, T)
    for block, head in ((0, 1), (1, 0)):
        with induction.without(model, [(block, head)]):
            want = induction.losses(model, torch.tensor([shown["tokens"]]))[0]
        assert torch.allclose(off[block, head].double(), want, atol=1e-3)
        assert shown["losses"] != shown["without"][block][head]


def test_the_figure_takes_what_is_written_down(model):
    shown = induction.example(model, CONFIG, 0)
    where = {(i + 1, j + 1): losses for i, row in enumerate(shown["without"]) for j, losses in enumerate(row)}
    figure = InductionHead(shown["tokens"][:-1], shown["weights"], shown["losses"], shown["period"], where)
    scores = induction.induction_scores(torch.tensor(shown["weights"])[:, None], shown["period"])
    assert torch.allclose(torch.tensor(figure.state["scores"]), scores, atol=1e-3)


def test_attention_alone():
    X = torch.randn(2, 3, CONFIG.num_hiddens)
    alone, whole = (Learner(CONFIG, Contestant("a", 1, ffn)) for ffn in (False, True))
    assert not alone.blks[0].ffn(X).any() and alone.num_parameters < whole.num_parameters
