"""T5: an encoder and a decoder that make of every task one of text to text.

It is the Transformer of encoder and decoder with other parts: norms before each sublayer, which take no mean; no
biases; a learned number for each distance in place of positions; scores that are not divided by sqrt(d).
"""

import torch
from torch import nn

from ..decoding import sample
from ..masks import padding_mask
from ..modes import evaluating
from ..multi_head import MultiHeadAttention
from ..position import RelativePositionBias
from ..transformer import DecoderState, TransformerDecoderBlock, TransformerEncoderBlock
from .named_parts import NETWORKS
from .seq2seq import AttentionDecoder, Encoder, Seq2Seq
from .tokens import embedded, padded


class T5Encoder(Encoder):
    """Embeddings and a stack of blocks that look both ways; all blocks share one `RelativePositionBias`.

    Args:
        config: a `T5Config`.

    Source: Raffel et al. 2020, section 2.1.
    """

    def __init__(self, config):
        super().__init__()
        self.pad = config.pad
        self.embedding = nn.Embedding(config.vocab_size, config.num_hiddens)
        self.position = RelativePositionBias(config.num_heads, config.num_buckets, config.max_distance)
        self.dropout = nn.Dropout(config.dropout)
        self.blks = nn.ModuleList(TransformerEncoderBlock(**_block(config)) for _ in range(config.num_blks))
        self.norm = _norm(config.num_hiddens)

    def forward(self, X, valid_lens=None):
        """Tokens (B, S) and lengths (B,), None: all but padding counts, to (B, S, h)."""
        tokens, X = X, self.dropout(embedded(self.embedding, X))
        mask, bias = self.mask(tokens, valid_lens), self.position(X.shape[1])  # (B, 1, S), (1, H, S, S)
        for blk in self.blks:
            X = blk(X, mask=mask, score_bias=bias)
        return self.dropout(self.norm(X))

    def mask(self, X, valid_lens=None):
        """What of tokens (B, S) may be attended to, (B, 1, S): the first ``valid_lens`` (B,); None: all but padding.

        Distances do not change where padding stands on the left, so that it may stand on either side.
        """
        return (self.pad != X)[:, None] if valid_lens is None else padding_mask(valid_lens, X.shape[1])

    @property
    def attention_weights(self):
        """Of the last call, a list with (B * H, S, S) for each block."""
        return [blk.attention.attention.attention_weights for blk in self.blks]


class T5Decoder(AttentionDecoder):
    """Embeddings, a stack of causal blocks that also look at the encoder's outputs, and logits of the next token.

    Self-attention has one `RelativePositionBias` for all blocks; cross-attention has none.

    Args:
        config: a `T5Config`.

    Source: Raffel et al. 2020, section 2.1.
    """

    def __init__(self, config):
        super().__init__()
        h = config.num_hiddens
        self.embedding = nn.Embedding(config.vocab_size, h)
        self.position = RelativePositionBias(
            config.num_heads, config.num_buckets, config.max_distance, bidirectional=False
        )
        self.dropout = nn.Dropout(config.dropout)
        self.blks = nn.ModuleList(TransformerDecoderBlock(i=i, **_block(config)) for i in range(config.num_blks))
        self.norm = _norm(h)
        self.dense = nn.Linear(h, config.vocab_size, bias=False)
        self.scale = h**-0.5 if config.tie_weights else 1.0  # embeddings are of size 1, weights of logits smaller

    def init_state(self, enc_outputs, enc_mask=None):
        """A `DecoderState` from the encoder's outputs (B, S, h), which every block has projected.

        ``enc_mask`` says what of them counts: None: all; lengths (B,); or a boolean (B, 1, S) of `T5Encoder.mask`.
        """
        if enc_mask is not None and enc_mask.dtype != torch.bool:
            enc_mask = padding_mask(enc_mask, enc_outputs.shape[1])
        return DecoderState(enc_outputs, enc_mask, tuple(blk.start(enc_outputs) for blk in self.blks))

    def forward(self, X, state):
        """Tokens (B, T) that continue those in the state to logits (B, T, V) and the next state."""
        X = self.dropout(embedded(self.embedding, X))
        bias = self.position(X.shape[1], state.length + X.shape[1])  # (1, H, T, S)
        for blk in self.blks:
            X, state = blk(X, state, score_bias=bias)
        return self.dense(self.scale * self.dropout(self.norm(X))), state

    @property
    def attention_weights(self):
        """Of the last call: two lists, of self-attention (B * H, T, t) and cross-attention (B * H, T, S), by block."""
        return [
            [blk.attention1.attention.attention_weights for blk in self.blks],
            [blk.attention2.attention.attention_weights for blk in self.blks],
        ]


