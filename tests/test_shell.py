"""Where the code runs: asked without an import, and told apart."""

import sys
from pathlib import Path
from types import SimpleNamespace

from d2lmini.shell import folder_of_user, in_notebook, running_shell


def runs_in(monkeypatch, shell):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_nothing_is_imported_to_find_out(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert running_shell() is None and not in_notebook() and "IPython" not in sys.modules


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    shell = SimpleNamespace()
    runs_in(monkeypatch, shell)
    assert running_shell() is shell and not in_notebook()


def test_a_kernel_is_a_notebook(monkeypatch):
    runs_in(monkeypatch, SimpleNamespace(kernel=object()))
    assert in_notebook()


def test_ipython_that_is_imported_and_does_not_run(monkeypatch):
    runs_in(monkeypatch, None)
    assert running_shell() is None and not in_notebook()


def test_a_user_without_a_home_has_no_folder(tmp_path):
    def unknown():
        raise RuntimeError("could not determine the home directory")

    assert folder_of_user(unknown) is None
    assert folder_of_user(lambda: "~/.cache/d2lmini") is None  # what older versions of platformdirs give
    assert folder_of_user(lambda: tmp_path) == folder_of_user(lambda: str(tmp_path)) == Path(tmp_path)
