"""Objectives: what a model is to learn from text without labels, made from token ids.

Each function takes batches of ids and draws from the generator that it is given: on the CPU, so that a seed gives the
same on every device. Nothing is changed in place. Labels that no loss shall count are `IGNORE_INDEX`, which
`torch.nn.functional.cross_entropy` leaves out by itself.

masking.py           BERT: words to guess, 80/10/10
sentence_pairs.py    BERT: does the second sentence follow the first; pairs as one sequence
replaced_tokens.py   ELECTRA: which tokens has another model put in
spans.py             T5: how much noise, where, and how long the texts get
span_corruption.py   T5: spans behind sentinels, and the way back
prefix.py            a prefix that all see, then one token after the other
contrastive.py       InfoNCE: which of the batch belongs to me
preferences.py       DPO: which of two answers is liked better; the best of n
rewards.py           GRPO: rewards that can be checked, relative to a group of answers
checks.py            what they ask of their arguments
"""

from .contrastive import info_nce
from .masking import IGNORE_INDEX as IGNORE_INDEX
from .masking import MaskedTokens, mask_tokens
from .preferences import (
    Preference,
    answer_batch,
    best_of_n,
    best_of_n_kl,
    check_preferences,
    dpo_loss,
    expected_best_of,
    implied_rewards,
    preference_pairs,
    sequence_log_probs,
)
from .prefix import PrefixBatch, prefix_lm
from .replaced_tokens import ReplacedTokens, replace_tokens
from .rewards import group_advantages, policy_gradient_loss, token_log_probs
from .sentence_pairs import (
    PackedPairs,
    SentencePairs,
    get_tokens_and_segments,
    next_sentence_pairs,
    pack_pairs,
)
from .span_corruption import CorruptedSpans, corrupt_spans, restore_spans
from .spans import corrupted_lengths, random_spans, span_counts, text_length

__all__ = [
    "CorruptedSpans",
    "MaskedTokens",
    "PackedPairs",
    "Preference",
    "PrefixBatch",
    "ReplacedTokens",
    "SentencePairs",
    "answer_batch",
    "best_of_n",
    "best_of_n_kl",
    "check_preferences",
    "corrupt_spans",
    "corrupted_lengths",
    "dpo_loss",
    "expected_best_of",
    "get_tokens_and_segments",
    "group_advantages",
    "implied_rewards",
    "info_nce",
    "mask_tokens",
    "next_sentence_pairs",
    "pack_pairs",
    "policy_gradient_loss",
    "preference_pairs",
    "prefix_lm",
    "random_spans",
    "replace_tokens",
    "restore_spans",
    "sequence_log_probs",
    "span_counts",
    "text_length",
    "token_log_probs",
]
