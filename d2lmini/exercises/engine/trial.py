"""What ``verify`` of an exercise works with: fresh inputs, guarded calls, counted comparisons."""

import contextlib
import random
import statistics
from functools import partial
from types import SimpleNamespace

import torch

from . import against
from .compare import Compared, Rejected, compare_number, compare_tensor
from .host import Host
from .provenance import Calls


class Stop(Exception):
    """A trial has come to the comparison that it was to go to."""


class Trial:
    """One try of an answer.

    Every comparison is counted, so that a check in which nothing ran can pass nothing. The answer may live in another
    process: what it does to the objects that it is given is seen with `look` alone.

    Args:
        seed: of all random inputs of this trial.
        device: where the inputs live and the results must.
        host: where the answer lives; this process when None.
        last: number of the comparison after which the trial ends with `Stop`; None: none.
    """

    def __init__(self, seed, device="cpu", host=None, last=None):
        self.seed, self.device = seed, torch.device(device)
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.host = Host() if host is None else host
        self.checks, self.last = 0, last
        self.references = []  # what messages must not show
        self.compared = None  # what was compared last
        self.dtype = torch.float32  # of the floating-point inputs of the last call that had some
        self.inputs_have_it = False  # whether there was one
        self.given, self.items = (), {}  # arguments of the last call; what it gave, by name, where that is several
        self._watches = []  # (what makes a measurement, the attribute to be read, where it goes)

    # inputs

    def sizes(self, count, low=2, high=9):
        """Return ``count`` different sizes, ``low <= size < high``, so that no two axes can be mixed up."""
        return self.random.sample(range(low, high), count)

    def randn(self, *shape, scale=1.0, dtype=torch.float32):
        return (scale * torch.randn(shape, generator=self.generator, dtype=dtype)).to(self.device)

    def rand(self, *shape, low=0.0, high=1.0, dtype=torch.float32):
        return (low + (high - low) * torch.rand(shape, generator=self.generator, dtype=dtype)).to(self.device)

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, generator=self.generator).to(self.device)

    # running the answer

    def call(self, answer, /, *args, **kwargs):
        """Return ``answer(*args, **kwargs)``, computed on copies that must come back unchanged.

        Compute the reference first. ``answer`` is the learner's, or something callable that it returned (a module);
        that may be an argument, too.
        """
        floats = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
        self.dtype = floats[0].dtype if floats else self.dtype
        self.inputs_have_it |= bool(floats)
        self.given, self.items = (*args, *kwargs.values()), {}
        got, read = self.host.call(answer, args, kwargs, tuple((make, name) for make, name, _ in self._watches))
        for (_, name, seen), value in zip(self._watches, read, strict=True):
            setattr(seen, name, value)
        self._count()
        return got

    @contextlib.contextmanager
    def watching(self, make, name):
        """Within ``with t.watching(LargestTensor, "numel") as seen:``, answers run in ``make()``.

        After each call ``seen`` has the attribute ``name`` of it: plain data.
        """
        seen = SimpleNamespace()
        self._watches.append((make, name, seen))
        try:
            yield seen
        finally:
            self._watches.pop()

    @contextlib.contextmanager
    def refusing(self, *beginnings, message):
        """Within ``with t.refusing("torch.optim.", message="..."):``, answers must call no function of these.

        ``beginnings`` are those of names, as `Calls` has them. The message says what to write instead.
        """
        with self.watching(partial(Calls, *beginnings), "names") as seen:
            yield
        self.that(not seen.names, "borrowed", message)

    def look(self, function, *results):
        """Return ``function(given, *results)``: what the answer did to what it was given, or what it returned is like.

        Args:
            function: runs where the answer lives, on the arguments of the last call as the answer left them and on
                ``results``; it must return plain data (tensors, numbers, strings, lists, dicts) and know no reference.
            results: what answers returned.
        """
        return self.host.look(function, results)

    # comparing; each counts as one check

    def against(self, reference, answer, *args, results=(), gradients=None, case="", order=(), **options):
        """Reject ``answer`` unless it gives what ``reference`` gives for the same arguments, gradients too.

        The reference gets them on the CPU, floating-point tensors in float64, and runs first. It returns a tensor or a
        number, or several of them: in a tuple, whose ``results`` are named, or in a dict.

        Args:
            gradients: name -> tensor among ``args`` in which the gradients of all results are compared, too.
            case: goes behind the name of a result in a message: ``"for one head"``.
            order: of the names of results in which they are compared, where it is not theirs.
            options: as of `same` (or of `number`, where the results are numbers).
        """
        against.against(self, reference, answer, args, results, gradients or {}, case, order, options)

    def same(self, got, want, name="the result", *, dtype=None, tolerance=None):
        """Reject ``got`` unless it equals the tensor ``want`` in type, device, dtype, shape and values.

        Args:
            got: what the answer returned. want: the reference, in float64 on the CPU; or of integers, or
            booleans. name: how to call it in a message. dtype: what ``got`` must have; None: that of the
            answer's inputs, or of ``want`` if it is not float. tolerance: (rtol, atol), where those of the dtype
            do not fit.
        """
        self._count()
        self.references.append(want)
        whose = ""
        if dtype is None and want.is_floating_point():
            dtype, whose = self.dtype, ", that of the inputs" if self.inputs_have_it else ""
        self.compared = Compared(name, got, tolerance, want)
        compare_tensor(got, want, name=name, dtype=dtype, whose=whose, device=self.device, tolerance=tolerance)

    def number(self, got, want, name="the result", *, mistakes=None, rtol=1e-9):
        """Reject ``got`` unless it equals the number ``want``.

        ``mistakes``: code -> (what a known mistake gives, a message that teaches), where no mutant can tell.
        """
        self._count()
        self.references.append(want)
        self.compared = Compared(name, got, (rtol, 0.0), want)
        compare_number(got, want, name=name, mistakes=mistakes, rtol=rtol)

    def whole(self, got, name="the result"):
        """Reject ``got``, a number or a tensor of one, unless it is an integer: what is counted is one."""
        kind = got.dtype if isinstance(got, torch.Tensor) else type(got)
        message = f"{name} is a {getattr(kind, '__name__', kind)}, expected an int: a count is one"
        self.that(kind is int or getattr(kind, "is_floating_point", True) is False, "type", message)

    def numbers(self, got, count, name="the result"):
        """Return a list of ``count`` finite numbers, or reject it; it may be a tensor, and so may each of them."""
        got = list(got) if isinstance(got, torch.Tensor) and got.dim() == 1 else got
        listed = isinstance(got, (list, tuple)) and len(got) == count
        self.that(listed, "shape", f"{name} must be a list of {count} numbers")
        got = [x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x for x in got]
        plain = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in got)
        self.that(plain, "type", f"{name} must hold numbers")
        self.that(all(-1e300 < x < 1e300 for x in got), "nonfinite", f"{name} must hold finite numbers")
        return got

    def that(self, condition, code, message):
        """Reject with ``code`` and ``message`` unless ``condition`` is True (a tensor or None is not)."""
        self._count()
        if condition is not True:
            raise Rejected(code, message)

    def unpack(self, got, *names):
        """Return ``got`` as a tuple with one item for each name, or reject it."""
        expected = f"a tuple ({', '.join(names)})"
        _expect(got, (tuple, list), expected)
        items = "1 item" if len(got) == 1 else f"{len(got)} items"
        self.that(len(got) == len(names), "type", f"the result has {items}, expected {expected}")
        self.items = dict(zip(names, got, strict=True))
        return tuple(got)

    def fields(self, got, *names):
        """Return the values of the dict ``got`` under ``names``, or reject it."""
        _expect(got, dict, "a dict")
        lacking = [name for name in names if name not in got]
        extra = [key[:40] for key in got if isinstance(key, str) and key not in names][:5]
        instead = f" and has {extra}, which nobody asked for" if extra else ""
        self.that(not lacking, "type", f"the dict lacks {lacking}{instead}; it must have {list(names)}")
        self.items = {name: got[name] for name in names}
        return tuple(self.items.values())

    def gradient(self, got, argument, name="the result", weights=None):
        """Return d(sum of ``weights * got``)/d(argument number ``argument`` of the call); reject where none arrives.

        The argument must have been passed to ``call`` with ``requires_grad``, and ``got`` be what that call gave.
        """
        self._count()
        grad = self.host.gradient(got, argument, weights)
        if grad is None:
            message = f"no gradient of {name} reaches argument number {argument + 1}: is something detached?"
            raise Rejected("grad", message)
        return grad

    def below(self, low, high, margin, code, message):
        """Reject unless the numbers ``low`` lie under ``high``, seed by seed, by ``margin`` in the median."""
        self._count()
        gaps = [float(b) - float(a) for a, b in zip(low, high, strict=True)]
        if not statistics.median(gaps) >= margin:
            raise Rejected(code, message)

    def _count(self):
        if self.checks == self.last:
            raise Stop
        self.checks += 1


def _expect(got, kinds, expected):
    if got is None:
        raise Rejected("type", f"the result is None, expected {expected}: is there a `return`?")
    if not isinstance(got, kinds):
        raise Rejected("type", f"the result is a {type(got).__name__}, expected {expected}")
