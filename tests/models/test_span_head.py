"""The head for answers: inside of the passage, in order, the best span of all."""

import itertools

import pytest
import torch
from toy_bert import LENS, RIGHT, SEGMENTS, TOKENS, toy_bert

from d2lmini.models.span_head import SpanHead, best_spans


@pytest.fixture(scope="module")
def bert():
    return toy_bert()


def test_scores_outside_of_the_passage(bert):
    head = SpanHead(bert).eval()
    raw = head.dense(bert(TOKENS, SEGMENTS, LENS))
    given = torch.zeros(4, 8, dtype=torch.bool)
    given[:, 3:6] = True
    for passage, inside in ((None, RIGHT & (SEGMENTS == 1)), (given, RIGHT & given)):
        found = head(TOKENS, SEGMENTS, LENS, passage)
        torch.testing.assert_close(found[inside], raw[inside])
        assert found[~inside].isneginf().all()
    assert (head(TOKENS, None, LENS).isneginf().any(-1) == ~RIGHT).all()


def test_the_loss_of_answers(bert):
    head = SpanHead(bert).eval()
    Y_hat = head(TOKENS, SEGMENTS, LENS)  # the third row has no passage
    Y = torch.tensor([[3, 7], [2, 2], [-100, -100], [2, 2]])
    wanted = torch.stack(
        [-Y_hat[row, 2:n, i].log_softmax(0)[Y[row, i] - 2] for row, n in ((0, 8), (1, 5), (3, 3)) for i in (0, 1)]
    ).mean()
    loss = head.loss(Y_hat, Y)
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in head.parameters() if p.grad is not None)
    assert head.batch_weight((TOKENS, Y)) == 3
    assert head.loss(Y_hat, torch.full((4, 2), -100)) == 0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([2, 5], "from token 2 to 5, outside of the passage"),  # of five tokens
        ([1, 3], "from token 1 to 3, outside of the passage"),  # in the question
        ([4, 3], r"from token 4 to 3 of 8, expected both, in order"),
        ([3, -100], r"from token 3 to -100 of 8.* was it cut off\? Label it \(-100, -100\)"),
        ([7, 9], "from token 7 to 9 of 8"),
    ],
)
def test_answers_that_do_not_fit(bert, answer, message):
    head = SpanHead(bert)
    with pytest.raises(ValueError, match=message):
        head.loss(head(TOKENS, SEGMENTS, LENS), torch.tensor([[3, 7], answer, [-100, -100], [2, 2]]))


@pytest.mark.parametrize("max_len", [1, 2, 8])
def test_the_best_span_is_the_best_of_all(max_len):
    torch.manual_seed(0)
    for _ in range(20):
        Y_hat, inside = torch.randn(3, 8, 2), torch.rand(3, 8) < 0.6
        inside[1] = False
        Y_hat[~inside] = -torch.inf
        spans, scores = best_spans(Y_hat, max_len)
        for row in range(3):
            possible = {
                (s, e): Y_hat[row, s, 0] + Y_hat[row, e, 1]
                for s, e in itertools.product(range(8), repeat=2)
                if inside[row, s] and inside[row, e] and s <= e < s + max_len
            }
            best = max(possible, key=possible.get, default=(-1, -1))
            assert tuple(spans[row].tolist()) == best
            assert scores[row] == possible.get(best, -torch.inf)


def test_bad_input(bert):
    span = SpanHead(bert)
    with pytest.raises(ValueError, match=r"answers are torch.int64 of shape \(4,\), expected integers \(4, 2\)"):
        span.loss(span(TOKENS), LENS)
    with pytest.raises(ValueError, match=r"passage is torch.int64 of shape \(4, 8\), expected booleans \(4, 8\)"):
        span(TOKENS, passage=SEGMENTS)
    with pytest.raises(ValueError, match="max_len is 0, expected at least 1"):
        best_spans(torch.zeros(1, 3, 2), 0)
    with pytest.raises(ValueError, match=r"scores have shape \(3, 2\), expected \(B, T, 2\)"):
        best_spans(torch.zeros(3, 2))
