"""Looking inside of a training: against a two-layer model computed by hand, and without a trace."""

import copy
import math

import pytest
import torch
from torch import nn

from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.training import inspection
from d2lmini.training.inspection import (
    batch_gradients,
    by_depth,
    gradient_sizes,
    highest_loss_scale,
    lost_updates,
    residual_sizes,
    second_moments,
    underflow,
    update_sizes,
)
from d2lmini.training.optimizers import muon_of


class Layer(nn.Module):
    """x + w x, a residual block of one number."""

    def __init__(self, w):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([w]))

    def forward(self, X):
        return X + self.w * X


class TwoLayers(nn.Module):
    """y = (1 + w1)(1 + w0) c x with half its mean square as loss: all can be computed by hand."""

    def __init__(self, w0=0.5, w1=-3.0, c=2.0):
        super().__init__()
        self.c = nn.Parameter(torch.tensor([c]))
        self.blks = nn.ModuleList([Layer(w0), Layer(w1)])

    def forward(self, X):
        X = self.c * X
        for blk in self.blks:
            X = blk(X)
        return X

    def loss(self, Y_hat, Y):
        return (Y_hat - Y).square().mean() / 2


X, Y = torch.tensor([1.0, 2.0]), torch.tensor([0.0, -3.0])
BATCH = X, Y
# by hand: the stream is 2 x, 3 x, -6 x; the errors are -6 - 0 and -12 + 3, the gradients in y their halves, -3 and -4.5
G = torch.tensor([-3.0, -4.5])
GC = (G * X).sum().item() * 1.5 * -2  # in c: all but c
G0, G1 = (G * 2 * X).sum().item() * -2, (G * 3 * X).sum().item()


def gpt(**changes):
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "max_len": 8, "num_hiddens": 16, "num_heads": 2, "num_blks": 3}
    return GPT(GPTConfig(**{**sizes, "dropout": 0.2, **changes}))


def text():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(11, (3, 8), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def rms(*values):
    return math.sqrt(sum(value**2 for value in values) / len(values))


def test_gradients_are_those_by_hand():
    found = gradient_sizes(TwoLayers(), BATCH)
    assert found == pytest.approx({"c": abs(GC), "blks.0.w": abs(G0), "blks.1.w": abs(G1)})
    signed = batch_gradients(TwoLayers(), BATCH)
    assert {name: g.item() for name, g in signed.items()} == pytest.approx({"c": GC, "blks.0.w": G0, "blks.1.w": G1})


def test_gradients_in_the_stream_are_those_by_hand():
    model = TwoLayers()
    found = gradient_sizes(model, BATCH, model.blks)
    g = rms(*G.tolist())
    assert [found[f"stream.{i}"] for i in range(3)] == pytest.approx([3 * g, 2 * g, g])
    assert found["c"] == pytest.approx(abs(GC)) and len(found) == 6


def test_the_stream_is_that_by_hand():
    model = TwoLayers()
    found = residual_sizes(model, model.blks, X)
    x = rms(1, 2)
    assert found["size"] == pytest.approx([2 * x, 3 * x, 6 * x])
    assert found["change"] == pytest.approx([0.5, 3.0])
    model.c.data.zero_()
    assert residual_sizes(model, model.blks, X) == {"size": [0.0] * 3, "change": [None] * 2}


def test_updates_of_sgd_are_the_rate_times_the_gradient():
    model = TwoLayers(w0=0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = gradient_sizes(model, BATCH)
    found = update_sizes(model, optimizer, BATCH)
    assert found["blks.0.w"] is None  # of a weight that is 0
    assert found["c"] == pytest.approx(0.1 * gradients["c"] / 2)
    assert found["blks.1.w"] == pytest.approx(0.1 * gradients["blks.1.w"] / 3)
    clipped = update_sizes(model, optimizer, BATCH, gradient_clip_val=0.5)
    assert clipped["c"] == pytest.approx(found["c"] * 0.5 / math.hypot(*gradients.values()), rel=1e-5)


def test_updates_of_adam_have_the_size_of_the_rate_at_first():
    model = TwoLayers()
    found = update_sizes(model, torch.optim.Adam(model.parameters(), lr=0.01), BATCH)
    assert found == pytest.approx({"c": 0.01 / 2, "blks.0.w": 0.01 / 0.5, "blks.1.w": 0.01 / 3}, rel=1e-4)


def test_second_moments_are_those_by_hand():
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.8))
    assert second_moments(model, optimizer) == {}
    for label in (Y, Y + 1):
        optimizer.zero_grad()
        model.loss(model(X), label).backward()
        optimizer.step()
    first, second = gradient_sizes(model, (X, Y)), gradient_sizes(model, (X, Y + 1))
    for name, value in second_moments(model, optimizer).items():
        v = 0.2 * (0.8 * first[name] ** 2 + second[name] ** 2)
        assert value == pytest.approx(math.sqrt(v / (1 - 0.8**2)))
    assert second_moments(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)) == {}


def test_second_moments_of_muon_are_those_of_the_other_parameters():
    model = gpt()
    optimizer = muon_of(model, model.blks)
    model.loss(model(text()[0]), text()[1]).backward()
    optimizer.step()
    names = second_moments(model, optimizer).keys()
    assert "embedding.weight" in names and "blks.0.attention.W_q.weight" not in names


