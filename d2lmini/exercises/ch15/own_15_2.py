r"""The cache

A language model writes one token after the other. Each new token attends to all that were before it, and of these only
keys and values are needed: nobody asks their queries again, and causal attention lets no later token change them. So
one keeps them.

Write `cached_step(X, W_q, W_k, W_v, cache)`: scaled dot-product attention of one head, causal, for n new tokens that
follow the S tokens whose keys and values are in the cache. It returns what the new tokens get, and the grown cache:
exactly what one gets from all S + n tokens at once.

- n may be 1, when the model writes, or more, when it reads a prompt;
- S may be 0: the cache of nothing has tensors of shape (B, 0, d) and (B, 0, e);
- the cache that was given must stay as it is: beam search goes on from one and the same cache with two different
  tokens.

To try it:

```python
X, (W_q, W_k, W_v) = torch.randn(2, 7, 6), torch.randn(3, 6, 4)
empty = {"keys": torch.zeros(2, 0, 4), "values": torch.zeros(2, 0, 4)}
whole, _ = cached_step(X, W_q, W_k, W_v, empty)
first, cache = cached_step(X[:, :5], W_q, W_k, W_v, empty)
second, cache = cached_step(X[:, 5:], W_q, W_k, W_v, cache)
torch.testing.assert_close(torch.cat([first, second], 1), whole)
```
"""

import math

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def cached_step(X, W_q, W_k, W_v, cache):
    """Attend from new tokens to themselves and to those in the cache.

    Args:
        X: (B, n, h), the new tokens.
        W_q, W_k: (h, d). W_v: (h, e).
        cache: dict with ``keys`` (B, S, d) and ``values`` (B, S, e) of the tokens before; not changed.

    Returns:
        output (B, n, e), and a new dict with ``keys`` (B, S + n, d) and ``values`` (B, S + n, e).
    """
    ### BEGIN SOLUTION
    queries, keys, values = X @ W_q, X @ W_k, X @ W_v  # of the new tokens alone
    keys = torch.cat([cache["keys"], keys], dim=1)  # (B, S + n, d)
    values = torch.cat([cache["values"], values], dim=1)  # (B, S + n, e)
    n, total = queries.shape[1], keys.shape[1]
    # new token i stands at place S + i and may see all up to there
    seen = torch.ones(n, total, dtype=torch.bool, device=X.device).tril(total - n)
    scores = queries @ keys.mT / math.sqrt(keys.shape[-1])  # (B, n, S + n)
    weights = torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)
    return weights @ values, {"keys": keys, "values": values}
    ### END SOLUTION


def with_the_package(X, W_q, W_k, W_v, cache):
    keys, values = torch.cat([cache["keys"], X @ W_k], 1), torch.cat([cache["values"], X @ W_v], 1)
    output = d2l.scaled_dot_product_attention(X @ W_q, keys, values, causal=True)
    return output, dict(keys=keys, values=values)


def token_by_token(X, W_q, W_k, W_v, cache):
    keys, values, outputs = cache["keys"], cache["values"], []
    for x in X.split(1, dim=1):
        keys, values = torch.cat([keys, x @ W_k], 1), torch.cat([values, x @ W_v], 1)
        outputs.append(F.scaled_dot_product_attention(x @ W_q, keys, values))
    return torch.cat(outputs, 1), {"keys": keys, "values": values}


def growing_the_given(X, W_q, W_k, W_v, cache):
    """Wrong: the dict that was given is the one that grows."""
    output, grown = cached_step(X, W_q, W_k, W_v, cache)
    cache.update(grown)
    return output, cache


def of_the_prompt_only(X, W_q, W_k, W_v, cache):
    """Wrong: torch's own mask is aligned at the first key."""
    keys, values = torch.cat([cache["keys"], X @ W_k], 1), torch.cat([cache["values"], X @ W_v], 1)
    output = F.scaled_dot_product_attention(X @ W_q, keys, values, is_causal=True)
    return output, {"keys": keys, "values": values}


def masked_only_at_first(X, W_q, W_k, W_v, cache):
    """Wrong: several new tokens need a mask after a past, too."""
    keys, values = torch.cat([cache["keys"], X @ W_k], 1), torch.cat([cache["values"], X @ W_v], 1)
    first = cache["keys"].shape[1] == 0
    output = F.scaled_dot_product_attention(X @ W_q, keys, values, is_causal=first)
    return output, {"keys": keys, "values": values}


