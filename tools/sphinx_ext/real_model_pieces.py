"""The files that the real language model is loaded from: its pieces and their manifest.

They are written where the weights are installed. Elsewhere one line says what is missing, and the page shows what was
recorded.
"""

import json
import os
import shutil
from pathlib import Path

from sphinx.util import logging

from d2lmini.data.store import DataError
from d2lmini.models.weights import model_pieces

_LOG = logging.getLogger(__name__)


def _write(app):
    if app.builder.format != "html":
        return
    try:
        made = model_pieces.cached_pieces()
    except (DataError, ModuleNotFoundError) as error:
        _LOG.info("the book is built without the real language model: %s", " ".join(str(error).split()))
        return
    static = Path(app.outdir, "_static")
    copy_pieces(made, static / "real_model")
    (static / "live").mkdir(parents=True, exist_ok=True)
    manifest = (made / "manifest.json").read_text(encoding="utf-8")
    # from file:// a page may fetch nothing, but it may add a script
    script = f"d2lminiLive.deliver({json.dumps(model_pieces.NAME)}, {json.dumps(manifest)});\n"
    (static / "live" / f"{model_pieces.NAME}.js").write_text(script, encoding="utf-8")


def copy_pieces(made, folder):
    """Brings a folder to what was made, each file at once and the manifest last; what is there already stays."""
    names = [path.name for path in sorted(made.iterdir()) if path.name != "manifest.json"] + ["manifest.json"]
    same = [(folder / name).exists() and _size(folder / name) == _size(made / name) for name in names]
    if all(same) and (folder / "manifest.json").read_bytes() == (made / "manifest.json").read_bytes():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(made / name, folder / f"{name}.tmp")
        os.replace(folder / f"{name}.tmp", folder / name)
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()


def _size(path):
    return path.stat().st_size


def setup(app):
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
