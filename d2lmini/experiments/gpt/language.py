"""What the experiments on language models share: a text as tokens, how a GPT is trained on it, and how it is scored."""

import hashlib
import itertools
import math
from dataclasses import dataclass
from statistics import median

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler

from d2lmini.data import registry
from d2lmini.data.text import BOOK
from d2lmini.lab.fit import fit_in_checks
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS, GPTConfig
from d2lmini.training import DataModule, WarmupCosine
from d2lmini.training.optimizers import muon_of
from d2lmini.training.schedules import WarmupLinear

CURVES = "val_step", "val_loss"
_AT_ONCE = 8_192  # tokens that are scored together


@dataclass(frozen=True)
class Recipe:
    """How a GPT is trained on a text, by random crops of it.

    ``optimizer`` is "muon" (`MuonWithAdamW`: ``lr_matrices`` for the blocks' matrices, ``lr`` for the rest) or
    "adamw" (``lr`` for all). ``schedule`` is "linear" (a plateau, then down to ``floor`` over the last ``decay`` of
    the steps) or "cosine"; ``warmup`` is in steps. ``order`` is "crops", drawn anew and again, or "epochs", each of
    which goes once through the text in pieces. A check scores ``val_batches`` random crops, the end ``final_batches``.
    """

    model: GPTConfig = GPT_CONFIGS["toy"]
    batch_size: int = 16
    steps: int = 2_400
    checks: int = 6
    optimizer: str = "muon"
    lr: float = 3e-3
    lr_matrices: float = 0.02
    beta2: float = 0.95
    weight_decay: float = 0.0
    warmup: int = 0
    schedule: str = "linear"
    decay: float = 0.6
    floor: float = 0.0
    gradient_clip_val: float = 1.0
    precision: str = "auto"
    order: str = "crops"
    val_batches: int = 20
    final_batches: int = 200


class Learner(GPT):
    """A `GPT` that is trained by a `Recipe`."""

    def __init__(self, recipe):
        super().__init__(recipe.model, recipe.lr)
        self.recipe = recipe

    def configure_optimizers(self):
        recipe = self.recipe
        options = {"betas": (0.9, recipe.beta2), "weight_decay": recipe.weight_decay}
        if recipe.optimizer == "muon":
            return muon_of(self, self.blks, lr=recipe.lr_matrices, lr_others=recipe.lr, **options)
        matrices = [p for p in self.parameters() if p.dim() > 1]
        others = [p for p in self.parameters() if p.dim() <= 1]
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW([g for g in groups if g["params"]], lr=recipe.lr, **options)


class Windows(Dataset):
    """All windows of T + 1 tokens of a text (N,), by where they start: the inputs (B, T) and what follows each."""

    def __init__(self, tokens, length):
        if len(tokens) <= length:
            raise ValueError(f"the text has {len(tokens)} tokens, too few for windows of {length} and one more")
        self.windows = tokens.unfold(0, length + 1, 1)  # (N - T, T + 1), a view

    def __len__(self):
        return len(self.windows)

    def __getitems__(self, starts):
        rows = self.windows[torch.as_tensor(starts)].long()  # (B, T + 1)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


class Pieces(Sampler):
    """Starts of windows that go once through a text in an epoch, from a random place on, in random order."""

    def __init__(self, num_starts, length, num_samples):
        self.num_starts, self.length, self.num_samples = num_starts, length, num_samples

    def __iter__(self):
        def starts():
            while True:
                first = int(torch.randint(min(self.length, self.num_starts), ()))
                pieces = torch.arange(first, self.num_starts, self.length)
                yield from pieces[torch.randperm(len(pieces))].tolist()

        return itertools.islice(starts(), self.num_samples)

    def __len__(self):
        return self.num_samples


