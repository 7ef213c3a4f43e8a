r"""A learned embedding for each offset

A score should know how far a key is from the query, and to which side. Give each offset $o$ from $-k$ to $k$ a
learned vector $\mathbf a_o$ of length D, and let offsets beyond share the outermost vectors:

$$\text{score}(t, s) = \frac{\mathbf q_t^\top (\mathbf k_s + \mathbf a_o)}{\sqrt D},$$

where $o$ is the position of the key less the position of the query, clipped to $[-k, k]$.

There are S keys at positions 0 to S - 1 and T queries, T at most S. The queries are the *last* T of these positions,
as they are when keys of earlier tokens are kept in a cache. So the last query stands where the last key stands.

Write `relative_scores(queries, keys, table)` for queries (B, T, D), keys (B, S, D) and the table (2k + 1, D), whose
row $o + k$ is $\mathbf a_o$. It returns the scores, (B, T, S). (Shaw, Uszkoreit and Vaswani, 2018, arXiv:1803.02155,
equation 4.)
"""

import math

import torch

from d2lmini.exercises.engine import Code, Exercise, Mutant


def relative_scores(queries, keys, table):
    """Score queries against keys that know their offset.

    Args:
        queries: (B, T, D), at the last T of the S positions.
        keys: (B, S, D), S at least T.
        table: (2k + 1, D); row o + k is the vector of offset o.

    Returns:
        (B, T, S).
    """
    ### BEGIN SOLUTION
    T, S, D = queries.shape[1], keys.shape[1], queries.shape[2]
    limit = len(table) // 2
    query_positions = torch.arange(S - T, S, device=keys.device)  # (T,)
    key_positions = torch.arange(S, device=keys.device)  # (S,)
    offsets = key_positions[None, :] - query_positions[:, None]  # (T, S)
    vectors = table[offsets.clamp(-limit, limit) + limit]  # (T, S, D)
    content = queries @ keys.mT  # (B, T, S)
    position = torch.einsum("btd,tsd->bts", queries, vectors)
    return (content + position) / math.sqrt(D)
    ### END SOLUTION


def without_the_large_tensor(queries, keys, table):
    T, S, D = queries.shape[1], keys.shape[1], queries.shape[2]
    k = (table.shape[0] - 1) // 2
    each = queries @ table.T  # (B, T, 2k + 1): every query with every vector
    rows = torch.arange(S, device=keys.device) - torch.arange(T, device=keys.device)[:, None] - (S - T)
    rows = torch.clip(rows, -k, k) + k
    return (queries @ keys.mT + each.gather(2, rows.expand(len(queries), T, S))) * D**-0.5


def pair_by_pair(queries, keys, table):
    _, T, D = queries.shape
    S, k = keys.shape[1], len(table) // 2
    columns = []
    for s in range(S):
        rows = []
        for t in range(T):
            offset = max(-k, min(k, s - (S - T + t)))
            rows.append((queries[:, t] * (keys[:, s] + table[offset + k])).sum(-1))
        columns.append(torch.stack(rows, dim=1))
    return torch.stack(columns, dim=2) / D**0.5


def verify(t, answer):
    for case in (  # clipped, as many queries as keys, decoding with a wide table, a single vector
        (*t.sizes(2, 2, 5), 9, 7, 3),
        (*t.sizes(2, 2, 5), 6, 6, 2),
        (*t.sizes(2, 2, 5), 5, 1, 20),
        (1, 3, 4, 3, 0),
    ):
        _one(t, answer, *case)


def _one(t, answer, B, D, S, T, k):
    queries, keys, table = t.randn(B, T, D), t.randn(B, S, D), t.randn(2 * k + 1, D)
    inputs = [tensor.requires_grad_() for tensor in (queries, keys, table)]
    q, y, a = leaves = [tensor.detach().cpu().double().requires_grad_() for tensor in inputs]

    def clip(offset):
        return max(-k, min(k, offset)) + k

    rows = []
    for i in range(T):  # its query stands at i + S - T
        row = [(q[:, i] * (y[:, s] + a[clip(s - i - S + T)])).sum(-1) for s in range(S)]
        rows.append(torch.stack(row, dim=-1))
    want = torch.stack(rows, dim=1) / D**0.5
    slopes = torch.autograd.grad(want.sum(), leaves)
    got = t.call(answer, queries, keys, table)
    case = f"for T={T}, S={S}, k={k}"
    t.same(got, want.detach(), f"the scores {case}")
    for i, name in enumerate(("queries", "keys", "table")):
        t.same(t.gradient(got, i), slopes[i], f"the gradient in the {name} {case}", tolerance=(1e-3, 1e-3))


