r"""Many experts, of which few work

In a Switch Transformer (Fedus et al. 2022) the feed-forward network of a block is replaced by N of them, the
*experts*. A router, a matrix (N, h) without a bias, gives each token N scores; their softmax are its probabilities.
The token goes to the likeliest expert alone, and the expert's output is multiplied by that probability.

An expert is a linear layer from h to f features, a ReLU, and one back to h, both with biases; in the package
`d2l.SwitchFFN` has it all. You count what such a layer has and what it uses, and then you see to it that all experts
get work.
"""

import math
from functools import cache

import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Count, Exercise, Mutant, Option

# (h, f, N, tokens, capacity factor): everything differs; and one expert, which is an ordinary network with a router
CONFIGURATIONS = [(6, 20, 5, 38, 3.0), (9, 14, 3, 37, 1.25), (16, 40, 8, 20, 2.0), (7, 30, 1, 10, 0.75)]


def expert_counts(num_hiddens, ffn_num_hiddens, num_experts, num_tokens, capacity_factor):
    """Count a layer with experts.

    Args:
        num_hiddens: h.
        ffn_num_hiddens: f.
        num_experts: N.
        num_tokens: n, all tokens of a batch together.
        capacity_factor: c. An expert takes at most c n / N tokens, rounded up.

    Returns:
        dict of four integers:
        "parameters": how many there are.
        "active": how many of them one token's output depends on. The router counts, for N = 1 as well.
        "flops": floating-point operations of the matrix products for n tokens of which none is dropped; a
        multiplication and an addition are two.
        "capacity": how many tokens an expert takes at most.
    """
    ### BEGIN SOLUTION
    h, f, N = num_hiddens, ffn_num_hiddens, num_experts
    matrices = h * f + f * h
    biases = f + h
    router = N * h
    return {
        "parameters": N * (matrices + biases) + router,
        "active": matrices + biases + router,
        "flops": 2 * num_tokens * (matrices + router),
        "capacity": math.ceil(capacity_factor * num_tokens / N),
    }
    ### END SOLUTION


