"""What the experiments on fine-tuning share: encoders, a part of the data, and how the one is trained on the other.

Validation data choose the moment of the training whose scores are told, and nothing else.
"""

import copy
import math
import random
from dataclasses import dataclass, replace

import torch
from torch.utils.data import DataLoader

from d2lmini.data import registry
from d2lmini.data.batching import LengthBatches
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.models.bert import BERT
from d2lmini.models.weights.minilm import NAME, load_minilm
from d2lmini.modes import evaluating
from d2lmini.tokenization.fast_bpe import BPETokenizer
from d2lmini.training import DataModule
from d2lmini.training.schedules import WarmupLinear


@dataclass(frozen=True)
class Tuning:
    """How an encoder with a head is trained: AdamW, a linear warm-up, then a straight line down to zero.

    ``epochs`` passes over the training data, but as many as make ``min_steps`` where data are few. The validation data
    are scored ``checks`` times, after equal numbers of passes. ``warmup`` is a share of the steps.
    """

    lr: float = 5e-5
    epochs: int = 3
    min_steps: int = 0
    batch_size: int = 32
    checks: int = 3
    warmup: float = 0.1
    gradient_clip_val: float = 1.0
    precision: str = "auto"

    def plan(self, num_examples):
        """Of so many training examples: how many checks there are, and how many passes from one to the next."""
        epochs = max(self.epochs, math.ceil(self.min_steps / math.ceil(num_examples / self.batch_size)))
        checks = min(self.checks, epochs)
        return checks, math.ceil(epochs / checks)


class Chosen(DataModule):
    """Some training examples of a data set, in batches of like length; several passes are one epoch.

    Args:
        data: a `LabelledText`.
        places: which of its training examples (of questions: windows), a list of indices.
        batch_size: B.
        passes: over the examples in an epoch.
        seed: of the order.

    Raises:
        ValueError: there is no example.
    """

    def __init__(self, data, places, batch_size, passes=1, seed=0):
        loader = data.loader("train")
        self.items, self.collate = [loader.dataset[place] for place in places], loader.collate_fn
        if not self.items:
            raise ValueError("there is no training example: is the share of the data too small?")
        self.batches = _Passes([len(item[0]) for item in self.items], batch_size, passes, seed)

    def get_dataloader(self, train):
        """Training batches; there are none for validation, which `fine_tune` scores itself."""
        return DataLoader(self.items, batch_sampler=self.batches, collate_fn=self.collate) if train else None


class _Passes:
    """Batches of several passes, each in another order."""

    def __init__(self, lengths, batch_size, passes, seed):
        self.batches, self.passes, self.epoch = LengthBatches(lengths, batch_size, True, seed), passes, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.passes * len(self.batches)

    def __iter__(self):
        for number in range(self.passes):
            self.batches.set_epoch(self.epoch * self.passes + number)
            yield from self.batches


def fine_tune(head, data, places, tuning, device, score, *, seed=0, parts=None, name="training"):
    """Trains an encoder with its head, in place.

    Args:
        head: a head of `d2lmini.models.heads`, whose ``lr`` becomes that of ``tuning``.
        data: a `LabelledText`.
        places: the training examples to use, a list of indices.
        tuning: a `Tuning`.
        device: ``torch.device``.
        score: function of a split's name that returns what JSON can hold; of ``"val"`` a dict whose ``"chosen_by"``
            is the number that chooses: the larger, the better. ``"test"`` is scored where that is the best yet.
        seed: of all that is drawn in training.
        parts, name: as `fit_part`.

    Returns:
        dict with ``val`` and ``test``, the scores at the chosen moment, and ``passes`` over the data until then; and
        the trainer's history, in which ``val`` has the scores of each check.
    """
    checks, passes = tuning.plan(len(places))
    chosen = Chosen(data, places, tuning.batch_size, passes, seed)
    total = checks * len(chosen.batches)
    warmup = int(tuning.warmup * total)
    head.lr = tuning.lr

    def check(trainer):
        before = [scores["chosen_by"] for scores in trainer.history.get("val", [])]
        val = score("val")
        return {"val": val, "test": score("test") if not before or val["chosen_by"] > max(before) else None}

    history = fit_part(
        head,
        chosen,
        device,
        checks,
        parts=parts,
        name=name,
        after_epoch=check,
        gradient_clip_val=tuning.gradient_clip_val,
        schedule=WarmupLinear(warmup, total, total - warmup),
        precision=tuning.precision,
        seed=seed,
    )
    values = [scores["chosen_by"] for scores in history["val"]]
    best = values.index(max(values))  # the earliest of equals, the one whose test was scored
    record = {"passes": (best + 1) * passes, "steps": total, "train_s": round(history["seconds"][-1], 3)}
    return record | {"val": history["val"][best], "test": history["test"][best]}, history


