"""The blocks of the Transformer: feed-forward network, residual connection with layer norm, encoder, decoder.

Blocks take (B, T, h) to (B, T, h), h being ``num_hiddens``. As published the norm comes after each residual
connection. With ``norm_first`` it comes before each sublayer, inside the branch: deep stacks train more easily, and
want one more LayerNorm at their end.
"""

from typing import NamedTuple

import torch
from torch import nn

from .cache import KeyValueCache
from .inputs import without_idle
from .masks import padding_mask
from .multi_head import MultiHeadAttention


class PositionWiseFFN(nn.Module):
    """A network of one hidden layer, applied to each position by itself.

    Args:
        ffn_num_hiddens: size of the hidden layer.
        ffn_num_outputs: features of the output.
        num_inputs: features of the input; None: taken from the first call (until then ``dense1`` has no size).
        activation: makes the module between the layers.
        bias: whether the layers have biases.

    Source: D2L section 11.7.2; UDL section 12.4; Vaswani et al. 2017, equation 2.
    """

    def __init__(self, ffn_num_hiddens, ffn_num_outputs, *, num_inputs=None, activation=nn.ReLU, bias=True):
        super().__init__()
        if num_inputs is None:
            self.dense1 = nn.LazyLinear(ffn_num_hiddens, bias=bias)
        else:
            self.dense1 = nn.Linear(num_inputs, ffn_num_hiddens, bias=bias)
        self.activation = activation()
        self.dense2 = nn.Linear(ffn_num_hiddens, ffn_num_outputs, bias=bias)

    def forward(self, X):
        """(B, T, num_inputs) to (B, T, ffn_num_outputs)."""
        return self.dense2(self.activation(self.dense1(X)))


class GatedFFN(PositionWiseFFN):
    """A feed-forward network with a gate: dense2(activation(gate(X)) * dense1(X)); with SiLU it is called SwiGLU.

    The arguments are those of `PositionWiseFFN`, and ``num_inputs`` is needed. It has half as many parameters again at
    the same ``ffn_num_hiddens``.

    Source: Shazeer 2020, equation 6.
    """

    def __init__(self, ffn_num_hiddens, ffn_num_outputs, *, num_inputs, activation=nn.SiLU, bias=True):
        super().__init__(ffn_num_hiddens, ffn_num_outputs, num_inputs=num_inputs, activation=activation, bias=bias)
        self.gate = nn.Linear(num_inputs, ffn_num_hiddens, bias=bias)

    def forward(self, X):
        """(B, T, num_inputs) to (B, T, ffn_num_outputs)."""
        return self.dense2(self.activation(self.gate(X)) * self.dense1(X))


class SquaredReLU(nn.Module):
    """max(x, 0) squared. Source: So et al. 2021 (Primer), section 4."""

    def forward(self, X):
        return X.relu().square()


class AddNorm(nn.Module):
    """LayerNorm(X + dropout(Y)): a residual connection, then layer normalisation.

    Args:
        norm_shape: the last dimensions, over which is normalised; an integer for one.
        dropout: probability of dropping an element of Y in training.
        norm: what makes the norm of ``norm_shape``.

    Source: D2L section 11.7.3; UDL section 12.4; Ba et al. 2016.
    """

    def __init__(self, norm_shape, dropout=0.0, *, norm=nn.LayerNorm):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ln = norm(norm_shape)

    def forward(self, X, Y):
        """X and Y of one shape, the last dimensions being norm_shape; returns that shape.

        Raises:
            ValueError: the shapes differ.
        """
        if X.shape != Y.shape:
            raise ValueError(f"X has shape {tuple(X.shape)} but Y has {tuple(Y.shape)}: a sum needs the same")
        return self.ln(self.add(X, Y))

    def add(self, X, Y):
        """The residual connection alone: X + dropout(Y)."""
        return X + (Y if self.dropout is None else self.dropout(Y))


class TransformerEncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network, each with a residual connection and layer normalisation.

    With ``causal`` it is also the block of a decoder without encoder, as in GPT.

    Args:
        num_hiddens: h, features of every token.
        ffn_num_hiddens: size of the hidden layer of the feed-forward network.
        num_heads: H.
        dropout: probability of dropping attention weights, and elements of what each sublayer adds, in training.
        use_bias: whether the projections of attention have a bias.
        norm_first: whether to normalise before each sublayer; else after each residual connection.
        activation: makes the module between the layers of the feed-forward network.
        norm: what makes the two norms, of a size; ``nn.RMSNorm`` takes no mean.
        ffn: a module in place of the feed-forward network, such as a `GatedFFN`; ``activation`` is then not used.
        qk_norm, head_size, scale, num_kv_heads: as in `MultiHeadAttention`.

    Source: D2L section 11.7.4; UDL section 12.4; Xiong et al. 2020 for ``norm_first``.
    """

    def __init__(
        self,
        num_hiddens,
        ffn_num_hiddens,
        num_heads,
        dropout=0.0,
        use_bias=False,
        *,
        norm_first=False,
        activation=nn.ReLU,
        norm=nn.LayerNorm,
        ffn=None,
        qk_norm=None,
        head_size=None,
        scale=None,
        num_kv_heads=None,
    ):
        super().__init__()
        self.norm_first = norm_first
        heads = {"qk_norm": qk_norm, "head_size": head_size, "scale": scale, "num_kv_heads": num_kv_heads}
        self.attention = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias, **heads)
        self.addnorm1 = AddNorm(num_hiddens, dropout, norm=norm)
        self.ffn = ffn or PositionWiseFFN(ffn_num_hiddens, num_hiddens, num_inputs=num_hiddens, activation=activation)
        self.addnorm2 = AddNorm(num_hiddens, dropout, norm=norm)

    def forward(self, X, valid_lens=None, *, mask=None, causal=False, score_bias=None, rotary=None):
        """X (B, T, h) to (B, T, h); the other arguments and errors are those of `MultiHeadAttention`."""
        options = {"mask": mask, "causal": causal, "score_bias": score_bias, "rotary": rotary}
        if self.norm_first:
            Q = self.addnorm1.ln(X)
            X = self.addnorm1.add(X, self.attention(Q, Q, Q, valid_lens, **options))
            return self.addnorm2.add(X, self.ffn(self.addnorm2.ln(X)))
        X = self.addnorm1(X, self.attention(X, X, X, valid_lens, **options))
        return self.addnorm2(X, self.ffn(X))

    def extend(self, X, cache, valid_lens=None, *, mask=None, causal=False, score_bias=None, rotary=None):
        """As `forward`, of X (B, T, h) that follows what is in a `KeyValueCache`: (B, T, h), and the grown cache."""
        options = {"mask": mask, "causal": causal, "score_bias": score_bias, "rotary": rotary}
        if self.norm_first:
            Q = self.addnorm1.ln(X)
            Y, cache = self.attention.extend(Q, Q, Q, cache, valid_lens, **options)
            X = self.addnorm1.add(X, Y)
            return self.addnorm2.add(X, self.ffn(self.addnorm2.ln(X))), cache
        Y, cache = self.attention.extend(X, X, X, cache, valid_lens, **options)
        X = self.addnorm1(X, Y)
        return self.addnorm2(X, self.ffn(X)), cache


class BlockCache(NamedTuple):
    """What one decoder block has projected: its own earlier positions, (B, H, t, d), and the memory, (B, H, S, d)."""

    self_attention: KeyValueCache
    cross_attention: KeyValueCache


class DecoderState(NamedTuple):
    """All that a decoder carries from token to token. Nothing changes one: every block returns a new one.

    The three parts are those of D2L's list ``[enc_outputs, enc_valid_lens, [None] * num_blks]``, which blocks take in
    its place. ``memory``, (B, S, h), is the encoder's output and ``memory_mask``, (B, 1, S), says what of it counts;
    None: all. ``caches`` has a `BlockCache` for each block, None before its first call.
    """

    memory: torch.Tensor
    memory_mask: torch.Tensor | None
    caches: tuple[BlockCache | None, ...]

    @classmethod
    def start(cls, memory, valid_lens, num_blks):
        """The state before the first token; ``valid_lens`` is None or integers (B,), checked against S."""
        mask = None
        if valid_lens is not None:
            mask = padding_mask(valid_lens, memory.shape[1])
            _, memory = without_idle(mask, None, memory)
        return cls(memory, mask, (None,) * num_blks)

    @property
    def length(self):
        """How many tokens were decoded: the position of the next one."""
        return 0 if self.caches[0] is None else self.caches[0].self_attention.length


class TransformerDecoderBlock(nn.Module):
    """Causal self-attention, attention to the memory, then the feed-forward network, each with residual and norm.

    It takes a whole sequence, a token, or any number of tokens that continue those in the state: the result is the
    same, in training and in evaluation, because a token attends to itself and to those before it and to no other.

    Args:
        num_hiddens: h, features of every token, the memory's too.
        ffn_num_hiddens: size of the hidden layer of the feed-forward network.
        num_heads: H.
        dropout: probability of dropping attention weights, and elements of what each sublayer adds, in training.
        i: the place of this block in ``state.caches``.
        use_bias, norm_first, activation, norm, ffn: as in `TransformerEncoderBlock`.
        head_size, scale: of both attentions, as in `MultiHeadAttention`.

    Source: D2L section 11.7.5; UDL sections 12.7.2 and 12.8; Vaswani et al. 2017, section 3.1.
    """

    def __init__(
        self,
        num_hiddens,
        ffn_num_hiddens,
        num_heads,
        dropout=0.0,
        i=0,
        *,
        use_bias=False,
        norm_first=False,
        activation=nn.ReLU,
        norm=nn.LayerNorm,
        ffn=None,
        head_size=None,
        scale=None,
    ):
        super().__init__()
        self.i, self.norm_first = i, norm_first
        heads = {"head_size": head_size, "scale": scale}
        self.attention1 = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias, **heads)
        self.addnorm1 = AddNorm(num_hiddens, dropout, norm=norm)
        self.attention2 = MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias, **heads)
        self.addnorm2 = AddNorm(num_hiddens, dropout, norm=norm)
        self.ffn = ffn or PositionWiseFFN(ffn_num_hiddens, num_hiddens, num_inputs=num_hiddens, activation=activation)
        self.addnorm3 = AddNorm(num_hiddens, dropout, norm=norm)

    def start(self, memory):
        """The `BlockCache` before the first token: the memory (B, S, h) projected, once for all tokens."""
        return BlockCache(self.attention1.empty_cache(len(memory)), self.attention2.project(memory, memory))

    def forward(self, X, state, *, score_bias=None, rotary=None):
        """Decodes T tokens that follow those in the state.

        Args:
            X: (B, T, h).
            state: a `DecoderState`, or D2L's list; not changed.
            score_bias, rotary: of the self-attention, as in `MultiHeadAttention`.

        Returns:
            Output (B, T, h), and the `DecoderState` with this block's cache grown by T.

        Raises:
            ValueError: shapes do not fit, or the state has no place for this block.
        """
        memory, memory_mask, caches = state
        if self.i >= len(caches):
            raise ValueError(f"the state has {len(caches)} caches but this is block {self.i}: was it made for a model?")
        if memory_mask is not None and memory_mask.dtype != torch.bool:  # D2L's enc_valid_lens
            memory, memory_mask, _ = DecoderState.start(memory, memory_mask, 0)
        own, fixed = caches[self.i] or self.start(memory)
        options = {"causal": True, "score_bias": score_bias, "rotary": rotary}
        if self.norm_first:
            Q = self.addnorm1.ln(X)
            Y, own = self.attention1.extend(Q, Q, Q, own, **options)
            X = self.addnorm1.add(X, Y)
            Y, _ = self.attention2.extend(self.addnorm2.ln(X), None, None, fixed, mask=memory_mask)
            X = self.addnorm2.add(X, Y)
            X = self.addnorm3.add(X, self.ffn(self.addnorm3.ln(X)))
        else:
            Y, own = self.attention1.extend(X, X, X, own, **options)
            X = self.addnorm1(X, Y)
            Y, _ = self.attention2.extend(X, None, None, fixed, mask=memory_mask)
            X = self.addnorm2(X, Y)
            X = self.addnorm3(X, self.ffn(X))

        caches = (*caches[: self.i], BlockCache(own, fixed), *caches[self.i + 1 :])
        return X, DecoderState(memory, memory_mask, caches)
