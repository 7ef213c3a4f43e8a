"""Figure of chapter 11: ImageGPT finishes a picture whose upper half is chosen or painted."""

import math

import numpy
import torch
from torch.nn import functional as F

from ..models.image_gpt import GreyQuantizer
from ..models.weights.trained import trained
from .live.page import LiveFigure, check_sliders
from .packing import pack
from .painting import checked_pictures, garments

KINDS = "ankle boot", "bag", "coat", "dress", "pullover", "trouser"


class LiveCompletion(LiveFigure):
    """A trained `ImageGPT` in the page: choose an upper half or paint one, and it completes it pixel by pixel.

    The reader sets temperature, seed and the number of completions, which are drawn at once. Bars show what the pixel
    was drawn from that is drawn now or pointed at, circles where the last layer looked for it (mean of its heads).

    Args:
        pictures: dict from the title of an image to its grey levels, integers (height, width); the upper half is given.
            None: six test images.
        weights: name of exported weights of an `ImageGPT`.
        temperature: at first, 0 to 2.
        seed: at first, 1 to 50.
        completions: how many at first, 1 to 4.

    Raises:
        WeightsError: the file of weights is damaged, or of another version.
        ValueError: there are no such weights, an image does not fit, or a setting is out of range.
    """

    name = "live_completion"
    title = "ImageGPT at work"
    hint = (
        "Choose an upper half or paint one. Point at a pixel below it to see what it was drawn from, and where the "
        "model looked."
    )

    def __init__(self, pictures=None, weights="image_gpt_fashion", temperature=1.0, seed=1, completions=3):
        check_sliders(temperature=(temperature, 0, 2), seed=(seed, 1, 50), completions=(completions, 1, 4))
        model = trained(weights)
        levels, (height, width) = model.trained.extra["levels"], model.img_size
        if pictures is None:
            pictures = {name: levelled(image, levels, height) for name, image in garments(KINDS).items()}
        pictures = checked_pictures(pictures, (height, width), len(levels))
        given, run = height // 2, model.trained
        super().__init__(
            f"ImageGPT completes the upper halves of {len(pictures)} images, or what you paint, pixel by pixel.",
            weights,
            (
                f"What the model of the run {run.experiment}, preset {run.preset}, gives the true lower halves of "
                f"{len(pictures)} images; an even guess needs {math.log2(len(levels)):.0f} bits.",
                ("image", "bits per pixel", "pixels whose likeliest grey is the true one"),
                lower_halves(model, pictures, given),
            ),
            names=list(pictures),
            pictures=[pack(picture.numpy().astype(numpy.uint8)) for picture in pictures.values()],
            levels=levels,
            size=[height, width],
            given=given,
            picture="0",
            temperature=float(temperature),
            seed=seed,
            completions=completions,
        )


def levelled(image, levels, side):
    """An image (28, 28), uint8, as `ImageGPT` reads it: means of squares, the nearest levels. Returns: (side, side)."""
    small = F.avg_pool2d(image[None, None].float() / 255, image.shape[-1] // side)
    return GreyQuantizer(levels).encode(small)[0]


@torch.no_grad()
def lower_halves(model, pictures, given):
    """Of each picture its title, the bits per pixel of its true lower half, and the share that the model guesses."""
    pixels = torch.stack(list(pictures.values())).long()
    scores = model(pixels)[:, given:]  # (N, rows, width, K)
    true = pixels[:, given:]
    bits = -scores.log_softmax(-1).gather(-1, true[..., None])[..., 0].mean((1, 2)) / math.log(2)
    right = (scores.argmax(-1) == true).float().mean((1, 2))
    return [
        [title, f"{b:.2f}", f"{100 * r:.0f} %"]
        for title, b, r in zip(pictures, bits.tolist(), right.tolist(), strict=True)
    ]
