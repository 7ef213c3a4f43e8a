"""Search for a likely sequence: greedily, or with a beam."""

import torch
from torch.utils._pytree import tree_leaves

from ..arguments import check_integer, check_number
from .steps import Ends, decoded, first_tokens, log_probs, reorder


@torch.no_grad()
def greedy_search(step, state, bos, eos, max_len):
    """Takes the likeliest token again and again, until every example has ended.

    Args:
        step: see the package; called with as many rows as the batch has, ended ones too.
        state: what the first step gets.
        bos: the first token, an integer or a tensor of shape (B,).
        eos: the token that ends a sequence; several of them; or None: all go on to ``max_len``.
        max_len: the most tokens to choose, <eos> included.

    Returns:
        A `Decoded`.

    Raises:
        ValueError: ``max_len`` is below 1, the batch cannot be told, or the logits are of a wrong shape or not numbers.

    Source: D2L section 10.8.1.
    """
    tokens = first_tokens(state, bos, max_len)  # (B,)
    ends = Ends(eos, tokens.device)
    chosen, ended = [], torch.zeros_like(tokens, dtype=torch.bool)
    scores = torch.zeros(len(tokens), device=tokens.device)
    while len(chosen) < max_len and not ended.all():
        logits, state = step(tokens, state)
        best, likeliest = log_probs(logits, ~ended, ends, len(chosen)).max(-1)  # (B,), (B,)
        tokens = torch.where(ended, tokens, likeliest)  # after its end an example repeats it
        scores = scores + best.masked_fill(ended, 0)
        chosen.append(tokens)
        ended = ended | ends.among(tokens)
    chosen = torch.stack(chosen, 1) if chosen else tokens.new_empty(0, 0)  # (B, L)
    return decoded(chosen, scores, ends)


def beam_search(step, state, bos, eos, max_len, beam_size=4, length_penalty=0.0, num_return=None):
    """Follows the ``beam_size`` likeliest beginnings at once and returns the best sequence that was met.

    A sequence Y of L tokens, its <eos> counted, scores log P(Y) / ((5 + L) / 6)^length_penalty. Whatever ends among the
    ``beam_size`` best continuations is kept; the others go on. An example is done when ``beam_size`` ended sequences
    score no less than the best that goes on does by now, or when none that goes on could still win. What is cut off
    at ``max_len`` competes with what has ended. A beam of 1 finds the tokens of `greedy_search`; one that holds every
    sequence is exhaustive.

    Args:
        step: see the package; called with B * beam_size rows, those of one example side by side.
        state: what the first step gets, for B rows.
        bos: the first token, an integer or a tensor of shape (B,).
        eos: the token that ends a sequence, or None: all are compared at ``max_len``.
        max_len: the most tokens to choose, <eos> included.
        beam_size: K.
        length_penalty: 0 favours short sequences; about 0.6 to 1 is usual in translation.
        num_return: how many of the best sequences to return, at most K; None: the best one, without an axis for it.

    Returns:
        A `Decoded`, its scores with the penalty: tokens (B, L), or (B, num_return, L), the best first. Where the model
        allows fewer sequences, the others score minus infinity.

    Raises:
        ValueError: as `greedy_search`, or ``beam_size`` is below 1, ``length_penalty`` negative or not finite, or
            ``num_return`` not 1 to ``beam_size``.

    Source: D2L section 10.8.3; Wu et al. 2016 (GNMT), equation 14, for the penalty.
    """
    check_integer("beam_size", beam_size, 1)
    n = 1 if num_return is None else check_integer("num_return", num_return, 1, beam_size, why=": beam_size sequences")
    tokens, scores, ends = follow_groups(step, state, bos, eos, max_len, 1, beam_size, n, length_penalty)
    if num_return is None:
        return decoded(tokens[:, 0, 0], scores[:, 0, 0], ends)
    return decoded(tokens[:, 0], scores[:, 0], ends)


