"""Chapter 07: D2L's protocol to the letter, and what two faults of its decoder do to the curve and to BLEU.

512 sentence pairs, the hyperparameters of D2L 11.7 and the loss of its package, which counts padding; five seeds. In
training D2L's decoder is right, so one trained model can be looked at in three ways: as it was trained; *without the
causal mask*, which is how D2L's decoder works in evaluation mode (its validation loss is plotted so, with padding
counted as well); and with *every decoded token at position 0*, which is what D2L's decoding does. Beside it stands
D2L's recurrent model of 11.4.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from d2lmini.data.fra_eng import MTFraEng
from d2lmini.data.registry import checksums, get
from d2lmini.lab.fit import fit_part
from d2lmini.lab.parts import Parts
from d2lmini.metrics import bleu
from d2lmini.models.bahdanau import Seq2SeqAttentionDecoder, Seq2SeqEncoder
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder


@dataclass(frozen=True)
class Config:
    """Settings, those of D2L 11.4.3 and 11.7.6; ``shipped`` takes pairs of the grammar corpus."""

    num_train: int = 512
    num_val: int = 128
    batch_size: int = 128
    max_epochs: int = 30
    num_hiddens: int = 256
    ffn_num_hiddens: int = 64
    num_heads: int = 4
    num_blks: int = 2
    dropout: float = 0.2
    lr: float = 0.001
    recurrent_lr: float = 0.005
    gradient_clip_val: float = 1
    shipped: bool = False
    seeds: tuple = (0, 1, 2, 3, 4)


PRESETS = {
    "smoke": replace(Config(), shipped=True, max_epochs=1, num_hiddens=16, seeds=(0,)),
    "cpu": replace(Config(), shipped=True, max_epochs=10, num_hiddens=64, seeds=(0,)),
    "laptop": Config(),
}


class ShippedPairs(MTFraEng):
    """The same preparation of sentences that ship with the package."""

    def _download(self):
        from d2lmini.data.grammar import make_sentences

        short = sorted(make_sentences(4000)["train"], key=lambda s: len(s.source))
        return "".join(f"{s.english}\t{s.french}\n" for s in short)


def without_mask(model, batch):
    """Logits (B, T, V) of a trained model whose decoder lets every token see the whole target: the first fault.

    Args:
        model: a `Seq2Seq` of `TransformerEncoder` and `TransformerDecoder`, post-norm.
        batch: source, shifted target, source lengths.
    """
    src, tgt, lens = batch
    decoder, memory = model.decoder, model.encoder(src, lens)
    X = decoder.pos_encoding(decoder.embedding(tgt) * math.sqrt(decoder.num_hiddens))
    for blk in decoder.blks:
        X = blk.addnorm1(X, blk.attention1(X, X, X))
        X = blk.addnorm2(X, blk.attention2(X, memory, memory, lens))
        X = blk.addnorm3(X, blk.ffn(X))
    return decoder.dense(X)


def decode_at_position_0(model, batch, num_steps):
    """Greedy tokens (B, num_steps) when each one gets the encoding of position 0: the second fault."""
    src, tgt, lens = batch
    decoder, state = model.decoder, model.start(src, lens)
    tokens = [tgt[:, :1]]
    for _ in range(num_steps):
        X = decoder.pos_encoding(decoder.embedding(tokens[-1]) * math.sqrt(decoder.num_hiddens))
        for blk in decoder.blks:
            X, state = blk(X, state)
        tokens.append(decoder.dense(X).argmax(2))
    return torch.cat(tokens[1:], 1)


def mean_bleu(data, tokens, labels):
    """Mean of D2L's bleu (k = 2) over sentences: predicted tokens (B, T), labels (B, T)."""

    def text(row):
        words = data.tgt_vocab.to_tokens(row.tolist())
        return " ".join(words[: words.index("<eos>")] if "<eos>" in words else words)

    pairs = [(text(p), text(y)) for p, y in zip(tokens, labels, strict=True)]
    return sum(bleu(p, y, k=2) for p, y in pairs) / len(pairs)


class PaddingCounted(Seq2Seq):
    """As D2L's package trains: the loss is the mean over all positions, padding among them."""

    def loss(self, Y_hat, Y, averaged=True):
        return F.cross_entropy(Y_hat.flatten(0, 1), Y.flatten(), reduction="mean" if averaged else "none")

    def batch_weight(self, batch):
        return batch[-1].numel()


