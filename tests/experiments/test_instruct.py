"""Instructions: right answers by other rules, what the judges like, and what the models are measured by."""

import random
from dataclasses import replace

import pytest
import torch

from d2lmini.data.grammar import make_sentences
from d2lmini.experiments import _instructions as rules
from d2lmini.experiments import instruct
from d2lmini.experiments._language import Learner
from d2lmini.experiments.instruct import PRESETS, Preferring
from d2lmini.objectives import dpo_loss

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
        # a noun is what a determiner or an adjective stands before; the corpus itself knows its nouns
        assert one.answer == [rules.NUMBERS[sum(word in rules._NOUNS for word in sentence_of(one))]]
    assert {one.answer[0] for one in made["count"]} >= {"none", "one", "two"}


def test_known_ones():
    by = {" ".join(one.prompt): " ".join(one.answer) for one in rules.examples(400, "train", ("ask", "negate", "who"))}
    pairs = {prompt.split(" : ")[-1].split(" ? ")[-1]: answer for prompt, answer in by.items()}
    assert len(by) == 400 and len(set(pairs.values())) > 100


def test_translations_are_the_corpus(made):
    french = {w for s in make_sentences(2_000)["train"] for w in s.target}
    assert all(sum(word in french for word in one.answer) > len(one.answer) / 2 for one in made["translate"])


def test_splits_share_no_prompt_and_seeds_repeat():
    train, test = rules.examples(200, "train"), rules.examples(200, "test")
    assert not {tuple(one.prompt) for one in train} & {tuple(one.prompt) for one in test}
    assert train == rules.examples(200, "train") and train != rules.examples(200, "train", seed=1)
    assert rules.examples(300, "train")[:200] == train
    assert max(len(sentence_of(one)) for one in train) <= 9
    for forms, split in [((), "train"), (("dance",), "train"), (("ask",), "all")]:
        with pytest.raises(ValueError, match="expected some of repeat"):
            rules.examples(1, split, forms)


def test_all_words_are_known(made):
    tokens, *_ = rules.corpus(2_000)
    for ones in made.values():
        for one in ones:
            assert tokens.unk not in tokens.prompt(one) + tokens.answer(one.answer)
    assert tokens.words(tokens.answer(["the", "cat"])) == ["the", "cat"]


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


@pytest.fixture(scope="module")
def small():
    tokens, *_ = rules.corpus(1_000)
    config = replace(PRESETS["smoke"], forms=("count", "repeat"))
    recipe = replace(config, model=replace(config.model, vocab_size=len(tokens), init="gpt2"))
    torch.manual_seed(0)
    return tokens, config, Learner(recipe).eval(), Learner(recipe).eval()


def test_log_probs_are_those_that_sampling_knows(small):
    tokens, config, model, _ = small
    prompts = [tokens.prompt(one) for one in rules.examples(5, "test", config.forms)]
    drawn = model.generate(prompts, 6, stop=tokens[rules.EOS], generator=torch.Generator().manual_seed(3))
    answers = instruct.draw_answers(model, prompts, 1, tokens, config, 3)
    found = instruct.log_probs(model, prompts, [row[0] for row in answers])
    assert torch.allclose(found, drawn.scores, atol=1e-4)


def test_kl_of_a_model_from_itself_and_from_another(small):
    tokens, config, model, other = small
    tests = rules.examples(40, "test", config.forms)
    assert instruct.measure(model, model, tokens, tests, config)["kl"] == 0
    assert instruct.measure(model, None, tokens, tests, config)["kl"] is None
    other.dense.weight.data.mul_(3)
    assert instruct.measure(model, other, tokens, tests, config)["kl"] > 0.01


def test_a_step_raises_the_chosen_above_the_rejected(small):
    tokens, _, model, _ = small
    (one,) = rules.examples(1, "test", ("repeat",))
    prompt, chosen, rejected = tokens.prompt(one), tokens.answer(["the", "cat"]), tokens.answer(["a", "dog"])
    learner = Preferring(Learner(model.recipe), 0.5, 1e-3)
    learner.policy.load_state_dict(model.state_dict())
    inputs, labels = instruct.answer_batch([prompt] * 2, [chosen, rejected])
    reference = instruct.log_probs(model, [prompt] * 2, [chosen, rejected])
    loss = learner.loss(learner(inputs, labels), reference)
    assert loss.item() == pytest.approx(dpo_loss(*reference.split(1), *reference.split(1), 0.5).item(), abs=1e-5)
    optimizer = learner.configure_optimizers()
    for _ in range(5):
        optimizer.zero_grad()
        learner.loss(learner(inputs, labels), reference).backward()
        optimizer.step()
    after = instruct.log_probs(learner.policy.eval(), [prompt] * 2, [chosen, rejected])
    assert (after - reference)[0] > (after - reference)[1] + 0.01


def test_unknown_judges_are_refused():
    for judges in ((), ("kind",)):
        with pytest.raises(ValueError, match=r"judges are .* expected some of honest, flattered"):
            instruct.run(replace(PRESETS["smoke"], judges=judges), torch.device("cpu"))
