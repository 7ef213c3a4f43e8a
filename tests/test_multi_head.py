"""Multi-head attention against torch's module and a loop over heads; its cache, biases, rotations and head masks.

Sizes of queries, keys and values, and numbers of them, all differ."""

import copy

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from d2lmini.attention import scaled_dot_product_attention
from d2lmini.cache import KeyValueCache
from d2lmini.hooks import capture_attention
from d2lmini.masks import causal_mask
from d2lmini.multi_head import MultiHeadAttention
from d2lmini.position import RelativePositionBias, RelativePositionEmbedding
from d2lmini.rotation import RotaryEmbedding, rotary

B, T, S, H, h = 2, 3, 5, 2, 6
FORMS = ["none", "lens (B,)", "lens (B, T)", "(T, S)", "(B, 1, S)", "(B, T, S)", "(B, H, T, S)", "lens and mask"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def draw_mask(form):
    """Arguments of the call, and the mask as (B, H, T, S); no row is empty, for torch gives NaN there."""
    lens = {"lens (B,)": torch.tensor([1, 4]), "lens (B, T)": torch.randint(1, S + 1, (B, T))}
    bits = torch.rand(B, H, T, S) < 0.5
    bits[..., 0] = True
    full = torch.ones(B, H, T, S, dtype=torch.bool)
    if form == "none":
        return {}, full
    if form == "lens and mask":
        allowed = torch.arange(S) < torch.tensor([3, 4])[:, None, None, None]
        return {"valid_lens": torch.tensor([3, 4]), "mask": bits[0, 0]}, full & allowed & bits[0, 0]
    if form in lens:
        return {"valid_lens": lens[form]}, full & (torch.arange(S) < lens[form].reshape(B, 1, -1, 1))
    mask = {"(T, S)": bits[0, 0], "(B, 1, S)": bits[:, 0, :1], "(B, T, S)": bits[:, 0], "(B, H, T, S)": bits}[form]
    dense = mask if mask.dim() < 3 else mask[:, None] if mask.dim() == 3 else mask
    return {"mask": mask}, full & dense


def torchs(ours, key_size, value_size, bias):
    """torch's module with the weights of ours."""
    theirs = nn.MultiheadAttention(
        h, H, bias=bias, kdim=key_size, vdim=value_size, batch_first=True, dtype=torch.float64
    )
    projections = [ours.W_q, ours.W_k, ours.W_v]
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([w.weight for w in projections]))
        else:
            for name, w in zip("qkv", projections, strict=True):
                getattr(theirs, f"{name}_proj_weight").copy_(w.weight)
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([w.bias for w in projections]))
            theirs.out_proj.bias.copy_(ours.W_o.bias)
    return theirs


def gradients(module, bias):
    """Gradients of the parameters in one order for torch's module and ours."""
    if isinstance(module, MultiHeadAttention):
        grads = [w.weight.grad for w in (module.W_q, module.W_k, module.W_v, module.W_o)]
        return grads + ([w.bias.grad for w in (module.W_q, module.W_k, module.W_v, module.W_o)] if bias else [])
    if module.in_proj_weight is not None:
        grads = [*module.in_proj_weight.grad.split(h), module.out_proj.weight.grad]
    else:
        grads = [getattr(module, f"{n}_proj_weight").grad for n in "qkv"] + [module.out_proj.weight.grad]
    return grads + ([*module.in_proj_bias.grad.split(h), module.out_proj.bias.grad] if bias else [])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("key_size", "value_size"), [(None, None), (4, 7)])
