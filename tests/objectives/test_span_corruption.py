"""Span corruption: D2L's figure, a loop, and the way back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from d2lmini.objectives import corrupt_spans, random_spans, restore_spans

EOS, PAD = 1, 0
SENTINELS = list(range(99, 89, -1))  # downwards from the end of the vocabulary, as T5 has them
few = settings(max_examples=80, deadline=None, derandomize=True)


def test_the_figure_of_d2l():
    """Figure 11.9.3; the text of section 11.9.2 has <X> for both spans of the input."""
    words = ["I", "love", "this", "red", "car", "<X>", "<Y>", "<Z>"]
    noise = torch.tensor([[word in ("love", "red", "car") for word in words[:5]]])
    got = corrupt_spans(torch.arange(5)[None], noise, [5, 6, 7])
    said = [" ".join(words[index] for index in ids[0]) for ids in (got.inputs, got.targets)]
    assert said == ["I <X> this <Y>", "<X> love <Y> red car <Z>"]
    assert restore_spans(got.inputs, got.targets, [5, 6, 7]) == [[0, 1, 2, 3, 4]]


def by_loop(text, noise, closing, eos):
    """One text, a token at a time."""
    inputs, targets, sentinels = [], [], iter(SENTINELS)
    for n, token in enumerate(text):
        if not noise[n]:
            inputs.append(token)
            continue
        if n == 0 or not noise[n - 1]:
            sentinel = next(sentinels)
            inputs.append(sentinel)
            targets.append(sentinel)
        targets.append(token)
    if closing:
        targets.append(next(sentinels))
    end = [] if eos is None else [eos]
    return inputs + end, targets + end


@st.composite
def batches(draw):
    """Tokens, noise and lengths; an end token may stand inside of a text, as between two documents."""
    B, T = draw(st.integers(1, 4)), draw(st.integers(1, 18))
    rows = st.lists(st.integers(1, 30), min_size=T, max_size=T)
    tokens = draw(st.lists(rows, min_size=B, max_size=B))
    noise = draw(st.lists(st.lists(st.booleans(), min_size=T, max_size=T), min_size=B, max_size=B))
    valid_lens = draw(st.lists(st.integers(1, T), min_size=B, max_size=B))
    tokens, noise, valid_lens = torch.tensor(tokens), torch.tensor(noise), torch.tensor(valid_lens)
    return tokens, noise & (torch.arange(T) < valid_lens[:, None]), valid_lens


@few
@given(batches(), st.booleans(), st.sampled_from([None, EOS]))
def test_equal_to_a_loop_and_there_and_back(batch, closing, eos):
    tokens, noise, lens = batch
    before = tokens.clone(), noise.clone()
    got = corrupt_spans(tokens, noise, SENTINELS, valid_lens=lens, closing=closing, eos=eos, padding=PAD)
    texts = [row[:n] for row, n in zip(tokens.tolist(), lens.tolist(), strict=True)]
    want = [by_loop(text, row, closing, eos) for text, row in zip(texts, noise.tolist(), strict=True)]
    for ids, ids_lens, rows in (
        (got.inputs, got.input_lens, [i for i, _ in want]),
        (got.targets, got.target_lens, [t for _, t in want]),
    ):
        longest = max(map(len, rows))
        assert ids.tolist() == [row + [PAD] * (longest - len(row)) for row in rows]
        assert ids_lens.tolist() == list(map(len, rows))
    if got.targets.numel():  # without any noise and any end there is no target
        lens = {"input_lens": got.input_lens, "target_lens": got.target_lens}
        assert restore_spans(got.inputs, got.targets, SENTINELS, eos=eos, **lens) == texts
    assert torch.equal(tokens, before[0]) and torch.equal(noise, before[1])


def test_a_full_batch_needs_neither_lengths_nor_padding():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(2, 90, (6, 40), generator=generator, dtype=torch.int32)
    noise = random_spans(6, 40, generator=generator)
    got = corrupt_spans(tokens, noise, torch.tensor(SENTINELS), closing=False, eos=EOS)
    assert got.inputs.shape == (6, 40 - 6 + 2 + 1) and got.targets.shape == (6, 6 + 2 + 1)
    assert got.inputs.dtype == got.targets.dtype == torch.int32
    assert (got.inputs[:, -1] == EOS).all() and (got.targets[:, -1] == EOS).all()
    assert restore_spans(got.inputs, got.targets, SENTINELS, eos=EOS) == tokens.tolist()


tokens = torch.arange(2, 12).reshape(2, 5)
noise = torch.tensor([[0, 1, 0, 1, 1], [1, 0, 1, 0, 0]]).bool()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"sentinels": [97, 98]},
            ValueError,
            "there are 2 sentinels, expected at least 3: a text has 2 spans, and one",
        ),
        ({"sentinels": [98], "closing": False}, ValueError, "there are 1 sentinels, expected at least 2: a text has 2"),
        ({"sentinels": []}, ValueError, "expected a list of ids, one or more"),
        ({"sentinels": [97, 98, -1]}, ValueError, "expected a list of ids"),
        ({"sentinels": [97, 98, 97]}, ValueError, "one occurs twice"),
        ({"sentinels": [97, 98, 11]}, ValueError, "the text holds 11, which is a sentinel"),
        ({"eos": 99}, ValueError, "eos is 99, which is a sentinel"),
        ({"padding": 99}, ValueError, "padding is 99, which is a sentinel"),
        ({"eos": -1}, ValueError, "eos is -1"),
        ({"noise": noise.int()}, TypeError, "noise is of torch.int32, expected a boolean"),
        ({"noise": noise.tolist()}, TypeError, "noise is of list"),
        ({"noise": noise[:1]}, ValueError, r"noise has shape \(1, 5\) but tokens \(2, 5\)"),
        ({"valid_lens": torch.tensor([4, 5])}, ValueError, "noise lies in the padding"),
        ({"valid_lens": torch.tensor([5, 6])}, ValueError, "valid_lens holds 6"),
        ({"valid_lens": torch.tensor([5, 4])}, ValueError, "texts get from 5 to 6 tokens long: pass the id of padding"),
        ({"tokens": tokens.float()}, TypeError, "expected integers"),
        ({"tokens": tokens - 5}, ValueError, "tokens holds -3"),
    ],
)
def test_bad_arguments(options, error, message):
    options = {"tokens": tokens, "noise": noise, "sentinels": SENTINELS} | options
    with pytest.raises(error, match=message):
        corrupt_spans(**options)


def test_as_many_sentinels_as_needed_are_enough():
    assert corrupt_spans(tokens[:1], noise[:1], [97, 98, 99]).targets.tolist() == [[97, 3, 98, 5, 6, 99]]
    assert corrupt_spans(tokens[:1], noise[:1], [97, 98], closing=False).targets.tolist() == [[97, 3, 98, 5, 6]]


@pytest.mark.parametrize(
    ("inputs", "target", "options", "message"),
    [
        ([2, 99], [3, 99, 4], {}, "target 0 begins with 3, expected a sentinel"),
        ([2, 99], [99, 3, 99, 4], {}, "target 0 has the sentinel 99 twice"),
        ([2, 99, 98], [99, 3], {}, "target 0 has no span left for sentinel 98 of its input"),
        ([2, 99], [99, 3, 98, 4], {}, "has no place for"),
        ([2, 99, 1], [99, 3], {"eos": EOS}, "target 0 does not end with 1"),
        ([2, 99], [99, 3, 1], {"eos": EOS}, "input 0 does not end with 1"),
    ],
)
def test_what_cannot_be_restored(inputs, target, options, message):
    with pytest.raises(ValueError, match=message):
        restore_spans(torch.tensor([inputs]), torch.tensor([target]), SENTINELS, **options)
    with pytest.raises(ValueError, match="there are 1 inputs and 2 targets"):
        restore_spans(torch.tensor([inputs]), torch.tensor([target] * 2), SENTINELS)
