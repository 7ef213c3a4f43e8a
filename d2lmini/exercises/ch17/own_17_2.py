r"""What did LLaMA cost?

A model of LLaMA's form has an embedding (V, h), L blocks and a last layer (h, V) of its own: the two are not tied. A
block is a norm, causal self-attention with four matrices h x h, another norm and a feed-forward network with a gate,
SwiGLU: two matrices from h to f and one from f to h. One more norm stands after the last block. Nothing has a bias; a
norm (RMS) has one factor for each feature; positions turn queries and keys and have no parameters.

It is trained on D tokens, in sequences of T.
"""

import math
from functools import cache

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Count, Exercise, Mutant, Option

# (V, h, L, f, T, D, heads): two toys in which everything differs, LLaMA 7B and 65B as published
CONFIGURATIONS = [
    (61, 24, 3, 40, 19, 19 * 29, 2),
    (307, 40, 5, 112, 256, 256 * 11, 4),
    (32000, 4096, 32, 11008, 2048, 1_000_000_000_000, 32),
    (32000, 8192, 80, 22016, 2048, 1_400_000_000_000, 64),
]


def training_cost(vocab_size, num_hiddens, num_blks, ffn_num_hiddens, context, tokens):
    """Count what a model has and what its training takes.

    Args:
        vocab_size: V. num_hiddens: h. num_blks: L. ffn_num_hiddens: f.
        context: T, tokens of a sequence.
        tokens: D, all that are read in training.

    Returns:
        dict with ``parameters``, ``tokens_per_parameter`` and ``flops``.
    """
    ### BEGIN SOLUTION
    V, h, f = vocab_size, num_hiddens, ffn_num_hiddens
    matrices = num_blks * (4 * h * h + 3 * h * f)
    norms = (2 * num_blks + 1) * h
    embedding, last = V * h, h * V
    N = embedding + matrices + norms + last
    products = matrices + last  # numbers that each token is multiplied by; the embedding is looked up
    attention = num_blks * (context * h + context * h)  # its query with T keys, its weights with T values
    forward = 2 * (products + attention)
    backward = 2 * forward
    return {
        "parameters": N,
        "tokens_per_parameter": tokens / N,
        "flops": tokens * (forward + backward),
    }
    ### END SOLUTION


def in_closed_form(vocab_size, num_hiddens, num_blks, ffn_num_hiddens, context, tokens):
    V, h, L, f, T = vocab_size, num_hiddens, num_blks, ffn_num_hiddens, context
    N = 2 * V * h + L * h * (4 * h + 3 * f + 2) + h
    flops = 6 * tokens * h * (V + L * (4 * h + 3 * f + 2 * T))
    return {"parameters": N, "flops": flops, "tokens_per_parameter": tokens / N}


@cache
def measure(V, h, L, f, T, D, H):
    """Parameters, and operations of a training step with one sequence, of a real model without numbers in it."""
    with torch.device("meta"):
        # turning queries and keys is no matrix product, and has no parameters
        form = dict(positions=None, norm="rms", ffn="swiglu", use_bias=False, tie_weights=False, dropout=0.0)
        model = d2l.GPT(d2l.GPTConfig(V, T, h, H, L, f, **form))
        # the counter knows matrix products, not every fused kernel
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as work:
            model(torch.zeros(1, T, dtype=torch.long)).sum().backward()
    N = sum(p.numel() for p in model.parameters())
    return N, D / N, work.get_total_flops() * D // T


def verify_cost(t, answer):
    names = "parameters", "tokens_per_parameter", "flops"
    for V, h, L, f, T, D, H in CONFIGURATIONS:
        case = f"for V={V}, h={h}, L={L}, f={f}, T={T}, D={D}"
        got = t.fields(t.call(answer, V, h, L, f, T, D), *names)
        for name, value, want in zip(names, got, measure(V, h, L, f, T, D, H), strict=True):
            t.number(value, want, f"{name} {case}")


