"""The blocks against torch's layers; the decoder against the faults of D2L's: a look ahead, positions, state."""

import copy

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from d2lmini.cache import KeyValueCache
from d2lmini.decoding import beam_search, greedy_search, reorder
from d2lmini.masks import causal_mask
from d2lmini.measure import LargestTensor
from d2lmini.position import PositionalEncoding, RelativePositionBias
from d2lmini.rotation import rotary
from d2lmini.transformer import (
    AddNorm,
    DecoderState,
    GatedFFN,
    PositionWiseFFN,
    SquaredReLU,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)

B, T, S, H, h, FFN = 2, 4, 5, 2, 6, 9
LENS = torch.tensor([2, 5])
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def copy_weights(ours, theirs):
    """Puts random weights into ours and the same into torch's layer; returns pairs of parameters to compare."""
    attentions = {"self_attn": getattr(ours, "attention", getattr(ours, "attention1", None))}
    if hasattr(ours, "attention2"):
        attentions["multihead_attn"] = ours.attention2
    pairs = []
    for name, attention in attentions.items():
        module = getattr(theirs, name)
        projections = [attention.W_q, attention.W_k, attention.W_v]
        pairs += [([w.weight for w in projections], module.in_proj_weight)]
        pairs += [([w.bias for w in projections], module.in_proj_bias)]
        pairs += [([attention.W_o.weight], module.out_proj.weight), ([attention.W_o.bias], module.out_proj.bias)]
    layers = [(ours.ffn.dense1, theirs.linear1), (ours.ffn.dense2, theirs.linear2)]
    layers += [(getattr(ours, f"addnorm{i}").ln, getattr(theirs, f"norm{i}")) for i in range(1, len(attentions) + 2)]
    pairs += [([x.weight], y.weight) for x, y in layers] + [([x.bias], y.bias) for x, y in layers]
    assert sum(len(p) for p, _ in pairs) == len(list(ours.parameters()))
    assert len(pairs) == len(list(theirs.parameters()))
    with torch.no_grad():
        for parameters, other in pairs:
            for p in parameters:
                p.copy_(torch.randn_like(p))
            other.copy_(torch.cat(parameters))
    return pairs


def compare(outputs, inputs, pairs):
    torch.testing.assert_close(*outputs)
    upstream = torch.randn_like(outputs[0])
    for output in outputs:
        output.backward(upstream)
    for one, other in zip(*inputs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    for parameters, other in pairs:
        torch.testing.assert_close(torch.cat([p.grad for p in parameters]), other.grad)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_encoder_block_equals_torch_in_value_and_gradient(training, norm_first, activation):
    options = {"norm_first": norm_first, "activation": ACTIVATIONS[activation]}
    ours = TransformerEncoderBlock(h, FFN, H, 0.0, use_bias=True, **options).double().train(training)
    theirs = nn.TransformerEncoderLayer(
        h, H, FFN, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=torch.float64
    ).train(training)
    pairs = copy_weights(ours, theirs)
    X = torch.randn(B, S, h).double()
    inputs = [[X.clone().requires_grad_()] for _ in range(2)]
    padding = torch.arange(S) >= LENS[:, None]
    compare([ours(*inputs[0], LENS), theirs(*inputs[1], src_key_padding_mask=padding)], inputs, pairs)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("chunks", [[T], [1] * T, [2, 2]])
def test_decoder_block_equals_torch_in_value_and_gradient(chunks, training, norm_first, activation):
    options = {"norm_first": norm_first, "activation": ACTIVATIONS[activation]}
    ours = TransformerDecoderBlock(h, FFN, H, 0.0, 0, use_bias=True, **options).double().train(training)
    theirs = nn.TransformerDecoderLayer(
        h, H, FFN, 0.0, activation, batch_first=True, norm_first=norm_first, dtype=torch.float64
    ).train(training)
    pairs = copy_weights(ours, theirs)
    X, memory = torch.randn(B, T, h).double(), torch.randn(B, S, h).double()
    inputs = [[X.clone().requires_grad_(), memory.clone().requires_grad_()] for _ in range(2)]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    padding = torch.arange(S) >= LENS[:, None]
    state, parts = DecoderState.start(inputs[0][1], LENS, 1), []
    for x in inputs[0][0].split(chunks, 1):
        y, state = ours(x, state)
        parts.append(y)
    expected = theirs(*inputs[1], tgt_mask=future, memory_key_padding_mask=padding)
    compare([torch.cat(parts, 1), expected], inputs, pairs)


# --- a small decoder as models make it ---


class Decoder(nn.Module):
    def __init__(self, norm_first, dropout=0.0, num_blks=3, vocab=11):
        super().__init__()
        self.embedding = nn.Embedding(vocab, h)
        self.position = PositionalEncoding(h, dropout)
        self.blks = nn.ModuleList(
            TransformerDecoderBlock(h, FFN, H, dropout, i, norm_first=norm_first) for i in range(num_blks)
        )
        self.dense = nn.Linear(h, vocab)

    def forward(self, tokens, state):
        X = self.position(self.embedding(tokens), offset=state.length)
        for blk in self.blks:
            X, state = blk(X, state)
        return self.dense(X), state

    def step(self, tokens, state):
        logits, state = self(tokens[:, None], state)
        return logits[:, -1], state

    def start(self, memory, valid_lens=LENS):
        return DecoderState.start(memory, valid_lens, len(self.blks))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_changing_the_future_moves_nothing_before_it(norm_first, training):
    decoder, memory = Decoder(norm_first).train(training), torch.randn(B, S, h)
    tokens = torch.randint(11, (B, 9))
    before = decoder(tokens, decoder.start(memory))[0]
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    after = decoder(changed, decoder.start(memory))[0]
    assert torch.equal(after[:, :5], before[:, :5])
    assert not torch.isclose(after[:, 5:], before[:, 5:]).all(-1).any()
    # nor does the gradient of what comes before reach the future
    X = torch.randn(B, 9, h, requires_grad=True)
    decoder.blks[0](X, decoder.start(memory))[0][:, :5].sum().backward()
    assert not X.grad[:, 5:].any() and X.grad[:, :5].any()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 4], [8, 1]])
