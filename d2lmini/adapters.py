"""Low-rank adaptation: a linear layer keeps its weight, and learns a change of it, the product of two thin matrices.

W x becomes W x + (alpha / r) B A x with A of (r, inputs) and B of (outputs, r). Only A and B learn:
r (inputs + outputs) numbers, not inputs * outputs. B begins at zero, and so the model begins as it was.
"""

import math

import torch
from torch import nn

from .quantised import QuantisedLinear


class LowRankAdapter(nn.Module):
    """A linear layer and a change of rank r of it.

    Args:
        base: a `torch.nn.Linear`, or a `QuantisedLinear`; it is frozen.
        rank: r, from 1 to the smaller of its inputs and outputs.
        alpha: the change counts ``alpha / rank``; None: ``rank``, so that it counts once.

    Raises:
        TypeError: ``base`` is something else.
        ValueError: ``rank`` is out of range, or ``alpha`` not above 0.

    Attributes:
        down: A, (r, inputs), which begins normal of variance 1 / inputs.
        up: B, (outputs, r), which begins at zero.
        factor: ``alpha / rank``, a buffer.
        merged: whether the change is in the weight of ``base``.

    Source: Hu et al. 2022, section 4.1.
    """

    def __init__(self, base, rank, alpha=None):
        super().__init__()
        if not isinstance(base, (nn.Linear, QuantisedLinear)):
            raise TypeError(f"the base is a {type(base).__name__}, expected a torch.nn.Linear or a QuantisedLinear")
        alpha = rank if alpha is None else alpha
        _check(base, rank, alpha)
        self.base = base.requires_grad_(False)
        like = base.weight
        self.down = nn.Parameter(like.new_empty(rank, base.in_features).normal_(std=base.in_features**-0.5))
        self.up = nn.Parameter(like.new_zeros(base.out_features, rank))
        self.register_buffer("factor", like.new_tensor(alpha / rank))
        self.merged = False

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
        return self.base.weight if self.merged else self.base.weight + self.change()

    def change(self):
        """(alpha / r) B A, (outputs, inputs)."""
        return self.factor * self.up @ self.down

    def forward(self, X):
        """(..., inputs) to (..., outputs)."""
        Y = self.base(X)
        return Y if self.merged else Y + self.factor * (X @ self.down.T @ self.up.T)

    @torch.no_grad()
    def merge(self):
        """Adds the change to the weight of the base: a call costs what it did before, and nothing learns any more.

        Raises:
            TypeError: the base holds few bits, to which the change cannot be added.
            ValueError: it is there already.
        """
        self.check_merge()
        self._set(self.base.weight + self.change())
        self.merged = True

    def check_merge(self):
        """Raises what `merge` does, and changes nothing."""
        if isinstance(self.base, QuantisedLinear):
            raise TypeError("the weight is in few bits, and a change cannot be added without rounding: leave it beside")
        if self.merged:
            raise ValueError("the change is in the weight already: unmerge it first")

    @torch.no_grad()
    def unmerge(self):
        """Takes the change out again; the weight is what it was, to rounding.

        Raises:
            ValueError: it is not in there.
        """
        if not self.merged:
            raise ValueError("the change is not in the weight: merge it first")
        self._set(self.base.weight - self.change())
        self.merged = False

    def _set(self, weight):
        self.base.weight = nn.Parameter(weight, requires_grad=False)  # one that an embedding shares stays as it is


