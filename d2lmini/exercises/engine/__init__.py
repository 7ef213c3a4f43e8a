"""The machinery behind ``check``: the form of an exercise, its trial, the verdict, progress and grading."""

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