def test_stepping_equals_teacher_forcing_positions_too(chunks, norm_first, training):
    decoder, memory = Decoder(norm_first).train(training), torch.randn(B, S, h)
    tokens = torch.randint(11, (B, 9))
    whole, last = decoder(tokens, decoder.start(memory))
    state, parts = decoder.start(memory), []
    for part in tokens.split(chunks, 1):
        logits, state = decoder(part, state)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-5, atol=1e-5)
    assert state.length == last.length == 9
    for one, other in zip(tree_leaves(state), tree_leaves(last), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", ["rotary", "T5"])
def test_stepping_with_relative_positions(options):
    block, memory, X = TransformerDecoderBlock(8, FFN, H), torch.randn(B, S, 8), torch.randn(B, 7, 8)
    t5 = RelativePositionBias(H, bidirectional=False)
    nn.init.normal_(t5.weight)

    def more(n, past):
        return {"rotary": rotary} if options == "rotary" else {"score_bias": t5(n, past + n)}

    start = DecoderState.start(memory, LENS, 1)
    whole = block(X, start, **more(7, 0))[0]
    state, parts = start, []
    for x in X.split([3, 1, 1, 2], 1):
        y, state = block(x, state, **more(x.shape[1], state.length))
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(block(X, start)[0], whole, atol=1e-3)
    encoder = TransformerEncoderBlock(8, FFN, H)
    assert not torch.allclose(encoder(X, **more(7, 0)), encoder(X), atol=1e-3)


def test_a_state_is_never_changed():
    decoder, memory = Decoder(False), torch.randn(B, S, h)
    states = [decoder.start(memory)]
    states.append(decoder(torch.randint(11, (B, 3)), states[0])[1])
    for state in states:
        before = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, state)
        ends = [decoder(torch.full((B, 2), token), state) for token in (3, 4)]
        assert not torch.equal(ends[0][0], ends[1][0])
        for x, y in zip(tree_leaves(state), tree_leaves(before), strict=True):
            assert x is y is None or torch.equal(x, y)
        again = decoder(torch.full((B, 2), 3), state)[0]  # a second hypothesis has left no trace
        assert torch.equal(again, ends[0][0])
    assert states[0].caches == (None,) * 3


