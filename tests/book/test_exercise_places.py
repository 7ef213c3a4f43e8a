"""The table of where in its chapter an exercise can first be done."""

import pytest

from d2lmini.exercises.engine import registry
from tools import exercise_places


def test_every_exercise_has_a_section_of_its_own_chapter():
    places = exercise_places.places()
    assert places.keys() == set(registry.keys())
    for key, section in places.items():
        assert section.path == f"chapters/{registry.NOTEBOOKS[registry.chapter_of(key)]}.ipynb"
        assert section.title not in ("Summary", "Going further") and section.slug


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("d2l-11.1.1: ", "d2l-11.1.9: "), "d2l-11.1.1, d2l-11.1.9: here or there alone"),
        (
            lambda text: text.replace("Half precision", "Whole precision"),
            "has no heading 'Whole precision', only Training",
        ),
    ],
)
def test_what_is_missing_is_named(change, message, monkeypatch, tmp_path):
    table = tmp_path / "table.yml"
    table.write_text(change(exercise_places.TABLE.read_text(encoding="utf-8")), encoding="utf-8")
    monkeypatch.setattr(exercise_places, "TABLE", table)
    with pytest.raises(ValueError, match=r"table\.yml") as caught:
        exercise_places.places.__wrapped__()
    assert message in str(caught.value)
