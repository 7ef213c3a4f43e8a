"""Recurrent translation: a GRU encoder, a decoder that gets one vector of the source, and one that attends to all.

Recurrent layers take the time first, (S, B, ...), as in D2L; the decoders' states have the batch first.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..attention import AdditiveAttention
from ..masks import as_mask
from .seq2seq import AttentionDecoder, Decoder, Encoder, init_seq2seq
from .tokens import embedded


class Seq2SeqEncoder(Encoder):
    """Embeddings and a GRU. With lengths the final state is that of the last real token, whatever the padding.

    Args:
        vocab_size: V of the source.
        embed_size: features of an embedding.
        num_hiddens: h of the GRU.
        num_layers: layers of the GRU.
        dropout: between its layers, in training.

    Source: D2L section 10.7.2; Cho et al. 2014.
    """

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, dropout=0.0):
        super().__init__()
        self.embedding, self.rnn = _reader(vocab_size, embed_size, num_hiddens, num_layers, dropout)
        self.apply(init_seq2seq)

    def forward(self, X, valid_lens=None):
        """Tokens (B, S), lengths (B,) to outputs (S, B, h), zero at padding, and the final state (layers, B, h)."""
        X = embedded(self.embedding, X).transpose(0, 1)  # (S, B, embed_size)
        if valid_lens is None:
            return self.rnn(X)
        packed = pack_padded_sequence(X, valid_lens.cpu(), enforce_sorted=False)
        outputs, state = self.rnn(packed)
        return pad_packed_sequence(outputs, total_length=len(X))[0], state


class Seq2SeqDecoder(Decoder):
    """A GRU that gets the encoder's final state, as its own first and beside every token. All must go through it.

    Args: as `Seq2SeqEncoder`, V being that of the target.

    Source: D2L section 10.7.3; Cho et al. 2014.
    """

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, dropout=0.0):
        super().__init__()
        size = (vocab_size, embed_size, num_hiddens, num_layers)
        self.embedding, self.rnn = _reader(*size, dropout, context_size=num_hiddens)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.apply(init_seq2seq)

    def init_state(self, enc_all_outputs, *args):
        """(context (B, h), hidden (B, layers, h))."""
        hidden = enc_all_outputs[1]
        return hidden[-1], hidden.transpose(0, 1)

    def forward(self, X, state):
        """Tokens (B, T) to logits (B, T, V) and the next state."""
        context, hidden = state
        X = embedded(self.embedding, X).transpose(0, 1)  # (T, B, embed_size)
        inputs = torch.cat([X, context.expand(len(X), -1, -1)], -1)  # (T, B, embed_size + h)
        outputs, hidden = self.rnn(inputs, hidden.transpose(0, 1).contiguous())
        return self.dense(outputs).transpose(0, 1), (context, hidden.transpose(0, 1))


class Seq2SeqAttentionDecoder(AttentionDecoder):
    """A GRU whose context is made anew for each token: additive attention of its own state to the encoder's outputs.

    Args:
        vocab_size, embed_size, num_hiddens, num_layers, dropout: as `Seq2SeqDecoder`; ``dropout`` is that of the
            attention weights, too.
        attention: a module like `AdditiveAttention`; None: that one.

    Source: D2L section 11.4.2; Bahdanau et al. 2015.
    """

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, dropout=0.0, *, attention=None):
        super().__init__()
        if attention is None:
            attention = AdditiveAttention(num_hiddens, dropout, query_size=num_hiddens, key_size=num_hiddens)
        self.attention = attention
        size = (vocab_size, embed_size, num_hiddens, num_layers)
        self.embedding, self.rnn = _reader(*size, dropout, context_size=num_hiddens)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.apply(init_seq2seq)
        self._weights = []

    def init_state(self, enc_outputs, enc_valid_lens=None):
        """(encoder outputs (B, S, h), hidden (B, layers, h), lengths (B,) or None)."""
        outputs, hidden = enc_outputs
        return outputs.transpose(0, 1), hidden.transpose(0, 1), enc_valid_lens

    def forward(self, X, state):
        """Tokens (B, T) to logits (B, T, V) and the next state, token by token."""
        memory, hidden, valid_lens = state
        hidden = hidden.transpose(0, 1).contiguous()  # (layers, B, h)
        mask = as_mask((len(memory), 1, memory.shape[1]), valid_lens, device=memory.device)  # one for all tokens
        outputs, self._weights = [], []
        for x in embedded(self.embedding, X).unbind(1):  # (B, embed_size)
            query = hidden[-1][:, None]  # (B, 1, h)
            context = self.attention(query, memory, memory, mask=mask)  # (B, 1, h)
            self._weights.append(self.attention.attention_weights if not self.training else None)
            output, hidden = self.rnn(torch.cat([x, context[:, 0]], -1)[None], hidden)
            outputs.append(output)
        logits = self.dense(torch.cat(outputs))  # (T, B, V)
        return logits.transpose(0, 1), (memory, hidden.transpose(0, 1), valid_lens)

    @property
    def attention_weights(self):
        """Of the last call, a list with (B, 1, S) for each token; in training None."""
        return self._weights


def _reader(vocab_size, embed_size, num_hiddens, num_layers, dropout, *, context_size=0):
    """An embedding, and the GRU that reads it, beside each token so many features of a context."""
    between = dropout if num_layers > 1 else 0.0  # torch warns of dropout where no layer follows
    embedding = nn.Embedding(vocab_size, embed_size)
    return embedding, nn.GRU(embed_size + context_size, num_hiddens, num_layers, dropout=between)
