"""What shows something in a notebook does nothing beside a graded answer."""

import importlib
import sys

import pytest

from d2lmini.exercises.grading import silent
from d2lmini.exercises.grading.silent import SILENT


def test_silence_can_be_asked_for_anything():
    shown = SILENT(1, key=2).anything.at["all"](3)
    with SILENT as inside:
        shown.update(inside)
    assert not SILENT and list(SILENT) == [] and len(SILENT) == 0 and "x" not in SILENT and str(SILENT) == ""
    assert SILENT.kernel is None  # no notebook, for who asks
    with pytest.raises(AttributeError):
        SILENT.__wrapped__  # noqa: B018


@pytest.mark.parametrize("name", ["nowhere_front_end", "nowhere_front_end.display", "nowhere.colab.files", "nowhere"])
def test_a_front_end_that_is_not_installed_can_be_imported(name, monkeypatch):
    monkeypatch.setattr(silent, "FRONT_ENDS", ("nowhere_front_end", "nowhere.colab"))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, silent._NotInstalled()])
    module = importlib.import_module(name)
    assert not module.anything("x").more
    for other in ("nowhere_else", "nowhere.protobuf", "nowhere_front"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(other)
    for loaded in [loaded for loaded in sys.modules if loaded.startswith("nowhere")]:
        monkeypatch.delitem(sys.modules, loaded)
