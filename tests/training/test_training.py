"""The loop, what it reports, and when it stops; checkpoints and several processes have tests of their own."""

import copy
import io
import json
import math
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from toy_training import PAD, Tagger, Tokens, train

from d2lmini.__main__ import main
from d2lmini.training import (
    Classifier,
    DataModule,
    Module,
    ProgressBoard,
    Trainer,
    WarmupCosine,
    WarmupInverseSqrt,
    device,
)
from d2lmini.training import board as board_module
from d2lmini.training.batches import epoch_batches, is_repeat, share


class Points(DataModule):
    """Points in the plane, labelled by a line through them."""

    def __init__(self, num_train=70, num_val=33, batch_size=16, shuffle=True):
        super().__init__()
        self.save_hyperparameters()
        self.X = torch.randn(num_train + num_val, 2, generator=torch.Generator().manual_seed(0))
        self.y = (self.X[:, 0] > self.X[:, 1]).long()

    def get_dataloader(self, train):
        split = slice(0, self.num_train) if train else slice(self.num_train, None)
        return self.get_tensorloader((self.X, self.y), train and self.shuffle, split)


class Line(Classifier):
    def __init__(self, lr=0.1, net=None, **kwargs):
        super().__init__(**kwargs)
        self.save_hyperparameters(ignore=["net"])
        torch.manual_seed(0)
        self.net = net or nn.Linear(2, 2)


def fit(model=None, data=None, epochs=1, **options):
    trainer = Trainer(epochs, **options)
    trainer.fit(model or Line(), data or Points())
    return trainer


# --- the loop ---


def test_it_does_what_a_loop_by_hand_does():
    expected, model, data = Line(), Line(), Points(shuffle=False)
    optimizer, losses = torch.optim.SGD(expected.parameters(), 0.1), []
    for _ in range(2):
        for X, y in data.train_dataloader():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(expected.net(X), y)
            loss.backward()
            nn.utils.clip_grad_norm_(expected.parameters(), 0.3)
            optimizer.step()
            losses.append(loss.item())
    trainer = fit(model, data, epochs=2, gradient_clip_val=0.3)
    assert trainer.history["train_loss"] == losses and max(trainer.history["grad_norm"]) > 0.3
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters(), strict=True))


