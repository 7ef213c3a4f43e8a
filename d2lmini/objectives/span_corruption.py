"""Span corruption: each span of noise becomes a sentinel, and the target says what stood there."""

from typing import NamedTuple

import torch

from .checks import check_id, check_tokens, valid_tokens


class CorruptedSpans(NamedTuple):
    """What T5 reads and what it writes, padded on the right: ``inputs`` (B, S) and ``targets`` (B, T), dtype of the
    tokens, with ``input_lens`` and ``target_lens`` (B,), padding not counted."""

    inputs: torch.Tensor
    targets: torch.Tensor
    input_lens: torch.Tensor
    target_lens: torch.Tensor


def corrupt_spans(tokens, noise, sentinels, *, valid_lens=None, closing=True, eos=None, padding=None):
    """Replaces each span of noise by a sentinel of its own, and lists the spans, each after its sentinel.

    The sentence of D2L's figure 11.9.3, with *love* and *red car* as noise and the sentinels X, Y, Z:

        I love this red car    input: I X this Y    target: X love Y red car Z

    So draws the figure. D2L's text has X twice in the input, against the target that it gives itself: two spans behind
    one sentinel could not be told apart. The figure is right, and equals figure 2 of T5's paper in form: a last
    sentinel ends the target. In the code of T5's authors it is an end token that ends both, and the last sentinel is
    missing: ``closing=False, eos=1``.

    Args:
        tokens: ids (B, T).
        noise: boolean (B, T), True at the tokens to drop, as `random_spans` draws them or as one wishes; what is not
            separated by a kept token is one span.
        sentinels: ids, list or integers (K,): the first stands for the first span of each text. None of them may occur
            in the texts.
        valid_lens: integers (B,), the tokens of each text; None: all T.
        closing: whether the sentinel after the last used one ends the target.
        eos: id that ends both; None: none does.
        padding: id that fills up, on the right; needed only where texts get unlike lengths.

    Returns:
        `CorruptedSpans`.

    Raises:
        TypeError: ``tokens`` are no integers or ``noise`` is not boolean.
        ValueError: a shape does not fit, noise lies in the padding, there are too few sentinels, one occurs twice or in
            a text, or ``padding`` is missing.

    Source: Raffel et al. 2020, section 3.1.4 and figure 2; D2L section 11.9.2 and figure 11.9.3.
    """
    check_tokens(tokens)
    valid = valid_tokens(tokens.shape, valid_lens, tokens.device)  # (B, T)
    if not isinstance(noise, torch.Tensor) or noise.dtype != torch.bool:
        raise TypeError(
            f"noise is of {getattr(noise, 'dtype', type(noise).__name__)}, expected a boolean tensor (B, T)"
        )
    if noise.shape != tokens.shape:
        raise ValueError(f"noise has shape {tuple(noise.shape)} but tokens {tuple(tokens.shape)}")
    if (noise & ~valid).any():
        raise ValueError("noise lies in the padding: draw it with the same valid_lens")
    sentinels = _check_sentinels(sentinels, tokens[valid], eos, padding).to(tokens)
    starts = noise.clone()
    starts[:, 1:] &= ~noise[:, :-1]
    num_spans = starts.sum(1)  # (B,)
    needed = int(num_spans.max()) + bool(closing)
    if needed > len(sentinels):
        raise ValueError(
            f"there are {len(sentinels)} sentinels, expected at least {needed}: a text has {int(num_spans.max())} spans"
            f"{', and one more closes its target' if closing else ''}"
        )
    sentinels = torch.cat([sentinels, sentinels[:1]])  # so that text without noise may look one up, and not use it
    span = (starts.cumsum(1) - 1).clamp(min=0)  # (B, T): the number of the span
    marks = sentinels[span]
    last = sentinels[num_spans][:, None]  # (B, 1): the first sentinel that is not used
    true, ends = torch.ones_like(last, dtype=torch.bool), torch.full_like(last, 0 if eos is None else eos)

    inputs, input_lens = _close_up(
        torch.cat([torch.where(starts, marks, tokens), ends], 1),
        torch.cat([starts | (valid & ~noise), true & (eos is not None)], 1),
        padding,
    )
    pairs = torch.stack([marks, tokens], -1).flatten(1)  # (B, 2 T): before each token, its sentinel
    targets, target_lens = _close_up(
        torch.cat([pairs, last, ends], 1),
        torch.cat([torch.stack([starts, noise], -1).flatten(1), true & bool(closing), true & (eos is not None)], 1),
        padding,
    )
    return CorruptedSpans(inputs, targets, input_lens, target_lens)


