"""A training step of each kind of model beside its peers: forward, backward and Adam, on the same inputs.

The Transformer of D2L 11.7 (ours, D2L's own, `nn.Transformer`), a ViT (ours, `transformers`, `timm` where it is
installed), a GPT and a BERT (ours, `transformers`, with its fused attention). Contestants have the same sizes, as many
parameters but for biases, the same optimizer, and no dropout but where a row says so.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks import _d2l
from benchmarks._common import contest, in_bf16, main
from d2lmini.models.bert import BERTForPretraining
from d2lmini.models.bert_config import BERTConfig
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder
from d2lmini.models.vit import ViT


@dataclass(frozen=True)
class Sizes:
    """The first step of translation is that of D2L 11.7, with its dropout; the ViT sees Fashion-MNIST's pictures."""

    vocab: int = 200
    translation: tuple = (256, 64, 4, 2)  # h, hidden units of the FFN, heads, blocks
    batches: tuple = ((128, 9, 0.2), (128, 9, 0.0), (32, 64, 0.0), (4, 512, 0.0))  # B, T, dropout
    vit: tuple = (64, 28, 4, 128, 256, 4, 4)  # N, pixels, of a patch, h, hidden units of the MLP, heads, blocks
    gpt: tuple = ((8, 256), 4000, 256, 4, 4)  # (B, T), V, h, heads, blocks
    bert: tuple = ((16, 128), 4000, 256, 4, 4)
    rounds: int = 11
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long
    most_s: float = 16


QUICK = replace(
    Sizes(),
    vocab=11,
    translation=(8, 8, 2, 1),
    batches=((2, 3, 0.2), (2, 4, 0.0)),
    vit=(2, 8, 4, 8, 8, 2, 1),
    gpt=((2, 5), 11, 8, 2, 1),
    bert=((2, 5), 11, 8, 2, 1),
    rounds=2,
    turn_s=0.0,
)


class TorchTransformer(nn.Module):
    """`nn.Transformer` between embeddings and a last layer, as D2L's: (B, S), (B, T), lengths (B,) to (B, T, V)."""

    def __init__(self, vocab, h, ffn, heads, blocks, dropout):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(vocab, h) for _ in range(2))
        self.positions = _d2l.PlainTransformer(1, h, 1, heads, 0, 0.0).P
        self.dropout = nn.Dropout(dropout)
        self.body = nn.Transformer(h, heads, blocks, blocks, ffn, dropout, batch_first=True)
        self.body.encoder.norm = self.body.decoder.norm = None  # D2L has none after the last block
        self.dense = nn.Linear(h, vocab)

    def embed(self, embedding, tokens):
        X = embedding(tokens)
        return self.dropout(X * math.sqrt(X.shape[-1]) + self.positions[: X.shape[1]].to(X.device))

    def forward(self, src, tgt, valid_lens):
        hidden = torch.arange(src.shape[1], device=src.device) >= valid_lens[:, None]  # (B, S)
        T = tgt.shape[1]
        future = torch.ones(T, T, dtype=torch.bool, device=tgt.device).triu(1)
        X = self.body(
            self.embed(self.embeddings[0], src),
            self.embed(self.embeddings[1], tgt),
            tgt_mask=future,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_is_causal=True,
        )
        return self.dense(X)


