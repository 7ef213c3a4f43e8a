"""What a page reads of packed completions: probabilities, and the strongest weights of a head."""

import math

import torch

from d2lmini.figures.packing import unpack
from d2lmini.figures.pixel_completion import PixelCompletion, completion_walk
from d2lmini.models.image_gpt import ImageGPT, ImageGPTConfig

LEVELS = [0.0, 0.2, 0.5, 0.7, 1.0]


def cases():
    for height, width, given, mean, looks in ((4, 3, 2, False, 6), (3, 3, 1, True, 4), (20, 13, 19, False, 2)):
        torch.manual_seed(height)
        model = ImageGPT(ImageGPTConfig((height, width), len(LEVELS), 12, 20, 2, 1)).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)
        top = torch.randint(len(LEVELS), (1, given, width))
        images, probabilities = model.complete(top, return_probabilities=True)
        walk = completion_walk(model, images[0], given, probabilities[0], mean_heads=mean, shown=looks)
        figure = PixelCompletion(LEVELS, {"it": [walk]})
        shares, (where, weights) = figure.probabilities("it"), figure.attention("it")
        bytes_of = {name: unpack(walk[name]).tolist() for name in ("probabilities", "weights")}
        unpacked = {**walk, **bytes_of, "where": where.flatten().tolist()}
        yield "unpackWalk", [walk], unpacked
        for step, head in ((1, 0), (2, walk["heads"] - 1), (len(shares), 0)):
            index = given * width + step - 1
            drawn, own = walk["pixels"][index], shares[step - 1]
            found = {
                "index": index, "drawn": drawn, "likeliest": int(own.argmax()), "shares": own.tolist(),
                "bits": -math.log2(own[drawn]) if own[drawn] else None,
                "seen": torch.stack([where[step - 1, head], weights[step - 1, head]], 1).tolist(),
            }  # fmt: skip
            yield "stepOf", [unpacked, step, head], found
    for place, index, told in (
        (0, 17, "the start sign"),
        (17, 17, "the pixel before"),
        (16, 17, "the one 2 to the left"),
        (13, 17, "the pixel above"),
        (3, 17, "the one 3 above"),
        (12, 17, "the one 1 up and 1 to the left"),
        (15, 17, "the one 1 up and 2 to the right"),
    ):
        yield "direction", [place, index, 5], told
