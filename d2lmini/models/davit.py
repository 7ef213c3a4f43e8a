"""DaViT: attention among the patches of a window and attention among the channels of the whole picture, in turns.

Maps of patches are (N, rows, columns, h), as in `d2lmini.models.swin`. G is the number of groups of channels.
"""

import math
from dataclasses import dataclass

from torch import nn

from ..multi_head import HeadsAttention, MultiHeadAttention
from ..vision.windows import window_partition, window_reverse
from .stages import MapBlock, Stages, StagesConfig


class ChannelAttention(nn.Module):
    """Self-attention in which the tokens are channels: each is a whole picture, and looks at the others of its group.

    What one channel brings to another is weighed once for all places. So every place takes part in every weight, at a
    cost that is linear in their number: the weights of a group are h / G by h / G, however large the picture.

    Args:
        num_hiddens: h.
        num_groups: G.
        dropout: probability of dropping an attention weight in training.
        use_bias: whether the projections have a bias.

    Raises:
        ValueError: G does not divide h.

    Source: Ding et al. 2022, section 3, channel group attention.
    """

    def __init__(self, num_hiddens, num_groups, dropout=0.0, use_bias=True):
        super().__init__()
        if num_groups < 1 or num_hiddens % num_groups:
            raise ValueError(f"num_hiddens is {num_hiddens}, expected a multiple of num_groups, {num_groups}")
        self.num_groups = num_groups
        self.attention = HeadsAttention(dropout)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(num_hiddens, num_hiddens, use_bias) for _ in range(4))

    def forward(self, X):
        """Patches (N, T, h), in any order, to (N, T, h)."""
        if X.dim() != 3 or X.shape[-1] != self.W_q.in_features:
            raise ValueError(f"the patches have shape {tuple(X.shape)}, expected (N, T, {self.W_q.in_features})")
        queries, keys, values = (
            linear(X).unflatten(-1, (self.num_groups, -1)).permute(0, 2, 3, 1)  # (N, G, h / G, T)
            for linear in (self.W_q, self.W_k, self.W_v)
        )
        # attention divides by the root of T, the features of a channel; the paper's scale is the root of h / G
        queries = queries * math.sqrt(queries.shape[-1] / queries.shape[-2])
        output = self.attention(queries, keys, values)  # (N, G, h / G, T)
        return self.W_o(output.flatten(1, 2).mT)  # (N, T, h)


class LocalPosition(nn.Module):
    """Adds a 3 x 3 convolution of each channel: what surrounds a patch tells where it is, at the edges above all.

    Args:
        num_hiddens: h.

    Source: Chu et al. 2021, "Conditional positional encodings for vision transformers".
    """

    def __init__(self, num_hiddens):
        super().__init__()
        self.conv = nn.Conv2d(num_hiddens, num_hiddens, 3, padding=1, groups=num_hiddens)

    def forward(self, X):
        """Maps (N, rows, columns, h) to the same shape."""
        return X + self.conv(X.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


class SpatialBlock(MapBlock):
    """Half of a `DaViTBlock`: patches attend to those of their window. (N, rows, columns, h) to the same."""

    def __init__(self, num_hiddens, num_heads, window_size, mlp_num_hiddens, dropout=0.0, *, drop_path=0.0):
        attention = MultiHeadAttention(num_hiddens, num_heads, dropout, bias=True)
        super().__init__(attention, num_hiddens, mlp_num_hiddens, dropout, drop_path, LocalPosition)
        self.window_size = window_size

    def attend(self, X):
        """Each window is an example."""
        windows = window_partition(X, self.window_size)  # (N * windows, P, h)
        return window_reverse(self.attention(windows, windows, windows), self.window_size, X.shape[1:3])


class ChannelBlock(MapBlock):
    """Half of a `DaViTBlock`: channels attend to those of their group. (N, rows, columns, h) to the same."""

    def __init__(self, num_hiddens, num_groups, mlp_num_hiddens, dropout=0.0, *, drop_path=0.0):
        attention = ChannelAttention(num_hiddens, num_groups, dropout)
        super().__init__(attention, num_hiddens, mlp_num_hiddens, dropout, drop_path, LocalPosition)

    def attend(self, X):
        """All patches in a row."""
        return self.attention(X.flatten(1, 2)).unflatten(1, X.shape[1:3])


class DaViTBlock(nn.Sequential):
    """A `SpatialBlock` for what is near, then a `ChannelBlock` for the whole picture.

    Args:
        num_hiddens: h.
        num_heads: H of the attention in windows, and the number of groups of channels.
        window_size: M, patches along a side of a window.
        mlp_num_hiddens: size of the hidden layer of the feed-forward networks.
        dropout: probability of dropping attention weights, and elements of what each sublayer adds, in training.
        drop_path: probability of dropping a whole sublayer of an example in training.

    Source: Ding et al. 2022, section 3; the convolutions are those of the authors' code.
    """

    def __init__(self, num_hiddens, num_heads, window_size, mlp_num_hiddens, dropout=0.0, *, drop_path=0.0):
        super().__init__(
            SpatialBlock(num_hiddens, num_heads, window_size, mlp_num_hiddens, dropout, drop_path=drop_path),
            ChannelBlock(num_hiddens, num_heads, mlp_num_hiddens, dropout, drop_path=drop_path),
        )


@dataclass(frozen=True)
class DaViTConfig(StagesConfig):
    """What makes a `DaViT`; fields are those of `StagesConfig`.

    ``num_blks`` counts `DaViTBlock`, each a layer of either kind; ``num_heads`` are heads in windows and groups of
    channels.
    """

    num_blks: tuple = (1, 1)


class DaViT(Stages):
    """An image classifier of several scales with attention in windows and among channels; no window is ever shifted.

    Patches are cut and merged as in `Swin`.

    Args:
        config: a `DaViTConfig`; None: the default.

    Raises:
        ValueError: as `Stages` does.

    Source: Ding et al. 2022; UDL section 12.10.3. The norm after the mean is that of the authors' code.
    """

    def __init__(self, config=None):
        super().__init__(config or DaViTConfig())

    def make_stage(self, num_hiddens, num_heads, drop_paths):
        """Blocks that are all alike."""
        config = self.config
        size = (num_hiddens, num_heads, config.window_size, int(config.mlp_ratio * num_hiddens), config.dropout)
        return [DaViTBlock(*size, drop_path=rate) for rate in drop_paths]

    def forward(self, X):
        """Images (N, channels, height, width) to class scores (N, C)."""
        return self.head(self.norm(self.features(X)[-1].mean((1, 2))))

    @property
    def attention_weights(self):
        """Of the last call, two lists with an entry for each block: (N * windows * H, P, P), (N * G, h / G, h / G)."""
        return [
            [m.attention.attention.attention_weights for m in self.modules() if isinstance(m, kind)]
            for kind in (SpatialBlock, ChannelBlock)
        ]
