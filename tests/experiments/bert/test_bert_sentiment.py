"""Sentence polarity: the record says what its predictions say."""

from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer

from d2lmini.experiments import bert_sentiment
from d2lmini.experiments.bert import classes, fine_tuning
from d2lmini.lab.parts import Parts, Unfinished
from d2lmini.models.bert import BERT
from d2lmini.models.bert_config import BERT_CONFIGS

CPU = torch.device("cpu")
SMOKE = bert_sentiment.PRESETS["smoke"]


def small_minilm(tokenizer):
    """Stands for the published weights: of their form, and small."""
    torch.manual_seed(0)
    config = replace(BERT_CONFIGS["toy"], vocab_size=tokenizer.get_vocab_size(), max_len=96)
    return BERT(config).eval(), tokenizer


def words():
    """A tokenizer of whole words with BERT's special tokens."""
    from tokenizers import models, pre_tokenizers

    from d2lmini.experiments.bert import toy_texts

    names = [
        *toy_texts._THINGS,
        *toy_texts._GOOD,
        *toy_texts._BAD,
        "the",
        "is",
        "not",
        "although",
        "but",
        ",",
        ".",
    ]
    vocab = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *names])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@pytest.fixture
def everyone(monkeypatch):
    """A configuration with all contestants, on sentences made by rule."""
    monkeypatch.setattr(fine_tuning, "load_minilm", lambda: small_minilm(words()))
    contestants = (*SMOKE.contestants, "frozen", "minilm")
    return replace(SMOKE, contestants=contestants, minilm=SMOKE.small, probed=40)


@pytest.mark.train
def test_the_record_says_what_its_scores_say(everyone):
    found = bert_sentiment.run(everyone, CPU)
    metrics = found["metrics"]
    labels = metrics["labels"]
    assert len(labels) == metrics["examples"]["test"] == 180 and found["data"].keys() >= {
        "all_minilm_l6_v2/tokenizer.json"
    }
    for name in everyone.contestants:
        rows = metrics["contestants"][name]
        assert rows.keys() == metrics["shares"].keys()
        for one, draws in zip(rows.values(), everyone.draws, strict=True):
            right = sum((score > 0) == bool(label) for score, label in zip(one["scores"], labels, strict=True))
            assert one["test_accuracy"][0] == right / len(labels) and len(one["test_accuracy"]) == draws
            assert one["mean"] == pytest.approx(sum(one["test_accuracy"]) / draws)
            assert all(loss > 0 for loss in one["val_loss"])
    best = metrics["best"]
    (negative, positive), whole = best["confusion"], list(metrics["shares"])[-1]
    assert sum(negative) == labels.count(0) and sum(positive) == labels.count(1)
    assert best["accuracy"] == (negative[0] + positive[1]) / len(labels)
    assert best["accuracy"] == max(rows[whole]["test_accuracy"][0] for rows in metrics["contestants"].values())
    for shown in metrics["sentences"]["surest wrong"]:
        assert (shown["scores"][best["contestant"]] > 0) != bool(shown["label"])
    blocks = BERT_CONFIGS["toy"].num_blks + 1
    for probes in metrics["probe"].values():
        assert probes.keys() == {"class", "mean"} and all(len(row) == blocks for row in probes.values())
    assert metrics["probe"]["before"] != metrics["probe"]["after"]
    assert metrics["probe"]["before"]["class"][0] == pytest.approx(0.5, abs=0.1), "before the blocks it knows no word"


@pytest.mark.train
def test_cut_and_resumed(everyone, tmp_path):
    """Also with weights that a later part needs again."""
    config = replace(everyone, shares=(0.05,), draws=(1,), contestants=("minilm", "frozen"))
    whole = bert_sentiment.run(config, CPU)["metrics"]
    for _ in range(2):
        with pytest.raises(Unfinished):
            bert_sentiment.run(config, CPU, Parts(tmp_path, max_seconds=1e-9))
            pytest.fail("it had no time")
    again = bert_sentiment.run(config, CPU, Parts(tmp_path))["metrics"]
    for metrics in (whole, again):
        del metrics["contestants"]["minilm"]["5 %"]["train_s"]
    assert again == whole


def test_parts_of_the_labels():
    take = bert_sentiment.part_of_labels
    draws = [take(100, 0.1, draw) for draw in range(10)]
    assert sorted(place for draw in draws for place in draw) == list(range(100)) and take(100, 0.1, 10) == draws[0]
    assert take(100, 1.0, 3) == list(range(100))
    for share in (0, 0.001, 1.5):
        with pytest.raises(ValueError, match="expected two or more, and at most all"):
            take(100, share, 0)


def test_the_bag_learns_from_the_chosen_alone():
    texts = [("good film", 1), ("bad film", 0)] * 20 + [("odd film", 1)] * 5
    examples = {"train": texts, "val": texts[:10], "test": [("good", 1), ("bad", 0)]}
    one = bert_sentiment.bag_of_words(examples, list(range(20)))
    assert classes.accuracy(one["test"], [1, 0]) == 1 and one["features"] == 5  # three words, two pairs
    assert one["val"]["chosen_by"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contestants": ("bag", "gpt")}, "expected some of bag, scratch"),
        ({"draws": (1,)}, "as many draws as shares"),
        ({"pooling": "sum"}, "one of class, mean, pooler"),
    ],
)
def test_wrong_settings(change, message):
    with pytest.raises(ValueError, match=message):
        bert_sentiment.run(replace(SMOKE, **change), CPU)


def test_surest_and_least_sure():
    examples = [("a", 1), ("b", 1), ("c", 0), ("d", 0)]
    found = classes.sentences(examples, {"x": [3.0, -2.0, 0.1, -1.0], "y": [1.0] * 4}, "x", 1)
    assert {kind: rows[0]["text"] for kind, rows in found.items()} == {
        "surest right": "a",
        "surest wrong": "b",
        "least sure": "c",
    }
    assert found["surest wrong"][0]["scores"] == {"x": -2.0, "y": 1.0}
