"""Part a of d2l-11.8.1, "Larger images: what do they cost?": `vit_cost`."""

import math
from functools import cache

import torch
from torch.nn import attention as kernels  # as a module it travels, its enumeration does not
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.exercises.engine import Count, Mutant
from d2lmini.models.vit import ViT


def vit_cost(img_size, patch_size, num_channels, num_hiddens, mlp_num_hiddens, num_blks, num_classes):
    """Count what one image costs a vision Transformer.

    Args:
        img_size, patch_size: sides in pixels; the second divides the first.
        num_channels: c.
        num_hiddens: h.
        mlp_num_hiddens: m.
        num_blks: number of blocks.
        num_classes: C.

    Returns:
        dict with ``tokens``, ``position_parameters``, ``flops`` and ``attention_flops``.
    """
    ### BEGIN SOLUTION
    h, m = num_hiddens, mlp_num_hiddens
    patches = (img_size // patch_size) ** 2
    tokens = patches + 1  # the class token
    embedding = 2 * patches * patch_size**2 * num_channels * h
    projections = 2 * 4 * tokens * h**2  # queries, keys, values and the output
    network = 2 * 2 * tokens * h * m
    attention = num_blks * 2 * 2 * tokens**2 * h  # scores, and the mixture of the values
    return {
        "tokens": tokens,
        "position_parameters": tokens * h,
        "flops": embedding + num_blks * (projections + network) + attention + 2 * h * num_classes,
        "attention_flops": attention,
    }
    ### END SOLUTION


def by_shapes(img_size, patch_size, num_channels, num_hiddens, mlp_num_hiddens, num_blks, num_classes):
    """A list of all products (rows, inner, columns)."""
    N, h, m = (img_size * img_size) // (patch_size * patch_size), num_hiddens, mlp_num_hiddens
    T = N + 1
    meetings = [(T, h, T), (T, T, h)] * num_blks
    layers = [(N, num_channels * patch_size**2, h), (1, h, num_classes)]
    layers += [(T, h, h)] * (4 * num_blks) + [(T, h, m), (T, m, h)] * num_blks
    count = [sum(2 * math.prod(shape) for shape in shapes) for shapes in (meetings, layers)]
    return {"tokens": T, "position_parameters": T * h, "flops": sum(count), "attention_flops": count[0]}


# img_size, patch_size, c, h, m, blocks, C; and heads, on which nothing depends
CONFIGURATIONS = [
    (24, 4, 3, 16, 40, 3, 7, 4),
    (12, 3, 1, 24, 20, 4, 5, 2),
    (40, 10, 2, 8, 36, 2, 9, 1),
    (30, 5, 4, 20, 12, 1, 6, 5),
]


def multiply_adds(*sizes):
    got = vit_cost(*sizes)
    return {**got, "flops": got["flops"] / 2, "attention_flops": got["attention_flops"] / 2}


def forward_and_backward(*sizes):
    got = vit_cost(*sizes)
    return {**got, "flops": 3 * got["flops"], "attention_flops": 3 * got["attention_flops"]}


def two_pictures(*sizes):
    got = vit_cost(*sizes)
    return {**got, "flops": 2 * got["flops"], "attention_flops": 2 * got["attention_flops"]}


def counted(step):
    """Operations of all matrix products in a call, and how many of them are of batches of matrices, as in attention."""
    # it knows no fused attention
    with kernels.sdpa_kernel(kernels.SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        step()
    each = {str(product): number for product, number in counter.get_flop_counts()["Global"].items()}
    return counter.get_total_flops(), each.get("aten.bmm", 0)


@cache
def _measured(img_size, p, c, h, m, L, C, H):
    """What a real model has: tokens, numbers in its positions, operations, and those of attention."""
    model = ViT(img_size, p, h, m, H, L, 0.0, 0.0, num_classes=C, num_channels=c).eval()
    picture = torch.zeros(1, c, img_size, img_size)
    with torch.no_grad():
        return model.tokens(picture).shape[1], model.pos_embedding.numel(), *counted(lambda: model(picture))


def verify_count(t, answer):
    # all operations come before those of attention: one half of the latter may be a product or an addition forgotten
    names = "tokens", "position_parameters", "flops", "attention_flops"
    for img_size, p, c, h, m, L, C, H in CONFIGURATIONS:
        wanted = _measured(img_size, p, c, h, m, L, C, H)
        case = f"for img_size={img_size}, patch_size={p}, c={c}, h={h}, m={m}, {L} blocks, C={C}"
        got = t.fields(t.call(answer, img_size, p, c, h, m, L, C), *names)
        for name, number, want in zip(names, got, wanted, strict=True):
            t.number(number, want, f"{name} {case}")


MUTANTS = [
    Mutant("no-class-token", ("tokens = patches + 1", "tokens = patches"), "the class token is a token, too"),
    Mutant("side", ("(img_size // patch_size) ** 2", "img_size // patch_size"), "patches go along both sides"),
    Mutant("pixels", ("(img_size // patch_size) ** 2", "img_size ** 2"), "a token is a patch, not a pixel"),
    Mutant("no-class-position", ('"position_parameters": tokens * h', '"position_parameters": patches * h'),
        "the class token has a position, too"),
    Mutant("one-number", ('"position_parameters": tokens * h', '"position_parameters": tokens'),
        "a position is a vector of h numbers"),
    Mutant("multiply-add", multiply_adds, "this is half: a multiplication and an addition are two operations"),
    Mutant("backward-too", forward_and_backward, "this is a forward and a backward pass; asked for is the forward "
        "pass"),
    Mutant("one-block", ("attention = num_blks * 2 * 2", "attention = 2 * 2"), "scores and mixtures are counted for "
        "one block only"),
    Mutant("one-product", ("num_blks * 2 * 2 * tokens**2", "num_blks * 2 * tokens**2"), "attention has two products "
        "without parameters: the scores, and the weights times the values"),
    Mutant("patches-only", ("tokens**2 * h", "patches**2 * h"), "the class token looks, and is looked at, too"),
    Mutant("no-embedding", ('"flops": embedding + ', '"flops": '), "the patches have to be embedded first"),
    Mutant("class-embedded", ("2 * patches * patch_size**2", "2 * tokens * patch_size**2"), "the class token is a "
        "parameter: nothing embeds it"),
    Mutant("no-channels", (" * num_channels", ""), "a patch has `patch_size` times `patch_size` pixels in each of c "
        "channels"),
    Mutant("no-head", (" + 2 * h * num_classes", ""), "the last layer, to the classes, is missing"),
    Mutant("head-on-all", ("2 * h * num_classes", "2 * tokens * h * num_classes"), "the last layer reads the class "
        "token alone"),
    Mutant("no-output-projection", ("2 * 4 * tokens", "2 * 3 * tokens"), "attention has four projections: the "
        "output's, too"),
    Mutant("half-network", ("2 * 2 * tokens * h * m", "2 * tokens * h * m"), "the network of a block has two layers"),
    Mutant("one-projections", ("num_blks * (projections + network)", "projections + network"),
        "every block has projections and a network of its own"),
    Mutant("no-attention", (" + attention + ", " + "), "scores and mixtures of values are missing"),
    Mutant("of-one-block", ('"attention_flops": attention', '"attention_flops": attention // num_blks'),
        "this is one block; asked for are all"),
    Mutant("with-projections", ('"attention_flops": attention',
        '"attention_flops": attention + num_blks * projections'), "the projections are not asked for here: scores and "
        "mixtures alone"),
    Mutant("half-attention", ('"attention_flops": attention', '"attention_flops": attention / 2'),
        "this is half: there are two products, and a multiplication and an addition are two operations"),
    Mutant("two-pictures", two_pictures, "this is twice as much: asked for is one image"),
    Mutant("classes", ("2 * h * num_classes", "2 * h * 10"), "the last layer goes to C classes, which need not be ten"),
    Mutant("channels", (" * num_channels", " * 3"), "an image has c channels, which need not be three"),
    Mutant("hidden", ("h, m = num_hiddens, mlp_num_hiddens", "h, m = num_hiddens, 4 * num_hiddens"),
        "the hidden layer has m features, which need not be 4 h"),
    Mutant("features-squared", ("2 * 2 * tokens**2 * h", "2 * 2 * tokens * h**2"), "scores are products of (T, h) "
        "and (h, T): 2 T T h operations, not 2 T h h"),
    Mutant("both-embedded", ("2 * patches * patch_size**2", "2 * patches * patch_size"), "a patch has `patch_size` "
        "times `patch_size` pixels"),
    Mutant("network-square", ("2 * 2 * tokens * h * m", "2 * 2 * tokens * h * h"), "the network goes from h to m "
        "features and back"),
]  # fmt: skip


PART = Count(
    key="d2l-11.8.1a",
    prompt="""
Write `vit_cost(img_size, patch_size, num_channels, num_hiddens, mlp_num_hiddens, num_blks, num_classes)` that returns a
dict of four numbers for **one** image:

- `tokens`: the length of the sequence that the blocks read;
- `position_parameters`: numbers in the learned positions;
- `flops`: operations of all matrix products of a forward pass, a multiplication and an addition being two: patch
  embedding, projections, scores, mixtures of values, networks, and the last layer;
- `attention_flops`: those among them that are scores and mixtures of values, in all blocks.
""",
    hints=[
        "A product of (a, b) and (b, c) has a c entries, each a sum of b products: 2 a b c operations.",
        "Write N for the patches and T = N + 1 for the tokens. The embedding sees N of them, the blocks T, the "
        "last layer one.",
        "A block: 4 projections (T, h) (h, h); scores (T, h) (h, T) and mixture (T, T) (T, h), over all heads "
        "together; a network (T, h) (h, m) and (T, m) (m, h).",
    ],
    answer=vit_cost,
    verify=verify_count,
    alternatives=[by_shapes],
    min_checks=20,
    seconds=30.0,
    advice={
        "values": "Write down all products as (rows, inner, columns), for N patches and T = N + 1 tokens: each costs "
        "twice the three numbers multiplied. Which of them belong here, and how often?",
    },
    mutants=MUTANTS,
    explanation="""
With N patches, a block costs $8Th^2 + 4Thm + 4T^2h$ operations, T = N + 1. The first two terms grow with the number of
pixels, the last with its square. They are equal at $T = 2h + m$. Far below that length, where most vision Transformers
are, doubling the side costs hardly more than four times; far above it, sixteen times.

Only one part of the *parameters* depends on the size of the image: the positions. All other weights fit any size.
""",
)