def curves(history):
    """Curves of a training: the loss, thinned, and what chose at each check."""
    curves_by_name = summaries.curves(history)
    steps, checks = history["step"][-1], len(history["val"])
    curves_by_name["val_step"] = [steps * (number + 1) // checks for number in range(checks)]
    return curves_by_name | {"val_chosen_by": [scores["chosen_by"] for scores in history["val"]]}


@torch.no_grad()
def outputs(head, loader):
    """What a model gives for the batches of a loader, in float32 and on the CPU, a list with one entry a batch."""
    device = next(head.parameters()).device
    with evaluating(head):
        return [head(*(part.to(device) for part in batch[:-1])).float().cpu() for batch in loader]


def from_scratch(config, texts, vocab_size, seed=0):
    """An encoder that knows nothing, and the tokenizer that it reads with.

    Args:
        config: a `BERTConfig`, of which V is not used.
        texts: list of str, which a byte-level BPE learns its merges from.
        vocab_size: V, at most.
        seed: of the weights.

    Returns:
        `BERT` and `BPETokenizer`.
    """
    tokenizer = BPETokenizer.train(texts, vocab_size)
    return fresh(replace(config, vocab_size=len(tokenizer)), seed), tokenizer


def fresh(config, seed=0):
    """A `BERT` of a configuration whose weights are drawn by a seed."""
    torch.manual_seed(seed)
    return BERT(config)


class Encoders:
    """The encoders of an experiment by name, each made once and handed out as a copy.

    Args:
        makers: dict from a name to a function that returns (`BERT`, tokenizer).
    """

    def __init__(self, **makers):
        self._makers = {"minilm": load_minilm} | makers
        self._made = {}

    def __call__(self, name):
        """A copy of the encoder, and its tokenizer.

        Raises:
            ValueError: there is none of that name.
        """
        if name not in self._makers:
            raise ValueError(f"there is no encoder {name!r}, only {', '.join(self._makers)}")
        if name not in self._made:
            self._made[name] = self._makers[name]()
        model, tokenizer = self._made[name]
        return copy.deepcopy(model).cpu(), tokenizer


def begin(contestant, seed, encoders, config, read):
    """What a fine-tuning begins with; random numbers are those of the seed.

    Args:
        contestant: a key of ``encoders``; that from "scratch" is drawn anew for each seed.
        seed: of the run.
        encoders: an `Encoders`.
        config: has a `Tuning` each in ``scratch`` and ``minilm``.
        read: function of the configuration and a tokenizer that gives the data.

    Returns:
        the encoder, the data, and the `Tuning`.
    """
    encoder, tokenizer = encoders(contestant)
    if contestant == "scratch":
        encoder = fresh(encoder.config, seed)
    data = read(config, tokenizer)
    torch.manual_seed(seed)
    return encoder, data, config.minilm if contestant == "minilm" else config.scratch


def drawn(number, share, draw=0):
    """The places of a share of so many examples; several draws of a share below 1 are others.

    Args:
        number: N.
        share: above 0 and at most 1; above that, the number of examples, at most all.
        draw: number of the draw.

    Returns:
        list of int, sorted. A larger share holds a smaller one of the same draw.

    Raises:
        ValueError: the share is less than one example.
    """
    count = round(share * number) if share <= 1 else min(int(share), number)
    if count < 1:
        raise ValueError(f"the share is {share} of {number} examples, expected at least one of them")
    order = list(range(number))
    random.Random(draw).shuffle(order)
    return sorted(order[:count])


def checksums(made, files, encoders):
    """What a record is made from: SHA-256 of the data's files, and of the weights where they are among the encoders.

    Args:
        made: whether the data are made up, and have no files.
        files: (name of the data set, list of its files).
        encoders: names.
    """
    digests = {} if made else registry.checksums(*files)
    if "minilm" in encoders:
        digests |= registry.checksums(NAME, ["model.safetensors", "tokenizer.json"])
    return digests


def need(*packages):
    """Raises ImportError where a package of the baselines or the scores is missing, before anything is trained."""
    for package in packages:
        try:
            __import__(package)
        except ImportError as error:
            raise ImportError(f"this experiment needs {package}: pip install 'd2lmini[experiments]'") from error
