"""Speculative sampling: a draft proposes tokens, a large model reads them in one pass and keeps what it may.

What is written has exactly the large model's distribution, whatever is proposed. A small model drafts by drawing; a
look-up drafts for nothing what followed the latest words when they stood in the text before.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..arguments import check_integer, checked_ids
from ..utils import in_float64
from .filters import Filters
from .sampling import draw
from .steps import device_of


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
        TypeError: ``p`` or ``q`` is no floating-point tensor.
        ValueError: the shapes differ, one holds no probabilities, or ``q`` gives the token none.

    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, theorem 1.
    """
    _check_probabilities("p", p)
    _check_probabilities("q", q)
    if p.shape != q.shape:
        raise ValueError(f"p and q are of shapes {tuple(p.shape)} and {tuple(q.shape)}, expected the same, (V,)")
    token = check_integer("token", token, 0, len(q) - 1)
    if not q[token] > 0:
        raise ValueError(f"q gives the token {token} no probability, so that it was not drawn from q")
    if torch.rand((), generator=generator, dtype=torch.float64) < (p[token] / q[token]).item():
        return token, True
    rest = (p - q).clamp(min=0)
    if rest.sum() == 0:  # p and q differ by rounding alone
        rest = p
    return int(draw(rest[None], generator)), False


def _check_probabilities(name, p):
    if not isinstance(p, torch.Tensor) or not p.is_floating_point():
        kind = p.dtype if isinstance(p, torch.Tensor) else type(p).__name__
        raise TypeError(f"{name} is of {kind}, expected a floating-point tensor (V,) of probabilities")
    if p.dim() != 1:
        raise ValueError(f"{name} is of shape {tuple(p.shape)}, expected (V,)")
    total = in_float64(p).sum().item()  # half precision rounds each of many
    if not (p >= 0).all() or abs(total - 1) > 0.01:
        raise ValueError(f"{name} holds a number below 0, or sums to {total:.4g}, expected probabilities")


class PromptLookup:
    """A draft from the text itself: what followed the last tokens when they stood there before, the latest time.

    It looks for as many of the last tokens as it may, then for fewer. It costs no pass of a model, and helps where a
    text repeats what was in the prompt: an edit, a summary, code.

    Args:
        longest: the most tokens that are looked for, 1 or more.
        shortest: the fewest, 1 to ``longest``.

    Raises:
        ValueError: a number is out of range.

    Source: Saxena 2023, "Prompt lookup decoding"; Yang et al. 2023, "Inference with reference".
    """

    def __init__(self, longest=3, shortest=1):
        self.longest = check_integer("longest", longest, 1)
        self.shortest = check_integer("shortest", shortest, 1, longest)

    def propose(self, text, most, filters=None, generator=None):
        """At most so many tokens that may follow a list of them; an empty list where the last ones are new.

        Returns:
            the tokens, and None: each was certain. Filters and generator are for drafts that draw.
        """
        for n in range(min(self.longest, len(text) - 1), self.shortest - 1, -1):
            last = text[-n:]
            for start in range(len(text) - n - 1, -1, -1):
                if text[start : start + n] == last:
                    return text[start + n : start + n + most], None
        return [], None


class _ModelDraft:
    """A draft that a small model draws; `PromptLookup.propose` tells of the interface. For one text that grows."""

    def __init__(self, model):
        self.model, self.state = model, model.empty_state(1)

    def propose(self, text, most, filters, generator):
        """Tokens, and the probabilities (n, V) that they were drawn from."""
        self.state = self.state.first(min(self.state.length, len(text) - 1))  # what lies beyond was replaced
        tokens, qs = [], []
        for _ in range(most):
            q, self.state = _next(self.model, [*text, *tokens], self.state, 1, filters)  # (1, V)
            tokens.append(int(draw(q, generator)))
            qs.append(q)
        return tokens, torch.cat(qs) if qs else None


@torch.no_grad()
def speculative_sample(draft, target, prompt, max_new_tokens, *, draft_length=4, generator=None, **filters):
    """Continues one text as the large model alone would, with fewer passes of it.

    In each round up to ``draft_length`` tokens are drafted. The large model reads them in one pass, which gives its
    distribution at each of them and after the last. Tokens go through `accept_or_replace` in order, up to the first
    that is replaced; if none is, the pass gives one token more. Models keep a cache, and forget what was replaced.

    Args:
        draft: a small model: a `GPT`, or what has its ``empty_state(1)`` and ``extend(tokens (1, n), state)``, which
            gives logits (1, n, V) and a state with ``length`` and ``first(length)``. Call ``eval()`` before. Or what
            proposes tokens by itself, a `PromptLookup` or what has its ``propose``.
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
        TypeError: the prompt is no sequence of integers, or a model lacks what is named above.
        ValueError: the prompt is empty, a number is out of range, the models have different vocabularies, or a filter
            looks back at the text.

    Source: Leviathan et al. 2023, "Fast inference from transformers via speculative decoding"; Chen et al. 2023.
    """
    for name, model, own in (("draft", draft, hasattr(draft, "propose")), ("target", target, False)):
        if not own and not (hasattr(model, "empty_state") and hasattr(model, "extend")):
            also = ", or what has a propose" if name == "draft" else ""
            raise TypeError(f"{name} is a {type(model).__name__}, expected a model with empty_state and extend{also}")
    text = checked_ids(prompt)
    if not text:
        raise ValueError("the prompt is empty, expected at least one token")
    check_integer("max_new_tokens", max_new_tokens, 1)
    check_integer("draft_length", draft_length, 0)
    filters = Filters(**filters)
    if filters.looks_back:
        raise ValueError("a penalty on repetition depends on the text so far, which a draft changes: leave it out")
    end, proposed, accepted, passes = len(text) + max_new_tokens, 0, 0, 0
    draft, state = draft if hasattr(draft, "propose") else _ModelDraft(draft), target.empty_state(1)
    while len(text) < end:
        most = min(draft_length, end - len(text) - 1)  # the pass itself gives one more
        tokens, qs = draft.propose(text, most, filters, generator)
        ps, state = _next(target, [*text, *tokens], state, len(tokens) + 1, filters)  # (n + 1, V)
        if qs is None:  # a certain proposal
            qs = F.one_hot(torch.tensor(tokens, dtype=torch.long, device=ps.device), ps.shape[1]).to(ps)
        if qs.shape[1] != ps.shape[1]:
            raise ValueError(f"the models have {qs.shape[1]} and {ps.shape[1]} tokens, expected the same vocabulary")
        proposed, passes, kept = proposed + len(tokens), passes + 1, True
        for token, p, q in zip(tokens, ps[:-1], qs, strict=True):
            token, kept = accept_or_replace(token, p, q, generator)
            text.append(token)
            accepted += kept
            if not kept:
                break
        if kept:
            text.append(int(draw(ps[-1:], generator)))
        state = state.first(len(text) - 1)
    return Drafted(torch.tensor(text[end - max_new_tokens :]), proposed, accepted, passes)


def _next(model, text, state, n, filters):
    """Reads what is new in a text: probabilities (n, V) after its last n tokens, in float64, and the grown state."""
    new = torch.tensor([text[state.length :]], device=device_of(model, state))
    logits, state = model.extend(new, state)
    return filters.probabilities(in_float64(logits[0, -n:])), state
