"""What is asked behind how many examples, of models that are known; what is refused before a model is loaded."""

import re
from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import prompt_examples
from d2lmini.experiments.real_model import bases
from d2lmini.experiments.real_model.prompt_examples import PRESETS
from d2lmini.experiments.real_model.prompt_tasks import make_task

from .known_answers import TOKENIZER, Known

CPU = torch.device("cpu")
CONFIG = replace(PRESETS["smoke"], tasks=("sums of one digit",), questions=100, shots=(0, 1, 5), wrong_shots=(5,))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": ("rivers",)}, "tasks are .'rivers',., expected some of capitals, sentiment"),
        ({"tasks": ()}, "tasks are .., expected some of"),
        ({"shots": (-1, 2)}, "shots are .-1, 2., expected different numbers from 0"),
        ({"shots": (2, 2)}, "shots are .2, 2., expected different numbers"),
        ({"wrong_shots": (3,)}, "wrong_shots are .3,., expected some of the shots .0, 1, 5., but 0"),
        ({"wrong_shots": (0,)}, "wrong_shots are .0,., expected some of the shots"),
        ({"questions": 0}, "there are 0 questions"),
        ({"shown": 101}, "there are 100 questions, 101 of them shown"),
    ],
)
def test_bad_input_is_told_before_a_model_is_loaded(wrong, message, monkeypatch):
    monkeypatch.setattr(bases, "load", lambda *_: pytest.fail("loaded"))
    with pytest.raises(ValueError, match=message):
        prompt_examples.run(replace(CONFIG, **wrong), CPU)


def copied(prompt):
    """It gives the answer of the last example, and without one knows all sums."""
    shown = re.findall(r"A: (\d+)\n", prompt)
    a, b = map(int, re.findall(r"(\d+) \+ (\d+)\?", prompt)[-1])
    return f" {shown[-1] if shown else a + b}\n"


def test_a_record_of_a_model_that_copies(monkeypatch):
    monkeypatch.setattr(bases, "load", lambda name: (Known(copied), TOKENIZER))
    record = prompt_examples.run(CONFIG, CPU)
    told = record["metrics"]["tasks"]["sums of one digit"]
    assert told["baseline"] == 0.1  # of the hundred sums ten are 9
    zero = told["shots"]["0"]
    assert zero["asked"] == [95] and zero["exact"] == [{"accuracy": 1, "error": 0}]
    assert zero["accuracy"] == {"mean": 1, "spread": None}
    assert all(sorted(shown) for shown in zero["shown"]) and zero["shown"][0][0][1].startswith(" ")
    for key, number in (("shots", "1"), ("shots", "5"), ("wrong", "5")):
        rows = told[key][number]
        assert rows["asked"] == [95, 95] and rows["accuracy"]["mean"] < 0.15
        assert rows["accuracy"]["mean"] == sum(one["accuracy"] for one in rows["exact"]) / 2
        assert rows["shown"][1] == []
    assert told["wrong"]["5"]["exact"] != told["shots"]["5"]["exact"]
    assert "sums of one digit 100 (0), " in record["metrics"]["headline"] and record["data"] == {}


def test_all_numbers_of_examples_meet_the_same_questions(monkeypatch):
    asked = []
    monkeypatch.setattr(prompt_examples, "answers", lambda *a: asked.append(a[3:]) or ([True] * len(a[4]), None))
    task = make_task("sums of one digit", 100)
    config = replace(CONFIG, shown=0)
    for number, seed, wrong in ((0, 1, False), (1, 1, False), (5, 1, False), (5, 1, True), (5, 2, False)):
        prompt_examples.ask(None, None, task, config, number, seed, wrong)
    (none, first), (one, second), (five, third), (wrong, fourth), (others, fifth) = asked
    assert first == second == third == fourth != fifth and len(fifth) == 95
    assert none == [] and one == five[:1] and [rest for rest, _ in wrong] == [rest for rest, _ in five] != []
    assert wrong != five and not {rest for rest, _ in five} & {rest for rest, _ in third} and others != five
