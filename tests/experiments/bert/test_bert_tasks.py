"""Tagging, questions, pairs: the records say what their predictions say; wrong settings; runs that are cut."""

from dataclasses import replace

import pytest
import torch

from d2lmini.data.squad import Question
from d2lmini.experiments import bert_pairs, bert_qa, bert_tagging
from d2lmini.lab.parts import Parts, Unfinished
from d2lmini.metrics import span_f1, squad_scores
from d2lmini.tokenization.fast_bpe import BPETokenizer

CPU = torch.device("cpu")
ANY = BPETokenizer.train(["any"], 260)
TRAIN = [
    (["Ann", "Lee", "met", "Bob", "."], ["B-person", "I-person", "O", "B-person", "O"]),
    (["Paris", "is", "big", "."], ["B-location", "O", "O", "O"]),
    (["Ann", "Lee", "likes", "Paris", "."], ["B-person", "I-person", "O", "B-location", "O"]),
]


def test_rules_know_the_training_names():
    sentences = [["ann", "lee", "met", "Lee", "in", "PARIS"], ["Bob", "Lee"]]
    assert bert_tagging.known_names(TRAIN, sentences) == [
        ["B-person", "I-person", "O", "O", "O", "B-location"],
        ["B-person", "O"],
    ]
    assert bert_tagging.most_frequent_tags(TRAIN, sentences) == [
        ["B-person", "I-person", "O", "I-person", "O", "B-location"],
        ["B-person", "I-person"],
    ]


def test_entities_and_tags_are_inverse():
    sentences, tags = zip(*TRAIN, strict=True)
    found = bert_tagging.entities(tags)
    assert found[:2] == [(0, 0, 1, "person"), (0, 3, 3, "person")]
    assert bert_tagging.tags_of(found, sentences) == list(tags)
    assert bert_tagging.surfaces(TRAIN) == {"ann lee", "bob", "paris"}


def test_what_is_new_in_the_test():
    test = [(["Bob", "saw", "Rome", "and", "Rome"], ["B-person", "O", "B-location", "O", "B-location"])]
    new = bert_tagging.novelty(TRAIN, test)
    assert new["words"] == 4 / 5 and new["entities"] == 2 / 3 and new["surfaces"] == 1 / 2
    assert new["by_type"]["location"] == 1 and new["by_type"]["person"] == 0 and new["by_type"]["group"] is None
    right = bert_tagging.entities([test[0][1]])
    counted = bert_tagging.scores(right[:2], right, [test[0][0]], {"bob"})
    assert counted["recall_seen"] == 100 and counted["recall_new"] == 50 and counted["precision"] == 100
    assert counted["by_type"]["location"]["entities"] == 2 and counted["by_type"]["person"]["f1"] == 100


@pytest.mark.train
def test_the_tagging_record_says_what_its_entities_say():
    config = replace(bert_tagging.PRESETS["smoke"], seeds=(0, 1))
    metrics = bert_tagging.run(config, CPU)["metrics"]
    sentences, tags = zip(*bert_tagging.read(config, ANY).examples("test"), strict=True)
    assert bert_tagging.tags_of(metrics["right"], sentences) == list(tags)
    for name, one in metrics["contestants"].items():
        counted = span_f1(bert_tagging.tags_of(one["found"], sentences), tags)
        assert counted._asdict() == {key: one[key] for key in ("precision", "recall", "f1")}
        assert one["f1_seeds"][0] == one["f1"] and len(one["f1_seeds"]) == (2 if name == "scratch" else 1)
    assert all(metrics["contestants"][name]["f1"] > 10 for name in ("words", "names"))
    assert 0.3 < metrics["novelty"]["entities"] < 0.8 and len(metrics["sentences"]) == config.shown


def test_the_sentence_with_most_common_words():
    question = Question("1", "", "Where does the dog sleep?", "The cat eats. The dog does sleep here. It barks.", ())
    assert bert_qa.best_sentence(question).startswith("The dog") and bert_qa.kind_of(question.question) == "where"
    assert bert_qa.kind_of("In which year was it?") == "which" and bert_qa.kind_of("Name one.") == "other"


@pytest.mark.train
def test_the_record_of_questions_says_what_its_answers_say():
    config = bert_qa.PRESETS["smoke"]
    metrics = bert_qa.run(config, CPU)["metrics"]
    for one in metrics["contestants"].values():
        exact, f1 = squad_scores(one["answers"], metrics["right"])
        assert one["exact_match"] == pytest.approx(exact) and one["f1"] == pytest.approx(f1)
        assert sum(one["exact"]) == pytest.approx(exact * len(one["exact"]) / 100)
        assert sum(kind["questions"] for kind in one["by_kind"].values()) == metrics["examples"]["test"]
    assert metrics["contestants"]["scratch"]["windows"] == config.questions
    assert metrics["contestants"]["scratch"]["ceiling"] == {"exact_match": 100, "f1": 100}
    for shown in metrics["questions"]:
        assert all(answer in shown["context"] for answer in [*shown["answers"].values(), *shown["right"]])


@pytest.mark.train
def test_the_record_of_pairs_says_what_its_scores_say():
    metrics = bert_pairs.run(bert_pairs.PRESETS["smoke"], CPU)["metrics"]
    labels = metrics["labels"]
    assert 2 * sum(labels) == len(labels) == metrics["examples"]["test"]
    for one in metrics["contestants"].values():
        right = sum((score > 0) == bool(label) for score, label in zip(one["scores"], labels, strict=True))
        assert one["accuracy"] == one["accuracy_seeds"][0] == right / len(labels)
        assert one["confusion"][0][0] + one["confusion"][1][1] == right
    assert metrics["contestants"]["overlap"]["accuracy"] == 0.5, "twins share as many words"


def test_pairs_that_two_judge_differently():
    found = {"a": {"scores": [1.0, -1.0, 2.0, 1.0]}, "b": {"scores": [-3.0, 1.0, -5.0, 2.0]}}
    examples = [("u", "v", 1), ("w", "x", 1), ("y", "z", 1), ("s", "t", 1)]
    kept = bert_pairs.between("a", "b", found, examples, 1)
    assert [pair["texts"] for pair in kept["a"]] == [["y", "z"]] and kept["a"][0]["scores"] == {"a": 2.0, "b": -5.0}
    assert [pair["texts"] for pair in kept["b"]] == [["w", "x"]]
    assert bert_pairs.between("a", "c", found, examples, 1) == {}


def test_which_words_are_common_is_learned():
    pairs = [("a red cat", "a red dog", 1), ("a blue cat", "a red dog", 0)] * 10
    assert bert_pairs.by_words({"train": pairs, "val": pairs[:4], "test": pairs[:2]})["val"]["chosen_by"] == 1


@pytest.mark.train
@pytest.mark.parametrize("module", [bert_tagging, bert_qa, bert_pairs])
def test_cut_and_resumed(module, tmp_path):
    config = replace(module.PRESETS["smoke"], contestants=("scratch",))
    whole = module.run(config, CPU)
    with pytest.raises(Unfinished):
        module.run(config, CPU, Parts(tmp_path, max_seconds=1e-9))
    again = module.run(config, CPU, Parts(tmp_path))
    for found in (whole, again):
        del found["metrics"]["contestants"]["scratch"]["train_s"]
    assert again == whole


@pytest.mark.parametrize("module", [bert_tagging, bert_qa, bert_pairs])
def test_an_unknown_contestant(module):
    with pytest.raises(ValueError, match=r"contestants are \('gpt',\), expected some of"):
        module.run(replace(module.PRESETS["smoke"], contestants=("gpt",)), CPU)
