"""The files that live models are loaded from: the runtime, exported weights, texts to learn, each a script of the book.

From file:// a page may fetch nothing, but it may add a script.
"""

import os
from pathlib import Path

from d2lmini.figures.live.page import IN_BOOK, runtime_script, text_script, weights_script
from d2lmini.figures.playground import TEXTS
from d2lmini.models.weights import files


def _write(app):
    if app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "live")
    folder.mkdir(parents=True, exist_ok=True)
    scripts = {"runtime": runtime_script()} | {name: weights_script(name) for name in files.names()}
    scripts |= {f"text_{name}": text_script(name) for name in TEXTS}
    for name, script in scripts.items():
        (folder / f"{name}.js").write_text(script, encoding="utf-8")


def setup(app):
    os.environ[IN_BOOK] = "1"  # for the kernels that run the chapters
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
