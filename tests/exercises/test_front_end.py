"""The bar of a long check, and what is a notebook."""

import io
import re
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from stand_ins import in_notebook

from d2lmini.exercises.reader import front_end
from d2lmini.exercises.reader.front_end import show, waiting


class Terminal(io.StringIO):
    def isatty(self):
        return not super().isatty()  # which raises ValueError once it is closed


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # not sys.stderr itself: pytest puts its own there between the setup of a test and the test
    monkeypatch.setattr(front_end, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    monkeypatch.setattr(front_end, "DELAY", 0.05)
    monkeypatch.setattr(front_end, "STEP", 0.02)
    return stream


def threads():
    return [thread.name for thread in threading.enumerate() if "waiting" in thread.name]


def wait_for(stream, text):
    end = time.monotonic() + 20
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return text in stream.getvalue()


def test_a_long_check_shows_the_seconds_of_its_limit(terminal):
    with waiting(60.0):
        assert wait_for(terminal, "checking: 0 s of at most 60 s |")
    assert threads() == [] and terminal.getvalue().endswith("\r")  # the line is empty again


def test_a_short_check_shows_none(terminal):
    with waiting(60.0):
        pass
    assert terminal.getvalue() == "" and threads() == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_bar_ends_whatever_happens(terminal, error):
    with pytest.raises(error), waiting(0.01):
        assert wait_for(terminal, "checking")
        raise error
    assert threads() == []


def test_the_bar_shows_the_seconds_that_have_passed_and_no_more_than_the_limit(terminal):
    for seconds in (60.0, 0.01):
        with waiting(seconds):
            time.sleep(0.3)
    shown = re.findall(r"checking: (\d+) s of at most (\d+) s \|", terminal.getvalue())
    assert len(shown) > 3 and all(int(passed) <= min(int(limit), 20) for passed, limit in shown)
    assert {limit for _, limit in shown} == {"60", "0"}


def test_a_stream_that_fails_spoils_nothing(terminal):
    terminal.write = lambda text: 1 / 0
    with waiting(60.0):
        time.sleep(0.1)
    assert threads() == []


@pytest.mark.parametrize("kind", ["quiet", "file", "closed", "none"])
def test_no_bar_where_nobody_looks(terminal, monkeypatch, kind):
    if kind == "file":
        terminal.isatty = lambda: False
    elif kind == "closed":
        terminal.close()
    elif kind == "none":
        front_end.sys.stderr = None
    with waiting(60.0, quiet=kind == "quiet"):
        assert threads() == []


def test_bar_in_a_notebook(terminal, monkeypatch):
    terminal.isatty = lambda: False
    in_notebook(monkeypatch)
    with waiting(60.0):
        assert wait_for(terminal, "checking")


def test_markdown_is_shown_in_a_notebook_alone(monkeypatch, capsys):
    show("plain", "**rich**")
    assert capsys.readouterr().out == "plain\n"
    shown = in_notebook(monkeypatch, keep=dict)
    show("plain", "**rich**")
    assert shown == [{"text/markdown": "**rich**", "text/plain": "plain"}]
    assert capsys.readouterr().out == ""
