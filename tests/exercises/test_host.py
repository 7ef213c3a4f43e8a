"""An answer is run on copies, and whatever it raises becomes a fault with a name."""

import subprocess
import sys

import pytest
import torch

from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.host import Host, load_for
from d2lmini.exercises.engine.limits import TimeUp


class Odd(BaseException):
    pass


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit, Odd, RecursionError])
def test_whatever_an_answer_raises_is_a_fault(kind):
    def answer():
        raise kind

    for run in (lambda: Host().call(answer, (), {}), lambda: Host().look(lambda given: answer(), ())):
        with pytest.raises(Rejected) as caught:
            run()
        assert caught.value.code == "raised" and kind.__name__ in caught.value.message


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeUp])
def test_what_the_reader_and_the_limit_raise_goes_through(kind):
    def answer():
        raise kind

    with pytest.raises(kind):
        Host().call(answer, (), {})


def test_gradients_may_be_weighted_and_may_not_arrive():
    host, x = Host(), torch.arange(3.0, requires_grad=True)
    got, _ = host.call(lambda x: x * x, (x,), {})
    assert host.gradient(got, 0, torch.tensor([1.0, 0, 1])).tolist() == [0, 0, 4]
    assert host.gradient(got.detach(), 0) is None and host.gradient(3, 0) is None


def test_what_torch_does_not_implement_is_no_missing_answer():
    with pytest.raises(Rejected, match=r"raises NotImplementedError: .* not implemented for 'Float'") as caught:
        Host().call(lambda x: x | 2, (torch.ones(2),), {})
    assert caught.value.code == "raised"

    def stub(x):
        raise NotImplementedError  # your code here

    with pytest.raises(Rejected) as caught:
        Host().call(stub, (torch.ones(2),), {})
    assert caught.value.code == "stub"


def test_gradient_wants_weights_of_the_shape_of_the_result():
    host, x = Host(), torch.ones(3, requires_grad=True)
    got, _ = host.call(lambda x: x[:1] * 2, (x,), {})
    with pytest.raises(Rejected, match="shape"):
        host.gradient(got, 0, torch.ones(3))


def test_a_look_sees_what_the_answer_left():
    host = Host()
    with pytest.raises(Rejected, match="in place"):
        host.call(lambda box: box.append(1), ([],), {})
    assert host.look(lambda given, more: given[0] + more, ([2],)) == [1, 2]


def test_what_is_nan_may_stay_so_and_may_not_change():
    given = torch.tensor([1.0, torch.nan, 2.0])
    got, _ = Host().call(lambda x: 2 * x, (given,), {})
    assert got[2] == 4
    for place, value in ((0, torch.nan), (1, 3.0), (2, 5.0)):
        with pytest.raises(Rejected, match="in place"):
            Host().call(lambda x, place=place, value=value: x[place : place + 1].fill_(value), (given,), {})


def test_modes_that_an_answer_leaves_behind_are_put_back():
    def answer(x):
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        return x

    Host().call(answer, (torch.ones(2),), {})
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


@pytest.mark.slow
def test_what_an_answer_and_its_check_name_is_imported_before_they_run():
    program = """
import functools, sys
import d2lmini as d2l
from d2lmini.exercises.engine.host import load_for

def helper(): return lambda: d2l.GPT
class Answer:
    def forward(self): return helper()
def verify(t, answer): pass

before = "d2lmini.models.gpt" in sys.modules
load_for(functools.partial(Answer), verify, heavy=False)
print(before, "d2lmini.models.gpt" in sys.modules, "d2lmini.models.vit" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert found.stdout.split() == ["False", "True", "False"], found.stderr


SLOW = {  # what torch imports at the first use of something, which takes seconds
    "torch.autograd.grad(x, x, x)": "torch.fx.experimental.symbolic_shapes",
    "x.backward(x)": "torch.fx.experimental.symbolic_shapes",
    "torch.func.grad(x)": "torch._dynamo",
    "torch.optim.SGD([x], lr=1)": "torch._dynamo",
    "torch.utils.checkpoint.checkpoint(x, x)": "torch._dynamo",
}


@pytest.mark.parametrize(("use", "module"), SLOW.items())
def test_what_torch_imports_late_is_imported_before_an_answer_runs(monkeypatch, use, module):
    loaded, scope = [], {"torch": torch}
    monkeypatch.setattr("d2lmini.exercises.engine.host.importlib.import_module", loaded.append)
    exec(f"def answer(x): return {use}\ndef verify(t, answer): pass", scope)
    load_for(scope["answer"], scope["verify"], heavy=False)
    assert module in loaded


def test_nothing_slow_is_imported_for_an_answer_that_needs_none(monkeypatch):
    loaded, scope = [], {"torch": torch}
    monkeypatch.setattr("d2lmini.exercises.engine.host.importlib.import_module", loaded.append)
    exec("def answer(x): return torch.softmax(x, -1)\ndef verify(t, answer): pass", scope)
    load_for(scope["answer"], scope["verify"], heavy=False)
    assert loaded == []


@pytest.mark.parametrize("given", [((torch.zeros(2),), {}), ((), {"x": torch.zeros(2)})])
def test_no_argument_may_be_changed(given):
    with pytest.raises(Rejected) as caught:
        Host().call(lambda x: x.add_(1), *given)
    assert caught.value.code == "mutates"
