"""Where an answer lives: it is run here, and here stays what it was given and what it returned.

``Host`` is this process. ``grading.remote.RemoteHost`` has the same methods for an answer in another one; then only
plain data comes back: tensors, numbers, strings, and lists and dicts of them. So whatever ``verify`` wants to know of
an answer it asks with ``call``, ``gradient`` and ``look``.
"""

import contextlib
import copy
import importlib
import inspect
import linecache
import traceback
from functools import partial
from types import CodeType, FunctionType

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only

import d2lmini

from .compare import Rejected, is_placeholder
from .limits import TimeUp

MESSAGE_LIMIT = 300
# what torch imports when one of these names is used for the first time, in seconds that are not the answer's
LATE = {
    "torch.fx.experimental.symbolic_shapes": {"grad", "backward", "gradcheck"},
    "torch._dynamo": {"func", "optim", "checkpoint"},
}
OURS = (KeyboardInterrupt, TimeUp)  # raised by the reader and by the time limit, not by the answer


class HostError(Exception):
    """The process in which an answer lives is lost: the status of the verdict, its code, and what happened."""

    def __init__(self, message, status="crashed", code="crashed"):
        super().__init__(message)
        self.status, self.code = status, code


class Host:
    """Runs answers in this process."""

    def __init__(self):
        self.given = ()  # what the last call got, as the answer left it

    def adopt(self, answer):
        """Return the answer as `call` takes it."""
        return answer

    def call(self, answer, args, kwargs, watches=()):
        """Run the answer on copies.

        Args:
            answer: callable. args: tuple. kwargs: dict.
            watches: pairs of a function that makes a context manager, in which the answer runs, and the name of the
                attribute of it to be read afterwards.

        Returns:
            (what the answer returned, list of what was read).

        Raises:
            Rejected: it raises, returns a placeholder, or changes an argument.
        """
        self.given, named = _copy((args, kwargs))
        with _modes_put_back(), contextlib.ExitStack() as stack:
            seen = [(stack.enter_context(make()), name) for make, name in watches]
            try:
                got = answer(*self.given, **named)
            except OURS:
                raise
            except BaseException as error:
                if type(error) is NotImplementedError and not error.args:  # with words it is torch's
                    raise Rejected("stub", "the answer still raises NotImplementedError") from None
                raise Rejected("raised", describe(error, answer)) from None
        got = _of_python(got)
        if is_placeholder(got):
            raise Rejected("stub", "the answer still returns the placeholder")
        pairs = {f"number {number}": pair for number, pair in enumerate(zip(args, self.given, strict=True), 1)}
        pairs |= {name: (before, named[name]) for name, before in kwargs.items()}
        for name, (before, after) in pairs.items():
            if not _equal(before, after):
                raise Rejected("mutates", f"your code changes its argument {name} in place")
        return got, [getattr(context, name) for context, name in seen]

    def gradient(self, got, argument, weights=None):
        """Return d(sum of weights * got)/d(argument of the last call), or None where none arrives."""
        if not isinstance(got, torch.Tensor):
            return None
        with torch._C.DisableTorchFunctionSubclass():  # a class of the answer's own is not asked
            if not got.requires_grad:
                return None
            weights = torch.ones_like(got) if weights is None else weights.to(got)
            if weights.shape != got.shape:
                message = f"the result has shape {tuple(got.shape)}, expected {tuple(weights.shape)}"
                raise Rejected("shape", message)
            total = (got * weights).sum()  # with weights as grad_outputs, torch would import sympy
            (grad,) = torch.autograd.grad(total, self.given[argument], allow_unused=True, retain_graph=True)
        return grad

    def look(self, function, results):
        """Return ``function(given, *results)``, where ``given`` are the arguments of the last call."""
        try:
            return function(self.given, *results)
        except (Rejected, *OURS):
            raise
        except BaseException as error:
            raise Rejected("raised", describe(error, None)) from None


