"""What the experiments on pictures share: one recipe of training for every network, and what is written down of it.

An experiment extends `Recipe` by the sizes of its network and hands `run` a function that makes one.
"""

import itertools
import time
from dataclasses import dataclass
from statistics import mean, median, stdev

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler

from d2lmini.data.augmentation import Augmentation
from d2lmini.data.fashion_mnist import FashionMNIST
from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist_checksums
from d2lmini.training import Classifier, Trainer, WarmupCosine


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: AdamW with linear warm-up, then a cosine down to nothing, on augmented batches.

    ``subset`` is that of Fashion-MNIST; ``num_val`` of None measures on the test set, once per check, and chooses
    nothing by it; ``warmup`` is a share of the steps; ``shift`` to ``mixup`` are those of `Augmentation`.
    """

    subset: str = "full"
    num_train: int | None = None
    num_val: int | None = None
    batch_size: int = 256
    steps: int = 23_400
    checks: int = 20
    lr: float = 1e-3
    weight_decay: float = 0.05
    warmup: float = 0.05
    label_smoothing: float = 0.1
    gradient_clip_val: float = 1.0
    shift: int = 2
    flip: float = 0.5
    erase: float = 0.25
    mixup: float = 0.0
    seeds: tuple = (0, 1, 2)


class Pictures(FashionMNIST):
    """Fashion-MNIST whose epochs have a number of steps instead of the training images once each.

    The images are gone through in a new order again and again, so that every size of training set gives full batches,
    and as many steps.
    """

    def __init__(self, config, device, seed=0):
        augment = Augmentation(config.shift, config.flip, config.erase, config.mixup)
        # models differ with the seed, and parts of the training images too
        super().__init__(
            config.batch_size,
            augment=augment,
            num_train=config.num_train,
            num_val=config.num_val,
            seed=seed,
            subset=config.subset,
            device=device,
        )
        self.steps = max(1, config.steps // config.checks)

    def get_dataloader(self, train):
        loader = super().get_dataloader(train)
        if not train:
            return loader
        sampler = RandomSampler(self.train, num_samples=self.steps * self.batch_size)
        return DataLoader(self.train, self.batch_size, sampler=sampler, collate_fn=loader.collate_fn)


class Learner(Classifier):
    """Any network from images (N, 1, 28, 28) to scores (N, C), trained by a `Recipe`."""

    def __init__(self, net, config):
        super().__init__()
        self.net, self.config = net, config

    def loss(self, Y_hat, Y, averaged=True):
        """Cross-entropy with labels (N,) or shares (N, C), smoothed in training alone."""
        smoothing = self.config.label_smoothing if self.training else 0.0
        return F.cross_entropy(Y_hat, Y, label_smoothing=smoothing, reduction="mean" if averaged else "none")

    def configure_optimizers(self):
        """AdamW that lets biases, norms, positions and class tokens be as large as they want."""
        matrices = [p for p in self.parameters() if p.dim() > 1 and p.shape[0] > 1]
        others = [p for p in self.parameters() if not (p.dim() > 1 and p.shape[0] > 1)]
        groups = [{"params": matrices, "weight_decay": self.config.weight_decay}, {"params": others, "weight_decay": 0}]
        return torch.optim.AdamW(groups, lr=self.config.lr, betas=(0.9, 0.99))


def train(net, config, device, seed=0, say=print, checkpoint=None):
    """Trains a network by a recipe, in place, and measures it.

    Args:
        net: module from images (N, 1, 28, 28) to scores (N, 10).
        config: a `Recipe`.
        device: ``torch.device``.
        seed: of the batches, of dropout, and of which training images are taken where not all are.
        say: called with a line after each check; None: silence.
        checkpoint: ``pathlib.Path`` of a folder that keeps checkpoints of each seed, from which training goes on where
            it holds one; None: none.

    Returns:
        dict with ``metrics`` and ``curves``, for JSON.
    """
    data, learner = Pictures(config, device, seed), Learner(net, config)
    history = fit(learner, data, config, device, seed, say, checkpoint)
    return {"metrics": measures(learner, data, history), "curves": curves(history)}


def fit(learner, data, config, device, seed=0, say=print, checkpoint=None):
    """Trains a learner on data by a recipe; the other arguments are those of `train`. Returns the trainer's history."""

    def after_check(trainer):
        if say:
            latest = {name: values[-1] for name, values in trainer.history.items() if name in ("val_loss", "val_acc")}
            say(f"step {trainer.step}: " + ", ".join(f"{k} {v:.4f}" for k, v in latest.items()), flush=True)

    trainer = Trainer(
        config.checks,
        num_gpus=int(device.type == "cuda"),
        gradient_clip_val=config.gradient_clip_val,
        schedule=WarmupCosine(int(config.warmup * config.steps), config.steps),
        seed=seed,
        callbacks=[after_check],
        checkpoint=checkpoint and checkpoint / f"seed-{seed}",
        resume=checkpoint is not None,
    )
    trainer.fit(learner, data)
    return trainer.history


