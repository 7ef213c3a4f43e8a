"""Replaced-token detection: a small model fills the masks, another finds out which tokens are not the author's."""

from typing import NamedTuple

import torch

from .checks import check_generator, check_tokens
from .masking import IGNORE_INDEX


class ReplacedTokens(NamedTuple):
    """What the discriminator sees and says: ``inputs`` (B, T), and ``is_replaced``, boolean (B, T)."""

    inputs: torch.Tensor
    is_replaced: torch.Tensor


@torch.no_grad()
def replace_tokens(masked, logits, *, generator):
    """Puts a generator's guesses where tokens were masked.

    A guess is drawn from the generator's distribution. Where it happens to be right the token counts as original.
    The discriminator's loss is over all tokens of the text, not only the masked ones: leave padding out of it.
    No gradient flows from it into the generator, which learns from its own guesses alone.

    Args:
        masked: `MaskedTokens`, or a pair of inputs and labels, each integers (B, T).
        logits: of the generator: (B, T, V), or (M, V) for the M chosen tokens alone, row by row, which are those of
            ``hidden[labels != IGNORE_INDEX]``.
        generator: a ``torch.Generator`` on the CPU, for random numbers.

    Returns:
        `ReplacedTokens`.

    Raises:
        TypeError: ``generator`` is none, or inputs are no integers.
        ValueError: the shapes do not fit, nothing was chosen, a label is no id of the V, or logits give no
            distribution.

    Source: Clark et al. 2020 (ELECTRA), section 2.
    """
    inputs, labels = masked
    check_tokens(inputs)
    check_generator(generator)
    if labels.shape != inputs.shape:
        raise ValueError(f"labels have shape {tuple(labels.shape)} but inputs {tuple(inputs.shape)}")
    chosen = labels != IGNORE_INDEX  # (B, T)
    M = int(chosen.sum())
    if not M:
        raise ValueError("no token was chosen: every label is IGNORE_INDEX. Were labels and inputs exchanged?")
    if logits.dim() == 3 and logits.shape[:2] == inputs.shape:
        logits = logits[chosen]  # (M, V)
    if logits.dim() != 2 or len(logits) != M:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)}, expected ({inputs.shape[0]}, {inputs.shape[1]}, V), or ({M}, V) "
            "for the chosen tokens alone"
        )
    V, originals = logits.shape[1], labels[chosen]
    if originals.min() < 0 or originals.max() >= V:
        raise ValueError(
            f"labels hold ids from {int(originals.min())} to {int(originals.max())}, but logits are over {V} tokens"
        )
    # A random number a token, and where it falls among the cumulated probabilities: torch.multinomial would draw on the
    # logits' device, and with its numbers.
    cumulated = logits.float().softmax(-1).cumsum(-1)  # (M, V)
    if not cumulated[:, -1].isfinite().all():
        raise ValueError("logits are NaN, infinite, or minus infinity for all tokens: did the training diverge?")
    numbers = torch.rand(M, 1, generator=generator).to(logits.device) * cumulated[:, -1:]  # which is 1 but for rounding
    guesses = torch.searchsorted(cumulated, numbers, right=True)[:, 0]
    inputs = inputs.masked_scatter(chosen, guesses.to(inputs.dtype))
    return ReplacedTokens(inputs, torch.zeros_like(chosen).masked_scatter(chosen, guesses != originals))
