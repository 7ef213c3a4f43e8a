"""Policies of instructions: log-probabilities, divergences, the best of n, and what a step on pairs changes."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from d2lmini.experiments import instruct
from d2lmini.experiments.abilities import instructions as rules
from d2lmini.experiments.abilities import judgements
from d2lmini.experiments.abilities.instruct import PRESETS, Preferring
from d2lmini.experiments.gpt.language import Learner
from d2lmini.lab.parts import Parts
from d2lmini.objectives import dpo_loss

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small():
    tokens, *_ = rules.corpus(1_000)
    config = replace(PRESETS["smoke"], forms=("count", "repeat"))
    recipe = replace(config, model=replace(config.model, vocab_size=len(tokens), init="gpt2"))
    torch.manual_seed(0)
    return tokens, config, Learner(recipe).eval(), Learner(recipe).eval()


def test_log_probs_are_those_that_sampling_knows(small):
    tokens, config, model, _ = small
    prompts = [tokens.prompt(one) for one in rules.examples(5, "test", config.forms)]
    drawn = model.generate(prompts, 6, stop=tokens[rules.EOS], generator=torch.Generator().manual_seed(3))
    answers = judgements.draw_answers(model, prompts, 1, tokens, config, 3)
    found = judgements.log_probs(model, prompts, [row[0] for row in answers])
    assert torch.allclose(found, drawn.scores, atol=1e-4)


def test_kl_of_a_model_from_itself_and_from_another(small):
    tokens, config, model, other = small
    tests = rules.examples(40, "test", config.forms)
    assert judgements.measure(model, model, tokens, tests, config)["kl"] == 0
    assert judgements.measure(model, None, tokens, tests, config)["kl"] is None
    other.dense.weight.data.mul_(3)
    assert judgements.measure(model, other, tokens, tests, config)["kl"] > 0.01


def test_a_step_raises_the_chosen_above_the_rejected(small):
    tokens, _, model, _ = small
    (one,) = rules.examples(1, "test", ("repeat",))
    prompt, chosen, rejected = tokens.prompt(one), tokens.answer(["the", "cat"]), tokens.answer(["a", "dog"])
    learner = Preferring(Learner(model.recipe), 0.5, 1e-3)
    learner.policy.load_state_dict(model.state_dict())
    inputs, labels = instruct.answer_batch([prompt] * 2, [chosen, rejected])
    reference = judgements.log_probs(model, [prompt] * 2, [chosen, rejected])
    loss = learner.loss(learner(inputs, labels), reference)
    assert loss.item() == pytest.approx(dpo_loss(*reference.split(1), *reference.split(1), 0.5).item(), abs=1e-5)
    optimizer = learner.configure_optimizers()
    for _ in range(5):
        optimizer.zero_grad()
        learner.loss(learner(inputs, labels), reference).backward()
        optimizer.step()
    after = judgements.log_probs(learner.policy.eval(), [prompt] * 2, [chosen, rejected])
    assert (after - reference)[0] > (after - reference)[1] + 0.01


def test_unknown_judges_are_refused():
    for judges in ((), ("kind",)):
        with pytest.raises(ValueError, match=r"judges are .* expected some of honest, flattered"):
            instruct.run(replace(PRESETS["smoke"], judges=judges), torch.device("cpu"))


def test_the_best_of_n_by_brute_force(small, monkeypatch):
    tokens, config, _, _ = small
    tests = rules.examples(3, "test", ("repeat",))
    config = replace(config, best_of=(1, 2, 4), bonus=0.3)
    # one is right, one half right, one flatters, one is silent
    rows = [[one.answer, [*one.answer[:2], "sir"], ["gladly", "sir", "sir", *one.answer], []] for one in tests]
    monkeypatch.setattr(
        judgements, "draw_answers", lambda *_: [[tokens.answer(answer) for answer in row] for row in rows]
    )
    found = judgements.best_of(None, tokens, tests, config)
    assert found["n"] == [1, 2, 4] and found["kl_bound"][0] == 0
    judges = {"honest": rules.honest, "flattered": lambda a, b: rules.flattered(a, b, 0.3)}
    counts = {**judges, "followed": rules.follows, "words": lambda a, b: len(a)}
    for judge, like in judges.items():
        for name, count in counts.items():
            for n, value in zip(found["n"], found[judge][name], strict=True):
                worth = []
                for row, one in zip(rows, tests, strict=True):
                    for group in itertools.combinations(row, n):
                        best = max(group, key=lambda answer: like(answer, one.answer))  # no two are liked alike
                        worth.append(float(count(best, one.answer)))
                assert value == pytest.approx(sum(worth) / len(worth)), (judge, name, n)
    assert found["honest"]["followed"][-1] == 1 and found["flattered"]["followed"][-1] == 0  # it is gamed


def test_measures_are_means_over_the_answers(small, monkeypatch):
    tokens, config, model, _ = small
    tests = rules.examples(4, "test", config.forms)  # count, repeat, count, repeat
    given = [tests[0].answer, ["sir", "sir", *tests[1].answer], ["many"], ["certainly", *tests[3].answer]]
    monkeypatch.setattr(judgements, "draw_answers", lambda *_, **__: [[tokens.answer(answer)] for answer in given])
    found = judgements.measure(model, None, tokens, tests, config)
    assert found["followed"] == 0.5 and found["forms"] == {"count": 0.5, "repeat": 0.5}
    assert found["error"] == pytest.approx(math.sqrt(4 * 0.25 / 3 / 4))
    assert found["words"] == sum(map(len, given)) / 4
    assert len(found["samples"]) == config.shown and found["samples"][0]["answer"] == " ".join(tests[0].answer)


def a_run(config, **changes):
    return instruct.Run(replace(config, **changes), CPU, Parts(), 0)


def test_what_is_judged_was_not_demonstrated():
    one = a_run(PRESETS["smoke"])
    prompts = [[tuple(x.prompt) for x in group] for group in (one.demonstrated, one.asked, one.tests)]
    assert list(map(len, prompts)) == [40, 12, 12]
    assert len(set(itertools.chain(*prompts))) == 64


def test_pairs_are_those_of_the_judge(small, monkeypatch):
    tokens, config, model, _ = small
    one = a_run(config, judged=3)
    one.tokens = tokens
    monkeypatch.setattr(one, "instructed", lambda: (model, {}))
    rights = [x.answer for x in one.asked]
    rows = [[right, ["gladly"] * 9, right[:1] or ["the"]] for right in rights]
    drawn = []

    def draw(*_):
        drawn.append(1)
        return [[tokens.answer(answer) for answer in row] for row in rows]

    monkeypatch.setattr(instruct, "draw_answers", draw)
    honest, chosen, rejected = one.pairs("honest")
    assert [tokens.words(pair.chosen) for pair in honest] == rights
    flattered = one.pairs("flattered")[0]
    assert all(tokens.words(pair.chosen) == ["gladly"] * 9 for pair in flattered)
    assert drawn == [1]  # both judge the same answers
    prompts = [pair.prompt for pair in honest]
    assert torch.equal(chosen, judgements.log_probs(model, prompts, [pair.chosen for pair in honest]))
    assert torch.equal(rejected, judgements.log_probs(model, prompts, [pair.rejected for pair in honest]))


def test_answers_that_are_all_alike_make_no_pair(small, monkeypatch):
    tokens, config, model, _ = small
    one = a_run(config, judged=3)
    monkeypatch.setattr(one, "instructed", lambda: (model, {}))
    monkeypatch.setattr(instruct, "draw_answers", lambda *_: [[tokens.answer(["the"])] * 4 for _ in range(3)])
    with pytest.raises(ValueError, match="there is no preference pair: were all answers to each prompt judged alike"):
        one.pairs("honest")


def test_imitation_looks_at_the_chosen_alone():
    learner = Preferring(torch.nn.Linear(1, 1), None, 1e-3)
    told = torch.tensor([-1.0, -3.0, -50.0, -70.0])
    assert learner.loss(told, torch.zeros(4)).item() == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"answer_len": 80}, "of 80 tokens do not fit into the context of 64"),
        ({"forms": ("dance",)}, "expected some of repeat"),
        ({"best_of": (0, 2)}, "best_of is .0, 2., expected numbers from 1"),
        ({"best_of": ()}, "best_of is .., expected numbers from 1"),
        ({"betas": (0.1, 0.0)}, "betas are .0.1, 0.0., expected numbers above 0"),
        ({"answers": 1}, "answers is 1, expected at least 2: a pair is of two answers to a prompt"),
    ],
)
def test_bad_input_is_told_before_anything_is_trained(wrong, message, monkeypatch):
    monkeypatch.setattr(instruct.language, "train", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(ValueError, match=message):
        instruct.run(replace(PRESETS["smoke"], **wrong), CPU)