def test_published_code_of_chapter_11_runs_unchanged():
    import d2lmini.training as d2l

    class Seq2Seq(d2l.Classifier):
        def __init__(self, encoder, decoder, tgt_pad, lr):
            super().__init__()
            self.save_hyperparameters()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, X):
            return self.decoder(self.encoder(X))

        def validation_step(self, batch):
            Y_hat = self(*batch[:-1])
            self.plot("loss", self.loss(Y_hat, batch[-1]), train=False)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=self.lr)

    data = Tokens(noise=False)
    model = Seq2Seq(nn.Embedding(11, 8), nn.LazyLinear(11), tgt_pad=PAD, lr=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = d2l.Trainer(max_epochs=5, gradient_clip_val=1, num_gpus=1)
        trainer.fit(model, data)
    losses = trainer.history["val_loss"]
    assert len(losses) == 5 and losses[-1] < 0.6 * losses[0]
    assert list(model.board.points) == ["train_loss", "val_loss"] and model.board.xlabel == "epoch"
    assert model.board.points["train_loss"][0] == pytest.approx([0.25 + 0.5 * i for i in range(10)])
    assert (trainer.train_batch_idx, trainer.val_batch_idx, trainer.epoch) == (50, 15, 5)


def test_history_is_ready_for_json():
    history = fit(epochs=2).history
    assert json.loads(json.dumps(history, allow_nan=False)) == history
    assert {name: len(values) for name, values in history.items()} == {
        **dict.fromkeys(("step", "epoch", "train_loss", "lr", "grad_norm", "seconds"), 10),
        **dict.fromkeys(("val_step", "val_epoch", "val_loss", "val_acc"), 2),
    }
    assert history["step"] == list(range(1, 11)) and history["epoch"] == [1] * 5 + [2] * 5
    assert history["val_step"] == [5, 10] and history["val_epoch"] == [1, 2]
    assert history["seconds"] == sorted(history["seconds"])


def test_the_validation_metric_is_the_mean_over_examples():
    trainer = fit(data=Points(num_val=17))  # batches of 16 and 1
    X, y = trainer.data.X[70:], trainer.data.y[70:]
    Y_hat = trainer.model.net(X)
    assert trainer.history["val_acc"] == [pytest.approx((Y_hat.argmax(1) == y).double().mean().item())]
    assert trainer.history["val_loss"] == [pytest.approx(nn.functional.cross_entropy(Y_hat, y).item())]


def test_the_validation_metric_is_the_mean_over_tokens_where_the_model_says_so():
    trainer = train(None, Tokens(noise=False))
    X, Y = zip(*trainer.val_dataloader.dataset, strict=True)
    loss = trainer.model.loss(trainer.model(torch.stack(X)), torch.stack(Y))
    assert trainer.history["val_loss"][-1] == pytest.approx(loss.item())


def test_a_validation_batch_without_targets_counts_nothing():
    class Half(Tokens):
        def get_dataloader(self, train):
            X, empty = torch.ones(8, 6, dtype=torch.long), torch.arange(8) >= 4
            Y = X.masked_fill(empty.unsqueeze(1) if not train else torch.tensor(False), PAD)
            return DataLoader(TensorDataset(X, Y), 4)

    trainer = train(None, Half())
    assert math.isfinite(trainer.history["val_loss"][-1])


def test_training_curves_are_means_over_parts_of_the_epoch():
    model = Line(plot_train_per_epoch=1, plot_valid_per_epoch=0)
    losses = fit(model, Points(num_train=48), epochs=2).history["train_loss"]
    assert model.board.points == {"train_loss": [[0.5, 1.5], pytest.approx([sum(losses[:3]) / 3, sum(losses[3:]) / 3])]}
    model = Line(plot_train_per_epoch=0)
    fit(model)
    assert list(model.board.points) == ["val_loss", "val_acc"]


def test_no_validation_data():
    data = Points()
    data.val_dataloader = lambda: None
    assert fit(data=data).history["val_step"] == []


@pytest.mark.parametrize("group", [2, 5, 8])
def test_a_step_of_many_batches_equals_one_of_a_large_batch(group):
    def run(batch_size, accumulate):
        data = Tokens(num_examples=40, batch_size=batch_size, noise=False)
        return train(None, data, {"dropout": 0.0}, accumulate=accumulate, seed=3)

    small, large = run(2, group), run(2 * group, 1)  # 20 batches: the last group of 8 is smaller
    for name in ("step", "train_loss", "grad_norm", "lr", "val_loss"):
        assert small.history[name] == pytest.approx(large.history[name], rel=1e-5)
    for a, b in zip(small.model.parameters(), large.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_the_schedule_scales_the_learning_rate():
    history = fit(epochs=2, schedule=WarmupInverseSqrt(3)).history
    assert history["lr"] == pytest.approx([0.1 * WarmupInverseSqrt(3)(step) for step in range(1, 11)])


def test_the_seed_decides_everything():
    def losses(before, **options):
        torch.manual_seed(0)
        model = Line(net=nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 2)))
        torch.manual_seed(before)
        return fit(model, epochs=2, **options).history["train_loss"]

    assert losses(1, seed=7) == losses(2, seed=7) != losses(1, seed=8)
    assert losses(1) == losses(1) != losses(2)  # without one, the seed set outside


@pytest.mark.parametrize(
    "module", [nn.LazyLinear(2), nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 2))]
)
def test_lazy_layers_get_their_sizes(module):
    fit(Line(net=module))
    assert not any(isinstance(p, nn.UninitializedParameter) for p in module.parameters())


def test_parameters_without_a_gradient():
    model = Line(net=nn.Sequential(nn.Linear(2, 2)))
    model.unused = nn.Linear(3, 3)
    before = model.unused.weight.clone()
    trainer = fit(model, gradient_clip_val=1e-3)
    assert torch.equal(model.unused.weight, before) and min(trainer.history["grad_norm"]) > 1e-3
    model.net[0].weight.grad, model.net[0].bias.grad = torch.ones(2, 2), None
    assert Trainer(1).clip_gradients(1.0, model) == 2
    torch.testing.assert_close(model.net[0].weight.grad, torch.full((2, 2), 0.5))


