"""D2L's small helpers: devices, hyperparameters, source on the page."""

import ast
import inspect
import textwrap

import torch

WITHOUT_FLOAT64 = {"mps"}


def check_shape(a, shape):
    """Raises unless ``a`` has the given shape.

    Args:
        a: anything with a ``shape``.
        shape: the shape expected, a tuple.

    Raises:
        AssertionError: the shapes differ (also under ``python -O``).

    Source: D2L section 11.3 (``d2l.check_shape``).
    """
    if tuple(a.shape) != tuple(shape):
        raise AssertionError(f"tensor has shape {tuple(a.shape)}, expected {tuple(shape)}")


def add_to_class(Class):
    """Decorator that makes a function a method of a class that exists already, to write a class over several
    cells.

    Args:
        Class: the class that gets the method, under the function's own name.

    Returns:
        The decorator; it hands the function back, so that the name stays bound in the notebook.

    Raises:
        TypeError: ``Class`` is not a class.

    Source: D2L section 3.2.1.
    """
    if not inspect.isclass(Class):
        raise TypeError(f"add_to_class takes a class, got a {type(Class).__name__}: write @add_to_class(TheClass)")

    def decorate(function):
        setattr(Class, function.__name__, function)
        return function

    return decorate


class HyperParameters:
    """Mixin that saves the arguments of ``__init__`` as attributes.

    Source: D2L section 3.2.1.
    """

    def save_hyperparameters(self, ignore=()):
        """Saves the arguments of the function that calls this as attributes, and together as
        ``self.hparams``.

        Args:
            ignore: names to leave out; names that begin with an underscore are left out too.

        Raises:
            ValueError: a name in ``ignore`` is no argument of the caller.
        """
        frame = inspect.currentframe().f_back
        # the arguments alone, not the caller's local variables
        names, args, kwargs, values = inspect.getargvalues(frame)
        arguments = {name: values[name] for name in [*names, *filter(None, [args])]}
        arguments.update(values[kwargs] if kwargs else {})
        unknown = sorted(set(ignore) - set(arguments))
        if unknown:
            raise ValueError(f"ignore names {unknown}, expected some of {sorted(arguments)}")
        self.hparams = {
            name: value
            for name, value in arguments.items()
            if name not in {"self", "__class__", *ignore} and not name.startswith("_")
        }
        for name, value in self.hparams.items():
            setattr(self, name, value)


class Unavailable(AttributeError, RuntimeError):
    """What a property tells of is not there yet, or no more. ``hasattr`` says so, and ``getattr`` has its default."""


class PropertiesHeard:
    """Mixin, before ``nn.Module``: what a property says when it has nothing to give is heard.

    Where a property raises an AttributeError, Python asks ``nn.Module.__getattr__``, which knows of no such attribute.
    """

    def __getattr__(self, name):
        said = getattr(type(self), name, None)
        return said.fget(self) if isinstance(said, property) else super().__getattr__(name)


def cpu():
    """The CPU as a ``torch.device``."""
    return torch.device("cpu")


def gpu(i=0):
    """The i-th CUDA device as a ``torch.device``, whether it is there or not."""
    return torch.device(f"cuda:{i}")


def num_gpus():
    """How many CUDA devices there are."""
    return torch.cuda.device_count()


def try_gpu(i=0):
    """The i-th CUDA device where it exists, else the CPU. Source: D2L section 6.7."""
    return gpu(i) if num_gpus() > i else cpu()


def try_all_gpus():
    """All CUDA devices as a list, empty without any. Source: D2L section 6.7."""
    return [gpu(i) for i in range(num_gpus())]


def in_float64(x):
    """A tensor in float64, where it is; on the CPU where its device has no such numbers, as MPS."""
    return (x.cpu() if x.device.type in WITHOUT_FLOAT64 else x).double()


def widest_float(device):
    """The most exact type of numbers that a device has: float64, on MPS float32."""
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


class Source(str):
    """Python source that a notebook shows as a code block and a terminal as it is."""

    def __repr__(self):
        return str(self)

    def _repr_markdown_(self):
        fence = "```"
        while fence in self:
            fence += "`"
        return f"{fence}python\n{self.rstrip()}\n{fence}"


def show_source(*objects, docstring=True):
    """The source of functions, classes or modules, as a chapter shows it.

    Args:
        *objects: what to show, in this order.
        docstring: False leaves docstrings out, so that the code alone is shown; comments stay.

    Returns:
        A string whose notebook form is a Python code block.

    Raises:
        TypeError: nothing was given, or something that has no source (an instance, a built-in).
        OSError: the source cannot be found (typed at a plain Python prompt).
    """
    if not objects:
        raise TypeError("show_source needs at least one function, class or module")
    sources = []
    for thing in objects:
        try:
            source = textwrap.dedent(inspect.getsource(thing))
        except TypeError:
            raise TypeError(
                f"{thing!r} has no Python source: expected a function, class or module "
                f"(of an instance show its class, {type(thing).__name__})"
            ) from None
        sources.append(source if docstring else _without_docstrings(source))
    return Source("\n\n".join(source.strip("\n") + "\n" for source in sources))


def _without_docstrings(source):
    lines = source.splitlines(keepends=True)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        # a body of a docstring alone keeps it: without, it would be no Python
        if not isinstance(node, documented) or len(node.body) < 2 or ast.get_docstring(node, clean=False) is None:
            continue
        doc, following = node.body[:2]
        shares_a_line = lines[doc.lineno - 1][: doc.col_offset].strip() or following.lineno == doc.end_lineno
        if shares_a_line:
            continue
        end = doc.end_lineno
        while end < len(lines) and not lines[end].strip():  # with the blank lines under it
            end += 1
        lines[doc.lineno - 1 : end] = [""] * (end - doc.lineno + 1)
    return "".join(lines)
