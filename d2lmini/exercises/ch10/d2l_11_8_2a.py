"""Part a of d2l-11.8.2, "The mean of the patches in place of the class token": `average_forward`."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_pre_hook

from d2lmini.exercises.engine import Code, Mutant
from d2lmini.models.vit import ViT


def average_forward(model, images):
    """Scores from the mean of the patches, without the class token.

    Args:
        model: a `d2l.ViT` with a class token and learned positions; not changed.
        images: (B, c, height, width).

    Returns:
        (B, C).
    """
    ### BEGIN SOLUTION
    X = model.patch_embedding(images)  # (B, N, h)
    X = model.dropout(X + model.pos_embedding[:, 1:])  # every patch keeps its own position
    for blk in model.blks:
        X = blk(X)
    return model.head(X.mean(dim=1))
    ### END SOLUTION


def in_one_go(model, images):
    X = model.dropout(model.patch_embedding(images) + model.pos_embedding[0, 1:])
    X = model.blks(X)
    return model.head(torch.einsum("bnh->bh", X) / X.shape[1])


def with_the_package(model, images):
    """The same weights in a model that has no class token."""
    settings = {**model.hparams, "pooling": "mean"}
    other = ViT(**settings).to(images.device).train(model.training)
    state = {name: value for name, value in model.state_dict().items() if name != "cls_token"}
    other.load_state_dict({**state, "pos_embedding": state["pos_embedding"][:, 1:]})
    parameters = dict(model.named_parameters())
    live = {name: parameters[name] for name, _ in other.named_parameters()}
    return torch.func.functional_call(other, {**live, "pos_embedding": model.pos_embedding[:, 1:]}, (images,))


def always_dropping(model, images):
    X = F.dropout(model.patch_embedding(images) + model.pos_embedding[:, 1:], model.dropout.p)
    return model.head(model.blks(X).mean(1))


def with_a_faint_token(model, images):
    """Wrong: a class token of zeros is a token, too."""
    X = model.patch_embedding(images) + model.pos_embedding[:, 1:]
    X = model.dropout(F.pad(X, (0, 0, 1, 0)))
    return model.head(model.blks(X)[:, 1:].mean(1))


def _slopes(answer, model, images):
    """Gradients of the scores' sum in the class token and in the positions; None where none arrives."""
    scores = answer(model, images)
    if not scores.requires_grad:
        return None, None
    return torch.autograd.grad(scores.sum(), [model.cls_token, model.pos_embedding], allow_unused=True)


def _norms(answer, model, images):
    """What the first norm reads, which is what the first block reads, and what the last one reads, that of the head."""
    read = []

    def hear(module, args):
        if isinstance(module, nn.LayerNorm):
            read.append(args[0].detach().clone())

    handle = register_module_forward_pre_hook(hear)
    try:
        answer(model, images)
    finally:
        handle.remove()
    return read[:1], read[-1:]


def _dropout_is_right(t, got, kept, positions):
    """What the first block has read must be numbers of ``kept`` over 1 - p, and zeros.

    Args:
        got: (B, N, h). kept: the same without dropout. positions: (1, N, h).
    """
    got, zero = got.cpu().double(), got.cpu() == 0

    def scaled(factor, x=kept):
        return bool((zero | torch.isclose(got, factor * x, 1e-3, 1e-4)).all())

    rate, share = 1 / (1 - DROPPED), zero.double().mean().item()
    some = got.abs().sum() / kept.masked_fill(zero, 0).abs().sum()  # the factor, if there is one
    t.that(
        share > 0 or not scaled(1.0),
        "no-dropout",
        "in training mode nothing is dropped from what the first block reads: use `model.dropout` there, and leave the "
        "model in the mode in which it is",
    )
    t.that(
        not scaled(rate**2), "dropped-twice", "dropout acts twice on what the first block reads (`tokens` has its own)"
    )
    t.that(
        not scaled(1.0),
        "not-scaled",
        "in training mode what is not dropped must be divided by 1 - p, as `model.dropout` does",
    )
    early = torch.isclose(got, positions.expand_as(got), 1e-3, 1e-4)
    early |= torch.isclose(got, rate * (kept - positions) + positions, 1e-3, 1e-4)
    t.that(
        not early.all().item(),
        "patches-dropped",
        "the dropout acts on the patches alone: positions are added before it",
    )
    right = scaled(rate)
    t.that(right or not scaled(float(some)), "rate", "this is not the dropout of the model: use `model.dropout`")
    t.that(right, "elsewhere", "dropout must act once, on the sum of patches and positions")
    t.that(abs(share - DROPPED) < 0.12, "rate", "this is not the dropout of the model: use `model.dropout`")
    whole = any(bool((zero.all(axis) | ~zero.any(axis)).all()) for axis in range(3))
    t.that(not whole, "whole", "dropout drops single numbers, not whole patches or the same numbers everywhere")