def test_compile_is_called_on_request():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = fit(Line(), Points(shuffle=False), compile={"backend": backend})
    assert len(graphs) >= 1
    plain = fit(Line(), Points(shuffle=False))
    assert compiled.history["train_loss"] == pytest.approx(plain.history["train_loss"])


def test_a_copy_of_a_trained_model_takes_nothing_along():
    trainer = fit()
    twin = copy.deepcopy(trainer.model)
    assert twin.trainer is None and trainer.model.trainer is trainer
    assert torch.equal(twin.net.weight, trainer.model.net.weight) and twin.net.weight is not trainer.model.net.weight
    assert twin.board.points == trainer.model.board.points
    fit(twin)


# --- where it computes ---


def test_a_missing_gpu_is_said_once(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device, "_said", set())
    with pytest.warns(UserWarning, match="num_gpus is 1, but there is no GPU here: training on the CPU"):
        fit(num_gpus=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(num_gpus=1).accelerator.device.type == "cpu"


def test_a_device_by_its_name():
    assert device.device_named("cpu") == device.device_named(torch.device("cpu")) == torch.device("cpu")
    for index in range(torch.cuda.device_count()):
        assert device.device_named(f"cuda:{index}") == torch.device("cuda", index)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", "", None, 2.5])
def test_a_device_that_torch_does_not_know(name):
    with pytest.raises(ValueError, match=r"there is no device .*, expected 'cpu', 'cuda', 'cuda:1' or 'mps'"):
        device.device_named(name)


@pytest.mark.parametrize(
    ("name", "gpus", "message"),
    [
        ("cuda", 0, "the device is 'cuda', expected 'cpu': torch finds no GPU here"),
        ("cuda:7", 2, "the device is 'cuda:7', expected 'cpu' or one of cuda:0 to cuda:1"),
        ("meta", 2, "the device is 'meta', expected 'cpu': torch cannot compute on it here"),
        ("hpu", 2, "the device is 'hpu', expected 'cpu': torch cannot compute on it here"),
    ],
)
def test_a_device_that_is_not_here(monkeypatch, name, gpus, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ValueError, match=message):
        device.device_named(name)


def test_precision_is_that_of_each_trainer():
    dtypes = []

    class Spy(Line):
        def loss(self, Y_hat, Y):
            dtypes.append(Y_hat.dtype)
            return super().loss(Y_hat, Y)

    for precision in ("bf16", "float32", "auto", "bf16"):
        trainer = fit(Spy(), precision=precision)
        assert {p.dtype for p in trainer.model.parameters()} == {torch.float32}
        assert set(dtypes) == {torch.bfloat16 if precision == "bf16" else torch.float32}
        dtypes.clear()
    with pytest.raises(ValueError, match="precision is 'fp16', which needs a GPU"):
        fit(precision="fp16")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["auto", "fp16", "float32"])
def test_it_trains_on_a_gpu(precision, tmp_path):
    trainer = fit(epochs=5, num_gpus=1, precision=precision, checkpoint=tmp_path)
    assert next(trainer.model.parameters()).is_cuda and trainer.history["val_acc"][-1] > 0.7
    again = fit(epochs=6, num_gpus=1, precision=precision, checkpoint=tmp_path, resume=True)
    assert again.step == 30 and again.history["train_loss"][:25] == trainer.history["train_loss"]


@pytest.mark.slow
def test_accelerate_and_matplotlib_are_imported_when_they_are_needed():
    names = ("accelerate", "safetensors", "matplotlib", "IPython", "torch._dynamo")
    code = f"import sys, d2lmini.training; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["[]"], done.stderr


# --- when it stops ---


