"""How long a run has been at work, how long it may be, and how far it is."""

import sys
import time

from tqdm import tqdm

from ..shell import in_notebook


class Clock:
    """The time of a run, from now on.

    Args:
        max_seconds: after which the time is up; None or 0: never.
    """

    def __init__(self, max_seconds=None):
        self._start, self._limit = time.perf_counter(), max_seconds or float("inf")
        self.seconds_before = 0.0  # trained before a restart; they do not count for the limit

    @property
    def seconds(self):
        """Seconds since the start, those before a restart included."""
        return self.seconds_before + time.perf_counter() - self._start

    @property
    def is_up(self):
        """Whether the time is up."""
        return time.perf_counter() - self._start >= self._limit


def progress_bar(trainer):
    """A bar over the steps of a run, at the shell alone, and in one process."""
    total = trainer.max_epochs * -(-trainer.num_train_batches // trainer.accumulate)
    quiet = in_notebook() or not sys.stderr.isatty() or not trainer.accelerator.is_main_process
    return tqdm(total=min(total, trainer.max_steps or total), initial=trainer.step, disable=quiet, unit="step")
