r"""Rewards that a program can check: a policy gradient with advantages relative to a group of answers.

Of each question a group of G answers is drawn. An answer is worth as much more than its group's mean reward as the rest
of the group makes it (`group_advantages`), and its tokens are made likelier by that (`policy_gradient_loss`). No model
of the reward is learned, and none of its value.
"""

import math

import torch
import torch.nn.functional as F

from .checks import check_tokens
from .masking import IGNORE_INDEX


def group_advantages(rewards, scale=True):
    r"""By how much each answer is better than its group.

    .. math:: A_i = \frac{r_i - \bar r}{s}, \qquad s^2 = \frac{1}{G}\sum_j (r_j - \bar r)^2.

    A group whose rewards are all equal has zero advantages: it teaches nothing.

    Args:
        rewards: (B, G), numbers or booleans: of B questions the rewards of G answers each.
        scale: False: s = 1. The expected gradient is then (G - 1) / G of the gradient of the mean reward; with s,
            where rewards are 0 and 1 and G is large, a question whose share of right answers is p counts about
            1 / sqrt(p (1 - p)) times as much.

    Returns:
        (B, G), float; each row has mean 0, and with ``scale`` standard deviation 1 or 0.

    Raises:
        ValueError: ``rewards`` is not (B, G), a group has fewer than 2 answers, or a reward is not finite.

    Source: Shao et al. 2024, section 4.1.2; without s: Liu et al. 2025, "Understanding R1-Zero-like training".
    """
    rewards = torch.as_tensor(rewards)
    if rewards.dim() != 2 or not rewards.numel():
        raise ValueError(
            f"rewards have shape {tuple(rewards.shape)}, expected (B, G): G answers to each of B questions"
        )
    if rewards.shape[1] < 2:
        raise ValueError("rewards have a group of one answer, expected 2 or more: its advantage would always be 0")
    rewards = rewards if rewards.is_floating_point() else rewards.float()
    if not rewards.isfinite().all():
        row = int((~rewards.isfinite().all(1)).nonzero()[0, 0])
        raise ValueError(f"a reward of group {row} is NaN or infinite, expected finite numbers")
    centred = rewards - rewards.mean(1, keepdim=True)
    differ = rewards.amax(1, keepdim=True) > rewards.amin(1, keepdim=True)  # (B, 1): rounding aside
    centred = centred.masked_fill(~differ, 0)
    if not scale:
        return centred
    return centred / centred.square().mean(1, keepdim=True).sqrt().masked_fill(~differ, 1)


def token_log_probs(logits, labels):
    """Log-probabilities of each token of an answer.

    Args:
        logits: (B, T, V).
        labels: integers (B, T); `IGNORE_INDEX` where nothing is counted, as `answer_batch` gives them.

    Returns:
        (B, T), in nats, 0 where nothing is counted. `sequence_log_probs` are their sums.

    Raises:
        ValueError: the shapes do not fit, or a label is outside of the vocabulary.
    """
    if logits.dim() != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)} and labels {tuple(labels.shape)}, expected (B, T, V) and (B, T)"
        )
    check_tokens(labels.masked_fill(labels == IGNORE_INDEX, 0), logits.shape[-1])
    return -F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORE_INDEX, reduction="none")


