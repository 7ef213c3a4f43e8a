r"""Squeeze and excitation, read as attention

A squeeze-and-excitation block (Hu, Shen and Sun, 2018, arXiv:1709.01507) lets a convolutional network
decide, image by image, which channels matter. For an image $\mathbf X$ with C channels it takes three
steps:

1. squeeze: the mean of each channel over all its pixels, $\mathbf z$ of length C;
2. excite: $\mathbf s = \sigma\big(\mathbf W_2 \operatorname{ReLU}(\mathbf W_1 \mathbf z)\big)$, one number
   between 0 and 1 for each channel ($\sigma$ is the sigmoid; there are no biases here);
3. scale: channel c of the output is $s_c$ times channel c of the input.

Is this attention? Take the channels as tokens: channel c, flattened, is the value $\mathbf v_c$. You are to
find the matrix of attention weights with which the block mixes these C values.
"""

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def squeeze_excite(images, reduce, expand):
    """Apply a squeeze-and-excitation block, as attention over channels.

    Args:
        images: (B, C, height, width).
        reduce: (R, C), the matrix W_1.
        expand: (C, R), the matrix W_2.

    Returns:
        (output, weights). output: (B, C, height, width). weights: (B, C, C); row c says how much of each
        channel's value enters channel c of the output.
    """
    ### BEGIN SOLUTION
    values = images.flatten(start_dim=2)  # (B, C, height * width)
    squeezed = values.mean(dim=-1)  # (B, C): attention pooling with uniform weights
    hidden = torch.relu(squeezed @ reduce.mT)  # (B, R)
    gates = torch.sigmoid(hidden @ expand.mT)  # (B, C)
    weights = torch.diag_embed(gates)  # (B, C, C): each channel attends to itself alone
    return (weights @ values).view(images.shape), weights
    ### END SOLUTION


def by_broadcasting(images, reduce, expand):
    gates = torch.sigmoid(F.linear(F.relu(F.linear(images.mean((2, 3)), reduce)), expand))
    eye = torch.eye(images.shape[1], dtype=images.dtype, device=images.device)
    return images * gates[:, :, None, None], gates[:, :, None] * eye


def by_convolutions(images, reduce, expand):
    """Let each channel attend to two values: its own map with score a, a map of zeros with score 0."""
    pooled = F.adaptive_avg_pool2d(images, 1)
    scores = F.conv2d(F.conv2d(pooled, reduce[:, :, None, None]).relu(), expand[:, :, None, None])
    shares = torch.softmax(torch.stack([scores, torch.zeros_like(scores)], dim=-1), dim=-1)[..., 0]
    return images * shares, torch.diag_embed(shares.flatten(1))


# wrong answers


def weights_by_least_squares(images, reduce, expand):
    output, _ = squeeze_excite(images, reduce, expand)
    return output, output.flatten(2) @ torch.linalg.pinv(images.flatten(2))


def gates_alone(images, reduce, expand):
    output, weights = squeeze_excite(images, reduce, expand)
    return output, weights.diagonal(dim1=-2, dim2=-1)


def values_averaged(images, reduce, expand):
    _, weights = squeeze_excite(images, reduce, expand)
    mixed = weights.sum(-2, keepdim=True).expand_as(weights)
    return (mixed @ images.flatten(2)).view(images.shape), mixed


def with_gates_for_each_pixel(images, reduce, expand):
    pixels = images.movedim(1, -1)  # (B, height, width, C)
    gates = torch.sigmoid(torch.relu(pixels @ reduce.mT) @ expand.mT)
    return images * gates.movedim(-1, 1), torch.diag_embed(gates.mean((1, 2)))


def with_channels_compared(images, reduce, expand):
    values = images.flatten(2)
    weights = torch.softmax(values @ values.mT, dim=-1)
    return (weights @ values).view(images.shape), weights


class Block(nn.Module):
    """The block as it stands in a convolutional network: the independent reference."""

    def __init__(self, reduce, expand):
        super().__init__()
        R, C = reduce.shape
        self.squeeze = nn.AdaptiveAvgPool2d(1)
        self.excite = nn.Sequential(nn.Conv2d(C, R, 1, bias=False), nn.ReLU(), nn.Conv2d(R, C, 1, bias=False))
        self.excite[0].weight = nn.Parameter(reduce[:, :, None, None])
        self.excite[2].weight = nn.Parameter(expand[:, :, None, None])
        self.double()

    def forward(self, images):
        return images * torch.sigmoid(self.excite(self.squeeze(images)))


