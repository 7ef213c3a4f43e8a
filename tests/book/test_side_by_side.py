"""Chapters are executed side by side, kept, and a cell that fails fails the build with its traceback."""

import os
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from jupyter_cache import get_cache
from sphinx.errors import SphinxError

sys.path.insert(0, str(ROOT / "tools" / "sphinx_ext"))
import side_by_side

pytestmark = pytest.mark.slow
# ends well only while another notebook runs that does the same
MEETS = """
import os, pathlib, time
pathlib.Path({me!r}).touch()
deadline = time.monotonic() + 60
while not pathlib.Path({other!r}).exists():
    assert time.monotonic() < deadline, "nobody came"
    time.sleep(0.01)
print("threads", os.environ["OMP_NUM_THREADS"])
"""
CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "tools" / "sphinx_ext")!r})
extensions = ["myst_nb", "side_by_side"]
nb_execution_mode, nb_execution_timeout = "cache", 60
"""


def put(folder, **cells):
    """Write notebooks of one cell each. Returns: list of their paths."""
    folder.mkdir(exist_ok=True)
    paths = []
    for name, cell in cells.items():
        paths.append(folder / f"{name}.ipynb")
        parts = [nbformat.v4.new_markdown_cell(f"# {name}"), nbformat.v4.new_code_cell(cell)]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(nbformat.v4.new_notebook(cells=parts, metadata={"kernelspec": kernel}), paths[-1])
    return paths


def test_two_notebooks_run_at_a_time_with_a_thread_each_and_only_once(tmp_path):
    folder, cache = tmp_path / "chapters", get_cache(tmp_path / "cache")
    paths = put(folder, a=MEETS.format(me="a", other="b"), b=MEETS.format(me="b", other="a"))
    before = os.environ.get("OMP_NUM_THREADS")
    side_by_side.fill(cache, paths, timeout=60, workers=2)
    assert os.environ.get("OMP_NUM_THREADS") == before
    for path in paths:
        _, executed = cache.merge_match_into_notebook(nbformat.read(path, as_version=4))
        assert executed.cells[1].outputs[0].text == "threads 1\n"
        (folder / path.stem).unlink()
    side_by_side.fill(cache, paths, timeout=60, workers=2)
    assert not (folder / "a").exists()


def test_every_failure_is_told_and_the_rest_is_kept(tmp_path, caplog):
    cache = get_cache(tmp_path / "cache")
    paths = put(tmp_path / "chapters", raises="1 / 0", sleeps="import time; time.sleep(30)", good="1 + 1")
    with pytest.raises(SphinxError, match=r"in (raises.ipynb, sleeps.ipynb|sleeps.ipynb, raises.ipynb)$"):
        side_by_side.fill(cache, paths, timeout=1, workers=3)
    assert "ZeroDivisionError" in caplog.text and "1 / 0" in caplog.text and "timed out" in caplog.text
    assert [record.uri for record in cache.list_cache_records()] == [str(paths[2])]


def test_a_build_reads_what_ran_before_it_and_fails_with_a_cell(tmp_path):
    put(tmp_path / "chapters", good="print(6 * 7)")
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text("# Book\n```{toctree}\n:glob:\nchapters/*\n```\n")

    def build():
        command = [sys.executable, "-m", "sphinx", tmp_path, tmp_path / "out"]
        return subprocess.run(command, capture_output=True, text=True)

    done = build()
    assert done.returncode == 0 and "executed good.ipynb" in done.stdout, done.stderr
    assert "Using cached notebook" in done.stdout
    assert "42" in (tmp_path / "out" / "chapters" / "good.html").read_text()
    put(tmp_path / "chapters", bad="1 / 0")
    done = build()
    assert done.returncode and "ZeroDivisionError" in done.stderr and "bad.ipynb" in done.stderr


def test_the_longest_chapter_starts_first(tmp_path):
    record = tmp_path / side_by_side.RUN_TIMES
    names = ["short", "long", "new"]
    paths = [tmp_path / f"{name}.ipynb" for name in names]
    assert side_by_side._longest_first(paths, tmp_path) == paths
    record.parent.mkdir(parents=True)
    record.write_text('{"short": {"cpu": {"seconds": 2}}, "long": {"cpu": {"seconds": 9}}, "new": {"gpu": {}}}')
    assert [path.stem for path in side_by_side._longest_first(paths, tmp_path)] == ["new", "long", "short"]
