"""The vision Transformer: a picture is a sequence of patches, and an encoder reads it."""

import torch
from torch import nn
from torch.nn import functional as F

from ..multi_head import MultiHeadAttention
from ..training import Classifier
from ..transformer import PositionWiseFFN
from ..vision.grid_position import GridRotary, resize_positions, sinusoidal_2d
from ..vision.patches import PatchEmbedding, patch_grid
from ..vision.stochastic_depth import DropPath

POOLINGS = ("class", "mean")
POSITIONS = ("learned", "sinusoidal", "rotary")


class ViTMLP(PositionWiseFFN):
    """The feed-forward network of a block: a `PositionWiseFFN` with GELU, and dropout after each of its layers.

    Args:
        mlp_num_hiddens: size of the hidden layer.
        mlp_num_outputs: features of the output.
        dropout: probability of dropping an element in training.
        num_inputs: features of the input; None: taken from the first call.

    Source: D2L section 11.8.3; Dosovitskiy et al. 2021, equation 3.
    """

    def __init__(self, mlp_num_hiddens, mlp_num_outputs, dropout=0.5, *, num_inputs=None):
        super().__init__(mlp_num_hiddens, mlp_num_outputs, num_inputs=num_inputs, activation=nn.GELU)
        self.dropout = nn.Dropout(dropout)

    def forward(self, X):
        """(..., num_inputs) to (..., mlp_num_outputs)."""
        hidden = self.dropout(self.activation(self.dense1(X)))  # (..., mlp_num_hiddens)
        return self.dropout(self.dense2(hidden))


class ViTBlock(nn.Module):
    """Self-attention, then the feed-forward network, each on a branch that begins with a LayerNorm.

    Args:
        num_hiddens: h.
        norm_shape: what is normalised over: h.
        mlp_num_hiddens: size of the hidden layer of the feed-forward network.
        num_heads: H.
        dropout: probability of dropping attention weights, and elements in the feed-forward network, in training.
        use_bias: whether the projections of attention have a bias.
        drop_path: probability of leaving out a branch of an example in training (`DropPath`).

    Source: D2L section 11.8.3; UDL section 12.10.2; Dosovitskiy et al. 2021, equations 2 and 3.
    """

    def __init__(self, num_hiddens, norm_shape, mlp_num_hiddens, num_heads, dropout, use_bias=False, *, drop_path=0.0):
        super().__init__()
        attention = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias)
        mlp = ViTMLP(mlp_num_hiddens, num_hiddens, dropout, num_inputs=num_hiddens)
        self.ln1, self.attention = nn.LayerNorm(norm_shape), attention
        self.ln2, self.mlp = nn.LayerNorm(norm_shape), mlp
        self.drop_path = DropPath(drop_path)

    def forward(self, X, valid_lens=None, *, mask=None, score_bias=None, rotary=None):
        """X (N, T, h) to (N, T, h); the other arguments and errors are those of `MultiHeadAttention`."""
        Q = self.ln1(X)
        Y = self.attention(Q, Q, Q, valid_lens, mask=mask, score_bias=score_bias, rotary=rotary)
        X = X + self.drop_path(Y)
        return X + self.drop_path(self.mlp(self.ln2(X)))


