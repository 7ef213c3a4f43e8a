"""Part b of d2l-11.8.2, "The mean of the patches in place of the class token": `compare_poolings`."""

import copy
import math
import statistics

import torch
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_pre_hook

from d2lmini.data.images import fashion_mnist
from d2lmini.exercises.engine import Experiment, Mutant
from d2lmini.models.vit import ViT


def compare_poolings(make_model, images, labels, test_images, test_labels, seeds, num_steps):
    """Train models that differ in the pooling alone.

    Args:
        make_model: function of a pooling, "class" or "mean", and a seed; gives a new model from images to scores.
        images, labels: (N, 1, 28, 28) and (N,), to train on.
        test_images, test_labels: to score on.
        seeds: list of integers.
        num_steps: training steps of each model.

    Returns:
        dict with ``class`` and ``mean``, lists of accuracies, one for each seed; ``difference``, the mean over the
        seeds of the accuracy with "mean" minus that with "class"; and ``spread``, the standard deviation of these
        differences (with n - 1 in the denominator).
    """
    ### BEGIN SOLUTION
    accuracy = {"class": [], "mean": []}
    for seed in seeds:
        for pooling in accuracy:
            model = make_model(pooling, seed)
            optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
            generator = torch.Generator().manual_seed(seed)  # both see the same batches
            for _ in range(num_steps):
                batch = torch.randint(len(images), (64,), generator=generator)
                loss = F.cross_entropy(model(images[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                right = model(test_images).argmax(dim=-1) == test_labels
            accuracy[pooling].append(right.float().mean().item())
    differences = torch.tensor(accuracy["mean"]) - torch.tensor(accuracy["class"])
    return {**accuracy, "difference": differences.mean().item(), "spread": differences.std().item()}
    ### END SOLUTION


def one_pooling_after_the_other(make_model, images, labels, test_images, test_labels, seeds, num_steps):
    def run(pooling, seed):
        model = make_model(pooling, seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
        for step in range(num_steps):
            rows = torch.arange(64 * step, 64 * (step + 1)) % len(labels)
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            return (model.eval()(test_images).max(-1).indices == test_labels).double().mean().item()

    result = {pooling: [run(pooling, seed) for seed in seeds] for pooling in ("mean", "class")}
    gaps = [m - c for m, c in zip(result["mean"], result["class"], strict=True)]
    return result | {"difference": statistics.fmean(gaps), "spread": statistics.stdev(gaps)}


def with_the_best_step(make_model, images, labels, test_images, test_labels, seeds, num_steps):
    """Wrong: of all steps it keeps the one that is best on the test images."""
    result = {"class": [], "mean": []}
    for seed, pooling in [(seed, pooling) for seed in seeds for pooling in result]:
        model, best, kept = make_model(pooling, seed), -1.0, None
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        for step in range(num_steps):
            rows = torch.arange(64 * step, 64 * (step + 1)) % len(labels)
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
            with torch.no_grad():
                score = (model(test_images).argmax(-1) == test_labels).float().mean().item()
            if score > best:
                best, kept = score, copy.deepcopy(model.state_dict())
        model.load_state_dict(kept)
        result[pooling].append(best)
    gaps = torch.tensor(result["mean"]) - torch.tensor(result["class"])
    return result | {"difference": gaps.mean().item(), "spread": gaps.std().item()}


SEEDS, STEPS, BATCH, LEARNED = (0, 1, 2), 25, 64, 0.3  # untrained models are right in one of ten


DIFFERENT = 960  # drawn with replacement from 2,000 images, 25 batches hold about 1,100 different ones


class _Maker:
    """Makes models, and writes down which images each of them reads, and of which it is run backward."""

    def __init__(self):
        self.models, self.read, self.modes, self.backward, self.added_up = {}, {}, {}, {}, False

    def __call__(self, pooling, seed):
        torch.manual_seed(seed)
        model = ViT(28, 14, 24, 48, 2, 1, 0.0, 0.0, num_channels=1, pooling=pooling)
        name = f"{pooling} {seed}"
        self.models.setdefault(name, []).append(model)
        self.read[name], self.modes[name], self.backward[name] = [], [], []
        model.register_forward_hook(lambda model, args, output: self.hear(name, args[0], output))
        return model

    def hear(self, name, X, output):
        model = self.models[name][-1]
        self.modes[name].append(model.training)
        pictures = [hash(picture.detach().double().numpy().tobytes()) for picture in X]
        number = len(self.read[name])
        self.read[name].append(pictures)
        if output.requires_grad:
            output.register_hook(lambda grad: self.goes_back(name, number))

    def goes_back(self, name, number):
        self.backward[name].append(number)
        slopes = [p.grad for p in self.models[name][-1].parameters() if p.grad is not None]
        self.added_up |= any(bool(slope.any()) for slope in slopes)


class _Optimizers:
    """Writes down how models are trained: of each, the kind of optimiser and the learning rate of every step."""

    def __enter__(self):
        self.steps = {}
        self.handle = register_optimizer_step_pre_hook(self.hear)
        return self

    def __exit__(self, *args):
        self.handle.remove()

    def hear(self, optimizer, args, kwargs):
        rates = sorted({float(group["lr"]) for group in optimizer.param_groups})
        self.steps.setdefault(id(optimizer.param_groups[0]["params"][0]), []).append((type(optimizer).__name__, *rates))

    @property
    def alike(self):
        first, *others = self.steps.values() or [[]]
        return all(steps == first for steps in others)


def _report(given):
    """What became of the models: plain data."""
    maker, images, _, test_images = given[:4]
    tests, known = ({hash(picture.double().numpy().tobytes()) for picture in X} for X in (test_images, images))
    report = {"learned_from": False, "foreign": False, "peeked": False, "sizes": [], "different": []}
    report |= {"added_up": maker.added_up, "modes": {True: set(), False: set()}}
    for name, passes in maker.read.items():
        scored = [sum(picture in tests for picture in pictures) for pictures in passes]
        trained = maker.backward[name]
        report["learned_from"] |= any(scored[i] for i in trained)
        report["foreign"] |= any(not known.issuperset(passes[i]) for i in trained)
        for i, mode in enumerate(maker.modes[name]):
            report["modes"][i in trained].add(mode)
        report["peeked"] |= any(scored[: max(trained, default=0)]) or sum(scored) > len(test_images)
        report["sizes"] += [len(passes[i]) for i in trained]
        report["different"].append(len({picture for i in trained for picture in passes[i]}))
    made = [name for name, models in maker.models.items() for _ in models]
    states = {name: dict(models[0].state_dict()) for name, models in maker.models.items()}
    steps = {name: len(trained) for name, trained in maker.backward.items()}
    modes = {"train": sorted(report["modes"][True]), "score": sorted(report.pop("modes")[False])}
    return {"made": made, "states": states, "steps": steps, **report, **modes}


def verify_comparison(t, answer):
    images, labels, test_images, test_labels = _pictures()
    with t.watching(_Optimizers, "alike") as optimizers:
        got = t.call(answer, _Maker(), images, labels, test_images, test_labels, list(SEEDS), STEPS)
    of_class, of_mean, difference, spread = t.fields(got, "class", "mean", "difference", "spread")
    saw = t.look(_report)
    wanted = sorted(f"{pooling} {seed}" for pooling in ("class", "mean") for seed in SEEDS)
    t.that(
        sorted(saw["made"]) == wanted,
        "models",
        "make_model must be called once for each pooling and each seed: both poolings get the same seeds",
    )
    t.that(not saw["learned_from"], "test-data", "a model is trained on test images: those are for scoring alone")
    counts = set(saw["steps"].values())
    t.that(
        len(counts) == 1,
        "unfair",
        "the models were not trained for the same number of steps: then the comparison says nothing about pooling",
    )
    t.that(counts == {STEPS}, "steps", f"each model must be trained for {STEPS} steps, one backward pass each")
    t.that(set(saw["sizes"]) == {BATCH}, "batch", f"each step must read a batch of {BATCH} images")
    t.that(not saw["foreign"], "other-pictures", "a model is trained on images that are not in `images`")
    fresh = min(saw["different"]) > DIFFERENT
    t.that(
        fresh,
        "one-batch",
        "the steps read the same few images again and again: take another batch each time, from all of `images`",
    )
    t.that(
        optimizers.alike,
        "unfair",
        "the models were not trained with the same optimiser and learning rate: then the comparison says nothing about "
        "pooling",
    )
    t.that(
        not saw["peeked"],
        "peeked",
        "a model reads test images before its last step, or more than once: a model or a step that is chosen by "
        "them scores too well on them. Score once, at the end",
    )
    t.that(saw["train"] == [True], "mode", "the models must be in training mode while they are trained")
    t.that(
        saw["score"] in ([], [False]),
        "mode",
        "the models must be in evaluation mode while they are scored: here they have no dropout, others have",
    )
    want, frozen = {}, False
    for name, state in saw["states"].items():
        pooling, seed = name.split()
        model = _Maker()(pooling, int(seed)).eval()
        moved = all(not torch.equal(state[key], value.detach()) for key, value in model.named_parameters())
        frozen |= not moved and any(not torch.equal(state[key], value) for key, value in model.named_parameters())
        model.load_state_dict(state)
        with torch.no_grad():
            right = model(test_images).argmax(-1) == test_labels
        want[name] = right.double().mean().item()
    want = {pooling: [want[f"{pooling} {seed}"] for seed in SEEDS] for pooling in ("class", "mean")}
    reported = {"class": _numbers(t, of_class, "class"), "mean": _numbers(t, of_mean, "mean")}
    for pooling, values in reported.items():
        right, other = want[pooling], want["class" if pooling == "mean" else "mean"]
        fits = _near(values, right)
        t.that(fits or not _near(values, other), "swapped", "the accuracies of the two poolings are exchanged")
        wrong = not fits and _near(values, [1 - x for x in right])
        t.that(not wrong, "error-rate", "an accuracy is the share of right answers, not of wrong ones")
        scaled = any(_near([x / n for x in values], right) for n in (100, len(test_labels)))
        t.that(not scaled, "not-a-share", f"`{pooling}` holds percents or counts: a share lies between 0 and 1")
        t.that(
            fits,
            "accuracy",
            f"`{pooling}` does not hold the accuracies on the test images after the last step, in the order of the "
            "seeds",
        )
        t.below(
            [LEARNED] * len(SEEDS),
            right,
            0.0,
            "untrained",
            "the models have learned next to nothing: does every step clear the gradients, compute new ones and move? "
            "A learning rate of a few thousandths suits AdamW here",
        )
    t.that(not frozen, "frozen", "only some of the parameters are trained: give all of them to the optimiser")
    t.that(
        not saw["added_up"],
        "added-up",
        "the gradients of a step are added to those of the steps before: clear them in each step",
    )
    difference, spread = _numbers(t, [difference, spread], "difference` and `spread", 2)
    gaps = [m - c for m, c in zip(reported["mean"], reported["class"], strict=True)]
    apart = {pooling: statistics.stdev(values) for pooling, values in reported.items()}
    # one is added to both sides: a difference may be nothing, and what is next to nothing has no relative error
    of_spread = {
        "n": (statistics.pstdev(gaps), "this has n in the denominator, where n - 1 was asked for"),
        "unpaired": (sum(apart.values()) / 2, "this is the spread of the accuracies; take that of the *differences*"),
        "unpaired-class": (apart["class"], "this is the spread of one pooling; take that of the *differences*"),
        "unpaired-mean": (apart["mean"], "this is the spread of one pooling; take that of the *differences*"),
        "both-spreads": (
            math.hypot(*apart.values()),
            "this adds the variances of both, as if nothing tied them together; take the spread of the *differences*",
        ),
        "standard-error": (
            statistics.stdev(gaps) / math.sqrt(len(gaps)),
            "this is the standard error of the mean; asked for is the standard deviation",
        ),
        "variance": (statistics.variance(gaps), "this is the variance: the root is missing"),
    }
    of_difference = {
        "sign": (-statistics.fmean(gaps), "it is the accuracy with mean minus that with class"),
        "sum": (sum(gaps), "this is the sum over the seeds, not the mean"),
        "last": (gaps[-1], "this is the difference for the last seed alone: take the mean over all"),
        "absolute": (statistics.fmean(map(abs, gaps)), "this is the mean of absolute differences: keep their signs"),
    }
    for name, number, wanted, mistakes in (
        ("difference", difference, statistics.fmean(gaps), of_difference),
        ("spread", spread, statistics.stdev(gaps), of_spread),
    ):
        mistakes = {code: (1 + value, message) for code, (value, message) in mistakes.items()}
        t.number(1 + number, 1 + wanted, f"`{name}`", mistakes=mistakes, rtol=1e-5)


def _near(values, wanted):
    return all(abs(value - want) < 3e-3 for value, want in zip(values, wanted, strict=True))


def _numbers(t, values, name, length=len(SEEDS)):
    """A list of floats, or a rejection."""
    values = list(values) if isinstance(values, torch.Tensor) and values.dim() else values
    listed = isinstance(values, (list, tuple)) and len(values) == length
    t.that(listed, "shape", f"`{name}` must be a list of {length} numbers, one for each seed")
    values = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in values]
    plain = all(isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x) for x in values)
    t.that(plain, "type", f"`{name}` must be numbers")
    return [float(x) for x in values]


def _pictures():
    """The part of Fashion-MNIST that ships with the package, with mean zero and variance one."""
    (X, y), (X_test, y_test) = (fashion_mnist(split, "shipped") for split in ("train", "test"))
    X, X_test = (images[:, None].float() / 255 for images in (X, X_test))
    mean, std = X.mean(), X.std()
    return (X - mean) / std, y, ((X_test - mean) / std)[:500], y_test[:500]


_MIRRORED = "loss = F.cross_entropy(model(images[batch].flip(-1))"


_IN_EVALUATION_MODE = "model.eval()\n            for _ in range(num_steps):"


MUTANTS = [
    Mutant("models", ("make_model(pooling, seed)", 'make_model("mean", seed)')),  # one pooling
    Mutant("models", ("make_model(pooling, seed)", 'make_model(pooling, seed + (pooling == "mean"))')),  # other seeds
    Mutant("unfair", ("range(num_steps)", 'range(num_steps - (pooling == "class"))')),  # longer for one
    Mutant("steps", ("range(num_steps)", "range(num_steps // 2)")),  # half of the steps
    Mutant("batch", ("(64,)", "(16,)")),  # small batches
    # the same batch
    Mutant("one-batch", ("(64,), generator=generator)", "(64,), generator=torch.Generator().manual_seed(seed))")),
    Mutant("untrained", ("lr=5e-3", "lr=1e-8")),  # no training
    # trained on the test images
    Mutant("test-data", ("len(images), (64,), generator=generator)\n                loss = "
        "F.cross_entropy(model(images[batch]), labels[batch])", "len(test_images), (64,), generator=generator)\n"
        "                loss = F.cross_entropy(model(test_images[batch]), test_labels[batch])")),
    Mutant("added-up", ("optimizer.zero_grad()", "pass")),
    Mutant("unfair", ("lr=5e-3", 'lr=5e-3 if pooling == "mean" else 1e-3')),  # another rate
    Mutant("frozen", ("model.parameters()", "model.head.parameters()")),  # head alone
    Mutant("other-pictures", ("loss = F.cross_entropy(model(images[batch])", _MIRRORED)),  # mirrored
    Mutant("one-batch", ("torch.randint(len(images),", "torch.randint(128,")),  # two batches
    Mutant("mode", ("model.eval()", "model.train()")),  # never in evaluation mode
    Mutant("mode", ("for _ in range(num_steps):", _IN_EVALUATION_MODE)),  # never in training mode
    Mutant("last", ("differences.mean()", "differences[-1]")),  # last seed
    Mutant("absolute", ("differences.mean()", "differences.abs().mean()")),
    Mutant("peeked", with_the_best_step),
    Mutant("error-rate", ("== test_labels", "!= test_labels")),  # share of errors
    Mutant("not-a-share", (".float().mean().item())", ".float().sum().item())")),  # number of right ones
    # exchanged
    Mutant("swapped", ("accuracy[pooling].append", 'accuracy["mean" if pooling == "class" else "class"].append')),
    # seeds turned round
    Mutant("accuracy", ("return {**accuracy", 'accuracy["mean"].reverse()\n    return {**accuracy')),
    Mutant("sign", ('torch.tensor(accuracy["mean"]) - torch.tensor(accuracy["class"])',
        'torch.tensor(accuracy["class"]) - torch.tensor(accuracy["mean"])')),
    # unpaired
    Mutant("unpaired-class", ('"spread": differences.std()', '"spread": torch.tensor(accuracy["class"]).std()')),
    Mutant("n", ("differences.std()", "differences.std(correction=0)")),  # n in the denominator
]  # fmt: skip


PART = Experiment(
    key="d2l-11.8.2b",
    prompt="""
Does it matter? Write `compare_poolings(make_model, images, labels, test_images, test_labels, seeds, num_steps)`. For
each seed and each pooling, `"class"` and `"mean"`, it makes a model and trains it, in training mode, as `make_model`
gives it, for `num_steps` steps on batches of 64 of `images` as they are, with an optimiser of your choice (AdamW at
0.005 does well). It is the same for all models, with the same learning rate. Each model reads the test images once,
after its last step and in evaluation mode. Return the accuracies on them, and what they say: the mean and the standard
deviation of the *differences*, seed by seed.

**Predict:** will the difference be larger than its spread?
""",
    hints=[
        "Both poolings get the same seeds, the same number of steps and, best, the same batches.",
        "Subtract first, seed by seed; then take mean and standard deviation of the three differences.",
        "`differences.std()` of a tensor has n - 1 in the denominator.",
    ],
    answer=compare_poolings,
    verify=verify_comparison,
    alternatives=[one_pooling_after_the_other],
    min_checks=12,
    seconds=90.0,  # six small trainings, and machines are busy
    advice={
        "values": "Subtract seed by seed, mean minus class. `difference` and `spread` are of these numbers and "
        "no others.",
    },
    mutants=MUTANTS,
    explanation="""
With models and budgets as small as these, the difference is about as large as its spread: three seeds hardly show it,
and a single run of each may announce either winner.

The published experience is the same at large scale. Both poolings work; they want different learning rates (Dosovitskiy
et al. 2021, appendix D.3), and many later models take the mean.
""",
)