MUTANTS = [
    Mutant("position-scaled", ("(content + position) / math.sqrt(D)", "content + position / math.sqrt(D)"),
        "both products are divided by the root of D, not the second alone"),
    Mutant("scaled-by-D", ("math.sqrt(D)", "D"), "the scores are divided by D, not by its root"),
    Mutant("clipped-early", ("clamp(-limit, limit)", "clamp(1 - limit, limit - 1)"), "offsets are clipped to k - 1: "
        "the outermost rows of the table, for -k and k, are never used"),
    Mutant("last-row", ("clamp(-limit, limit)", "clamp(-limit, limit - 1)"), "offset k shares the vector of k - 1: the "
        "last row of the table, 2k, is never used"),
    Mutant("no-position", ("(content + position)", "(content + 0 * position)"), "the table is not used"),
    Mutant("no-content", ("(content + position)", "(0 * content + position)"), "the product of query and key is "
        "missing"),
    Mutant("unscaled", (" / math.sqrt(D)", ""), "the scores are not divided by the root of D"),
    Mutant("content-scaled", ("(content + position) / math.sqrt(D)", "content / math.sqrt(D) + position"),
        "both products are divided by the root of D, not the first alone"),
    Mutant("sign", ("key_positions[None, :] - query_positions[:, None]",
        "query_positions[:, None] - key_positions[None, :]"), "offsets have the wrong sign: the key's position less "
        "the query's"),
    Mutant("aligned-at-start", ("torch.arange(S - T, S, device", "torch.arange(T, device"), "queries are counted from "
        "0 here; they are the last T of the S positions"),
    Mutant("not-shifted", ("clamp(-limit, limit) + limit", "clamp(-limit, limit)"), "a negative row number counts from "
        "the end of the table: row o + k belongs to offset o"),
    Mutant("raised", ("offsets.clamp(-limit, limit) + limit", "offsets + limit")),  # not clipped
    Mutant("wrapped", ("offsets.clamp(-limit, limit) + limit", "(offsets + limit) % len(table)"),
        "offsets beyond k wrap around to the other side; they should share the outermost vector"),
    Mutant("one-side", ("offsets.clamp(-limit, limit) + limit", "limit - offsets.abs().clamp(max=limit)"),
        "keys before and after the query get the same vector: the sign of the offset counts"),
    Mutant("absolute", ("offsets.clamp(-limit, limit) + limit", "key_positions.clamp(max=2 * limit).expand(T, S)"),
        "these vectors depend on the key's position, not on the offset"),
    Mutant("with-keys", ('"btd,tsd->bts", queries, vectors', '"bsd,tsd->bts", keys, vectors'), "the vectors meet the "
        "keys; they should meet the queries"),
    Mutant("zero-beyond", ("clamp(-limit, limit) + limit]",
        "clamp(-limit, limit) + limit] * (offsets.abs() <= limit)[..., None]"), "offsets beyond k have no vector here; "
        "they should share the outermost ones"),
    Mutant("first-row", ("clamp(-limit, limit)", "clamp(1 - limit, limit)"), "offset -k shares the vector of 1 - k: "
        "row 0 of the table is never used"),
    Mutant("one-side", ("offsets.clamp(-limit, limit) + limit", "offsets.abs().clamp(max=limit) + limit"),
        "keys before and after the query get the same vector: the sign of the offset counts"),
    Mutant("past-only", ("clamp(-limit, limit)", "clamp(-limit, 0)"), "keys after the query all get the vector of "
        "offset 0: nothing is causal here"),
    Mutant("one-off", ("torch.arange(S - T, S, device", "torch.arange(S - T - 1, S - 1, device"),
        "the queries stand one place too early: the last query stands where the last key stands"),
    Mutant("scaled-twice", ("(content + position) / math.sqrt(D)",
        "(content + position / math.sqrt(D)) / math.sqrt(D)"), "the second product is divided by the root of D twice"),
    Mutant("in-both", ('torch.einsum("btd,tsd->bts", queries, vectors)', 'torch.einsum("btd,tsd->bts", queries, '
        'vectors) + torch.einsum("btsd,tsd->bts", keys[:, None] + vectors, vectors)'), "the vectors are added to the "
        "queries as well: add them to the keys alone"),
    Mutant("softmax", ("return (content + position) / math.sqrt(D)",
        "return torch.softmax((content + position) / math.sqrt(D), -1)"), "these are weights; the scores are asked "
        "for, before any softmax"),
    Mutant("root-S", ("math.sqrt(D)", "math.sqrt(S)"), "the scores are divided by the root of S; it is that of D, "
        "the features"),
    Mutant("rows", ("math.sqrt(D)", "math.sqrt(len(table))"), "the scores are divided by the root of the number of "
        "vectors; it is that of D"),
    Mutant("keys-early", ("key_positions = torch.arange(S, device=keys.device)", "key_positions = torch.arange(T - "
        "S, T, device=keys.device)"), "keys are counted from T - S here: they stand at 0 to S - 1, and the queries "
        "at the last T of these"),
    Mutant("no-query", ('"btd,tsd->bts", queries, vectors', '"btd,tsd->bts", torch.ones_like(queries), vectors'),
        "the vectors are only summed up: each meets its query in a dot product"),
    Mutant("first-query", ('"btd,tsd->bts", queries, vectors', '"bd,tsd->bts", queries[:, 0], vectors'),
        "all vectors meet the first query: each row of them belongs to its own"),
    Mutant("first-example", ('"btd,tsd->bts", queries, vectors', '"td,tsd->ts", queries[0], vectors'),
        "the vectors meet the queries of the first example alone"),
    Mutant("causal", ("return (content + position) / math.sqrt(D)", "return ((content + position) / "
        "math.sqrt(D)).tril(S - T)"), "scores of keys after the query are set to zero: nothing is masked here"),
    Mutant("row-early", ("clamp(-limit, limit) + limit]", "clamp(-limit, limit) + limit - 1]"), "all rows are one "
        "too early: row o + k belongs to offset o, and rows are counted from 0"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.6.3",
    doc=__doc__,
    source="D2L 11.6, exercise 3",
    parts=[
        Code(
            key="d2l-11.6.3",
            hints=[
                "First make the (T, S) matrix of offsets from two `torch.arange`s, one as a column.",
                "Clip it to [-k, k], add k, and index the table with it: that gives (T, S, D).",
                "The queries' positions are S - T, ..., S - 1. `torch.einsum('btd,tsd->bts', ...)` multiplies each "
                "query "
                "with its own row of vectors.",
            ],
            answer=relative_scores,
            verify=verify,
            alternatives=[without_the_large_tensor, pair_by_pair],
            min_checks=12,
            advice={
                "values": "A query at i + S - T and a key at s, whatever T, S and k are: row s - (i + S - T), clipped "
                "to [-k, k], plus k; its vector is added to the key, then the dot product, then the root of D",
                "nonfinite": "Nothing is masked here: every query scores every key",
                "raised": "If an index is out of bounds: is every row number between 0 and 2k?",
            },
            mutants=MUTANTS,
            explanation=r"""
The table has $(2k+1)D$ parameters, whatever the length. A score depends on the two words and on the clipped offset,
so what is learned about "the word before" holds at every position, and beyond the trained length nothing new is asked
for.

The tensor of vectors, (T, S, D), is the expensive part. It can be avoided: a query meets only $2k+1$ different vectors,
so multiply it with those, (B, T, 2k + 1), and *pick* the products afterwards. The package's `RelativePositionEmbedding`
does that. Transformer-XL does it by shifting rows, which needs no picking.
""",
        )
    ],
)
