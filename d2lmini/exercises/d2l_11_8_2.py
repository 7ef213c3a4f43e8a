r"""The mean of the patches in place of the class token

A vision Transformer adds a token that is no patch, lets it look at all patches in every block, and classifies what it
has become. Is it needed? One could as well take the mean of the patches, which is what convolutional networks do at
their end.

The model is a `d2l.ViT` with learned positions and a class token. You need its parts: `patch_embedding` takes pictures
(B, c, height, width) to (B, N, h); `pos_embedding`, (1, 1 + N, h), has the class token's position first; then come
`dropout`, the blocks in `blks`, and `head`, which normalises (B, h) and gives scores (B, C).
"""

import copy
import statistics

import torch
from torch.nn import functional as F

from d2lmini.data.images import fashion_mnist
from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant
from d2lmini.models.vit import ViT


def average_forward(model, images):
    """Scores from the mean of the patches, without the class token.

    Args:
        model: a `d2l.ViT` with a class token and learned positions; not changed.
        images: (B, c, height, width).

    Returns:
        (B, C).
    """
    ### BEGIN SOLUTION
    X = model.patch_embedding(images)  # (B, N, h)
    X = model.dropout(X + model.pos_embedding[:, 1:])  # every patch keeps its own position
    for blk in model.blks:
        X = blk(X)
    return model.head(X.mean(dim=1))
    ### END SOLUTION


def in_one_go(model, images):
    X = model.dropout(model.patch_embedding(images) + model.pos_embedding[0, 1:])
    X = model.blks(X)
    return model.head(torch.einsum("bnh->bh", X) / X.shape[1])


def with_the_package(model, images):
    """The same weights in a model that has no class token."""
    settings = {**model.hparams, "pooling": "mean"}
    other = ViT(**settings).to(images.device).train(model.training)
    state = {name: value for name, value in model.state_dict().items() if name != "cls_token"}
    other.load_state_dict({**state, "pos_embedding": state["pos_embedding"][:, 1:]})
    parameters = dict(model.named_parameters())
    live = {name: parameters[name] for name, _ in other.named_parameters()}
    return torch.func.functional_call(other, {**live, "pos_embedding": model.pos_embedding[:, 1:]}, (images,))


def verify_forward(t, answer):
    for grid, p, c in (((2, 3), 4, 2), ((3, 2), 3, 1), ((2, 4), 2, 3)):
        B, C = t.sizes(2, 3, 8)
        model = ViT((grid[0] * p, grid[1] * p), p, 12, 20, 3, 2, 0.2, 0.2, num_classes=C, num_channels=c)
        for parameter in model.parameters():
            parameter.data = t.randn(*parameter.shape, scale=0.4).cpu()
        model = model.to(t.device).eval()
        images = t.randn(B, c, grid[0] * p, grid[1] * p)

        exact, X = copy.deepcopy(model).cpu().double(), images.cpu().double()
        with torch.no_grad():
            patches, positions, cls = exact.patch_embedding(X), exact.pos_embedding, exact.cls_token.expand(B, -1, -1)
            plain = exact.blks(patches + positions[:, 1:])  # (B, N, h)
            want = exact.head(plain.mean(1))
            present = exact.blks(torch.cat([cls, patches], 1) + positions)  # (B, 1 + N, h)
            mistakes = {
                "still-there": (
                    exact.head(present[:, 1:].mean(1)),
                    "the class token is left out of the mean, but the patches have still looked at it in every block",
                ),
                "averaged-too": (exact.head(present.mean(1)), "the class token is still there, and is averaged, too"),
                "class-token": (exact.head(present[:, 0]), "these are the scores of the class token"),
                "positions-shifted": (
                    exact.head(exact.blks(patches + positions[:, :-1]).mean(1)),
                    "every patch has the position of its neighbour: the first position is the class token's",
                ),
                "no-positions": (exact.head(exact.blks(patches).mean(1)), "the positions are missing"),
                "first-patch": (exact.head(plain[:, 0]), "this is the first patch alone"),
                "sum": (exact.head[1](exact.head[0](plain.mean(1)) * plain.shape[1]), "this is a sum, not a mean"),
                "maximum": (exact.head(plain.amax(1)), "this is the largest value of each feature, not the mean"),
                "mean-of-scores": (
                    exact.head(plain).mean(1),
                    "take the mean of the tokens, then the head, which normalises",
                ),
                "mean-first": (
                    exact.head(exact.blks((patches + positions[:, 1:]).mean(1, keepdim=True))[:, 0]),
                    "the mean is taken before the blocks: no patch ever meets another",
                ),
                "no-norm": (exact.head[1](plain.mean(1)), "`head` has two parts: the norm, and the linear layer"),
            }
        got = t.call(answer, model, images)
        t.same(got, want, "the scores", mistakes=mistakes)

        given = t.given[0]
        grads = torch.autograd.grad(got.sum(), [given.cls_token, given.pos_embedding], allow_unused=True)
        t.that(grads[0] is None, "still-there", "a gradient reaches the class token: it is still used")
        t.that(
            grads[1] is not None and bool((grads[1][:, 1:] != 0).any()) and not bool(grads[1][:, 0].any()),
            "grad",
            "gradients must reach the positions of the patches, and not that of the class token",
        )


