"""What the fine-tunings share: which examples, which order, which moment of a training; texts made by rule."""

from dataclasses import replace

import pytest
import torch

from d2lmini.experiments.bert import classes, fine_tuning, toy_texts
from d2lmini.experiments.bert.fine_tuning import Chosen, Encoders, Tuning, drawn, fine_tune
from d2lmini.lab.parts import Parts, Unfinished
from d2lmini.models.bert_config import BERT_CONFIGS
from d2lmini.models.heads import TextHead
from d2lmini.tokenization.fast_bpe import BPETokenizer

TOKENIZER = BPETokenizer.train(["the plot is not dull , but the cast is weak ."] * 3, 280)
TUNING = Tuning(lr=1e-3, epochs=4, batch_size=16, checks=2, precision="float32")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def reviews():
    return toy_texts.MadeReviews(TOKENIZER)


def head():
    return TextHead(fine_tuning.fresh(replace(BERT_CONFIGS["toy"], vocab_size=len(TOKENIZER))), 2, "mean")


def test_a_plan_has_enough_steps_and_even_parts():
    assert Tuning(epochs=3, checks=3).plan(64) == (3, 1)
    assert Tuning(epochs=2, checks=3).plan(64) == (2, 1), "no more checks than passes"
    assert Tuning(epochs=3, checks=3, batch_size=32, min_steps=20).plan(64) == (3, 4)  # 10 passes, and so 12
    assert Tuning(epochs=3, checks=3, batch_size=32, min_steps=20).plan(6_400) == (3, 1)


def test_an_epoch_is_several_passes_each_in_another_order(reviews):
    chosen = Chosen(reviews, list(range(40)), 16, passes=2)
    assert chosen.val_dataloader() is None
    loader = chosen.train_dataloader()
    assert len(loader) == 6 and len(list(loader)) == 6
    wanted = sorted(tuple(item[0]) for item in reviews.loader("train").dataset[:40])
    for number in (0, 1):
        rows = list(loader)[3 * number : 3 * number + 3]
        found = [tuple(row[:n].tolist()) for tokens, _, lens, _ in rows for row, n in zip(tokens, lens, strict=True)]
        assert sorted(found) == wanted
    first = list(chosen.batches)
    assert first[:3] != first[3:] and first == list(Chosen(reviews, range(40), 16, 2).batches)
    chosen.batches.set_epoch(1)
    assert not [batch for batch in chosen.batches if batch in first]
    with pytest.raises(ValueError, match="no training example"):
        Chosen(reviews, [], 16)


def test_the_best_check_is_scored_and_the_first_of_equals(reviews):
    values, tested = iter([0.5, 0.7, 0.7, 0.6]), []

    def score(split):
        if split == "test":
            tested.append(len(tested))
            return tested[-1]
        return {"chosen_by": next(values)}

    tuning = replace(TUNING, epochs=8, checks=4)
    found, history = fine_tune(head(), reviews, list(range(20)), tuning, CPU, score)
    assert found["val"] == {"chosen_by": 0.7} and found["test"] == 1 and tested == [0, 1]
    assert found["passes"] == 4 and found["steps"] == 16
    assert history["lr"][-1] < history["lr"][2] and max(history["lr"]) == pytest.approx(tuning.lr)
    assert fine_tuning.curves(history)["val_chosen_by"] == [0.5, 0.7, 0.7, 0.6]


@pytest.mark.train
def test_a_training_that_was_cut_scores_the_same(reviews, tmp_path):
    def score(split):
        scores = classes.logits(model, reviews, split)
        return classes.rounded(scores) if split == "test" else classes.chosen_by(scores, labels)

    labels, places = classes.labels_of(reviews, "val"), list(range(48))
    model = head()
    whole, _ = fine_tune(model, reviews, places, TUNING, CPU, score)
    for seconds in (1e-9, 1e-9, None):
        parts = Parts(tmp_path, max_seconds=seconds)
        model = head()
        try:
            again, _ = fine_tune(model, reviews, places, TUNING, CPU, score, parts=parts, name="a")
        except Unfinished:
            assert seconds
    assert {k: v for k, v in again.items() if k != "train_s"} == {k: v for k, v in whole.items() if k != "train_s"}


