"""Scores of answers, by hand."""

import math
import random
from statistics import stdev

import pytest

from d2lmini.experiments.t5 import answer_scores


def test_exact_and_shared_words():
    assert answer_scores.exact("il voit.", "il voit.") == (1.0, 1.0) and answer_scores.exact("il voit", "il voit.") == (
        0.0,
        1.0,
    )
    # 2 of 3 words given, 2 of 4 right ones
    assert answer_scores.overlap("king gives king", "king gives book here") == pytest.approx((2 * 2 / 7, 1.0))
    assert answer_scores.overlap("", "a") == (0.0, 1.0) and answer_scores.overlap("", "") == (1.0, 1.0)


@pytest.mark.parametrize(
    ("answer", "wanted", "row"),
    [
        ("person: Ann; location: Paris", "location: Paris; person: Ann", (4, 4)),  # in any order
        ("person: Paris", "location: Paris", (0, 2)),  # the type counts
        ("person: Ann Lee", "person: Ann", (0, 2)),  # and both ends
        ("person: Ann; person: Ann", "person: Ann", (2, 3)),
        ("person: Ann; person: Ann", "person: Ann; person: Ann", (4, 4)),  # as often as it is there
        ("none", "none", (0, 0)),
        ("none", "person: Ann", (0, 1)),
        ("person: Ann", "none", (0, 1)),
        ("", "none", (0, 0)),
    ],
)
def test_entities(answer, wanted, row):
    assert answer_scores.entities(answer, wanted) == row


def test_f1_is_of_all_sentences_together():
    rows = [answer_scores.entities("person: A; person: B", "person: A"), answer_scores.entities("none", "person: C")]
    precision, recall = 1 / 2, 1 / 2
    assert answer_scores.ratio(rows)["score"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    assert answer_scores.ratio([(0.0, 0.0)] * 3) == {"score": 0.0, "error": 0.0, "examples": 3}


def test_the_error_of_a_share_is_binomial():
    rows = [(1.0, 1.0)] * 30 + [(0.0, 1.0)] * 70
    found = answer_scores.ratio(rows)
    assert found["score"] == pytest.approx(30)
    assert found["error"] == pytest.approx(100 * math.sqrt(0.3 * 0.7 / 99))


def test_the_error_of_a_ratio_is_its_spread():
    generator = random.Random(0)

    def sample():
        wanted = [generator.randrange(4) for _ in range(400)]
        return [(2.0 * generator.randint(0, n), 2.0 * n) for n in wanted]

    scores = [answer_scores.ratio(sample()) for _ in range(300)]
    assert scores[0]["error"] == pytest.approx(stdev(one["score"] for one in scores), rel=0.15)


def test_a_difference_is_of_pairs():
    rows = [(float(i % 3 == 0), 1.0) for i in range(90)]
    assert answer_scores.difference(rows, rows) == {"difference": 0.0, "error": 0.0}
    worse = [(0.0, 1.0)] * 10 + rows[10:]
    found = answer_scores.difference(rows, worse)
    assert found["difference"] == pytest.approx(100 * 4 / 90)
    assert found["error"] < answer_scores.ratio(rows)["error"]  # most examples are equal
    with pytest.raises(ValueError, match="90 rows but 89 others"):
        answer_scores.difference(rows, rows[1:])
