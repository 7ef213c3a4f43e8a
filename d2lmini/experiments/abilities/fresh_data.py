"""What experiments on made-up sequences share: data drawn anew in every step, and how a small GPT learns from them."""

from torch import optim
from torch.utils.data import DataLoader, Dataset

from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.training import DataModule, WarmupLinear
from d2lmini.training.optimizers import muon_of


class Drawn(DataModule):
    """Batches that no one has seen before: ``draw(size)`` gives one, from torch's global random numbers."""

    def __init__(self, draw, batch_size, steps):
        self.draw, self.batch_size, self.steps = draw, batch_size, steps

    def get_dataloader(self, train):
        if train:
            return DataLoader(_Draws(self.draw, self.batch_size * self.steps), self.batch_size, collate_fn=_as_it_is)


class _Draws(Dataset):
    def __init__(self, draw, number):
        self.draw, self.number = draw, number

    def __len__(self):
        return self.number

    def __getitems__(self, indices):
        return self.draw(len(indices))


def _as_it_is(batch):
    return batch


def optimizer_of(model, config):
    """Muon for the matrices inside of a GPT's blocks, AdamW for all the rest; AdamW for all where Muon's rate is 0."""
    if config.lr_matrices:
        return muon_of(model, model.blks, lr=config.lr_matrices, lr_others=config.lr)
    return optim.AdamW(model.parameters(), lr=config.lr, betas=(0.9, 0.95), weight_decay=0.0)


def fit(model, draw, config, device, seed, parts, name, after_check=None):
    """Trains a `Module` on what ``draw(size)`` gives.

    ``config`` has ``batch_size``, ``steps``, ``checks`` (how often ``after_check``, a function of the trainer that
    returns a dict, is called and a checkpoint written) and ``decay``, the share of the steps in which the learning rate
    goes down to zero.

    Returns:
        the trainer's history.
    """
    each = max(1, config.steps // config.checks)
    return fit_part(
        model,
        Drawn(draw, config.batch_size, each),
        device,
        config.checks,
        parts=parts,
        name=name,
        after_epoch=after_check,
        gradient_clip_val=1.0,
        schedule=WarmupLinear(0, each * config.checks, int(config.decay * each * config.checks)),
        precision="float32",
        seed=seed,
    )


def contest(learn, config, device, parts, of_the_first, of_all):
    """Trains every contestant of ``config.contestants`` with every seed of ``config.seeds``.

    Args:
        learn: ``learn(contestant, config, seed, device, parts, name)`` trains one and returns a dict for JSON, with
            its ``curves``.
        config, device, parts: as `fit`.
        of_the_first: keys of that dict of which the first seed's value is kept.
        of_all: keys of which the values of all seeds are kept, as lists.

    Returns:
        dict from the contestants' names to what is kept, and dict from "contestant-seed" to curves.
    """
    models, curves = {}, {}
    for contestant in config.contestants:
        rows = []
        for seed in config.seeds:
            name = f"{contestant.name.replace(' ', '-')}-{seed}"
            rows.append(parts(name, learn, contestant, config, seed, device, parts, name))
            curves[name] = rows[-1]["curves"]
        kept = {key: rows[0][key] for key in of_the_first}
        models[contestant.name] = kept | summaries.columns([{key: row[key] for key in of_all} for row in rows])
    return models, curves