@pytest.mark.parametrize(
    ("options", "steps", "epochs"),
    [({"max_steps": 5}, 5, 1), ({"max_steps": 8}, 8, 1.6), ({"max_seconds": 1e-9}, 1, 0.2), ({"max_steps": 99}, 15, 3)],
    ids=str,
)
def test_it_stops_cleanly_and_validates(options, steps, epochs):
    trainer = fit(epochs=3, **options)
    assert trainer.step == trainer.history["step"][-1] == steps
    assert trainer.history["val_step"][-1] == steps and trainer.history["val_epoch"][-1] == epochs
    assert len(set(trainer.history["val_step"])) == len(trainer.history["val_step"])
    assert not trainer.model.training


def test_callbacks_see_each_epoch_and_may_stop_the_run():
    seen = []

    def stop_at_two(trainer):
        seen.append((trainer.epoch, trainer.history["val_loss"][-1]))
        trainer.should_stop = trainer.epoch == 2

    trainer = fit(epochs=5, callbacks=[stop_at_two])
    assert seen == list(enumerate(trainer.history["val_loss"], start=1)) and trainer.epoch == 2


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_progress_bar_in_terminals_alone(monkeypatch):
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        trainer = fit(epochs=2)
        seen = stream.getvalue()
        assert (f"loss={trainer.history['train_loss'][-1]:.3f}" in seen) == stream.isatty()
        assert ("epoch 2/2" in seen and "10/10" in seen) if stream.isatty() else not seen


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


