"""Low-rank adaptation: nothing changes at first, adapters alone learn, merged or not, kept alone, what is refused."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import d2lmini as d2l
from d2lmini.adapters import (
    LowRankAdapter,
    adapt,
    adapter_state,
    adapters_of,
    load_adapters,
    merge_adapters,
    unmerge_adapters,
)
from d2lmini.quantised import QuantisedLinear


def toy(seed=0, num_hiddens=12, **options):
    torch.manual_seed(seed)
    model = d2l.GPT(d2l.GPTConfig(11, 16, num_hiddens, 2, 2, dropout=0.0, **options)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def shaken(model, seed=1):
    """An adapted model whose changes are not zero."""
    draw = torch.Generator().manual_seed(seed)
    for adapter in adapters_of(model).values():
        adapter.up.data.copy_(torch.randn(adapter.up.shape, generator=draw))
    return model


TOKENS = torch.arange(11)[None]


@pytest.mark.parametrize("quantised", [False, True])
def test_at_the_start_a_model_is_what_it_was(quantised):
    model = d2l.quantise_model(toy()) if quantised else toy()
    before = model(TOKENS)
    assert adapt(model, 3) is model
    assert torch.equal(model(TOKENS), before)
    assert list(adapters_of(model)) == [f"blks.{i}.attention.{W}" for i in range(2) for W in ("W_q", "W_v")]


def test_the_change_is_a_scaled_product():
    torch.manual_seed(0)
    linear = nn.Linear(5, 7).double()
    adapter = LowRankAdapter(linear, 2, alpha=3)
    adapter.up.data.normal_()
    X = torch.randn(4, 5, dtype=torch.float64)
    change = 1.5 * adapter.up @ adapter.down
    torch.testing.assert_close(adapter(X), F.linear(X, linear.weight + change, linear.bias))
    torch.testing.assert_close(adapter.weight, linear.weight + change)
    assert torch.linalg.matrix_rank(adapter.change()) == 2 and adapter.bias is linear.bias
    assert LowRankAdapter(nn.Linear(5, 7), 2).factor == 1
    wide = LowRankAdapter(nn.Linear(10_000, 2), 2)
    assert abs(wide.down.std().item() * 100 - 1) < 0.05


@pytest.mark.parametrize("quantised", [False, True])
def test_only_adapters_learn_and_they_do(quantised):
    model = d2l.quantise_model(toy()) if quantised else toy()
    adapt(model, 2, alpha=4)
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert learning == {f"{name}.{part}" for name in adapters_of(model) for part in ("up", "down")}
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 4 * 2 * (12 + 12)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.05)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(model(TOKENS[:, :-1])[0], TOKENS[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.75 * losses[0]
    changed = {name for name, x in model.state_dict().items() if not torch.equal(x, before[name])}
    assert changed == learning


def test_merged_and_unmerged_are_equal():
    model = shaken(adapt(toy().double(), 3, alpha=6, where=("W_q", "W_k", "W_v", "W_o", "dense1")))
    weights = [adapter.base.weight.clone() for adapter in adapters_of(model).values()]
    wanted = model(TOKENS)
    assert merge_adapters(model) is model
    torch.testing.assert_close(model(TOKENS), wanted, rtol=1e-6, atol=1e-6)
    assert not any(
        torch.equal(old, new.base.weight) for old, new in zip(weights, adapters_of(model).values(), strict=True)
    )
    with pytest.raises(ValueError, match="in the weight already: unmerge it first"):
        merge_adapters(model)
    unmerge_adapters(model)
    torch.testing.assert_close(model(TOKENS), wanted, rtol=1e-6, atol=1e-6)
    for old, new in zip(weights, adapters_of(model).values(), strict=True):
        torch.testing.assert_close(new.base.weight, old, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="not in the weight: merge it first"):
        unmerge_adapters(model)


def test_few_bits_do_not_merge():
    model = adapt(d2l.quantise_model(toy()), 2)
    with pytest.raises(TypeError, match="in few bits, and a change cannot be added without rounding"):
        merge_adapters(model)


def test_a_model_writes_with_adapters_merged_or_not():
    """W_o, too: the cache asks for its shape."""
    model = shaken(adapt(toy(), 2, where=("W_q", "W_o")))
    assert model.empty_state(3).caches[0].keys.shape == (3, 2, 0, 6)
    written = [model.generate([[1, 2, 3]], 10, temperature=0).tokens.tolist()]
    text = [1, 2, 3]
    for _ in range(10):
        text.append(model(torch.tensor([text]))[0, -1].argmax().item())
    assert written[0][0] == text[3:] != toy().generate([[1, 2, 3]], 10, temperature=0).tokens[0].tolist()
    written.append(merge_adapters(model).generate([[1, 2, 3]], 10, temperature=0).tokens.tolist())
    written.append(d2l.for_decoding(model).generate([[1, 2, 3]], 10, temperature=0).tokens.tolist())
    assert written[0] == written[1] == written[2]


def test_what_was_learned_goes_alone_into_a_fresh_model():
    model = shaken(adapt(toy(), 2, alpha=5, where=["W_q", "blks.1.ffn.dense1"]))
    state = adapter_state(model)
    assert sorted(state) == sorted(f"{name}.{part}" for name in adapters_of(model) for part in ("down", "factor", "up"))
    assert sum(x.numel() for x in state.values()) == 2 * (2 * 24 + 1) + 2 * (12 + 48) + 1
    wanted = model(TOKENS)
    shaken(model, 5)  # what was kept is a copy
    fresh = load_adapters(toy(), state)
    assert torch.equal(fresh(TOKENS), wanted) and not torch.equal(model(TOKENS), wanted)
    assert {name for name, p in fresh.named_parameters() if p.requires_grad} == {
        name for name, p in model.named_parameters() if p.requires_grad
    }


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rank": 0}, ValueError, "rank is 0, expected 1 to 12: the layer takes 12 features to 12"),
        ({"rank": 13}, ValueError, "rank is 13, expected 1 to 12"),
        ({"rank": 2.0}, ValueError, "rank is 2.0, expected 1 to 12"),
        ({"rank": 2, "alpha": 0}, ValueError, "alpha is 0, expected above 0"),
        ({"rank": 2, "alpha": float("nan")}, ValueError, "alpha is nan, expected above 0"),
        ({"rank": 2, "where": "W_q"}, TypeError, "where is the str 'W_q', expected a list of names"),
        ({"rank": 2, "where": ["q_proj"]}, ValueError, "no linear layer 'q_proj', only W_k, W_o, W_q, W_v, dense"),
        ({"rank": 2, "where": []}, ValueError, "no linear layer"),
    ],
)
def test_what_is_refused(options, error, message):
    model = toy()
    with pytest.raises(error, match=message):
        adapt(model, **options)
    if options["rank"] == 2 and "alpha" not in options:  # a wrong name leaves the model as it was
        assert all(p.requires_grad for p in model.parameters())


def test_twice_adapted():
    model = adapt(toy(), 2)
    for again in (lambda: adapt(model, 2, ["W_k"]), lambda: load_adapters(model, adapter_state(model))):
        with pytest.raises(ValueError, match="the model has adapters already"):
            again()
    with pytest.raises(TypeError, match="the base is a LowRankAdapter"):
        LowRankAdapter(adapters_of(model)["blks.0.attention.W_q"], 2)


def test_a_model_without_adapters():
    for call in (adapter_state, merge_adapters, unmerge_adapters, adapters_of):
        with pytest.raises(ValueError, match="no adapters: call adapt first"):
            call(toy())


def test_a_state_of_another_model():
    state = adapter_state(adapt(toy(), 2))
    with pytest.raises(ValueError, match=r"shapes \(12, 2\) and \(2, 12\), but the layer takes 16 features to 16"):
        load_adapters(toy(num_hiddens=16), state)
    with pytest.raises(ValueError, match=r"an adapter of 'blks.0.attention.W_q', .* of another model\?"):
        load_adapters(nn.Sequential(nn.Linear(12, 12)), state)
    with pytest.raises(ValueError, match="does not fit"):
        load_adapters(toy(), {key: x for key, x in state.items() if "factor" not in key})
    with pytest.raises(ValueError, match="the state is empty"):
        load_adapters(toy(), {})


def test_a_weight_that_an_embedding_shares_stays_the_embeddings():
    model = shaken(adapt(toy(), 2, where=["dense"]))
    table, before = model.embedding.weight.clone(), model(TOKENS)
    merge_adapters(model)
    torch.testing.assert_close(model(TOKENS), before)
    assert torch.equal(model.embedding.weight, table)
    unmerge_adapters(model)
    torch.testing.assert_close(model(TOKENS), before)


def test_what_cannot_be_done_whole_is_not_begun():
    layers = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    with pytest.raises(ValueError, match="rank is 4, expected 1 to 2"):
        adapt(layers, 4, ["0", "1"])
    assert all(p.requires_grad for p in layers.parameters())
    mixed = nn.Sequential(nn.Linear(8, 8), QuantisedLinear.from_linear(nn.Linear(8, 8)))
    with pytest.raises(TypeError, match="few bits"):
        merge_adapters(adapt(mixed, 2, ["0", "1"]))
    assert not mixed[0].merged
