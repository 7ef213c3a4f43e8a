"""When a result is the wanted one."""

import pytest
import torch
from stand_ins import code_of

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.grading import wire


def test_infinities_and_nan_are_never_equal_to_numbers():
    t = Trial(0)
    inf, nan = float("inf"), float("nan")
    t.same(torch.tensor([inf, 1.0]), torch.tensor([inf, 1.0]).double())
    for got, want in [([1.0], [nan]), ([nan], [nan]), ([-inf], [inf]), ([1.0], [inf])]:
        assert code_of(t.same, torch.tensor(got), torch.tensor(want).double()) in ("values", "nonfinite")


class Wrapper(torch.Tensor):
    """A tensor without numbers of its own."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("nothing works")


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("nothing works")


X = torch.tensor([[1.0, 0.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda x: torch.complex(x, x), "dtype", "is complex (torch.complex64)"),
        (torch.Tensor.to_sparse, "type", "of layout torch.sparse_coo: return a dense one"),
        (torch.Tensor.to_sparse_csr, "type", "of layout torch.sparse_csr: return a dense one"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8), "dtype", "is quantised (torch.quint8)"),
        (lambda x: torch.nested.nested_tensor([x[0], x[0, :1]]), "type", "is a nested tensor"),
        (Wrapper, "type", "is a Wrapper, which is no plain torch.Tensor"),
        (torch.Tensor.double, "dtype", "float64, expected torch.float32"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_other_kinds_get_their_own_words(change, code, words):
    got = change(X)
    with pytest.raises(Rejected) as caught:
        Trial(0).same(got, X.double())
    assert caught.value.code == code and words in caught.value.message
    if code == "type":
        assert code_of(Trial(0).number, got, 1.0) == "type"
        assert isinstance(wire.decode(*wire.halves(wire.encode(got))), wire.Live)  # it stays where it is


def test_parameters_and_harmless_classes_are_tensors():
    for got in (torch.nn.Parameter(X), X.as_subclass(Own)):
        Trial(0).same(got, X.double())


def test_of_the_inputs_is_said_only_where_it_is():
    def message(call, **options):
        t = Trial(0)
        call(t)
        with pytest.raises(Rejected) as caught:
            t.same(X.half(), X.double(), **options)
        return caught.value.message

    said = "expected torch.float32, that of the inputs"
    assert message(lambda t: t.call(lambda x: x, X)).endswith(said)
    assert message(lambda t: t.call(lambda n: n, 3)).endswith("expected torch.float32")
    assert message(lambda t: t.call(lambda x: x, X), dtype=torch.float64).endswith("expected torch.float64")
