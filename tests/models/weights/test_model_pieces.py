"""The pieces of the page hold the file's own numbers, and are made once for each state of weights and code."""

import json
import zlib
from hashlib import sha256

import numpy as np
import pytest
import torch
from small_gguf import BLOCKS, CONTEXT, TEMPLATE, small_pieces, write_small_gguf

from d2lmini.data.store import DataError
from d2lmini.models.pretrained.gguf_file import GGUF, load_gguf
from d2lmini.models.weights import model_pieces
from d2lmini.models.weights.rounding import restored, rounded
from d2lmini.models.weights.smollm2 import tokenizer_of


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The GGUF file, the folder of its pieces and their manifest."""
    return small_pieces(tmp_path_factory)


def weight_of(kind, data, rows, columns):
    """Rows as floats, of the bytes of a part."""
    if kind == "float32":
        return np.frombuffer(data, np.float32)
    size = rows * columns
    if kind == "int8":
        levels, scales = np.frombuffer(data[:size], np.int8), np.frombuffer(data[size:], np.float32)
        return levels.reshape(rows, columns) * scales[:, None]
    lanes = np.frombuffer(data[: size // 2], np.uint16).reshape(rows, -1, 1, 8)
    levels = (lanes >> np.array([0, 4, 8, 12], np.uint16)[:, None]) & 15  # (rows, blocks, 4, 8)
    scales, minima = np.frombuffer(data[size // 2 :], np.float16).astype(np.float32).reshape(2, rows, -1, 1)
    return (levels.reshape(rows, -1, 32) * scales + minima).reshape(rows, columns)


def test_every_weight_is_in_the_pieces(small):
    path, folder, manifest = small
    model = load_gguf(GGUF(path))
    found = {}
    for piece in manifest["pieces"]:
        data = (folder / piece["file"]).read_bytes()
        for part in piece["parts"]:
            assert part["at"] % 16 == 0 and part["at"] + part["bytes"] <= len(data)
            if part["kind"] != "json":
                own = data[part["at"] : part["at"] + part["bytes"]]
                found.setdefault(part["name"], []).append(
                    (part["row"], weight_of(part["kind"], own, part["rows"], part["shape"][-1]))
                )
    weights = dict(model.named_parameters())
    assert found.keys() == weights.keys() and len(found) == 2 + 9 * BLOCKS
    for name, parts in found.items():
        rows = [row for row, _ in parts]
        assert rows == sorted(rows)
        whole = torch.from_numpy(np.concatenate([numbers for _, numbers in parts]))
        if name == "embedding.weight":
            want = restored(rounded({name: weights[name]}, "int8"))[name]
            assert len(parts) > 1 and not torch.equal(want, weights[name])
        else:
            want = weights[name]
        assert torch.equal(whole, want.detach()), name


def test_the_manifest_describes_what_lies_beside_it(small):
    path, folder, manifest = small
    assert json.loads((folder / "manifest.json").read_text(encoding="utf-8")) == json.loads(json.dumps(manifest))
    for piece in manifest["pieces"]:
        data = (folder / piece["file"]).read_bytes()
        assert len(data) == piece["bytes"] <= 12_000  # about 9,000: the tokens are in one part
        assert sha256(data).hexdigest() == piece["sha256"] and zlib.crc32(data) == piece["crc32"]
    assert manifest["bytes"] == sum(piece["bytes"] for piece in manifest["pieces"])
    assert manifest["config"]["num_kv_heads"] == 2 and manifest["config"]["max_len"] == CONTEXT
    assert manifest["config"]["rotary_base"] == 5000 and manifest["config"]["norm_eps"] == 1e-4
    assert model_pieces.make_pieces(folder, path, context=50)["config"]["max_len"] == 50


def test_the_licence_is_shipped(small):
    _, folder, manifest = small
    text = (folder / "LICENSE.txt").read_text(encoding="utf-8")
    assert "Apache License" in text and text == manifest["licence"]["text"]
    notice = (folder / "NOTICE.txt").read_text(encoding="utf-8")
    assert notice == manifest["licence"]["notice"] + "\n" and "Changed here" in notice
    assert manifest["licence"]["name"] == "apache-2.0"


def test_the_tokenizer_is_a_part(small):
    path, folder, manifest = small
    part = manifest["pieces"][0]["parts"][0]
    said = json.loads((folder / manifest["pieces"][0]["file"]).read_bytes()[: part["bytes"]])
    words = tokenizer_of(GGUF(path).settings)
    assert part["name"] == "tokenizer" and said["tokens"] == words.tokens and said["special"] == [0, 1, 2, 3]
    assert [(said["tokens"][a], said["tokens"][b]) for a, b in said["merges"]] == words.merges
    assert said["stop"] == [0, 2] and said["system"] == "You are small" and said["kind"] == "chat"


@pytest.mark.parametrize(
    "template",
    [
        TEMPLATE.replace("|im_start|>assistant", "|im_start|>bot"),
        TEMPLATE.replace("message['content'] +", "message['content'] | trim | upper +").replace(
            "role'] +", "role'] * 2 +"
        ),
        TEMPLATE.replace("<|im_end|>", "<|im_end|>\n", 1),
    ],
)
def test_another_chat_template_is_refused(template, tmp_path):
    path = write_small_gguf(tmp_path / "other.gguf", template=template)
    with pytest.raises(ValueError, match="the chat template is of another form"):
        model_pieces.make_pieces(tmp_path, path)


def test_the_licence_must_be_there(small, tmp_path, monkeypatch):
    monkeypatch.setattr(model_pieces, "PACKAGE", "no-such-package")
    with pytest.raises(DataError, match="no-such-package is not on this machine"):
        model_pieces.make_pieces(tmp_path, small[0])


@pytest.fixture
def cached(small, tmp_path, monkeypatch):
    """A function that gives the folder of the cached pieces and says how often they were made."""
    made, own = [], model_pieces.make_pieces
    monkeypatch.setenv("D2LMINI_CACHE", str(tmp_path))
    monkeypatch.setattr(model_pieces, "make_pieces", lambda *arguments: made.append(1) or own(*arguments))

    def cached(path=small[0]):
        monkeypatch.setattr(model_pieces, "smollm2_path", lambda: path)
        return model_pieces.cached_pieces(), len(made)

    return cached


def test_pieces_are_made_once_for_each_state_of_weights_and_code(cached, tmp_path, monkeypatch):
    folder, made = cached()
    assert made == 1 and (folder / "manifest.json").exists() and cached() == (folder, 1)
    code = tmp_path / "code.py"
    code.write_text("# changed", encoding="utf-8")
    monkeypatch.setattr(model_pieces.rounding, "__file__", str(code))
    changed, made = cached()
    assert made == 2 and changed != folder and not folder.exists()  # the older one is gone
    other, made = cached(write_small_gguf(tmp_path / "other.gguf", seed=1))
    assert made == 3 and other != changed and [path.name for path in other.parent.iterdir()] == [other.name]


def test_what_was_cut_leaves_nothing(cached, tmp_path, monkeypatch):
    own = model_pieces.make_pieces

    def cut(folder, path):
        own(folder, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model_pieces, "make_pieces", cut)
        with pytest.raises(KeyboardInterrupt):
            cached()
    assert list((tmp_path / "real_model").iterdir()) == []
    folder, _ = cached()
    assert (folder / "manifest.json").exists()
