"""Chapter 17: what are no, one and a few examples in the prompt worth, by the size of the model?

Chapter 15's GPTs that do regression in their prompts (`in_context`), now of several sizes in width and depth.
All see equally many prompts, drawn anew in every step, at the same learning rates; so the larger ones cost more FLOPs,
which are told. A prompt is of one of two kinds and does not say which: in a dense one y depends on all numbers of x, in
a sparse one on a single one of them. What is best to guess under both kinds is known, and so is how far each model is
from it after each number of examples. Without an example nothing is known, and all sizes must err alike.

Source: Brown et al. 2020, section 1, for the question; Garg et al. 2022 for tasks like these, sparse ones too.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import torch

from d2lmini.experiments.abilities import fresh_data, in_context
from d2lmini.experiments.laws.power_laws import slope
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.scaling import gpt_training_flops, training_flops

KINDS = "dense", "sparse"


@dataclass(frozen=True)
class Contestant:
    """A GPT of ``num_blks`` blocks, ``num_hiddens`` wide.

    Heads are equally wide in all sizes. The scores of normed queries and keys lie between minus and plus the root of
    that width, so it sets how much of its weight a head can give to a single place.
    """

    num_hiddens: int
    num_heads: int
    num_blks: int

    @property
    def name(self):
        return f"{self.num_blks} block{'s' * (self.num_blks > 1)} of {self.num_hiddens}"


@dataclass(frozen=True)
class Config:
    """Settings; those that `in_context.Config` has, too, mean the same.

    A share ``sparse`` of the prompts in the training is sparse, and ``noise`` is that of y, in tests too. ``shots`` are
    the numbers of examples of which the record tells in brief; a prompt has more of them than the largest.
    """

    dim: int = 3
    examples: int = 21
    shots: tuple = (0, 1, 2, 3, 5, 10, 20)
    sparse: float = 0.5
    noise: float = 0.1
    contestants: tuple = (
        Contestant(16, 1, 1),
        Contestant(16, 1, 2),
        Contestant(32, 2, 2),
        Contestant(48, 3, 3),
        Contestant(64, 4, 4),
    )
    batch_size: int = 64
    steps: int = 1_500
    checks: int = 5
    lr: float = 3e-3
    lr_matrices: float = 0.02
    decay: float = 0.6
    tasks: int = 2_000
    seeds: tuple = (0, 1)


PRESETS = {
    "smoke": replace(
        Config(), dim=2, examples=4, shots=(0, 1, 3), contestants=Config().contestants[:2],
        batch_size=4, steps=4, checks=2, tasks=20,
    ),
    "cpu": replace(
        Config(), dim=2, examples=9, shots=(0, 1, 2, 3, 5, 8), contestants=Config().contestants[1:4:2], steps=400,
        seeds=(0,),
    ),
    "laptop": Config(),
    "full": replace(
        Config(), dim=10, examples=41, shots=(0, 1, 2, 3, 5, 10, 20, 40), batch_size=256, steps=50_000, checks=20,
        contestants=(*Config().contestants, Contestant(96, 6, 6), Contestant(128, 8, 8)), tasks=10_000,
        seeds=(0, 1, 2),
    ),
}  # fmt: skip


def check(config):
    """Raises ValueError unless there are two sizes and prompts have more examples than the most shots."""
    if len({contestant.name for contestant in config.contestants}) < 2:
        raise ValueError(f"contestants are {config.contestants}, expected two different sizes or more to compare")
    if max(config.shots) >= config.examples:
        raise ValueError(
            f"shots go to {max(config.shots)}, but prompts have {config.examples} examples: the last one is predicted "
            f"from the {config.examples - 1} before it"
        )


def draw(size, num, dim, *, sparse, noise, generator=None):
    """Draws regression tasks of two kinds, whose y have the same variance.

    Args:
        size, num, dim, noise, generator: as `in_context.draw`.
        sparse: with which probability y depends on one of the d numbers alone, by a weight from N(0, 1).

    Returns:
        inputs (B, n, d) and y (B, n).
    """
    X, y = in_context.draw(size, num, dim, noise=noise, generator=generator)
    feature = torch.randint(dim, (size,), generator=generator)
    alone = X[torch.arange(size), :, feature] * torch.randn(size, 1, generator=generator)
    alone = alone + noise * torch.randn(size, num, generator=generator)
    return X, torch.where(torch.rand(size, 1, generator=generator) < sparse, alone, y)


def best_guess(X, y, sparse, noise):
    """Predicts y at each x from the examples before it, as one does who knows how tasks are drawn.

    A task is dense, or sparse in one of d ways. Each of these says how the y hang together, as a Gaussian; their
    predictions are weighted by how probable they are given the examples. It is the mean of y given the examples, and so
    no guess has a smaller expected squared error over both kinds.

    Args:
        X: (B, n, d). y: (B, n). sparse, noise: as `draw`; the noise is more than 0.

    Returns:
        (B, n), float64; the first prediction is 0.
    """
    X, y, (n, d) = X.cpu().double(), y.cpu().double(), X.shape[1:]
    each = X.mT[..., None] * X.mT[:, :, None]  # (B, d, n, n), of y that depends on one number alone
    together = torch.cat([each.mean(1, keepdim=True), each], 1)  # dense first
    prior = torch.tensor([1 - sparse] + [sparse / d] * d, dtype=torch.float64).log()
    root = torch.linalg.cholesky(together + noise**2 * torch.eye(n, dtype=torch.float64))
    y = y[:, None].expand(-1, d + 1, -1)  # (B, d + 1, n)
    surprise = torch.linalg.solve_triangular(root, y[..., None], upper=False)[..., 0]  # in standard deviations
    deviation = root.diagonal(dim1=-2, dim2=-1)  # of each y, given those before it
    log_p = -surprise.square() / 2 - deviation.log()  # but for a constant
    before = log_p.cumsum(-1) - log_p
    return ((y - deviation * surprise) * (prior[:, None] + before).softmax(1)).sum(1)


def prompts(config):
    """The test's tasks of each of `KINDS`, the same for all models."""
    for i, kind in enumerate(KINDS):
        generator = torch.Generator().manual_seed(10_000 + i)
        shape = config.tasks, config.examples, config.dim
        yield kind, draw(*shape, sparse=float(kind == "sparse"), noise=config.noise, generator=generator)


