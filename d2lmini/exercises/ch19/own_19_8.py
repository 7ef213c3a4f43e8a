r"""How many tokens a pass writes

A draft proposes n tokens, and the target reads them in one pass. Let each be accepted with the probability a,
independently of the others. The pass writes the accepted tokens up to the first rejection, and always one more: the
replacement, or, where all n are accepted, one from the target itself. How many are these on average?

$$\sum_{k=0}^{n-1} (k + 1)\, a^k (1 - a) + (n + 1)\, a^n \;=\; \frac{1 - a^{n+1}}{1 - a}
\qquad (0 \le a < 1)$$

For a = 1 it is n + 1.
"""

import math

import torch

from d2lmini.exercises.engine import Code, Exercise, Identity, Mutant


def both_sides(a, n):
    """The mean number of tokens a pass writes, computed in two ways that have nothing in common.

    Args:
        a: (m,), float64, probabilities from 0 to 1, both included.
        n: how many tokens are drafted, from 0.

    Returns:
        (left, right), each (m,): the sum over all cases on the left, and the closed form on the right, n + 1 for a = 1.
    """
    ### BEGIN SOLUTION
    k = torch.arange(n, device=a.device)  # so many are accepted, and then one is not
    left = ((k + 1) * a[:, None] ** k * (1 - a[:, None])).sum(dim=1) + (n + 1) * a**n
    below = torch.where(a < 1, 1 - a, torch.ones_like(a))  # not 0
    right = torch.where(a < 1, (1 - a ** (n + 1)) / below, torch.full_like(a, n + 1))
    return left, right
    ### END SOLUTION


def in_loops(a, n):
    left, right = torch.zeros_like(a), torch.empty_like(a)
    for k in range(n):
        left = left + (k + 1) * (1 - a) * a.pow(k)
    for i, one in enumerate(a.tolist()):
        right[i] = n + 1 if one == 1 else (1 - one ** (n + 1)) / (1 - one)
    return left + (n + 1) * a.pow(n), right


def one_way(a, n):
    """The sum of the probabilities that at least 1, 2, ... tokens are written, twice."""
    both = sum(a**k for k in range(n + 1))
    return both, both.clone()


def verify(t, answer):
    m = t.random.randrange(20, 30)
    inner = t.rand(m, low=0.05, high=0.95, dtype=torch.float64)
    inner[:3] = inner.new_tensor([0.9995, 0.99, 1e-9])
    ends = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64, device=t.device)
    for n, a, case in (
        (t.random.randrange(3, 9), inner, "probabilities inside of 0 and 1"),
        (1, inner, "one drafted token"),
        (50, inner, "many drafted tokens"),
        (4, ends, "the probabilities 0, 1/2 and 1"),
        (0, ends, "no drafted token"),
    ):
        want = []
        for one in a.tolist():  # all cases, one token after the other
            mean, so_far = 0.0, 1.0
            for k in range(n):
                mean += so_far * (1 - one) * (k + 1)
                so_far *= one
            want.append(mean + so_far * (n + 1))
        want = torch.tensor(want, dtype=torch.float64)
        left, right = t.unpack(t.call(answer, a, n), "left", "right")
        t.same(left, want, f"left, {case}")
        t.same(right, want, f"right, {case}")
        if n == 50:  # two computations of two dozen numbers are not rounded alike
            message = "both sides have the same last digits: is one of them computed, and returned twice?"
            t.that(not torch.equal(left, right), "one-way", message)


MUTANTS_A = [
    Mutant("one-way", one_way),
    Mutant("one-way", ("return left, right", "return right, right.clone()")),
    Mutant("accepted-alone", ("((k + 1) *", "(k *"), "the token that the target itself writes is not counted where one "
        "is rejected: k accepted ones and one more"),
    Mutant("last-alone", ("+ (n + 1) * a**n", "+ n * a**n"), "where all n are accepted, n + 1 are written"),
    Mutant("without-all", (" + (n + 1) * a**n", ""), "the case that all n are accepted is missing on the left"),
    Mutant("never-rejected", (" * (1 - a[:, None])).sum", ").sum"), "k tokens are accepted *and the next is rejected*: "
        "the factor 1 - a is missing"),
    Mutant("one-case-more", ("torch.arange(n, device", "torch.arange(n + 1, device"), "the sum on the left ends at "
        "n - 1: all n accepted is the last term, without a rejection"),
    Mutant("from-one", ("torch.arange(n, device=a.device)", "torch.arange(1, n + 1, device=a.device)"), "k starts at "
        "0: the first token may be rejected"),
    Mutant("power-n", ("(1 - a ** (n + 1))", "(1 - a**n)"), "the power on the right is n + 1"),
    Mutant("without-one", ("(1 - a ** (n + 1))", "(a - a ** (n + 1))"), "on the right the one token that is always "
        "written is missing"),
    Mutant("geometric", ("(1 - a ** (n + 1)) / below", "1 / below"), "this is the mean for a draft without an end: n "
        "is missing"),
    Mutant("upside-down", ("(1 - a ** (n + 1)) / below", "below / (1 - a ** (n + 1))"), "the fraction is upside down"),
    Mutant("n-at-one", ("torch.full_like(a, n + 1)", "torch.full_like(a, n)"), "for a = 1 all n are accepted, and one "
        "more is written"),
    Mutant("infinite", ("torch.full_like(a, n + 1)", "torch.ones_like(a)"), "for a = 1 the right side is n + 1"),
    Mutant("nonfinite", ("torch.where(a < 1, (1 - a ** (n + 1)) / below, torch.full_like(a, n + 1))",
        "(1 - a ** (n + 1)) / (1 - a)")),
    Mutant("linear", ("return left, right", "return left, 1 + n * a"), "1 + n a would be right if a rejection did not "
        "end the pass"),
]  # fmt: skip


