"""Keep what an answer does to the process from outliving it."""

import builtins
import contextlib
import io
import math
import os
import random
import sys
import warnings

import numpy as np
import torch
from torch.nn import functional

OUTPUT_LIMIT = 2_000  # characters that one check lets an answer print
EXERCISES = __package__.rpartition(".")[0]
JUDGES = tuple(f"{EXERCISES}.{folder}." for folder in ("engine", "reader", "grading"))
LIBRARIES = (builtins, math, random, torch, functional, torch.linalg, torch.Tensor, torch.nn.Module)


class BoundedOutput(io.TextIOBase):
    """A text stream that passes on the first ``limit`` characters and drops the rest, saying so once."""

    def __init__(self, stream, limit=OUTPUT_LIMIT):
        self.stream, self.left, self.said = stream, limit, not limit

    def write(self, text):
        if self.left > 0:
            self.stream.write(text[: self.left])
        if len(text) > self.left and not self.said:
            self.stream.write("\n... (your code prints more than is shown)\n")
            self.said = True
        self.left = max(0, self.left - len(text))
        return len(text)

    def flush(self):
        self.stream.flush()


def _of_judges():
    """The modules and classes that judge: whoever replaces a function there breaks the checks that follow."""
    for name, module in list(sys.modules.items()):
        if name.startswith(JUDGES):
            yield module
            yield from (x for x in vars(module).values() if isinstance(x, type) and x.__module__ == name)


def _snapshot(places):
    return [(place, dict(vars(place))) for place in places]


def _put_back(before):
    for place, content in before:
        now = vars(place)
        for name, value in content.items():
            if now.get(name) is not value and callable(value):
                setattr(place, name, value)
        if isinstance(place, type):  # what is new there hides what the class inherits
            for name in now.keys() - content.keys():
                delattr(place, name)


_judges = []  # as they were when the first check began


@contextlib.contextmanager
def restored_state(seed=None, quiet=False):
    """Seed, compute in one thread, and put back afterwards whatever an answer may have changed.

    That is random states, threads, default dtype and device, gradient mode, warnings, streams, folder, and functions in
    `LIBRARIES` and the engine that were replaced.

    Args:
        seed: of torch's, Python's and numpy's global random numbers; None: as they are.
        quiet: whether prints are dropped.
    """
    put_back = _put_back  # an answer may replace that, too
    if not _judges:
        _judges.extend(_snapshot(_of_judges()))
    put_back(_judges)
    before = _snapshot([*_of_judges(), *LIBRARIES])
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    threads = torch.get_num_threads()
    stdout, stderr, folder = sys.stdout, sys.stderr, None
    with contextlib.suppress(FileNotFoundError):  # it may have been removed
        folder = os.getcwd()
    limit = 0 if quiet else OUTPUT_LIMIT
    sys.stdout, sys.stderr = BoundedOutput(stdout, limit), BoundedOutput(stderr, limit)
    try:
        torch.set_num_threads(1)  # the order of a sum, and so its last digit, does not depend on the machine
        if seed is not None:
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
        with warnings.catch_warnings():
            yield
    finally:
        put_back(before)
        sys.stdout, sys.stderr = stdout, stderr
        with contextlib.suppress(OSError, TypeError):
            os.chdir(folder)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        torch.set_rng_state(state[0])
        random.setstate(state[1])
        np.random.set_state(state[2])
