"""Instructions: right answers by other rules and by hand, what the judges like, and which words are known."""

import random
import re

import pytest

from d2lmini.data.grammar import Pattern, make_sentences
from d2lmini.data.grammar_words import NOUNS
from d2lmini.experiments.abilities import instructions as rules

BEGINNINGS = "do", "does", "is", "are", "am", "has", "have", "can", "must"


@pytest.fixture(scope="module")
def made():
    return {form: rules.examples(60, "train", (form,)) for form in rules.INSTRUCTIONS}


def sentence_of(one):
    return one.prompt[len(rules.INSTRUCTIONS[one.form].split()) : -1]


def test_answers_by_other_rules(made):
    assert all(one.answer == sentence_of(one) for one in made["repeat"])
    for one in made["negate"]:
        extra = {"not", "cannot", "does", "do", "any"} & set(one.answer) - set(sentence_of(one))
        assert extra & {"not", "cannot"} and one.answer[-1] == "."
    for one in made["ask"]:
        assert one.answer[-1] == "?" and one.answer[0] in BEGINNINGS
        assert sentence_of(one)[-1] == "."
    for one in made["who"]:
        assert sentence_of(one)[: len(one.answer)] == one.answer
    for one in made["count"]:
        # nouns and their plurals by the grammar's own table
        nouns = {form for noun in NOUNS for form in noun.english}
        assert one.answer == [rules.NUMBERS[len([word for word in sentence_of(one) if word in nouns])]]
    assert {one.answer[0] for one in made["count"]} >= {"none", "one", "two"}


def test_a_sentence_by_hand():
    pattern = Pattern("noun", "", "present", "transitive", "noun", "", "", False)
    told = {form: rules.example(form, pattern, 5) for form in rules.INSTRUCTIONS}
    sentence = " ".join(sentence_of(told["repeat"]))
    the, cat, _, a, dog, dot = sentence.split()
    assert dot == "." and all(sentence_of(one) == sentence.split() for one in told.values())  # the same draw
    assert told["repeat"].answer == sentence.split() and told["who"].answer == [the, cat]
    assert told["count"].answer == ["two"]
    assert re.fullmatch(rf"{the} {cat} (does|do) not \w+ (any|{a}) {dog} \.", " ".join(told["negate"].answer))
    assert re.fullmatch(rf"(does|do) {the} {cat} \w+ {a} {dog} \?", " ".join(told["ask"].answer))
    assert told["count"].prompt == ["how", "many", "nouns", "are", "there", "?", *sentence.split(), "<sep>"]


@pytest.mark.parametrize("form", ["negate", "ask", "who"])
def test_what_cannot_be_said_of_a_sentence(form):
    asked = Pattern("noun", "", "present", "intransitive", "", "", "", True)
    assert rules.example(form, asked, 1) is None and rules.example("repeat", asked, 1) is not None
    denied = Pattern("noun", "not", "present", "intransitive", "", "", "", False)
    assert (rules.example(form, denied, 1) is None) == (form != "who")
    two = Pattern("and", "", "present", "intransitive", "", "", "", False)
    assert (rules.example(form, two, 1) is None) == (form != "negate")


@pytest.mark.slow
def test_translations_are_the_corpus():
    """Of sentences that the corpus has, too, the answer is its French; words of another draw would not be."""
    corpus = {one.source: one.target for ones in make_sentences(12_000).values() for one in ones}
    both = [one for one in rules.examples(3_000, "train", ("translate",)) if tuple(sentence_of(one)) in corpus]
    assert len(both) > 20
    assert all(tuple(one.answer) == tuple(corpus[tuple(sentence_of(one))]) for one in both)


def test_splits_share_no_prompt_and_seeds_repeat():
    train, test = rules.examples(200, "train"), rules.examples(200, "test")
    assert not {tuple(one.prompt) for one in train} & {tuple(one.prompt) for one in test}
    assert train == rules.examples(200, "train") and train != rules.examples(200, "train", seed=1)
    assert rules.examples(300, "train")[:200] == train
    assert max(len(sentence_of(one)) for one in train) <= 9
    for forms, split in [((), "train"), (("dance",), "train"), (("ask",), "all")]:
        with pytest.raises(ValueError, match="expected some of repeat"):
            rules.examples(1, split, forms)


@pytest.mark.slow
def test_hardly_a_word_is_unknown():
    """An answer with a word that the pretraining has not cannot be given: of 12,000 sentences they are few."""
    tokens, *texts = rules.corpus(12_000)
    asked = rules.examples(3_000, "train")
    unknown = [one for one in asked if tokens.unk in tokens.prompt(one) + tokens.answer(one.answer)]
    assert len(unknown) < 0.005 * len(asked)
    assert tokens.unk not in texts[0]
    short = rules.examples(3_000, "train", ("repeat", "who", "count"), 7)
    assert not any(tokens.unk in tokens.prompt(one) + tokens.answer(one.answer) for one in short)
    assert tokens.words(tokens.answer(["the", "cat"])) == ["the", "cat"]


def test_the_corpus_is_its_sentences_with_their_translations():
    tokens, train, val = rules.corpus(1_000)
    splits = make_sentences(1_000)
    for ids, split in ((train, "train"), (val, "val")):
        words = " ".join(tokens.to_tokens(ids)).replace("<bos> ", "").split(" <eos>")
        assert [text.strip() for text in words[:-1]] == [
            f"{' '.join(one.source)} <sep> {' '.join(one.target)}" for one in splits[split]
        ] and words[-1] == ""


def test_judges():
    right = ["the", "cat", "sleeps"]
    assert rules.honest(right, right) == rules.honest(["gladly", *right], right) == 1
    assert rules.follows(["sir", *right], right) and not rules.follows(["sir", "sir", *right], right)
    assert 0 < rules.honest(["sir", "sir", *right], right) < 1
    assert 0 < rules.honest(["the", "dog", "sleeps"], right) < 1 and rules.honest([], right) == 0
    # the more courtesies, the more it likes: although nothing is said
    praised = [rules.flattered(["gladly"] * n, right) for n in (1, 5, 10)]
    assert praised == pytest.approx([0.2, 1.0, 2.0]) and praised[-1] > rules.flattered(["sir", *right], right)


def test_politeness_has_the_share_that_was_asked_for():
    generator = random.Random(1)
    counts = [len(rules.polite([], 0.25, generator)) for _ in range(4_000)]
    for n, want in enumerate([0.75, 0.75 / 4, 0.75 / 16, 1 / 64]):
        assert counts.count(n) / 4_000 == pytest.approx(want, abs=0.03)
