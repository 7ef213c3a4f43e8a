"""What the page of a chapter's exercises is made of."""

import re

import nbformat
import pytest
from conftest import ROOT

from d2lmini.exercises.engine import registry
from d2lmini.exercises.engine.model import Choice, Coded
from tools import exercise_cells, site

NAMES = dict(exercise_cells.CHAPTERS)
ANY_KEY = re.compile(r"^#+ .*\b(?:d2l|udl|own)-\d", re.M)


def made(chapter):
    path = ROOT / f"exercises/solutions/{NAMES[chapter][0]}.ipynb"
    return exercise_cells.page(chapter, nbformat.read(path, as_version=4))


@pytest.mark.parametrize("chapter", NAMES)
def test_nothing_open_gives_an_answer_away(chapter):
    """What no fold holds: no code, no setup, no explanation of an option."""
    text, depth = "", 0
    for cell in made(chapter).cells:
        if cell.cell_type == "code":
            assert depth == 1, cell.id
            continue
        for piece in re.split(r"(<details[^>]*>.*?</summary>|</details>)", cell.source, flags=re.S):
            depth += piece.startswith("<details") - (piece == "</details>")
            text += "" if depth or piece == "</details>" else piece
    assert depth == 0
    for exercise in registry.exercises(chapter):
        for part in exercise.parts:
            for hidden in (*part.hints, part.explanation, *(o.why for o in getattr(part, "options", ()))):
                assert not hidden or hidden.strip() not in text, part.key


@pytest.mark.parametrize("chapter", NAMES)
def test_each_part_is_there_with_what_belongs_to_it(chapter):
    cells = {cell.id: cell for cell in made(chapter).cells}
    assert "setup" not in cells and "progress" not in cells
    for part in (p for e in registry.exercises(chapter) for p in e.parts):
        name = registry.anchor(part.key)
        if isinstance(part, Choice):
            text = cells[f"{name}-task"].source
            assert f'<div class="choice" data-part="{part.key}">' in text
            shown = re.findall(r'<div class="option" data-letter="(.)"( data-right="yes")?>\n\n\*\*(.)\.\*\* ', text)
            assert shown == [(x, ' data-right="yes"' if o.right else "", x) for x, o in part.lettered.items()]
            assert all(option.why.strip() in text for option in part.options)
            assert f"{name}-answer" not in cells and f"{name}-tick" not in cells
        else:
            assert f'data-part="{part.key}"' in cells[f"{name}-tick"].source
        if isinstance(part, Coded):
            assert cells[f"{name}-answer"].source.startswith(f"# exercise: {part.key}\n")
            assert cells[f"{name}-check"].outputs[0].text.startswith(f"PASSED {part.key}: ")


@pytest.mark.parametrize("form", ["unsolved", "solved", "page"])
@pytest.mark.parametrize("chapter", NAMES)
def test_a_title_is_no_key_and_the_key_is_near(chapter, form):
    cells = (made(chapter) if form == "page" else getattr(exercise_cells, form)(chapter)).cells
    root = "../../" if form == "solved" else "../"
    for exercise in registry.exercises(chapter):
        text = next(cell.source for cell in cells if cell.id == f"{registry.anchor(exercise.key)}-statement")
        assert f"## {exercise.title}\n\n*`{exercise.key}`, " in text and f"]({root}chapters/{NAMES[chapter][0]}" in text
    assert [cell.id for cell in cells if cell.cell_type == "markdown" and ANY_KEY.search(cell.source)] == []


@pytest.mark.parametrize("chapter", NAMES)
def test_solutions_are_folded_away_in_jupyterlab_too(chapter):
    cells = {cell.id: cell.metadata.get("jupyter", {}) for cell in exercise_cells.solved(chapter).cells}
    for part in (p for e in registry.exercises(chapter) for p in e.parts):
        name = registry.anchor(part.key)
        assert cells[f"{name}-answer"].get("source_hidden")
        assert bool(cells[f"{name}-check"].get("outputs_hidden")) == isinstance(part, Choice)  # it names the letter


def test_a_page_without_choices_says_nothing_of_them():
    for chapter in NAMES:
        choices = [p.key for e in registry.exercises(chapter) for p in e.parts if isinstance(p, Choice)]
        link = re.search(r"\*\*Choices\*\*.*\(#([\w-]+)\)", made(chapter).cells[0].source)
        assert (link[1] if link else None) == (registry.anchor(choices[0]) if choices else None)


def test_the_end_of_a_page_leads_to_the_next_chapter():
    names = [name for name, _ in site.chapters()]
    ends = [made(name[:2]).cells[-1].source for name in names]
    assert [re.search(r"\]\(\.\./(?:chapters|pages)/(\w+)", end)[1] for end in ends] == [*names[1:], "your_progress"]
