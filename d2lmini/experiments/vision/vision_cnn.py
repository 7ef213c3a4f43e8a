"""Chapter 10: a residual network with as many parameters as the Vision Transformer of `vision_vit`, trained alike.

How far do convolutions lead at this size? Images and augmentation are those of the Transformer's preset (``compact``
erases less), in ``laptop`` and ``full`` steps and batches too; the learning rate is one that suits this network.
"""

from dataclasses import dataclass, fields, replace

import torch

from d2lmini.experiments.vision import classification, vision_vit
from d2lmini.models.resnet import ResNet, arch_for


@dataclass(frozen=True)
class Config(classification.Recipe):
    """Settings of `ResNet` beside those of the recipe: its widths follow from the ``parameters`` that it shall have."""

    parameters: int = 0
    blocks: tuple = (2, 2, 2)
    multiple: int = 1
    dropout: float = 0.1


def like(preset, **changes):
    """The recipe of a preset of `vision_vit`, and the size of its network."""
    other = vision_vit.PRESETS[preset]
    with torch.device("meta"):  # sizes without numbers
        parameters = vision_vit.make(other).num_parameters
    recipe = {field.name: getattr(other, field.name) for field in fields(classification.Recipe)}
    return replace(Config(**recipe, parameters=parameters), **changes)


PRESETS = {
    "smoke": like("smoke", blocks=(1, 1)),
    # a step takes longer than the small Transformer's, which has few patches: in about its time, fewer images are seen,
    # in fewer steps of half the batch
    "cpu": like("cpu", blocks=(1, 1, 1), lr=3e-3, batch_size=50, steps=960),
    "hour": like("hour", blocks=(1, 1, 1), lr=4e-3, steps=6_000),
    # all of Fashion-MNIST on two cores: a quarter of the parameters of `full` and of its epochs, and one seed
    "compact": like(
        "full",
        blocks=(1, 2, 2),
        multiple=16,
        parameters=680_000,
        lr=3e-3,
        batch_size=128,
        steps=12_000,
        checks=12,
        erase=0.1,
        seeds=(0,),
    ),
    "laptop": like("laptop", blocks=(1, 1, 1), lr=8e-3),
    "full": like("full", multiple=8, lr=3e-3),
}


def arch(config):
    """The stages of a configuration."""
    return arch_for(config.parameters, config.blocks, multiple=config.multiple)


def make(config):
    """The network of a configuration, its channels last in memory: so convolutions are quicker."""
    return ResNet(arch(config), dropout=config.dropout).to(memory_format=torch.channels_last)


def run(config, device, parts=None):
    """Train with every seed; see `classification.run`. ``arch`` has a pair (blocks, channels) for each stage."""
    outcome = classification.run(make, config, device, parts=parts)
    outcome["metrics"]["arch"] = arch(config)
    return outcome
