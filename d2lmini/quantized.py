"""Weights in 8 or 4 bits: small integers, and a scale for each row or each group of neighbours in it.

In 8 bits w = scale * code, with codes from -127 to 127. In 4 bits that would leave 15 values, half of which a group
with few negative numbers would not use. So there w = minimum + scale * code, with codes from 0 to 15, two a byte. With
groups of 32 these are the numbers of GGUF's formats Q8_0 and Q4_1. Activations are not rounded.

What a number costs: 8 + 16 / group bits, or 4 + 32 / group, with scales in float16.
"""

import copy
import operator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from .buffers import ExactBuffers
from .layers import check_model, choose, named_layers, replace, with_sums
from .renamed import Attribute, arguments, names_of

__getattr__ = names_of(__name__)

_SCALES = torch.float16, torch.bfloat16, torch.float32, torch.float64
_AT_ONCE = 2**19  # numbers that are dequantised together: a processor's cache holds them until they are multiplied


class Quantized(NamedTuple):
    """A matrix (R, C) in few bits, G groups a row. Leading dimensions may be any: a part of its rows is one, too.

    ``codes`` are int8 (R, C), or in 4 bits uint8 (R, C / 2): the first half of a row in the lower four bits, the second
    in the upper ones. ``scale`` and, in 4 bits alone, ``minimum`` are (R, G).
    """

    codes: torch.Tensor
    scale: torch.Tensor
    minimum: torch.Tensor | None

    @property
    def num_bytes(self):
        """Of all its tensors."""
        return sum(x.numel() * x.element_size() for x in self if x is not None)

    def dequantize(self, dtype=None):
        """The matrix (R, C) that the codes encode, in ``dtype``; None: float32, or that of wider scales."""
        dtype = dtype or torch.promote_types(self.scale.dtype, torch.float32)
        codes = self.codes if self.minimum is None else torch.cat([self.codes & 15, self.codes >> 4], -1)  # (R, C)
        values = codes.to(dtype).unflatten(-1, (self.scale.shape[-1], -1))  # (R, G, C / G)
        values *= self.scale.to(dtype)[..., None]
        if self.minimum is not None:
            values += self.minimum.to(dtype)[..., None]
        return values.flatten(-2)  # (R, C)

    dequantise = Attribute("dequantise", "dequantize")

    def rows(self, places):
        """The rows at some places, a slice, or integers of any shape (...): codes (..., C), scale (..., G)."""
        return Quantized(*(x if x is None else x[places] for x in self))


def quantize(weight, bits=8, group=None, *, scale_dtype=torch.float16):
    """Rounds a matrix to integers of 8 or 4 bits; see the module for the formats.

    Args:
        weight: (R, C), floating.
        bits: 8 or 4.
        group: how many neighbours in a row share a scale, a divisor of C; None: the whole row.
        scale_dtype: of the scales and minima, which are rounded first, and the codes then fitted to them. In float16
            numbers below 4e-6 may become 0.

    Returns:
        A `Quantized`, on the weight's device. It is off by half a scale at most, and by what rounds scale and minimum.

    Raises:
        TypeError: the weight is no tensor, or ``scale_dtype`` not floating.
        ValueError: ``bits`` or ``group`` is none of these, C is odd in 4 bits, the matrix is empty, of another form or
            not finite, or a scale is more than ``scale_dtype`` holds.

    Source: Jacob et al. 2018, section 2.1; the formats Q8_0 and Q4_1 of ggml.
    """
    if not isinstance(weight, torch.Tensor):
        raise TypeError(f"the weight is a {type(weight).__name__}, expected a tensor")
    if scale_dtype not in _SCALES:
        raise TypeError(f"scale_dtype is {scale_dtype!r}, expected {', '.join(map(str, _SCALES))}")
    if bits not in (8, 4):
        raise ValueError(f"bits is {bits!r}, expected 8 or 4")
    if weight.dim() != 2 or not weight.numel() or not weight.is_floating_point():
        raise ValueError(
            f"the weight is {weight.dtype} of shape {tuple(weight.shape)}, expected floating numbers (R, C), at least "
            "one of them"
        )
    columns = weight.shape[1]
    group = columns if group is None else group
    if isinstance(group, bool) or not hasattr(group, "__index__") or group < 1 or columns % group:
        raise ValueError(f"group is {group!r}, expected a divisor of the row's {columns} numbers")
    group = operator.index(group)
    if bits == 4 and columns % 2:
        raise ValueError(f"a row has {columns} numbers, expected an even number: in 4 bits two share a byte")
    weight = weight.detach()
    if not weight.isfinite().all():
        raise ValueError("the weight has numbers that are NaN or infinite: did the training diverge?")
    values = weight.to(torch.promote_types(weight.dtype, torch.float32)).unflatten(1, (-1, group))  # (R, G, group)
    if bits == 8:
        scale, minimum = _kept(values.abs().amax(-1) / 127, scale_dtype), None
        codes = (values / scale.to(values)[..., None]).round().clamp(-127, 127).to(torch.int8)
        return Quantized(codes.flatten(1), scale, minimum)
    minimum = _kept(values.amin(-1), scale_dtype, zeros=True)
    values = values - minimum.to(values)[..., None]
    scale = _kept(values.amax(-1) / 15, scale_dtype)
    codes = (values / scale.to(values)[..., None]).round().clamp(0, 15).to(torch.uint8).flatten(1)  # (R, C)
    lower, upper = codes.chunk(2, 1)
    return Quantized(lower | upper << 4, scale, minimum)


