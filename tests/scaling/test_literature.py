"""Published models and laws: complete, cited, and in agreement with what their papers compute."""

import math
import re

import pytest
from conftest import ROOT

from d2lmini.scaling import compute_optimal
from d2lmini.scaling.literature import PETAFLOP_DAY, PUBLISHED_LAWS, PUBLISHED_MODELS

MODELS = {model.name: model for model in PUBLISHED_MODELS}


def test_each_has_its_source():
    works = (ROOT / "pages" / "references.bib").read_text(encoding="utf-8")
    keys = set(re.findall(r"^@\w+\{([^,]+),", works, re.M))
    assert len(MODELS) == len(PUBLISHED_MODELS) >= 13
    assert {model.source for model in PUBLISHED_MODELS} | {law.source for law in PUBLISHED_LAWS.values()} <= keys
    for model in PUBLISHED_MODELS:  # the key has the year of the paper
        assert re.search(r"\d{4}", model.source).group() == str(model.year)


def test_flops_are_those_of_the_papers():
    stated = [model for model in PUBLISHED_MODELS if model.flops_in_paper]
    assert len(stated) >= 3
    for model in stated:
        assert model.flops == pytest.approx(model.flops_in_paper, rel=0.03)


def test_what_is_computed():
    assert MODELS["Chinchilla"].tokens_per_parameter == pytest.approx(20)
    assert MODELS["GPT-3"].tokens_per_parameter < 2 < 20 < MODELS["LLaMA"].tokens_per_parameter
    assert MODELS["GPT-2"].flops is None and MODELS["GPT-2"].tokens_per_parameter is None and MODELS["GPT-2"].note
    mixture = MODELS["DeepSeek-V3"]
    assert mixture.flops == 6 * mixture.active * mixture.tokens < 6 * mixture.parameters * mixture.tokens


def test_kaplans_laws_are_one_at_their_critical_size():
    for name, critical, exponent in (("parameters", 8.8e13, 0.076), ("tokens", 5.4e13, 0.095)):
        law = PUBLISHED_LAWS[f"kaplan {name}"].law
        assert law(critical) == pytest.approx(1) and law(critical / 10) == pytest.approx(10**exponent)
    assert PUBLISHED_LAWS["kaplan compute"].law(3.1e8 * PETAFLOP_DAY) == pytest.approx(1)


def test_the_refit_agrees_with_the_other_approaches_and_the_rounded_constants_do_not():
    budget = MODELS["Chinchilla"].flops_in_paper
    ratio = {}
    for name in ("chinchilla", "chinchilla refitted"):
        best = compute_optimal(PUBLISHED_LAWS[name].law, budget)
        ratio[name] = best.tokens / best.parameters
    assert 15 < ratio["chinchilla refitted"] < 30 < 50 < ratio["chinchilla"]
    refit, envelope = PUBLISHED_LAWS["chinchilla refitted"], PUBLISHED_LAWS["chinchilla envelope"]
    assert math.isclose(refit.best_parameters, envelope.best_parameters, abs_tol=0.02)
