"""Chapter 10: D2L's vision Transformer with the settings of its section 11.8, so that one can see what they give.

Images of 96 x 96 pixels in patches of 16, plain SGD at a learning rate of 0.1 for ten epochs, no warm-up, no
augmentation, and learned positions that start with a standard deviation of 1. Beside it stands, where asked for, the
same network *cured*: positions start small, and AdamW with warm-up and a cosine trains on the same batches.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch
from torch import nn

from d2lmini.data.fashion_mnist import FashionMNIST
from d2lmini.data.images import fashion_mnist_checksums
from d2lmini.experiments.vision import classification
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.lab.parts import Parts
from d2lmini.models.vit import ViT
from d2lmini.training import WarmupCosine


@dataclass(frozen=True)
class Config:
    """Settings of D2L 11.8; ``subset`` is that of Fashion-MNIST, ``position_std`` is of the positions at the start.

    ``cured_lr`` is the learning rate of the cure; None: without it.
    """

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
    cured_lr: float | None = None
    precision: str = "auto"
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=256, img_size=32, num_hiddens=32, mlp_num_hiddens=64, max_epochs=1,
        cured_lr=1e-3, seeds=(0,),
    ),
    # a quarter of the width, and of the batch too: 2,000 images have few batches of 128
    "cpu": replace(Config(), subset="shipped", num_hiddens=128, mlp_num_hiddens=512, batch_size=32, seeds=(0,)),
    # a fifth of the published epochs, which would take more than an hour of one thread, and the cure beside it
    "laptop": replace(Config(), max_epochs=2, cured_lr=5e-4, precision="bf16", seeds=(0,)),
    "full": Config(),
}  # fmt: skip


class Cured(ViT):
    """D2L's network, trained by AdamW."""

    def configure_optimizers(self):
        """AdamW with weight decay 0.05."""
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.05)


def make(config, cured=False):
    """D2L's network of a configuration; cured, its positions start small."""
    net = (Cured if cured else ViT)(
        config.img_size,
        config.patch_size,
        config.num_hiddens,
        config.mlp_num_hiddens,
        config.num_heads,
        config.num_blks,
        config.emb_dropout,
        config.blk_dropout,
        config.cured_lr if cured else config.lr,
    )
    nn.init.normal_(net.pos_embedding, std=0.02 if cured else config.position_std)
    return net


def learn(config, data, seed, device, parts, name, cured=False):
    """Trains with one seed. Returns: dict for JSON with ``metrics``, ``curves`` and ``parameters``."""
    torch.manual_seed(seed)
    model, options = make(config, cured), {"precision": config.precision, "seed": seed}
    if cured:
        steps = config.max_epochs * len(data.get_dataloader(train=True))
        options |= {"schedule": WarmupCosine(steps // 20, steps), "gradient_clip_val": 1}
    history = fit_part(model, data, device, config.max_epochs, parts=parts, name=name, **options)
    losses = {"first_loss": history["train_loss"][0], "highest_loss": max(history["train_loss"])}
    return {
        "metrics": {**classification.measures(model, data, history), **losses},
        "curves": summaries.curves(history, *classification.CURVES),
        "parameters": model.num_parameters,
    }


def run(config, device, parts=None):
    """Train with every seed; ``parts`` are those of `Parts`.

    Returns:
        dict with ``metrics`` as `classification.run` has them, ``first_loss`` and ``highest_loss`` of a step among
        them, and ``curves`` of the first seed. Both have ``cured``, the same of the cure.
    """
    parts = parts or Parts()
    data = FashionMNIST(
        config.batch_size,
        (config.img_size, config.img_size),
        num_train=config.num_train,
        subset=config.subset,
        device=device,
    )
    names = {seed: f"seed-{seed}" for seed in config.seeds}
    records = [parts(name, learn, config, data, seed, device, parts, name) for seed, name in names.items()]
    metrics = summaries.columns([record["metrics"] for record in records])
    metrics.update(summaries.summary(metrics["accuracy"]), parameters=records[0]["parameters"])
    metrics["headline"] = (
        f"{classification.say_accuracy(metrics['accuracy'])} with {metrics['parameters']:,} parameters after "
        f"{config.max_epochs} epochs; the loss of the first step is {mean(metrics['first_loss']):.1f}"
    )
    curves = records[0]["curves"]
    if config.cured_lr is not None:
        names = {seed: f"cured-{seed}" for seed in config.seeds}
        records = [parts(name, learn, config, data, seed, device, parts, name, True) for seed, name in names.items()]
        metrics["cured"] = summaries.columns([record["metrics"] for record in records])
        metrics["cured"] |= summaries.summary(metrics["cured"]["accuracy"])
        curves["cured"] = records[0]["curves"]
        metrics["headline"] += f"; cured, {classification.say_accuracy(metrics['cured']['accuracy'])}"
    return {"metrics": metrics, "curves": curves, "data": fashion_mnist_checksums(config.subset)}