def policy_gradient_loss(
    log_probs, old_log_probs, advantages, mask, *, clip=0.2, by_length=True, reference=None, beta=0.0
):
    r"""The clipped policy-gradient loss of answers, with a price on leaving a reference.

    With :math:`\rho_t = \pi(a_t) / \pi_\text{old}(a_t)` of each token, the loss is

    .. math:: L = -\frac{1}{B}\sum_\text{answers} \frac{1}{n} \sum_t \big[m_t - \beta d_t\big],

    .. math:: m_t = \min(\rho_t A,\ \text{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A),

    .. math:: d_t = e^{x_t} - x_t - 1,\qquad x_t = \log\frac{\pi_0(a_t)}{\pi(a_t)},

    n being the answer's tokens, or 1. A token that has become likelier by more than the clip allows gets no further
    push in that direction. Where the policy still is the one that drew, and n = 1, the gradient is that of REINFORCE,
    :math:`-\frac{1}{B}\sum A\,\nabla\log\pi(\text{answer})`. The mean of :math:`d_t` over answers of the policy is its
    KL divergence from the reference.

    Args:
        log_probs: (B, T), of the tokens of B answers under the policy, as `token_log_probs` gives them.
        old_log_probs: (B, T), under the policy that drew them; no gradient.
        advantages: (B,), of the answers: `group_advantages`, flattened; no gradient.
        mask: boolean (B, T), True at the tokens of the answers; what stands elsewhere, NaN too, has no effect.
        clip: epsilon, above 0; ``math.inf``: none.
        by_length: whether n is the answer's length, as in GRPO; False: n = 1, and long answers count more.
        reference: (B, T), log-probabilities under a reference; no gradient. None: there is none.
        beta: from 0; above 0 needs a ``reference``.

    Returns:
        The loss, a scalar.

    Raises:
        TypeError: ``mask`` is not boolean, or log-probabilities or advantages are integers.
        ValueError: the shapes do not fit, an answer has no token, a number that counts is not finite or a
            log-probability above 0, or ``clip``, ``beta`` or ``reference`` is out of range.

    Source: Shao et al. 2024, equations 3 and 4; the clip: Schulman et al. 2017, equation 7; n = 1: Liu et al. 2025;
    :math:`d_t`: Schulman 2020, "Approximating KL divergence". REINFORCE: Williams 1992.
    """
    if not clip > 0:
        raise ValueError(f"clip is {clip}, expected above 0, or math.inf for none")
    if not (beta >= 0 and math.isfinite(beta)) or (beta and reference is None):
        raise ValueError(f"beta is {beta}, expected from 0, finite, and 0 where there is no reference")
    _check_mask(mask, log_probs)
    log_probs = _counted("log_probs", log_probs, mask)
    ratio = (log_probs - _counted("old_log_probs", old_log_probs, mask).detach()).exp()  # (B, T), 1 where not counted
    if advantages.shape != mask.shape[:1] or not advantages.is_floating_point() or not advantages.isfinite().all():
        raise ValueError(
            f"advantages have shape {tuple(advantages.shape)} and dtype {advantages.dtype}, expected finite numbers "
            f"({len(mask)},), one an answer"
        )
    A = advantages.detach()[:, None]
    gains = torch.minimum(ratio * A, ratio.clamp(1 - clip, 1 + clip) * A)  # (B, T)
    if reference is not None:
        x = _counted("reference", reference, mask).detach() - log_probs
        gains = gains - beta * (x.exp() - x - 1)
    totals = gains.masked_fill(~mask, 0).sum(1)  # (B,)
    return -(totals / mask.sum(1) if by_length else totals).mean()


def _check_mask(mask, log_probs):
    if mask.dtype != torch.bool:
        raise TypeError(f"mask has dtype {mask.dtype}, expected booleans: True at the tokens of the answers")
    if mask.dim() != 2 or mask.shape != log_probs.shape or not len(mask):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)} and log_probs {tuple(log_probs.shape)}, expected (B, T) of both, and "
            "an answer at least"
        )
    if not mask.any(1).all():
        row = int((~mask.any(1)).nonzero()[0, 0])
        raise ValueError(f"row {row} of the mask counts no token: the answer is empty, or was cut off")


def _counted(name, values, mask):
    """Log-probabilities, checked where the mask is True, and 0 elsewhere."""
    if not values.is_floating_point():
        raise TypeError(f"{name} has dtype {values.dtype}, expected log-probabilities: were ids passed?")
    if values.shape != mask.shape:
        raise ValueError(f"{name} has shape {tuple(values.shape)}, expected {tuple(mask.shape)}, as the mask")
    values = values.masked_fill(~mask, 0)
    if not (values.isfinite() & (values <= 1e-3)).all():  # rounding may lift a certain token above 0
        raise ValueError(f"{name} holds a number above 0, or not finite, in an answer: expected log-probabilities")
    return values