@contextlib.contextmanager
def _modes_put_back():
    """Put back what of torch's modes an answer leaves behind: the check goes on with them."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)


def load_everything():
    """Import all that answers may use, also what optimizers and measurements need: it takes seconds."""
    _load(d2lmini.__all__, heavy=True)


def load_for(answer, verify, heavy):
    """Import what an answer and its check use: each name of the package that stands in their notebook or their file."""
    namespaces = {id(scope): scope for function in (*functions_of(answer), verify) for scope in scopes(function)}
    inside = (
        f for scope in namespaces.values() for v in scope.values() for f in functions_of(v) if f.__globals__ is scope
    )
    _load(set().union(*(_names(f.__code__) for f in inside)), heavy)


def scopes(function):
    """Return the globals of a function, and those of what is imported there from modules beside its own."""
    own = function.__globals__
    beside = [f.__globals__ for value in own.values() for f in functions_of(value)]
    package = own.get("__package__")
    return [own, *(scope for scope in beside if package and scope is not own and scope.get("__package__") == package)]


def _load(names, heavy):
    for name in set(names) & set(d2lmini.__all__):  # the package loads its names when they are asked for
        with contextlib.suppress(ImportError, AttributeError):  # in a sandbox there are no exercises
            getattr(d2lmini, name)
    for module, users in LATE.items():
        if users & set(names) or (heavy and module == "torch._dynamo"):
            importlib.import_module(module)


def functions_of(value):
    """Return the functions of a class, or in a list the one that something callable is or holds; else nothing."""
    if isinstance(value, type):
        return [f for f in map(_undressed, vars(value).values()) if isinstance(f, FunctionType)]
    value = _undressed(value)
    return [value] if isinstance(value, FunctionType) else []


def _undressed(value):
    while isinstance(value, partial):
        value = value.func
    value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    value = value.fget if isinstance(value, property) else value
    # a notebook may hold objects that answer to any name
    while (inner := inspect.getattr_static(value, "__wrapped__", value)) is not value:
        value = inner
    return value


def _names(code):
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def is_leaf(value) -> bool:
    """Whether a value is no plain list, tuple or dict: of others, as of a cache, the inside is not looked at."""
    return type(value) not in (list, tuple, dict)


def _of_python(value):
    """Return ``value`` with each of numpy's numbers in it as one of Python's: these are asked for."""
    return tree_map_only(np.generic, np.generic.item, value, is_leaf=is_leaf)


def _copy(value):
    def copied(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().clone().requires_grad_(leaf.requires_grad)
        return copy.deepcopy(leaf) if isinstance(leaf, torch.nn.Module) else leaf

    return tree_map(copied, value, is_leaf=is_leaf)


def _equal(before, after):
    (ones, form), (others, other_form) = tree_flatten(before, is_leaf), tree_flatten(after, is_leaf)
    return form == other_form and all(map(_equal_leaf, ones, others))


def _equal_leaf(a, b):
    """Whether two are equal; a NaN is unequal to itself, and one that was given and is still there was not changed."""
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())
    if isinstance(a, torch.nn.Module):
        return _equal(dict(a.state_dict()), dict(b.state_dict()))
    return a == b or a != a if isinstance(a, (bool, int, float, str)) else True


def describe(error, answer):
    """Say what was raised and on which of the learner's own lines."""
    try:
        text = " ".join(str(error).split())[:MESSAGE_LIMIT]
    except Exception:  # a learner's exception class may fail even here
        text = "(no message)"
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(answer, "__code__", None) or getattr(getattr(answer, "forward", None), "__code__", None)
    own = [f for f in frames if code is not None and f.filename == code.co_filename]
    where = ""
    if own:
        line = linecache.getline(own[-1].filename, own[-1].lineno).strip()
        where = f", at your line {own[-1].lineno}" + (f": {line}" if line else "")
    return f"your code raises {type(error).__name__}{text and ': '}{text}{where}"