def measures(model, data, history):
    """What is written down of a trained model.

    Args:
        model: takes images to scores (N, 10).
        data: its `FashionMNIST`.
        history: of its `Trainer`.

    Returns:
        dict for JSON: ``accuracy``, ``loss`` and ``by_class`` on the validation images, ``train_images``, ``epochs``,
        ``steps``, ``train_s`` (validations included), ``train_images_per_s``, ``test_images_per_s``.
    """
    scores, labels, test_s = predict(model, data)
    right = (scores.argmax(1) == labels).double()
    step_s = [b - a for a, b in itertools.pairwise(history["seconds"])] or history["seconds"]
    steps, seen = history["step"][-1], len(data.train)
    return {
        "accuracy": right.mean().item(),
        "loss": F.cross_entropy(scores, labels).item(),
        "by_class": {name: right[labels == i].mean().item() for i, name in enumerate(FASHION_MNIST_LABELS)},
        "train_images": seen,
        "epochs": round(steps * data.batch_size / seen, 2),
        "steps": steps,
        "train_s": round(history["seconds"][-1], 1),
        "train_images_per_s": round(data.batch_size / median(step_s)),
        "test_images_per_s": round(len(labels) / test_s),
    }


def curves(history):
    """The curves of a `Trainer`, of training with at most 200 points, each a mean."""
    losses = history["train_loss"]
    stride = max(1, -(-len(losses) // 200))
    return {
        "step": history["step"][stride - 1 :: stride],
        "train_loss": [round(mean(losses[i : i + stride]), 6) for i in range(0, len(losses) - stride + 1, stride)],
        **{name: history[name] for name in ("val_step", "val_loss", "val_acc")},
    }


@torch.no_grad()
def predict(model, data):
    """Scores (N, C) and labels (N,) of the validation images, on the CPU, and the seconds that it took."""
    model.eval()
    device = next(model.parameters()).device
    scores, labels, start = [], [], time.perf_counter()
    for X, y in data.val_dataloader():
        scores.append(model(X.to(device)).float().cpu())
        labels.append(y.cpu())
    return torch.cat(scores), torch.cat(labels), time.perf_counter() - start


def run(make, config, device, look=lambda net, data: {}, checkpoint=None):
    """Trains a network with every seed.

    Args:
        make: function from the configuration to a fresh network.
        config: a `Recipe`, or what extends it.
        device: ``torch.device``.
        look: function of the first seed's trained network and its data, which returns a dict for JSON that goes into
            the metrics.
        checkpoint: as `train`.

    Returns:
        dict with ``metrics`` (lists have a value for each seed; ``mean`` and ``spread`` are the mean and the standard
        deviation of the accuracies, None for one seed), ``curves`` of the first seed, and ``data``.
    """
    metrics, seen = {}, {}
    for seed in config.seeds:
        torch.manual_seed(seed)
        net = make(config)
        found = train(net, config, device, seed, checkpoint=checkpoint)
        for name, value in found["metrics"].items():
            metrics.setdefault(name, []).append(value)
        if not seen:  # the first seed
            seen = {"curves": found["curves"], "look": look(net, Pictures(config, device, seed))}
    metrics |= {"parameters": net.num_parameters, **summary(metrics["accuracy"]), **seen["look"]}
    metrics["headline"] = f"{say_accuracy(metrics['accuracy'])} with {metrics['parameters']:,} parameters"
    return {"metrics": metrics, "curves": seen["curves"], "data": fashion_mnist_checksums(config.subset)}


def summary(accuracies):
    """``mean`` and ``spread`` of the accuracies of several seeds."""
    return {"mean": mean(accuracies), "spread": stdev(accuracies) if len(accuracies) > 1 else None}


def say_accuracy(accuracies):
    """The same, to be read: "accuracy 94.1 % (± 0.1 over 3 seeds)"."""
    found = summary(accuracies)
    spread = "" if found["spread"] is None else f" (± {100 * found['spread']:.2f} over {len(accuracies)} seeds)"
    return f"accuracy {100 * found['mean']:.2f} %{spread}"