def in_one_room(X, W_q, W_k, W_v, cache):
    """Wrong: all that goes on from a cache is written into the room behind it."""
    output, grown = cached_step(X, W_q, W_k, W_v, cache)
    S, total = cache["keys"].shape[1], grown["keys"].shape[1]
    for name, new in grown.items():
        room = getattr(cache[name], "room", F.pad(new, (0, 0, 0, 8)))
        room[:, S:total] = new[:, S:]
        grown[name] = room[:, :total]
        grown[name].room = room
    return output, grown


def at_once(X, W_q, W_k, W_v):
    """All tokens at once, by a loop: keys, values and output of each."""
    keys, values = X @ W_k, X @ W_v
    output = []
    for i in range(X.shape[1]):
        scores = keys[:, : i + 1] @ (X[:, i] @ W_q)[..., None] / W_k.shape[1] ** 0.5  # (B, i + 1, 1)
        output.append((torch.softmax(scores, 1) * values[:, : i + 1]).sum(1))
    return keys, values, torch.stack(output, 1)


def verify(t, answer):
    B, h, d, e = t.sizes(4, 4, 8)  # none of them a number of new tokens in the first case
    # after a past: several tokens and one; then without any; the last is a batch of one
    for number, (past, n) in enumerate(((5, 3), (4, 1), (0, 6), (0, 1), (1, 4))):
        rows = 1 if number == 4 else B
        X = t.randn(rows, past + n, h)
        matrices = [t.randn(h, size, scale=h**-0.5) for size in (d, d, e)]
        x, *ws = leaves = [y.detach().cpu().double().requires_grad_() for y in (X, *matrices)]
        keys, values, output = at_once(*leaves)
        slopes = torch.autograd.grad(output[:, past:].sum(), leaves, retain_graph=True)
        before = {
            "keys": keys[:, :past].detach().float().to(t.device),
            "values": values[:, :past].detach().float().to(t.device),
        }
        new, *matrices = (y.requires_grad_() for y in (X[:, past:].clone(), *matrices))
        case = f"of {n} new token{'s' * (n > 1)} after {past}"
        got, grown = t.unpack(t.call(answer, new, *matrices, before), "output", "cache")
        t.same(got, output[:, past:].detach(), f"the output {case}")
        got_keys, got_values = t.fields(grown, "keys", "values")
        t.same(got_keys, keys.detach(), f"the keys in the cache {case}")
        t.same(got_values, values.detach(), f"the values in the cache {case}")
        t.same(t.gradient(got, 1), _slope_of_queries(ws, x, before, past), f"the gradient in W_q {case}")
        if past == 0:
            t.same(t.gradient(got, 0), slopes[0], f"the gradient in X {case}", tolerance=(1e-3, 1e-4))
            t.same(t.gradient(got, 2), slopes[2], f"the gradient in W_k {case}", tolerance=(1e-3, 1e-4))
            t.same(t.gradient(got, 3), slopes[3], f"the gradient in W_v {case}", tolerance=(1e-3, 1e-4))

    # what a token may not see may have by far the largest score
    X = t.randn(B, 6, h, scale=12.0)
    matrices = [t.randn(h, size, scale=h**-0.5) for size in (d, d, e)]
    *_, output = at_once(*(y.cpu().double() for y in (X, *matrices)))
    empty = {"keys": t.randn(B, 0, d), "values": t.randn(B, 0, e)}
    got, _ = t.unpack(t.call(answer, X, *matrices, empty), "output", "cache")
    t.same(got, output, "the output of 6 new tokens whose scores are large", tolerance=(1e-2, 1e-2))

    # a whole sequence in pieces, each from what the answer gave before; and twice from the same place
    pieces = [40, 1, 1, 2]
    X = t.randn(B, sum(pieces) + 1, h)
    matrices = [t.randn(h, size, scale=h**-0.5) for size in (d, d, e)]
    *_, output = at_once(*(y.cpu().double() for y in (X, *matrices)))
    cache = {"keys": t.randn(B, 0, d), "values": t.randn(B, 0, e)}
    outputs = []
    for piece in X[:, :-1].split(pieces, 1):
        got, cache = t.unpack(t.call(answer, piece, *matrices, cache), "output", "cache")
        outputs.append(got)
    t.same(torch.cat(outputs, 1), output[:, :-1], "the output in pieces", tolerance=(1e-3, 1e-4))
    for name, last in (("another token", -X[:, -1:]), ("the last token", X[:, -1:])):
        *_, want = at_once(*(y.cpu().double() for y in (torch.cat([X[:, :-1], last], 1), *matrices)))
        got, _ = t.unpack(t.call(answer, last, *matrices, cache), "output", "cache")
        t.same(got, want[:, -1:], f"the output of {name}, from one cache", tolerance=(1e-3, 1e-4))

    # both continuations again, of one cache that no copy was made of: the first must stay what it was
    ids = X[:, :-1], X[:, -1:], -X[:, -1:]
    kept = t.look(lambda given, answer: _branches(answer, *ids, matrices), answer)
    for name, W, got in zip(("keys", "values"), matrices[1:], kept, strict=True):
        want = X.cpu().double() @ W.cpu().double()
        t.same(got, want, f"the {name} of a cache, after another token began where it did", tolerance=(1e-3, 1e-4))


