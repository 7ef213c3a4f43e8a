"""The book gets the pieces of the real model where they are, and one line where they are not."""

import json
import logging
from types import SimpleNamespace

import pytest
from conftest import sphinx_extension
from small_gguf import write_small_gguf

from d2lmini.data.store import DataError
from d2lmini.models.weights import model_pieces

extension = sphinx_extension("real_model_pieces")


@pytest.fixture
def build(tmp_path, monkeypatch):
    """A function that runs the hook with pieces of a small model, and gives the folder of the book."""
    made = tmp_path / "made"
    made.mkdir()

    def build(size=9000, seed=0, format="html", missing=None):
        def cached():
            if missing:
                raise missing
            return made

        if not missing:
            for path in made.iterdir():
                path.unlink()
            model_pieces.make_pieces(made, write_small_gguf(tmp_path / "small.gguf", seed=seed), size=size)
        monkeypatch.setattr(model_pieces, "cached_pieces", cached)
        extension._write(SimpleNamespace(builder=SimpleNamespace(format=format), outdir=str(tmp_path / "html")))
        return tmp_path / "html" / "_static"

    return build


def test_pieces_manifest_and_licence_are_written(build):
    static = build()
    folder = static / "real_model"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    names = {piece["file"] for piece in manifest["pieces"]} | {"manifest.json", "LICENSE.txt", "NOTICE.txt"}
    assert {path.name for path in folder.iterdir()} == names
    script = (static / "live" / "smollm2.js").read_text(encoding="utf-8")
    start, end = 'd2lminiLive.deliver("smollm2", ', ");\n"
    assert script.startswith(start) and script.endswith(end)
    assert json.loads(json.loads(script[len(start) : -len(end)])) == manifest


def test_what_is_there_stays_and_what_changed_is_replaced(build):
    folder = build() / "real_model"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    build()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    cut = folder / "smollm2_01.bin"
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-1])
    build()
    assert cut.read_bytes() == whole
    build(size=30_000, seed=1)  # fewer pieces
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert len(list(folder.glob("*.bin"))) == len(manifest["pieces"]) < len(before) - 3


@pytest.mark.parametrize("missing", [DataError("bring the\nweights"), ModuleNotFoundError("bring the weights")])
def test_without_the_weights_one_line_says_so(missing, build, caplog):
    logging.getLogger("sphinx").propagate = True
    with caplog.at_level(logging.INFO):
        static = build(missing=missing)
    (record,) = [record for record in caplog.records if "real language model" in record.getMessage()]
    assert record.levelno == logging.INFO  # a strict build is not stopped
    assert record.getMessage() == "the book is built without the real language model: bring the weights"
    assert not static.exists()


def test_other_builders_need_none(build):
    assert not build(format="latex").exists()
