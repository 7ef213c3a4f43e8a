"""From a document to the `Exercise` that it describes: its prose as it is, its code as functions."""

import ast
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from .document import KINDS, ROLES, TOLD, take_apart
from .mistakes import mistakes
from .model import Coded, Discussion, Exercise, Option
from .source import PRELUDE, without_markers

PACKAGE = "exercise_documents"  # the modules of all documents lie in it, so that what they define travels by value
NAME = re.compile(r"(d2l|udl|own)(_\d+)+", re.ASCII)  # of a document, without .md
SOURCES = {"d2l": "D2L {section}, exercise {question}", "udl": "UDL problem {number}", "own": "own"}


def read(path) -> Exercise:
    """Return the exercise of a document, whose name says its key: that of ``own_08_2.md`` is ``own-08.2``.

    Raises:
        DocumentError: the document is not of the form, or its code does not run.
    """
    document = take_apart(path)
    if not NAME.fullmatch(document.path.stem):
        raise document.error(1, "its name must be its key, as own_08_9.md for own-08.9")
    key = key_of(document.path)
    origin, number = key.split("-", 1)
    section, _, question = number.rpartition(".")
    names = {}  # a part may use what the parts above it define
    parts = [_part(document, part, key + part.letter, names) for part in document.parts]
    return Exercise(
        key=key,
        title=document.opening.title.rstrip("."),
        statement=document.opening.text,
        source=SOURCES[origin].format(section=section, question=question, number=number),
        parts=parts,
    )


def key_of(path) -> str:
    """Return the key that a file is named after: ``own-08.2`` for ``own_08_2.md``."""
    return Path(path).stem.replace("_", "-", 1).replace("_", ".")


def _part(document, part, key, above):
    sections = part.sections
    told = {"key": key, "prompt": part.prompt.text, **part.options}
    told["hints"] = [text for _, text in _items(document, sections.get("Hints"), r"\d+\. ")]
    told["explanation"] = next((sections[name].text for name in TOLD if name in sections), "")
    kind = KINDS[part.kind]
    if issubclass(kind, Coded):
        told |= _coded(document, part, above)
    elif part.blocks:
        raise document.error(part.blocks[0].line, f"a {part.kind} has no code")
    elif kind is Discussion:
        told["rubric"] = [text for _, text in _items(document, sections.get("Rubric"), r"- ")]
    else:
        told["prompt"], told["options"] = _options(document, part.prompt)
    return kind(**told)


def _options(document, prompt):
    """Return (the question, its options)."""
    first = next((i for i, (_, line) in enumerate(prompt.lines) if line.startswith("- [")), len(prompt.lines))
    asked = "\n".join(line for _, line in prompt.lines[:first]).strip()
    options = []
    for number, line in prompt.lines[first:]:
        if found := re.fullmatch(r"- \[([ x])\] (.+)", line):
            options.append((number, found[1] == "x", found[2].strip(), []))
        elif line.startswith("  ") or not line.strip():
            options[-1][3].append(line.strip())
        else:
            raise document.error(number, "below an option stands why it is right or wrong, two spaces in")
    if sum(right for _, right, *_ in options) != 1:
        raise document.error(prompt.line, "a choice needs one right option, `- [x] ...`, and wrong ones, `- [ ] ...`")
    for number, _, _, why in options:
        if not any(why):
            raise document.error(number, "below this option stands nothing on why it is right or wrong")
    return asked, [Option(text, " ".join(" ".join(why).split()), right=right) for _, right, text, why in options]


def _items(document, section, mark):
    """Return the items of a list as pairs of a line's number and a text in one line; ``mark`` begins an item."""
    items = []
    for number, line in section.lines if section else ():
        if found := re.match(mark, line):
            items.append((number, line[found.end() :]))
        elif line.strip() and not items:
            raise document.error(number, f"a list of {section.title.lower()} is expected here")
        elif line.strip():
            items[-1] = items[-1][0], f"{items[-1][1]} {line.strip()}"
    return items


# the code