def build(config, data, kind):
    """D2L's model ``"transformer"`` or ``"recurrent"``."""
    pad = data.tgt_vocab["<pad>"]
    if kind == "recurrent":
        encoder, decoder = (
            part(len(vocab), config.num_hiddens, config.num_hiddens, 2, config.dropout)
            for part, vocab in ((Seq2SeqEncoder, data.src_vocab), (Seq2SeqAttentionDecoder, data.tgt_vocab))
        )
        return PaddingCounted(encoder, decoder, pad, config.recurrent_lr)
    size = (config.num_hiddens, config.ffn_num_hiddens, config.num_heads, config.num_blks, config.dropout)
    encoder = TransformerEncoder(len(data.src_vocab), *size)
    return PaddingCounted(encoder, TransformerDecoder(len(data.tgt_vocab), *size), pad, config.lr)


@torch.no_grad()
def losses(model, data, device):
    """Validation losses: over real tokens, causal and without the mask; and as D2L plots it. Returns: dict."""
    src, tgt, lens, label = (x[data.num_train :].to(device) for x in data.arrays)
    model.eval()

    def over_words(logits):
        return F.cross_entropy(logits.flatten(0, 1), label.flatten(), ignore_index=model.tgt_pad).item()

    causal = model(src, tgt, lens)
    measured = {"loss": over_words(causal)}
    if isinstance(model.decoder, TransformerDecoder):
        measured["loss_padding_counted"] = model.loss(causal, label).item()
        seen = without_mask(model, (src, tgt, lens))
        measured["loss_without_mask"] = over_words(seen)
        measured["loss_without_mask_padding_counted"] = model.loss(seen, label).item()
    return measured


@torch.no_grad()
def scores(model, data, device):
    """Mean BLEU (k = 2) of the validation sentences, decoded rightly and at position 0. Returns: dict of floats."""
    src, tgt, lens, label = (x[data.num_train :].to(device) for x in data.arrays)
    right, _ = model.predict_step((src, tgt, lens, label), device, data.num_steps)
    measured = {"bleu": mean_bleu(data, right, label)}
    if isinstance(model.decoder, TransformerDecoder):
        wrong = decode_at_position_0(model, (src, tgt, lens), data.num_steps)
        measured["bleu_at_position_0"] = mean_bleu(data, wrong, label)
        measured["tokens_changed"] = (wrong != right).float().mean().item()
    return measured


def learn(config, data, kind, seed, device, parts, name):
    """Trains one model and looks at it. Returns: dict with ``row`` and ``curves``, for JSON."""
    torch.manual_seed(seed)
    model = build(config, data, kind)
    history = fit_part(
        model,
        data,
        device,
        config.max_epochs,
        parts=parts,
        name=name,
        after_epoch=lambda trainer: {"seen": losses(model, data, device)},
        gradient_clip_val=config.gradient_clip_val,
        seed=seed,
    )
    seen = history["seen"]
    return {
        "row": {"kind": kind, "seed": seed, **seen[-1], **scores(model, data, device)},
        "curves": {key: [round(epoch[key], 5) for epoch in seen] for key in seen[0]},
    }


def run(config, device, parts=None):
    """Trains both for each seed; ``parts`` are those of `Parts`. Returns: dict with metrics and curves."""
    parts = parts or Parts()
    source = ShippedPairs if config.shipped else MTFraEng
    data = source(config.batch_size, num_train=config.num_train, num_val=config.num_val)
    runs, curves = [], {}
    for seed in config.seeds:
        for kind in ("transformer", "recurrent"):
            name = f"{kind}-{seed}"
            record = parts(name, learn, config, data, kind, seed, device, parts, name)
            runs.append(record["row"])
            curves[f"{kind}, seed {seed}"] = record["curves"]

    def mean(kind, name):
        values = torch.tensor([row[name] for row in runs if row["kind"] == kind])
        return {"mean": values.mean().item(), "std": values.std().item() if len(values) > 1 else 0.0}

    summary = {
        kind: {name: mean(kind, name) for name in row if name not in ("kind", "seed")}
        for kind, row in ((row["kind"], row) for row in runs)
    }
    data_record = {} if config.shipped else checksums("tatoeba_enfr", [f.name for f in get("tatoeba_enfr").files])
    metrics = {"headline": headline(summary), "summary": summary, "runs": runs}
    return {"metrics": metrics, "curves": curves, "data": data_record}


def headline(summary):
    """The main numbers in a sentence; what D2L plots has two faults, which pull in opposite directions."""
    means = {name: value["mean"] for name, value in summary["transformer"].items()}
    return (
        f"validation loss {means['loss']:.2f}, without the causal mask {means['loss_without_mask']:.2f}, as D2L plots "
        f"it (padding counted, too) {means['loss_without_mask_padding_counted']:.2f}; "
        f"BLEU (k = 2) {means['bleu']:.3f}, decoding at position 0 {means['bleu_at_position_0']:.3f}; "
        f"recurrent model {summary['recurrent']['bleu']['mean']:.3f}"
    )
