"""A model in evaluation mode for a while."""

import pytest
from torch import nn

from d2lmini.modes import evaluating


def test_each_part_is_afterwards_in_its_own_mode():
    model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(), nn.Linear(1, 1))
    model[1].eval()
    before = [part.training for part in model.modules()]
    with pytest.raises(KeyError), evaluating(model) as inside:
        assert inside is model and not any(part.training for part in model.modules())
        raise KeyError
    assert [part.training for part in model.modules()] == before
