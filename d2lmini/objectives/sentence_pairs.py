"""Next-sentence prediction: pairs of sentences from documents, and a pair as one sequence."""

from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from .checks import check_generator, check_id, check_tokens


class SentencePairs(NamedTuple):
    """N pairs: ``firsts`` and ``seconds``, lists of lists of ids, and ``is_next``, boolean (N,)."""

    firsts: list
    seconds: list
    is_next: torch.Tensor


class PackedPairs(NamedTuple):
    """Sequences for BERT: ``tokens`` and ``segments``, int64 (B, T), and ``valid_lens`` (B,), padding not counted."""

    tokens: torch.Tensor
    segments: torch.Tensor
    valid_lens: torch.Tensor


def next_sentence_pairs(documents, *, generator):
    """Every sentence with its successor, or with a sentence of another document.

    Exactly half of the pairs are true ones (of an odd number, one more). A false second sentence is itself some
    sentence's successor, drawn from all those in other documents: so a second sentence alone does not tell what it is.
    BERT's code draws a document first, and may draw its first sentence, which no true pair ends with. BERT's
    pairs are also longer, of several sentences a side; join sentences before, if that is wanted.

    Args:
        documents: list of documents, each a list of sentences, each a list of ids. A document of one sentence makes no
            pair.
        generator: a ``torch.Generator`` on the CPU.

    Returns:
        `SentencePairs`, in the order of the documents. `transformers`' head for this task calls a true pair class 0.

    Raises:
        TypeError: ``generator`` is none, or a document is no list of lists.
        ValueError: fewer than two documents have two sentences.

    Source: Devlin et al. 2019, section 3.1; D2L section 15.8.5.2; UDL section 12.6.1.
    """
    check_generator(generator)
    for number, document in enumerate(documents):
        if not all(isinstance(sentence, (list, tuple)) for sentence in document):
            raise TypeError(f"document {number} is not a list of sentences, each a list of ids")
    spans, firsts, seconds = [], [], []  # spans: of each pair, where the pairs of its document begin and end
    for document in documents:
        start, pairs = len(firsts), max(len(document) - 1, 0)
        firsts += document[:pairs]
        seconds += document[1:]
        spans += [(start, start + pairs)] * pairs
    N = len(firsts)
    if not N or spans[0] == (0, N):
        raise ValueError(
            "fewer than two documents have two sentences, so that there is no sentence of another document: is every "
            "sentence a document, or all text one?"
        )
    begin, end = torch.tensor(spans).unbind(1)  # (N,) each
    others = N - (end - begin)
    drawn = (torch.rand(N, generator=generator, dtype=torch.float64) * others).long()
    drawn += (drawn >= begin) * (end - begin)  # over the pairs of the own document
    is_next = torch.ones(N, dtype=torch.bool)
    is_next[torch.randperm(N, generator=generator)[: N // 2]] = False
    chosen = torch.where(is_next, torch.arange(N), drawn)
    return SentencePairs(firsts, [seconds[n] for n in chosen.tolist()], is_next)


def get_tokens_and_segments(tokens_a, tokens_b=None, cls="<cls>", sep="<sep>"):
    """One sequence of one text or of two: ``<cls>`` a ``<sep>``, or ``<cls>`` a ``<sep>`` b ``<sep>``.

    Args:
        tokens_a: list of tokens, words or ids.
        tokens_b: another, or None.
        cls: what stands before: a word or an id, as the tokens are.
        sep: what stands after each text.

    Returns:
        The list of tokens, and a list of as many segment ids: 0 up to the first ``<sep>``, itself included, then 1.

    Source: D2L section 15.8.4.
    """
    first = [cls, *tokens_a, sep]
    second = [] if tokens_b is None else [*tokens_b, sep]
    return first + second, [0] * len(first) + [1] * len(second)


def shortened(first, second, max_len):
    """A text, or a pair, that fits into ``max_len`` with its special tokens: cut at the end of whichever is longer."""
    if second is None:
        return first[: max_len - 2], None
    room = max_len - 3
    second = second[: max(room - len(first), room // 2)]
    return first[: room - len(second)], second


def pack_pairs(firsts, seconds=None, *, max_len, cls_id, sep_id, pad_id):
    """Texts, or pairs of them, as a batch of sequences of at most ``max_len`` tokens.

    A pair that is too long loses tokens one by one from the end of whichever is longer then, of two that are alike
    from the second. (BERT's code takes them from the end or the start by chance.)

    Args:
        firsts: list of B lists of ids.
        seconds: as many; None: single texts.
        max_len: most tokens of a sequence, special ones included.
        cls_id: id of ``<cls>``.
        sep_id: id of ``<sep>``.
        pad_id: id that fills up, on the right, to the longest of the batch; its segment is 0.

    Returns:
        `PackedPairs`.

    Raises:
        TypeError: a text holds something else than ids.
        ValueError: there is no text, the numbers of texts differ, one is empty, an id is below 0, or ``max_len`` has no
            room for the special tokens and one token of each text.

    Source: Devlin et al. 2019, section 3 and figure 2.
    """
    specials, texts = (2, 1) if seconds is None else (3, 2)
    for name, value in (("cls_id", cls_id), ("sep_id", sep_id), ("pad_id", pad_id)):
        check_id(name, value)
    if max_len < specials + texts:
        raise ValueError(
            f"max_len is {max_len}, expected at least {specials + texts}: {specials} special tokens and one token of "
            "each text"
        )
    if seconds is None:
        seconds = [None] * len(firsts)
    if not len(firsts) or len(firsts) != len(seconds):
        raise ValueError(f"there are {len(firsts)} first and {len(seconds)} second texts, expected as many, at least 1")
    packed = []
    for number, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        if not len(first) or (second is not None and not len(second)):
            raise ValueError(f"text {number} is empty, or its partner is: leave such out before")
        packed.append(get_tokens_and_segments(*shortened(first, second, max_len), cls_id, sep_id))
    tokens, segments = ([torch.tensor(row) for row in rows] for rows in zip(*packed, strict=True))
    valid_lens = torch.tensor([len(row) for row in tokens])
    tokens = pad_sequence(tokens, batch_first=True, padding_value=pad_id)  # (B, T)
    check_tokens(tokens)
    return PackedPairs(tokens, pad_sequence(segments, batch_first=True), valid_lens)
