"""What is made of runs: with losses of a known law the law, its optima and the further run come back."""

import math

import pytest

from d2lmini.experiments.laws import power_laws
from d2lmini.scaling import PowerLaw, compute_optimal

LAW = PowerLaw(1.2, (120.0, 300.0), (0.35, 0.4))
SIZES = [4e4 * 2**i for i in range(5)]


def a_run(parameters, tokens, loss=None):
    counts = {"matrices": parameters, "all": 1.2 * parameters, "blocks": 0.8 * parameters}
    loss = LAW(parameters, tokens) if loss is None else loss
    found = {"size": f"{parameters:g}", "parameters": counts, "tokens": tokens, "loss": loss}
    return found | {"flops": 6 * parameters * tokens}


@pytest.fixture(scope="module")
def runs():
    return [a_run(n, d) for n in SIZES for d in (4e5, 8e5, 16e5, 32e5)]


@pytest.fixture(scope="module")
def found(runs):
    diverged = a_run(4e4, 4e5) | {"loss": None}
    return power_laws.foretell([*runs, diverged], a_run(1.3e6, 6e6), 20, 0.9)


def test_the_law_comes_back(found):
    assert found["diverged"] == 1
    joint = found["laws"]["joint, matrices"]
    assert joint["runs"] == 20 and joint["floor"]["value"] == pytest.approx(1.2, rel=1e-4)
    assert [one["value"] for one in joint["exponents"]] == pytest.approx([0.35, 0.4], rel=1e-4)
    assert joint["best_parameters"]["value"] == pytest.approx(0.4 / 0.75, rel=1e-4)
    for one in (joint["floor"], *joint["exponents"], joint["best_parameters"]):
        assert one["interval"] == pytest.approx([one["value"]] * 2, rel=1e-3)
    # another count of parameters that is in proportion changes a factor, and no exponent
    assert found["laws"]["joint, all"]["exponents"][0]["value"] == pytest.approx(0.35, rel=1e-4)
    assert found["laws"]["joint, all"]["factors"][0] == pytest.approx(120 * 1.2**0.35, rel=1e-3)


def test_each_law_has_its_runs(found, runs):
    laws = found["laws"]
    assert laws["parameters, matrices, straight"]["runs"] == 5 and laws["tokens, straight"]["runs"] == 4
    floor = 1.2 + 300 / 32e5**0.4  # what the tokens of the longest runs leave
    assert laws["parameters, matrices, with a floor"]["floor"]["value"] == pytest.approx(floor, rel=1e-4)
    assert laws["tokens, with a floor"]["exponents"][0]["value"] == pytest.approx(0.4, rel=1e-3)
    assert laws["parameters, matrices, straight"]["floor"]["value"] == 0
    assert 4 <= laws["compute, straight"]["runs"] < len(runs)


def test_the_further_run_is_predicted(found):
    truth = LAW(1.3e6, 6e6)
    assert found["losses"]["joint"]["loss"] == pytest.approx(truth, rel=1e-5)
    outcome = power_laws.compare(found, 1.01 * truth)
    assert outcome["joint"] == {"error": pytest.approx(1 / 1.01 - 1, rel=1e-3), "inside": False}
    middle = found["losses"]["compute, straight"]
    assert power_laws.compare(found, (middle["low"] + middle["high"]) / 2)["compute, straight"]["inside"]
    with pytest.raises(ValueError, match="held-back run diverged"):
        power_laws.compare(found, None)


def test_what_cannot_be_fitted_says_why(runs):
    few = [run for run in runs if run["parameters"]["matrices"] < 1e5 or run["tokens"] == 4e5]
    laws = power_laws.foretell(few, a_run(1.3e6, 6e6), 5, 0.9)["laws"]
    assert "free parameters" in laws["tokens, straight"]["problem"]  # the largest has one run
    with pytest.raises(ValueError, match="5 free parameters"):
        power_laws.foretell(runs[:4], a_run(1.3e6, 6e6), 5, 0.9)


def test_optima_are_those_of_the_law(found):
    best = [one for one in found["optima"]["profiles"] if "best" in one]
    assert len(best) >= 2
    for one in best:
        assert one["best"][0] == pytest.approx(compute_optimal(LAW, one["flops"]).parameters, rel=0.2)
    logs = [(math.log(one["flops"]), math.log(one["best"][0])) for one in best]
    assert found["optima"]["growth"] == pytest.approx((logs[-1][1] - logs[0][1]) / (logs[-1][0] - logs[0][0]), rel=0.1)
    assert power_laws.slope([(0, 1), (1, 3), (2, 5)]) == 2


def test_larger_models_need_fewer_tokens(found):
    needed = found["tokens_needed"]
    assert needed["loss"] == LAW(SIZES[0], 32e5)
    tokens = list(needed["tokens"].values())
    assert tokens[0] == 32e5
    for n, d in zip(SIZES, tokens, strict=True):
        if d is not None:  # the largest is below that loss after its shortest run
            exact = (300 / (needed["loss"] - 1.2 - 120 / n**0.35)) ** (1 / 0.4)
            assert d == pytest.approx(exact, rel=0.02)
    assert tokens[1] < tokens[0]
