"""Chapter 01: can a layer learn to look things up? One attention step against a fully connected network.

A task shows ``num_pairs`` keys with their values and a query, a noisy copy of one key; the answer is that key's value.
Keys and values are drawn anew in every example, so nothing can be memorised: only the *operation* can be learned. Both
learners see the same examples for the same number of steps; both are scored on unseen ones, and the attention layer
also on more pairs than it was trained on, which the fully connected network cannot even read.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.lab.parts import Parts
from d2lmini.lab.summaries import means


@dataclass(frozen=True)
class Config:
    """Settings; sizes are counts, ``noise`` is the standard deviation added to each coordinate of the query."""

    num_pairs: int = 8
    more_pairs: tuple = (2, 4, 16, 32, 64)
    dim: int = 16
    noise: float = 0.1
    num_hiddens: int = 256
    batch_size: int = 256
    steps: int = 1500
    lr: float = 3e-3
    test_size: int = 2000
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(Config(), steps=20, seeds=(0,), test_size=200, num_hiddens=32),
    "cpu": replace(Config(), steps=600, seeds=(0,)),
    "laptop": replace(Config(), steps=4000, num_hiddens=1024),  # a wider, longer-trained opponent, three seeds
}


def draw_task(config, num_pairs, size, generator):
    """Draw `size` look-up tasks.

    Returns:
        query (B, D), keys (B, S, D), values (B, S, D) and the index (B,) of the key that is asked for.
    """
    keys = F.normalize(torch.randn(size, num_pairs, config.dim, generator=generator), dim=-1)  # (B, S, D)
    values = torch.randn(size, num_pairs, config.dim, generator=generator)  # (B, S, D)
    index = torch.randint(num_pairs, (size,), generator=generator)  # (B,)
    query = keys[torch.arange(size), index]  # (B, D)
    return query + config.noise * torch.randn(query.shape, generator=generator), keys, values, index


class Lookup(nn.Module):
    """One attention step with learned projections of query and key; the values pass unchanged."""

    def __init__(self, config):
        super().__init__()
        self.W_q = nn.Linear(config.dim, config.dim, bias=False)
        self.W_k = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, query, keys, values):
        return F.scaled_dot_product_attention(self.W_q(query)[:, None], self.W_k(keys), values)[:, 0]  # (B, D)


class FullyConnected(nn.Module):
    """Two hidden layers over everything laid end to end: the number of pairs is built into the first matrix."""

    def __init__(self, config):
        super().__init__()
        width = config.dim * (1 + 2 * config.num_pairs)
        self.net = nn.Sequential(
            nn.Linear(width, config.num_hiddens),
            nn.ReLU(),
            nn.Linear(config.num_hiddens, config.num_hiddens),
            nn.ReLU(),
            nn.Linear(config.num_hiddens, config.dim),
        )

    def forward(self, query, keys, values):
        return self.net(torch.cat([query, keys.flatten(1), values.flatten(1)], dim=1))  # (B, D)


@torch.no_grad()
def _accuracy(model, config, num_pairs, generator, device):
    """Share of tasks whose output is nearer to the right value than to every other one."""
    query, keys, values, index = (x.to(device) for x in draw_task(config, num_pairs, config.test_size, generator))
    nearest = torch.cdist(model(query, keys, values)[:, None], values)[:, 0].argmin(dim=1)  # (B,)
    return (nearest == index).cpu().double().mean().item()


def _train(model, config, seed, device):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    generator, losses = torch.Generator().manual_seed(seed), []
    for _ in range(config.steps):
        query, keys, values, index = draw_task(config, config.num_pairs, config.batch_size, generator)
        target = values[torch.arange(len(index)), index].to(device)
        loss = F.mse_loss(model(query.to(device), keys.to(device), values.to(device)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return means(torch.stack(losses).tolist(), max(1, config.steps // 200))


def learn(kind, config, seed, device):
    """Train one learner and score it. Returns: dict for JSON."""
    torch.manual_seed(seed)
    model = kind(config)
    losses, test = _train(model, config, seed, device), torch.Generator().manual_seed(10_000 + seed)
    sizes = (*config.more_pairs, config.num_pairs) if kind is Lookup else ()
    return {
        "losses": losses,
        "accuracy": _accuracy(model, config, config.num_pairs, test, device),
        "by_pairs": {str(pairs): _accuracy(model, config, pairs, test, device) for pairs in sizes},
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def run(config, device, parts=None):
    """Train both learners for each seed; ``parts`` are those of `Parts`.

    Returns:
        dict with ``metrics`` (accuracies as lists over seeds, parameter counts) and ``curves``
        (training losses, each the mean of ``steps // 200`` steps).
    """
    parts = parts or Parts()
    metrics, curves = {"parameters": {}, "accuracy": {}, "accuracy_by_pairs": {}}, {}
    for name, kind in (("attention", Lookup), ("fully_connected", FullyConnected)):
        metrics["accuracy"][name] = []
        for seed in config.seeds:
            record = parts(f"{name}-{seed}", learn, kind, config, seed, device)
            curves[f"{name}_{seed}"] = record["losses"]
            metrics["accuracy"][name].append(record["accuracy"])
            for pairs, score in record["by_pairs"].items():
                metrics["accuracy_by_pairs"].setdefault(pairs, []).append(score)
        metrics["parameters"][name] = record["parameters"]
    metrics["accuracy"]["chance"] = 1 / config.num_pairs
    mean = {name: sum(scores) / len(scores) for name, scores in metrics["accuracy"].items() if name != "chance"}
    metrics["headline"] = (
        f"looking up one of {config.num_pairs} pairs: attention {mean['attention']:.1%} "
        f"({metrics['parameters']['attention']:,} parameters), fully connected {mean['fully_connected']:.1%} "
        f"({metrics['parameters']['fully_connected']:,})"
    )
    return {"metrics": metrics, "curves": curves}
