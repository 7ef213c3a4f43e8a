"""Compare an answer's result with the reference and say what kind of difference there is.

The order is fixed, and the first difference is the one reported: not attempted, type, device, dtype, shape,
not finite, values. Nothing is ever broadcast, and no message holds a value of the reference.
"""

import math
import numbers
from dataclasses import dataclass

import torch

# rtol, atol by the dtype of the result; the reference itself is float64
TOLERANCE = {torch.float64: (1e-8, 1e-10), torch.float32: (1e-4, 1e-5)}
LOOSE = (2e-2, 2e-2)


class Rejected(Exception):
    """An answer is wrong: a short code for programs and a message for the learner."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Compared:
    """A value of an answer: what messages call it, the (rtol, atol) within which two are equal, and the reference."""

    name: str
    got: object
    tolerance: tuple | None
    want: object = None


def alike(one, other) -> bool:
    """Whether two answers gave the same, be it right or wrong."""
    if one is None or other is None:
        return False
    a, b = (bare(x.got).cpu() if isinstance(x.got, torch.Tensor) else x.got for x in (one, other))
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        a, b = (torch.as_tensor(x, dtype=torch.float64) for x in (a, b))
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    rtol, atol = one.tolerance or TOLERANCE.get(a.dtype, LOOSE)
    return not differ(a.double(), b.double(), rtol, atol).any() if a.is_floating_point() else torch.equal(a, b)


def is_placeholder(value) -> bool:
    return value is Ellipsis or value is NotImplemented


def compare_tensor(got, want, *, name, dtype, whose, device, tolerance):
    """Raise ``Rejected`` unless ``got`` equals ``want``.

    Args:
        got: what the learner's code returned.
        want: reference, any shape, float64 on the CPU (or integer, or boolean).
        name: how to call the result in a message.
        dtype: dtype that ``got`` must have; None: that of ``want``.
        whose: what a message adds to that dtype: ", that of the inputs".
        device: device that ``got`` must be on.
        tolerance: (rtol, atol); None: by dtype.
    """
    dtype = dtype or want.dtype
    _attempted(got, name)
    if not isinstance(got, torch.Tensor):
        raise Rejected("type", f"{name} is a {type(got).__name__}, expected a torch.Tensor")
    got = _plain(got, name)
    if got.device != device:
        raise Rejected("device", f"{name} is on {got.device}, expected {device}: make new tensors with device=")
    if got.dtype != dtype:
        raise Rejected("dtype", f"{name}: dtype {got.dtype}, expected {dtype}{whose}")
    if got.shape != want.shape:
        swapped = got.dim() >= 2 and got.mT.shape == want.shape
        looks = ": the last two axes look swapped" if swapped else ""
        raise Rejected("shape", f"{name}: shape {tuple(got.shape)}, expected {tuple(want.shape)}{looks}")
    got, want = got.cpu(), want.detach().cpu()
    if got.is_floating_point():
        got, want = got.double(), want.double()
        missing = ~torch.isfinite(got) & torch.isfinite(want)
        if missing.any():
            raise Rejected("nonfinite", f"{name}: {_count(missing)} NaN or infinite{_first(missing)}")
    rtol, atol = tolerance or TOLERANCE.get(dtype, LOOSE)
    wrong = differ(got, want, rtol, atol)
    if wrong.any():
        raise Rejected("values", f"{name}: the right shape, but {_count(wrong)} wrong{_first(wrong)}")


def _attempted(got, name):
    if is_placeholder(got):
        raise Rejected("stub", f"{name} is still the placeholder")
    if got is None:
        raise Rejected("type", f"{name} is None: is there a `return`?")


def bare(got):
    """Return a tensor without its graph and without its class, whose methods may do anything."""
    with torch._C.DisableTorchFunctionSubclass():
        return got.detach().as_subclass(torch.Tensor)


def _plain(got, name):
    """Return ``got`` as a tensor that can be compared, or reject it in words of its own."""
    kind = type(got)
    with torch._C.DisableTorchFunctionSubclass():
        nested, layout = got.is_nested, got.layout
    if nested:
        raise Rejected("type", f"{name} is a nested tensor: return one with all its rows of equal length")
    if layout != torch.strided:
        raise Rejected("type", f"{name} is a tensor of layout {layout}: return a dense one, x.to_dense()")
    try:
        got = bare(got)
        if kind not in (torch.Tensor, torch.nn.Parameter):
            got = got.clone()  # one that only wraps another fails here
    except Exception:
        got = None
    if type(got) is not torch.Tensor:
        raise Rejected("type", f"{name} is a {kind.__name__[:40]}, which is no plain torch.Tensor: return one")
    if got.is_quantized:
        raise Rejected("dtype", f"{name} is quantised ({got.dtype}): return what it stands for, x.dequantize()")
    if got.is_complex():
        raise Rejected("dtype", f"{name} is complex ({got.dtype}): return real numbers, such as x.real or x.abs()")
    return got


def compare_number(got, want, *, name, mistakes, rtol):
    """Raise ``Rejected`` unless the number ``got`` equals ``want``; arguments as of `Trial.number`."""
    _attempted(got, name)
    if isinstance(got, torch.Tensor):
        got = _plain(got, name)
        got = got.item() if got.numel() == 1 and got.dim() == 0 else got
    if isinstance(got, bool) or not isinstance(got, numbers.Real):
        raise Rejected("type", f"{name} is a {type(got).__name__}, expected a number")
    got = float(got)
    if not math.isfinite(got):
        raise Rejected("nonfinite", f"{name} is {got}")

    def near(x):
        return abs(got - x) <= rtol * max(abs(x), abs(want))

    if near(want):
        return
    for code, (alternative, message) in (mistakes or {}).items():
        if near(alternative):
            raise Rejected(code, f"{name}: {message}")
    raise Rejected("values", f"{name} is too {'large' if got > want else 'small'}")


def differ(got, want, rtol, atol):
    if not got.is_floating_point():
        return got != want
    # NaN is unequal to everything, itself included; infinities must agree exactly
    near = ((got - want).abs() <= atol + rtol * want.abs()) & torch.isfinite(want)
    return ~(near | (got == want))


def _count(flags):
    return f"{int(flags.sum())} of {flags.numel()} entries are" if flags.dim() else "its one entry is"


def _first(flags):
    return f", the first at {flags.nonzero()[0].tolist()}" if flags.dim() else ""
