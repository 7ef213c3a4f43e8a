"""Chapter 10: a small Vision Transformer, trained as such networks are trained today.

Patches of 4 x 4 pixels, AdamW with warm-up and cosine, shifts, flips and erased rectangles, smoothed labels, stochastic
depth. What the first model attends to is written down with it: the class token's attention by block and head, its
rollout, and how alike the learned positions are.
"""

from dataclasses import dataclass, replace

import torch
from torch.nn import functional as F

from d2lmini.experiments.vision import classification
from d2lmini.hooks import attention_rollout, capture_attention
from d2lmini.models.vit import ViT


@dataclass(frozen=True)
class Config(classification.Recipe):
    """Settings of `ViT` beside those of the recipe; ``pictures`` of the test set are looked at."""

    patch_size: int = 4
    num_hiddens: int = 192
    mlp_num_hiddens: int = 384
    num_heads: int = 6
    num_blks: int = 9
    dropout: float = 0.0
    drop_path: float = 0.1
    pictures: int = 8


PRESETS = {
    "smoke": replace(
        Config(), subset="shipped", num_train=200, batch_size=50, steps=8, checks=2, patch_size=14, num_hiddens=16,
        mlp_num_hiddens=32, num_heads=2, num_blks=2, pictures=2, seeds=(0,),
    ),
    # 2,000 images want small steps of many epochs, and a network that is quick on one core
    "cpu": replace(
        Config(), subset="shipped", batch_size=100, steps=1_200, checks=6, lr=2e-3, patch_size=7, num_hiddens=64,
        mlp_num_hiddens=128, num_heads=4, num_blks=4, erase=0.0, drop_path=0.0, pictures=4, seeds=(0,),
    ),
    "hour": replace(  # all of Fashion-MNIST, on one core of a CPU
        Config(), batch_size=128, steps=12_000, checks=10, lr=2e-3, patch_size=7, num_hiddens=64,
        mlp_num_hiddens=128, num_heads=4, num_blks=4, erase=0.0, drop_path=0.0, seeds=(0,),
    ),
    # patches of 4 x 4 as in `full`, and all of Fashion-MNIST ten times
    "laptop": replace(
        Config(), **classification.LAPTOP, lr=4e-3, patch_size=4, num_hiddens=64, mlp_num_hiddens=128, num_heads=4,
        num_blks=4, drop_path=0.0,
    ),
    # for the page: one network, half as many steps again
    "page": replace(
        Config(), **classification.LAPTOP | {"steps": 7_000, "seeds": (0,)}, lr=4e-3, patch_size=4, num_hiddens=64,
        mlp_num_hiddens=128, num_heads=4, num_blks=4, drop_path=0.0,
    ),
    "full": Config(),
}  # fmt: skip


def make(config):
    """The network of a configuration."""
    return ViT(
        28,
        config.patch_size,
        config.num_hiddens,
        config.mlp_num_hiddens,
        config.num_heads,
        config.num_blks,
        emb_dropout=config.dropout,
        blk_dropout=config.dropout,
        use_bias=True,
        num_channels=1,
        drop_path=config.drop_path,
    )


@torch.no_grad()
def look(net, data, pictures):
    """What a trained model attends to.

    Returns:
        dict with ``look``: ``test_index``, ``label`` and ``predicted`` of the first pictures of the test set;
        ``class_attention[picture][block][head]``, the class token's attention to each patch; ``rollout[picture]``; and
        ``position_similarity``, the cosine of each pair of patches' positions.
    """
    X, y = next(iter(data.val_dataloader()))
    X, y = X[:pictures].to(next(net.parameters()).device), y[:pictures]
    with capture_attention(net) as seen:
        predicted = net.eval()(X).argmax(1)
    blocks = [calls[0] for calls in seen.values()]  # (N, H, T, T) of each
    by_head = torch.stack([block[:, :, 0, 1:] for block in blocks], 1)  # (N, blocks, H, patches)
    positions = F.normalize(net.pos_embedding[0, net.num_extra :], dim=1)
    return {
        "look": {
            "grid": list(net.grid),
            "test_index": list(range(len(y))),
            "label": y.tolist(),
            "predicted": predicted.tolist(),
            "class_attention": _rounded(by_head),
            "rollout": _rounded(attention_rollout(blocks)[:, 0, 1:]),
            "position_similarity": _rounded(positions @ positions.T),
        }
    }


def run(config, device, parts=None):
    """Train with every seed; see `classification.run` and `look`."""
    return classification.run(make, config, device, lambda net, data: look(net, data, config.pictures), parts)


def _rounded(tensor):
    """Nested lists with three decimals."""
    return tensor.cpu().double().mul(1000).round().div(1000).tolist()
