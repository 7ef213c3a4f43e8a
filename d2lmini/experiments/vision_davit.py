"""Chapter 11: DaViT, where attention in windows takes turns with attention among channels.

Patches, windows and recipe are those of `vision_swin`; what differs is how news leaves a window.
"""

from dataclasses import dataclass, replace

from d2lmini.experiments import _vision
from d2lmini.models.davit import DaViT


@dataclass(frozen=True)
class Config(_vision.Recipe):
    """Settings of `DaViT` beside those of the recipe; a block has a layer of either kind."""

    patch_size: int = 2
    num_hiddens: int = 104
    num_blks: tuple = (2, 2)
    num_heads: tuple = (4, 8)
    window_size: int = 7
    dropout: float = 0.0
    drop_path: float = 0.1


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=100, batch_size=25, steps=4, checks=2, patch_size=4, num_hiddens=8,
        num_blks=(1,), num_heads=(2,), seeds=(0,),
    ),
    "cpu": replace(
        Config(), subset="shipped", batch_size=50, steps=800, checks=4, num_hiddens=32, num_blks=(1, 1),
        num_heads=(2, 4), erase=0.0, drop_path=0.0, seeds=(0,),
    ),
    "full": Config(),
}  # fmt: skip


def make(config):
    """The network of a configuration."""
    return DaViT(
        28,
        config.patch_size,
        config.num_hiddens,
        config.num_blks,
        config.num_heads,
        config.window_size,
        config.dropout,
        drop_path=config.drop_path,
    )


def run(config, device):
    """Train with every seed; see `_vision.run`."""
    return _vision.run(make, config, device)
