"""What a reader sees: plain text in a terminal, Markdown in a notebook, a bar while a long check runs."""

import contextlib
import sys
import threading
import time
from html import escape

from ...shell import in_notebook

DELAY = 3.0  # seconds after which the bar appears
STEP = 0.5  # seconds between two of its moves
WIDTH = 20  # of the bar, in characters


def show(text, rich, kind="markdown"):
    """Print a text, or in a notebook show the same as Markdown, or as HTML."""
    if in_notebook():
        from IPython.display import display

        display({f"text/{kind}": rich, "text/plain": text}, raw=True)
    else:
        print(text)


COLOURS = {"passed": "#1a7f37", "wrong": "#b3261e", "recorded": "#1f5fa8"}  # white on them has a contrast of 5 and more


def show_verdict(status, text):
    """Print a verdict, which begins with its status; in a notebook that is in white on its colour."""
    rest = escape(text.removeprefix(status.upper()), quote=False)
    colour = COLOURS.get(status, "#595959")
    badge = f"background:{colour};color:#fff;border-radius:3px;padding:0 .4em"
    show(text, f'<pre style="white-space:pre-wrap"><b style="{badge}">{status.upper()}</b>{rest}</pre>', "html")


@contextlib.contextmanager
def waiting(seconds, quiet=False):
    """Show on stderr how many of ``seconds`` are used, where what stands inside takes long.

    It is only a display, of a thread that ends with the block; nothing waits for it. Without a terminal or a notebook,
    or if ``quiet``, there is none.
    """
    stream, done = sys.stderr, threading.Event()
    if quiet or not (in_notebook() or _is_terminal(stream)):
        yield
        return
    thread = threading.Thread(target=_move, args=(stream, seconds, done), name="d2lmini-waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(1.0)  # so that the bar is gone before the verdict comes


def _is_terminal(stream):
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _move(stream, seconds, done):
    """Write one line anew, with what has passed; tqdm would keep its lock where a stream fails, for every bar."""
    start, wait, line = time.monotonic(), DELAY, ""
    with contextlib.suppress(Exception):  # a stream that fails spoils no check
        while not done.wait(wait):
            passed, wait = min(time.monotonic() - start, seconds), STEP
            bar = "#" * int(WIDTH * passed / seconds)
            line = f"checking: {passed:.0f} s of at most {seconds:.0f} s |{bar:<{WIDTH}}|"
            stream.write(f"\r{line}")
            stream.flush()
        stream.write(f"\r{' ' * len(line)}\r" if line else "")
