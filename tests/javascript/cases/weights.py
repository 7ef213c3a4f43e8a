"""Files of weights, in 8 and in 16 bits, as `python -m d2lmini export` writes them; and what they are made of."""

import base64
import json
import tempfile
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from d2lmini.models.weights import files
from d2lmini.models.weights.rounding import rounded as quantized
from d2lmini.models.weights.trained import MODELS, trained

from ._weights import drawn_into, rounded

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-4
GPT = dict(vocab_size=5, max_len=4, num_hiddens=8, num_heads=2, num_blks=1, dropout=0.0, use_bias=False)
RUN = {"experiment": "none", "preset": "none", "headline": "drawn", "commit": "", "command": ""}


def cases():
    for bits in ("int8", "float16"):
        with tempfile.TemporaryDirectory() as folder:
            content = file_of(Path(folder) / "small.safetensors", bits)
            model = trained("small", folder).double()
        with torch.no_grad():
            scores = model(torch.tensor([[0, 3, 1]]))[0]
        yield "read", [base64.b64encode(content).decode(), [0, 3, 1]], rounded(scores)
    every = list(range(256))
    yield "crc32", [every], zlib.crc32(bytes(every))
    bits = [bits for bits in range(0, 1 << 16, 997) if bits & 0x7C00 != 0x7C00] + [0, 1, 0x3FF, 0x400, 0x8001]
    for some, value in zip(bits, np.array(bits, dtype=np.uint16).view(np.float16).tolist(), strict=True):
        yield "half", [some], value


def file_of(path, bits):
    model = MODELS["GPT"](**GPT).eval()
    drawn_into(model, 4)
    metadata = {"name": "small", "model": "GPT", "config": asdict(model.config), "tokenizer": None, "extra": {}}
    metadata |= {"run": RUN, "rounding": {"kind": bits}}
    files.write(path, quantized(dict(model.float().named_parameters()), bits), metadata)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True).encode()  # safetensors has any order
    return len(header).to_bytes(8, "little") + header + content[8 + length :]
