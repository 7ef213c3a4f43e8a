"""T5 on text: tokens with sentinels, what a step costs, what objectives make of a text, and that a task is learned."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.experiments import t5_pretrain
from d2lmini.experiments.t5 import text_objectives, text_to_text
from d2lmini.experiments.t5.text_objectives import OBJECTIVES, Crops
from d2lmini.experiments.t5.text_to_text import Pairs, Recipe, Tokens
from d2lmini.models.t5 import T5
from d2lmini.objectives import corrupted_lengths, restore_spans

TEXTS = ["l'été, où le garçon dort à l'hôtel.", "the boy sleeps <0> in summer."]


@pytest.fixture(scope="module")
def tokens():
    return Tokens.train(TEXTS, 330, num_sentinels=20)


def test_texts_survive_with_their_accents(tokens):
    encoded = tokens.encode_batch(TEXTS)
    assert [tokens.decode(ids) for ids in encoded] == TEXTS  # what looks like a sentinel is none
    assert not {index for ids in encoded for index in ids} & set(tokens.sentinels)
    assert tokens.sentinels == list(range(len(tokens) - 20, len(tokens)))
    assert all(ids[-1] == tokens.eos for ids in encoded)
    assert tokens.decode([*encoded[0], *encoded[1]]) == TEXTS[0]  # nothing after <eos>


def test_sentinels_are_seen(tokens):
    ids = tokens.encode_batch(["the boy sleeps"])[0][:-1]
    word = len(tokens.tokenizer.encode("the"))
    a, b = tokens.sentinels[:2]
    assert tokens.decode([*ids[:word], a, *ids[word:], b]) == "the <0> boy sleeps <1>"


@pytest.mark.parametrize("tied", [True, False])
def test_flops_are_those_counted(tokens, tied):
    model = T5(text_to_text.with_tokens(Recipe().model, tokens)).train()
    S, T, B = 7, 5, 3
    inputs, targets = torch.randint(4, 200, (B, S)), torch.randint(4, 200, (B, T))
    with FlopCounterMode(display=False) as counter:
        model.loss(model(inputs, model.shift_right(targets)), targets).backward()
    products = counter.get_flop_counts()["Global"]
    counted = sum(n for op, n in products.items() if "mm" in str(op) and "bmm" not in str(op))
    found = text_to_text.step_flops(model, S, T, B)
    assert counted <= found < 1.05 * counted  # norms and biases of positions are weights, too


def crops(tokens, name, length=40):
    recipe = t5_pretrain.Config(window=length, batch_size=6, val_batches=2, steps=4, checks=2)
    text = torch.randint(4, len(tokens.tokenizer), (300,), generator=torch.Generator().manual_seed(1))
    return Crops(text, text, tokens, OBJECTIVES[name], recipe), text.tolist()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives(tokens, name):
    data, text = crops(tokens, name)
    inputs, shifted, valid_lens, targets = next(iter(data.fixed(1)))
    assert (valid_lens == inputs.shape[1]).all() and (inputs[:, -1] == tokens.eos).all()
    assert (shifted[:, 0] == tokens.start).all() and torch.equal(shifted[:, 1:], targets[:, :-1])
    assert (targets[:, -1] == tokens.eos).all()
    windows = {tuple(text[i : i + 40]) for i in range(len(text) - 39)}
    if name.startswith("spans"):
        mean = float(name.split()[-1])
        lengths = corrupted_lengths(40, text_objectives.NOISE, mean, closing=False, eos=True)
        assert (inputs.shape[1], targets.shape[1]) == lengths
        whole = restore_spans(inputs, targets, tokens.sentinels, eos=tokens.eos)
    elif name == "prefix":
        assert inputs.shape[1] == targets.shape[1] == 21
        whole = [[*a[:-1], *b[:-1]] for a, b in zip(inputs.tolist(), targets.tolist(), strict=True)]
    else:
        whole = targets[:, :-1].tolist()
        changed = inputs != targets
        if name == "masked":
            assert (changed.sum(1) == 6).all() and set(inputs[changed].tolist()) == {tokens.sentinels[0]}
        else:
            assert torch.equal(inputs.sort().values, targets.sort().values) and changed.any(1).all()
    assert all(tuple(row) in windows for row in whole)


def test_validation_is_the_same_each_time_and_training_is_not(tokens):
    data, _ = crops(tokens, "spans of 3")

    def first(loader):
        return next(iter(loader))[0]

    assert torch.equal(first(data.val_dataloader()), first(data.val_dataloader()))
    assert not torch.equal(first(data.train_dataloader()), first(data.train_dataloader()))
    assert (len(data.train_dataloader()), len(data.val_dataloader())) == (2, 2)


def test_an_unknown_objective_is_refused(tokens):
    with pytest.raises(ValueError, match="there is no objective 'rhyme', expected one of spans of 1"):
        t5_pretrain.pretrain(t5_pretrain.PRESETS["smoke"], "rhyme", tokens, [torch.arange(99)] * 2, torch.device("cpu"))


def test_spans_by_their_sentinels(tokens):
    a, b = tokens.sentinels[:2]
    assert t5_pretrain.by_sentinel([9, a, 5, 6, b, 7, a, 8, tokens.eos, 4], tokens) == {a: [5, 6], b: [7]}


@pytest.mark.train
def test_a_task_is_learned_and_answered_in_order(tokens):
    pairs = [tokens.encode_batch(pair) for pair in (("the boy", "dort"), ("the boy sleeps in", "été"), ("in", "à"))]
    recipe = Recipe(batch_size=8, steps=60, checks=1, val_batches=1)
    data = Pairs(tokens, [pairs], [pairs], [1.0], recipe)
    model, history = text_to_text.train(recipe, tokens, data, torch.device("cpu"), say=None)
    assert history["val_loss"][-1] < 0.1
    found = text_to_text.answers(model, tokens, [ids for ids, _ in pairs], 6, batch_size=2)
    assert found == ["dort", "été", "à"]
    _, history = text_to_text.train(
        Recipe(batch_size=8, steps=1, checks=1, lr=0.0, val_batches=1),
        tokens,
        data,
        torch.device("cpu"),
        weights=model.state_dict(),
        say=None,
    )
    assert history["val_loss"][-1] < 0.1  # it began with the weights that it was given
