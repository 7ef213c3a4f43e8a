"""Attention against torch's kernel and loops, in value and gradient; the faults of D2L's code; wrong input.

All dimensions differ and keys are not values: a test with K = V passes when V is ignored."""

import copy
import inspect
import io
import pickle
import weakref
from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import d2lmini as d2l
from d2lmini import scoring
from d2lmini.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
    scaled_dot_product_attention,
)
from d2lmini.masks import causal_mask
from d2lmini.scoring import masked_softmax

few = settings(max_examples=40, deadline=None, derandomize=True)
TOLERANCE = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.bfloat16: {"rtol": 3e-2, "atol": 6e-2},
}
FORMS = ["none", "lens (B,)", "lens (B, T)", "(T, S)", "(B, 1, S)", "(B, T, S)", "(B, H, T, S)"]
ALL_MODULES = {
    "dot": lambda: DotProductAttention(0.0),
    "bilinear": lambda: BilinearAttention(5, query_size=5),
    "additive": lambda: AdditiveAttention(6, query_size=5, key_size=5),
}
SHOWING = ALL_MODULES | {
    "heads": lambda: d2l.MultiHeadAttention(6, 2).attention,
    "decoder": lambda: d2l.AttentionDecoder(),
    "transformer's encoder": lambda: d2l.TransformerEncoder(9, 6, 7, 2, 1),
    "transformer's decoder": lambda: d2l.TransformerDecoder(9, 6, 7, 2, 1),
    "T5's encoder": lambda: d2l.T5(d2l.T5_CONFIGS["toy"]).encoder,
    "T5's decoder": lambda: d2l.T5(d2l.T5_CONFIGS["toy"]).decoder,
    "ViT": lambda: d2l.ViT(8, 4, 6, 7, 2, 1, 0.0, 0.0),
    "Swin": lambda: d2l.Swin(),
    "DaViT": lambda: d2l.DaViT(),
}


def qkv(B=2, T=3, S=4, D=5, E=7, H=None, dtype=torch.float32, grad=False):
    lead = (B,) if H is None else (B, H)
    return [torch.randn(*lead, n, d).to(dtype).requires_grad_(grad) for n, d in ((T, D), (S, D), (S, E))]


def draw_mask(form, B, T, S, H):
    """Arguments of the call, and the same as nested lists [b][h][t][s], without any code of the package."""

    def dense(allowed):
        return [
            [[[bool(allowed(b, h, t, s)) for s in range(S)] for t in range(T)] for h in range(H or 1)] for b in range(B)
        ]

    def bits(*shape):
        return torch.rand(shape) < 0.6

    if form == "none":
        return {}, dense(lambda b, h, t, s: True)
    if form == "lens (B,)":
        lens = torch.randint(0, S + 1, (B,))
        return {"valid_lens": lens}, dense(lambda b, h, t, s: s < lens[b])
    if form == "lens (B, T)":
        lens = torch.randint(0, S + 1, (B, T))
        return {"valid_lens": lens}, dense(lambda b, h, t, s: s < lens[b, t])
    if form == "(T, S)":
        mask = bits(T, S)
        return {"mask": mask}, dense(lambda b, h, t, s: mask[t, s])
    if form == "(B, 1, S)":
        mask = bits(B, 1, S)
        return {"mask": mask}, dense(lambda b, h, t, s: mask[b, 0, s])
    if form == "(B, T, S)":
        mask = bits(B, T, S)
        return {"mask": mask}, dense(lambda b, h, t, s: mask[b, t, s])
    mask = bits(B, H, T, S)
    return {"mask": mask}, dense(lambda b, h, t, s: mask[b, h, t, s])


