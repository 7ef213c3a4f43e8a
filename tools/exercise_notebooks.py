"""Write the notebooks of the exercises: unsolved ones for the reader, solved ones that the book shows.

    python -m tools.exercise_notebooks             # write; executes solved ones that changed
    python -m tools.exercise_notebooks --check     # only tell
    python -m tools.exercise_notebooks --execute   # execute all solved ones again

Both come from `d2lmini/exercises/ch*/*.py` alone. A solved notebook is kept WITH its outputs: the tests run it
again and compare. It remembers the hash of its exercises, so that a changed check makes it stale too.
"""

import argparse
import hashlib
import os
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.model import Choice, Coded, Discussion, Identity
from tools import folds, setup_cell, site
from tools._generated import ROOT, put
from tools.chapters import METADATA

CHAPTERS = {name[:2]: (name, title) for name, title in site.chapters()}
COMMAND = "python -m tools.exercise_notebooks"
CELL_TIMEOUT = 120  # seconds
IMPORTS = source.PRELUDE.rstrip() + "\nfrom d2lmini import check, hint, progress, reset, review"


def unsolved(chapter):
    """Returns: the notebook that a reader starts from."""
    name, title = CHAPTERS[chapter]
    intro = f"""\
# Exercises {chapter}: {title}

They belong to [the chapter](../chapters/{name}.ipynb); worked solutions stand in
[another notebook](solutions/{name}.ipynb).

Each exercise has a cell for your answer and one that checks it. Write your code where the answer cell says
so, run it, then run the check: it tries your code on fresh random inputs and prints one verdict. Leave the
first line of an answer cell as it is (`# exercise: ...`), and let every answer cell stand alone: it may use
the imports of the setup cell and nothing from other cells. `hint("...")` prints one hint more at each call,
`reset("...")` gives you an empty cell again. Your progress stays on this machine, in one file."""
    return _notebook(chapter, intro, solved=False)


def solved(chapter):
    """Returns: the notebook with solutions, not executed; it is the exercise page of the book."""
    name, title = CHAPTERS[chapter]
    intro = f"""\
# Solutions {chapter}: {title}

They belong to [the chapter](../../chapters/{name}.ipynb). This page shows every exercise with its hints and
its solution folded away: try first, then unfold. To have your own answers checked, open
[the notebook without solutions](../{name}.ipynb), on Colab or in your copy."""
    return _notebook(chapter, intro, solved=True)


def _notebook(chapter, intro, solved):
    cells = [
        _markdown("intro", intro),
        _code("setup", setup_cell.source(IMPORTS), *setup_cell.TAGS),
    ]
    if not solved:
        cells.append(_code("progress", f'progress("{chapter}")'))
    for exercise in registry.exercises(chapter):
        cells.append(_markdown(f"{exercise.key}-statement", _statement(exercise)))
        for part in exercise.parts:
            cells += _part(part, exercise, solved)
    return folds.fold(new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5))


def _statement(exercise):
    anchor = f'<a id="{_slug(exercise.key)}"></a>'
    kinds = "; ".join(part.label for part in exercise.parts)
    origin = "Our own" if exercise.source == "own" else f"After {exercise.source}"
    return f"""\
{anchor}

## {exercise.key} · {exercise.title}

*{origin}. Kind: {kinds}.*

{exercise.statement}"""


def _part(part, exercise, solved):
    text = []
    if len(exercise.parts) > 1:
        text.append(f"### {part.key} ({part.kind})")
    if part.prompt:
        text.append(part.prompt.strip())
    if isinstance(part, Choice):
        text.append("\n".join(f"- **{letter}.** {option.text}" for letter, option in part.lettered.items()))
        if solved:
            text += [_details(f"Check {x}", _explained(option)) for x, option in part.lettered.items()]
    if isinstance(part, Discussion):
        text.append("A good answer treats these points:\n\n" + "\n".join(f"- {p}" for p in part.rubric))
    text += [_details(f"Hint {number}", hint) for number, hint in enumerate(part.hints, start=1)]
    cells = [_markdown(f"{part.key}-task", "\n\n".join(text))] if text else []

    answer = _solution(part) if solved else source.unanswered(part)
    call = f'check("{part.key}", {part.name}{", record=False" if solved else ""})'
    if isinstance(part, Identity):
        call += f'\n# after you compared your proof with the model proof:\n# review("{part.key}", "agrees")'
    cells.append(_code(f"{part.key}-answer", source.answer_cell(part, answer), *(["hide-input"] if solved else [])))
    # the verdict on a choice names the letter: folded, or the page could not be answered
    folded = ["hide-cell"] if solved and isinstance(part, Choice) else []
    cells.append(_code(f"{part.key}-check", call, *folded))
    if solved and part.explanation:
        label = {"identity": "Model proof", "discussion": "Model answer"}.get(part.kind, "Explanation")
        cells.append(_markdown(f"{part.key}-explanation", _details(label, part.explanation)))
    return cells


