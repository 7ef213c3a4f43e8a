"""What models choose from by name: norms, activations, networks, how weights begin; and the check of a choice."""

from functools import partial

from torch import nn

from ..arguments import check_integer, check_number
from ..transformer import GatedFFN, PositionWiseFFN, SquaredReLU

NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
ACTIVATIONS = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": partial(nn.GELU, approximate="tanh"),
    "squared_relu": SquaredReLU,
}
# the network and the activation in it
NETWORKS = {name: (PositionWiseFFN, make) for name, make in ACTIVATIONS.items()} | {
    "swiglu": (GatedFFN, nn.SiLU),
    "geglu": (GatedFFN, ACTIVATIONS["gelu_tanh"]),
}


def norm_maker(name, *, bias=True, eps=None):
    """What makes the norm ``name`` of a size; RMS norms have no bias, and without an ``eps`` they have torch's own."""
    options = {} if eps is None else {"eps": eps}
    return partial(NORMS[name], **options, **({"bias": bias} if name == "layer" else {}))


def head_norm_maker(wanted):
    """What makes the norm of queries and keys, without learned factors; None where it is not wanted."""
    return partial(nn.RMSNorm, elementwise_affine=False) if wanted else None


def init_normal(module):
    """How GPT's weights begin: normal of 0.02; biases are 0. For ``apply``."""
    _init(module, lambda weight: nn.init.normal_(weight, std=0.02))


def init_bert(module):
    """How BERT's weights begin: normal of 0.02, cut at twice that; biases are 0. For ``apply``."""
    _init(module, lambda weight: nn.init.trunc_normal_(weight, std=0.02, a=-0.04, b=0.04))


def init_by_inputs(module):
    """How weights of a form of today begin: normal of 1 / sqrt(inputs); biases are 0. For ``apply``."""
    _init(module, lambda weight: nn.init.normal_(weight, std=weight.shape[1] ** -0.5))


def _init(module, draw):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        draw(module.weight)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def check_config(config, choices, sizes):
    """Raises ValueError where a field is none of its ``choices``, one of the ``sizes`` no integer from 1, or
    ``dropout`` no share."""
    for name, known in choices.items():
        if getattr(config, name) not in known:
            raise ValueError(f"{name} is {getattr(config, name)!r}, expected one of {', '.join(map(repr, known))}")
    for name in sizes:
        check_integer(name, getattr(config, name), 1)
    check_number("dropout", getattr(config, "dropout", 0), 0, 1)


class ByName(dict):
    """Configurations by name; where there is none, the error lists those that there are."""

    def __missing__(self, name):
        raise KeyError(f"there is no {name!r}, expected one of {', '.join(map(repr, self))}")
