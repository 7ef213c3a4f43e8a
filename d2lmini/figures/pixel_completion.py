"""Figure of chapter 11: ImageGPT finishes a picture, pixel by pixel."""

import numpy
import torch

from ..hooks import capture_attention
from ..modes import evaluating
from .base import Figure, table
from .packing import pack, unpack

SHOWN = 6  # of the pixels that a head looks at: the strongest


class PixelCompletion(Figure):
    """A picture whose top is given grows pixel by pixel, with what each was drawn from and where the model looked.

    Beside the picture stands the distribution over grey values that the model had for the pixel, with the one that was
    drawn; over the picture, the pixels that a head of the last layer attended to. The reader steps, plays, drags a
    slider, and chooses picture, sample and head. Probabilities travel as one byte each, attention as the strongest
    weights of each head, so both are right to 1/510.

    Args:
        levels: K rising grey values from 0 to 1: what the integers of a picture stand for.
        walks: dict from the name of a picture to its completions, a list of what `completion_walk` returns.
        true: None, or a dict from the same names to the true picture, (height, width) integers below K.
        step: which drawn pixel is shown first, from 1.

    Raises:
        ValueError: there is nothing to show, sizes differ, a number is out of its range, or there is no such step.
    """

    name = "pixel_completion"
    title = "A picture, pixel by pixel"
    hint = (
        "Press play, step, or click on a written pixel: the bars show what it was drawn from, the circles "
        "where the model looked."
    )

    def __init__(self, levels, walks, true=None, step=1):
        levels = [float(level) for level in levels]
        if not walks or not all(walks.values()):
            raise ValueError("there is nothing to show: expected at least one picture with one completion")
        if not all(0 <= level <= 1 for level in levels):
            raise ValueError(f"levels are {levels}, expected grey values from 0 to 1")
        first = next(iter(walks.values()))[0]
        for name, completions in walks.items():
            for walk in completions:
                _check_walk(name, walk, first, len(levels))
        height, width = first["size"]
        steps = height * width - first["given"] * width
        if not 1 <= step <= steps:
            raise ValueError(f"step is {step}, expected 1 to {steps}, the pixels that were drawn")
        if true is not None:
            true = {name: numpy.asarray(true[name]).ravel().tolist() for name in walks}
            for name, pixels in true.items():
                if len(pixels) != height * width or not all(0 <= value < len(levels) for value in pixels):
                    raise ValueError(
                        f"the true picture {name!r} has {len(pixels)} pixels, expected {height} x {width} below "
                        f"{len(levels)}"
                    )
        super().__init__(
            f"{sum(map(len, walks.values()))} completions of {len(walks)} pictures, pixel by pixel: what each pixel "
            "was drawn from, and where the model looked.",
            levels=levels,
            names=list(walks),
            walks=list(walks.values()),
            true=None if true is None else list(true.values()),
            picture=0,
            sample=0,
            head=0,
            step=step,
        )

    def probabilities(self, name, sample=0):
        """What the page shows of a completion: probabilities (drawn pixels, K), multiples of 1/255."""
        walk = self.state["walks"][self.state["names"].index(name)][sample]
        return unpack(walk["probabilities"], -1, len(self.state["levels"])).double() / 255

    def attention(self, name, sample=0):
        """What the page shows: places (drawn pixels, H, n), 0 the start sign and i pixel i - 1; and their weights."""
        walk = self.state["walks"][self.state["names"].index(name)][sample]
        shape = (-1, walk["heads"], walk["shown"])
        where = unpack(walk["where"], *shape, kind=_place_type(walk["size"]))
        return where, unpack(walk["weights"], *shape).double() / 255

    def fallback(self):
        state = self.state
        name, walk = state["names"][0], state["walks"][0][0]
        (height, width), first = walk["size"], walk["given"] * walk["size"][1]
        probabilities = self.probabilities(name)
        rows = []
        for row in range(walk["given"], height):
            places = range(row * width - first, (row + 1) * width - first)
            drawn = [walk["pixels"][first + i] for i in places]
            mean = sum(probabilities[i, k].item() for i, k in zip(places, drawn, strict=True)) / width
            rows.append([row + 1, " ".join(f"{100 * state['levels'][k]:.0f}" for k in drawn), f"{mean:.2f}"])
        caption = (
            f"“{name}”, given the first {walk['given']} of {height} rows: of each further row, the grey values that "
            "were drawn, in percent of white, and their mean probability."
        )
        return table(["row", "grey values", "mean probability"], rows, caption)


@torch.no_grad()
def completion_walk(model, pixels, given, probabilities, mean_heads=False, shown=SHOWN):
    """What `PixelCompletion` shows of one completion.

    Args:
        model: the `ImageGPT` that made it.
        pixels: (height, width), integers.
        given: how many rows it was given.
        probabilities: (drawn pixels, K): what each was drawn from.
        mean_heads: whether to average the heads' weights, for a smaller page.
        shown: how many weights of each head are kept.

    Returns:
        dict, ready for JSON.

    Raises:
        ValueError: the shapes do not fit.
    """
    (height, width), first = pixels.shape, given * pixels.shape[1]
    if not 0 <= given < height:
        raise ValueError(f"given is {given}, expected 0 to {height - 1} of {height} rows")
    if len(probabilities) != height * width - first:
        raise ValueError(
            f"there are probabilities of {len(probabilities)} pixels, expected {height * width - first}: the picture "
            f"has {height} x {width}, of which {given} rows are given"
        )
    with evaluating(model), capture_attention(model.blks[-1]) as seen:
        model(pixels[None])
    (weights,) = next(iter(seen.values()))[0].cpu().float()  # (H, T, T)
    if mean_heads:
        weights = weights.mean(0, keepdim=True)
    strongest = weights[:, first:].transpose(0, 1).topk(min(shown, height * width), -1)  # (drawn pixels, H, n)
    return {
        "size": [height, width],
        "given": given,
        "heads": len(weights),
        "mean_heads": bool(mean_heads),
        "shown": strongest.values.shape[-1],
        "pixels": pixels.flatten().tolist(),
        "probabilities": pack(probabilities, "probabilities"),
        "where": pack(strongest.indices.numpy().astype(_place_type((height, width)))),
        "weights": pack(strongest.values, "weights"),
    }


def _place_type(size):
    """Places are counted up to the number of pixels less one: in a byte, or in two."""
    return numpy.dtype(numpy.uint8 if size[0] * size[1] <= 256 else "<u2")


def _check_walk(name, walk, first, num_levels):
    (height, width), given = walk["size"], walk["given"]
    if (walk["size"], given, walk["heads"]) != (first["size"], first["given"], first["heads"]):
        raise ValueError(f"picture {name!r} has another size, number of given rows or of heads than the first one")
    steps, heads = (height - given) * width, walk["heads"] * walk["shown"]
    if len(walk["pixels"]) != height * width or not all(0 <= k < num_levels for k in walk["pixels"]):
        raise ValueError(
            f"picture {name!r} has {len(walk['pixels'])} pixels, expected {height} x {width} below {num_levels}"
        )
    lengths = {
        "probabilities": steps * num_levels,
        "where": steps * heads * _place_type(walk["size"]).itemsize,
        "weights": steps * heads,
    }
    for part, expected in lengths.items():
        if (length := len(unpack(walk[part]))) != expected:
            raise ValueError(f"the {part} of picture {name!r} have {length} bytes, expected {expected}")
