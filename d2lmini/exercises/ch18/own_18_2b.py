"""Part b of own-18.2, "Find the gamed reward": `mended`."""

import itertools

from d2lmini.exercises.ch18.own_18_2a import _good
from d2lmini.exercises.engine import Code, Mutant


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
    linked = all(step[2] == following[0] for step, following in itertools.pairwise(steps))
    true = all(a + b == c for a, b, c in steps)
    added = sorted([steps[0][0], *(b for _, b, _ in steps)]) == sorted(terms) if steps else False
    return 1.0 if linked and true and added and steps[-1][2] == answer["final"] else 0.0


def as_a_chain_alone(terms, answer):
    """True and linked; of what, it does not ask."""
    steps = answer["steps"]
    linked = all(step[2] == following[0] for step, following in itertools.pairwise(steps))
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


def stops_early(terms, answer):
    """Where the sum is right before the last term, the steps may end there."""
    steps = answer["steps"]
    right = mended(terms[: len(steps) + 1], answer) if steps or answer["final"] == terms[0] else 0.0
    return right if answer["final"] == sum(terms) else 0.0


def _attacks(t, terms, sign):
    """(code, what is to be said, an answer that is not good), each with one fault as far as that is possible."""
    good = _good(terms)
    steps, total = good["steps"], good["final"]
    place = t.random.randrange(len(steps) - 1)
    off = sign * t.random.choice([1, 10])
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
    x, y, z = steps[middle]
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
        ("opposite", "`final` has the wrong sign", {**good, "final": -total}),
        ("no-sum", "there is no sum (`final` is None)", {**good, "final": None}),
        ("no-steps", "there are no steps", {**good, "steps": []}),
        ("false-step", "a step is false, and the rest goes on from it", {**good, "steps": shifted, "final": so_far}),
        ("cancelling", "two steps are false, and cancel each other", {**good, "steps": twice}),
        ("jump", "all steps are true, but one does not go on from the result before it", {**good, "steps": jump}),
        ("other-terms", "all steps are true, but of other terms", other),
        (
            "not-the-term",
            "all results are right, but one step names another number than the term",
            {**good, "steps": [*steps[:middle], (x, y + off, z), *steps[middle + 1 :]]},
        ),
        (
            "other-beginning",
            "all results are right, but one step begins with another number than the result before it",
            {**good, "steps": [*steps[:-1], (steps[-1][0] + 9 * off, *steps[-1][1:])]},
        ),
        ("first-term", "the first step does not begin with the first term", _good([terms[0] + off, *terms[1:]])),
        ("right-by-chance", "the steps are of other terms, and the sum is right", {**other, "final": total}),
        ("split", "a term is added in two parts: each step adds the next term", {**good, "steps": split}),
        ("padded", "a step more adds 0", {**good, "steps": closing}),
        ("padded-first", "a step before the others adds to 0", {**good, "steps": [(0, terms[0], terms[0]), *steps]}),
        ("repeated", "all steps stand there twice", {**good, "steps": steps + steps}),
        ("cut", "the last term was left out", cut),
        ("cut-and-right", "the last step is missing, and the sum is right", {**good, "steps": steps[:-1]}),
        ("order", "the terms are added in another order", _good([*terms[:-2], terms[-1], terms[-2]])),
        (
            "turned",
            "the first step begins with the second term",
            {**good, "steps": [(terms[1], terms[0], steps[0][2]), *steps[1:]]},
        ),
    ]


def verify_mended(t, answer):
    drawn = t.random.sample(range(2, 60), t.random.randint(4, 6))
    for sign, terms in ((1, drawn), (-1, [12, -5, 0, 31]), (1, [3, 5, 9, 0]), (1, [0, 0, 0])):
        remarks = ["let us see", "this is easy"]
        for given, code, what in (
            (_good(terms), "too-strict", "a good answer"),
            (_good(terms, remarks), "too-strict-remarks", "a good answer with remarks"),
        ):
            got = t.call(answer, terms, given)
            t.that(isinstance(got, (int, float)), "type", f"the reward is a {type(got).__name__}, expected a number")
            t.that(bool(got == 1), code, f"{what} is not rewarded with 1.0")
        if not any(terms):  # some attacks are good answers here
            got = t.call(answer, terms, {"steps": [], "final": 0, "remarks": []})
            t.that(bool(got == 0), "no-steps", "rewarded, expected 0: there are no steps")
            continue
        for code, what, given in _attacks(t, terms, sign):
            got = t.call(answer, terms, given)
            t.that(isinstance(got, (int, float)), "type", f"the reward is a {type(got).__name__}, expected a number")
            t.that(bool(got == 0), code, f"rewarded with {got:g}, expected 0: {what}")


MUTANTS = [
    Mutant("no-steps", outcome_alone),
    Mutant("final", ('return 1.0 if answer["final"] == so_far else 0.0', "return 1.0")),  # `final` not looked at
    Mutant("false-step", (" or a + b != c", "")),  # steps not computed
    Mutant("other-terms", ("b != term or ", "")),  # terms not compared
    Mutant("jump", ("a != so_far or ", "")),  # steps not linked
    Mutant("first-term", ("so_far = terms[0]", "so_far = steps[0][0]")),  # first term not compared
    Mutant("padded", as_many_as_there_are),
    Mutant("opposite", ('answer["final"] == so_far', 'abs(answer["final"] or 0) == abs(so_far)')),
    Mutant("turned", ("a != so_far or b != term", "{a, b} != {so_far, term}")),
    Mutant("not-the-term", ("a != so_far or b != term or a + b != c", "a != so_far or c != so_far + term")),
    # the last steps alone
    Mutant("padded-first", ("    if len(steps) != len(terms) - 1:\n", "    steps = steps[1 - len(terms) :]\n"
        "    if len(steps) != len(terms) - 1:\n")),
    Mutant("false-step", ("a + b != c", "a + b > c")),  # too large is let through
    Mutant("false-step", share_of_true_steps),
    Mutant("cancelling", sum_of_what_was_added),
    Mutant("cut", stops_early),
    Mutant("order", in_any_order),
    Mutant("other-terms", as_a_chain_alone),
    Mutant("too-strict-remarks", remarks_forbidden),
    Mutant("too-strict", ("len(terms) - 1", "len(terms)")),  # as many steps as terms
    Mutant("raised", ('answer["final"] == so_far', 'int(answer["final"]) == so_far')),  # None to int
    Mutant("type", ("return 1.0 if", "good = 1.0 if")),  # returns nothing
]  # fmt: skip


PART = Code(
    key="own-18.2b",
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
    min_checks=91,
    advice={
        "raised": "If an index is out of range, or None is computed with: there may be no steps, or too many, and "
        "`final` may be None. Compare before you compute.",
        "type": "Return 1.0 or 0.0 on every way through the function.",
        "too-strict": "Which of your conditions does this answer not meet? Print each of them for it.",
    },
    mutants=MUTANTS,
    explanation="""
What makes it hard to game is that it tests *what is wanted*, all of it, and not what goes along with it; and that it
can, as sums are cheap to verify. Rewards that a program can verify are used where there are such: mathematics with a
known result, code with tests. (Even then: tests are gamed by code that knows them.)

Whether steps should count is a decision. The outcome alone lets answers pass that are right for wrong reasons, and
they are found by search. A share for each true step looks kinder, but then padding pays again: partial rewards need the
same care, condition by condition. For an essay there is no such program, and a learned judge must be watched.
""",
)
