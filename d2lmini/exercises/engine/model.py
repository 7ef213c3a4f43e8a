"""What an exercise consists of: ``written.py`` makes it of a document. Nothing here runs an answer.

An exercise has one or more parts, each with its own key and verdict. A part is one of six kinds:

    Code        a function (or class), run on fresh random inputs
    Identity    both sides of an equation as code; the proof is self-assessed
    Count       a formula as a function, compared with a reference
    Experiment  a function of a seed that returns results; judged by direction and margin
    Choice      a letter; every option has an explanation
    Discussion  a text; compared with a rubric by its writer, reviewed and never passed
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from string import ascii_uppercase
from typing import ClassVar


@dataclass(frozen=True)
class Mutant:
    """A plausible wrong answer and the diagnosis it must get.

    Where it gives wrong values, ``message`` tells why: a learner whose answer gives the same values is told so.

    Args:
        diagnosis: the code of the verdict: ``"shape"``, ``"dtype"``, ... or a name of this mistake.
        change: a piece of the solution that occurs in it exactly once, and what stands there in the mutant; or a whole
            wrong answer.
        message: what the learner did, and what to look at; empty where the check itself says it.
    """

    diagnosis: str
    change: tuple[str, str] | Callable
    message: str = ""

    def __str__(self):
        if callable(self.change):
            how = getattr(self.change, "__name__", repr(self.change))
        else:
            how = " -> ".join(map(repr, self.change))
        return f"{self.diagnosis} ({how})"


@dataclass(frozen=True)
class Option:
    """One option of a choice: its text, why it is right or wrong, and which of the two."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)  # two are one if they are the same: what is found of one can be kept
class Part:
    """What all kinds share.

    Args:
        key: ``d2l-11.3.1``; with a letter, ``udl-12.5a``, where the exercise has several parts.
        prompt: what this part asks, in Markdown; empty where the statement of the exercise says it all.
        hints: from gentle to explicit.
        explanation: the model proof, the model answer, or what to take from the solution, in Markdown.
        seconds: time limit of one check.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    key: str
    prompt: str = ""
    hints: Sequence[str] = ()
    explanation: str = ""
    seconds: float = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Coded(Part):
    """A part answered by code.

    Args:
        answer: the model solution; what stands between its ``### BEGIN SOLUTION`` and ``### END SOLUTION`` is
            taken out for the reader.
        text: the source of ``answer`` with its markers. It may use only the names of ``source.PRELUDE``.
        verify: ``verify(t, answer)`` tries an answer with the help of a ``Trial``.
        alternatives: other right answers, written differently.
        mutants: wrong answers with their diagnoses.
        advice: for a diagnosis code, a sentence that is added to the message; that of ``"values"`` also to a relation
            which the engine finds (``relations.py``), unless that has its own.
        min_checks: how many comparisons must really have run before an answer may pass.
        without: relations of ``again.py`` that the part does not take, each with the reason.
    """

    answer: Callable
    text: str
    verify: Callable
    alternatives: Sequence[Callable] = ()
    mutants: Sequence[Mutant] = ()
    advice: Mapping[str, str] = field(default_factory=dict)
    min_checks: int = 3
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name that the answer has in the notebook."""
        return self.answer.__name__


class Code(Coded):
    kind = "code"
    label = "code, checked by running it"


class Identity(Coded):
    kind = "identity"
    label = "identity: numerically verified; the proof is self-assessed"


class Count(Coded):
    kind = "count"
    label = "count: your formula is compared with a reference"


class Experiment(Coded):
    kind = "experiment"
    label = "experiment: judged by direction and margin over seeds"


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice(Part):
    """A question with options of which exactly one is right; readers see them in an order that tells nothing."""

    kind = "choice"
    label = "choice"
    options: Sequence[Option]
    name = "answer"

    @property
    def lettered(self) -> dict[str, Option]:
        """The options by letter: A, B, C, ... of an order drawn for this key, which authors do not choose."""
        drawn = Random(self.key).sample(self.options, len(self.options))
        return dict(zip(ascii_uppercase, drawn, strict=False))


@dataclass(frozen=True, kw_only=True, eq=False)
class Discussion(Part):
    """A question without one right answer: a rubric, and a model answer in ``explanation``."""

    kind = "discussion"
    label = "discussion: reviewed by you against a rubric, never marked as passed"
    rubric: Sequence[str]
    name = "answer"


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise.

    Args:
        key: ``d2l-11.3.1``, ``udl-12.5`` or ``own-03.1``; the document is named after it (``d2l_11_3_1.md``).
        title: without a full stop. statement: in Markdown.
        source: where the question comes from: ``D2L 11.3, exercise 1`` or ``UDL problem 12.5``.
        parts: in the order in which they are asked.
        chapter: two digits; the registry takes them from the document's folder.
    """

    key: str
    title: str
    statement: str
    source: str
    parts: Sequence[Part]
    chapter: str = ""
