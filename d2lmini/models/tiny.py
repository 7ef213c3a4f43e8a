"""TinyTransformer: a small Transformer whose parts can all be switched off; tiny.js of the page is its twin."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from ..multi_head import MultiHeadAttention
from ..position import alibi, sinusoidal
from ..rotation import RotaryEmbedding
from ..training import Module
from ..training.optimizers import adamw_of
from ..transformer import AddNorm, PositionWiseFFN
from .heads import cross_entropy
from .named_parts import ACTIVATIONS, NORMS, check_config, init_by_inputs
from .tokens import embedded

_CHOICES = {
    "positions": (None, "learned", "sines", "rotary", "alibi"),
    "norm": NORMS,
    "norm_place": (None, "before", "after"),
    "ffn": (None, *ACTIVATIONS),
}


@dataclass(frozen=True)
class TinyConfig:
    """What makes a `TinyTransformer`.

    Args:
        vocab_size: V.
        max_len: positions that are learned, where they are.
        num_hiddens: h.
        num_heads: H, a divisor of h.
        num_blks: how many blocks.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks; None: 4 h.
        causal: whether no token sees what comes after it.
        positions: "learned" or "sines", added to the embeddings (these times sqrt(h) where sines are added); "rotary";
            "alibi"; or None.
        norm: "layer" or "rms".
        norm_place: "before" each sublayer, with one more after the last block; "after" it; or None.
        residual: whether there are residual connections.
        ffn: the activation of the feed-forward networks: "relu", "gelu", "gelu_tanh", "squared_relu"; None: there are
            no such networks.

    Raises:
        ValueError: a choice is none of these, or a size is below 1.
    """

    vocab_size: int
    max_len: int = 64
    num_hiddens: int = 32
    num_heads: int = 4
    num_blks: int = 2
    ffn_num_hiddens: int | None = None
    causal: bool = True
    positions: str | None = "learned"
    norm: str = "layer"
    norm_place: str | None = "before"
    residual: bool = True
    ffn: str | None = "relu"

    def __post_init__(self):
        sizes = ["vocab_size", "max_len", "num_hiddens", "num_heads", "num_blks"]
        sizes += ["ffn_num_hiddens"] * (self.ffn_num_hiddens is not None)
        check_config(self, _CHOICES, sizes)


class TinyBlock(nn.Module):
    """Attention, then a feed-forward network, as `d2lmini.TransformerEncoderBlock`; norms, residual connections and the
    network only where the config wants them.

    Args:
        config: a `TinyConfig`.
    """

    def __init__(self, config):
        super().__init__()
        h, norm = config.num_hiddens, NORMS[config.norm] if config.norm_place else nn.Identity
        self.norm_place, self.residual = config.norm_place, config.residual
        self.attention = MultiHeadAttention(h, config.num_heads)
        self.addnorm1 = AddNorm(h, norm=norm)
        self.ffn = self.addnorm2 = None
        if config.ffn:
            wide, activation = config.ffn_num_hiddens or 4 * h, ACTIVATIONS[config.ffn]
            self.ffn = PositionWiseFFN(wide, h, num_inputs=h, activation=activation)
            self.addnorm2 = AddNorm(h, norm=norm)

    def forward(self, X, **options):
        """X (B, T, h) to (B, T, h); the options are those of `MultiHeadAttention`."""
        X = self._sublayer(self.addnorm1, X, lambda Q: self.attention(Q, Q, Q, **options))
        return X if self.ffn is None else self._sublayer(self.addnorm2, X, self.ffn)

    def _sublayer(self, addnorm, X, branch):
        Y = branch(addnorm.ln(X) if self.norm_place == "before" else X)
        if self.residual:
            Y = addnorm.add(X, Y)
        return addnorm.ln(Y) if self.norm_place == "after" else Y


class TinyTransformer(Module):
    """Blocks over tokens, and scores of a token at each place. Weights begin as those of the page do.

    Args:
        config: a `TinyConfig`.
        lr, weight_decay: of the AdamW that `configure_optimizers` gives.

    Raises:
        ValueError: ``num_heads`` does not divide ``num_hiddens``.
    """

    def __init__(self, config, lr=3e-3, weight_decay=0.01):
        super().__init__()
        self.save_hyperparameters()
        h, positions = config.num_hiddens, config.positions
        self.embedding = nn.Embedding(config.vocab_size, h)
        self.pos_embedding = nn.Embedding(config.max_len, h) if positions == "learned" else None
        self.rotary = RotaryEmbedding(h // config.num_heads, config.max_len) if positions == "rotary" else None
        self.blks = nn.ModuleList(TinyBlock(config) for _ in range(config.num_blks))
        self.norm = NORMS[config.norm](h) if config.norm_place == "before" else nn.Identity()
        self.dense = nn.Linear(h, config.vocab_size, bias=False)
        self._init_weights()

    def _init_weights(self):
        self.apply(init_by_inputs)
        if self.config.residual:
            for blk in self.blks:
                for last in (blk.attention.W_o, *([blk.ffn.dense2] if blk.ffn else [])):
                    last.weight.data.div_(math.sqrt(2 * self.config.num_blks))
        nn.init.normal_(self.dense.weight, std=0.02)  # so the loss begins at log V

    def forward(self, tokens):
        """Integers (B, T) below V to logits (B, T, V).

        Raises:
            TypeError, ValueError: tokens are no such integers; ValueError: there are more than learned positions.
        """
        X, config, T = embedded(self.embedding, tokens), self.config, tokens.shape[1]  # (B, T, h)
        if config.positions == "sines":
            X = X * math.sqrt(config.num_hiddens) + sinusoidal(T, config.num_hiddens, device=X.device)
        if self.pos_embedding is not None:
            if config.max_len < T:
                raise ValueError(f"{T} tokens, but the model has learned {config.max_len} positions (max_len)")
            X = X + self.pos_embedding(torch.arange(T, device=X.device))
        bias = alibi(config.num_heads, T, device=X.device) if config.positions == "alibi" else None
        for blk in self.blks:
            X = blk(X, causal=config.causal, rotary=self.rotary, score_bias=bias)
        return self.dense(self.norm(X))

    def loss(self, Y_hat, Y):
        """Mean cross-entropy in nats of logits (B, T, V) and integers (B, T); -100 where nothing is to be guessed."""
        return cross_entropy(Y_hat, Y)

    def batch_weight(self, batch):
        """How many tokens of a batch are to be guessed."""
        return (batch[-1] >= 0).sum()

    def configure_optimizers(self):
        """AdamW; matrices decay, biases and norms do not."""
        return adamw_of(self, self.lr, self.weight_decay)
