"""Chapter 10: how much each architecture learns from how many pictures.

A ResNet and a Vision Transformer of as many parameters see 1 %, 10 % and all of the training images, with the same
number of steps, the same batches and the same augmentation; the learning rate alone is each one's own. Convolutions
come knowing that neighbouring pixels belong together and that a thing is the same thing elsewhere; attention has to
learn it from the data.
"""

from dataclasses import dataclass, replace

import torch

from d2lmini.data.images import fashion_mnist, fashion_mnist_checksums
from d2lmini.experiments.vision import classification, vision_vit
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.resnet import ResNet, arch_for

NETWORKS = ("resnet", "vit")


@dataclass(frozen=True)
class Config(vision_vit.Config):
    """Settings of the `ViT`, and of the recipe; ``shares`` of the training images; the ResNet is made as large."""

    shares: tuple = (0.01, 0.1, 1.0)
    resnet_lr: float = 2e-3
    steps: int = 6_000
    checks: int = 10
    num_hiddens: int = 128
    mlp_num_hiddens: int = 256
    num_heads: int = 4
    num_blks: int = 6


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", shares=(0.01, 0.1), batch_size=20, steps=4, checks=2, patch_size=14,
        num_hiddens=16, mlp_num_hiddens=32, num_heads=2, num_blks=1, seeds=(0,),
    ),
    # three runs of each network, so that each has to be small: 20, 200 and 2,000 images
    "cpu": replace(
        Config(), subset="shipped", batch_size=50, steps=250, checks=2, patch_size=7, num_hiddens=48,
        mlp_num_hiddens=96, num_blks=3, lr=2e-3, resnet_lr=4e-3, erase=0.0, drop_path=0.0, seeds=(0,),
    ),
    "hour": replace(  # 600, 6,000 and 60,000 images, on one core of a CPU
        Config(), batch_size=128, steps=3_000, checks=6, patch_size=7, num_hiddens=64, mlp_num_hiddens=128,
        num_blks=4, lr=2e-3, resnet_lr=4e-3, erase=0.0, drop_path=0.0, seeds=(0,),
    ),
    # 600, 6,000 and 60,000 images; the Transformer and both learning rates are those of `vision_vit` and `vision_cnn`
    "laptop": replace(
        Config(), **classification.LAPTOP | {"steps": 3_000, "checks": 6}, patch_size=4, num_hiddens=64,
        mlp_num_hiddens=128, num_blks=4, lr=4e-3, resnet_lr=8e-3, drop_path=0.0, seeds=(0,),
    ),
    "full": Config(),
}  # fmt: skip


def make(name, config):
    """The network called ``name`` of a configuration: both have about as many parameters."""
    vit = vision_vit.make(config)
    return vit if name == "vit" else ResNet(arch_for(vit.num_parameters))


def learn(name, size, config, seed, device, parts, part):
    """Train one network on so many images. Returns: dict for JSON."""
    torch.manual_seed(seed)
    net = make(name, config)
    recipe = replace(config, num_train=size, lr=config.lr if name == "vit" else config.resnet_lr)
    record = classification.train(net, recipe, device, seed, parts=parts, name=part)
    return {**record, "parameters": net.num_parameters}


def run(config, device, parts=None):
    """Train both networks on every share with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``: ``train_images``, and for each network ``accuracy[network][images]`` as a list over
        seeds, ``mean`` and ``spread`` of it, ``parameters`` and ``train_s``; and ``curves``, the checked accuracy of
        the first seed.
    """
    parts = parts or Parts()
    available = len(fashion_mnist("train", config.subset)[0])
    sizes = [round(share * available) for share in config.shares]
    metrics = {name: {n: {} for n in NETWORKS} for name in ("accuracy", "mean", "spread", "train_s")}
    metrics |= {"train_images": sizes, "parameters": {}}
    curves = {}
    for name in NETWORKS:
        for size in sizes:
            runs = []
            for seed in config.seeds:
                part = f"{name}-{size}-{seed}"
                runs.append(parts(part, learn, name, size, config, seed, device, parts, part))
            scores = [run["metrics"]["accuracy"] for run in runs]
            for key, value in (("accuracy", scores), *summaries.summary(scores).items()):
                metrics[key][name][str(size)] = value
            metrics["train_s"][name][str(size)] = [run["metrics"]["train_s"] for run in runs]
            curves[f"{name}_{size}"] = {key: runs[0]["curves"][key] for key in ("val_step", "val_acc")}
        metrics["parameters"][name] = runs[0]["parameters"]
    lead = {size: metrics["mean"]["resnet"][str(size)] - metrics["mean"]["vit"][str(size)] for size in sizes}
    metrics["lead_of_resnet"] = {str(size): gain for size, gain in lead.items()}
    leads = ", ".join(f"{100 * gain:+.1f} with {size:,}" for size, gain in lead.items())
    metrics["headline"] = f"percentage points by which the ResNet leads the ViT: {leads} training images"
    return {"metrics": metrics, "curves": curves, "data": fashion_mnist_checksums(config.subset)}
