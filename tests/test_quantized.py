"""Weights in 8 and 4 bits: codes by hand, what a layer gives, whole models with a shared table, what is refused."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gpt_forms import FORMS as GPT_FORMS
from torch import nn

import d2lmini as d2l
from d2lmini import quantized
from d2lmini.quantized import Quantized, QuantizedEmbedding, QuantizedLinear, quantize, quantize_model, weight_bytes

FORMS = [(8, None), (8, 4), (4, None), (4, 4), (4, 3)]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def toy(**options):
    torch.manual_seed(0)
    model = d2l.GPT(d2l.GPTConfig(11, 16, 12, 2, 2, dropout=0.0, **options)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def by_hand(row, bits):
    """One group, number by number in Python: its codes, and what they stand for."""
    kept = lambda x: torch.tensor(x).half().item()  # noqa: E731
    if bits == 8:
        scale, minimum = kept(max(map(abs, row)) / 127) or 1.0, 0.0
        codes = [max(-127, min(127, round(w / scale))) for w in row]
    else:
        minimum = kept(min(row))
        scale = kept((max(row) - minimum) / 15) or 1.0
        codes = [max(0, min(15, round((w - minimum) / scale))) for w in row]
    return codes, [minimum + scale * code for code in codes]


@pytest.mark.parametrize(("bits", "group"), FORMS)
def test_codes_are_those_by_hand(bits, group):
    weight = drawn(5, 12)
    found, size = quantize(weight, bits, group), group or 12
    codes = found.codes if bits == 8 else torch.cat([found.codes % 16, found.codes // 16], 1)
    for i, row in enumerate(weight.tolist()):
        for start in range(0, 12, size):
            wanted, values = by_hand(row[start : start + size], bits)
            assert codes[i, start : start + size].tolist() == wanted
            torch.testing.assert_close(found.dequantize()[i, start : start + size], torch.tensor(values))
    assert found.scale.dtype == torch.float16 and found.scale.shape == (5, 12 // size)
    assert found.num_bytes == 5 * (12 * bits // 8 + 12 // size * (2 if bits == 8 else 4))


@pytest.mark.parametrize(("bits", "group"), FORMS)
def test_a_number_is_off_by_half_a_scale_and_a_rounded_matrix_stays(bits, group):
    weight = drawn(7, 12, seed=1).double()
    found = quantize(weight, bits, group, scale_dtype=torch.float64)
    once = found.dequantize()
    assert once.dtype == torch.float64
    scale = found.scale.repeat_interleave(12 // found.scale.shape[1], 1)
    assert ((once - weight).abs() <= scale / 2 * (1 + 1e-9)).all() and (once - weight).abs().max() > scale.max() / 5
    torch.testing.assert_close(quantize(once, bits, group, scale_dtype=torch.float64).dequantize(), once)


def test_smaller_groups_and_more_bits_are_nearer():
    weight = drawn(64, 64) * torch.rand(64, 64, generator=torch.Generator().manual_seed(1))
    off = {
        form: (quantize(weight, *form).dequantize() - weight).square().mean() for form in ((8, None), (8, 8), (4, 8))
    }
    assert 2 * off[8, 8] < off[8, None] and 20 * off[8, None] < off[4, 8]
    assert off[4, 8] < (quantize(weight, 4).dequantize() - weight).square().mean() / 1.5


@pytest.mark.parametrize("bits", [8, 4])
def test_rows_that_are_zero_constant_tiny_or_huge(bits):
    weight = torch.tensor([[0.0] * 4, [-3.0] * 4, [1e-9, -1e-9, 0, 1e-9], [6e4, -6e4, 1.0, 2.0]])
    found = quantize(weight, bits).dequantize()
    assert found[0].tolist() == [0] * 4 and found.isfinite().all()
    torch.testing.assert_close(found[1], weight[1], rtol=1e-3, atol=0)
    assert found[2].abs().max() < 1e-5
    torch.testing.assert_close(found[3, :2], weight[3, :2], rtol=1e-3, atol=0)
    assert not torch.equal(weight, found)


@pytest.mark.parametrize(
    ("weight", "options", "message"),
    [
        (drawn(2, 4), {"bits": 16}, "bits is 16, expected 8 or 4"),
        (drawn(2, 4), {"bits": True}, "bits is True"),
        (drawn(2, 6), {"group": 4}, "group is 4, expected a divisor of the row's 6 numbers"),
        (drawn(2, 6), {"group": 0}, "group is 0, expected a divisor"),
        (drawn(2, 5), {"group": 2.5}, "group is 2.5, expected a divisor"),
        (drawn(2, 4), {"group": True}, "group is True, expected a divisor"),
        (drawn(2, 4), {"group": "4"}, "group is '4', expected a divisor"),
        (drawn(2, 4), {"bits": "8"}, "bits is '8', expected 8 or 4"),
        (drawn(2, 5), {"bits": 4}, "a row has 5 numbers, expected an even number"),
        (torch.tensor([[1.0, torch.nan]]), {}, "NaN or infinite"),
        (torch.tensor([[1.0, -torch.inf]]), {"bits": 4}, "NaN or infinite"),
        (torch.zeros(0, 4), {}, r"shape \(0, 4\), expected floating numbers \(R, C\)"),
        (torch.zeros(3, 0), {}, r"shape \(3, 0\)"),
        (torch.zeros(3), {}, r"shape \(3,\)"),
        (torch.zeros(3, 2).long(), {}, "torch.int64"),
        (torch.tensor([[1e9, 0.0]]), {}, r"a scale is 7.87e\+06, more than torch.float16 holds"),
        (torch.tensor([[1e6, 0.0]]), {"bits": 4}, r"more than torch.float16 holds: give another scale_dtype"),
    ],
)
def test_what_is_refused(weight, options, message):
    with pytest.raises(ValueError, match=message):
        quantize(weight, **options)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64, "float16", None, 16], ids=str)
def test_scales_are_floating(dtype):
    with pytest.raises(
        TypeError, match=f"scale_dtype is {dtype!r}, expected torch.float16, torch.bfloat16, torch.float3"
    ):
        quantize(drawn(2, 4), scale_dtype=dtype)


def test_a_weight_that_is_no_tensor():
    for weight in ([[1.0, 2.0]], np.ones((2, 2)), "W_q", None):
        with pytest.raises(TypeError, match=f"the weight is a {type(weight).__name__}, expected a tensor"):
            quantize(weight)
    for linear in (nn.Embedding(3, 4), "W_q", drawn(2, 4)):
        with pytest.raises(TypeError, match=f"a {type(linear).__name__}, expected a torch.nn.Linear"):
            QuantizedLinear.from_linear(linear)
    for made in (lambda: QuantizedLinear(drawn(2, 4)), lambda: QuantizedEmbedding([1, 2, 3])):
        with pytest.raises(TypeError, match=r"expected a Quantized: quantize\(weight\)"):
            made()


@pytest.mark.parametrize("make", [np.int64, np.uint8, torch.tensor])
def test_whole_numbers_of_numpy(make):
    for found, wanted in zip(quantize(drawn(2, 8), make(4), make(2)), quantize(drawn(2, 8), 4, 2), strict=True):
        assert torch.equal(found, wanted)


# ---- a layer


@pytest.mark.parametrize(("bits", "group"), FORMS)
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_the_dequantized_one(bits, group, bias):
    torch.manual_seed(2)
    linear = nn.Linear(12, 5, bias=bias)
    layer = QuantizedLinear.from_linear(linear, bits, group)
    weight = quantize(linear.weight, bits, group).dequantize()
    for X in (drawn(2, 3, 12), drawn(12), drawn(4, 12).double()):
        if bias and X.dtype == torch.float64:
            layer, linear = layer.double(), linear.double()
        wanted = F.linear(X, weight.to(X.dtype), linear.bias)
        torch.testing.assert_close(layer(X), wanted, rtol=1e-5, atol=1e-6)
    assert (layer.in_features, layer.out_features) == (12, 5) and f"bits={bits}, group={group or 12}" in repr(layer)
    torch.testing.assert_close(layer.weight, weight.to(layer.weight.dtype))
    assert sum(p.requires_grad for p in layer.parameters()) == bias
    X = drawn(3, 12).to(layer.weight.dtype).requires_grad_()
    (layer(X) ** 2).sum().backward()
    torch.testing.assert_close(X.grad, 2 * layer(X).detach() @ layer.weight)


@pytest.mark.parametrize(("bits", "group"), FORMS)
def test_a_layer_that_is_dequantized_part_by_part(bits, group, monkeypatch):
    monkeypatch.setattr(quantized, "_AT_ONCE", 3 * 12)  # three rows, three, and one
    torch.manual_seed(4)
    linear = nn.Linear(12, 7)
    layer, X = QuantizedLinear.from_linear(linear, bits, group), drawn(2, 12)
    torch.testing.assert_close(layer(X), F.linear(X, layer.weight, linear.bias))


@pytest.mark.parametrize(("bits", "group"), FORMS)
def test_a_state_dict_goes_into_another_layer(bits, group):
    torch.manual_seed(3)
    first, second = (QuantizedLinear.from_linear(nn.Linear(12, 5), bits, group) for _ in range(2))
    X = drawn(2, 12)
    assert not torch.equal(first(X), second(X))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(X), second(X))


def test_a_bias_of_another_size():
    with pytest.raises(ValueError, match=r"the bias has shape \(3,\), expected \(5,\)"):
        QuantizedLinear(quantize(drawn(5, 4)), torch.zeros(3))


def test_rows_of_a_matrix():
    for bits in (8, 4):
        found, places = quantize(drawn(6, 8), bits, 4), torch.tensor([[1, 5], [0, 1]])
        assert torch.equal(found.rows(places).dequantize(), found.dequantize()[places])


@pytest.mark.parametrize(
    "X", [torch.ones(2, 4).long(), torch.ones(2, 4) > 0, torch.ones(2, 5), torch.ones(4, 1), torch.tensor(1.0)], ids=str
)
@pytest.mark.parametrize("bits", [8, 4])
def test_inputs_that_do_not_fit(X, bits):
    with pytest.raises(ValueError, match=r"X is torch.* of shape .*, expected floating numbers \(..., 4\)"):
        QuantizedLinear(quantize(drawn(6, 4), bits))(X)


@pytest.mark.parametrize("tokens", [torch.ones(2), torch.ones(2) > 0, torch.ones(2, dtype=torch.complex64)], ids=str)
def test_tokens_that_are_no_integers(tokens):
    with pytest.raises(TypeError, match=f"tokens are {tokens.dtype}, expected integers"):
        QuantizedEmbedding(quantize(drawn(5, 4)))(tokens)


def test_tokens_of_any_integers():
    table, tokens = QuantizedEmbedding(quantize(drawn(5, 4))), torch.tensor([[1, 0], [4, 1]])
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):  # to torch uint8 is a mask
        assert torch.equal(table(tokens.to(dtype)), table(tokens))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("bits", [8, 4])
def test_a_weight_is_of_the_dtype_of_the_layer(bits, dtype):
    """Which is that of what was rounded until the layer is cast; scales are not cast."""
    linear = nn.Linear(12, 5, bias=False)
    for layer in (
        QuantizedLinear.from_linear(linear.to(dtype), bits),
        quantize_model(linear.to(dtype), bits),
        QuantizedLinear.from_linear(linear.float(), bits).to(dtype),
        copy.deepcopy(QuantizedLinear.from_linear(linear.float(), bits)).to(dtype),
    ):
        assert layer.weight.dtype == dtype and layer.scale.dtype == torch.float16


# ---- a model


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("bits", "group"), FORMS)
def test_a_model_computes_with_the_rounded_weights(bits, group, tied):
    model, tokens = toy(tie_weights=tied), torch.arange(11)[None]
    before = copy.deepcopy(model.state_dict())
    found = quantize_model(model, bits, group)
    by_weights = copy.deepcopy(model)  # the same rounding, in float
    for name, module in by_weights.named_modules():
        if type(module) is nn.Linear:
            width = 8 if name == "dense" and tied else bits
            module.weight.data.copy_(quantize(module.weight, width, group).dequantize())
    torch.testing.assert_close(found(tokens), by_weights(tokens))
    assert (found(tokens) - model(tokens)).abs().max() > 1e-4
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert not [name for name, module in found.named_modules() if type(module) is nn.Linear]
    assert isinstance(found.embedding, QuantizedEmbedding) == tied
    options = {"temperature": 0}
    written = [m.generate([[1, 2, 3]], 8, **options).tokens.tolist() for m in (found, by_weights)]
    assert written[0] == written[1]


def test_a_shared_table_is_held_once_and_counted_once():
    model = toy(use_bias=False)
    assert weight_bytes(model) == 4 * sum(p.numel() for p in model.parameters())
    found = quantize_model(model, 4, 4)
    assert found.dense.codes is found.embedding.codes and found.dense.codes.dtype == torch.int8
    matrices = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and "embedding" not in name)
    others = 4 * sum(p.numel() for name, p in model.named_parameters() if p.dim() == 1 or "pos_embedding" in name)
    assert weight_bytes(found) == matrices // 2 + matrices // 4 * 4 + 11 * 12 + 11 * 3 * 2 + others
    whole = quantize_model(model, 4, 4, embedding_bits=None)
    assert whole.dense.weight is whole.embedding.weight is not model.embedding.weight
    assert type(quantize_model(model, 4, 4, embedding_bits=4).embedding.minimum) is torch.Tensor


def test_a_state_dict_goes_into_another_model():
    first, second = (quantize_model(model, 8) for model in (toy(), d2l.GPT(toy().config).eval()))
    tokens = torch.arange(11)[None]
    assert not torch.allclose(first(tokens), second(tokens))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(tokens), second(tokens)) and second.dense.codes is second.embedding.codes


def test_layers_that_are_left():
    model = toy(tie_weights=False)
    found = quantize_model(model, skip=["W_q", "blks.1.ffn.dense2", "dense"])
    left = [name for name, module in found.named_modules() if type(module) is nn.Linear]
    assert left == ["blks.0.attention.W_q", "blks.1.attention.W_q", "blks.1.ffn.dense2", "dense"]


def test_a_layer_that_is_used_twice_stays_one():
    layer = nn.Linear(4, 4)
    found = quantize_model(nn.Sequential(layer, nn.ReLU(), layer))
    assert found[0].codes is found[2].codes


def test_a_layer_of_two_names_is_one_module_and_so_is_its_bias():
    net = nn.Module()
    net.a = net.b = nn.Linear(4, 4)
    net.c = nn.Sequential(net.a)
    found = quantize_model(net)
    assert type(found.a) is QuantizedLinear and found.a is found.b is found.c[0]


def test_a_model_that_is_itself_a_linear_layer():
    linear = nn.Linear(8, 5)
    found = quantize_model(linear, 4)
    assert type(found) is QuantizedLinear and type(linear) is nn.Linear and not list(linear.children())
    X = drawn(2, 8)
    assert torch.equal(found(X), QuantizedLinear.from_linear(linear, 4)(X))


def test_names_may_come_from_a_generator():
    found = quantize_model(toy(tie_weights=False), skip=(name for name in ("W_q", "dense")))
    assert [name.rpartition(".")[2] for name, module in found.named_modules() if type(module) is nn.Linear] == [
        *("W_q", "W_q"),
        "dense",
    ]


@torch.no_grad()
@pytest.mark.parametrize("form", GPT_FORMS)
def test_every_form_of_a_gpt_is_rounded(form):
    """Before it is cast, or after: the codes are integers, and what they give is of the model's dtype."""
    torch.manual_seed(0)
    model = d2l.GPT(GPT_FORMS[form]).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    tokens = torch.randint(65, (2, 9))
    wanted = model(tokens)
    for found in (quantize_model(model.double()), quantize_model(model.float()).bfloat16()):
        scores = found(tokens)
        assert scores.dtype == found.blks[0].addnorm1.ln.weight.dtype
        assert (scores - wanted).abs().max() < 0.15 * wanted.abs().max()
    before = quantize_model(model.float())
    matrices = [name for name in before.state_dict() if "scale" in name or "codes" in name or "minimum" in name]
    after = copy.deepcopy(before).to(torch.float16).bfloat16().float().state_dict()
    assert all(torch.equal(after[name], before.state_dict()[name]) for name in matrices)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bits": 3}, ValueError, "blks.0.attention.W_q: bits is 3"),
        ({"group": 5}, ValueError, "blks.0.attention.W_q: group is 5, expected a divisor of the row's 12 numbers"),
        ({"skip": ["W_x"]}, ValueError, "there is no linear layer 'W_x', only W_k, W_o, W_q, W_v, dense, dense1"),
        ({"skip": "W_q"}, TypeError, "skip is 'W_q', expected a list of names"),
        ({"skip": 3}, TypeError, "skip is 3, expected a list of names"),
        ({"skip": [3]}, ValueError, "there is no linear layer 3, only W_k"),
        ({"bits": True}, ValueError, "W_q: bits is True"),
        ({"group": True}, ValueError, "W_q: group is True"),
        ({"embedding_bits": 5}, ValueError, "dense: bits is 5, expected 8 or 4"),
        ({"embedding_bits": "8"}, ValueError, "dense: bits is '8', expected 8 or 4"),
        ({"scale_dtype": torch.int32}, TypeError, "scale_dtype is torch.int32"),
    ],
)
def test_models_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        quantize_model(toy(), **options)
    with pytest.raises(ValueError, match="no linear layer to round"):
        quantize_model(nn.Sequential(nn.LayerNorm(3)))
    for wrong in ("gpt2", d2l.GPTConfig(), d2l.GPT, None):
        with pytest.raises(TypeError, match=f"the model is a {type(wrong).__name__}, expected a torch.nn.Module"):
            quantize_model(wrong)


def test_a_token_outside_of_the_vocabulary():
    with pytest.raises(ValueError, match="tokens are 0 to 11, expected 0 to 10"):
        quantize_model(toy())(torch.tensor([[0, 11]]))
    for tokens in ([-1, 3], [2, 5]):
        with pytest.raises(IndexError, match=f"tokens are {tokens[0]} to {tokens[1]}, expected 0 to 4"):
            QuantizedEmbedding(quantize(drawn(5, 4)))(torch.tensor(tokens))


def test_names_are_public():
    assert d2l.quantize is quantize and d2l.QuantizedLinear is QuantizedLinear and issubclass(Quantized, tuple)


@pytest.mark.parametrize("make", [lambda m: quantize_model(m.bfloat16()), lambda m: quantize_model(m).bfloat16()])
def test_a_tied_model_in_bfloat16(make):
    model = make(toy())
    assert model(torch.arange(11)[None]).dtype == torch.bfloat16 and "embedding.like" not in model.state_dict()