def best_draft(a, cost, longest):
    """How many tokens to draft.

    Args:
        a: the probability to accept a token, from 0 to 1, both included.
        cost: what one token of the draft costs, where a pass of the target costs 1; above 0.
        longest: as many tokens may be drafted at most, from 0.

    Returns:
        (n, speed): the number of drafted tokens, from 0 to ``longest``, that writes most tokens for the cost, of equals
        the smallest; and how many tokens it writes for the cost of one pass of the target. A pass with n
        drafted tokens costs 1 + n times ``cost``.
    """
    ### BEGIN SOLUTION
    best, speed = 0, 1.0  # without a draft a pass writes one token
    for n in range(1, longest + 1):
        tokens = n + 1 if a == 1 else (1 - a ** (n + 1)) / (1 - a)
        if tokens / (1 + n * cost) > speed:
            best, speed = n, tokens / (1 + n * cost)
    return best, speed
    ### END SOLUTION


def with_a_list(a, cost, longest):
    speeds, tokens = [], 0.0
    for n in range(longest + 1):
        tokens += a**n
        speeds.append(tokens / (1 + n * cost))
    return speeds.index(max(speeds)), max(speeds)


def as_long_as_it_pays(a, cost, longest):
    n, tokens = 0, 1.0
    while n < longest and a ** (n + 1) / cost > tokens / (1 + n * cost):  # one more is better than the mean so far
        n += 1
        tokens = math.fsum(a**k for k in range(n + 1))
    return n, tokens / (1 + n * cost)


def verify_best(t, answer):
    chance = t.random.uniform
    for a, cost, longest, case in (
        (chance(0.62, 0.68), chance(0.09, 0.11), 12, "an ordinary draft"),
        (chance(0.85, 0.88), chance(0.03, 0.04), 24, "a good and cheap draft"),
        (chance(0.93, 0.95), chance(0.01, 0.02), 5, "a draft that may not be as long as would be best"),
        (chance(0.2, 0.3), chance(0.4, 0.5), 9, "a draft that costs more than it brings"),
        (1.0, chance(0.1, 0.2), 7, "a draft that is always accepted"),
        (1.0, 1.0, 7, "a draft that is always accepted and as expensive as the target"),
        (0.0, chance(0.1, 0.2), 7, "a draft that is never accepted"),
        (chance(0.5, 0.6), chance(0.1, 0.2), 0, "no draft allowed"),
    ):
        speeds = [math.fsum(a**k for k in range(n + 1)) / (1 + n * cost) for n in range(longest + 1)]
        best = max(range(longest + 1), key=lambda n: speeds[n])
        n, speed = t.unpack(t.call(answer, a, cost, longest), "n", "speed")
        t.that(type(n) is int, "type", f"n is a {type(n).__name__}, expected an integer")
        t.number(speed, speeds[best], f"the speed of {case}")  # first: two wrong answers seldom have the same
        t.number(n, best, f"n for {case}")


