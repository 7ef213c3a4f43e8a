"""What crosses between the judge and an answer in another process."""

import pytest
import torch
from toy_exercise import PART, doubled

from d2lmini.exercises.engine import LargestTensor, Trial, wire
from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.engine.judge import judge
from d2lmini.exercises.engine.remote import Loopback


def crossed(value):
    data = wire.encode(value)
    text, tensors = wire.SIZES.unpack(data[:16])
    assert len(data) == 16 + text + tensors
    return wire.decode(data[16 : 16 + text], data[16 + text :])


def test_plain_data_comes_back_as_it_was():
    value = {"a": [1, 2.5, None, True, "x"], 3: (float("inf"), {}), "t": torch.arange(6).reshape(2, 3).T}
    back = crossed(value)
    assert torch.equal(back.pop("t"), value.pop("t")) and back == value
    assert crossed(float("nan")) != crossed(float("nan"))
    assert crossed(...) is Ellipsis
    assert crossed(torch.ones(3, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert crossed(torch.ones((), requires_grad=True)).requires_grad


def test_what_is_no_plain_data_becomes_a_handle_of_the_same_name():
    linear = torch.nn.Linear(2, 2)
    handle, function = crossed([linear, len])
    assert type(handle).__name__ == "Linear" and callable(function)
    with pytest.raises(TypeError, match=r"use t\.call"):
        function([])
    far = crossed(torch.ones(3, 4, device="meta"))
    assert far.is_meta and far.shape == (3, 4)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (b"", b""),
        (b"[" * 100_000, b""),
        (b'{"tensor": 0, "number": 0, "gradient": false}', b""),
        (b'{"tensor": 0}', b"garbage"),
        (b'{"plain": {"a": 1}}', b""),
        (b'{"elsewhere": {"shape": [-3], "dtype": "torch.float32"}}', b""),
        (b'{"elsewhere": {"shape": [3], "dtype": "torch.nn"}}', b""),
        (b'{"live": "x", "type": "int", "callable": true}', b""),
        (b"7", b""),
    ],
)
def test_what_a_hostile_process_sends_is_refused(text, data):
    with pytest.raises(wire.WireError):
        wire.decode(text, data)


def test_a_loopback_gives_the_verdicts_of_this_process():
    assert judge(PART, doubled, seed=3, host=Loopback()).passed
    for answer in (
        lambda x: -2 * x,
        lambda x: x / 0,
        lambda x: 2 * x.detach(),
        lambda x: x.data.mul_(2),
        lambda x: 1 / 0,
    ):
        here, there = judge(PART, answer, seed=3), judge(PART, answer, seed=3, host=Loopback())
        assert (here.code, here.message) == (there.code, there.message)


def test_a_module_that_an_answer_returns_is_called_where_it_lives():
    t = Trial(0, host=Loopback())
    made = t.call(t.host.adopt(torch.nn.Linear), 3, 2)
    assert not isinstance(made, torch.nn.Module)
    x = t.randn(4, 3).requires_grad_()
    got = t.call(made, x)
    assert got.shape == (4, 2) and t.gradient(got, 0, weights=torch.zeros(4, 2)).abs().sum() == 0
    weight, shape = t.look(lambda given, layer: (layer.weight, list(given[0].shape)), made)
    torch.testing.assert_close(got, torch.nn.functional.linear(x, weight, t.look(lambda g, layer: layer.bias, made)))
    assert shape == [4, 3]
    with pytest.raises(Rejected):
        t.look(lambda given: 1 / 0)


def test_measures_are_read_after_a_call():
    for host in (None, Loopback()):
        t = Trial(0, host=host)
        with t.watching(LargestTensor, "numel") as seen:
            t.call(t.host.adopt(lambda x: x[:, None] * x), torch.ones(7))
        assert seen.numel == 49