@pytest.mark.parametrize("form", FORMS)
def test_cross_attention_equals_torch_in_value_and_gradient(form, key_size, value_size, bias):
    ours = MultiHeadAttention(h, H, 0.0, bias, key_size=key_size, value_size=value_size).double()
    for p in ours.parameters():
        nn.init.normal_(p)
    theirs = torchs(ours, key_size, value_size, bias)
    arguments, allowed = draw_mask(form)
    results = []
    sizes = (T, h), (S, key_size or h), (S, value_size or h)
    given, upstream = [torch.randn(B, *size).double() for size in sizes], torch.randn(B, T, h).double()
    for module in (ours, theirs):
        inputs = [x.clone().requires_grad_() for x in given]
        if module is ours:
            output = ours(*inputs, **arguments)
        else:
            output = theirs(*inputs, attn_mask=~allowed.flatten(0, 1), need_weights=False)[0]
        output.backward(upstream)
        results.append([output, *(x.grad for x in inputs), *gradients(module, bias)])
    assert len(results[0]) == len(results[1]) == (12 if bias else 8)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_torch_and_so_do_its_weights(causal, bias):
    ours = MultiHeadAttention(h, H, 0.0, bias).double()
    theirs = torchs(ours, None, None, bias)
    mask = causal_mask(S) if causal else None
    results = []
    given = torch.randn(B, S, h).double()
    for module in (ours, theirs):
        X = given.clone().requires_grad_()
        if module is ours:
            with capture_attention(ours) as record:
                output = ours(X, X, X, mask=mask)
            (weights,) = record["attention"]
        else:
            blocked = None if mask is None else ~mask
            output, weights = theirs(X, X, X, attn_mask=blocked, average_attn_weights=False)
        output.square().sum().backward()
        results.append([output, weights, X.grad, *gradients(module, bias)])
    assert results[0][1].shape == (B, H, S, S)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_it_is_a_loop_over_heads_with_sizes_that_all_differ():
    ours = MultiHeadAttention(h, 3, query_size=8, key_size=4, value_size=7).double()
    queries, keys, values = (torch.randn(B, n, d).double() for n, d in ((T, 8), (S, 4), (S, 7)))
    valid_lens = torch.tensor([[0, 5, 2], [1, 1, 3]])
    parts = []
    for rows in torch.arange(h).split(h // 3):
        q, k, v = (x @ w.weight[rows].T for x, w in ((queries, ours.W_q), (keys, ours.W_k), (values, ours.W_v)))
        parts.append(scaled_dot_product_attention(q, k, v, valid_lens))
    output = ours(queries, keys, values, valid_lens)
    torch.testing.assert_close(output, torch.cat(parts, -1) @ ours.W_o.weight.T)
    assert not output[0, 0].any()  # it may attend to nothing


# --- the shapes and names of D2L ---


@pytest.mark.parametrize("scale", [None, 1.0])
def test_heads_of_a_size_of_their_own_and_a_scale_by_a_loop(scale):
    size, heads = 4, 5  # 20 features of all heads, beside 6 of the output
    ours = MultiHeadAttention(h, heads, bias=True, head_size=size, scale=scale, qk_norm=nn.RMSNorm).double()
    queries, sources, valid_lens = torch.randn(B, T, h).double(), torch.randn(B, S, h).double(), torch.tensor([2, 5])
    parts, seen = [], []
    for rows in torch.arange(heads * size).split(size):
        q, k, v = (
            x @ w.weight[rows].T + w.bias[rows]
            for x, w in ((queries, ours.W_q), (sources, ours.W_k), (sources, ours.W_v))
        )
        scores = ours.q_norm(q) @ ours.k_norm(k).mT * (size**-0.5 if scale is None else scale)
        scores = scores.masked_fill(torch.arange(S) >= valid_lens[:, None, None], -torch.inf)
        seen.append(scores.softmax(-1))
        parts.append(seen[-1] @ v)
    wanted = torch.cat(parts, -1) @ ours.W_o.weight.T + ours.W_o.bias
    with capture_attention(ours) as record:
        torch.testing.assert_close(ours(queries, sources, sources, valid_lens), wanted)
    torch.testing.assert_close(record["attention"][0], torch.stack(seen, 1))
    assert ours.empty_cache(B).keys.shape == (B, heads, 0, size)
    output, cache = ours.extend(sources, sources, sources, ours.empty_cache(B), causal=True)
    before = KeyValueCache(*(x[:, :, :-1] for x in cache))
    last, _ = ours.extend(sources[:, -1:], sources[:, -1:], sources[:, -1:], before)
    torch.testing.assert_close(last, output[:, -1:])


def test_the_kernel_and_the_formula_have_the_same_scale():
    ours, X = MultiHeadAttention(h, H, head_size=8, scale=0.9).eval(), torch.randn(B, 40, h)
    with torch.no_grad():
        output = ours(X, X, X)
    weights = ours.attention.attention_weights.unflatten(0, (B, H))
    values = ours.to_heads(X, X, X)[2]
    torch.testing.assert_close(ours.W_o((weights @ values).transpose(1, 2).flatten(2)), output)


def test_transposes_are_d2ls_and_each_others_inverse():
    ours = MultiHeadAttention(100, 5, 0.5)
    X = torch.randn(2, 4, 100)
    heads = ours.transpose_qkv(X)
    assert heads.shape == (10, 4, 20)
    for b in range(2):
        for head in range(5):
            assert torch.equal(heads[5 * b + head], X[b, :, 20 * head : 20 * (head + 1)])
    assert torch.equal(ours.transpose_output(heads), X)


def test_the_attribute_has_d2ls_shape_and_a_capture_has_heads():
    ours = MultiHeadAttention(100, 5, 0.5).eval()
    X, Y = torch.randn(2, 4, 100), torch.randn(2, 6, 100)
    with capture_attention(ours) as record:
        assert ours(X, Y, Y, torch.tensor([3, 2])).shape == (2, 4, 100)
    (weights,) = record["attention"]
    assert weights.shape == (2, 5, 4, 6)
    assert (weights[0, ..., :3] > 0).all() and not weights[0, ..., 3:].any() and not weights[1, ..., 2:].any()
    assert torch.equal(ours.attention.attention_weights, weights.flatten(0, 1))
    assert set(ours.state_dict()) == {f"W_{w}.weight" for w in "qkvo"}


def test_parameters_and_cost_do_not_depend_on_the_number_of_heads():
    X, counts, flops = torch.randn(2, 20, 24), set(), set()
    for heads in (1, 2, 4, 12):
        ours = MultiHeadAttention(24, heads)
        counts.add(sum(p.numel() for p in ours.parameters()))
        with FlopCounterMode(display=False) as counter, capture_attention(ours):  # the weights by hand are counted too
            ours(X, X, X)
        flops.add(counter.get_total_flops())
    assert counts == {4 * 24 * 24} and len(flops) == 1 and flops.pop() > 0


# --- the cache ---


@pytest.mark.parametrize("encoding", ["none", "rotary", "table", "T5", "Shaw"])
@pytest.mark.parametrize("chunks", [[1] * 7, [4, 1, 2], [7]])
def test_step_by_step_equals_the_whole_sequence(chunks, encoding):
    ours = MultiHeadAttention(8, H, bias=True)
    t5, shaw, table = RelativePositionBias(H), RelativePositionEmbedding(4, 2), RotaryEmbedding(4)
    nn.init.normal_(t5.weight)
    turn = {"rotary": rotary, "table": table}.get(encoding)

    def bias(num_queries, num_keys):
        return {"T5": lambda: t5(num_queries, num_keys), "Shaw": lambda: shaw.scores}.get(encoding, lambda: None)()

    X, valid_lens = torch.randn(B, 7, 8), torch.tensor([7, 7])
    whole = ours(X, X, X, valid_lens, mask=causal_mask(7), score_bias=bias(7, 7), rotary=turn)
    outputs, cache = [], ours.empty_cache(B)
    for x in X.split(chunks, 1):
        n, past = x.shape[1], cache.length
        mask = causal_mask(n, past + n)
        y, cache = ours.extend(x, x, x, cache, mask=mask, score_bias=bias(n, past + n), rotary=turn)
        outputs.append(y)
    torch.testing.assert_close(torch.cat(outputs, 1), whole)
    assert cache.length == 7 and cache.keys.shape == cache.values.shape == (B, H, 7, 4)
    if encoding != "none":
        plain = ours(X, X, X, valid_lens, mask=causal_mask(7))
        assert not torch.allclose(plain, whole, atol=1e-3)


def test_a_cache_is_never_changed_and_its_rows_can_be_reordered():
    ours = MultiHeadAttention(h, H)
    X = torch.randn(B, 4, h)
    first = ours.extend(X, X, X, ours.empty_cache(B))[1]
    before = [x.clone() for x in first]
    one, other = (ours.extend(*[torch.randn(B, 1, h)] * 3, first)[1] for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, before, strict=True))
    assert not torch.equal(one.keys, other.keys) and torch.equal(one.keys[:, :, :4], first.keys)
    index = torch.tensor([1, 1, 0])
    again = tree_map(lambda t: t.index_select(0, index), {"state": [one]})["state"][0]
    assert isinstance(again, KeyValueCache) and torch.equal(again.values[2], one.values[0]) and again.length == 5
    with pytest.raises(AttributeError):
        one.keys = other.keys


