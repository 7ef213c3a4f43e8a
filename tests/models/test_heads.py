"""Heads over any encoder: which token counts, losses without padding, answers inside of the passage."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from toy_bert import LEFT, LENS, RIGHT, SEGMENTS, TOKENS, toy_bert

from d2lmini.models.bert import BERT
from d2lmini.models.bert_config import BERT_CONFIGS
from d2lmini.models.heads import (
    PairHead,
    TaggingHead,
    TextHead,
    class_token,
    cross_entropy,
    mean_pooling,
)
from d2lmini.models.span_head import SpanHead


class Bag(nn.Module):
    """An encoder that is no Transformer and takes no segments."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(101, 6)

    def forward(self, tokens, valid_lens=None, mask=None):
        return self.embedding(tokens)


@pytest.fixture(scope="module")
def bert():
    return toy_bert()


def test_what_stands_for_a_text():
    X = torch.randn(4, 8, 5)
    poisoned = X.masked_fill(~LEFT[..., None], torch.nan)
    torch.testing.assert_close(mean_pooling(X), X.mean(1))
    torch.testing.assert_close(class_token(X), X[:, 0])
    for found, first in ((mean_pooling(X, LENS), 0), (mean_pooling(poisoned, mask=LEFT[:, None]), None)):
        for row, n in enumerate(LENS.tolist()):
            rows = X[row, :n] if first == 0 else X[row, 8 - n :]
            torch.testing.assert_close(found[row], rows.mean(0))
    torch.testing.assert_close(class_token(X, LENS), X[:, 0])
    torch.testing.assert_close(class_token(X, mask=LEFT[:, None]), X[torch.arange(4), 8 - LENS])
    assert not mean_pooling(X, torch.zeros(4, dtype=torch.long)).any()


@pytest.mark.parametrize("pooling", ["class", "mean", "pooler"])
def test_a_text_on_either_side(bert, pooling):
    head = TextHead(bert, 3, pooling).eval()
    right = head(TOKENS, SEGMENTS, LENS)
    rolled = [
        torch.stack([row.roll(8 - n) for row, n in zip(X, LENS.tolist(), strict=True)]) for X in (TOKENS, SEGMENTS)
    ]
    torch.testing.assert_close(head(*rolled, mask=LEFT[:, None]), right)
    X = bert(TOKENS, SEGMENTS, LENS)
    pooled = {"class": X[:, 0], "mean": mean_pooling(X, LENS), "pooler": bert.pooled(X)}[pooling]
    torch.testing.assert_close(right, head.dense(pooled))


def test_any_encoder():
    head = TextHead(Bag(), pooling="mean", num_hiddens=6).eval()
    torch.testing.assert_close(head(TOKENS, None, LENS), head.dense(mean_pooling(head.encoder(TOKENS), LENS)))
    assert TaggingHead(Bag(), 5, num_hiddens=6)(TOKENS, None, LENS).shape == (4, 8, 5)
    with pytest.raises(ValueError, match=r"the encoder made \(4, 8, 6\) of tokens \(4, 8\), expected \(4, 8, 7\)"):
        TextHead(Bag(), num_hiddens=7)(TOKENS)


def test_labels_that_are_none():
    Y_hat, Y = torch.randn(4, 3, requires_grad=True), torch.tensor([2, -100, 0, 1])
    torch.testing.assert_close(cross_entropy(Y_hat, Y), nn.functional.cross_entropy(Y_hat[[0, 2, 3]], Y[[0, 2, 3]]))
    loss = cross_entropy(Y_hat, torch.full((4,), -100))
    loss.backward()
    assert loss == 0 and not Y_hat.grad.any()


def test_what_a_head_learns_with(bert):
    text = TextHead(bert, dropout=0.9, lr=0.03)
    assert text.batch_weight((TOKENS, torch.tensor([1, -100, 0, -100]))) == 2
    text.dropout.train()  # the encoder has none: what differs is the head's
    assert not text(TOKENS).equal(text(TOKENS))
    groups = text.configure_optimizers().param_groups
    assert {group["weight_decay"] for group in groups} == {0.01, 0.0} and {group["lr"] for group in groups} == {0.03}


def test_a_number_of_a_text(bert):
    head, Y = TextHead(bert, None), torch.tensor([0.5, 2, -1, 3])
    found = head.eval()(TOKENS)
    torch.testing.assert_close(head.loss(found, Y), (found - Y).square().mean())
    assert head.batch_weight((TOKENS, Y)) == 4
    with pytest.raises(ValueError, match=r"labels have shape \(4, 1\), expected \(4,\): a number a text"):
        head.loss(found, Y[:, None])


