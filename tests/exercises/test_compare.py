"""When a result is the wanted one."""

import pytest
import torch

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.compare import Rejected


def test_infinities_and_nan_are_never_equal_to_numbers():
    t = Trial(0)
    inf, nan = float("inf"), float("nan")
    t.same(torch.tensor([inf, 1.0]), torch.tensor([inf, 1.0]).double())
    for got, want in [([1.0], [nan]), ([nan], [nan]), ([-inf], [inf]), ([1.0], [inf])]:
        with pytest.raises(Rejected):
            t.same(torch.tensor(got), torch.tensor(want).double())
