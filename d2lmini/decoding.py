"""Decoding: from a model's next-token scores to sequences.

The model is a function ``step(tokens, state) -> (logits, state)``: tokens (B,) are the last ones chosen, logits (B, V)
score what follows, and ``state`` is any nesting of tuples, lists and dicts of tensors with the batch first. A step
must not change the state it is given: hypotheses that go different ways start from the same one.
"""

from typing import NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map


class Decoded(NamedTuple):
    """What a search found for each of B examples.

    ``tokens``, (B, L), are those after <bos>, filled up with <eos>; L counts the longest with its <eos>.
    ``lengths``, (B,), count the tokens before the first <eos>. ``scores``, (B,), are log-probabilities with the <eos>,
    over the length penalty if there is one.
    """

    tokens: torch.Tensor
    lengths: torch.Tensor
    scores: torch.Tensor


@torch.no_grad()
def greedy_search(step, state, bos, eos, max_len):
    """Takes the likeliest token again and again, until every example has ended.

    Args:
        step: see the module; called with as many rows as the batch has, ended ones too.
        state: what the first step gets.
        bos: the first token, an integer or a tensor of shape (B,).
        eos: the token that ends a sequence.
        max_len: the most tokens to choose, <eos> included.

    Returns:
        A `Decoded`.

    Raises:
        ValueError: ``max_len`` is below 1, the batch cannot be told, or the logits are of a wrong shape or not numbers.

    Source: D2L section 10.8.1.
    """
    tokens = _first_tokens(state, bos, max_len)  # (B,)
    chosen, ended = [], torch.zeros_like(tokens, dtype=torch.bool)
    scores = torch.zeros(len(tokens), device=tokens.device)
    while len(chosen) < max_len and not ended.all():
        logits, state = step(tokens, state)
        best, tokens = _log_probs(logits, ~ended, eos, len(chosen)).max(-1)  # (B,), (B,)
        tokens = tokens.masked_fill(ended, eos)
        scores = scores + best.masked_fill(ended, 0)
        chosen.append(tokens)
        ended = ended | (tokens == eos)
    chosen = torch.stack(chosen, 1) if chosen else tokens.new_empty(0, 0)  # (B, L)
    return _trimmed(chosen, scores, eos)


