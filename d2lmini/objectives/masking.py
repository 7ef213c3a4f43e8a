"""Masked language modelling: some tokens are hidden, and the model guesses them from both sides."""

from typing import NamedTuple

import torch

from .checks import check_generator, check_id, check_share, check_tokens

IGNORE_INDEX = -100  # what torch's cross_entropy leaves out unless it is told otherwise


class MaskedTokens(NamedTuple):
    """What BERT sees and what it is to guess: ``inputs`` (B, T), and ``labels`` (B, T), the ids that stood there.

    Where nothing is to be guessed the label is `IGNORE_INDEX`.
    """

    inputs: torch.Tensor
    labels: torch.Tensor


def mask_tokens(
    tokens,
    *,
    vocab_size,
    mask_id,
    special_ids,
    generator,
    rate=0.15,
    mask_share=0.8,
    random_share=0.1,
    word_starts=None,
):
    """Chooses the tokens that BERT has to guess, and hides most of them.

    The number of chosen tokens is exact: ``rate`` of those that may be chosen, rounded (a half to the even number), at
    least one. BERT's own code also has an exact number, but counts the special tokens of a text as well. The
    collator of `transformers` draws for each token by itself: then some short texts have nothing to guess, and every
    batch has another number of guesses. An exact number makes all batches cost alike.

    What becomes of a chosen token is drawn for each by itself: ``mask_id`` replaces it, or a random token does, or it
    is left as it is. The random token is never a special one (in BERT's code it may be): a model would take padding in
    the middle of a text for its end. It may be the token that stood there.

    With ``word_starts`` whole words are chosen, in random order, until at least that number of tokens is reached; the
    last word may bring more. The tokens of a word then fare each by itself.

    Args:
        tokens: ids (B, T), special tokens and padding included.
        vocab_size: V.
        mask_id: id of ``<mask>``, which is special, too.
        special_ids: ids that are never chosen and never put in: ``<cls>``, ``<sep>``, padding.
        generator: a ``torch.Generator`` on the CPU.
        rate: share of the tokens to guess, above 0.
        mask_share: share of the chosen tokens that ``mask_id`` replaces.
        random_share: share of them that a random token replaces; the rest stay.
        word_starts: boolean (B, T), True at the first token of each word, as a boolean table over the vocabulary gives
            it, indexed by ``tokens``; None: every token is a word. A special token ends a word, too.

    Returns:
        `MaskedTokens`. A row without a token that may be chosen is left as it is, without labels.

    Raises:
        TypeError: ``tokens`` or ``word_starts`` has another dtype, or ``generator`` is none.
        ValueError: a shape, an id or a share is out of range, or no row has a token that may be chosen, so that the
            batch has no loss.

    Source: Devlin et al. 2019, section 3.1 and appendix A.1; D2L section 11.9.1. Whole words: the authors' code.
    """
    check_tokens(tokens, vocab_size)
    check_generator(generator)
    check_share("rate", rate, above_zero=True)
    check_share("mask_share", mask_share)
    check_share("random_share", random_share)
    if mask_share + random_share > 1:
        raise ValueError(f"mask_share {mask_share} and random_share {random_share} are more than 1 together")
    special_ids = [mask_id, *special_ids]
    for index in special_ids:
        check_id("a special id", index, vocab_size)
    special = torch.tensor(sorted({int(index) for index in special_ids}), device=tokens.device)
    maskable = ~torch.isin(tokens, special)
    if not maskable.any():
        raise ValueError(
            "no token may be masked: all are special. Are the texts empty, or do special_ids hold ordinary tokens?"
        )
    chosen = _choose(maskable, _first_of_words(maskable, word_starts), rate, generator)  # (B, T)

    fate = torch.rand(tokens.shape, generator=generator).to(tokens.device)
    ordinary = torch.ones(vocab_size, dtype=torch.bool, device=tokens.device).index_fill(0, special, False).nonzero()
    drawn = torch.randint(len(ordinary), tokens.shape, generator=generator).to(tokens.device)
    inputs = torch.where(chosen & (fate < mask_share + random_share), ordinary[drawn, 0].to(tokens.dtype), tokens)
    inputs = inputs.masked_fill(chosen & (fate < mask_share), mask_id)
    return MaskedTokens(inputs, tokens.long().masked_fill(~chosen, IGNORE_INDEX))


def _choose(maskable, starts, rate, generator):
    """Words in random order until the number of tokens is reached: boolean (B, T)."""
    B, T = maskable.shape
    counts = maskable.sum(1).cpu().double()
    wanted = (rate * counts).round().clamp(min=1).long().to(maskable.device)  # (B,); double: 0.15 * 10 is 1.5
    word = (starts.cumsum(1) - 1).clamp(min=0)  # (B, T): the number of the word that a maskable token is in
    sizes = torch.zeros_like(word).scatter_add(1, word, maskable.long())  # (B, T), 0 beyond the last word
    order = torch.rand(B, T, generator=generator).to(maskable.device).argsort(1)
    ordered = sizes.gather(1, order)
    taken = ordered.cumsum(1) - ordered < wanted[:, None]  # those before it are not enough
    return torch.zeros_like(maskable).scatter(1, order, taken).gather(1, word) & maskable


def _first_of_words(maskable, word_starts):
    """Where words begin, among the tokens that may be chosen: boolean (B, T)."""
    if word_starts is None:
        return maskable
    if not isinstance(word_starts, torch.Tensor) or word_starts.dtype != torch.bool:
        kind = getattr(word_starts, "dtype", type(word_starts).__name__)
        raise TypeError(f"word_starts is of {kind}, expected a boolean tensor, True where a word begins")
    if word_starts.shape != maskable.shape:
        raise ValueError(f"word_starts has shape {tuple(word_starts.shape)} but tokens {tuple(maskable.shape)}")
    after_special = ~maskable.roll(1, 1)
    after_special[:, 0] = True
    return maskable & (word_starts | after_special)
