"""T5: causal, cached, padded on either side, beams and draws; counts of the published models; what it refuses."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from d2lmini.decoding import reorder
from d2lmini.decoding.fast import for_decoding
from d2lmini.hooks import attention_patterns
from d2lmini.models.t5 import T5, T5Decoder, T5Encoder
from d2lmini.models.t5_config import T5_CONFIGS, T5Config

V = 29
TOY = replace(T5_CONFIGS["toy"], vocab_size=V, num_hiddens=20, head_size=3, num_buckets=8, max_distance=9)
FORMS = {"1.0": TOY, "1.1": replace(TOY, ffn="geglu", tie_weights=False)}
LENS = torch.tensor([7, 2, 5])


@pytest.fixture(params=FORMS)
def model(request):
    torch.manual_seed(0)
    model = T5(FORMS[request.param]).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def tokens(*shape, seed=4):
    return torch.randint(2, V, shape, generator=torch.Generator().manual_seed(seed))


def inputs():
    X = tokens(3, 7)
    return X.masked_fill(torch.arange(7) >= LENS[:, None], 0)


close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_formula_written_out():
    """One block of each stack, one example, head by head."""
    torch.manual_seed(0)
    config = replace(TOY, num_blks=1)
    model = T5(config).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    X, Y = tokens(1, 6), tokens(1, 12, seed=5)

    def norm(layer, x):
        return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * layer.weight

    def attend(layer, queries, sources, bias, allowed):
        heads = []
        for i in range(4):
            rows = slice(3 * i, 3 * i + 3)
            q, k, v = (
                x @ w.weight[rows].T for x, w in ((queries, layer.W_q), (sources, layer.W_k), (sources, layer.W_v))
            )
            scores = q @ k.T + bias[i]
            heads.append(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ v)
        return torch.cat(heads, -1) @ layer.W_o.weight.T

    def ffn(layer, x):
        return (x @ layer.dense1.weight.T).clamp(min=0) @ layer.dense2.weight.T

    def bias(position, n, both_ways):
        table = torch.zeros(4, n, n).double()
        for t in range(n):
            for s in range(n):
                table[:, t, s] = position.weight[bucket(s - t, both_ways)]
        return table

    def bucket(offset, both_ways):
        number, first = (4, 4 * (offset > 0)) if both_ways else (8, 0)
        distance = abs(offset) if both_ways else max(-offset, 0)
        if distance < number // 2:
            return first + distance
        grown = torch.tensor(distance / (number // 2)).log() / torch.tensor(9 / (number // 2)).log() * (number // 2)
        return first + min(number // 2 + int(grown), number - 1)

    encoder, decoder = model.encoder, model.decoder
    blk, x = encoder.blks[0], encoder.embedding.weight[X[0]]
    z, full = norm(blk.addnorm1.ln, x), torch.ones(6, 6, dtype=torch.bool)
    x = x + attend(blk.attention, z, z, bias(encoder.position, 6, True), full)
    x = x + ffn(blk.ffn, norm(blk.addnorm2.ln, x))
    memory = norm(encoder.norm, x)
    close(memory, encoder(X)[0])
    blk, x = decoder.blks[0], encoder.embedding.weight[Y[0]]
    z = norm(blk.addnorm1.ln, x)
    x = x + attend(blk.attention1, z, z, bias(decoder.position, 12, False), full.new_ones(12, 12).tril())
    x = x + attend(blk.attention2, norm(blk.addnorm2.ln, x), memory, torch.zeros(4, 12, 6), full.new_ones(12, 6))
    x = x + ffn(blk.ffn, norm(blk.addnorm3.ln, x))
    logits = norm(decoder.norm, x) / 20**0.5 @ encoder.embedding.weight.T
    torch.testing.assert_close(model(X, Y)[0], logits)


@torch.no_grad()
def test_no_target_sees_a_later_one_and_each_sees_the_whole_input(model):
    X, Y = inputs(), tokens(3, 6)
    changed = Y.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % V
    for mode in (True, False):
        model.train(mode)
        one, other = model(X, Y), model(X, changed)
        close(one[:, :4], other[:, :4])
        assert not torch.allclose(one[:, 4], other[:, 4])
    changed = X.clone()
    changed[0, 6] = X[0, 6] % (V - 1) + 1
    assert (model(X, Y)[0] - model(changed, Y)[0]).abs().amax(-1).min() > 1e-4
    close(model(X, Y)[1:], model(changed, Y)[1:])


@torch.no_grad()
@pytest.mark.parametrize("chunks", [[1] * 12, [5, 1, 6], [12]])
def test_the_cache_changes_nothing(model, chunks):
    X, Y, found = inputs(), tokens(3, 12), []
    state = model.start(X)
    for part in Y.split(chunks, 1):
        logits, state = model.decoder(part, state)
        found.append(logits)
    close(torch.cat(found, 1), model(X, Y))
    assert state.length == 12


@torch.no_grad()
def test_the_input_is_read_once(model):
    calls = []
    for blk in (*model.encoder.blks, *model.decoder.blks):
        for attention in (getattr(blk, "attention", None), getattr(blk, "attention2", None)):
            if attention is not None:
                attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    model.generate([[3, 4], [5]], 6, temperature=1.0)
    assert len(calls) == 4  # of two blocks of the encoder, and of two cross-attentions


@torch.no_grad()
def test_padding_on_either_side_changes_nothing(model):
    X, Y = inputs(), tokens(3, 4)
    left = torch.stack([row.roll(7 - n) for row, n in zip(X, LENS.tolist(), strict=True)])
    wanted = torch.cat([model(row[None, :n], y[None]) for row, n, y in zip(X, LENS, Y, strict=True)])
    for found in (model(X, Y), model(X, Y, LENS), model(left, Y)):
        close(found, wanted)
    garbage = torch.where(X == 0, 9, X)
    close(model(garbage, Y, LENS), wanted)
    with pytest.raises(AssertionError):
        close(model(garbage, Y), wanted)
    memory = model.encoder(X)
    state = model.decoder.init_state(memory, LENS)
    close(model.decoder(Y, state)[0], wanted)
    picked = reorder(model.start(X), torch.tensor([2, 2, 1]))
    close(model.decoder(Y[[2, 2, 1]], picked)[0], wanted[[2, 2, 1]])


@torch.no_grad()
def test_generation_by_trying_without_a_cache(model):
    prompts = [row[:n].tolist() for row, n in zip(inputs(), LENS, strict=True)]
    found = model.train().generate(prompts, 8)
    assert model.training
    model.eval()
    for prompt, row, n, score in zip(prompts, *found, strict=True):
        Y, total = torch.zeros(1, 1, dtype=torch.long), 0.0
        for token in row[: n + 1]:
            logits = model(torch.tensor([prompt]), Y)[0, -1]
            assert logits.argmax() == token
            total += logits.log_softmax(-1)[token]
            Y = torch.cat([Y, token[None, None]], 1)
        close(score, total)


@torch.no_grad()
def test_beams_and_draws(model):
    prompts = [[5, 6, 7], [8]]
    beam = model.generate(prompts, 3, beam_size=V**2, length_penalty=0.0)
    greedy = model.generate(prompts, 3)
    assert (beam.scores >= greedy.scores - 1e-5).all()
    # all texts of at most 3 tokens, scored by teacher forcing; one that has ended goes on for nothing
    every = torch.cartesian_prod(*[torch.arange(V)] * 2)
    texts = torch.cat([every, torch.full((len(every), 1), -1)], 1)
    logits = model(torch.tensor(prompts[0])[None].expand(len(every), -1), torch.cat([0 * every[:, :1], every], 1))
    scores = logits.log_softmax(-1)
    texts[:, 2] = scores[:, 2].argmax(-1)
    each = scores.gather(2, texts[..., None])[..., 0]  # (V^2, 3)
    ended = (texts == 1).cumsum(1) - (texts == 1).long() > 0
    best = each.masked_fill(ended, 0).sum(1).max()
    close(beam.scores[0], best)

    def drawn(seed, **options):
        generator = torch.Generator().manual_seed(seed)
        return model.generate(prompts, 6, generator=generator, temperature=2.0, **options).tokens

    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
    assert drawn(1, num_samples=3).shape[:2] == (2, 3)
    cold = model.train().generate(prompts, 6, temperature=0)
    assert model.training
    assert torch.equal(cold.tokens, model.generate(prompts, 6).tokens)


@torch.no_grad()
def test_a_copy_for_decoding_gives_the_same(model):
    copy, X, Y = for_decoding(model), inputs(), tokens(3, 6)
    close(copy(X, Y), model(X, Y))
    prompts = [[5, 6, 7], [8]]
    assert torch.equal(copy.generate(prompts, 6).tokens, model.generate(prompts, 6).tokens)


def test_three_patterns_of_attention():
    torch.manual_seed(0)
    model = T5(FORMS["1.0"]).train()
    X, Y = inputs(), tokens(3, 5)
    found = attention_patterns(model, X, Y)
    mask = (X != 0)[:, None]
    assert len(found) == 6 and model.training
    for name, pattern in found.items():
        if name.startswith("encoder"):
            wanted = mask.expand(3, 7, 7)
        elif "attention1" in name:
            wanted = torch.ones(3, 5, 5, dtype=torch.bool).tril()
        else:
            wanted = mask.expand(3, 5, 7)
        assert torch.equal(pattern, wanted), name
    with pytest.raises(RuntimeError, match="call it first"):
        T5(TOY).encoder.attention_weights  # noqa: B018
    model.eval()(X, Y)
    (one, cross), own = model.decoder.attention_weights, model.encoder.attention_weights
    assert own[1].shape == (12, 7, 7) and one[0].shape == (12, 5, 5) and cross[1].shape == (12, 5, 7)


# of the paper, rounded there (Raffel et al. 2020, section 3.7), and of the checkpoints that were published
PAPER = {"small": 60e6, "base": 220e6, "large": 770e6, "3b": 2.8e9, "11b": 11e9}
PUBLISHED = {"small": 60506624, "base": 222903552, "large": 737668096, "3b": 2851598336, "11b": 11307321344}


@pytest.mark.parametrize("name", PAPER)
def test_counts_are_those_of_the_published_models(name):
    with torch.device("meta"):
        found = T5(T5_CONFIGS[name]).num_parameters
    assert found == PUBLISHED[name]
    # 770 M is the paper's alone: it is what there would be with the matrix of the vocabulary twice
    rounded = found if name != "large" else found + 32128 * 1024
    assert rounded == pytest.approx(PAPER[name], rel=0.01 if name in ("small", "large") else 0.03)
    assert (abs(found / PAPER[name] - 1) < 0.03) == (name != "large")


def test_the_encoder_of_imagen_has_4_6_billion():
    with torch.device("meta"):
        encoder = T5(T5_CONFIGS["v1.1-xxl"]).encoder
        inside = sum(p.numel() for p in encoder.parameters()) - encoder.embedding.weight.numel()
    assert inside == pytest.approx(4.6e9, rel=0.01)


def test_count_by_hand():
    config = replace(TOY, num_hiddens=6, num_heads=2, head_size=5, num_blks=3, ffn_num_hiddens=11)
    attention, ffn, position = 4 * 6 * 10, 2 * 6 * 11, 2 * 8 * 2
    norms = 3 * (2 + 3) * 6 + 2 * 6
    count = V * 6 + 3 * (3 * attention + 2 * ffn) + norms + position
    assert T5(config).num_parameters == count
    new = replace(config, ffn="geglu", tie_weights=False)
    assert T5(new).num_parameters == count + V * 6 + 3 * 2 * 6 * 11


def test_how_weights_begin():
    torch.manual_seed(0)
    wide = {"num_hiddens": 256, "head_size": 64, "ffn_num_hiddens": 400, "vocab_size": 500}
    for tied in (True, False):
        model = T5(replace(TOY, **wide, tie_weights=tied)).eval()
        attention, ffn = model.decoder.blks[0].attention2, model.encoder.blks[1].ffn
        for weight, size in (
            (attention.W_q, 256 * 64),
            (attention.W_k, 256),
            (attention.W_o, 4 * 64),
            (ffn.dense1, 256),
            (ffn.dense2, 400),
        ):
            assert weight.weight.std().item() == pytest.approx(size**-0.5, rel=0.02)
        assert model.encoder.embedding.weight.std().item() == pytest.approx(1, rel=0.02)
        assert model.encoder.position.weight.std().item() == pytest.approx(256**-0.5, rel=0.4)
        logits = model(tokens(4, 9), tokens(4, 8))
        assert logits.std().item() == pytest.approx(1, rel=0.15)
        assert (model.decoder.dense.weight is model.encoder.embedding.weight) == tied
    assert model.decoder.embedding is model.encoder.embedding


def test_dropout_is_where_the_paper_has_it():
    """Within the networks, on what each sublayer adds, on attention weights, and at both ends of both stacks."""
    model = T5(replace(FORMS["1.1"], dropout=0.2))
    places = {name for name, m in model.named_modules() if isinstance(m, nn.Dropout) and m.p == 0.2}
    of_block = {"encoder": ("attention", "addnorm1", "addnorm2"), "decoder": ()}
    of_block["decoder"] = ("attention1", "attention2", "addnorm1", "addnorm2", "addnorm3")
    wanted = {"encoder.dropout", "decoder.dropout"}
    for stack, parts in of_block.items():
        for i in range(2):
            wanted |= {f"{stack}.blks.{i}.{p}{'.attention' * ('att' in p)}.dropout" for p in parts}
            wanted.add(f"{stack}.blks.{i}.ffn.activation.1")
    assert places == wanted
    X, Y = inputs(), tokens(3, 5)
    assert not torch.equal(model(X, Y), model(X, Y))
    torch.testing.assert_close(model.eval()(X, Y), model(X, Y))
    called = []
    for stack in (model.encoder, model.decoder):
        stack.dropout.register_forward_hook(lambda module, *_: called.append(module))
    model(X, Y)
    assert called == [stack.dropout for stack in (model.encoder, model.decoder) for _ in range(2)], "both ends"


@torch.no_grad()
def test_the_pad_inside_a_prompt_is_none_of_it_whatever_stands_beside(model):
    for prompt in ([9, 0, 4, 0], [0, 5, 0, 6]):
        alone = model.generate([prompt], 5).tokens
        rows = model.generate([prompt, [5], [7, 8]], 5).tokens
        assert torch.equal(rows[:1, : alone.shape[1]], alone)
        drawn = [
            model.generate(prompts, 5, temperature=1.0, generator=torch.Generator().manual_seed(3)).scores[0]
            for prompts in ([prompt, [5, 6, 7, 8]], [prompt, [5, 6]])
        ]
        torch.testing.assert_close(*drawn)


def test_shift_and_loss_leave_padding_out():
    model = T5(replace(TOY, start=2))
    Y = torch.tensor([[5, 6, 1, 0], [7, 8, 9, 1]])
    assert model.shift_right(Y).tolist() == [[2, 5, 6, 1], [2, 7, 8, 9]]
    logits = torch.randn(2, 4, V)
    alone = nn.functional.cross_entropy(torch.cat([logits[0, :3], logits[1]]), torch.cat([Y[0, :3], Y[1]]))
    torch.testing.assert_close(model.loss(logits, Y), alone)
    assert model.batch_weight((None, None, Y)) == 7
    assert model.loss(logits, torch.full_like(Y, 0)) == 0, "a batch with nothing to learn"


@pytest.mark.train
@pytest.mark.parametrize("form", FORMS)
def test_it_learns_to_copy_backwards(form):
    torch.manual_seed(0)
    small = {"num_hiddens": 32, "ffn_num_hiddens": 64, "num_blks": 1, "vocab_size": 8}
    config = FORMS[form]
    model = T5(replace(T5_CONFIGS["toy"], **small, ffn=config.ffn, tie_weights=config.tie_weights), lr=0.03)
    optimizer = model.configure_optimizers()
    for _ in range(300):
        X = torch.randint(2, 8, (48, 3))
        Y = torch.cat([X.flip(1), torch.ones(48, 1, dtype=torch.long)], 1)
        loss = model.loss(model(X, model.shift_right(Y)), Y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    X = torch.cartesian_prod(*[torch.arange(2, 8)] * 3)
    right = (model.generate(X, 4).tokens[:, :3] == X.flip(1)).all(1).float().mean()
    assert right > 0.9


def test_bad_input():
    model = T5(TOY).eval()
    X, Y = inputs(), tokens(3, 4)
    for one, other in ((X + V, Y), (X, Y + V), (X - V, Y)):
        with pytest.raises(ValueError, match="expected 0 to 28: were they encoded with the vocabulary of this model"):
            model(one, other)
    for wrong in (X[0], X.float(), X > 3):
        with pytest.raises(ValueError, match=r"expected integers \(B, T\)"):
            model(X, wrong)
    with pytest.raises(ValueError, match="valid_lens holds 8 but there are only 7 keys"):
        model(X, Y, torch.tensor([8, 1, 1]))
    with pytest.raises(ValueError, match=r"the cache holds \(3, 4, 0, 3\), to which \(2, 4, 4, 3\) cannot be appended"):
        model(X, Y[:2])
    nothing = model(torch.zeros_like(X), Y)
    assert nothing.isfinite().all(), "an input of padding alone"
    for empty in ([[1], []], [], torch.empty(2, 0, dtype=torch.long)):
        with pytest.raises(ValueError, match="a prompt is empty"):
            model.generate(empty, 3)
    with pytest.raises(ValueError, match="beam_size is 4, but the other options draw tokens"):
        model.generate([[3]], 3, beam_size=4, top_k=5)
    with pytest.raises(ValueError, match="max_len is 0"):
        model.generate([[3]], 0)
    for wrong, message in {
        ("ffn", "tanh"): "ffn is 'tanh', expected one of 'relu', 'geglu'",
        ("num_blks", 0): "num_blks is 0, expected an integer, at least 1",
        ("head_size", 0): "head_size is 0, expected an integer, at least 1",
        ("eos", 32128): r"eos is 32128, expected 0 to 32127 \(vocab_size\)",
        ("pad", -1): "pad is -1",
    }.items():
        with pytest.raises(ValueError, match=message):
            T5Config(**dict([wrong]))
    with pytest.raises(ValueError, match="num_buckets is 7"):
        T5(replace(TOY, num_buckets=7))


def test_the_stacks_alone():
    torch.manual_seed(0)
    encoder, decoder = T5Encoder(TOY), T5Decoder(TOY)
    logits, state = decoder(tokens(3, 4), decoder.init_state(encoder(inputs())))
    assert logits.shape == (3, 4, V) and state.memory_mask is None and state.length == 4