def test_at_the_shell_it_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("d2lmini.experiments.runner.run", lambda *args, **options: fit(data=SpoiltLater(math.nan)))
    assert main(["run", "any"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: val_loss is nan after step 5 (epoch 1): the inputs are not finite")


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


@pytest.mark.parametrize("sizes", [{"num_train": 0}, {"num_val": 0}], ids=str)
def test_data_without_batches(sizes):
    class Dropping(Points):
        def get_dataloader(self, train):
            size = self.num_train if train else self.num_val
            return DataLoader(TensorDataset(torch.zeros(size or 3, 2)), 4, drop_last=True)

    kind = "training" if "num_train" in sizes else "validation"
    with pytest.raises(ValueError, match=f"the {kind} data have no batches"):
        fit(data=Dropping(**sizes))


def test_what_is_not_a_model_a_loss_or_an_optimizer():
    with pytest.raises(TypeError, match=r"the model is a Linear, expected a d2lmini\.Module"):
        fit(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"the data are a list, expected a d2lmini\.DataModule"):
        fit(data=[torch.zeros(2)])
    with pytest.raises(TypeError, match="the training data are a DataLoader without a length, expected"):
        data = Points()
        data.train_dataloader = lambda: DataLoader(Stream(), batch_size=4)
        fit(data=data)
    with pytest.raises(TypeError, match="the validation data are a float without a length"):
        data = Points()
        data.val_dataloader = lambda: 0.1
        fit(data=data)
    with pytest.raises(TypeError, match=r"training_step returned a tensor of shape \(16,\), expected a scalar loss"):
        model = Line()
        model.loss = lambda Y_hat, Y: Y_hat.sum(1)
        model.plot = lambda *args, **kwargs: None
        fit(model)
    with pytest.raises(TypeError, match="training_step returned None"):
        model = Line()
        model.training_step = lambda batch: None
        fit(model)
    with pytest.raises(TypeError, match="configure_optimizers returned a float"):
        model = Line()
        model.configure_optimizers = lambda: 0.1
        fit(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": 0}, "max_epochs is 0, expected at least 1"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"precision": "half"}, "precision is 'half', expected 'auto', 'float32', 'bf16'"),
        ({"resume": True}, "need a folder"),
        ({"checkpoint_every": 5}, "need a folder"),
        ({"num_gpus": -1}, "num_gpus is -1, expected 0 or more"),
        ({"gradient_clip_val": -1.0}, r"gradient_clip_val is -1\.0, expected 0 or more"),
        ({"gradient_clip_val": math.nan}, "gradient_clip_val is nan"),
        ({"max_seconds": -3}, "max_seconds is -3"),
        ({"seed": -1}, r"seed is -1, expected an integer from 0 to 2\*\*32 - 1"),
    ],
    ids=str,
)
def test_options_outside_of_their_range(options, message):
    with pytest.raises(ValueError, match=message):
        Trainer(**{"max_epochs": 1, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": None}, "max_epochs is None, expected an integer"),
        ({"max_epochs": "3"}, "max_epochs is '3', expected an integer"),
        ({"max_epochs": 1.5}, r"max_epochs is 1\.5, expected an integer"),
        ({"max_steps": 1e3}, r"max_steps is 1000\.0, expected an integer"),
        ({"num_gpus": "cuda"}, "num_gpus is 'cuda', expected an integer"),
        ({"gradient_clip_val": None}, "gradient_clip_val is None, expected a number"),
        ({"max_seconds": "1h"}, "max_seconds is '1h', expected a number"),
        ({"seed": "x"}, "seed is 'x', expected an integer"),
        ({"checkpoint": True}, "checkpoint is True, expected the path of a folder"),
        ({"compile": "yes"}, "compile is 'yes', expected True, False or a dict"),
        ({"schedule": 0.1}, r"schedule is 0\.1, expected a function from the step to a factor"),
        ({"callbacks": print}, "callbacks is .*print.*, expected a list of functions"),
        ({"callbacks": [3]}, r"callbacks is \[3\], expected a list of functions"),
    ],
    ids=str,
)
def test_options_of_another_type(options, message):
    with pytest.raises(TypeError, match=message):
        Trainer(**{"max_epochs": 1, **options})


def test_options_of_numpy_and_paths_are_as_good(tmp_path):
    Trainer(np.int64(2), True, np.float32(1), checkpoint=tmp_path, seed=np.uint32(3), max_seconds=np.float64(9))


# --- schedules ---


def test_inverse_square_root_is_that_of_the_paper():
    h, warmup = 512, 4000
    schedule = WarmupInverseSqrt(warmup)
    for step in (1, 7, 3999, 4000, 4001, 100_000):
        paper = h**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert (h * warmup) ** -0.5 * schedule(step) == pytest.approx(paper)
    with pytest.raises(ValueError, match="warmup is 0"):
        WarmupInverseSqrt(0)


def test_cosine_warms_up_and_comes_down():
    schedule = WarmupCosine(warmup=10, total=110, floor=0.2)
    assert [schedule(step) for step in (1, 5, 10, 60, 110, 500)] == pytest.approx([0.1, 0.5, 1, 0.6, 0.2, 0.2])
    assert schedule(35) == pytest.approx(0.2 + 0.8 * math.cos(math.pi / 8) ** 2)
    assert WarmupCosine(0, 10)(0) == 1
    # torch's own cosine, which has no warm-up
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 1.0)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50, eta_min=0.1)
    for step in range(50):
        assert WarmupCosine(0, 50, 0.1)(step) == pytest.approx(cosine.get_last_lr()[0])
        optimizer.step()
        cosine.step()
    for wrong in ((10, 10), (-1, 10), (0, 10, 1.5)):
        with pytest.raises(ValueError, match="expected"):
            WarmupCosine(*wrong)


# --- modules and data ---


