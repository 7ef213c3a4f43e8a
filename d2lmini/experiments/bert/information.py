"""What a training taught: losses of held-out text, and bits beyond what frequencies alone give."""

import math

import torch
from torch.nn import functional as F

from d2lmini.experiments.bert import pretraining
from d2lmini.objectives.masking import IGNORE_INDEX


@torch.no_grad()
def score(model, objective, windows):
    """Means of what a model measures, in float32, over the validation windows of an objective: dict of float."""
    totals, weights = {}, 0.0
    device = next(model.parameters()).device
    for batch in windows.for_objective(objective.batches(windows), 1).val_dataloader():
        weight = float(model.batch_weight(batch))
        for key, value in model.measures([tensor.to(device) for tensor in batch]).items():
            totals[key] = totals.get(key, 0.0) + weight * float(value)
        weights += weight
    return {key: total / weights for key, total in totals.items()}


@torch.no_grad()
def masked_score(model, objective, windows):
    """Loss in nats, and accuracy, of guesses of masked tokens, also of ELECTRA's generator: dict of float."""
    device, losses, right = next(model.parameters()).device, [], []
    for batch in windows.for_objective(objective.batches(windows), 1).val_dataloader():
        tokens, _, labels = (tensor.to(device) for tensor in batch)
        chosen = labels != IGNORE_INDEX
        logits, labels = model.guess(tokens, chosen).float(), labels[chosen]
        losses.append(F.cross_entropy(logits, labels, reduction="none"))
        right.append((logits.argmax(-1) == labels).float())
    return {"loss": float(torch.cat(losses).mean()), "accuracy": float(torch.cat(right).mean())}


def unigram(windows):
    """What frequencies alone give on the validation windows: ``loss`` in nats and ``accuracy`` of the most frequent."""
    train, val = (windows.windows[part].long() for part in ("train", "val"))
    counts = torch.bincount(train[windows.ordinary(train)], minlength=len(windows.encoder)).double() + 1
    counts[windows.special_ids] = 0
    val = val[windows.ordinary(val)]
    loss = -(counts / counts.sum()).log()[val].mean()
    return {"loss": float(loss), "accuracy": float((val == counts.argmax()).cpu().double().mean())}


def taught(objective, recipe, measured, frequencies):
    """How much a guess, a window and a batch tell beyond frequencies, in bits, at the end of a training."""
    if objective.kind == "replaced":
        share = torch.tensor(measured["replaced"]).double()
        baseline = float(torch.special.entr(share) + torch.special.entr(1 - share))
        loss, floor = measured["detection"], float(1 - share)
    else:
        baseline, loss, floor = frequencies["loss"], measured["loss"], frequencies["accuracy"]
    T = recipe.model.max_len
    labels = pretraining.guesses_of(objective, T)
    bits = (baseline - loss) / math.log(2)
    return {
        "labels_per_window": labels,
        "gradient_share": labels / T,
        "loss": loss,
        "accuracy": measured["acc"],
        "baseline_loss": baseline,
        "baseline_accuracy": floor,
        "bits_per_guess": bits,
        "bits_per_window": bits * labels,
        "bits_per_batch": bits * labels * recipe.batch_size,
    }
