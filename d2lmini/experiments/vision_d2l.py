"""Chapter 10: D2L's vision Transformer with the settings of its section 11.8, so that one can see what they give.

Images of 96 x 96 pixels in patches of 16, plain SGD at a learning rate of 0.1 for ten epochs, no warm-up, no
augmentation, and learned positions that start with a standard deviation of 1.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch
from torch import nn

from d2lmini.data.fashion_mnist import FashionMNIST
from d2lmini.data.images import fashion_mnist_checksums
from d2lmini.experiments import _vision
from d2lmini.models.vit import ViT
from d2lmini.training import Trainer


@dataclass(frozen=True)
class Config:
    """Settings of D2L 11.8; ``subset`` is that of Fashion-MNIST, ``position_std`` is of the positions at the start."""

    subset: str = "full"
    num_train: int | None = None
    img_size: int = 96
    patch_size: int = 16
    num_hiddens: int = 512
    mlp_num_hiddens: int = 2048
    num_heads: int = 8
    num_blks: int = 2
    emb_dropout: float = 0.1
    blk_dropout: float = 0.1
    position_std: float = 1.0
    lr: float = 0.1
    batch_size: int = 128
    max_epochs: int = 10
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=256, img_size=32, num_hiddens=32, mlp_num_hiddens=64, max_epochs=1,
        seeds=(0,),
    ),
    # a quarter of the width, and of the batch too: 2,000 images have few batches of 128
    "cpu": replace(Config(), subset="shipped", num_hiddens=128, mlp_num_hiddens=512, batch_size=32, seeds=(0,)),
    "full": Config(),
}  # fmt: skip


def run(config, device):
    """Train with every seed.

    Returns:
        dict with ``metrics`` as `_vision.run` has them, ``first_loss`` and ``highest_loss`` of a step among them, and
        ``curves`` of the first seed.
    """
    data = FashionMNIST(
        config.batch_size,
        (config.img_size, config.img_size),
        num_train=config.num_train,
        subset=config.subset,
        device=device,
    )
    metrics, curves = {}, {}
    for seed in config.seeds:
        torch.manual_seed(seed)
        model = ViT(
            config.img_size,
            config.patch_size,
            config.num_hiddens,
            config.mlp_num_hiddens,
            config.num_heads,
            config.num_blks,
            config.emb_dropout,
            config.blk_dropout,
            config.lr,
        )
        nn.init.normal_(model.pos_embedding, std=config.position_std)
        trainer = Trainer(config.max_epochs, num_gpus=int(device.type == "cuda"), seed=seed)
        trainer.fit(model, data)
        history = trainer.history
        found = {
            **_vision.measures(model, data, history),
            "first_loss": history["train_loss"][0],
            "highest_loss": max(history["train_loss"]),
        }
        for name, value in found.items():
            metrics.setdefault(name, []).append(value)
        curves = curves or _vision.curves(history)
    metrics.update(_vision.summary(metrics["accuracy"]), parameters=model.num_parameters)
    metrics["headline"] = (
        f"{_vision.say_accuracy(metrics['accuracy'])} with {metrics['parameters']:,} parameters after "
        f"{config.max_epochs} epochs; the loss of the first step is {mean(metrics['first_loss']):.1f}"
    )
    return {"metrics": metrics, "curves": curves, "data": fashion_mnist_checksums(config.subset)}
