"""Exercises of both books, each checked at once.

    from d2lmini import check, hint, progress, reset, review

    check("d2l-11.3.1", distance_attention)   # one verdict, on fresh random inputs
    hint("d2l-11.3.1")                        # one hint more at each call
    review("d2l-11.1.2", "agrees")            # you compared your proof with the model proof
    progress("03")                            # which exercises of a chapter are solved
    reset("d2l-11.3.1")                       # once more, from an empty cell

An exercise is one Markdown document in the folder of its chapter, ``ch03``, or in a folder of the reader's own that
the variable ``D2LMINI_EXERCISES`` names; ``engine/document.py`` explains its form.

engine/    judges answers
reader/    shows what came of them
grading/   has those of strangers in another process
audit.py   tries whether an exercise keeps its promises
authoring.py  an exercise of one's own: begin it, and see what it lacks
faults.py  wrong answers made of any right one, for the audit
"""

from importlib import import_module

from .reader.check import check, hint, reset, review
from .reader.report import progress, progress_report

__all__ = ["check", "check_file", "grade", "hint", "progress", "progress_report", "reset", "review"]


def __getattr__(name):
    if name in ("check_file", "grade"):  # a reader needs no sandbox, and nothing of what makes one
        return getattr(import_module(f"{__name__}.grading.folder"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