def test_the_memory_is_projected_once():
    decoder, calls = Decoder(False), []
    for blk in decoder.blks:
        blk.attention2.W_k.register_forward_hook(lambda *_: calls.append(1))
    state = decoder.start(torch.randn(B, S, h))
    for token in torch.randint(11, (6, B)):
        _, state = decoder.step(token, state)
    assert len(calls) == 3 and state.length == 6
    assert isinstance(state.caches[2].cross_attention, KeyValueCache)


def test_rows_of_a_state_can_be_reordered_as_a_beam_does():
    decoder, memory = Decoder(True), torch.randn(B, S, h)
    index = torch.tensor([1, 0, 1])
    tokens, new = torch.randint(11, (B, 3)), torch.randint(11, (B, 1))
    state = decoder(tokens, decoder.start(memory))[1]
    expected = decoder(new, state)[0][index]
    torch.testing.assert_close(decoder(new[index], reorder(state, index))[0], expected)
    fresh = decoder(tokens[index], reorder(decoder.start(memory), index))[0]
    torch.testing.assert_close(fresh, decoder(tokens, decoder.start(memory))[0][index])


@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_searches_with_the_cache_equal_searches_without(alpha):
    decoder, memory = Decoder(False).eval(), torch.randn(B, S, h)
    nn.init.normal_(decoder.dense.weight)  # else all tokens are about as likely

    def uncached(tokens, state):
        prefix, memory, valid_lens = state
        prefix = torch.cat([prefix, tokens[:, None]], 1)
        return decoder(prefix, DecoderState.start(memory, valid_lens, 3))[0][:, -1], (prefix, memory, valid_lens)

    both = (decoder.step, decoder.start(memory)), (uncached, (torch.zeros(B, 0).long(), memory, LENS))
    pairs = [
        [greedy_search(*model, 0, 1, 12) for model in both],
        [beam_search(*model, 0, 1, 12, 3, alpha) for model in both],
    ]
    for cached, plain in pairs:
        assert torch.equal(cached.tokens, plain.tokens)
        torch.testing.assert_close(cached.scores, plain.scores)


def test_padding_of_the_memory_has_no_effect_and_none_means_all():
    decoder, memory, tokens = Decoder(False), torch.randn(B, S, h), torch.randint(11, (B, 3))
    expected = decoder(tokens, decoder.start(memory))[0]
    cut = decoder(tokens[:1], decoder.start(memory[:1, :2], None))[0]
    torch.testing.assert_close(expected[:1], cut)
    memory[0, 2:] = 100.0
    assert torch.equal(decoder(tokens, decoder.start(memory))[0], expected)


def test_nan_in_the_padding_of_the_memory_has_no_effect_in_value_or_gradient():
    decoder, memory, tokens = Decoder(False), torch.randn(B, S, h), torch.randint(11, (B, 3))
    expected = decoder(tokens, decoder.start(memory))[0]
    memory[0, 2:] = torch.nan
    for state in (decoder.start(memory), [memory, LENS, [None] * 3]):
        decoder.zero_grad()
        X = decoder.position(decoder.embedding(tokens))
        for blk in decoder.blks:
            X, state = blk(X, state)
        output = decoder.dense(X)
        assert torch.equal(output, expected)
        output.sum().backward()
        assert all(p.grad.isfinite().all() for p in decoder.parameters())


def test_a_decoder_makes_no_causal_mask_of_its_own_for_a_whole_target():
    block, X = TransformerDecoderBlock(h, FFN, H), torch.randn(1, 100, h)
    with LargestTensor() as seen:
        block(X, DecoderState.start(X[:, :S], None, 1))
    assert seen.numel < 100 * 100 / 2


