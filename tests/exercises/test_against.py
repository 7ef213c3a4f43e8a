"""An answer beside a reference: several results, fields, gradients, and what is told of each."""

import pytest
import torch

from d2lmini.exercises.engine import Trial
from d2lmini.exercises.engine.compare import Rejected


def product_and_sum(a, b):
    return a * b, a + b


def tried(answer, reference=product_and_sum, args=None, **options):
    t = Trial(0)
    a, b = args or (t.randn(2, 3), t.randn(2, 3))
    t.against(reference, answer, a, b, **options)
    return t.checks


def test_the_reference_gets_float64_on_the_cpu_and_the_answer_what_was_given():
    seen = []

    def reference(a, b):
        seen.append((a.dtype, b.dtype))
        return a * b

    assert tried(lambda a, b: a * b, reference) == 2
    assert tried(lambda a, b: a * b, reference, args=(torch.ones(2), torch.arange(2))) == 2
    assert seen == [(torch.float64, torch.float64), (torch.float64, torch.int64)]


def test_results_are_compared_in_their_order_or_another():
    both = {"results": ("product", "sum")}
    assert tried(product_and_sum, **both) == 4
    with pytest.raises(Rejected, match="the product for two"):
        tried(lambda a, b: (a, a), case="for two", **both)
    with pytest.raises(Rejected, match="the sum"):
        tried(lambda a, b: (a, a), order=("sum", "product"), **both)
    with pytest.raises(Rejected, match="expected a tuple"):
        tried(lambda a, b: a, **both)


def test_fields_may_be_numbers():
    def reference(a, b):
        return {"rows": len(a), "share": 1 / 3}

    assert tried(lambda a, b: {"rows": 2, "share": 1 / 3}, reference) == 4
    with pytest.raises(Rejected, match='"share" of both'):
        tried(lambda a, b: {"rows": 2, "share": 0.33}, reference, case="of both")
    assert tried(lambda a, b: {"rows": 2, "share": 0.33}, reference, rtol=0.1) == 4


def test_gradients_are_compared_in_each_argument_that_is_named():
    def both(answer):
        t = Trial(0)
        a, b = t.randn(2, 3), t.randn(2, 3)
        t.against(product_and_sum, answer, a, b, results=("product", "sum"), gradients={"a": a, "b": b})
        return t.checks

    assert both(product_and_sum) == 12
    with pytest.raises(Rejected, match="no gradient of the sum reaches argument number 2"):
        both(lambda a, b: (a * b, a + b.detach()))
    with pytest.raises(Rejected, match="the gradient of the product in a"):
        both(lambda a, b: (2 * a.detach() * b - a * b.detach() + (a * b).detach() * 0 + 0 * a * b, a + b))


def test_a_result_that_does_not_depend_on_an_argument_has_no_slope_in_it():
    t = Trial(0)
    a, b = t.randn(2, 3), t.randn(2, 3)
    answer = {"results": ("double", "sum"), "gradients": {"a": a, "b": b}}
    t.against(lambda a, b: (2 * a, a + b), lambda a, b: (2 * a, a + b), a, b, **answer)
    assert t.checks == 10


def test_gradients_of_a_single_number_are_compared():
    t = Trial(0)
    x = t.randn(3)
    t.against(lambda x: x.square().sum(), lambda x: (x * x).sum(), x, gradients={"x": x})
    assert t.checks == 4
