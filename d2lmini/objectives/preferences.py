r"""Answers that are liked better: direct preference optimisation, and the best of n.

A policy is a language model that answers; the reference is the model that it was before. A reward judges answers. To
raise it and yet stay near to the reference there are two ways here: to learn from pairs of answers (`dpo_loss`), or to
draw n answers and keep the best, which changes no weight.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..arguments import check_integer, check_number
from ..utils import in_float64
from .checks import check_positive, check_tokens
from .masking import IGNORE_INDEX


class Preference(NamedTuple):
    """Two answers to a prompt, lists of ids each; ``chosen`` is the one that is liked better."""

    prompt: list
    chosen: list
    rejected: list


def answer_batch(prompts, answers, pad=0):
    """Prompts and answers as the inputs of a causal model, and labels which count the answers alone.

    Args:
        prompts, answers: B lists of ids each; an answer holds its <eos>, if there is one.
        pad: the id that stands behind shorter ones; causal attention never looks at it.

    Returns:
        inputs (B, T), and labels (B, T): the token that follows, `IGNORE_INDEX` where it belongs to no answer.

    Raises:
        ValueError: there is no row, a prompt or an answer is empty, or they are not as many.
    """
    if not prompts or len(prompts) != len(answers):
        raise ValueError(f"there are {len(prompts)} prompts and {len(answers)} answers, expected one answer a prompt")
    for name, rows in (("prompt", prompts), ("answer", answers)):
        if empty := [place for place, row in enumerate(rows) if not len(row)]:
            raise ValueError(f"{name} {empty[0]} is empty, expected a token at least: give it its <bos> or <eos>")
    T = max(len(prompt) + len(answer) for prompt, answer in zip(prompts, answers, strict=True)) - 1
    inputs = torch.full((len(prompts), T), pad)
    labels = torch.full((len(prompts), T), IGNORE_INDEX)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        whole, first = torch.tensor([*prompt, *answer]), len(prompt) - 1
        inputs[row, : len(whole) - 1] = whole[:-1]
        labels[row, first : len(whole) - 1] = whole[1 + first :]
    return inputs, labels


def sequence_log_probs(logits, labels):
    """Log-probabilities of whole answers: the sum over those of their tokens.

    Args:
        logits: (B, T, V).
        labels: integers (B, T); `IGNORE_INDEX` where nothing is counted.

    Returns:
        (B,), in nats, at most 0. Long answers have lower ones.

    Raises:
        ValueError: the shapes do not fit, a label is outside of the vocabulary, a row counts nothing, or its logits are
            NaN or infinite.
    """
    if logits.dim() != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and labels {tuple(labels.shape)}, expected (B, T, V) and (B, T)"
        )
    counted = labels != IGNORE_INDEX  # (B, T)
    check_tokens(labels.masked_fill(~counted, 0), logits.shape[-1])
    if not counted.any(1).all():
        row = int((~counted.any(1)).nonzero()[0, 0])
        raise ValueError(f"row {row} of the labels counts no token: the answer is empty, or was cut off")
    scores = logits.log_softmax(-1)
    chosen = scores.gather(-1, labels.masked_fill(~counted, 0)[..., None])[..., 0]  # (B, T)
    totals = chosen.masked_fill(~counted, 0).sum(1)
    if totals.isnan().any():
        row = int(totals.isnan().nonzero()[0, 0])
        raise ValueError(f"the logits of row {row} are not finite: did the training diverge?")
    return totals


def dpo_loss(chosen, rejected, reference_chosen, reference_rejected, beta=0.1):
    r"""The loss of direct preference optimisation.

    With :math:`\pi` the policy and :math:`\pi_0` the reference, the reward that a policy implies for an answer is
    :math:`\hat r = \beta\log(\pi/\pi_0)`. The loss is that of a logistic regression, which asks that it be larger for
    the chosen answer:

    .. math:: L = -\frac{1}{B}\sum\log\sigma(\hat r_\text{chosen} - \hat r_\text{rejected}).

    A policy equal to the reference has log 2. If preferences were drawn with the odds :math:`\exp(r_1 - r_2)`, the
    minimum is the policy which maximises the mean of r less beta times its KL divergence from the reference.

    Args:
        chosen, rejected: (B,), log-probabilities of answers under the policy, as `sequence_log_probs` gives them.
        reference_chosen, reference_rejected: (B,), the same under the reference; they get no gradient.
        beta: above 0. The smaller, the further the policy may go from the reference.

    Returns:
        The loss, a scalar, in nats.

    Raises:
        TypeError: an argument holds integers: ids, not log-probabilities.
        ValueError: the shapes are not (B,) and alike, there is no pair, a log-probability is above 0 or not finite, or
            ``beta`` is out of range.

    Source: Rafailov et al. 2023, equation 7.
    """
    check_positive("beta", beta)
    given = {
        "chosen": chosen,
        "rejected": rejected,
        "reference_chosen": reference_chosen,
        "reference_rejected": reference_rejected,
    }
    for name, value in given.items():
        _check_log_probs(name, value, chosen.shape)
    policy = implied_rewards(chosen, reference_chosen.detach(), beta)
    return -F.logsigmoid(policy - implied_rewards(rejected, reference_rejected.detach(), beta)).mean()


def _check_log_probs(name, value, shape):
    if not value.is_floating_point():
        raise TypeError(f"{name} has dtype {value.dtype}, expected log-probabilities: were ids passed?")
    if value.dim() != 1 or value.shape != shape or not len(value):
        raise ValueError(f"{name} has shape {tuple(value.shape)}, expected (B,) of all four, and a pair at least")
    if not (value.isfinite() & (value <= 1e-3)).all():  # rounding may lift a certain token above 0
        raise ValueError(
            f"{name} holds a number above 0, or not finite: expected log-probabilities, summed over tokens"
        )


def implied_rewards(policy, reference, beta=0.1):
    """The reward that a policy implies: (B,) and (B,), log-probabilities of the same answers, to (B,).

    It is known up to a constant for each prompt.
    """
    return beta * (policy - reference)


def preference_pairs(prompts, answers, rewards):
    """Of several answers to a prompt, the best and the worst as a pair.

    Args:
        prompts: B lists of ids.
        answers: of each prompt a list of n answers, lists of ids.
        rewards: (B, n).

    Returns:
        A list of `Preference`. Prompts whose answers are all as good give none: there is nothing to prefer.

    Raises:
        ValueError: a reward is not finite, or the shapes do not fit.
    """
    rewards = _rewards(rewards)
    if rewards.dim() != 2 or [len(row) for row in answers] != [rewards.shape[1]] * len(prompts):
        raise ValueError(
            f"rewards have shape {tuple(rewards.shape)}, expected one of each answer of each prompt, (B, n)"
        )
    places = zip(rewards.argmax(1).tolist(), rewards.argmin(1).tolist(), strict=True)
    contests = zip(prompts, answers, places, strict=True)
    differ = rewards.amax(1) > rewards.amin(1)
    return [
        Preference(prompt, row[best], row[worst])
        for (prompt, row, (best, worst)), any_better in zip(contests, differ.tolist(), strict=True)
        if any_better
    ]


def check_preferences(pairs, vocab_size):
    """Refuses preferences that teach nothing, or something else than was meant.

    Args:
        pairs: list of `Preference`.
        vocab_size: V of the model.

    Raises:
        ValueError: there is none; a prompt or an answer is empty; chosen and rejected are equal; a pair is there twice,
            or once this way and once the other; or an id is outside of the vocabulary.
    """
    if not pairs:
        raise ValueError("there is no preference pair: were all answers to each prompt judged alike?")
    seen = {}
    for place, pair in enumerate(pairs):
        prompt, chosen, rejected = map(tuple, pair)
        if not (prompt and chosen and rejected):
            raise ValueError(
                f"pair {place} has an empty prompt or answer, expected a token at least: is <eos> missing?"
            )
        if chosen == rejected:
            raise ValueError(f"pair {place}: chosen equals rejected, so its loss is log 2 whatever the model does")
        low, high = min(prompt + chosen + rejected), max(prompt + chosen + rejected)
        if low < 0 or high >= vocab_size:
            raise ValueError(
                f"pair {place} holds the id {low if low < 0 else high}, expected 0 to {vocab_size - 1}: was it encoded "
                "with another tokenizer than the model's?"
            )
        for answers, trouble in (((chosen, rejected), "repeats"), ((rejected, chosen), "contradicts")):
            if (prompt, *answers) in seen:
                raise ValueError(
                    f"pair {place} {trouble} pair {seen[(prompt, *answers)]}: count each preference "
                    "once, by the answer that was chosen more often"
                )
        seen[prompt, chosen, rejected] = place


def best_of_n(rewards):
    """The place of the best of n answers, the first of equals: rewards (B, n) to integers (B,).

    Raises:
        ValueError: a reward is not finite, or there is no answer.
    """
    return _rewards(rewards).argmax(-1)


def expected_best_of(rewards, values, n):
    """What the best of n answers is worth, expected over which n of the N that were drawn one has.

    Args:
        rewards: (B, N), what the best is chosen by; of equals each is chosen as often.
        values: (B, N), what is counted of the chosen one: the same rewards, or another judge's.
        n: from 1 to N.

    Returns:
        (B,), float64 (of MPS, which has none, on the CPU). Over answers drawn independently it has the mean that
        choosing among n fresh ones has.

    Raises:
        ValueError: a reward is not finite, ``n`` is out of range, or the shapes are not alike.
    """
    rewards, values = in_float64(_rewards(rewards)), in_float64(values)
    N = rewards.shape[-1]
    if rewards.shape != values.shape:
        raise ValueError(
            f"rewards have shape {tuple(rewards.shape)} and values {tuple(values.shape)}, expected (B, N), the same"
        )
    check_integer("n", n, 1, N)
    # the best of n is among the k worst with probability C(k, n) / C(N, n)
    below = torch.tensor([math.comb(k, n) / math.comb(N, n) for k in range(N + 1)], dtype=torch.float64)
    below = below.to(rewards.device)
    less = (rewards[..., None, :] < rewards[..., None]).sum(-1)  # (B, N): how many are worse than each
    upto = (rewards[..., None, :] <= rewards[..., None]).sum(-1)
    weights = (below[upto] - below[less]) / (upto - less)
    return (weights * values).sum(-1)


def best_of_n_kl(n):
    """How far the best of n answers may be from one answer, as distributions: log n - (n - 1) / n, in nats.

    The KL divergence is never larger, and near it where no answer is likely and no two have the same reward.

    Raises:
        ValueError: ``n`` is below 1.

    Source: Stiennon et al. 2020; that it bounds: Beirami et al. 2024.
    """
    check_number("n", n, 1, why=": of how many answers is the best taken?")
    return math.log(n) - (n - 1) / n


def _rewards(rewards):
    rewards = torch.as_tensor(rewards)
    if not rewards.numel() or not rewards.isfinite().all():
        raise ValueError(
            f"rewards of shape {tuple(rewards.shape)} hold none, or one that is not finite: expected a number an answer"
        )
    return rewards
