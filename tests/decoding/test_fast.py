"""A copy that decodes faster says what the model says, in every way, and is never behind its own weights."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from gpt_forms import FORMS, TOY
from torch import nn

from d2lmini.adapters import adapt, adapters_of, merge_adapters
from d2lmini.decoding import beam_search
from d2lmini.decoding.fast import PackedAttention, PackedBlock, for_decoding
from d2lmini.hooks import capture_attention, head_masks
from d2lmini.models.gpt import GPT
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig
from d2lmini.multi_head import HeadsAttention, MultiHeadAttention
from d2lmini.position import RelativePositionBias
from d2lmini.transformer import AddNorm, TransformerEncoderBlock


@pytest.fixture(params=FORMS)
def model(request):
    return some(FORMS[request.param])


def some(config):
    torch.manual_seed(0)
    model = GPT(config)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


def tokens(*shape):
    return torch.randint(65, shape, generator=torch.Generator().manual_seed(4))


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def step_by_step(model, X, padding=None):
    """Logits (B, T, V) of one token after the other."""
    state, found = model.empty_state(len(X), padding), []
    for x in X.T:
        logits, state = model.step(x, state)
        found.append(logits)
    return torch.stack(found, 1)


@pytest.mark.parametrize("grad", [False, True])
def test_it_scores_as_the_model_does(model, grad):
    X, model = tokens(3, 9), model.eval()
    fast = for_decoding(model)
    with torch.set_grad_enabled(grad):
        wanted = model(X)
        close(fast(X), wanted)
        close(step_by_step(fast, X), wanted)
        padding = torch.tensor([0, 3, 5])
        mask = torch.arange(9) >= padding[:, None]
        close(step_by_step(fast, X, padding)[mask], model(X, padding)[mask])


@torch.no_grad()
def test_a_step_goes_the_short_way(model, monkeypatch):
    fast, X = for_decoding(model), tokens(2, 5)
    assert all(type(blk) is PackedBlock for blk in fast.blks)
    _, state = fast.extend(X, fast.empty_state(2))
    monkeypatch.setattr(TransformerEncoderBlock, "forward", lambda *_, **__: pytest.fail("the long way"))
    fast.step(X[:, 0], state)


@torch.no_grad()
def test_states_are_those_of_the_model(model):
    model, X = model.eval(), tokens(2, 7)
    fast = for_decoding(model)
    state, other = (m.extend(X, m.empty_state(2))[1] for m in (model, fast))
    close(fast.step(X[:, 0], state)[0], model.step(X[:, 0], other)[0])
    results = [beam_search(m.step, s, X[:, 0], 1, 8, 3) for m, s in ((model, state), (fast, state))]
    assert torch.equal(results[0].tokens, results[1].tokens)


def test_the_model_stays_as_it_is():
    model = some(TOY)
    before, seed = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    fast = for_decoding(model)
    assert torch.equal(torch.get_rng_state(), seed) and model.training and not fast.training
    assert model.dense.weight is model.embedding.weight and fast.dense.weight is not fast.embedding.weight
    assert all(p.requires_grad and p.is_contiguous() for p in model.parameters())
    nn.init.zeros_(fast.blks[0].attention.W_qkv.weight), nn.init.zeros_(fast.blks[0].ffn.dense1.bias)
    assert all(torch.equal(x, y) for x, y in zip(before.values(), model.state_dict().values(), strict=True))
    assert type(model.blks[0].attention) is MultiHeadAttention and not any(p.requires_grad for p in fast.parameters())
    linears = [m for m in fast.modules() if type(m) is nn.Linear]
    assert len(linears) == 2 * 4 + 1 and all(m.weight.T.is_contiguous() for m in linears)
    assert all(norm.dropout is None for blk in fast.blks for norm in (blk.addnorm1, blk.addnorm2))


def grown(fast):
    for parameter in fast.parameters():
        parameter.mul_(1.5)
    return fast


def behind_autograds_back(fast):
    for parameter in fast.parameters():
        parameter.data.mul_(1.5)
    return fast


def other_data(fast):
    for parameter in fast.parameters():
        parameter.data = parameter.data * 1.5
    return fast


def another_state(fast):
    fast.load_state_dict({name: 1.5 * x for name, x in fast.state_dict().items()})
    return fast


def another_part(fast):
    fast.blks[1].ffn = copy.deepcopy(fast.blks[0].ffn)
    fast.blks[0].attention.W_qkv = copy.deepcopy(fast.blks[1].attention.W_qkv)
    return fast


CHANGES = {
    "in place": grown,
    "in place by .data": behind_autograds_back,
    "other data": other_data,
    "another state": another_state,
    "another part": another_part,
    "a copy": lambda fast: grown(copy.deepcopy(fast)),
    "a file": lambda fast: grown(pickle.loads(pickle.dumps(fast))),
    "another dtype": lambda fast: fast.double(),
}


@torch.no_grad()
@pytest.mark.parametrize("change", CHANGES)
def test_a_step_is_never_behind_the_weights(change):
    fast, X = for_decoding(some(TOY)), tokens(2, 6)
    before = step_by_step(fast, X)
    changed = CHANGES[change](fast)
    found = step_by_step(changed, X)
    close(found, changed(X))
    assert found.dtype == torch.float64 if change == "another dtype" else not torch.allclose(found, before, atol=1e-2)


@torch.no_grad()
def test_weights_are_shown_and_heads_switched_off(model):
    model, X = model.eval(), tokens(2, 6)
    fast, records = for_decoding(model), []
    for m in (model, fast):
        with capture_attention(m) as record:
            step_by_step(m, X)
        records.append([x for weights in record.values() for x in weights])
    assert len(records[0]) == len(records[1]) == 2 * 6
    for one, other in zip(*records, strict=True):
        close(one, other)
    shown = fast.blks[1].attention.attention.attention_weights
    close(shown, records[1][-1].flatten(0, 1))
    masks = {"blks.0.attention": torch.tensor([0.0, 1, 1, 0.5])}
    with head_masks(model, masks), head_masks(fast, masks):
        masked = step_by_step(fast, X)
        close(masked, step_by_step(model, X))
    assert not torch.allclose(masked, model(X), atol=1e-2)


def test_what_is_watched_or_of_another_kind_stays():
    class Low(nn.Linear):
        def forward(self, X):
            return super().forward(X).round()

    model = some(replace(TOY, num_blks=4))
    seen = []
    model.blks[0].attention.W_k.register_forward_hook(lambda *_: seen.append("k"))
    model.blks[1].ffn.dense1.register_forward_pre_hook(lambda *_: seen.append("ffn"))
    for name in ("W_q", "W_k", "W_v"):
        setattr(model.blks[2].attention, name, Low(64, 64))
    fast = for_decoding(model)
    assert [type(blk) is PackedBlock for blk in fast.blks] == [False, False, False, True]
    X = tokens(2, 4)
    close(step_by_step(fast, X), model(X))
    assert seen == ["k", "ffn"] * 5


def parallel(block):
    """What a block with one option more may look like: both sublayers read the same."""
    block.parallel = True
    block.forward = lambda X, *args, **options: X + block.attention(X, X, X, **options) + block.ffn(X)


def with_gain(module, name="gain"):
    module.register_parameter(name, nn.Parameter(torch.tensor(3.0)))
    module.forward = lambda *args, **options: 3.0 * type(module).forward(module, *args, **options)


class Loud(AddNorm):
    def forward(self, X, Y):
        return self.ln(X + 2 * Y)

    def add(self, X, Y):
        return X + 2 * self.dropout(Y)


class Sharp(HeadsAttention):
    def forward(self, queries, keys, values, mask=None, *, causal, score_bias=None):
        return super().forward(3 * queries, keys, values, mask, causal=causal, score_bias=score_bias)


def of_a_class(module, kind):
    module.__class__ = kind


UNKNOWN = {
    "an option of the block": parallel,
    "a field of the attention": lambda block: with_gain(block.attention),
    "a field of a projection": lambda block: with_gain(block.attention.W_k),
    "a field of a residual connection": lambda block: with_gain(block.addnorm1),
    "a field of the network": lambda block: with_gain(block.ffn),
    "another residual connection": lambda block: of_a_class(block.addnorm2, Loud),
    "another attention of the heads": lambda block: of_a_class(block.attention.attention, Sharp),
    "a module more": lambda block: setattr(block, "adapter", nn.Linear(64, 64)),
    "a mere note": lambda block: setattr(block, "note", "the first one"),
}


@torch.no_grad()
@pytest.mark.parametrize("change", UNKNOWN)
def test_a_block_with_a_field_that_is_not_known_stays(change):
    model = some(TOY).eval()
    UNKNOWN[change](model.blks[0])
    fast, X = for_decoding(model), tokens(2, 5)
    assert [type(blk) is PackedBlock for blk in fast.blks] == [False, True]
    close(fast(X), model(X))
    if change != "an option of the block":  # whose `extend` this one has not
        close(step_by_step(fast, X), step_by_step(model, X))


@torch.no_grad()
def test_a_block_that_has_two_names_is_packed_under_both():
    model = some(TOY).eval()
    model.blks[1] = model.blks[0]
    fast, X = for_decoding(model), tokens(2, 5)
    assert fast.blks[0] is fast.blks[1] and type(fast.blks[0]) is PackedBlock
    close(step_by_step(fast, X), model(X))


@torch.no_grad()
def test_adapters_that_are_merged_are_packed_and_others_work():
    model, X = adapt(some(TOY).eval(), 2, ["W_q", "W_v", "dense1"]), tokens(2, 5)
    for adapter in adapters_of(model).values():
        nn.init.normal_(adapter.up, std=0.2)
    wanted = model(X)
    close(step_by_step(for_decoding(model), X), wanted)
    fast = for_decoding(merge_adapters(model))
    assert all(type(blk) is PackedBlock for blk in fast.blks)
    close(step_by_step(fast, X), wanted)
    close(model(X), wanted)


@pytest.mark.parametrize("wrong", ["gpt2", 3, None, TOY, GPT, [nn.Linear(2, 2)]], ids=str)
def test_what_is_no_model(wrong):
    with pytest.raises(TypeError, match=f"the model is a {type(wrong).__name__}, expected a torch.nn.Module"):
        for_decoding(wrong)


@torch.no_grad()
def test_what_is_not_a_step_goes_the_long_way():
    torch.manual_seed(0)
    block = TransformerEncoderBlock(8, 12, 2, use_bias=True).eval()
    fast, X = for_decoding(block), torch.randn(2, 5, 8)
    bias = RelativePositionBias(2)
    nn.init.normal_(bias.weight)
    close(fast(X, torch.tensor([3, 5])), block(X, torch.tensor([3, 5])))
    for options in ({"valid_lens": torch.tensor([2, 6])}, {"score_bias": bias(1, 6)}, {"mask": torch.arange(6) > 1}):
        if "mask" in options:
            options["mask"] = options["mask"][None]  # (1, S)
        cache = block.extend(X, block.attention.empty_cache(2))[1]
        one, other = (b.extend(X[:, :1], cache, **options) for b in (block, fast))
        close(one[0], other[0])
        close(one[1].keys, other[1].keys)
    with pytest.raises(ValueError, match=r"the input of W_q has shape \(2, 5, 3\)"):
        fast(torch.zeros(2, 5, 3))


@pytest.mark.parametrize("bias", [False, True])
def test_packed_attention_takes_any_inputs(bias):
    plain = MultiHeadAttention(8, 2, bias=bias)
    packed = PackedAttention(copy.deepcopy(plain))
    X, Y = torch.randn(2, 3, 8), torch.randn(2, 4, 8)
    close(packed(X, Y, Y), plain(X, Y, Y))
    close(packed(X, X, X, causal=True), plain(X, X, X, causal=True))
    memory = packed.project(Y, Y)
    close(packed.extend(X, None, None, memory)[0], plain(X, Y, Y))
    X[0, 2] = torch.nan
    close(packed(X, X, X, torch.tensor([2, 3]))[:, :2], plain(X, X, X, torch.tensor([2, 3]))[:, :2])


@torch.no_grad()
def test_heads_of_a_size_of_their_own():
    torch.manual_seed(0)
    block = TransformerEncoderBlock(8, 12, 3, head_size=5, scale=1.0).eval()
    fast, X = for_decoding(block), torch.randn(2, 5, 8)
    assert type(fast) is PackedBlock
    cache, found = fast.attention.empty_cache(2), []
    for x in X.split(1, 1):
        y, cache = fast.extend(x, cache, causal=True)
        found.append(y)
    close(torch.cat(found, 1), block(X, causal=True))


@torch.no_grad()
def test_a_translation_model():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(11, 16, 24, 2, 2), 0).eval()
    fast, src, lens = for_decoding(model), torch.randint(3, 11, (3, 5)), torch.tensor([5, 2, 4])
    found = [beam_search(m.step, m.start(src, lens), 1, 2, 6, 2).tokens for m in (model, fast)]
    assert torch.equal(*found)
    close(fast(src, src, lens), model(src, src, lens))
