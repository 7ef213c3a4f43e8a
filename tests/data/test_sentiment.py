"""Sentence polarity: folds, nested shares of the labels, what comes again; the real sentences."""

from itertools import pairwise

import pytest
import torch
from toy_pairs import needs
from toy_texts import TOKENIZERS, each_tokenizer, put

from d2lmini.data.sentiment import SentencePolarity
from d2lmini.data.store import DataError
from d2lmini.data.tatoeba import sentence_key

TOKENIZER = TOKENIZERS["published"]


@pytest.fixture
def small(folder, monkeypatch):
    negative = [f"film {n} is bad ." for n in range(103)] + ["Film 7 is bad", "it's a cat ."]
    positive = [f"film {n} is good ." for n in range(103)] + ["film 9 ... is good !", "IT'S a cat"]
    put(folder, monkeypatch, "rt_polarity", "rt-polarity.neg", "".join(f"{text} \n" for text in negative))
    put(folder, monkeypatch, "rt_polarity", "rt-polarity.pos", "".join(f"{text} \n" for text in positive))


def of(data, split):
    return set(data.examples(split))


def test_folds(small):
    folds = [SentencePolarity(TOKENIZER, fold=fold, download=False) for fold in range(10)]
    tested = [example for data in folds for example in data.examples("test")]
    assert len(tested) == len(set(tested)) == 207 and folds[0].left_out == {"comes again": 3}
    assert {text for text, _ in tested} >= {"film 7 is bad .", "it's a cat ."}, "the first of copies stays, by key"
    for fold, data in enumerate(folds):
        assert of(data, "train") | of(data, "val") | of(data, "test") == set(tested)
        assert sum(len(data.examples(split)) for split in data.splits) == 207
        assert of(data, "val") == of(folds[(fold + 1) % 10], "test")
        for split in data.splits:
            labels = [label for _, label in data.examples(split)]
            assert abs(2 * sum(labels) - len(labels)) <= 2
    assert of(SentencePolarity(TOKENIZER, seed=1, download=False), "test") != of(folds[0], "test")


def test_shares_of_the_labels_are_nested(small):
    shares = [SentencePolarity(TOKENIZER, fraction=fraction, download=False) for fraction in (0.02, 0.1, 0.5, 1)]
    trained = [data.examples("train") for data in shares]
    assert [len(examples) for examples in trained] == [round(f * len(trained[-1])) for f in (0.02, 0.1, 0.5, 1)]
    for fewer, more in pairwise(trained):
        assert set(fewer) < set(more)
        assert abs(2 * sum(label for _, label in fewer) - len(fewer)) <= 1
    assert all(of(data, "test") == of(shares[0], "test") for data in shares)


@each_tokenizer
def test_batches(small, tokenizer):
    data = SentencePolarity(tokenizer, download=False)
    for tokens, _, valid_lens, labels in data.loader("test"):
        again = data.build(["film 3 is good .", "film 3 is bad ."], [1, 0])
        assert len(tokens) == len(valid_lens) == len(labels) and len(again) == 4 and again[3].tolist() == [1, 0]
    texts, labels = zip(*data.examples("val"), strict=True)
    batches = list(data.val_dataloader())
    assert [int(label) for label in data.in_order("val", [batch[-1] for batch in batches])] == list(labels)
    tokens, _, valid_lens = data.build(texts)
    for row, length, text in zip(tokens, valid_lens, texts, strict=True):
        assert row[1 : length - 1].tolist() == data.encoder.encode([text])[0][0]


def test_bad_input(small, folder, monkeypatch):
    for fold in (-1, 10, 0.5):
        with pytest.raises(ValueError, match=f"fold is {fold}, expected 0 to 9"):
            SentencePolarity(TOKENIZER, fold=fold, download=False)
    for fraction in (0, 1.1, -1):
        with pytest.raises(ValueError, match=f"fraction is {fraction}, expected above 0"):
            SentencePolarity(TOKENIZER, fraction=fraction, download=False)
    with pytest.raises(ValueError, match=r"fraction is 0.001, which is 0 of 16\d sentences"):
        SentencePolarity(TOKENIZER, fraction=0.001, download=False)
    data = SentencePolarity(TOKENIZER, download=False)
    with pytest.raises(ValueError, match="there are no texts"):
        data.build([])
    with pytest.raises(ValueError, match="label 0 is 2"):
        data.build(["good"], [2])
    with pytest.raises(ValueError, match="1 of 2 texts have more than 128 tokens"):
        data.build(["good", "good " * 200])
    put(folder, monkeypatch, "rt_polarity", "rt-polarity.neg", "bad .\n \nworse .\n")
    with pytest.raises(DataError, match=r"line 2 of .*rt-polarity.neg is empty"):
        SentencePolarity(TOKENIZER, download=False)
    (folder / "rt-polarity.neg").unlink()
    with pytest.raises(DataError, match=r"rt-polarity.neg of rt_polarity is not on this machine"):
        SentencePolarity(TOKENIZER, download=False)


@needs("rt_polarity")
def test_the_real_sentences():
    data = SentencePolarity(TOKENIZERS["ours"], max_len=400, download=False)
    assert data.left_out == {"comes again": 2}
    assert [len(data.examples(split)) for split in data.splits] == [8528, 1066, 1066]
    keys = {split: {sentence_key(text) for text, _ in data.examples(split)} for split in data.splits}
    assert not keys["train"] & keys["test"] and not keys["val"] & (keys["train"] | keys["test"])
    assert all(torch.tensor([y for _, y in data.examples(split)]).float().mean() == 0.5 for split in data.splits)
    assert len(SentencePolarity(TOKENIZER, fraction=0.01, download=False).examples("train")) == 85
    assert any("é" in text for text, _ in data.examples("train")), "accents are whole"