def verify(t, answer):
    B, R, C, height, width = t.sizes(5, 2, 10)
    # each channel of each image has its own offset: so the means differ, and some hidden units are off
    images = t.randn(B, C, height, width) + t.randn(B, C, 1, 1)
    reduce, expand = t.randn(R, C, scale=C**-0.5), t.randn(C, R, scale=1.5 * R**-0.5)
    for matrix in (reduce, expand):
        matrix.requires_grad_()
    x, w1, w2 = (a.detach().cpu().double() for a in (images, reduce, expand))
    block = Block(w1, w2)
    want = block(x)
    slopes = torch.autograd.grad(want.sum(), [block.excite[0].weight, block.excite[2].weight])
    slopes = [slope[:, :, 0, 0] for slope in slopes]
    want = want.detach()
    gates = torch.sigmoid((x.mean((2, 3)) @ w1.T).relu() @ w2.T)
    output, weights = t.unpack(t.call(answer, images, reduce, expand), "output", "weights")
    t.same(output, want, "output")
    t.same(weights, torch.diag_embed(gates), "weights")
    for argument, slope, name in ((1, slopes[0], "reduce"), (2, slopes[1], "expand")):
        t.same(t.gradient(output, argument), slope, f"the gradient in {name}", tolerance=(1e-3, 1e-3))

    # feature maps with zeros and a dead channel, fewer pixels than channels, a single image, and R = C
    images = t.randn(1, C := t.random.randint(5, 8), 2, 2).relu()
    images[:, 0], images[:, 1:, 0, 0], images[:, 1:, 0, 1] = 0, 1, 0
    reduce, expand = t.randn(C, C), t.randn(C, C)
    x, w1, w2 = (a.cpu().double() for a in (images, reduce, expand))
    gates = torch.sigmoid((x.mean((2, 3)) @ w1.T).relu() @ w2.T)
    output, weights = t.unpack(t.call(answer, images, reduce, expand), "output", "weights")
    where = "of a single image with a dead channel, for R = C"
    t.same(output, x * gates[:, :, None, None], f"the output {where}")
    t.same(weights, torch.diag_embed(gates), f"the weights {where}")


