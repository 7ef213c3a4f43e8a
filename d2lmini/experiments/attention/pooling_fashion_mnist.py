"""Chapter 02: tell clothes apart by attention over stored images, without a layer in between.

Queries are test images, keys stored training images, values their classes, one-hot. The pooled value of a
query is a distribution over classes; its largest entry is the answer. Three kinds of features stand for an
image: its pixels, histograms of its oriented gradients, and a linear projection of these, learned by the
attention loss itself. The kernel is a Gaussian, and its width is learned too. Only stored images are learned
from, each predicted by attention over the *others* (Goldberger, Roweis, Hinton, Salakhutdinov 2004,
"Neighbourhood components analysis").
"""

from dataclasses import dataclass, replace

import torch
from torch.nn import functional as F

from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist, fashion_mnist_checksums
from d2lmini.experiments.attention.image_features import oriented_gradients, pixels
from d2lmini.lab.parts import Parts

CLASSES = len(FASHION_MNIST_LABELS)
_CHUNK = 500  # queries at a time: their scores against 60,000 keys take 120 MB


@dataclass(frozen=True)
class Config:
    """Settings; ``dim`` is the size of a projected key, ``neighbours`` are the candidates for k."""

    subset: str = "full"
    stored: tuple = (100, 300, 1_000, 3_000, 10_000, 30_000, 60_000)
    test_images: int = 10_000
    width_queries: int = 1_000
    dim: int = 128
    epochs: int = 10
    min_steps: int = 100
    batch_size: int = 512
    lr: float = 2e-3
    weight_decay: float = 0.1
    neighbours: tuple = (1, 3, 5, 7, 9, 15, 25)
    seeds: tuple = (0, 1, 2)


PRESETS = {
    # a fifth of the test images that ship with the package
    "smoke": replace(Config(), subset="shipped", stored=(100, 200), test_images=200, min_steps=5, seeds=(0,)),
    # all that ships with the package
    "cpu": replace(
        Config(),
        subset="shipped",
        stored=(100, 300, 1_000, 2_000),
        test_images=1_000,
        batch_size=256,
        seeds=(0, 1),
    ),
    # the whole of Fashion-MNIST, the official test set
    "laptop": Config(),
}


def gaussian_scores(queries, keys):
    """-|query - key|^2 / 2 up to a number that is the same for all keys, which softmax does not see.

    Multiplied out, the square is a dot product with a bias for each key: one matrix product.

    Args:
        queries: (T, D).
        keys: (S, D).

    Returns:
        (T, S).
    """
    return queries @ keys.mT - (keys**2).sum(1) / 2


def pooled_classes(queries, keys, labels, width):
    """Attention over stored images.

    Args:
        queries: (T, D).
        keys: (S, D).
        labels: (S,), the classes of the keys.
        width: of the Gaussian kernel.

    Returns:
        (T, C), a distribution over classes for each query: what `d2lmini.pooling.nadaraya_watson` gives.
    """
    values = F.one_hot(labels, CLASSES).to(keys)  # (S, C)
    parts = [(gaussian_scores(part, keys) / width**2).softmax(1) @ values for part in queries.split(_CHUNK)]
    return torch.cat(parts)  # (T, C)


def leave_one_out_loss(scores, labels):
    """How surprised attention is by the class of each stored image, seeing all of them but this one.

    Args:
        scores: (T, S); query i is stored image i.
        labels: (S,).

    Returns:
        Mean negative log-likelihood, in nats, over the queries that have another image of their class.
    """
    queries = len(scores)
    own = torch.eye(queries, len(labels), dtype=torch.bool, device=scores.device)
    same = (labels[:queries, None] == labels) & ~own  # (T, S)
    right = scores.masked_fill(~same, -torch.inf).logsumexp(1)  # (T,)
    others = scores.masked_fill(own, -torch.inf).logsumexp(1)  # (T,)
    return (others - right)[same.any(1)].mean()


