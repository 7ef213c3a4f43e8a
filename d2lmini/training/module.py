"""What a model is to the loop: a loss, one step of training, one of validation, an optimizer."""

import torch
import torch.nn.functional as F
from torch import nn

from ..utils import HyperParameters, PropertiesHeard, Unavailable
from .board import ProgressBoard


class Module(PropertiesHeard, nn.Module, HyperParameters):
    """Base class of models that a `Trainer` trains.

    A subclass gives ``loss(Y_hat, Y)``, and ``net`` or a ``forward`` of its own. A batch is a tuple or list: the inputs
    of ``forward``, then the labels.

    Args:
        plot_train_per_epoch: points of a training curve in an epoch, each the mean over its part; 0: none.
        plot_valid_per_epoch: 0: no validation curves; else they have one point an epoch.

    Source: D2L section 3.2.2.
    """

    def __init__(self, plot_train_per_epoch=2, plot_valid_per_epoch=1):
        super().__init__()
        self.save_hyperparameters()
        self.board = ProgressBoard()

    @property
    def num_parameters(self):
        """How many numbers the parameters hold, shared ones counted once; `Unavailable` while one has no size yet."""
        if any(map(nn.parameter.is_lazy, self.parameters())):
            raise Unavailable(f"{type(self).__name__} has parameters without a size: call it first")
        return sum(parameter.numel() for parameter in self.parameters())

    def loss(self, Y_hat, Y):
        """The loss of predictions, a scalar: the mean over what `batch_weight` counts."""
        raise NotImplementedError(f"{type(self).__name__} has no loss(Y_hat, Y)")

    def forward(self, X):
        if not hasattr(self, "net"):
            raise NotImplementedError(f"{type(self).__name__} has neither a `net` nor a forward of its own")
        return self.net(X)

    def plot(self, key, value, train):
        """Adds a value of the current batch to the curve ``train_<key>`` or ``val_<key>``.

        The curve shows means over batches, each weighted by `batch_weight`.

        Args:
            key: name of the quantity, as "loss".
            value: scalar tensor or number, the mean over the batch.
            train: whether it comes from training.

        Raises:
            RuntimeError: no `Trainer` has had the model.
        """
        if getattr(self, "trainer", None) is None:
            raise RuntimeError("plot() was called on a model that no Trainer has: it works inside of Trainer.fit")
        self.trainer.record(key, value, train)

    def training_step(self, batch):
        """Loss of a batch, a scalar tensor with gradients."""
        *inputs, labels = batch
        loss = self.loss(self(*inputs), labels)
        self.plot("loss", loss, train=True)
        return loss

    def validation_step(self, batch):
        """Plots what is to be known of a validation batch."""
        *inputs, labels = batch
        self.plot("loss", self.loss(self(*inputs), labels), train=False)

    def batch_weight(self, batch):
        """Of how many terms the loss of this batch is the mean: here of its examples, B.

        Batches are weighted by it where several make one step (accumulation, several processes) and in validation. A
        model whose loss is a mean over tokens returns their number, e.g. ``(batch[-1] != pad).sum()``.
        """
        while not isinstance(batch, torch.Tensor):
            batch = list(batch.values() if isinstance(batch, dict) else batch)[-1]
        return len(batch)

    def configure_optimizers(self):
        """The optimizer: here SGD with the learning rate ``self.lr``."""
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def apply_init(self, inputs, init=None):
        """Runs ``forward(*inputs)`` once, which gives lazy layers their sizes, then ``init`` on all of ``net``."""
        with torch.no_grad():  # the sizes are all that is wanted of it
            self.forward(*inputs)
        if init is not None:
            self.net.apply(init)

    def __getstate__(self):
        # a copy or a file of the model takes no trainer along, and with it no data and no optimizer
        return {**super().__getstate__(), "trainer": None}


class Classifier(Module):
    """A `Module` that predicts classes.

    Source: D2L section 4.3.
    """

    def validation_step(self, batch):
        *inputs, labels = batch
        scores = self(*inputs)
        for key, measure in (("loss", self.loss), ("acc", self.accuracy)):
            self.plot(key, measure(scores, labels), train=False)

    def accuracy(self, Y_hat, Y, averaged=True):
        """Share of predictions that are right.

        Args:
            Y_hat: scores (..., C).
            Y: labels, integers of shape (...).
            averaged: False: 0 or 1 for each prediction, in one dimension.

        Returns:
            float32 tensor.

        Source: D2L section 4.3.2.
        """
        right = (Y_hat.reshape(-1, Y_hat.shape[-1]).argmax(dim=1) == Y.reshape(-1)).float()
        return right.mean() if averaged else right

    def loss(self, Y_hat, Y, averaged=True):
        """Cross-entropy of scores (..., C) and labels (...); with ``averaged=False`` one of each prediction.

        Source: D2L section 4.5.2.
        """
        reduction = "mean" if averaged else "none"
        return F.cross_entropy(Y_hat.reshape(-1, Y_hat.shape[-1]), Y.reshape(-1), reduction=reduction)

    def layer_summary(self, X_shape):
        """Prints the shape of the output of each layer of ``net`` for a random input of shape ``X_shape``.

        Source: D2L section 7.6.
        """
        X = torch.randn(*X_shape)
        for layer in self.net:
            X = layer(X)
            print(f"{type(layer).__name__} output shape:\t{tuple(X.shape)}")
