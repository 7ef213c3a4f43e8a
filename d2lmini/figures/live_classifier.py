"""Figure of chapter 10: a vision Transformer classifies a garment that is picked or drawn, patch by patch."""

import torch

from ..data.images import FASHION_MNIST_LABELS
from ..models.weights.trained import trained
from .live.page import LiveFigure
from .packing import pack
from .painting import checked_pictures, garments

KINDS = "ankle boot", "bag", "coat", "dress", "sandal", "trouser"
ORDERS = "own", "with", "without"


class LiveClassifier(LiveFigure):
    """A trained `ViT` in the page: pick a garment or draw one, and take patches out of the sequence or shuffle them.

    The model is asked on every change. Bars show the probabilities of the classes, hollow ones those of the image with
    all patches in place; orange shows where the class token looks, by attention rollout or in one head. Patches that
    are taken out are missing in the sequence. They are shuffled in two ways: each keeps its position vector, which
    changes nothing, or the position vectors stay where they are.

    Args:
        pictures: dict from the title of an image to integers (28, 28), 0 to 255; None: six test images.
        weights: name of exported weights of a `ViT`.
        order: of the patches at first: "own", "with" or "without" their position vectors shuffled.

    Raises:
        WeightsError: the file of weights is damaged, or of another version.
        ValueError: there are no such weights, an image does not fit, or there is no such order.
    """

    name = "live_classifier"
    title = "A vision Transformer at work"
    hint = (
        "Pick an image or paint one. Click patches to take them out; shuffle them, with their position vectors or "
        "without. By keyboard: Space takes a patch out."
    )

    def __init__(self, pictures=None, weights="vit_fashion", order="own"):
        if order not in ORDERS:
            raise ValueError(f"order is {order!r}, expected {', '.join(ORDERS)}")
        model = trained(weights)
        side, labels = model.img_size, model.trained.extra.get("labels") or list(FASHION_MNIST_LABELS)
        pictures = checked_pictures(garments(KINDS) if pictures is None else pictures, (side, side), 256)
        with torch.no_grad():
            images = torch.stack(list(pictures.values()))[:, None].float() / 255  # as in training
            best, which = model(images).softmax(-1).max(-1)
        rows = [
            [title, labels[k], f"{share:.2f}"]
            for title, k, share in zip(pictures, which.tolist(), best.tolist(), strict=True)
        ]
        run = model.trained
        super().__init__(
            f"A vision Transformer classifies {len(pictures)} images, or what you paint; patches can be taken out and "
            "shuffled.",
            weights,
            (
                f"What the model of the run {run.experiment}, preset {run.preset}, says of {len(rows)} images.",
                ("image", "the model says", "with probability"),
                rows,
            ),
            names=list(pictures),
            pictures=[pack(picture.to(torch.uint8).numpy()) for picture in pictures.values()],
            labels=list(labels),
            side=side,
            grid=list(model.grid),
            blocks=model.num_blks,
            heads=model.num_heads,
            picture="0",
            order=order,
            seed=0,
            look="rollout",
            head="0",
        )
