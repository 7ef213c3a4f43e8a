"""What an answer changes outside of itself is put back, and what it prints has a bound."""

import io
import os
import random
import warnings

import numpy as np
import pytest
import torch
from toy_exercise import PART

from d2lmini.exercises.engine import compare, guard, trial
from d2lmini.exercises.engine import judge as judging
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


def test_a_bound_that_is_met_exactly_is_told_too():
    stream = io.StringIO()
    output = guard.BoundedOutput(stream, 20)
    for _ in range(10):
        print("123456789", file=output)
    output.writelines(["more"])
    assert stream.getvalue().count("123456789") == 2 and stream.getvalue().count("prints more than is shown") == 1


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (trial, "compare_tensor"),
        (compare, "differ"),
        (trial.Trial, "same"),
        (judging, "call_limited"),
        (judging, "restored_state"),
        (guard, "_put_back"),
        (torch, "isfinite"),
        (torch.nn.functional, "softmax"),
        (torch.Tensor, "double"),
        (random, "Random"),
    ],
)
def test_what_an_answer_replaces_is_put_back(place, name):
    own = getattr(place, name)

    def replaces(x):
        setattr(place, name, lambda *args, **kwargs: torch.zeros(0, dtype=torch.bool))
        return 3 * x

    verdict_of(replaces)
    assert getattr(place, name) is own
    assert verdict_of(lambda x: 3 * x).code == "triple"


def test_an_engine_that_a_cell_has_changed_is_itself_again():
    verdict_of(lambda x: 2 * x)
    own = trial.compare_tensor
    trial.compare_tensor = lambda *args, **kwargs: None  # as a cell of a notebook would
    try:
        assert verdict_of(lambda x: 3 * x).code == "triple"
        assert trial.compare_tensor is own
    finally:
        trial.compare_tensor = own


def test_an_answer_may_remove_its_folder(tmp_path, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)

    def removes(x):
        if inside.exists():
            inside.rmdir()
        return 2 * x

    assert verdict_of(removes).passed and verdict_of(removes).passed


def test_a_check_computes_in_one_thread_and_seeds_what_the_answer_draws():
    threads, seen = torch.get_num_threads(), []

    def answer(x):
        seen.append((torch.get_num_threads(), torch.rand(1).item(), random.random(), np.random.rand()))
        return 2 * x

    assert verdict_of(answer).passed
    first = seen.copy()  # a check that passes runs once more
    assert verdict_of(answer).passed
    assert seen[len(first) :] == first and first[0][0] == 1 and torch.get_num_threads() == threads