class T5(Seq2Seq):
    """Text to text: a batch is inputs (B, S), targets shifted by one (B, T), lengths of inputs (B,), targets (B, T).

    Args:
        config: a `T5Config`.
        lr: the highest learning rate of Adafactor, see `configure_optimizers`.

    Raises:
        ValueError: ``num_buckets`` and ``max_distance`` make no buckets.

    Source: D2L section 11.9.2; Raffel et al. 2020.
    """

    def __init__(self, config, lr=1e-2):
        encoder, decoder = T5Encoder(config), T5Decoder(config)
        super().__init__(encoder, decoder, config.pad, lr)
        self.config = config
        decoder.embedding = encoder.embedding
        if config.tie_weights:
            decoder.dense.weight = encoder.embedding.weight
        self._init_weights()

    def _init_weights(self):
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):  # here is the 1/sqrt(d) that scores are not divided by
                module.W_q.weight.data.mul_(self.config.head_size**-0.5)
            elif isinstance(module, RelativePositionBias):
                nn.init.normal_(module.weight, std=self.config.num_hiddens**-0.5)
        nn.init.normal_(self.encoder.embedding.weight)  # tied or not, logits begin with a variance of 1

    def forward(self, enc_X, dec_X, enc_valid_lens=None):
        """Teacher forcing: logits of what follows each token of the target, given the whole input.

        Args:
            enc_X: inputs, integers (B, S) below V.
            dec_X: targets shifted by one, (B, T): see `shift_right`.
            enc_valid_lens: None: all of the inputs but padding counts, on whichever side it stands; or lengths (B,).

        Returns:
            Logits (B, T, V).

        Raises:
            ValueError: a shape or a token does not fit.
        """
        return super().forward(enc_X, dec_X, enc_valid_lens)

    def start(self, enc_X, enc_valid_lens=None):
        """The decoder's state before the first token; the arguments are those of `forward`."""
        return self.decoder.init_state(self.encoder(enc_X, enc_valid_lens), self.encoder.mask(enc_X, enc_valid_lens))

    def shift_right(self, Y):
        """Targets (B, T) as the decoder gets them, (B, T): the start token, then all but the last."""
        return torch.cat([Y.new_full((len(Y), 1), self.config.start), Y[:, :-1]], 1)

    @torch.no_grad()
    def generate(
        self, prompts, max_new_tokens, *, beam_size=1, length_penalty=0.6, num_samples=None, generator=None, **filters
    ):
        """Answers to prompts, in evaluation mode: the likeliest token by token, or with a beam, or drawn.

        Args:
            prompts: integers (B, S), or a list of lists of them, of any lengths from 1; padding inside of one is none.
            max_new_tokens: the most tokens to write, <eos> included.
            beam_size, length_penalty: of `d2lmini.beam_search`; a beam of 1 is greedy.
            num_samples, generator, filters: as `d2lmini.sample` takes them, ``temperature=0.8``, ``top_p=0.95``, ...;
                where there is any of them, tokens are drawn.

        Returns:
            a `d2lmini.decoding.Decoded`, or, where tokens are drawn, a `d2lmini.decoding.Sampled`.

        Raises:
            ValueError: a prompt is empty, or both a beam and drawing are asked for; and as the search does.
        """
        config = self.config
        # the encoder finds padding by its id: a prompt that holds it is the same alone and beside a shorter one
        tokens, _ = padded(prompts, config.pad, self.encoder.embedding.weight.device)
        if num_samples is None and generator is None and not filters:
            options = {"beam_size": beam_size, "length_penalty": length_penalty}
            return self.translate(tokens, None, config.start, config.eos, max_new_tokens, **options)
        if beam_size != 1:
            raise ValueError(f"beam_size is {beam_size}, but the other options draw tokens: expected one or the other")
        with evaluating(self):
            options = {"num_samples": num_samples, "generator": generator, **filters}
            return sample(self.step, self.start(tokens), config.start, max_new_tokens, stop=config.eos, **options)

    def configure_optimizers(self):
        """Adafactor, as T5 was pretrained: a step changes a matrix by at most min(lr, 1/sqrt(step)) of its size.

        Source: Shazeer and Stern 2018; Raffel et al. 2020, section 3.1.2.
        """
        return torch.optim.Adafactor(self.parameters(), lr=self.lr)


def _norm(num_hiddens):
    return nn.RMSNorm(num_hiddens, eps=1e-6)


def _block(config):
    """The arguments of a block."""
    h, wide = config.num_hiddens, config.ffn_num_hiddens
    make, activation = NETWORKS[config.ffn]
    ffn = make(
        wide,
        h,
        num_inputs=h,
        bias=False,
        # what is dropped is the hidden layer, with a gate too: it multiplies
        activation=lambda: nn.Sequential(activation(), nn.Dropout(config.dropout)),
    )
    return {
        "num_hiddens": h,
        "ffn_num_hiddens": wide,
        "num_heads": config.num_heads,
        "dropout": config.dropout,
        "norm_first": True,
        "norm": _norm,
        "ffn": ffn,
        "head_size": config.head_size,
        "scale": 1.0,
    }
