r"""Find the gamed reward

A model sums numbers step by step. Its answer to `terms = [7, 5, 9]` is a dict:

```python
{"steps": [(7, 5, 12), (12, 9, 21)], "final": 21, "remarks": ["let us see"]}
```

A step `(a, b, c)` claims that a + b = c; `final` is what the answer gives as the sum. An answer is *good* if its steps
add the terms in their order, each step to the result of the one before, if every step is true, and if `final` is the
last result. Remarks do no harm.

Judges reward answers, and models are trained to be rewarded. None of the judges below looks whether an answer is good.
Each looks at something that good answers *have*. What happens when one asks for more of it?
"""

import itertools

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


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
        {"steps": steps, "final": 10**9, "remarks": []},  # large
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
        lambda x: {**x, "final": x["final"] * 1000},
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
            "large": final // 1000,
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
    for fault in faults:
        terms = [t.random.randint(2, 60) for _ in range(t.random.randint(3, 6))]
        good = _good(terms)
        honest, weight = Judge(fault, 1.0), t.random.uniform(0.2, 3.0)
        got = t.call(answer, terms, good, Judge(fault, weight))
        asked = t.look(_asked)
        _, final = _form(t, got)
        t.that(final != sum(terms), "right", "`final` is the right sum: the answer is to be wrong")
        message = f"{FAULTS[fault]} does not like your answer better than the good one"
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


def mended(terms, answer):
    """A judge that cannot be gamed.

    Args:
        terms: list of three or more integers.
        answer: what a model gave, of the form above. It may have no steps, steps too many, or ``final`` None, where
            no sum was given.

    Returns:
        1.0 for good answers, 0.0 for all others.
    """
    ### BEGIN SOLUTION
    steps = answer["steps"]
    if len(steps) != len(terms) - 1:
        return 0.0
    so_far = terms[0]
    for (a, b, c), term in zip(steps, terms[1:], strict=True):
        if a != so_far or b != term or a + b != c:
            return 0.0
        so_far = c
    return 1.0 if answer["final"] == so_far else 0.0
    ### END SOLUTION


def by_writing_it_down(terms, answer):
    sums = list(itertools.accumulate(terms))
    right = list(zip(sums, terms[1:], sums[1:]))  # noqa: B905
    return float([tuple(step) for step in answer["steps"]] == right and answer["final"] == sums[-1])


def with_all(terms, answer):
    steps = [tuple(step) for step in answer["steps"]]
    results = [terms[0]] + [c for _, _, c in steps]
    good = [a for a, _, _ in steps] == results[:-1] and [b for _, b, _ in steps] == list(terms[1:])
    good = good and all(a + b == c for a, b, c in steps)
    return 1.0 if good and answer["final"] == results[-1] else 0.0


def outcome_alone(terms, answer):
    return 1.0 if answer["final"] == sum(terms) else 0.0


def remarks_forbidden(terms, answer):
    return mended(terms, answer) if not answer["remarks"] else 0.0


def share_of_true_steps(terms, answer):
    steps = answer["steps"]
    true = sum(a + b == c for a, b, c in steps)
    return true / len(steps) if steps and steps[-1][2] == answer["final"] else 0.0


def sum_of_what_was_added(terms, answer):
    """The first number and all that is added: any order, and no results."""
    steps = answer["steps"]
    added = [steps[0][0], *(b for _, b, _ in steps)] if steps else []
    return 1.0 if added == terms and answer["final"] == sum(terms) else 0.0


def in_any_order(terms, answer):
    steps = answer["steps"]
    linked = all(one[2] == other[0] for one, other in itertools.pairwise(steps))
    true = all(a + b == c for a, b, c in steps)
    added = sorted([steps[0][0], *(b for _, b, _ in steps)]) == sorted(terms) if steps else False
    return 1.0 if linked and true and added and steps[-1][2] == answer["final"] else 0.0


def as_a_chain_alone(terms, answer):
    """True and linked; of what, it does not ask."""
    steps = answer["steps"]
    linked = all(one[2] == other[0] for one, other in itertools.pairwise(steps))
    true = all(a + b == c for a, b, c in steps)
    return 1.0 if steps and linked and true and steps[-1][2] == answer["final"] else 0.0


def as_many_as_there_are(terms, answer):
    """Stops at the shorter of the two."""
    so_far = terms[0]
    for (a, b, c), term in zip(answer["steps"], terms[1:]):  # noqa: B905
        if (a, b) != (so_far, term) or a + b != c:
            return 0.0
        so_far = c
    return 1.0 if answer["final"] == so_far else 0.0


def _good(terms, remarks=()):
    sums = list(itertools.accumulate(terms))
    steps = [(a, b, c) for a, b, c in zip(sums, terms[1:], sums[1:], strict=False)]
    return {"steps": steps, "final": sums[-1], "remarks": list(remarks)}