def test_the_causal_encoder_block_is_a_decoder_without_memory():
    block, X = TransformerEncoderBlock(h, FFN, H), torch.randn(B, 6, h)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    before = block(X, mask=mask)
    torch.testing.assert_close(block(X, causal=True), before)
    X[:, 4:] += 1
    assert torch.equal(block(X, mask=mask)[:, :4], before[:, :4])
    assert not torch.isclose(block(X)[:, :4], before[:, :4]).all(-1).any()


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_block_goes_on_from_a_cache(norm_first):
    torch.manual_seed(0)
    block, X = TransformerEncoderBlock(8, 12, 2, norm_first=norm_first).double(), torch.randn(3, 6, 8).double()
    whole = block(X, mask=causal_mask(6))
    cache, parts = block.attention.empty_cache(3), []
    for part in X.split([1, 3, 2], 1):
        before = cache
        output, cache = block.extend(part, cache, causal=True)
        parts.append(output)
        assert before.length == cache.length - part.shape[1]  # the old cache stays as it was
    torch.testing.assert_close(torch.cat(parts, 1), whole)


@pytest.mark.parametrize("norm_first", [False, True])
def test_dropout_acts_in_training_alone(norm_first):
    encoder = TransformerEncoderBlock(h, FFN, H, 0.5, norm_first=norm_first)
    decoder, memory, X = Decoder(norm_first, 0.5), torch.randn(B, S, h), torch.randn(B, S, h)
    tokens = torch.randint(11, (B, 3))

    def calls():
        return encoder(X), decoder(tokens, decoder.start(memory))[0]

    assert not any(map(torch.allclose, calls(), calls()))
    encoder.eval(), decoder.eval()
    assert all(map(torch.equal, calls(), calls()))


@pytest.mark.parametrize("norm_first", [False, True])
def test_what_every_sublayer_adds_is_dropped(norm_first):
    encoder = TransformerEncoderBlock(h, FFN, H, norm_first=norm_first)
    decoder = TransformerDecoderBlock(h, FFN, H, norm_first=norm_first)
    X, state = torch.randn(B, T, h), DecoderState.start(torch.randn(B, S, h), LENS, 1)
    for block in (encoder, decoder):
        for module in block.modules():
            if isinstance(module, AddNorm):
                module.dropout.p = 1.0
    expected = X if norm_first else nn.functional.layer_norm(X, [h])  # to norm again changes nothing but rounding
    for output in (encoder(X), decoder(X, state)[0]):
        torch.testing.assert_close(output, expected, rtol=1e-3, atol=1e-3)


# --- D2L's cells ---


def test_the_cells_of_d2l_11_7():
    ffn = PositionWiseFFN(4, 8).eval()
    rows = ffn(torch.ones((2, 3, 4)))[0]
    assert rows.shape == (3, 8) and torch.equal(rows[0], rows[1])
    assert AddNorm(4, 0.5)(torch.ones((2, 3, 4)), torch.ones((2, 3, 4))).shape == (2, 3, 4)
    X, valid_lens = torch.ones((2, 100, 24)), torch.tensor([3, 2])
    encoder_blk = TransformerEncoderBlock(24, 48, 8, 0.5).eval()
    assert encoder_blk(X, valid_lens).shape == X.shape
    decoder_blk = TransformerDecoderBlock(24, 48, 8, 0.5, 0)
    state = [encoder_blk(X, valid_lens), valid_lens, [None]]
    output, new = decoder_blk.eval()(X, state)
    assert output.shape == X.shape and state[2] == [None] and isinstance(new, DecoderState)
    expected = decoder_blk(X, DecoderState.start(state[0], valid_lens, 1))[0]
    assert torch.equal(output, expected)
    assert decoder_blk(X[:, :1], new)[1].length == 101


def test_add_norm_is_the_norm_of_the_sum():
    addnorm, X, Y = AddNorm([3, 4], 0.0), torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    torch.testing.assert_close(addnorm(X, Y), nn.functional.layer_norm(X + Y, [3, 4]))


def test_gated_network_is_that_of_llama():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(hidden_size=h, intermediate_size=FFN, num_attention_heads=H)
    theirs = transformers.models.llama.modeling_llama.LlamaMLP(config)
    ours = GatedFFN(FFN, h, num_inputs=h, bias=False)
    for mine, other in ((ours.gate, theirs.gate_proj), (ours.dense1, theirs.up_proj), (ours.dense2, theirs.down_proj)):
        mine.weight.data.copy_(other.weight.data)
    X = torch.randn(B, T, h)
    torch.testing.assert_close(ours(X), theirs(X))
    assert sum(p.numel() for p in ours.parameters()) == 3 * h * FFN


