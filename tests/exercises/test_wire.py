"""What crosses between the judge and an answer in another process."""

import numpy as np
import pytest
import torch

from d2lmini.exercises.engine.compare import Rejected
from d2lmini.exercises.grading import wire


def crossed(value):
    return wire.decode(*wire.halves(wire.encode(value)))


def test_plain_data_comes_back_as_it_was():
    value = {"a": [1, 2.5, None, True, "x"], 3: (float("inf"), {}), "t": torch.arange(6).reshape(2, 3).T}
    back = crossed(value)
    assert torch.equal(back.pop("t"), value.pop("t")) and back == value
    assert crossed(float("nan")) != crossed(float("nan"))
    assert crossed(...) is Ellipsis and crossed(np.float64(2.5)) == 2.5
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


def test_what_is_too_large_is_not_sent(monkeypatch):
    monkeypatch.setattr(wire, "MOST_TENSORS", wire.MOST_TEXT + 1000)
    with pytest.raises(Rejected, match="more than is taken"):
        wire.encode([torch.zeros(100), torch.zeros(200)])
