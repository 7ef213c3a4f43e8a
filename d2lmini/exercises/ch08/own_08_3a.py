"""Part a of own-08.3, "Clipping, and gradients in half precision": `clip_gradients`."""

import math
from functools import partial

import torch

from d2lmini.exercises.engine import Code, Mutant
from d2lmini.exercises.engine.provenance import Calls


def clip_gradients(gradients, max_norm):
    """Gradients of which the global norm is at most ``max_norm``, nearly; nothing is changed in place.

    Args:
        gradients: list of tensors of any shapes, float32 or float16, all of one dtype.
        max_norm: a number above 0.

    Returns:
        (clipped, norm): the norm before clipping, a float32 tensor without dimensions; and a list of new tensors,
        shapes and dtype as before, multiplied by max_norm / (norm + 1e-6), or by 1 where that is more than 1. Where the
        norm is infinite or NaN, ``clipped`` is None: the step is to be left out.
    """
    ### BEGIN SOLUTION
    squares = [(g.float() ** 2).sum() for g in gradients]
    norm = torch.stack(squares).sum().sqrt()
    if not torch.isfinite(norm):
        return None, norm
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [(factor * g.float()).to(g.dtype) for g in gradients], norm
    ### END SOLUTION


def all_in_one(gradients, max_norm):
    """All numbers in one long vector."""
    flat = torch.cat([g.flatten() for g in gradients]).to(torch.float32)
    norm = flat.norm()
    if math.isnan(norm) or math.isinf(norm):
        return None, norm
    clipped = (flat * min(1.0, max_norm / (norm.item() + 1e-6))).to(gradients[0].dtype)
    pieces = clipped.split([g.numel() for g in gradients])
    return [piece.view(g.shape) for piece, g in zip(pieces, gradients, strict=True)], norm


def norm_of_norms(gradients, max_norm):
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in gradients]))
    if norm.isnan() or norm.isinf():
        return None, norm
    scale = max_norm / (norm + 1e-6)
    return [(g.float() * scale).to(g) if scale < 1 else g.clone() for g in gradients], norm


# mistakes