def test_keys_that_stay_are_projected_once():
    ours = MultiHeadAttention(h, H, key_size=4, value_size=7)
    keys, values, valid_lens = torch.randn(B, S, 4), torch.randn(B, S, 7), torch.tensor([2, 5])
    calls = []
    ours.W_k.register_forward_hook(lambda *_: calls.append("k"))
    ours.W_v.register_forward_hook(lambda *_: calls.append("v"))
    memory = ours.project(keys, values)
    for _ in range(3):
        queries = torch.randn(B, T, h)
        output, same = ours.extend(queries, None, None, memory, valid_lens)
        assert same is memory and calls == ["k", "v"]
        copied = copy.deepcopy(ours)
        copied.W_k._forward_hooks.clear(), copied.W_v._forward_hooks.clear()
        torch.testing.assert_close(output, copied(queries, keys, values, valid_lens))


# --- biases of the scores, rotations, masks of heads ---


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(B, H, T, S), (1, H, T, S), (B, 1, 1, S)])
def test_a_score_bias_in_value_and_gradient(form, shape):
    ours = MultiHeadAttention(h, H).double()
    arguments, allowed = draw_mask(form)
    allowed = allowed.clone()
    if form == "(B, H, T, S)":  # here a row may be empty: the reference knows what comes of it
        arguments["mask"][1, 1, 2] = allowed[1, 1, 2] = False
    given = [torch.randn(B, n, h).double() for n in (T, S, S)] + [torch.randn(shape).double()]
    results = []
    for fused in (True, False):
        queries, keys, values, bias = inputs = [x.clone().requires_grad_() for x in given]
        ours.zero_grad()
        if fused:
            output = ours(queries, keys, values, **arguments, score_bias=bias)
            weights = ours.attention.attention_weights.unflatten(0, (B, H))
        else:
            q, k, v = (
                w(x).unflatten(-1, (H, -1)).transpose(1, 2)
                for w, x in zip((ours.W_q, ours.W_k, ours.W_v), (queries, keys, values), strict=True)
            )
            scores = (q @ k.mT / (h // H) ** 0.5 + bias).exp() * allowed
            weights = scores / scores.sum(-1, keepdim=True).clamp(min=1e-300)
            output = ours.W_o((weights @ v).transpose(1, 2).flatten(2))
        output.square().sum().backward()
        grads = [x.grad for x in inputs] + [p.grad.clone() for p in ours.parameters()]
        results.append([output, weights.detach(), *grads])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_what_is_in_padding_has_no_effect_with_a_bias_either():
    ours, queries, keys = MultiHeadAttention(h, H), torch.randn(B, T, h), torch.randn(B, S, h)
    valid_lens, bias = torch.tensor([2, 5]), torch.randn(1, H, T, S)
    expected = ours(queries, keys, keys, valid_lens, score_bias=bias)
    keys[0, 2:] = torch.nan
    assert torch.equal(ours(queries, keys, keys, valid_lens, score_bias=bias), expected)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("cached", [False, True])
def test_what_is_in_padding_reaches_no_gradient_of_the_projections(cached, poison):
    ours, bias = MultiHeadAttention(h, H, bias=True, key_size=4, value_size=7), torch.randn(1, H, T, S)
    queries, keys, values = torch.randn(B, T, h), torch.randn(B, S, 4), torch.randn(B, S, 7)
    valid_lens = torch.tensor([[2, 0, 1], [5, 4, 5]])
    results = []
    for dirty in (False, True):
        inputs = [queries.clone(), keys.clone(), values.clone()]
        if dirty:
            inputs[0][0, 1] = inputs[1][0, 2:] = inputs[2][0, 2:] = poison
        for x in inputs:
            x.requires_grad_()
        ours.zero_grad()
        cache = ours.project(inputs[1][:, :1], inputs[2][:, :1]) if cached else None
        new = [x[:, 1:] if cached else x for x in inputs[1:]]
        if cached:
            output, _ = ours.extend(inputs[0], *new, cache, valid_lens, score_bias=bias)
        else:
            output = ours(inputs[0], *new, valid_lens, score_bias=bias)
        output.square().sum().backward()
        results.append([output, *(x.grad for x in inputs), *(p.grad for p in ours.parameters())])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_padding_on_the_left_of_a_causal_sequence_reaches_no_gradient():
    ours, X = MultiHeadAttention(h, H), torch.randn(B, S, h)
    mask = torch.arange(S) >= torch.tensor([2, 0])[:, None, None]  # (B, 1, S)
    clean = ours(X, X, X, mask=mask, causal=True)
    assert not clean[0, :2].any()  # they see padding alone
    X[0, :2] = torch.nan
    output = ours(X, X, X, mask=mask, causal=True)
    output.sum().backward()
    torch.testing.assert_close(output, clean)
    assert all(p.grad.isfinite().all() for p in ours.parameters())


@pytest.mark.parametrize("chunks", [[7], [1] * 7, [4, 1, 2]])
def test_causal_with_a_cache_is_the_mask_aligned_at_the_ends(chunks):
    ours, X, cache, parts = MultiHeadAttention(8, H), torch.randn(B, 7, 8), None, []
    expected = ours(X, X, X, mask=causal_mask(7))
    torch.testing.assert_close(ours(X, X, X, causal=True), expected)
    cache = ours.empty_cache(B)
    for x in X.split(chunks, 1):
        y, cache = ours.extend(x, x, x, cache, causal=True)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, 1), expected)
    with capture_attention(ours) as record:
        ours.extend(X[:, 5:], X[:, 5:], X[:, 5:], ours.project(X[:, :5], X[:, :5]), causal=True)
    assert torch.equal(record["attention"][0] > 0, causal_mask(2, 7).expand(B, H, 2, 7))