DROPPED = 0.3


def verify_forward(t, answer):
    for grid, p, c in (((2, 3), 4, 2), ((3, 2), 3, 1), ((2, 6), 2, 3)):
        B, C = t.sizes(2, 3, 8)
        B = 1 if c == 3 else B
        sizes = (grid[0] * p, grid[1] * p), p, 12, 20, 3, 2
        model = ViT(*sizes, 0.2, 0.2, num_classes=C, num_channels=c)
        for parameter in model.parameters():
            parameter.data = t.randn(*parameter.shape, scale=0.4).cpu()
        model = model.to(t.device).eval()
        images = t.randn(B, c, grid[0] * p, grid[1] * p)

        exact = copy.deepcopy(model).cpu().double()
        read = exact.patch_embedding(images.cpu().double()) + exact.pos_embedding[:, 1:]
        mean = exact.blks(read).mean(1)
        want = exact.head(mean)
        (slope,) = torch.autograd.grad(want.sum(), exact.pos_embedding)
        with torch.no_grad():
            dropped = exact.head(exact.blks(torch.zeros(B, grid[0] * grid[1], 12).double()).mean(1))

        got = t.call(answer, model, images)
        again = t.call(answer, model, images)
        scores = all(isinstance(x, torch.Tensor) and x.dtype == images.dtype for x in (got, again))
        steady = not scores or got.shape != again.shape or torch.allclose(got, again, equal_nan=True)
        t.that(steady, "random", "a second call gives other scores, in evaluation mode: dropout must not act then")
        t.same(got, want.detach(), "the output")
        of_token, of_positions = t.unpack(t.call(_slopes, answer, model, images), "class token", "positions")
        unused = of_token is None or not bool(of_token.any())
        t.that(unused, "still-there", "a gradient reaches the class token: it is still used")
        t.that(of_positions is not None, "grad", "no gradient reaches the positions: is something detached?")
        t.same(of_positions, slope, "the gradient in the positions", tolerance=(1e-3, 1e-4))

        _, last = t.call(_norms, answer, model, images)
        if last and last[0].shape == mean.shape:  # else the answer normalises by itself
            t.same(last[0], mean.detach(), "what the head reads")

        many = t.randn(16, *images.shape[1:])
        read = exact.patch_embedding(many.cpu().double()) + exact.pos_embedding[:, 1:]
        dropping = ViT(*sizes, DROPPED, 0.0, num_classes=C, num_channels=c).to(t.device)
        dropping.load_state_dict(model.state_dict())
        first, _ = t.call(_norms, answer, dropping, many)
        if first and first[0].shape == read.shape:
            _dropout_is_right(t, first[0], read.detach(), exact.pos_embedding[:, 1:].detach())

        # where everything is dropped from the embeddings, all images look alike: no random number matters
        forgetful = ViT(*sizes, 1.0, 0.0, num_classes=C, num_channels=c).to(t.device)
        forgetful.load_state_dict(model.state_dict())
        t.same(t.call(answer, forgetful, images), dropped, "the output in training mode with a dropout of 1")


