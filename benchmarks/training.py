"""A training step of whole models beside their peers', in time and in peak memory: Transformer, ViT, GPT, BERT.

All peers of a model are of the same sizes and get the same inputs; those of ViT, GPT and BERT also have the same
weights and, without dropout, the same outputs (asserted before a step is timed). A ratio above 1 means that ours is
slower, or takes more memory. D2L's Transformer is written out in `benchmarks.plain`; the package ``d2l`` holds its
encoder alone: measured where it is installed (``pip install --no-deps d2l==1.0.3``).
"""

import importlib.util
import math
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from types import ModuleType
from unittest.mock import MagicMock

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks._common import compared, in_turns, main
from benchmarks.plain import PlainTransformer
from d2lmini.measure import peak_bytes
from d2lmini.models.bert import BERT
from d2lmini.models.bert_config import BERTConfig
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.models.pretrained import load_transformers_bert, load_transformers_gpt2, load_transformers_vit
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder
from d2lmini.models.vit import ViT


@dataclass(frozen=True)
class Sizes:
    """The Transformer is that of D2L 11.7, also with longer sentences; the ViT sees Fashion-MNIST's pictures."""

    vocab: int = 200
    transformer: tuple = (256, 64, 4, 2)  # h, hidden units of the FFN, heads, blocks
    lengths: tuple = (9, 64, 512)
    batches: tuple = (128, 16, 2)
    dropout: float = 0.2
    vit: tuple = (64, 28, 4, 128, 256, 4, 4)  # N, pixels, of a patch, h, hidden units of the MLP, heads, blocks
    gpt: tuple = (4, 256, 4000, 128, 4, 4)  # B, T, V, h, heads, blocks
    bert: tuple = (8, 128, 4000, 128, 4, 4)  # as of the GPT
    model_dropout: float = 0.1
    rounds: int = 9
    turn_s: float = 0.2  # a call is repeated until its turn lasts so long


SMOKE = replace(
    Sizes(),
    vocab=11,
    transformer=(8, 8, 2, 1),
    lengths=(3,),
    batches=(2,),
    vit=(2, 8, 4, 8, 8, 2, 1),
    gpt=(2, 5, 11, 8, 2, 1),
    bert=(2, 5, 11, 8, 2, 1),
    rounds=2,
    turn_s=0.0,
)