def by_torch(gradients, max_norm):
    parameters = [torch.nn.Parameter(g.clone()) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g.clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return ([p.grad for p in parameters] if norm.isfinite() else None), norm.float()


def each_alone(gradients, max_norm):
    pairs = [clip_gradients([g], max_norm)[0] for g in gradients]
    _, norm = clip_gradients(gradients, max_norm)
    return (None if not norm.isfinite() else [pair[0] for pair in pairs]), norm


def by_value(gradients, max_norm):
    _, norm = clip_gradients(gradients, max_norm)
    return [g.clamp(-max_norm, max_norm) for g in gradients] if norm.isfinite() else None, norm


def norm_afterwards(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return clipped, norm if clipped is None else clip_gradients(clipped, max_norm)[1]


def in_place(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    if clipped is not None:
        for g, new in zip(gradients, clipped, strict=True):
            g.copy_(new)
    return clipped and gradients, norm


def clipped_all_the_same(gradients, max_norm):
    _, norm = clip_gradients(gradients, max_norm)
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [(factor * g.float()).to(g) for g in gradients], norm


def with_another_norm(gradients, max_norm, p):
    norm = torch.cat([g.float().flatten() for g in gradients]).norm(p)
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    return [(factor * g).to(g) for g in gradients] if norm.isfinite() else None, norm


def as_one_vector(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return torch.cat([g.flatten() for g in clipped]), norm


def zeros_instead(gradients, max_norm):
    clipped, norm = clip_gradients(gradients, max_norm)
    return [torch.zeros_like(g) for g in gradients] if clipped is None else clipped, norm


def _clipped(gradients, max_norm):
    """What torch's own function makes of these gradients, in float64 on the CPU."""
    parameters = [torch.nn.Parameter(g.cpu().double()) for g in gradients]
    for p in parameters:
        p.grad = p.detach().clone()
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    return [p.grad for p in parameters], norm


class _Shared:
    """How many tensors an answer returns, where it lives, that share their memory with one that it was given."""

    def __call__(self, answer, gradients, max_norm):
        memory = {g.untyped_storage().data_ptr() for g in gradients}
        return sum(x.untyped_storage().data_ptr() in memory for x in answer(gradients, max_norm)[0])


def verify_clip(t, answer):
    B, D, E = t.sizes(3, 2, 7)
    shapes = (B, D), (E,), (D, B, E), ()
    for name, size, share, dtype in (  # share: max_norm as a part of the norm
        ("of large gradients", 5.0, 0.15, torch.float32),
        ("of gradients that are a little too large", 1.0, 0.8, torch.float32),
        ("of gradients that are small enough", 0.5, 3.0, torch.float32),
        ("of tiny gradients", 2e-7, 0.4, torch.float32),
        ("of gradients of 0", 0.0, 1.0, torch.float32),
        ("of gradients in float16", 2500.0, 2e-8, torch.float16),  # the factor is 0 in float16
    ):
        gradients = [(size * (4 - i) * t.randn(*shape, 1)[..., 0]).to(dtype) for i, shape in enumerate(shapes)]
        total = math.sqrt(sum(g.double().square().sum().item() for g in gradients))
        max_norm = t.random.uniform(0.9, 1.1) * share * (total or 1.0)
        want, norm = _clipped(gradients, max_norm)
        with t.watching(partial(Calls, "torch.nn.utils.clip_grad"), "names") as seen:
            clipped, got_norm = t.unpack(t.call(answer, gradients, max_norm), "clipped", "norm")
        t.that(not seen.names, "borrowed", "this calls torch's own function: write the norm and the factor yourself")
        t.that(
            not isinstance(got_norm, torch.Tensor) or got_norm.dtype == torch.float32,
            "dtype",
            f"the norm {name} is of {getattr(got_norm, 'dtype', None)}, expected torch.float32 whatever the gradients "
            "are",
        )
        t.same(got_norm, norm, f"the norm {name}", dtype=torch.float32, tolerance=(1e-4, 1e-12))
        t.that(
            isinstance(clipped, (list, tuple)) and len(clipped) == len(gradients),
            "type",
            f"what is clipped {name} is no list of {len(gradients)} tensors",
        )
        for number, (got, exact) in enumerate(zip(clipped, want, strict=True)):
            tolerance = (2e-3, 1e-7) if dtype == torch.float16 else (1e-4, 1e-12)
            t.same(got, exact, f"clipped[{number}] {name}", dtype=dtype, tolerance=tolerance)
        shared = t.call(_Shared(), answer, gradients, max_norm)
        t.that(shared == 0, "not-new", f"what is clipped {name} is partly the tensors that you were given: {NEW}")
    for name, bad in (
        ("a gradient is infinite", math.inf),
        ("a gradient is NaN", math.nan),
        ("the squares of the gradients, which are finite, have an infinite sum", 3e38),
    ):
        gradients = [t.randn(*shape, 1)[..., 0] for shape in shapes]
        gradients[2].view(-1)[:: t.random.randrange(3, 6)] = bad
        clipped, got_norm = t.unpack(t.call(answer, gradients, 1.0), "clipped", "norm")
        shown = isinstance(got_norm, torch.Tensor) and got_norm.shape == () and not got_norm.isfinite().item()
        t.that(shown, "hidden", f"{name}, and the norm does not show it: then nothing warns of it")
        message = (
            f"{name}, and something is returned as clipped: after a step with it the weights would be lost, and a "
            "step with zeros would still move what has momentum. Ask the norm, and return None for the gradients"
        )
        t.that(clipped is None, "step-made", message)


NEW = "whoever changes one later changes both. Return new tensors, also where the factor is 1 (`g.clone()`)"

MUTANTS = [
    Mutant("each-alone", each_alone, "every tensor is clipped by a norm of its own: one factor for all keeps the "
        "direction of the step"),
    Mutant("by-value", by_value, "each number is cut off at max_norm: that is clipping by value, and it turns the "
        "direction of the step"),
    Mutant("scaled-up", (".clamp(max=1.0)", ""), "small gradients are made larger, up to max_norm: the factor is at "
        "most 1"),
    Mutant("sum-of-norms", ("squares).sum().sqrt()", "squares).sqrt().sum()"), "the norms of the tensors are added up: "
        "add their squares, and take the root of the sum"),
    Mutant("largest-norm", ("squares).sum().sqrt()", "squares).max().sqrt()"), "this is the norm of the largest tensor "
        "alone"),
    Mutant("no-root", ("squares).sum().sqrt()", "squares).sum()"), "this is the square of the norm: take the root"),
    Mutant("rms", ("(g.float() ** 2).sum()", "(g.float() ** 2).sum() / sum(g.numel() for g in gradients)"),
        "the squares are averaged over all numbers: the norm is the root of their sum"),
    Mutant("mean-squares", ("(g.float() ** 2).sum()", "(g.float() ** 2).mean()"), "the squares are averaged in each "
        "tensor: the norm is the root of their sum"),
    Mutant("one-norm", partial(with_another_norm, p=1), "these are absolute values added up: the norm is the root of "
        "the sum of squares"),
    Mutant("max-norm", partial(with_another_norm, p=math.inf), "this is the largest absolute value: the norm is the "
        "root of the sum of squares"),
    Mutant("norm-after", norm_afterwards, "this is the norm after clipping: the one before tells how far off the batch "
        "was"),
    Mutant("no-1e-6", ("(max_norm / (norm + 1e-6))", "(max_norm / norm)"), "the 1e-6 in the denominator is missing: it "
        "shows where the norm is that small itself"),
    Mutant("upside-down", ("(max_norm / (norm + 1e-6)).clamp(max=1.0)", "((norm + 1e-6) / max_norm)"),
        "the factor is upside down: large norms must make it small"),
    Mutant("unit", ("(max_norm / (norm + 1e-6))", "(1 / (norm + 1e-6))"), "gradients are brought to a norm of 1, not "
        "of max_norm"),
    Mutant("unclipped", ("factor * g.float()", "g.float()"), "these are the gradients as they came, although their "
        "norm is above max_norm"),
    Mutant("nonfinite", ("(g.float() ** 2).sum()", "(g**2).sum().float()")),  # squares in float16
    Mutant("only-large", ("(max_norm / (norm + 1e-6)).clamp(max=1.0)",
        "torch.where(norm > 2 * max_norm, max_norm / (norm + 1e-6), 1.0)"), "gradients whose norm is a little above "
        "max_norm are left as they came: no norm may be above it"),
    Mutant("type", ("for g in gradients], norm\n", "for g in gradients], norm.item()\n")),  # norm as a number
    # norm in float16
    Mutant("dtype", ("for g in gradients], norm\n", "for g in gradients], norm.to(gradients[0].dtype)\n")),
    Mutant("type", ("for g in gradients], norm\n", "for g in gradients][0]\n")),  # gradients alone
    Mutant("type", as_one_vector),
    Mutant("mutates", in_place),
    Mutant("not-new", ("    factor =", "    if norm <= max_norm:\n        return list(gradients), norm\n    factor =")),
    Mutant("not-new", ("(factor * g.float()).to(g.dtype)", "(g.float() if factor == 1 else factor * "
        "g.float()).to(g.dtype)")),
    Mutant("raised", ("(g.float() ** 2).sum()", "torch.cat([row.flatten() for row in "
        "g.float()]).square().sum()")),  # rows
    Mutant("squared-factor", ("factor * g.float()", "factor**2 * g.float()"), "the factor is applied twice"),
    Mutant("by-largest", ("(max_norm / (norm + 1e-6))",
        "(max_norm / (max(g.float().abs().max() for g in gradients) + 1e-6))"), "the factor is made of the largest "
        "absolute value: it is made of the norm"),
    Mutant("to-the-norm", ("(max_norm / (norm + 1e-6)).clamp(max=1.0)", "(norm + 1e-6).clamp(max=max_norm)"), "they "
        "are multiplied by the norm that they should have: multiply by max_norm over the norm that they have"),
    Mutant("half-factor", ("(factor * g.float()).to(g.dtype)", "factor.to(g.dtype) * g"), "the factor is rounded to "
        "the gradients' dtype, where it may become 0: multiply in float32"),
    Mutant("step-made", clipped_all_the_same),
    Mutant("step-made", zeros_instead),
    # NaN hidden
    Mutant("hidden", ("[(g.float() ** 2).sum() for g", "[(g.float() ** 2).nan_to_num(posinf=torch.inf).sum() for g")),
    Mutant("borrowed", by_torch),
]  # fmt: skip


PART = Code(
    key="own-08.3a",
    prompt="Write `clip_gradients(gradients, max_norm)`: what `torch.nn.utils.clip_grad_norm_` does, without "
    "changing what it is given, and with the norm in float32 whatever the gradients are. If the norm is not finite, "
    "the function returns None instead of gradients.",
    hints=[
        "The norm of all tensors together: add up all squares first, take one root at the end.",
        "In float16 the square of 300 is infinite already: `g.float()` first.",
        "The factor is at most 1, for gradients that are small enough stay as they are. Compute new tensors, "
        "`factor * g`, not `g *= factor`, and bring each back to its dtype.",
        "One infinite or NaN number makes the norm so, too: ask the norm, and return None for the gradients.",
    ],
    answer=clip_gradients,
    verify=verify_clip,
    alternatives=[all_in_one, norm_of_norms],
    without={"double": "the gradients are float32 or float16, and the norm float32"},
    min_checks=40,
    advice={
        "nonfinite": "Squares of float16 numbers overflow from 256 on: compute the norm in float32. And where all "
        "gradients are 0, so is the norm: nothing may be divided by that alone.",
        "mutates": "The gradients are arguments: make new tensors.",
        "raised": "If it is your own: where the norm is not finite, too, nothing is raised: return None and the norm.",
        "values": "Compute norm and factor by hand for two tensors of one number each. All is computed in float32, the "
        "factor, too; only what is returned goes back to the gradients' dtype.",
    },
    mutants=MUTANTS,
    explanation=r"""
One factor for all keeps the direction of the step; clipping each tensor or each number would turn it. The norm is worth
plotting: it tells which batches are unusual. With Adam, a factor that is always the same would change nothing but for
$\epsilon$; clipping matters as it holds back single batches, which would otherwise stay in the running mean of squares
for about $1/(1-\beta_2)$ steps.
""",
)
