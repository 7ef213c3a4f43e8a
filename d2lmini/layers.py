"""Layers of a model by name: which are meant, and others in their place.

A layer has several names where a model uses it twice; what takes its place has them all.
"""

from collections.abc import Iterable

from torch import nn


def check_model(model):
    """Raises TypeError where a model is none."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model is a {type(model).__name__}, expected a torch.nn.Module")


def named_layers(model, wanted):
    """The modules of a model for which ``wanted`` is true, a dict by name; one of two names is there twice.

    Raises:
        TypeError: the model is no module.
    """
    check_model(model)
    return {name: module for name, module in model.named_modules(remove_duplicate=False) if wanted(module)}


def choose(layers, names, argument):
    """The layers that are meant by names, whole as ``"blks.0.attention.W_q"`` or their last part, ``"W_q"``.

    Args:
        layers: dict by whole name.
        names: an iterable of names.
        argument: how the caller calls it.

    Returns:
        list of whole names.

    Raises:
        TypeError: ``names`` is one str, or not iterable.
        ValueError: no layer has such a name.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} is {names!r}, expected a list of names")
    chosen = []
    for wanted in names:
        found = [name for name in layers if wanted in (name, _last(name))]
        if not found:
            raise ValueError(f"there is no linear layer {wanted!r}, only {known(layers)}")
        chosen += found
    return list(dict.fromkeys(chosen))


def known(layers):
    """The last parts of their names, for a message."""
    return ", ".join(sorted({_last(name) for name in layers})) or "none at all"


def replace(model, others):
    """Puts modules in the place of others, under all of their names, in place.

    Args:
        model: the module that holds them, or is itself one of them.
        others: dict from a module to what takes its place.

    Returns:
        The model, or what takes its place.
    """
    for name, module in named_layers(model, others.__contains__).items():
        if name:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, others[module])
    return others.get(model, model)


def with_sums(model):
    """A model in which what is merged, as a `LowRankAdapter` may be, is the linear layer that it comes to; in place."""
    return replace(model, {x: x.as_linear() for x in model.modules() if getattr(x, "merged", False)})


def _last(name):
    return name.rpartition(".")[2]
