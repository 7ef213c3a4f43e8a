"""The scripts of figures and of their models, as files of the book: each is loaded once a page, and kept for the next.

A figure's own script is loaded with the page; the runtime, weights and texts to learn once a reader asks. All are
classic scripts: from file:// a page may neither fetch nor import, but it may add a script.
"""

import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from d2lmini import figures
from d2lmini.figures.base import IN_BOOK, built
from d2lmini.figures.live.page import runtime_script, text_script, weights_script
from d2lmini.figures.playground import TEXTS
from d2lmini.models.weights import files

MARK = re.compile(r'<script data-d2lmini="(\w+)"></script>')  # as `Figure` leaves it


@cache
def figure_scripts():
    """Returns: dict of the scripts that are loaded with a page, by name."""
    kinds = (getattr(figures, name) for name in figures.__all__)
    return {"base": built("base.js")} | {kind.name: kind.script() for kind in kinds}


def model_scripts():
    """Returns: dict of the scripts that are loaded when a reader asks, by name."""
    scripts = {"runtime": runtime_script()} | {name: weights_script(name) for name in files.names()}
    return scripts | {f"text_{name}": text_script(name) for name in TEXTS}


def _write(app):
    if app.builder.format != "html":
        return
    for folder, scripts in (("figures", figure_scripts()), ("live", model_scripts())):
        Path(app.outdir, "_static", folder).mkdir(parents=True, exist_ok=True)
        for name, script in scripts.items():
            Path(app.outdir, "_static", folder, f"{name}.js").write_text(script, encoding="utf-8")


def with_files(body, at, scripts):
    """The body of a page with scripts of the book for its marks, each once. ``at``: where they lie, seen from it."""
    seen = set()

    def tag(mark):
        name = mark[1]
        if name in seen:
            return ""
        seen.add(name)
        version = sha256(scripts[name].encode()).hexdigest()[:8]  # a browser may have kept an older one
        return f'<script src="{at}/{name}.js?v={version}"></script>'

    return MARK.sub(tag, body)


def _load(app, pagename, templatename, context, doctree):
    if "data-d2lmini=" in (context.get("body") or ""):
        at = context["pathto"]("_static/figures", resource=True)
        context["body"] = with_files(context["body"], at, figure_scripts())


def setup(app):
    os.environ[IN_BOOK] = "1"  # for the kernels that run the chapters
    app.connect("builder-inited", _write)
    app.connect("html-page-context", _load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
