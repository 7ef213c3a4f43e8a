"""Speculative sampling: a small model drafts tokens, a large one reads them in one pass and keeps what it may.

What is written has exactly the large model's distribution, whatever the small one proposes.
"""

from typing import NamedTuple

import torch

from .filters import Filters
from .sampling import draw


class Drafted(NamedTuple):
    """What was written, and what it took.

    ``tokens``, (L,), are the new ones. ``proposed`` and ``accepted`` count tokens of the draft, ``passes`` the calls of
    the large model, the one that reads the prompt included.
    """

    tokens: torch.Tensor
    proposed: int
    accepted: int
    passes: int


def accept_or_replace(token, p, q, generator=None):
    """A token drawn from q becomes one that is distributed as p.

    It is kept with probability min(1, p(token) / q(token)). If not, another is drawn from what q has too little of,
    max(p - q, 0), scaled to sum to one.

    Args:
        token: int, drawn from ``q``.
        p: probabilities (V,), those wanted.
        q: probabilities (V,), those that the token was drawn from.
        generator: of random numbers, on the CPU; None: torch's own.

    Returns:
        The token, an int, and whether it is the one that was proposed.

    Raises:
        ValueError: the shapes differ, or ``q`` gives the token no probability.

    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, theorem 1.
    """
    if p.shape != q.shape or p.dim() != 1:
        raise ValueError(f"p and q are of shapes {tuple(p.shape)} and {tuple(q.shape)}, expected the same, (V,)")
    if not q[token] > 0:
        raise ValueError(f"q gives the token {token} no probability, so that it was not drawn from q")
    if torch.rand((), generator=generator, dtype=torch.float64) < (p[token] / q[token]).item():
        return token, True
    rest = (p - q).clamp(min=0)
    if rest.sum() == 0:  # p and q differ by rounding alone
        rest = p
    return int(draw(rest[None], generator)), False


@torch.no_grad()
def speculative_sample(draft, target, prompt, max_new_tokens, *, draft_length=4, generator=None, **filters):
    """Continues one text as the large model alone would, with fewer passes of it.

    In each round the small model draws up to ``draft_length`` tokens. The large one reads them in one pass, which gives
    its distribution at each of them and after the last. Tokens go through `accept_or_replace` in order, up to the first
    that is replaced; if none is, the pass gives one token more. Both keep a cache, and forget what was replaced.

    Args:
        draft: the small model: a `GPT`, or what has its ``empty_state(1)`` and ``extend(tokens (1, n), state)``, which
            gives logits (1, n, V) and a state with ``length`` and ``first(length)``. Call ``eval()`` before.
        target: the large model, likewise, over the same vocabulary.
        prompt: integers (P,), 1 or more, or a list of them.
        max_new_tokens: how many are written.
        draft_length: the most that are drafted for a pass; 0: the large model alone.
        generator: of random numbers, on the CPU; None: torch's own.
        filters: ``temperature``, ``top_k``, ``top_p``, ``min_p`` of `Filters`, applied to both models: what is exact is
            the large model's filtered distribution. With a temperature of 0 the text is the large model's greedy one.

    Returns:
        A `Drafted`.

    Raises:
        ValueError: the prompt is empty, a number is out of range, the models have different vocabularies, or a filter
            looks back at the text.

    Source: Leviathan et al. 2023, "Fast inference from transformers via speculative decoding"; Chen et al. 2023.
    """
    text = [int(token) for token in prompt]
    if not text:
        raise ValueError("the prompt is empty, expected at least one token")
    if max_new_tokens < 1 or draft_length < 0:
        raise ValueError(
            f"max_new_tokens is {max_new_tokens} and draft_length {draft_length}, expected at least 1 and 0"
        )
    filters = Filters(**filters)
    if filters.looks_back:
        raise ValueError("a penalty on repetition depends on the text so far, which a draft changes: leave it out")
    end, proposed, accepted, passes = len(text) + max_new_tokens, 0, 0, 0
    small, large = draft.empty_state(1), target.empty_state(1)
    while len(text) < end:
        tokens, qs = [], []
        for _ in range(min(draft_length, end - len(text) - 1)):  # the pass itself gives one more
            q, small = _next(draft, [*text, *tokens], small, 1, filters)
            tokens.append(int(draw(q, generator)))
            qs.append(q[0])
        ps, large = _next(target, [*text, *tokens], large, len(tokens) + 1, filters)  # (n + 1, V)
        if qs and qs[0].shape != ps[0].shape:
            raise ValueError(f"the models have {len(qs[0])} and {len(ps[0])} tokens, expected the same vocabulary")
        proposed, passes, kept = proposed + len(tokens), passes + 1, True
        for token, p, q in zip(tokens, ps[:-1], qs, strict=True):
            token, kept = accept_or_replace(token, p, q, generator)
            text.append(token)
            accepted += kept
            if not kept:
                break
        if kept:
            text.append(int(draw(ps[-1:], generator)))
        small, large = (state.first(min(state.length, len(text) - 1)) for state in (small, large))
    return Drafted(torch.tensor(text[end - max_new_tokens :]), proposed, accepted, passes)


def _next(model, text, state, n, filters):
    """Reads what is new in a text: probabilities (n, V) after its last n tokens, in float64, and the grown state."""
    new = torch.tensor([text[state.length :]])
    logits, state = model.extend(new, state)
    return filters.probabilities(logits[0, -n:].double()), state
