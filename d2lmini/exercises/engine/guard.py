"""Keep what an answer does to the process from outliving it."""

import contextlib
import os
import random
import sys
import warnings

import numpy as np
import torch

OUTPUT_LIMIT = 2_000  # characters that one check lets an answer print


class BoundedOutput:
    """A text stream that passes on the first ``limit`` characters and drops the rest, saying so once."""

    def __init__(self, stream, limit=OUTPUT_LIMIT):
        self.stream, self.left = stream, limit

    def write(self, text):
        if self.left > 0:
            self.stream.write(text[: self.left])
            if len(text) > self.left:
                self.stream.write("\n... (your code prints more than is shown)\n")
        self.left -= len(text)
        return len(text)

    def flush(self):
        self.stream.flush()

    def isatty(self):
        return False


@contextlib.contextmanager
def restored_state():
    """Put back random states, default dtype and device, gradient mode, warnings, streams and folder."""
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    stdout, stderr, folder = sys.stdout, sys.stderr, os.getcwd()
    sys.stdout, sys.stderr = BoundedOutput(stdout), BoundedOutput(stderr)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        os.chdir(folder)
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        torch.set_rng_state(state[0])
        random.setstate(state[1])
        np.random.set_state(state[2])