def test_a_bias_is_captured_and_fused_attention_makes_no_weights():
    ours, X = MultiHeadAttention(h, H).bfloat16(), torch.randn(B, S, h).bfloat16()
    bias = torch.zeros(1, 1, 1, S)
    bias[..., 3] = 100.0
    with capture_attention(ours) as record:
        output = ours(X, X, X, score_bias=bias)
    assert output.dtype == record["attention"][0].dtype == torch.bfloat16
    assert (record["attention"][0][..., 3] == 1).all()
    torch.testing.assert_close(output, ours.W_o(ours.W_v(X[:, 3:4])).expand(B, S, h), rtol=2e-2, atol=2e-2)


def test_a_bias_may_come_from_the_queries():
    ours, shaw = MultiHeadAttention(8, H), RelativePositionEmbedding(4, 1)
    X = torch.randn(B, S, 8)
    heads = ours.W_q(X).unflatten(-1, (H, -1)).transpose(1, 2)
    expected = ours(X, X, X, score_bias=shaw.scores(heads, S))
    torch.testing.assert_close(ours(X, X, X, score_bias=shaw.scores), expected)


def test_rotary_makes_scores_depend_on_the_offset_alone():
    ours = MultiHeadAttention(8, H)
    X = torch.randn(B, 1, 8).expand(B, 6, 8)  # one token again and again
    with capture_attention(ours) as record:
        ours(X, X, X, rotary=rotary)
    logs = record["attention"][0].log()
    ratios = logs - logs.diagonal(dim1=-2, dim2=-1)[..., None]  # log-weight against the one at offset 0
    for offset in range(-5, 6):
        line = ratios.diagonal(offset, -2, -1)
        torch.testing.assert_close(line, line[..., :1].expand_as(line), rtol=1e-4, atol=1e-5)
    assert logs[0, 0].std() > 1e-3


