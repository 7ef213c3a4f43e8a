r"""The best of n

Draw n answers from a model and keep the one that a judge rewards most. No weight is changed, and yet the answers get
better, by the judge's opinion. Two questions are worth an exact answer: what is to be expected of the best of n, and
how far have the answers moved from those of the model, the *reference*?
"""

import itertools
import math
from fractions import Fraction

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


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
    found = []
    for _ in range(100):
        drawn = torch.randperm(rewards.shape[1])[:n]
        found.append(values[:, drawn].gather(1, rewards[:, drawn].argmax(1, keepdim=True))[:, 0])
    return torch.stack(found).mean(0)


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

    def ways(k):
        factorial = torch.exp(torch.lgamma(k + 1))
        return (
            factorial / torch.exp(torch.lgamma(k - n + 1)) / torch.exp(torch.lgamma(torch.tensor(n + 1.0))) * (k >= n)
        )

    worse = (rewards[:, None, :] < rewards[:, :, None]).sum(2).float()
    upto = (rewards[:, None, :] <= rewards[:, :, None]).sum(2).float()
    return ((ways(upto) - ways(worse)) / ways(m) / (upto - worse) * values).sum(1)


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
        rewards, values = t.randn(B, m), t.randn(B, m)
        rewards[0] = rewards[0].sort().values  # the best is not among the first
        want = _chosen(rewards, values, drawn)
        got, again = t.call(answer, rewards, values, drawn), t.call(answer, rewards, values, drawn)
        tensors = isinstance(got, torch.Tensor) and isinstance(again, torch.Tensor) and got.shape == again.shape
        message = "a second call gives another result: do not draw choices by chance, take the mean over all of them"
        t.that(not tensors or torch.equal(got.nan_to_num(), again.nan_to_num()), "random", message)
        t.same(got, want, name)
    rewards, values = t.integers(0, 3, B, m).float(), t.randn(B, m)
    rewards[0, :3] = 2  # at least three equals at the top
    want = _chosen(rewards, values, n)
    t.same(t.call(answer, rewards, values, n), want, "the best of n where rewards are equal")
    many, n = t.random.randint(200, 300), t.random.randint(30, 50)
    rewards, values = t.rand(B, many).argsort(1).argsort(1).float(), t.randn(B, many)
    want = _of_many(rewards, values, n)
    t.same(t.call(answer, rewards, values, n), want, "the best of some dozens of n among hundreds")


