r"""Nucleus sampling

A language model gives every token of its vocabulary some probability, and the many that make no sense have together a
share that is not small: draw a hundred tokens, and a few come from there. *Nucleus sampling* draws from the head of
the distribution alone. Its head, the nucleus, is the **smallest set of tokens whose probabilities add up to at least
p**: the likeliest tokens, in order, until p is reached. The others get probability 0, and what is left is scaled up to
sum to 1.
"""

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def nucleus(logits, p):
    """The distribution that nucleus sampling draws from.

    Args:
        logits: (B, V); minus infinity where a token is out of the question.
        p: the mass that the nucleus must have at least, above 0 and up to 1.

    Returns:
        Probabilities (B, V), 0 outside of the nucleus. Of tokens that are equally likely the lower id comes first.
    """
    ### BEGIN SOLUTION
    probabilities = torch.softmax(logits, dim=-1)
    likeliest, order = torch.sort(probabilities, dim=-1, descending=True, stable=True)
    before = torch.cumsum(likeliest, dim=-1) - likeliest  # the mass of all that are likelier
    kept = before < p  # what is there does not suffice yet
    kept = torch.zeros_like(kept).scatter(-1, order, kept)  # back from the order of probability to that of ids
    probabilities = probabilities.masked_fill(~kept, 0.0)
    return probabilities / probabilities.sum(dim=-1, keepdim=True)
    ### END SOLUTION


def token_by_token(logits, p):
    result = torch.zeros_like(logits)
    for b, row in enumerate(torch.softmax(logits, dim=-1)):
        mass = 0.0
        for v in torch.argsort(row, descending=True, stable=True).tolist():
            result[b, v] = row[v]
            mass += row[v].item()
            if mass >= p:
                break
        result[b] /= result[b].sum()
    return result


def with_a_softmax_of_what_is_left(logits, p):
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ranked = logits.gather(-1, order)
    reached = ranked.softmax(-1).cumsum(-1) >= p
    outside = torch.cat([torch.zeros_like(reached[:, :1]), reached[:, :-1]], dim=-1)
    return torch.empty_like(logits).scatter(-1, order, ranked.masked_fill(outside, -torch.inf)).softmax(-1)


def all_that_are_tied(logits, p):
    probabilities = torch.softmax(logits, dim=-1)
    likeliest = probabilities.sort(dim=-1, descending=True)[0]
    kept = likeliest.cumsum(-1) - likeliest < p
    least = likeliest.masked_fill(~kept, 2.0).amin(-1, keepdim=True)
    probabilities = probabilities.masked_fill(probabilities < least, 0.0)
    return probabilities / probabilities.sum(-1, keepdim=True)


