"""What counts as an explanation of a wrong value."""

import torch

from d2lmini.exercises.engine.compare import Compared
from d2lmini.exercises.engine.related import Case

WANT = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64)


def case_of(got, want=WANT, tolerance=None, given=()):
    return Case.of(Compared("the result", got, tolerance, want), given)


def test_an_explanation_is_much_nearer_than_the_reference():
    case = case_of((2 * WANT).float())
    assert case.equals(2 * WANT) and not case.equals(2.01 * WANT) and not case.equals(2 * WANT[0])
    loose = case_of((1.1 * WANT).float(), tolerance=(0.5, 0.5))
    assert not loose.equals(1.2 * WANT) and loose.equals(1.1 * WANT)
    assert not case_of(torch.full((1, 3), torch.nan)).equals(WANT)


def test_infinities_agree_exactly():
    want = torch.tensor([1.0, -torch.inf, 3.0]).double()
    case = case_of(2 * want, want)
    assert case.equals(2 * want) and not case.equals(2 * want.clamp(min=-9)) and case.ratio() == 2.0
    assert case_of(torch.zeros(3), torch.zeros(3)).ratio() is None


def test_sizes_and_how_much_there_is_to_be_wrong():
    case = case_of(WANT, given=(torch.ones(7, 1), 12, 3.5, True, 200))
    assert case.sizes == {3, 7, 12} and case.different() == 3 and case.each == "every entry"
    flags = torch.tensor([True, False, True, True])
    assert case_of(flags, flags).different() == 4 and case_of(flags, flags | True).different() == 1
    number = case_of(3, 2.0, (1e-9, 0.0))
    assert (number.each, number.kind, number.different()) == ("it", torch.int64, 1)
    assert case_of(torch.tensor(3.5), 2.0, (1e-9, 0.0)).kind == torch.float64


def test_nothing_to_relate():
    assert case_of(torch.zeros(2), torch.zeros(3)) is None and case_of(torch.zeros(0), torch.zeros(0)) is None
