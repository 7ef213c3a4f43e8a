"""Part a of own-18.1, "The best of n": `expected_best`."""

import itertools
import math
from fractions import Fraction

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


def expected_best(rewards, values, n):
    """What the best of n answers is worth, as estimated from m of them.

    Args:
        rewards: (B, m), what the judge gives to m answers to each of B questions. The best is the one with the largest;
            among equals one is drawn by lot.
        values: (B, m), what the same answers are truly worth; this is what is counted.
        n: from 1 to m.

    Returns:
        (B,), the mean of the chosen answer's value over all choices of n among the m.
    """
    ### BEGIN SOLUTION
    m = rewards.shape[1]
    # all n are among the k worst in C(k, n) of C(m, n) choices
    among = torch.tensor([math.comb(k, n) / math.comb(m, n) for k in range(m + 1)], device=rewards.device)
    worse = (rewards[:, None, :] < rewards[:, :, None]).sum(dim=2)  # (B, m): how many are worse than each
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(dim=2)  # and with its equals, itself among them
    chance = (among[upto] - among[worse]) / (upto - worse)
    return (chance * values).sum(dim=1)
    ### END SOLUTION


def by_the_package(rewards, values, n):
    return d2l.expected_best_of(rewards, values, n).to(values.dtype)


def sorted_by_reward(rewards, values, n):
    m, results = rewards.shape[1], []
    weights = [math.comb(i, n - 1) / math.comb(m, n) for i in range(m)]  # i are worse, n - 1 of which are drawn
    for reward, value in zip(rewards.tolist(), values.tolist(), strict=True):
        groups = {}
        for r, v in zip(reward, value, strict=True):
            groups.setdefault(r, []).append(v)
        total, place = 0.0, 0
        for _, equals in sorted(groups.items()):
            total += sum(weights[place : place + len(equals)]) * sum(equals) / len(equals)
            place += len(equals)
        results.append(total)
    return torch.tensor(results, dtype=values.dtype, device=values.device)


# mistakes


def first_n_alone(rewards, values, n):
    best = rewards[:, :n].argmax(1, keepdim=True)
    return values.gather(1, best)[:, 0]


def in_groups(rewards, values, n):
    """m // n groups, each with a best."""
    groups = rewards.shape[1] // n
    r, v = (x[:, : groups * n].reshape(len(x), groups, n) for x in (rewards, values))
    return v.gather(2, r.argmax(2, keepdim=True))[..., 0].mean(1)


def in_windows(rewards, values, n):
    """All n that stand side by side."""
    r, v = rewards.unfold(1, n, 1), values.unfold(1, n, 1)
    return v.gather(2, r.argmax(2, keepdim=True))[..., 0].mean(1)


def by_chance(rewards, values, n):
    kept = []
    for _ in range(100):
        drawn = torch.randperm(rewards.shape[1])[:n]
        kept.append(values[:, drawn].gather(1, rewards[:, drawn].argmax(1, keepdim=True))[:, 0])
    return torch.stack(kept).mean(0)


def largest_value(rewards, values, n):
    return expected_best(values, values, n)


def mean_of_the_top(rewards, values, n):
    return values.gather(1, rewards.topk(n, dim=1).indices).mean(1)


def with_replacement(rewards, values, n):
    m = rewards.shape[1]
    worse = (rewards[:, None, :] < rewards[:, :, None]).sum(2)
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(2)
    return (((upto / m) ** n - (worse / m) ** n) / (upto - worse) * values).sum(1)


def in_order(rewards, values, n):
    """Of equals the last always wins."""
    m = rewards.shape[1]
    order = rewards.sort(dim=1, stable=True).indices
    weights = torch.tensor([math.comb(i, n - 1) / math.comb(m, n) for i in range(m)])
    return (values.gather(1, order) * weights).sum(1)


def the_first_of_equals(rewards, values, n):
    return in_order(rewards.flip(1), values.flip(1), n)


def ties_win_twice(rewards, values, n):
    """Each of the equals gets what all of them have together."""
    m = rewards.shape[1]
    among = torch.tensor([math.comb(k, n) / math.comb(m, n) for k in range(m + 1)])
    worse = (rewards[:, None, :] < rewards[:, :, None]).sum(2)
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(2)
    return ((among[upto] - among[worse]) * values).sum(1)


def off_by_one(rewards, values, n):
    """Rank among those with it, of which it is itself one."""
    m = rewards.shape[1]
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(2).tolist()
    weights = [[math.comb(k, n - 1) / math.comb(m, n) for k in row] for row in upto]
    return (torch.tensor(weights) * values).sum(1)


