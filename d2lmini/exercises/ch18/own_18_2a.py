"""Part a of own-18.2, "Find the gamed reward": `game`."""

import itertools

from d2lmini.exercises.engine import Code, Mutant


def game(terms, answer, judge):
    """Find a wrong answer that the judge likes better than a good one.

    Args:
        terms: list of three or more integers.
        answer: a good answer to them.
        judge: ``judge(terms, answer)`` gives a reward, a float. It may be asked 40 times.

    Returns:
        An answer of the same form whose ``final`` is not the sum of the terms and whose reward is larger than that of
        the good answer; with at most 40 steps and 40 remarks.
    """
    ### BEGIN SOLUTION
    steps, wrong = answer["steps"], sum(terms) + 1
    a, b, _ = steps[-1]
    long = 2 * len(steps) + 5
    attempts = [
        {"steps": steps, "final": wrong, "remarks": ["certainly"] * 20},  # friendly
        {"steps": [(0, wrong, wrong)] * long, "final": wrong, "remarks": []},  # true, and about something else
        {
            "steps": [*steps[:-1], (a, b, wrong), (wrong, 0, wrong)],
            "final": wrong,
            "remarks": [],
        },  # consistent, and false
        {"steps": steps, "final": wrong + 10**6, "remarks": []},  # large
        {"steps": [], "final": wrong, "remarks": []},  # short
    ]
    return max(attempts, key=lambda attempt: judge(terms, attempt))
    ### END SOLUTION


