"""Telling what was differentiated from what was computed by a formula."""

import sys
from functools import partial

import pytest
import torch

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.provenance import Calls, DoubledSlopes, Exponentials, differentiated
from d2lmini.exercises.grading.remote import Loopback

X = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def cube(x):
    return x**3


def by_grad(x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(cube(x).sum(), x)[0]


def by_weights(x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(cube(x), x, torch.ones_like(x))[0]


def by_backward(x):
    x = x.clone().requires_grad_()
    cube(x).sum().backward()
    return x.grad


def in_forward_mode(x):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        return torch.autograd.forward_ad.unpack_dual(cube(dual)).tangent


WAYS = {
    "grad": by_grad,
    "grad_outputs": by_weights,
    "backward": by_backward,
    "forward mode": in_forward_mode,
    "jacobian": lambda x: torch.autograd.functional.jacobian(cube, x),
    "vectorized": lambda x: torch.autograd.functional.jacobian(cube, x, vectorize=True),
    "forward jacobian": lambda x: torch.autograd.functional.jacobian(cube, x, vectorize=True, strategy="forward-mode"),
    "jvp": lambda x: torch.autograd.functional.jvp(cube, x, torch.ones_like(x))[1],
    "func.grad": lambda x: torch.func.grad(lambda x: cube(x).sum())(x),
    "func.vjp": lambda x: torch.func.vjp(cube, x)[1](torch.ones_like(x))[0],
    "jacrev": lambda x: torch.func.jacrev(cube)(x),
    "jacfwd": lambda x: torch.func.jacfwd(cube)(x),
    "hessian": lambda x: torch.func.hessian(lambda x: (x**4).sum() / 4)(x),
    "hessian of old": lambda x: torch.autograd.functional.hessian(lambda x: (x**4).sum() / 4, x),
    "two jacobians": lambda x: torch.func.jacrev(torch.func.jacrev(lambda x: (x**4).sum() / 4))(x),
    "of numbers": lambda x: torch.tensor(by_grad(x).tolist(), dtype=x.dtype),
    "packed": lambda x: torch.stack([3 * x**2, by_grad(x)])[1],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_differentiating_is_seen(way):
    plain = WAYS[way](X)
    with DoubledSlopes() as seen:
        doubled = WAYS[way](X)
    assert seen.runs > 0
    assert differentiated(plain, doubled)
    torch.testing.assert_close(WAYS[way](X), plain)  # all is as it was


def test_a_formula_is_none():
    def formula(x):
        by_grad(x)  # not used
        return torch.stack([3 * x**2, by_grad(x)])[0]

    with DoubledSlopes():
        doubled = formula(X)
    assert not differentiated(formula(X), doubled)
    assert not differentiated(formula(X), None)
    assert not differentiated(formula(X), torch.ones(1))


def test_what_fails_within_leaves_autograd_whole():
    with pytest.raises(ZeroDivisionError), DoubledSlopes():
        raise ZeroDivisionError
    torch.testing.assert_close(by_grad(X), 3 * X**2)


def test_a_check_sees_it_here_and_in_another_process():
    def answer(x):
        return by_grad(x), 3 * x**2

    for host in (None, Loopback()):
        t = Trial(0, host=host)
        sides = t.unpack(t.call(t.host.adopt(answer), X), "left", "right")
        with t.watching(DoubledSlopes, "runs") as seen:
            again = t.unpack(t.call(t.host.adopt(answer), X), "left", "right")
        assert seen.runs == 1
        assert [differentiated(a, b) for a, b in zip(sides, again, strict=True)] == [True, False]


def test_exponentials_are_seen_within_attention_as_well():
    x = torch.ones(1, 2, 3, 4)
    ways = {
        "softmax": lambda x: x.softmax(-1).expand(5, 2, 3, 4),
        "exp": torch.exp,
        "scaled_dot_product": lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x),
    }
    for host in (None, Loopback()):
        for name, way in ways.items():
            t = Trial(0, host=host)
            with t.watching(Exponentials, "seen") as ran:
                t.call(t.host.adopt(way), x)
            assert any(name in operation for operation, _ in ran.seen), name
            assert all(3 in shape for _, shape in ran.seen)
    with Exponentials() as ran:
        x.expand(5, 2, 3, 4) + 1
    assert ran.seen == []


def borrowed_step(x):
    p = torch.nn.Parameter(x.clone())
    p.grad = torch.ones_like(p)
    torch.optim.AdamW([p], lr=0.1).step()
    return p.detach()


@pytest.mark.parametrize("host", [None, Loopback()], ids=["here", "elsewhere"])
def test_a_check_sees_who_was_called(host):
    for answer, called in ((borrowed_step, True), (by_grad, False)):
        t = Trial(0, host=host)
        with t.watching(partial(Calls, "torch.optim.adamw."), "names") as seen:
            t.call(t.host.adopt(answer), X)
        assert ("torch.optim.adamw.__init__" in seen.names) == bool(seen.names) == called


def test_who_listened_before_listens_again():
    heard = []

    def listener(frame, event, arg):
        heard.append(event)

    sys.setprofile(listener)
    try:
        with Calls("torch.") as seen:
            pass
        assert sys.getprofile() is listener
    finally:
        sys.setprofile(None)
    assert not seen.names
