r"""What becomes of positions in a deep stack

Stack self-attention layers on top of one another, with sinusoidal positions added once, at the bottom. Is anything
wrong with that as a deep network? Each layer replaces a token by an average of (transformed) tokens. Averages of
averages of averages are all alike, and what was different about two tokens, their positions included, may be averaged
away.

Do not argue, measure. Two numbers for the tokens $\mathbf x_{r,n}$ of R sequences, with N tokens each:

- **alike**: the cosine between two *different* tokens of one sequence, averaged over all such pairs and over the
  sequences;
- **position**: the share of the variance that the position explains. Let $\mathbf m_n$ be the mean over the sequences
  of what stands at position n, and $\mathbf m$ the mean of all. The share is $\sum_n R\, \lVert \mathbf m_n - \mathbf
  m\rVert^2 \big/ \sum_{r,n} \lVert \mathbf x_{r,n} - \mathbf m\rVert^2$.
"""

import torch
from torch import nn
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Exercise, Experiment, Mutant, Option


def through_depth(tokens, positions, layers):
    """Measure a stack of layers at every depth.

    Args:
        tokens: (R, N, D), the embeddings of R sequences.
        positions: (N, D), added to the embeddings before the first layer.
        layers: a list of modules, each from (R, N, D) to (R, N, D).

    Returns:
        A dict with two lists of ``len(layers) + 1`` numbers, the first of them for the input of the first
        layer: ``"alike"`` and ``"position"``.
    """
    ### BEGIN SOLUTION
    X = tokens + positions
    alike, position = [], []
    for depth in range(len(layers) + 1):
        if depth > 0:
            with torch.no_grad():
                X = layers[depth - 1](X)
        N = X.shape[1]
        unit = X / X.norm(dim=-1, keepdim=True)
        cosines = unit @ unit.mT  # (R, N, N)
        others = ~torch.eye(N, dtype=torch.bool, device=X.device)
        alike.append(cosines[:, others].mean().item())

        overall = X.mean(dim=(0, 1))  # (D,)
        of_position = X.mean(dim=0)  # (N, D)
        between = len(X) * (of_position - overall).square().sum()
        position.append((between / (X - overall).square().sum()).item())
    return {"alike": alike, "position": position}
    ### END SOLUTION


@torch.no_grad()
def with_functions(tokens, positions, layers):
    states = [tokens + positions]
    for layer in layers:
        states.append(layer(states[-1]))
    alike, position = [], []
    for X in states:
        N = X.shape[1]
        cosines = F.cosine_similarity(X[:, :, None], X[:, None], dim=-1)  # (R, N, N)
        alike.append(float((cosines.mean() * N - 1) / (N - 1)))
        within = X.var(dim=0, correction=0).mean(0).sum()
        position.append(1 - float(within / X.flatten(0, 1).var(dim=0, correction=0).sum()))
    return {"alike": alike, "position": position}


class Layer(nn.Module):
    """Self-attention of two heads, with or without a residual connection."""

    def __init__(self, D, residual):
        super().__init__()
        self.attention, self.residual = d2l.MultiHeadAttention(D, 2), residual

    def forward(self, X):
        Y = self.attention(X, X, X)
        return X + Y if self.residual else Y


def _measure(X):
    """The two numbers of tokens (R, N, D)."""
    R, N, _ = X.shape
    lengths = X.square().sum(-1).sqrt()
    cosines = torch.einsum("rad,rbd->rab", X, X) / torch.einsum("ra,rb->rab", lengths, lengths)
    means, overall = X.mean(0), X.mean((0, 1))
    share = R * (means - overall).square().sum() / (X - overall).square().sum()
    return (cosines.sum() - R * N) / (R * N * (N - 1)), share


def _numbers(t, value, name, count):
    try:
        numbers = torch.tensor([float(x) for x in value], dtype=torch.float64, device=t.device)
    except (TypeError, ValueError):
        t.that(False, "type", f"{name} is not a list of numbers")
    t.that(len(numbers) == count, "shape", f"{name} has {len(numbers)} numbers, expected {count}: one more than layers")
    return numbers