def _errors(predictions, y):
    return [round(x, 6) for x in (predictions - y).square().mean(0).tolist()]


def score_references(config):
    """For each kind the mean squared errors of each reference after 0, 1, 2 ... examples.

    Those of `in_context`, of which ridge is the best for dense tasks alone; and "best guess".
    """
    scores = {}
    for kind, (X, y) in prompts(config):
        predictions = in_context.references(config, config.noise, X, y)
        predictions["best guess"] = best_guess(X, y, config.sparse, config.noise)
        scores[kind] = {name: _errors(prediction, y) for name, prediction in predictions.items()}
    return scores


@torch.no_grad()
def score(model, config):
    """A model's mean squared errors for each kind, after 0, 1, 2 ... examples."""
    device, scores = model.dense.weight.device, {}
    for kind, (X, y) in prompts(config):
        predictions = torch.cat(
            [model(*part) for part in zip(X.to(device).split(500), y.to(device).split(500), strict=True)]
        )
        scores[kind] = _errors(predictions.cpu(), y)
    return scores


def make(contestant, config):
    """The `in_context.Regressor` of a size."""
    settings = in_context.Config(
        dim=config.dim, longer=config.examples, num_hiddens=contestant.num_hiddens, num_heads=contestant.num_heads,
        lr=config.lr, lr_matrices=config.lr_matrices,
    )  # fmt: skip
    return in_context.Regressor(settings, in_context.Contestant(contestant.name, contestant.num_blks))


def task_flops(model, config):
    """Floating-point operations of training on one prompt, forward and backward, two tokens for each example."""
    tokens = 2 * config.examples
    # the layer that reads vectors multiplies, where one that looks tokens up does not
    return gpt_training_flops(model.config, tokens, context=tokens) + training_flops(
        model.embedding.weight.numel(), tokens
    )


