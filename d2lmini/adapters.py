"""Low-rank adaptation: a linear layer keeps its weight, and learns a change of it, the product of two thin matrices.

W x becomes W x + (alpha / r) B A x with A of (r, inputs) and B of (outputs, r). Only A and B learn:
r (inputs + outputs) numbers, not inputs * outputs. B begins at zero, and so the model begins as it was.
"""

import math
import operator
from collections.abc import Mapping
from numbers import Real

import torch
import torch.nn.functional as F
from torch import nn

from .buffers import ExactBuffers, on
from .layers import check_model, choose, known, named_layers, replace
from .quantized import QuantizedLinear

_PARTS = "down", "up", "factor"  # what an adapter has learned, and how much it counts


class LowRankAdapter(ExactBuffers):
    """A linear layer and a change of rank r of it.

    Merged, it computes with the sum of weight and change, which lies next to the weight: that one stays, for whoever
    shares it, in every state dict, and bit for bit for `unmerge`. So the change counts once wherever a state goes.

    Args:
        base: a `torch.nn.Linear`, or a `QuantizedLinear`; it is frozen.
        rank: r, from 1 to the smaller of its inputs and outputs.
        alpha: the change counts ``alpha / rank``; None: ``rank``, so that it counts once.

    Raises:
        TypeError: ``base`` is something else.
        ValueError: ``rank`` is out of range, or ``alpha`` not above 0.

    Attributes:
        down: A, (r, inputs), which begins normal of variance 1 / inputs.
        up: B, (outputs, r), which begins at zero.
        factor: ``alpha / rank``, a buffer.

    Source: Hu et al. 2022, section 4.1.
    """

    exact = ("factor",)

    def __init__(self, base, rank, alpha=None):
        super().__init__()
        if not _is_linear(base):
            raise TypeError(f"the base is a {type(base).__name__}, expected a torch.nn.Linear or a QuantizedLinear")
        rank, alpha = _checked(base, rank, alpha)
        self.base = base.requires_grad_(False)
        like = base.weight
        self.down = nn.Parameter(like.new_empty(rank, base.in_features).normal_(std=base.in_features**-0.5))
        self.up = nn.Parameter(like.new_zeros(base.out_features, rank))
        self.register_buffer("factor", on(torch.tensor(alpha / rank, dtype=torch.float64), like.device))
        self.register_buffer("sum", None, persistent=False)
        self.register_load_state_dict_post_hook(_renew_sum)

    @property
    def merged(self):
        """Whether it computes with the sum."""
        return self.sum is not None

    @property
    def in_features(self):
        """Features of the input."""
        return self.base.in_features

    @property
    def out_features(self):
        """Features of the output."""
        return self.base.out_features

    @property
    def bias(self):
        """That of the base."""
        return self.base.bias

    @property
    def weight(self):
        """The changed weight, (outputs, inputs)."""
        return self.sum if self.merged else self.base.weight + self.change()

    def change(self):
        """(alpha / r) B A, (outputs, inputs)."""
        return self.factor * self.up @ self.down

    def forward(self, X):
        """(..., inputs) to (..., outputs)."""
        if not self.merged:
            return self.base(X) + self.factor * (X @ self.down.T @ self.up.T)
        Y = F.linear(X, self.sum, self.bias)
        if torch.is_grad_enabled() and (self.up.requires_grad or self.down.requires_grad):
            nothing = self.up[:0].sum() + self.down[:0].sum()  # 0, and where a backward pass would look for gradients
            nothing.register_hook(_refuse_gradient)
            Y = Y + nothing
        return Y

    @torch.no_grad()
    def merge(self):
        """Adds the change to the weight: a call costs what one of the base does, and nothing learns any more.

        Raises:
            TypeError: the base holds few bits, to which the change cannot be added, or has a forward of its own.
            ValueError: it is merged already.
        """
        self.check_merge()
        self.sum = self.weight

    def check_merge(self):
        """Raises what `merge` does, and changes nothing."""
        if isinstance(self.base, QuantizedLinear):
            raise TypeError("the weight is in few bits, and a change cannot be added without rounding: leave it beside")
        if type(self.base).forward is not nn.Linear.forward:
            raise TypeError(f"a {type(self.base).__name__} has a forward of its own: leave the change beside it")
        if self.merged:
            raise ValueError("the change is in the weight already: unmerge it first")

    def unmerge(self):
        """Takes the change out again; the weight is what it was.

        Raises:
            ValueError: it is not merged.
        """
        self.check_unmerge()
        self.sum = None

    def check_unmerge(self):
        """Raises what `unmerge` does, and changes nothing."""
        if not self.merged:
            raise ValueError("the change is not in the weight: merge it first")

    def as_linear(self):
        """A frozen `torch.nn.Linear` of the changed weight, with the bias of the base."""
        linear = nn.Linear(self.in_features, self.out_features, bias=False, device="meta")
        linear.weight, linear.bias = nn.Parameter(self.weight.detach(), requires_grad=False), self.bias
        return linear


