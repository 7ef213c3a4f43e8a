"""From the source of a model solution to the stub, the solved answer and the mutants."""

import itertools
import linecache
import re

from .model import Choice, Coded

PRELUDE = """\
import math

import torch
from torch import nn
from torch.nn import functional as F

import d2lmini as d2l
"""
STUB = "raise NotImplementedError  # your code here"

_REGION = re.compile(r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION\n", re.S | re.M)
_MARKER = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION\n", re.M)
_serial = itertools.count(1)


def solution(part) -> str:
    """Return the source of the model solution without the markers."""
    return without_markers(part.text)


def without_markers(text) -> str:
    """Return a source without the lines that mark what the reader writes."""
    return _MARKER.sub("", text)


def stub(part) -> str:
    """Return what the reader starts from: the solution with every marked region taken out."""
    return _REGION.sub(lambda m: f"{m[1]}{STUB}\n", part.text)


def answer_cell(part, answer) -> str:
    """Return the cell of a notebook that holds an answer to a part: its first line tells of which."""
    return f"# exercise: {part.key}\n{answer.rstrip()}"


def unanswered(part) -> str:
    """Return what a reader starts from, whatever the kind of the part."""
    if isinstance(part, Coded):
        return stub(part)
    if isinstance(part, Choice):
        *most, last = (f'"{letter}"' for letter in part.lettered)
        return f"answer = ...  # {', '.join(most)} or {last}"
    return "answer = ...  # your text, in triple quotes"


def mutated(part, mutant) -> str:
    """Return the solution with the mutant's replacement made."""
    return solution(part).replace(*mutant.change)


def mutant(part, mutant):
    """Return the wrong answer itself."""
    return mutant.change if callable(mutant.change) else build(mutated(part, mutant), part.name)


def solved(part):
    """Return the solution itself, as who has nothing but its source has it."""
    return build(solution(part), part.name)


def build(text, name):
    """Run ``text`` after the prelude, as a notebook would, and return what it calls ``name``."""
    filename = f"<answer {next(_serial)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)  # for tracebacks
    namespace = {"__name__": "answer"}
    exec(PRELUDE, namespace)
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]