def test_what_underflows():
    tiny = 2.0**-24  # the smallest number of float16
    model = TwoLayers()
    batch = (
        torch.zeros(2),
        torch.tensor([1.0, 8e-4]) * tiny,
    )  # the gradients in y are 1/2 and 4e-4 of the smallest number
    shares = {s: underflow(model, batch, scale=s, blocks=model.blks)["stream.2"] for s in (1.0, 1.5, 1e3, 1e4)}
    assert shares == {1.0: 1.0, 1.5: 0.5, 1e3: 0.5, 1e4: 0.0}
    assert underflow(model, batch, torch.bfloat16, blocks=model.blks)["stream.2"] == 0.0


def test_what_is_zero_before_did_not_underflow():
    model = TwoLayers()
    batch = X, model(X).detach()
    assert set(underflow(model, batch, blocks=model.blks).values()) == {0.0}


def test_the_highest_loss_scale_is_the_last_that_is_finite():
    model = TwoLayers()
    scale = highest_loss_scale(model, BATCH)
    largest = torch.tensor(max(gradient_sizes(model, BATCH).values()))
    assert (largest * scale).half().isfinite() and not (largest * scale * 2).half().isfinite()
    assert math.log2(scale).is_integer()
    with pytest.raises(ValueError, match=r"largest gradient is 0\.0"):
        highest_loss_scale(model, (X, model(X).detach()))


def test_which_updates_are_lost():
    model = TwoLayers(w0=1.0, w1=-3.0, c=2.0)

    class Fixed(torch.optim.SGD):
        def step(self):
            with torch.no_grad():
                model.blks[0].w += 2**-7  # the next number of bfloat16 above 1
                model.blks[1].w += 2**-9  # a quarter of the way to the next one near 3
                model.c += 0.0

    found = lost_updates(model, Fixed(model.parameters(), lr=1.0), BATCH)
    assert found == {"c": 0.0, "blks.0.w": 0.0, "blks.1.w": 1.0}
    assert lost_updates(model, Fixed(model.parameters(), lr=1.0), BATCH, torch.float16)["blks.1.w"] == 0.0


def test_by_depth():
    model = gpt(num_blks=12)  # of two digits: 10 comes after 9
    sizes = gradient_sizes(model, text())
    found = by_depth(sizes)
    assert found["attention.W_q.weight"] == [sizes[f"blks.{i}.attention.W_q.weight"] for i in range(12)]
    assert "embedding.weight" not in found and len(found) == len(dict(model.blks[0].named_parameters()))
    with pytest.raises(ValueError, match=r"'blocks.0.'"):
        by_depth(sizes, "blocks")


def test_values_of_any_kind_are_told_by_depth():
    names = [f"blks.{i}.w" for i in range(2)]
    assert by_depth({names[1]: None, names[0]: {"a": 1}}) == {"w": [{"a": 1}, None]}


@pytest.mark.parametrize("kind", ["adam", "muon", "sgd"])
def test_looking_leaves_no_trace(kind):
    """A training with looks in between, in training mode and with dropout, is the one without."""

    def train(look):
        model = gpt()
        parameters = model.parameters()
        optimizer = {
            "adam": lambda: torch.optim.AdamW(parameters, lr=0.01),
            "muon": lambda: muon_of(model, model.blks),
            "sgd": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        }[kind]()
        torch.manual_seed(3)
        for _ in range(3):
            optimizer.zero_grad()
            model.loss(model(text()[0]), text()[1]).backward()
            if look:
                before = copy.deepcopy(optimizer.state_dict())["param_groups"]
                kept = [p.grad.clone() for p in model.parameters()]
                update_sizes(model, optimizer, text(), gradient_clip_val=1.0)
                lost_updates(model, optimizer, text())
                residual_sizes(model, model.blks, text()[0])
                underflow(model, text(), blocks=model.blks)
                assert optimizer.state_dict()["param_groups"] == before
                assert all(map(torch.equal, kept, (p.grad for p in model.parameters())))
            optimizer.step()
        return list(model.parameters())

    assert all(map(torch.equal, train(False), train(True)))


def test_hooks_are_gone():
    model = gpt()
    gradient_sizes(model, text(), model.blks)
    residual_sizes(model, model.blks, text()[0])
    assert not any(blk._forward_hooks or blk._forward_pre_hooks for blk in model.blks)


def test_an_old_gradient_of_what_this_loss_does_not_use_moves_nothing():
    model = TwoLayers()
    model.extra = nn.Parameter(torch.ones(2))
    model.extra.grad = torch.ones(2)
    update_sizes(model, torch.optim.SGD(model.parameters(), lr=0.1), BATCH)
    assert model.extra.tolist() == [1, 1] and model.extra.grad.tolist() == [1, 1]


def test_a_gradient_that_is_not_finite_is_seen_in_any_place():
    class Rooted(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.z = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(()))

        def forward(self, X):
            return (X * self.a).sum() + 0 * self.z.sqrt()

        def loss(self, Y_hat, Y):
            return Y_hat

    with pytest.raises(ValueError, match="the largest gradient is nan"):
        highest_loss_scale(Rooted(), BATCH)


def test_bad_input():
    model = gpt()
    with pytest.raises(ValueError, match="none of the 3 blocks was called"):
        residual_sizes(model, gpt().blks, text()[0])
    with pytest.raises(ValueError, match="none of the 3 blocks was called"):
        gradient_sizes(model, text(), gpt().blks)
    with pytest.raises(ValueError, match="GPT has no parameters that are trained"):
        inspection.gradient_sizes(model.requires_grad_(False), text())