MUTANTS = [
    Mutant("softmax", ("torch.sigmoid(hidden @ expand.mT)", "torch.softmax(hidden @ expand.mT, dim=-1)"),
        "the gates come from a softmax, so the channels compete for a total of 1; the block has a sigmoid for each"),
    Mutant("no-sigmoid", ("torch.sigmoid(hidden @ expand.mT)", "hidden @ expand.mT"), "the sigmoid is missing: gates "
        "lie between 0 and 1"),
    Mutant("no-relu", ("torch.relu(squeezed @ reduce.mT)", "squeezed @ reduce.mT"), "the ReLU between the two matrices "
        "is missing"),
    Mutant("relu-twice", ("hidden @ expand.mT", "torch.relu(hidden @ expand.mT)"), "there is a ReLU before the sigmoid "
        "as well, so no gate can fall below 1/2"),
    Mutant("swapped-functions", ("torch.relu(squeezed @ reduce.mT)  # (B, R)\n    gates = torch.sigmoid(",
        "torch.sigmoid(squeezed @ reduce.mT)\n    gates = torch.relu("), "ReLU and sigmoid have changed places: the "
        "sigmoid comes last"),
    Mutant("sigmoid-twice", ("torch.relu(", "torch.sigmoid("), "there is a sigmoid between the two matrices; a ReLU "
        "belongs there"),
    Mutant("max-pool", ("values.mean(dim=-1)", "values.amax(dim=-1)"), "the squeeze takes the largest pixel; it should "
        "take the mean"),
    Mutant("sum-pool", ("values.mean(dim=-1)", "values.sum(dim=-1)"), "the squeeze takes the sum over the pixels; it "
        "should take the mean"),
    Mutant("over-batch", ("values.mean(dim=-1)", "values.mean(dim=(0, -1)).expand(len(images), -1)"),
        "every image gets the same gates: the mean runs over the batch as well"),
    Mutant("per-pixel", with_gates_for_each_pixel, "every pixel has gates of its own: the squeeze is missing"),
    Mutant("normalised", ("torch.diag_embed(gates)", "torch.diag_embed(gates / gates.sum(-1, True))"),
        "the gates are divided by their sum; the block leaves them as they are"),
    Mutant("inverted", ("hidden @ expand.mT", "-hidden @ expand.mT"), "these are one minus the gates: check a sign"),
    Mutant("residual", ("(weights @ values).view(images.shape)", "images + (weights @ values).view(images.shape)"),
        "the input is added; the block only scales"),
    Mutant("unscaled", ("(weights @ values).view(images.shape)", "images.clone()"), "the output is the input: the "
        "gates are not used"),
    Mutant("gates-only", ("(weights @ values).view(images.shape)", "gates[:, :, None, None].expand_as(images)"),
        "these are the gates, spread out: multiply the input by them"),
    Mutant("mixed", values_averaged, "every channel gets the same weighted sum; in this block channel c keeps to its "
        "own value"),
    Mutant("channel-products", with_channels_compared, "this is self-attention with the channels as queries and keys; "
        "the block compares nothing, its weights come from the two matrices"),
    Mutant("row-of-gates", ("(images.shape), weights", "(images.shape), gates[:, None, :].expand_as(weights)"),
        "every row holds all gates; but channel c of the output takes from channel c alone"),
    Mutant("column-of-gates", ("(images.shape), weights", "(images.shape), gates[:, :, None].expand_as(weights)"),
        "row c holds s_c everywhere; but channel c of the output takes from channel c alone"),
    Mutant("identity", ("(images.shape), weights", "(images.shape), torch.eye(gates.shape[1]).expand_as(weights)"),
        "this matrix would give back the input: where are the gates?"),
    Mutant("softmax-rows", ("(images.shape), weights", "(images.shape), torch.softmax(weights, dim=-1)"),
        "a softmax has been put over the gates; they are used as they are"),
    Mutant("weights-normalised", ("(images.shape), weights",
        "(images.shape), torch.diag_embed(gates / gates.sum(-1, True))"), "the gates are divided by their sum. With "
        "these weights your output would not come out"),
    Mutant("outer", ("(images.shape), weights", "(images.shape), gates[:, :, None] * gates[:, None, :]"),
        "these are products of two gates: which weights mix the values?"),
    Mutant("gates-averaged", ("torch.sigmoid(hidden @ expand.mT)",
        "torch.sigmoid(hidden @ expand.mT).mean(dim=0).expand(len(images), -1)"), "the gates are averaged over the "
        "batch; every image has its own"),
    Mutant("first-image", ("values.mean(dim=-1)", "values.mean(dim=-1)[:1].expand(len(images), -1)"),
        "all images get the gates of the first one"),
    Mutant("relu-first", ("values.mean(dim=-1)", "values.mean(dim=-1).relu()"), "there is a ReLU on the squeeze as "
        "well; it belongs between the two matrices"),
    Mutant("nonzero-pixels", ("values.mean(dim=-1)", "values.sum(dim=-1) / (values != 0).sum(dim=-1).clamp(min=1)"),
        "the mean leaves out pixels that are zero; all pixels count"),
    Mutant("fitted", weights_by_least_squares, "these weights are fitted to the values of this image; with the gates "
        "held fixed they must do for any others, too"),
    Mutant("shape", ("values.mean(dim=-1)", "values.mean(dim=-1).squeeze()")),  # batch of one squeezed
    Mutant("shape", gates_alone),
    Mutant("shape", (".view(images.shape)", "")),  # output flat
    Mutant("raised", ("reduce.mT", "reduce")),  # not transposed
    Mutant("tanh", ("torch.sigmoid(hidden @ expand.mT)", "torch.tanh(hidden @ expand.mT)"), "the gates come from a "
        "tanh and may be negative: the block has a sigmoid"),
    Mutant("gates-twice", ("(weights @ values).view", "(weights @ (weights @ values)).view"), "the gates are applied "
        "twice"),
    Mutant("by-channels", ("values.mean(dim=-1)", "values.sum(dim=-1) / values.shape[1]"), "the sum over the pixels is "
        "divided by the number of channels; divide by that of the pixels"),
    Mutant("one-axis", ("values.mean(dim=-1)", "images.mean(dim=-1)[..., 0]"), "the mean runs over one row of pixels "
        "alone; it runs over height and width"),
    Mutant("squares", ("values.mean(dim=-1)", "values.square().mean(dim=-1)"), "the squeeze takes the mean of the "
        "squares; it is that of the values"),
    Mutant("leaky", ("torch.relu(squeezed @ reduce.mT)", "F.leaky_relu(squeezed @ reduce.mT)"), "negative hidden units "
        "pass a little: a ReLU makes them zero"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.1.4",
    doc=__doc__,
    source="D2L 11.1, exercise 4",
    parts=[
        Code(
            key="d2l-11.1.4a",
            prompt=r"""
Write `squeeze_excite(images, reduce, expand)` for images (B, C, height, width), `reduce` = $\mathbf W_1$ of
shape (R, C) and `expand` = $\mathbf W_2$ of shape (C, R). Return `(output, weights)`: the block's output, of
the shape of the images, and the attention weights, (B, C, C), for which `output.flatten(2)` equals
`weights @ images.flatten(2)`. With the gates $\mathbf s$ held fixed, the same weights must do for any other
values $\mathbf v_c$ too; that leaves just one matrix.
""",
            hints=[
                "First the block itself: mean over height and width, two matrices, ReLU between and "
                "sigmoid after them.",
                "`z` has shape (B, C) with images in rows, so W_1 multiplies as `z @ reduce.mT`.",
                "Channel c of the output is made of channel c of the input and of nothing else. Where "
                "are the zeros of such a matrix? See `torch.diag_embed`.",
            ],
            answer=squeeze_excite,
            verify=verify,
            alternatives=[by_broadcasting, by_convolutions],
            advice={
                "values": "Step by step: the mean of each channel over its pixels, W_1, ReLU, W_2, sigmoid; one gate a "
                "channel, which multiplies that channel and nothing else",
                "raised": "If shapes do not fit: write them down after every step: (B, C), (B, R), (B, C), then the "
                "scaling.",
                "shape": "output is (B, C, height, width), weights (B, C, C), for a batch of one as well",
            },
            mutants=MUTANTS,
            explanation=r"""
Attention is in the block twice. The squeeze is attention pooling over the pixels with all weights equal.
The scaling is attention over the channels with the diagonal matrix $\operatorname{diag}(\mathbf s)$: the
weights are computed from the input itself, by a small network in place of a comparison of queries with
keys. So all channels take part in deciding *how much* of each passes, but no channel's *content* moves to
another.
""",
        ),
        Choice(
            key="d2l-11.1.4b",
            prompt=r"Compare the gates $\mathbf s = (s_1, \dots, s_C)$ with softmax attention weights "
            "over the C channels. Which property of softmax weights do the gates lack?",
            hints=[
                "Go through the properties one by one, and look for gates that break them.",
                "What do the gates add up to if every channel is useful? If none is?",
            ],
            options=[
                Option(
                    "They are never negative, whatever the input.",
                    "A sigmoid lies between 0 and 1, so the gates have this property.",
                ),
                Option(
                    "Over the C channels they always sum to one.",
                    "Each gate has a sigmoid of its own: all of them can be near 1, or all near 0. So "
                    "the channels do not compete, and the sum of s_c times the values is no average of "
                    "them. (They could be restored to weights that sum to one: a sigmoid of a is a "
                    "softmax of the two scores a and 0. Each channel attends to two values, its own map "
                    "and a map of zeros, and the block drops the second weight.)",
                    right=True,
                ),
                Option(
                    "They are computed anew from each input image.",
                    "The gates are, too: they come from the means of this very image. What is fixed "
                    "after training is the two matrices, as the projections are in attention.",
                ),
                Option(
                    "Each of them depends on all of the channels.",
                    "It does here as well: the two matrices mix the means of all channels before the "
                    "sigmoid. (In a softmax the denominator adds a coupling of its own, which is the one "
                    "that makes weights compete.)",
                ),
                Option(
                    "They have a gradient, so they can be learned.",
                    "A sigmoid has a slope everywhere, and part a checks that a gradient reaches both matrices.",
                ),
            ],
        ),
    ],
)