def test_classifier():
    model = Line(net=nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    Y_hat, Y = torch.tensor([[[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]]]), torch.tensor([[1, 2]])
    assert model.accuracy(Y_hat, Y) == 0.5 and model.accuracy(Y_hat, Y, averaged=False).tolist() == [1, 0]
    losses = model.loss(Y_hat, Y, averaged=False)
    torch.testing.assert_close(losses, -Y_hat[0].log_softmax(1)[[0, 1], [1, 2]])
    torch.testing.assert_close(model.loss(Y_hat, Y), losses.mean())


def test_layer_summary(capsys):
    Line(net=nn.Sequential(nn.Linear(2, 3), nn.ReLU())).layer_summary((5, 2))
    assert capsys.readouterr().out.splitlines() == ["Linear output shape:\t(5, 3)", "ReLU output shape:\t(5, 3)"]


def test_module_errors_and_initialisation():
    with pytest.raises(NotImplementedError, match="neither a `net` nor a forward"):
        Module()(torch.zeros(1))
    with pytest.raises(NotImplementedError, match=r"Module has no loss\(Y_hat, Y\)"):
        Module().loss(0, 0)
    with pytest.raises(RuntimeError, match=r"works inside of Trainer\.fit"):
        Line().plot("loss", 1.0, train=True)
    with pytest.raises(NotImplementedError, match="DataModule has no get_dataloader"):
        DataModule().train_dataloader()
    model = Line(net=nn.Sequential(nn.LazyLinear(3)))
    model.apply_init([torch.zeros(1, 5)], lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None)
    assert torch.equal(model.net[0].weight, torch.ones(3, 5))


@pytest.mark.parametrize(
    "batch", [[torch.zeros(9), torch.zeros(4, 2)], {"X": torch.zeros(1), "y": torch.zeros(4)}, torch.zeros(4)]
)
def test_a_batch_weighs_as_many_as_its_labels(batch):
    assert Module().batch_weight(batch) == 4


def test_tensorloader():
    data = Points(num_train=5, batch_size=2)
    batches = list(data.get_tensorloader((data.X, data.y), train=False, indices=slice(1, 6)))
    assert [len(X) for X, _ in batches] == [2, 2, 1] and all(isinstance(batch, list) for batch in batches)
    assert torch.equal(torch.cat([X for X, _ in batches]), data.X[1:6])
    assert torch.equal(torch.cat([y for _, y in batches]), data.y[1:6])
    shuffled = torch.cat([y for (y,) in data.get_tensorloader((torch.arange(90),), train=True)])
    assert shuffled.tolist() != list(range(90)) == sorted(shuffled.tolist())


# --- the order of the batches ---


def order(loader, *args, disturb=False, **kwargs):
    batches = []
    for batch in epoch_batches(loader, *args, **kwargs):
        batches.append([part.tolist() for part in batch])
        if disturb:  # what a model draws
            torch.rand(7), np.random.rand(3)
    return batches


def test_the_order_depends_on_seed_and_epoch_alone():
    loader = Tokens().train_dataloader()
    first = order(loader, 5, 0)
    assert first == order(loader, 5, 0, disturb=True) == order(Tokens().train_dataloader(), 5, 0)
    assert first != order(loader, 5, 1) and first != order(loader, 6, 0)
    assert order(loader, 5, 0, skip=4) == first[4:] and order(loader, 5, 0, skip=10) == []


def test_going_through_the_data_leaves_the_random_numbers_of_the_model_alone():
    import random

    def drawn():
        return torch.rand(1).item(), np.random.rand(), random.random()

    def seeded():
        torch.manual_seed(0), np.random.seed(0), random.seed(0)

    seeded()
    expected = drawn()
    seeded()
    order(Tokens().train_dataloader(), 5, 0)
    assert drawn() == expected


def test_loaders_with_a_generator_or_set_epoch():
    generator = torch.Generator()
    loader = DataLoader(TensorDataset(torch.arange(30)), 4, shuffle=True, generator=generator)
    first = order(loader, 5, 0)
    assert first == order(loader, 5, 0) != order(loader, 5, 1)

    class Counting(torch.utils.data.SequentialSampler):
        def set_epoch(self, epoch):
            self.epoch = epoch

    sampler = Counting(range(30))
    for loader in (
        DataLoader(TensorDataset(torch.arange(30)), 4, sampler=sampler),
        DataLoader(TensorDataset(torch.arange(30)), batch_sampler=torch.utils.data.BatchSampler(sampler, 4, False)),
    ):
        for made, epoch in ((loader, 3), (share(loader, 0, 2), 4)):
            order(made, 5, epoch)
            assert sampler.epoch == epoch


def test_workers_do_not_change_the_order():
    data = Tokens(num_examples=12, noise=False)
    loader = data.train_dataloader()
    parallel = DataLoader(loader.dataset, 4, shuffle=True, num_workers=1)
    assert order(parallel, 5, 0) == order(loader, 5, 0)


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_shares_are_all_batches_once_and_of_one_length(processes):
    loader = DataLoader(TensorDataset(torch.arange(23)), 4, shuffle=True)  # six batches
    whole = order(loader, 1, 0)
    shares = [share(loader, rank, processes) for rank in range(processes)]
    assert {len(part) for part in shares} == {math.ceil(6 / processes)}
    parts = [order(part, 1, 0) for part in shares]
    assert {len(part) for part in parts} == {math.ceil(6 / processes)}
    real = [
        batch
        for i, together in enumerate(zip(*parts, strict=True))
        for part, batch in zip(shares, together, strict=True)
        if not is_repeat(part, i)
    ]
    assert real == whole


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(5))