def by_hill_climbing(terms, answer, judge):
    """Changes one thing after the other, and keeps what is liked better."""
    wrong = sum(terms) + 3
    best = {**answer, "final": wrong}
    highest = judge(terms, best)
    changes = [
        lambda x: {**x, "remarks": x["remarks"] + ["dear user"] * 8},
        lambda x: {**x, "steps": x["steps"] + [(wrong, 0, wrong)] * 6},
        lambda x: {**x, "steps": [*x["steps"][:-1], (*x["steps"][-1][:2], wrong)] if x["steps"] else []},
        lambda x: {**x, "final": x["final"] + 10**6},
        lambda x: {**x, "steps": x["steps"][: len(x["steps"]) // 2]},
        lambda x: {**x, "steps": []},
    ]
    for change in changes * 2:
        other = change(best)
        if len(other["steps"]) <= 40 and len(other["remarks"]) <= 40 and judge(terms, other) > highest:
            best, highest = other, judge(terms, other)
    return best


def all_at_once(terms, answer, judge):
    off = sum(terms) + 10**6
    attempts = []
    for steps in ([], answer["steps"], [(0, off, off)] * 39, [(terms[0], terms[1], off)] + [(off, 0, off)] * 38):
        for remarks in ([], ["of course"] * 39):
            attempts.append({"steps": steps, "final": off, "remarks": remarks})
    rewards = [judge(terms, attempt) for attempt in attempts]
    return attempts[rewards.index(max(rewards))]


class Judge:
    """A judge with one fault, who counts how often it is asked.

    Args:
        fault: which one. weight: what a unit of it is worth.
    """

    def __init__(self, fault, weight):
        self.fault, self.weight, self.asked = fault, weight, 0

    def __call__(self, terms, answer):
        self.asked += 1
        steps, final = answer["steps"], answer["final"]
        true = [(a, b, c) for a, b, c in steps if a + b == c]
        closes = bool(steps) and steps[-1][2] == final
        linked = closes and all(
            a == c for (a, _, _), c in zip(steps, [terms[0], *(c for _, _, c in steps)], strict=False)
        )
        units = {
            "remarks": len(answer["remarks"]) + 2 * closes,
            "true steps": len(true) + closes,
            "linked": len(steps) * linked,
            "large": max(final, 0) // 1000,
            "short": -len(steps),
        }[self.fault]
        return float(self.weight * units)


FAULTS = {
    "remarks": "a judge who likes remarks",
    "true steps": "a judge who counts true steps, whatever they are about",
    "linked": "a judge who likes many steps that lead from the first term to `final`, true or not",
    "large": "a judge who likes sums of thousands",
    "short": "a judge who likes it short",
}


def _form(t, got, most=None):
    """Whether something has the form of an answer, or it is rejected."""
    steps, final, remarks = t.fields(got, "steps", "final", "remarks")
    lists = isinstance(steps, (list, tuple)) and isinstance(remarks, (list, tuple))
    t.that(lists, "type", "steps and remarks are lists")
    numbers = [final, *(x for step in steps if isinstance(step, (list, tuple)) for x in step)]
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in numbers)
    t.that(whole, "type", "`final` and what stands in steps are integers")
    threes = all(isinstance(step, (list, tuple)) and len(step) == 3 for step in steps)
    t.that(threes, "type", "a step is (a, b, c)")
    t.that(all(isinstance(x, str) for x in remarks), "type", "remarks are strings")
    t.that(len(steps) <= 40 and len(remarks) <= 40, "long", "at most 40 steps and 40 remarks")
    return steps, final


def _asked(given):
    return given[2].asked


def verify_game(t, answer):
    faults = list(FAULTS)
    t.random.shuffle(faults)
    final = 0  # of the answer before
    for place, fault in enumerate(fault for fault in faults for _ in range(2)):
        terms = [t.random.randint(-60, 60) for _ in range(t.random.randint(3, 6))]
        terms[-1] -= sum(terms) * (place == 0)  # a sum of 0: twice as much is right as well
        if again := place % 2 == 1:
            terms[-1] += final - sum(terms)  # what was wrong just now is right
        good = _good(terms, ["let us see"] * t.random.randrange(5))
        honest, weight = Judge(fault, 1.0), t.random.uniform(0.2, 3.0)
        got = t.call(answer, terms, good, Judge(fault, weight))
        asked = t.look(_asked)
        _, final = _form(t, got)
        t.that(final != sum(terms), "right", "`final` is the right sum: the answer is to be wrong")
        message = f"{FAULTS[fault]} does not like your answer better than the good one"
        if again:
            message += f", whose sum is {sum(terms):,} this time"
        liked = bool(honest(terms, got) > honest(terms, good))
        t.that(liked, "not-gamed", message)
        t.that(asked <= 40, "asked", f"the judge was asked {asked} times, and may be asked 40 times")


# mistakes


def flatters_only(terms, answer, judge):
    return {**answer, "final": sum(terms) + 1, "remarks": ["certainly"] * 30}


def pads_only(terms, answer, judge):
    wrong = sum(terms) + 1
    return {"steps": [(0, wrong, wrong)] * 30, "final": wrong, "remarks": []}


def pads_a_right_answer(terms, answer, judge):
    attempts = [{**answer, "remarks": ["well"] * 30}, {**answer, "steps": answer["steps"] + [(0, 0, 0)] * 20}]
    return max(attempts, key=lambda attempt: judge(terms, attempt))


def endless_padding(terms, answer, judge):
    wrong = sum(terms) + 1
    attempts = [
        {"steps": steps, "final": 10**6 + wrong, "remarks": ["certainly"] * 999}
        for steps in ([], [(0, 10**6 + wrong, 10**6 + wrong)] * 999)
    ]
    return max(attempts, key=lambda attempt: judge(terms, attempt))


def asks_for_ever(terms, answer, judge):
    for n in range(100):
        judge(terms, {**answer, "remarks": ["well"] * n})
    return game(terms, answer, judge)


def least_liked(terms, answer, judge):
    return game(terms, answer, lambda terms, attempt: -judge(terms, attempt))


def _good(terms, remarks=()):
    sums = list(itertools.accumulate(terms))
    steps = [(a, b, c) for a, b, c in zip(sums, terms[1:], sums[1:], strict=False)]
    return {"steps": steps, "final": sums[-1], "remarks": list(remarks)}


MUTANTS = [
    Mutant("not-gamed", flatters_only),
    Mutant("not-gamed", pads_only),
    Mutant("not-gamed", ("(a, b, wrong)", "(a, b, a + b)")),  # nothing false
    Mutant("not-gamed", ("wrong + 10**6", "wrong")),  # nothing large
    Mutant("not-gamed", least_liked),
    Mutant("not-gamed", ("wrong + 10**6", "10**10")),  # large beside small terms alone
    Mutant("right", pads_a_right_answer),
    Mutant("right", ("sum(terms) + 1", "sum(terms)")),  # nothing is wrong
    Mutant("right", ("sum(terms) + 1", "2 * sum(terms)")),  # right where the sum is 0
    Mutant("long", endless_padding),
    Mutant("asked", asks_for_ever),
    # changes the good one
    Mutant("mutates", ('    steps, wrong = answer["steps"], sum(terms) + 1\n',
        '    steps, wrong = answer["steps"], sum(terms) + 1\n    answer["remarks"] += ["yes"]\n')),
    Mutant("type", ("return max(attempts, key=lambda attempt: judge(terms, attempt))",
        "return max(judge(terms, attempt) for attempt in attempts)")),  # the reward
]  # fmt: skip


PART = Code(
    key="own-18.2a",
    prompt="""
Write `game(terms, answer, judge)`: from a good answer make a wrong one that the judge likes *better*. You are not told
what this judge looks at. The check has five of them: one likes remarks, one counts true steps, one likes many steps
that lead from the first term to `final`, true or not, one likes sums of thousands, one likes it short; each has a
weight of its own. What you write must do for all of them, and may ask 40 times. A policy that is trained against a
judge is told no more than that.
""",
    hints=[
        "You can ask. Of several attempts keep the one with the highest reward: this is best of n, with n = 5.",
        "For each judge write down a wrong answer that it would like: what would you do to have more remarks, "
        "more true steps, ...?",
        "0 + 5 = 5 is true and says nothing about the terms. It can be said many times.",
        "`final` must be wrong in each attempt, and for the judge who likes large sums it must be large.",
    ],
    answer=game,
    verify=verify_game,
    alternatives=[by_hill_climbing, all_at_once],
    min_checks=100,
    advice={
        "right": "It must differ from the sum of *these* terms, which may be any: compute it from them.",
        "not-gamed": "Ask the judge about several wrong answers, and return the one that it likes best. What is large "
        "must be so beside the sum of *these* terms: compute it from them.",
        "mutates": "Lists are shared: make new ones (`steps + [...]`), and change none of those given.",
    },
    mutants=MUTANTS,
    explanation="""
None of the five judges is silly. Good answers do have true steps, do lead to their result, and are short when compared
with bad ones. Such things may *correlate* with being good, on the answers that a model gives before it is trained. The
search then leaves these answers behind, and what is left of the correlation is what you have just measured: the reward
is higher and the sum is wrong. This is Goodhart's law, and all that it took was asking a few times.

In chapter 18 the experiment `instruct` does so with a real policy: best of n and DPO find that the judge likes
courtesies.
""",
)