def _one(t, answer, tokens, positions, layers):
    """Compare both lists for one stack, and return them."""
    states, names = [(tokens + positions).cpu()], ("alike", "position")
    with torch.no_grad():
        for layer in layers:
            states.append(layer(states[-1]))
    want = torch.tensor([_measure(X.double()) for X in states], dtype=torch.float64)
    lists = t.fields(t.call(answer, tokens, positions, [layer.to(t.device) for layer in layers]), *names)
    alike, position = (_numbers(t, value, name, len(states)) for value, name in zip(lists, names, strict=True))
    t.same(alike, want[:, 0], "alike", dtype=torch.float64, tolerance=(1e-3, 1e-4))
    t.same(position, want[:, 1], "position", dtype=torch.float64, tolerance=(1e-3, 1e-4))
    return alike, position


def verify(t, answer):
    D, ends = 16, {}
    for residual in (False, True):
        for seed in range(3):
            torch.manual_seed(1000 * t.seed + seed)
            depth, R, N = 4 + seed // 2, 12 - seed, 7 + seed  # the last stack has five layers
            layers = [Layer(D, residual) for _ in range(depth)]
            tokens, positions = t.randn(R, N, D), 2 * d2l.sinusoidal(N, D).to(t.device)
            ends.setdefault(residual, []).append(_one(t, answer, tokens, positions, layers))
    away = t.randn(3, 1, D)  # two tokens that point away from each other: a cosine may be negative
    _one(t, answer, torch.cat([away, -away], 1) + t.randn(3, 2, D, scale=0.3), t.randn(2, D, scale=0.1), [nn.Tanh()])
    plain = ends[False]
    t.below(
        [a[0] for a, _ in plain], [a[-1] for a, _ in plain], 0.3, "not-alike", "tokens should grow alike with depth"
    )
    t.below(
        [p[-1] for _, p in plain], [p[0] for _, p in plain], 0.2, "not-lost", "the position should be lost with depth"
    )
    t.below(
        [p[-1] for _, p in plain],
        [p[-1] for _, p in ends[True]],
        0.1,
        "no-residual",
        "residual connections should keep more of the position",
    )


