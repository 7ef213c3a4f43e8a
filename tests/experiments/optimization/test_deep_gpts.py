"""Deep GPTs: what each form is, the loop that ends where numbers do, and the rule that says what came out."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.experiments import depth_by_rate
from d2lmini.experiments.gpt.language import Windows
from d2lmini.experiments.optimization.deep_gpts import (
    BASE,
    MARGIN,
    DeepGPT,
    Form,
    Text,
    rounded,
    score,
    told,
    train,
    verdict,
)
from d2lmini.models.gpt import GPT

L, V, T = 3, 11, 8
TINY = replace(BASE, vocab_size=V, max_len=T, num_hiddens=16, num_heads=2, num_blks=L)
FORMS = depth_by_rate.FORMS
TOKENS = torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


def make(form, seed=0, config=TINY):
    torch.manual_seed(seed)
    return DeepGPT(config, form)


def some_text(length=400):
    # one character is more frequent than the others, and there is something to learn
    ids = torch.tensor([0, 1, 0, 2, 0, 3, 0, 4, 5, 6, 7, 8, 9, 10], dtype=torch.uint8).repeat(30)[:length]
    return Text(ids[:300], ids[300:], V)


def by_hand(model, norms):
    """The formula of each place of the norms, with the model's own parts."""
    X = model.embedding(TOKENS) + model.pos_embedding(torch.arange(T))
    for blk in model.blks:
        for part, add in (
            (lambda Q, blk=blk: blk.attention(Q, Q, Q, causal=True), blk.addnorm1),
            (blk.ffn, blk.addnorm2),
        ):
            if norms == "after":
                X = add.ln(X + part(X))
            elif norms == "before":
                X = X + part(add.ln(X))
            else:
                X = X + getattr(add, "weight", 1.0) * part(X)
    return model.dense(model.norm(X) if norms == "before" else X)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_computes_its_formula(name):
    model = make(FORMS[name])
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):  # with factors of 1 two norms would be as one
            nn.init.normal_(module.weight)
    for blk in model.blks:
        if FORMS[name].residual_weight:
            nn.init.normal_(blk.addnorm1.weight)
    torch.testing.assert_close(model(TOKENS), by_hand(model, FORMS[name].norms))
    has_norms = any(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert has_norms == (FORMS[name].norms is not None)
    assert (model.blks[0].attention.q_norm is not None) == FORMS[name].qk_norm


def test_pre_norm_is_the_gpt_of_the_package():
    model = make(Form("before"))
    other = GPT(replace(TINY, init="gpt1"))
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(TOKENS), other(TOKENS), rtol=0, atol=0)


def test_all_begin_as_glorot_and_bengio_say():
    for form in FORMS.values():
        blk = make(form, config=replace(TINY, num_hiddens=64)).blks[1]
        assert blk.attention.W_q.weight.std().item() == pytest.approx((2 / 128) ** 0.5, rel=0.1)
        assert form.small_start or blk.ffn.dense1.weight.std().item() == pytest.approx((2 / 320) ** 0.5, rel=0.1)


def test_a_small_start_is_small_where_it_should_be():
    model, plain = make(FORMS["no norm, small start"]), make(FORMS["no norm"])
    small = 0.67 * L**-0.25
    for name, weight in plain.named_parameters():
        is_small = any(part in name for part in ("embedding", "W_v", "W_o", "dense1", "dense2"))
        torch.testing.assert_close(model.get_parameter(name), weight * (small if is_small else 1))
    assert small < 0.6


def test_with_a_residual_weight_all_blocks_begin_as_the_identity():
    model = make(FORMS["no norm, residual weight"])
    X = model.embedding(TOKENS) + model.pos_embedding(torch.arange(T))
    torch.testing.assert_close(model(TOKENS), model.dense(X), rtol=0, atol=0)
    assert model.num_parameters == make(FORMS["no norm"]).num_parameters + L
    model.loss(model(TOKENS), TOKENS).backward()
    assert all(blk.addnorm1.weight.grad.abs() > 0 for blk in model.blks)


@pytest.mark.parametrize(
    ("form", "message"),
    [(Form("middle"), "norms is 'middle'"), (Form("after", residual_weight=True), "in place of norms")],
)
def test_bad_forms(form, message):
    with pytest.raises(ValueError, match=message):
        make(form)


