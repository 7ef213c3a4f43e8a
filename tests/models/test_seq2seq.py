"""Models of translation: recurrent and Transformer, stepping and teacher forcing, padding, causality, search."""

import math

import pytest
import torch
from torch import nn

import d2lmini as d2l
from d2lmini.models.bahdanau import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from d2lmini.models.seq2seq import Seq2Seq, init_seq2seq
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig

V, PAD, BOS, EOS = 13, 0, 1, 2


def recurrent(decoder, num_layers=2, dropout=0.0):
    size = (V, 6, 8, num_layers, dropout)
    return Seq2Seq(Seq2SeqEncoder(*size), decoder(*size), PAD, lr=0.01)


def transformer(norm_first=True, dropout=0.0):
    config = TransformerConfig(V, 8, 12, 2, 2, dropout=dropout, norm_first=norm_first, label_smoothing=0.1)
    return Transformer(config, PAD)


MODELS = {
    "plain": lambda: recurrent(Seq2SeqDecoder),
    "attention": lambda: recurrent(Seq2SeqAttentionDecoder),
    "one layer": lambda: recurrent(Seq2SeqAttentionDecoder, 1),
    "transformer": transformer,
    "post-norm": lambda: transformer(norm_first=False),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]().eval()


@pytest.fixture
def batch():
    torch.manual_seed(1)
    lens = torch.tensor([3, 5, 1])
    src = torch.randint(3, V, (3, 5)).masked_fill(torch.arange(5) >= lens[:, None], PAD)
    tgt = torch.randint(3, V, (3, 7))
    tgt[:, 0] = BOS
    label = torch.cat([tgt[:, 1:], torch.full((3, 1), EOS)], 1)
    label[0, 4:] = PAD
    return src, tgt, lens, label


def test_padding_of_the_source_changes_nothing(model, batch):
    src, tgt, lens, _ = batch
    logits = model(src, tgt, lens)
    assert logits.shape == (3, 7, V)
    wide = torch.cat([src, torch.randint(3, V, (3, 4))], 1)  # what stands behind the valid length is noise
    torch.testing.assert_close(model(wide, tgt, lens), logits)
    torch.testing.assert_close(model(src[2:, :1], tgt[2:], lens[2:]), logits[2:])


@pytest.mark.parametrize("training", [False, True])
def test_no_token_sees_its_future(model, batch, training):
    src, tgt, lens, _ = batch
    model.train(training)
    logits = model(src, tgt, lens)
    changed = tgt.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % V
    other = model(src, changed, lens)
    torch.testing.assert_close(other[:, :4], logits[:, :4])
    assert (other[:, 4:] - logits[:, 4:]).abs().max() > 1e-3


def test_token_by_token_equals_teacher_forcing(model, batch):
    src, tgt, lens, _ = batch
    logits = model(src, tgt, lens)
    state, steps = model.start(src, lens), []
    for tokens in tgt.T:
        out, state = model.step(tokens, state)
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), logits)


def test_a_beam_projects_the_memory_once_for_each_sentence(batch):
    src, _, lens, _ = batch
    model, sizes = transformer(), []
    for blk in model.decoder.blks:
        blk.attention2.W_k.register_forward_pre_hook(lambda layer, args: sizes.append(tuple(args[0].shape)))
    model.translate(src, lens, BOS, EOS, 6, beam_size=4)
    assert sizes == [(3, 5, 8)] * 2


def test_a_step_leaves_its_state(model, batch):
    """A beam's hypotheses start from the same state."""
    src, tgt, lens, _ = batch
    _, state = model.step(tgt[:, 0], model.start(src, lens))
    first, _ = model.step(tgt[:, 1], state)
    model.step(tgt[:, 2], state)
    again, _ = model.step(tgt[:, 1], state)
    assert torch.equal(first, again)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translate_keeps_the_rows_apart(model, batch, beam_size):
    """Alone or in a batch, a sentence gets the same translation: the state was reordered with its row."""
    src, _, lens, _ = batch
    together = model.translate(src, lens, BOS, EOS, 6, beam_size=beam_size)
    for i in range(3):
        alone = model.translate(src[i : i + 1, : lens[i]], lens[i : i + 1], BOS, EOS, 6, beam_size=beam_size)
        assert alone.valid_lens[0] == together.valid_lens[i]
        assert torch.equal(alone.tokens[0], together.tokens[i, : alone.tokens.shape[1]])


def test_predict_step_is_greedy_deterministic_and_leaves_the_mode(batch):
    torch.manual_seed(0)
    model = transformer(dropout=0.5).train()
    src, _, lens, _ = batch
    tokens, weights = model.predict_step(batch, "cpu", 6, save_attention_weights=True)
    again, _ = model.predict_step(batch, "cpu", 6)
    assert torch.equal(tokens, again), "dropout was on"
    assert model.training and tokens.shape == (3, 6)
    found = model.translate(src, lens, BOS, EOS, 6)
    for i, length in enumerate(found.valid_lens):
        assert torch.equal(found.tokens[i, :length], tokens[i, :length])
    own, cross = weights[3]
    assert [w.shape for w in own] == [(6, 1, 4)] * 2 and [w.shape for w in cross] == [(6, 1, 5)] * 2
    torch.testing.assert_close(cross[0].sum(-1), torch.ones(6, 1))
    assert not cross[0].unflatten(0, (3, 2))[2, :, :, 1:].any(), "the third source has one token"


