"""Low-rank adaptation: nothing changes at first, adapters alone learn, merged or not, kept alone, what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gpt_forms import FORMS
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
from d2lmini.quantized import QuantizedLinear
from d2lmini.training import DataModule, Trainer


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


@pytest.mark.parametrize("quantized", [False, True])
def test_at_the_start_a_model_is_what_it_was(quantized):
    model = d2l.quantize_model(toy()) if quantized else toy()
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


@pytest.mark.parametrize("quantized", [False, True])
def test_only_adapters_learn_and_they_do(quantized):
    model = d2l.quantize_model(toy()) if quantized else toy()
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
    for old, new in zip(weights, adapters_of(model).values(), strict=True):
        torch.testing.assert_close(new.weight, old + new.change())
    with pytest.raises(ValueError, match="in the weight already: unmerge it first"):
        merge_adapters(model)
    unmerge_adapters(model)
    assert torch.equal(model(TOKENS), wanted)
    for old, new in zip(weights, adapters_of(model).values(), strict=True):
        assert torch.equal(new.base.weight, old)
    with pytest.raises(ValueError, match="not in the weight: merge it first"):
        unmerge_adapters(model)


def test_few_bits_do_not_merge():
    model = adapt(d2l.quantize_model(toy()), 2)
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
        ({"rank": 0}, ValueError, "rank is 0, expected an integer, 1 to 12: the layer takes 12 features to 12"),
        ({"rank": 13}, ValueError, "rank is 13, expected an integer, 1 to 12"),
        ({"rank": 2.0}, ValueError, "rank is 2.0, expected an integer"),
        ({"rank": True}, ValueError, "rank is True, expected an integer"),
        ({"rank": "2"}, ValueError, "rank is '2', expected an integer"),
        ({"rank": None}, ValueError, "rank is None, expected an integer"),
        ({"rank": 2, "alpha": 0}, ValueError, "alpha is 0, expected a number above 0"),
        ({"rank": 2, "alpha": float("nan")}, ValueError, "alpha is nan, expected a number above 0"),
        ({"rank": 2, "alpha": "4"}, ValueError, "alpha is '4', expected a number above 0"),
        ({"rank": 2, "alpha": True}, ValueError, "alpha is True, expected a number above 0"),
        ({"rank": 2, "where": "W_q"}, TypeError, "where is 'W_q', expected a list of names"),
        ({"rank": 2, "where": None}, TypeError, "where is None, expected a list of names"),
        ({"rank": 2, "where": ["W_q", 1]}, ValueError, "no linear layer 1, only W_k"),
        ({"rank": 2, "where": ["q_proj"]}, ValueError, "no linear layer 'q_proj', only W_k, W_o, W_q, W_v, dense"),
        ({"rank": 2, "where": []}, ValueError, "where names no linear layer, expected some of W_k, W_o, W_q"),
        ({"rank": 2, "where": (name for name in ())}, ValueError, "where names no linear layer"),
    ],
)
def test_what_is_refused(options, error, message):
    model = toy()
    with pytest.raises(error, match=message):
        adapt(model, **options)
    assert all(p.requires_grad for p in model.parameters()), "the model is as it was"


def test_twice_adapted():
    model = adapt(toy(), 2)
    for again in (lambda: adapt(model, 2, ["W_k"]), lambda: load_adapters(model, adapter_state(model))):
        with pytest.raises(ValueError, match="the model has adapters already"):
            again()
    with pytest.raises(TypeError, match="the base is a LowRankAdapter"):
        LowRankAdapter(adapters_of(model)["blks.0.attention.W_q"], 2)


@pytest.mark.parametrize("call", [lambda x: adapt(x, 2), lambda x: load_adapters(x, {}), adapters_of, adapter_state])
def test_what_is_no_model(call):
    for wrong in ("gpt2", 3, None, d2l.GPTConfig(), d2l.GPT):
        with pytest.raises(TypeError, match=f"the model is a {type(wrong).__name__}, expected a torch.nn.Module"):
            call(wrong)


def test_numbers_of_numpy_and_names_of_any_iterable():
    named = adapt(toy(), np.int64(2), (name for name in ("W_q", "W_v")), np.float32(3.0))
    assert list(adapters_of(named)) == list(adapters_of(adapt(toy(), 2)))
    assert all(adapter.factor == 1.5 for adapter in adapters_of(named).values())
    for names in ({"W_q"}, dict(W_q=1), map(str, ["W_q"])):
        assert list(adapters_of(adapt(toy(), 2, names))) == ["blks.0.attention.W_q", "blks.1.attention.W_q"]


def test_a_model_that_is_itself_a_linear_layer():
    linear = nn.Linear(8, 8)
    state = adapter_state(LowRankAdapter(nn.Linear(8, 8), 2))
    for call in (lambda: adapt(linear, 2, [""]), lambda: load_adapters(linear, state)):
        with pytest.raises(ValueError, match=r"the model is itself a linear layer: .* LowRankAdapter\(linear, rank\)"):
            call()
    assert not list(linear.children()) and linear.weight.requires_grad


@pytest.mark.parametrize("where", ["a", "b", "c.0"])
def test_a_layer_of_two_names_is_adapted_under_both(where):
    net = nn.Module()
    net.a = net.b = nn.Linear(8, 8)
    net.c = nn.Sequential(net.a, nn.ReLU(), nn.Linear(8, 8))
    state = adapter_state(shaken(adapt(net, 1, [where])))
    assert isinstance(net.a, LowRankAdapter) and net.a is net.b is net.c[0] and type(net.c[2]) is nn.Linear
    other = nn.Module()
    other.a = other.b = copy.deepcopy(net.a.base)
    load_adapters(other, state)
    assert other.a is other.b and torch.equal(other.a.weight, net.a.weight)


def test_a_model_without_adapters():
    for call in (adapter_state, merge_adapters, unmerge_adapters, adapters_of):
        with pytest.raises(ValueError, match="no adapters: call adapt first"):
            call(toy())


def test_a_state_of_another_model():
    state = adapter_state(adapt(toy(), 2))
    with pytest.raises(ValueError, match=r"shapes \(12, 2\) and \(2, 12\), but the layer takes 16 features to 16"):
        load_adapters(toy(num_hiddens=16), state)
    with pytest.raises(ValueError, match=r"adapter of 'blks.0.attention.W_q' .* of another model\?"):
        load_adapters(nn.Sequential(nn.Linear(12, 12)), state)
    with pytest.raises(ValueError, match="does not fit"):
        load_adapters(toy(), {key: x for key, x in state.items() if "factor" not in key})
    with pytest.raises(ValueError, match="the state is empty"):
        load_adapters(toy(), {})
    with pytest.raises(TypeError, match="the state is a list, expected what adapter_state gives"):
        load_adapters(toy(), list(state))


LAST = "blks.1.attention.W_v"
DAMAGED = {
    "NaN": {f"{LAST}.up": torch.full((12, 2), torch.nan)},
    "infinite": {f"{LAST}.down": torch.full((2, 12), torch.inf)},
    "a factor of NaN": {f"{LAST}.factor": torch.tensor(torch.nan)},
    "a factor below 0": {f"{LAST}.factor": torch.tensor(-1.0)},
    "several factors": {f"{LAST}.factor": torch.ones(2)},
    "a part too many": {f"{LAST}.gate": torch.ones(2)},
    "a layer too many": {"blks.2.attention.W_q.up": torch.ones(12, 2)},
    "another form": {f"{LAST}.down": torch.ones(2, 12, 1)},
    "other ranks": {f"{LAST}.down": torch.ones(3, 12)},
    "a rank of 0": {f"{LAST}.down": torch.ones(0, 12), f"{LAST}.up": torch.ones(12, 0)},
    "a rank of 13": {f"{LAST}.down": torch.ones(13, 12), f"{LAST}.up": torch.ones(12, 13)},
    "no tensor": {f"{LAST}.up": [[1.0]]},
    "integers": {f"{LAST}.up": torch.ones(12, 2).long()},
    "a name that is no str": {3: torch.ones(2)},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_state_leaves_the_model_as_it_was(damage):
    model, state = toy(), adapter_state(adapt(toy(), 2))
    with pytest.raises(ValueError, match="the state's adapter of"):
        load_adapters(model, state | DAMAGED[damage])
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(ValueError, match="no adapters"):
        adapters_of(model)


def test_a_state_that_half_precision_cannot_hold():
    state = adapter_state(adapt(toy(), 2))
    state[f"{LAST}.up"] = torch.full((12, 2), 1e6)
    with pytest.raises(ValueError, match=r"adapter of 'blks.1.attention.W_v' .* torch.float16"):
        load_adapters(toy().half(), state)
    assert load_adapters(toy().bfloat16(), state)(TOKENS).dtype == torch.bfloat16


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
    with pytest.raises(ValueError, match="rank is 4, expected an integer, 1 to 2"):
        adapt(layers, 4, ["0", "1"])
    assert all(p.requires_grad for p in layers.parameters())
    mixed = nn.Sequential(nn.Linear(8, 8), QuantizedLinear.from_linear(nn.Linear(8, 8)))
    with pytest.raises(TypeError, match="few bits"):
        merge_adapters(adapt(mixed, 2, ["0", "1"]))
    assert not mixed[0].merged


# ---- merged


def test_some_merged_and_some_not():
    """All or none: what is said of one is done to none."""
    model = shaken(adapt(toy(), 2))
    wanted = model(TOKENS)
    first, *others = adapters_of(model).values()
    first.merge()
    for call in (merge_adapters, unmerge_adapters):
        with pytest.raises(ValueError):
            call(model)
        assert [adapter.merged for adapter in (first, *others)] == [True, False, False, False]
        torch.testing.assert_close(model(TOKENS), wanted)
    first.unmerge()
    assert torch.equal(unmerge_adapters(merge_adapters(model))(TOKENS), wanted)


STATES = {
    "a state dict": lambda model: model.state_dict(),
    "one that is assigned": lambda model: copy.deepcopy(model.state_dict()),
    "a pickle": lambda model: pickle.loads(pickle.dumps(model)).state_dict(),
}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("way", STATES)
def test_a_state_counts_the_change_once(there, here, way):
    where = ["W_q", "dense"]  # the last one shares its weight with the embedding
    model, other = shaken(adapt(toy(), 2, where)), shaken(adapt(toy(1), 2, where, alpha=7), seed=3)
    wanted = model(TOKENS)
    if there:
        merge_adapters(model)
    if here:
        merge_adapters(other)
    other.load_state_dict(STATES[way](model), assign=way == "one that is assigned")
    torch.testing.assert_close(other(TOKENS), wanted)
    if here:
        unmerge_adapters(other)
    assert torch.equal(other(TOKENS), wanted)


class Text(DataModule):
    def get_dataloader(self, train):
        X = torch.randint(11, (8, 9), generator=torch.Generator().manual_seed(0))
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[:, :-1], X[:, 1:]), 4)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("here", [False, True])
def test_a_run_goes_on_with_the_change_counted_once(there, here, tmp_path):
    """Also where the last norm learns beside adapters that are merged."""

    def run(model, merged):
        if merged:
            merge_adapters(model.requires_grad_(False))
        model.norm.requires_grad_(True)
        Trainer(1, checkpoint=tmp_path, resume=True).fit(model, Text())
        return model

    model = run(shaken(adapt(toy(), 2, ["W_q", "dense"])), there)
    other = run(shaken(adapt(toy(1), 2, ["W_q", "dense"]), seed=3), here)
    torch.testing.assert_close(other(TOKENS), model(TOKENS))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_ties_and_weights_are_as_before_after_merging_and_unmerging(dtype):
    model = shaken(adapt(toy().to(dtype), 3, ["dense", "W_q"], alpha=5))
    before, wanted = copy.deepcopy(model.state_dict()), model(TOKENS)
    other = copy.deepcopy(merge_adapters(model))
    for one in (model, other):
        assert one.dense.base.weight is one.embedding.weight
        assert torch.equal(unmerge_adapters(one)(TOKENS), wanted)
        assert all(torch.equal(x, before[name]) for name, x in one.state_dict().items())


def test_two_layers_that_share_a_weight_go_on_sharing_it():
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    net[1].weight = net[0].weight
    unmerge_adapters(merge_adapters(shaken(adapt(net, 2, ["0", "1"]))))
    assert net[0].base.weight is net[1].base.weight


def test_a_merged_model_that_is_rounded():
    """What is rounded is the sum, and there is nothing to be taken out again."""
    model = merge_adapters(shaken(adapt(toy(), 2, ["W_q", "dense1"])))
    found = d2l.quantize_model(model, embedding_bits=None)
    by_hand = toy()
    for name, adapter in adapters_of(model).items():
        by_hand.get_submodule(name).weight.data.copy_(adapter.weight)
    torch.testing.assert_close(found(TOKENS), d2l.quantize_model(by_hand, embedding_bits=None)(TOKENS))
    with pytest.raises(ValueError, match="no adapters: call adapt first"):
        unmerge_adapters(found)
    torch.testing.assert_close(unmerge_adapters(model)(TOKENS), merge_adapters(model)(TOKENS))


def test_a_merged_model_does_not_learn_and_says_so():
    model = merge_adapters(shaken(adapt(toy(), 2)))
    with pytest.raises(RuntimeError, match="in the weight, where it does not learn: call unmerge_adapters"):
        F.cross_entropy(model(TOKENS[:, :-1])[0], TOKENS[0, 1:]).backward()
    with pytest.raises(RuntimeError, match="where it does not learn"):
        Trainer(1).fit(model, Text())
    adapter, X = adapters_of(model.eval())["blks.0.attention.W_q"], torch.randn(3, 12, requires_grad=True)
    (gradient,) = torch.autograd.grad(adapter(X).sum(), X)  # what is asked of the input alone goes through
    torch.testing.assert_close(gradient, adapter.weight.sum(0).expand(3, 12))
    model.requires_grad_(False)
    model.norm.requires_grad_(True)
    model(TOKENS).sum().backward()
    assert model.norm.weight.grad is not None


def test_what_computes_more_than_a_product_is_not_merged():
    class Rounded(nn.Linear):
        def forward(self, X):
            return super().forward(X).round()

    adapter = LowRankAdapter(Rounded(4, 4), 2)
    with pytest.raises(TypeError, match="a Rounded has a forward of its own"):
        adapter.merge()
    assert not adapter.merged


# ---- dtypes and forms


@pytest.mark.parametrize("bits", [None, 8, 4])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_an_adapter_has_the_dtype_of_the_layer(dtype, bias, bits):
    """One of few bits, too, whose weight is of integers; and cast before or after."""

    def made(model):
        return model if bits is None else d2l.quantize_model(model, bits)

    for model in (
        adapt(made(toy(use_bias=bias).to(dtype)), 2),
        adapt(made(toy(use_bias=bias)).to(dtype), 2),
        adapt(made(toy(use_bias=bias)), 2).to(dtype),
        load_adapters(made(toy(use_bias=bias).to(dtype)), adapter_state(adapt(made(toy(use_bias=bias)), 2))),
    ):
        assert {p.dtype for p in model.parameters()} == {dtype}
        scores = model(TOKENS)
        assert scores.dtype == dtype and scores.isfinite().all()
        scores.sum().backward()
        assert all(adapter.up.grad.dtype == dtype for adapter in adapters_of(model).values())


def test_the_factor_is_exact_in_any_dtype():
    for dtype in (torch.bfloat16, torch.float64):
        model = adapt(toy().to(dtype), 3, alpha=5)
        assert all(adapter.factor.item() == 5 / 3 for adapter in adapters_of(model).values())
        assert all(x.item() == 5 / 3 for name, x in adapter_state(model).items() if "factor" in name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits", [None, 8])
def test_every_form_is_adapted_merged_kept_and_read(form, bits):
    torch.manual_seed(0)
    base = d2l.GPT(FORMS[form]).eval()
    for parameter in base.parameters():
        nn.init.normal_(parameter, std=0.2)
    base = base if bits is None else d2l.quantize_model(base, bits)
    model, where = copy.deepcopy(base), ["W_q", "W_k", "W_v", "W_o", "dense1", "dense"]
    assert torch.equal(adapt(model, 2, where)(TOKENS), base(TOKENS))
    wanted = shaken(model)(TOKENS)
    assert torch.equal(load_adapters(copy.deepcopy(base), adapter_state(model))(TOKENS), wanted)
    if bits is None:
        torch.testing.assert_close(merge_adapters(model)(TOKENS), wanted, rtol=1e-4, atol=1e-4)
