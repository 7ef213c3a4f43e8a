"""Swin: patches attend inside of windows, which move from layer to layer and grow from stage to stage.

Maps of patches are (N, rows, columns, h). M is the number of patches along a side of a window, P = M * M those in it.
"""

import torch
from torch import nn

from ..training import Classifier
from ..transformer import PositionWiseFFN
from ..vision.patches import PatchEmbedding, patch_grid
from ..vision.stochastic_depth import DropPath
from ..vision.windows import WindowAttention, check_windows


class SwinBlock(nn.Module):
    """Attention in windows, then a feed-forward network, each with the norm before it and a residual connection.

    Args:
        num_hiddens, num_heads, window_size, shift: as in `WindowAttention`.
        mlp_num_hiddens: size of the hidden layer of the feed-forward network.
        dropout: probability of dropping attention weights, and elements of what each sublayer adds, in training.
        drop_path: probability of dropping a whole sublayer of an example in training.

    Source: Liu et al. 2021, equation 3.
    """

    def __init__(self, num_hiddens, num_heads, window_size, mlp_num_hiddens, shift=0, dropout=0.0, *, drop_path=0.0):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens)
        self.attention = WindowAttention(num_hiddens, num_heads, window_size, shift, dropout)
        self.mlp = PositionWiseFFN(mlp_num_hiddens, num_hiddens, num_inputs=num_hiddens, activation=nn.GELU)
        self.dropout, self.drop_path = nn.Dropout(dropout), DropPath(drop_path)

    def forward(self, X):
        """Maps (N, rows, columns, h) to the same shape."""
        X = X + self.drop_path(self.dropout(self.attention(self.ln1(X))))
        return X + self.drop_path(self.dropout(self.mlp(self.ln2(X))))


class PatchMerging(nn.Module):
    """Four neighbouring patches become one of twice the features: half the rows, half the columns.

    Args:
        num_hiddens: h of the input.

    Source: Liu et al. 2021, section 3.1.
    """

    def __init__(self, num_hiddens):
        super().__init__()
        self.ln = nn.LayerNorm(4 * num_hiddens)
        self.dense = nn.Linear(4 * num_hiddens, 2 * num_hiddens, bias=False)

    def forward(self, X):
        """Maps (N, rows, columns, h) to (N, rows / 2, columns / 2, 2 * h); ValueError where 2 does not divide them."""
        rows, columns = X.shape[1:3]
        if rows % 2 or columns % 2:
            raise ValueError(f"the grid has {rows} x {columns} patches, which cannot be merged two by two")
        X = X.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # (N, rows / 2, 2, columns / 2, 2, h)
        return self.dense(self.ln(X.permute(0, 1, 3, 2, 4, 5).flatten(3)))


class Stages(Classifier):
    """What multi-scale models share: patches, stages of blocks with merging between them, the mean, class scores.

    A subclass makes the blocks: ``make_stage(num_hiddens, num_heads, drop_paths)`` returns a list, one for each rate.

    Args: those of `Swin`.
    """

    def __init__(
        self,
        img_size=28,
        patch_size=2,
        num_hiddens=48,
        num_blks=(2, 2),
        num_heads=(3, 6),
        window_size=7,
        blk_dropout=0.0,
        lr=1e-3,
        num_classes=10,
        *,
        num_channels=1,
        mlp_ratio=4,
        drop_path=0.0,
    ):
        super().__init__()
        if len(num_blks) != len(num_heads):
            raise ValueError(f"num_blks has {len(num_blks)} stages but num_heads has {len(num_heads)}")
        self.save_hyperparameters()
        self.patch_embedding = PatchEmbedding(img_size, patch_size, num_hiddens, num_channels=num_channels)
        self.ln_patches = nn.LayerNorm(num_hiddens)
        self._check_grids()
        rates = torch.linspace(0, drop_path, sum(num_blks)).split(tuple(num_blks))  # deeper blocks drop more
        self.stages = nn.ModuleList()
        for i, (heads, of_stage) in enumerate(zip(num_heads, rates, strict=True)):
            merging = [PatchMerging(num_hiddens * 2 ** (i - 1))] if i else []
            self.stages.append(nn.Sequential(*merging, *self.make_stage(num_hiddens * 2**i, heads, of_stage.tolist())))
        width = num_hiddens * 2 ** (len(num_blks) - 1)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, num_classes))

    def make_stage(self, num_hiddens, num_heads, drop_paths):
        """The blocks of a stage, a list with one for each rate."""
        raise NotImplementedError(f"{type(self).__name__} has no make_stage(num_hiddens, num_heads, drop_paths)")

    def features(self, X):
        """Images (N, channels, height, width) to the maps after each stage, a list of (N, rows, columns, features)."""
        patches = self.ln_patches(self.patch_embedding(X))  # (N, rows * columns, h)
        X, maps = patches.unflatten(1, patch_grid(X.shape[2:], self.patch_size)), []
        for stage in self.stages:
            X = stage(X)
            maps.append(X)
        return maps

    def forward(self, X):
        """Images (N, channels, height, width) to class scores (N, C)."""
        return self.head(self.features(X)[-1].mean((1, 2)))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.05)

    def _check_grids(self):
        rows, columns = self.patch_embedding.grid
        for stage in range(1, len(self.num_blks) + 1):
            if stage > 1:
                if rows % 2 or columns % 2:
                    raise ValueError(
                        f"stage {stage} would merge a grid of {rows} x {columns} patches two by two: "
                        "choose another image or patch size, or fewer stages"
                    )
                rows, columns = rows // 2, columns // 2
            check_windows((rows, columns), self.window_size, f" of stage {stage}")


class Swin(Stages):
    """An image classifier of several scales: windows in turns without and with a shift, merging between the stages.

    The default, for the 28 x 28 pixels of Fashion-MNIST, has 14 x 14 patches in four windows and then 7 x 7 in one.
    There are no position embeddings: the bias of each offset is all that a layer knows of places.

    Args:
        img_size: pixels, an integer or (height, width).
        patch_size: likewise.
        num_hiddens: h of the first stage; each further stage has twice that of the one before.
        num_blks: blocks of each stage.
        num_heads: H of each stage.
        window_size: M, patches along a side of a window, in every stage.
        blk_dropout: probability of dropping, inside of the blocks, in training.
        lr: learning rate of the AdamW that `configure_optimizers` gives.
        num_classes: C.
        num_channels: of the images; None: taken from the first call.
        mlp_ratio: size of the hidden layer of the feed-forward networks, in h of the stage.
        drop_path: probability of dropping a sublayer of the last block in training; those before it drop fewer.

    Raises:
        ValueError: patches do not divide the image, windows or merging the grid of a stage, or H the h of a stage;
            ``num_blks`` and ``num_heads`` have not as many stages.

    Source: Liu et al. 2021; UDL section 12.10.3.
    """

    def make_stage(self, num_hiddens, num_heads, drop_paths):
        M = self.window_size
        return [
            SwinBlock(
                num_hiddens,
                num_heads,
                M,
                self.mlp_ratio * num_hiddens,
                M // 2 if i % 2 else 0,
                self.blk_dropout,
                drop_path=rate,
            )
            for i, rate in enumerate(drop_paths)
        ]

    @property
    def attention_weights(self):
        """Of the last call, a list with (N * windows * H, P, P) for each block."""
        return [m.attention.attention.attention_weights for m in self.modules() if isinstance(m, WindowAttention)]