def best_split(A, alpha, B, beta, flops):
    """How many parameters and how many tokens a budget is best spent on.

    Args:
        A, alpha: of what the size leaves, A / N^alpha.
        B, beta: of what the tokens leave, B / D^beta.
        flops: C, the budget.

    Returns:
        dict with ``parameters`` and ``tokens``: N and D, floats (no need to round).
    """
    ### BEGIN SOLUTION
    ratio = alpha * A / (beta * B)  # where the slopes agree: N^alpha / D^beta is this
    total = alpha + beta
    N = ratio ** (1 / total) * (flops / 6) ** (beta / total)
    return {"parameters": N, "tokens": flops / (6 * N)}
    ### END SOLUTION


def by_the_package(A, alpha, B, beta, flops):
    best = d2l.scaling.compute_optimal(d2l.scaling.PowerLaw(0.0, (A, B), (alpha, beta)), flops)
    return {"parameters": best.parameters, "tokens": best.tokens}


def by_bisection(A, alpha, B, beta, flops):
    """The derivative of the loss in log N is below 0 where the model is too small."""
    low, high = 0.0, math.log(flops / 6)
    for _ in range(200):
        middle = (low + high) / 2
        N = math.exp(middle)
        too_small = alpha * A * N**-alpha > beta * B * (flops / 6 / N) ** -beta
        low, high = (middle, high) if too_small else (low, middle)
    return {"parameters": math.exp(low), "tokens": flops / 6 / math.exp(low)}


# mistakes


def equal_terms(A, alpha, B, beta, flops):
    """Where what is left by the size equals what is left by the tokens."""
    N = (A / B) ** (1 / (alpha + beta)) * (flops / 6) ** (beta / (alpha + beta))
    return {"parameters": N, "tokens": flops / (6 * N)}


def no_six_at_all(A, alpha, B, beta, flops):
    N = best_split(A, alpha, B, beta, 6 * flops)["parameters"]
    return {"parameters": N, "tokens": flops / N}


def same_factor(A, alpha, B, beta, flops):
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    powers = [(flops / 6) ** (exponent / (alpha + beta)) for exponent in (beta, alpha)]
    return {"parameters": G * powers[0], "tokens": G * powers[1]}


def twenty_tokens(A, alpha, B, beta, flops):
    N = math.sqrt(flops / 120)
    return {"parameters": N, "tokens": 20 * N}


def evenly(A, alpha, B, beta, flops):
    N = math.sqrt(flops / 6)
    return {"parameters": N, "tokens": N}


def on_a_grid(A, alpha, B, beta, flops):
    """The best of a thousand sizes."""
    sizes = torch.logspace(0, math.log10(flops / 6), 1000, dtype=torch.float64)
    losses = A * sizes**-alpha + B * (flops / 6 / sizes) ** -beta
    N = sizes[losses.argmin()].item()
    return {"parameters": N, "tokens": flops / 6 / N}


def _golden(A, alpha, B, beta, flops):
    """The least loss by golden-section search over log N; good to the root of the precision, and no further."""
    share = (math.sqrt(5) - 1) / 2
    low, high = 0.0, math.log(flops / 6)

    def loss(x):
        return A * math.exp(-alpha * x) + B * math.exp(-beta * (math.log(flops / 6) - x))

    for _ in range(120):
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return math.exp((low + high) / 2)


def verify_split(t, answer):
    cases = [(406.4, 0.34, 410.7, 0.28, 5.76e23)]  # Chinchilla's law, as rounded, and Gopher's budget
    for _ in range(2):
        alpha, beta = t.random.uniform(0.25, 0.35), t.random.uniform(0.4, 0.5)
        alpha, beta = (alpha, beta) if t.random.random() < 0.5 else (beta, alpha)
        A, B = t.random.uniform(100, 500), t.random.uniform(600, 2000)
        cases.append((A, alpha, B, beta, 10 ** t.random.uniform(19, 25)))
    cases.append((10**4.5, 0.3, 100, 0.35, 1e28))  # size is worth much: more parameters than tokens
    cases.append((1e3, 0.3, 1e3, 0.3, 10 ** t.random.uniform(8, 10)))
    for place, (A, alpha, B, beta, flops) in enumerate(cases):
        case = "for Chinchilla's law and Gopher's budget" if not place else f"for another law and {flops:.1e} FLOPs"
        N = _golden(A, alpha, B, beta, flops)
        got = t.fields(t.call(answer, A, alpha, B, beta, flops), "parameters", "tokens")
        # both at once, so that one who has N right and D wrong is told so
        pair = torch.tensor([_number(t, x, name) for x, name in zip(got, ("parameters", "tokens"), strict=True)])
        t.same(
            pair.log().to(t.device),
            torch.tensor([N, flops / 6 / N]).log().double(),
            f"the logarithms of [parameters, tokens] {case}",
            dtype=torch.float32,
            tolerance=(0, 1e-3),
        )


