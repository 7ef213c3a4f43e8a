"""What crosses between the judge and an answer in another process.

Towards the answer goes a pickle, since the judge is trusted: `remote.pack`. Back comes plain data: JSON, and tensors as
safetensors. Whatever else an answer returns stays where it is, and the judge gets a `Live` handle to it.
"""

import io
import json
import math
import struct

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ..engine.compare import Rejected
from ..engine.host import HostError

SIZES = struct.Struct("<QQ")  # bytes of the JSON and of the tensors that follow
MOST_TEXT, MOST_TENSORS = 2**22, 2**28  # bytes; more is refused
MOST_VALUES, DEEPEST = 20_000, 12
PLAIN = (bool, int, float, str, type(None))
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16)
DTYPES += (torch.int8, torch.uint8, torch.bool)


class WireError(HostError):
    """What came is not what was agreed."""


class Live:
    """An object that lives beside the answer: the judge may only hand it back."""

    number: int

    def __reduce__(self):
        return _alive, (self.number,)


class LiveCallable(Live):
    """A `Live` that can be called: by ``t.call``, where it lives."""

    def __call__(self, *args, **kwargs):
        raise TypeError("this lives beside the answer: use t.call")


def handle(number, kind=Live):
    """Return what stands, beside the judge, for the object that is kept under a number."""
    made = kind()
    made.number = number
    return made


kept = []  # in the answer's process: what `Live` handles stand for


def _alive(number):
    return kept[number]


def encode(value) -> bytes:
    """Return plain data as bytes; what is none is kept, and a number stands for it.

    Raises:
        Rejected: it is more than is taken.
    """
    tensors, left = {}, [MOST_VALUES]

    def tree(x, depth):
        left[0] -= 1
        if isinstance(x, torch.Tensor):
            try:
                return _tensor(x, tensors)
            except (RuntimeError, TypeError):  # sparse, nested, or of a class of its own: it stays
                return {"live": _keep(x), "type": _looks(x), "callable": False}
        if isinstance(x, np.generic):
            x = x.item()
        if x is Ellipsis or x is NotImplemented:
            return {"placeholder": 1}
        if type(x) in PLAIN and not (type(x) is str and len(x) > MOST_TEXT // 8):
            return {"plain": x}
        if left[0] > 0 and depth < DEEPEST:
            if type(x) in (list, tuple):
                return {"list" if type(x) is list else "tuple": [tree(item, depth + 1) for item in x]}
            if type(x) is dict and all(type(key) in PLAIN for key in x):
                return {"dict": [[key, tree(item, depth + 1)] for key, item in x.items()]}
        return {"live": _keep(x), "type": type(x).__name__, "callable": callable(x)}

    text = json.dumps(tree(value, 0)).encode()
    data = save(tensors) if tensors else b""
    return SIZES.pack(len(text), len(data)) + text + data


def halves(data: bytes) -> tuple[bytes, bytes]:
    """Return (JSON, tensors) of what `encode` returned."""
    text, _ = SIZES.unpack(data[: SIZES.size])
    return data[SIZES.size :][:text], data[SIZES.size + text :]


def _keep(x):
    kept.append(x)
    return len(kept) - 1


def _looks(x):
    """The name of a tensor's class, or of its layout."""
    return type(x).__name__ if type(x) is not torch.Tensor else str(x.layout).removeprefix("torch.") + "_tensor"


def _tensor(x, tensors):
    with torch._C.DisableTorchFunctionSubclass():  # a class of the answer's own is not asked
        about = {"number": _keep(x), "gradient": x.requires_grad}
        plain = x.detach().as_subclass(torch.Tensor)
    if plain.is_nested:
        raise TypeError("no shape")
    if plain.layout != torch.strided or plain.dtype not in DTYPES or plain.device.type != "cpu":
        about |= {"shape": list(plain.shape), "dtype": str(plain.dtype), "device": str(plain.device)}
        return {"elsewhere": about}
    if (size := plain.nbytes + sum(t.nbytes for t in tensors.values())) > MOST_TENSORS - MOST_TEXT:
        raise Rejected("size", f"your code returns {size / 2**20:.0f} MiB of tensors, more than is taken")
    tensors[str(len(tensors))] = plain.contiguous().clone()
    return {"tensor": len(tensors) - 1, **about}


def decode(text: bytes, data: bytes):
    """Return what `encode` was given.

    Raises:
        WireError: these bytes do not come from `encode`.
    """
    try:
        return _value(json.loads(text), load(data) if data else {})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, RuntimeError, SafetensorError) as error:
        raise WireError(f"the answer's process sent what is no result ({type(error).__name__})") from error


def _value(tree, tensors):
    if "plain" in tree:
        if type(tree["plain"]) not in PLAIN:
            raise ValueError("not plain")
        return tree["plain"]
    if "placeholder" in tree:
        return Ellipsis
    if "tensor" in tree:
        x = tensors[str(tree["tensor"])]
        x.live = int(tree["number"])
        return x.requires_grad_(tree["gradient"] is True and x.is_floating_point())
    if "elsewhere" in tree:  # only its looks: on "meta" it takes no memory
        about = tree["elsewhere"]
        shape = [int(n) for n in about["shape"]]
        if math.prod(shape) < 0 or len(shape) > 64:
            raise ValueError("no shape")
        return torch.empty(shape, dtype=getattr(torch, about["dtype"].removeprefix("torch.")), device="meta")
    if "list" in tree:
        return [_value(item, tensors) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(_value(item, tensors) for item in tree["tuple"])
    if "dict" in tree:
        return {key: _value(item, tensors) for key, item in tree["dict"]}
    name = str(tree["type"])[:60]
    kind = LiveCallable if tree["callable"] is True else Live
    return handle(int(tree["live"]), type(name if name.isidentifier() else "object", (kind,), {}))


def read_exactly(stream: io.RawIOBase, count) -> bytes:
    """Return the next ``count`` bytes.

    Raises:
        EOFError: the stream ends before.
    """
    pieces = []
    while count:
        piece = stream.read(min(count, 2**20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
