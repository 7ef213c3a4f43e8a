"""What a computation costs: the clock, the peak of memory, the largest tensor and the traffic."""

import time

import pytest
import torch

from d2lmini import measure
from d2lmini.exercises import engine

MIB = 2**20


def test_seconds_is_the_time_of_one_call():
    calls = []
    assert measure.seconds(lambda: calls.append(time.sleep(0.05)), "cpu") >= 0.05
    assert len(calls) == 1


def test_contestants_take_turns_after_one_call_to_warm_up(monkeypatch):
    monkeypatch.setattr(measure, "seconds", lambda step, device: step())
    calls, times = [], {"a": iter([99, 5, 1, 2]), "b": iter([99, 10, 30, 20])}

    def step(name):
        calls.append(name)
        return next(times[name])

    steps = {name: lambda name=name: step(name) for name in times}
    assert measure.median_seconds(steps, repeats=3) == {"a": 2, "b": 20}
    assert "".join(calls) == "ab" * 4


def test_calls_before_the_timed_one(monkeypatch):
    clock, calls = [0.0], []

    def step(name, takes):
        calls.append(name)
        clock[0] += takes

    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])
    steps = {"a": lambda: step("a", 2.0), "b": lambda: step("b", 0.5)}
    assert measure.median_seconds(steps, repeats=2, after_s=1.0) == {"a": 2.0, "b": 0.5}
    assert "".join(calls) == "ab" + 2 * "aabbb"


def test_no_repeats():
    with pytest.raises(ValueError, match="repeats is 0, expected at least 1"):
        measure.median_seconds({"a": int}, repeats=0)


def test_peak_counts_what_is_held_at_once():
    def one_after_the_other():
        for _ in range(5):
            torch.ones(MIB // 4)  # 1 MiB, freed

    def both():
        return torch.ones(MIB // 4), torch.ones(MIB // 2)

    x = torch.ones(MIB)
    assert MIB <= measure.peak_bytes(one_after_the_other) < 1.1 * MIB
    assert 3 * MIB <= measure.peak_bytes(both, torch.device("cpu")) < 3.1 * MIB
    assert measure.peak_bytes(lambda: x[1:].view(3, -1)) < 0.1 * MIB  # what was there before does not count


def test_peak_on_another_device_is_refused():
    with pytest.raises(ValueError, match="on cpu or cuda, not on meta: use --device cpu"):
        measure.peak_bytes(int, "meta")


def test_the_largest_tensor_is_a_storage():
    x = torch.ones(3)
    with measure.LargestTensor() as seen:
        x.expand(1000, 3)
    assert seen.numel == 3
    with measure.LargestTensor() as seen:
        torch.outer(x, x)
    assert seen.numel == 9


def test_traffic_is_what_is_read_and_written():
    x, y = torch.ones(10), torch.ones(10)
    with measure.Traffic() as seen:
        (x + y).view(2, 5)
    assert seen.bytes == 3 * 10 * 4


def test_exercises_measure_with_the_same():
    assert engine.LargestTensor is measure.LargestTensor and engine.Traffic is measure.Traffic


def test_a_sum_over_an_expanded_view_makes_what_it_adds_up():
    x, y = torch.ones(5, 1), torch.ones(1, 7)
    with measure.LargestTensor() as seen:
        (x.expand(5, 1000) + 0).sum()
    assert seen.numel == 5000
    with measure.Traffic() as traffic:
        x @ y.reshape(1, 7)
    assert traffic.bytes == 4 * (5 + 7 + 35)