def by_layers(num_hiddens, ffn_num_hiddens, num_experts, num_tokens, capacity_factor):
    there, back = (num_hiddens + 1) * ffn_num_hiddens, (ffn_num_hiddens + 1) * num_hiddens
    scores = num_hiddens * num_experts
    capacity = -int(-(capacity_factor * num_tokens) // num_experts)
    return {
        "capacity": capacity,
        "flops": num_tokens * (4 * num_hiddens * ffn_num_hiddens + 2 * scores),
        "active": there + back + scores,
        "parameters": (there + back + num_hiddens) * num_experts,
    }


@cache
def measure(h, f, N, n, factor):
    """The same of a real layer; what is active has a gradient from one token's output."""
    layer = d2l.SwitchFFN(f, h, N, capacity_factor=None)
    generator = torch.Generator().manual_seed(1)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    X = torch.randn(1, n, h, generator=generator)
    layer(X[:, :1]).square().sum().backward()
    used = [p for p in layer.parameters() if p.grad is not None and p.grad.any()]
    # the probability of a single expert is 1 whatever the router says
    active = sum(p.numel() for p in used) + (layer.router.weight.numel() if N == 1 else 0)
    with FlopCounterMode(display=False) as work, torch.no_grad():
        layer(X)
    full = d2l.SwitchFFN(f, h, N, capacity_factor=factor)
    for parameter in full.parameters():
        torch.nn.init.zeros_(parameter)  # all tokens want the first expert
    full(X)
    capacity = int(full.routing.kept.sum())
    return sum(p.numel() for p in layer.parameters()), active, work.get_total_flops(), capacity


def verify(t, answer):
    names = "parameters", "active", "flops", "capacity"
    for h, f, N, n, factor in CONFIGURATIONS:
        case = f"for h={h}, f={f}, N={N}, {n} tokens and a capacity factor of {factor:g}"
        got = t.fields(t.call(answer, h, f, N, n, factor), *names)
        for name, value, want in zip(names, got, measure(h, f, N, n, factor), strict=True):
            t.number(value, want, f"{name} {case}")
            t.that(isinstance(value, int), "type", f"{name} is a {type(value).__name__}: counts are integers")


def balance_loss(scores, real):
    """How unevenly a router deals its tokens out.

    Args:
        scores: (n, N), of n tokens for N experts; finite numbers of any size, at padding, too.
        real: booleans (n,), True at tokens, False at padding, which counts nowhere; at least one is True.

    Returns:
        A scalar: N times the sum over the experts of q times P. q is the share of the tokens that go to an expert,
        each to one, of equals the first; it has no gradient. P is the mean of the probabilities that they give to it.
    """
    ### BEGIN SOLUTION
    scores = scores[real]
    N = scores.shape[1]
    probabilities = torch.softmax(scores, dim=1)  # (n, N)
    chosen = F.one_hot(scores.argmax(dim=1), N)  # (n, N)
    share = chosen.to(scores.dtype).mean(dim=0)  # (N,)
    return N * (share * probabilities.mean(dim=0)).sum()
    ### END SOLUTION


def by_counting(scores, real):
    weights = real.to(scores) / real.sum()
    counts = torch.bincount(scores.argmax(-1), weights.double(), minlength=scores.shape[1]).to(scores)
    return scores.shape[1] * (weights @ scores.softmax(-1) @ counts)


def by_expert(scores, real):
    probabilities, total = torch.exp(scores.log_softmax(1)), 0.0
    winners, n, N = scores.max(1).indices, real.sum(), scores.size(1)
    for i in range(N):
        total = total + ((winners == i) & real).sum() / n * (probabilities[:, i] * real).sum() / n
    return total * N


# mistakes


def _parts(scores):
    probabilities = scores.softmax(1)
    share = F.one_hot(scores.argmax(1), scores.shape[1]).to(scores).mean(0)
    return scores.shape[1], share, probabilities.mean(0)


def shares_squared(scores, real):
    N, share, _ = _parts(scores[real])
    return N * (share * share).sum() + 0 * scores.sum()


def probabilities_squared(scores, real):
    N, _, mean = _parts(scores[real])
    return N * (mean * mean).sum()


def token_by_token(scores, real):
    """The product is taken before the mean."""
    probabilities = scores[real].softmax(1)
    return scores.shape[1] * probabilities.amax(1).mean()


def distance(scores, real):
    N, share, mean = _parts(scores[real])
    return N * (share - mean).square().sum()


def entropy(scores, real):
    _, _, mean = _parts(scores[real])
    return -(mean * mean.log()).sum()


def likeliest_by_mean(scores, real):
    """One expert for all: the one with the largest mean probability."""
    N, _, mean = _parts(scores[real])
    return N * mean.max()


def least_likely(scores, real):
    N, _, mean = _parts(scores[real])
    return N * (F.one_hot(scores[real].argmin(1), N).to(scores).mean(0) * mean).sum()


def padding_to_zero(scores, real):
    """The scores of padding are set to 0, and stay in both means."""
    return balance_loss(scores * real[:, None], torch.ones_like(real))


def own_probability(scores, real):
    """P is the mean of what tokens give to an expert that they go to."""
    probabilities = scores[real].softmax(1)
    N = probabilities.shape[1]
    chosen = F.one_hot(probabilities.argmax(1), N).to(scores)
    return N * (chosen.mean(0) * (chosen * probabilities).mean(0)).sum()


def straight_through(scores, real):
    """The shares get the gradient of the probabilities."""
    probabilities = scores[real].softmax(1)
    N = probabilities.shape[1]
    chosen = F.one_hot(probabilities.argmax(1), N) + (probabilities - probabilities.detach())
    return N * (chosen.mean(0) * probabilities.mean(0)).sum()


def coefficient_of_variation(scores, real):
    work = scores[real].softmax(1).sum(0)
    return work.var() / work.mean().square()


def divided_by_all(scores, real):
    n = len(real)
    chosen = F.one_hot(scores.argmax(1), scores.shape[1]).to(scores) * real[:, None]
    probabilities = scores.softmax(1) * real[:, None]
    return scores.shape[1] * (chosen.sum(0) / n * probabilities.sum(0) / n).sum()


def padding_in_the_shares(scores, real):
    N, share, _ = _parts(scores)
    return N * (share * scores[real].softmax(1).mean(0)).sum()


def padding_in_the_probabilities(scores, real):
    N, share, _ = _parts(scores[real])
    return N * (share * scores.softmax(1).mean(0)).sum()


def verify_balance(t, answer):
    n, N = t.random.randrange(17, 24), t.random.randrange(4, 8)
    for name in ("tokens that differ", "a batch with padding", "tokens that want one expert", "equal scores"):
        scores = t.integers(-1, 2, n, N).float() if "equal" in name else t.randn(n, N, scale=1.5)
        real = torch.ones(n, dtype=torch.bool, device=t.device)
        if "padding" in name:
            real[torch.tensor(t.random.sample(range(n), n // 3), device=t.device)] = False
            scores[~real, t.random.randrange(N)] += 4  # padding is alike, and all of it goes to one expert
        if "one expert" in name:
            scores[:, t.random.randrange(N - 1)] += 200  # the last one gets none
            scores[::2] += 500  # which changes no probability
        wide = scores.cpu().double().requires_grad_()
        rows = [row.softmax(0) for row, kept in zip(wide, real.tolist(), strict=True) if kept]
        counts = [0] * N
        for row in rows:
            counts[max(range(N), key=lambda i: row[i].item())] += 1
        want = sum(N * counts[i] / len(rows) * sum(row[i] for row in rows) / len(rows) for i in range(N))
        (slope,) = torch.autograd.grad(want, wide)
        got = t.call(answer, scores.requires_grad_(), real)
        t.same(got, want.detach(), f"the loss of {name}")
        t.same(t.gradient(got, 0), slope, f"the gradient of {name}")


MUTANTS_A = [
    Mutant("one-expert", ('"parameters": N * (matrices + biases)', '"parameters": (matrices + biases)'),
        "this is one expert with the router: there are N"),
    Mutant("no-router", ("N * (matrices + biases) + router", "N * (matrices + biases)"), "N h are missing: as many "
        "as the router has, a matrix (N, h), and as the second biases of all experts"),
    Mutant("router-biases", ("router = N * h", "router = N * h + N"), "the router has no biases here"),
    Mutant("no-biases", ("biases = f + h", "biases = 0"), "both layers of an expert have biases"),
    Mutant("h-biases", ("biases = f + h", "biases = 2 * h"), "a linear layer has as many biases as outputs: the first "
        "one f, the second h"),
    Mutant("one-matrix", ("matrices = h * f + f * h", "matrices = h * f"), "an expert has two matrices: to f features, "
        "and back"),
    Mutant("all-active", ('"active": matrices + biases + router', '"active": N * (matrices + biases) + router'),
        "these are all parameters: a token goes through one expert"),
    Mutant("router-idle", ('"active": matrices + biases + router', '"active": matrices + biases'),
        "the router is missing: the token's probability depends on it"),
    Mutant("router-row", ('"active": matrices + biases + router', '"active": matrices + biases + h'),
        "of the router one row alone is counted, as if each expert had its own: the softmax needs the scores of all of "
        "them"),
    Mutant("multiply-adds", ("2 * num_tokens * (matrices + router)", "num_tokens * (matrices + router)"),
        "a multiplication and an addition count as two operations"),
    Mutant("one-token", ("2 * num_tokens * (matrices + router)", "2 * (matrices + router)"), "these are the operations "
        "for one token: there are `num_tokens`"),
    Mutant("every-expert", ("2 * num_tokens * (matrices + router)", "2 * num_tokens * (N * matrices + router)"),
        "each token goes through all experts: it goes through one"),
    Mutant("router-free", ("2 * num_tokens * (matrices + router)", "2 * num_tokens * matrices"), "the router's product "
        "is missing: each token is scored for N experts"),
    Mutant("biases-multiplied", ("2 * num_tokens * (matrices + router)",
        "2 * num_tokens * (matrices + biases + router)"), "biases are added, and are no part of a matrix product"),
    Mutant("training", ("2 * num_tokens * (matrices + router)", "6 * num_tokens * (matrices + router)"),
        "this is three times as much, as in training: there is no backward pass here"),
    Mutant("not-rounded", ("math.ceil(capacity_factor * num_tokens / N)", "capacity_factor * num_tokens / N"),
        "the capacity is a number of tokens: round it up"),
    Mutant("room", ("2 * num_tokens * (matrices + router)",
        "2 * (N * math.ceil(capacity_factor * num_tokens / N) * matrices + num_tokens * router)"),
        "these are the operations if every expert were full: of n tokens each goes through one expert"),
    Mutant("type", ("math.ceil(capacity_factor * num_tokens / N)", "-(-capacity_factor * num_tokens // N)")),  # a float
    Mutant("floor", ("math.ceil(capacity_factor * num_tokens / N)", "int(capacity_factor * num_tokens / N)"),
        "the capacity is rounded down: it is rounded up"),
    Mutant("rounded", ("math.ceil(capacity_factor * num_tokens / N)", "round(capacity_factor * num_tokens / N)"),
        "the capacity is rounded to the nearest number: it is rounded up"),
    Mutant("rounded-early", ("math.ceil(capacity_factor * num_tokens / N)",
        "math.ceil(capacity_factor * math.ceil(num_tokens / N))"), "n / N is rounded before it is multiplied: round "
        "once, at the end"),
    Mutant("one-more", ("math.ceil(capacity_factor * num_tokens / N)", "int(capacity_factor * num_tokens / N) + 1"),
        "the capacity is one too large where c n / N is a whole number: round up, and add nothing"),
    Mutant("no-factor", ("math.ceil(capacity_factor * num_tokens / N)", "math.ceil(num_tokens / N)"),
        "the capacity factor is not used"),
    Mutant("one-expert-for-all", ("capacity_factor * num_tokens / N", "capacity_factor * num_tokens"), "the tokens are "
        "not divided among the N experts"),
    Mutant("factor-below", ("math.ceil(capacity_factor * num_tokens / N)",
        "math.ceil(num_tokens / N / capacity_factor)"), "it is divided by the capacity factor: a larger one gives more "
        "room"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("nonfinite", ("torch.softmax(scores, dim=1)",
        "(e := (scores - scores.max()).exp()) / e.sum(1, keepdim=True)")),  # the largest score of all tokens
    Mutant("padding", ("    scores = scores[real]\n", ""), "padding counts as tokens do: leave it out of both"),
    Mutant("padding-zero", padding_to_zero, "the scores of padding are set to 0, but it still counts: 0 for all is a "
        "router that does not care, and `argmax` sends it to the first expert"),
    Mutant("divided-by-all", divided_by_all, "padding is left out of the sums, but they are divided by the number of "
        "all places"),
    Mutant("padding-shares", padding_in_the_shares, "padding counts in the shares q"),
    Mutant("padding-probabilities", padding_in_the_probabilities, "padding counts in the mean probabilities P"),
    Mutant("no-N", ("return N * (share", "return (share"), "N is missing, or the mean over the experts stands for "
        "their sum: with N and the sum it is 1 for an even router"),
    Mutant("no-N", ("probabilities.mean(dim=0)).sum()", "probabilities.mean(dim=0)).mean()")),
    Mutant("sums", ("probabilities.mean(dim=0)", "probabilities.sum(dim=0)"), "one of q and P is a sum over the "
        "tokens: both are means"),
    Mutant("sums", ("chosen.to(scores.dtype).mean(dim=0)", "chosen.to(scores.dtype).sum(dim=0)")),
    Mutant("q-squared", shares_squared, "this is N times the sum of q * q, which says the same, but has no gradient"),
    Mutant("P-squared", probabilities_squared, "this is N times the sum of P * P: one of the two is the share of the "
        "tokens that go there"),
    Mutant("token-by-token", token_by_token, "share and probability are multiplied for each token, and then averaged: "
        "that is the mean of the largest probabilities, and tells nothing of how they are dealt out"),
    Mutant("own-probability", own_probability, "P counts a probability only where the token goes to that expert: it is "
        "the mean over *all* tokens"),
    Mutant("straight-through", straight_through, "q has a gradient, too: it is a number here"),
    Mutant("variation", coefficient_of_variation, "this is the squared coefficient of variation, an older loss for "
        "the same end: here it is N times the sum of q * P"),
    Mutant("difference", distance, "this is the squared difference of q and P: both would be alike, and all on one "
        "expert"),
    Mutant("entropy", entropy, "this is the entropy of P, which is largest for an even router"),
    Mutant("largest-mean", likeliest_by_mean, "all tokens are counted for the expert with the largest *mean* "
        "probability: each goes to its own"),
    Mutant("least-likely", least_likely, "the shares are those of the least likely experts"),
    Mutant("raw", ("torch.softmax(scores, dim=1)", "scores.clone()"), "P is the mean of the scores: of the "
        "probabilities, after a softmax"),
    Mutant("wrong-axis", ("torch.softmax(scores, dim=1)", "torch.softmax(scores, dim=0)"), "the softmax runs over the "
        "tokens: it runs over the experts"),
    Mutant("shape", ("probabilities.mean(dim=0)).sum()", "probabilities.mean(dim=0))")),  # each expert
]  # fmt: skip


EXERCISE = Exercise(
    key="own-14.2",
    doc=__doc__,
    source="own",
    parts=[
        Count(
            key="own-14.2a",
            prompt="Write `expert_counts(num_hiddens, ffn_num_hiddens, num_experts, num_tokens, capacity_factor)`. "
            "The check compares with a `d2l.SwitchFFN`. Then put in Switch-C, the largest one published: h = 2,080, f "
            "= 6,144, 2,048 experts, in each of 15 blocks of the encoder and 15 of the decoder.",
            hints=[
                "An expert has two matrices, h x f and f x h, and f + h biases. A token uses one expert.",
                "What does the router need to say which expert is likeliest, and how likely?",
                "In the matrix products for one token each entry of a matrix that it meets is used once: a "
                "multiplication and an addition.",
            ],
            answer=expert_counts,
            verify=verify,
            alternatives=[by_layers],
            min_checks=16,
            seconds=60.0,  # torch's counter of operations loads much at its first use
            advice={
                "values": "Make the `d2l.SwitchFFN` of the configuration that is named and print name and shape of "
                "each of its parameters. Which do you count too often or not at all? For operations take one token "
                "and write down its products: an entry of a matrix counts two, a bias nothing. The capacity is c n / N "
                "rounded up, also for c below 1.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
Parameters grow about N times; what a token costs grows by the router's $2 N h$ alone, in Switch-C by a sixth. A layer
of it has 52.4 billion parameters, 29.8 million of which a token uses, and 30 such layers have 1.57 trillion: the "1.6
trillion parameters" of its name. But all of them must be kept in memory, over many machines, and tokens sent to where
their expert is. "How large is the model?" has two answers here; say which one you mean.
""",
        ),
        Code(
            key="own-14.2b",
            prompt=r"""
Nothing has been said of what keeps a router from sending all tokens to one expert. And it would: an expert that gets
more tokens learns faster, and becomes better, and gets more (Shazeer et al. 2017). So one adds a little of

$$L = N \sum_{i=1}^N q_i P_i$$

to the loss, with $q_i$ the share of the tokens that go to expert i, and $P_i$ their mean probability of it. Write
`balance_loss(scores, real)`. Padding must count in neither: there may be much of it, and it all goes to one expert.
""",
            hints=[
                "Take the real tokens out first: `scores[real]`. The rest is without padding.",
                "Where does each token go? `F.one_hot(scores.argmax(dim=1), N)` has a 1 there; its mean over the "
                "tokens are the shares.",
                "The means are taken over the tokens, each by itself, and then multiplied: expert by expert.",
            ],
            answer=balance_loss,
            verify=verify_balance,
            alternatives=[by_counting, by_expert],
            min_checks=9,
            advice={
                "nonfinite": "exp overflows where scores are large, which `torch.softmax` takes care of; and a row of "
                "minus infinity alone has no softmax: take the rows of padding out.",
                "grad": "It comes through the probabilities alone, and must not be cut off there.",
                "values": "Three tests: scores that are all but equal give about 1, scores that are sure of one and "
                "the same expert give N, also if others get no token, and rows of padding change nothing. A gradient "
                "of 0 comes of a P that was cut off.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
With even shares, $q_i = 1/N$, it is $N \cdot \frac1N \sum_i P_i = 1$; if all tokens are sure of one expert, it is N. (1
is not quite the least: q and P need not agree.) Its gradient in $P_i$ is $N q_i$: an expert's probability is pushed
down in proportion to the tokens that it gets. That is what q is there for; it is a weight, and need not be
differentiable.

The paper adds 0.01 times this to the loss. `d2l.SwitchFFN` keeps it in `routing.balance_loss`, padding included, since
it does not know which tokens are padding.
""",
        ),
        Choice(
            key="own-14.2c",
            prompt="Leave the factor out: the output of the chosen expert is used as it is, without the router's "
            "probability. No two scores of a token are equal, and there is no balance loss. What is the gradient of "
            "the model's loss in the router's scores?",
            hints=["How does the loss of the model change with the router's scores, if only the largest one counts?"],
            options=[
                Option(
                    "0, as a small change of the scores changes neither choice nor output.",
                    "Which score is largest is a choice, and it stays the same; so the router would never learn. With "
                    "the factor the loss tells it whether this token has gained by this expert. About the experts "
                    "that were not chosen it learns by way of the softmax alone.",
                    right=True,
                ),
                Option(
                    "p (1 - p) at the chosen expert's score, by the slope of the softmax.",
                    "p is used only to find the largest one, and nothing is multiplied by it any more: its slope "
                    "comes into no output.",
                ),
                Option(
                    "It has none, as the output jumps wherever the scores change a little.",
                    "The output jumps where the *largest* changes, which takes two equal scores. Everywhere else it "
                    "is constant in them, and a constant has a gradient.",
                ),
                Option(
                    "That with the factor, divided by p: the output is larger by just so much.",
                    "The output is larger by 1/p, and what was differentiated is gone: the path from the scores to "
                    "the output was the factor.",
                ),
            ],
        ),
    ],
)