def training_step(model, loss, device="cpu"):
    """A step of Adam as a function without arguments; ``loss`` is one, too."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()

    def step():
        optimizer.zero_grad()
        with in_bf16(device):
            value = loss()
        value.backward()
        optimizer.step()

    return step


def translation_steps(sizes, batch, device):
    """The step of D2L 11.7: ours, D2L's, `nn.Transformer`'s."""
    (B, T, dropout), vocab = batch, sizes.vocab
    src, tgt, label = (torch.randint(4, vocab, (B, T), device=device) for _ in range(3))
    lens = T - torch.arange(B, device=device) % max(1, T // 2)
    shape = (*sizes.translation, dropout)
    ours = Seq2Seq(TransformerEncoder(vocab, *shape), TransformerDecoder(vocab, *shape), tgt_pad=0, lr=1e-3)
    whose, d2l = _d2l.transformer(vocab, *shape)
    torchs = TorchTransformer(vocab, *shape)
    steps = {"ours": lambda: ours.loss(ours(src, tgt, lens), label)}
    for name, model in ((whose, d2l), ("nn.Transformer", torchs)):
        model.to(device)
        with torch.no_grad():
            model(src, tgt, lens)  # D2L's layers learn their sizes from what they see
        steps[name] = lambda model=model: F.cross_entropy(model(src, tgt, lens).flatten(0, 1), label.flatten())
    models = {"ours": ours.to(device), whose: d2l, "nn.Transformer": torchs}
    return {name: training_step(models[name], steps[name], device) for name in steps}


def vit_steps(sizes, device):
    """A step of a ViT: ours, `transformers`' and `timm`'s."""
    from transformers import ViTConfig, ViTForImageClassification

    N, pixels, patch, h, mlp, heads, blocks = sizes.vit
    images, labels = torch.rand(N, 1, pixels, pixels, device=device), torch.randint(10, (N,), device=device)
    config = ViTConfig(
        hidden_size=h,
        intermediate_size=mlp,
        num_attention_heads=heads,
        num_hidden_layers=blocks,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        image_size=pixels,
        patch_size=patch,
        num_channels=1,
        num_labels=10,
    )
    models = {
        "ours": ViT(pixels, patch, h, mlp, heads, blocks, 0.0, 0.0, use_bias=True, num_channels=1),
        "transformers": ViTForImageClassification(config),
    }
    try:
        from timm.models.vision_transformer import VisionTransformer
    except ImportError:
        pass  # the record says that there is none
    else:
        kind = {"img_size": pixels, "patch_size": patch, "in_chans": 1, "num_classes": 10}
        models["timm"] = VisionTransformer(**kind, embed_dim=h, depth=blocks, num_heads=heads, mlp_ratio=mlp / h)
    losses = {
        name: lambda model=model: F.cross_entropy(_scores(model(images)), labels) for name, model in models.items()
    }
    losses["ours"] = lambda: models["ours"].loss(models["ours"](images), labels)
    return {name: training_step(model.to(device), losses[name], device) for name, model in models.items()}


def gpt_steps(sizes, device):
    """A step of a GPT: ours, and `transformers`' GPT-2."""
    from transformers import GPT2Config, GPT2LMHeadModel

    (B, T), V, h, heads, blocks = sizes.gpt
    tokens, label = (torch.randint(V, (B, T), device=device) for _ in range(2))
    config = GPT2Config(
        vocab_size=V,
        n_positions=T,
        n_embd=h,
        n_layer=blocks,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="sdpa",
    )
    own = GPTConfig(vocab_size=V, max_len=T, num_hiddens=h, num_heads=heads, num_blks=blocks, dropout=0.0)
    return _of_tokens({"ours": GPT(own), "transformers": GPT2LMHeadModel(config)}, tokens, label, device)


def bert_steps(sizes, device):
    """A step of a BERT that scores every token: ours, and `transformers`'."""
    from transformers import BertConfig, BertForMaskedLM

    (B, T), V, h, heads, blocks = sizes.bert
    tokens, label = (torch.randint(V, (B, T), device=device) for _ in range(2))
    config = BertConfig(
        vocab_size=V,
        hidden_size=h,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        intermediate_size=4 * h,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=T,
        attn_implementation="sdpa",
    )
    own = BERTConfig(V, T, h, heads, blocks, dropout=0.0, use_pooler=False)
    models = {"ours": BERTForPretraining(own, next_sentence=False), "transformers": BertForMaskedLM(config)}
    return _of_tokens(models, tokens, label, device)


def _of_tokens(models, tokens, label, device):
    return {
        name: training_step(
            model.to(device),
            lambda model=model: F.cross_entropy(_scores(model(tokens)).flatten(0, 1), label.flatten()),
            device,
        )
        for name, model in models.items()
    }


def _scores(output):
    """What is a tensor, a tuple that begins with one, or an output of `transformers`, as a tensor."""
    return output if isinstance(output, torch.Tensor) else output[0]


def measure(sizes, device="cpu"):
    """Returns: dict with ``contests``, as `benchmarks._common.contest` has them."""
    torch.manual_seed(0)
    contests = []

    def add(what, calls, unit, work, **facts):
        contests.append(contest(what, calls, sizes, unit=unit, work=work, device=device, **facts))

    for batch in sizes.batches:
        B, T, dropout = batch
        what = f"Transformer, {B} x {T} tokens" + (f", dropout {dropout}" if dropout else "")
        add(what, translation_steps(sizes, batch, device), "tokens", B * T, model="transformer", T=T, dropout=dropout)
    N, pixels, *_ = sizes.vit
    add(f"ViT, {N} pictures of {pixels} x {pixels}", vit_steps(sizes, device), "images", N, model="vit")
    for name, steps, ((B, T), *_) in (("GPT", gpt_steps, sizes.gpt), ("BERT", bert_steps, sizes.bert)):
        add(f"{name}, {B} x {T} tokens", steps(sizes, device), "tokens", B * T, model=name.lower(), T=T)
    return {"contests": contests}


if __name__ == "__main__":
    main("training", measure, Sizes(), QUICK)
