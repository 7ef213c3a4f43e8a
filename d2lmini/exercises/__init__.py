"""Exercises of both books, each checked at once.

    from d2lmini import check, hint, review

    check("d2l-11.3.1", distance_attention)   # one verdict, on fresh random inputs
    hint("d2l-11.3.1")                        # one hint more at each call
    review("d2l-11.1.2", "agrees")            # you compared your proof with the model proof

An exercise is one file in the folder of its chapter, ``ch03``; ``engine`` holds the machinery. "I want to add an
exercise" in CONTRIBUTING.md explains the form of such a file.
"""

from .engine.check import check, hint, review
from .engine.progress import progress_report
from .grading import check_file, grade

__all__ = ["check", "check_file", "grade", "hint", "progress_report", "review"]