class ViT(Classifier):
    """The vision Transformer, with the attributes of D2L's: ``patch_embedding``, ``cls_token``, ``blks``, ``head``, ...

    Tokens are the class token, where there is one, and the patches row by row: T = 1 + rows * columns.

    Two things differ from D2L's class, whose signature it has. Learned positions start with a standard deviation of
    0.02, not 1, beside which the patches would be faint; and no pixels are dropped: patches have to divide the image.

    Args:
        img_size, patch_size: in pixels, an integer or (height, width).
        num_hiddens: h.
        mlp_num_hiddens: size of the hidden layer of the feed-forward networks.
        num_heads: H.
        num_blks: how many blocks.
        emb_dropout, blk_dropout: dropout of the embeddings, and in the blocks.
        lr: learning rate of the SGD that `configure_optimizers` gives.
        use_bias: whether the projections of attention have a bias.
        num_classes: C.
        num_channels: c of the images; None: taken from the first call.
        pooling: what is classified: "class", the output of the class token, or "mean" of the patches, without one.
        positions: "learned" or "sinusoidal", added to the patches, or "rotary", on queries and keys.
        drop_path: `DropPath` of the last block; it grows evenly from 0 at the first, also of a single one.

    Raises:
        ValueError: a choice or a rate is none of these, or the patches do not divide the image.

    Source: D2L section 11.8; UDL section 12.10.2; Dosovitskiy et al. 2021.
    """

    def __init__(
        self,
        img_size,
        patch_size,
        num_hiddens,
        mlp_num_hiddens,
        num_heads,
        num_blks,
        emb_dropout,
        blk_dropout,
        lr=0.1,
        use_bias=False,
        num_classes=10,
        *,
        num_channels=None,
        pooling="class",
        positions="learned",
        drop_path=0.0,
    ):
        super().__init__()
        self.save_hyperparameters()
        for name, value, known in (("pooling", pooling, POOLINGS), ("positions", positions, POSITIONS)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}, expected {' or '.join(map(repr, known))}")
        self.patch_embedding = PatchEmbedding(img_size, patch_size, num_hiddens, num_channels=num_channels)
        self.grid = self.patch_embedding.grid
        self.cls_token = nn.Parameter(torch.zeros(1, 1, num_hiddens)) if pooling == "class" else None
        if positions == "learned":
            num_steps = self.patch_embedding.num_patches + self.num_extra
            self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, num_steps, num_hiddens))
        else:
            self.register_buffer("pos_embedding", None, persistent=False)
        self.rotary = None
        self._lay_out()
        self.dropout = nn.Dropout(emb_dropout)
        size = (num_hiddens, num_hiddens, mlp_num_hiddens, num_heads, blk_dropout, use_bias)
        rates = [drop_path * i / max(1, num_blks - 1) for i in range(num_blks)]
        self.blks = nn.Sequential(*(ViTBlock(*size, drop_path=rate) for rate in rates))
        norm, scores = nn.LayerNorm(num_hiddens), nn.Linear(num_hiddens, num_classes)
        self.head = nn.Sequential(norm, scores)

    @property
    def num_extra(self):
        """Tokens before the patches: 1 with a class token, else 0."""
        return 0 if self.cls_token is None else 1

    def tokens(self, X):
        """Images (N, c, height, width) to what the first block reads, (N, T, h).

        Raises:
            TypeError: the images are not floats.
            ValueError: their channels or their size are not those of the model.
        """
        patches = self.patch_embedding.maps(X)  # (N, rows, columns, h)
        grid = tuple(patches.shape[1:3])
        if grid != self.grid:
            raise ValueError(
                f"the images have {X.shape[2]} x {X.shape[3]} pixels, {grid[0]} x {grid[1]} patches, but the model has "
                f"positions for {self.grid[0]} x {self.grid[1]}: resize the images, or call model.resize"
                f"(({X.shape[2]}, {X.shape[3]}))"
            )
        X = patches.flatten(1, 2)
        if self.cls_token is not None:
            X = torch.cat((self.cls_token.expand(len(X), -1, -1), X), 1)
        return self.dropout(X if self.pos_embedding is None else X + self.pos_embedding)

    def encode(self, X):
        """Images (N, c, height, width) to the output of the last block, (N, T, h), before the norm of ``head``."""
        X = self.tokens(X)
        for blk in self.blks:
            X = blk(X, rotary=self.rotary)
        return X

    def forward(self, X):
        """Images (N, c, height, width), floats, to scores (N, C); raises as `tokens` does."""
        X = self.encode(X)
        return self.head(X.mean(1) if self.cls_token is None else X[:, 0])

    def loss(self, Y_hat, Y, averaged=True):
        """Cross-entropy of scores (N, C) and labels (N,).

        Raises:
            ValueError: a label is none of the C classes (looked at on the CPU alone, where it costs nothing).
        """
        if Y.device.type == "cpu" and Y.numel() and not Y.is_floating_point():
            low, high = Y.aminmax()
            if low < 0 or high >= Y_hat.shape[-1]:
                raise ValueError(
                    f"labels go from {int(low)} to {int(high)}, but the model has {Y_hat.shape[-1]} classes, 0 to "
                    f"{Y_hat.shape[-1] - 1}"
                )
        return super().loss(Y_hat, Y, averaged)

    @torch.no_grad()
    def resize(self, img_size):
        """Makes the model, in place, one for images of another size: learned positions are interpolated.

        They become a new parameter, so that an optimizer has to be made after it.

        Args:
            img_size: in pixels, an integer or (height, width).

        Returns:
            The model.

        Raises:
            ValueError: the patches do not divide the image.

        Source: Dosovitskiy et al. 2021, section 3.2.
        """
        grid = patch_grid(img_size, self.patch_size)
        if isinstance(self.pos_embedding, nn.Parameter):
            self.pos_embedding = nn.Parameter(resize_positions(self.pos_embedding, self.grid, grid))
        self.img_size, self.grid = img_size, grid
        self._lay_out()
        return self

    @property
    def attention_weights(self):
        """Of the last call, a list with (N * H, T, T) for each block."""
        return [blk.attention.attention.attention_weights for blk in self.blks]

    def _lay_out(self):
        """Positions that are not learned, for the grid."""
        device = next(self.parameters()).device
        if self.positions == "sinusoidal":
            table = sinusoidal_2d(self.grid, self.num_hiddens, device=device)
            self.pos_embedding = F.pad(table, (0, 0, self.num_extra, 0))[None]  # (1, T, h)
        elif self.positions == "rotary":
            self.rotary = GridRotary(self.num_hiddens // self.num_heads, self.grid, self.num_extra).to(device)
