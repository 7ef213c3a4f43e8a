"""Chapter 04: a recurrent encoder-decoder with one context vector, and the same with attention, by sentence length.

Both read and write with GRUs of one size, get the same batches for the same number of epochs, and are scored on the
same sentences, greedily. What is looked at is not who wins but *where*: BLEU in bins of source length. On the grammar
corpus the true alignment of words is known, so that also the attention itself is scored: the mass that falls on the
source words to which a target word belongs, under teacher forcing, against the mass of uniform weights.
"""

import copy
from dataclasses import dataclass, replace

import torch

from d2lmini.experiments.translation import translators
from d2lmini.lab.parts import Parts
from d2lmini.metrics import corpus_bleu
from d2lmini.models.bahdanau import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.training import WarmupCosine


@dataclass(frozen=True)
class Config:
    """Settings; ``max_tokens`` counts positions in a batch, ``bins`` are upper ends of source lengths in words."""

    data: str = "grammar"
    num_pairs: int = 6000
    vocab_size: int = 8000
    max_tokens: int = 2048
    embed_size: int = 64
    num_hiddens: int = 128
    num_layers: int = 1
    dropout: float = 0.1
    lr: float = 4e-3
    max_epochs: int = 10
    max_steps: int | None = None
    precision: str = "auto"
    averaged: int = 1
    val_sentences: int | None = 0
    split: str = "test"
    bins: tuple = (5, 7, 9, 11, 13, 99)
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(Config(), num_pairs=1000, num_hiddens=16, embed_size=8, max_epochs=1, max_steps=3),
    "cpu": replace(Config(), num_pairs=4000, max_tokens=512, num_hiddens=96, dropout=0.0, lr=1e-2, max_epochs=8),
    "laptop": replace(  # more sentences, three seeds
        Config(),
        num_pairs=8000,
        max_tokens=768,
        num_hiddens=128,
        embed_size=64,
        lr=8e-3,
        max_epochs=10,
        seeds=(0, 1, 2),
    ),
    "multi30k": replace(  # real sentences; no alignment of theirs is known
        Config(),
        data="multi30k",
        vocab_size=4000,
        num_hiddens=256,
        embed_size=128,
        lr=2e-3,
        max_epochs=7,
        averaged=2,
        val_sentences=300,
        split="test2016",
        bins=(8, 10, 12, 14, 17, 99),
    ),
}
DECODERS = {"plain": Seq2SeqDecoder, "attention": Seq2SeqAttentionDecoder}


def build(config, data, kind):
    """The model of a configuration with the decoder ``kind``, ``"plain"`` or ``"attention"``."""
    size = (len(data.src_vocab), config.embed_size, config.num_hiddens, config.num_layers, config.dropout)
    return Seq2Seq(Seq2SeqEncoder(*size), DECODERS[kind](*size), data.tgt_vocab["<pad>"], config.lr)


def alignment_mass(model, data, split, batch_size=128):
    """How much attention falls on the right words of the grammar corpus, under teacher forcing.

    Args:
        model: a `Seq2Seq` with attention.
        data: a `GrammarCorpus`.

    Returns:
        dict with ``attention`` and ``uniform``, means over the target words, and ``right``, the share of target words
        whose largest weight is on a source word to which they belong.
    """
    sentences = data.sentences(split)
    device = next(model.parameters()).device
    mass, uniform, right = [], [], []
    model.eval()
    for start in range(0, len(sentences), batch_size):
        chunk = sentences[start : start + batch_size]
        src, tgt, lens, _ = (x.to(device) for x in data.build([s.english for s in chunk], [s.french for s in chunk]))
        with torch.no_grad():
            model(src, tgt, lens)
        weights = torch.cat(model.decoder.attention_weights, 1).cpu()  # (B, T, S)
        for row, sentence in zip(weights, chunk, strict=True):
            true = torch.zeros_like(row)  # (T, S)
            for source, target in sentence.alignment:
                true[target, source] = 1
            words = slice(0, len(sentence.target))
            mass.append((row * true).sum(1)[words])
            uniform.append(true.sum(1)[words] / (len(sentence.source) + 1))  # one for <eos>
            right.append(true.gather(1, row.argmax(1, keepdim=True))[words, 0])
    means = {"attention": mass, "uniform": uniform, "right": right}
    return {name: round(float(torch.cat(values).mean()), 4) for name, values in means.items()}


def bleu_by_length(data, split, translations, bins):
    """BLEU in bins of source length, counted in words: list of dicts, bins without sentences left out."""
    sources, references = data.references(split)
    rows, low = [], 0
    for high in bins:
        inside = [i for i, text in enumerate(sources) if low < len(text.split()) <= high]
        if inside:
            score = corpus_bleu([translations[i] for i in inside], [references[i] for i in inside])
            rows.append({"longest": high, "sentences": len(inside), "bleu": round(score.value, 2)})
        low = high
    return rows


def learn(config, data, kind, seed, device, parts, name):
    """Trains and scores one model. Returns: dict with ``row`` and ``curves``, for JSON."""
    seed_config = replace(config, seeds=(seed,))
    steps = config.max_epochs * len(data.get_dataloader(train=True))
    torch.manual_seed(seed)
    model = build(config, data, kind)
    schedule = WarmupCosine(min(100, steps // 10), steps)
    curves = translators.train(model, copy.copy(data), seed_config, device, schedule, parts=parts, name=name)
    scores, translations = translators.score(model, data, config.split)
    row = {"kind": kind, "seed": seed, **scores, "parameters": model.num_parameters}
    row["by_length"] = bleu_by_length(data, config.split, translations, config.bins)
    if kind == "attention" and config.data == "grammar":
        row["alignment"] = alignment_mass(model, data, config.split)
    return {"row": row, "curves": curves}


def run(config, device, parts=None):
    """Trains both for each seed; ``parts`` are those of `Parts`. Returns: dict with metrics and curves."""
    parts = parts or Parts()
    runs, curves = [], {}
    for seed in config.seeds:
        data = translators.load_data(replace(config, seeds=(seed,)))
        for kind in DECODERS:
            name = f"{kind}-{seed}"
            record = parts(name, learn, config, data, kind, seed, device, parts, name)
            runs.append(record["row"])
            curves[f"{kind}, seed {seed}"] = record["curves"]

    def mean(kind, value):
        values = [value(row) for row in runs if row["kind"] == kind]
        return sum(values) / len(values)

    both = {kind: mean(kind, lambda row: row["bleu"]) for kind in DECODERS}
    longest = {kind: mean(kind, lambda row: row["by_length"][-1]["bleu"]) for kind in DECODERS}
    headline = (
        f"{config.data}: BLEU {both['plain']:.1f} with one context vector, {both['attention']:.1f} with attention; "
        f"on the longest sentences {longest['plain']:.1f} and {longest['attention']:.1f}"
    )
    metrics = {"headline": headline, "runs": runs, "bleu": both, "bleu_longest": longest}
    return {"metrics": metrics, "curves": curves, "data": translators.checksums(config)}
