"""Judge the answers of a notebook: each in a process of its own, all in one sandbox, the verdict here."""

import ast
import re
from contextlib import closing
from dataclasses import dataclass

from ..engine.compare import Rejected
from ..engine.host import HostError
from ..engine.judge import WRONG, heavy, judge
from ..engine.model import Coded
from ..engine.registry import find
from .answer_cells import defined_elsewhere
from .process import ASLEEP, AnswerProcess
from .remote import RemoteHost
from .sandbox import Sandbox, Unprotected

NOT_JUDGED = "not judged"
GIB = 2**30


@dataclass(frozen=True)
class Rules:
    """How answers are judged.

    Args:
        seed: of the inputs, the same for everybody.
        seconds: of processor time for one answer; None: that of the exercise.
        memory: bytes for one answer.
        unsafe: whether answers run without a sandbox.
    """

    seed: int
    seconds: float | None = None
    memory: int = 4 * GIB
    unsafe: bool = False


def judge_notebook(notebook, rules):
    """Return key -> (status, code, message) for all answers of a notebook, one after another.

    Behind an answer that slept past its limit the others are left: a notebook full of them would take an hour.

    Args:
        notebook: a dict with ``answers``, ``sources``, ``imports`` and ``repeated``, as `folder` reads it.
        rules: a `Rules`.
    """
    verdicts, slept = {}, None
    with closing(Unprotected() if rules.unsafe else Sandbox()) as place:
        for key, source in notebook["answers"].items():
            if slept:
                message = f"left, since {slept} before it slept past its limit: hand in again without what waits there"
                verdicts[key] = NOT_JUDGED, "left", message
                continue
            try:
                status, code, message = judge_cell(key, source, notebook["sources"], notebook["imports"], rules, place)
            except Exception as error:  # a fault of ours, which must not cost the verdicts on all others
                status, code = NOT_JUDGED, "broken"
                message = f"the judge itself fails, please report it ({type(error).__name__}: {error})"
            if key in notebook["repeated"]:
                message += "\n  (several cells of this notebook answer it: the last one counts)"
            verdicts[key] = status, code, message
            slept = key if code == ASLEEP else None
    return verdicts


def judge_cell(key, source, sources, imports, rules, place):
    """Return the verdict on one answer cell as (status, code, message).

    Args:
        key: of the part. source: of the cell. sources: of all code cells of its notebook.
        imports: import statements of the notebook. rules: a `Rules`.
        place: a `Sandbox` or `Unprotected`, where it runs.
    """
    try:
        _, part = find(key)
    except KeyError as error:
        return WRONG, "unknown", error.args[0]
    if not isinstance(part, Coded) and (letter := _literal(source, part.name)) is not None:
        verdict = judge(part, letter)  # a letter needs no process
        return verdict.status, verdict.code, verdict.message
    seconds = rules.seconds or part.seconds
    loads = (isinstance(part, Coded) and heavy(part)) or any("from d2lmini import *" in x for x in (source, *imports))
    try:
        with AnswerProcess(place, seconds, rules.memory, loads) as process:
            host = RemoteHost(process.exchange)
            answer = host.cell(part.key, source, imports, part.name, rules.seed)
            verdict = judge(part, answer, seed=rules.seed, host=host)
    except Rejected as fault:
        return WRONG, fault.code, _named(fault.message, sources)
    except HostError as error:
        return error.status, error.code, str(error)
    return verdict.status, verdict.code, _named(verdict.message, sources)


def _literal(source, name):
    """Return the string that a cell gives ``name`` if it does nothing else; None if it does more."""
    try:
        match ast.parse(source).body:
            case [ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=str(said)))] if target == name:
                return said
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None


def _named(message, sources):
    """Add where a name is defined that an answer took from another cell."""
    missing = re.search(r"NameError: name '(\w+)' is not defined", message)
    if missing and defined_elsewhere(missing[1], sources):
        return f"{message}\n  {missing[1]} is defined in another cell: an answer cell is run alone, after the imports"
    return message