def _coded(document, part, above):
    """What the code of a part says. ``above``: names that parts above it define, to which its own are added."""
    blocks = {role: [block for block in part.blocks if block.role == role] for role in ROLES}
    for role in ("answer", "check"):
        if len(blocks[role]) != 1:
            found = len(blocks[role])
            raise document.error(part.prompt.line, f"this part has {found} blocks ```python {role}, it needs one")
    words = set(re.findall(r"\w+", "\n".join(block.text for block in part.blocks)))
    scope = _module(f"{document.path.stem}{part.letter}", {name: above[name] for name in words & above.keys()})
    (answer,), (check,) = blocks["answer"], blocks["check"]
    names = [name for name in _run(document, scope, blocks["answer"]) if callable(scope[name])]
    if not names:
        raise document.error(answer.line, "the answer is a function or a class, and this block defines none")
    solution = scope[names[-1]]
    checking = _run(document, scope, blocks["check"])
    if "verify" not in checking:
        raise document.error(check.line, "the check needs a function verify(t, answer)")
    also = [scope[name] for name in _run(document, scope, blocks["also"]) if not name.startswith("_")]
    also += [scope["reference"]] if "reference" in checking else []
    scope[names[-1]] = solution  # another right answer may have its name
    _run(document, scope, blocks["wrong"])
    above |= {name: value for name, value in scope.items() if not name.startswith("__")}
    marked = answer.text if "### BEGIN SOLUTION" in answer.text else _with_markers(document, answer)
    tables = [block for block in part.blocks if block.role == "mistakes"]
    return {
        "answer": solution,
        "text": marked,
        "verify": scope["verify"],
        "alternatives": also,
        "mutants": [one for table in tables for one in mistakes(document, table, scope, without_markers(marked))],
        "advice": _advice(document, part.sections.get("Mistakes"), "- "),
        "without": _advice(document, part.sections.get("Check"), "- without "),
    }


def _module(name, above):
    """Return the namespace of a new module of code, with the prelude and what it uses of the parts above."""
    name = f"{PACKAGE}.{name}"
    sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    module = sys.modules[name] = ModuleType(name)
    module.__package__ = PACKAGE
    exec(PRELUDE, module.__dict__)
    module.__dict__.update(above)
    return module.__dict__


def _run(document, scope, blocks):
    """Run blocks in a scope. Returns: list of the names that they define at their outermost level, imports aside."""
    names = []
    for block in blocks:
        try:
            tree = ast.parse("\n" * block.line + block.text)  # a traceback, and a debugger, have the document's lines
            exec(compile(tree, str(document.path), "exec"), scope)
        except SyntaxError as error:
            raise document.error(error.lineno or block.line, f"this is not valid Python: {error.msg}") from None
        except Exception as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(document.path)]
            sentence = f"this does not run: {type(error).__name__}: {error}"
            raise document.error(lines[-1] if lines else block.line, sentence) from error
        names += [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        names += [target.id for target in assigned if isinstance(target, ast.Name)]
    return names


def _with_markers(document, block):
    """Return the source of an answer with what stands below its docstring marked as the reader's to write."""
    node = ast.parse(block.text).body[-1]
    if not isinstance(node, ast.FunctionDef) or ast.get_docstring(node) is None or len(node.body) < 2:
        sentence = "the answer needs a docstring and code below it, or ### BEGIN SOLUTION and ### END SOLUTION"
        raise document.error(block.line, sentence)
    lines = block.text.splitlines(keepends=True)
    first, last = node.body[0].end_lineno, node.end_lineno
    while not lines[first].strip():  # an empty line below the docstring
        first += 1
    pad = " " * node.body[0].col_offset
    inside = [f"{pad}### BEGIN SOLUTION\n", *lines[first:last], f"{pad}### END SOLUTION\n"]
    return "".join([*lines[:first], *inside, *lines[last:]])


def _advice(document, section, mark):
    advice = {}
    for number, text in _items(document, section, mark):
        found = re.fullmatch(r"\*\*([\w-]+)\*\*: (.+)", text)
        if not found:
            raise document.error(number, f"expected `{mark}**...**: a sentence`")
        advice[found[1]] = found[2]
    return advice
