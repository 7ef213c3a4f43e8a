"""Prefix language modelling: the beginning is read both ways, the rest is written token by token."""

from typing import NamedTuple

import torch

from ..masks import prefix_mask
from .checks import check_generator, check_tokens, valid_tokens
from .masking import IGNORE_INDEX


class PrefixBatch(NamedTuple):
    """What a prefix language model gets: ``inputs`` and ``labels`` (B, T), ``mask`` (B, T, T), ``prefix_lens`` (B,).

    ``labels`` are the inputs shifted by one, `IGNORE_INDEX` where the next token belongs to the prefix or is padding;
    ``mask`` is True where a position may attend.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    mask: torch.Tensor
    prefix_lens: torch.Tensor


def prefix_lm(tokens, *, generator=None, valid_lens=None, prefix_lens=None):
    """Cuts each text into a prefix and a target, for a model without an encoder.

    The last token of the prefix guesses the first of the target, each later one the next. The mask lets all positions
    see the prefix, and those of the target what is before them besides: so no position sees the token that it
    guesses. Padding, which stands on the right, no token of a text sees.

    Args:
        tokens: ids (B, T + 1).
        generator: a ``torch.Generator`` on the CPU, which draws where to cut: each place between two tokens of the text
            is as likely. Only where ``prefix_lens`` is None.
        valid_lens: integers (B,), the tokens of each text, at least 2; None: all.
        prefix_lens: integers (B,), how many tokens each prefix has, from 1 to one less than the text: the input of a
            task, then. None: they are drawn.

    Returns:
        `PrefixBatch`.

    Raises:
        TypeError: ``tokens`` or lengths are no integers, or there is neither a generator nor ``prefix_lens``.
        ValueError: a shape does not fit, a text has fewer than 2 tokens, or a prefix leaves no target or is none.

    Source: Raffel et al. 2020, section 3.2.1 and figure 3, and section 3.3.1; Liu et al. 2018. D2L section 11.9,
    exercise 4.
    """
    check_tokens(tokens)
    valid = valid_tokens(tokens.shape, valid_lens, tokens.device)  # (B, T + 1)
    valid_lens = valid.sum(1)
    if valid_lens.min() < 2:
        raise ValueError(
            f"a text has {int(valid_lens.min())} tokens, expected at least 2: one of prefix and one of target"
        )
    if prefix_lens is None:
        check_generator(generator)
        numbers = torch.rand(len(tokens), generator=generator).to(valid_lens.device)
        prefix_lens = 1 + (numbers * (valid_lens - 1)).long()  # (B,)
    integers = isinstance(prefix_lens, torch.Tensor) and prefix_lens.dtype in (torch.int32, torch.int64)
    if integers and (
        prefix_lens.shape != valid_lens.shape or (prefix_lens < 1).any() or (prefix_lens >= valid_lens).any()
    ):
        raise ValueError(
            f"prefix_lens is {prefix_lens.tolist()} for texts of {valid_lens.tolist()} tokens, expected from 1 to one "
            "less than the text"
        )
    inputs = tokens[:, :-1]  # (B, T)
    mask = prefix_mask(prefix_lens, inputs.shape[1])  # refuses what is no integers
    guessed = torch.arange(1, tokens.shape[1], device=valid_lens.device)  # (T,): the position of each label
    counted = (guessed >= prefix_lens[:, None]) & valid[:, 1:]
    return PrefixBatch(inputs, tokens[:, 1:].long().masked_fill(~counted, IGNORE_INDEX), mask, prefix_lens)
