r"""Many query heads, few key heads

Today's models have fewer heads of keys and values than heads of queries: SmolLM2-135M has 9 heads of queries and 3 of
keys. Neighbouring query heads share one: with H query heads and G key heads, **query head i looks at key head
i // (H / G)**. This is *grouped-query attention*; with G = 1 it is called multi-query attention, and with G = H it is
chapter 5's.

Write it for a model that reads on: the keys are those of all S positions so far, and the T queries are those of the
**last** T of them. So query t stands at position S - T + t, and it may look at that position and at all before it.
"""

import math

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def grouped_attention(queries, keys, values):
    """Causal attention whose query heads share key heads.

    Args:
        queries: (B, H, T, d), those of the last T positions, T at most S.
        keys: (B, G, S, d); G divides H.
        values: (B, G, S, e).

    Returns:
        (B, H, T, e): of each query head the weighted sums of values. Scores are divided by the root of d.
    """
    ### BEGIN SOLUTION
    H, T, d = queries.shape[1:]
    G, S = keys.shape[1:3]
    keys = keys.repeat_interleave(H // G, dim=1)  # (B, H, S, d)
    values = values.repeat_interleave(H // G, dim=1)  # (B, H, S, e)
    scores = queries @ keys.mT / math.sqrt(d)  # (B, H, T, S)
    may = torch.ones(T, S, dtype=torch.bool, device=queries.device).tril(S - T)
    weights = scores.masked_fill(~may, -torch.inf).softmax(dim=-1)
    return weights @ values
    ### END SOLUTION


def with_an_axis_for_groups(queries, keys, values):
    B, H, T, d = queries.shape
    G, S = keys.shape[1:3]
    scores = torch.einsum("bgntd,bgsd->bgnts", queries.view(B, G, H // G, T, d), keys) * d**-0.5
    last = torch.arange(S - T, S, device=queries.device)
    later = torch.arange(S, device=queries.device) > last[:, None]
    weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
    return torch.einsum("bgnts,bgse->bgnte", weights, values).reshape(B, H, T, -1)


def head_by_head(queries, keys, values):
    size, ahead = queries.shape[1] // keys.shape[1], keys.shape[2] - queries.shape[2]
    may = torch.ones(queries.shape[2], keys.shape[2], dtype=torch.bool, device=queries.device).tril(ahead)
    heads = [
        F.scaled_dot_product_attention(queries[:, i], keys[:, i // size], values[:, i // size], attn_mask=may)
        for i in range(queries.shape[1])
    ]
    return torch.stack(heads, dim=1)


def aligned_to_the_first(queries, keys, values):
    return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)


def in_turns(queries, keys, values):
    times = queries.shape[1] // keys.shape[1]
    return grouped_attention(queries, keys.repeat(1, times, 1, 1), values.repeat(1, times, 1, 1))


def groups_of_queries_averaged(queries, keys, values):
    H, G = queries.shape[1], keys.shape[1]
    mean = queries.unflatten(1, (G, H // G)).mean(2)
    return grouped_attention(mean, keys, values).repeat_interleave(H // G, dim=1)


def keys_of_groups_averaged(queries, keys, values):
    keys = keys.mean(1, keepdim=True)
    return grouped_attention(queries, keys.expand(-1, values.shape[1], -1, -1), values)


def _reference(queries, keys, values):
    queries, keys, values = (x.detach().cpu().double() for x in (queries, keys, values))
    B, H, T, d = queries.shape
    G, S = keys.shape[1:3]
    result = torch.zeros(B, H, T, values.shape[-1], dtype=torch.float64)
    for i in range(H):
        g = (i * G) // H
        for t in range(T):
            seen = S - T + t + 1
            scores = (keys[:, g, :seen] * queries[:, i, t, None]).sum(-1) / d**0.5  # (B, seen)
            weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
            result[:, i, t] = (weights[:, :, None] * values[:, g, :seen]).sum(1)
    return result


def verify(t, answer):
    B, some, d, e = t.sizes(4, 3, 8)
    for H, G, T, S, case in (
        (12, 3, some, some + 9, "12 query heads and 3 key heads"),
        (8, 4, 1, 11, "8 query heads and 4 key heads, one query"),
        (5, 1, some, some + 8, "5 query heads and one key head"),
        (6, 6, some, some + 7, "6 query heads and 6 key heads"),
        (9, 3, 8, 8, "9 query heads and 3 key heads, as many queries as keys"),
    ):
        queries, keys, values = t.randn(B, H, T, d), t.randn(B, G, S, d), t.randn(B, G, S, e)
        want = _reference(queries, keys, values)
        t.same(t.call(answer, queries, keys, values), want, f"the result for {case}")
    queries, keys = 5 * queries, 5 * keys  # what is masked may have by far the largest score
    want = _reference(queries, keys, values)
    t.same(t.call(answer, queries, keys, values), want, "the result for scores of 100 and more", tolerance=(1e-2, 1e-3))


MUTANTS = [
    Mutant("interleaved", in_turns, "query head i uses key head i % G: neighbours share one, i // (H / G) "
        "(`repeat_interleave`, not `repeat`)"),
    Mutant("keys-interleaved", ("keys.repeat_interleave(H // G, dim=1)", "keys.repeat(1, H // G, 1, 1)"),
        "query head i uses the values of head i // (H / G), but the keys of head i % G"),
    Mutant("values-interleaved", ("values.repeat_interleave(H // G, dim=1)", "values.repeat(1, H // G, 1, 1)"),
        "query head i uses the keys of head i // (H / G), but the values of head i % G"),
    Mutant("one-head", ("keys.repeat_interleave(H // G, dim=1)",
        "keys[:, :1].expand(-1, H, -1, -1)"), "all query heads use the first head's keys"),
    Mutant("first-head", lambda q, k, v: grouped_attention(q, k[:, :1], v[:, :1]), "all query heads use the first head "
        "of keys and values"),
    Mutant("turned", lambda q, k, v: grouped_attention(q, k.flip(1), v.flip(1)), "the groups are in reverse order: "
        "query head 0 uses key head 0"),
    Mutant("unscaled", (" / math.sqrt(d)", ""), "the scores are not divided by the root of d"),
    Mutant("scale", ("math.sqrt(d)", "d"), "the scores are divided by d, not by its root"),
    Mutant("scaled-by-e", ("math.sqrt(d)", "math.sqrt(values.shape[-1])"), "the scores are divided by the root of the "
        "values' size e: it is d, the size of queries and keys"),
    Mutant("scaled-by-all", ("math.sqrt(d)", "math.sqrt(H * d)"), "the scores are divided by the root of H d: it is d, "
        "the size of one head"),
    Mutant("scaled-by-group", ("math.sqrt(d)", "math.sqrt(H // G * d)"), "the scores are divided by the root of d "
        "times H / G: it is d, the size of one head"),
    Mutant("from-the-first", aligned_to_the_first, "the mask takes the queries for those of the *first* T positions "
        "(as `is_causal=True` and a bare `tril()` do): query t stands at position S - T + t"),
    Mutant("unmasked", (".masked_fill(~may, -torch.inf)", ""), "there is no causal mask: a query may not look at later "
        "positions"),
    Mutant("itself", (".tril(S - T)", ".tril(S - T - 1)"), "a query does not look at its own position: it may"),
    Mutant("one-ahead", (".tril(S - T)", ".tril(S - T + 1)"), "a query looks at one position too many, the one after "
        "its own"),
    Mutant("backwards", (".tril(S - T)", ".triu(S - T)"), "a query looks at later positions and not at earlier ones: "
        "the mask is the wrong way round"),
    Mutant("zero", ("-torch.inf", "0.0"), "scores that are masked become 0, which gets a weight: minus infinity gets "
        "none"),
    Mutant("finite", ("-torch.inf", "-30.0"), "masked scores become -30, which is more than a score may be: minus "
        "infinity gets none"),
    Mutant("after-softmax", ("scores.masked_fill(~may, -torch.inf).softmax(dim=-1)",
        "scores.softmax(dim=-1).masked_fill(~may, 0.0)"), "weights are masked after the softmax, so that they do not "
        "sum to 1: mask the scores"),
    Mutant("no-softmax", (".masked_fill(~may, -torch.inf).softmax(dim=-1)", ".masked_fill(~may, 0.0)"), "there is no "
        "softmax: scores are no weights yet"),
    Mutant("over-queries", ("softmax(dim=-1)", "softmax(dim=-2).nan_to_num()"), "the softmax runs over the queries: "
        "the weights of one query, over the keys, sum to 1"),
    Mutant("over-heads", (".softmax(dim=-1)", ".softmax(dim=1).nan_to_num()"), "the softmax runs over the heads, not "
        "over the keys"),
    Mutant("mean-query", groups_of_queries_averaged, "the queries of a group are averaged: each head keeps its own "
        "query, only keys and values are shared"),
    Mutant("mean-key", keys_of_groups_averaged, "the keys of all heads are averaged: a query head uses one of them"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.1a",
            prompt="Write `grouped_attention(queries, keys, values)`.",
            hints=[
                "With H = 12 and G = 3 write down which key head each of the twelve query heads uses.",
                "Either repeat keys and values, so that there are H of them (`repeat_interleave` or `repeat`?), or "
                "give the queries an axis of groups, (B, G, H / G, T, d).",
                "The mask is (T, S). Its last row is all True, and the row above it has one False: `tril(S - T)`.",
            ],
            answer=grouped_attention,
            verify=verify,
            alternatives=[with_an_axis_for_groups, head_by_head],
            mutants=MUTANTS,
            min_checks=11,
            advice={
                "values": "Look at one head first: keys of head i // (H / G), scores over the root of d, the mask, "
                "softmax over the keys, values of the same head.",
                "nonfinite": "A row of scores that is masked everywhere becomes NaN: each query may look at its own "
                "position at least.",
                "raised": "If the sizes do not fit: the queries have H heads and the keys G, which broadcast only "
                "after an axis of groups, or after repeating.",
                "shape": "There is one result for each *query* head, of the values' size e.",
            },
            explanation=r"""
`repeat_interleave` says it most clearly, and it undoes the gain: the copies are as large as the keys of H heads would
be. With an axis of groups nothing is copied, and each key is read from memory once for the H / G queries that use it.
`F.scaled_dot_product_attention(..., enable_gqa=True)` does the latter. Its `is_causal=True` aligns the mask to the
first position, which is right only where T = S: with a cache, give it the mask.
""",
        ),
        Choice(
            key="own-19.1b",
            prompt="A model was trained with 9 heads of queries and 9 of keys. To make its cache smaller, somebody "
            "keeps the first key and value head of every three and drops the others. It writes nonsense. Why?",
            hints=["What did the query heads 1 and 2 learn to ask, and of whom?"],
            options=[
                Option(
                    "Two of three query heads now ask keys that were not trained together with them.",
                    "A query matrix and its key matrix are learned as a pair: only their product matters. Ainslie et "
                    "al. 2023 average the key heads of a group instead, and then train on for some 5 % of the steps; "
                    "most models are trained with groups from the first step.",
                    right=True,
                ),
                Option(
                    "The scores must be divided by the root of three times the size of a head from now on.",
                    "The size d of queries and keys is what it was, so that the variance of their products is, too.",
                ),
                Option(
                    "Groups change the order of positions in the cache, so that the mask no longer fits.",
                    "Positions are another axis than heads. The mask is the same for all heads.",
                ),
                Option(
                    "The output matrix now takes 3 heads, and it was trained to read the results of 9.",
                    "There are still 9 query heads, so that 9 results go into the output matrix.",
                ),
            ],
        ),
    ],
)
