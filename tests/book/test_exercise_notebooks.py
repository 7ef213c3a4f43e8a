"""The solved notebooks: executed again, they are what they were."""

import json
from pathlib import Path

import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from tools.exercise_notebooks import execute

SOLVED = sorted(ROOT.glob("exercises/solutions/*.ipynb"))


@pytest.mark.slow
def test_a_line_that_comes_in_two_pieces_is_one_output():
    late = "import time\nprint('one', end='', flush=True)\ntime.sleep(0.5)\nprint(' line')"
    (cell,) = execute(new_notebook(cells=[new_code_cell(late)])).cells
    assert [output.text for output in cell.outputs] == ["one line\n"]


@pytest.mark.parametrize("path", SOLVED, ids=[path.stem for path in SOLVED])
def test_no_output_is_in_pieces(path: Path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        streams = [output["name"] for output in cell.get("outputs", []) if output["output_type"] == "stream"]
        assert len(streams) == len(set(streams))
