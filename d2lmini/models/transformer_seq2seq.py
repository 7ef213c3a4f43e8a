"""The Transformer of encoder and decoder: translation without recurrence."""

import math
from dataclasses import dataclass

from torch import nn

from ..masks import as_mask
from ..position import PositionalEncoding
from ..transformer import DecoderState, TransformerDecoderBlock, TransformerEncoderBlock
from .seq2seq import AttentionDecoder, Encoder, Seq2Seq
from .tokens import embedded


class TransformerEncoder(Encoder):
    """Embeddings, positions, and a stack of `TransformerEncoderBlock`.

    Args:
        vocab_size: V of the source.
        num_hiddens: h.
        ffn_num_hiddens: size of the hidden layer of the feed-forward networks.
        num_heads: H.
        num_blks: how many blocks.
        dropout: in training, of the embeddings and inside the blocks.
        use_bias: whether the projections of attention have a bias.
        norm_first: whether blocks normalise before each sublayer; then there is a norm after the last block too.

    Source: D2L section 11.7.4; UDL section 12.4; Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        vocab_size,
        num_hiddens,
        ffn_num_hiddens,
        num_heads,
        num_blks,
        dropout=0.0,
        use_bias=False,
        *,
        norm_first=False,
    ):
        super().__init__()
        size = (num_hiddens, ffn_num_hiddens, num_heads, dropout)
        options = {"use_bias": use_bias, "norm_first": norm_first}
        self.num_hiddens, self.embedding = num_hiddens, nn.Embedding(vocab_size, num_hiddens)
        self.pos_encoding = PositionalEncoding(num_hiddens, dropout)
        self.blks = nn.ModuleList(TransformerEncoderBlock(*size, **options) for _ in range(num_blks))
        self.norm = nn.LayerNorm(num_hiddens) if norm_first else nn.Identity()

    def forward(self, X, valid_lens=None):
        """Tokens (B, S) and lengths (B,) to (B, S, h)."""
        # sines are of size one, and so is this in a `Transformer`, whose embeddings begin at 1/sqrt(h)
        X = self.pos_encoding(math.sqrt(self.num_hiddens) * embedded(self.embedding, X))
        mask = as_mask((*X.shape[:2], X.shape[1]), valid_lens, None, device=X.device)  # one for all blocks
        for blk in self.blks:
            X = blk(X, mask=mask)
        return self.norm(X)

    @property
    def attention_weights(self):
        """Of the last call, a list with (B * H, S, S) for each block."""
        return [blk.attention.attention.attention_weights for blk in self.blks]


class TransformerDecoder(AttentionDecoder):
    """Embeddings, positions, a stack of `TransformerDecoderBlock`, and logits of the next token.

    One code path serves whole targets and single tokens: the state says at which position a token stands, and the
    blocks are causal in training and in evaluation.

    Args: those of `TransformerEncoder`, V being that of the target.

    Source: D2L section 11.7.5; UDL sections 12.7.2 and 12.8; Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        vocab_size,
        num_hiddens,
        ffn_num_hiddens,
        num_heads,
        num_blks,
        dropout=0.0,
        use_bias=False,
        *,
        norm_first=False,
    ):
        super().__init__()
        size = (num_hiddens, ffn_num_hiddens, num_heads, dropout)
        options = {"use_bias": use_bias, "norm_first": norm_first}
        self.num_hiddens, self.embedding = num_hiddens, nn.Embedding(vocab_size, num_hiddens)
        self.pos_encoding = PositionalEncoding(num_hiddens, dropout)
        self.blks = nn.ModuleList(TransformerDecoderBlock(*size, i, **options) for i in range(num_blks))
        self.norm = nn.LayerNorm(num_hiddens) if norm_first else nn.Identity()
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def init_state(self, enc_outputs, enc_valid_lens=None):
        """A `DecoderState` from the encoder's outputs (B, S, h) and lengths (B,), which every block has projected."""
        state = DecoderState.start(enc_outputs, enc_valid_lens, len(self.blks))
        return state._replace(caches=tuple(blk.start(state.memory) for blk in self.blks))

    def forward(self, X, state):
        """Tokens (B, T) that continue those in the state to logits (B, T, V) and the next state."""
        X = self.pos_encoding(math.sqrt(self.num_hiddens) * embedded(self.embedding, X), offset=state.length)
        for blk in self.blks:
            X, state = blk(X, state)
        return self.dense(self.norm(X)), state

    @property
    def attention_weights(self):
        """Of the last call: two lists, of self-attention (B * H, T, t) and cross-attention (B * H, T, S), by block."""
        return [
            [blk.attention1.attention.attention_weights for blk in self.blks],
            [blk.attention2.attention.attention_weights for blk in self.blks],
        ]


@dataclass(frozen=True)
class TransformerConfig:
    """What makes a `Transformer`; the names are those of `TransformerEncoder`.

    The default is Transformer-Tiny of Wu et al. 2021, with the norm first, which trains more evenly.
    """

    vocab_size: int
    num_hiddens: int = 128
    ffn_num_hiddens: int = 256
    num_heads: int = 4
    num_blks: int = 4
    dropout: float = 0.3
    norm_first: bool = True
    label_smoothing: float = 0.1
    lr: float = 3e-3  # the peak, after warm-up


class Transformer(Seq2Seq):
    """Encoder and decoder of one size over one joint vocabulary: one matrix is both embeddings and the logits' weights.

    Args:
        config: a `TransformerConfig`.
        pad: id of the padding token.

    Source: Vaswani et al. 2017, section 3; Press and Wolf 2017 for tying.
    """

    def __init__(self, config, pad=0):
        size = (config.vocab_size, config.num_hiddens, config.ffn_num_hiddens, config.num_heads, config.num_blks)
        options = {"dropout": config.dropout, "use_bias": True, "norm_first": config.norm_first}
        encoder, decoder = TransformerEncoder(*size, **options), TransformerDecoder(*size, **options)
        super().__init__(encoder, decoder, pad, config.lr, label_smoothing=config.label_smoothing)
        self.config = config
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.normal_(encoder.embedding.weight, std=config.num_hiddens**-0.5)
        decoder.embedding = encoder.embedding
        decoder.dense.weight = encoder.embedding.weight