MUTANTS_B = [
    Mutant("longest", ("if tokens / (1 + n * cost) > speed:", "if tokens > speed:"), "the longest draft wins: divide "
        "the tokens by what the pass costs, 1 and n drafted tokens"),
    Mutant("at-least-one", ("best, speed = 0, 1.0", "best, speed = 1, (1 + a) / (1 + cost)"), "one token is drafted at "
        "least: none may be best"),
    Mutant("never-the-longest", ("range(1, longest + 1)", "range(1, longest)"), "the longest draft is not tried"),
    Mutant("beyond", ("range(1, longest + 1)", "range(1, longest + 2)"), "one token more than `longest` is drafted"),
    Mutant("draft-alone", ("if tokens / (1 + n * cost) > speed:\n            best, speed = n, tokens / (1 + n * cost)",
        "if tokens / (n * cost) > speed:\n            best, speed = n, tokens / (n * cost)"), "the pass of the target "
        "is not paid for: a pass costs 1 + n times `cost`"),
    Mutant("linear", ("n + 1 if a == 1 else (1 - a ** (n + 1)) / (1 - a)", "1 + n * a"), "1 + n a tokens would be "
        "written if a rejection did not end the pass"),
    Mutant("power", ("a ** (n + 1)", "a**n"), "n tokens are written for what n drafted ones cost: the power is n + 1 "
        "(or the draft is paid for n + 1 tokens: it makes n)"),
    Mutant("tokens", ("best, speed = n, tokens / (1 + n * cost)", "best, speed = n, tokens / (1 + n * cost)\n"
        "    speed = speed * (1 + best * cost)"), "these are tokens a pass: divide by what the pass costs"),
    Mutant("raised", ("n + 1 if a == 1 else ", "")),  # 0 / 0
    Mutant("latest", ("> speed:", ">= speed:"), "of equally good lengths it is the largest: take the smallest"),
    Mutant("first-rise", ("best, speed = n, tokens / (1 + n * cost)",
        "return n, tokens / (1 + n * cost)"), "it stops at the first length that is better than none: go on"),
    Mutant("time", ("return best, speed", "return best, 1 / speed"), "this is the cost of a token: its inverse is "
        "asked for"),
    Mutant("type", ("return best, speed", "return float(best), speed")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.8",
    doc=__doc__,
    source="own",
    parts=[
        Identity(
            key="own-19.8a",
            prompt="Prove it, and write `both_sides(a, n)`.",
            hints=[
                "For the proof: what is the probability that a pass writes *at least* k + 1 tokens?",
                "The mean of a number 1, 2, ... is the sum of the probabilities that it is at least 1, at least 2, ...",
                "In the code the sum of no terms is 0, and 0 to the power 0 is 1. For a = 1 the fraction is 0 / 0: "
                "choose n + 1 there with `torch.where`.",
            ],
            answer=both_sides,
            verify=verify,
            alternatives=[in_loops],
            mutants=MUTANTS_A,
            min_checks=16,
            advice={
                "nonfinite": "For a = 1 the fraction is 0 / 0: the value is n + 1 there.",
                "values": "Take n = 1: 1 with the probability 1 - a, 2 with a, so 1 + a. Both sides must give it. "
                "A small number added below makes the right side wrong for a = 1.",
            },
            explanation=r"""
Let K be the number of accepted tokens before the first rejection, at most n. A pass writes K + 1. The first k tokens
are all accepted with the probability $a^k$, so that $P(K \ge k) = a^k$ for $k = 0, \dots, n$, and it is 0 above n. The
mean of K + 1 is

$$\sum_{k=0}^{n} P(K + 1 \ge k + 1) = \sum_{k=0}^{n} a^k,$$

which is the geometric sum $(1 - a^{n+1}) / (1 - a)$, and n + 1 for a = 1. The left side of the equation is the same
mean, case by case: $P(K = k) = a^k (1 - a)$ for $k < n$ and $P(K = n) = a^n$.

That each token is accepted with the same a, independently, is a simplification (Leviathan et al. 2023 make it, too).
Real drafts need not be like that.
""",
        ),
        Code(
            key="own-19.8b",
            prompt="A draft costs something, too. Write `best_draft(a, cost, longest)`.",
            hints=[
                "For each n from 0 on: tokens a pass, from part a, over 1 + n times the cost.",
                "With n = 0 it is 1 token for a cost of 1. A draft must be better than that.",
                "For a = 1 the closed form is 0 / 0: use n + 1, or the sum of the powers.",
            ],
            answer=best_draft,
            verify=verify_best,
            alternatives=[with_a_list, as_long_as_it_pays],
            mutants=MUTANTS_B,
            min_checks=32,
            advice={
                "raised": "If it is a division by zero: for a = 1 the mean is n + 1.",
                "type": "n is an integer.",
                "values": "Print the speed for each n from 0 to `longest`.",
            },
            explanation=r"""
With n more the tokens tend to 1 / (1 - a), while the cost goes on growing: so for a < 1 there is a best length. For a =
0.65 and a draft of a tenth of the cost it is 3, and the speed about 1.8. A draft from the prompt's own words costs next
to nothing, and may be long.

The cost of the target's pass is taken as 1 whatever n is. That holds while reading the weights from memory takes the
time and the few additional products do not: with a large batch it ends.
""",
        ),
    ],
)
