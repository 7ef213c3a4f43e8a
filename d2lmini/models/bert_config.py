"""What makes a BERT, and the published ones by name.

They differ in size; ALBERT's has the same weights in all blocks, and smaller embeddings. A form of today has, as
ModernBERT, rotary positions and norms before each sublayer; and, as `GPTConfig`'s, what that one lacks.
"""

from dataclasses import dataclass

from .named_parts import ACTIVATIONS, NORMS, ByName, check_config

_CHOICES = {
    "activation": ACTIVATIONS,
    "norm": NORMS,
    "positions": ("learned", "rotary"),
    "init": ("bert", "zero"),
}


@dataclass(frozen=True)
class BERTConfig:
    """What makes a `BERT`; the defaults are those of the published base model.

    Args:
        vocab_size: V.
        max_len: positions that the model knows; there are no others.
        num_hiddens: h.
        num_heads: H, a divisor of h.
        num_blks: how many blocks, L.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks; None: 4 h.
        num_segments: how many kinds of segments, as a question and a passage.
        dropout: in training, of the embeddings and inside the blocks.
        activation: "gelu", "gelu_tanh" (ALBERT's approximation), "relu" or "squared_relu".
        use_pooler: whether there is a layer on top of the class token, for what a whole text means.
        emb_size: None: h; else embeddings are of this size, and a matrix takes them to h (ALBERT).
        share_blks: whether all blocks have the same weights (ALBERT).
        positions: "learned", a vector for each, added to the embeddings; "rotary", queries and keys are turned.
        norm_first: whether norms stand before each sublayer, with one more after the last block; else after each
            residual connection.
        norm: "layer" or "rms".
        use_bias: whether the linear layers of attention have biases.
        qk_norm: whether queries and keys of each head are normed, without learned factors.
        init: how weights begin. "bert": normal of 0.02, cut at twice that. "zero": as in `GPTConfig`.

    Raises:
        ValueError: a choice is none of these, or a size is below 1.

    Source: Devlin et al. 2019, section 3; Lan et al. 2020, section 3.1, for ``emb_size`` and ``share_blks``; Warner et
    al. 2024 (ModernBERT) for rotary positions, norms first and no biases; D2L section 11.9.1; UDL section 12.6.
    """

    vocab_size: int = 30522
    max_len: int = 512
    num_hiddens: int = 768
    num_heads: int = 12
    num_blks: int = 12
    ffn_num_hiddens: int | None = None
    num_segments: int = 2
    dropout: float = 0.1
    activation: str = "gelu"
    use_pooler: bool = True
    emb_size: int | None = None
    share_blks: bool = False
    positions: str = "learned"
    norm_first: bool = False
    norm: str = "layer"
    use_bias: bool = True
    qk_norm: bool = False
    init: str = "bert"

    def __post_init__(self):
        sizes = ["vocab_size", "max_len", "num_hiddens", "num_heads", "num_blks", "num_segments"]
        sizes += [name for name in ("ffn_num_hiddens", "emb_size") if getattr(self, name) is not None]
        check_config(self, _CHOICES, sizes)


MODERN = {
    "activation": "squared_relu",
    "positions": "rotary",
    "norm_first": True,
    "norm": "rms",
    "use_bias": False,
    "qk_norm": True,
    "init": "zero",
}  # the options of a form of today; ModernBERT has another activation, norm and init, and no `qk_norm`
BERT_CONFIGS = ByName(
    {
        "toy": BERTConfig(vocab_size=101, max_len=64, num_hiddens=64, num_heads=4, num_blks=2, dropout=0.0),
        "modern-toy": BERTConfig(
            vocab_size=101, max_len=64, num_hiddens=64, num_heads=4, num_blks=2, dropout=0.0, **MODERN
        ),
        # heads of 64 features, as the published sizes have them (Turc et al. 2019)
        "tiny": BERTConfig(num_hiddens=128, num_heads=2, num_blks=2),
        "mini": BERTConfig(num_hiddens=256, num_heads=4, num_blks=4),
        "small": BERTConfig(num_hiddens=512, num_heads=8, num_blks=4),
        "medium": BERTConfig(num_hiddens=512, num_heads=8, num_blks=8),
        "base": BERTConfig(),
        "large": BERTConfig(num_hiddens=1024, num_heads=16, num_blks=24),
        "minilm-l6": BERTConfig(num_hiddens=384, num_heads=12, num_blks=6),  # Wang et al. 2020: of 32 features
        "albert-base": BERTConfig(vocab_size=30000, activation="gelu_tanh", emb_size=128, share_blks=True),
    }
)
