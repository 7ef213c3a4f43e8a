"""Chapter 07: a Transformer from scratch on Multi30k, scored on its official test sets.

The set-up is the published Transformer-Tiny of Wu et al. 2021 (text only): four layers on each side, 128 features, four
heads, feed-forward networks of 256, joint byte-pair encoding, tied embeddings, label smoothing. ``full`` and ``laptop``
train on all 29,000 pairs of Multi30k, less six of which a side is in a held-out set, and ``tatoeba`` on all of the
short sentences of Tatoeba that share none with its test set; ``page`` is the larger model, with fewer tokens, that the
book's pages run. The model scored is the mean of the epochs before the last, none of them chosen by a score. But
``full`` came after two shorter runs that had been scored on the test sets, too.
"""

import math
from dataclasses import dataclass, replace

import torch

from d2lmini.experiments.translation import translators
from d2lmini.lab.parts import Parts
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig
from d2lmini.training import WarmupCosine


@dataclass(frozen=True)
class Config:
    """Settings; ``max_tokens`` counts positions in a batch, ``val_sentences`` those scored. The weights after the
    ``averaged`` epochs before the last are averaged; 1: those after the last are taken.

    Of the ``length_penalties`` of beam search the one with the best BLEU on the validation split is used. ``betas`` and
    ``weight_decay`` are AdamW's; ``final_lr`` is the share of ``lr`` at which the cosine ends.
    """

    data: str = "grammar"
    num_pairs: int = 4000
    vocab_size: int = 8000
    max_tokens: int = 1024
    batches_per_step: int = 1
    num_hiddens: int = 64
    ffn_num_hiddens: int = 128
    num_heads: int = 4
    num_blks: int = 2
    dropout: float = 0.1
    label_smoothing: float = 0.1
    lr: float = 5e-3
    betas: tuple = (0.9, 0.999)
    weight_decay: float = 0.0
    warmup: int = 100
    final_lr: float = 0.0
    max_epochs: int = 9
    max_steps: int | None = None
    precision: str = "auto"
    averaged: int = 1
    val_sentences: int | None = 0
    beam_size: int = 1
    length_penalties: tuple = (0.6,)
    splits: tuple = ("test",)
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), num_pairs=1000, batches_per_step=2, max_epochs=1, max_steps=4, num_blks=1, num_hiddens=32
    ),
    "cpu": replace(Config(), num_pairs=5000),
    "full": replace(
        Config(),
        data="multi30k",
        max_tokens=1536,
        batches_per_step=2,
        num_hiddens=128,
        ffn_num_hiddens=256,
        num_blks=4,
        dropout=0.15,
        lr=4e-3,
        warmup=500,
        max_epochs=40,
        averaged=5,
        val_sentences=300,
        beam_size=4,
        length_penalties=(0.0, 0.6, 1.0, 1.4),
        splits=("test2016", "test2017", "mscoco"),
    ),
}
# the dropout that Wu et al. publish, for more passes; a CPU without instructions for bfloat16 is slower with it
PRESETS["laptop"] = replace(PRESETS["full"], dropout=0.3, warmup=1000, max_epochs=60, precision="bf16")
PRESETS["tatoeba"] = replace(  # five times the pairs; fewer passes, and little to learn by heart
    PRESETS["full"],
    data="tatoeba",
    max_tokens=2048,
    batches_per_step=1,
    dropout=0.1,
    lr=3e-3,
    max_epochs=4,
    averaged=1,
    length_penalties=(0.6,),
    splits=("test",),
)
PRESETS["page"] = replace(  # what the book's pages translate with: at most 4 MB in 8 bits, and more passes
    PRESETS["tatoeba"],
    vocab_size=4000,
    num_hiddens=192,
    ffn_num_hiddens=640,
    num_blks=3,
    precision="bf16",
    max_epochs=14,
    averaged=3,
    length_penalties=(0.6, 1.0),
)


class Model(Transformer):
    """A `Transformer` that is trained by AdamW with the settings of a configuration."""

    def __init__(self, config, vocab_size, pad):
        sizes = {name: getattr(config, name) for name in ("num_hiddens", "ffn_num_hiddens", "num_heads", "num_blks")}
        rates = {name: getattr(config, name) for name in ("dropout", "label_smoothing", "lr")}
        super().__init__(TransformerConfig(vocab_size, **sizes, **rates), pad)
        self.adam = {"betas": config.betas, "weight_decay": config.weight_decay}

    def configure_optimizers(self):
        """AdamW, which without weight decay is Adam."""
        return torch.optim.AdamW(self.parameters(), lr=self.lr, **self.adam)


def build(config, data):
    """The model of a configuration, for the vocabulary of the data."""
    return Model(config, len(data.tgt_vocab), data.tgt_vocab["<pad>"])


def best_length_penalty(model, data, config, parts=None):
    """The length penalty with the best validation BLEU, and a dict of the BLEU of each; {} where there is no choice."""
    if len(config.length_penalties) == 1:
        return config.length_penalties[0], {}
    parts = parts or Parts()

    def score(penalty):
        return translators.score(model, data, "val", config.beam_size, penalty)[0]["bleu"]

    bleu = {penalty: parts(f"val-{penalty}", score, penalty) for penalty in config.length_penalties}
    return max(bleu, key=bleu.get), {str(penalty): value for penalty, value in bleu.items()}


def run(config, device, parts=None):
    """Trains and scores; ``parts`` are those of `Parts`. Returns: dict with metrics and curves."""
    parts = parts or Parts()
    data = translators.load_data(config)
    steps = config.max_epochs * math.ceil(len(data.get_dataloader(train=True)) / config.batches_per_step)
    torch.manual_seed(config.seeds[0])
    model = build(config, data)
    schedule = WarmupCosine(min(config.warmup, steps // 10), steps, config.final_lr)
    curves = translators.train(model, data, config, device, schedule, config.batches_per_step, parts)
    metrics = {"parameters": model.num_parameters, "vocab_size": len(data.tgt_vocab), "steps": steps}
    penalty, metrics["val_bleu_by_length_penalty"] = best_length_penalty(model, data, config, parts)

    def test(split):
        scores, translations = translators.score(model, data, split, config.beam_size, penalty)
        return {"scores": scores, "samples": translators.samples(data, split, translations)}

    tested = {split: parts(split, test, split) for split in config.splits}
    metrics |= {split: record["scores"] for split, record in tested.items()}
    metrics["samples"] = tested[config.splits[0]]["samples"]
    first = metrics[config.splits[0]]
    metrics["headline"] = (
        f"{config.data}, {config.splits[0]}: sacreBLEU {first['bleu']:.1f}, "
        f"tokenised BLEU {first['bleu_tokenized']:.1f} with {model.num_parameters / 1e6:.1f} million parameters"
    )
    return {"metrics": metrics, "curves": curves, "data": translators.checksums(config)}
