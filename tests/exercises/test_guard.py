"""What an answer changes outside of itself is put back, and what it prints has a bound."""

import os
import random
import warnings

import numpy as np
import torch
from toy_exercise import PART

from d2lmini.exercises.engine.judge import judge


def verdict_of(answer, **options):
    return judge(PART, answer, seed=3, **options)


def test_state_is_restored():
    def answer(x):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        warnings.simplefilter("ignore")
        os.chdir("/")
        return 2 * x

    def state():
        return (
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_grad_enabled(),
            list(warnings.filters),
            os.getcwd(),
        )

    before = state()
    verdict_of(answer)
    assert state() == before


def test_prints_are_let_through_up_to_a_bound(capsys):
    def answer(x):
        print("hello")
        print("x" * 100_000)
        return 2 * x

    assert verdict_of(answer).passed
    out = capsys.readouterr().out
    assert "hello" in out and "prints more than is shown" in out and len(out) < 3_000