def restore_spans(inputs, targets, sentinels, *, input_lens=None, target_lens=None, eos=None):
    """The texts that inputs and targets of `corrupt_spans` were made of.

    Args:
        inputs: ids (B, S).
        targets: ids (B, T), with or without a closing sentinel.
        sentinels: ids (K,), in any order.
        input_lens: integers (B,), the tokens of each input; None: all S.
        target_lens: integers (B,), the tokens of each target; None: all T.
        eos: id that ends both; None: none does.

    Returns:
        List of B lists of ids.

    Raises:
        TypeError: inputs or targets are no integers.
        ValueError: the numbers of rows differ; ``eos`` is not where it should be; or a target begins with something
            else than a sentinel, has one twice, lacks one of its input, or has a span that its input has no place for.
    """
    for ids in (inputs, targets):
        check_tokens(ids)
    if len(inputs) != len(targets):
        raise ValueError(f"there are {len(inputs)} inputs and {len(targets)} targets, expected as many")
    sentinels = set(torch.as_tensor(sentinels).tolist())
    input_valid = valid_tokens(inputs.shape, input_lens, inputs.device)
    target_valid = valid_tokens(targets.shape, target_lens, targets.device)
    texts = []
    for row in range(len(inputs)):
        given = _without_end(inputs[row][input_valid[row]].tolist(), eos, f"input {row}")
        spans = _spans(_without_end(targets[row][target_valid[row]].tolist(), eos, f"target {row}"), sentinels, row)
        text = []
        for token in given:
            if token in sentinels and token not in spans:
                raise ValueError(f"target {row} has no span left for sentinel {token} of its input")
            text += spans.pop(token) if token in sentinels else [token]
        if any(spans.values()):
            raise ValueError(f"target {row} has spans {spans} that its input has no place for")
        texts.append(text)
    return texts


def _check_sentinels(sentinels, tokens, eos, padding):
    """Sentinels as a tensor on the CPU."""
    sentinels = torch.as_tensor(sentinels).cpu()
    if sentinels.dim() != 1 or sentinels.dtype.is_floating_point or not len(sentinels) or sentinels.min() < 0:
        raise ValueError(f"sentinels are {sentinels.tolist()}, expected a list of ids, one or more")
    if len(sentinels.unique()) < len(sentinels):
        raise ValueError(
            f"sentinels are {sentinels.tolist()}, of which one occurs twice: spans could not be told apart"
        )
    for name, value in (("eos", eos), ("padding", padding)):
        if value is not None:
            check_id(name, value)
            if value in sentinels.tolist():
                raise ValueError(f"{name} is {value}, which is a sentinel, too")
    reserved = torch.isin(tokens, sentinels.to(tokens.device))
    if reserved.any():
        raise ValueError(
            f"the text holds {int(tokens[reserved][0])}, which is a sentinel: reserve ids for them that no text gets"
        )
    return sentinels


def _close_up(values, kept, padding):
    """The kept values of each row, moved to its left, and how many they are: (B, longest), (B,)."""
    valid_lens = kept.sum(1)
    longest = int(valid_lens.max())
    if padding is None and valid_lens.min() < longest:
        raise ValueError(f"texts get from {int(valid_lens.min())} to {longest} tokens long: pass the id of padding")
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)[:, :longest]
    values = values.gather(1, order)
    return values.masked_fill(
        torch.arange(longest, device=valid_lens.device) >= valid_lens[:, None], padding or 0
    ), valid_lens


def _without_end(tokens, eos, name):
    if eos is None:
        return tokens
    if not tokens or tokens[-1] != eos:
        raise ValueError(f"{name} does not end with {eos}: was it made without eos, or is it padded?")
    return tokens[:-1]


def _spans(target, sentinels, row):
    """The tokens after each sentinel, a dict of lists."""
    spans = {}
    for token in target:
        if token in sentinels:
            if token in spans:
                raise ValueError(f"target {row} has the sentinel {token} twice")
            spans[token] = current = []
        elif not spans:
            raise ValueError(f"target {row} begins with {token}, expected a sentinel")
        else:
            current.append(token)
    return spans
