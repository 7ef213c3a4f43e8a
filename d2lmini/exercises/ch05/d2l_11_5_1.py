r"""The maps of several heads

`layer` is a `d2l.MultiHeadAttention` with H heads, and with biases in its projections. Write `head_maps(layer, queries,
keys, valid_lens)` that returns the attention weights of *every* head, (B, H, T, S): those with which the layer itself
would mix the values.

- Its linear layers are `layer.W_q` and `layer.W_k`; H is `layer.num_heads`.
- Head i has the i-th block of h / H neighbouring features.
- Rows sum to one, and a key that `valid_lens` hides has weight zero. A query that may attend to nothing has a row of
  zeros.

When the check passes, look at what you made: `d2l.show_heatmaps(maps, "keys", "queries")` draws a row of maps for each
example and a column for each head.
"""

import math

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def head_maps(layer, queries, keys, valid_lens):
    """Compute the attention weights of every head.

    Args:
        layer: a `d2l.MultiHeadAttention`.
        queries: (B, T, query_size). keys: (B, S, key_size).
        valid_lens: integers of shape (B,) or (B, T): how many of the first keys count.

    Returns:
        (B, H, T, S).
    """
    ### BEGIN SOLUTION
    heads = layer.num_heads
    q = layer.W_q(queries).unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, d)
    k = layer.W_k(keys).unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, S, d)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (B, H, T, S)
    return d2l.masked_softmax(scores, valid_lens)
    ### END SOLUTION


def by_capture(layer, queries, keys, valid_lens):
    values = keys.new_zeros(*keys.shape[:2], layer.W_v.in_features)
    with d2l.capture_attention(layer) as record:
        layer(queries, keys, values, valid_lens)
    return record["attention"][0]


def head_by_head(layer, queries, keys, valid_lens):
    maps, size = [], layer.W_q.out_features // layer.num_heads
    for rows in torch.arange(layer.W_q.out_features, device=queries.device).split(size):
        q = queries @ layer.W_q.weight[rows].T + layer.W_q.bias[rows]
        k = keys @ layer.W_k.weight[rows].T + layer.W_k.bias[rows]
        maps.append(d2l.masked_softmax(q @ k.mT / size**0.5, valid_lens))
    return torch.stack(maps, dim=1)


# a wrong answer


def as_d2l_keeps_them(layer, queries, keys, valid_lens):
    return head_maps(layer, queries, keys, valid_lens).flatten(0, 1)


def lengths_out_of_step(layer, queries, keys, valid_lens):
    H = layer.num_heads
    q = layer.W_q(queries).unflatten(-1, (H, -1)).transpose(1, 2).flatten(0, 1)  # (B * H, T, d)
    k = layer.W_k(keys).unflatten(-1, (H, -1)).transpose(1, 2).flatten(0, 1)
    lens = valid_lens.repeat(H, *[1] * (valid_lens.dim() - 1))
    return d2l.masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), lens).unflatten(0, (-1, H))


def heads_and_examples_mixed(layer, queries, keys, valid_lens):
    maps = head_maps(layer, queries, keys, valid_lens)
    return maps.reshape(layer.num_heads, len(queries), *maps.shape[2:]).transpose(0, 1)


def length_of_the_first(layer, queries, keys, valid_lens):
    return head_maps(layer, queries, keys, valid_lens if valid_lens.dim() == 1 else valid_lens[:, 0])


