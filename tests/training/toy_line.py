"""Points in the plane and a line between their classes: the quickest model to fit; a stream that cannot be shared."""

import torch
from torch import nn

from d2lmini.training import Classifier, DataModule, Trainer


class Points(DataModule):
    """Points in the plane, labelled by a line through them."""

    def __init__(self, num_train=70, num_val=33, batch_size=16, shuffle=True):
        super().__init__()
        self.save_hyperparameters()
        self.X = torch.randn(num_train + num_val, 2, generator=torch.Generator().manual_seed(0))
        self.y = (self.X[:, 0] > self.X[:, 1]).long()

    def get_dataloader(self, train):
        training, rest = slice(self.num_train), slice(self.num_train, None)
        return self.get_tensorloader((self.X, self.y), train and self.shuffle, training if train else rest)


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


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(5))