def _renew_sum(adapter, _):
    """After a state is loaded."""
    if adapter.merged:
        adapter.unmerge()
        adapter.merge()


def _refuse_gradient(_):
    raise RuntimeError(
        "the change is in the weight, where it does not learn: call unmerge_adapters(model) before training, or "
        "model.requires_grad_(False) where something else is to learn"
    )


def adapt(model, rank, where=("W_q", "W_v"), alpha=None):
    """Freezes a model, and gives some of its linear layers a `LowRankAdapter`, in place.

    Args:
        model: any module; its blocks' projections are called ``W_q``, ``W_k``, ``W_v`` and ``W_o``.
        rank, alpha: of each adapter.
        where: names of layers, whole as ``"blks.0.attention.W_q"``, or their last part.

    Returns:
        The model. What learns are the adapters: ``[p for p in model.parameters() if p.requires_grad]``.

    Raises:
        TypeError: ``where`` is one str, or the model no module.
        ValueError: no layer has such a name, ``rank`` or ``alpha`` is out of range, or the model has adapters already,
            or is itself a linear layer.

    Source: Hu et al. 2022, section 4.2, who adapt the queries' and the values' projections.
    """
    linears = _fresh(model)
    names = choose(linears, where, "where")
    if not names:
        raise ValueError(f"where names no linear layer, expected some of {known(linears)}")
    for name in names:  # all before the first is frozen
        _checked(linears[name], rank, alpha)
    chosen = dict.fromkeys(linears[name] for name in names)  # a layer of two names once
    return _put(model, {linear: LowRankAdapter(linear, rank, alpha) for linear in chosen})


def _is_linear(module):
    return isinstance(module, (nn.Linear, QuantizedLinear))


def _checked(base, rank, alpha):
    """Rank and alpha as numbers."""
    most = min(base.in_features, base.out_features)
    if isinstance(rank, bool) or not hasattr(rank, "__index__") or not 1 <= rank <= most:
        raise ValueError(
            f"rank is {rank!r}, expected an integer, 1 to {most}: the layer takes {base.in_features} features to "
            f"{base.out_features}"
        )
    alpha = rank if alpha is None else alpha
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not (alpha > 0 and math.isfinite(alpha)):
        raise ValueError(f"alpha is {alpha!r}, expected a number above 0, and finite")
    return operator.index(rank), float(alpha)


def adapters_of(model):
    """The adapters of a model, a dict by name.

    Raises:
        TypeError: the model is no module.
        ValueError: it has none.
    """
    check_model(model)
    found = {name: module for name, module in model.named_modules() if isinstance(module, LowRankAdapter)}
    if not found:
        raise ValueError("the model has no adapters: call adapt first")
    return found


