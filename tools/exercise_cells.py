"""The cells of a chapter's exercises in three forms, all from `d2lmini/exercises/ch*/*.md`.

unsolved  the notebook that a reader works in; a problem set is such a one, of exercises that a lecturer chose
solved    the same with solutions: kept with its outputs, which the tests compare
page      what the book shows: choices that answer, solutions folded; made when the book is built, kept nowhere
"""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from d2lmini.exercises.engine import registry, source
from d2lmini.exercises.engine.model import Choice, Coded, Discussion, Identity
from d2lmini.exercises.reader.check import LATER
from tools import exercise_places, folds, setup_cell, site
from tools.chapters import METADATA

CHAPTERS = {name[:2]: (name, title) for name, title in site.chapters()}
IMPORTS = source.PRELUDE.rstrip() + "\nfrom d2lmini import check, hint, progress, reset, review"
SET_IMPORTS = IMPORTS.replace("import math\n", "import math\nimport os\n", 1)
SET_IMPORTS += '\n\nos.environ["D2LMINI_SOLUTIONS"] = "0"  # a check that passes names no solution'
HOW = """\
Each exercise has a cell for your answer and one that checks it. Write your code where the answer cell says
so, run it, then run the check: it tries your code on fresh random inputs and prints one verdict. Leave the
first line of an answer cell as it is (`# exercise: ...`), and let every answer cell stand alone: it may use
the imports of the setup cell and nothing from other cells. `hint("...")` prints one hint more at each call,
`reset("...")` gives you an empty cell again. Your progress stays on this machine, in one file: `progress()` shows it.
Colab forgets its files after the session. To keep this one there, put it on your drive before the first check:
`from google.colab import drive; drive.mount("/content/drive")`, then
`import os; os.environ["D2LMINI_PROGRESS"] = "/content/drive/MyDrive"`."""
MODELS = {"identity": "the model proof", "discussion": "the model answer"}


def unsolved(chapter):
    """Returns: the notebook that a reader starts from."""
    name, title = CHAPTERS[chapter]
    intro = f"""\
# Exercises {chapter}: {title}

They belong to [the chapter](../chapters/{name}.ipynb); worked solutions are in
[another notebook](solutions/{name}.ipynb).

{HOW}"""
    cells = [_markdown("intro", intro), _setup(), _code("progress", f'progress("{chapter}")')]
    return _notebook(cells + _unsolved(registry.exercises(chapter), "../"))


def problem_set(exercises):
    """Exercises of any chapters as one notebook to hand out, whose links lead to the book. Returns: notebook."""
    intro = _markdown("intro", f"# Problem set\n\n{HOW}")
    imports = SET_IMPORTS
    if yours := [part.key for one in exercises if one.key not in registry.ours() for part in one.parts]:
        imports += f'\nos.environ["{LATER}"] = "{" ".join(yours)}"  # your lecturer checks these'
    return _notebook([intro, _setup(imports), *_unsolved(exercises)])


def _unsolved(exercises, root=None):
    """Statements, answer cells and checks. ``root``: where the repository is from the notebook, None: elsewhere."""
    cells = []
    for exercise in exercises:
        cells.append(_markdown(f"{exercise.key}-statement", _statement(exercise, root)))
        for part in exercise.parts:
            cells += _asked(part, exercise)
            cells.append(_code(f"{part.key}-answer", source.answer_cell(part, source.unanswered(part))))
            cells.append(_code(f"{part.key}-check", _check(part)))
    return cells


def solved(chapter):
    """Returns: the notebook with solutions, not executed."""
    name, title = CHAPTERS[chapter]
    intro = f"""\
# Solutions {chapter}: {title}

They belong to [the chapter](../../chapters/{name}.ipynb). Here is every exercise with its hints
and its solution. JupyterLab folds the solution away: try first, then unfold. To have your own answers checked, open
[the notebook without solutions](../{name}.ipynb), on Colab or in your copy."""
    cells = [_markdown("intro", intro), _setup()]
    for exercise in registry.exercises(chapter):
        cells.append(_markdown(f"{exercise.key}-statement", _statement(exercise, "../../")))
        for part in exercise.parts:
            cells += _solved(part, exercise)
    return _collapsed(_notebook(cells))