def with_factorials(rewards, values, n):
    m = torch.tensor(float(rewards.shape[1]))

    def choices(k):
        factorial = torch.exp(torch.lgamma(k + 1))
        return (
            factorial / torch.exp(torch.lgamma(k - n + 1)) / torch.exp(torch.lgamma(torch.tensor(n + 1.0))) * (k >= n)
        )

    worse = (rewards[:, None, :] < rewards[:, :, None]).sum(2).float()
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(2).float()
    return ((choices(upto) - choices(worse)) / choices(m) / (upto - worse) * values).sum(1)


def with_gamma(rewards, values, n):
    def choices(k, n):
        return math.gamma(k + 1) / math.gamma(n + 1) / math.gamma(k - n + 1)

    choices(rewards.shape[1], n)
    return expected_best(rewards, values, n)


def _chosen(rewards, values, n):
    """The mean over all choices, one after the other, exact."""
    results = []
    for reward, value in zip(rewards.tolist(), values.tolist(), strict=True):
        total, choices = Fraction(0), 0
        for places in itertools.combinations(range(len(reward)), n):
            top = max(reward[i] for i in places)
            best = [Fraction(value[i]) for i in places if reward[i] == top]
            total, choices = total + sum(best) / len(best), choices + 1
        results.append(float(total / choices))
    return torch.tensor(results, dtype=torch.float64)


def _of_many(rewards, values, n):
    """The same where all rewards differ, and the choices are too many to be gone through."""
    m, results = rewards.shape[1], []
    for reward, value in zip(rewards.tolist(), values.tolist(), strict=True):
        total, below = Fraction(0), Fraction(0)
        for k, i in enumerate(sorted(range(m), key=reward.__getitem__), start=1):
            upto = math.prod((Fraction(k - j, m - j) for j in range(n)), start=Fraction(1)) if k >= n else Fraction(0)
            total, below = total + (upto - below) * Fraction(value[i]), upto
        results.append(float(total))
    return torch.tensor(results, dtype=torch.float64)


def verify_expected(t, answer):
    n = t.random.randint(2, 3)
    m = t.random.randint(2 * n + 1, 8)
    B = t.random.choice([size for size in (4, 5, 6) if size != m])
    for name, drawn in (
        ("the best of n", n),
        ("the best of 1", 1),
        ("the best of all m", m),
    ):
        rewards, values = t.randn(B, m, scale=1e-3), t.randn(B, m)  # near each other, and not equal
        rewards[0] = rewards[0].sort().values  # the best is not among the first
        want = _chosen(rewards, values, drawn)
        got, again = t.call(answer, rewards, values, drawn), t.call(answer, rewards, values, drawn)
        tensors = isinstance(got, torch.Tensor) and isinstance(again, torch.Tensor) and got.shape == again.shape
        message = "a second call gives another result: do not draw choices by chance, take the mean over all of them"
        t.that(not tensors or torch.equal(got.nan_to_num(), again.nan_to_num()), "random", message)
        t.same(got, want, name)
    rewards, values = t.integers(0, 3, B, m).float(), t.randn(B, m)
    rewards[0, :3] = 2  # at least three equals at the top
    for drawn, name in ((n, "the best of n where rewards are equal"), (m, "the best of all m where rewards are equal")):
        t.same(t.call(answer, rewards, values, drawn), _chosen(rewards, values, drawn), name)
    many, n = t.random.randint(200, 300), t.random.randint(30, 50)
    rewards, values = t.rand(B, many).argsort(1).argsort(1).float(), t.randn(B, many)
    want = _of_many(rewards, values, n)
    t.same(t.call(answer, rewards, values, n), want, "the best of some dozens of n among hundreds")


EQUAL = "among equals one is drawn by lot: here "


