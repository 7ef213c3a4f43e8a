"""Drawing sequences from a model, all at once or token by token."""

from itertools import islice
from typing import NamedTuple

import torch

from ..arguments import check_integer
from ..renamed import Attribute
from .filters import Filters
from .steps import Ends, first_tokens, log_probs, reorder


class Sampled(NamedTuple):
    """What was drawn for each of B examples; with n samples an example, (B, n) stands for (B,).

    ``tokens``, ``valid_lens`` and ``scores`` are those of a `Decoded`, the scores log-probabilities under the model
    itself. ``log_probs``, (B, L), are the same token by token, the end included and 0 after it, and
    ``filtered_log_probs``, (B, L), those under the distribution that was drawn from.
    """

    tokens: torch.Tensor
    valid_lens: torch.Tensor
    scores: torch.Tensor
    log_probs: torch.Tensor
    filtered_log_probs: torch.Tensor
    lengths = Attribute("lengths", "valid_lens")


@torch.no_grad()
def sample(step, state, bos, max_len, *, stop=None, num_samples=None, prompt=None, generator=None, **filters):
    """Draws a sequence for each example, until all have ended.

    The random numbers come from the CPU, so that a generator gives the same on every device. What a row draws depends
    on its own probabilities and on its place in the batch, not on what others drew or when they ended.

    Args:
        step: see the package; called with as many rows as there are sequences, ended ones too.
        state: what the first step gets.
        bos: the first token, an integer or a tensor of shape (B,): for a language model the last one of the prompt.
        max_len: the most tokens to draw, the end included.
        stop: the token that ends a sequence; several of them; or None: all go on to ``max_len``.
        num_samples: how many sequences an example; None: one, without an axis for it.
        prompt: integers (B, P), what stands before ``bos``, for the penalties on repetition, which know ``bos`` and
            what is drawn without it; those below 0 are none.
        generator: of random numbers, on the CPU; None: torch's own.
        filters: fields of `Filters`: ``temperature``, ``top_k``, ``top_p``, ``min_p``, ``repetition_penalty``,
            ``no_repeat_ngram_size``.

    Returns:
        A `Sampled`: tokens (B, L), or (B, num_samples, L).

    Raises:
        ValueError: as `greedy_search`, or a filter or ``num_samples`` is out of range, or the generator is not on the
            CPU.
    """
    n = 1 if num_samples is None else check_integer("num_samples", num_samples, 1)
    tokens = first_tokens(state, bos, max_len)  # (B,)
    B = len(tokens)
    if num_samples is not None:
        rows = torch.arange(B, device=tokens.device).repeat_interleave(n)
        state, tokens = reorder(state, rows), tokens[rows]
        prompt = None if prompt is None else prompt[rows]
    ends = Ends(stop, tokens.device, "stop")
    drawn = list(islice(_draws(step, state, tokens, ends, prompt, generator, Filters(**filters)), max_len))
    empty = tokens.new_empty(len(tokens), 0), *[torch.empty(len(tokens), 0, device=tokens.device)] * 2
    parts = [torch.stack(part, 1) for part in zip(*drawn, strict=True)] or empty  # each (B * n, L)
    tokens, log_probs, filtered = parts if num_samples is None else [part.unflatten(0, (B, n)) for part in parts]
    return Sampled(tokens, ends.valid_lens(tokens), log_probs.sum(-1), log_probs, filtered)


def stream(step, state, bos, max_len=None, *, stop=None, prompt=None, generator=None, **filters):
    """Draws token by token: those of `sample`, each as soon as it is there.

    Args:
        max_len: the most tokens to draw; None: as many as are asked for.
        The others: those of `sample`.

    Yields:
        Tokens (B,); after its end an example repeats the token that ended it. It stops when all have ended.

    Raises:
        ValueError: as `sample`; at once where ``max_len`` or a filter is out of range.
    """
    tokens = first_tokens(state, bos, max_len)
    draws = _draws(step, state, tokens, Ends(stop, tokens.device, "stop"), prompt, generator, Filters(**filters))
    return (drawn for drawn, *_ in islice(draws, max_len))


def draw(probabilities, generator=None):
    """One token for each row of probabilities (B, V): (B,), on their device, with random numbers of the CPU.

    Raises:
        ValueError: the generator is not on the CPU.
    """
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(
            f"the generator is on {generator.device}, expected one on the CPU: torch.Generator().manual_seed(...)"
        )
    return torch.multinomial(probabilities.cpu(), 1, generator=generator)[:, 0].to(probabilities.device)


@torch.no_grad()
def _draws(step, state, tokens, ends, prompt, generator, filters):
    """Yields tokens and their two log-probabilities, each (B,), until all have ended."""
    ended, t = torch.zeros_like(tokens, dtype=torch.bool), 0
    previous = tokens[:, None] if prompt is None else torch.cat([prompt.to(tokens), tokens[:, None]], 1)
    while not ended.all():
        logits, state = step(tokens, state)
        scores = log_probs(logits, ~ended, ends, t)  # (B, V), good numbers in all rows
        # ended rows draw as well, and throw it away: so the others get the random numbers that they would get alone
        raw = logits.to(scores).masked_fill(ended[:, None], 0)
        probabilities = filters.probabilities(raw, previous.masked_fill(ended[:, None], -1))
        drawn = torch.where(ended, tokens, draw(probabilities, generator))
        chosen = drawn[:, None]
        log_probabilities = scores.gather(1, chosen)[:, 0], probabilities.gather(1, chosen)[:, 0].log()
        tokens = drawn
        yield tokens, *(x.masked_fill(ended, 0) for x in log_probabilities)
        if filters.looks_back:
            previous = torch.cat([previous, chosen], 1)
        ended, t = ended | ends.among(tokens), t + 1
