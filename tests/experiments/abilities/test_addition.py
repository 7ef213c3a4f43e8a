"""Sums as text: what is written reads back and adds up, an example by hand, and what is learned of it."""

from itertools import pairwise

import pytest
import torch

from d2lmini.experiments.abilities import addition
from d2lmini.experiments.abilities.addition import CHARACTERS, COMMA, END, FILLER, FORMS, Sums, adds_up, text_of
from d2lmini.objectives.masking import IGNORE_INDEX

SUMS = Sums(2, 6)
EXAMPLE = torch.tensor([[17, 85, 60, 44]])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def tokens_of(text):
    return [CHARACTERS.index(c) for c in text]


def test_the_example_of_the_module_by_hand():
    assert SUMS.width == 3
    assert text_of(SUMS.questions(EXAMPLE)[0].tolist()) == "17+85+60+44="
    for form, text, given in (("answer", "602.", 0), ("steps", "201,261,602.", 0), ("filler", "________602.", 8)):
        response, found = SUMS.responses(EXAMPLE, form)
        assert (text_of(response[0].tolist()), found) == (text, given)
        assert SUMS.length(form, 4) == len("17+85+60+44=") + len(text)
        assert text in addition.__doc__  # what the module shows is what it writes
    assert text_of([COMMA, END, FILLER]) == ",._"


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_every_chain_adds_up(digits):
    sums = Sums(digits, 7)
    for num in range(2, 8):
        summands = sums.draw(200, num, seeded(num))
        low, high = summands.min().item(), summands.max().item()
        assert len(str(low)) == len(str(high)) == digits  # all as long; of one digit 0, too
        for form in FORMS:
            response, _ = sums.responses(summands, form)
            for row, tokens in zip(summands.tolist(), response.tolist(), strict=True):
                running = [sum(row[: i + 1]) for i in range(1, num)]
                assert sums.read(tokens) == (running if form == "steps" else running[-1:])
                if form == "steps":
                    assert adds_up(row, sums.read(tokens)) == [True] * (num - 1)
    assert sums.draw(500, 2, seeded()).min() == (0 if digits == 1 else 10 ** (digits - 1))


def test_the_largest_sum_has_room():
    for digits, longest in ((1, 2), (1, 12), (2, 11), (3, 1000)):
        sums = Sums(digits, longest)
        most = torch.full((1, longest), 10**digits - 1)
        assert sums.read(sums.responses(most, "steps")[0][0].tolist())[-1] == longest * (10**digits - 1)


def test_wrong_steps_are_of_others_and_the_answer_stays():
    summands = SUMS.draw(2_000, 5, seeded())
    response, _ = SUMS.responses(summands, "steps", 0.5, seeded(1))
    chains = [SUMS.read(tokens) for tokens in response.tolist()]
    assert all(chain[-1] == sum(row) for row, chain in zip(summands.tolist(), chains, strict=True))
    whole = [all(adds_up(row, chain)) for row, chain in zip(summands.tolist(), chains, strict=True)]
    assert sum(whole) / len(whole) == pytest.approx(0.5, abs=0.04)
    for chain, right in zip(chains, whole, strict=True):
        if not right:  # a true chain of another question, up to its answer
            assert all(10 <= b - a <= 99 for a, b in pairwise(chain[:-1]))
    # of two summands there is no step before the answer that could be wrong
    two = SUMS.draw(50, 2, seeded())
    assert torch.equal(SUMS.responses(two, "steps", 1.0, seeded())[0], SUMS.responses(two, "steps")[0])


@pytest.mark.parametrize("form", FORMS)
def test_only_what_is_written_is_learned(form):
    torch.manual_seed(0)
    X, Y = SUMS.batch(40, (2, 3, 5), form)
    assert X.shape == Y.shape == (40, SUMS.length(form, 5) - 1)
    for inputs, labels in zip(X.tolist(), Y.tolist(), strict=True):
        learned = [place for place, label in enumerate(labels) if label != IGNORE_INDEX]
        assert learned == list(range(learned[0], learned[-1] + 1)) and labels[learned[-1]] == END
        assert all(labels[i] == inputs[i + 1] for i in learned[:-1])  # the labels are what follows
        question = text_of(inputs).split("=")[0]
        summands = list(map(int, question.split("+")))
        written = [labels[i] for i in learned]
        chain = SUMS.read(written)
        assert chain[-1] == sum(summands) and FILLER not in written
        # it begins behind the question, and behind the fillers
        given = 4 * (len(summands) - 2) if form == "filler" else 0
        assert learned[0] == len(question) + given and inputs[learned[0]] == (FILLER if given else tokens_of("=")[0])
        assert len(chain) == (len(summands) - 1 if form == "steps" else 1)
    assert {row.count(CHARACTERS.index("+")) for row in X.tolist()} == {1, 2, 4}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("602.", [206]),
        ("201,261,602.", [102, 162, 206]),
        ("____602.", [206]),  # a model that writes fillers has said nothing by them
        ("602.999", [206]),  # behind the end is nothing
        ("602", None),  # never ends
        ("", None),
        (".", None),
        ("60.", None),  # too short, too long, no number
        ("6020.", None),
        ("60+.", None),
        ("201,,602.", None),
        ("201=602.", None),
    ],
)
def test_responses_are_read_or_none(text, numbers):
    assert SUMS.read(tokens_of(text)) == numbers


def test_adding_up_is_asked_of_each_step():
    assert adds_up([17, 85, 60, 44], [102, 162, 206]) == [True, True, True]
    assert adds_up([17, 85, 60, 44], [103, 163, 207]) == [False, True, True]  # a wrong one, and added rightly to it
    assert adds_up([17, 85], [102, 102]) == [True, False]  # no summand is left
    assert adds_up([17, 85], []) == []


def test_bad_input():
    for digits, longest in ((0, 3), (2, 1)):
        with pytest.raises(ValueError, match=f"there are {longest} summands of {digits} digits, expected 2 of 1"):
            Sums(digits, longest)