class Text(DataModule):
    """Batches from a text of tokens, (N,), and from another one to validate."""

    def __init__(self, train, val, recipe):
        self.recipe, length = recipe, recipe.model.max_len
        self.train, self.val = Windows(train, length), Windows(val, length)

    def get_dataloader(self, train):
        recipe, windows = self.recipe, self.train if train else self.val
        number = recipe.batch_size * (max(1, recipe.steps // recipe.checks) if train else recipe.val_batches)
        if train and recipe.order == "epochs":
            sampler = Pieces(len(windows), recipe.model.max_len, number)
        else:
            sampler = RandomSampler(windows, replacement=True, num_samples=number)
        return DataLoader(windows, recipe.batch_size, sampler=sampler, collate_fn=lambda batch: batch)


def train(recipe, train_tokens, val_tokens, device, seed=0, parts=None, name="training", say=print, make=Learner):
    """Trains a GPT by a recipe.

    Args:
        recipe: a `Recipe`.
        train_tokens, val_tokens: integers (N,) below V.
        device: ``torch.device``.
        seed: of the weights and all that is drawn.
        parts, name: as `fit_part`.
        say: called with a line after each check; None: silence.
        make: function of the recipe that gives the `Learner` to train.

    Returns:
        the trained `Learner`, in evaluation mode, and the trainer's history.
    """
    torch.manual_seed(seed)
    model, data = make(recipe), Text(train_tokens, val_tokens, recipe)
    if recipe.schedule == "cosine":
        schedule = WarmupCosine(recipe.warmup, recipe.steps, recipe.floor)
    else:
        schedule = WarmupLinear(recipe.warmup, recipe.steps, int(recipe.decay * recipe.steps), recipe.floor)

    return model, fit_in_checks(model, data, device, recipe, schedule, seed=seed, parts=parts, name=name, say=say)


def measures(model, history, recipe):
    """What is written down of each training: sizes and times; ``step_s`` is the median time of a step."""
    seconds = history["seconds"]
    return {
        "parameters": model.num_parameters,
        "tokens_seen": len(history["step"]) * recipe.batch_size * recipe.model.max_len,
        "train_s": round(seconds[-1], 3),
        "step_s": round(median(b - a for a, b in itertools.pairwise([0.0, *seconds])), 4),
    }


@torch.no_grad()
def loss_by_place(model, tokens, recipe, seed=0):
    """Mean losses in nats on random crops of a text, for each place in a crop: (T,), the first with a context of one.

    Their mean is what nanoGPT estimates.
    """
    windows, generator = Windows(tokens, recipe.model.max_len), torch.Generator().manual_seed(seed)
    device, total = model.embedding.weight.device, 0.0
    for _ in range(recipe.final_batches):
        starts = torch.randint(len(windows), (recipe.batch_size,), generator=generator)
        X, Y = windows.__getitems__(starts)
        total = total + _losses(model, X.to(device), Y.to(device)).mean(0)
    return total / recipe.final_batches


@torch.no_grad()
def loss_on_whole(model, tokens, recipe, stride=None):
    """Loss in nats, summed over all tokens of a text but the first, each scored once and with a long context.

    A window of T tokens moves on by ``stride`` (None: T / 4) and scores what is new in it, so that each token but those
    at the beginning has at least T - stride before it.

    Returns:
        the sum of the losses, and how many there were.
    """
    T = recipe.model.max_len
    stride = stride or max(1, T // 4)
    device, total, scored = model.embedding.weight.device, 0.0, 0
    starts = [*range(0, max(1, len(tokens) - T - 1), stride), max(0, len(tokens) - T - 1)]
    for group in batched(starts, max(1, _AT_ONCE // T)):
        windows = torch.stack([tokens[s : s + T + 1] for s in group]).long().to(device)  # (B, T + 1)
        losses = _losses(model, windows[:, :-1], windows[:, 1:])
        for start, row in zip(group, losses, strict=True):
            new = start + len(row) - scored  # targets of a window are tokens start + 1 ... start + T
            total += row[len(row) - new :].sum().item()
            scored += new
    return total, scored


def batched(values, size):
    """Slices of a list, of ``size`` values each and in the end of what is left."""
    return (values[i : i + size] for i in range(0, len(values), size))


def _losses(model, X, Y):
    return F.cross_entropy(model(X).transpose(1, 2), Y, reduction="none").cpu().double()  # (B, T)


def recalled(model, tokens, lengths, num, passages, seed=0):
    """How much of a text comes back word for word: greedy continuations of passages of it.

    Args:
        model: a `GPT`.
        tokens: the text, integers (N,).
        lengths: of the prompts; none with ``num`` more exceeds the context.
        num: tokens to go on.
        passages: how many places of the text, the same for all lengths: prompts end where the others end.

    Returns:
        dict of lists with a value for each length: ``mean``, how many tokens agree before the first that does not, and
        ``all``, the share of the passages that come back whole.
    """
    longest, generator = max(lengths), torch.Generator().manual_seed(seed)
    ends = torch.randint(longest, len(tokens) - num, (passages,), generator=generator).tolist()
    wanted = torch.stack([tokens[end : end + num] for end in ends]).long()
    agreement = {"mean": [], "all": []}
    for length in lengths:
        prompts = torch.stack([tokens[end - length : end] for end in ends]).long()
        agree = (model.generate(prompts, num, temperature=0).tokens.cpu() == wanted).long().cumprod(1).sum(1)
        agreement["mean"].append(agree.cpu().double().mean().item())
        agreement["all"].append((agree == num).cpu().double().mean().item())
    return agreement


def bits_per_byte(total, text):
    """A summed loss in nats as bits for each byte of the text that was scored: comparable between vocabularies."""
    return total / math.log(2) / len(text.encode("utf-8"))


def text_checksums(name):
    """SHA-256 of what a text is read from."""
    if name == "book":
        return {"book.txt": hashlib.sha256(BOOK.read_bytes()).hexdigest()}
    return registry.checksums(name, [file.name for file in registry.get(name).files])
