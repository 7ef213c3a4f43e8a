r"""The heads that were made of the wrong tokens

A colleague wrote causal multi-head self-attention and tested it: the output has the right shape, gradients flow, the
loss falls, and no output depends on a later token. Only, the model never gets good.

```python
def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    B, T, h = X.shape
    d = h // num_heads
    q = (X @ W_q).view(B * num_heads, T, d)
    k = (X @ W_k).view(B * num_heads, T, d)
    v = (X @ W_v).view(B * num_heads, T, d)
    Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return Y.view(B, T, h) @ W_o
```

What is wrong, and which test would have told?
"""

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def multi_head(X, W_q, W_k, W_v, W_o, num_heads):
    """Causal multi-head self-attention.

    Args:
        X: (B, T, h). W_q, W_k, W_v, W_o: (h, h); head i has the i-th block of h / H columns of the first three.
        num_heads: H.

    Returns:
        (B, T, h).
    """
    ### BEGIN SOLUTION
    q, k, v = (
        (X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, H, T, d)
        for W in (W_q, W_k, W_v)
    )
    Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return Y.transpose(1, 2).flatten(2) @ W_o
    ### END SOLUTION


def by_a_loop(X, W_q, W_k, W_v, W_o, num_heads):
    d = X.shape[-1] // num_heads
    output = torch.zeros_like(X)
    for c in torch.arange(X.shape[-1], device=X.device).split(d):
        scores = X @ W_q[:, c] @ (X @ W_k[:, c]).mT / d**0.5
        Y = d2l.masked_softmax(scores, mask=d2l.causal_mask(X.shape[1], device=X.device)) @ (X @ W_v[:, c])
        output = output + Y @ W_o[c]
    return output


