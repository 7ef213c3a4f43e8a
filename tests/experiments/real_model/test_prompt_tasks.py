"""Questions with right answers, prompts as they are shown, and answers of models that are known or that write."""

import re
from collections import Counter

import pytest

from d2lmini.data.capitals import capitals
from d2lmini.experiments.real_model import bases
from d2lmini.experiments.real_model import prompt_tasks as tasks
from d2lmini.experiments.real_model.prompt_tasks import TASKS, Task, answers, beginning, draw_examples, make_task
from d2lmini.models.weights import smollm2

from .known_answers import TOKENIZER, Known


def summed(prompt):
    a, b = re.findall(r"(\d+) \+ (\d+)\?", prompt)[-1]
    return int(a) + int(b)


@pytest.mark.parametrize(("name", "low", "high"), [("sums of one digit", 0, 9), ("sums of two digits", 10, 99)])
def test_sums_are_right_and_none_comes_twice(name, low, high):
    task = make_task(name, 200)
    assert len(task.asked) == min(200, (high - low + 1) ** 2) and task.choices is None
    assert len(dict(task.pool)) == len(task.pool) == (high - low + 1) ** 2
    for rest, answer in task.pool:
        numbers = list(map(int, re.fullmatch(r"(\d+) \+ (\d+)\?", rest).groups()))
        assert low <= min(numbers) <= max(numbers) <= high and sum(numbers) == int(answer)


def test_capitals_that_the_question_gives_away_are_not_asked():
    task, known = make_task("capitals", 200), capitals()
    assert 150 <= len(task.asked) < 200 and task.stem == "What is the capital of"
    assert all(known[rest.removesuffix("?")] == answer for rest, answer in task.asked)
    left_out = known.keys() - {rest.removesuffix("?") for rest, _ in task.asked}
    assert {"Mexico", "Singapore", "Tunisia"} <= left_out and not left_out & {"France", "Kenya", "Algeria"}


def test_reviews_are_of_both_kinds_and_none_of_the_training():
    task = make_task("sentiment", 50, made=True)
    counts = Counter(answer for _, answer in task.asked)
    assert counts.keys() == set(task.choices) == set(tasks.WORDS) and min(counts.values()) > 15
    assert not dict(task.asked).keys() & dict(task.pool).keys()


def test_unknown():
    with pytest.raises(ValueError, match="there is no task 'rivers', only capitals, sentiment, sums of one digit"):
        make_task("rivers", 1)


def test_the_example_of_the_module_by_hand():
    task = Task("What is the capital of", [], [])
    prompt = beginning(task, [("France?", "Paris")]) + " Kenya?\nA:"
    assert prompt in tasks.__doc__.replace("\n    ", "\n") and beginning(task, []) == "Q: What is the capital of"


def test_wrong_answers_are_those_of_others():
    task = make_task("sums of two digits", 10)
    right, wrong = (draw_examples(task, 400, 3, wrong) for wrong in (False, True))
    assert [rest for rest, _ in right] == [rest for rest, _ in wrong]
    assert sum(a == b for (_, a), (_, b) in zip(right, wrong, strict=True)) < 20
    assert {answer for _, answer in wrong} <= {answer for _, answer in task.pool}
    assert draw_examples(task, 5, 3) == draw_examples(task, 5, 3) != draw_examples(task, 5, 4)


@pytest.mark.parametrize(
    ("respond", "exact"),
    [
        (lambda prompt: f" {summed(prompt)}\n", True),
        (lambda prompt: f" {summed(prompt)}, of course", True),
        (lambda prompt: f" {summed(prompt)}0\n", False),  # another number, which begins alike
        (lambda prompt: f" {summed(prompt) + 1}\n", False),
        (lambda prompt: f" it is {summed(prompt)}\n", False),
    ],
)
@pytest.mark.parametrize("at_once", [3, 100])
def test_the_first_word_is_what_counts(respond, exact, at_once):
    task = make_task("sums of two digits", 40)
    examples = draw_examples(task, 3, 0)
    assert answers(Known(respond), TOKENIZER, task, examples, task.asked, at_once) == ([exact] * 40, [None] * 40)


def test_answers_come_in_the_order_of_the_questions():
    task = make_task("sums of one digit", 60)  # of several lengths
    even = Known(lambda prompt: f" {summed(prompt)}\n" if summed(prompt) % 2 else " no\n")
    found, _ = answers(even, TOKENIZER, task, [], task.asked, 7)
    assert found == [int(answer) % 2 == 1 for _, answer in task.asked] and len(set(found)) == 2


def test_the_likelier_choice():
    task = make_task("sentiment", 20, made=True)
    pleased = Known(lambda prompt: " positive" if len(prompt.split("?")[-1]) % 2 else " negative.")
    exact, chosen = answers(pleased, TOKENIZER, task, [], task.asked)
    want = ["positive" if len(f" {rest}\n") % 2 else "negative" for rest, _ in task.asked]
    assert chosen == want and len(set(want)) == 2
    assert exact == [one == right for one, (_, right) in zip(want, task.asked, strict=True)]
    with pytest.raises(ValueError, match="do not differ in the same token"):
        answers(pleased, TOKENIZER, task._replace(choices=("no", "yes", "yet")), [], task.asked)


def test_what_prompts_share_is_read_once():
    task = make_task("sums of one digit", 50)
    examples = draw_examples(task, 10, 0)
    model = Known(lambda prompt: " 0\n")
    answers(model, TOKENIZER, task, examples, task.asked)
    assert model.read < len(beginning(task, examples)) + 50 * len(" 9 + 9?\nA: 18") + 1


@pytest.mark.slow
@pytest.mark.skipif(not smollm2.is_there(), reason="the weights of SmolLM2 are not on this machine")
def test_as_the_real_model_writes():
    """Its first words one by one; and no token reaches over what is read once, or over "A:"."""
    model, tokenizer = bases.load("smollm2")
    for name in ("capitals", "sums of one digit"):
        task = make_task(name, 8)
        examples = draw_examples(task, 3, 0)
        exact, _ = answers(model, tokenizer, task, examples, task.asked, 5)
        for (rest, answer), found in zip(task.asked, exact, strict=True):
            parts = beginning(task, examples), f" {rest}\nA:", f" {answer.split()[0]}"
            ids = [token for part in parts for token in tokenizer.encode(part)]
            assert ids == tokenizer.encode("".join(parts))
            written = tokenizer.decode(
                model.generate([tokenizer.encode("".join(parts[:2]))], 8, temperature=0).tokens[0].tolist()
            )
            assert found == bool(re.match(re.escape(parts[2]) + r"(?![^\W_])", written)), (written, answer)
        assert len(set(exact)) == 2
    assert tasks.TASKS == TASKS