@torch.no_grad()
def follow_groups(
    step, state, bos, eos, max_len, num_groups, group_size, num_return, length_penalty, diversity_penalty=0.0
):
    """G beams of K hypotheses each, at once; without a diversity penalty they are all the same.

    Returns:
        Tokens (B, G, num_return, max_len), the best first, scores (B, G, num_return), and the `Ends`.
    """
    check_number("length_penalty", length_penalty, why=": a negative one favours short ones")
    tokens = first_tokens(state, bos, max_len)  # (B,)
    B, G, K, device = len(tokens), num_groups, group_size, tokens.device
    ends = Ends(eos, device)
    if len(ends.ids) > 1:
        raise ValueError(f"eos is {ends.ids}, expected one token or None: a beam has one way to end")
    rows = torch.arange(B * G * K, device=device)
    first_row = rows.view(B, G, K)[..., :1]  # (B, G, 1): row of each group's first hypothesis
    state = reorder(state, rows // (G * K))
    fixed = tree_leaves(state)  # what a step hands on as it was is the same for all hypotheses of an example
    tokens = tokens.repeat_interleave(G * K)  # (B * G * K,)
    beams = [Beam(B, K, max_len, ends, num_return, length_penalty, device) for _ in range(G)]
    t = 0
    while t < max_len and any(beam.live.isfinite().any() for beam in beams):
        logits, state = step(tokens, state)
        goes_on = torch.stack([beam.live for beam in beams], 1).flatten().isfinite()
        scores = log_probs(logits, goes_on, ends, t).unflatten(0, (B, G, K))  # (B, G, K, V)
        used = scores.new_zeros(B, scores.shape[-1])  # (B, V): how many hypotheses go on with a token at this step
        parents, tokens = [], []
        for g, beam in enumerate(beams):
            parent, token = beam.advance(scores[:, g], diversity_penalty * used if g and diversity_penalty else None)
            used.scatter_add_(1, token, beam.live.isfinite().to(used))
            parents.append(parent)
            tokens.append(token)
        tokens = torch.stack(tokens, 1).flatten()
        moved = (first_row + torch.stack(parents, 1)).flatten()  # (B * G * K,)
        if not torch.equal(moved, rows):
            state = reorder(state, moved, keep=fixed)
        t += 1
    best = [beam.best() for beam in beams]
    return torch.stack([x for x, _ in best], 1), torch.stack([x for _, x in best], 1), ends


class Beam:
    """K hypotheses of each of B examples that go on, and the K best sequences that have ended.

    Args:
        num_return: how many of the best sequences must be sure before an example is done.
        device: of its tensors. The other arguments: see `beam_search`.
    """

    def __init__(self, num_examples, beam_size, max_len, ends, num_return, length_penalty, device):
        B, K = num_examples, beam_size
        self.max_len, self.ends, self.num_return, self.length_penalty = max_len, ends, num_return, length_penalty
        self.live = torch.full((B, K), -torch.inf, device=device)  # log-probability; -inf: there is no such hypothesis
        self.live[:, 0] = 0  # at first they are all the same
        self.prefixes = torch.empty(B, K, 0, dtype=torch.long, device=device)
        self.ended = torch.full((B, K, max_len), ends.fill, device=device)
        self.ended_scores = torch.full((B, K), -torch.inf, device=device)

    def advance(self, scores, cost=None):
        """One token more.

        Args:
            scores: log-probabilities (B, K, V) of what follows each hypothesis; overwritten.
            cost: (B, V), what a token costs when continuations are ranked; it enters no score.

        Returns:
            For the new hypotheses the old ones that they go on from, and their last tokens, both (B, K).
        """
        K, V = scores.shape[1:]
        totals = scores.add_(self.live[..., None]).flatten(1)  # (B, K * V)
        ranks = totals if cost is None else (totals.unflatten(1, (K, V)) - cost[:, None]).flatten(1)
        # each hypothesis has one way to end, so that among 2K at least K go on
        ranks, index = ranks.topk(min(2 * K, K * V))  # (B, 2K)
        totals = totals.gather(1, index)
        parents, tokens = index // V, index % V  # (B, 2K)
        candidates = torch.cat([_take(self.prefixes, parents), tokens[..., None]], -1)  # (B, 2K, t)
        t = candidates.shape[-1]

        ending = self.ends.among(tokens)  # (B, 2K)
        if ending[:, :K].any():
            self._keep(candidates[:, :K], totals[:, :K].masked_fill(~ending[:, :K], -torch.inf) / self._penalty(t))
        kept = ranks.masked_fill(ending, -torch.inf).topk(K)[1]  # (B, K)
        live = totals.masked_fill(ending, -torch.inf).gather(1, kept)
        self.prefixes = _take(candidates, kept)
        # log-probabilities only fall, and no penalty is above that of max_len
        highest = live.max(1)[0]  # (B,)
        done = (self.ended_scores[:, -1] >= highest / self._penalty(t)) | (
            self.ended_scores[:, self.num_return - 1] >= highest / self._penalty(self.max_len)
        )
        self.live = live.masked_fill(done[:, None], -torch.inf)
        return parents.gather(1, kept), tokens.gather(1, kept)

    def best(self):
        """The best sequences (B, num_return, max_len) and their scores; what is cut off now competes, too."""
        self._keep(self.prefixes, self.live / self._penalty(self.max_len))
        return self.ended[:, : self.num_return], self.ended_scores[:, : self.num_return]

    def _penalty(self, length):
        return ((5 + length) / 6) ** self.length_penalty

    def _keep(self, candidates, scores):
        """Lets candidates (B, K, t) with scores (B, K) in among the best that have ended."""
        padding = candidates.new_full((*candidates.shape[:2], self.max_len - candidates.shape[-1]), self.ends.fill)
        everything = torch.cat([self.ended, torch.cat([candidates, padding], -1)], 1)  # (B, 2K, max_len)
        scores, index = torch.cat([self.ended_scores, scores], 1).sort(dim=1, descending=True, stable=True)
        K = self.live.shape[1]
        self.ended, self.ended_scores = _take(everything, index[:, :K]), scores[:, :K]


def _take(x, index):
    """x (B, n, t) at index (B, m): (B, m, t)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