MUTANTS = [
    Mutant("first-n", first_n_alone, "only the first n answers are looked at: use all m"),
    Mutant("groups", in_groups, "the answers are cut into groups of n: that has no bias, but is one of many ways to "
        "cut; take the mean over all choices"),
    Mutant("windows", in_windows, "only neighbours are drawn together: any n of the m are a choice"),
    Mutant("random", by_chance),
    Mutant("with-replacement", with_replacement, "n are drawn with replacement, so that one answer may be among them "
        "twice: the best of n different ones is better, and this is biased"),
    Mutant("best-of-m", ("math.comb(k, n) / math.comb(m, n)", "float(k == m)"), "this is the best of all m: of n < m "
        "less can be expected"),
    Mutant("rewards-counted", ("(chance * values)", "(chance * rewards)"), "this is the expected *reward*: the judge "
        "chooses, but the value of what it has chosen counts"),
    Mutant("chosen-by-value", largest_value, "the best is chosen by its value: nobody knows that when choosing, the "
        "judge's reward decides"),
    Mutant("top-n", mean_of_the_top, "this is the mean of the n best of all: of n that were drawn one is kept"),
    Mutant("worst", ("(rewards[:, None, :] < rewards[:, :, None]).sum(dim=2)  # (B, m): how many are worse than each\n"
        "    upto = (rewards[:, None, :] <= rewards[:, :, None])", "(rewards[:, None, :] > rewards[:, :, "
        "None]).sum(dim=2)\n    upto = (rewards[:, None, :] >= rewards[:, :, None])"), "this is the worst of n"),
    Mutant("last-of-equals", in_order, EQUAL + "the last one always wins"),
    Mutant("first-of-equals", the_first_of_equals, EQUAL + "the first one always wins"),
    Mutant("equals-each", ties_win_twice, "each of several equals gets the probability of all of them: they share it"),
    Mutant("off-by-one", off_by_one, "the answer is counted among those that it beats: the other n - 1 are worse than "
        "it"),
    Mutant("n-1-of-k", ("math.comb(k, n) / math.comb(m, n)", "math.comb(k, n - 1) / math.comb(m, n)"), "C(k, n - 1) "
        "are the choices of the *others* from k worse ones: it is the chance of one answer and not a sum up to it. "
        "Take no differences, or C(k, n)"),
    Mutant("equals-each", ("(among[upto] - among[worse]) / (upto - worse)", "among[upto] - among[upto - 1]"), "each of "
        "several equals gets the chance of the highest rank among them: they share what all of them have"),
    Mutant("cumulative", ("(among[upto] - among[worse]) / (upto - worse)", "among[upto]"),
        "these are the probabilities that the best is this answer *or a worse one*: take differences"),
    Mutant("nonfinite", with_factorials),
    Mutant("raised", with_gamma),
    Mutant("shape", (".sum(dim=1)\n", ".sum(dim=1).mean()\n")),  # one mean
]  # fmt: skip


PART = Code(
    key="own-18.1a",
    prompt="You have drawn m answers to each question and want to know what the best of n would be worth, for "
    "several n up to m. The first n alone would waste the others. Write `expected_best(rewards, values, n)`: "
    "the mean over *all* choices of n among the m. As each choice is n independent draws, it has no bias. "
    "It must hold for hundreds of answers, where nobody can go through the choices.",
    hints=[
        "Think of one question and sort its answers by their rewards. With which probability is the largest "
        "reward of a choice that of the k-th worst, or less?",
        "All n are among the k worst in C(k, n) of C(m, n) choices: `math.comb`. Python's integers never "
        "overflow, and their ratio is a good float.",
        "So answer k is the best with probability [C(k, n) - C(k - 1, n)] / C(m, n). That is the weight of its value.",
        "Equals share what they have together: from those worse than them, up to the last of them.",
    ],
    answer=expected_best,
    verify=verify_expected,
    alternatives=[by_the_package, sorted_by_reward],
    min_checks=10,
    advice={
        "nonfinite": "Factorials of hundreds are beyond any float: `math.comb` counts in integers.",
        "raised": "If it is an OverflowError: factorials of hundreds are beyond any float. `math.comb` counts in "
        "integers.",
        "timeout": "There are more choices than can be gone through: count in how many of them an answer is the best.",
        "values": "By hand: of three answers with the rewards 1, 2, 3 choose two. Three choices: in two of them the "
        "last one wins, in one the second. Do your chances of the three say so? With n = 1 all are alike, with n = m "
        "the best has all; equals share.",
    },
    mutants=MUTANTS,
    explanation=r"""
For a given choice of n the best is a function of n independent draws, so its mean over draws is what we want, and the
mean over all choices keeps that: no bias. It has far less variance than the first n alone. (Estimators of this form are
called U-statistics; pass@k of code generation is the case in which values and rewards are 0 or 1.)

`with_replacement`, $(k/m)^n - ((k-1)/m)^n$, is the common short cut. It is the best of n for a model that has only
these m answers, and biased. Ties matter as soon as a judge gives marks and not real numbers.
""",
)
