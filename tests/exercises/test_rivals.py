"""What a check sees of models that an answer trains."""

import pytest
import torch

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.rivals import Maker, examine, reversed_words


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.dense = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)

    def forward(self, src, *rest):
        return self.dense(self.embedding(src))


def trained(fault, seed=3):
    """Train as an answer does, but for one fault. Returns: (the maker, the rows to train on)."""
    t = Trial(0)
    train, valid, other = reversed_words(t, 16), reversed_words(t, 5), reversed_words(t, 16)
    maker = Maker(Model, train[0], held_out=5)
    torch.manual_seed(seed + (fault == "unseeded"))
    model = maker()
    if fault == "not-made":
        maker()
    parts = model.dense if fault == "partly-trained" else model
    optimizer = torch.optim.SGD(parts.parameters(), lr=0.1)
    model.train(fault != "not-training")
    rows = {"part-of-batch": train[0][:8], "trained-on-valid": other[0]}.get(fault, train[0])
    for _ in range(2):
        loss = model(rows).square().mean()
        if fault != "uncleared":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.train(fault == "not-eval")
    with torch.no_grad():
        model(valid[0])
    return maker, rows


def test_a_model_that_was_trained_as_it_should_be():
    maker, rows = trained(None)
    seen = maker.seen()
    assert seen[2:] == (2 * len(rows), 0, [])
    model, start, end = examine(Trial(0), "this", Model, 3, seen)
    assert isinstance(model, Model) and not torch.equal(start["dense.weight"], end["dense.weight"])


FAULTS = (
    "not-made",
    "unseeded",
    "trained-on-valid",
    "not-training",
    "not-eval",
    "part-of-batch",
    "uncleared",
    "partly-trained",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_not_trained_as_it_should_be_is_rejected(fault):
    maker, _ = trained(fault)
    with pytest.raises(Rejected) as caught:
        examine(Trial(0), "this", Model, 3, maker.seen())
    assert caught.value.code == fault


def test_a_toy_corpus_is_written_backwards():
    src, tgt, lens, label = reversed_words(Trial(0), 4, S=5, T=2)
    assert torch.equal(label, src.flip(1)[:, :2] + 1) and torch.equal(tgt[:, 1:], label[:, :-1])
    assert lens.tolist() == [5] * 4 and (tgt[:, 0] == 1).all()
