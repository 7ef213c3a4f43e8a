"""Contrastive search: a likely token whose vector is unlike those before it."""

import torch
import torch.nn.functional as F

from ..arguments import check_integer, check_number, checked_ids
from .steps import device_of


@torch.no_grad()
def contrastive_search(model, prompt, max_new_tokens, *, k=5, alpha=0.6):
    """Of the k likeliest tokens takes the one with the largest (1 - alpha) p - alpha s, again and again.

    p is its probability, and s the largest cosine similarity between its last-layer vector and that of a token before.
    Nothing is cached: each step reads the text with each of the k tokens.

    Args:
        model: has ``features(tokens (B, T)) -> (B, T, h)``, which its ``dense`` scores, as `GPT` does. Call ``eval()``
            before.
        prompt: integers (P,), 1 or more, or a list of them.
        max_new_tokens: how many are written.
        k: how many tokens compete; 1 is greedy search.
        alpha: weight of the similarity, 0 to 1; 0 is greedy search.

    Returns:
        The new tokens, integers (L,).

    Raises:
        TypeError: the prompt is no sequence of integers.
        ValueError: it is empty, or a number is out of range.

    Source: Su et al. 2022, "A contrastive framework for neural text generation", equation 5.
    """
    check_integer("max_new_tokens", max_new_tokens, 1)
    check_integer("k", k, 1)
    check_number("alpha", alpha, 0, 1)
    text = torch.tensor(checked_ids(prompt), dtype=torch.long, device=device_of(model))  # (T,)
    if not len(text):
        raise ValueError("the prompt is empty, expected at least one token")
    before, features = len(text), model.features(text[None])[0]  # (T, h)
    for _ in range(max_new_tokens):
        logits = model.dense(features[-1])
        if k > len(logits):
            raise ValueError(f"k is {k}, expected an integer from 1 to {len(logits)}, the number of tokens")
        p, tokens = logits.softmax(-1).topk(k)  # (k,)
        longer = torch.cat([text.expand(k, -1), tokens[:, None]], 1)  # (k, T + 1)
        vectors = model.features(longer)  # (k, T + 1, h)
        similarity = F.cosine_similarity(vectors[:, -1:], vectors[:, :-1], dim=-1).amax(1)  # (k,)
        best = ((1 - alpha) * p - alpha * similarity).argmax()
        text, features = longer[best], vectors[best]
    return text[before:]
