"""Chapter 11: DaViT, where attention in windows takes turns with attention among channels.

Patches, windows and recipe are those of `vision_swin`; what differs is how news leaves a window. A block of DaViT has a
layer of either kind, so that half as many give as many layers.
"""

from dataclasses import replace

from d2lmini.experiments.vision import classification, vision_swin
from d2lmini.models.davit import DaViT, DaViTConfig

Config = vision_swin.Config
PRESETS = {
    "smoke": replace(vision_swin.PRESETS["smoke"], num_blks=(1,)),
    "cpu": replace(vision_swin.PRESETS["cpu"], num_blks=(1, 1)),
    "laptop": replace(vision_swin.PRESETS["laptop"], lr=4e-3, num_blks=(1, 1)),
    "full": replace(vision_swin.PRESETS["full"], num_hiddens=104, num_blks=(2, 2), num_heads=(4, 8)),
}


def make(config):
    """The network of a configuration."""
    return vision_swin.make(config, DaViT, DaViTConfig)


def run(config, device, parts=None):
    """Train with every seed; see `classification.run`."""
    return classification.run(make, config, device, parts=parts)
