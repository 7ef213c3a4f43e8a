"""An answer is run on copies, and whatever it raises becomes a fault with a name."""

import pytest
import torch
from stand_ins import code_of, printed

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
        with pytest.raises(Rejected, match=rf"raises {kind.__name__}") as caught:
            run()
        assert caught.value.code == "raised"


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
    assert code_of(host.gradient, got, 0, torch.ones(1)) == "shape"


def test_what_torch_does_not_implement_is_no_missing_answer():
    with pytest.raises(Rejected, match=r"raises NotImplementedError: .* not implemented for 'Float'") as caught:
        Host().call(lambda x: x | 2, (torch.ones(2),), {})
    assert caught.value.code == "raised"

    def stub(x):
        raise NotImplementedError  # your code here

    assert code_of(Host().call, stub, (torch.ones(2),), {}) == "stub"


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
    assert printed(program).split() == ["False", "True", "False"]


SLOW = {  # what torch imports at the first use of something, which takes seconds
    "torch.autograd.grad(x, x, x)": "torch.fx.experimental.symbolic_shapes",
    "x.backward(x)": "torch.fx.experimental.symbolic_shapes",
    "torch.func.grad(x)": "torch._dynamo",
    "torch.optim.SGD([x], lr=1)": "torch._dynamo",
    "torch.utils.checkpoint.checkpoint(x, x)": "torch._dynamo",
    "torch.softmax(x, -1)": "",
}


@pytest.mark.parametrize(("use", "module"), SLOW.items())
def test_what_torch_imports_late_is_imported_before_an_answer_runs_that_needs_it(monkeypatch, use, module):
    loaded, scope = [], {"torch": torch}
    monkeypatch.setattr("d2lmini.exercises.engine.host.importlib.import_module", loaded.append)
    exec(f"def answer(x): return {use}\ndef verify(t, answer): pass", scope)
    load_for(scope["answer"], scope["verify"], heavy=False)
    assert (module in loaded) if module else (loaded == [])


@pytest.mark.parametrize(
    ("change", "given"),
    [
        (lambda x: x.add_(1), ((torch.zeros(2),), {})),
        (lambda x: x.add_(1), ((), {"x": torch.zeros(2)})),
        (lambda x: x[0].zero_(), (([torch.ones(2)],), {})),
        (lambda x: x["a"].append(2), (({"a": [1]},), {})),
        (lambda x: x.update(a=2), (({"a": 1},), {})),
        (lambda x: x.weight.data.zero_(), ((torch.nn.Linear(2, 2),), {})),
    ],
)
def test_no_argument_may_be_changed_and_each_is_a_copy(change, given):
    before = str(given)
    assert code_of(Host().call, change, *given) == "mutates"
    assert str(given) == before