def loop(queries, keys, values, allowed, score):
    """Output and weights in float64, query by query, over the allowed keys alone. Inputs (B, H, T, D), ..."""
    B, H, T = queries.shape[:3]
    S, E = values.shape[-2:]
    output, weights = torch.zeros(B, H, T, E).double(), torch.zeros(B, H, T, S).double()
    for b in range(B):
        for h in range(H):
            for t in range(T):
                reach = [s for s in range(S) if allowed[b][h][t][s]]
                if not reach:
                    continue
                scores = [score(queries[b, h, t], keys[b, h, s]) for s in reach]
                largest = max(x.item() for x in scores)
                exps = [torch.exp(x - largest) for x in scores]
                shares = [e / sum(exps) for e in exps]
                for s, share in zip(reach, shares, strict=True):
                    weights[b, h, t, s] = share.detach()
                output[b, h, t] = sum(share * values[b, h, s] for s, share in zip(reach, shares, strict=True))
    return output, weights


def reference(queries, keys, values, allowed, score, upstream):
    """Output, weights and the gradients in queries, keys and values, float64, shaped as the inputs."""
    doubles = [x.detach().double().requires_grad_() for x in (queries, keys, values)]
    output, weights = loop(*(x if x.dim() == 4 else x[:, None] for x in doubles), allowed, score)
    if queries.dim() == 3:
        output, weights = output[:, 0], weights[:, 0]
    (output * upstream.double()).sum().backward() if output.requires_grad else None
    grads = [torch.zeros_like(x) if x.grad is None else x.grad for x in doubles]
    return output.detach(), weights, grads


def dot(q, k):
    return (q * k).sum() / q.numel() ** 0.5


def assert_near(actual, expected, dtype):
    torch.testing.assert_close(actual.double(), expected.double(), **TOLERANCE[dtype])


shapes = st.fixed_dictionaries(
    {
        "B": st.integers(0, 3),
        "T": st.integers(0, 4),
        "S": st.integers(0, 4),
        "D": st.integers(1, 6),
        "E": st.integers(1, 5),
    }
)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@settings(max_examples=50, deadline=None, derandomize=True)
@given(shapes, st.sampled_from([None, 1, 3]), st.sampled_from(FORMS), st.integers(0, 9999), st.booleans())
def test_attention_equals_the_loop_in_value_and_gradient(dtype, sizes, H, form, seed, ask):
    H = 3 if form == "(B, H, T, S)" else H
    torch.manual_seed(seed)
    inputs = qkv(**sizes, H=H, dtype=dtype, grad=True)
    arguments, allowed = draw_mask(form, sizes["B"], sizes["T"], sizes["S"], H)
    upstream = torch.randn(*inputs[0].shape[:-1], sizes["E"]).to(dtype)
    expected, expected_weights, expected_grads = reference(*inputs, allowed, dot, upstream)

    output = scaled_dot_product_attention(*inputs, **arguments, return_weights=ask)
    if ask:
        output, weights = output
        assert weights.dtype == dtype
        assert_near(weights, expected_weights, dtype)
    assert output.dtype == dtype
    assert_near(output, expected, dtype)
    (output * upstream).sum().backward()
    for x, grad in zip(inputs, expected_grads, strict=True):
        assert_near(x.grad, grad, dtype)


@few
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.sampled_from(FORMS[:-1]), st.integers(0, 9999))
def test_modules_of_learned_scores_equal_the_loop_in_value_and_gradient(B, T, S, form, seed):
    torch.manual_seed(seed)
    arguments, allowed = draw_mask(form, B, T, S, None)
    queries, values = torch.randn(B, T, 5).double(), torch.randn(B, S, 7).double()
    keys = torch.randn(B, S, 2).double()
    additive = AdditiveAttention(6).double()
    bilinear = BilinearAttention(2).double()
    additive(queries, keys, values), bilinear(queries, keys, values)  # the lazy layers get their sizes

    def additive_score(q, k):
        return (additive.w_v.weight[0] * torch.tanh(additive.W_q.weight @ q + additive.W_k.weight @ k)).sum()

    def bilinear_score(q, k):
        return q @ bilinear.W.weight.T @ k

    upstream = torch.randn(B, T, 7).double()
    for module, score in ((additive, additive_score), (bilinear, bilinear_score)):
        inputs = [x.clone().requires_grad_() for x in (queries, keys, values)]
        module.zero_grad()
        expected, expected_weights, expected_grads = reference(*inputs, allowed, score, upstream)
        expected_params = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        output = module(*inputs, **arguments)
        assert_near(output, expected, torch.float64)
        assert_near(module.attention_weights, expected_weights, torch.float64)
        (output * upstream).sum().backward()
        for x, grad in zip(inputs, expected_grads, strict=True):
            assert_near(x.grad, grad, torch.float64)
        for parameter, grad in zip(module.parameters(), expected_params, strict=True):
            assert_near(parameter.grad, torch.zeros_like(parameter) if grad is None else grad, torch.float64)


