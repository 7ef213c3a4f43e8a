"""Heads switched off: sets of heads by made scores, and losses that the same heads cost by another way."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import repeating_heads
from d2lmini.experiments.abilities import induction
from d2lmini.experiments.real_model import bases, opened

SMOKE = replace(repeating_heads.PRESETS["smoke"], num=2, draws=4)


def test_sets_of_heads(monkeypatch):
    scores = torch.zeros(4, 4)
    scores[1, 2], scores[2, 3] = 0.9, 0.8
    monkeypatch.setattr(induction, "induction_scores", lambda maps, period: scores)
    monkeypatch.setattr(induction, "previous_scores", lambda maps: scores.flip(0))
    sets = repeating_heads.chosen(SMOKE)
    assert sets["none"] == [[]] and sets["induction"] == [[(1, 2), (2, 3)]] and sets["previous"] == [[(2, 2), (1, 3)]]
    assert len(sets["anywhere"]) == len(sets["same blocks"]) == 4
    assert all(len(set(off)) == 2 for off in sets["anywhere"] + sets["same blocks"])
    drawn = [{head for off in sets[name] for head in off} for name in ("anywhere", "same blocks")]
    assert not (drawn[0] | drawn[1]) & {(1, 2), (2, 3)} and {block for block, _ in drawn[1]} <= {1, 2}
    alone = [(block, head) for block in range(3) for head in range(4) if (block, head) not in {(1, 2), (2, 3)}]
    assert sets["alone"] == [[head] for head in alone]


def test_losses_are_those_without_the_heads():
    metrics = repeating_heads.run(SMOKE, torch.device("cpu"))["metrics"]
    model, _ = bases.load("toy")
    tokens = opened.random_sequences(model, SMOKE)
    (worst,) = metrics["worst"]
    for row in (*metrics["none"], *metrics["previous"], worst):
        with induction.without(model, row["off"]):
            want = induction.halves(induction.losses(model, tokens), SMOKE.period)
        assert (row["first"], row["second"]) == pytest.approx(want, rel=1e-9)
    alone = sorted(metrics["alone"], key=lambda row: row["second"])[-2:]
    assert sorted(worst["off"]) == sorted(head for row in alone for head in row["off"])
    assert "without 2 random ones" in metrics["headline"]
