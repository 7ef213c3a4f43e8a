"""The curves of training that the history keeps."""

import pytest
from toy_line import Line, Points, fit


def test_training_curves_are_means_over_parts_of_the_epoch():
    model = Line(plot_train_per_epoch=1, plot_valid_per_epoch=0)
    losses = fit(model, Points(num_train=48), epochs=2).history["train_loss"]
    assert model.board.points == {"train_loss": [[0.5, 1.5], pytest.approx([sum(losses[:3]) / 3, sum(losses[3:]) / 3])]}
    model = Line(plot_train_per_epoch=0)
    fit(model)
    assert list(model.board.points) == ["val_loss", "val_acc"]
