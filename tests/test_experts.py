"""A mixture of experts against a loop over tokens; its balance loss; what is dropped."""

import copy
import math

import pytest
import torch
from torch import nn

from d2lmini.experts import SwitchFFN, route
from d2lmini.transformer import PositionWiseFFN, TransformerEncoderBlock

B, T, h, FFN, N = 3, 7, 5, 8, 4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def by_loop(switch, X):
    """Token by token, as it is told: outputs, who was dropped, and the balance loss."""
    queue, output, dropped, prefer, total = [0] * N, [], [], [0] * N, torch.zeros(N).double()
    n = len(X.flatten(0, 1))
    room = math.inf if switch.capacity_factor is None else math.ceil(switch.capacity_factor * n / N)
    for token in X.flatten(0, 1):
        powers = torch.exp(switch.router.weight @ token)
        probabilities = powers / powers.sum()
        i = int(probabilities.argmax())
        queue[i] += 1
        prefer[i] += 1 / n
        total = total + probabilities / n
        dropped.append(queue[i] > room)
        output.append(torch.zeros(h).double() if dropped[-1] else probabilities[i] * switch.experts[i](token))
    return torch.stack(output).reshape(X.shape), dropped, N * sum(f * p for f, p in zip(prefer, total, strict=True))


@pytest.mark.parametrize("factor", [None, 0.5, 1.0, 1.25])
def test_it_is_a_loop_over_tokens_in_value_and_gradient(factor):
    switch = SwitchFFN(FFN, h, N, factor).double()
    nn.init.normal_(switch.router.weight, std=2)
    other, given = copy.deepcopy(switch), torch.randn(B, T, h).double()
    X, Z = given.clone().requires_grad_(), given.clone().requires_grad_()
    found = switch(X)
    wanted, dropped, balance = by_loop(other, Z)
    routing = switch.routing
    assert torch.equal(routing.kept, ~torch.tensor(dropped)) and any(dropped) == (factor in (0.5, 1.0, 1.25))
    exact = {"rtol": 1e-12, "atol": 1e-12}  # float64 throughout: a router in float32 is off by 1e-8
    torch.testing.assert_close(found, wanted, **exact)
    torch.testing.assert_close(routing.balance_loss, balance, **exact)
    upstream = torch.randn_like(found)
    for output in (found, wanted):
        output.backward(upstream)
    torch.testing.assert_close(X.grad, Z.grad, **exact)
    for (name, one), two in zip(switch.named_parameters(), other.parameters(), strict=True):
        if one.grad is None or two.grad is None:  # an expert without tokens
            assert (one.grad is None or not one.grad.any()) and (two.grad is None or not two.grad.any()), name
        else:
            torch.testing.assert_close(one.grad, two.grad, **exact, msg=name)
    assert switch.router.weight.grad.abs().min() > 0


def test_the_balance_loss():
    even = torch.eye(N).repeat(3, 1)  # as many tokens for each, all as sure
    assert route(even).balance_loss.item() == pytest.approx(1)
    assert route(50 * even).balance_loss.item() == pytest.approx(1)
    assert route(torch.zeros(12, N)).balance_loss.item() == pytest.approx(1), "P is even: f does not matter"
    skewed = torch.randn(12, N)
    skewed[:, 2] += torch.linspace(0, 4, 12)
    losses = [route(skewed + torch.tensor([0, 0, x, 0])).balance_loss.item() for x in (0.0, 2.0, 4.0, 50.0)]
    assert 1.05 < losses[0] < losses[1] < losses[2] < losses[3] == pytest.approx(N)
    # one is no lower bound: f and P can disagree
    sure = torch.tensor([[0.01, 0.0]] * 6 + [[-50.0, 0.0]] * 4)
    assert route(sure).balance_loss < 0.95


def test_the_balance_loss_makes_a_router_even():
    switch = SwitchFFN(FFN, h, N)
    X = torch.randn(16, 16, h) + 1
    nn.init.zeros_(switch.router.weight)
    with torch.no_grad():
        switch.router.weight[1] += 1
    optimizer = torch.optim.SGD(switch.router.parameters(), lr=0.5)
    losses = []
    for _ in range(100):
        switch(X)
        losses.append(switch.routing.balance_loss.item())
        optimizer.zero_grad()
        switch.routing.balance_loss.backward()
        optimizer.step()
    assert losses[0] > 3 and sum(losses[-20:]) / 20 < 1.5


def test_the_first_come_first():
    scores = torch.tensor([[9.0, 0], [0, 9], [9, 0], [9, 0], [0, 9]])
    routing = route(scores, 2)
    assert routing.experts.tolist() == [0, 1, 0, 0, 1] and routing.kept.tolist() == [True, True, True, False, True]
    assert route(scores, 0).kept.tolist() == [False] * 5 and route(scores).kept.all()


def test_in_a_block_the_residual_connection_carries_what_is_dropped():
    block = TransformerEncoderBlock(h, FFN, 1, norm_first=True, ffn=SwitchFFN(FFN, h, N, 0.3))
    X = torch.randn(B, T, h)
    Y = block(X)
    Q = block.addnorm1.ln(X)
    passed = X + block.attention(Q, Q, Q)
    same = (passed == Y).all(-1).flatten()
    assert torch.equal(same, ~block.ffn.routing.kept) and same.any() and not same.all()


def test_one_expert_is_a_network_and_parameters_grow_but_not_the_work():
    switch = SwitchFFN(FFN, h, 1, None)
    X = torch.randn(B, T, h)
    torch.testing.assert_close(switch(X), switch.experts[0](X))
    one = sum(p.numel() for p in PositionWiseFFN(FFN, h, num_inputs=h).parameters())
    assert sum(p.numel() for p in SwitchFFN(FFN, h, N).parameters()) == N * one + N * h
    rows = []
    many = SwitchFFN(FFN, h, N, None)
    for expert in many.experts:
        expert.register_forward_hook(lambda module, inputs, output: rows.append(len(inputs[0])))
    many(X)
    assert sum(rows) == B * T


def test_copies_precision_and_bad_input():
    switch = SwitchFFN(FFN, h, N)
    X = torch.randn(B, T, h)
    switch(X)
    again = copy.deepcopy(switch)
    assert again.routing is None and torch.equal(again(X), switch(X))
    with torch.autocast("cpu", torch.bfloat16):
        found = switch(X)
    torch.testing.assert_close(found.float(), again(X), rtol=0.05, atol=0.05)
    assert switch.bfloat16()(X.bfloat16()).dtype == torch.bfloat16
    assert switch(X[:0].bfloat16()).shape == (0, T, h)
    for wrong in ({"num_experts": 0}, {"capacity_factor": 0.0}, {"capacity_factor": math.nan}):
        with pytest.raises(ValueError, match="expected at least 1, and a number above 0 or None"):
            SwitchFFN(FFN, h, **{"num_experts": N, **wrong})