def test_a_pair_needs_segments(bert):
    with pytest.raises(ValueError, match="a pair needs segments"):
        PairHead(bert)(TOKENS)
    pair = PairHead(bert, 3).eval()
    text = TextHead(bert, 3).eval()
    text.dense = pair.dense
    torch.testing.assert_close(pair(TOKENS, SEGMENTS, LENS), text(TOKENS, SEGMENTS, LENS))


def test_padding_has_no_tag(bert):
    head, Y = TaggingHead(bert, 5).eval(), TOKENS % 5
    Y[0, 3] = -100
    counted = RIGHT & (Y != -100)
    Y_hat = head(TOKENS, SEGMENTS, LENS)
    wanted = nn.functional.cross_entropy(Y_hat[counted], Y[counted])
    torch.testing.assert_close(head.loss(Y_hat, Y, LENS), wanted)
    torch.testing.assert_close(head.loss(Y_hat, Y, mask=RIGHT[:, None]), wanted)
    torch.testing.assert_close(head.loss(Y_hat, Y.masked_fill(~RIGHT, -100)), wanted)
    head.plot, batch = lambda *args, train: None, (TOKENS, SEGMENTS, LENS, Y)
    torch.testing.assert_close(head.training_step(batch), wanted)
    assert head.batch_weight(batch) == counted.sum()


@pytest.mark.train
@pytest.mark.parametrize("task", ["text", "tagging", "span"])
def test_a_head_learns(task):
    """Whether there is a 1, where there are 1s, from where to where."""
    torch.manual_seed(0)
    bert = BERT(replace(BERT_CONFIGS["toy"], vocab_size=20, num_hiddens=32))
    head = {"text": TextHead(bert, pooling="mean", lr=2e-3), "tagging": TaggingHead(bert, 2, lr=2e-3)}.get(task)
    head, losses = head or SpanHead(bert, lr=2e-3), []
    optimizer, head.plot = head.configure_optimizers(), lambda *args, train: None
    for _ in range(60):
        tokens = torch.randint(2, 20, (32, 8))
        starts = torch.randint(1, 8, (32,))
        ends = torch.minimum(starts + torch.randint(3, (32,)), torch.tensor(7))
        there = (torch.arange(8) >= starts[:, None]) & (torch.arange(8) <= ends[:, None])
        asked = torch.ones(32, dtype=torch.bool) if task == "span" else torch.arange(32) % 2 == 0
        there = there & asked[:, None]
        tokens[there] = 1
        Y = {"text": asked.long(), "tagging": there.long(), "span": torch.stack([starts, ends], 1)}[task]
        losses.append(loss := head.training_step((tokens, torch.ones_like(tokens), torch.full((32,), 8), Y)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.stack(losses[-5:]).mean() < 0.5 * losses[0]


def test_bad_input(bert):
    text, tagging = TextHead(bert, 3), TaggingHead(bert, 5)
    with pytest.raises(
        ValueError, match=r"labels have shape \(4, 8\), expected \(4,\): are they those of another task"
    ):
        text.loss(text(TOKENS), TOKENS % 3)
    with pytest.raises(ValueError, match=r"labels have shape \(4,\), expected \(4, 8\)"):
        tagging.loss(tagging(TOKENS), LENS)
    with pytest.raises(ValueError, match=r"labels are 0 to 3, expected 0 to 2 .*was the head made for fewer classes"):
        text.loss(text(TOKENS), torch.tensor([0, -100, 3, 1]))
    with pytest.raises(ValueError, match=r"labels are torch.float32, expected integers"):
        text.loss(text(TOKENS), torch.ones(4))
    with pytest.raises(ValueError, match="there are 65 tokens but 64 positions"):
        text(torch.ones(1, 65, dtype=torch.long))
    with pytest.raises(ValueError, match="pooling is 'max', expected one of 'class', 'mean', 'pooler'"):
        TextHead(bert, pooling="max")
    with pytest.raises(ValueError, match="pooling is 'pooler' but the encoder has none"):
        TextHead(Bag(), pooling="pooler", num_hiddens=6)
    with pytest.raises(ValueError, match="there are 0 classes, expected at least 1"):
        TaggingHead(bert, 0)