def by_permute(X, W_q, W_k, W_v, W_o, num_heads):
    B, T, h = X.shape
    q, k, v = ((X @ W).view(B, T, num_heads, h // num_heads).permute(0, 2, 1, 3) for W in (W_q, W_k, W_v))
    Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return Y.permute(0, 2, 1, 3).contiguous().view(B, T, h) @ W_o


# wrong answers, and layers for the second part


def as_it_was(X, W_q, W_k, W_v, W_o, num_heads):
    B, T, h = X.shape
    q, k, v = ((X @ W).view(B * num_heads, T, h // num_heads) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).view(B, T, h) @ W_o


def wrong_way_back(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(X.shape) @ W_o


def over_heads(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (num_heads, -1)) for W in (W_q, W_k, W_v))  # (B, T, H, d)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).flatten(2) @ W_o


def interleaved(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 3, 1).flatten(2) @ W_o


def wrong_way_there(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).view(len(X), num_heads, X.shape[1], -1) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2) @ W_o


def all_transposed(X, W_q, W_k, W_v, W_o, num_heads):
    return by_a_loop(X, W_q.mT, W_k.mT, W_v.mT, W_o.mT, num_heads)


def not_low_enough(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    scores = (q @ k.mT / q.shape[-1] ** 0.5).tril()  # 0 for what is hidden
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2) @ W_o


def mask_after_the_softmax(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1).tril()
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


def not_causal(X, W_q, W_k, W_v, W_o, num_heads):
    q, k, v = ((X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2) for W in (W_q, W_k, W_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ W_o


def verify_fix(t, answer):
    for H, d in ((3, 2), (2, 5), (4, 3)):
        B, T = t.random.sample([2, 5, 6, 7], 2)
        B = 1 if H == 4 else B
        X = t.randn(B, T, H * d)
        matrices = [t.randn(H * d, H * d, scale=(H * d) ** -0.5) for _ in range(4)]
        if H == 4:  # all scores are 150 lower, which changes no weight, but -100 hides nothing there
            X[..., 0], matrices[1][:, ::d] = 1, 0
            matrices[0][0, ::d], matrices[1][0, ::d] = -150 * d**0.5, 1
        inputs = [y.requires_grad_() for y in (X, *matrices)]
        x, W_q, W_k, W_v, W_o = leaves = [y.detach().cpu().double().requires_grad_() for y in inputs]
        want = torch.zeros_like(x)
        for b in range(B):
            for i in range(H):
                c = range(i * d, (i + 1) * d)
                for n in range(T):
                    seen = x[b, : n + 1]
                    w = torch.softmax(seen @ W_k[:, c] @ (x[b, n] @ W_q[:, c]) / d**0.5, 0)  # (n + 1,)
                    want[b, n] += w @ (seen @ W_v[:, c]) @ W_o[c]
        got = t.call(answer, *inputs, H)
        t.same(got, want.detach(), f"the output of {H} heads", tolerance=(1e-3, 1e-3) if H == 4 else None)
        slopes = torch.autograd.grad(want.sum(), leaves)
        for i, name in enumerate(("X", "W_q", "W_k", "W_v", "W_o")):
            least = max(3e-3, 3e-5 * slopes[i].abs().max().item()) if H == 4 else 1e-4  # there, large numbers cancel
            t.same(t.gradient(got, i), slopes[i], f"the gradient in {name}", tolerance=(1e-3, least))


def dependence(layer, num_tokens, num_hiddens):
    """Find out which outputs of a layer depend on which inputs, by calling it.

    Args:
        layer: a function from (B, T, h) to (B, T, h), for any B; no example has a part in the output of another.
        num_tokens: T. num_hiddens: h.

    Returns:
        Booleans (T, T): the entry in row t and column s is True where the output at token t depends on the input at
        token s of the same example.
    """
    ### BEGIN SOLUTION
    X = torch.randn(1, num_tokens, num_hiddens)
    before = layer(X)[0]  # (T, h)
    columns = []
    for s in range(num_tokens):
        changed = X.clone()
        changed[0, s] += 1
        moved = ~torch.isclose(layer(changed)[0], before, atol=1e-6)  # (T, h)
        columns.append(moved.any(dim=-1))
    return torch.stack(columns, dim=1)
    ### END SOLUTION


def by_gradient(layer, num_tokens, num_hiddens):
    X = torch.randn(1, num_tokens, num_hiddens, requires_grad=True)
    Y = layer(X)[0]
    rows = [torch.autograd.grad(y.square().sum(), X, retain_graph=True)[0][0] for y in Y]
    return torch.stack(rows).abs().sum(-1) > 0


def in_one_batch(layer, num_tokens, num_hiddens):
    X = torch.randn(num_tokens, num_hiddens).expand(num_tokens + 1, -1, -1).clone()
    X[torch.arange(num_tokens), torch.arange(num_tokens)] += 1  # example s has token s changed, the last one none
    Y = layer(X)
    return ((Y[:-1] - Y[-1]).abs().amax(-1) > 1e-5).T


def of_summed_features(layer, num_tokens, num_hiddens):
    """The gradient of a sum in which features cancel."""
    X = torch.randn(1, num_tokens, num_hiddens)
    slopes = torch.autograd.functional.jacobian(lambda X: layer(X)[0].sum(-1), X)  # (T, 1, T, h)
    return slopes[:, 0].abs().sum(-1) > 0


def draw_layers(t, T, h, H):
    """Layers to examine, (B, T, h) to (B, T, h): name -> (layer, its true dependence (T, T))."""
    pattern = (t.rand(T, T).cpu() < 0.5).double()
    pattern[:2, :2] = torch.tensor([[1.0, 1.0], [0.0, 1.0]])  # something off the diagonal, on one side of it
    layers = {"a layer with links drawn at random": (lambda X: pattern.to(X) @ X, pattern > 0)}
    narrow = torch.zeros(T, h, T, h)
    for row, column in pattern.nonzero().tolist():
        narrow[row, t.random.randrange(h), column, t.random.randrange(h)] = 1.0
    kinds = {
        "a layer that is right": multi_head,
        "the colleague's layer": as_it_was,
        "a layer that joins its heads wrongly": wrong_way_back,
        "a layer without a causal mask": not_causal,
        "a layer whose heads attend to each other": over_heads,
    }
    for name, kind in kinds.items():
        matrices = [t.randn(h, h, scale=h**-0.5).cpu() for _ in range(4)]

        def layer(X, kind=kind, matrices=matrices):
            return kind(X, *(W.to(X) for W in matrices), H)

        x = t.randn(1, T, h, dtype=torch.float64).cpu()
        slopes = torch.autograd.functional.jacobian(layer, x)[0, :, :, 0]  # (T, h, T, h)
        layers[name] = layer, slopes.abs().amax((1, 3)) > 1e-9
    weak = torch.where(torch.eye(T) > 0, 1.0, 0.0003) * pattern
    mixed = t.integers(-4, 5, h, h).cpu() / 8
    mixed[:, 1::2] = -mixed[:, ::2]  # features of an output sum to zero, without a rounding
    layers["a layer with weak links"] = (lambda X: weak.to(X) @ X @ mixed.to(X), pattern > 0)
    near = torch.eye(T) + torch.eye(T).roll(-1, 1)  # a token less the one before is multiplied with those linked to it
    gated = (pattern > 0) | ((near > 0) & pattern.any(1, keepdim=True))
    layers["a layer that multiplies tokens with each other"] = (
        lambda X: (X - X.roll(1, 1)) * (pattern.to(X) @ X),
        gated,
    )
    linked = "a layer whose links lead from one feature of a token to one feature of another"
    layers[linked] = (lambda X: torch.einsum("tosf,bsf->bto", narrow.to(X), X)), pattern > 0
    return layers


def verify_dependence(t, answer):
    H, T = t.random.choice([2, 3]), t.random.choice([6, 7, 8])
    h = 4 * H
    for name, (layer, want) in draw_layers(t, T, h, H).items():
        got = t.call(answer, layer, T, h)
        if isinstance(got, torch.Tensor):
            got = got.to(t.device)  # the layers work on any device, and so may the answer
        t.same(got, want, f"the dependence in {name}")


MUTANTS_A = [
    Mutant("view", as_it_was, "this is still the colleague's result: `view` moves no number"),
    Mutant("way-back", ("Y.transpose(1, 2).flatten(2) @ W_o", "Y.reshape(X.shape) @ W_o"), "the heads are right, and "
        "joined wrongly: bring T before H again before you join them"),
    Mutant("over-heads", over_heads, "heads attend to each other at one token: move H before T, so that the tokens are "
        "attended to"),
    Mutant("interleaved", interleaved, "head i has every H-th feature; it should have the i-th block"),
    Mutant("not-causal", (", is_causal=True", ""), "later tokens are seen: the mask is lost"),
    Mutant("transposed", ("(X @ W)", "(X @ W.T)"), "W_q, W_k and W_v are transposed: the product is X @ W, without the "
        ".T of nn.Linear and F.linear"),
    Mutant("unscaled", ("is_causal=True", "is_causal=True, scale=1.0"), "the scores are not divided by the root of h / "
        "H"),
    Mutant("scale-h", ("is_causal=True", "is_causal=True, scale=X.shape[-1] ** -0.5"), "the scores are divided by the "
        "root of h: a head has only h / H features"),
    Mutant("no-output", (".flatten(2) @ W_o", ".flatten(2)"), "the product with W_o is missing"),
    Mutant("raised", ("Y.transpose(1, 2).flatten(2) @ W_o", "Y.transpose(1, 2) @ W_o")),  # heads kept apart
    Mutant("way-there", wrong_way_there, "the heads are joined rightly, and cut wrongly: cut the last dimension into "
        "(H, d), then exchange T and H"),
    Mutant("joined-by-features", ("Y.transpose(1, 2).flatten(2)", "Y.permute(0, 2, 3, 1).flatten(2)"),
        "the heads are right, and joined feature by feature: head i should have the i-th block"),
    Mutant("cut-across", ("(X @ W).unflatten(-1, (num_heads, -1)).transpose(1, 2)",
        "(X @ W).unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)"), "cut with every H-th feature for a head, joined "
        "in blocks: cut into (H, d), not into (d, H)"),
    Mutant("output-transposed", ("flatten(2) @ W_o", "flatten(2) @ W_o.T"), "W_o is transposed: the product is Y @ "
        "W_o"),
    Mutant("swapped", ("attention(q, k, v", "attention(k, q, v"), "queries and keys have changed places"),
    Mutant("one-head", ("(num_heads, -1)", "(1, -1)"), "this is one head with all features: num_heads is not used"),
    Mutant("late-mask", mask_after_the_softmax, "the weights are masked after the softmax, and no longer sum to one: "
        "mask the scores"),
    Mutant("mask-turned", ("is_causal=True",
        "attn_mask=torch.ones(X.shape[1], X.shape[1], device=X.device).triu().bool()"), "the mask is turned: tokens "
        "attend to later ones, not to earlier ones"),
    Mutant("strict-mask", ("is_causal=True",
        "attn_mask=torch.ones(X.shape[1], X.shape[1], device=X.device).tril(-1).bool()"), "a token may attend to "
        "itself, too"),
    Mutant("all-transposed", all_transposed, "all four matrices are transposed: the products are X @ W, without the .T "
        "of nn.Linear and F.linear"),
    Mutant("score-zero", not_low_enough, "scores of later tokens are about 0, whose exponential is 1: they should be "
        "minus infinity"),
    Mutant("not-minus-infinity", ("Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)", "scores = q @ "
        "k.mT / q.shape[-1] ** 0.5\n    later = torch.ones_like(scores).triu(1).bool()\n    Y = "
        "scores.masked_fill(later, -100.0).softmax(-1) @ v"), "the scores are below -100 here, and -100 hides "
        "nothing then: take minus infinity"),
    Mutant("nonfinite", ("Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)", "scores = q @ k.mT / "
        "q.shape[-1] ** 0.5\n    later = torch.ones_like(scores).triu(1).bool()\n    powers = "
        "scores.exp().masked_fill(later, 0)\n    Y = powers / powers.sum(-1, keepdim=True) @ v")),
    Mutant("over-queries", ("Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)", "scores = q @ k.mT / "
        "q.shape[-1] ** 0.5\n    later = torch.ones_like(scores).triu(1).bool()\n    Y = scores.masked_fill(later, "
        "-1e9).softmax(-2) @ v"), "the softmax runs over the queries; it runs over the keys, the last axis"),
    Mutant("no-softmax", ("Y = F.scaled_dot_product_attention(q, k, v, is_causal=True)", "scores = q @ k.mT / "
        "q.shape[-1] ** 0.5\n    later = torch.ones_like(scores).triu(1).bool()\n    Y = scores.masked_fill(later, "
        "0) @ v"), "the softmax is missing: the values are mixed with the scores"),
    Mutant("residual", ("flatten(2) @ W_o", "flatten(2) @ W_o + X"), "the input is added to the output: there is "
        "no residual connection in this layer"),
    Mutant("averaged", ("Y.transpose(1, 2).flatten(2)", "Y.mean(1).repeat(1, 1, num_heads)"), "the heads are "
        "averaged: lay them side by side, (B, T, H, d) to (B, T, h)"),
    Mutant("same-weights", ("(W_q, W_k, W_v)", "(W_q, W_q, W_v)"), "W_q makes the keys, too: W_k is not used"),
    Mutant("same-weights", ("(W_q, W_k, W_v)", "(W_q, W_k, W_k)"), "W_k makes the values, too: W_v is not used"),
    Mutant("exchanged", ("(W_q, W_k, W_v)", "(W_q, W_v, W_k)"), "keys and values have changed places"),
    Mutant("scaled-by-d", ("is_causal=True", "is_causal=True, scale=1 / q.shape[-1]"), "the scores are divided by "
        "h / H, not by its root"),
    Mutant("scaled-by-H", ("is_causal=True", "is_causal=True, scale=num_heads ** -0.5"), "the scores are divided "
        "by the root of H, the number of heads: it is that of h / H"),
    Mutant("one-ahead", ("is_causal=True", "attn_mask=torch.ones(X.shape[1], X.shape[1]).tril(1).bool()"),
        "each token sees the one that follows it: the mask's last allowed diagonal is that of the token itself"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("transposed", ("dim=1)", "dim=0)"), "rows and columns have changed places: a row belongs to an output"),
    Mutant("turned", ("moved.any(dim=-1)", "~moved.any(dim=-1)"), "True and False have changed places"),
    Mutant("all-features", ("moved.any(dim=-1)", "moved.all(dim=-1)"), "an output depends on a token where *any* of "
        "its features moves; this asks that all of them do"),
    Mutant("one-output", ("moved.any(dim=-1)", "moved[:, 0]"), "only the first feature of the outputs is compared: "
        "look at all"),
    Mutant("one-input", ("changed[0, s] += 1", "changed[0, s, 0] += 1"), "only the first feature of a token is "
        "changed: change all, since an output may depend on another"),
    Mutant("nothing", ("changed[0, s] += 1", "changed[0, s] *= 1"), "nothing is seen to depend on anything: does the "
        "input really change?"),
    Mutant("cumulative", ("changed = X.clone()", "changed = X"), "tokens that were changed stay changed: start from "
        "the first X for every token"),
    Mutant("everything", ("changed[0, s] +=", "changed[0] +="), "every column is the same: does each come from "
        "its own token alone, compared with the output for the same X?"),
    Mutant("without-itself", ("dim=1)", "dim=1) & ~torch.eye(num_tokens, dtype=torch.bool)"), "an output depends on "
        "its own token too"),
    Mutant("future-only", ("dim=1)", "dim=1).triu(1)"), "only forbidden dependences are found; missing ones are faults "
        "as well"),
    Mutant("shape", ("moved.any(dim=-1)", "moved")),  # each feature
    Mutant("dtype", ("dim=1)", "dim=1).float()")),  # numbers
    Mutant("weak", ("atol=1e-6", "atol=1e-2"), "a weak dependence is missed: make the change larger or the tolerance "
        "smaller"),
    Mutant("weak", ("changed[0, s] += 1", "changed[0, s] += 1e-5"), "a weak dependence is missed: make the change "
        "larger or the tolerance smaller"),
    Mutant("from-zeros", ("torch.randn(1, num_tokens, num_hiddens)", "torch.zeros(1, num_tokens, num_hiddens)"),
        "all other tokens are zero here, and a product with zero does not move: start from random tokens"),
    Mutant("one-token", ("torch.randn(1, num_tokens, num_hiddens)", "torch.randn(1, 1, num_hiddens).repeat(1, "
        "num_tokens, 1)"), "all tokens are alike at the start, so that differences are zero: start from random ones"),
    Mutant("summed", ("moved = ~torch.isclose(layer(changed)[0], before, atol=1e-6)",
        "moved = ~torch.isclose(layer(changed)[0].sum(-1, True), before.sum(-1, True), atol=1e-5)"),
        "the features of an output are summed before they are compared, and their changes may cancel"),
    Mutant("summed", of_summed_features, "the features of an output are summed before they are compared, and their "
        "changes may cancel"),
    Mutant("later-too", ("changed[0, s] +=", "changed[0, s:] +="), "the tokens after s are changed as well: change one "
        "token at a time"),
    Mutant("past-only", ("dim=1)", "dim=1).tril()"), "dependence on later tokens is left out; the table should tell it "
        "where it is there"),
    Mutant("expected", ("return torch.stack(columns, dim=1)", "return torch.ones(num_tokens, "
        "num_tokens).tril().bool()"), "this is the table that a causal layer should have: find the one that this "
        "layer has"),
    Mutant("all-features", ("moved.any(dim=-1)", "moved.float().mean(-1) > 0.5"), "an output depends on a token where "
        "*any* of its features moves; this asks that most of them do"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-05.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-05.1a",
            prompt="**Mend it.** Write `multi_head(X, W_q, W_k, W_v, W_o, num_heads)` as it was meant.",
            hints=[
                "Number the entries of a small X @ W and print the (T, d) slices that `view` makes.",
                "Cut the last dimension into (H, d), which makes (B, T, H, d). Then exchange T and H.",
                "The way back does the same in reverse: exchange first, join after. `view` refuses there; why?",
            ],
            answer=multi_head,
            verify=verify_fix,
            alternatives=[by_a_loop, by_permute],
            min_checks=6,
            advice={
                "values": "For each example and head by itself: its block of columns, its scores over the root of h "
                "/ H, minus infinity for later tokens, a softmax over the keys; then the heads side by side, times W_o",
                "nonfinite": "Scores may be large: by hand, subtract the largest of a row before the exponential",
            },
            mutants=MUTANTS_A,
            explanation=r"""
`view` reads the numbers in the order in which they lie in memory: token after token. Where H divides T, an example
falls apart into H runs of *tokens*, each with all of its features, and these runs are the "heads". Inside a run, pieces
of d features are taken for positions. So a token never hears of those in another run, and hears of its own features as
if they were neighbours.

`view` may cut the last dimension, and it may do so before the exchange. After the exchange it raises an error, where
`reshape` quietly copies, in the right order or a wrong one: so `reshape` is the more dangerous of the two.
""",
        ),
        Code(
            key="own-05.1b",
            prompt=r"""
**Catch it.** The colleague's test for leaks found nothing, and there is no leak. Write the test that says more:
`dependence(layer, num_tokens, num_hiddens)` returns a table (T, T) of booleans that tells which outputs depend on which
inputs. It can only call the layer, and is tried on one that is right, on four that are not, and on four whose links are
drawn at random: some of these are weak (a ten-thousandth, but not less), and one layer multiplies tokens with each
other.
""",
            hints=[
                "Call the layer twice, with inputs that differ in one token. Which outputs moved?",
                "Each token in turn, from the same start, makes one column of the table.",
                "Compare with a tolerance, `~torch.isclose(after, before, atol=1e-6)`; then `.any(dim=-1)`.",
            ],
            answer=dependence,
            verify=verify_dependence,
            alternatives=[by_gradient, in_one_batch],
            min_checks=10,
            advice={
                "values": "Where a dependence is missed, the change is too small, the tolerance too large, the tokens "
                "are zero or alike, or something cancels; where one is seen that is not there, more than one token "
                "changes, or the tolerance is too small"
            },
            mutants=MUTANTS_B,
            explanation=r"""
Look at the table of the colleague's layer: below the diagonal whole blocks are missing. It *is* causal, because pieces
in the order of memory are in the order of the tokens as well. A test for leaks alone asks only whether something passes
that should not. Ask also whether everything passes that should.

The table needs no reference and works for any model: chapter 07 finds faults of a decoder with it. What it cannot see
is a head with the wrong *weights*: interleaved heads (every H-th feature) have a perfect table.
""",
        ),
    ],
)
