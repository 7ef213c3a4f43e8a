"""Swin: patches attend inside of windows, which move from layer to layer and grow from stage to stage.

Maps of patches are (N, rows, columns, h). M is the number of patches along a side of a window, P = M * M those in it.
"""

from dataclasses import dataclass

from ..vision.windows import WindowAttention
from .stages import MapBlock, Stages, StagesConfig


class SwinBlock(MapBlock):
    """Attention in windows, then a feed-forward network, each with the norm before it and a residual connection.

    Args:
        num_hiddens, num_heads, window_size, shift: as in `WindowAttention`.
        mlp_num_hiddens: size of the hidden layer of the feed-forward network.
        dropout: probability of dropping attention weights, and elements of what each sublayer adds, in training.
        drop_path: probability of dropping a whole sublayer of an example in training.

    Source: Liu et al. 2021, equation 3.
    """

    def __init__(self, num_hiddens, num_heads, window_size, mlp_num_hiddens, shift=0, dropout=0.0, *, drop_path=0.0):
        attention = WindowAttention(num_hiddens, num_heads, window_size, shift, dropout)
        super().__init__(attention, num_hiddens, mlp_num_hiddens, dropout, drop_path)


@dataclass(frozen=True)
class SwinConfig(StagesConfig):
    """What makes a `Swin`; fields and defaults are those of `StagesConfig`."""


class Swin(Stages):
    """An image classifier of several scales: windows in turns without and with a shift, merging between the stages.

    There are no position embeddings: the bias of each offset is all that a layer knows of places.

    Args:
        config: a `SwinConfig`; None: the default.

    Raises:
        ValueError: as `Stages` does.

    Source: Liu et al. 2021; UDL section 12.10.3.
    """

    def __init__(self, config=None):
        super().__init__(config or SwinConfig())

    def make_stage(self, num_hiddens, num_heads, drop_paths):
        """Blocks in turns without and with a shift."""
        M, mlp_num_hiddens = self.config.window_size, int(self.config.mlp_ratio * num_hiddens)
        return [
            SwinBlock(num_hiddens, num_heads, M, mlp_num_hiddens, i % 2 * (M // 2), self.config.dropout, drop_path=rate)
            for i, rate in enumerate(drop_paths)
        ]

    def forward(self, X):
        """Images (N, channels, height, width) to class scores (N, C)."""
        return self.head(self.norm(self.features(X)[-1]).mean((1, 2)))

    @property
    def attention_weights(self):
        """Of the last call, a list with (N * windows * H, P, P) for each block."""
        return [m.attention.attention.attention_weights for m in self.modules() if isinstance(m, WindowAttention)]
