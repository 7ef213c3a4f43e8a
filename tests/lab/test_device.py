"""The device of a run, as it is chosen and as it is named."""

import torch

from d2lmini.lab.device import best_device, describe
from d2lmini.training.device import device_named


def test_the_best_device_is_there():
    assert device_named(best_device()).type == best_device()


def test_a_processor_is_told_with_its_threads():
    found = describe(torch.device("cpu"))
    assert found["kind"] == "cpu" and found["threads"] == torch.get_num_threads()
    assert found["name"].endswith("1 thread" if found["threads"] == 1 else f"{found['threads']} threads")