def compare_poolings(make_model, images, labels, test_images, test_labels, seeds, num_steps):
    """Train models that differ in the pooling alone.

    Args:
        make_model: function of a pooling, "class" or "mean", and a seed; gives a new model from pictures to scores.
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


SEEDS, STEPS, LEARNED = (0, 1, 2), 25, 0.3  # untrained models are right in one of ten


def verify_comparison(t, answer):
    images, labels, test_images, test_labels = _pictures()
    made, passes = [], []

    def make_model(pooling, seed):
        torch.manual_seed(seed)
        model = ViT(28, 14, 24, 48, 2, 1, 0.0, 0.0, num_channels=1, pooling=pooling)
        made.append((pooling, seed, model))

        def count(module, inputs, output):
            if output.requires_grad:
                output.register_hook(lambda grad: passes.append((pooling, seed)))

        model.register_forward_hook(count)
        return model

    got = t.call(answer, make_model, images, labels, test_images, test_labels, list(SEEDS), STEPS)
    of_class, of_mean, difference, spread = t.fields(got, "class", "mean", "difference", "spread")
    wanted = {(pooling, seed) for pooling in ("class", "mean") for seed in SEEDS}
    t.that(
        len(made) == len(wanted) and {(pooling, seed) for pooling, seed, _ in made} == wanted,
        "models",
        "make_model must be called once for each pooling and each seed: both poolings get the same seeds",
    )
    counts = {passes.count(pair) for pair in wanted}
    t.that(
        len(counts) == 1,
        "unfair",
        "the models were not trained for the same number of steps: then the comparison says nothing about pooling",
    )
    t.that(counts == {STEPS}, "steps", f"each model must be trained for {STEPS} steps, one backward pass each")
    found = {}
    for pooling, seed, model in made:
        with torch.no_grad():
            found[pooling, seed] = (model.eval()(test_images).argmax(-1) == test_labels).double().mean().item()
    lists = {"class": of_class, "mean": of_mean}
    for pooling, values in lists.items():
        t.that(
            isinstance(values, (list, tuple)) and len(values) == len(SEEDS) and all(map(_is_number, values)),
            "shape",
            f"`{pooling}` must be a list of {len(SEEDS)} numbers, one for each seed",
        )
    want = {pooling: [found[pooling, seed] for seed in SEEDS] for pooling in lists}
    for pooling, values in lists.items():
        other = want["class" if pooling == "mean" else "mean"]
        t.that(_near(values, want[pooling]) or not _near(values, other), "swapped", _SWAPPED)
        wrong = [1 - x for x in want[pooling]]
        t.that(not _near(values, wrong), "error-rate", "an accuracy is the share of right answers, not of wrong ones")
        t.that(
            _near(values, want[pooling]),
            "accuracy",
            f"`{pooling}` does not hold the accuracies on the test pictures after the last step, in the order of the "
            "seeds",
        )
        t.below(
            [LEARNED] * len(SEEDS),
            want[pooling],
            0.0,
            "untrained",
            "the models have learned next to nothing: does every step clear the gradients, compute new ones and move? "
            "A learning rate of a few thousandths suits AdamW here",
        )
    gaps = [m - c for m, c in zip(of_mean, of_class, strict=True)]
    mean, deviation = statistics.fmean(gaps), statistics.stdev(gaps)
    apart = [statistics.stdev(of_class), statistics.stdev(of_mean)]
    t.that(_is_number(difference) and _is_number(spread), "type", "`difference` and `spread` must be numbers")
    t.that(
        not (abs(difference + mean) < 1e-6 < abs(mean)),
        "sign",
        "`difference` is the accuracy with mean minus with class",
    )
    t.number(difference, mean, "difference", rtol=1e-3)
    t.number(
        spread,
        deviation,
        "spread",
        rtol=1e-3,
        mistakes={
            "n": (statistics.pstdev(gaps), "this has n in the denominator, where n - 1 was asked for"),
            "unpaired": (sum(apart) / 2, "this is the spread of the accuracies; take that of the *differences*"),
            "unpaired-class": (apart[0], "this is the spread of one pooling; take that of the *differences*"),
        },
    )


_SWAPPED = "the accuracies of the two poolings are exchanged"


def _near(values, wanted):
    return all(abs(value - want) < 2e-3 for value, want in zip(values, wanted, strict=True))


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _pictures():
    """The part of Fashion-MNIST that ships with the package, with mean zero and variance one."""
    (X, y), (X_test, y_test) = (fashion_mnist(split, "shipped") for split in ("train", "test"))
    X, X_test = (images[:, None].float() / 255 for images in (X, X_test))
    mean, std = X.mean(), X.std()
    return (X - mean) / std, y, ((X_test - mean) / std)[:500], y_test[:500]


EXERCISE = Exercise(
    key="d2l-11.8.2",
    doc=__doc__,
    source="D2L 11.8, exercise 2",
    chapter="10",
    parts=[
        Code(
            key="d2l-11.8.2a",
            prompt="""
