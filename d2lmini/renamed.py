"""Names of before: each goes on until 1.0, with a warning that says what to write. The tables are here alone."""

import functools
import sys
import warnings
from importlib import import_module
from importlib.util import spec_from_loader

NAMES = {
    "Quantised": "Quantized",
    "QuantisedEmbedding": "QuantizedEmbedding",
    "QuantisedLinear": "QuantizedLinear",
    "QuantisedRow": "QuantizedRow",
    "compare_normalise_mix": "compare_normalize_mix",
    "normalise_answer": "normalize_answer",
    "optimisers": "optimizers",  # the experiment
    "penalise_repetition": "penalize_repetition",
    "quantise": "quantize",
    "quantise_model": "quantize_model",
    "quantised": "quantized",  # the experiment
    "real_tokens": "token_mask",
    "tokenised_bleu": "tokenized_bleu",
}
MODULES = {  # with all that is in a package
    "d2lmini.experiments.optimisation.optimisers": "d2lmini.experiments.optimization.optimizers",
    "d2lmini.experiments.optimisation": "d2lmini.experiments.optimization",
    "d2lmini.experiments.real_model.quantised": "d2lmini.experiments.real_model.quantized",
    "d2lmini.figures.quantised_row": "d2lmini.figures.quantized_row",
    "d2lmini.models.choices": "d2lmini.models.named_parts",
    "d2lmini.quantised": "d2lmini.quantized",
}


def now(name):
    """Today's name of an old one, with the warning; another name stays as it is."""
    if name not in NAMES:
        return name
    _warn(name, NAMES[name], 1)
    return NAMES[name]


def names_of(module, further=0):
    """The ``__getattr__`` of a module for its old names; ``further`` functions are between it and who asks."""

    def __getattr__(name):
        if name not in NAMES or not hasattr(sys.modules[module], NAMES[name]):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(name, NAMES[name], further)
        return getattr(sys.modules[module], NAMES[name])

    return __getattr__


def arguments(**names):
    """Decorates a function whose keyword arguments were called otherwise: ``old="new"``."""

    def decorated(function):
        @functools.wraps(function)
        def called(*args, **given):
            for old in names.keys() & given.keys():
                _warn(f"{old}=", f"{names[old]}=")
                given[names[old]] = given.pop(old)
            return function(*args, **given)

        return called

    return decorated


class Attribute:
    """In the body of a class: the old name of an attribute or a method."""

    def __init__(self, old, new):
        self.old, self.new, self.__doc__ = old, new, None  # so that the API page leaves it out

    def __get__(self, instance, owner):
        if instance is None:
            return self
        _warn(self.old, self.new)
        return getattr(instance, self.new)


class _Modules:
    """Finds a module by its old name: it is that of the new one."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        ours = name.startswith("d2lmini.")  # it is asked for every module that is imported, of whomever
        return spec_from_loader(name, _Modules) if ours and _module(name) else None

    @staticmethod
    def create_module(spec):
        _warn(spec.name, _module(spec.name))

    @staticmethod
    def exec_module(module):
        sys.modules[module.__name__] = import_module(_module(module.__name__))


def _module(name):
    return next((new + name[len(old) :] for old, new in MODULES.items() if f"{name}.".startswith(f"{old}.")), None)


def _warn(old, new, further=0):
    message = f"{old} is now {new}, and the old name goes with version 1.0: write {new}"
    warnings.warn(message, FutureWarning, stacklevel=3 + further)


sys.meta_path.insert(0, _Modules)