def by_no_stable_sort(logits, p):
    """As a sort that keeps no order may put equals: here those in the middle come first."""
    order = torch.arange(logits.shape[-1], device=logits.device).roll(logits.shape[-1] // 2)
    return nucleus(logits[:, order], p)[:, order.argsort()]


def without_a_sort(logits, p):
    probabilities = torch.softmax(logits, dim=-1)
    kept = torch.where(probabilities.cumsum(-1) - probabilities < p, probabilities, 0.0)
    return kept / kept.sum(-1, keepdim=True)


def zero_for_infinity(logits, p):
    return logits.masked_fill(nucleus(logits, p) == 0, 0.0).softmax(-1)


def a_share_of_the_tokens(logits, p):
    V = logits.shape[-1]
    kept = logits.topk(max(1, round(p * V)), dim=-1).indices
    return logits.softmax(-1) * 0 + torch.full_like(logits, -torch.inf).scatter(
        -1, kept, logits.gather(-1, kept)
    ).softmax(-1)


def _reference(logits, p):
    rows = []
    for row in logits.cpu().double().softmax(-1).tolist():
        kept, mass = {}, 0.0
        for v in sorted(range(len(row)), key=lambda v: (-row[v], v)):
            kept[v] = row[v]
            mass += row[v]
            if mass >= p:
                break
        rows.append([kept.get(v, 0.0) / mass for v in range(len(row))])
    return torch.tensor(rows, dtype=torch.float64)


def verify(t, answer):
    B, V = t.sizes(1, 3, 6) + t.sizes(1, 11, 16)
    # no token has the mass alone; ladders, shuffled, of which the first is the least steep
    steps = torch.tensor([0.1, *[0.25] * (B - 1)], device=t.device)
    ladder = steps[:, None] * torch.arange(V, device=t.device) + t.rand(B, V, high=0.03)
    moderate = -ladder.gather(1, t.rand(B, V).argsort(dim=1)) + 100 * (1 + t.rand(B, 1))
    for p in (0.7, 0.6):
        t.same(t.call(answer, moderate, p), _reference(moderate, p), f"the distribution for p = {p}")

    mixed = torch.cat([t.randn(2, V, scale=0.3), t.randn(2, V, scale=0.3)])
    mixed[:2, 4] += 8.0  # one token has the mass alone, in two rows of four
    got, want = t.call(answer, mixed, 0.9), _reference(mixed, 0.9)
    t.same(got, want, "the distribution for peaked and flat rows")
    zeros = torch.equal(got.detach().cpu() == 0, want == 0)  # no tolerance hides them
    t.that(zeros, "not-zero", "outside of the nucleus there is something small: it must be 0 itself")

    flat = torch.zeros(2, 8, device=t.device)
    got, want = t.call(answer, flat, 0.25), _reference(flat, 0.25)
    sizes = isinstance(got, torch.Tensor) and got.shape == want.shape and bool(((got.cpu() > 0).sum(1) == 2).all())
    others = sizes and not torch.equal(got.cpu() > 0, want > 0)
    message = (
        "for eight equal logits and p = 1/4 as many tokens are in as there should be, but others: of equally likely "
        "ones the lower id comes first, and a sort keeps them so only with `stable=True`"
    )
    t.that(not others, "ties", message)
    t.same(got, want, "the distribution for eight equal logits and p = 1/4")
    flat = torch.zeros(2, 100, device=t.device)  # so many that a sort keeps their order only if it is asked to
    got, want = t.call(answer, flat, 0.255), _reference(flat, 0.255)
    others = isinstance(got, torch.Tensor) and got.shape == want.shape and not torch.equal(got.cpu() > 0, want > 0)
    t.that(
        not others, "ties", message.replace("eight equal logits and p = 1/4", "a hundred equal logits and p = 0.255")
    )
    t.same(got, want, "the distribution for a hundred equal logits and p = 0.255")
    few = t.randn(3, 7, scale=0.5)
    few[:, 2::3] = -torch.inf
    t.same(t.call(answer, few, 0.7), _reference(few, 0.7), "the distribution with logits of minus infinity")
    many = t.randn(2, 60, scale=0.5)
    many[:, 7] = -5.0  # rare, and in where p is 1
    t.same(t.call(answer, many, 1.0), many.cpu().double().softmax(-1), "the distribution of 60 tokens for p = 1")


MUTANTS = [
    Mutant("without-last", ("before < p", "before + likeliest <= p"), "the token by which p is reached is missing: "
        "without it the mass is below p"),
    Mutant("one-too-many", ("kept = before < p", "kept = torch.cat([before[:, :1], before[:, :-1]], dim=-1) < p"),
        "there is one token too many: the set before it had the mass p already"),
    Mutant("exact", ("before < p", "before <= p"), "there is one token too many where the mass is exactly p: *at "
        "least* p is enough, so a token is in only while the mass before it is below p"),
    Mutant("two-at-least", ("before < p", "(before < p) | (torch.arange(before.shape[-1]) < 2)"),
        "two tokens are kept where the likeliest has p by itself: it is the whole nucleus then"),
    Mutant("not-zero", ("masked_fill(~kept, 0.0)", "masked_fill(~kept, 1e-9)")),
    Mutant("nonfinite", ("torch.softmax(logits, dim=-1)", "logits.exp() / logits.exp().sum(-1, True)")),  # overflow
    Mutant("not-scaled", (" / probabilities.sum(dim=-1, keepdim=True)", ""), "the rows do not sum to 1: scale up what "
        "is left"),
    Mutant("divided-by-p", ("probabilities / probabilities.sum(dim=-1, keepdim=True)", "probabilities / p"), "what is "
        "left is divided by p: the nucleus has p or somewhat more, so divide by its own sum"),
    Mutant("ties", ("torch.sort(probabilities, dim=-1, descending=True, stable=True)",
        "(x.flip(-1) for x in torch.sort(probabilities, dim=-1, stable=True))")),  # higher ids
    Mutant("ties", by_no_stable_sort),
    Mutant("by-rank", ("kept = torch.zeros_like(kept).scatter(-1, order, kept)", "kept = kept"), "the first tokens are "
        "kept, not the likeliest: after the sort the places are ranks, not ids"),
    Mutant("gathered", ("torch.zeros_like(kept).scatter(-1, order, kept)", "kept.gather(-1, order)"),
        "ranks and ids are exchanged in the wrong direction: `order` says which id has a rank, so that the ranks must "
        "be scattered, not gathered"),
    Mutant("sorted", ("probabilities = probabilities.masked_fill(~kept, 0.0)",
        "probabilities = likeliest.masked_fill(~(before < p), 0.0)"), "the probabilities come in the order of the "
        "sort: put each back to its token"),
    Mutant("ascending", ("descending=True", "descending=False"), "the least likely tokens are kept: sort with the "
        "largest first"),
    Mutant("rest", ("before < p", "before < 1 - p"), "the nucleus has the mass 1 - p here: p is what is kept, not what "
        "is cut off"),
    Mutant("tail", ("kept = before < p", "kept = before + likeliest >= p"), "the tokens after p is reached are kept: "
        "they are what is cut off"),
    Mutant("one-by-one", ("kept = before < p", "kept = likeliest >= p * likeliest[:, :1]"), "each token is compared "
        "with the likeliest one (that is min-p): add the probabilities up"),
    Mutant("one-order", ("scatter(-1, order, kept)", "scatter(-1, order[:1].expand_as(order), kept)"),
        "the order of the first row is used for all rows"),
    Mutant("one-size", ("kept = before < p", "kept = (before < p)[:1].expand_as(before)"), "all rows have as many "
        "tokens as the first: each row has a nucleus of its own"),
    Mutant("softmax-twice", ("return probabilities / probabilities.sum(dim=-1, keepdim=True)",
        "return torch.softmax(probabilities.masked_fill(~kept, -torch.inf), dim=-1)"), "a softmax of probabilities is "
        "no scaling: divide by their sum, or take the softmax of the logits"),
    Mutant("uniform", ("probabilities = probabilities.masked_fill(~kept, 0.0)", "probabilities = kept.to(logits)"),
        "all tokens of the nucleus have the same probability: scale theirs, so that the ratios stay"),
    Mutant("unsorted", without_a_sort, "the probabilities are added up in the order of the ids: the likeliest come "
        "first"),
    Mutant("zero", zero_for_infinity, "what is cut off has the logit 0, which is a probability like any other: minus "
        "infinity forbids"),
    Mutant("share-of-tokens", a_share_of_the_tokens, "it keeps the share p of the tokens; p is a share of the "
        "probability"),
    Mutant("tied", all_that_are_tied, "all tokens as likely as the last are in; the smallest set takes of equals the "
        "lower ids"),
    Mutant("all", ("before < p", "before < 2"), "this is the softmax of all logits: nothing is cut off. "
        "Is p compared, in each row, with the sum of what comes before a token?"),
    Mutant("over-batch", ("torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=0)"), "the softmax runs over the "
        "batch, not over the tokens"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-16.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-16.1a",
            prompt="Write `nucleus(logits, p)`, which returns the probabilities to draw from.",
            hints=[
                "Sort the probabilities of each row, the largest first, and add them up on the way. "
                "(`torch.sort` takes `dim` by its name where `stable=True` stands, too.)",
                "A token is in if the mass of those *before* it is still below p. So the first one is always in.",
                "What you know now is which *ranks* are in. `scatter` with the order of the sort turns ranks into ids.",
            ],
            answer=nucleus,
            verify=verify,
            alternatives=[token_by_token, with_a_softmax_of_what_is_left],
            mutants=MUTANTS,
            advice={
                "nonfinite": "a nucleus is never empty: the likeliest token is in, even if it has more than p alone. "
                "And minus infinity is for logits; what comes back are probabilities. Exponentials of large logits "
                "overflow: `torch.softmax` does not",
                "ties": "If the sort begins with the least and is turned around, equals are turned as well: "
                "`descending=True`.",
                "values": "Write out one row: its probabilities in falling order, below them the sum of all before "
                "each. In are those whose sum is below p, and no others. Then look at whether they are back at their "
                "ids, and whether the row sums to 1.",
            },
            explanation=r"""
The condition is on the mass *before* a token: it is in while that is below $p$. So the first token is always in, and
the token that crosses $p$ is, too. With "the sum so far is at most $p$" instead, a model that is sure of its token
would have an empty nucleus.

With exactly equal probabilities the smallest set is not unique; it takes a rule to make it so, or results differ from
one sorting algorithm to the next.
""",
        ),
        Choice(
            key="own-16.1b",
            prompt="After *The capital of France is* a model gives one token 0.95, and 1,000 others share the rest "
            "equally. After *I would like to* 1,000 tokens are equally likely. Compare the nucleus of p = 0.9 with "
            "top-k of k = 40.",
            hints=["Count for each of the four cases how many tokens are kept, and what share of the mass."],
            options=[
                Option(
                    "The nucleus has 900 of the 1,000 tokens in both cases, and top-k 40 in both.",
                    "The nucleus is no share of the tokens. In the first case a single token has 0.95 already.",
                ),
                Option(
                    "The nucleus is empty, as 0.95 is more than p, and then has 900; top-k has 40.",
                    "The smallest set with *at least* p is that one token. A nucleus is never empty.",
                ),
                Option(
                    "The nucleus has 1 token, then 900; top-k has 39 too many, then 860 too few.",
                    "The size of the nucleus follows the distribution. A fixed k is too large where the model is "
                    "sure, and where much is possible it leaves out 960 tokens that fit as well as those it takes: "
                    "Holtzman et al. 2020 argue so.",
                    right=True,
                ),
                Option(
                    "Both cut off the same tail in both cases, once k is chosen well for the model.",
                    "No k fits both: for the first case it would have to be 1, for the second 900.",
                ),
            ],
        ),
    ],
)