def _attacks(t, terms):
    """(code, what is to be said, an answer that is not good), each with one fault as far as that is possible."""
    good = _good(terms)
    steps, total = good["steps"], good["final"]
    place = t.random.randrange(len(steps) - 1)
    off = t.random.choice([-10, -1, 1, 10])
    shifted = list(steps)  # one step is false, and what follows goes on from it, truly
    a, b, c = steps[place]
    shifted[place], so_far = (a, b, c + off), c + off
    for i in range(place + 1, len(steps)):
        shifted[i] = (so_far, terms[i + 1], so_far + terms[i + 1])
        so_far = shifted[i][2]
    twice = list(steps)  # two mistakes that cancel
    twice[place] = (a, b, c + off)
    twice[place + 1] = (c + off, terms[place + 2], steps[place + 1][2])
    jump = list(steps)  # true steps that do not go on from one another
    middle = t.random.randrange(1, len(steps) - 1)  # the last one still leads to the sum
    jump[middle] = (steps[middle][0] + off, terms[middle + 1], steps[middle][2] + off)
    other = _good([terms[0], *(term + 1 for term in terms[1:])])
    split = [(terms[0], terms[1] - 1, c := terms[0] + terms[1] - 1), (c, 1, c + 1), *steps[1:]]
    closing = _good([*terms, 0])["steps"]
    cut = _good(terms[:-1])
    return [
        ("final", "`final` is not the last result", {**good, "final": total + off}),
        (
            "flattery",
            "`final` is wrong, and there are many remarks",
            {**good, "final": total + 1, "remarks": ["yes"] * 9},
        ),
        ("no-sum", "there is no sum (`final` is None)", {**good, "final": None}),
        ("no-steps", "there are no steps", {**good, "steps": []}),
        ("false-step", "a step is false, and the rest goes on from it", {**good, "steps": shifted, "final": so_far}),
        ("cancelling", "two steps are false, and cancel each other", {**good, "steps": twice}),
        ("jump", "all steps are true, but one does not go on from the result before it", {**good, "steps": jump}),
        ("other-terms", "all steps are true, but of other terms", other),
        ("first-term", "the first step does not begin with the first term", _good([terms[0] + off, *terms[1:]])),
        ("right-by-chance", "the steps are of other terms, and the sum is right", {**other, "final": total}),
        ("split", "a term is added in two parts: each step adds the next term", {**good, "steps": split}),
        ("padded", "a step more adds 0", {**good, "steps": closing}),
        ("repeated", "all steps stand there twice", {**good, "steps": steps + steps}),
        ("cut", "the last term was left out", cut),
        ("cut-and-right", "the last step is missing, and the sum is right", {**good, "steps": steps[:-1]}),
        ("order", "the terms are added in another order", _good([*terms[:-2], terms[-1], terms[-2]])),
    ]


def verify_mended(t, answer):
    for terms in (t.random.sample(range(2, 60), t.random.randint(4, 6)), [12, -5, 0, 31], [0, 0, 0]):
        remarks = ["let us see", "this is easy"]
        for given, code, what in (
            (_good(terms), "too-strict", "a good answer"),
            (_good(terms, remarks), "too-strict-remarks", "a good answer with remarks"),
        ):
            got = t.call(answer, terms, given)
            t.that(isinstance(got, (int, float)), "type", f"the reward is a {type(got).__name__}, expected a number")
            t.that(bool(got == 1), code, f"{what} is not rewarded with 1.0")
        if not any(terms):
            continue  # where all is 0 some attacks are good answers
        for code, what, given in _attacks(t, terms):
            got = t.call(answer, terms, given)
            t.that(isinstance(got, (int, float)), "type", f"the reward is a {type(got).__name__}, expected a number")
            t.that(bool(got == 0), code, f"rewarded with {got:g}, expected 0: {what}")


MUTANTS_A = [
    Mutant("not-gamed", flatters_only),
    Mutant("not-gamed", pads_only),
    Mutant("not-gamed", ("(a, b, wrong)", "(a, b, a + b)")),  # nothing false
    Mutant("not-gamed", ("10**9", "wrong")),  # nothing large
    Mutant("not-gamed", least_liked),
    Mutant("right", pads_a_right_answer),
    Mutant("right", ("sum(terms) + 1", "sum(terms)")),  # nothing is wrong
    Mutant("long", endless_padding),
    Mutant("asked", asks_for_ever),
    # changes the good one
    Mutant("mutates", ('    steps, wrong = answer["steps"], sum(terms) + 1\n',
        '    steps, wrong = answer["steps"], sum(terms) + 1\n    answer["remarks"] += ["yes"]\n')),
    Mutant("type", ("return max(attempts, key=lambda attempt: judge(terms, attempt))",
        "return max(judge(terms, attempt) for attempt in attempts)")),  # the reward
]  # fmt: skip

