"""What is written down: thinned curves, several seeds, shares and their errors."""

import pytest

from d2lmini.lab import summaries


def test_curves_are_means():
    losses = [float(i) for i in range(450)]
    history = {"step": list(range(1, 451)), "train_loss": losses, "val_step": [], "val_loss": [], "val_acc": []}
    curves = summaries.curves(history | {"lr": losses, "val_loss": [0.5] * 450}, "lr", "val_loss")
    assert curves["step"][:2] == [3, 6] and curves["train_loss"][:2] == [1, 4] and len(curves["step"]) == 150
    assert curves["lr"] == curves["train_loss"] and len(curves["val_loss"]) == 450
    short = summaries.curves({"step": list(range(1, 402)), "train_loss": losses[:401]})
    assert short["step"][-2:] == [399, 401] and short["train_loss"][-2:] == [397, 399.5]  # what is left over counts


def test_several_seeds_have_a_mean_and_a_spread():
    assert summaries.summary([0.5, 0.7]) == {"mean": pytest.approx(0.6), "spread": pytest.approx(0.02**0.5)}
    assert summaries.summary([0.5]) == {"mean": 0.5, "spread": None}
    assert summaries.columns([{"a": 1, "b": 2}, {"a": 3, "b": 4}]) == {"a": [1, 3], "b": [2, 4]}


def test_a_share_has_the_binomial_error():
    assert summaries.share([True, False, True, True]) == {"accuracy": 0.75, "error": pytest.approx((0.1875 / 4) ** 0.5)}
    assert summaries.standard_error([1.0, 3.0]) == pytest.approx(1.0) and summaries.standard_error([1.0]) is None