def _solution(part):
    if isinstance(part, Coded):
        return source.solution(part)
    if isinstance(part, Choice):
        return f'answer = "{next(x for x, option in part.lettered.items() if option.right)}"'
    return 'answer = "The model answer stands below."'


def _explained(option):
    return f"**{'Right' if option.right else 'No'}.** {option.why}"


def _details(summary, text):
    # blank lines around, so that Jupyter, Colab and MyST all read the inside as Markdown
    return f"<details><summary>{summary}</summary>\n\n{text.strip()}\n\n</details>"


def _slug(key):
    return key.replace(".", "-")


def _markdown(name, text):
    return new_markdown_cell(text, id=_slug(name))


def _code(name, text, *tags):
    return new_code_cell(text, id=_slug(name), metadata={"tags": list(tags)} if tags else {})


def execute(notebook):
    """Run a notebook in place, strictly: a check that does not pass raises."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = os.environ | {
            "D2LMINI_STRICT": "1",
            "D2LMINI_PROGRESS": os.path.join(scratch, "progress.json"),
        }
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,  # whether a line comes in one piece or in two is up to the clock
        )
        client.execute(env=environment)
    notebook.metadata = nbformat.from_dict(METADATA)
    return notebook


def _origin(chapter):
    """Returns: the hash of the exercise files of a chapter."""
    total = hashlib.sha256()
    for exercise in registry.exercises(chapter):
        for file in registry.files(exercise.key):
            total.update(file.read_bytes())
    return total.hexdigest()


def in_step(path, fresh, origin):
    """Whether the solved notebook at `path` has the sources of `fresh`, its origin, and outputs."""
    try:
        found = nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.reader.NotJSONError):
        return False

    def sources(notebook):
        return [(c.id, c.cell_type, c.source, dict(c.metadata)) for c in notebook.cells]

    code = [c for c in found.cells if c.cell_type == "code"]
    return (
        sources(found) == sources(fresh)
        and found.metadata.get("d2lmini", {}).get("origin") == origin
        and all(c.execution_count for c in code)
        and not any(o.output_type == "error" for c in code for o in c.outputs)
    )


def sync(check, again=False):
    """Bring all notebooks in step, or only tell.

    Args:
        check: only tell.
        again: execute solved notebooks even where nothing changed.

    Returns:
        list of the files that were out of step.
    """
    stale = []
    for chapter, (name, _) in CHAPTERS.items():
        stale += put(ROOT / f"exercises/{name}.ipynb", nbformat.writes(unsolved(chapter)) + "\n", check)
        path, fresh, origin = ROOT / f"exercises/solutions/{name}.ipynb", solved(chapter), _origin(chapter)
        if in_step(path, fresh, origin) and not (again and not check):
            continue
        if check:
            stale.append(str(path.relative_to(ROOT)))
            continue
        execute(fresh)
        fresh.metadata["d2lmini"] = {"origin": origin}
        stale += put(path, nbformat.writes(fresh) + "\n", check)
    return stale


def main():
    parser = argparse.ArgumentParser(description="write the notebooks of the exercises")
    parser.add_argument("--check", action="store_true", help="only tell what is out of step")
    parser.add_argument("--execute", action="store_true", help="execute all solved notebooks again")
    options = parser.parse_args()
    stale = sync(options.check, again=options.execute)
    for path in stale:
        print(f"{'out of step' if options.check else 'written'}: {path}")
    if options.check and stale:
        sys.exit(f"mend with: {COMMAND}")


if __name__ == "__main__":
    main()
