"""Learning from rewards: what moves the weights, what does not, and what it costs."""

import copy
from dataclasses import replace

import pytest
import torch

from d2lmini.experiments.abilities.chain_of_thought import example_flops
from d2lmini.experiments.real_model import checked_answers as answers
from d2lmini.experiments.real_model import verifiable
from d2lmini.experiments.real_model.reward_training import Start
from d2lmini.experiments.real_model.verifiable import PRESETS, Contestant
from d2lmini.objectives import token_log_probs

CONFIG = replace(PRESETS["smoke"], reuse=1, questions=12, group=6)
RIGHT, COIN = Contestant("a", "right"), Contestant("b", "coin")
SEEN = "reward", "right", "entropy", "length", "idle"


@pytest.fixture(scope="module")
def start():
    return Start(CONFIG, 0.03, 0)


@pytest.fixture
def begun(start):
    """A copy of the start's model, an optimizer without momentum, and empty lists."""
    model = copy.deepcopy(start.model)
    torch.manual_seed(1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), {name: [] for name in SEEN}


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_the_start_is_the_first_look_with_enough_right(start):
    each = example_flops(start.model, start.sums, CONFIG.form, (CONFIG.summands,))
    assert start.steps % CONFIG.look == 0 and start.flops == pytest.approx(start.steps * CONFIG.batch_size * each)
    sooner = Start(CONFIG, 0.005, 0)
    assert sooner.steps <= start.steps
    with pytest.raises(ValueError, match="after 5 steps fewer than 90% of the samples are right: raise longest"):
        Start(replace(CONFIG, longest=5), 0.9, 0)


def half_right(monkeypatch):
    """Every second answer is called right, so that all groups have advantages."""
    monkeypatch.setattr(answers, "are_right", lambda sums, summands, tokens: torch.arange(6).expand(12, 6) % 2 == 0)


def kept_groups(monkeypatch):
    groups, draw = [], answers.draw_group

    def drawing(*args, **options):
        groups.append(draw(*args, **options))
        return groups[-1]

    monkeypatch.setattr(answers, "draw_group", drawing)
    return groups


def test_what_was_right_becomes_likelier(start, begun, monkeypatch):
    half_right(monkeypatch)
    groups, (model, optimizer, seen) = kept_groups(monkeypatch), begun
    start.reinforce(model, optimizer, RIGHT, seen)
    (group,) = groups
    with torch.no_grad():
        gain = (token_log_probs(model(group.inputs), group.labels) - group.log_probs).sum(1)
    right = group.right.flatten()
    assert gain[right].mean() > 0 > gain[~right].mean()
    assert seen["reward"] == seen["right"] == [0.5] and seen["idle"] == [0]
    assert seen["entropy"] == [group.entropy] and seen["length"] == [group.valid_lens.float().mean().item()]


@pytest.mark.parametrize("verdict", [False, True])
def test_where_all_are_judged_alike_nothing_is_learned(start, begun, monkeypatch, verdict):
    monkeypatch.setattr(answers, "are_right", lambda *_: torch.full((12, 6), verdict))
    groups, (model, optimizer, seen) = kept_groups(monkeypatch), begun
    before = weights(model)
    flops = start.reinforce(model, optimizer, RIGHT, seen)
    assert torch.equal(weights(model), before) and seen["idle"] == [1] and seen["right"] == [float(verdict)]
    assert flops == answers.drawing_flops(model.config, groups[0])


def some_right(monkeypatch):
    """Of the first four groups one answer is called right, of the others none."""
    told = torch.zeros(12, 6, dtype=torch.bool)
    told[:4, 2] = True
    monkeypatch.setattr(answers, "are_right", lambda *_: told)


def test_what_has_no_advantage_is_left_out_and_changes_nothing(start, begun, monkeypatch):
    """With a price of next to nothing all answers go through the passes: the step is the same."""
    some_right(monkeypatch)
    model, optimizer, seen = begun
    other = copy.deepcopy(model)
    cost = start.reinforce(model, optimizer, RIGHT, seen)
    torch.manual_seed(1)
    slow = start.reinforce(
        other, torch.optim.SGD(other.parameters(), lr=0.1), replace(RIGHT, beta=1e-12), {n: [] for n in SEEN}
    )
    moved = weights(model) - weights(start.model)
    assert moved.abs().max() > 1e-4 and seen["idle"] == [pytest.approx(8 / 12)]
    torch.testing.assert_close(weights(other) - weights(start.model), moved, rtol=1e-3, atol=1e-7)
    assert cost < slow


