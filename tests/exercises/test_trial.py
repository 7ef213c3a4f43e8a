"""What a check has to work with."""

import statistics

import numpy as np
import pytest
import torch
from stand_ins import code_of

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.host import Host
from d2lmini.exercises.grading.remote import Loopback


def test_sizes_differ():
    for seed in range(20):
        sizes = Trial(seed).sizes(5)
        assert len(set(sizes)) == 5 and min(sizes) >= 2


def test_numbers():
    t = Trial(0)
    t.number(3, 3)
    t.number(torch.tensor(3.0), 3)
    for got, code in [(None, "type"), ("3", "type"), (True, "type"), (float("nan"), "nonfinite"), (..., "stub")]:
        assert code_of(t.number, got, 3) == code
    with pytest.raises(Rejected, match="counted twice"):
        t.number(6, 3, mistakes={"twice": (6, "counted twice")})
    assert t.checks == 8


def test_tuples_dicts_and_directions():
    t = Trial(0)
    assert t.unpack([1, 2], "left", "right") == (1, 2)
    assert t.fields({"a": 1, "b": 2}, "b") == (2,)
    t.below([1, 1, 5], [2, 3, 4], 0.9, "no", "not below")
    for call, code in [
        (lambda: t.unpack(None, "a"), "type"),
        (lambda: t.unpack(torch.ones(2), "a", "b"), "type"),
        (lambda: t.unpack((1,), "a", "b"), "type"),
        (lambda: t.fields(None, "a"), "type"),
        (lambda: t.fields([1], "a"), "type"),
        (lambda: t.fields({}, "a"), "type"),
        (lambda: t.below([1, 1, 5], [2, 3, 4], 1.1, "no", "not below"), "no"),
        (lambda: t.below([float("nan")], [1], 0, "no", "not below"), "no"),
        (lambda: t.that(torch.tensor(True), "no", "a tensor is not True"), "no"),
    ]:
        assert code_of(call) == code


def test_counts_and_lists_of_numbers():
    t = Trial(0)
    for whole in (3, torch.tensor(3)):
        t.whole(whole)
    assert t.numbers([1, torch.tensor(0.5)], 2) == t.numbers(torch.tensor([1, 0.5]), 2) == [1, 0.5]
    for call, code in [
        (lambda: t.whole(3.0), "type"),
        (lambda: t.whole(True), "type"),
        (lambda: t.whole(torch.tensor(3.0)), "type"),
        (lambda: t.numbers(None, 1), "shape"),
        (lambda: t.numbers([1, 2], 1), "shape"),
        (lambda: t.numbers(["1"], 1), "type"),
        (lambda: t.numbers([True], 1), "type"),
        (lambda: t.numbers([float("nan")], 1), "nonfinite"),
        (lambda: t.numbers([10**400], 1), "nonfinite"),
    ]:
        with pytest.raises(Rejected) as caught:
            call()
        assert caught.value.code == code


def test_what_is_refused_must_not_be_called():
    t = Trial(0)
    with t.refusing("statistics.", message="add up yourself"):
        t.call(lambda: sum([1, 7]) / 2)
    with (
        pytest.raises(Rejected, match="add up yourself") as caught,
        t.refusing("statistics.", message="add up yourself"),
    ):
        t.call(lambda: statistics.fmean([1, 7]))
    assert caught.value.code == "borrowed"
    with pytest.raises(Rejected, match="too large"), t.refusing("statistics.", message="add up yourself"):
        t.number(t.call(lambda: statistics.fmean([1, 7])), 3)


def test_a_key_that_nobody_asked_for_is_told_where_one_is_lacking():
    with pytest.raises(Rejected, match=r"lacks \['loss'\] and has \['lost'\], which nobody asked for") as caught:
        Trial(0).fields({"lost": 1, "seed": 2, 3: 4}, "loss", "seed")
    assert caught.value.code == "type"


@pytest.mark.parametrize("host", [Host, Loopback])
def test_numbers_of_numpy_are_numbers(host):
    t = Trial(0, host=host())
    answer = t.host.adopt(lambda x: {"n": [np.int64(3), (np.float32(0.5), np.bool_(True))], "x": np.float64(0.5)})
    got = t.call(answer, 1)
    assert got == {"n": [3, (0.5, True)], "x": 0.5}
    n, (half, flag) = got["n"]
    assert [type(value) for value in (n, half, flag, got["x"])] == [int, float, bool, float]
