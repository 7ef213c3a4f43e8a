"""Spans of noise: how many, how long, where, and what becomes of the lengths."""

import torch

from .checks import check_generator, check_share, valid_tokens


def span_counts(length, noise_density=0.15, mean_span=3.0):
    """How many tokens of a text are noise, and in how many spans.

    Both are rounded (a half to the even number), at least 1, and never all tokens are noise. Where the text has too few
    tokens to keep the spans apart there are fewer spans.

    Args:
        length: tokens of the text, at least 2.
        noise_density: share of the tokens, above 0 and below 1.
        mean_span: tokens of a span on average, at least 1.

    Returns:
        (noise tokens, spans).

    Raises:
        ValueError: an argument is out of range.

    Source: Raffel et al. 2020, section 3.3.4, and the authors' code.
    """
    check_share("noise_density", noise_density, above_zero=True)
    if noise_density == 1:
        raise ValueError("noise_density is 1, expected below 1: nothing would be left of the text")
    if not 1 <= mean_span < float("inf"):
        raise ValueError(f"mean_span is {mean_span}, expected tokens, at least 1")
    if length < 2:
        raise ValueError(f"a text has {length} tokens, expected at least 2: one to drop and one to keep")
    noise = min(max(round(length * noise_density), 1), length - 1)
    return noise, min(max(round(noise / mean_span), 1), length - noise + 1)


def corrupted_lengths(length, noise_density=0.15, mean_span=3.0, *, closing=True, eos=False):
    """How long input and target of `corrupt_spans` get from spans of `random_spans`.

    Args:
        length: tokens of the text.
        noise_density: as in `span_counts`.
        mean_span: as in `span_counts`.
        closing: whether a last sentinel ends the target.
        eos: whether an end token ends both.

    Returns:
        (tokens of the input, tokens of the target).

    Raises:
        ValueError: as `span_counts`.
    """
    noise, spans = span_counts(length, noise_density, mean_span)
    return length - noise + spans + bool(eos), noise + spans + bool(closing) + bool(eos)


def text_length(input_length, noise_density=0.15, mean_span=3.0, *, eos=False):
    """The longest text whose input fits: cut text into pieces of it, and batches are full.

    Args:
        input_length: tokens that the encoder reads.
        noise_density: as in `span_counts`.
        mean_span: as in `span_counts`.
        eos: whether an end token ends the input.

    Returns:
        Tokens of the text, at least 2.

    Raises:
        ValueError: as `span_counts`, or no text fits.
    """
    length = 2
    if corrupted_lengths(length, noise_density, mean_span, eos=eos)[0] > input_length:
        raise ValueError(f"input_length is {input_length}: not even a text of 2 tokens fits")
    while corrupted_lengths(length + 1, noise_density, mean_span, eos=eos)[0] <= input_length:  # it never shrinks
        length += 1
    return length


def random_spans(num_rows, length, *, generator, valid_lens=None, noise_density=0.15, mean_span=3.0):
    """Draws which tokens are noise. Spans never touch, so that their number is known.

    How the noise is cut into spans, and where they stand, is drawn uniformly from all ways. A text may begin and end
    with kept tokens or with noise. In the authors' code it always begins with kept tokens and ends with noise: a text
    with room for one span, up to 30 tokens at the usual settings, always loses the same last ones.

    Args:
        num_rows: B.
        length: T.
        generator: a ``torch.Generator`` on the CPU.
        valid_lens: integers (B,), the tokens of each text; None: all T.
        noise_density: as in `span_counts`, which gives the numbers of each text.
        mean_span: as in `span_counts`.

    Returns:
        Boolean (B, T), True: noise; on the device of ``valid_lens``.

    Raises:
        TypeError: ``generator`` is none, or ``valid_lens`` is not an integer tensor.
        ValueError: as `span_counts`, for any text, or ``valid_lens`` does not fit.
    """
    check_generator(generator)
    if num_rows < 1:
        raise ValueError(f"num_rows is {num_rows}, expected at least 1")
    valid = valid_tokens((num_rows, length), valid_lens)  # (B, T)
    totals = valid.sum(1).cpu()  # (B,)
    noise, spans = torch.tensor([span_counts(n, noise_density, mean_span) for n in totals.tolist()]).unbind(1)  # (B,)
    dropped = _parts(noise, spans, generator)  # (B, K) with K the most spans
    # kept tokens stand before, between and after. Before and after there may be none: two more are cut, and taken off
    kept = _parts(totals - noise + 2, spans + 1, generator)  # (B, K + 1)
    kept[:, 0] -= 1
    kept.scatter_add_(1, spans[:, None], torch.full((num_rows, 1), -1))
    ends = torch.stack([kept[:, :-1], dropped], -1).flatten(1).cumsum(1)  # (B, 2 K): kept, noise, kept, ..., noise
    positions = torch.arange(length).expand(num_rows, length).contiguous()
    mask = torch.searchsorted(ends, positions, right=True) % 2 == 1  # beyond the last span it is 2 K, or a later kept
    return mask.to(valid.device)


def _parts(totals, numbers, generator):
    """Sizes, each at least 1, that add up to totals (B,), numbers (B,) of them: (B, most of them), 0 beyond."""
    most = int(totals.max())
    cuts = torch.rand(len(totals), most - 1, generator=generator)  # after which item: one of totals - 1 places
    cuts[torch.arange(1, most) >= totals[:, None]] = 2
    cut = cuts.argsort(1).argsort(1) < numbers[:, None] - 1
    part = torch.cat([torch.zeros(len(totals), 1, dtype=torch.long), cut.cumsum(1)], 1)  # (B, most): of each item
    inside = torch.arange(most) < totals[:, None]
    return torch.zeros(len(totals), int(numbers.max()), dtype=torch.long).scatter_add(1, part, inside.long())