def reference(layer, queries, keys, lens):
    """Weights in float64, one entry of the batch and one head at a time."""
    W_q, W_k = (w.weight.detach().cpu().double() for w in (layer.W_q, layer.W_k))
    b_q, b_k = (w.bias.detach().cpu().double() for w in (layer.W_q, layer.W_k))
    H, d = layer.num_heads, len(W_q) // layer.num_heads
    maps = []
    for x_q, x_k, length in zip(queries.cpu().double(), keys.cpu().double(), lens.cpu(), strict=True):
        q, k = x_q @ W_q.T + b_q, x_k @ W_k.T + b_k  # (T, h), (S, h)
        allowed = torch.arange(len(k)) < length.reshape(-1, 1).expand(len(q), 1)  # (T, S)
        for i in range(0, H * d, d):
            scores = q[:, i : i + d] @ k[:, i : i + d].T / math.sqrt(d)
            powers = torch.exp(scores - scores.amax(-1, keepdim=True)) * allowed
            maps.append(powers / powers.sum(-1, keepdim=True).clamp(min=1e-300))
    return torch.stack(maps).unflatten(0, (len(queries), H))


def verify(t, answer):
    for form in ("one length an example", "a length for each query", "a batch of one"):
        B, T, S, query_size, key_size = t.sizes(5, 3)
        B = 1 if form == "a batch of one" else B
        if form == "a length for each query":  # sizes tell nothing here: nothing is causal, or turned
            B = S = T
            key_size = query_size
        H, d = t.random.choice([(2, 3), (3, 2), (4, 3), (3, 4)])
        layer = d2l.MultiHeadAttention(H * d, H, bias=True, query_size=query_size, key_size=key_size)
        for parameter in layer.parameters():  # large enough that heads, bias and scale show, and no weight is one
            parameter.data = t.randn(*parameter.shape, scale=0.6).cpu()
        layer = layer.to(t.device)
        queries, keys = t.randn(B, T, query_size), t.randn(B, S, key_size)
        lens = t.integers(1, S + 1, *((B,) if form.startswith("one") else (B, T)))
        lens.view(-1)[0], lens.view(-1)[1] = S - 1, S  # one that hides something, one that does not
        lens.view(-1)[-1] = 0  # may attend to nothing
        if B == 1:  # all scores of some query are 300 lower, which changes no weight, but -100 hides nothing there
            lens = lens.clamp(max=S - 1)
            q = layer.W_q(queries[0, :-1]).detach().unflatten(-1, (H, d)).transpose(0, 1)  # (H, T - 1, d)
            longest = torch.stack([x[x.norm(dim=-1).argmax()] for x in q])  # (H, d)
            down = -300 * d**0.5 * longest / longest.square().sum(-1, keepdim=True)
            layer.W_k.bias.data = down.flatten()
        want = reference(layer, queries, keys, lens)
        got = t.call(answer, layer, queries, keys, lens)
        t.same(got, want, f"the maps, with {form}", tolerance=(1e-3, 1e-3) if B == 1 else None)