MUTANTS = [
    Mutant("with-itself", ("cosines[:, others].mean()", "cosines.mean()"), "a token's cosine with itself is always "
        "one: leave it out"),
    Mutant("not-normalised", ("unit @ unit.mT", "X @ X.mT"), "these are dot products: divide by both lengths"),
    Mutant("no-positions", ("tokens + positions", "tokens"), "the positions are not added"),
    Mutant("not-stacked", ("X = layers[depth - 1](X)", "layers[depth - 1](X)"), "the input is measured again and "
        "again: pass it from layer to layer"),
    Mutant("each-layer", ("X = layers[depth - 1](X)", "X = layers[depth - 1](X if depth == 1 else X + positions)"),
        "the positions are added before every layer: add them once, to the embeddings"),
    Mutant("each-layer", ("X = layers[depth - 1](X)", "X = layers[depth - 1](X + positions)"),
        "the positions are added before every layer: add them once, to the embeddings"),
    Mutant("each-layer", ("X = layers[depth - 1](X)", "X = layers[depth - 1](X) + positions"),
        "the positions are added again after every layer: add them once, to the embeddings"),
    Mutant("unbiased", ("(between / (X - overall).square().sum()).item()",
        "(of_position.var(0).sum() / X.flatten(0, 1).var(0).sum()).item()"), "`var` divides by one less than the "
        "number, which is not the same factor for N means and R N tokens: sum the squares, or set correction=0"),
    Mutant("rest", ("(between / (X - overall).square().sum()).item()",
        "1 - (between / (X - overall).square().sum()).item()"), "this is the share that the position does not explain"),
    Mutant("of-sequence", ("len(X) * (of_position - overall).square().sum()",
        "N * (X.mean(dim=1) - overall).square().sum()"), "this is the share of the sequence: average over sequences"),
    Mutant("no-factor", ("len(X) * (of", "(of"), "each mean stands for R tokens: the factor R is missing"),
    Mutant("not-divided", ("(between / (X - overall).square().sum()).item()", "between.item()"),
        "a share is divided by the whole"),
    Mutant("shape", ('"alike": alike,', '"alike": alike[1:],')),  # without the input
    Mutant("type", ('"alike": alike,', '"alike": alike[-1],')),  # last layer only
    Mutant("neighbours", ("cosines[:, others].mean()", "cosines.diagonal(1, 1, 2).mean()"), "only neighbours are "
        "compared: take all pairs of different tokens"),
    Mutant("absolute", ("cosines[:, others].mean()", "cosines[:, others].abs().mean()"), "the cosines have lost their "
        "sign: take no absolute values"),
    Mutant("all-pairs", ("cosines[:, others].mean()", "(cosines * others).mean()"), "the own cosine is left out of the "
        "sum, but counted in the number: there are N (N - 1) pairs"),
    Mutant("across", ("alike.append(cosines[:, others].mean().item())", "turned = unit.transpose(0, 1)  # (N, R, D)\n"
        "        apart = ~torch.eye(len(X), dtype=torch.bool, device=X.device)\n        alike.append((turned @ "
        "turned.mT)[:, apart].mean().item())"), "tokens of different sequences are compared: take two tokens of one "
        "sequence"),
    Mutant("centred", ("unit = X / X.norm(dim=-1, keepdim=True)",
        "Z = X - X.mean(dim=1, keepdim=True)\n        unit = Z / Z.norm(dim=-1, keepdim=True)"),
        "the mean is subtracted before the cosine: take the tokens as they are"),
    Mutant("residual-added", ("X = layers[depth - 1](X)", "X = X + layers[depth - 1](X)"), "the input of a layer is "
        "added to its output: the layers bring residual connections of their own, or none"),
    Mutant("each-on-input", ("X = layers[depth - 1](X)", "X = layers[depth - 1](tokens + positions)"),
        "each layer is given the first input: pass it from layer to layer"),
    Mutant("one-layer", ("layers[depth - 1](X)", "layers[0](X)"), "the first layer is used again and again"),
    Mutant("from-the-last", ("layers[depth - 1](X)", "layers[-depth](X)"), "the layers are passed in reverse: the "
        "first comes first"),
    Mutant("root", ("(between / (X - overall).square().sum()).item()",
        "(between / (X - overall).square().sum()).sqrt().item()"), "this is the root of the share"),
    Mutant("ratio", ("(between / (X - overall).square().sum()).item()",
        "(between / (X - of_position).square().sum()).item()"), "this is the ratio to what the position does not "
        "explain; a share is divided by the whole"),
    Mutant("of-features", ("(between / (X - overall).square().sum()).item()",
        "(len(X) * (of_position - overall).square().sum(0) / (X - overall).square().sum((0, 1))).mean().item()"),
        "this is the mean of the features' shares: add up the features first, above and below"),
    Mutant("not-centred", ("overall = X.mean(dim=(0, 1))", "overall = 0 * X.mean(dim=(0, 1))"),
        "the mean of all tokens is not subtracted"),
    Mutant("scalar-mean", ("overall = X.mean(dim=(0, 1))", "overall = X.mean()"), "the mean of all is a vector (D,), "
        "each feature has its own"),
    Mutant("mean-first", ("cosines = unit @ unit.mT", "cosines = (unit.mean(0) @ unit.mean(0).mT).expand(len(X), "
        "-1, -1)"), "the sequences are averaged before the cosine: take the cosines of each sequence, then their "
        "mean"),
    Mutant("over-tokens", ("X.norm(dim=-1, keepdim=True)", "X.norm(dim=1, keepdim=True)"), "the length runs over "
        "the tokens: a token's own length is over its features, the last axis"),
    Mutant("distances", ("cosines = unit @ unit.mT", "cosines = torch.cdist(unit, unit)"), "these are distances; a "
        "cosine is the dot product of unit vectors"),
    Mutant("absolute-deviations", ("(of_position - overall).square().sum()", "(of_position - overall).abs().sum()"),
        "what is summed above are absolute deviations: square them, as below"),
    Mutant("of-each-sequence", ("overall = X.mean(dim=(0, 1))", "overall = X.mean(dim=1, keepdim=True)"),
        "the mean is that of each sequence: take the mean of all tokens of all sequences"),
    Mutant("by-N", ("len(X) * (of", "N * (of"), "each mean stands for R tokens, one a sequence: the factor is R, "
        "not N"),
    Mutant("one-late", ("depth > 0:", "depth > 1:"), "the input is measured twice: the second number belongs to "
        "the output of the first layer"),
    Mutant("embeddings-scaled", ("X = tokens + positions", "X = tokens * tokens.shape[-1] ** 0.5 + positions"),
        "the embeddings are multiplied by something: positions are added to them as they are"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.6.1",
    doc=__doc__,
    source="D2L 11.6, exercise 1",
    parts=[
        Choice(
            key="d2l-11.6.1a",
            prompt="A deep network is nothing but self-attention layers, one on top of the other, with positions "
            "added to "
            "the embeddings at the bottom. Which problem does it have?",
            hints=[
                "Each output of a layer is an average. What do repeated averages tend to?",
                "Part b measures it. What is missing in this stack that every Transformer has?",
            ],
            options=[
                Option(
                    "Layers are equivariant, so the order is lost at the first of them, however positions are added.",
                    "Once positions are in the tokens, two orders of the words are two different sets of tokens, and "
                    "an "
                    "equivariant layer tells them apart. The order is there at the bottom; the question is what is "
                    "left of it above.",
                ),
                Option(
                    "Distant tokens cannot influence each other unless the stack has about as many layers as tokens.",
                    "One layer is enough for that: every token attends to every other.",
                ),
                Option(
                    "Tokens grow alike from layer to layer, and the position, put in once, fades along with the rest.",
                    "Averages of averages lose what differs between tokens, their positions too. Residual connections "
                    "keep a path on which nothing is averaged; relative encodings put the position into every layer "
                    "anew. (Texts longer than those of training are another trouble: positions no layer has seen.)",
                    right=True,
                ),
                Option(
                    "The positions, put in once, grow from layer to layer until the words are drowned in them at last.",
                    "Nothing adds to them above the bottom. Without a residual connection they are averaged away "
                    "together with everything else that differs between tokens.",
                ),
                Option(
                    "None: the softmax keeps the weights of each row summing to one, so that no layer loses anything.",
                    "That rows sum to one makes each output an *average*, which is exactly how differences are lost.",
                ),
            ],
        ),
        Experiment(
            key="d2l-11.6.1b",
            prompt="Write `through_depth(tokens, positions, layers)`, which measures both numbers at every depth. The "
            "check "
            "tries it on stacks of four or five freshly made layers, without and with residual connections.",
            hints=[
                "Keep `X` from layer to layer, and measure it before the first layer and after each.",
                "Cosines: divide every token by its length, multiply with the transpose, leave the diagonal out.",
                "Variance: the mean over sequences is (N, D), the mean of all is (D,). Count each position's mean R "
                "times.",
            ],
            answer=through_depth,
            verify=verify,
            alternatives=[with_functions],
            min_checks=20,
            advice={
                "values": "Number 0 is of tokens with positions, number i of layer i's output. Cosines are of the "
                "vectors as they are, with their signs: all pairs of different tokens of one sequence, then the mean "
                "over the sequences. The mean of a position is over the sequences, too"
            },
            mutants=MUTANTS,
            explanation=r"""
Without residual connections a few layers are enough: the cosine is close to one, and the position explains next to
nothing. Dong, Cordonnier and Loukas (2021, arXiv:2103.03404) prove it: attention alone loses rank doubly
exponentially with depth, and residual connections and feed-forward networks are what prevents it. These are layers as
they are *made*; training can do something about it, but has to start from there.
""",
        ),
    ],
)
