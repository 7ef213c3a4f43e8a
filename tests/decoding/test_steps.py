"""What all ways of decoding share."""

import pytest
import torch
from toys import State, start

from d2lmini.decoding import reorder
from d2lmini.decoding.steps import Ends, decoded


def test_reorder_makes_a_new_state():
    state = start(3)
    new = reorder(state, torch.tensor([2, 0, 0, 1]))
    assert isinstance(new, State) and new.example.tolist() == [2, 0, 0, 1]
    assert new.more["twice"][0].tolist() == [4, 0, 0, 2] and new.more["nothing"] is None
    assert state.example.tolist() == [0, 1, 2]


def test_reorder_leaves_what_it_is_told_to_keep():
    kept, other = torch.arange(3), torch.arange(3)
    state = reorder({"a": (kept, None), "b": [other]}, torch.tensor([2, 0]), keep=[kept])
    assert state["a"][0] is kept and state["b"][0].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("ids", "lengths"), [(None, [4, 4, 4]), (2, [1, 4, 0]), ([2, 3], [1, 2, 0]), (torch.tensor([3, 2]), [1, 2, 0])]
)
def test_the_first_of_the_ends_counts(ids, lengths):
    tokens = torch.tensor([[0, 2, 3, 2], [0, 0, 3, 0], [2, 2, 2, 2]])
    ends = Ends(ids, tokens.device)
    assert ends.valid_lens(tokens).tolist() == lengths
    found = decoded(tokens, torch.zeros(3), ends)
    assert found.valid_lens.tolist() == lengths and torch.equal(found.tokens, tokens[:, : max(lengths) + 1])


@pytest.mark.parametrize("ids", [-1, 5, [1, 5]])
def test_an_end_that_is_no_token(ids):
    with pytest.raises(ValueError, match=r"stop is (-1|5) but there are 5 tokens"):
        Ends(ids, "cpu", "stop").check(5)
    Ends([0, 4], "cpu").check(5)
