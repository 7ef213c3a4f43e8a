"""Chapter 15: does a GPT that is trained on regression problems learn to do regression?

A prompt holds examples of a linear function that no other prompt has: x_1, y_1, x_2, y_2, ... with y = w x, where
w ~ N(0, I / d) is drawn anew each time and x ~ N(0, I). The model predicts y at each x. No weight of it changes from
prompt to prompt, so what it knows of w it has from the examples before. Its error beside that of least squares, of
ridge regression and of one step of gradient descent; as trained, and on prompts unlike those of the training.

Source: Garg et al. 2022; von Oswald et al. 2023 and Akyürek et al. 2023 for what it may compute.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.experiments.abilities import fresh_data
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS


@dataclass(frozen=True)
class Contestant:
    """A GPT of ``num_blks`` blocks, with "rotary" positions or None; ``noise`` is that of y in its training."""

    name: str
    num_blks: int
    positions: str | None = "rotary"
    noise: float = 0.0


@dataclass(frozen=True)
class Config:
    """Settings; ``dim`` is d, ``examples`` how many a prompt of the training has, ``longer`` one of the test."""

    dim: int = 3
    examples: int = 10
    longer: int = 20
    num_hiddens: int = 64
    num_heads: int = 4
    contestants: tuple = (
        Contestant("three blocks", 3),
        Contestant("two blocks", 2),
        Contestant("one block", 1),
        Contestant("no positions", 3, positions=None),
        Contestant("noisy", 3, noise=0.5),
    )
    batch_size: int = 64
    steps: int = 2_000
    checks: int = 5
    lr: float = 3e-3
    lr_matrices: float = 0.02
    decay: float = 0.6
    tasks: int = 2_000
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), dim=2, examples=3, longer=5, num_hiddens=8, num_heads=2, batch_size=4, steps=4, checks=2, tasks=20,
        contestants=(Contestant("two blocks", 2), Contestant("noisy", 1, None, 0.5)),
    ),
    "cpu": replace(Config(), dim=2, examples=6, longer=12, steps=800, contestants=Config().contestants[1:3]),
    "laptop": replace(Config(), seeds=(0, 1)),
    "full": replace(
        Config(), dim=8, examples=24, longer=48, num_hiddens=128, batch_size=256, steps=50_000, checks=20, tasks=10_000,
        contestants=(Contestant("six blocks", 6), *Config().contestants), seeds=(0, 1, 2),
    ),
}  # fmt: skip

# kinds of prompts: arguments of `draw`; as trained is the first one
PROMPTS = {
    "as trained": {},
    "inputs x 2": {"input_scale": 2.0},
    "inputs x 0.5": {"input_scale": 0.5},
    "skewed inputs": {"skewed": True},
    "weights x 2": {"weight_scale": 2.0},
    "noise": {"noise": 0.5},
}


def draw(size, num, dim, *, noise=0.0, input_scale=1.0, weight_scale=1.0, skewed=False, generator=None):
    """Draws regression tasks.

    Args:
        size: tasks, B. num: examples of each, n. dim: d.
        noise: standard deviation of what is added to y.
        input_scale, weight_scale: factors of x and of w.
        skewed: whether the variances of the d inputs fall as 1 / i^2; their sum stays d.
        generator: of the random numbers; None: torch's own.

    Returns:
        inputs (B, n, d) and y (B, n).
    """
    X = input_scale * torch.randn(size, num, dim, generator=generator)
    if skewed:
        spread = 1 / torch.arange(1.0, dim + 1)
        X = X * spread * (dim / spread.square().sum()).sqrt()
    w = weight_scale * torch.randn(size, dim, 1, generator=generator) / dim**0.5
    y = (X @ w)[..., 0]
    if noise:
        y = y + noise * torch.randn(size, num, generator=generator)
    return X, y


def as_sequence(X, y):
    """Examples as a prompt x_1, y_1, x_2, y_2, ...: (B, n, d) and (B, n) to (B, 2n, d + 1).

    A vector holds x and a zero, or zeros and y.
    """
    pairs = torch.stack([F.pad(X, (0, 1)), F.pad(y[..., None], (X.shape[-1], 0))], 2)  # (B, n, 2, d + 1)
    return pairs.flatten(1, 2)


class Regressor(GPT):
    """A `GPT` that reads vectors in place of tokens, by a linear layer, and has one output: y, predicted at each x."""

    def __init__(self, config, contestant):
        model = replace(
            GPT_CONFIGS["modern"], vocab_size=1, max_len=2 * config.longer, num_hiddens=config.num_hiddens,
            num_heads=config.num_heads, num_blks=contestant.num_blks, dropout=0.0, positions=contestant.positions,
        )  # fmt: skip
        super().__init__(model, config.lr)
        self.settings = config
        self.embedding = nn.Linear(config.dim + 1, config.num_hiddens)

    def forward(self, X, y):
        """Inputs (B, n, d) and y (B, n) to predictions (B, n), each of them from the examples before."""
        return super().forward(as_sequence(X, y))[:, ::2, 0]

    def loss(self, Y_hat, Y):
        """Mean squared error."""
        return F.mse_loss(Y_hat, Y)

    def configure_optimizers(self):
        return fresh_data.optimizer_of(self, self.settings)


def least_squares(X, y):
    """Predicts y at each x from the examples before it by least squares; of all solutions the smallest.

    Args:
        X: (B, n, d). y: (B, n).

    Returns:
        (B, n), float64; the first prediction is 0.
    """
    return _before(X, y, lambda X, y: torch.linalg.pinv(X) @ y)


def ridge(X, y, penalty):
    """As `least_squares`, of |y - X w|^2 + penalty |w|^2.

    With noise of variance s^2 and weights of variance v the penalty s^2 / v gives the mean of w given the examples, and
    so no guess has a smaller expected error.
    """
    identity = torch.eye(X.shape[-1], dtype=torch.float64)
    return _before(X, y, lambda X, y: torch.linalg.solve(X.mT @ X + penalty * identity, X.mT @ y))


def gradient_step(X, y, noise=0.0):
    """As `least_squares`, by one step of gradient descent from w = 0, of the length that is best for x ~ N(0, I).

    With k examples it is c X'y with c = 1 / (k + d + 1 + d s^2), where s is the noise: for that c the expected error of
    y, in units of its variance, has its least value, 1 - c k.
    """
    d = X.shape[-1]
    return _before(X, y, lambda X, y: X.mT @ y / (X.shape[1] + d + 1 + d * noise**2))


def _before(X, y, solve):
    X, y = X.cpu().double(), y.cpu().double()
    predictions = [torch.zeros(len(X), dtype=torch.float64)]
    for k in range(1, X.shape[1]):
        w = solve(X[:, :k], y[:, :k, None])  # (B, d, 1)
        predictions.append((X[:, k, None] @ w)[:, 0, 0])
    return torch.stack(predictions, 1)


def references(config, noise, X, y):
    """Predictions (B, n) of what there is to compare with; ``noise`` is the one that ridge reckons with."""
    predictions = {"zero": torch.zeros_like(y), "least squares": least_squares(X, y)}
    if noise:
        predictions["ridge"] = ridge(X, y, config.dim * noise**2)
    return predictions | {"gradient step": gradient_step(X, y, noise)}


def prompts(config):
    """The tasks of each of `PROMPTS`, the same for all models."""
    for i, (name, options) in enumerate(PROMPTS.items()):
        generator = torch.Generator().manual_seed(10_000 + i)
        yield name, draw(config.tasks, config.longer, config.dim, generator=generator, **options)


def _errors(predictions, y):
    """Mean squared errors (n,) of predictions, for 0, 1, 2 ... examples."""
    return [round(x, 6) for x in (predictions - y).square().mean(0).tolist()]


def score_references(config):
    """For each kind of prompt the errors of each reference, on the tasks on which models are scored."""
    scores = {}
    for name, (X, y) in prompts(config):
        noise = PROMPTS[name].get("noise", 0.0)
        scores[name] = {key: _errors(prediction, y) for key, prediction in references(config, noise, X, y).items()}
    return scores


@torch.no_grad()
def score(model, contestant, config):
    """A model's errors on each kind of prompt, and how far its predictions are from those of the references.

    Returns:
        dict of lists with a value for each number of examples before: ``errors`` by prompt, mean squared; ``distance``
        by reference, the mean square of the difference, on prompts as in the training of this model.
    """
    device, errors, distance = model.dense.weight.device, {}, {}
    home = "noise" if contestant.noise else "as trained"
    for name, (X, y) in prompts(config):
        outputs = torch.cat(
            [model(*part) for part in zip(X.to(device).split(500), y.to(device).split(500), strict=True)]
        )
        outputs = outputs.cpu().double()
        errors[name] = _errors(outputs, y)
        if name == home:
            near = references(config, contestant.noise, X, y)
            distance = {key: _errors(outputs, prediction) for key, prediction in near.items()}
    return {"errors": errors, "distance": distance}


def learn(contestant, config, seed, device, parts, name):
    """Trains a contestant and scores it: a dict for JSON."""
    torch.manual_seed(seed)
    model = Regressor(config, contestant)

    def tasks(size):
        X, y = draw(size, config.examples, config.dim, noise=contestant.noise)
        return X, y, y

    history = fresh_data.fit(model, tasks, config, device, seed, parts, name)
    seconds = [b - a for a, b in pairwise([0.0, *history["seconds"]])]
    return {
        "scores": score(model, contestant, config),
        "parameters": model.num_parameters,
        "tasks_seen": len(history["step"]) * config.batch_size,
        "step_s": round(median(seconds), 4),
        "curves": summaries.curves(history),
    }


def run(config, device, parts=None):
    """Trains every contestant with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``references`` as `score_references`; ``models``: of each contestant ``parameters``,
        ``tasks_seen`` and lists over the seeds: ``scores`` as `score`, ``step_s`` the median time of a step) and
        ``curves`` of each contestant and seed: ``step`` and ``train_loss``, which is the loss on tasks never seen.
    """
    parts = parts or Parts()
    references = parts("references", score_references, config)
    models, curves = fresh_data.contest(
        learn, config, device, parts, ("parameters", "tasks_seen"), ("scores", "step_s")
    )
    metrics = {"references": references, "models": models}
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": curves}


def headline(metrics, config):
    """What is left of the variance of y after the last example of the training's prompts, in a sentence."""
    last, home, shares = config.examples - 1, next(iter(PROMPTS)), []
    for contestant in config.contestants:
        if not contestant.noise:
            left = mean(scores["errors"][home][last] for scores in metrics["models"][contestant.name]["scores"])
            shares.append(f"{contestant.name} {left / metrics['references'][home]['zero'][last]:.3f}")
    step = metrics["references"][home]["gradient step"][last] / metrics["references"][home]["zero"][last]
    return (
        f"of the variance of y, linear in {config.dim} numbers, {last} examples leave unexplained: "
        f"{', '.join(shares)}; one step of gradient descent {step:.3f}, least squares 0"
    )
