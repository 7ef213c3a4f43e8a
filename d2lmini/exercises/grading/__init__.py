"""Grading notebooks: folder.py walks them, answer_cells.py finds answers, answer.py judges one, sandbox.py holds it."""

from .folder import check_file, grade, gradescope_results, totals
from .sandbox import NoSandbox

__all__ = ["NoSandbox", "check_file", "grade", "gradescope_results", "totals"]