def adapt(model, rank, where=("W_q", "W_v"), alpha=None):
    """Freezes a model, and gives some of its linear layers a `LowRankAdapter`, in place.

    Args:
        model: any module; its blocks' projections are called ``W_q``, ``W_k``, ``W_v`` and ``W_o``.
        rank, alpha: of each adapter.
        where: names of layers, whole as ``"blks.0.attention.W_q"``, or their last part.

    Returns:
        The model. What learns are the adapters: ``[p for p in model.parameters() if p.requires_grad]``.

    Raises:
        TypeError: ``where`` is one str.
        ValueError: no layer has such a name, ``rank`` or ``alpha`` is out of range, or the model has adapters already.

    Source: Hu et al. 2022, section 4.2, who adapt the queries' and the values' projections.
    """
    if isinstance(where, str):
        raise TypeError(f"where is the str {where!r}, expected a list of names")
    linears = _fresh(model)
    by_name = {part: [] for name in linears for part in (name, name.rpartition(".")[2])}
    for name in linears:
        for part in {name, name.rpartition(".")[2]}:
            by_name[part].append(name)
    missing = [name for name in where if name not in by_name]
    if missing or not where:
        known = ", ".join(sorted({name.rpartition(".")[2] for name in linears})) or "none at all"
        raise ValueError(f"there is no linear layer {(missing or ['of no name'])[0]!r}, only {known}")
    chosen = dict.fromkeys(name for part in where for name in by_name[part])
    for name in chosen:  # all before the first is frozen
        _check(linears[name], rank, rank if alpha is None else alpha)
    made = {name: LowRankAdapter(linears[name], rank, alpha) for name in chosen}
    return _put(model, made)


def _check(base, rank, alpha):
    most = min(base.in_features, base.out_features)
    if not isinstance(rank, int) or not 1 <= rank <= most:
        raise ValueError(
            f"rank is {rank}, expected 1 to {most}: the layer takes {base.in_features} features to {base.out_features}"
        )
    if not (alpha > 0 and math.isfinite(alpha)):
        raise ValueError(f"alpha is {alpha}, expected above 0, and finite")


def adapters_of(model):
    """The adapters of a model, a dict by name.

    Raises:
        ValueError: it has none.
    """
    found = {name: module for name, module in model.named_modules() if isinstance(module, LowRankAdapter)}
    if not found:
        raise ValueError("the model has no adapters: call adapt first")
    return found


def merge_adapters(model):
    """`LowRankAdapter.merge` of each adapter, in place; returns the model."""
    adapters = adapters_of(model).values()
    for adapter in adapters:  # all before the first is changed
        adapter.check_merge()
    for adapter in adapters:
        adapter.merge()
    return model


def unmerge_adapters(model):
    """`LowRankAdapter.unmerge` of each adapter, in place; returns the model."""
    for adapter in adapters_of(model).values():
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
        for part in ("down", "up", "factor")
    }


def load_adapters(model, state):
    """Adapts a model as another one was, of which `adapter_state` told, in place.

    Args:
        model: as it was before it was adapted.
        state: the dict.

    Returns:
        The model, frozen but for the adapters.

    Raises:
        ValueError: the model has adapters already, or other layers than those the state is of.
    """
    linears, made = _fresh(model), {}
    for name in dict.fromkeys(key.rpartition(".")[0] for key in state):
        parts = [state.get(f"{name}.{part}") for part in ("down", "up", "factor")]
        if name not in linears or any(part is None for part in parts):
            raise ValueError(f"the state has an adapter of {name!r}, which does not fit: is it of another model?")
        down, up, factor = parts
        shapes, linear = (tuple(up.shape), tuple(down.shape)), linears[name]
        if shapes != ((linear.out_features, len(down)), (len(down), linear.in_features)):
            raise ValueError(
                f"the state's adapter of {name!r} has shapes {shapes[0]} and {shapes[1]}, but the layer takes "
                f"{linear.in_features} features to {linear.out_features}: is it of another model?"
            )
        made[name] = LowRankAdapter(linear, len(down), factor.item() * len(down))
        with torch.no_grad():
            made[name].down.copy_(down)
            made[name].up.copy_(up)
    if not made:
        raise ValueError("the state is empty, expected that of an adapted model")
    return _put(model, made)


def _fresh(model):
    """The linear layers of a model that has no adapters, by name."""
    if any(isinstance(module, LowRankAdapter) for module in model.modules()):
        raise ValueError("the model has adapters already: adapt it once, or begin with a fresh one")
    kinds = nn.Linear, QuantisedLinear
    return {name: module for name, module in model.named_modules() if isinstance(module, kinds)}


def _put(model, made):
    model.requires_grad_(False)
    for name, adapter in made.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, adapter.requires_grad_(True))
        adapter.base.requires_grad_(False)
    return model
