"""What judges: the form of an exercise, the trial of an answer, and the verdict on it.

model.py        what an author writes: an exercise, its parts of six kinds, their mutants
registry.py     exercises by key and by chapter
document.py     the form of an exercise, Markdown, and its pieces
written.py      from the pieces to an exercise
mistakes.py     the table of foreseen mistakes
source.py       from a model solution to its stub, to the solved answer and to mutants
trial.py        what a check works with: inputs, guarded calls, comparisons that count
against.py      an answer beside a reference, with gradients
again.py        a passed check once more: inputs that are not contiguous, a batch of one, ...
compare.py      what kind of difference there is between a result and its reference
related.py      a wrong value beside the right one
relations.py    how the two are related: twice as large, reversed, a logarithm, ...
places.py       where the wrong entries stand: in the last column, above the diagonal, ...
provenance.py   where a result came from: out of a derivative, out of a ready function
rivals.py       what is done with models that an answer trains, to compare them
host.py         where an answer lives: in this process
guard.py        what an answer does to this process does not outlive it
limits.py       a time limit that an endless loop cannot swallow
judge.py        from a part and an answer to a verdict
"""

from ...measure import LargestTensor, Traffic
from .model import Choice, Code, Count, Discussion, Exercise, Experiment, Identity, Mutant, Option
from .trial import Trial

__all__ = [
    "Choice",
    "Code",
    "Count",
    "Discussion",
    "Exercise",
    "Experiment",
    "Identity",
    "LargestTensor",
    "Mutant",
    "Option",
    "Traffic",
    "Trial",
]