def learn_width(keys, labels, num_queries):
    """Learn the width by gradient descent on the leave-one-out loss.

    Args:
        keys: (S, D), stored images in random order.
        labels: (S,).
        num_queries: how many of them, at most, serve as queries.

    Returns:
        float, the width; list of float, the loss at each step.
    """
    queries = keys[:num_queries]
    scores = gaussian_scores(queries, keys)
    nearest = (queries**2).sum(1) - 2 * scores.clone().fill_diagonal_(-torch.inf).amax(1)  # squared distances
    log_width = (nearest.mean().log() / 2).requires_grad_()
    optimizer = torch.optim.LBFGS([log_width], max_iter=15, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = leave_one_out_loss(scores * (-2 * log_width).exp(), labels)
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    return log_width.detach().exp().item(), losses


def learn_projection(keys, labels, config):
    """Learn a matrix: with queries and keys multiplied by it, attention of width 1 should predict the class.

    Args:
        keys: (S, D), stored images.
        labels: (S,).
        config: `Config`.

    Returns:
        (D, dim) tensor; list of float, the loss of each batch.
    """
    batch_size = min(config.batch_size, len(keys))
    steps = max(config.epochs * (len(keys) // batch_size), config.min_steps)
    start = torch.randn(keys.shape[1], config.dim) / keys.shape[1] ** 0.5  # (D, dim)
    projection = start.to(keys.device).requires_grad_()
    optimizer = torch.optim.AdamW([projection], config.lr, weight_decay=config.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.lr, total_steps=steps)
    losses, order = [], torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(order) < batch_size:
            order = torch.randperm(len(keys))
        batch, order = order[:batch_size], order[batch_size:]
        projected = keys[batch] @ projection  # (B, dim)
        loss = leave_one_out_loss(gaussian_scores(projected, projected), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(round(loss.item(), 5))
    return projection.detach(), losses


def nearest_neighbours(keys, labels, queries, truth, candidates):
    """The baseline: k-nearest neighbours of scikit-learn, k chosen on up to 2,000 of the stored images.

    Returns:
        float, the accuracy on the queries; int, the k chosen.
    """
    from sklearn.neighbors import KNeighborsClassifier

    keys, labels, queries, truth = (x.cpu().numpy() for x in (keys, labels, queries, truth))
    held_out = min(len(keys) // 10, 2_000)  # enough to tell them apart
    rest = KNeighborsClassifier(algorithm="brute").fit(keys[held_out:], labels[held_out:])
    nearest = labels[held_out:][rest.kneighbors(keys[:held_out], max(candidates), return_distance=False)]

    def accuracy(k):
        votes = (nearest[:, :k, None] == range(CLASSES)).sum(1)  # (held_out, C)
        return (votes.argmax(1) == labels[:held_out]).mean()

    best = max(candidates, key=accuracy)
    return KNeighborsClassifier(best, algorithm="brute").fit(keys, labels).score(queries, truth), best


def compare(keys, labels, queries, truth, config, project):
    """Class the queries by attention over the keys, and by their nearest neighbours.

    Args:
        keys, labels: (S, D) and (S,), stored images.
        queries, truth: (T, D) and (T,), test images.
        config: `Config`.
        project: whether to learn a projection first.

    Returns:
        dict for JSON with ``metrics`` and ``curves``, as `run` has them, of this one case.
    """
    curves = {}
    if project:
        projection, curves["projection_loss"] = learn_projection(keys, labels, config)
        keys, queries = keys @ projection, queries @ projection
    width, curves["width_loss"] = learn_width(keys, labels, config.width_queries)
    answers = pooled_classes(queries, keys, labels, width).argmax(1)
    baseline, k = nearest_neighbours(keys, labels, queries, truth, config.neighbours)
    right = (answers == truth).cpu().double().mean().item()
    metrics = {"attention": right, "nearest_neighbours": baseline, "width": width, "k": k}
    return {"metrics": metrics, "curves": curves}


def run(config, device, parts=None):
    """Measure the accuracy for each kind of features and each number of stored images.

    Args:
        config, device: a `Config` and a ``torch.device``.
        parts: those of `Parts`.

    Returns:
        dict with ``metrics`` (for each kind: accuracies of attention and of the baseline, widths, k, as lists
        over ``stored`` of lists over seeds), ``curves`` (losses while learning) and ``data`` (checksums).

    Raises:
        ImportError: scikit-learn is not installed.
        ValueError: more images are to be stored or tested than there are.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "the baseline of this experiment needs scikit-learn: pip install 'd2lmini[experiments]'"
        ) from error
    images, labels = (x.to(device) for x in fashion_mnist("train", config.subset))
    test_images, truth = (x[: config.test_images].to(device) for x in fashion_mnist("test", config.subset))
    if max(config.stored) > len(images) or config.test_images > len(test_images):
        raise ValueError(
            f"asked for {max(config.stored)} stored and {config.test_images} test images, but Fashion-MNIST "
            f"({config.subset}) has {len(images)} and {len(test_images)}"
        )
    parts = parts or Parts()
    described = {kind.__name__: (kind(images), kind(test_images)) for kind in (pixels, oriented_gradients)}
    kinds = (*described, "learned_projection")
    metrics = {"stored": list(config.stored), "test_images": len(truth)}
    for name in ("attention", "nearest_neighbours", "width", "k"):
        metrics[name] = {kind: [[] for _ in config.stored] for kind in kinds}
    curves = {"width_loss": {}, "projection_loss": {}}
    for seed in config.seeds:
        torch.manual_seed(seed)
        order = torch.randperm(len(images))
        for at, stored in enumerate(config.stored):
            chosen = order[:stored].to(device)
            for kind in kinds:
                if stored == len(images) and kind in described and seed != config.seeds[0]:
                    continue  # all images, nothing random: every seed would give the same
                keys, queries = described.get(kind, described["oriented_gradients"])
                stored_part = (keys[chosen], labels[chosen])
                record = parts(
                    f"{kind}-{stored}-{seed}", compare, *stored_part, queries, truth, config, kind not in described
                )
                for name, value in record["metrics"].items():
                    metrics[name][kind][at].append(value)
                for name, losses in record["curves"].items():
                    curves[name][f"{kind}/{stored}/{seed}"] = losses
    metrics["headline"] = _headline(metrics)
    return {"metrics": metrics, "curves": curves, "data": fashion_mnist_checksums(config.subset)}


def _headline(metrics):
    def last(name, kind):
        accuracies = metrics[name][kind][-1]
        return f"{sum(accuracies) / len(accuracies):.1%}"

    learned = "learned_projection"
    return (
        f"attention over {metrics['stored'][-1]:,} stored images classes {last('attention', learned)} of "
        f"{metrics['test_images']:,} test images rightly; nearest neighbours on the same learned features "
        f"{last('nearest_neighbours', learned)}, attention over pixels {last('attention', 'pixels')}"
    )