def test_a_block_of_today_step_by_step():
    """RMS norm, normed queries and keys, turned; squared ReLU; no biases."""
    ffn = PositionWiseFFN(FFN, h, num_inputs=h, activation=SquaredReLU, bias=False)
    block = TransformerEncoderBlock(
        h, FFN, 1, norm_first=True, norm=nn.RMSNorm, ffn=ffn, qk_norm=lambda d: nn.RMSNorm(d, elementwise_affine=False)
    )
    assert not [name for name, _ in block.named_parameters() if name.endswith("bias")]
    X = torch.randn(B, T, h)

    def normed(x):
        return x / (x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).sqrt()

    N, attention = normed(X), block.attention
    queries, keys = (rotary(normed(N @ W.weight.T)) for W in (attention.W_q, attention.W_k))
    scores = (queries @ keys.mT / h**0.5).masked_fill(~causal_mask(T), -torch.inf)
    Y = X + scores.softmax(-1) @ (N @ attention.W_v.weight.T) @ attention.W_o.weight.T
    wanted = Y + (normed(Y) @ ffn.dense1.weight.T).clamp(min=0) ** 2 @ ffn.dense2.weight.T
    torch.testing.assert_close(block(X, causal=True, rotary=rotary), wanted)


def test_a_decoder_block_of_other_parts():
    """RMS norm, a gate, heads of another size, scores that are not divided."""
    ffn = GatedFFN(FFN, h, num_inputs=h, bias=False)
    block = TransformerDecoderBlock(h, FFN, 1, norm_first=True, norm=nn.RMSNorm, ffn=ffn, head_size=5, scale=1.0)
    assert not [name for name, _ in block.named_parameters() if name.endswith("bias")] and block.ffn is ffn
    X, memory = torch.randn(B, T, h), torch.randn(B, S, h)

    def attend(attention, queries, sources, mask):
        q, k, v = (x @ w.weight.T for x, w in zip((queries, sources, sources), projections(attention), strict=True))
        assert q.shape[-1] == 5
        return (q @ k.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ v @ attention.W_o.weight.T

    def projections(attention):
        return attention.W_q, attention.W_k, attention.W_v

    Q = block.addnorm1.ln(X)
    Y = X + attend(block.attention1, Q, Q, causal_mask(T))
    Y = Y + attend(block.attention2, block.addnorm2.ln(Y), memory, torch.ones(T, S, dtype=torch.bool))
    Y = Y + ffn(block.addnorm3.ln(Y))
    torch.testing.assert_close(block(X, DecoderState.start(memory, None, 1))[0], Y)


def test_a_used_block_can_be_copied_and_saved():
    block = TransformerDecoderBlock(h, FFN, H)
    X, state = torch.randn(B, T, h), DecoderState.start(torch.randn(B, S, h), LENS, 1)
    expected = block(X, state)[0]
    torch.testing.assert_close(copy.deepcopy(block)(X, state)[0], expected)
    fresh = TransformerDecoderBlock(h, FFN, H)
    fresh.load_state_dict(block.state_dict())
    torch.testing.assert_close(fresh(X, state)[0], expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: AddNorm(4)(torch.ones(2, 3, 4), torch.ones(2, 1, 4)), r"X has shape \(2, 3, 4\) but Y has \(2, 1, "),
        (
            lambda: TransformerDecoderBlock(h, FFN, H, i=1)(torch.ones(B, T, h), [torch.ones(B, S, h), None, [None]]),
            "the state has 1 caches but this is block 1",
        ),
        (
            lambda: TransformerDecoderBlock(h, FFN, H)(torch.ones(B, T, h), [torch.ones(3, S, h), None, [None]]),
            r"the cache holds \(3, 2, 0, 3\), to which \(2, 2, 4, 3\) cannot be appended",
        ),
        (lambda: DecoderState.start(torch.ones(B, S, h), torch.tensor([1, 6]), 1), "valid_lens holds 6"),
        (lambda: TransformerEncoderBlock(h, FFN, 4), "num_hiddens is 6, expected a multiple of num_heads, 4"),
        (lambda: TransformerEncoderBlock(h, FFN, H)(torch.ones(B, T, 5)), r"the input of W_q has shape \(2, 4, 5\)"),
    ],
)
def test_bad_input(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
