"""A number that is not finite stops a run, and the error names its cause."""

import math

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from toy_line import Line, Points, fit
from toy_training import PAD, Tagger, Tokens, train

from d2lmini.__main__ import main


class Faulty(Line):
    """Its loss is not finite from a step on."""

    def __init__(self, spoil, step=4, **kwargs):
        super().__init__(**kwargs)
        self.spoil, self.step = spoil, step

    def loss(self, Y_hat, Y):
        loss = super().loss(Y_hat, Y)
        return self.spoil(self, loss) if self.training and self.trainer.step + 1 >= self.step else loss


def poison(model, loss):
    with torch.no_grad():
        model.net.bias[1] = math.inf
    return loss * math.nan


class Spoilt(Points):
    """Its third batch has a value that is not finite."""

    def __init__(self, shuffle=False):
        super().__init__(shuffle=shuffle)
        self.X[40, 1] = math.nan


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (lambda: Faulty(lambda model, loss: loss * math.nan), Points, r"the loss is nan in step 4 .*look for log\(0\)"),
        (lambda: Faulty(lambda model, loss: loss / 0), Points, r"the loss is inf in step 4 .*look for log\(0\)"),
        (lambda: Faulty(poison), Points, r"step 4 .*: the parameter net.bias was not finite before this step"),
        (
            lambda: Faulty(lambda model, loss: (loss - loss.detach()).sqrt()),
            Points,
            r"the norm of the gradient is (nan|inf) in step 4 \(epoch 1\).*square root",
        ),
        (Line, Spoilt, r"step 3 \(epoch 1\): the inputs are not finite, 1 of 32 values in batch\[0\]"),
    ],
)
def test_a_loss_that_is_not_finite_stops_the_run_before_the_parameters_change(tmp_path, model, data, message):
    model, kept = model(), []
    parameters = dict(model.named_parameters())
    step = torch.optim.SGD.step

    def spy(self, *args):
        step(self, *args)
        kept.append({name: value.detach().clone() for name, value in parameters.items()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.SGD, "step", spy)
        with pytest.raises(FloatingPointError, match=message):
            fit(model, data(), checkpoint=tmp_path, checkpoint_every=1)
    (checkpoint,) = tmp_path.iterdir()
    assert int(checkpoint.name[-8:]) == len(kept)
    for name, value in parameters.items():
        assert (name == "net.bias" and "net.bias" in message) or torch.equal(value, kept[-1][name])
        assert value.grad is None


class SpoiltLater(Points):
    """A value of its second validation batch is not finite."""

    def __init__(self, value):
        super().__init__()
        self.X[70 + 20, 0] = value


class Undefined(Line):
    """What it plots in validation is not a number."""

    def validation_step(self, batch):
        self.plot("ratio", math.nan, train=False)


class Empty(Tokens):
    """Its validation data are padding alone."""

    def get_dataloader(self, train):
        loader = super().get_dataloader(train)
        if not train:
            loader.dataset.Y.fill_(PAD)
        return loader


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (
            Line,
            lambda: SpoiltLater(math.nan),
            r"val_loss is nan after step 5 \(epoch 1\): .*, 1 of 32 values in batch\[0\] of batch 2: look at",
        ),
        (Line, lambda: SpoiltLater(-math.inf), r"1 of 32 values in batch\[0\] of batch 2: look at"),
        (Undefined, Points, r"val_ratio is nan after step 5 .*inputs and parameters are finite: look for log\(0\)"),
        (Tagger, Empty, r"val_loss is nan after step 10 .*no batch has anything to take the mean over"),
    ],
)
def test_validation_that_is_not_finite_stops_the_run(tmp_path, model, data, message):
    with pytest.raises(FloatingPointError, match=message):
        fit(model(), data(), epochs=2, checkpoint=tmp_path, checkpoint_every=2)
    assert [path.name for path in tmp_path.glob("step-*")]  # the work of the steps before is kept


def test_validation_in_the_middle_of_an_epoch_is_looked_at_too():
    data = Points()

    def spoil(trainer):
        data.X[-1] = math.nan

    with pytest.raises(FloatingPointError, match=r"val_loss is nan after step 7 \(epoch 2\): the inputs"):
        fit(data=data, epochs=2, max_steps=7, callbacks=[spoil])


def test_a_parameter_spoilt_after_the_last_step_is_found_by_validation():
    class Late(Line):
        def validation_step(self, batch):
            with torch.no_grad():
                self.net.bias[0] = math.inf
            super().validation_step(batch)

    with pytest.raises(FloatingPointError, match=r"the parameter net\.bias is not finite"):
        fit(Late())


def test_divergence_is_told_by_the_gradient_norm():
    class Quartic(Line):
        def loss(self, Y_hat, Y):
            return (Y_hat**4).sum() + super().loss(Y_hat, Y)

        def validation_step(self, batch):
            pass

    with pytest.raises(
        FloatingPointError, match=r"training diverged, the gradient norm was .* the learning rate 0.3 is"
    ):
        fit(Quartic(lr=0.3), epochs=20)


def test_a_batch_with_nothing_to_learn_from_is_named():
    class Padded(Tokens):
        def get_dataloader(self, train):
            X = torch.ones(8, 6, dtype=torch.long)
            return DataLoader(TensorDataset(X, torch.full_like(X, PAD)), 4)

    for accumulate in (1, 2):
        with pytest.raises(FloatingPointError, match="nothing to take the mean over"):
            train(None, Padded(), accumulate=accumulate)


def test_at_the_shell_it_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("d2lmini.lab.runner.run", lambda *args, **options: fit(data=SpoiltLater(math.nan)))
    assert main(["run", "attention_cost"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: val_loss is nan after step 5 (epoch 1): the inputs are not finite")
