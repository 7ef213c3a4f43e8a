"""The clock of a run, and its bar."""

import time
from types import SimpleNamespace

from d2lmini.training.pace import Clock, progress_bar


def test_time_before_a_restart_counts_but_not_for_the_limit(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock = Clock(max_seconds=5)
    clock.seconds_before = 60.0
    now[0] = 104.0
    assert clock.seconds == 64 and not clock.is_up
    now[0] = 105.0
    assert clock.is_up and not Clock().is_up


def test_the_bar_counts_steps_of_several_batches():
    main = SimpleNamespace(is_main_process=True)
    run = SimpleNamespace(max_epochs=3, num_train_batches=10, accumulate=4, max_steps=None, step=2, accelerator=main)
    with progress_bar(run) as bar:
        assert bar.total == 9 and (bar.disable or bar.n == 2)
    run.max_steps = 5
    with progress_bar(run) as bar:
        assert bar.total == 5