MUTANTS = [
    Mutant("positions-shifted", ("pos_embedding[:, 1:]", "pos_embedding[:, :-1]"), "every patch has the position of "
        "its neighbour: the first position is the class token's"),
    Mutant("no-positions", ("X + model.pos_embedding[:, 1:]", "X"), "the positions are missing"),
    Mutant("one-position", ("pos_embedding[:, 1:]", "pos_embedding[:, 1:].mean(1, keepdim=True)"),
        "all patches have the same position: each has its own"),
    Mutant("last-block", ("in model.blks:", "in model.blks[:-1]:"), "the last block is left out"),
    Mutant("sum", ("X.mean(dim=1)", "X.sum(dim=1)"), "this is the sum of the patches, not the mean (the norm of the "
        "head hides it from the scores)"),
    Mutant("divided-by-all", ("X.mean(dim=1)", "X.sum(dim=1) / model.pos_embedding.shape[1]"), "the sum is divided by "
        "1 + N, and the patches are N"),
    Mutant("first-patch", ("X.mean(dim=1)", "X[:, 0]"), "this is the first patch alone"),
    Mutant("maximum", ("X.mean(dim=1)", "X.amax(dim=1)"), "this is the largest value of each feature, not the mean"),
    Mutant("mean-of-scores", ("model.head(X.mean(dim=1))", "model.head(X).mean(dim=1)"), "take the mean of the tokens, "
        "then the head, which normalises"),
    Mutant("no-norm", ("model.head(X", "model.head[1](X"), "`head` has two parts: the norm, and the linear layer"),
    Mutant("mean-first", ("    for blk in model.blks:",
        "    X = X.mean(dim=1, keepdim=True)\n    for blk in model.blks:"), "the mean is taken before the blocks: no "
        "patch ever meets another"),
    Mutant("no-blocks", ("        X = blk(X)\n", "        blk(X)\n"), "the blocks change nothing: each must read what "
        "the one before has returned"),
    Mutant("class-token", lambda model, images: model(images), "these are the scores of the class token"),
    Mutant("still-there", lambda model, images: model.head(model.encode(images)[:, 1:].mean(1)),
        "the class token is left out of the mean, but the patches have still looked at it"),
    Mutant("averaged-too", lambda model, images: model.head(model.encode(images).mean(1)), "the class token is still "
        "there, and is averaged, too"),
    Mutant("zero-token", with_a_faint_token, "a token of zeros is still looked at by the patches: let it go "
        "altogether"),
    Mutant("shape", ("X.mean(dim=1)", "X")),  # scores of every patch
    Mutant("grad", ("model.pos_embedding[:, 1:]", "model.pos_embedding[:, 1:].detach()")),  # detached
    Mutant("no-dropout", ("model.dropout(X + model.pos_embedding[:, 1:])", "X + model.pos_embedding[:, 1:]")),
    Mutant("patches-dropped", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "model.dropout(X) + model.pos_embedding[:, 1:]")),  # dropout too early
    # dropout at the end
    Mutant("no-dropout", ("model.dropout(X + model.pos_embedding[:, 1:])", "X + model.pos_embedding[:, 1:]")),
    Mutant("dropped-twice", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "model.dropout(model.dropout(X + model.pos_embedding[:, 1:]))")),  # dropout twice
    Mutant("elsewhere", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "model.dropout(X) + model.dropout(model.pos_embedding[:, 1:])")),  # dropout apart
    Mutant("elsewhere", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "model.dropout(model.patch_embedding(model.dropout(images)) + model.pos_embedding[:, 1:])")),  # pixels dropped
    Mutant("rate", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "F.dropout(X + model.pos_embedding[:, 1:], 0.5, model.training)")),  # a fixed rate
    Mutant("not-scaled", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "(X + model.pos_embedding[:, 1:]) * (F.dropout(X, model.dropout.p, model.training) != 0)")),  # no division
    Mutant("whole", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "(X + model.pos_embedding[:, 1:]) * model.dropout(torch.ones_like(X[..., :1]))")),  # whole patches
    Mutant("whole", ("model.dropout(X + model.pos_embedding[:, 1:])",
        "(X + model.pos_embedding[:, 1:]) * model.dropout(torch.ones_like(X[:1]))")),  # all images alike
    Mutant("shape", ("model.head(X.mean(dim=1))", "model.head(X.mean(dim=1)).squeeze()")),  # a batch of one
    Mutant("random", always_dropping),
]  # fmt: skip


PART = Code(
    key="d2l-11.8.2a",
    prompt="""
Write `average_forward(model, images)`: the scores that the model gives when there is **no class token at all**, and the
mean of the patches, after the last block, goes into the head. The check looks at the scores, at what the first block
and the head read, and at the gradients: none may reach the class token or its position. In training mode
`model.dropout` acts once, on what the first block reads, as it does in the model.
""",
    hints=[
        "Go through `d2l.show_source(d2l.ViT.tokens, d2l.ViT.forward)` and leave out what belongs to the class token.",
        "There are 1 + N positions, and N patches. Which position is too many?",
        "`X = model.dropout(model.patch_embedding(images) + model.pos_embedding[:, 1:])`, then the "
        "blocks, then `model.head(X.mean(dim=1))`.",
    ],
    answer=average_forward,
    verify=verify_forward,
    alternatives=[in_one_go, with_the_package],
    min_checks=12,
    advice={
        "values": "Which tokens does the first block read, and which go into the mean? Both times all N patches and no "
        "other. Dropout acts once, on what the first block reads.",
    },
    mutants=MUTANTS,
    explanation="""
It is not enough to leave the class token out of the *mean*: as long as it is in the sequence, every patch looks at it
in every block. Without it the model has 2h parameters fewer, the token's and its position's; that model is
`d2l.ViT(..., pooling="mean")`. (A sum in place of the mean would give the same scores: the norm of the head divides the
number of patches out again.)
""",
)
