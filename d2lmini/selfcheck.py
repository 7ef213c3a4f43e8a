"""Is everything here that the book needs? ``python -m d2lmini check`` prints this report."""

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from . import __version__
from .attention import scaled_dot_product_attention
from .data import registry

_NEEDED = "torch", "numpy", "matplotlib", "pooch", "tqdm", "tokenizers", "accelerate", "safetensors", "sacrebleu"
_OPTIONAL = {  # what each is for
    "jupyterlab": "to run the chapters here",
    "ipykernel": "to run the chapters here",
    "anywidget": "figures that give values back to Python",
    "scikit-learn": "some experiments",
    "gguf": "the weights of SmolLM2",
}


def _device():
    if torch.cuda.is_available():
        return f"cuda: {torch.cuda.get_device_name(0)}"
    if torch.backends.mps.is_available():
        return "mps"
    return f"cpu, {torch.get_num_threads()} threads"


def _attention_agrees():
    """Compare one fused attention step with the plain formula, in float64."""
    queries, keys, values = (torch.randn(2, n, d, dtype=torch.float64) for n, d in ((3, 4), (5, 4), (5, 6)))
    plain = torch.softmax(queries @ keys.mT / 2, dim=-1) @ values
    return torch.allclose(scaled_dot_product_attention(queries, keys, values), plain)


def report():
    """Look at versions, device, data and one attention step.

    Returns:
        (str, bool): the report, whose last line says yes or no, and whether all that is needed is here.
    """
    lines = [f"d2lmini {__version__}, Python {platform.python_version()} on {platform.platform()}", "needed"]
    missing = [name for name in _NEEDED if not _version(name)]
    lines += [f"  {name:13} {_version(name) or 'NOT INSTALLED'}" for name in _NEEDED]
    lines += [f"  {'device':13} {_device()}"]
    healthy = _attention_agrees()
    agrees = "agrees with the plain formula" if healthy else "WRONG: the fused kernel disagrees"
    lines += [f"  {'attention':13} {agrees}", "optional"]
    lines += [f"  {name:13} {_version(name) or f'not installed: {use}'}" for name, use in _OPTIONAL.items()]
    here, sets = registry.num_here(), len(registry.SETS)
    lines.append(f"  {'data sets':13} {here} of {sets} here, for larger runs: python -m d2lmini data")
    if missing:
        lines.append(f"No: {', '.join(missing)} must be installed first.")
    elif not healthy:
        lines.append("No: attention is wrong here. Install another version of torch.")
    else:
        lines.append("Yes: all that the chapters and exercises need is here.")
    return "\n".join(lines), healthy and not missing


def _version(name):
    """Of an installed package; None: it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
