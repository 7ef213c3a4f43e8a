"""Is everything here that the book needs? ``python -m d2lmini check`` prints this report."""

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from . import __version__
from .attention import scaled_dot_product_attention
from .data import registry

_PACKAGES = ("torch", "numpy", "matplotlib", "pooch", "tqdm", "scikit-learn", "anywidget", "ipykernel", "jupyterlab")


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
        (str, bool): the report, and whether all that is needed is here.
    """
    lines = [f"d2lmini {__version__}, Python {platform.python_version()} on {platform.platform()}"]
    for name in _PACKAGES:
        try:
            lines.append(f"  {name:13} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"  {name:13} not installed")
    lines.append(f"device: {_device()}")
    healthy = _attention_agrees()
    lines.append(f"attention: {'agrees with the plain formula' if healthy else 'WRONG: the fused kernel disagrees'}")
    lines.append(registry.status())
    return "\n".join(lines), healthy