def _number(t, x, name):
    x = x.item() if isinstance(x, torch.Tensor) and x.dim() == 0 else x
    good = isinstance(x, (int, float)) and not isinstance(x, bool)
    t.that(good, "type", f"{name} are a {type(x).__name__}, expected a number")
    t.that(bool(x > 0 and math.isfinite(x)), "nonfinite", f"{name} are not finite and above 0")
    return float(x)


MUTANTS_A = [
    Mutant("tied", ("embedding + matrices + norms + last", "embedding + matrices + norms"), "the last layer's matrix "
        "is missing: it is not the embedding's here"),
    Mutant("no-embeddings", ("embedding + matrices + norms + last", "matrices + norms"), "embedding and last layer are "
        "missing: Kaplan et al. count so, but *all* parameters are asked for"),
    Mutant("no-norms", ("embedding + matrices + norms + last", "embedding + matrices + last"),
        "the factors of the norms are missing"),
    Mutant("last-norm", ("(2 * num_blks + 1) * h", "2 * num_blks * h"), "one norm is missing, that after the last "
        "block"),
    Mutant("positions", ("embedding + matrices + norms + last", "embedding + matrices + norms + last + context * h"),
        "positions are counted as parameters: here they turn queries and keys, and have none"),
    Mutant("one-norm", ("(2 * num_blks + 1) * h", "(num_blks + 1) * h"), "a block has two norms, one before attention "
        "and one before the network"),
    Mutant("no-W_o", ("4 * h * h", "3 * h * h"), "attention has four matrices: the one that mixes the heads is "
        "missing"),
    Mutant("layer-norms", ("(2 * num_blks + 1) * h", "2 * (2 * num_blks + 1) * h"), "the norms are counted with a "
        "bias: an RMS norm has a factor for each feature alone"),
    Mutant("no-gate", ("3 * h * f", "2 * h * f"), "the feed-forward network has three matrices: the gate's is missing"),
    Mutant("4h", ("3 * h * f", "3 * h * 4 * h"), "the hidden layer is taken to be 4 h: it is f"),
    Mutant("per-token", ("tokens / N", "N / tokens"), "these are parameters per token: D / N"),
    Mutant("rounded", ("tokens / N", "tokens // N"), "tokens per parameter are rounded down: they are no whole number"),
    Mutant("norms-multiplied", ("products = matrices + last ", "products = matrices + last + norms "),
        "the factors of the norms are counted as a matrix product"),
    Mutant("6ND", ("tokens * (forward + backward)", "6 * N * tokens"), "this is the rule of thumb, 6 N D: the "
        "embedding multiplies nothing, and attention's scores are missing in it"),
    Mutant("no-attention", ("(products + attention)", "products"), "attention's own products are missing: queries with "
        "keys, and weights with values"),
    Mutant("scores-alone", ("(context * h + context * h)", "context * h"), "half of attention's products are "
        "missing: it has two, queries with keys and weights with values, and in each all T keys count, masked or not"),
    Mutant("causal", ("num_blks * (context * h + context * h)", "num_blks * (context + 1) * h"),
        "only the keys that are not masked are counted: here all T count"),
    Mutant("embedding-multiplies", ("products = matrices + last ", "products = matrices + last + embedding "),
        "the embedding is counted as a product: it is looked up"),
    Mutant("no-last-layer", ("products = matrices + last ", "products = matrices "), "the last layer's product is "
        "missing: each token is scored for V tokens"),
    Mutant("forward", ("tokens * (forward + backward)", "tokens * forward"), "this is the way forward alone: training "
        "goes back, too"),
    Mutant("backward-once", ("2 * forward\n", "forward\n"), "backward is counted like forward: it has two products for "
        "each"),
    Mutant("backward-thrice", ("= 2 * forward\n", "= 3 * forward\n"), "backward is counted three times forward: it is "
        "twice, and 3 is what both have together"),
    Mutant("all-pairs", ("(context * h + context * h)", "2 * context * context * h"), "attention is counted for all T "
        "queries of a sequence and then for each of the D tokens: one token has one query"),
    Mutant("one-sequence", ("tokens * (forward + backward)", "context * (forward + backward)"),
        "these are the operations for one sequence: all D tokens are read"),
    Mutant("multiply-adds", ("forward = 2 * (", "forward = ("), "a multiplication and an addition count as two "
        "operations"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("names", ('{"parameters": N, "tokens": flops / (6 * N)}', '{"parameters": flops / (6 * N), "tokens": N}'),
        "parameters and tokens are exchanged"),
    Mutant("terms-equal", equal_terms, "here A / N^alpha equals B / D^beta: what must be equal is what one per cent "
        "more of each *gains*, which has the exponents as factors"),
    Mutant("exchanged", ("(beta / total)", "(alpha / total)"), "the exponent of the budget is alpha / (alpha + beta): "
        "that is how the *tokens* grow"),
    Mutant("ratio", ("alpha * A / (beta * B)", "beta * B / (alpha * A)"), "the ratio is turned round: the more a size "
        "is worth, the larger should it be"),
    Mutant("no-ratio", ("ratio ** (1 / total) * ", ""), "A and B do not come in: they decide what the budget is "
        "multiplied by"),
    Mutant("ratio-exponent", ("ratio ** (1 / total)", "ratio"), "the ratio has the exponent 1 / (alpha + beta)"),
    Mutant("no-6", ("(flops / 6) ** (beta / total)", "flops ** (beta / total)"), "the 6 of C = 6 N D is missing in N"),
    Mutant("tokens-6", ("flops / (6 * N)", "flops / N"), "N is right, D is not: 6 N D must be the budget"),
    Mutant("6-nowhere", no_six_at_all, "the 6 of C = 6 N D is missing in both"),
    Mutant("same-factor", same_factor, "N is right. For D the factor in front is one over that of N, so that 6 N D is "
        "the budget"),
    Mutant("twenty", twenty_tokens, "this is 20 tokens a parameter, a rule of thumb for one law and its budgets: use "
        "the law that is given"),
    Mutant("square-roots", ("(beta / total)", "0.5"), "N grows with the square root of the budget, as if both "
        "exponents were equal: it grows with the power beta / (alpha + beta)"),
    Mutant("evenly", evenly, "this gives as many tokens as parameters, whatever the law"),
    Mutant("grid", on_a_grid, "this is the best of a grid of sizes, and near: the minimum is flat, so use the "
        "condition on the slopes, or refine"),
    Mutant("type", ('{"parameters": N, "tokens": flops / (6 * N)}', "(N, flops / (6 * N))")),  # a pair
]  # fmt: skip


EXERCISE = Exercise(
    key="own-17.2",
    doc=__doc__,
    source="own",
    parts=[
        Count(
            key="own-17.2a",
            prompt=r"""
Write `training_cost(vocab_size, num_hiddens, num_blks, ffn_num_hiddens, context, tokens)` that returns a dict:

- `parameters`: N, all of them;
- `tokens_per_parameter`: D / N;
- `flops`: floating-point operations of all matrix products in training, forward and backward. A multiplication and an
  addition are two. In attention each query meets all T keys, the masked ones too, as published figures count; norms,
  activations and the softmax are left out, and the embedding is looked up. Backward costs twice forward: each product
  there has one with respect to its weights (or keys, values) and one with respect to its input.

The check compares with `d2l.GPT`, of which a training step is counted by torch. LLaMA 7B has V = 32,000, h = 4,096,
L = 32, f = 11,008, T = 2,048 and D = 10^12.
""",
            hints=[
                "A block has four matrices of h x h and three of h x f. How many norms are there in all?",
                "A token meets each entry of a matrix once on its way forward: two operations. Which of the two "
                "(V, h) matrices multiplies?",
                "In each block a token's query has products of h numbers (all heads together) with T keys, and its "
                "weights with T values: 2 T h multiplications.",
                "Forward is 2 operations a multiplication, backward twice that: 6 in all.",
            ],
            answer=training_cost,
            verify=verify_cost,
            alternatives=[in_closed_form],
            min_checks=20,
            seconds=60.0,  # torch's counter of operations loads much at its first use
            advice={
                "values": "Count the first configuration by hand: which matrices has a block, what stands before and "
                "after the blocks? For `flops`: which of these multiply a token, what does attention add, and "
                "how often in training?",
            },
            mutants=MUTANTS_A,
            explanation=r"""
With $6 D h \, [V + L (4 h + 3 f + 2 T)]$ against $6 N D$ one sees what the rule of thumb leaves out, and what it puts
in: it counts the embedding, $V h$, as a product, and not attention, $2 L T h$. For LLaMA 7B at T = 2,048
attention is 8 % of the rest, and it grows with T. The rule is good while T is small against 6 h or so.

Two conventions hide in published figures: whether N has the embeddings (Kaplan et al. 2020 leave them out, Hoffmann et
al. 2022 do not, and for small models that alone bends the exponents, Pearce and Song 2024), and whether masked scores
count.
""",
        ),
        Code(
            key="own-17.2b",
            prompt=r"""
How should a budget be spent? With Chinchilla's law

$$L(N, D) = E + \frac{A}{N^\alpha} + \frac{B}{D^\beta} \qquad \text{and} \qquad C = 6 N D$$

write `best_split(A, alpha, B, beta, flops)`, which returns a dict of the `parameters` N and `tokens` D that have the
least loss for C FLOPs. Then put in Chinchilla's numbers, A = 406.4, $\alpha$ = 0.34, B = 410.7, $\beta$ = 0.28, and
Gopher's budget of 5.76e23: are these the 70 billion parameters and 1.4 trillion tokens of the published model?
""",
            hints=[
                "Put D = C / (6 N) in. What is left depends on N alone: take its derivative.",
                "At the best point one per cent more parameters gains what one per cent fewer tokens loses: "
                "alpha A / N^alpha = beta B / D^beta.",
                "Solve this for N with D = C / (6 N). Or let a bisection find where the difference of the two sides "
                "changes its sign.",
            ],
            answer=best_split,
            verify=verify_split,
            alternatives=[by_the_package, by_bisection],
            min_checks=24,
            advice={
                "values": "Put your N and D into two equations: 6 N D = C, and alpha A / N^alpha = beta B / D^beta. "
                "Which of them does not hold?",
            },
            mutants=MUTANTS_B,
            explanation=r"""
$\alpha A N^{-\alpha} = \beta B D^{-\beta}$ and $D = C / 6N$ give

$$N = \left( \frac{\alpha A}{\beta B} \right)^{\frac1{\alpha + \beta}}
      \left( \frac{C}{6} \right)^{\frac{\beta}{\alpha + \beta}} , \qquad
  D = \frac{C}{6 N} \sim C^{\frac{\alpha}{\alpha + \beta}} .$$

Whichever falls *slower* by its own exponent needs to grow faster. With these numbers the optimum is far from 70 billion
parameters: it is at less than half of that, with more than twice the tokens. The paper states 67 and 63 billion by two
other methods, and 40 by this law, before its constants were rounded: an optimum hangs on digits that look like nothing.
Besiroglu et al. (2024) found, too, that the law does not fit the runs well. A minimum as flat as this one forgives
much: that is why labs may choose a smaller model on more tokens, which is cheaper to *use*, and lose little (LLaMA).
""",
        ),
        Choice(
            key="own-17.2c",
            prompt="LLaMA 7B was trained on 10^12 tokens, some 150 a parameter. A compute-optimal model of the same "
            "budget would have been larger and trained on fewer. Why not that one?",
            hints=["Training happens once."],
            options=[
                Option(
                    "It was a mistake, since the authors did not know of Chinchilla's law.",
                    "They cite it and say why they depart from it.",
                ),
                Option(
                    "A smaller model learns more than a large one from each of its tokens.",
                    "The other way round: larger models need fewer tokens for the same loss.",
                ),
                Option(
                    "A model is trained once, and each use of it costs in proportion to N.",
                    "The best split minimises the loss for a budget of *training*, 6 N D. A token in use costs about "
                    "2 N: with much use the sum has its minimum at a smaller N and a larger D than training alone.",
                    right=True,
                ),
                Option(
                    "At this size the loss hardly depends on the number of parameters any more.",
                    "It does: of the published LLaMAs the larger ones have the lower losses throughout.",
                ),
            ],
        ),
    ],
)