@torch.no_grad()
def beam_search(step, state, bos, eos, max_len, beam_size=4, length_penalty=0.0):
    """Follows the ``beam_size`` likeliest beginnings at once and returns the best sequence that was met.

    A sequence Y of L tokens, its <eos> counted, scores log P(Y) / ((5 + L) / 6)^length_penalty. Whatever ends among the
    ``beam_size`` best continuations is kept; the others go on. An example is done when ``beam_size`` ended sequences
    score no less than the best that goes on does by now, or when none that goes on could still win. What is cut off
    at ``max_len`` competes with what has ended. A beam of 1 is `greedy_search`; one that holds every sequence is
    exhaustive.

    Args:
        step: see the module; called with B * beam_size rows, those of one example side by side.
        state: what the first step gets, for B rows.
        bos: the first token, an integer or a tensor of shape (B,).
        eos: the token that ends a sequence.
        max_len: the most tokens to choose, <eos> included.
        beam_size: K.
        length_penalty: 0 favours short sequences; about 0.6 to 1 is usual in translation.

    Returns:
        A `Decoded`, its scores with the penalty.

    Raises:
        ValueError: as `greedy_search`, or ``beam_size`` is below 1 or ``length_penalty`` negative.

    Source: D2L section 10.8.3; Wu et al. 2016 (GNMT), equation 14, for the penalty.
    """
    if beam_size < 1:
        raise ValueError(f"beam_size is {beam_size}, expected at least 1")
    if length_penalty < 0:
        raise ValueError(f"length_penalty is {length_penalty}, expected 0 or more: a negative one favours short ones")

    def penalty(length):
        return ((5 + length) / 6) ** length_penalty

    tokens = _first_tokens(state, bos, max_len)  # (B,)
    B, K, device = len(tokens), beam_size, tokens.device
    rows = torch.arange(B * K, device=device)
    first_row = rows[::K, None]  # (B, 1): row of each example's first hypothesis
    state = reorder(state, rows // K)
    fixed = tree_leaves(state)  # what a step hands on as it was is the same for all hypotheses of an example
    tokens = tokens.repeat_interleave(K)  # (B * K,)
    live = torch.full((B, K), -torch.inf, device=device)  # log-probability; -inf: there is no such hypothesis
    live[:, 0] = 0  # at first they are all the same
    prefixes = tokens.new_empty(B, K, 0)
    best, best_score = tokens.new_full((B, max_len), eos), torch.full((B,), -torch.inf, device=device)
    ended = torch.full((B, K), -torch.inf, device=device)  # scores of the K best sequences that have ended
    t = 0
    while t < max_len and live.isfinite().any():
        logits, state = step(tokens, state)
        log_probs = _log_probs(logits, live.flatten().isfinite(), eos, t).unflatten(0, (B, K))  # (B, K, V)
        totals = log_probs.add_(live[..., None]).flatten(1)  # (B, K * V)
        # each hypothesis has one way to end, so that among 2K at least K go on
        totals, index = totals.topk(min(2 * K, totals.shape[1]))  # (B, 2K)
        parents, tokens = index // log_probs.shape[-1], index % log_probs.shape[-1]  # (B, 2K)
        candidates = torch.cat([_take(prefixes, parents), tokens[..., None]], -1)  # (B, 2K, t + 1)
        t += 1

        ends = tokens == eos  # (B, 2K)
        ending = totals[:, :K].masked_fill(~ends[:, :K], -torch.inf) / penalty(t)  # (B, K)
        best, best_score = _better(best, best_score, candidates, ending)
        ended = torch.cat([ended, ending], 1).topk(K)[0]

        live, kept = totals.masked_fill(ends, -torch.inf).topk(K)  # (B, K)
        prefixes, tokens = _take(candidates, kept), tokens.gather(1, kept).flatten()
        moved = (first_row + parents.gather(1, kept)).flatten()  # (B * K,)
        if not torch.equal(moved, rows):
            state = reorder(state, moved, keep=fixed)
        # log-probabilities only fall, and no penalty is above that of max_len
        done = (ended[:, -1] >= live[:, 0] / penalty(t)) | (best_score >= live[:, 0] / penalty(max_len))  # (B,)
        live = live.masked_fill(done[:, None], -torch.inf)
    best, best_score = _better(best, best_score, prefixes, live / penalty(max_len))  # cut off at max_len
    return _trimmed(best, best_score, eos)


def reorder(state, index, *, keep=()):
    """The rows ``index`` of every tensor in ``state``, as a new state of the same structure.

    Args:
        state: any nesting of tuples, lists and dicts of tensors with the batch first.
        index: integers of shape (n,); a row may be taken several times.
        keep: tensors that stay as they are, wherever one of them, and not just its equal, is in ``state``.
    """
    kept = set(map(id, keep))

    def rows(x):
        return x.index_select(0, index) if isinstance(x, torch.Tensor) and id(x) not in kept else x

    return tree_map(rows, state)


def _first_tokens(state, bos, max_len):
    if max_len < 1:
        raise ValueError(f"max_len is {max_len}, expected at least 1")
    if isinstance(bos, torch.Tensor) and bos.dim() == 1:
        return bos.long()
    tensors = [x for x in tree_leaves(state) if isinstance(x, torch.Tensor)]
    if not tensors:
        raise ValueError("the state holds no tensor to tell the batch from: pass bos as a tensor of shape (B,)")
    return torch.full((len(tensors[0]),), int(bos), device=tensors[0].device)


def _log_probs(logits, rows, eos, t):
    """Log-probabilities (n, V), a new tensor; only the ``rows`` (n,) that are True have to be good."""
    if logits.dim() != 2 or len(logits) != len(rows):
        raise ValueError(f"step {t} gave logits of shape {tuple(logits.shape)}, expected ({len(rows)}, V)")
    if not 0 <= eos < logits.shape[1]:
        raise ValueError(f"eos is {eos} but there are {logits.shape[1]} tokens: is it of another vocabulary?")
    log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    bad = log_probs[:, 0].isnan()  # (n,): one logit that is not a number spoils its whole row
    if not bad.any():
        return log_probs
    if (bad & rows).any():
        raise ValueError(
            f"step {t} gave logits that are NaN or infinite in rows {(bad & rows).nonzero().flatten().tolist()}: did "
            "the training diverge, or does a mask leave no token?"
        )
    return log_probs.masked_fill(bad[:, None], 0)


def _better(best, best_score, candidates, scores):
    """The better of the best so far, (B, max_len), and of candidates (B, n, t) with scores (B, m), m <= n."""
    score, index = scores.max(-1)  # (B,)
    challenger = best.clone()
    challenger[:, : candidates.shape[-1]] = _take(candidates, index[:, None])[:, 0]
    wins = score > best_score
    return torch.where(wins[:, None], challenger, best), torch.where(wins, score, best_score)


def _take(x, index):
    """x (B, n, t) at index (B, m): (B, m, t)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))


def _trimmed(tokens, scores, eos):
    lengths = (tokens != eos).long().cumprod(1).sum(1)  # (B,)
    longest = int((lengths + 1).max()) if len(tokens) else 0
    return Decoded(tokens[:, :longest], lengths, scores)