def test_attention_weights_of_the_recurrent_decoder(batch):
    torch.manual_seed(0)
    model = recurrent(Seq2SeqAttentionDecoder)
    _, weights = model.predict_step(batch, "cpu", 6, save_attention_weights=True)
    assert len(weights) == 6 and weights[0][0].shape == (3, 1, 5)
    assert not weights[2][0][0, :, 3:].any()


def test_loss_counts_real_tokens_and_smooths_in_training_alone(batch):
    model = transformer()
    *inputs, label = batch
    logits = model.eval()(*inputs)
    by_hand = -logits.log_softmax(-1).gather(2, label[..., None])[..., 0][label != PAD]
    torch.testing.assert_close(model.loss(logits, label), by_hand.mean())
    assert model.batch_weight(batch) == len(by_hand)
    smooth = 0.9 * by_hand - 0.1 * logits.log_softmax(-1).mean(-1)[label != PAD]
    torch.testing.assert_close(model.train().loss(logits, label), smooth.mean())
    torch.testing.assert_close(model.loss(logits, label, averaged=False).sum(), smooth.sum())
    assert model.loss(logits, torch.full_like(label, PAD)) == 0, "a batch with nothing to learn"


def test_accuracy_leaves_padding_out(batch):
    label = batch[-1]
    logits = nn.functional.one_hot(label.masked_fill(label == PAD, 5), V).float()
    assert transformer().accuracy(logits, label) == 1


def test_transformer_has_one_matrix_for_all_three():
    model = transformer()
    assert model.decoder.dense.weight is model.encoder.embedding.weight is model.decoder.embedding.weight
    h, ffn = 8, 12
    attention, network, norm = 4 * (h * h + h), 2 * h * ffn + h + ffn, 2 * h
    blocks = 2 * (attention + network + 2 * norm) + 2 * (2 * attention + network + 3 * norm)
    assert model.num_parameters == V * h + V + blocks + 2 * norm  # matrix, bias of the logits, blocks, last norms


def test_transformer_starts_near_a_uniform_guess():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(1000, 64, 128, 4, 2), PAD).eval()
    src, tgt = torch.randint(3, 1000, (2, 16, 12))
    loss = model.loss(model(src, tgt, torch.full((16,), 12)), torch.randint(3, 1000, (16, 12)))
    assert abs(loss - math.log(1000)) < 1.0


def test_init_reaches_lazy_layers():
    torch.manual_seed(0)
    lazy = nn.Sequential(nn.LazyLinear(400, bias=False), nn.GRU(3, 5))
    lazy.apply(init_seq2seq)
    lazy[0](torch.ones(1, 100))
    bound = math.sqrt(6 / 500)
    weight = lazy[0].weight
    assert weight.abs().max() <= bound and weight.abs().max() > 0.99 * bound, "torch's own bound is 0.1"
    before = weight.clone()
    lazy[0](torch.ones(1, 100))
    assert torch.equal(lazy[0].weight, before), "initialised once"
    assert not torch.equal(lazy[1].weight_ih_l0, nn.GRU(3, 5).weight_ih_l0)


@pytest.mark.train
def test_learns_to_copy():
    """A few hundred steps: the loss falls from that of guessing to little."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(V, 32, 64, 4, 1, dropout=0.0, label_smoothing=0.0), PAD).train()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    lens = torch.full((32,), 5)
    for _ in range(250):
        src = torch.randint(3, V, (32, 5))
        tgt = torch.cat([torch.full((32, 1), BOS), src], 1)
        label = torch.cat([src, torch.full((32, 1), EOS)], 1)
        loss = model.loss(model(src, tgt, lens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    src = torch.randint(3, V, (50, 5))
    found = model.translate(src, torch.full((50,), 5), BOS, EOS, 8)
    rows = zip(found.tokens, found.valid_lens, src, strict=True)
    right = sum(length == 5 and torch.equal(row[:5], wanted) for row, length, wanted in rows)
    assert right >= 45


def test_tokens_that_are_none(model, batch):
    src, tgt, lens, _ = batch
    for wrong in (src + V, src - V, src[0], src.float(), src > 2):
        with pytest.raises(ValueError, match=r"tokens are .*, expected"):
            model(wrong, tgt, lens)
        with pytest.raises(ValueError, match=r"tokens are .*, expected"):
            model(src, wrong, lens)
    with pytest.raises(TypeError, match="tokens are a list"):
        model(src.tolist(), tgt, lens)


def test_base_classes_say_what_is_missing():
    for call in (
        lambda: d2l.Encoder()(None),
        lambda: d2l.Decoder().init_state(None),
        lambda: d2l.Decoder()(None, None),
        lambda: d2l.AttentionDecoder().attention_weights,
    ):
        with pytest.raises((NotImplementedError, AttributeError), match="has no"):
            call()
