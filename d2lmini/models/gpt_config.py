"""What makes a GPT, and the published ones by name.

They differ in size, in where the norms stand and in how weights begin; a form of today has rotary positions, RMS norms,
no biases and another feed-forward network.
"""

from dataclasses import dataclass, replace

from ..arguments import check_number
from .named_parts import NETWORKS, NORMS, ByName, check_config

_CHOICES = {"norm": NORMS, "ffn": NETWORKS, "positions": ("learned", "rotary", None), "init": ("gpt1", "gpt2", "zero")}
_OPTIONAL = "ffn_num_hiddens", "num_kv_heads", "head_size"


@dataclass(frozen=True)
class GPTConfig:
    """What makes a `GPT`; the defaults are GPT-2's, the smallest.

    Args:
        vocab_size: V.
        max_len: the context: positions that the model knows; with learned positions there are no others.
        num_hiddens: h.
        num_heads: H, a divisor of h unless ``head_size`` is given.
        num_blks: how many blocks, L.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks; None: 4 h.
        dropout: in training, of the embeddings and inside the blocks.
        norm_first: whether norms stand before each sublayer, with one more after the last block (GPT-2), or after
            each residual connection (GPT-1).
        positions: "learned", a vector for each, added to the embeddings; "rotary", queries and keys are turned; None:
            the causal mask alone tells the order.
        norm: "layer" or "rms".
        ffn: the feed-forward network: "gelu", "gelu_tanh" (GPT-2's approximation), "relu", "squared_relu"; or "swiglu"
            or "geglu", which have a gate.
        use_bias: whether linear layers (but the last one) and layer norms have biases.
        qk_norm: whether queries and keys of each head are normed, without learned factors.
        num_kv_heads: G, a divisor of H: heads of keys and values; None: H, each query head has its own.
        head_size: d, features of a head; None: h / H.
        rotary_base: of rotary positions; the larger, the slower the slowest pair of features turns.
        norm_eps: what norms add to a variance; None: torch's own.
        limit_context: whether texts beyond ``max_len`` are refused where positions are not learned, too.
        tie_weights: whether the last layer scores tokens by their embeddings.
        init: how weights begin. "gpt1": normal, of standard deviation 0.02. "gpt2": so too, but the last layer of each
            branch over sqrt(2 L). "zero": normal of 1 / sqrt(inputs), but the last layer of each branch, and of the
            model where it is not tied, zero.

    Raises:
        ValueError: a choice is none of these, a size is below 1, or the base is not above 1.

    Source: Radford et al. 2018 and 2019; Brown et al. 2020; D2L section 11.9.3; UDL section 12.7.
    """

    vocab_size: int = 50257
    max_len: int = 1024
    num_hiddens: int = 768
    num_heads: int = 12
    num_blks: int = 12
    ffn_num_hiddens: int | None = None
    dropout: float = 0.1
    norm_first: bool = True
    positions: str | None = "learned"
    norm: str = "layer"
    ffn: str = "gelu_tanh"
    use_bias: bool = True
    qk_norm: bool = False
    num_kv_heads: int | None = None
    head_size: int | None = None
    rotary_base: float = 10000.0
    norm_eps: float | None = None
    limit_context: bool = False
    tie_weights: bool = True
    init: str = "gpt2"

    def __post_init__(self):
        sizes = ["vocab_size", "max_len", "num_hiddens", "num_heads", "num_blks"]
        sizes += [name for name in _OPTIONAL if getattr(self, name) is not None]
        check_config(self, _CHOICES, sizes)
        check_number("rotary_base", self.rotary_base, 1, above=True)
        if self.norm_eps is not None:
            check_number("norm_eps", self.norm_eps)


_MODERN = GPTConfig(
    positions="rotary", norm="rms", ffn="squared_relu", use_bias=False, qk_norm=True, tie_weights=False, init="zero"
)
LLAMA = GPTConfig(dropout=0.0, positions="rotary", norm="rms", ffn="swiglu", use_bias=False)  # its form, not its sizes
GPT_CONFIGS = ByName(
    {
        "toy": GPTConfig(vocab_size=65, max_len=64, num_hiddens=64, num_heads=4, num_blks=2, dropout=0.0),
        "gpt1": GPTConfig(vocab_size=40478, max_len=512, norm_first=False, init="gpt1"),
        "gpt2": GPTConfig(),
        "gpt2-medium": GPTConfig(num_hiddens=1024, num_heads=16, num_blks=24),
        "gpt2-large": GPTConfig(num_hiddens=1280, num_heads=20, num_blks=36),
        "gpt2-xl": GPTConfig(num_hiddens=1600, num_heads=25, num_blks=48),
        "gpt3": GPTConfig(max_len=2048, num_hiddens=12288, num_heads=96, num_blks=96),
        "modern-toy": replace(_MODERN, vocab_size=65, max_len=64, num_hiddens=64, num_heads=4, num_blks=2, dropout=0.0),
        "modern": _MODERN,  # as wide and deep as GPT-2
        "smollm2-135m": replace(
            LLAMA,
            vocab_size=49152,
            max_len=8192,
            limit_context=True,
            num_hiddens=576,
            num_heads=9,
            num_kv_heads=3,
            num_blks=30,
            ffn_num_hiddens=1536,
            rotary_base=100000.0,
            norm_eps=1e-5,
        ),
    }
)
