"""Files of weights: what is written is read, and each thing that can be wrong with one has its own message."""

import json
import zlib

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from d2lmini.models.weights import files

METADATA = {
    "name": "toy",
    "model": "GPT",
    "config": {"num_hiddens": 4},
    "tokenizer": {"kind": "characters", "tokens": ["\n", "é", "☃"]},
    "extra": {},
    "run": {"experiment": "toy"},
    "rounding": {"kind": "int8"},
}
TENSORS = {"W": torch.arange(6, dtype=torch.int8).view(2, 3), "b": torch.ones(3), "half": torch.ones(2, 2).half()}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "toy.safetensors"
    files.write(path, TENSORS, METADATA)
    return path


def test_what_is_written_is_read(path):
    tensors, metadata = files.read(path)
    assert metadata == METADATA
    assert tensors.keys() == TENSORS.keys()
    assert all(tensors[name].equal(TENSORS[name]) and tensors[name].dtype == TENSORS[name].dtype for name in TENSORS)
    assert [entry.name for entry in path.parent.iterdir()] == ["toy.safetensors"]
    assert files.names(path.parent) == ["toy"] and files.path_of("toy", path.parent) == path


def test_another_reader_finds_the_same(path):
    """The library's own, and the format by hand, as a page reads it."""
    with safe_open(path, "pt") as opened:
        assert opened.get_tensor("W").equal(TENSORS["W"]) and json.loads(opened.metadata()["config"])
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    said = json.loads(content[8 : 8 + length])["__metadata__"]
    assert all(isinstance(value, str) for value in said.values())
    assert int(said["crc32"]) == zlib.crc32(content[8 + length :])


def test_the_same_weights_give_the_same_bytes(path, tmp_path):
    files.write(tmp_path / "again", dict(reversed(TENSORS.items())), dict(reversed(METADATA.items())))
    assert files.read(tmp_path / "again").metadata == METADATA
    length = [int.from_bytes(p.read_bytes()[:8], "little") for p in (path, tmp_path / "again")]
    data = [p.read_bytes()[8 + n :] for p, n in zip((path, tmp_path / "again"), length, strict=True)]
    assert data[0] == data[1]


def test_a_field_that_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match="expected config, extra, model, name, rounding, run, tokenizer"):
        files.write(tmp_path / "x", TENSORS, {"name": "x"})
    assert not list(tmp_path.iterdir())


def test_missing(tmp_path):
    with pytest.raises(files.WeightsError, match=r"toy\.safetensors cannot be read .*`python -m d2lmini export`"):
        files.read(tmp_path / "toy.safetensors")


@pytest.mark.parametrize("left", [0, 5, 8, 60, 0.5, -1])
def test_cut_off(path, left):
    content = path.read_bytes()
    if left == 0.5:
        left = int.from_bytes(content[:8], "little")
    path.write_bytes(content[:left])
    with pytest.raises(files.WeightsError, match=r"is cut off"):
        files.read(path)


def test_each_damaged_byte_is_seen(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    for place in range(8 + length, len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(files.WeightsError, match="is damaged: its weights are not those of its checksum"):
            files.read(path)
    for place in range(8, 8 + length):  # in the header, where a letter of a headline may be another one
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        with pytest.raises(files.WeightsError):
            files.read(path)


def test_more_bytes_than_were_written(path):
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(files.WeightsError, match="is damaged"):
        files.read(path)


def test_foreign(path):
    path.write_bytes(b"PK\x03\x04 some archive, and more of it")
    with pytest.raises(files.WeightsError, match="is foreign: it is no safetensors file"):
        files.read(path)
    save_file(TENSORS, path)
    with pytest.raises(files.WeightsError, match="is foreign: safetensors, but not exported"):
        files.read(path)
    save_file(TENSORS, path, {"format": "pt"})
    with pytest.raises(files.WeightsError, match="is foreign: safetensors, but not exported"):
        files.read(path)


def test_of_another_version(path, monkeypatch):
    monkeypatch.setattr(files, "FORMAT", "d2lmini weights 2")
    with pytest.raises(files.WeightsError, match="is of another version: 'd2lmini weights 1', expected"):
        files.read(path)
