"""What an encoder and a decoder may be pretrained with: of crops of a text and a generator, a batch of T5."""

from functools import partial

import torch
from torch.utils.data import DataLoader, RandomSampler

from d2lmini.experiments.gpt import language
from d2lmini.objectives import corrupt_spans, random_spans
from d2lmini.training import DataModule

NOISE = 0.15


def spans(tokens, vocabulary, generator, mean_span=3.0):
    """Spans of noise become sentinels; the target has what stood there, each after its sentinel."""
    noise = random_spans(*tokens.shape, generator=generator, noise_density=NOISE, mean_span=mean_span)
    made = corrupt_spans(tokens, noise, vocabulary.sentinels, closing=False, eos=vocabulary.eos, padding=vocabulary.pad)
    return _batch(made.inputs, made.targets, vocabulary)


def prefix(tokens, vocabulary, generator):
    """The first half is the input, the second the target."""
    half = tokens.shape[1] // 2
    return _batch(_ended(tokens[:, :half], vocabulary), _ended(tokens[:, half:], vocabulary), vocabulary)


def masked(tokens, vocabulary, generator):
    """Single tokens are hidden, all behind one sentinel; the target is the whole text.

    Source: Raffel et al. 2020, section 3.3.2, as in MASS.
    """
    noise = random_spans(*tokens.shape, generator=generator, noise_density=NOISE, mean_span=1)
    hidden = torch.where(noise, vocabulary.sentinels[0], tokens)
    return _batch(_ended(hidden, vocabulary), _ended(tokens, vocabulary), vocabulary)


def deshuffled(tokens, vocabulary, generator):
    """The tokens in any order are the input, the text is the target."""
    order = torch.rand(tokens.shape, generator=generator).argsort(1)
    return _batch(_ended(tokens.gather(1, order), vocabulary), _ended(tokens, vocabulary), vocabulary)


OBJECTIVES = {
    "spans of 1": partial(spans, mean_span=1.0),
    "spans of 3": spans,
    "spans of 10": partial(spans, mean_span=10.0),
    "prefix": prefix,
    "masked": masked,
    "deshuffled": deshuffled,
}


def _ended(tokens, vocabulary):
    return torch.cat([tokens, tokens.new_full((len(tokens), 1), vocabulary.eos)], 1)


def _batch(inputs, targets, vocabulary):
    """Inputs (B, S) and targets (B, T), all of one length, as `T5` takes them."""
    shifted = torch.cat([targets.new_full((len(targets), 1), vocabulary.start), targets[:, :-1]], 1)
    return inputs, shifted, torch.full((len(inputs),), inputs.shape[1]), targets


class Crops(DataModule):
    """Random crops of a text of ids (N,), and what an objective makes of a batch of them.

    Training crops are drawn anew; those of validation, and what is hidden of them, are the same each time.
    """

    def __init__(self, train, val, tokens, objective, recipe):
        self.parts = {name: language.Windows(ids, recipe.window - 1) for name, ids in (("train", train), ("val", val))}
        self.tokens, self.objective, self.recipe = tokens, objective, recipe

    def get_dataloader(self, train):
        recipe = self.recipe
        if not train:
            return self.fixed(recipe.val_batches)
        windows = self.parts["train"]
        number = recipe.batch_size * max(1, recipe.steps // recipe.checks)
        sampler = RandomSampler(windows, replacement=True, num_samples=number)
        return DataLoader(windows, recipe.batch_size, sampler=sampler, collate_fn=self._collate)

    def fixed(self, number):
        """So many batches for validation."""
        generator = torch.Generator().manual_seed(0)
        size = self.recipe.batch_size
        starts = torch.randint(len(self.parts["val"]), (number * size,), generator=generator).tolist()
        made = [self._made(self.parts["val"].__getitems__(part), generator) for part in language.batched(starts, size)]
        return DataLoader(made, None)

    def _collate(self, batch):
        return self._made(batch, torch.Generator().manual_seed(int(torch.randint(2**62, ()))))

    def _made(self, batch, generator):
        tokens = torch.cat([batch[0], batch[1][:, -1:]], 1)  # (B, window)
        return self.objective(tokens, self.tokens, generator)
