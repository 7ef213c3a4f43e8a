"""Self-consistency: draw several answers to one question, and let them vote."""

import math
from collections import Counter
from dataclasses import dataclass
from statistics import mean, stdev

from ..arguments import check_integer


@dataclass(frozen=True)
class Vote:
    """What answers to one question came to.

    ``tally`` counts each answer, the commonest first; ``abstained`` counts those that could not be read. ``tied`` are
    the answers with the most votes: one, several, or none where all abstained.
    """

    tally: dict
    abstained: int

    @property
    def tied(self):
        """Answers with the most votes, in the order in which they came up."""
        most = max(self.tally.values(), default=0)
        return tuple(answer for answer, votes in self.tally.items() if votes == most)

    @property
    def answer(self):
        """The winner; of several the one that came up first; None where all abstained."""
        return self.tied[0] if self.tally else None

    @property
    def agreement(self):
        """Share of all samples, those that abstained among them, that gave the winner: 0 to 1."""
        return max(self.tally.values(), default=0) / (sum(self.tally.values()) + self.abstained)

    def chance(self, right):
        """Probability that ``right`` wins where a tie is decided by lot: 0 to 1."""
        return 1 / len(self.tied) if right in self.tied else 0.0


def majority_vote(answers):
    """Counts answers to one question.

    Args:
        answers: anything hashable, such as numbers; None is an answer that could not be read, and does not count.

    Returns:
        A `Vote`.

    Raises:
        ValueError: there is no answer at all, or one is NaN, which equals not even itself.

    Source: Wang et al. 2023, "Self-consistency improves chain of thought reasoning in language models".
    """
    answers = list(answers)
    if not answers:
        raise ValueError("there are no answers: expected at least one, or None for one that could not be read")
    if any(answer != answer for answer in answers):
        raise ValueError("an answer is NaN, which equals nothing: pass None for an answer that could not be read")
    cast = [answer for answer in answers if answer is not None]
    return Vote(dict(Counter(cast).most_common()), len(answers) - len(cast))


def vote_accuracy(answers, right, num_votes=1):
    """How often a vote of n samples is right, from m >= n samples of each question.

    The samples of a question are cut into groups of n, each of which votes; what is left over is not used. A tie is
    decided by lot: right among r winners counts 1 / r. So the estimate has no bias, and n = 1 is the accuracy of one
    sample.

    Args:
        answers: for each question its samples, m of each; None: could not be read.
        right: the right answer of each question.
        num_votes: n.

    Returns:
        dict of ``accuracy``, its standard ``error`` over the questions (None: there is but one), ``abstained``, the
        share of samples that could not be read, and ``ties``, the share of votes with several winners.

    Raises:
        ValueError: there are no questions, not as many right answers, ``num_votes`` is out of range, or an answer is
            refused by `majority_vote`.
    """
    answers, right = [list(row) for row in answers], list(right)
    if not answers or len(answers) != len(right):
        raise ValueError(
            f"there are samples of {len(answers)} questions and {len(right)} right answers: expected one each"
        )
    fewest = min(map(len, answers))
    check_integer("num_votes", num_votes, 1, fewest, why=", the samples that each question has")
    votes = [
        [majority_vote(row[i : i + num_votes]) for i in range(0, len(row) - num_votes + 1, num_votes)]
        for row in answers
    ]
    each = [mean(vote.chance(truth) for vote in row) for row, truth in zip(votes, right, strict=True)]
    cast = [answer for row in answers for answer in row]
    return {
        "accuracy": mean(each),
        "error": stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None,
        "abstained": cast.count(None) / len(cast),
        "ties": mean(len(vote.tied) > 1 for row in votes for vote in row),
    }
