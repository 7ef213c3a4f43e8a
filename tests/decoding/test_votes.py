"""Votes over samples: counted by hand and by hypothesis, ties by lot, and how often a vote is right by brute force."""

import itertools
import math
import random
from collections import Counter
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2lmini.decoding import Vote, majority_vote, vote_accuracy

ANSWERS = st.lists(st.sampled_from([3, 5, 8, None]), min_size=1, max_size=9)


def test_a_vote_by_hand():
    vote = majority_vote([7, None, 5, 7, 5, 9])
    assert vote == Vote({7: 2, 5: 2, 9: 1}, 1) and list(vote.tally) == [7, 5, 9]
    assert vote.tied == (7, 5) and vote.answer == 7  # which came up first
    assert vote.agreement == 2 / 6
    assert [vote.chance(answer) for answer in (7, 5, 9, 4, None)] == [0.5, 0.5, 0, 0, 0]
    assert majority_vote([5, 7, 7]).answer == 7 and majority_vote(iter([5])).agreement == 1


def test_where_all_abstain():
    vote = majority_vote([None, None])
    assert vote.tally == {} and vote.abstained == 2 and vote.tied == ()
    assert vote.answer is None and vote.agreement == 0
    assert vote.chance(5) == vote.chance(None) == 0  # no answer is never the right one


@given(ANSWERS)
def test_a_vote_by_brute_force(answers):
    vote, cast = majority_vote(answers), [answer for answer in answers if answer is not None]
    assert vote.tally == Counter(cast) and sum(vote.tally.values()) + vote.abstained == len(answers)
    best = max((cast.count(answer) for answer in cast), default=0)
    winners = {answer for answer in cast if cast.count(answer) == best}
    assert set(vote.tied) == winners and len(vote.tied) == len(winners)
    assert vote.answer == next((answer for answer in cast if answer in winners), None)
    assert vote.agreement == best / len(answers)
    assert sum(map(vote.chance, winners)) == pytest.approx(1 if winners else 0)


@given(st.lists(st.tuples(ANSWERS, st.sampled_from([3, 5])), min_size=1, max_size=5), st.integers(1, 9))
def test_accuracy_by_brute_force(questions, n):
    n = min(n, *(len(row) for row, _ in questions))
    each, ties, votes = [], 0, 0
    for row, right in questions:
        chances = []
        for group in zip(*[iter(row)] * n, strict=False):  # n by n, what is left over is not used
            counts = Counter(answer for answer in group if answer is not None)
            top = [answer for answer in counts if counts[answer] == max(counts.values())]
            chances.append(top.count(right) / max(len(top), 1))
            ties, votes = ties + (len(top) > 1), votes + 1
        each.append(sum(chances) / len(chances))
    found = vote_accuracy(*zip(*questions, strict=True), n)
    assert found["accuracy"] == pytest.approx(mean(each)) and found["ties"] == pytest.approx(ties / votes)
    if len(each) == 1:
        assert found["error"] is None
    else:
        assert found["error"] == pytest.approx(stdev(each) / math.sqrt(len(each)))
    every = [answer for row, _ in questions for answer in row]
    assert found["abstained"] == pytest.approx(sum(answer is None for answer in every) / len(every))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_estimate_has_no_bias(n):
    """Of samples drawn independently its mean is the probability that n of them vote rightly, a tie decided by lot."""
    shares, right = {3: 0.5, 5: 0.3, None: 0.2}, 5
    exact = sum(
        math.prod(shares[answer] for answer in group) * majority_vote(group).chance(right)
        for group in itertools.product(shares, repeat=n)
    )
    generator = random.Random(0)
    rows = [generator.choices(list(shares), list(shares.values()), k=7) for _ in range(4_000)]
    found = vote_accuracy(rows, [right] * len(rows), n)
    assert found["accuracy"] == pytest.approx(exact, abs=4 * found["error"])
    assert found["error"] < 0.01
    assert found["abstained"] == pytest.approx(0.2, abs=0.02)


def test_votes_help_where_right_is_commonest_and_hurt_where_wrong_is():
    generator = random.Random(1)
    for right, sign in ((3, 1), (5, -1)):
        rows = [generator.choices([3, 5], [0.7, 0.3], k=9) for _ in range(2_000)]
        one, nine = (vote_accuracy(rows, [right] * len(rows), n)["accuracy"] for n in (1, 9))
        assert sign * (nine - one) > 0.15


def test_bad_input():
    with pytest.raises(ValueError, match="there are no answers: expected at least one"):
        majority_vote([])
    with pytest.raises(ValueError, match="an answer is NaN, which equals nothing"):
        majority_vote([1.0, math.nan])
    with pytest.raises(ValueError, match="samples of 2 questions and 1 right answers: expected one each"):
        vote_accuracy([[1], [2]], [1])
    with pytest.raises(ValueError, match="samples of 0 questions"):
        vote_accuracy([], [])
    for n in (0, 3):
        with pytest.raises(ValueError, match=f"num_votes is {n}, expected an integer from 1 to 2, the samples"):
            vote_accuracy([[1, 2, 3], [1, 2]], [1, 1], n)
    with pytest.raises(ValueError, match="expected an integer from 1 to 0"):
        vote_accuracy([[]], [1])