def test_data_that_cannot_be_shared():
    loader = DataLoader(Stream(), batch_size=None)
    assert share(loader, 0, 1) is loader
    with pytest.raises(TypeError, match="without a batch sampler, which 2 processes cannot share"):
        share(loader, 0, 2)


# --- the board ---


def test_board_averages_points():
    board = ProgressBoard("epoch")
    for i in range(7):
        board.draw(i, 10 * i, "a", every_n=3)
    board.draw(5, 1.5, "b")
    assert board.points == {"a": [[1, 4], [10, 40]], "b": [[5], [1.5]]} and str(board) == "a 40, b 1.5"


def test_nothing_is_drawn_outside_of_notebooks(monkeypatch):
    monkeypatch.setattr(ProgressBoard, "show", lambda self: pytest.fail("drawn"))
    fit(epochs=2)


class Cells:
    """What a board needs of a notebook: the end of its cells, and a place to display."""

    def __init__(self, monkeypatch):
        import IPython
        import IPython.display

        self.listeners, self.shown, self.kernel, self.events = [], [], True, self
        monkeypatch.setattr(IPython, "get_ipython", lambda: self)
        monkeypatch.setattr(IPython.display, "display", self.display)

    def register(self, event, function):
        assert event == "post_run_cell"
        self.listeners.append(function)

    def unregister(self, event, function):
        self.listeners.remove(function)

    def display(self, output, raw, display_id):
        self.shown.append([output])
        return self

    def update(self, output, raw):
        self.shown[-1].append(output)

    def end(self):
        for listener in list(self.listeners):
            listener(None)


def test_draws_are_limited_by_time_and_the_cell_ends_with_the_whole_curve(monkeypatch):
    cells, board = Cells(monkeypatch), ProgressBoard()
    for i in range(200):
        board.draw(i, i, "loss")
    assert len(cells.shown[0]) < 5
    cells.end()
    (outputs,) = cells.shown
    assert outputs[-1]["text/plain"] == "loss 199" and outputs[-1]["image/svg+xml"].startswith("<?xml")
    assert cells.listeners == []
    board.draw(200, 200, "loss")  # in another cell, which gets a figure of its own
    cells.end()
    assert [outputs[-1]["text/plain"] for outputs in cells.shown] == ["loss 199", "loss 200"]


def test_a_draw_does_not_take_longer_with_more_points():
    board = ProgressBoard()

    def seconds():
        times = []
        for _ in range(3):
            start = time.process_time()
            size = len(board.svg())
            times.append(time.process_time() - start)
        return statistics.median(times), size

    def add(count):
        for i in range(count):
            board.points.setdefault("loss", [[], []])[0].append(float(i))
            board.points["loss"][1].append(math.sin(i / 7))

    add(500)
    few, small = seconds()
    add(49_500)
    many, large = seconds()
    assert many < 2 * few + 0.05 and large < 2 * small


def test_thinned_curves_keep_their_ends():
    values = [float(i) for i in range(10_001)]
    thin = board_module._thin(values)
    assert len(thin) <= 500 and thin[0] < 20 and thin[-1] > 9980 and thin == sorted(thin)
    assert board_module._thin(values[:500]) == values[:500]


@pytest.mark.slow
def test_an_executed_notebook_has_one_figure_with_the_whole_curve():
    import nbformat
    from nbclient import NotebookClient

    code = """
from d2lmini.training import ProgressBoard
board = ProgressBoard(xlabel="x")
for i in range(300):
    board.draw(i, i * i, "loss", every_n=3)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data" and output.data["text/plain"] == "loss 8.88e+04"
    assert "<svg" in output.data["image/svg+xml"]