def _kept(numbers, dtype, zeros=False):
    """Scales as they are kept; a scale of 0, of a group whose codes are all 0, is 1."""
    kept = numbers.to(dtype)
    if not kept.isfinite().all():
        raise ValueError(f"a scale is {numbers.abs().max():.3g}, more than {dtype} holds: give another scale_dtype")
    return kept if zeros else kept.masked_fill(kept <= 0, 1.0)


class _Held(ExactBuffers):
    """A module whose matrix is a `Quantized`, held as buffers.

    Attributes:
        dtype: of ``weight``; ``module.to(dtype)`` changes it, and never what is held.
    """

    exact = Quantized._fields
    quantised = Attribute("quantised", "quantized")

    def __init__(self, quantized, dtype):
        super().__init__()
        if not isinstance(quantized, Quantized):
            raise TypeError(f"the matrix is a {type(quantized).__name__}, expected a Quantized: quantize(weight)")
        for name, x in zip(Quantized._fields, quantized, strict=True):
            self.register_buffer(name, x)
        self.dtype = dtype

    def _apply(self, fn, recurse=True):
        self.dtype = fn(torch.empty(0, dtype=self.dtype)).dtype
        return super()._apply(fn, recurse)

    @property
    def quantized(self):
        """The `Quantized` that it holds."""
        return Quantized(self.codes, self.scale, self.minimum)

    @property
    def weight(self):
        """The matrix in ``dtype``, dequantised anew whenever it is asked for."""
        return self.quantized.dequantize(self.dtype)

    def extra_repr(self):
        bits = 8 if self.minimum is None else 4
        columns = self.codes.shape[1] * 8 // bits
        return f"{columns}, {len(self.codes)}, bits={bits}, group={columns // self.scale.shape[1]}"


