r"""A jigsaw puzzle

Cut all images of a data set into patches, and lay the patches down in another order: one order, the same for all
images, in training and in test. A person sees only a jumble. What does a vision Transformer see?

The *order* is a permutation of the N patches, a tensor (N,): where the i-th patch of an image was, row by row from the
top left, there is now its patch number `order[i]`.

First you make such images. Then you show that for every vision Transformer there is another that does with the
jumbled images *exactly* what the first does with the originals. Last you say what that means.
"""

import copy

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option
from d2lmini.models.vit import ViT


def shuffle_patches(images, patch_size, order):
    """Lay the patches of all images down in another order.

    Args:
        images: (B, c, height, width).
        patch_size: p, which divides height and width.
        order: (N,), a permutation of the N = height / p times width / p patches, counted row by row.

    Returns:
        (B, c, height, width).
    """
    ### BEGIN SOLUTION
    p, (height, width) = patch_size, images.shape[2:]
    X = images.unflatten(3, (width // p, p)).unflatten(2, (height // p, p))  # (B, c, rows, p, columns, p)
    X = X.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, c, p, p)
    X = X.flatten(1, 2)[:, order].unflatten(1, (height // p, width // p))
    X = X.permute(0, 3, 1, 4, 2, 5)  # (B, c, rows, p, columns, p)
    return X.flatten(4).flatten(2, 3)
    ### END SOLUTION


def by_unfold(images, patch_size, order):
    columns = F.unfold(images, patch_size, stride=patch_size)  # (B, c p p, N)
    return F.fold(columns[:, :, order], images.shape[2:], patch_size, stride=patch_size)


def patch_by_patch(images, patch_size, order):
    p, across, result = patch_size, images.shape[3] // patch_size, torch.empty_like(images)
    for place, source in enumerate(order.tolist()):
        (r, c), (i, j) = divmod(place, across), divmod(source, across)
        result[:, :, r * p : r * p + p, c * p : c * p + p] = images[:, :, i * p : i * p + p, j * p : j * p + p]
    return result


def _cases(t):
    """Images whose grids are not square, and an order that is not its own inverse."""
    for rows, columns, p, channels in ((3, 5, 2, 3), (2, 3, 4, 2), (4, 2, 3, 1)):
        N = rows * columns
        order = torch.randperm(N, generator=t.generator)
        while torch.equal(order.argsort(), order) or order[0] == 0:
            order = torch.randperm(N, generator=t.generator)
        yield rows, columns, p, channels, order.to(t.device)


def verify_shuffle(t, answer):
    for rows, columns, p, channels, order in _cases(t):
        images = t.randn(1 if channels == 2 else 2, channels, rows * p, columns * p)
        exact, at = images.cpu().double(), order.cpu()
        # pixel by pixel: row and column of the pixel that comes here
        y, x = torch.meshgrid(*(torch.arange(n) for n in exact.shape[2:]), indexing="ij")
        source = at[(y // p) * columns + x // p]
        want = exact[:, :, source // columns * p + y % p, source % columns * p + x % p]
        got = t.call(answer, images, p, order)
        t.same(got, want, f"the images of {rows} x {columns} patches of {p} x {p} pixels")


def in_runs(images, p, order):
    """Wrong: what lies together in memory is no patch."""
    return images.flatten(2).unflatten(2, (len(order), -1))[:, :, order].view(images.shape)


def _patch_by_patch_in_place(images, p, order):
    """Wrong: a patch may have been overwritten before it is read."""
    across, result = images.shape[3] // p, images.clone()
    for place, source in enumerate(order.tolist()):
        (r, c), (i, j) = divmod(place, across), divmod(source, across)
        result[:, :, r * p : r * p + p, c * p : c * p + p] = result[:, :, i * p : i * p + p, j * p : j * p + p].clone()
    return result


def positions_for_shuffled(positions, order):
    """Learned positions with which a vision Transformer does with jumbled images what it did with the originals.

    Args:
        positions: (1, 1 + N, h), of a `d2l.ViT` with a class token; not changed.
        order: (N,), in which the patches of all images are laid down.

    Returns:
        (1, 1 + N, h).
    """
    ### BEGIN SOLUTION
    return torch.cat([positions[:, :1], positions[:, 1:][:, order]], dim=1)  # the class token stays where it is
    ### END SOLUTION


def with_an_index(positions, order):
    return positions[:, F.pad(order + 1, (1, 0))]


def verify_positions(t, answer):
    for rows, columns, p, channels, order in _cases(t):
        torch.manual_seed(t.seed)
        model = ViT((rows * p, columns * p), p, 12, 16, 2, 2, 0.0, 0.0, num_channels=channels).eval()
        for parameter in model.parameters():
            parameter.data = t.randn(*parameter.shape, scale=0.4).cpu()
        positions, at = model.pos_embedding.detach().to(t.device), order.cpu()
        model.double()
        images = t.randn(3, channels, rows * p, columns * p).cpu().double()
        exact = positions.cpu().double()
        want = torch.cat([exact[:, :1], exact[:, 1:][:, at]], 1)
        got = t.call(answer, positions, order)
        t.same(got, want, f"the positions of {rows * columns} patches")
        other = copy.deepcopy(model)
        other.pos_embedding.data = got.detach().cpu().double()
        with torch.no_grad():
            same = torch.allclose(other(by_unfold(images, p, at)), model(images))
        t.that(same, "scores", "with these positions, the jumbled images get other scores than the originals had")


MUTANTS_A = [
    Mutant("inverse", ("[:, order]", "[:, order.argsort()]"), "this is the inverse order: patch number order[i] comes "
        "to place i, not patch i to place order[i]"),
    Mutant("twice", ("[:, order]", "[:, order[order]]"), "the order is applied twice"),
    Mutant("first-picture", lambda images, p, order: torch.cat([by_unfold(images[:1], p, order), images[1:]]),
        "only the first image is jumbled"),
    Mutant("overwritten", _patch_by_patch_in_place, "the loop reads patches that it has overwritten: read from the "
        "images as they were"),
    # a batch of one
    Mutant("shape", ("return X.flatten(4).flatten(2, 3)", "return X.flatten(4).flatten(2, 3).squeeze(0)")),
    Mutant("unchanged", ("[:, order]", ""), "the images are as they were"),
    Mutant("reversed", ("[:, order]", "[:, order.flip(0)]"), "the order is read from its end"),
    Mutant("turned", ("X = X.permute(0, 2, 4, 1, 3, 5)", "X = X.permute(0, 2, 4, 1, 5, 3)"), "the patches themselves "
        "are transposed"),
    Mutant("columns-first", lambda images, p, order: by_unfold(images.mT, p, order).mT, "patches are counted row by "
        "row, not column by column"),
    Mutant("runs", in_runs, "a reshape alone cuts runs of pixels out of the rows, not squares: cut both axes of the "
        "images, then bring rows and columns together"),
    Mutant("laid-in-runs", ("return X.flatten(4).flatten(2, 3)",
        "return X.permute(0, 2, 4, 1, 3, 5).reshape(images.shape)"), "the patches are moved and then not laid down as "
        "squares: before the last reshape the axes have to come back to (B, c, rows, p, columns, p)"),
    # grid turned
    Mutant("shape", ("unflatten(1, (height // p, width // p))", "unflatten(1, (width // p, height // p))")),
    Mutant("raised", ("X.flatten(1, 2)[:, order]", "X[:, order]")),  # patches as they lie
]  # fmt: skip

MUTANTS_B = [
    Mutant("inverse", ("[:, order]", "[:, order.argsort()]"), "this is the inverse order: the patch that is now at "
        "place i, number order[i], wants its own position"),
    Mutant("twice", ("[:, order]", "[:, order[order]]"), "the order is applied twice"),
    Mutant("class-at-the-end", lambda P, order: torch.cat([P[:, 1:][:, order], P[:, :1]], 1),
        "the class token's position must stay the first: the model reads that token before the patches"),
    Mutant("unchanged", ("[:, order]", ""), "the positions are as they were, and the patches are not"),
    Mutant("off-by-one", ("positions[:, 1:][:, order]", "positions[:, order]"), "every patch has the position of its "
        "neighbour: the class token's comes first, so that of patch i is number i + 1"),
    Mutant("class-token", lambda P, order: torch.cat([P[:, order], P[:, -1:]], 1), "the class token's position is the "
        "first, and it was moved along"),
    Mutant("class-last", lambda P, order: torch.cat([P[:, -1:], P[:, :-1][:, order]], 1), "the last position is taken "
        "for the class token's, which is the first"),
    Mutant("class-dropped", ("positions[:, :1]", "0 * positions[:, :1]"), "the class token lost its position"),
    Mutant("no-positions", lambda P, order: torch.zeros_like(P), "without positions both models are blind to the "
        "order, and worse"),
    Mutant("mean", ("positions[:, 1:][:, order]", "positions[:, 1:].mean(1, keepdim=True).expand(-1, len(order), -1)"),
        "one position for all patches: the model no longer knows which patch was where"),
    # patches alone
    Mutant("shape", ("torch.cat([positions[:, :1], positions[:, 1:][:, order]], dim=1)", "positions[:, 1:][:, order]")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-10.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-10.1a",
            prompt="""
**The puzzle.** Write `shuffle_patches(images, patch_size, order)` that returns the jumbled images, of the same shape.
""",
            hints=[
                "Cut both image axes in two, (rows, p) and (columns, p); bring rows and columns together; index with "
                "`order`; go the same way back.",
                "`flatten` joins neighbouring axes only: `permute` first.",
                "`F.unfold(images, p, stride=p)` has the patches in its last axis, in the order that is wanted, and "
                "`F.fold` is the way back.",
            ],
            answer=shuffle_patches,
            verify=verify_shuffle,
            alternatives=[by_unfold, patch_by_patch],
            min_checks=6,
            advice={
                "values": "Try an image of 2 x 3 patches of which all pixels are the number of their patch, in all "
                "channels: patch `order[i]` must come to place i, in every image.",
            },
            mutants=MUTANTS_A,
            explanation="""
Cutting an axis in two with `unflatten` and joining two with `flatten` never moves a number; `permute` says what stands
beside what. All patch bookkeeping is made of these three.
""",
        ),
        Code(
            key="own-10.1b",
            prompt="""
**Its solution.** A trained `d2l.ViT` has learned positions (1, 1 + N, h), the class token's first. Write
`positions_for_shuffled(positions, order)`: the positions with which the same model gives to every *jumbled* image the
scores that it gave to the original. Nothing else of the model may change.
""",
            hints=[
                "Attention does not know in which order the patches come. What tells it where a patch belongs?",
                "Patch number order[i] is now the i-th to be read, and the i-th position is added to it.",
                "`torch.cat([positions[:, :1], positions[:, 1:][:, order]], dim=1)`",
            ],
            answer=positions_for_shuffled,
            verify=verify_positions,
            alternatives=[with_an_index],
            min_checks=9,
            advice={
                "values": "Try positions that are their own number, 0 for the class token: number 1 + order[i] must "
                "come to place 1 + i, read from the positions as they were given.",
            },
            mutants=MUTANTS_B,
            explanation="""
Each patch carries its position with it, and everything that comes after treats tokens as a set. So there is a
one-to-one correspondence between the models of the original images and the models of the jumbled ones, with the same
scores, and, as positions start from the same distribution wherever they stand, with the same chance of being where
training begins.
""",
        ),
        Choice(
            key="own-10.1c",
            prompt="""
**What it means.** All images, of training and of test, are jumbled by one and the same order of their patches. A
vision Transformer and a convolutional network are trained from the beginning on the jumbled images. How do they do,
compared with the original images?
""",
            hints=["Part b says something about one of them. What does the other take for granted about neighbours?"],
            options=[
                Option(
                    "Both fail: with the patches jumbled, the images hold nothing that could be recognised.",
                    "People cannot, since they bring their knowledge of images along. The order is always the same, "
                    "so every jumbled image still has all that the original has: it can be learned.",
                ),
                Option(
                    "Both do as well as before: networks that learn do not care about the order of what they read.",
                    "A convolution looks at windows of neighbouring pixels, with the same weights everywhere. Across "
                    "the border of two patches its windows now see things that do not belong together.",
                ),
                Option(
                    "The Transformer does as well as before, up to chance; the convolutional network does worse.",
                    "To the Transformer the two tasks are one and the same under another numbering. The convolutional "
                    "network relied on what is near belonging together, and that has become wrong at every border. "
                    "What helps it on real images is just what the Transformer does without.",
                    right=True,
                ),
                Option(
                    "The convolutional network does as well as before; the Transformer's positions mislead it.",
                    "It is the other way round. Learned positions are not wrong or right beforehand: they start at "
                    "random and are learned for whatever order there is.",
                ),
            ],
        ),
    ],
)