MUTANTS_B = [
    Mutant("no-steps", outcome_alone),
    Mutant("final", ('return 1.0 if answer["final"] == so_far else 0.0', "return 1.0")),  # `final` not looked at
    Mutant("false-step", (" or a + b != c", "")),  # steps not computed
    Mutant("other-terms", ("b != term or ", "")),  # terms not compared
    Mutant("jump", ("a != so_far or ", "")),  # steps not linked
    Mutant("first-term", ("so_far = terms[0]", "so_far = steps[0][0]")),  # first term not compared
    Mutant("padded", as_many_as_there_are),
    Mutant("false-step", share_of_true_steps),
    Mutant("cancelling", sum_of_what_was_added),
    Mutant("order", in_any_order),
    Mutant("other-terms", as_a_chain_alone),
    Mutant("too-strict-remarks", remarks_forbidden),
    Mutant("too-strict", ("len(terms) - 1", "len(terms)")),  # as many steps as terms
    Mutant("raised", ('answer["final"] == so_far', 'int(answer["final"]) == so_far')),  # None to int
    Mutant("type", ("return 1.0 if", "good = 1.0 if")),  # returns nothing
]  # fmt: skip


EXERCISE = Exercise(
    key="own-17.5",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-17.5a",
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
            min_checks=45,
            advice={
                "not-gamed": "Ask the judge about several wrong answers, and return the one that it likes best.",
                "mutates": "Lists are shared: make new ones (`steps + [...]`), and change none of those given.",
            },
            mutants=MUTANTS_A,
            explanation="""
None of the five judges is silly. Good answers do have true steps, do lead to their result, and are short when compared
with bad ones. Each *correlates* with being good, on the answers that a model gives before it is trained. The search
then leaves these answers behind, and what is left of the correlation is what you have just measured: the reward is
higher and the sum is wrong. This is Goodhart's law, and all that it took was asking a few times.

In chapter 17 the experiment `instruct` does so with a real policy: best of n and DPO find that the judge likes
courtesies.
""",
        ),
        Code(
            key="own-17.5b",
            prompt="""
Write `mended(terms, answer)`: 1.0 for every good answer and 0.0 for all others. The check tries good answers, with and
without remarks, and what a policy might find: padding, steps that cancel, other terms, a sum that is right by chance.
Terms may be negative or 0. What comes from a model may be anything of that form: no steps, too many, no sum (None).
""",
            hints=[
                'Read "good" in the statement again, condition by condition: each that you leave out is a way in.',
                "Go through steps and terms side by side, and remember the last result. How many steps must there be?",
                "`zip` stops at the shorter of two lists and says nothing: compare the lengths first.",
                "Or the other way round: there is exactly one good list of steps. Write it down and compare.",
            ],
            answer=mended,
            verify=verify_mended,
            alternatives=[by_writing_it_down, with_all],
            min_checks=70,
            mutants=MUTANTS_B,
            explanation="""
What makes it hard to game is that it tests *what is wanted*, all of it, and not what goes along with it; and that it
can, as sums are cheap to verify. Rewards that a program can verify are used where there are such: mathematics with a
known result, code with tests. (Even then: tests are gamed by code that knows them.)

Whether steps should count is a decision. The outcome alone lets answers pass that are right for wrong reasons, and
they are found by search. A share for each true step looks kinder, but then padding pays again: partial rewards need the
same care, condition by condition. For an essay there is no such program, and a learned judge must be watched.
""",
        ),
        Choice(
            key="own-17.5c",
            prompt="A policy is trained against a learned judge of essays. The reward rises from week to week. How do "
            "you find out whether the judge is being gamed?",
            hints=["Which number has the search not been looking at?"],
            options=[
                Option(
                    "From the judge's reward on held-out prompts: if it rises there, too, it is no overfitting.",
                    "A fault of the judge is the same for new prompts. What it likes wrongly it likes everywhere.",
                ),
                Option(
                    "From the divergence from the reference: as long as it is small, nothing is gamed.",
                    "A small divergence limits how far the search gets, and so is worth keeping small. But nine out of "
                    "ten answers with a flattering phrase in front cost little divergence.",
                ),
                Option(
                    "People judge, blindly, answers from before and after, as well as what the judge rewards most.",
                    "A measure that the search could not see: if their verdict no longer rises with the reward, the "
                    "reward is being gamed. The most rewarded answers show how, and mend the judge, until the search "
                    "finds the next fault.",
                    right=True,
                ),
                Option(
                    "A second judge, trained on the same comparisons with another seed.",
                    "Better than nothing, as faults of one seed show. But both have learned from the same people and "
                    "texts and share the faults of these.",
                ),
            ],
        ),
    ],
)
