"""D2L's Transformer as a contestant: from its own package where that is installed, else as the book describes it.

`pip install --no-deps d2l` is enough: of what its one file imports, and this environment lacks, the Transformer needs
nothing.
"""

import importlib
import importlib.util
import math
import sys
from unittest.mock import MagicMock

import torch
from torch import nn

# what d2l/torch.py imports, for the sake of plots, data sets and pictures
_IMPORTED = (
    *("torchvision", "torchvision.transforms", "PIL", "PIL.Image", "pandas", "requests", "IPython", "IPython.display"),
    *("matplotlib", "matplotlib.pyplot", "matplotlib_inline", "matplotlib_inline.backend_inline"),
    *("scipy", "scipy.spatial"),
)


def published():
    """The module ``d2l.torch``, with stand-ins for what it imports in vain; None where the package is not installed."""
    if importlib.util.find_spec("d2l") is None:
        return None
    absent = [name for name in _IMPORTED if name not in sys.modules and not _is_there(name)]
    sys.modules.update({name: MagicMock() for name in absent})
    try:
        return importlib.import_module("d2l.torch")
    finally:  # nobody else is to find them
        for name in absent:
            del sys.modules[name]


def _is_there(name):
    top = name.split(".")[0]
    return not isinstance(sys.modules.get(top), MagicMock) and importlib.util.find_spec(top) is not None


def transformer(vocab, h, ffn, heads, blocks, dropout):
    """D2L's Transformer of section 11.7.

    Returns:
        str, whose code it is: "d2l" or "D2L's formulation"; and a module from source (B, S), target (B, T) and lengths
        (B,) to logits (B, T, V).
    """
    d2l = published()
    if d2l is None:
        return "D2L's formulation", PlainTransformer(vocab, h, ffn, heads, blocks, dropout)
    return "d2l", PublishedTransformer(d2l, vocab, h, ffn, heads, blocks, dropout)


class PublishedTransformer(nn.Module):
    """The encoder of the package, and the decoder put together of its parts: the package has no decoder of its own."""

    def __init__(self, d2l, vocab, h, ffn, heads, blocks, dropout):
        super().__init__()
        self.encoder = d2l.TransformerEncoder(vocab, h, ffn, heads, blocks, dropout)
        self.embedding, self.positions = nn.Embedding(vocab, h), d2l.PositionalEncoding(h, dropout)
        self.blks = nn.ModuleList()
        for _ in range(blocks):
            attentions = nn.ModuleList(d2l.MultiHeadAttention(h, heads, dropout) for _ in range(2))
            addnorms = nn.ModuleList(d2l.AddNorm(h, dropout) for _ in range(3))
            parts = {"attentions": attentions, "addnorms": addnorms, "ffn": d2l.PositionWiseFFN(ffn, h)}
            self.blks.append(nn.ModuleDict(parts))
        self.dense = nn.Linear(h, vocab)

    def forward(self, src, tgt, valid_lens):
        memory = self.encoder(src, valid_lens)
        X = self.positions(self.embedding(tgt) * math.sqrt(self.embedding.embedding_dim))
        causal = torch.arange(1, X.shape[1] + 1, device=X.device).repeat(len(X), 1)  # (B, T)
        for blk in self.blks:
            X = blk["addnorms"][0](X, blk["attentions"][0](X, X, X, causal))
            X = blk["addnorms"][1](X, blk["attentions"][1](X, memory, memory, valid_lens))
            X = blk["addnorms"][2](X, blk["ffn"](X))
        return self.dense(X)


# --- the same, plainly: D2L 11.3, 11.5 to 11.7


class PlainAttention(nn.Module):
    """Multi-head attention with its weights: heads as further examples, a softmax over scores of -1e6 where masked."""

    def __init__(self, h, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(h, h, bias=False) for _ in range(4))

    def split(self, X):
        B, n = X.shape[:2]
        return X.reshape(B, n, self.heads, -1).permute(0, 2, 1, 3).reshape(B * self.heads, n, -1)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys, values = self.split(self.W_q(queries)), self.split(self.W_k(keys)), self.split(self.W_v(values))
        valid_lens = valid_lens.repeat_interleave(self.heads, dim=0)  # (B * H,) or (B * H, T)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        valid_lens = valid_lens.repeat_interleave(scores.shape[1]) if valid_lens.dim() == 1 else valid_lens.reshape(-1)
        rows = scores.reshape(-1, scores.shape[-1])
        rows[torch.arange(rows.shape[1], device=rows.device)[None] >= valid_lens[:, None]] = -1e6
        self.weights = rows.view(scores.shape).softmax(-1)  # kept, as in the book
        output = torch.bmm(self.dropout(self.weights), values)
        B, n = output.shape[0] // self.heads, output.shape[1]
        return self.W_o(output.reshape(B, self.heads, n, -1).permute(0, 2, 1, 3).reshape(B, n, -1))


class PlainSublayer(nn.Module):
    """What wraps a sublayer in the book: dropout of its output, the sum, the norm."""

    def __init__(self, h, dropout):
        super().__init__()
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(h)

    def forward(self, X, Y):
        return self.norm(self.dropout(Y) + X)


class PlainBlock(nn.Module):
    """Self-attention, in a decoder attention to the memory, then the feed-forward network."""

    def __init__(self, h, ffn, heads, dropout, decoder):
        super().__init__()
        self.attentions = nn.ModuleList(PlainAttention(h, heads, dropout) for _ in range(1 + decoder))
        self.ffn = nn.Sequential(nn.Linear(h, ffn), nn.ReLU(), nn.Linear(ffn, h))
        self.sublayers = nn.ModuleList(PlainSublayer(h, dropout) for _ in range(2 + decoder))

    def forward(self, X, own_lens, memory=None, memory_lens=None):
        X = self.sublayers[0](X, self.attentions[0](X, X, X, own_lens))
        if memory is not None:
            X = self.sublayers[1](X, self.attentions[1](X, memory, memory, memory_lens))
        return self.sublayers[-1](X, self.ffn(X))


class PlainTransformer(nn.Module):
    """Encoder and decoder of D2L 11.7."""

    def __init__(self, vocab, h, ffn, heads, blocks, dropout):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(vocab, h) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        angles = torch.arange(1000.0)[:, None] / 10000 ** (torch.arange(0, h, 2) / h)
        self.register_buffer("P", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.encoder, self.decoder = (
            nn.ModuleList(PlainBlock(h, ffn, heads, dropout, decoder) for _ in range(blocks)) for decoder in (0, 1)
        )
        self.dense = nn.Linear(h, vocab)

    def embed(self, embedding, tokens):
        X = embedding(tokens)
        return self.dropout(X * math.sqrt(X.shape[-1]) + self.P[: X.shape[1]])

    def forward(self, src, tgt, valid_lens):
        memory = self.embed(self.embeddings[0], src)
        for block in self.encoder:
            memory = block(memory, valid_lens)
        X = self.embed(self.embeddings[1], tgt)
        causal = torch.arange(1, X.shape[1] + 1, device=X.device).repeat(len(X), 1)
        for block in self.decoder:
            X = block(X, causal, memory, valid_lens)
        return self.dense(X)