def learn(contestant, config, seed, device, parts, name):
    """Trains a contestant and scores it: a dict for JSON."""
    torch.manual_seed(seed)
    model = make(contestant, config)

    def tasks(size):
        X, y = draw(size, config.examples, config.dim, sparse=config.sparse, noise=config.noise)
        return X, y, y

    history = fresh_data.fit(model, tasks, config, device, seed, parts, name)
    seconds = [b - a for a, b in pairwise([0.0, *history["seconds"]])]
    seen = len(history["step"]) * config.batch_size
    return {
        "errors": score(model, config),
        "parameters": model.num_parameters,
        "tasks_seen": seen,
        "flops": seen * task_flops(model, config),
        "step_s": round(median(seconds), 4),
        "curves": summaries.curves(history),
    }


def left(errors, references, shots):
    """What is left of the variance of y after some numbers of examples: by kind a list, one for each of ``shots``.

    Args:
        errors: by kind, after 0, 1, 2 ... examples. references: as `score_references`. shots: numbers of examples.
    """
    return {kind: [values[k] / references[kind]["zero"][k] for k in shots] for kind, values in errors.items()}


def compare(references, models, shots):
    """What the sizes make of examples.

    Returns:
        dict of ``left``, by kind and size a list for each of ``shots`` of ``mean`` and ``spread`` over the seeds;
        ``references``, by kind and name the same without seeds; ``slopes``, by kind for each of the shots and seeds
        that of log `left` by log parameters: it is -1 if ten times the parameters leave a tenth.
    """
    each = {name: [left(errors, references, shots) for errors in model["errors"]] for name, model in models.items()}
    log_sizes = [math.log(model["parameters"]) for model in models.values()]
    comparison = {"left": {}, "references": {}, "slopes": {}}
    for kind, known in references.items():
        rows = {name: [seed[kind] for seed in seeds] for name, seeds in each.items()}
        comparison["left"][kind] = {
            name: [summaries.summary(column) for column in zip(*row, strict=True)] for name, row in rows.items()
        }
        comparison["references"][kind] = {name: left({kind: known[name]}, references, shots)[kind] for name in known}
        comparison["slopes"][kind] = [
            [slope(list(zip(log_sizes, map(math.log, column), strict=True))) for column in zip(*of_shot, strict=True)]
            for of_shot in zip(*[list(zip(*row, strict=True)) for row in rows.values()], strict=True)
        ]
    return comparison


def run(config, device, parts=None):
    """Trains every size with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``references`` as `score_references`; ``models``: of each size ``parameters``,
        ``tasks_seen`` and ``flops`` of the training, and lists over the seeds: ``errors`` as `score`, ``step_s`` the
        median time of a step; ``by_shots`` as `compare`) and ``curves`` of each size and seed: ``step`` and
        ``train_loss``, which is the loss on tasks never seen.
    """
    check(config)
    parts = parts or Parts()
    references = parts("references", score_references, config)
    first = "parameters", "tasks_seen", "flops"
    models, curves = fresh_data.contest(learn, config, device, parts, first, ("errors", "step_s"))
    metrics = {"references": references, "models": models, "by_shots": compare(references, models, config.shots)}
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": curves}


def headline(metrics, config):
    """What the fewest and the most examples leave of the variance of y, over both kinds, by size, in a sentence."""
    by_shots = metrics["by_shots"]

    def over_kinds(shots, what, name):
        values = [by_shots[what][kind][name][config.shots.index(shots)] for kind in KINDS]
        return mean(value["mean"] if what == "left" else value for value in values)

    few, most = min(config.shots), max(config.shots)
    alike = [over_kinds(few, "left", name) for name in metrics["models"]]
    shares = [
        f"{over_kinds(most, 'left', name):.3f} to {model['parameters']:,} parameters"
        for name, model in metrics["models"].items()
    ]
    return (
        f"of the variance of y, in prompts of two kinds, {few} examples leave {min(alike):.3f} to {max(alike):.3f} to "
        f"GPTs of all sizes, and {most} leave {', '.join(shares)}; to the best guess "
        f"{over_kinds(most, 'references', 'best guess'):.3f}"
    )
