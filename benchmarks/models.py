"""Whole models against their peers: a training step of D2L 11.7, one of a ViT, and translation of a batch.

The peers are D2L's formulation of its Transformer, written here in plain modules (weights made by a softmax in every
layer, masks as in the book), and `transformers`' ViT and Marian, of the same sizes, with random weights. Every pair has
the same work: the same optimizer in a step, the same number of tokens in a search. A ratio above 1 means that ours is
slower.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks._common import main, ratios
from d2lmini.decoding import beam_search, greedy_search
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder
from d2lmini.models.vit import ViT


@dataclass(frozen=True)
class Sizes:
    """The step is that of D2L 11.7; the ViT sees Fashion-MNIST's pictures; sentences are as long as Multi30k's."""

    vocab: int = 200
    step: tuple = (128, 9, 256, 64, 4, 2)  # B, T, h, hidden units of the FFN, heads, blocks
    step_dropout: float = 0.2
    vit: tuple = (64, 28, 4, 128, 256, 4, 4)  # N, pixels, of a patch, h, hidden units of the MLP, heads, blocks
    vit_dropout: float = 0.1
    translation: tuple = (32, 16, 20, 8000, 256, 512, 4, 3)  # B, S, steps, V, h, hidden units of the FFN, heads, blocks
    beam_size: int = 4
    rounds: int = 15
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long


SMOKE = replace(
    Sizes(),
    vocab=11,
    step=(2, 3, 8, 8, 2, 1),
    vit=(2, 8, 4, 8, 8, 2, 1),
    translation=(2, 3, 4, 20, 8, 8, 2, 1),
    rounds=2,
    turn_s=0.0,
)


# --- D2L's Transformer, plainly


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
        lens = valid_lens.repeat_interleave(scores.shape[1]) if valid_lens.dim() == 1 else valid_lens.reshape(-1)
        rows = scores.reshape(-1, scores.shape[-1])
        rows[torch.arange(rows.shape[1])[None] >= lens[:, None]] = -1e6
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

    def forward(self, source, target, lens):
        memory = self.embed(self.embeddings[0], source)
        for block in self.encoder:
            memory = block(memory, lens)
        X = self.embed(self.embeddings[1], target)
        causal = torch.arange(1, X.shape[1] + 1).repeat(len(X), 1)
        for block in self.decoder:
            X = block(X, causal, memory, lens)
        return self.dense(X)


# --- what is measured


def training_step(model, loss):
    """A step of Adam as a function without arguments."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def translation_step(sizes):
    """The step of D2L 11.7: ours, and D2L's formulation."""
    (B, T, *rest), vocab, dropout = sizes.step, sizes.vocab, sizes.step_dropout
    source, target, label = (torch.randint(4, vocab, (B, T)) for _ in range(3))
    lens = T - torch.arange(B) % max(1, T // 2)
    ours = Seq2Seq(
        TransformerEncoder(vocab, *rest, dropout), TransformerDecoder(vocab, *rest, dropout), tgt_pad=0, lr=1e-3
    )
    plain = PlainTransformer(vocab, *rest, dropout)
    return {
        "ours": training_step(ours, lambda: ours.loss(ours(source, target, lens), label)),
        "D2L's formulation": training_step(
            plain, lambda: F.cross_entropy(plain(source, target, lens).flatten(0, 1), label.flatten())
        ),
    }


def vit_step(sizes):
    """A step of a ViT with dropout: ours, and `transformers`'."""
    from transformers import ViTConfig, ViTForImageClassification

    (N, pixels, patch, h, mlp, heads, blocks), dropout = sizes.vit, sizes.vit_dropout
    images, labels = torch.rand(N, 1, pixels, pixels), torch.randint(10, (N,))
    ours = ViT(pixels, patch, h, mlp, heads, blocks, dropout, dropout, use_bias=True, num_channels=1)
    config = ViTConfig(
        hidden_size=h,
        intermediate_size=mlp,
        num_attention_heads=heads,
        num_hidden_layers=blocks,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        image_size=pixels,
        patch_size=patch,
        num_channels=1,
        num_labels=10,
    )
    theirs = ViTForImageClassification(config)
    return {
        "ours": training_step(ours, lambda: ours.loss(ours(images), labels)),
        "transformers' ViT": training_step(theirs, lambda: F.cross_entropy(theirs(images).logits, labels)),
    }


def translations(sizes):
    """Greedy and beam search of a batch of sentences, from the sources to tokens: ours, and `transformers`' Marian."""
    from transformers import MarianConfig, MarianMTModel

    B, S, steps, vocab, h, ffn, heads, blocks = sizes.translation
    bos, eos, pad = vocab - 1, 1, 0
    source, lens = torch.randint(2, vocab - 1, (B, S)), S - torch.arange(B) % max(1, S // 2)
    real = torch.arange(S) < lens[:, None]
    encoder = TransformerEncoder(vocab, h, ffn, heads, blocks, use_bias=True)
    decoder = TransformerDecoder(vocab, h, ffn, heads, blocks, use_bias=True)
    ours = Seq2Seq(encoder, decoder, tgt_pad=pad, lr=1e-3).eval()
    config = MarianConfig(
        vocab_size=vocab,
        d_model=h,
        encoder_layers=blocks,
        decoder_layers=blocks,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=ffn,
        decoder_ffn_dim=ffn,
        activation_function="relu",
        pad_token_id=pad,
        eos_token_id=eos,
        decoder_start_token_id=bos,
        forced_eos_token_id=None,
        max_position_embeddings=128,
    )
    theirs = MarianMTModel(config).eval()

    def step(tokens, state):
        logits, state = ours.step(tokens, state)
        logits[:, eos] = -torch.inf  # no sentence ends before the last step
        return logits, state

    @torch.no_grad()
    def search(beam_size):
        state = ours.start(source, lens)
        if beam_size == 1:
            return greedy_search(step, state, bos, eos, steps)
        return beam_search(step, state, bos, eos, steps, beam_size)

    @torch.no_grad()
    def generate(beam_size):
        return theirs.generate(
            source,
            attention_mask=real.long(),
            num_beams=beam_size,
            do_sample=False,
            min_new_tokens=steps,
            max_new_tokens=steps,
        )

    found = {}
    for name, beam_size in (("greedy", 1), ("beam", sizes.beam_size)):
        assert search(beam_size).tokens.shape == (B, steps) and generate(beam_size).shape == (B, steps + 1)
        found[name] = {"ours": lambda k=beam_size: search(k), "transformers' Marian": lambda k=beam_size: generate(k)}
    return found


def measure(sizes):
    """Returns: dict with ``steps``: of each piece of work, the ratio to its peer."""
    torch.manual_seed(0)
    searches = translations(sizes)
    work = {
        "training step of D2L 11.7": translation_step(sizes),
        "training step of a ViT": vit_step(sizes),
        "greedy search": searches["greedy"],
        f"beam search of {sizes.beam_size}": searches["beam"],
    }
    return {"work": {name: ratios(calls, sizes) for name, calls in work.items()}}


if __name__ == "__main__":
    main("models", measure, Sizes(), SMOKE)
