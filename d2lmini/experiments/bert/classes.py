"""What the experiments on classes of texts share: scores of two classes, what counts them, and regressions.

A score is the logit of class 1, above 0 where it is the likelier one.
"""

import math
from statistics import mean

import torch

from d2lmini.data.batching import LengthBatches
from d2lmini.experiments.bert import fine_tuning
from d2lmini.lab import summaries
from d2lmini.models.heads import class_token, mean_pooling

_STRENGTHS = tuple(10.0**power for power in (-3, -2, -1, 0, 1, 2))  # C of the regressions


def accuracy(scores, labels):
    """The share of scores above 0 where the label is 1, and not above it where it is 0."""
    return mean((score > 0) == bool(label) for score, label in zip(scores, labels, strict=True))


def log_loss(scores, labels):
    """Mean cross-entropy in nats of scores, the logits of label 1."""
    scores, labels = torch.tensor(scores).double(), torch.tensor(labels).double()
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, labels).item()


def confusion(scores, labels):
    """How many sentences of each label, 0 and 1, are taken for each: two lists of two."""
    counts = [[0, 0], [0, 0]]
    for score, label in zip(scores, labels, strict=True):
        counts[label][int(score > 0)] += 1
    return counts


def judged(scores, labels):
    """``accuracy``, its ``standard_error`` by the number of sentences, and ``confusion``, see there."""
    right = summaries.share([(score > 0) == bool(label) for score, label in zip(scores, labels, strict=True)])
    return {"accuracy": right["accuracy"], "standard_error": right["error"], "confusion": confusion(scores, labels)}


def chosen_by(scores, labels):
    """What `fine_tuning.fine_tune` takes for validation: accuracy, which chooses, and the loss."""
    return {"chosen_by": accuracy(scores, labels), "loss": log_loss(scores, labels)}


def rounded(scores):
    """Scores for a record, with four decimals; none becomes 0, which is no side."""
    return [round(score, 4) or math.copysign(1e-4, score) for score in scores]


def labels_of(data, split):
    """The labels of the examples of a split, a list."""
    return [example[-1] for example in data.examples(split)]


def logits(head, data, split):
    """Scores of label 1, by how much they are above those of label 0: a list in the order of the examples."""
    batches = fine_tuning.outputs(head, data.loader(split, shuffle=False))
    return [float(row[1] - row[0]) for row in data.in_order(split, batches)]


def regress(features, labels):
    """A logistic regression of scikit-learn, its C chosen on the validation data: of equals, the smallest.

    Args:
        features: dict from a split to a matrix of N rows.
        labels: dict from a split to N labels.

    Returns:
        dict with ``val`` and ``test`` as `fine_tuning.fine_tune` gives them, and ``C``.
    """
    from sklearn.linear_model import LogisticRegression

    best = None
    for C in _STRENGTHS:
        model = LogisticRegression(C=C, max_iter=2_000).fit(features["train"], labels["train"])
        scores = model.decision_function(features["val"]).tolist()
        if best is None or accuracy(scores, labels["val"]) > best[0]["chosen_by"]:
            best = chosen_by(scores, labels["val"]), model.decision_function(features["test"]).tolist(), C
    return {"val": best[0], "test": rounded(best[1]), "C": best[2]}


@torch.no_grad()
def features(encoder, data, split, device, places=None):
    """What an encoder says of the sentences of a split: of the embeddings and each block the class token and the mean.

    Args:
        encoder: a `BERT`.
        data: a `LabelledText`.
        split: name.
        device: ``torch.device``.
        places: which examples; None: all.

    Returns:
        dict from ``"class"`` and ``"mean"`` to tensors (L + 1, N, h).
    """
    encoder = encoder.to(device).eval()
    examples = [data.examples(split)[place] for place in places or range(len(data.examples(split)))]
    order = [i for batch in LengthBatches([len(text) for text, _ in examples], 64) for i in batch]
    rows = {"class": [], "mean": []}
    for start in range(0, len(order), 64):
        texts = [examples[i][0] for i in order[start : start + 64]]
        tokens, segments, valid_lens = (part.to(device) for part in data.build(texts))
        layers = _layers(encoder, tokens, segments, valid_lens)
        for name, pool in (("class", class_token), ("mean", mean_pooling)):
            rows[name].append(torch.stack([pool(X, valid_lens) for X in layers]).float().cpu())  # (L + 1, B, h)
    back = torch.tensor(order).argsort()
    return {name: torch.cat(parts, 1)[:, back] for name, parts in rows.items()}


def _layers(encoder, *inputs):
    """What the embeddings and each block give: a list of L + 1 tensors (B, T, h)."""
    layers = []
    modules = [encoder.widen, *encoder.blks]
    hooks = [module.register_forward_hook(lambda *call: layers.append(call[-1])) for module in modules]
    try:
        encoder(*inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return layers


def sentences(examples, scores, by, shown):
    """Some test sentences, by rule: of the contestant ``by`` the surest that are right and wrong, and the least sure.

    Args:
        examples: list of (text, label).
        scores: dict from a contestant to its scores.
        by: the contestant that chooses.
        shown: how many of each.

    Returns:
        dict from ``"surest right"``, ``"surest wrong"`` and ``"least sure"`` to lists of dicts: ``text``, ``label``,
        and ``scores`` of each contestant.
    """
    order = sorted(range(len(examples)), key=lambda place: abs(scores[by][place]))
    right = {place for place in order if (scores[by][place] > 0) == bool(examples[place][1])}
    kinds = {
        "surest right": [place for place in reversed(order) if place in right],
        "surest wrong": [place for place in reversed(order) if place not in right],
        "least sure": order,
    }
    return {
        kind: [
            {
                "text": examples[place][0],
                "label": examples[place][1],
                "scores": {name: rows[place] for name, rows in scores.items()},
            }
            for place in places[:shown]
        ]
        for kind, places in kinds.items()
    }
