"""Each operator makes the changes that it is said to make, and leaves alone what makes no difference."""

import ast

import pytest
from operators import OPERATORS, changes

FUNCTION = '''def answer(x, y, *, far=2):
    """Not 1 - 1."""
    {}'''


def made(line, kind):
    """The lines that one operator makes of a line of a function."""
    others = [operator.__name__ for operator in OPERATORS if operator.__name__ != kind]
    assert len(others) == len(OPERATORS) - 1
    return {change.now for change in changes(FUNCTION.format(line), others)}


@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("term_left_out", "return x + y", "return x|return y"),
        ("term_left_out", "return x / y", "return x"),
        ("term_left_out", "return not (x and y)", "return x and y|return not x|return not y"),
        ("operation_exchanged", "return x - y", "return x + y"),
        ("operation_exchanged", "return x < y", "return x <= y|return x > y"),
        ("operation_exchanged", "return x < y < 1", ""),
        ("operation_exchanged", "x += y", "x -= y"),
        ("operands_swapped", "return x ** y", "return y ** x"),
        ("operands_swapped", "return x + y", ""),
        ("number_changed", "return -1", "return -2|return 0"),
        ("number_changed", "return 10000", "return 20000"),
        ("number_changed", "return 0.5", "return 1.0"),
        ("number_changed", "return 0.0", "return 1.0"),
        ("number_changed", "return 1e-06", "return 0.001"),
        ("number_changed", "return True", "return False"),
        ("option_left_out", "return x.sum(1, y, keepdim=True)", "return x.sum(1, y)|return x.sum(1, keepdim=True)"),
        ("option_left_out", "return torch.ones(x, device=x.device)", ""),
        ("arguments_swapped", "return torch.where(x, y, 0)", "return torch.where(y, x, 0)|return torch.where(x, 0, y)"),
        ("arguments_swapped", "return torch.maximum(x, y)", ""),
        ("function_exchanged", "return max(x.sum(), y)", "return min(x.sum(), y)|return max(x.mean(), y)"),
        (
            "call_left_out",
            "return torch.exp(x.mT.sqrt())",
            "return x.mT.sqrt()|return torch.exp(x.mT)|return torch.exp(x.sqrt())",
        ),
        ("call_left_out", "return len(x).item()", ""),
        ("index_left_out", "return x[1:]", "return x|return x[:]"),
        ("index_left_out", "return x['keys']", ""),
        ("statement_left_out", "z = x; x = z", "pass"),
        ("condition_changed", "return x if y else 1", "return x|return 1|return 1 if y else x"),
        ("condition_changed", "return [z for z in x if z]", "return [z for z in x]"),
        ("name_exchanged", "return x * far", "return y * far|return x * y"),
        ("order_reversed", "return (x, y)", "return (y, x)"),
        ("order_reversed", "x, y = y", "y, x = y"),
        ("detached", "return x * y", "return x.detach() * y|return x * y.detach()"),
        ("detached", "z = x.sum()", "z = x.sum().detach()"),
        ("detached", "z = torch.eye(3).sum()", ""),
    ],
)
def test_what_an_operator_makes(kind, line, expected):
    assert made(line, kind) == set(filter(None, expected.split("|")))


def test_if_is_negated_and_left_out():
    source = FUNCTION.format("if x:\n        return x\n    return y")
    found = {(change.was, change.now) for change in changes(source, ["name_exchanged"])}
    assert found == {("if x:", "if not x:"), ("if x:", "pass")}


def test_every_operator_is_tried_above():
    (mark,) = test_what_an_operator_makes.pytestmark
    assert {kind for kind, *_ in mark.args[1]} == {operator.__name__ for operator in OPERATORS}


def test_changes_are_single_different_and_valid():
    source = FUNCTION.format("a = x - 1\n    b = x - 1\n    return a @ b")
    found = changes(source)
    lines = ast.unparse(ast.parse(source.replace('    """Not 1 - 1."""\n', ""))).splitlines()
    for change in found:
        after = change.source.splitlines()
        assert len(after) == len(lines) and sum(a != b for a, b in zip(lines, after, strict=True)) == 1
    assert len({change.source for change in found}) == len({(change.was, change.now) for change in found}) == len(found)
    assert not any("Not 1" in change.source or "far=3" in change.source for change in found)


def test_two_lines_alike_are_told_apart():
    source = FUNCTION.format("x += 1\n    x += 1\n    return x")
    assert [change.now for change in changes(source) if change.now.startswith("x -= 1")] == ["x -= 1", "x -= 1  # 2"]
