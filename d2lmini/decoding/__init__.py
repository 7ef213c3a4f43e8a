"""Decoding: from a model's next-token scores to sequences.

The model is a function ``step(tokens, state) -> (logits, state)``: tokens (B,) are the last ones chosen, logits (B, V)
score what follows, and ``state`` is any nesting of tuples, lists and dicts of tensors with the batch first. A step
must not change the state it is given: hypotheses that go different ways start from the same one. A language model goes
on from a prompt: its state has read all of it but the last token, and that one is ``bos``, a tensor (B,).

steps.py         what every way shares: what it returns, the rows of a state, checks
search.py        the likeliest sequence: greedily, or with a beam
diverse.py       beams in groups that avoid each other's tokens
filters.py       from logits to what is drawn from: temperature, top-k, nucleus, penalties
sampling.py      drawing, all at once or token by token
speculative.py   drawing what a small model or the text itself drafts and a large one may keep
contrast.py      a search that avoids vectors like those before
votes.py         several samples vote on an answer
fast.py          a copy of a model whose steps take less time; the only one that knows of blocks and attention
"""

from ..renamed import names_of
from .contrast import contrastive_search
from .diverse import diverse_beam_search
from .filters import (
    Filters,
    block_repeated_ngrams,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalize_repetition,
    with_temperature,
)
from .sampling import Sampled, sample, stream
from .search import beam_search, greedy_search
from .speculative import Drafted, PromptLookup, accept_or_replace, speculative_sample
from .steps import Decoded, reorder
from .votes import Vote, majority_vote, vote_accuracy

__getattr__ = names_of(__name__)

__all__ = [
    "Decoded",
    "Drafted",
    "Filters",
    "PromptLookup",
    "Sampled",
    "Vote",
    "accept_or_replace",
    "beam_search",
    "block_repeated_ngrams",
    "contrastive_search",
    "diverse_beam_search",
    "greedy_search",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "majority_vote",
    "penalize_repetition",
    "reorder",
    "sample",
    "speculative_sample",
    "stream",
    "vote_accuracy",
    "with_temperature",
]
