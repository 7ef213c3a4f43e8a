"""What the experiments with T5 share: tokens with sentinels, a recipe, training on pairs of texts, and answers."""

from dataclasses import dataclass, replace

import torch
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

from d2lmini.arguments import checked_ids
from d2lmini.data.batching import pad
from d2lmini.lab.fit import fit_in_checks
from d2lmini.models.t5 import T5
from d2lmini.models.t5_config import T5_CONFIGS, T5Config
from d2lmini.tokenization.fast_bpe import BPETokenizer
from d2lmini.training import DataModule
from d2lmini.training.schedules import WarmupLinear


@dataclass(frozen=True)
class Recipe:
    """How a T5 is trained, by Adafactor. V of ``model``, and its special tokens, come from the tokenizer.

    ``lr`` is reached after ``warmup`` of the steps and goes down to 0 over the last ``decay`` of them. Validation is
    after each of ``checks`` equal parts of the steps, on ``val_batches``.
    """

    model: T5Config = T5_CONFIGS["toy"]
    batch_size: int = 32
    steps: int = 1_000
    checks: int = 4
    lr: float = 3e-2
    warmup: float = 0.05
    decay: float = 0.6
    gradient_clip_val: float = 1.0
    precision: str = "auto"
    val_batches: int = 8


class Tokens:
    """A byte-level BPE with sentinels behind its tokens, which no text encodes to.

    Args:
        tokenizer: a `BPETokenizer`.
        num_sentinels: how many.

    Attributes:
        sentinels: their ids, a list.
        pad, start, eos: ids of ``<pad>``, ``<bos>`` (with which the decoder begins) and ``<eos>``.
    """

    def __init__(self, tokenizer, num_sentinels=32):
        self.tokenizer = tokenizer
        self.sentinels = list(range(len(tokenizer), len(tokenizer) + num_sentinels))
        self.pad, self.start, self.eos = (tokenizer[name] for name in ("<pad>", "<bos>", "<eos>"))

    @classmethod
    def train(cls, texts, vocab_size, num_sentinels=32):
        """Learns the merges from texts; ``vocab_size`` counts the sentinels, too."""
        return cls(BPETokenizer.train(texts, vocab_size - num_sentinels), num_sentinels)

    def __len__(self):
        return len(self.tokenizer) + len(self.sentinels)

    def encode_batch(self, texts):
        """The ids of texts, each with ``<eos>`` at its end: a list of lists."""
        return [[*ids, self.eos] for ids in self.tokenizer.encode_batch(texts)]

    def decode(self, ids):
        """The text of ids (T,) before ``<eos>``; sentinels are ``<0>``, ``<1>``, ..."""
        text, run = "", []
        for index in [*checked_ids(ids), self.eos]:
            if index not in self.sentinels and index != self.eos:
                run.append(index)
                continue
            if run:  # the space of the first word is there again, since it stands after a sentinel
                space = " " if self.tokenizer.to_tokens(run[0]).startswith("▁") else ""
                text, run = text + space + self.tokenizer.decode(run), []
            if index == self.eos:
                break
            text += f" <{self.sentinels.index(index)}>"
        return text.strip()


def with_tokens(config, tokens):
    """A `T5Config` for the vocabulary of a `Tokens`."""
    return replace(config, vocab_size=len(tokens), pad=tokens.pad, start=tokens.start, eos=tokens.eos)


