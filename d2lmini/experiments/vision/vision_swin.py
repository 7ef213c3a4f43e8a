"""Chapter 11: Swin, patches of 2 x 2 pixels that attend in shifted windows of 7 x 7, merged once into 7 x 7 patches.

The recipe is that of `vision_vit`. A patch has a quarter of the pixels that it has there, so that there are four times
as many; windows keep their attention as cheap as that of a Vision Transformer with larger patches.
"""

from dataclasses import dataclass, replace

from d2lmini.experiments.vision import classification
from d2lmini.models.swin import Swin, SwinConfig


@dataclass(frozen=True)
class Config(classification.Recipe):
    """Settings of `Swin`, or of another model in windows, beside those of the recipe."""

    patch_size: int = 2
    num_hiddens: int = 96
    num_blks: tuple = (4, 5)
    num_heads: tuple = (3, 6)
    window_size: int = 7
    dropout: float = 0.0
    drop_path: float = 0.1


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=100, batch_size=25, steps=4, checks=2, patch_size=4, num_hiddens=8,
        num_blks=(2,), num_heads=(2,), seeds=(0,),
    ),
    # small steps and a narrow network: 196 patches are much for one core
    "cpu": replace(
        Config(), subset="shipped", batch_size=50, steps=800, checks=4, num_hiddens=32, num_blks=(2, 2),
        num_heads=(2, 4), erase=0.0, drop_path=0.0, seeds=(0,),
    ),
    "laptop": replace(
        Config(), **classification.LAPTOP, lr=4e-3, num_hiddens=32, num_blks=(2, 2), num_heads=(2, 4), drop_path=0.0,
        seeds=(0,),
    ),
    "full": Config(),
}  # fmt: skip


def make(config, model=Swin, settings=SwinConfig):
    """The network of a configuration; ``model`` and ``settings`` are its class and that of its configuration."""
    names = ("patch_size", "num_hiddens", "num_blks", "num_heads", "window_size", "dropout", "drop_path")
    return model(settings(img_size=28, **{name: getattr(config, name) for name in names}))


def run(config, device, parts=None):
    """Train with every seed; see `classification.run`."""
    return classification.run(make, config, device, parts=parts)
