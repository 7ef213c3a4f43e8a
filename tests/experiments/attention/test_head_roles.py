"""The experiment on heads: what it calls aligned, what it measures, on a small model that is not trained."""

from dataclasses import replace

import pytest
import torch

from d2lmini import head_masks
from d2lmini.experiments import head_roles
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig


@pytest.fixture(scope="module")
def small():
    """A model of two blocks and two heads, the data, and batches of seven validation sentences."""
    config = replace(head_roles.PRESETS["smoke"], num_blks=2)
    data = head_roles.GrammarCorpus(config.num_pairs)
    torch.manual_seed(0)
    settings = TransformerConfig(len(data.tgt_vocab), 16, 32, 2, 2, dropout=0.0, label_smoothing=0.0)
    model = Transformer(settings, data.tgt_vocab["<pad>"]).eval()
    return model, data, head_roles.batches_of(data, "val", 7, size=4)


def test_heads_have_names(small):
    labels = [label for label, _, _ in head_roles.heads(small[0])]
    assert len(set(labels)) == 12 and labels[:2] == ["encoder 1.1", "encoder 1.2"] and "cross 2.2" in labels
    modules = dict(small[0].named_modules())
    for label, name, head in head_roles.heads(small[0]):
        where = {"encoder": "encoder.", "decoder": "attention1", "cross": "attention2"}[label.split()[0]]
        assert where in name and f"blks.{int(label[-3]) - 1}." in name and int(label[-1]) == head + 1
        assert isinstance(modules[name], head_roles.MultiHeadAttention)


def test_targets_are_the_true_places(small):
    _, data, groups = small
    for sentences, batch in groups:
        wanted = head_roles.targets(sentences, batch)
        for b, sentence in enumerate(sentences):
            S, T = len(sentence.source) + 1, len(sentence.target) + 1  # with <eos>
            allowed, places = wanted["cross"]
            assert {(s, t) for t, s in places["word to write"][b].nonzero().tolist()} == sentence.alignment
            read = {(s, t - 1) for t, s in places["word just read"][b].nonzero().tolist()}
            assert read == sentence.alignment
            assert allowed[b].sum() == S * T
            assert places["end"][b, 0].nonzero().tolist() == [[S - 1]]
            assert data.src_vocab.to_tokens(batch[0][b, S - 1]) == "<eos>"
            allowed, places = wanted["encoder"]
            assert allowed[b].sum() == S * S and places["previous"][b].nonzero().tolist()[0] == [1, 0]
            assert places["next"][b].sum() == S - 1
            allowed, places = wanted["decoder"]
            assert allowed[b].sum() == T * (T + 1) // 2 and places["begin"][b].sum() == T


def test_a_head_that_spreads_evenly_has_even_mass(small):
    model, _, groups = small
    with torch.no_grad():
        for name in head_roles.attentions(model):
            model.get_submodule(name).W_q.weight.zero_()
            model.get_submodule(name).W_q.bias.zero_()
    mass, even = head_roles.roles(model, groups)
    for head, places in mass.items():
        for role, value in places.items():
            assert value == pytest.approx(even[head.split()[0]][role], abs=1e-5)
    with torch.no_grad():
        for name in head_roles.attentions(model):
            torch.nn.init.normal_(model.get_submodule(name).W_q.weight)
    assert head_roles.roles(model, groups)[0] != mass


def test_the_gradient_is_that_of_each_sentence(small):
    model, _, groups = small
    got, step, tokens = head_roles.gradient_importance(model, groups), 1e-2, 0
    for label, name, head in (head_roles.heads(model)[i] for i in (1, 4, 11)):
        total, tokens = 0, 0
        for _, batch in groups:
            losses = []
            for factor in (1 - step, 1 + step):
                with head_masks(model, {name: torch.ones(2).index_fill(0, torch.tensor([head]), factor)}):
                    losses.append(head_roles.sentence_losses(model, batch)[0].detach().double())
            total += ((losses[1] - losses[0]) / (2 * step)).abs().sum().item()
            tokens += int((batch[-1] != model.tgt_pad).sum())
        assert got[label] == pytest.approx(total / tokens, rel=0.05, abs=1e-5)


def test_ablation_and_pruning_agree(small):
    model, _, groups = small
    whole, accuracy = head_roles.evaluate(model, groups)
    ablation = head_roles.ablation_importance(model, groups)
    order = list(ablation)
    curve = head_roles.prune(model, groups, order)
    assert curve[0] == (whole, accuracy) and len(curve) == 13
    assert curve[1][0] - whole == pytest.approx(ablation[order[0]], abs=1e-6)
    last = head_roles.last_heads(model, groups)
    assert last["encoder 1"]["all"] == whole and last["encoder 1"]["none"] == pytest.approx(curve[2][0], abs=1e-6)
    assert last["encoder 1"]["best"] == pytest.approx(min(ablation["encoder 1.1"], ablation["encoder 1.2"]) + whole)
    half = head_roles.evaluate(model, groups, [head_roles.heads(model)[0][1:]], factor=1.0)
    assert half[0] == pytest.approx(whole)


def test_correlation():
    first, second = {"a": 1.0, "b": 2.0, "c": 30.0}, {"c": 9.0, "b": 8.0, "a": 1.0}
    assert head_roles.correlation(first, second, ranks=True) == pytest.approx(1)
    assert 0 < head_roles.correlation(first, second) < 0.9
    assert head_roles.correlation(first, {"a": 3.0, "b": 2.0, "c": 1.0}, ranks=True) == pytest.approx(-1)


def test_free_heads():
    assert head_roles.free_heads([0.9, 0.895, 0.893, 0.85, 0.899]) == 2  # a later recovery does not count
    assert head_roles.free_heads([0.9, 0.5]) == 0