class Pairs(DataModule):
    """Pairs of texts as ids, in groups each of which is drawn at its rate.

    A batch is what `T5` takes: inputs (B, S), targets shifted by one (B, T), lengths of inputs (B,), targets (B, T).

    Args:
        tokens: a `Tokens`.
        train, val: lists of groups, each a list of (input ids, target ids), both with ``<eos>`` at the end.
        rates: of the groups, numbers that add up to 1.
        recipe: a `Recipe`.

    Raises:
        ValueError: there are not as many rates as groups, or a group is empty.
    """

    def __init__(self, tokens, train, val, rates, recipe):
        if not len(train) == len(val) == len(rates):
            raise ValueError(f"there are {len(train)} groups, {len(val)} to validate with and {len(rates)} rates")
        if not all(train) or not all(val):
            raise ValueError("a group of pairs is empty: has max_len left any of them?")
        self.tokens, self.train, self.val, self.rates, self.recipe = tokens, train, val, rates, recipe

    def get_dataloader(self, train):
        """Training batches are drawn anew each time; those of validation are the same each time."""
        recipe, groups = self.recipe, self.train if train else self.val
        number = recipe.batch_size * (max(1, recipe.steps // recipe.checks) if train else recipe.val_batches)
        weights = [rate / len(group) for rate, group in zip(self.rates, groups, strict=True) for _ in group]
        pairs = [pair for group in groups for pair in group]
        sampler = WeightedRandomSampler(weights, number)
        if not train:
            drawn = torch.multinomial(torch.tensor(weights), number, True, generator=torch.Generator().manual_seed(0))
            sampler = drawn.tolist()
        return DataLoader(_Listed(pairs), recipe.batch_size, sampler=sampler, collate_fn=self.collate)

    def collate(self, pairs):
        """One batch of pairs of ids."""
        return collate(pairs, self.tokens)


class _Listed(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(pairs, tokens):
    """Pairs of ids as a batch of `T5`: (B, S), (B, T), (B,), (B, T)."""
    inputs, targets = zip(*pairs, strict=True)
    shifted = pad([[tokens.start, *target[:-1]] for target in targets], tokens.pad)
    return pad(inputs, tokens.pad), shifted, torch.tensor([len(ids) for ids in inputs]), pad(targets, tokens.pad)


def train(recipe, tokens, data, device, seed=0, parts=None, name="training", weights=None, say=print):
    """Trains a T5 by a recipe.

    Args:
        recipe: a `Recipe`.
        tokens: a `Tokens`.
        data: a `DataModule` whose epoch is one of the checks of the recipe.
        device: ``torch.device``.
        seed: of the weights and all that is drawn.
        parts, name: as `fit_part`.
        weights: a state dict to begin with; None: random ones.
        say: called with a line after each check; None: silence.

    Returns:
        the trained `T5`, in evaluation mode, and the trainer's history.
    """
    torch.manual_seed(seed)
    model = T5(with_tokens(recipe.model, tokens), recipe.lr)
    if weights is not None:
        model.load_state_dict(weights)
    steps = recipe.checks * max(1, recipe.steps // recipe.checks)
    schedule = WarmupLinear(int(recipe.warmup * steps), steps, int(recipe.decay * steps))
    return model, fit_in_checks(model, data, device, recipe, schedule, seed=seed, parts=parts, name=name, say=say)


def answers(model, tokens, inputs, max_new_tokens, batch_size=128):
    """What a model answers, greedily: texts, in the order of the inputs.

    Args:
        model: a `T5`.
        tokens: its `Tokens`.
        inputs: list of lists of ids, with ``<eos>``.
        max_new_tokens: the most tokens of an answer.
        batch_size: inputs at a time; those of about one length go together.

    Returns:
        list of str.
    """
    order = sorted(range(len(inputs)), key=lambda i: len(inputs[i]))
    texts = [None] * len(inputs)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        outputs = model.generate([inputs[i] for i in rows], max_new_tokens).tokens
        for i, row in zip(rows, outputs, strict=True):
            texts[i] = tokens.decode(row)
    return texts


def step_flops(model, S, T, batch_size):
    """Floating-point operations of a training step, forward and backward, without attention's scores.

    Args:
        model: a `T5`.
        S, T: tokens of an input and of a target.
        batch_size: B.

    Returns:
        int: 6 for each weight and each token that it multiplies. A look-up of embeddings multiplies nothing; keys and
        values of cross-attention are made of inputs.
    """

    def size(module):
        return sum(weight.numel() for weight in module.parameters())

    encoder, decoder = size(model.encoder.blks), size(model.decoder.blks)
    crossing = sum(size(blk.attention2.W_k) + size(blk.attention2.W_v) for blk in model.decoder.blks)
    logits = model.decoder.dense.weight.numel()
    return 6 * batch_size * (S * (encoder + crossing) + T * (decoder - crossing + logits))
