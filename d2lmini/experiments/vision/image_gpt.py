"""Chapter 11: pictures of clothes as texts of grey values, learned and written pixel by pixel.

A causal Transformer learns Fashion-MNIST from the left to the right and from the top to the bottom, and is scored in
bits per pixel beside tables of counts that know the place alone, or the two neighbours alone. Then it finishes test
images of which it is given the upper half. For the figure, some of these completions are written down with what each
pixel was drawn from, and where the last layer looked.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist_checksums
from d2lmini.experiments.vision import classification
from d2lmini.figures.pixel_completion import completion_walk
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.image_gpt import GreyQuantizer, ImageGPT, ImageGPTConfig


@dataclass(frozen=True)
class Config(classification.Recipe):
    """Settings of `ImageGPT` beside those of the recipe.

    ``img_size`` divides 28: each pixel is the mean of a square of the original ones. ``pictures`` of the test set are
    completed ``samples`` times each; for the first ``walks`` of them, pictures and samples, it is written down how.
    """

    img_size: int = 28
    num_levels: int = 16
    num_hiddens: int = 256
    ffn_num_hiddens: int = 1024
    num_heads: int = 8
    num_blks: int = 8
    dropout: float = 0.1
    label_smoothing: float = 0.0
    batch_size: int = 128
    steps: int = 9_400  # 20 epochs
    checks: int = 10
    shift: int = 0
    erase: float = 0.0
    seeds: tuple = (0,)
    pictures: int = 8
    samples: int = 4
    temperature: float = 1.0
    walks: tuple = (3, 1)


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=100, img_size=7, num_levels=4, num_hiddens=16, ffn_num_hiddens=32,
        num_heads=2, num_blks=2, batch_size=20, steps=8, checks=2, pictures=2, samples=2, walks=(1, 2),
    ),
    "cpu": replace(
        Config(), subset="shipped", img_size=14, num_hiddens=64, ffn_num_hiddens=256, num_heads=4, num_blks=2,
        dropout=0.0, batch_size=32, steps=800, checks=4, lr=4e-3, shift=1, walks=(3, 2),
    ),
    # all of Fashion-MNIST, 3.5 times; a quarter of the pixels of `full`
    "laptop": replace(
        Config(), img_size=14, num_hiddens=96, ffn_num_hiddens=384, num_heads=4, num_blks=3, dropout=0.0,
        batch_size=64, steps=3_300, checks=5, lr=3e-3, precision="bf16",
    ),
    "full": Config(),
}  # fmt: skip


class Pixels(classification.Pictures):
    """Batches of grey levels (B, height, width), as inputs and as labels; ``quantizer`` is fitted to the images."""

    def __init__(self, config, device, seed=0):
        super().__init__(config, device, seed)
        self.pooled = 28 // config.img_size
        some = self.train.images[:2000, None].float() / 255
        self.quantizer = GreyQuantizer.fit(self.shrink(some).cpu(), config.num_levels)

    def shrink(self, images):
        """Images (B, 1, 28, 28) to (B, 1, height, width)."""
        return F.avg_pool2d(images, self.pooled)

    def get_dataloader(self, train):
        loader = super().get_dataloader(train)

        def encode(batch):
            pixels = self.quantizer.encode(self.shrink(batch[0]))
            return pixels, pixels

        return DataLoader(loader.dataset, loader.batch_size, sampler=loader.sampler, collate_fn=encode)

    def all_pixels(self, train):
        """The grey levels of all images, as they are, (N, height, width), on the CPU."""
        parts = (self.train if train else self.val).images[:, None].split(1000)
        return torch.cat([self.quantizer.encode(self.shrink(part.float() / 255)).cpu() for part in parts])


class Learner(classification.Learner):
    """An `ImageGPT`, trained by a recipe."""

    def loss(self, Y_hat, Y):
        return self.net.loss(Y_hat, Y)


def table_bits(train_contexts, train, test_contexts, test, num_levels):
    """Bits per pixel of a table of counts: for each context, how often each grey value came with it.

    Args:
        train_contexts, train: integers of one shape.
        test_contexts, test: integers of one shape.
        num_levels: K.
    """
    num_contexts = 1 + int(max(train_contexts.max(), test_contexts.max()))
    index = (train_contexts * num_levels + train).flatten()
    counts = torch.bincount(index, minlength=num_contexts * num_levels).view(num_contexts, num_levels)
    probabilities = counts + 0.1  # nothing is impossible for not having come yet
    probabilities = probabilities / probabilities.sum(1, keepdim=True)
    return -probabilities[test_contexts, test].cpu().double().log2().mean().item()


def baselines(train, test, num_levels):
    """Bits per pixel of guesses that learn little: evenly, from the place, and from the pixels to the left and above.

    Args:
        train, test: grey levels (N, height, width).
        num_levels: K.

    Returns:
        dict of three numbers.
    """

    def places(pixels):
        return torch.arange(pixels[0].numel()).view(pixels[0].shape).expand(pixels.shape)

    def neighbours(pixels):
        left, above = F.pad(pixels, (1, -1), value=num_levels), F.pad(pixels, (0, 0, 1, -1), value=num_levels)
        return left * (num_levels + 1) + above

    bits = {"even": math.log2(num_levels)}
    for name, context in (("place", places), ("left_and_above", neighbours)):
        bits[name] = table_bits(context(train), train, context(test), test, num_levels)
    return bits


def complete(model, data, config, device):
    """Completes the upper halves of test images.

    Returns:
        dict for JSON: ``levels``, ``given`` (rows), ``test_index`` and ``label`` of the pictures, ``true[picture]``,
        the grey levels (height, width), ``drawn[picture][sample]``, those of the rows that were drawn, and ``walks``,
        a dict from the name of a picture to its walks as `PixelCompletion` takes them.
    """
    given = config.img_size // 2
    true = data.all_pixels(train=False)[: config.pictures]  # (pictures, height, width)
    labels = [FASHION_MNIST_LABELS[i] for i in data.val.labels[: config.pictures].tolist()]
    top = true[:, :given].repeat_interleave(config.samples, 0).to(device)
    images, probabilities = model.eval().complete(
        top,
        temperature=config.temperature,
        generator=torch.Generator().manual_seed(config.seeds[0]),
        return_probabilities=True,
    )
    pictures, samples = config.walks
    walks = {}
    for i in range(pictures):
        rows = range(i * config.samples, i * config.samples + samples)
        walks[f"{labels[i]} (test image {i})"] = [
            completion_walk(model, images[r], given, probabilities[r], mean_heads=config.img_size > 14) for r in rows
        ]
    return {
        "levels": [round(x, 4) for x in data.quantizer.levels.tolist()],
        "given": given,
        "test_index": list(range(len(true))),
        "label": labels,
        "true": true.tolist(),
        "drawn": images[:, given:].unflatten(0, (-1, config.samples)).tolist(),
        "walks": walks,
    }


def learn(config, seed, device, parts, name):
    """Trains with one seed; the first one completes pictures too. Returns: dict for JSON."""
    torch.manual_seed(seed)
    data = Pixels(config, device, seed)
    sizes = (config.num_hiddens, config.ffn_num_hiddens, config.num_heads, config.num_blks, config.dropout)
    model = ImageGPT(ImageGPTConfig(config.img_size, config.num_levels, *sizes))
    history = classification.fit(Learner(model, config), data, config, device, seed, parts=parts, name=name)
    metrics = {
        "bits": history["val_loss"][-1],
        "train_s": round(history["seconds"][-1], 1),
        "train_images_per_s": round(len(history["step"]) * config.batch_size / history["seconds"][-1]),
    }
    looked = {}
    if seed == config.seeds[0]:
        pixels = data.all_pixels(train=True), data.all_pixels(train=False)
        looked = {
            "completions": complete(model, data, config, device),
            "baselines": baselines(*pixels, config.num_levels),
        }
    curves = summaries.curves(history, *classification.CURVES)
    return {"metrics": metrics, "curves": curves, "parameters": model.num_parameters, "look": looked}


def run(config, device, parts=None):
    """Train with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``bits`` per pixel of the test images, a value for each seed; ``baselines``;
        ``completions``, as `complete` returns them, of the first seed), ``curves`` of the first seed, and ``data``.
    """
    parts = parts or Parts()
    names = {seed: f"seed-{seed}" for seed in config.seeds}
    records = [parts(name, learn, config, seed, device, parts, name) for seed, name in names.items()]
    metrics = summaries.columns([record["metrics"] for record in records]) | records[0]["look"]
    metrics |= {"parameters": records[0]["parameters"], **summaries.summary(metrics["bits"])}
    metrics["headline"] = (
        f"{metrics['mean']:.3f} bits per pixel of {config.num_levels} grey values with {metrics['parameters']:,} "
        f"parameters; counts of both neighbours {metrics['baselines']['left_and_above']:.3f}"
    )
    return {"metrics": metrics, "curves": records[0]["curves"], "data": fashion_mnist_checksums(config.subset)}
