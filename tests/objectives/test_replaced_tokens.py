"""Replaced tokens: what is put in, what counts as original, from which distribution."""

import pytest
import torch
from chance import fits

from d2lmini.objectives import IGNORE_INDEX, mask_tokens, replace_tokens

V = 12


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def masked(B=6, T=20, seed=0):
    tokens = torch.randint(1, V - 1, (B, T), generator=seeded(seed))
    return tokens, mask_tokens(tokens, vocab_size=V, mask_id=V - 1, special_ids=[0], rate=0.3, generator=seeded(seed))


def sure(tokens):
    """Logits of a generator that is certain."""
    return torch.full((*tokens.shape, V), -torch.inf).scatter(-1, tokens[..., None], 0.0)


def test_a_right_guess_is_original_and_a_wrong_one_is_not():
    tokens, batch = masked()
    chosen = batch.labels != IGNORE_INDEX
    right = replace_tokens(batch, sure(tokens), generator=seeded())
    assert torch.equal(right.inputs, tokens) and not right.is_replaced.any()  # no mask is left, nor a random token
    wrong = replace_tokens(batch, sure((tokens + 1) % V), generator=seeded())
    assert torch.equal(wrong.is_replaced, chosen) and wrong.is_replaced.dtype == torch.bool
    assert torch.equal(wrong.inputs, torch.where(chosen, (tokens + 1) % V, tokens))


def test_labels_say_where_inputs_differ_from_the_text():
    tokens, batch = masked(40)
    got = replace_tokens(batch, torch.randn(40, 20, V, generator=seeded(3)), generator=seeded())
    assert torch.equal(got.is_replaced, got.inputs != tokens)
    chosen = batch.labels != IGNORE_INDEX
    assert 0 < got.is_replaced.sum() < chosen.sum()  # some guesses are right


def test_drawn_from_the_softmax():
    _, batch = masked(500)
    chosen = batch.labels != IGNORE_INDEX
    n, scores = int(chosen.sum()), torch.randn(V, generator=seeded(4))
    scores[[2, V - 1]] = -torch.inf
    guesses = replace_tokens(batch, scores.expand(500, 20, V), generator=seeded()).inputs[chosen]
    counts, p = guesses.bincount(minlength=V).tolist(), scores.softmax(-1).tolist()
    assert counts[2] == counts[V - 1] == 0
    assert all(fits(*pair) for pair in zip(counts, [n] * V, p, strict=True))
    # each from its own row, not from that of another
    own = torch.arange(500 * 20).reshape(500, 20) % 2
    got = replace_tokens(batch, sure(own), generator=seeded()).inputs
    assert torch.equal(got[chosen], own[chosen])


def test_logits_of_the_chosen_tokens_alone():
    _, batch = masked()
    logits = torch.randn(6, 20, V, generator=seeded(3))
    whole = replace_tokens(batch, logits, generator=seeded(5))
    alone = replace_tokens(tuple(batch), logits[batch.labels != IGNORE_INDEX], generator=seeded(5))
    assert all(torch.equal(*pair) for pair in zip(whole, alone, strict=True))
    other = replace_tokens(batch, logits, generator=seeded(6))
    assert not torch.equal(whole.inputs, other.inputs)


def test_no_gradient_and_nothing_changed():
    _, batch = masked()
    before = [part.clone() for part in batch]
    logits = torch.randn(6, 20, V, generator=seeded(3), requires_grad=True)
    inputs, _ = replace_tokens(batch, logits, generator=seeded())
    assert not inputs.requires_grad
    assert all(torch.equal(*pair) for pair in zip(before, batch, strict=True))


def test_half_precision_and_short_integers():
    _, batch = masked()
    logits = torch.randn(6, 20, V, generator=seeded(3)).bfloat16()
    inputs, _ = replace_tokens((batch.inputs.int(), batch.labels), logits, generator=seeded())
    assert inputs.dtype == torch.int32


def test_bad_arguments():
    _, batch = masked()
    M = int((batch.labels != IGNORE_INDEX).sum())
    logits = torch.zeros(6, 20, V)
    for shape in [(6, 19, V), (20, 6, V), (M + 1, V), (V,)]:
        with pytest.raises(ValueError, match=rf"expected \(6, 20, V\), or \({M}, V\) for the chosen"):
            replace_tokens(batch, torch.zeros(shape), generator=seeded())
    with pytest.raises(ValueError, match=r"labels have shape \(6, 19\) but inputs \(6, 20\)"):
        replace_tokens((batch.inputs, batch.labels[:, 1:]), logits, generator=seeded())
    with pytest.raises(ValueError, match="no token was chosen"):
        replace_tokens((batch.inputs, torch.full_like(batch.labels, IGNORE_INDEX)), logits, generator=seeded())
    with pytest.raises(ValueError, match="but logits are over 3 tokens"):
        replace_tokens(batch, logits[..., :3], generator=seeded())
    for bad in (torch.nan, torch.inf, -torch.inf):
        with pytest.raises(ValueError, match="logits are NaN, infinite, or minus infinity for all"):
            replace_tokens(batch, torch.full_like(logits, bad), generator=seeded())
    with pytest.raises(ValueError, match="tokens holds -100"):
        replace_tokens((batch.labels, batch.inputs), logits, generator=seeded())
    with pytest.raises(TypeError, match=r"expected torch\.Generator"):
        replace_tokens(batch, logits, generator=None)


@pytest.mark.parametrize("number", [0.0, 1 - 2**-24])  # the first and the last that torch.rand may give
def test_the_outermost_random_numbers_draw_nothing_impossible(monkeypatch, number):
    _, batch = masked()
    monkeypatch.setattr(torch, "rand", lambda *shape, generator: torch.full(shape, number))
    chosen = batch.labels != IGNORE_INDEX
    for C in (30, 41):  # in single precision 41 equal shares make less than 1
        logits = torch.full((6, 20, C + 4), -torch.inf)
        logits[..., 2:-2] = 0
        guesses = replace_tokens(batch, logits, generator=seeded()).inputs[chosen]
        assert (guesses == (2 if number == 0 else C + 1)).all()
