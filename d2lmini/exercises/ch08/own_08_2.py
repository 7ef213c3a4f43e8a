r"""The residual stream

A deep Transformer is a stream, (B, T, h), to which L branches add something one after the other: attention, a
feed-forward network, attention, and so on. What stands around the additions decides whether it can be trained when L is
large. With norm a layer norm over the h features, without weights, and branches $f_1, \dots, f_L$:

- `"post"`, as in the Transformer of 2017: $x_l = \mathrm{norm}(x_{l-1} + f_l(x_{l-1}))$, and the output is $x_L$;
- `"pre"`, as in GPT-2: $x_l = x_{l-1} + f_l(\mathrm{norm}(x_{l-1}))$, and the output is $\mathrm{norm}(x_L)$;
- `"weighted"`, as in ReZero: $x_l = x_{l-1} + \alpha_l\, f_l(x_{l-1})$, with a learned number $\alpha_l$ for each
  branch, which begins at 0, and no norm; the output is $x_L$.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Count, Exercise, Mutant, Option


def run_stack(X, branches, form, alphas):
    """Sends a stream through a stack of residual branches.

    Args:
        X: (B, T, h), x_0.
        branches: list of L functions, (B, T, h) -> (B, T, h).
        form: "post", "pre" or "weighted".
        alphas: (L,); only "weighted" uses them.

    Returns:
        (output, stream): (B, T, h), and x_0 to x_L stacked, (L + 1, B, T, h).
    """

    ### BEGIN SOLUTION
    stream = [X]

    def norm(X):
        return F.layer_norm(X, X.shape[-1:])

    for alpha, f in zip(alphas, branches, strict=True):
        if form == "post":
            X = norm(X + f(X))
        elif form == "pre":
            X = X + f(norm(X))
        else:
            X = X + alpha * f(X)
        stream.append(X)
    output = norm(X) if form == "pre" else X
    return output, torch.stack(stream)
    ### END SOLUTION


def by_hand(X, branches, form, alphas):
    """The norm written out; the stream goes into a tensor that is there beforehand."""

    def norm(X):
        centred = X - X.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)

    rules = {
        "post": lambda X, f, alpha: norm(X + f(X)),
        "pre": lambda X, f, alpha: X + f(norm(X)),
        "weighted": lambda X, f, alpha: torch.addcmul(X, alpha, f(X)),
    }
    stream = X.new_zeros(len(branches) + 1, *X.shape).index_put((torch.tensor(0, device=X.device),), X)
    for i, f in enumerate(branches):
        X = rules[form](X, f, alphas[i])
        stream = stream.index_put((torch.tensor(i + 1, device=X.device),), X)
    return (norm(X) if form == "pre" else stream[-1]), stream


def as_modules(X, branches, form, alphas):
    """From the last branch: what goes into it is what the stack before it gives."""
    norm = nn.LayerNorm(X.shape[-1], elementwise_affine=False)
    if not branches:
        return (norm(X) if form == "pre" else X), X[None]
    _, before = as_modules(X, branches[:-1], form, alphas[:-1])
    last, f = before[-1], branches[-1]
    if form == "weighted":
        last = last + alphas[-1] * f(last)
    else:
        last = last + f(norm(last)) if form == "pre" else norm(last + f(last))
    return (norm(last) if form == "pre" else last), torch.cat([before, last[None]])


# mistakes


def all_from_the_start(X, branches, form, alphas):
    """Branches side by side: each reads x_0."""
    read = F.layer_norm(X, X.shape[-1:]) if form == "pre" else X
    return run_stack(X, [lambda _, f=f: f(read) for f in branches], form, alphas)


class _Branch:
    """A feed-forward branch that mixes positions, too, and whose scale matters."""

    def __init__(self, inside, outside, bias, mixing):
        self.inside, self.outside, self.bias, self.mixing = inside, outside, bias, mixing

    def __call__(self, X):
        return self.mixing @ (torch.tanh(X @ self.inside + self.bias) @ self.outside)


def _of_loops(X, branches, form, alphas):
    """The reference, in float64, with the norm written out."""
    wide = [_Branch(*(w.detach().cpu().double() for w in vars(b).values())) for b in branches]

    def norm(X):
        mean = X.sum(-1, keepdim=True) / X.shape[-1]
        return (X - mean) / (((X - mean) ** 2).sum(-1, keepdim=True) / X.shape[-1] + 1e-5) ** 0.5

    stream = [X]
    for alpha, f in zip(alphas, wide, strict=True):
        last = stream[-1]
        if form == "weighted":
            stream.append(last + alpha * f(last))
        else:
            stream.append(last + f(norm(last)) if form == "pre" else norm(last + f(last)))
    return (norm(stream[-1]) if form == "pre" else stream[-1]), torch.stack(stream)


CASES = (  # the form, whether all alphas are 0, and what the stack is called
    ("post", False, "of the post-norm stack"),
    ("pre", False, "of the pre-norm stack"),
    ("weighted", False, "of the stack with alphas"),
    ("weighted", True, "of the stack whose alphas are 0"),
)


def verify_stack(t, answer):
    B, T, hidden, L = t.sizes(4, 3, 8)
    h = t.random.randint(9, 12)
    shapes = (h, hidden), (hidden, h), (hidden,), (T, T)
    for form, at_zero, name in CASES:
        branches = [_Branch(*(t.randn(*shape, scale=shape[0] ** -0.5) for shape in shapes)) for _ in range(L)]
        X, alphas = 1 + t.randn(B, T, h, scale=1.5), t.rand(L, low=0.3, high=1.5) * (0 if at_zero else 1)
        X[0, 0] = t.randn(h, scale=3e-3)  # here the norm's eps shows
        inputs = X.requires_grad_(), alphas.requires_grad_()
        exact = [x.detach().cpu().double().requires_grad_() for x in inputs]
        wants = _of_loops(exact[0], branches, form, exact[1])
        got = t.unpack(t.call(answer, X, branches, form, alphas), "output", "stream")
        results = [
            (f"the {which} {name}", *pair) for which, *pair in zip(("output", "stream"), got, wants, strict=True)
        ]
        if isinstance(got[1], torch.Tensor) and got[1].shape == wants[1].shape:  # x_0 alone, which is given
            t.same(got[1][0], wants[1][0].detach(), f"x_0 in the stream {name}")
            t.same(got[1][1:], wants[1][1:].detach(), f"x_1 to x_L in the stream {name}")
        for result, value, want in results[::-1]:
            t.same(value, want.detach(), result)
        for result, value, want in results:
            weights = t.randn(*want.shape)
            wide = weights.cpu().double()
            slopes = torch.autograd.grad(want, exact, wide, allow_unused=True, retain_graph=True)
            for argument, slope, what in ((0, slopes[0], "x_0"), (3, slopes[1], "the alphas")):
                if argument == 0 or form == "weighted":
                    gradient = t.gradient(value, argument, result, weights)
                    t.same(gradient, slope, f"the gradient of {result} in {what}", tolerance=(1e-3, 1e-3))


def stream_after(blocks, variance, branch):
    """Sizes in the stream, by formulas.

    Args:
        blocks: l, how many were run, of one branch each. variance: that of x_0. branch: s^2, that of a branch's output.

    Returns:
        dict of four numbers: ``"variance"``, that of x_l with pre-norm; ``"change"``, with pre-norm, the standard
        deviation of what block l adds over that of what comes into the block; ``"first_pre"`` and ``"first_post"``,
        which share of the variance of x_l comes from x_0, with pre-norm and with post-norm.
    """
    ### BEGIN SOLUTION
    before = variance + (blocks - 1) * branch
    now = variance + blocks * branch
    return {
        "variance": now,
        "change": math.sqrt(branch / before),
        "first_pre": variance / now,
        "first_post": variance / (variance + branch) * (1 + branch) ** (1 - blocks),
    }
    ### END SOLUTION


def block_by_block(blocks, variance, branch):
    pre, post, from_first = variance, variance, variance  # variances of the streams; in post, of that part of it
    for _ in range(blocks):
        before, pre = pre, pre + branch
        from_first, post = from_first / (post + branch), 1
    return dict(variance=pre, change=(branch / before) ** 0.5, first_pre=variance / pre, first_post=from_first)


def _measured(blocks, variance, branch):
    """A stack that is really run; its branches give vectors of that variance, orthogonal to all others.

    Such are exactly uncorrelated, as independent ones are on average.
    """
    n = blocks + 6
    generator = torch.Generator().manual_seed(blocks)
    columns = torch.cat([torch.ones(n, 1), torch.randn(n, blocks + 1, generator=generator)], dim=1).double()
    unit = torch.linalg.qr(columns).Q[:, 1:] * math.sqrt(n)  # of mean 0 and variance 1

    def norm(x):
        return (x - x.mean()) / x.std(correction=0)

    x, *added = (unit * torch.tensor([variance, *[branch] * blocks], dtype=torch.float64).sqrt()).T
    pre = post = first = x
    for f in added:
        before, pre = pre, pre + f
        post = norm(post + f)
    return {
        "variance": pre.var(correction=0).item(),
        "change": (f.std(correction=0) / before.std(correction=0)).item(),
        **{
            f"first_{name}": ((y @ first) ** 2 / (y @ y) / (first @ first)).item()
            for name, y in (("pre", pre), ("post", post))
        },
    }


def verify_after(t, answer):
    for blocks, variance, branch in (
        (1, 0.3, 0.6),
        (3, 2.0, 0.36),
        (8, 0.5, 0.81),
        (24, 1.44, 0.1),
        (t.random.randint(10, 20), t.random.uniform(0.3, 0.8), t.random.uniform(0.1, 0.3)),
    ):
        want = _measured(blocks, variance, branch)
        got = t.fields(t.call(answer, blocks, variance, branch), *want)
        case = f"for l={blocks}, a variance of {variance:.3g} and s^2={branch:.3g}"
        for name, value in zip(want, got, strict=True):
            t.number(value, want[name], f'"{name}" {case}', rtol=1e-7)


EPS = "it is another norm where a position's numbers are nearly equal: its usual eps is 1e-5, added to the variance"

MUTANTS_A = [
    Mutant("forms-swapped", ('if form == "post":\n            X = norm(X + f(X))\n        elif form == "pre":',
        'if form == "pre":\n            X = norm(X + f(X))\n        elif form == "post":'), "post-norm and pre-norm "
        "are swapped: the word says where the norm stands, after the sum or before the branch"),
    Mutant("branch-norm", ("X = norm(X + f(X))", "X = X + norm(f(X))"), "the norm takes the branch alone: post-norm "
        "takes the sum"),
    Mutant("norm-of-stream", ("X = norm(X + f(X))", "X = norm(X) + f(X)"), "the norm takes the stream alone: post-norm "
        "takes the sum"),
    Mutant("no-residual", ("X = norm(X + f(X))", "X = norm(f(X))"), "the stream is not added to what the branch gives"),
    Mutant("no-post-norm", ("X = norm(X + f(X))", "X = X + f(X)"), "there is no norm after the sum"),
    Mutant("alphas-everywhere", ("X = norm(X + f(X))", "X = norm(X + alpha * f(X))"), "the branch is multiplied by its "
        "alpha: \"weighted\" alone uses the alphas"),
    Mutant("alphas-everywhere", ("X = X + f(norm(X))", "X = X + alpha * f(norm(X))"), "the branch is multiplied by its "
        "alpha: \"weighted\" alone uses the alphas"),
    Mutant("two-norms", ("X = norm(X + f(X))", "X = norm(X + f(norm(X)))"), "the branch reads a norm of the stream: in "
        "post-norm it reads the stream as it is, x_0 too"),
    Mutant("stream-normed", ("X = X + f(norm(X))", "X = norm(X) + f(norm(X))"), "the norm takes the stream, too: in "
        "pre-norm only what goes into the branch"),
    Mutant("no-pre-norm", ("X = X + f(norm(X))", "X = X + f(X)"), "there is no norm before the branch"),
    Mutant("pre-no-residual", ("X = X + f(norm(X))", "X = f(norm(X))"), "the branch takes the place of the stream: it "
        "is added to it"),
    Mutant("no-last-norm", ('output = norm(X) if form == "pre" else X', "output = X"), "the last norm is missing"),
    Mutant("always-last-norm", ('output = norm(X) if form == "pre" else X', "output = norm(X)"), "a norm stands at the "
        "end: in this form there is none"),
    Mutant("stream-last-norm", ("return output, torch.stack(stream)",
        "return output, torch.stack(stream[:-1] + [output])"), "the last state is normed: that is the output; the "
        "stream is as the last branch left it"),
    Mutant("no-alpha", ("X + alpha * f(X)", "X + f(X)"), "the branches are not multiplied by their alphas"),
    Mutant("alpha-stream", ("X + alpha * f(X)", "alpha * X + f(X)"), "alpha multiplies the stream: it is the weight of "
        "the branch"),
    Mutant("alpha-both", ("X + alpha * f(X)", "alpha * (X + f(X))"), "alpha multiplies the sum: it is the weight of "
        "the branch alone"),
    Mutant("gate", ("X + alpha * f(X)", "(1 - alpha) * X + alpha * f(X)"), "the stream is weighted as well, with 1 - "
        "alpha: it keeps its weight of 1"),
    Mutant("alpha-inside", ("X + alpha * f(X)", "X + f(alpha * X)"), "alpha multiplies what goes into the branch: it "
        "is the weight of what comes out"),
    Mutant("one-alpha", ("X + alpha * f(X)", "X + alphas[0] * f(X)"), "all branches have the first alpha"),
    Mutant("weighted-norm", ("X + alpha * f(X)", "X + alpha * f(norm(X))"), "there is a norm before the branch: the "
        "form with alphas has none"),
    Mutant("reversed", ("zip(alphas, branches, strict=True)", "zip(alphas.flip(0), branches[::-1], strict=True)"),
        "the branches are run from the last to the first"),
    Mutant("parallel", all_from_the_start, "every branch reads x_0: each reads what those before it left in the "
        "stream"),
    Mutant("norm-axes", ("F.layer_norm(X, X.shape[-1:])", "F.layer_norm(X, X.shape[-2:])"),
        "the norm runs over positions, too: every position is normed for itself, over its h features"),
    Mutant("batch-norm", ("F.layer_norm(X, X.shape[-1:])",
        "(X - X.mean((0, 1))) / (X.var((0, 1), correction=0) + 1e-5).sqrt()"), "every feature is normed over the "
        "batch, as in batch norm: layer norm takes the h features of a position"),
    Mutant("rms-norm", ("F.layer_norm(X, X.shape[-1:])", "F.rms_norm(X, X.shape[-1:], eps=1e-5)"),
        "the mean is not taken off: this is the RMS norm, not the layer norm"),
    Mutant("unbiased", ("F.layer_norm(X, X.shape[-1:])",
        "(X - X.mean(-1, keepdim=True)) / (X.var(-1, keepdim=True) + 1e-5).sqrt()"), "the variance is divided by h - "
        "1: layer norm divides it by h (`correction=0`)"),
    Mutant("unbiased", ("F.layer_norm(X, X.shape[-1:])", "(X - X.mean(-1, True)) / (X.std(-1, keepdim=True) + 1e-5)"),
        "`std` divides by h - 1: layer norm takes the root of (variance over h, plus 1e-5)"),
    Mutant("shape", ("stream = [X]", "stream = []")),  # x_0 left out
    Mutant("grad", ("X + alpha * f(X)", "X + alpha.item() * f(X)")),  # alphas as numbers
    Mutant("grad", ("torch.stack(stream)\n", "torch.stack(stream).detach()\n")),
    Mutant("stream-cut", ("stream.append(X)", "stream.append(X.detach())"), "the states are detached as they are "
        "collected: keep the tensors themselves"),
    Mutant("eps", ("F.layer_norm(X, X.shape[-1:])", "F.layer_norm(X, X.shape[-1:], eps=0.0)"), EPS),
    Mutant("eps", ("F.layer_norm(X, X.shape[-1:])", "F.layer_norm(X, X.shape[-1:], eps=1e-6)"), EPS),
    Mutant("eps", ("F.layer_norm(X, X.shape[-1:])",
        "(X - X.mean(-1, keepdim=True)) / (X.std(-1, keepdim=True, correction=0) + 1e-5)"), "eps is added to the "
        "standard deviation: layer norm adds it to the variance, under the root"),
    Mutant("branch-normed", ("X + alpha * f(X)", "X + alpha * norm(f(X))"), "there is a norm after the branch: the "
        "form with alphas has none"),
    Mutant("pre-norm-after", ("X = X + f(norm(X))", "X = X + norm(f(X))"), "what the branch gives is normed: in "
        "pre-norm it is what goes into the branch"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("compound", ("now = variance + blocks * branch", "now = variance * (1 + branch) ** blocks"),
        "this grows like interest: the norm before the branches keeps what they add at s^2"),
    Mutant("deviations", ("now = variance + blocks * branch", "now = (variance**0.5 + blocks * branch**0.5) ** 2"),
        "standard deviations are added up: of independent things the variances add"),
    Mutant("squared", ("now = variance + blocks * branch", "now = variance + blocks * branch**2"),
        "the argument `branch` is a variance already"),
    Mutant("no-first", ("now = variance + blocks * branch", "now = blocks * branch"), "x_0 is in the stream, too"),
    Mutant("one-less", ("variance + blocks * branch", "variance + (blocks - 1) * branch"), "a block is missing: this "
        "is the stream that comes into block l"),
    Mutant("change-after", ("branch / before", "branch / now"), "this is relative to what comes out of block l: it is "
        "what comes in that counts"),
    Mutant("change-variance", ("math.sqrt(branch / before)", "branch / before"), "this is a ratio of variances"),
    Mutant("change-first", ("math.sqrt(branch / before)", "math.sqrt(branch / variance)"), "this is the first block's "
        "change: the stream has grown by then"),
    Mutant("share-root", ('"first_pre": variance / now', '"first_pre": math.sqrt(variance / now)'),
        "this is the root of the share"),
    Mutant("post-as-pre", ("variance / (variance + branch) * (1 + branch) ** (1 - blocks)", "variance / now"),
        "this is the share with pre-norm: with post-norm each norm shrinks what was there before, again and again"),
    Mutant("post-first", ("variance / (variance + branch) * (1 + branch) ** (1 - blocks)", "(1 + branch) ** -blocks"),
        "the first sum is of variance + s^2, not 1 + s^2: nothing was normed before it"),
    Mutant("post-one-more", ("** (1 - blocks)", "** -blocks"), "there is a norm too many"),
    Mutant("change-squared", ("math.sqrt(branch / before)", "branch / math.sqrt(before)"), "s^2 needs a root, too"),
    Mutant("change-share", ("math.sqrt(branch / before)", "math.sqrt(blocks * branch / before)"), "this is what all "
        "blocks have added: block l alone is asked for"),
    Mutant("added-alone", ('"first_pre": variance / now', '"first_pre": variance / (blocks * branch)'), "x_0 is held "
        "against what was added: a share is of the whole variance"),
    Mutant("added-share", ('"first_pre": variance / now', '"first_pre": blocks * branch / now'), "x_0 has the rest"),
    Mutant("post-last", (" * (1 + branch) ** (1 - blocks)", ""), "this is the share after the first block: later "
        "norms shrink it again"),
    Mutant("post-root", ("** (1 - blocks)", "** ((1 - blocks) / 2)"), "1 + s^2 is a variance, and a share of a "
        "variance is divided by all of it, not by its root"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-08.2",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-08.2a",
            prompt="Write `run_stack(X, branches, form, alphas)`, which returns the output and the whole stream. The "
            "check asks for the gradients of both, too. The norm is that of `F.layer_norm` with its usual eps.",
            hints=[
                "One loop over the branches with three cases in it; collect the stream in a list that begins with X.",
                "`F.layer_norm(X, X.shape[-1:])` has no weights. In the post-norm form it takes the sum; in the "
                "pre-norm form what the branch reads, and the stream stays as it is.",
                "After the loop the pre-norm form alone needs one norm more, for the output and not in the stream.",
            ],
            answer=run_stack,
            verify=verify_stack,
            alternatives=[by_hand, as_modules],
            min_checks=15,
            advice={
                "grad": "`alphas` are learned, and the stream must carry gradients from its end to x_0: no detach, no "
                "item, no no_grad.",
                "mutates": "`X += ...` writes into the tensor that you were given: `X = X + ...`.",
                "values": "Compute x_1 by itself, from x_0; with alphas it has the first, sign and all. The norm of "
                "F.layer_norm divides by the root of variance (uncorrected) + 1e-5, and takes the sum (post) or what "
                "goes into the branch (pre). Where x_0 is wrong, `X += ...` has written into it.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
Look at the one path that no branch touches. In pre-norm and with alphas $x_0$ reaches $x_L$ as it is, and the gradient
runs back the same way. In post-norm it goes through L norms. At the start, with all alphas 0, the third stack is the
identity, however deep it is; yet $\partial x_L / \partial \alpha_l = f_l(x_{l-1})$ is not 0, so that the alphas learn
from the first step on, and the branches as soon as their alphas have moved.
""",
        ),
        Count(
            key="own-08.2b",
            prompt="Now the sizes. Let the branches give vectors of mean 0 and variance $s^2$, independent of the "
            "stream and of each other: roughly so at the start, where weights are random, with pre-norm and "
            "post-norm alike, since branches read something of variance 1. (With post-norm the first one reads "
            "$x_0$; let its output have variance $s^2$, too.) The eps of the norm is left out. Write "
            "`stream_after(blocks, variance, branch)`. The check runs stacks whose branches are exactly uncorrelated, "
            "and measures.",
            hints=[
                "Variances of independent things add up. How many have been added to x_0 after l blocks of pre-norm? "
                "And before block l?",
                "Post-norm: after each norm the variance is 1. The norm divides all that is in the stream by the same "
                "number, the part from x_0 as well as the new part.",
                "First block: the share of x_0 is v / (v + s^2). Each later block adds s^2 to 1, so that the share is "
                "divided by 1 + s^2.",
            ],
            answer=stream_after,
            verify=verify_after,
            alternatives=[block_by_block],
            min_checks=24,
            advice={
                "values": "Put in one block, then two: which parts does the stream have, and what is the variance of "
                "each? That of x_0 is `variance`, and a norm divides all parts alike.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
With pre-norm the stream grows like $\sqrt l$, and block l changes it by about $1/\sqrt l$ of its size: late blocks have
less and less to say, and the first input fades like $1/l$. With post-norm each block has the same say, $s$ against 1,
and what is older is forgotten exponentially. GPT-2 divides the last weights of each branch by the root of the number of
branches when it begins: then $s^2 \propto 1/L$, and the stream stays of one size however deep it is.
""",
        ),
        Choice(
            key="own-08.2c",
            prompt="Forget what flows back through the branches, and follow the gradient along the direct path alone, "
            "from the output of a stack to $x_1$, the output of block 1. (A norm's own gradient is, but for two "
            "directions, a division by the standard deviation of what it reads.) Let $s^2 = 3$, and let L grow. "
            "Three curves: P does not depend on L; Q falls like $1/\\sqrt L$ for large L; R is halved by each "
            "further block. Which belong to post-norm, pre-norm, and alphas that are all 0?",
            hints=[
                "How many norms stand on the direct path in each form, and what is the standard deviation of what each "
                "of them reads?",
                "Post-norm: each norm reads a sum of variance 1 + 3. Pre-norm: the only norm on the path is the last "
                "one, which reads x_L.",
            ],
            options=[
                Option(
                    "post-norm Q, pre-norm P, alphas R",
                    "With alphas at 0 there is nothing on the path that could shrink a gradient, and what could "
                    "halve it each time is a norm in each block.",
                ),
                Option(
                    "post-norm R, pre-norm P, alphas Q",
                    "Pre-norm is nearly free of L, but its last norm reads a stream of variance $v + 3L$ and divides "
                    "by the root of that. With alphas at 0 the stack is the identity.",
                ),
                Option(
                    "post-norm R, pre-norm Q, alphas P",
                    "Each norm of post-norm divides by $\\sqrt{1 + 3} = 2$. In pre-norm the last norm divides by "
                    "$\\sqrt{v + 3L}$, once. With alphas at 0 nothing divides. In a real stack branches carry "
                    "gradients, too, so that post-norm's need not fall: the chapter measures it.",
                    right=True,
                ),
                Option(
                    "post-norm P, pre-norm Q, alphas R",
                    "A norm holds the size of the stream on the way forward; on the way back it divides by what it "
                    "divided by. Post-norm does so L - 1 times.",
                ),
            ],
        ),
    ],
)
