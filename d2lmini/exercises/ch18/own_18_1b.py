"""Part b of own-18.1, "The best of n": `moved`."""

import itertools
import math

import torch

from d2lmini.exercises.engine import Code, Mutant


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
        ("where two rewards differ in the eleventh digit", [1.0, 1.0 + 1e-10, 0.2, 2.0, 0.0], n, False),
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
    # a thousand draws and more of three: the worst answer's probability rounds to 0, and rewards are near each other
    often, rare, n = t.random.uniform(0.51, 0.6), t.random.uniform(3e-4, 6e-4), t.random.randint(2000, 2500)
    probabilities = torch.tensor([rare, 1 - rare - often, often], dtype=torch.float64, device=t.device)
    rewards = torch.tensor([2e-4, 0.0, 1e-4], dtype=torch.float64, device=t.device)
    want = torch.tensor([-math.expm1(n * math.log1p(-rare)), 0.0, (1 - rare) ** n], dtype=torch.float64)
    best, divergence = t.unpack(t.call(answer, probabilities, rewards, n), "best", "divergence")
    t.same(best, want, f"the probabilities of the best of {n} draws")
    far = sum(q * math.log(q / p) for q, p in zip(want.tolist(), probabilities.tolist(), strict=True) if q)
    t.same(divergence, torch.tensor(far, dtype=torch.float64), f"the divergence of the best of {n} draws")
    many, n = 1500, t.random.randint(5, 40)  # so fine that the bound is nearly reached
    probabilities = torch.full((many,), 1 / many, dtype=torch.float64, device=t.device)
    rewards = t.rand(many, dtype=torch.float64)
    got = t.unpack(t.call(answer, probabilities, rewards, n), "best", "divergence")
    want = torch.tensor(math.log(n) - (n - 1) / n, dtype=torch.float64)
    t.same(got[1], want, "the divergence of 1,500 answers", tolerance=(0, 5e-3))


MUTANTS = [
    Mutant("near", ("(rewards[None, :] == rewards[:, None])", "(rewards.float()[None, :] == rewards.float()[:, None])"),
        "rewards that differ by little are taken for equal: compare them in float64, and exactly"),
    Mutant("turned", turned_round, "this is KL(p, q): it is taken under the best of n, KL(q, p)"),
    Mutant("bound", the_bound, "this is the bound, log n - (n - 1) / n: compute the divergence of these answers"),
    Mutant("log-n", logarithm_of_n, "log n is more than it can ever be: compute the divergence of these answers"),
    Mutant("bits", (".sum()\n    return", ".sum() / math.log(2)\n    return"), "this is in bits: nats have the natural "
        "logarithm"),
    Mutant("ordered", ties_in_order, "equals are taken as if the later one were better: they share in proportion to p"),
    Mutant("evenly", evenly_among_equals, "equals share evenly: one that is drawn more often is kept more often, in "
        "proportion to p"),
    Mutant("equals-whole", ("level * probabilities / equal", "level"), "each of several equals gets the probability of "
        "all of them: they share it in proportion to p"),
    Mutant("entropy", ("(torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()",
        "-torch.xlogy(best, best).sum()"),
        "this is the entropy of q: in the divergence log p is subtracted from log q"),
    Mutant("cross-entropy", ("(torch.xlogy(best, best) - torch.xlogy(best, probabilities)).sum()",
        "-torch.xlogy(best, probabilities).sum()"),
        "this is the cross-entropy, -sum q log p: the entropy of q has to be subtracted"),
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


PART = Code(
    key="own-18.1b",
    prompt=r"""
Now the other question. With answers $y$ of probability $p(y)$ and the best of n distributed as $q(y)$, write
`moved(probabilities, rewards, n)`, which returns $q$ and

$$\mathrm{KL}(q, p) = \sum_y q(y) \log \frac{q(y)}{p(y)} .$$

Where no two answers have the same reward and none is likely, this comes near to $\log n - \frac{n-1}n$. It never
exceeds that. The check tries 1,500 answers, too.
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
    min_checks=22,
    advice={
        "nonfinite": "0 log 0 is 0 in a KL divergence: `torch.xlogy`, or leave such answers out. And an answer of "
        "probability 0 is never kept: where all of its equals have none either, its share is 0, not 0 / 0.",
        "values": "Does q sum to 1? Is it p for n = 1, with a divergence of 0? For n = 2 and two answers write down "
        "the four pairs of draws with their probabilities, and which answer each keeps.",
    },
    mutants=MUTANTS,
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
)
