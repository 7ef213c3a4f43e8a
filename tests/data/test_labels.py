"""What all fine-tuning data share: batches, their order and the way back, cutting, labels."""

import pytest
import torch
from toy_texts import SENTENCES, TOKENIZERS, rows

from d2lmini.data.labels import LabelledText, check_labels, check_limits


class Toy(LabelledText):
    def __init__(self, texts, max_len=64, batch_size=4, truncate=False, seed=0, pairs=False):
        super().__init__()
        self.save_hyperparameters()
        self._set_up({"train": texts, "val": texts[:7], "test": texts[7:9]}, TOKENIZERS["published"])

    def _encode(self, examples, split):
        ids = [ids for ids, _ in self.encoder.encode(examples)]
        return [(*joined, n) for n, joined in enumerate(self._joined(ids, ids if self.pairs else None, split))]


TEXTS = [*SENTENCES[:30], "the cat"]


def test_batches():
    data = Toy(TEXTS)
    seen = []
    for tokens, segments, valid_lens, labels in data.train_dataloader():
        assert all(t.dtype == torch.int64 for t in (tokens, segments, valid_lens, labels))
        assert tokens.shape == segments.shape and valid_lens.max() == tokens.shape[1] and not segments.any()
        mask = torch.arange(tokens.shape[1]) < valid_lens[:, None]
        assert (tokens[~mask] == 0).all() and (tokens[mask] != 0).all() and (tokens[:, 0] == 2).all()
        assert (tokens.gather(1, valid_lens[:, None] - 1) == 3).all()
        seen += labels.tolist()
    assert sorted(seen) == list(range(len(TEXTS)))
    loader = data.train_dataloader()
    first = [batch[-1].tolist() for batch in loader]
    assert first == [batch[-1].tolist() for batch in data.train_dataloader()]
    loader.batch_sampler.set_epoch(1)
    assert [batch[-1].tolist() for batch in loader] != first
    assert [b[-1].tolist() for b in Toy(TEXTS, seed=1).train_dataloader()] != first
    assert sum(len(batch[0]) for batch in data.val_dataloader()) == 7


def test_the_way_back():
    data = Toy(TEXTS)
    batches = [batch[-1] for batch in data.loader("train", shuffle=False)]
    assert torch.cat(batches).tolist() != list(range(len(TEXTS)))
    assert [int(n) for n in data.in_order("train", batches)] == list(range(len(TEXTS)))
    with pytest.raises(ValueError, match=f"there are {len(TEXTS) - 4} rows but {len(TEXTS)} examples in 'train'"):
        data.in_order("train", batches[1:])


def test_too_long():
    whole = Toy(TEXTS)
    lengths = [len(item[0]) for item in whole._encoded("train")]
    limit = sorted(lengths)[-5]
    long = sum(length > limit for length in lengths)
    assert long > 0
    with pytest.raises(
        ValueError, match=rf"{long} of 31 texts have more than {limit} tokens.*the longest {max(lengths)}"
    ):
        Toy(TEXTS, limit).train_dataloader()
    cut = Toy(TEXTS, limit, truncate=True)
    for short, full in zip(cut._encoded("train"), whole._encoded("train"), strict=True):
        assert short[0] == (full[0] if len(full[0]) <= limit else [*full[0][: limit - 1], 3])
    assert cut.cut == {"train": long} and whole.cut == {"train": 0}


@pytest.mark.parametrize("limit", [5, 6, 9])
def test_pairs_are_cut_at_the_longer(limit):
    data = Toy(["the cat sees the cat and the cat sees him"], limit, truncate=True, pairs=True)
    ((tokens, segments, _),) = data._encoded("train")
    assert len(tokens) == len(segments) == limit and tokens.count(3) == 2 and tokens[-1] == 3
    assert 0 <= tokens.index(3) - 1 - (limit - tokens.index(3) - 2) <= 1, "both sides are cut alike"
    assert segments == [int(place > tokens.index(3)) for place in range(limit)]


def test_bad_input():
    with pytest.raises(ValueError, match="there is no split 'dev', only train, val, test"):
        Toy(TEXTS).loader("dev")
    assert check_labels(torch.tensor([0, 1]), 2, 2) == [0, 1]
    with pytest.raises(ValueError, match="there are 3 texts but 2 labels"):
        check_labels([0, 1], 3, 2)
    for label in (-1, 2):
        with pytest.raises(ValueError, match=f"label 1 is {label}, expected 0 to 1"):
            check_labels([0, label], 2, 2)
    with pytest.raises(ValueError, match="batch_size is 0, expected at least 1"):
        check_limits(0, 9, 3)
    with pytest.raises(ValueError, match="max_len is 2, expected at least 3"):
        check_limits(1, 2, 3)
    assert rows(next(iter(Toy(TEXTS).loader("test"))))
