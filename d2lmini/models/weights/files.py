"""Files of exported weights: safetensors, whose metadata say what the model is, from which run, and a checksum.

All metadata are str: `FIELDS`, those of `_JSON` as JSON, ``format`` and ``crc32``, the checksum of the data section: of
all bytes after the header, which is 8 bytes of its length, little endian, and as many bytes of JSON.
"""

import json
import os
import zlib
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load, save

FOLDER = Path(__file__).parent
FORMAT = "d2lmini weights 1"
_JSON = "config", "tokenizer", "extra", "run", "rounding"
FIELDS = "name", "model", *_JSON
_CURE = "export it again, or install the package again"


class WeightsError(ValueError):
    """A file of weights is missing, is not whole, or is of something else."""


class Weights(NamedTuple):
    """What a file holds: tensors as they are kept (see `rounding`), and metadata, a dict of `FIELDS`, JSON read."""

    tensors: dict
    metadata: dict


def path_of(name, folder=None):
    """Where the weights of a name are kept; None: in the package."""
    return Path(folder or FOLDER) / f"{name}.safetensors"


def names(folder=None):
    """Names of the models whose weights are in a folder, sorted; None: in the package."""
    return sorted(path.stem for path in Path(folder or FOLDER).glob("*.safetensors"))


def write(path, tensors, metadata):
    """Writes a file, which appears whole or not at all.

    Args:
        path: of the file.
        tensors: dict, as `rounding.rounded` gives it.
        metadata: dict with `FIELDS`.
    """
    if sorted(metadata) != sorted(FIELDS):
        raise ValueError(f"metadata are {', '.join(sorted(metadata))}, expected {', '.join(sorted(FIELDS))}")
    said = {key: _plain(value) if key in _JSON else value for key, value in metadata.items()} | {"format": FORMAT}
    tensors = dict(sorted(tensors.items()))
    crc = zlib.crc32(_data(save(tensors)))  # the data do not depend on the metadata
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(save(tensors, said | {"crc32": str(crc)}))
        os.replace(half, path)
    finally:
        half.unlink(missing_ok=True)


def read(path):
    """Reads and verifies a file.

    Returns:
        `Weights`.

    Raises:
        WeightsError: it is not there, is cut off, damaged, not of this kind, or of another version.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise WeightsError(f"{path} cannot be read ({error.strerror}): `python -m d2lmini export` makes it") from error
    header = _header(path, content)
    said = header.get("__metadata__") or {}
    if not isinstance(said, dict) or not str(said.get("format", "")).startswith("d2lmini weights "):
        raise WeightsError(f"{path} is foreign: safetensors, but not exported by `python -m d2lmini export`")
    if said["format"] != FORMAT:
        raise WeightsError(f"{path} is of another version: {said['format']!r}, expected {FORMAT!r}: {_CURE}")
    data = _data(content)
    try:
        end = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise WeightsError(f"{path} is damaged: its header names no tensors: {_CURE}") from error
    if len(data) < end:
        raise WeightsError(f"{path} is cut off: {len(data):,} of {end:,} bytes of weights are there: {_CURE}")
    if said.get("crc32") != str(zlib.crc32(data)):
        raise WeightsError(f"{path} is damaged: its weights are not those of its checksum: {_CURE}")
    try:
        metadata = {key: json.loads(said[key]) if key in _JSON else said[key] for key in FIELDS}
        return Weights(load(content), metadata)
    except Exception as error:  # the library raises several, one of its own
        raise WeightsError(f"{path} is damaged: its header cannot be read ({error!r:.80}): {_CURE}") from error


def _header(path, content):
    length = int.from_bytes(content[:8], "little")
    if len(content) >= 9 and content[8:9] != b"{":
        raise WeightsError(f"{path} is foreign: it is no safetensors file")
    if len(content) < 9 or len(content) < 8 + length:
        raise WeightsError(f"{path} is cut off: {len(content):,} bytes, within the header: {_CURE}")
    try:
        header = json.loads(content[8 : 8 + length])
    except ValueError as error:
        raise WeightsError(f"{path} is damaged: its header is no JSON: {_CURE}") from error
    return header


def _data(content):
    return content[8 + int.from_bytes(content[:8], "little") :]


def _plain(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
