"""The loop: what it does, what it reports, and when it stops."""

import copy
import io
import json
import math
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from toy_line import Line, Points, Stream, fit
from toy_training import PAD, Tokens, train

from d2lmini.training import Trainer, WarmupInverseSqrt


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


def test_a_model_built_as_chapter_11_of_d2l_builds_them_trains():
    import d2lmini.training as d2l

    class Seq2Seq(d2l.Classifier):
        def __init__(self, encoder, decoder, tgt_pad, lr):
            super().__init__()
            self.save_hyperparameters()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, X):
            return self.decoder(self.encoder(X))

        def validation_step(self, batch):
            self.plot("loss", self.loss(self(batch[0]), batch[1]), train=False)

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


@pytest.mark.slow
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
