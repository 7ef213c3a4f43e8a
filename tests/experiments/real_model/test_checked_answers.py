"""Groups of answers against a forward pass without cache, a loop that counts FLOPs, and all choices of k samples."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from d2lmini.experiments.abilities import chain_of_thought
from d2lmini.experiments.abilities.addition import CHARACTERS, text_of
from d2lmini.experiments.real_model import checked_answers as answers
from d2lmini.objectives import IGNORE_INDEX, token_log_probs

CONFIG = replace(chain_of_thought.PRESETS["smoke"], digits=1, summands=(3,), longer=())
SUMS = chain_of_thought.sums_of(CONFIG)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return chain_of_thought.Adder(CONFIG)


@pytest.mark.parametrize("form", ["answer", "steps"])
def test_a_group_by_a_pass_without_cache(model, form):
    summands = SUMS.draw(5, 3, seeded())
    group = answers.draw_group(model, SUMS, form, summands, 7, generator=seeded())
    counted = group.labels != IGNORE_INDEX
    assert group.inputs.shape == group.labels.shape and group.right.shape == group.valid_lens.shape == (5, 7)
    with torch.no_grad():
        torch.testing.assert_close(token_log_probs(model(group.inputs), group.labels), group.log_probs)
    assert torch.equal(counted.sum(1), group.valid_lens.flatten())
    assert len(set(group.valid_lens.flatten().tolist())) > 1  # answers of several lengths
    for row, (inputs, labels) in enumerate(zip(group.inputs, group.labels, strict=True)):
        question = text_of(inputs[: group.prompt].tolist())
        assert question == "+".join(map(str, summands[row // 7].tolist())) + "="
        answer = labels[labels != IGNORE_INDEX]
        assert torch.equal(answer[:-1], inputs[group.prompt :][: len(answer) - 1])  # each is read after it is written


def tokens_of(text, length=16):
    return [CHARACTERS.index(c) for c in text.ljust(length, ".")]


def test_right_is_what_ends_with_the_sum():
    texts = ["51.", "15.", "70,51.", "51,70.", "51", "510.", "5,1."]  # 15 is written 51
    tokens = torch.tensor([[tokens_of(text) for text in texts]])
    tokens[0, 4, 2:] = 0  # it never ends
    assert answers.are_right(SUMS, torch.tensor([[4, 3, 8]]), tokens).tolist() == [[1, 0, 1, 0, 0, 0, 0]]


def test_entropy_of_a_model_that_guesses(model):
    """All of V tokens are as likely: an answer of n tokens has -log p = n log V."""
    blank = chain_of_thought.Adder(CONFIG)
    torch.nn.init.zeros_(blank.dense.weight)
    group = answers.draw_group(blank, SUMS, "answer", SUMS.draw(4, 3, seeded()), 6, generator=seeded())
    want = group.valid_lens.double().mean().item() * math.log(len(CHARACTERS))
    assert group.entropy == pytest.approx(want, rel=1e-5)


def test_flops_by_a_loop_over_tokens(model):
    group = answers.draw_group(model, SUMS, "answer", SUMS.draw(3, 3, seeded()), 4, generator=seeded())
    matrices = [p for p in model.blks.parameters() if p.dim() > 1] + [model.dense.weight]

    def token(place):  # scores with itself and what stands before, and a sum of as many values
        return sum(2 * p.numel() for p in matrices) + CONFIG.num_blks * 4 * (place + 1) * CONFIG.num_hiddens

    drawing = learning = 0
    for lengths in group.valid_lens.tolist():
        drawing += sum(token(place) for place in range(group.prompt - 1))  # once for all of the group
        for n in lengths:
            read = group.prompt - 1 + n  # the end is not read
            drawing += sum(token(place) for place in range(group.prompt - 1, read))
            learning += 3 * sum(token(place) for place in range(read))
    assert answers.drawing_flops(model.config, group) == pytest.approx(drawing)
    every = torch.ones(12, dtype=torch.bool)
    assert answers.learning_flops(model.config, group, every) == pytest.approx(learning)
    some = answers.learning_flops(model.config, group, torch.arange(12) < 5)
    assert some + answers.learning_flops(model.config, group, torch.arange(12) >= 5) == pytest.approx(learning)
    assert answers.forward_flops(model.config, 0) == 0


def test_no_question_of_the_tests_is_drawn():
    every = torch.cartesian_prod(*[torch.arange(10)] * 2)
    held_out = every[torch.randperm(100, generator=seeded())[:90]]
    torch.manual_seed(0)
    drawn = set(map(tuple, answers.draw_questions(SUMS, 2, 400, held_out).tolist()))
    assert drawn == set(map(tuple, every.tolist())) - set(map(tuple, held_out.tolist()))


def test_chances_by_all_choices():
    right = torch.tensor([[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], dtype=torch.bool)
    found = answers.chances(right, (1, 2, 5))
    for k, chance, error in zip(*found.values(), strict=True):
        each = [
            sum(any(row[i] for i in some) for some in itertools.combinations(range(5), k)) / math.comb(5, k)
            for row in right.tolist()
        ]
        mean = sum(each) / 3
        assert chance == pytest.approx(mean)
        assert error == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in each) / 2 / 3))
