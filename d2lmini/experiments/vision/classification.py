"""What the experiments on pictures share: one recipe of training for every network, and what is written down of it.

An experiment extends `Recipe` by the sizes of its network and hands `run` a function that makes one.
"""

import itertools
import time
from dataclasses import dataclass
from statistics import median

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, RandomSampler

from d2lmini.data.augmentation import Augmentation
from d2lmini.data.fashion_mnist import FashionMNIST
from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist_checksums
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.lab.parts import Parts
from d2lmini.training import Classifier, WarmupCosine

CURVES = "val_step", "val_loss", "val_acc"


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: AdamW with linear warm-up, then a cosine down to nothing, on augmented batches.

    ``subset`` is that of Fashion-MNIST; ``num_val`` of None measures on the test set, once per check, and chooses
    nothing by it; ``warmup`` is a share of the steps; ``shift`` to ``mixup`` are those of `Augmentation`; ``precision``
    is that of the `Trainer`.
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
    precision: str = "auto"
    seeds: tuple = (0, 1, 2)


# The presets `laptop` see the same pictures, 10 epochs of Fashion-MNIST, under one recipe, in networks of about 137,000
# parameters. The learning rates are from runs of 500 steps that were scored on 5,000 training pictures held out; the
# test pictures chose nothing.
LAPTOP = {"batch_size": 128, "steps": 4_700, "checks": 10, "erase": 0.0, "precision": "bf16"}


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


def train(net, config, device, seed=0, say=print, parts=None, name="training"):
    """Trains a network by a recipe, in place, and measures it.

    Args:
        net: module from images (N, 1, 28, 28) to scores (N, 10).
        config: a `Recipe`.
        device: ``torch.device``.
        seed: of the batches, of dropout, and of which training images are taken where not all are.
        say: called as `print` is, with a line after each check; None: silence.
        parts, name: as `fit_part`.

    Returns:
        dict with ``metrics`` and ``curves``, for JSON.
    """
    data, learner = Pictures(config, device, seed), Learner(net, config)
    history = fit(learner, data, config, device, seed, say, parts, name)
    return {"metrics": measures(learner, data, history), "curves": summaries.curves(history, *CURVES)}


def fit(learner, data, config, device, seed=0, say=print, parts=None, name="training"):
    """Trains a learner on data by a recipe; the other arguments are those of `train`. Returns the trainer's history."""

    def after_check(trainer):
        if say:
            latest = {name: values[-1] for name, values in trainer.history.items() if name in ("val_loss", "val_acc")}
            say(f"step {trainer.step}: " + ", ".join(f"{k} {v:.4f}" for k, v in latest.items()), flush=True)
        return {}

    return fit_part(
        learner,
        data,
        device,
        config.checks,
        parts=parts,
        name=name,
        after_epoch=after_check,
        gradient_clip_val=config.gradient_clip_val,
        schedule=WarmupCosine(int(config.warmup * config.steps), config.steps),
        precision=config.precision,
        seed=seed,
    )


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
    right = (scores.argmax(1) == labels).cpu().double()
    step_s = [b - a for a, b in itertools.pairwise(history["seconds"])] or history["seconds"]
    steps, seen = history["step"][-1], len(data.train)
    return {
        "accuracy": right.mean().item(),
        "loss": F.cross_entropy(scores, labels).item(),
        "by_class": {name: right[(labels == i).cpu()].mean().item() for i, name in enumerate(FASHION_MNIST_LABELS)},
        "train_images": seen,
        "epochs": round(steps * data.batch_size / seen, 2),
        "steps": steps,
        "train_s": round(history["seconds"][-1], 1),
        "train_images_per_s": round(data.batch_size / median(step_s)),
        "test_images_per_s": round(len(labels) / test_s),
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


def run(make, config, device, look=lambda net, data: {}, parts=None):
    """Trains a network with every seed, each a part of the run.

    Args:
        make: function from the configuration to a fresh network.
        config: a `Recipe`, or what extends it.
        device: ``torch.device``.
        look: function of the first seed's trained network and its data, which returns a dict for JSON that goes into
            the metrics.
        parts: those of `Parts`.

    Returns:
        dict with ``metrics`` (lists have a value for each seed; ``mean`` and ``spread`` are the mean and the standard
        deviation of the accuracies, None for one seed), ``curves`` of the first seed, and ``data``.
    """
    parts = parts or Parts()

    def learn(seed, name):
        torch.manual_seed(seed)
        net = make(config)
        record = train(net, config, device, seed, parts=parts, name=name)
        first = seed == config.seeds[0]
        looked = look(net, Pictures(config, device, seed)) if first else {}
        return {**record, "parameters": net.num_parameters, "look": looked}

    records = [parts(name, learn, seed, name) for seed, name in ((seed, f"seed-{seed}") for seed in config.seeds)]
    metrics = summaries.columns([record["metrics"] for record in records])
    metrics |= {"parameters": records[0]["parameters"], **summaries.summary(metrics["accuracy"]), **records[0]["look"]}
    metrics["headline"] = f"{say_accuracy(metrics['accuracy'])} with {metrics['parameters']:,} parameters"
    return {"metrics": metrics, "curves": records[0]["curves"], "data": fashion_mnist_checksums(config.subset)}


def say_accuracy(accuracies):
    """Accuracies of several seeds, to be read: "accuracy 94.1 % (± 0.1 over 3 seeds)"."""
    summary = summaries.summary(accuracies)
    spread = "" if summary["spread"] is None else f" (± {100 * summary['spread']:.2f} over {len(accuracies)} seeds)"
    return f"accuracy {100 * summary['mean']:.2f} %{spread}"