def _branches(answer, X, last, other, matrices):
    """Keys and values of a token's cache, after another one has gone on from where it began."""
    W_k, W_v = matrices[1:]
    empty = {"keys": X[:, :0] @ W_k, "values": X[:, :0] @ W_v}
    _, cache = answer(X, *matrices, empty)
    _, grown = answer(last, *matrices, cache)
    answer(other, *matrices, cache)
    return [grown[name].detach().clone() for name in ("keys", "values")]


def _slope_of_queries(matrices, X, before, past):
    """Gradient of the new outputs' sum in W_q, which no cache changes."""
    W_q, W_k, W_v = (w.detach().requires_grad_() for w in matrices)
    *_, output = at_once(X.detach(), W_q, W_k, W_v)
    return torch.autograd.grad(output[:, past:].sum(), W_q)[0]


MUTANTS = [
    Mutant("future", ("scores.masked_fill(~seen, -torch.inf)", "scores"), "new tokens see the new tokens after them: "
        "several at once need a causal mask among themselves"),
    Mutant("aligned-at-the-start", (".tril(total - n)", ".tril()"), "the mask begins at the first key, as if there "
        "were no past: new token i stands at place S + i"),
    Mutant("aligned-at-the-start", of_the_prompt_only, "the mask begins at the first key, as if there were no past: "
        "`is_causal=True` aligns it there"),
    Mutant("future", masked_only_at_first, "new tokens see the new tokens after them: the mask is needed after a past, "
        "too"),
    Mutant("aligned-at-the-start", (".tril(total - n)", ".tril(n)"), "the diagonal of the mask is at n, the number of "
        "new tokens: new token i stands at place S + i, so it is at S"),
    Mutant("shared-room", in_one_room, "the cache of the first token now holds the second: whoever keeps room behind a "
        "cache must copy it where two go on from there"),
    Mutant("queries-kept", ('{"keys": keys,', '{"keys": torch.cat([cache["keys"], queries], dim=1),'), "the cache "
        "keeps the new queries: nobody asks for them again, it is keys that it keeps"),
    Mutant("both-orders", ('torch.cat([cache["keys"], keys], dim=1)  # (B, S + n, d)\n    values = torch.cat([cache["'
        'values"], values], dim=1)', 'torch.cat([keys, cache["keys"]], dim=1)\n    values = torch.cat([values, cache["'
        'values"]], dim=1)'), "the new keys and values stand before the old ones, and the mask takes them for "
        "the past"),
    Mutant("divided-by-d", ("math.sqrt(keys.shape[-1])", "keys.shape[-1]"), "the scores are divided by d: by its "
        "square root"),
    Mutant("one-ahead", (".tril(total - n)", ".tril(total - n + 1)"), "every new token sees the one after it: the "
        "diagonal of the mask is off by one"),
    Mutant("itself-hidden", (".tril(total - n)", ".tril(total - n - 1)"), "no new token sees itself: the diagonal of "
        "the mask is off by one"),
    Mutant("past-hidden", (".tril(total - n)", ".tril(total - n).triu(total - n)"), "each new token sees itself alone: "
        "what is in the cache may be seen, too"),
    Mutant("cache-not-read", (".tril(total - n)", ".tril(total - n) & (torch.arange(total) >= total - n)"),
        "the new tokens see one another and nothing of the past"),
    Mutant("order", ('torch.cat([cache["keys"], keys], dim=1)', 'torch.cat([keys, cache["keys"]], dim=1)'),
        "the new keys stand before the old ones, and no longer beside their values"),
    Mutant("order-of-values", ('torch.cat([cache["values"], values], dim=1)',
        'torch.cat([values, cache["values"]], dim=1)'), "the new values stand before the old ones, and no longer "
        "beside their keys"),
    Mutant("turned-around", (".tril(total - n)", ".triu(total - n)"), "each new token sees itself and what comes after "
        "it: the mask is turned around"),
    Mutant("unscaled", (" / math.sqrt(keys.shape[-1])", ""), "the scores are not divided by sqrt(d)"),
    Mutant("scaled-by-h", ("math.sqrt(keys.shape[-1])", "math.sqrt(X.shape[-1])"), "the scores are divided by sqrt(h): "
        "queries and keys have d features"),
    Mutant("scaled-by-e", ("math.sqrt(keys.shape[-1])", "math.sqrt(values.shape[-1])"), "the scores are divided by "
        "sqrt(e): queries and keys have d features"),
    Mutant("queries-by-Wk", ("X @ W_q, X @ W_k", "X @ W_k, X @ W_k"), "the queries are made by W_k"),
    Mutant("keys-by-Wq", ("X @ W_q, X @ W_k", "X @ W_q, X @ W_q"), "the new keys are made by W_q"),
    Mutant("exchanged", ("X @ W_q, X @ W_k", "X @ W_k, X @ W_q"), "W_q and W_k are exchanged"),
    Mutant("over-queries", ("-torch.inf), dim=-1)", "-1e9), dim=-2)"), "the weights sum to one over the queries, not "
        "over the keys"),
    Mutant("not-normalised", ("torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)",
        "torch.softmax(scores, dim=-1) * seen"), "the weights of a row do not sum to one: mask the scores before the "
        "softmax"),
    Mutant("finite", ("-torch.inf", "-30.0"), "hidden keys have the score -30, which is more than a score may be: it "
        "takes minus infinity to forbid"),
    Mutant("zero-scores", ("-torch.inf", "0.0"), "a score of 0 is no mask: hidden keys still have a weight of exp(0) "
        "over the sum"),
    Mutant("shape", ('{"keys": keys, "values": values}', "dict(cache)")),  # cache does not grow
    # new tokens only
    Mutant("shape", ('{"keys": keys, "values": values}', '{"keys": keys[:, -n:], "values": values[:, -n:]}')),
    Mutant("type", ('{"keys": keys, "values": values}', "(keys, values)")),  # a pair
    Mutant("shape", ('{"keys": keys, "values": values}', '{"keys": values, "values": keys}')),  # exchanged in the cache
    Mutant("mutates", growing_the_given),
    Mutant("type", ("return weights @ values, {", "return {")),  # no output
    Mutant("keys-detached", ("keys], dim=1)", "keys.detach()], dim=1)"), "the new keys are detached: tokens get a part "
        "of their gradient only"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-15.2",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-15.2",
            hints=[
                "Project the new tokens alone. What of the old ones does their attention need?",
                "Put the new keys behind those in the cache, and the new values likewise, with `torch.cat`: that makes "
                "new tensors. Now there are n queries and S + n keys.",
                "Query i stands at place S + i: it sees the keys 0 to S + i. As a matrix (n, S + n) of ones this is "
                "`.tril(S)`.",
            ],
            answer=cached_step,
            verify=verify,
            alternatives=[with_the_package, token_by_token],
            advice={
                "nonfinite": "A token may see at least itself: a row in which all is masked gives NaN.",
                "mutates": "Go on from a new dict: another hypothesis may still need the cache that was given.",
                "values": "The case says how many tokens are new and how many are in the cache. Print your mask, (n, "
                "S + n): new token i sees the keys 0 to S + i. If it is right, look at the scale, the axis of the "
                "softmax and the order in the cache; where a gradient is wrong, for what is detached.",
            },
            min_checks=20,
            mutants=MUTANTS,
            explanation=r"""
Of what was before, attention needs keys and values, and these depend on earlier tokens alone: a causal model never
changes them once they are made. So a step of n tokens projects n tokens, whatever the length of the past, and compares
n queries with S + n keys. Without a cache the whole prefix would go through every layer again for each token.

The mask is where most caches go wrong. With n queries and S + n keys the two must be aligned at their *ends*: the last
query is the last key's. `is_causal=True` of torch's kernel aligns them at the beginning, which is the same for S = 0
and else hides S keys from each query. For n = 1 no mask is needed, and `is_causal=True` shows the first key alone.

What is paid is memory: $d + e$ numbers a token, head and block (own-15.1 counts them for GPT-3). And a cache that is
shared must not change. `torch.cat` makes new tensors, which costs a copy of the cache at each step; `d2l.KeyValueCache`
keeps room for more, and copies where that is full or two hypotheses share it.
""",
        )
    ],
)