@few
@given(
    shapes,
    st.sampled_from([None, 2]),
    st.booleans(),
    st.sampled_from([None, -0.3, 2.0]),
    st.integers(0, 9999),
)
def test_attention_equals_torch_in_value_and_gradient(sizes, H, masked, scale, seed):
    torch.manual_seed(seed)
    sizes = {name: max(1, size) for name, size in sizes.items()}
    inputs = qkv(**sizes, H=H, grad=True)
    others = [x.detach().clone().requires_grad_() for x in inputs]
    mask = torch.rand(sizes["T"], sizes["S"]) < 0.5
    mask[:, 0] = True  # torch before 2.5 gives NaN for rows without keys
    mask = mask if masked else None
    ours = scaled_dot_product_attention(*inputs, mask=mask, scale=scale)
    torchs = F.scaled_dot_product_attention(*others, attn_mask=mask, scale=scale)
    torch.testing.assert_close(ours, torchs)
    upstream = torch.randn_like(ours)
    ours.backward(upstream), torchs.backward(upstream)
    for x, other in zip(inputs, others, strict=True):
        torch.testing.assert_close(x.grad, other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("H", [None, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_asking_for_weights_changes_the_output_by_rounding_alone(dtype, H):
    torch.manual_seed(0)
    queries, keys, values = qkv(H=H, S=40, D=32, dtype=dtype)
    valid_lens = torch.tensor([0, 33])
    queries = 16 * queries  # scores of size 16: rounded to bfloat16 they would be off by up to 0.06
    plain = scaled_dot_product_attention(queries, keys, values, valid_lens)
    asked, weights = scaled_dot_product_attention(queries, keys, values, valid_lens, return_weights=True)
    assert asked.dtype == weights.dtype == dtype
    doubles = [x.double() for x in (queries, keys, values)]
    exact, exact_weights = scaled_dot_product_attention(*doubles, valid_lens, return_weights=True)
    eps = torch.finfo(dtype).eps
    close = {"rtol": eps, "atol": eps if dtype.itemsize == 2 else 500 * eps}
    torch.testing.assert_close(asked.double(), exact, **close)
    # the fused kernel rounds its weights to half precision before it averages
    torch.testing.assert_close(plain.double(), exact, rtol=eps, atol=4 * close["atol"])
    torch.testing.assert_close(weights.double(), exact_weights, **close)


def test_single_token():
    queries, keys, values = qkv(T=1, S=1)
    torch.testing.assert_close(scaled_dot_product_attention(queries, keys, values), values)
    for make in ALL_MODULES.values():
        torch.testing.assert_close(make()(queries, keys, values), values)


@pytest.mark.parametrize("name", ALL_MODULES)
def test_no_keys_no_queries_no_batch(name):
    for sizes in ({"S": 0}, {"T": 0}, {"B": 0}, {"E": 0}):
        inputs = qkv(**sizes, grad=True)
        B, T, S = *inputs[0].shape[:2], inputs[1].shape[1]
        for valid_lens in (None, torch.full((B,), S)):
            module = ALL_MODULES[name]()
            output = module(*inputs, valid_lens)
            assert output.shape == (B, T, inputs[2].shape[-1]) and not (output.any() and S == 0)
            assert module.attention_weights.shape == (B, T, S)
            output.sum().backward()
            assert all(x.grad is None or x.grad.isfinite().all() for x in inputs)


def test_4096_tokens():
    torch.manual_seed(0)
    tokens = 4096
    inputs = qkv(B=1, T=tokens, S=tokens, D=8, E=3, grad=True)
    mask = causal_mask(tokens)
    fused = scaled_dot_product_attention(*inputs, mask=mask)
    asked, weights = scaled_dot_product_attention(*inputs, mask=mask, return_weights=True)
    torch.testing.assert_close(asked, fused)
    for t in (0, 1, 2047, 4095):
        q, k, v = (x[0].detach().double() for x in inputs)
        row = torch.softmax(q[t] @ k[: t + 1].T / 8**0.5, 0)
        torch.testing.assert_close(weights[0, t, : t + 1].double(), row, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(fused[0, t].double(), row @ v[: t + 1], rtol=1e-4, atol=1e-5)
        assert not weights[0, t, t + 1 :].any()
    grads = [torch.autograd.grad(out.square().sum(), inputs) for out in (fused, asked)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


class Spy(TorchDispatchMode):
    """Records the largest floating-point tensor made, in elements, and the peak of live bytes."""

    def __init__(self):
        super().__init__()
        self.largest, self.peak, self.live = 0, 0, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                storage = x.untyped_storage()
                self.largest = max(self.largest, storage.nbytes() // x.element_size())
                self.live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        self.live = {key: (ref, size) for key, (ref, size) in self.live.items() if not ref.expired()}
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return result


@pytest.mark.parametrize("masked", [False, True])
def test_fused_attention_makes_no_weights(masked):
    inputs = qkv(B=2, T=300, S=310, D=8, E=8)
    with Spy() as spy:
        DotProductAttention(0.0)(*inputs, torch.tensor([5, 310]) if masked else None)
    assert 0 < spy.largest < 300 * 310 / 2
    with Spy() as spy:
        scaled_dot_product_attention(*inputs, return_weights=True)
    assert spy.largest >= 2 * 300 * 310  # the spy does see them


# --- causal, as an argument ---


@pytest.mark.parametrize("H", [None, 2])
@pytest.mark.parametrize(("T", "S"), [(5, 5), (3, 5), (1, 5), (1, 1)])
@pytest.mark.parametrize("others", ["nothing", "valid_lens", "mask", "score_bias"])
def test_causal_is_the_causal_mask_in_value_gradient_and_weights(others, T, S, H):
    torch.manual_seed(0)
    inputs = qkv(T=T, S=S, H=H)
    options = {
        "nothing": {},
        "valid_lens": {"valid_lens": torch.tensor([2, S]).clamp(max=S)},
        "mask": {"mask": torch.rand(T, S) < 0.5},  # rows may be empty
        "score_bias": {"score_bias": torch.randn(*[1] * (1 if H is None else 2), T, S)},
    }[others]
    given = options.get("mask", torch.ones(T, S, dtype=torch.bool))
    results = []
    for more in ({"causal": True}, {"mask": given & causal_mask(T, S)}):
        module, leaves = DotProductAttention(0.0), [x.clone().requires_grad_() for x in inputs]
        output = module(*leaves, **(options | more))
        weights = module.attention_weights
        output.square().sum().backward()
        asked = scaled_dot_product_attention(*inputs, **(options | more), return_weights=True)
        results.append([output, weights, *(x.grad for x in leaves), *asked])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_causal_attention_makes_no_mask_and_no_weights():
    inputs = qkv(B=1, T=300, S=300, D=8, E=8, grad=True)
    with Operations() as seen:
        DotProductAttention(0.0)(*inputs, causal=True).sum().backward()
    assert 0 < seen.largest < 300 * 300 / 2


@pytest.mark.parametrize("form", ["lens (B,)", "(T, S)", "(B, H, T, S)"])
def test_a_mask_costs_a_look_beyond_torchs_kernel_and_no_copy(form):
    torch.manual_seed(0)
    inputs = qkv(T=20, S=30, H=3, grad=True)  # of a few keys the weights are made
    arguments, allowed = draw_mask(form, 2, 20, 30, 3)
    mask = arguments.get("mask", torch.tensor(allowed)[:, :1])
    with Operations() as ours:
        torch.autograd.grad(scaled_dot_product_attention(*inputs, **arguments).sum(), inputs)
    with Operations() as torchs:
        torch.autograd.grad(F.scaled_dot_product_attention(*inputs, mask).sum(), inputs)
    floats = [Counter(name for name, dtype in seen.made if dtype == torch.float32) for seen in (ours, torchs)]
    more = floats[0] - floats[1]
    assert set(more) <= {"aten.sum.default", "aten.detach.default"}  # the latter makes no copy
    assert more["aten.sum.default"] <= 3


class Operations(TorchDispatchMode):
    """Records each operation's name and the dtype it made, and the largest tensor of any dtype, in elements."""

    def __init__(self):
        super().__init__()
        self.made, self.largest = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor):
                self.made.append((str(func), x.dtype))
                self.largest = max(self.largest, x.untyped_storage().nbytes() // x.element_size())
        return result


# --- the faults of D2L's code, one test each ---


@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_a_query_with_nothing_to_attend_to_gives_zero_output_and_gradient(make):
    for form in (
        {"valid_lens": torch.tensor([[4, 0, 2], [1, 1, 1]])},
        {"mask": torch.tensor([True, False, True])[:, None]},
    ):
        inputs = qkv(grad=True)
        output = make()(*inputs, **form)
        assert not output[0, 1].any() and output[0, 0].all()
        output.square().sum().backward()
        assert all(x.grad.isfinite().all() for x in inputs)
        assert not inputs[0].grad[0, 1].any()


@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_nothing_stays_on_the_module_after_a_training_step(make):
    module = make()
    inputs = qkv(T=50, S=60, grad=True)
    output = module(*inputs, mask=torch.rand(2, 50, 60) < 0.9)
    assert not any(x.numel() == 2 * 50 * 60 and x.is_floating_point() for x in held(module))  # even before backward
    alive = [StorageWeakRef(x.untyped_storage()) for x in held(module)]
    assert alive
    output.sum().backward()
    assert not held(module)
    del inputs, output
    assert all(ref.expired() for ref in alive)
    with pytest.raises(RuntimeError, match="were let go in its backward pass"):
        module.attention_weights  # noqa: B018


def held(module):
    """Tensors a module keeps besides its parameters."""
    return [x for x in module._last.inputs if x is not None]


def test_no_graph_is_kept_for_later_weights():
    module, bias = DotProductAttention(0.0), torch.randn(1, 3, 4, requires_grad=True)
    inputs = qkv(grad=True)
    doubled = 2 * bias
    module(*inputs, score_bias=doubled)
    gone = weakref.ref(doubled)
    del doubled
    assert gone() is None and module.attention_weights.shape == (2, 3, 4)


@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_deepcopy_and_pickle_and_state_dict_of_a_used_module(make):
    model = nn.ModuleDict({"attention": make()})
    inputs = qkv(grad=True)
    names = set(model.state_dict())
    expected = model["attention"](*inputs)
    copied = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    for other in (copied, pickle.loads(pickle.dumps(model))):
        with pytest.raises(RuntimeError, match="call it first"):
            other["attention"].attention_weights  # noqa: B018
        torch.testing.assert_close(other["attention"](*inputs), expected)
    assert set(model.state_dict()) == names
    model["attention"].attention_weights  # the original still has its own  # noqa: B018


@pytest.mark.parametrize("train", [False, True])
def test_additive_attention_never_makes_all_features(train, monkeypatch):
    """At B 128, T 64, h 256 the direct formula makes 512 MiB; here the same in small."""
    B, T, S, h = 4, 64, 48, 32
    features = B * T * S * h
    monkeypatch.setattr(scoring, "ADDITIVE_BLOCK", features // 16)
    torch.manual_seed(0)
    module = AdditiveAttention(h, query_size=5, key_size=3).train(train)
    inputs = [torch.randn(B, T, 5), torch.randn(B, S, 3), torch.randn(B, S, 7)]

    def step():
        with torch.set_grad_enabled(train):
            output = module(*inputs, torch.tensor([0, 1, 30, 48]))
            if train:
                output.square().sum().backward()

    with Spy() as spy:
        step()
    assert spy.largest <= features // 16
    assert spy.peak < 4 * features / 3  # bytes: a third of what the features alone would take in float32
    monkeypatch.setattr(scoring, "ADDITIVE_BLOCK", features)
    with Spy() as spy:
        step()
    assert spy.largest == features  # the spy sees them when they are made


@pytest.mark.parametrize("block", [1, 200, 700])
def test_additive_attention_in_blocks_equals_the_direct_formula(block, monkeypatch):
    torch.manual_seed(0)
    module = AdditiveAttention(6, query_size=5, key_size=3).double()
    inputs = [torch.randn(2, 7, 5).double(), torch.randn(2, 4, 3).double(), torch.randn(2, 4, 2).double()]
    valid_lens = torch.tensor([0, 3])

    def run():
        leaves = [x.clone().requires_grad_() for x in inputs]
        output = module(*leaves, valid_lens)
        return [output, *torch.autograd.grad(output.square().sum(), [*leaves, *module.parameters()])]

    direct = run()
    monkeypatch.setattr(scoring, "ADDITIVE_BLOCK", block)
    for one, other in zip(run(), direct, strict=True):
        torch.testing.assert_close(one, other)


# --- content that takes no part ---


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_what_is_in_padding_has_no_effect(make, poison):
    torch.manual_seed(0)
    module = make()
    clean = qkv()
    dirty = [x.clone() for x in clean]
    valid_lens = torch.tensor([[2, 0, 2], [3, 4, 1]])
    dirty[0][0, 1] = dirty[1][0, 2:] = dirty[2][0, 2:] = poison
    results = []
    for inputs in (clean, dirty):
        leaves = [x.clone().requires_grad_() for x in inputs]
        module.zero_grad()
        output = module(*leaves, valid_lens)
        weights = module.attention_weights
        output.square().sum().backward()
        results.append([output, weights, *(x.grad for x in leaves), *(p.grad for p in module.parameters())])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    if make is ALL_MODULES["dot"]:
        outputs = [scaled_dot_product_attention(*x, valid_lens, return_weights=True) for x in (clean, dirty)]
        assert all(torch.equal(one, other) for one, other in zip(*outputs, strict=True))


def test_nan_reaches_those_who_attend_and_no_other_example():
    queries, keys, values = qkv()
    values[0, 3] = float("nan")
    queries[1, 2] = float("nan")
    valid_lens = torch.tensor([4, 4])
    asked, weights = scaled_dot_product_attention(queries, keys, values, valid_lens, return_weights=True)
    for output in (asked, scaled_dot_product_attention(queries, keys, values, valid_lens)):
        assert output[0].isnan().any(-1).all()
        assert output[1, 2].isnan().all() and output[1, :2].isfinite().all()
    assert weights[1, 2].isnan().all() and weights[1, :2].isfinite().all()


# --- weights on request ---


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_attention_weights_are_the_last_calls(make, training):
    module = make().train(training)
    for S in (4, 6):
        queries, keys, _ = qkv(S=S)
        identity = torch.eye(S).expand(2, S, S)  # with it the output is the weights
        output = module(queries, keys, identity, torch.tensor([2, 3]))
        weights = module.attention_weights
        assert not weights.requires_grad
        torch.testing.assert_close(weights, output.detach())


def test_attention_weights_survive_a_step_of_the_optimizer():
    module = AdditiveAttention(6, query_size=5, key_size=5)
    module.eval()
    queries, keys, _ = qkv()
    output = module(queries, keys, torch.eye(4).expand(2, 4, 4))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3)
    torch.testing.assert_close(module.attention_weights, output.detach())


def test_attention_weights_of_inputs_changed_in_place_are_refused():
    module = DotProductAttention(0.0)
    queries, keys, values = qkv()
    module(queries, keys, values)
    keys.zero_()
    with pytest.raises(RuntimeError, match="changed in place"):
        module.attention_weights  # noqa: B018


def test_attention_weights_before_any_call():
    with pytest.raises(RuntimeError, match="DotProductAttention has no weights to show: call it first"):
        DotProductAttention(0.0).attention_weights  # noqa: B018


@pytest.mark.parametrize("name", SHOWING)
def test_weights_that_are_not_there_are_an_attribute_that_is_not_there(name):
    """To all that look at an object without knowing it; and whoever asks for them is still told why."""
    module = SHOWING[name]()
    assert not hasattr(module, "attention_weights") and getattr(module, "attention_weights", "none") == "none"
    assert "attention_weights" not in dict(inspect.getmembers(module))
    with pytest.raises(AttributeError, match=r"has no (weights to show: call it first|attention_weights)"):
        module.attention_weights  # noqa: B018
    if not hasattr(module, "num_parameters") and isinstance(module, d2l.Module):
        with pytest.raises(AttributeError, match="has parameters without a size: call it first"):
            module.num_parameters  # noqa: B018
    with pytest.raises(AttributeError, match=f"'{type(module).__name__}' object has no attribute 'atention_weights'"):
        module.atention_weights  # noqa: B018


@pytest.mark.filterwarnings("ignore")  # that it is deprecated, and that shapes are taken for constants
def test_a_module_can_be_traced():
    module, inputs = DotProductAttention(0.0), qkv()
    traced = torch.jit.trace(module, inputs, check_trace=False)
    torch.testing.assert_close(traced(*inputs), module(*inputs))


def test_attention_weights_in_inference_mode():
    module = DotProductAttention(0.0)
    with torch.inference_mode():
        inputs = qkv()
        module(*inputs)
        assert module.attention_weights.shape == (2, 3, 4)


@pytest.mark.parametrize("make", ALL_MODULES.values(), ids=ALL_MODULES)
def test_dropout_acts_in_training_and_the_weights_shown_are_those_before_it(make):
    torch.manual_seed(0)
    module = make()
    module.dropout.p = 0.5
    queries, keys, _ = qkv(S=8)
    identity = torch.eye(8).expand(2, 8, 8)
    dropped = module(queries, keys, identity)
    weights = module.attention_weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    kept = dropped != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(dropped[kept], 2 * weights[kept])
    torch.testing.assert_close(module.eval()(queries, keys, identity), weights)


def test_a_module_and_its_graph_make_no_cycle():
    module = DotProductAttention(0.0)
    module(*qkv(grad=True))
    gone = weakref.ref(module)
    del module
    assert gone() is None  # at once, with no garbage collection


# --- names and sizes of the modules ---


def test_names_and_sizes_of_parameters_are_d2ls():
    module = AdditiveAttention(num_hiddens=8, dropout=0.1)
    module(torch.ones(2, 1, 20), torch.ones(2, 10, 2), torch.ones(2, 10, 4))
    shapes = {name: tuple(x.shape) for name, x in module.state_dict().items()}
    assert shapes == {"W_k.weight": (8, 2), "W_q.weight": (8, 20), "w_v.weight": (1, 8)}
    sized = AdditiveAttention(8, query_size=20, key_size=2)
    sized.load_state_dict(module.state_dict())
    assert sum(p.numel() for p in sized.parameters()) == 8 * (20 + 2 + 1)
    assert not DotProductAttention(0.5).state_dict()


def test_autocast_gives_finite_outputs_in_its_own_dtype():
    inputs = qkv(grad=True)
    for make in ALL_MODULES.values():
        with torch.autocast("cpu", torch.bfloat16):
            output = make()(*inputs, torch.tensor([0, 3]))
        assert output.isfinite().all() and not output[0].any()
        output.sum().backward()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_cuda_equals_the_loop(form, dtype):
    torch.manual_seed(0)
    B, H, T, S, D, E = 2, 3, 9, 17, 16, 8
    inputs = qkv(B, T, S, D, E, H, dtype, grad=True)
    arguments, allowed = draw_mask(form, B, T, S, H)
    upstream = torch.randn(B, H, T, E).to(dtype)
    expected, _, expected_grads = reference(*inputs, allowed, dot, upstream)
    there = [x.detach().cuda().requires_grad_() for x in inputs]
    output = scaled_dot_product_attention(*there, **{name: x.cuda() for name, x in arguments.items()})
    assert_near(output.cpu(), expected, dtype)
    (output * upstream.cuda()).sum().backward()
    for x, grad in zip(there, expected_grads, strict=True):
        assert_near(x.grad.cpu(), grad, dtype)


# --- wrong input ---


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"keys": torch.ones(2, 4, 6)}, ValueError, "queries have 5 features but keys have 6.*needs as many"),
        (
            {"values": torch.ones(2, 3, 7)},
            ValueError,
            "there are 4 keys but 3 values: expected one value per key",
        ),
        ({"keys": torch.ones(3, 4, 5)}, ValueError, "keys have batch 3 but queries have batch 2"),
        ({"values": torch.ones(1, 4, 7)}, ValueError, "values have batch 1 but queries have batch 2"),
        ({"queries": torch.ones(3, 5)}, ValueError, r"queries have shape \(3, 5\), expected \(batch, number"),
        ({"keys": torch.ones(2, 1, 4, 5)}, ValueError, r"keys have shape \(2, 1, 4, 5\)"),
        (
            {"keys": torch.ones(2, 4, 5).double()},
            ValueError,
            "keys have dtype torch.float64 but queries have",
        ),
        (
            {"values": torch.ones(2, 4, 7, device="meta")},
            ValueError,
            "values are on meta but queries are on cpu",
        ),
        (
            {"values": torch.ones(2, 4, 7).long()},
            TypeError,
            "values are torch.int64, expected a floating-point",
        ),
        ({"queries": [[1.0]]}, TypeError, "queries are list, expected a floating-point tensor"),
        ({"valid_lens": torch.tensor([1, 2, 3])}, ValueError, "valid_lens has length 3 but the batch is 2"),
        ({"valid_lens": torch.tensor([1, 9])}, ValueError, "valid_lens holds 9 but there are only 4 keys"),
        ({"mask": torch.ones(3, 4)}, TypeError, "mask is of dtype torch.float32, expected a boolean"),
    ],
)
@pytest.mark.parametrize("name", ["function", *ALL_MODULES])
def test_bad_input(name, change, error, message):
    arguments = {"queries": torch.ones(2, 3, 5), "keys": torch.ones(2, 4, 5), "values": torch.ones(2, 4, 7)}
    call = scaled_dot_product_attention if name == "function" else ALL_MODULES[name]()
    if "needs as many" in message and name in ("bilinear", "additive"):
        message = "keys have 6 features, expected 5"  # modules that learn the sizes say which they learnt
    with pytest.raises(error, match=message):
        call(**(arguments | change))


def test_bad_input_of_one_kind_of_attention():
    queries, keys, values = qkv(H=2)
    with pytest.raises(ValueError, match="keys have heads 2 but queries have heads 1"):
        scaled_dot_product_attention(queries[:, :1], keys, values)
    with pytest.raises(ValueError, match="without heads"):
        ALL_MODULES["additive"]()(queries, keys, values)
    with pytest.raises(ValueError, match="0 features"):
        scaled_dot_product_attention(queries[..., :0], keys[..., :0], values)
    with pytest.raises(ValueError, match=r"dropout_p is 1.5"):
        scaled_dot_product_attention(queries, keys, values, dropout_p=1.5)
    with pytest.raises(TypeError, match=r"scores are torch.int64"):
        masked_softmax(torch.ones(2, 3, 4).long())
    lazy = AdditiveAttention(6)
    lazy(torch.ones(2, 3, 5), torch.ones(2, 4, 2), torch.ones(2, 4, 7))
    with pytest.raises(ValueError, match="keys have 5 features, expected 2"):
        lazy(torch.ones(2, 3, 5), torch.ones(2, 4, 5), torch.ones(2, 4, 7))