def test_heads_that_are_off_bring_nothing_and_the_gradient_says_what_they_are_worth():
    ours, X = MultiHeadAttention(h, 3).double(), torch.randn(B, S, h).double()
    brought = []
    handle = ours.attention.register_forward_hook(lambda module, inputs, output: brought.append(output.detach()))
    full = ours(X, X, X)
    handle.remove()
    assert brought[0].shape == (B, 3, S, 2)
    each = [brought[0][:, i] @ ours.W_o.weight[:, 2 * i : 2 * i + 2].T for i in range(3)]
    torch.testing.assert_close(sum(each), full)
    without = ours(X, X, X, head_mask=torch.tensor([1.0, 0.0, 1.0]))
    torch.testing.assert_close(without, each[0] + each[2])
    mixed = ours(X, X, X, head_mask=torch.tensor([[1, 1, 1], [0, 0.5, 0]]))
    torch.testing.assert_close(mixed, torch.stack([full[0], 0.5 * each[1][1]]))
    mask = torch.ones(3, dtype=torch.float64, requires_grad=True)
    ours(X, X, X, head_mask=mask).sum().backward()
    torch.testing.assert_close(mask.grad, torch.stack([x.detach().sum() for x in each]))


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_groups_of_heads_that_share_keys_by_a_loop(groups, causal):
    torch.manual_seed(0)
    layer = MultiHeadAttention(30, 6, num_kv_heads=groups).double()
    X = torch.randn(2, 7, 30, dtype=torch.float64)
    Q, K, V = (linear(X).split(5, -1) for linear in (layer.W_q, layer.W_k, layer.W_v))
    assert len(K) == len(V) == groups
    heads = []
    for i, q in enumerate(Q):
        k, v = K[i // (6 // groups)], V[i // (6 // groups)]
        scores = q @ k.mT / 5**0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(7, 7, dtype=torch.bool).tril(), -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    torch.testing.assert_close(layer(X, X, X, causal=causal), layer.W_o(torch.cat(heads, -1)))
    with capture_attention(layer) as weights:
        layer(X, X, X, causal=causal)
    assert weights["attention"][0].shape == (2, 6, 7, 7)


@torch.no_grad()
def test_a_cache_of_groups_is_small_and_gives_the_same():
    layer = MultiHeadAttention(30, 6, num_kv_heads=2).double()
    X = torch.randn(2, 7, 30, dtype=torch.float64)
    mask = torch.ones(2, 1, 7, dtype=torch.bool)
    mask[0, :, :2] = False  # padding on the left
    cache, outputs = layer.empty_cache(2), []
    for t in range(7):
        x = X[:, t : t + 1]
        output, cache = layer.extend(x, x, x, cache, mask=mask[:, :, : t + 1], causal=True)
        outputs.append(output)
    assert cache.keys.shape == (2, 2, 7, 5)
    torch.testing.assert_close(torch.cat(outputs, 1), layer(X, X, X, mask=mask, causal=True))


@pytest.mark.parametrize("groups", [0, 4, -1])
def test_groups_that_do_not_divide_the_heads(groups):
    with pytest.raises(ValueError, match=f"num_kv_heads is {groups}, expected a divisor of num_heads, 6"):
        MultiHeadAttention(30, 6, num_kv_heads=groups)


def test_dropout_acts_in_training_alone():
    ours = MultiHeadAttention(h, H, dropout=0.5)
    X = torch.randn(B, S, h)
    for bias in (None, torch.zeros(1, 1, S, S)):
        ours.train()
        assert not torch.allclose(ours(X, X, X, score_bias=bias), ours(X, X, X, score_bias=bias))
        ours.eval()
        assert torch.equal(ours(X, X, X, score_bias=bias), ours(X, X, X, score_bias=bias))


def call(queries=(B, T, h), keys=(B, S, h), values=(B, S, h), cache=None, **options):
    inputs = [None if n is None else torch.ones(n) for n in (queries, keys, values)]
    attention = MultiHeadAttention(h, H)
    return attention(*inputs, **options) if cache is None else attention.extend(*inputs, cache, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: MultiHeadAttention(10, 3), "num_hiddens is 10, expected a multiple of num_heads, 3"),
        (lambda: MultiHeadAttention(10, 0), "num_heads, 0"),
        (lambda: MultiHeadAttention(10, 3, head_size=0), "head_size is 0, expected at least 1"),
        (lambda: call((B, T, 5)), r"the input of W_q has shape \(2, 3, 5\), expected \(B, n, 6\)"),
        (lambda: call(values=(B, S, 7)), r"the input of W_v has shape \(2, 5, 7\)"),
        (lambda: call(keys=(B, 4, h)), "there are 4 keys but 5 values"),
        (lambda: call(values=None), "expected keys and values, or neither and a cache"),
        (lambda: call(keys=None, values=None), "expected keys and values, or neither and a cache"),
        (
            lambda: call(keys=None, values=None, cache=MultiHeadAttention(h, H).empty_cache(B), rotary=rotary),
            "rotary needs the keys as they are projected",
        ),
        (
            lambda: call(cache=MultiHeadAttention(h, H).project(torch.ones(3, 1, h), torch.ones(3, 1, h))),
            r"the cache holds \(3, 2, 1, 3\), to which \(2, 2, 5, 3\) cannot be appended",
        ),
        (lambda: call(valid_lens=torch.tensor([1, 2, 3])), "valid_lens has length 3 but the batch is 2"),
        (lambda: call(mask=torch.ones(B, S, dtype=torch.bool)), "mask has shape"),
        (lambda: call(score_bias=torch.ones(H, T, S)), r"score_bias has shape \(2, 3, 5\), which does not"),
        (lambda: call(score_bias=torch.ones(1, H, T, 4)), "score_bias has shape"),
        (lambda: call(head_mask=torch.ones(3)), r"head_mask has shape \(3,\), expected \(2,\) or \(2, 2\)"),
    ],
)
def test_bad_input(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
