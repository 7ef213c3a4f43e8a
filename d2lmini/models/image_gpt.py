"""ImageGPT: a picture as a text of grey values, written pixel by pixel.

Grey is cut into K levels (`GreyQuantizer`), pixels stand in raster order (row by row, from the left), and a causal
Transformer predicts each from those before. It can then draw pictures, or finish one whose top is given.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from ..arguments import check_integer
from ..decoding.filters import Filters
from ..decoding.sampling import draw
from ..training import Module
from ..transformer import TransformerEncoderBlock
from ..utils import in_float64
from ..vision.patches import as_pair, check_images


class GreyQuantizer:
    """Grey values as integers: each becomes the nearest of K levels.

    Args:
        levels: K different grey values, in rising order; see `even` and `fit`.

    Raises:
        ValueError: there are fewer than two levels, or they do not rise.

    Source: Chen et al. 2020, whose 512 colours come from k-means.
    """

    def __init__(self, levels):
        self.levels = torch.as_tensor(levels, dtype=torch.float32)
        if self.levels.dim() != 1 or len(self.levels) < 2 or not (self.levels.diff() > 0).all():
            raise ValueError(f"levels are {self.levels.tolist()}, expected at least two in rising order")

    def __len__(self):
        """K."""
        return len(self.levels)

    @classmethod
    def even(cls, num_levels):
        """Levels at equal distances from 0 to 1."""
        return cls(torch.linspace(0, 1, num_levels))

    @classmethod
    def fit(cls, images, num_levels, num_steps=50):
        """Levels by k-means: where the pixels are, so that less is lost.

        Args:
            images: floats of any shape, with at least ``num_levels`` different values.
            num_levels: K.
            num_steps: rounds of assigning every pixel and moving every level, at most.

        Raises:
            ValueError: there are too few different values.
        """
        values, counts = in_float64(images.flatten()).unique(return_counts=True)
        if len(values) < num_levels:
            raise ValueError(f"the images have {len(values)} different values, which cannot make {num_levels} levels")
        levels = values[torch.linspace(0, len(values) - 1, num_levels).round().long()]
        for _ in range(num_steps):
            nearest = torch.bucketize(values, (levels[1:] + levels[:-1]) / 2)
            total = torch.zeros_like(levels).index_add(0, nearest, counts.to(levels))
            moved = torch.zeros_like(levels).index_add(0, nearest, counts * values) / total
            moved = torch.where(total > 0, moved, levels)  # a level that is nearest to nothing stays
            if torch.equal(moved, levels):
                break
            levels = moved
        return cls(levels)

    def encode(self, images):
        """Images (N, 1, height, width), floats, to integers (N, height, width) below K.

        Raises:
            TypeError: the images are not floating point.
            ValueError: they have another number of dimensions or channels.
        """
        check_images(images, num_channels=1)
        levels = self.levels.to(images)
        return torch.bucketize(images[:, 0].contiguous(), (levels[1:] + levels[:-1]) / 2)

    def decode(self, pixels):
        """Integers (N, height, width) to images (N, 1, height, width) whose values are levels.

        Raises:
            ValueError: a pixel is none of the K.
        """
        _check_range(pixels, len(self))
        return self.levels.to(pixels.device)[pixels][:, None]


@dataclass(frozen=True)
class ImageGPTConfig:
    """What makes an `ImageGPT`.

    Args:
        img_size: height and width of the images, in pixels; an integer for both.
        num_levels: K, how many grey values there are.
        num_hiddens: h.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks.
        num_heads: H.
        num_blks: how many blocks.
        dropout: in training, of the embeddings and inside the blocks.
        lr: learning rate of the AdamW that `ImageGPT.configure_optimizers` gives.
    """

    img_size: int | tuple
    num_levels: int
    num_hiddens: int = 64
    ffn_num_hiddens: int = 256
    num_heads: int = 4
    num_blks: int = 2
    dropout: float = 0.0
    lr: float = 1e-3


class ImageGPT(Module):
    """A causal Transformer over the pixels of an image, in raster order.

    The blocks normalise first, and a norm follows the last. What stands at place t is the pixel before, a start sign
    at place 0, with the position t; its output predicts pixel t.

    Args:
        config: an `ImageGPTConfig`.

    Source: UDL section 12.10.1; Chen et al. 2020, "Generative pretraining from pixels".
    """

    def __init__(self, config):
        super().__init__()
        self.save_hyperparameters()
        self.num_levels, self.lr = config.num_levels, config.lr
        self.img_size = height, width = as_pair(config.img_size)
        h = config.num_hiddens
        self.embedding = nn.Embedding(config.num_levels + 1, h)  # the last is the start sign
        self.rows = nn.Embedding(height, h)
        self.columns = nn.Embedding(width, h)
        self.dropout = nn.Dropout(config.dropout)
        sizes = (h, config.ffn_num_hiddens, config.num_heads, config.dropout)
        self.blks = nn.ModuleList(
            TransformerEncoderBlock(*sizes, norm_first=True, activation=nn.GELU) for _ in range(config.num_blks)
        )
        self.norm = nn.LayerNorm(h)
        self.dense = nn.Linear(h, config.num_levels)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        for blk in self.blks:  # what is added along the depth keeps its size, as in GPT-2
            for last in (blk.attention.W_o, blk.ffn.dense2):
                nn.init.normal_(last.weight, std=0.02 / math.sqrt(2 * config.num_blks))

    def forward(self, pixels):
        """Scores of every pixel, given those before it.

        Args:
            pixels: integers (N, rows, width) below K: images, or their first rows.

        Returns:
            (N, rows, width, K). The scores of a pixel depend on none that comes at its place or after it.

        Raises:
            ValueError: the shape or a value does not fit.
        """
        self._check(pixels, least=1)
        inputs = F.pad(pixels.flatten(1)[:, :-1], (1, 0), value=self.num_levels)  # (N, T)
        X = self._embedded(inputs, 0)  # (N, T, h)
        for blk in self.blks:
            X = blk(X, causal=True)
        return self.dense(self.norm(X)).unflatten(1, pixels.shape[1:])

    def empty_caches(self, batch):
        """A `KeyValueCache` without pixels for each block: what `step` starts from."""
        return [blk.attention.empty_cache(batch) for blk in self.blks]

    def step(self, inputs, caches):
        """Goes on from what is in the caches.

        Args:
            inputs: integers (N, n), the next pixels; before them all, at place 0, the start sign, ``num_levels``.
            caches: list of one `KeyValueCache` for each block; not changed.

        Returns:
            Scores (N, n, K) of the pixels that follow each input, and the list of the grown caches.
        """
        X, grown = self._embedded(inputs, caches[0].length), []  # (N, n, h)
        for blk, cache in zip(self.blks, caches, strict=True):
            X, cache = blk.extend(X, cache, causal=True)
            grown.append(cache)
        return self.dense(self.norm(X)), grown

    def _embedded(self, inputs, past):
        """Inputs (N, n) from place ``past`` on, with their rows and columns: (N, n, h)."""
        width = self.img_size[1]
        places = torch.arange(past, past + inputs.shape[1], device=inputs.device)  # (n,)
        return self.dropout(self.embedding(inputs) + self.rows(places // width) + self.columns(places % width))

    def loss(self, Y_hat, Y):
        """Bits per pixel: minus the binary logarithm of the probability of each true pixel, in the mean.

        Args:
            Y_hat: scores (N, rows, width, K). Y: pixels (N, rows, width).
        """
        return F.cross_entropy(Y_hat.flatten(0, -2), Y.flatten()) / math.log(2)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, betas=(0.9, 0.95), weight_decay=0.01)

    @torch.no_grad()
    def complete(self, top, *, temperature=1.0, top_k=None, generator=None, return_probabilities=False):
        """Images whose first rows are given; the model draws the others, pixel by pixel.

        Uses the model as it is: call ``eval()`` before, or dropout is at work.

        Args:
            top: integers (N, rows, width) below K, with 0 to height rows.
            temperature: what scores are divided by; below 1 likely values become likelier still; 0: take the best.
            top_k: how many of the likeliest values may be drawn; None: all.
            generator: of the random numbers, on the CPU; the same draws then come on every device.
            return_probabilities: whether to return also what each pixel was drawn from.

        Returns:
            Integers (N, height, width); with ``return_probabilities`` a pair of them and of the probabilities of each
            drawn pixel, (N, drawn pixels, K).

        Raises:
            ValueError: a shape, a value, ``temperature`` or ``top_k`` does not fit.
        """
        self._check(top)
        if top_k is not None:
            check_integer("top_k", top_k, 1, self.num_levels)
        filters = Filters(temperature, top_k)
        pixels, total = top.flatten(1), math.prod(self.img_size)
        inputs = F.pad(pixels, (1, 0), value=self.num_levels)  # all that is given, at once
        caches, probabilities = self.empty_caches(len(top)), []
        while pixels.shape[1] < total:
            scores, caches = self.step(inputs, caches)
            probabilities.append(filters.probabilities(scores[:, -1]))  # (N, K)
            inputs = draw(probabilities[-1], generator)[:, None]
            pixels = torch.cat([pixels, inputs], 1)
        images = pixels.unflatten(1, self.img_size)
        if not return_probabilities:
            return images
        return images, torch.stack(probabilities, 1) if probabilities else self.dense.weight.new_empty(
            len(top), 0, self.num_levels
        )

    def sample(self, num_images, **options):
        """Images from nothing, (num_images, height, width); the options are those of `complete`."""
        nothing = torch.empty(num_images, 0, self.img_size[1], dtype=torch.long, device=self.dense.weight.device)
        return self.complete(nothing, **options)

    def _check(self, pixels, least=0):
        height, width = self.img_size
        _check_range(pixels, self.num_levels)
        if pixels.dim() != 3 or not least <= pixels.shape[1] <= height or pixels.shape[2] != width:
            raise ValueError(
                f"pixels have shape {tuple(pixels.shape)}, expected (N, {least} to {height} rows, {width}): whole rows"
            )


def _check_range(pixels, num_levels):
    if not isinstance(pixels, torch.Tensor):
        raise TypeError(f"pixels are a {type(pixels).__name__}, expected a tensor of integers (N, height, width)")
    if pixels.is_floating_point() or pixels.dtype == torch.bool:
        raise ValueError(f"pixels are {pixels.dtype}, expected integers: GreyQuantizer.encode makes them of images")
    if not pixels.numel() or pixels.device.type != "cpu":  # elsewhere a look would wait for the device
        return
    low, high = int(pixels.min()), int(pixels.max())
    if low < 0 or high >= num_levels:
        raise ValueError(
            f"pixels are {low} to {high}, expected 0 to {num_levels - 1}: were they encoded with as many levels?"
        )
