"""What ``verify`` of an exercise works with: fresh inputs, guarded calls, counted comparisons."""

import copy
import linecache
import random
import statistics
import traceback

import torch

from .compare import Rejected, compare_number, compare_tensor, is_placeholder

MESSAGE_LIMIT = 300


class Trial:
    """One try of an answer.

    Every comparison is counted, so that a check in which nothing ran can pass nothing.

    Args:
        seed: of all random inputs of this trial.
        device: where the inputs live and the results must.
    """

    def __init__(self, seed, device="cpu"):
        self.seed, self.device = seed, torch.device(device)
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.checks = 0
        self.references = []  # what messages must not show
        self.given = ()  # what the learner's code got in the last call
        self.dtype = torch.float32  # of the floating-point inputs of the last call

    # inputs

    def sizes(self, count, low=2, high=9):
        """Return ``count`` different sizes, ``low <= size < high``, so that no two axes can be mixed up."""
        return self.random.sample(range(low, high), count)

    def randn(self, *shape, scale=1.0, dtype=torch.float32):
        return (scale * torch.randn(*shape, generator=self.generator, dtype=dtype)).to(self.device)

    def rand(self, *shape, low=0.0, high=1.0, dtype=torch.float32):
        return (low + (high - low) * torch.rand(*shape, generator=self.generator, dtype=dtype)).to(self.device)

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, generator=self.generator).to(self.device)

    # running the answer

    def call(self, answer, *args, **kwargs):
        """Return ``answer(*args, **kwargs)``, computed on copies that must come back unchanged.

        Compute the reference first: then nothing that the answer does can reach it. The copies stay in
        ``given``.
        """
        self.given = tuple(_copy(a) for a in args)
        kwargs = {name: _copy(value) for name, value in kwargs.items()}
        floats = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        self.dtype = floats[0].dtype if floats else self.dtype
        try:
            got = answer(*self.given, **kwargs)
        except NotImplementedError:
            raise Rejected("stub", "the answer still raises NotImplementedError") from None
        except (Exception, SystemExit) as error:
            raise Rejected("raised", describe(error, answer)) from None
        if is_placeholder(got):
            raise Rejected("stub", "the answer still returns the placeholder")
        self.checks += 1
        for index, (before, after) in enumerate(zip(args, self.given, strict=True)):
            if not _equal(before, after):
                raise Rejected("mutates", f"your code changes its argument number {index + 1} in place")
        return got

    # comparing; each counts as one check

    def same(self, got, want, name="the result", *, dtype=None, mistakes=None, tolerance=None):
        """Reject ``got`` unless it equals the tensor ``want`` in type, device, dtype, shape and values.

        Args:
            got: what the answer returned. want: the reference, in float64 on the CPU; or of integers, or
            booleans. name: how to call it in a message. dtype: what ``got`` must have; None: that of the
            answer's inputs, or of ``want`` if it is not float. mistakes: code -> (tensor that a known mistake
            gives, message that teaches). tolerance: (rtol, atol), where those of the dtype do not fit.
        """
        self.checks += 1
        self.references.append(want)
        if dtype is None and want.is_floating_point():
            dtype = self.dtype
        compare_tensor(got, want, name=name, dtype=dtype, device=self.device, mistakes=mistakes, tolerance=tolerance)

    def number(self, got, want, name="the result", *, mistakes=None, rtol=1e-9):
        """Reject ``got`` unless it equals the number ``want``; ``mistakes`` as for ``same``, of numbers."""
        self.checks += 1
        self.references.append(want)
        compare_number(got, want, name=name, mistakes=mistakes, rtol=rtol)

    def that(self, condition, code, message):
        """Reject with ``code`` and ``message`` unless ``condition`` is True (a tensor or None is not)."""
        self.checks += 1
        if condition is not True:
            raise Rejected(code, message)

    def unpack(self, got, *names):
        """Return ``got`` as a tuple with one item for each name, or reject it."""
        expected = f"a tuple ({', '.join(names)})"
        if got is None:
            raise Rejected("type", f"the result is None, expected {expected}: is there a `return`?")
        if not isinstance(got, (tuple, list)):
            raise Rejected("type", f"the result is a {type(got).__name__}, expected {expected}")
        self.that(len(got) == len(names), "shape", f"the result has {len(got)} items, expected {expected}")
        return tuple(got)

    def fields(self, got, *names):
        """Return the values of the dict ``got`` under ``names``, or reject it."""
        if got is None:
            raise Rejected("type", "the result is None, expected a dict: is there a `return`?")
        if not isinstance(got, dict):
            raise Rejected("type", f"the result is a {type(got).__name__}, expected a dict")
        lacking = [name for name in names if name not in got]
        self.that(not lacking, "shape", f"the dict lacks {lacking}; it must have {list(names)}")
        return tuple(got[name] for name in names)

    def gradient(self, got, argument, name="the result"):
        """Return d(sum of ``got``)/d(``given[argument]``); reject where no gradient arrives.

        The argument must have been passed to ``call`` with ``requires_grad``.
        """
        self.checks += 1
        grad = None
        if isinstance(got, torch.Tensor) and got.requires_grad:
            (grad,) = torch.autograd.grad(got.sum(), self.given[argument], allow_unused=True, retain_graph=True)
        if grad is None:
            raise Rejected(
                "grad",
                f"no gradient of {name} reaches argument number {argument + 1}: is something detached?",
            )
        return grad

    def below(self, low, high, margin, code, message):
        """Reject unless the numbers ``low`` lie under ``high``, seed by seed, by ``margin`` in the median."""
        self.checks += 1
        gaps = [float(b) - float(a) for a, b in zip(low, high, strict=True)]
        if not statistics.median(gaps) >= margin:
            raise Rejected(code, message)


def _copy(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(_copy(item) for item in value)
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    return copy.deepcopy(value) if isinstance(value, torch.nn.Module) else value


def _equal(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if type(a) is dict:
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, torch.nn.Module):
        return _equal(dict(a.state_dict()), dict(b.state_dict()))
    return True


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
    return f"your code raises {type(error).__name__}: {text}{where}"