def page(chapter, executed):
    """What the book shows of a chapter's exercises.

    Args:
        chapter: two digits.
        executed: the solved notebook with its outputs.

    Returns:
        a notebook whose Markdown is MyST's.
    """
    name, title = CHAPTERS[chapter]
    after = list(CHAPTERS.values())[list(CHAPTERS).index(chapter) + 1 :]
    colab = site.colab(f"exercises/{name}.ipynb")
    intro = f"""\
# Exercises {chapter}: {title}

{_first_choice(chapter)}**Code** is written in [the notebook of this page]({colab}) (on Colab; `make lab` opens it
[on your own machine](../pages/troubleshooting.md#your-own-machine)). The notebook tries your code on random inputs and
names the mistake. Hints and solutions are folded: first try, then look. What you answer and tick here stays in this
browser: [Your progress](../pages/your_progress.md)."""
    outputs = {cell.id: cell for cell in executed.cells}
    cells = [_markdown("intro", intro)]
    for exercise in registry.exercises(chapter):
        target = f"({registry.anchor(exercise.key)})="
        cells.append(_markdown(f"{exercise.key}-statement", f"{target}\n{_statement(exercise, '../')}"))
        for part in exercise.parts:
            cells += _shown(part, exercise, outputs)
    if after:
        further = f"Next: [chapter {after[0][0][:2]}, {after[0][1]}](../chapters/{after[0][0]}.ipynb)"
    else:
        further = "These were the last exercises: [Your progress](../pages/your_progress.md)"
    cells.append(_markdown("further", f"---\n\n{further}"))
    return new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)


def _notebook(cells):
    return folds.fold(new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5))


def _collapsed(notebook):
    """Collapse in JupyterLab, in place, what the tags hide in a book. Returns: the notebook."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if "hide-input" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
        if "hide-cell" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True, "outputs_hidden": True}
    return notebook


def _setup(imports=IMPORTS):
    return _code("setup", setup_cell.source(imports), *setup_cell.TAGS)


def _first_choice(chapter):
    """Where choices are answered, with a link to the first; nothing if the chapter has none."""
    for exercise in registry.exercises(chapter):
        for part in exercise.parts:
            if isinstance(part, Choice):
                place = registry.anchor(part.key if len(exercise.parts) > 1 else exercise.key)
                return f"**Choices** are answered on this page: [the first choice question](#{place}). "
    return ""


def _statement(exercise, root):
    """The heading, a small line with the key, and what is asked. ``root`` as of `_unsolved`."""
    place = exercise_places.places().get(exercise.key)  # a lecturer's own has none
    origin = "our own" if exercise.source == "own" else f"after {exercise.source}"
    origin += " (of its draft)" if exercise.source.startswith("UDL") else ""  # the published book counts otherwise
    kinds = "; ".join(part.label for part in exercise.parts)
    where = ""
    if place:
        section = site.section(place.path, place.title) if root is None else f"{root}{place.path}#{place.slug}"
        where = f" Section: [{place.title}]({section})"
    return f"""\
## {exercise.title}

*`{exercise.key}`, {origin}. Kind: {kinds}.{where}*

