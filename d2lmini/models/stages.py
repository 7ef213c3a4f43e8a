"""What models of several scales share: blocks on maps of patches, merging between stages, class scores.

Maps of patches are (N, rows, columns, h).
"""

from dataclasses import dataclass

import torch
from torch import nn

from ..training import Classifier
from ..transformer import PositionWiseFFN
from ..vision.patches import PatchEmbedding
from ..vision.stochastic_depth import DropPath
from ..vision.windows import check_windows


@dataclass(frozen=True)
class StagesConfig:
    """What makes a `Swin` or a `DaViT`.

    The default, for the 28 x 28 pixels of Fashion-MNIST, has 14 x 14 patches in four windows and then 7 x 7 in one.

    Args:
        img_size: in pixels, an integer or (height, width); others work where patches, windows and merging divide them.
        patch_size: likewise.
        num_hiddens: h of the first stage; each further stage has twice that of the one before.
        num_blks: blocks of each stage.
        num_heads: H of each stage.
        window_size: M, patches along a side of a window, in every stage.
        dropout: probability of dropping, inside of the blocks, in training.
        drop_path: probability of dropping a sublayer of the last block in training; those before it drop fewer.
        mlp_ratio: size of the hidden layer of the feed-forward networks, in h of the stage.
        num_channels: of the images; None: taken from the first call.
        num_classes: C.
        lr: learning rate of the AdamW that `configure_optimizers` gives.
    """

    img_size: int | tuple = 28
    patch_size: int | tuple = 2
    num_hiddens: int = 48
    num_blks: tuple = (2, 2)
    num_heads: tuple = (3, 6)
    window_size: int = 7
    dropout: float = 0.0
    drop_path: float = 0.0
    mlp_ratio: float = 4
    num_channels: int | None = 1
    num_classes: int = 10
    lr: float = 1e-3


class MapBlock(nn.Module):
    """Attention among patches, then a feed-forward network, each with the norm before it and a residual connection.

    Args:
        attention: module from maps to maps.
        num_hiddens: h.
        mlp_num_hiddens: size of the hidden layer of the feed-forward network.
        dropout: probability of dropping elements of what each sublayer adds, in training.
        drop_path: probability of dropping a whole sublayer of an example in training.
        position: function of h that makes a module, from maps to maps, which goes before each norm.

    Source: Liu et al. 2021, equation 3; Ding et al. 2022, section 3.
    """

    def __init__(self, attention, num_hiddens, mlp_num_hiddens, dropout=0.0, drop_path=0.0, position=nn.Identity):
        super().__init__()
        self.attention = attention
        self.position1, self.position2 = position(num_hiddens), position(num_hiddens)
        self.ln1, self.ln2 = nn.LayerNorm(num_hiddens), nn.LayerNorm(num_hiddens)
        self.mlp = PositionWiseFFN(mlp_num_hiddens, num_hiddens, num_inputs=num_hiddens, activation=nn.GELU)
        self.dropout, self.drop_path = nn.Dropout(dropout), DropPath(drop_path)

    def forward(self, X):
        """Maps (N, rows, columns, h) to the same shape."""
        X = self.position1(X)
        X = X + self.drop_path(self.dropout(self.attend(self.ln1(X))))
        X = self.position2(X)
        return X + self.drop_path(self.dropout(self.mlp(self.ln2(X))))

    def attend(self, X):
        """What the attention makes of maps; here it takes them as they are."""
        return self.attention(X)


class PatchMerging(nn.Module):
    """Four neighbouring patches become one of twice the features: half the rows, half the columns.

    Args:
        num_hiddens: h of the input.

    Source: Liu et al. 2021, section 3.1; the order of the four, first the left two, is that of the authors' code.
    """

    def __init__(self, num_hiddens):
        super().__init__()
        self.ln = nn.LayerNorm(4 * num_hiddens)
        self.dense = nn.Linear(4 * num_hiddens, 2 * num_hiddens, bias=False)

    def forward(self, X):
        """Maps (N, rows, columns, h) to (N, rows / 2, columns / 2, 2 * h); ValueError where 2 does not divide them."""
        _check_even(X.shape[1:3])
        X = X.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # (N, rows / 2, 2, columns / 2, 2, h)
        return self.dense(self.ln(X.permute(0, 1, 3, 4, 2, 5).flatten(3)))


class Stages(Classifier):
    """Patches, stages of blocks with merging between them, a norm and a linear layer, for a subclass to put together.

    The subclass has ``make_stage(num_hiddens, num_heads, drop_paths)``, which returns a list of blocks, one for each
    rate, and ``forward``.

    Args:
        config: a `StagesConfig`.

    Raises:
        ValueError: patches do not divide the image, windows or merging the grid of a stage, or H the h of a stage;
            ``num_blks`` and ``num_heads`` have not as many stages.
    """

    def __init__(self, config):
        super().__init__()
        self.save_hyperparameters()
        self.lr = config.lr
        h, num_blks, num_heads = config.num_hiddens, config.num_blks, config.num_heads
        if len(num_blks) != len(num_heads):
            raise ValueError(f"num_blks has {len(num_blks)} stages but num_heads has {len(num_heads)}")
        self.patch_embedding = PatchEmbedding(config.img_size, config.patch_size, h, num_channels=config.num_channels)
        self.ln_patches = nn.LayerNorm(h)
        self.merging, self.stages = nn.ModuleList(), nn.ModuleList()
        rates = torch.linspace(0, config.drop_path, sum(num_blks)).split(tuple(num_blks))  # deeper blocks drop more
        grid = self.patch_embedding.grid
        for i, (heads, drop_paths) in enumerate(zip(num_heads, rates, strict=True)):
            if i:
                _check_even(grid, f" of stage {i}")
                self.merging.append(PatchMerging(h))
                h, grid = 2 * h, (grid[0] // 2, grid[1] // 2)
            check_windows(grid, config.window_size, f" of stage {i + 1}")
            self.stages.append(nn.Sequential(*self.make_stage(h, heads, drop_paths.tolist())))
        self.norm, self.head = nn.LayerNorm(h), nn.Linear(h, config.num_classes)

    def features(self, X):
        """Images (N, channels, height, width) to the maps after each stage, a list of (N, rows, columns, features)."""
        X = self.ln_patches(self.patch_embedding.maps(X))
        maps = [self.stages[0](X)]
        for merging, stage in zip(self.merging, self.stages[1:], strict=True):
            maps.append(stage(merging(maps[-1])))
        return maps

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.05)


def _check_even(grid, where=""):
    rows, columns = grid
    if rows % 2 or columns % 2:
        raise ValueError(
            f"the grid{where} has {rows} x {columns} patches, which cannot be merged two by two: choose another image "
            "or patch size, or fewer stages"
        )