Write `average_forward(model, images)`: the scores that the model gives when there is **no class token at all**, and the
mean of the patches, after the last block, goes into the head. The check looks at the scores and at the gradients: none
may reach the class token or its position.
""",
            hints=[
                "Go through `d2l.show_source(d2l.ViT.tokens, d2l.ViT.forward)` and leave out what belongs to the class "
                "token.",
                "There are 1 + N positions, and N patches. Which position is too many?",
                "`X = model.dropout(model.patch_embedding(images) + model.pos_embedding[:, 1:])`, then the "
                "blocks, then `model.head(X.mean(dim=1))`.",
            ],
            answer=average_forward,
            verify=verify_forward,
            alternatives=[in_one_go, with_the_package],
            min_checks=12,
            mutants=[
                Mutant("positions shifted", "positions-shifted", "pos_embedding[:, 1:]", "pos_embedding[:, :-1]"),
                Mutant("no positions", "no-positions", "X + model.pos_embedding[:, 1:]", "X"),
                Mutant("first patch", "first-patch", "X.mean(dim=1)", "X[:, 0]"),
                Mutant("maximum", "maximum", "X.mean(dim=1)", "X.amax(dim=1)"),
                Mutant(
                    "mean of the scores", "mean-of-scores", "model.head(X.mean(dim=1))", "model.head(X).mean(dim=1)"
                ),
                Mutant("no norm", "no-norm", "model.head(X", "model.head[1](X"),
                Mutant(
                    "mean first",
                    "mean-first",
                    "    for blk in model.blks:",
                    "    X = X.mean(dim=1, keepdim=True)\n    for blk in model.blks:",
                ),
                Mutant("class token", "class-token", function=lambda model, images: model(images)),
                Mutant(
                    "class token looked at",
                    "still-there",
                    function=lambda model, images: model.head(model.encode(images)[:, 1:].mean(1)),
                ),
                Mutant(
                    "class token averaged",
                    "averaged-too",
                    function=lambda model, images: model.head(model.encode(images).mean(1)),
                ),
                Mutant("scores of every patch", "shape", "X.mean(dim=1)", "X"),
                Mutant(
                    "no gradient",
                    "raised",
                    "X = model.patch_embedding(images)",
                    "X = model.patch_embedding(images).numpy()",
                ),
            ],
            explanation="""
It is not enough to leave the class token out of the *mean*: as long as it is in the sequence, every patch looks at it
in every block. Without it the model has 2h parameters fewer, the token's and its position's; that model is
`d2l.ViT(..., pooling="mean")`.
""",
        ),
        Experiment(
            key="d2l-11.8.2b",
            prompt="""
Does it matter? Write `compare_poolings(make_model, images, labels, test_images, test_labels, seeds, num_steps)`. For
each seed and each pooling, `"class"` and `"mean"`, it makes a model and trains it for `num_steps` steps on batches of
64, with an optimiser of your choice (AdamW at 0.005 does well). Return the accuracies on the test pictures, and what
they say: the mean and the standard deviation of the *differences*, seed by seed.

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
            mutants=[
                Mutant("one pooling", "models", "make_model(pooling, seed)", 'make_model("mean", seed)'),
                Mutant(
                    "other seeds",
                    "models",
                    "make_model(pooling, seed)",
                    'make_model(pooling, seed + (pooling == "mean"))',
                ),
                Mutant("longer for one", "unfair", "range(num_steps)", 'range(num_steps - (pooling == "class"))'),
                Mutant("half of the steps", "steps", "range(num_steps)", "range(num_steps // 2)"),
                Mutant("no training", "untrained", "lr=5e-3", "lr=1e-8"),
                Mutant("share of errors", "error-rate", "== test_labels", "!= test_labels"),
                Mutant("number of right ones", "accuracy", ".float().mean().item())", ".float().sum().item())"),
                Mutant(
                    "exchanged",
                    "swapped",
                    "accuracy[pooling].append",
                    'accuracy["mean" if pooling == "class" else "class"].append',
                ),
                Mutant(
                    "sign",
                    "sign",
                    'torch.tensor(accuracy["mean"]) - torch.tensor(accuracy["class"])',
                    'torch.tensor(accuracy["class"]) - torch.tensor(accuracy["mean"])',
                ),
                Mutant(
                    "unpaired",
                    "unpaired-class",
                    '"spread": differences.std()',
                    '"spread": torch.tensor(accuracy["class"]).std()',
                ),
                Mutant("n in the denominator", "n", "differences.std()", "differences.std(correction=0)"),
            ],
            explanation="""
With models and budgets as small as these, the difference is well within its spread, now one pooling ahead and now the
other: three seeds cannot tell them apart. That *is* the result, and a single run of each would have announced a winner.

The published experience is the same at large scale. Both poolings work; they want different learning rates (Dosovitskiy
et al. 2021, appendix D.3), and later models mostly take the mean because it is one thing less.
""",
        ),
    ],
)
