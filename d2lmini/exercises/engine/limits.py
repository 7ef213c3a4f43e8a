"""A time limit that an endless loop cannot swallow."""

import ctypes
import signal
import sys
import threading
import time

TOO_LONG = "is there an endless loop, or does it take far too many steps?"  # what a message on it asks
REPEAT = 0.1  # seconds between two alarms, should the first one be swallowed
IMPORTS = 60.0  # seconds for which an alarm waits for an import: one cut in two leaves half a module in the session


class TimeUp(BaseException):
    """The time limit has passed. Not an ``Exception``, so that ``except Exception`` lets it through."""


def call_limited(function, seconds):
    """Return ``function()``, or raise ``TimeUp`` in it after ``seconds``, again and again until it ends.

    In the main thread an alarm signal does it, elsewhere (and on Windows) another thread raises in this one.
    Code that hangs outside Python, in one call of a library, is interrupted only when that call returns, and an import
    when it is done.
    """
    in_main = threading.current_thread() is threading.main_thread()
    way = _with_alarm if in_main and hasattr(signal, "setitimer") else _with_watcher
    report = sys.unraisablehook  # of what is raised in a finaliser or the garbage collector, and goes no further
    sys.unraisablehook = lambda lost: None if lost.exc_type is TimeUp else report(lost)  # the next alarm comes soon
    try:
        return way(function, seconds)
    finally:
        sys.unraisablehook = report


def _escape(frame, event, arg):
    """Trace function: leave an ``except`` that has caught ``TimeUp`` by raising it once more inside."""
    if isinstance(sys.exc_info()[1], TimeUp):
        raise TimeUp
    return _escape


def _waits(frame, here, late):
    """Whether an alarm has to wait: an import that began in the limited call, below ``here``, is under way.

    Args:
        frame: the innermost one.
        here: the frame that set the limit, which may be inside another import itself.
        late: seconds since the limit.
    """
    while frame is not None and frame is not here and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None and frame is not here and late < IMPORTS


def _with_alarm(function, seconds):
    here, tracer = sys._getframe(), sys.gettrace()

    def ring(signum, frame):
        if _waits(frame, here, time.monotonic() - start - seconds):
            return
        # a bare `except:` in the loop would catch every alarm; tracing reaches into its handler
        while frame is not None and frame is not here:
            frame.f_trace = _escape
            frame = frame.f_back
        sys.settrace(lambda *_: None)
        raise TimeUp

    handler, start = signal.signal(signal.SIGALRM, ring), time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)
    try:
        return function()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        sys.settrace(tracer)
        if remaining:  # someone else's alarm (pytest-timeout's, say) keeps its own time
            signal.setitimer(signal.ITIMER_REAL, max(remaining - (time.monotonic() - start), 1e-3), interval)


def _with_watcher(function, seconds):
    target, lock, done = ctypes.c_ulong(threading.get_ident()), threading.Lock(), threading.Event()
    here = sys._getframe()

    def watch():
        wait, start = seconds, time.monotonic()
        while not done.wait(wait):
            with lock:
                frame = sys._current_frames().get(target.value)
                if not done.is_set() and not _waits(frame, here, time.monotonic() - start - seconds):
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(TimeUp))
            wait = REPEAT

    threading.Thread(target=watch, daemon=True).start()
    try:
        return function()
    finally:
        try:
            with lock:  # none is sent from here on
                done.set()
            # One that is under way is replaced by one for us, and caught. Calling it back (None) would leave something
            # pending for ever in Python 3.11, and the next profiled or traced call would wait for it.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(TimeUp))
            while True:
                pass
        except TimeUp:
            done.set()
