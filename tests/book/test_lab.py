"""JupyterLab as `make lab` starts it: what it would write into a notebook upon opening is in it already."""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT
from jupyter_server.serverapp import ServerApp

from tools import lab


def run(work):
    """In a thread of its own: in this one Chromium's loop may run."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def opened(folder, name):
    return run(lab.Contents(root_dir=str(folder)).get(name))["content"]["metadata"]


def test_a_notebook_is_handed_over_with_the_kernel_s_metadata():
    found = opened(ROOT, "exercises/03_attention_scoring.ipynb")
    assert found["language_info"]["version"] == sys.version.split()[0]
    assert found["language_info"]["mimetype"] == "text/x-python"
    assert found["kernelspec"] == {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def test_what_has_another_kernel_or_is_no_notebook_stays(tmp_path):
    own = {"kernelspec": {"name": "julia", "display_name": "Julia", "language": "julia"}}
    made = {"cells": [], "metadata": own, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "other.ipynb").write_text(json.dumps(made))
    assert opened(tmp_path, "other.ipynb") == own
    (tmp_path / "text.txt").write_text("text")
    contents = lab.Contents(root_dir=str(tmp_path))
    assert run(contents.get("text.txt"))["content"] == "text"
    assert run(contents.get("other.ipynb", content=False))["content"] is None


def test_make_lab_starts_it_with_the_flags_that_it_is_given():
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/.ready", "lab", "FLAGS=--port 9000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("-m tools.lab --port 9000\n"), done.stderr


@pytest.mark.parametrize("user", [0, 1000])
def test_it_starts_for_root_and_takes_jupyters_flags(monkeypatch, user):
    monkeypatch.setattr("os.geteuid", lambda: user)
    app = ServerApp()
    app.parse_command_line(lab.flags(["--port", "9000", "--no-browser"]))
    found = app.cli_config.ServerApp
    assert (found.port, found.open_browser, found.contents_manager_class) == (9000, False, "tools.lab.Contents")
    assert found.get("allow_root", False) is (user == 0)
