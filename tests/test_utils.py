"""D2L's small helpers."""

import math
import textwrap

import pytest
import torch

from d2lmini import masks, pooling, utils
from d2lmini.utils import HyperParameters, add_to_class, check_shape, show_source


def test_check_shape():
    check_shape(torch.zeros(2, 3), (2, 3))
    check_shape(torch.zeros(2, 3), [2, 3])
    with pytest.raises(AssertionError, match=r"tensor has shape \(2, 3\), expected \(3, 2\)"):
        check_shape(torch.zeros(2, 3), (3, 2))


def test_add_to_class_reaches_objects_made_before():
    class A:
        b = 1

    a = A()

    @add_to_class(A)
    def double(self):
        return 2 * self.b

    assert a.double() == 2 and callable(double)
    with pytest.raises(TypeError, match="takes a class, got a A"):
        add_to_class(a)


class Saved(HyperParameters):
    def __init__(self, a, b=2, *rest, _private=0, skip=None, **more):
        local = a + 1
        self.save_hyperparameters(ignore=["skip"])
        self.other = local


def test_save_hyperparameters():
    saved = Saved(1, 3, 4, skip=5, extra=6)
    assert saved.hparams == {"a": 1, "b": 3, "rest": (4,), "extra": 6}
    assert (saved.a, saved.b, saved.rest, saved.extra) == (1, 3, (4,), 6)
    assert not hasattr(saved, "skip") and not hasattr(saved, "_private") and not hasattr(saved, "local")


def test_save_hyperparameters_of_an_unknown_name():
    class Bad(HyperParameters):
        def __init__(self, a):
            self.save_hyperparameters(ignore=["typo"])

    with pytest.raises(ValueError, match=r"ignore names \['typo'\], expected some of \['a', 'self'\]"):
        Bad(1)


@pytest.mark.parametrize("count", [0, 2])
def test_devices(monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    assert utils.num_gpus() == count
    assert utils.cpu() == torch.device("cpu") and utils.gpu(1) == torch.device("cuda:1")
    assert utils.try_gpu(1) == (utils.gpu(1) if count == 2 else utils.cpu())
    assert utils.try_gpu(2) == utils.cpu()
    assert utils.try_all_gpus() == [utils.gpu(0), utils.gpu(1)][:count]


def test_show_source_is_the_source():
    shown = show_source(pooling.boxcar, pooling.constant)
    assert repr(shown).startswith("def boxcar(distance):\n") and "\n\n\ndef constant(distance):" in shown
    markdown = shown._repr_markdown_()
    assert markdown.startswith("```python\ndef boxcar") and markdown.endswith("\n```")


def test_show_source_dedents_a_method_and_takes_a_module():
    assert show_source(HyperParameters.save_hyperparameters).startswith("def save_hyperparameters(")
    assert show_source(masks).startswith('"""Masks')


def test_show_source_fences_backticks():
    fenced = utils.Source('"""```"""\n')._repr_markdown_()
    assert fenced.startswith("````python\n") and fenced.endswith("\n````")


SOURCE = '''
class A:
    """Two
    lines."""

    x = 1  # kept

    def f(self):
        """One."""
        return "text"  # kept too

    def only(self):
        """Stays, for without it there is no body."""

    def joined(self): "stays"; return 2

    def joined_below(self):
        "stays"; return 3

    async def g(self):
        """Has ``ticks``."""

        def inner():
            """Inner."""
            return """not a docstring"""

        return inner()
'''

BARE = '''
class A:
    x = 1  # kept

    def f(self):
        return "text"  # kept too

    def only(self):
        """Stays, for without it there is no body."""

    def joined(self): "stays"; return 2

    def joined_below(self):
        "stays"; return 3

    async def g(self):
        def inner():
            return """not a docstring"""

        return inner()
'''


def test_source_without_docstrings():
    assert utils._without_docstrings(SOURCE) == BARE


@pytest.mark.parametrize("thing", [masks, pooling.nadaraya_watson, pooling.GaussianKernel, HyperParameters])
def test_show_source_without_docstrings_is_python_of_the_same_code(thing):
    bare = show_source(thing, docstring=False)
    assert '"""' not in bare and len(bare) < len(show_source(thing))
    compile(textwrap.dedent(bare), "bare", "exec")


def test_show_source_without_docstring_still_computes():
    namespace = {}
    exec(show_source(pooling.triangular, docstring=False), namespace)
    assert namespace["triangular"](torch.tensor(0.25)).item() == 0.75


@pytest.mark.parametrize(
    ("things", "message"),
    [
        ((), "needs at least one"),
        ((pooling.gaussian,), r"of an instance show its class, GaussianKernel"),
        ((math.sin,), "has no Python source"),
    ],
)
def test_show_source_of_what_has_none(things, message):
    with pytest.raises(TypeError, match=message):
        show_source(*things)