def training_step(model, loss):
    """A step of Adam as a function without arguments."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()

    def step():
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()  # at the end, so that the peak holds the gradients of this step

    return step


class TorchTransformer(nn.Module):
    """torch's `nn.Transformer` with embeddings, fixed positions and a layer of scores."""

    def __init__(self, vocab, h, ffn, heads, blocks, dropout):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(vocab, h) for _ in range(2))
        angles = torch.arange(1000.0)[:, None] / 10000 ** (torch.arange(0, h, 2) / h)
        self.register_buffer("P", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(h, heads, blocks, blocks, ffn, dropout, batch_first=True, bias=False)
        self.dense = nn.Linear(h, vocab)

    def forward(self, source, target, lens):
        X, Y = (
            self.dropout(embedding(tokens) * math.sqrt(self.P.shape[1]) + self.P[: tokens.shape[1]])
            for embedding, tokens in zip(self.embeddings, (source, target), strict=True)
        )
        hidden = torch.arange(source.shape[1]) >= lens[:, None]
        future = self.transformer.generate_square_subsequent_mask(target.shape[1]) == -torch.inf
        output = self.transformer(
            X, Y, tgt_mask=future, tgt_is_causal=True, src_key_padding_mask=hidden, memory_key_padding_mask=hidden
        )
        return self.dense(output)


def transformer_steps(sizes, T, B):
    """The step of D2L 11.7: ours, D2L's formulation, and torch's module."""
    args, vocab = (*sizes.transformer, sizes.dropout), sizes.vocab
    source, target, label = (torch.randint(4, vocab, (B, T)) for _ in range(3))
    lens = T - torch.arange(B) % max(1, T // 2)
    ours = Seq2Seq(TransformerEncoder(vocab, *args), TransformerDecoder(vocab, *args), tgt_pad=0, lr=1e-3)
    peers = {"D2L's formulation": PlainTransformer(vocab, *args), "nn.Transformer": TorchTransformer(vocab, *args)}
    steps = {"ours": training_step(ours, lambda: ours.loss(ours(source, target, lens), label))}
    for name, peer in peers.items():
        scores = lambda peer=peer: peer(source, target, lens).flatten(0, 1)  # noqa: E731
        steps[name] = training_step(peer, lambda scores=scores: F.cross_entropy(scores(), label.flatten()))
    return steps


def encoder_steps(sizes, T, B):
    """The encoder of D2L 11.7: ours, and that of the package ``d2l`` where it is installed."""
    args, tokens = (*sizes.transformer, sizes.dropout), torch.randint(sizes.vocab, (B, T))
    lens = T - torch.arange(B) % max(1, T // 2)
    models = {"ours": TransformerEncoder(sizes.vocab, *args)}
    if importlib.util.find_spec("d2l"):
        with stand_ins(
            "torchvision", "torchvision.transforms", "pandas", "scipy.spatial", "requests", "IPython.display"
        ):
            models["the package d2l"] = importlib.import_module("d2l.torch").TransformerEncoder(sizes.vocab, *args)
    return {
        name: training_step(model, lambda model=model: model(tokens, lens).square().mean())
        for name, model in models.items()
    }


@contextmanager
def stand_ins(*names):
    """What D2L's package imports and its Transformer does not use, as empty modules where it is not installed."""
    parts = {".".join(name.split(".")[: i + 1]): None for name in names for i in range(name.count(".") + 1)}
    missing = [name for name in parts if not _installed(name)]
    for name in missing:
        sys.modules[name] = StandIn(name)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


class StandIn(ModuleType):
    """A module that has whatever is asked of it, and does nothing."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


def _installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def vit_steps(sizes):
    """A step of a ViT: ours, and `transformers`'."""
    from transformers import ViTConfig, ViTForImageClassification

    (N, pixels, patch, h, mlp, heads, blocks), dropout = sizes.vit, sizes.model_dropout
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
    load_transformers_vit(ours, theirs.state_dict())
    _same(ours, theirs, lambda: ours(images), lambda: theirs(images).logits)
    return {
        "ours": training_step(ours, lambda: ours.loss(ours(images), labels)),
        "transformers' ViT": training_step(theirs, lambda: F.cross_entropy(theirs(images).logits, labels)),
    }


def gpt_steps(sizes):
    """A step of a GPT-2: ours, and `transformers`' with torch's fused attention."""
    from transformers import GPT2Config, GPT2LMHeadModel

    (B, T, V, h, heads, blocks), dropout = sizes.gpt, sizes.model_dropout
    tokens, label = torch.randint(V, (2, B, T))
    ours = GPT(GPTConfig(V, T, h, heads, blocks, dropout=dropout))
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
    config = GPT2Config(vocab_size=V, n_positions=T, n_embd=h, n_layer=blocks, n_head=heads, **rates)
    theirs = GPT2LMHeadModel._from_config(config, attn_implementation="sdpa")
    load_transformers_gpt2(ours, theirs.state_dict())
    _same(ours, theirs, lambda: ours(tokens), lambda: theirs(tokens).logits)
    loss = lambda logits: F.cross_entropy(logits.flatten(0, 1), label.flatten())  # noqa: E731
    return {
        "ours": training_step(ours, lambda: loss(ours(tokens))),
        "transformers' GPT-2": training_step(theirs, lambda: loss(theirs(tokens, use_cache=False).logits)),
    }


def bert_steps(sizes):
    """A step of a BERT without heads, on sentences of several lengths: ours, and `transformers`'."""
    from transformers import BertConfig, BertModel

    (B, T, V, h, heads, blocks), dropout = sizes.bert, sizes.model_dropout
    tokens, lens = torch.randint(V, (B, T)), T - torch.arange(B) % max(1, T // 2)
    segments, real = torch.zeros_like(tokens), torch.arange(T) < lens[:, None]
    ours = BERT(BERTConfig(V, T, h, heads, blocks, dropout=dropout, use_pooler=False))
    config = BertConfig(
        vocab_size=V,
        hidden_size=h,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        intermediate_size=4 * h,
        max_position_embeddings=T,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    theirs = BertModel._from_config(config, attn_implementation="sdpa", add_pooling_layer=False)
    load_transformers_bert(ours, theirs.state_dict())
    calls = {
        "ours": (ours, lambda: ours(tokens, segments, lens)[real]),
        "transformers' BERT": (
            theirs,
            lambda: theirs(tokens, attention_mask=real.long(), token_type_ids=segments).last_hidden_state[real],
        ),
    }
    _same(ours, theirs, *(call for _, call in calls.values()))
    aim = torch.randn(int(real.sum()), h)
    return {
        name: training_step(model, lambda call=call: F.mse_loss(call(), aim)) for name, (model, call) in calls.items()
    }


@torch.no_grad()
def _same(ours, theirs, our_output, their_output):
    ours.eval(), theirs.eval()
    torch.testing.assert_close(our_output(), their_output(), rtol=1e-3, atol=1e-4)


def measure(sizes):
    """Returns: dict with ``work``: of each step and peer the ratio of ours in ``time`` (median, and quartiles ``low``
    and ``high``) and in peak ``memory``; and ``per_s``: how many tokens or pictures a second ours gets through."""
    torch.manual_seed(0)
    steps, units = {}, {}
    for T, B in zip(sizes.lengths, sizes.batches, strict=True):
        steps[f"Transformer, {T} tokens"] = transformer_steps(sizes, T, B)
        steps[f"Transformer's encoder, {T} tokens"] = encoder_steps(sizes, T, B)
        units |= dict.fromkeys((f"Transformer, {T} tokens", f"Transformer's encoder, {T} tokens"), B * T)
    for name, make, unit in (
        ("ViT", vit_steps, sizes.vit[0]),
        (f"GPT, {sizes.gpt[1]} tokens", gpt_steps, math.prod(sizes.gpt[:2])),
        (f"BERT, {sizes.bert[1]} tokens", bert_steps, math.prod(sizes.bert[:2])),
    ):
        steps[name], units[name] = make(sizes), unit
    work, per_s = {}, {}
    for name, calls in steps.items():
        seconds = in_turns(calls, sizes.rounds, sizes.turn_s)
        per_s[name] = float(f"{units[name] / median(seconds['ours']):.3g}")
        peaks = {peer: peak_bytes(call) for peer, call in calls.items()} if len(calls) > 1 else {}
        work[name] = {
            peer: {
                **compared(seconds["ours"], seconds[peer]),
                "memory": round(peaks["ours"] / peaks[peer], 3),
            }
            for peer in calls
            if peer != "ours"
        }
    return {"work": {name: peers for name, peers in work.items() if peers}, "per_s": per_s}


if __name__ == "__main__":
    main("training", measure, Sizes(), SMOKE)
