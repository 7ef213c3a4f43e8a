"""The process of one answer, from the judge's end: orders go in, replies come out, and its time is limited."""

import contextlib
import json
import queue
import signal
import threading
import time

import psutil

from ..engine.host import HostError
from ..engine.limits import TOO_LONG
from . import wire

STARTUP = 120.0  # seconds in which a process must have loaded torch
PATIENCE = 3.0  # times the limit that an answer may take on the clock; of processor time it has the limit itself
SPARE = 20.0  # seconds on the clock that are added to that
LOOK = 0.25  # seconds between two looks whether it does anything
ASLEEP = "asleep"  # the code where it did nothing for as long as its limit
GIB = 2**30
MUCH = GIB  # bytes; an answer whose time is up and that has filled so many may have gone on to fill all


class AnswerProcess:
    """The process of one answer; use it with ``with``, at whose end it and all of its own are gone.

    Args:
        place: a `Sandbox` or `Unprotected`, in which it runs.
        seconds: of processor time that the answer may take.
        memory: bytes that it may have beside what the libraries take.
        heavy: whether libraries for training and measuring are loaded before.
    """

    def __init__(self, place, seconds, memory, heavy=False):
        self.place, self.seconds, self.memory, self.heavy = place, seconds, memory, heavy
        self.left, self.idle = STARTUP, None  # None: it is not watched while it loads
        self.worked = None  # seconds of processor time, when it was last looked at
        self.before = self.most = 0  # bytes of memory that its processes filled when it began, and at most

    def __enter__(self):
        self.orders, self.replies = self.place.begin(self.heavy)
        try:
            self._send(json.dumps({"seconds": self.seconds, "memory": self.memory}).encode())
            self._receive()  # it says when it is ready: what it loads is not on the answer's clock
            self.left, self.idle = self._allowed(), 0.0
            self._look()
            self.before = self.most
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.place.end()
        for pipe in (self.orders, self.replies):
            with contextlib.suppress(OSError):
                pipe.close()

    def _allowed(self):
        """Seconds on the clock that the judge waits for the answer altogether."""
        return PATIENCE * self.seconds + SPARE

    def exchange(self, order):
        """Send an order and return (JSON, tensors) of the reply: bytes.

        Raises:
            HostError: the process ended, took too long, or sent too much.
        """
        self._send(order)
        return self._receive()

    def _send(self, data):
        def write():
            self.orders.write(len(data).to_bytes(8, "little") + data)
            self.orders.flush()

        self._in_time(write)

    def _receive(self):
        def read():
            text, tensors = wire.SIZES.unpack(wire.read_exactly(self.replies, wire.SIZES.size))
            if text > wire.MOST_TEXT or tensors > wire.MOST_TENSORS:
                raise wire.WireError("the answer's process sent what is no result, or more than is taken")
            return wire.read_exactly(self.replies, text), wire.read_exactly(self.replies, tensors)

        return self._in_time(read)

    def _in_time(self, work):
        """Return ``work()``, which waits for the answer: in a thread, since a pipe knows no time limit everywhere."""
        done = queue.SimpleQueue()

        def run():
            try:
                done.put((work(), None))
            except (OSError, ValueError, EOFError, HostError) as error:
                done.put((None, error))

        threading.Thread(target=run, daemon=True).start()
        start = time.monotonic()
        while True:
            try:
                result, error = done.get(timeout=LOOK)
                break
            except queue.Empty:
                self._look_after(time.monotonic() - start)
        self.left -= time.monotonic() - start
        if isinstance(error, HostError):
            raise error
        if error is not None:
            self._lost()
        return result

    def _look_after(self, waited):
        """Raise `HostError` if the answer has had its time, or has done nothing for as long as its limit."""
        before, self.worked = self.worked, self._look()
        if waited > self.left:
            raise self._too_long("had to be stopped, it did not end in time")
        if self.idle is None:
            return
        self.idle = self.idle + LOOK if self.worked is not None and self.worked == before else 0.0
        if self.idle > self.seconds:
            message = f"stopped, it did nothing for {self.seconds:g} s: does it sleep, or wait for something?"
            raise HostError(message, "timeout", ASLEEP)

    def _too_long(self, what):
        """Return the `HostError` on an answer whose time is up: small things fill the memory more slowly than that."""
        if (filled := self.most - self.before) > MUCH:
            message = f"{what}; it had filled {filled / GIB:.1f} GiB of memory: does it collect more and more?"
            return HostError(message, "timeout", "memory")
        return HostError(f"{what}: {TOO_LONG}", "timeout", "timeout")

    def _look(self):
        """See how much memory the processes of the answer fill.

        Returns:
            the seconds of processor time that they took; None where one works or waits for its turn.
        """
        try:
            outermost = psutil.Process(self.place.process.pid)
            processes = [outermost, *outermost.children(recursive=True)]
            self.most = max(self.most, sum(process.memory_info().rss for process in processes))
            if any(process.status() != psutil.STATUS_SLEEPING for process in processes):
                return None
            return sum(sum(process.cpu_times()[:2]) for process in processes)
        except (psutil.Error, AttributeError):  # it has just ended: what waits for its reply will say so
            return None

    def _lost(self):
        """Say how the process ended."""
        code = self.place.end(grace=5.0)
        if self.place.words:  # no fault of the answer's
            raise RuntimeError(f"the sandbox ended: {self.place.words}")
        if code is None:
            raise HostError("the answer's process closed its way back to the judge")
        # who ignores the first signal of the limit gets SIGKILL two seconds later
        late = code == -getattr(signal, "SIGKILL", 0) and self._allowed() - self.left >= self.seconds
        if code == -getattr(signal, "SIGXCPU", 0) or late:
            raise self._too_long(f"stopped after {self.seconds:g} s")
        if -code in set(signal.Signals):
            raise HostError(f"the answer's process was ended by {signal.Signals(-code).name}")
        raise HostError(f"the answer's process ended with exit code {code}")