def merge_adapters(model):
    """`LowRankAdapter.merge` of each adapter, or, where it raises, of none, in place; returns the model."""
    adapters = adapters_of(model).values()
    for adapter in adapters:  # all before the first is changed
        adapter.check_merge()
    for adapter in adapters:
        adapter.merge()
    return model


def unmerge_adapters(model):
    """`LowRankAdapter.unmerge` of each adapter, or, where it raises, of none, in place; returns the model."""
    adapters = adapters_of(model).values()
    for adapter in adapters:
        adapter.check_unmerge()
    for adapter in adapters:
        adapter.unmerge()
    return model


def adapter_state(model):
    """What the adapters of a model have learned, and nothing else: all that need be kept beside the model.

    Returns:
        dict of tensors, copies: by the name of each adapter its ``down``, ``up`` and ``factor``.

    Raises:
        ValueError: there are no adapters.
    """
    return {
        f"{name}.{part}": getattr(adapter, part).detach().clone()
        for name, adapter in adapters_of(model).items()
        for part in _PARTS
    }


def load_adapters(model, state):
    """Adapts a model as another one was, of which `adapter_state` told, in place.

    Args:
        model: as it was before it was adapted.
        state: the dict.

    Returns:
        The model, frozen but for the adapters.

    Raises:
        TypeError: the model is no module, or the state no dict.
        ValueError: the model has adapters already, or other layers than those the state is of; or the state holds
            something else, or numbers that are not finite. The model stays as it is.
    """
    linears, states = _fresh(model), {}
    if not isinstance(state, Mapping):
        raise TypeError(f"the state is a {type(state).__name__}, expected what adapter_state gives, a dict")
    for key, x in state.items():
        name, _, part = str(key).rpartition(".")
        states.setdefault(name, {})[part] = x
    if not states:
        raise ValueError("the state is empty, expected that of an adapted model")
    for name, parts in states.items():  # all before the first is frozen
        _check_parts(name, parts, linears.get(name))
    if len({linears[name] for name in states}) < len(states):
        raise ValueError("the state has two adapters of one layer: is it of another model?")
    made = {linears[name]: LowRankAdapter(linears[name], len(parts["down"])) for name, parts in states.items()}
    with torch.no_grad():
        for name, parts in states.items():
            for part in _PARTS:
                getattr(made[linears[name]], part).copy_(parts[part])
    return _put(model, made)


def _check_parts(name, parts, linear):
    of = f"the state's adapter of {name!r}"
    floating = [x for x in parts.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
    if linear is None or {*parts} != {*_PARTS} or len(floating) < len(_PARTS):
        raise ValueError(f"{of} does not fit, expected {', '.join(_PARTS)} of a linear layer: is it of another model?")
    down, up, factor = (parts[part] for part in _PARTS)
    rank, most = up.shape[-1:].numel(), min(linear.in_features, linear.out_features)
    shapes = tuple(up.shape), tuple(down.shape)
    wanted = (linear.out_features, rank), (rank, linear.in_features)
    if shapes != wanted or factor.shape or not 1 <= rank <= most:
        raise ValueError(
            f"{of} has shapes {shapes[0]} and {shapes[1]}, but the layer takes {linear.in_features} features to "
            f"{linear.out_features}: is it of another model?"
        )
    dtype = linear.weight.dtype
    if not (all(x.to(dtype).isfinite().all() for x in floating) and factor > 0):
        raise ValueError(f"{of} is not finite in {dtype}, or its factor not above 0: did the training diverge?")


def _fresh(model):
    """The linear layers of a model that has no adapters, by name."""
    if named_layers(model, lambda module: isinstance(module, LowRankAdapter)):
        raise ValueError("the model has adapters already: adapt it once, or begin with a fresh one")
    if _is_linear(model):
        raise ValueError(
            "the model is itself a linear layer: nothing can be put in its place, make a LowRankAdapter(linear, rank)"
        )
    return named_layers(model, _is_linear)


def _put(model, made):
    model.requires_grad_(False)
    return replace(model, made)
