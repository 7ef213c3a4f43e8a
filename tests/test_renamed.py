"""What was called otherwise goes on by its old name, warns, and says what to write; and names are spelled one way."""

import importlib
import re
import subprocess
import sys
import warnings

import pytest
import torch
from conftest import ROOT

import d2lmini as d2l
from d2lmini import decoding, efficient, experiments, figures, metrics, objectives, quantized, renamed, results
from d2lmini.figures import Playground, diagrams

HOMES = [d2l, decoding, experiments, figures, diagrams, metrics, quantized, decoding.filters]
NAMES = [(home, old) for home in HOMES for old, new in renamed.NAMES.items() if hasattr(home, new)]
BRITISH = re.compile(
    r"(?i:capital|emphas|general|initial|local|minim|maxim|memor|normal|optim|organ|parameter|penal|quant|random|real|"
    r"recogn|regular|serial|summar|token|util|vector|visual)is(e[drs]?|ers|ing|ation)?(?![a-z])"
)


def warned(new):
    return pytest.warns(FutureWarning, match=rf"with version 1\.0: write {re.escape(new)}$")


@pytest.mark.parametrize(("home", "old"), NAMES, ids=lambda x: getattr(x, "__name__", x))
def test_an_old_name_gives_the_new_object_and_warns(home, old):
    new = renamed.NAMES[old]
    with warned(new) as told:
        assert getattr(home, old) is getattr(home, new)
    assert [one.filename for one in told] == [__file__]  # the line of who asks
    assert old not in dir(home)


def test_every_old_name_is_an_old_name_of_something():
    assert {old for _, old in NAMES} == set(renamed.NAMES)


@pytest.mark.parametrize("old", [*renamed.MODULES, "d2lmini.experiments.optimisation.deep_gpts"])
def test_an_old_module_is_the_new_one(old, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    new = renamed._module(old)
    with warned(new):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new) and module.__name__ == module.__spec__.name == new
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module(new)


def test_a_name_that_never_was_is_none():
    for home, old in (*((home, "never") for home in HOMES), (decoding, "quantise"), (metrics, "Quantised")):
        with pytest.raises(AttributeError, match=f"has no attribute '{old}'"):
            getattr(home, old)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("d2lmini.quantised_too")


def test_experiments_and_records_are_found_by_their_old_names():
    for old, new in (("optimisers", "optimizers"), ("quantised", "quantized")):
        with warned(new):
            assert experiments.find(old) is experiments.find(new)
        with warned(new):
            assert results.load(old) == results.load(new)


def test_arguments_and_attributes_go_on():
    matrix = d2l.quantize(torch.randn(4, 8))
    with warned("quantized="):
        layer = d2l.QuantizedLinear(quantised=matrix)
    with warned("quantized="):
        d2l.QuantizedEmbedding(quantised=matrix)
    with warned("normalize="):
        assert "by hand" in diagrams.compare_normalize_mix(normalise="by hand").description
    with warned("optimizer="):
        assert Playground(optimiser="sgd").state["settings"]["optimizer"] == "sgd"
    with warned("quantized"):
        assert torch.equal(layer.quantised.codes, matrix.codes)
    with warned("dequantize"):
        assert torch.equal(matrix.dequantise(), matrix.dequantize())
    with warned("normalizer"):
        assert efficient.LinearState(matrix.scale, matrix.codes).normaliser is matrix.codes
    with warned("quantized"):
        assert figures.QuantizedRow.of().quantised()
    for kind in (decoding.Decoded, decoding.Sampled):
        with warned("valid_lens"):
            assert kind(*range(len(kind._fields))).lengths == 1
    with warned("mask"):
        assert figures.SwinExplorer({"dark": torch.zeros(28, 28)}).may_attend(7, 1).any()


def test_public_names_and_files_are_spelled_as_the_libraries_of_the_field_spell():
    listed = (home.__all__ for home in (d2l, decoding, efficient, figures, diagrams, objectives))
    names = {*experiments.names(), *experiments.SUBJECTS}.union(*listed)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert len(names) > 300 and len(files) > 1000
    assert sorted(filter(BRITISH.search, {*names, *(file.removesuffix(".ipynb") for file in files)})) == []
    assert all(map(BRITISH.search, ("QuantisedRow", "quantise_model", "a/test_optimisation.py", "a_normaliser.js")))
