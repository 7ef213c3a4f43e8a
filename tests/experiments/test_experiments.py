"""Experiments: each has the form of one and stands in the table; `test_cuts.py` runs them."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from d2lmini import experiments, results
from d2lmini.__main__ import main


@pytest.mark.parametrize("name", experiments.names())
def test_form(name):
    module = experiments.find(name)
    presets, recorded = set(module.PRESETS), {preset for other, preset in results.recorded() if other == name}
    assert {"smoke", "cpu", "laptop"} <= presets and module.__doc__
    awaited = {preset for other, preset in results.WAITING if other == name}
    assert presets - {"smoke", "cpu", "laptop", "full"} <= recorded | awaited  # any other is there for its record
    for config in module.PRESETS.values():
        assert isinstance(config, module.Config) and config.seeds
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.seeds = ()


def test_every_experiment_is_in_the_table():
    """What has presets and runs is an experiment; no subject takes the name of one."""
    folder = Path(experiments.__file__).parent
    found = {subject: [] for subject in experiments.SUBJECTS}
    for path in sorted(folder.glob("*/*.py")):
        if re.search(r"^PRESETS = ", path.read_text(encoding="utf-8"), re.M):
            found[path.parent.name].append(path.stem)
    assert found == experiments.SUBJECTS
    assert set(experiments.names()).isdisjoint(experiments.SUBJECTS)
    beside = {path.name for path in folder.glob("[!_]*.py")}
    assert beside == {"exported.py"}, "an experiment belongs into a subject"  # what all subjects export is of none
    assert not [path.name for path in folder.rglob("_*.py") if path.name != "__init__.py"]


def test_an_experiment_is_imported_from_its_folder_when_it_is_asked_for():
    code = (
        "import sys; from d2lmini import experiments; assert 'torch' not in sys.modules\n"
        "from d2lmini.experiments import vision_vit\n"
        "print(vision_vit.__name__, 'd2lmini.experiments.vision.vision_cnn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["d2lmini.experiments.vision.vision_vit", "False"]
    assert "vision_vit" in dir(experiments)
    with pytest.raises(ImportError, match="cannot import name 'vision_vt'"):
        from d2lmini.experiments import vision_vt  # noqa: F401


def test_every_laptop_preset_is_recorded_or_waits_for_a_reason():
    laptop = {(name, "laptop") for name in experiments.names()}
    assert {key for key in results.WAITING if key[1] == "laptop"} == laptop - set(results.recorded())
    assert all(results.WAITING.values())
    assert not results.WAITING.keys() & set(results.recorded())
    assert all(preset in experiments.find(name).PRESETS for name, preset in results.WAITING)


@pytest.mark.parametrize("option", ["preset", "device", "out", "checkpoint"])
def test_options_without_a_name_are_refused(option, capsys):
    assert main(["run", f"--{option}", "smoke"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--{option} without the name of an experiment, expected one of {', '.join(experiments.names())}" in line


def test_unknown_names():
    with pytest.raises(ValueError, match="no experiment 'poling_fashion_mnist'; did you mean pooling_fashion_mnist"):
        experiments.find("poling_fashion_mnist")
    with pytest.raises(ValueError, match="no experiment 'xyz', only adapters, associative_recall"):
        experiments.find("xyz")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "pages/troubleshooting.md", "pages/lecturers.md"])
def test_commands_on_pages_name_presets_that_exist(page):
    commands = re.findall(r"d2lmini run (\w+) --preset (\w+)", (ROOT / page).read_text(encoding="utf-8"))
    for name, preset in commands:
        assert name == "name" or preset in experiments.find(name).PRESETS, f"{name} has no preset {preset!r}"
