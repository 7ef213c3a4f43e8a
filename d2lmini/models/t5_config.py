"""What makes a T5, and the published ones by name.

Version 1.1 came after the paper: a gated network, a last layer of its own, no other way to pretrain but spans. Its
largest is the text encoder of Imagen.
"""

from dataclasses import dataclass, replace

from .named_parts import ByName, check_config

_CHOICES = {"ffn": ("relu", "geglu")}
_SIZES = "vocab_size", "num_hiddens", "num_heads", "head_size", "num_blks", "ffn_num_hiddens"


@dataclass(frozen=True)
class T5Config:
    """What makes a `T5`; the defaults are those of the smallest published one.

    Args:
        vocab_size: V, of inputs and outputs together. The published ones have 32,000 pieces of words, 100 sentinels,
            and 28 that are never used, which make a multiple of 128.
        num_hiddens: h.
        num_heads: H.
        head_size: d, features of each head; H * d need not be h.
        num_blks: how many blocks the encoder has, and the decoder.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks.
        ffn: the feed-forward network: "relu", or "geglu", which has a gate (version 1.1).
        tie_weights: whether the last layer scores tokens by their embeddings, over sqrt(h); else it has weights of its
            own, and nothing is divided (version 1.1).
        dropout: in training, of what goes into and comes out of both stacks, and inside the blocks.
        num_buckets, max_distance: of relative positions, as in `RelativePositionBias`.
        pad: id of the padding token: never looked at in inputs, and left out of the loss.
        start: id of the decoder's first token.
        eos: id of the token that ends a text.

    Raises:
        ValueError: a choice is none of these, a size is below 1, or an id is not below V.

    Source: Raffel et al. 2020, sections 2.1 and 3.1.1; Shazeer 2020 for the gate.
    """

    vocab_size: int = 32128
    num_hiddens: int = 512
    num_heads: int = 8
    head_size: int = 64
    num_blks: int = 6
    ffn_num_hiddens: int = 2048
    ffn: str = "relu"
    tie_weights: bool = True
    dropout: float = 0.1
    num_buckets: int = 32
    max_distance: int = 128
    pad: int = 0
    start: int = 0
    eos: int = 1

    def __post_init__(self):
        check_config(self, _CHOICES, _SIZES)
        for name in ("pad", "start", "eos"):
            if not 0 <= getattr(self, name) < self.vocab_size:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 to {self.vocab_size - 1} (vocab_size)")


def _sizes(num_hiddens, ffn_num_hiddens, num_heads, num_blks, **others):
    return T5Config(
        num_hiddens=num_hiddens, ffn_num_hiddens=ffn_num_hiddens, num_heads=num_heads, num_blks=num_blks, **others
    )


_NEW = {"ffn": "geglu", "tie_weights": False}
T5_CONFIGS = ByName(
    {
        "toy": replace(
            _sizes(48, 128, 4, 2), vocab_size=128, head_size=16, dropout=0.0, num_buckets=16, max_distance=32
        ),
        "small": _sizes(512, 2048, 8, 6),
        "base": _sizes(768, 3072, 12, 12),
        "large": _sizes(1024, 4096, 16, 24),
        "3b": _sizes(1024, 16384, 32, 24, head_size=128),
        "11b": _sizes(1024, 65536, 128, 24, head_size=128),  # heads and networks that are far wider than a token
        "v1.1-small": _sizes(512, 1024, 6, 8, **_NEW),
        "v1.1-base": _sizes(768, 2048, 12, 12, **_NEW),
        "v1.1-large": _sizes(1024, 2816, 16, 24, **_NEW),
        "v1.1-xl": _sizes(2048, 5120, 32, 24, **_NEW),
        "v1.1-xxl": _sizes(4096, 10240, 64, 24, **_NEW),
    }
)