def moved(probabilities, rewards, n):
    """How the best of n answers is distributed, and how far that is from the reference.

    Args:
        probabilities: (K,), float64, of all answers that there are, under the reference; they sum to 1, and some may
            be 0.
        rewards: (K,), float64, of the same answers. Among equals of the n that were drawn one is kept by lot.
        n: how many answers are drawn, each by itself; 1 or more.

    Returns:
        best: (K,), probabilities of the answer that is kept.
        divergence: KL(best, reference) in nats, a scalar.
    """
    ### BEGIN SOLUTION
    worse = (rewards[None, :] < rewards[:, None]).to(probabilities) @ probabilities  # (K,): one draw is worse than this
    equal = (rewards[None, :] == rewards[:, None]).to(probabilities) @ probabilities
    level = (worse + equal) ** n - worse**n  # the best of n has this reward
    best = torch.where(equal > 0, level * probabilities / equal, 0)  # its equals share that as one draw does
    divergence = (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()
    return best, divergence
    ### END SOLUTION


def by_the_sorted(probabilities, rewards, n):
    levels, which = rewards.unique(return_inverse=True)  # in ascending order
    mass = torch.zeros_like(levels).index_add(0, which, probabilities)
    upto = mass.cumsum(0)
    of_levels = upto**n - torch.cat([upto.new_zeros(1), upto[:-1]]) ** n
    there = probabilities > 0
    best = torch.zeros_like(probabilities)
    best[there] = of_levels[which[there]] * probabilities[there] / mass[which[there]]
    ratio = best[there] / probabilities[there]
    return best, (best[there] * ratio.clamp(min=1e-300).log()).sum()


def draw_by_draw(probabilities, rewards, n):
    """The best of the first few, against one draw more: n - 1 times."""
    wins = (rewards[:, None] > rewards[None]).to(probabilities)
    best, equal = probabilities, (rewards[:, None] == rewards[None]).to(probabilities)
    above, as_good = wins @ probabilities, equal @ probabilities
    for k in range(1, n):  # the kept one stands for those of the k that were as good: among equals it is all the same
        keeps = best * (above + as_good * k / (k + 1))
        best = keeps + probabilities * (wins @ best + equal @ best / (k + 1))
    return best, torch.nansum(best * (best / probabilities).log())


# mistakes


def turned_round(probabilities, rewards, n):
    best, _ = moved(probabilities, rewards, n)
    both = (best > 1e-12) & (probabilities > 0)
    return best, (probabilities * (probabilities / best).log())[both].sum()


def the_bound(probabilities, rewards, n):
    best, divergence = moved(probabilities, rewards, n)
    return best, 0 * divergence + math.log(n) - (n - 1) / n


def logarithm_of_n(probabilities, rewards, n):
    best, divergence = moved(probabilities, rewards, n)
    return best, 0 * divergence + math.log(n)


def ties_in_order(probabilities, rewards, n):
    order = rewards.argsort(stable=True)
    upto = probabilities[order].cumsum(0)
    best = torch.zeros_like(probabilities)
    best[order] = upto**n - (upto - probabilities[order]) ** n
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def evenly_among_equals(probabilities, rewards, n):
    same = (rewards[None, :] == rewards[:, None]).to(probabilities)
    worse = (rewards[None, :] < rewards[:, None]).to(probabilities) @ probabilities
    best = ((worse + same @ probabilities) ** n - worse**n) / same.sum(1)
    best = torch.where(probabilities > 0, best, 0)
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def as_a_density(probabilities, rewards, n):
    """n F^(n-1) p, which holds where no answer has a probability of its own."""
    upto = (rewards[None, :] <= rewards[:, None]).to(probabilities) @ probabilities
    best = n * upto ** (n - 1) * probabilities
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def power_of_p(probabilities, rewards, n):
    """All n are that answer."""
    best = probabilities**n / (probabilities**n).sum()
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def drawn_at_least_once(probabilities, rewards, n):
    best = 1 - (1 - probabilities) ** n
    best = best / best.sum()
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def exponential_tilt(probabilities, rewards, n):
    best = probabilities * torch.exp(rewards * math.log(n))
    best = best / best.sum()
    return best, (torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()


def _tuples(probabilities, rewards, n):
    """Every sequence of n draws, one after the other."""
    p, r = probabilities.tolist(), rewards.tolist()
    best = [0.0] * len(p)
    for draws in itertools.product(range(len(p)), repeat=n):
        weight = math.prod(p[i] for i in draws)
        top = max(r[i] for i in draws)
        winners = [i for i in draws if r[i] == top]
        for i in winners:
            best[i] += weight / len(winners)
    divergence = sum(b * math.log(b / q) for b, q in zip(best, p, strict=True) if b > 0)
    return torch.tensor(best, dtype=torch.float64), torch.tensor(divergence, dtype=torch.float64)


def verify_moved(t, answer):
    n = t.random.randint(3, 4)
    cases = [
        ("where all rewards differ", [0.3, 1.1, -0.4, 2.0, 0.7], n, False),
        ("where some rewards are equal", [1.0, 2.0, 1.0, 2.0, 0.0], n, False),
        ("where the best answer is never drawn", [0.3, 1.1, -0.4, 2.0, 0.7], n, True),
        ("for n = 1", [1.0, 2.0, 1.0, 2.0, 0.0], 1, False),
    ]
    for name, rewards, drawn, never in cases:
        probabilities = t.rand(5, low=0.3, dtype=torch.float64)
        probabilities[3] *= 0.0 if never else 1.0
        probabilities = probabilities / probabilities.sum()
        order = torch.tensor(t.random.sample(range(5), 5), device=t.device)
        probabilities, rewards = (
            probabilities[order],
            torch.tensor(rewards, dtype=torch.float64)[order.cpu()].to(t.device),
        )
        want, far = _tuples(probabilities, rewards, drawn)
        best, divergence = t.unpack(t.call(answer, probabilities, rewards, drawn), "best", "divergence")
        t.same(best, want, f"the probabilities of the best {name}")
        t.same(divergence, far, f"the divergence {name}")
    many, n = 1500, t.random.randint(5, 40)  # so fine that the bound is nearly reached
    probabilities = torch.full((many,), 1 / many, dtype=torch.float64, device=t.device)
    rewards = t.rand(many, dtype=torch.float64)
    got = t.unpack(t.call(answer, probabilities, rewards, n), "best", "divergence")
    want = torch.tensor(math.log(n) - (n - 1) / n, dtype=torch.float64)
    t.same(got[1], want, "the divergence of thousands of answers", tolerance=(0, 5e-3))


EQUAL = "among equals one is drawn by lot: here "

MUTANTS_A = [
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
    Mutant("cumulative", ("(among[upto] - among[worse]) / (upto - worse)", "among[upto]"),
        "these are the probabilities that the best is this answer *or a worse one*: take differences"),
    Mutant("nonfinite", with_factorials),
    Mutant("shape", (".sum(dim=1)\n", ".sum(dim=1).mean()\n")),  # one mean
]  # fmt: skip

MUTANTS_B = [
    Mutant("turned", turned_round, "this is KL(p, q): it is taken under the best of n, KL(q, p)"),
    Mutant("bound", the_bound, "this is the bound, log n - (n - 1) / n: compute the divergence of these answers"),
    Mutant("log-n", logarithm_of_n, "log n is more than it can ever be: compute the divergence of these answers"),
    Mutant("bits", (".sum()\n    return", ".sum() / math.log(2)\n    return"), "this is in bits: nats have the natural "
        "logarithm"),
    Mutant("ordered", ties_in_order, "equals are taken as if the later one were better: they share in proportion to p"),
    Mutant("evenly", evenly_among_equals, "equals share evenly: one that is drawn more often is kept more often, in "
        "proportion to p"),
    Mutant("cumulative", (" - worse**n", ""), "this is the probability that the best is this answer or a worse one: "
        "take a difference"),
    Mutant("n-1", ("(worse + equal) ** n - worse**n", "(worse + equal) ** (n - 1) * equal"), "one draw is this answer "
        "and n - 1 are no better: that counts one place among the n only, and the answer may be drawn at any of them, "
        "or twice"),
    Mutant("density", as_a_density, "n F^(n-1) p is a density's formula: here an answer may be drawn several times, "
        "and these do not sum to 1"),
    Mutant("power", power_of_p, "p^n is the probability that all n draws are this answer"),
    Mutant("at-least-once", drawn_at_least_once, "1 - (1 - p)^n is the probability that the answer is drawn at all: "
        "the rewards do not come in"),
    Mutant("tilted", exponential_tilt, "p times an exponential of the reward is what RLHF aims at: of the best of n "
        "only the order of rewards counts"),
    Mutant("worst", ("(rewards[None, :] < rewards[:, None])", "(rewards[None, :] > rewards[:, None])"),
        "this is the worst of n"),
    Mutant("nonfinite", ("(torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()",
        "(best * (best / probabilities).log()).sum()")),  # 0 log 0
]  # fmt: skip


EXERCISE = Exercise(
    key="own-17.4",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-17.4a",
            prompt="You have drawn m answers to each question and want to know what the best of n would be worth, for "
            "several n up to m. The first n alone would waste the others. Write `expected_best(rewards, values, n)`: "
            "the mean over *all* choices of n among the m. As each choice is n independent draws, it has no bias. "
            "It must hold for hundreds of answers, where nobody can go through the choices.",
            hints=[
                "Think of one question and sort its answers by their rewards. With which probability is the largest "
                "reward of a choice that of the k-th worst, or less?",
                "All n are among the k worst in C(k, n) of C(m, n) choices: `math.comb`. Python's integers never "
                "overflow, and their ratio is a good float.",
                "So answer k is the best with probability [C(k, n) - C(k - 1, n)] / C(m, n). That is the weight of its "
                "value.",
                "Equals share what they have together: from those worse than them, up to the last of them.",
            ],
            answer=expected_best,
            verify=verify_expected,
            alternatives=[by_the_package, sorted_by_reward],
            min_checks=10,
            advice={"nonfinite": "Factorials of hundreds are beyond any float: `math.comb` counts in integers."},
            mutants=MUTANTS_A,
            explanation=r"""
For a given choice of n the best is a function of n independent draws, so its mean over draws is what we want, and the
mean over all choices keeps that: no bias. It has far less variance than the first n alone. (Estimators of this form are
called U-statistics; pass@k of code generation is the case in which values and rewards are 0 or 1.)

`with_replacement`, $(k/m)^n - ((k-1)/m)^n$, is the common short cut. It is the best of n for a model that has only
these m answers, and too low. Ties matter as soon as a judge gives marks and not real numbers.
""",
        ),
        Code(
            key="own-17.4b",
            prompt=r"""
Now the other question. With answers $y$ of probability $p(y)$ and the best of n distributed as $q(y)$, write
`moved(probabilities, rewards, n)`, which returns $q$ and

$$\mathrm{KL}(q, p) = \sum_y q(y) \log \frac{q(y)}{p(y)} .$$

Where no two answers have the same reward and none is likely, this comes near to $\log n - \frac{n-1}n$. It never
exceeds that. The check tries thousands of answers, too.
""",
            hints=[
                "With which probability are *all* n draws worse than a given answer? At most as good?",
                "$F^n$ with $F$ the probability that one draw is at most as good. The difference of two such powers "
                "is the probability that the best has exactly this reward.",
                "Several answers with one reward share it in proportion to p, as they do in one draw.",
                "A term with q = 0 is 0: `torch.xlogy(q, q)`.",
            ],
            answer=moved,
            verify=verify_moved,
            alternatives=[by_the_sorted, draw_by_draw],
            min_checks=18,
            advice={"nonfinite": "0 log 0 is 0 in a KL divergence: `torch.xlogy`, or leave such answers out."},
            mutants=MUTANTS_B,
            explanation=r"""
For answers so many that each is unlikely, and with rewards that differ, $u = F(y)$ of one draw is uniform on [0, 1].
The best of n has the density $n u^{n-1}$, and

$$\mathrm{KL} = \int_0^1 n u^{n-1} \log (n u^{n-1}) \, du = \log n + (n-1) \int_0^1 n u^{n-1} \log u \, du$$

$$= \log n - \frac{n-1}n .$$

Answers with a probability of their own, or with equal rewards, are a coarser view of such a case. By the data
processing inequality a coarser view has no larger divergence, so it is a bound (Beirami et al. 2024). It grows with log
n only: the best of 1,000 answers is at most 5.9 nats away. That is why best of n is hard to beat when closeness to the
reference counts; what it costs is n answers each time.
""",
        ),
        Choice(
            key="own-17.4c",
            prompt="The judge of part a is imperfect: a reward is the value plus an error. As n grows, what must "
            "happen?",
            hints=["Which answers does a large n find: good ones, or those for which the judge errs most?"],
            options=[
                Option(
                    "Expected reward and expected value both rise: choosing more strictly cannot hurt.",
                    "The reward never falls with n, for it is what is maximised. Nothing of the kind holds for the "
                    "value of what is chosen.",
                ),
                Option(
                    "The expected reward does not fall; the value may rise, level off, or fall, for the largest "
                    "rewards may be the largest errors.",
                    "It hangs on the tails. With errors that vary little, the value rises on. If the errors have the "
                    "longer tail, the best of many is where the judge is most wrong. Gao et al. (2023) measured "
                    "value against the square root of the divergence: up first, and then down.",
                    right=True,
                ),
                Option(
                    "The value falls, and the reward with it, since the judge notices.",
                    "A judge that noticed would not have given the reward. What notices is somebody with another "
                    "measure.",
                ),
                Option(
                    "Nothing, as the divergence is bounded by log n.",
                    "A bound on how far the answers move is no bound on what they lose: an answer that was unlikely, "
                    "by one in n, may be chosen nearly always.",
                ),
            ],
        ),
    ],
)