@pytest.mark.parametrize("reuse", [1, 3])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_what_a_step_costs(start, begun, monkeypatch, beta, reuse):
    some_right(monkeypatch)
    groups, (model, optimizer, seen) = kept_groups(monkeypatch), begun
    monkeypatch.setattr(start, "config", replace(CONFIG, reuse=reuse))
    flops = start.reinforce(model, optimizer, replace(RIGHT, beta=beta), seen)
    rows = torch.arange(72) < (72 if beta else 24)
    once = answers.learning_flops(model.config, groups[0], rows)
    reference = once / 3 if beta else 0  # one pass forward
    assert flops == pytest.approx(answers.drawing_flops(model.config, groups[0]) + reference + reuse * once)


def test_a_price_keeps_it_near_the_start(start, monkeypatch):
    half_right(monkeypatch)
    moved = []
    for beta in (0.0, 10.0):
        model = copy.deepcopy(start.model)
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(20):
            start.reinforce(model, optimizer, replace(RIGHT, beta=beta), {n: [] for n in SEEN})
        group = answers.draw_group(start.model, start.sums, "answer", start.tests, 4)
        with torch.no_grad():  # KL(start || model), by the estimate that is never below 0
            ratio = (token_log_probs(model(group.inputs), group.labels) - group.log_probs).sum(1)
            moved.append((ratio.exp() - 1 - ratio).mean().item())
    assert moved[0] > 3 * moved[1] > 0


def test_a_coin_looks_at_no_answer(start, begun):
    model, optimizer, seen = begun
    for _ in range(6):
        start.reinforce(model, optimizer, COIN, seen)
    assert 0.4 < sum(seen["reward"]) / 6 < 0.6 and sum(seen["right"]) / 6 < 0.3


def test_every_way_begins_at_the_start_and_gets_as_many_flops(start):
    before = weights(start.model)
    _, rewarded = start.learn(RIGHT)
    model, shown = start.learn(Contestant("c"), rewarded["flops"])
    assert torch.equal(weights(start.model), before) and not torch.equal(weights(model), before)
    first = start.measure(start.model)
    for record in (rewarded, shown):
        tests = record["tests"]
        assert {name: values[0] for name, values in tests.items()} == {"step": 0, "flops": 0, **first}
        assert tests["step"] == sorted(set(tests["step"])) and tests["step"][-1] == record["steps"]
        assert tests["flops"] == sorted(tests["flops"]) and tests["flops"][-1] == record["flops"]
    each = shown["flops"] / shown["steps"]
    assert shown["flops"] == pytest.approx(rewarded["flops"], abs=each)
    assert each == pytest.approx(start.flops / start.steps) and shown["seen"] == {}
    assert rewarded["steps"] == CONFIG.steps and all(len(rewarded["seen"][name]) == CONFIG.steps for name in SEEN)
    assert start.learn(replace(RIGHT, part=0.5))[1]["steps"] == CONFIG.steps // 2


def test_measuring_draws_no_global_random_numbers(start):
    torch.manual_seed(3)
    want = torch.rand(2)
    torch.manual_seed(3)
    start.measure(start.model)
    assert torch.equal(torch.rand(2), want)
    one, other = (start.draw(start.model, start.tests, 2, seed=seed).inputs for seed in (1, 2))
    assert one.shape != other.shape or not torch.equal(one, other)


@pytest.mark.train
def test_rewards_teach_sums():
    """More of what is drawn is right after some steps of rewards, and less after as many coins: by a tenth each."""
    config = verifiable.PRESETS["cpu"]
    start = Start(config, config.starts[0], 1)
    before = start.measure(start.model)["right"]  # of the greedy texts it depends on how a processor rounds
    after = {way.reward: start.learn(way)[1]["tests"]["right"][-1] for way in (RIGHT, COIN)}
    assert after["right"] > before + 0.05 and after["coin"] < before - 0.03