MUTANTS = [
    Mutant("unmasked", ("scores, valid_lens)", "scores)"), "the keys beyond valid_lens get weight"),
    Mutant("same-weights", ("layer.W_k(keys)", "(layer.W_k if keys.shape[-1] != queries.shape[-1] else "
        "layer.W_q)(keys)"), "W_q makes the keys where both sizes are equal: keys go through W_k"),
    Mutant("late-mask", ("return d2l.masked_softmax(scores, valid_lens)",
        "return torch.softmax(scores, -1) * (d2l.masked_softmax(scores, valid_lens) > 0)"), "hidden keys are zero, but "
        "the rows do not sum to one: mask before the softmax"),
    Mutant("view", ("layer.W_q(queries).unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, d)\n    k = "
        "layer.W_k(keys).unflatten(-1, (heads, -1)).transpose(1, 2)", "layer.W_q(queries).view(len(queries), heads, "
        "queries.shape[1], -1)\n    k = layer.W_k(keys).view(len(keys), heads, keys.shape[1], -1)"),
        "the heads are made of the wrong numbers: `view` to (B, H, T, d) cuts the tokens, not the features. Cut the "
        "last dimension into (H, d) first, then move H with transpose"),
    Mutant("interleaved", ("layer.W_q(queries).unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, d)\n    k = "
        "layer.W_k(keys).unflatten(-1, (heads, -1)).transpose(1, 2)", "layer.W_q(queries).unflatten(-1, (-1, "
        "heads)).permute(0, 3, 1, 2)\n    k = layer.W_k(keys).unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)"),
        "head i has every H-th feature: cut into (H, d), not into (d, H)"),
    Mutant("scale-h", ("math.sqrt(q.shape[-1])", "math.sqrt(heads * q.shape[-1])"), "the scores are divided by "
        "sqrt(h), not by sqrt(h / H)"),
    Mutant("scale-d", ("math.sqrt(q.shape[-1])", "q.shape[-1]"), "the scores are divided by h / H, not by its root"),
    Mutant("unscaled", (" / math.sqrt(q.shape[-1])", ""), "the scores are not divided by sqrt(h / H)"),
    Mutant("no-bias",
        ("layer.W_q(queries).unflatten(-1, (heads, -1)).transpose(1, 2)  # (B, H, T, d)\n    k = layer.W_k(keys)",
        "(queries @ layer.W_q.weight.T).unflatten(-1, (heads, -1)).transpose(1, 2)\n    k = (keys @ "
        "layer.W_k.weight.T)"), "the biases are left out: call layer.W_q(queries) in place of the product with its "
        "weight"),
    Mutant("over-queries", ("return d2l.masked_softmax(scores, valid_lens)", "allowed = d2l.masked_softmax(scores, "
        "valid_lens) > 0\n    powers = torch.exp(scores) * allowed\n    return powers / powers.sum(-2, "
        "keepdim=True).clamp(min=1e-30)"), "the softmax runs over the queries; it runs over the keys"),
    Mutant("mean-map", ("return d2l.masked_softmax(scores, valid_lens)",
        "maps = d2l.masked_softmax(scores, valid_lens)\n    return maps.mean(1, keepdim=True).expand_as(maps)"),
        "all heads have the same map, their mean: each has its own"),
    Mutant("empty-row", ("return d2l.masked_softmax(scores, valid_lens)", "allowed = d2l.masked_softmax(scores, "
        "valid_lens) > 0\n    return torch.softmax(scores.masked_fill(~allowed, -1e6), -1)"), "a query that may attend "
        "to nothing gets even weights: they should be zero"),
    Mutant("shape", as_d2l_keeps_them),
    Mutant("out-of-step", lengths_out_of_step, "lengths and examples are out of step: with the heads in the batch, (B "
        "* H, T, S), an example's H heads stand side by side, so its length is wanted H times in a row: "
        "repeat_interleave, not repeat"),
    Mutant("head-order", heads_and_examples_mixed, "heads and examples are mixed up: in (B * H, T, S) the heads of an "
        "example stand side by side: unflatten to (B, H, ...), not to (H, B, ...)"),
    Mutant("first-length", length_of_the_first, "all queries of an example get the length of its first: here each has "
        "its own"),
    Mutant("score-zero", ("return d2l.masked_softmax(scores, valid_lens)", "allowed = d2l.masked_softmax(scores, "
        "valid_lens) > 0\n    return torch.softmax(scores * allowed, -1) * allowed.any(-1, keepdim=True)"),
        "hidden keys have the score 0, whose exponential is 1: it should be minus infinity"),
    Mutant("not-minus-infinity", ("return d2l.masked_softmax(scores, valid_lens)",
        "allowed = d2l.masked_softmax(scores, valid_lens) > 0\n    return torch.softmax(scores.masked_fill(~allowed, "
        "-100.0), -1) * allowed.any(-1, keepdim=True)"), "the scores are some hundreds here, and -100 for a hidden key "
        "is not low enough: take minus infinity"),
    Mutant("at-least-one", ("scores, valid_lens)", "scores, valid_lens.clamp(min=1))"), "a query that may attend to "
        "nothing attends to the first key: its row should be zero"),
    Mutant("scale-H", ("math.sqrt(q.shape[-1])", "math.sqrt(heads)"), "the scores are divided by sqrt(H), not by "
        "sqrt(h / H)"),
    Mutant("one-more", ("return d2l.masked_softmax(scores, valid_lens)", "return d2l.masked_softmax(scores, "
        "(valid_lens + 1).clamp(max=scores.shape[-1]))"), "one key too many counts: with a length of 2 it is keys "
        "0 and 1, so `<`, not `<=`"),
    Mutant("not-normalised", ("return d2l.masked_softmax(scores, valid_lens)", "return torch.exp(scores) * "
        "(d2l.masked_softmax(scores, valid_lens) > 0)"), "these are exponentials that are not divided by their "
        "sum: each row should sum to one"),
    Mutant("sigmoid", ("return d2l.masked_softmax(scores, valid_lens)", "return torch.sigmoid(scores) * "
        "(d2l.masked_softmax(scores, valid_lens) > 0)"), "each score goes through a sigmoid by itself: the softmax "
        "over the keys makes rows that sum to one"),
    Mutant("over-heads", ("return d2l.masked_softmax(scores, valid_lens)", "return torch.softmax(scores, 1) * "
        "(d2l.masked_softmax(scores, valid_lens) > 0)"), "the softmax runs over the heads; it runs over the keys, "
        "the last axis"),
    Mutant("scores", ("return d2l.masked_softmax(scores, valid_lens)", "return scores"), "these are the scores: "
        "the masked softmax is still to come"),
    Mutant("causal", ("return d2l.masked_softmax(scores, valid_lens)", "return d2l.masked_softmax(scores + "
        "torch.full_like(scores, -torch.inf).triu(1), valid_lens)"), "a causal mask is laid on as well: here only "
        "`valid_lens` hides keys"),
    Mutant("queries-hidden", ("return d2l.masked_softmax(scores, valid_lens)", "maps = d2l.masked_softmax(scores, "
        "valid_lens)\n    lens = valid_lens if valid_lens.dim() == 1 else valid_lens.amax(1)\n    return maps * "
        "(torch.arange(maps.shape[2]) < lens[:, None])[:, None, :, None]"), "rows of queries are set to zero, too: "
        "`valid_lens` counts keys, and hides columns"),
    Mutant("at-least-one", ("return d2l.masked_softmax(scores, valid_lens)", "return d2l.masked_softmax(scores, "
        "valid_lens if valid_lens.dim() > 1 else valid_lens.clamp(min=1))")),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.5.1",
    doc=__doc__,
    source="D2L 11.5, exercise 1",
    parts=[
        Code(
            key="d2l-11.5.1",
            hints=[
                "A map needs queries and keys only; the values and W_o play no part in it.",
                "`layer.W_q(queries)` is (B, T, h). Cut its last dimension into (H, d), then bring H before T.",
                "`q @ k.mT` makes the scores of all heads and examples at once; divide by the root of d, and let "
                "`d2l.masked_softmax(scores, valid_lens)` do the rest. (Or watch the layer: `d2l.capture_attention`.)",
            ],
            answer=head_maps,
            verify=verify,
            alternatives=[by_capture, head_by_head],
            min_checks=6,
            advice={
                "values": "Keys from the length on get no weight: that of the example, or of the query where each has "
                "its own. Nothing else hides keys. The blocks of h / H features make heads, from both projections",
                "nonfinite": "A row in which every key is hidden needs care, and so do exponentials of large scores",
            },
            mutants=MUTANTS,
            explanation=r"""
The package shows the same maps without any of this: `with d2l.capture_attention(layer) as record: layer(...)`, then
`record["attention"][0]`. What the exercise shows is that a map belongs to queries and keys alone. Two layers whose
values have nothing in common may have the same maps; that is one reason why a map does not say what a head *does*.

D2L's own attribute, `layer.attention.attention_weights`, has shape (B · H, T, S), the heads of an example one after the
other: `.unflatten(0, (-1, H))` brings it to the form used here.
""",
        )
    ],
)
