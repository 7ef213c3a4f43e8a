"""Pairs of sentences: where they come from, and how they are packed."""

import pytest
import torch
from chance import fits
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.objectives import get_tokens_and_segments, next_sentence_pairs, pack_pairs

few = settings(max_examples=60, deadline=None, derandomize=True)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def library(*sizes):
    """Documents whose sentences are their number and that of their place."""
    return [[[document, place] for place in range(size)] for document, size in enumerate(sizes)]


@few
@given(st.lists(st.integers(0, 6), min_size=2, max_size=6), st.integers(0, 100))
def test_half_are_true_and_the_others_of_another_document(sizes, seed):
    if sum(size > 1 for size in sizes) < 2:
        sizes += [2, 3]
    documents = library(*sizes)
    firsts, seconds, is_next = next_sentence_pairs(documents, generator=seeded(seed))
    assert firsts == [sentence for document in documents for sentence in document[:-1]]
    assert is_next.dtype == torch.bool and is_next.sum() == len(firsts) - len(firsts) // 2
    for (document, place), second, true in zip(firsts, seconds, is_next.tolist(), strict=True):
        if true:
            assert second == [document, place + 1]
        else:
            assert second[0] != document
            assert second[1] > 0  # a successor itself
    assert documents == library(*sizes)


def test_every_pair_and_every_foreign_sentence_is_as_likely():
    documents, foreign, true = library(2, 5, 3), {}, 0
    for seed in range(2000):
        _, seconds, is_next = next_sentence_pairs(documents, generator=seeded(seed))
        true += is_next[1].item()  # the first pair of document 1
        if not is_next[1]:
            foreign[tuple(seconds[1])] = foreign.get(tuple(seconds[1]), 0) + 1
    assert fits(true, 2000, 4 / 7)  # of 7 pairs 4 are true
    assert sorted(foreign) == [(0, 1), (2, 1), (2, 2)]
    assert all(fits(count, 2000 - true, 1 / 3) for count in foreign.values())


def test_the_seed_decides():
    documents = library(9, 9, 9)
    once, again, other = (next_sentence_pairs(documents, generator=seeded(seed)) for seed in (1, 1, 2))
    assert once.seconds == again.seconds and once.seconds != other.seconds


@pytest.mark.parametrize("documents", [[], library(9), library(9, 1, 0), library(1, 1)])
def test_too_few_documents(documents):
    with pytest.raises(ValueError, match="fewer than two documents have two sentences"):
        next_sentence_pairs(documents, generator=seeded())


def test_what_is_no_document():
    with pytest.raises(TypeError, match="document 1 is not a list of sentences"):
        next_sentence_pairs([[[1], [2]], [3, 4]], generator=seeded())
    with pytest.raises(TypeError, match=r"expected torch\.Generator"):
        next_sentence_pairs(library(2, 2), generator=0)


def test_one_sequence_of_words_and_of_ids():
    assert get_tokens_and_segments(["we", "go"]) == (["<cls>", "we", "go", "<sep>"], [0, 0, 0, 0])
    assert get_tokens_and_segments([7], [8, 9], 1, 2) == ([1, 7, 2, 8, 9, 2], [0, 0, 0, 1, 1, 1])


def shorten(first, second, room):
    """As BERT's authors write it: one token after the other."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@few
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4), st.integers(5, 25))
def test_pairs_are_shortened_as_in_a_loop(sizes, max_len):
    firsts = [list(range(10, 10 + a)) for a, _ in sizes]
    seconds = [list(range(30, 30 + b)) for _, b in sizes]
    tokens, segments, valid_lens = pack_pairs(firsts, seconds, max_len=max_len, cls_id=1, sep_id=2, pad_id=0)
    assert tokens.shape == segments.shape == (len(sizes), max(valid_lens)) and tokens.dtype == torch.int64
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        first, second = shorten(first, second, max_len - 3)
        want = [1, *first, 2, *second, 2]
        assert valid_lens[row] == len(want) <= max_len
        rest = [0] * (tokens.shape[1] - len(want))
        assert tokens[row].tolist() == want + rest
        assert segments[row].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1) + rest


def test_single_texts():
    tokens, segments, valid_lens = pack_pairs([[7, 8, 9], [7]], max_len=4, cls_id=1, sep_id=2, pad_id=5)
    assert tokens.tolist() == [[1, 7, 8, 2], [1, 7, 2, 5]]
    assert segments.tolist() == [[0] * 4] * 2 and valid_lens.tolist() == [4, 3]


@pytest.mark.parametrize(
    ("firsts", "seconds", "options", "error", "message"),
    [
        ([[7]], [[8]], {"max_len": 4}, ValueError, "max_len is 4, expected at least 5: 3 special tokens"),
        ([[7]], None, {"max_len": 2}, ValueError, "max_len is 2, expected at least 3"),
        ([], [], {}, ValueError, "there are 0 first and 0 second texts"),
        ([], None, {}, ValueError, "there are 0 first"),
        ([[7]], [[8], [9]], {}, ValueError, "there are 1 first and 2 second texts"),
        ([[7], []], [[8], [9]], {}, ValueError, "text 1 is empty"),
        ([[7], [7]], [[], [9]], {}, ValueError, "text 0 is empty"),
        ([[7], [-7]], None, {}, ValueError, "tokens holds -7"),
        ([[7.5]], None, {}, TypeError, "expected integers"),
        ([[7]], None, {"cls_id": -1}, ValueError, "cls_id is -1"),
        ([[7]], None, {"pad_id": "<pad>"}, ValueError, "pad_id is '<pad>'"),
    ],
)
def test_what_cannot_be_packed(firsts, seconds, options, error, message):
    options = {"max_len": 9, "cls_id": 1, "sep_id": 2, "pad_id": 0} | options
    with pytest.raises(error, match=message):
        pack_pairs(firsts, seconds, **options)
