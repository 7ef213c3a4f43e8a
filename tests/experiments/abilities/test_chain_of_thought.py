"""Sums asked of models that are known: one that is always right, one that guesses, one that never ends; and FLOPs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from d2lmini.experiments import chain_of_thought
from d2lmini.experiments.abilities import addition, addition_exam
from d2lmini.experiments.abilities.addition import CHARACTERS, END, text_of
from d2lmini.experiments.abilities.addition_exam import ask, examine, falsify, prompts_of, show
from d2lmini.experiments.abilities.addition_exam import test_questions as questions_of
from d2lmini.experiments.abilities.chain_of_thought import PRESETS, Adder, Contestant, example_flops, steps_of

CPU = torch.device("cpu")
CONFIG = replace(PRESETS["smoke"], digits=2, questions=40, voted=10, samples=6, votes=(1, 3), temperatures=(0.5, 1.0))
SUMS = chain_of_thought.sums_of(CONFIG)


class Known:
    """A model that gives what ``respond(text of the prompt, number of the sample)`` says, as text."""

    config = SimpleNamespace(max_len=99)

    def __init__(self, respond):
        self.respond, self.asked = respond, []

    def eval(self):
        return self

    def generate(self, prompts, max_new, *, stop, num_samples=None, **options):
        assert stop == END
        self.asked.append(options)

        def one(prompt, n):
            tokens = [CHARACTERS.index(c) for c in self.respond(text_of(prompt), n)][:max_new]
            return torch.tensor(tokens + [END] * (max_new - len(tokens)))

        rows = [[one(prompt, n) for n in range(num_samples or 1)] for prompt in prompts.tolist()]
        tokens = torch.stack([torch.stack(row) for row in rows])
        return SimpleNamespace(tokens=tokens if num_samples else tokens[:, 0])


def written(*numbers):
    return ",".join(str(n).zfill(SUMS.width)[::-1] for n in numbers) + "."


def chain(prompt, _=0):
    """The right steps, by another rule than `addition`."""
    summands = [int(part) for part in prompt.split("=")[0].split("+")]
    return written(*(sum(summands[: i + 1]) for i in range(1, len(summands))))


def answer(prompt, n=0):
    return chain(prompt).split(",")[-1]


@pytest.mark.parametrize(("form", "respond"), [("steps", chain), ("answer", answer), ("filler", answer)])
def test_who_is_right_is_told_so(form, respond):
    told, drawn = examine(Known(respond), form, SUMS, 3, CONFIG, 0)
    assert told["greedy"]["accuracy"] == 1 and told["greedy"]["error"] == told["greedy"]["unread"] == 0
    assert told["votes"].keys() == {"0.5", "1.0"}
    for votes in told["votes"].values():
        assert votes.keys() == {"1", "3"}
        assert all(one == {"accuracy": 1, "error": 0, "abstained": 0, "ties": 0} for one in votes.values())
    assert len(drawn) == CONFIG.voted and all(len(row) == CONFIG.samples for row in drawn)
    if form == "steps":
        assert told["greedy"]["steps_add_up"] == 1 and told["greedy"]["right_with_wrong_steps"] == 0
    else:
        assert "steps_add_up" not in told["greedy"]


def test_right_answers_behind_wrong_steps_are_found():
    told, _ = examine(Known(lambda prompt, _: written(1)[:-1] + "," + answer(prompt)), "steps", SUMS, 3, CONFIG, 0)
    assert told["greedy"]["accuracy"] == 1 and told["greedy"]["right_with_wrong_steps"] == 1
    assert told["greedy"]["steps_add_up"] == 0  # 1 is no sum of two numbers of two digits, nor is the next one of it


def test_a_chain_that_never_ends_is_no_answer():
    told, drawn = examine(Known(lambda *_: "0" * 99), "steps", SUMS, 3, CONFIG, 0)
    greedy = {"accuracy": 0, "error": 0, "unread": 1, "steps_add_up": None, "right_with_wrong_steps": None}
    assert told["greedy"] == greedy
    for votes in told["votes"].values():
        assert all(one == {"accuracy": 0, "error": 0, "abstained": 1, "ties": 0} for one in votes.values())
    assert drawn == [[None] * CONFIG.samples] * CONFIG.voted
    assert falsify(Known(lambda *_: "0" * 99), SUMS, 3, CONFIG) == {"follows": 0, "right": 0}


def test_a_real_model_that_never_ends_stops_with_its_room():
    torch.manual_seed(0)
    model = Adder(CONFIG).eval()
    with torch.no_grad():
        model.dense.weight[END] = 0
        model.dense.weight[0] = 0
    normal = model.step

    def endless(tokens, state):
        logits, state = normal(tokens, state)
        logits[:, END] = -torch.inf
        return logits, state

    model.step = endless
    prompts, max_new = prompts_of(SUMS, questions_of(SUMS, 4, 3), "steps")
    found = ask(model, SUMS, prompts, max_new, temperature=0)
    assert all(len(tokens) == max_new and END not in tokens for tokens in found)
    assert [SUMS.read(tokens) for tokens in found] == [None] * 3


def test_a_question_that_is_too_long():
    sums = addition.Sums(2, 9)
    prompts, max_new = prompts_of(sums, questions_of(sums, 9, 2), "steps")
    with pytest.raises(ValueError, match="a question of 27 tokens and a response of 40 do not fit into the context of"):
        ask(Adder(CONFIG), SUMS, prompts, max_new)


def test_as_many_samples_as_asked_and_votes_by_hand():
    # two of each three samples are right, and never the third: a vote of three always is
    model = Known(lambda prompt, n: answer(prompt) if n % 3 else written(0))
    told, drawn = examine(model, "answer", SUMS, 2, CONFIG, 0)
    for votes in told["votes"].values():
        assert votes["1"]["accuracy"] == pytest.approx(2 / 3) and votes["3"]["accuracy"] == 1
    assert told["greedy"]["accuracy"] == 0 and all(row[0] == row[3] == [0] for row in drawn)
    assert [options["temperature"] for options in model.asked] == [0, 0.5, 1.0]


def test_models_are_asked_the_same():
    one, other = (questions_of(SUMS, 3, n) for n in (30, 30))
    assert torch.equal(one, other) and not torch.equal(one[:, :2], questions_of(SUMS, 2, 30))
    prompts, max_new = prompts_of(SUMS, one, "filler")
    assert all(text_of(row).endswith("=____") for row in prompts.tolist())
    assert max_new == SUMS.width + 1 + addition_exam.SPARE
    assert prompts_of(SUMS, one, "steps")[1] == 2 * (SUMS.width + 1) + addition_exam.SPARE


def test_false_steps():
    prompts = []

    def follow(prompt, _):
        prompts.append(prompt)
        question, steps = prompt.split("=")
        last = steps.split(",")[-2]
        return written(int(last[::-1]) + int(question.split("+")[-1]))

    assert falsify(Known(follow), SUMS, 4, CONFIG) == {"follows": 1, "right": 0}
    for prompt in prompts:  # the last running sum is false, all before are true
        given, true = prompt.split("=")[1].split(",")[:-1], chain(prompt)[:-1].split(",")[:-1]
        assert given[:-1] == true[:-1] and given[-1] != true[-1] and len(given) == 2
    assert falsify(Known(answer), SUMS, 4, CONFIG) == {"follows": 0, "right": 1}


def test_what_is_shown_is_what_samples_differ_on():
    summands = torch.tensor([[10, 11], [12, 13], [14, 15]])
    drawn = [[[21], [21]], [[25], None], [[28], [29]]]
    cards = show(summands, drawn, 2)
    assert cards[0] == {"summands": [12, 13], "right": 25, "samples": [[25], None]}
    assert [card["summands"] for card in cards] == [[12, 13], [14, 15]]
    assert [card["right"] for card in show(summands, drawn, 9)] == [25, 29, 21]


@pytest.mark.parametrize("form", addition.FORMS)
def test_flops_by_a_loop_over_tokens(form):
    model = Adder(CONFIG)
    matrices = [p for p in model.blks.parameters() if p.dim() > 1] + [model.dense.weight]
    each = []
    for num in CONFIG.summands:
        total = 0
        for place in range(SUMS.length(form, num) - 1):
            total += sum(2 * p.numel() for p in matrices)
            seen = place + 1  # scores with what stands before, and a sum of as many values
            total += CONFIG.num_blks * 2 * (2 * seen * CONFIG.num_hiddens)
        each.append(3 * total)
    assert example_flops(model, SUMS, form, CONFIG.summands) == sum(each) / len(each)


@pytest.mark.parametrize("preset", PRESETS)
def test_as_many_flops_are_as_many(preset):
    config = PRESETS[preset]
    sums = chain_of_thought.sums_of(config)
    with torch.device("meta"):
        model = Adder(config)
    paid = Contestant("paid", "answer", flops_of="steps")
    steps = steps_of(paid, config, model, sums)
    assert steps_of(Contestant("a", "answer"), config, model, sums) == config.steps < steps
    have, want = (
        n * example_flops(model, sums, form, config.summands)
        for n, form in ((steps, "answer"), (config.steps, "steps"))
    )
    assert have == pytest.approx(want, abs=example_flops(model, sums, "answer", config.summands))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"votes": (1, 7)}, "votes are .1, 7., expected each from 1 to the 6 samples"),
        ({"votes": (0,)}, "expected each from 1 to the 6 samples"),
        ({"voted": 41}, "voted is 41, expected 1 to the 40 questions"),
        ({"contestants": (Contestant("a", "step"),)}, "form of 'a' is 'step', expected one of answer, steps, filler"),
        ({"contestants": (Contestant("a", "answer", flops_of="all"),)}, "flops_of of 'a' is 'all'"),
        ({"contestants": (Contestant("a", "steps", wrong=1.5),)}, "wrong of 'a' is 1.5, expected a share"),
        ({"contestants": ()}, "there is no contestant"),
    ],
)
def test_bad_input_is_told_before_anything_is_trained(wrong, message, monkeypatch):
    monkeypatch.setattr(chain_of_thought, "learn", lambda *_: pytest.fail("trained"))
    with pytest.raises(ValueError, match=message):
        chain_of_thought.run(replace(CONFIG, **wrong), CPU)


def test_a_run_without_votes():
    config = replace(PRESETS["smoke"], temperatures=(), shown_summands=())
    metrics = chain_of_thought.run(config, CPU)["metrics"]
    assert all(test["votes"] == {} for model in metrics["models"].values() for test in model["tests"][0].values())
    assert "steps" in metrics["headline"] and "votes" not in metrics["headline"]


def test_further_seeds_have_the_settings_of_the_first():
    laptop, seeds = PRESETS["laptop"], PRESETS["seeds"]
    assert not set(laptop.seeds) & set(seeds.seeds) and seeds.contestants == laptop.contestants[:3]
    ask = {"contestants", "seeds", "temperatures", "voted", "shown_summands"}
    assert replace(seeds, **{name: getattr(laptop, name) for name in ask}) == laptop