def test_losses_that_need_no_model():
    text, config = some_text(), replace(depth_by_rate.Config(), model=TINY, batch_size=4, final_batches=3)
    counts = [1 + (text.train == i).sum().item() for i in range(V)]
    generator, losses = torch.Generator().manual_seed(0), []
    windows = Windows(text.val, T)
    for _ in range(3):
        _, Y = windows.__getitems__(torch.randint(len(windows), (4,), generator=generator))
        losses += [-math.log(counts[y] / sum(counts)) for y in Y.flatten().tolist()]
    assert text.unigram(config) == pytest.approx(sum(losses) / len(losses))
    assert text.uniform == pytest.approx(math.log(V)) and text.unigram(config) < text.uniform


def test_batches_are_the_text_and_the_same_for_all():
    text = some_text()
    ours, others, another = (text.batches(4, T, torch.device("cpu"), seed) for seed in (3, 3, 4))
    first = next(ours)
    (X, Y), (X2, _), (X3, _) = first, next(others), next(another)
    assert X.shape == Y.shape == (4, T) and torch.equal(X, X2) and not torch.equal(X, X3)
    assert torch.equal(X[:, 1:], Y[:, :-1])
    assert not torch.equal(next(ours)[0], X)


def fit(form, rate, steps=30, **options):
    text, model = some_text(), make(form)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    batches = text.batches(4, T, torch.device("cpu"), 0)
    return model, train(model, batches, optimizer, lambda step: 1.0, steps, **options)


@pytest.mark.train
def test_a_training_learns():
    _, found = fit(Form("before"), 0.3)
    assert len(found["losses"]) == len(found["norms"]) == 30
    assert sum(found["losses"][-5:]) < 0.8 * sum(found["losses"][:5])
    assert found["losses"][0] == pytest.approx(math.log(V), abs=1)


def test_a_training_ends_where_its_numbers_do():
    model, found = fit(Form(None), 1e20)
    assert 1 <= len(found["losses"]) < 30
    assert all(map(math.isfinite, found["losses"] + found["norms"]))
    config = replace(depth_by_rate.Config(), model=TINY, batch_size=4, final_batches=1)
    assert score(model, some_text(), config) is None


def test_what_is_done_in_a_step():
    calls, model = [], make(Form("before"))
    before = nn.utils.parameters_to_vector(model.parameters()).detach()
    text = some_text()
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    batches = text.batches(4, T, torch.device("cpu"), 0)
    found = train(model, batches, optimizer, lambda step: 0.25 * step, 1, 0.1, lambda: calls.append(1))
    moved = nn.utils.parameters_to_vector(model.parameters()).detach() - before
    assert moved.norm().item() == pytest.approx(2.0 * 0.25 * 0.1, rel=1e-3)  # the rate of the first step, clipped
    assert found["norms"][0] > 0.2 and calls == [1]  # the norm is that before clipping
    X, Y = next(text.batches(4, T, torch.device("cpu"), 0))
    assert found["losses"][0] == pytest.approx(F.cross_entropy(make(Form("before"))(X).mT, Y).item())


@pytest.mark.parametrize(
    ("loss", "start", "want"),
    [
        (None, 4.5, "diverged"),
        (4.5, None, "diverged"),
        (4.5 + 2 * MARGIN, 4.5, "diverged"),
        (4.4, 4.5, "stuck"),  # worse than knowing nothing, but better than it began
        (4.0 + 2 * MARGIN, 3.0, "diverged"),
        (3.0, 4.5, "stuck"),
        (3.0 - MARGIN / 2, 4.5, "stuck"),  # that may be chance
        (3.0 - 2 * MARGIN, 4.5, "trains"),
    ],
)
def test_verdicts(loss, start, want):
    assert verdict(loss, start, unigram=3.0, uniform=4.0) == want


def test_what_is_told():
    values = {f"blks.{i}.attention.W_q.weight": x for i, x in enumerate((1.23456, None, math.inf))}
    assert told(values | {"embedding.weight": 1.0}) == {"queries": [1.235, None, None]}
    assert rounded([1.234567e-9, math.nan]) == [1.235e-9, None]
