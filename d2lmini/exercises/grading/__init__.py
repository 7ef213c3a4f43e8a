"""Grading notebooks: folder.py walks them, worker.py is the process that runs answers, answer_cells.py finds them."""

from .folder import check_file, grade

__all__ = ["check_file", "grade"]
