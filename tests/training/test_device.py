"""Which device a run is on, and what is said of one that is not here."""

import warnings

import pytest
import torch
from toy_line import fit

from d2lmini.training import device


def test_a_missing_gpu_is_said_once(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device, "_said", set())
    with pytest.warns(UserWarning, match="num_gpus is 1, but there is no GPU here: training on the CPU"):
        fit(num_gpus=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(num_gpus=1).accelerator.device.type == "cpu"


def test_a_device_by_its_name():
    assert device.device_named("cpu") == device.device_named(torch.device("cpu")) == torch.device("cpu")
    for index in range(torch.cuda.device_count()):
        assert device.device_named(f"cuda:{index}") == torch.device("cuda", index)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:-1", "", None, 2.5])
def test_a_device_that_torch_does_not_know(name):
    with pytest.raises(ValueError, match=r"there is no device .*, expected 'cpu', 'cuda', 'cuda:1' or 'mps'"):
        device.device_named(name)


@pytest.mark.parametrize(
    ("name", "gpus", "message"),
    [
        ("cuda", 0, "the device is 'cuda', expected 'cpu': torch finds no GPU here"),
        ("cuda:7", 2, "the device is 'cuda:7', expected 'cpu' or one of cuda:0 to cuda:1"),
        ("meta", 2, "the device is 'meta', expected 'cpu': torch cannot compute on it here"),
        ("hpu", 2, "the device is 'hpu', expected 'cpu': torch cannot compute on it here"),
    ],
)
def test_a_device_that_is_not_here(monkeypatch, name, gpus, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(ValueError, match=message):
        device.device_named(name)