{exercise.statement}"""


def _asked(part, exercise):
    """The heading, the prompt and the hints of a part of a notebook."""
    text = _prompt(part, exercise)
    if isinstance(part, Choice):
        text.append("\n".join(f"- **{letter}.** {option.text}" for letter, option in part.lettered.items()))
    text += _rubric(part) + _hints(part)
    return [_markdown(f"{part.key}-task", "\n\n".join(text))] if text else []


def _solved(part, exercise):
    text = _prompt(part, exercise)
    if isinstance(part, Choice):
        text.append("\n".join(f"- **{letter}.** {option.text}" for letter, option in part.lettered.items()))
        text += [_details(f"Check {x}", _explained(option)) for x, option in part.lettered.items()]
    text += _rubric(part) + _hints(part)
    cells = [_markdown(f"{part.key}-task", "\n\n".join(text))] if text else []
    cells.append(_code(f"{part.key}-answer", source.answer_cell(part, _solution(part)), "hide-input"))
    # the verdict on a choice names the letter: folded, or the page could not be answered
    folded = ["hide-cell"] if isinstance(part, Choice) else []
    cells.append(_code(f"{part.key}-check", _check(part, ", record=False"), *folded))
    if part.explanation:
        label = {"identity": "Model proof", "discussion": "Model answer"}.get(part.kind, "Explanation")
        cells.append(_markdown(f"{part.key}-explanation", _details(label, part.explanation)))
    return cells


def _shown(part, exercise, outputs):
    """A part of the page: what is asked, the options with a fold each, the hints, the solution in one fold."""
    text, mark = _prompt(part, exercise), f'data-part="{part.key}"'
    if len(exercise.parts) > 1:
        text.insert(0, f"({registry.anchor(part.key)})=")
    if isinstance(part, Choice):
        options = (_option(letter, option) for letter, option in part.lettered.items())
        text.append(f'<div class="choice" {mark}>\n\n' + "\n\n".join(options) + "\n\n</div>")
    text += _rubric(part) + _hints(part)
    cells = [_markdown(f"{part.key}-task", "\n\n".join(text))] if text else []
    if isinstance(part, Choice):
        if part.explanation:
            cells.append(_markdown(f"{part.key}-solution", _details("Show more on it", part.explanation)))
        return cells
    also = f", with {MODELS[part.kind]}" if part.kind == "identity" else ""
    label = f"Show {MODELS['discussion']}" if isinstance(part, Discussion) else f"Show the solution{also}"
    cells.append(_markdown(f"{part.key}-solution", f'<details class="solution"><summary>{label}</summary>'))
    if not isinstance(part, Discussion):
        for name in ("answer", "check"):
            cell = outputs[registry.anchor(f"{part.key}-{name}")].copy()
            cell.metadata = {}
            cells.append(cell)
    cells.append(_markdown(f"{part.key}-explanation", f"{part.explanation.strip()}\n\n</details>"))
    cells.append(_markdown(f"{part.key}-tick", f'<p class="tick" {mark} data-kind="{part.kind}"></p>'))
    return cells


def _option(letter, option):
    right = ' data-right="yes"' if option.right else ""
    why = _details(f"Check {letter}", _explained(option), "why")
    return f'<div class="option" data-letter="{letter}"{right}>\n\n**{letter}.** {option.text}\n\n{why}\n\n</div>'


def _prompt(part, exercise):
    text = [f"### Part {part.key[-1]}: {part.kind}"] if len(exercise.parts) > 1 else []
    return [*text, part.prompt.strip()] if part.prompt else text


def _rubric(part):
    if not isinstance(part, Discussion):
        return []
    return ["A good answer treats these points:\n\n" + "\n".join(f"- {point}" for point in part.rubric)]


def _hints(part):
    return [_details(f"Hint {number}", hint) for number, hint in enumerate(part.hints, start=1)]


def _check(part, more=""):
    call = f'check("{part.key}", {part.name}{more})'
    if isinstance(part, Identity):
        call += f'\n# after you compared your proof with the model proof:\n# review("{part.key}", "agrees")'
    return call


def _solution(part):
    if isinstance(part, Coded):
        return source.solution(part)
    if isinstance(part, Choice):
        return f'answer = "{next(x for x, option in part.lettered.items() if option.right)}"'
    return 'answer = "The model answer stands below."'


def _explained(option):
    return f"**{'Right' if option.right else 'No'}.** {option.why}"


def _details(summary, text, kind=""):
    # blank lines around, so that Jupyter, Colab and MyST all read the inside as Markdown
    mark = f' class="{kind}"' if kind else ""
    return f"<details{mark}><summary>{summary}</summary>\n\n{text.strip()}\n\n</details>"


def _markdown(name, text):
    return new_markdown_cell(text, id=registry.anchor(name))


def _code(name, text, *tags):
    return new_code_cell(text, id=registry.anchor(name), metadata={"tags": list(tags)} if tags else {})