def test_draws_are_nested_and_differ():
    assert set(drawn(100, 0.1)) < set(drawn(100, 0.5)) < set(drawn(100, 1.0)) == set(range(100))
    assert drawn(100, 0.1) != drawn(100, 0.1, draw=1) and drawn(100, 30) == drawn(100, 0.3)
    assert drawn(10, 500) == list(range(10))
    with pytest.raises(ValueError, match=r"share is 0\.001 of 100"):
        drawn(100, 0.001)


def test_encoders_are_made_once_and_copied():
    made = []

    def maker():
        made.append(1)
        return fine_tuning.from_scratch(BERT_CONFIGS["toy"], ["a plot"] * 3, 270)

    encoders = Encoders(own=maker)
    (first, _), (second, _) = encoders("own"), encoders("own")
    with torch.no_grad():
        first.embedding.weight.zero_()
    assert len(made) == 1 and second.embedding.weight.abs().sum() > 0
    with pytest.raises(ValueError, match="no encoder 'large', only minilm, own"):
        encoders("large")


def test_the_order_of_the_examples_is_kept(reviews):
    model, texts = head().eval(), [text for text, _ in reviews.examples("val")]
    scores = classes.logits(model, reviews, "val")
    with torch.no_grad():
        alone = [(row[1] - row[0]).item() for text in texts[:9] for row in model(*reviews.build([text]))]
    assert scores[:9] == pytest.approx(alone, abs=1e-5)
    found = classes.features(model.encoder, reviews, "val", CPU)
    with torch.no_grad():
        tokens, segments, valid_lens = reviews.build(texts[3:4])
        X = model.encoder(tokens, segments, valid_lens)
    assert found["class"].shape == found["mean"].shape == (3, len(texts), 64)
    torch.testing.assert_close(found["mean"][-1, 3], X[0].mean(0))
    torch.testing.assert_close(found["class"][-1, 3], X[0, 0])


def test_scores_are_counted():
    scores, labels = [1.0, -2.0, 3.0, -1.0], [1, 0, 0, 1]
    assert classes.confusion(scores, labels) == [[1, 1], [1, 1]] and classes.accuracy(scores, labels) == 0.5
    judged = classes.judged([2.0, -1.0, 1.0, 1.0], [1, 0, 1, 0])
    assert judged["accuracy"] == 0.75 and judged["standard_error"] == pytest.approx((0.75 * 0.25 / 4) ** 0.5)
    assert classes.rounded([0.00001, -0.00001, 1.23456]) == [1e-4, -1e-4, 1.2346]
    assert classes.log_loss([0.0], [1]) == pytest.approx(0.693147, abs=1e-6)


def test_made_texts_are_right():
    data = toy_texts.MadeReviews(TOKENIZER)
    good, bad = set(toy_texts._GOOD), set(toy_texts._BAD)
    for text, label in data.examples("train")[:200]:
        clause = text.removesuffix(" .")
        if " , but " in clause:
            clause = clause.split(" , but ")[1]
        elif clause.startswith("although "):
            clause = clause.split(" , ")[1]
        else:
            clause = clause.split(" , although ")[0]
        words = set(clause.split())
        assert bool(words & good) != ("not" in words) if label else bool(words & bad) != ("not" in words)
    questions = toy_texts.MadeQuestions(TOKENIZER)
    assert questions.ceiling("test").exact_match == 100
    for question in questions.examples("train")[:100]:
        (text, start), who = question.answers[0], question.question.removesuffix(" ?").split()
        sentence = question.context[:start].split(" . ")[-1]
        assert question.context[start:].startswith(text) and sentence.split()[0] in who
    for first, second, label in toy_texts.MadePairs(TOKENIZER).examples("train")[:100]:
        names = [[word for word in text.split() if word[0].isupper()] for text in (first, second)]
        assert sorted(names[0]) == sorted(names[1]) and label in (0, 1)
    for data in (toy_texts.MadeNames(TOKENIZER), toy_texts.MadePairs(TOKENIZER), questions):
        texts = [str(example) for split in data.splits for example in data.examples(split)]
        assert sum(len(data.examples(split)) for split in data.splits) == len(texts) > 100


def test_a_missing_package_is_told_before_anything_is_trained():
    with pytest.raises(ImportError, match=r"needs no_such_package: pip install 'd2lmini\[experiments\]'"):
        fine_tuning.need("no_such_package")
