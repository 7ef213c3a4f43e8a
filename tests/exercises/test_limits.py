"""The time limit stops every kind of loop, and leaves nothing behind."""

import gc
import importlib
import subprocess
import sys
import threading
import time

import pytest
import torch
from toy_exercise import PART, doubled

from d2lmini.exercises.engine import limits
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.limits import TimeUp, call_limited


def plain_loop():
    while True:
        pass


def swallows_exceptions():
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def swallows_everything():
    while True:
        try:
            while True:
                time.sleep(0.001)
        except:  # noqa: E722
            pass


def torch_loop():
    x = torch.ones(64, 64)
    while True:
        x = x @ x


LOOPS = [plain_loop, swallows_exceptions, swallows_everything, torch_loop]


@pytest.mark.parametrize("loop", LOOPS)
def test_loop_is_stopped(loop):
    start = time.monotonic()
    with pytest.raises(TimeUp):
        call_limited(loop, 0.2)
    assert time.monotonic() - start < 3


@pytest.mark.parametrize("loop", [plain_loop, swallows_exceptions, torch_loop])
def test_loop_is_stopped_in_another_thread(loop):
    caught = []

    def run():
        try:
            call_limited(loop, 0.2)
        except TimeUp:
            caught.append(True)
        caught.append(call_limited(lambda: sum(range(1000)), 5))  # nothing is left over

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(5)
    assert caught == [True, 499500]


def test_answer_that_catches_the_alarm_is_stopped_all_the_same():
    def stubborn(x):
        try:
            time.sleep(0.6)
        except TimeUp:
            return 2 * x

    assert judge(PART, stubborn, seconds=0.1).status == "timeout"


def test_timeout_verdict_and_no_alarm_afterwards():
    assert judge(PART, lambda x: plain_loop(), seconds=0.2).status == "timeout"
    time.sleep(0.3)
    assert judge(PART, doubled, seconds=0.5).passed


@pytest.mark.parametrize("in_main", [True, False])
def test_limit_waits_for_an_import_and_leaves_the_module_whole(tmp_path, monkeypatch, in_main):
    name = f"slow_to_import_{in_main}"
    (tmp_path / f"{name}.py").write_text("import time\nfor _ in range(60):\n    time.sleep(0.01)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def load_and_loop():
        importlib.import_module(name)
        plain_loop()

    assert is_stopped(load_and_loop, in_main) and getattr(sys.modules.pop(name, None), "whole", False)


def is_stopped(function, in_main):
    """Whether a limit of 0.1 s stops the function, called in this thread or in another one."""
    stopped = []

    def run():
        try:
            call_limited(function, 0.1)
        except TimeUp:
            stopped.append(True)

    if in_main:
        run()
    else:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(10)
    return stopped == [True]


class Finaliser:
    def __del__(self):
        while True:
            pass


def finalised():
    Finaliser()
    plain_loop()


def collected():
    def slow(phase, info):
        plain_loop()

    gc.callbacks.append(slow)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(slow)
    plain_loop()


@pytest.mark.parametrize("in_main", [True, False])
@pytest.mark.parametrize("function", [finalised, collected])
def test_an_alarm_that_python_swallows_is_not_reported_and_the_next_one_stops_it(monkeypatch, function, in_main):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    assert is_stopped(function, in_main)
    assert TimeUp not in [one.exc_type for one in reported] and sys.unraisablehook == reported.append


@pytest.mark.parametrize("in_main", [True, False])
def test_an_import_around_the_limit_puts_nothing_off(tmp_path, monkeypatch, in_main):
    name = f"checks_when_imported_{in_main}"
    (tmp_path / f"{name}.py").write_text("import test_limits\ntook = test_limits.seconds_of_an_endless_loop()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "test_limits", sys.modules[__name__])
    monkeypatch.setattr(limits, "IMPORTS", 3.0)
    if in_main:
        importlib.import_module(name)
    else:
        thread = threading.Thread(target=importlib.import_module, args=(name,), daemon=True)
        thread.start()
        thread.join(10)
    assert sys.modules.pop(name).took < 2


def seconds_of_an_endless_loop():
    start = time.monotonic()
    with pytest.raises(TimeUp):
        call_limited(plain_loop, 0.1)
    return time.monotonic() - start


def test_an_import_that_never_ends_is_stopped(tmp_path, monkeypatch):
    (tmp_path / "endless_to_import.py").write_text("while True:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(limits, "IMPORTS", 0.5)
    with pytest.raises(TimeUp):
        call_limited(lambda: importlib.import_module("endless_to_import"), 0.1)


AFTERWARDS = """
import sys, threading
from d2lmini.exercises.engine.limits import TimeUp, call_limited

def endless():
    while True:
        pass

def run():
    call_limited(int, 5)
    try:
        call_limited(endless, 0.2)
    except TimeUp:
        pass
    for hear in sys.setprofile, sys.settrace:
        hear(lambda *event: None)
        (lambda: None)()
        hear(None)
    print("done")

thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.slow
def test_code_can_be_profiled_and_traced_after_a_limit_in_another_thread():
    # a process of its own: where an exception called back is left pending, Python 3.11 hangs in C and takes no alarm
    done = subprocess.run([sys.executable, "-c", AFTERWARDS], capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr
