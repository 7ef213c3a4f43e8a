"""Where wrong entries stand."""

import pytest
import torch

from d2lmini.exercises.engine.compare import Compared
from d2lmini.exercises.engine.relations import explain

WANT = torch.rand(4, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1
LOWER = torch.ones(6, 6).tril().bool()
LOTS, OTHER = torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(2)) > 0.5
KEPT = torch.tensor([True, True, False, True, False, True])
ZERO = torch.where(torch.arange(5)[:, None] > 2, 0, WANT)


def mixed(right):
    """The reference where ``right`` is true, and numbers that are related to nothing elsewhere."""
    return torch.where(right, WANT, torch.rand(4, 5, 6, generator=torch.Generator().manual_seed(1)).double() - 3)


def at(axis, *places):
    flags = torch.zeros(4, 5, 6, dtype=torch.bool)
    flags.index_fill_(axis, torch.tensor(places), True)
    return flags


@pytest.mark.parametrize(
    ("code", "got", "want", "words"),
    [
        ("first-place", mixed(~at(2, 0)), WANT, "only the first entry along axis 2 is wrong"),
        ("last-place", mixed(~at(1, 4)), WANT, "only the last entry along axis 1 is wrong"),
        ("above-diagonal", mixed(LOWER[:5]), WANT, "wrong only above the diagonal"),
        ("below-diagonal", mixed(LOWER.T[:5]), WANT, "wrong only below the diagonal"),
        ("diagonal", LOTS ^ torch.eye(6).bool(), LOTS, "wrong only on the diagonal"),
        ("not-zero", mixed(ZERO != 0), ZERO, "only those entries are wrong that should be 0"),
        ("left-zero", ZERO * (KEPT | at(0, 0, 1)), ZERO, "every wrong entry is 0"),
        ("too-many", LOTS | OTHER, LOTS, "True that should be False"),
        ("too-few", LOTS & OTHER, LOTS, "False that should be True"),
    ],
)
def test_each_place_is_named(code, got, want, words):
    got = got.float() if got.is_floating_point() else got
    found, sentence = explain(Compared("the result", got, None, want))
    assert (found, words in sentence) == (code, True), sentence


def test_a_single_row_of_flags_tells_nothing():
    for row in (LOTS[:1], LOTS[0, 0]):
        assert explain(Compared("the result", ~row, None, row)) is None
    assert explain(Compared("the result", ~LOTS[:2], None, LOTS[:2]))[0] == "not"


def test_a_single_wrong_entry_is_no_place():
    got = WANT.clone()
    got[1, 2, 3] = -7.3
    assert explain(Compared("the result", got.float(), None, WANT)) is None
