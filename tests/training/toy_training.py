"""A model and data for the tests of training; as a script, what `accelerate launch` runs."""

import json
import multiprocessing.forkserver
import os
import random
import signal
import sys
import time
from pathlib import Path

import accelerate
import numpy as np
import pytest
import torch
import torch._dynamo  # what the first step would import
import torch.distributed.tensor
from torch import nn

from d2lmini.training import CheckpointError, Classifier, DataModule, Trainer, WarmupInverseSqrt, checkpoint
from d2lmini.utils import num_gpus

torch.set_num_threads(1)
PAD = 0


class Tokens(DataModule):
    """Sequences with padding, whose batches differ in the number of their tokens; each is changed at random."""

    def __init__(self, num_examples=40, batch_size=4, num_val=10, shuffle=True, noise=True, pause=0.0):
        super().__init__(num_workers=0)
        self.save_hyperparameters()

    def get_dataloader(self, train):
        count = self.num_examples if train else self.num_val
        examples = _Sequences(count, int(train), self.noise and train, self.pause / self.batch_size)
        return torch.utils.data.DataLoader(examples, self.batch_size, shuffle=self.shuffle and train)


class _Sequences(torch.utils.data.Dataset):
    def __init__(self, count, seed, noise, pause):
        generator = torch.Generator().manual_seed(seed)
        self.X = torch.randint(1, 11, (count, 6), generator=generator)
        valid_lens = torch.randint(1, 7, (count, 1), generator=generator)
        self.Y = torch.where(torch.arange(6) < valid_lens, (self.X + 1) % 11, PAD)
        self.noise, self.pause = noise, pause

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        time.sleep(self.pause)
        X = self.X[i].clone()
        if self.noise:  # drawn by the data, from all three sources
            X[random.randrange(6)] = np.random.randint(1, 11)
            X[torch.randint(6, ())] = 1
        return X, self.Y[i]


class Tagger(Classifier):
    """Predicts a token for each token; input and output embeddings are tied; the loss is a mean over tokens."""

    def __init__(self, lr=0.01, dropout=0.1, num_hiddens=8):
        super().__init__()
        self.save_hyperparameters()
        embedding, output = nn.Embedding(11, num_hiddens), nn.Linear(num_hiddens, 11, bias=False)
        output.weight = embedding.weight
        self.net = nn.Sequential(embedding, nn.Dropout(dropout), nn.Linear(num_hiddens, num_hiddens), nn.Tanh(), output)

    def loss(self, Y_hat, Y):
        return nn.functional.cross_entropy(Y_hat.flatten(0, 1), Y.flatten(), ignore_index=PAD)

    def batch_weight(self, batch):
        return (batch[-1] != PAD).sum()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def train(folder, data=None, model=None, **options):
    """A run of three epochs of ten steps; returns its trainer. `model` holds arguments of a `Tagger`."""
    torch.manual_seed(0)
    trainer = Trainer(3, gradient_clip_val=1, **{"schedule": WarmupInverseSqrt(4), "checkpoint": folder, **options})
    trainer.fit(Tagger(**model or {}), data or Tokens())
    return trainer


def run_on(folder, result, kill_at=None, pause=0.0):
    """Goes on with the run of a folder to its end, resting ``pause`` seconds before every batch.

    ``kill_at`` is the name of a function in `os` and a number: at that call, in writing a checkpoint, it kills itself.
    """
    if kill_at is not None:
        name, left = kill_at
        function = getattr(os, name)

        def call(*args, **kwargs):
            nonlocal left
            left -= checkpoint_is_written()
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        setattr(os, name, call)
    trainer = train(folder, Tokens(pause=pause), resume=True, checkpoint_every=2)
    Path(result).write_text(json.dumps(trainer.history))


def checkpoint_is_written():
    frame = sys._getframe()
    while frame is not None and frame.f_code is not checkpoint.write.__code__:
        frame = frame.f_back
    return frame is not None


def twice(result, folder, **options):
    """A run that stops inside of an epoch and goes on, on data that do not divide evenly among processes."""
    data, model = Tokens(num_examples=36, noise=False), {"dropout": 0.0}
    options = {"checkpoint_every": 2, "precision": "float32", "num_gpus": num_gpus(), **options}
    train(folder, data, model, max_steps=3, **options)
    trainer = train(folder, data, model, resume=True, **options)
    if trainer.accelerator.is_main_process:
        state = trainer.accelerator.state
        how = {"processes": state.num_processes, "distributed": str(state.distributed_type)}
        Path(result).write_text(json.dumps({**how, **trainer.history}))


def launched(rank, port, **more):
    """Sets what `torchrun` tells one of two processes."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **more}
    os.environ.update({name: str(value) for name, value in told.items()})


def refused(rank, port, folder):
    """A run in one of two processes, which ends with the status 3 where its folder is refused."""
    launched(rank, port)
    checkpoint._PATIENCE = 0.1
    try:
        train(folder, precision="float32")
    except CheckpointError:
        sys.exit(3)


def twice_sharded(rank, port, result, folder):
    """The same, in one of two processes that share the parameters; on the CPU, where accelerate would not do it."""
    launched(rank, port, ACCELERATE_USE_FSDP="true", FSDP_VERSION=2, FSDP_RESHARD_AFTER_FORWARD="true")
    shared, original = accelerate.state.PartialState._shared_state, accelerate.state.AcceleratorState.__init__

    def init(self, *args, fsdp_plugin=None, **kwargs):
        original(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if shared["distributed_type"] == accelerate.DistributedType.MULTI_CPU:
            self.distributed_type = shared["distributed_type"] = accelerate.DistributedType.FSDP
            self.fsdp_plugin = fsdp_plugin

    accelerate.state.AcceleratorState.__init__ = init
    twice(result, folder)


def forkserver():
    """A context whose processes have imported all of this already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toy_training"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep
        )  # the server looks there, not in our sys.path
        multiprocessing.forkserver.ensure_running()
    return context


if __name__ == "__main__":
    twice(*sys.argv[1:])