class QuantizedLinear(_Held):
    """A linear layer that holds its weight in few bits, and dequantises it whenever it is called.

    The weight does not learn; gradients go through to the input. `from_linear` makes one of a `torch.nn.Linear`.

    Args:
        quantized: a `Quantized` of (outputs, inputs).
        bias: None, or (outputs,).
        dtype: of ``weight``; None: the bias's, or float32.

    Raises:
        TypeError: ``quantized`` is something else.
        ValueError: the bias is of another size.
    """

    @arguments(quantised="quantized")
    def __init__(self, quantized, bias=None, dtype=None):
        super().__init__(quantized, dtype or (torch.float32 if bias is None else bias.dtype))
        self.out_features = len(self.codes)
        self.in_features = self.codes.shape[1] * (1 if self.minimum is None else 2)
        if bias is not None and bias.shape != (self.out_features,):
            raise ValueError(f"the bias has shape {tuple(bias.shape)}, expected ({self.out_features},)")
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone(), bias.requires_grad)

    @classmethod
    def from_linear(cls, linear, bits=8, group=None, **options):
        """Of a `torch.nn.Linear`, which stays as it is; arguments and errors are those of `quantize`."""
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"the layer is a {type(linear).__name__}, expected a torch.nn.Linear")
        return cls(quantize(linear.weight, bits, group, **options), linear.bias, linear.weight.dtype)

    def forward(self, X):
        """(..., inputs) to (..., outputs), by the dequantised weight in X's dtype, some rows of it after the other.

        Raises:
            ValueError: X is not floating, or of another width.
        """
        if X.shape[-1:] != (self.in_features,) or not X.is_floating_point():
            raise ValueError(
                f"X is {X.dtype} of shape {tuple(X.shape)}, expected floating numbers (..., {self.in_features})"
            )
        held, at_once = self.quantized, max(1, _AT_ONCE // self.in_features)
        parts = [held.rows(slice(i, i + at_once)) for i in range(0, self.out_features, at_once)]
        Y = torch.cat([_product(X, part) for part in parts], -1)
        return Y if self.bias is None else Y + self.bias


def _product(X, weight):
    """X (..., C) times a `Quantized` (R, C): (..., R)."""
    if weight.minimum is None and weight.scale.shape[1] == 1:  # a row's scale multiplies what the row gives
        return F.linear(X, weight.codes.to(X.dtype)) * weight.scale[:, 0].to(X.dtype)
    return F.linear(X, weight.dequantize(X.dtype))


class QuantizedEmbedding(_Held):
    """An embedding that holds its table in few bits and dequantises the rows that it is asked for.

    Args:
        quantized: a `Quantized` of (V, h).
        dtype: of what it gives; ``module.to(dtype)`` changes it.
    """

    @arguments(quantised="quantized")
    def __init__(self, quantized, dtype=torch.float32):
        super().__init__(quantized, dtype)
        self.num_embeddings = len(self.codes)

    def forward(self, tokens):
        """Integers (...) below V to (..., h).

        Raises:
            TypeError: they are no integers.
            IndexError: they are not below V.
        """
        if tokens.is_floating_point() or tokens.is_complex() or tokens.dtype == torch.bool:
            raise TypeError(f"tokens are {tokens.dtype}, expected integers")
        if tokens.numel() and not (tokens.min() >= 0 and tokens.max() < self.num_embeddings):
            raise IndexError(f"tokens are {tokens.min()} to {tokens.max()}, expected 0 to {self.num_embeddings - 1}")
        return self.quantized.rows(tokens.long()).dequantize(self.dtype)  # torch takes uint8 for a mask


def quantize_model(model, bits=8, group=None, *, skip=(), embedding_bits=8, scale_dtype=torch.float16):
    """A copy of a model whose linear layers hold their weights in few bits.

    A last layer that shares its weight with an embedding goes on doing so: both hold one table, in ``embedding_bits``,
    since scores suffer most from rounding, as the files of published models have it. Of a merged `LowRankAdapter` the
    sum is rounded, for good. Other embeddings, norms and biases stay as they are, and so does what is derived from
    `torch.nn.Linear`.

    Args:
        model: any module; it stays as it is. Call ``eval()`` before what is measured.
        bits, group, scale_dtype: as `quantize` takes them.
        skip: names of linear layers to leave, whole as ``"blks.0.attention.W_q"``, or their last part, ``"W_q"``.
        embedding_bits: of a shared table; None: it is left as it is.

    Returns:
        The copy.

    Raises:
        TypeError: ``skip`` is one str, the model no module, or ``scale_dtype`` not floating.
        ValueError: as `quantize`, with the layer's name; no linear layer has a name in ``skip``, or there is none to
            round.
    """
    check_model(model)
    model = with_sums(copy.deepcopy(model))
    linears = named_layers(model, lambda module: type(module) is nn.Linear)
    left = {linears[name] for name in choose(linears, skip, "skip")}
    tables = {x for x in model.modules() if type(x) is nn.Embedding}
    shared = {table.weight for table in tables}
    made, others = {}, {}  # by weight: what is held twice is rounded once
    for name, linear in linears.items():
        width = embedding_bits if linear.weight in shared else bits
        if linear in left or linear in others or width is None:
            continue
        try:
            if linear.weight not in made:
                made[linear.weight] = quantize(linear.weight, width, group, scale_dtype=scale_dtype)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        others[linear] = QuantizedLinear(made[linear.weight], linear.bias, linear.weight.dtype)
    if not made:
        raise ValueError("there is no linear layer to round: all are skipped, or the model has none")
    for table in tables:
        if table.weight in made:
            others[table] = QuantizedEmbedding(made[table.weight], table.weight.dtype)
    return replace(model, others)


def weight_bytes(model):
    """Bytes of what a model's ``state_dict`` holds; what is shared counts once."""
    held = {(x.data_ptr(), x.shape): x for x in model.state_dict().values()}
    return sum(x.numel() * x.element_size() for x in held.values())
