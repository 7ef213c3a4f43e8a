"""What is refused before anything is trained, and what the record says of models that are known."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from d2lmini.experiments import verifiable
from d2lmini.experiments.real_model.verifiable import PRESETS, Contestant

CPU = torch.device("cpu")
CONFIG = PRESETS["smoke"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"form": "step"}, "form is 'step', expected one of answer, steps, filler"),
        ({"contestants": ()}, "the first contestant has no reward"),
        ({"contestants": (Contestant("a"),)}, "the first contestant has no reward, expected one: imitation gets"),
        ({"contestants": (Contestant("a", "luck"),)}, "reward of 'a' is 'luck', expected one of right, coin, None"),
        ({"ks": (1, 9)}, "ks are .1, 9., expected each from 1 to the 8 samples"),
        ({"ks": ()}, "expected each from 1 to the 8 samples"),
        ({"starts": (0.0,)}, "starts are .0.0,., expected shares between 0 and 1"),
        ({"asked": 41}, "asked is 41, expected 2 to the 40 tested questions"),
    ],
)
def test_bad_input_is_told_before_anything_is_trained(wrong, message, monkeypatch):
    monkeypatch.setattr(verifiable, "Start", lambda *_: pytest.fail("trained"))
    with pytest.raises(ValueError, match=message):
        verifiable.run(replace(CONFIG, **wrong), CPU)


class Known:
    """A start that is right in the first two of four samples of every second question; its pupils always are."""

    steps, flops, tests = 3, 9.0, torch.zeros(12, 3)
    model = "start"

    def __init__(self, config, share, seed):
        self.config = config

    def measure(self, model):
        return {"right": 0.25}

    def draw(self, model, questions, size, temperature, salt):
        right = torch.ones(len(questions), size, dtype=torch.bool)
        if model == "start":
            right[::2] = False
            right[:, size // 2 :] = False
        return SimpleNamespace(right=right)

    def learn(self, contestant, budget):
        assert (budget is None) == (contestant.name == "rewards") and budget in (None, 7.0)
        tests = {"step": [0, 5], "right": [0.25, 1.0]}
        return "pupil", {"steps": 5, "flops": 7.0, "tests": tests, "seen": {}}


def test_a_record_of_a_start_that_is_known(monkeypatch):
    monkeypatch.setattr(verifiable, "Start", Known)
    config = replace(CONFIG, ks=(1, 4), samples=4, asked=12, starts=(0.1, 0.3))
    metrics = verifiable.run(config, CPU)["metrics"]
    assert metrics["starts"].keys() == metrics["ways"].keys() == {"0.1", "0.3"}
    for share, start in metrics["starts"].items():
        assert start["number_never"] == [6, 6] and start["cooler"] == [{"0.5": 0.25, "0.25": 0.25}] * 2
        assert start["chances"][0]["chance"] == [0.25, 0.5] and start["never"] == [{"right": 0, "solved": 0}] * 2
        for way in metrics["ways"][share].values():
            assert way["chances"][0]["chance"] == [1, 1] and way["never"] == [{"right": 1, "solved": 1}] * 2
            assert way["tests"] == [{"step": 5, "right": 1.0}] * 2
    assert "25 % of 1, 50 % of 4 at the start; 100 % of 1, 100 % of 4 after rewards;" in metrics["headline"]
