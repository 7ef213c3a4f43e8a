"""Votes of samples, and the right way to a sum."""

from itertools import accumulate

from d2lmini.decoding.votes import majority_vote

SAMPLES = [[90, 95], [91, 96], None, [90, 96], [90, 95], [91, 95], None, [80, 90, 95], [95], [94], [0]]


def cases():
    for n in (1, 2, 3, 4, len(SAMPLES)):
        yield _count(SAMPLES[:n])
    yield _count([None, None])
    for summands in ([70, 20, 5], [1, 2], [77, 58, 88, 57, 61, 40]):
        yield "rightSteps", [summands], list(accumulate(summands))[1:-1]


def _count(samples):
    answers = [numbers and numbers[-1] for numbers in samples]
    vote = majority_vote(answers)
    return (
        "count",
        [samples],
        {
            "ordered": [[answer, [k for k, other in enumerate(answers) if other == answer]] for answer in vote.tally],
            "abstained": [k for k, answer in enumerate(answers) if answer is None],
            "most": max(vote.tally.values(), default=0),
            "tied": list(vote.tied),
        },
    )
