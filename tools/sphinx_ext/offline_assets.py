"""Serve everything that a page loads from the book itself, and no more than it uses.

MathJax comes out of the Python package sphinx-mathjax-offline, part by part: the one file with everything brings a menu
that is larger than the rest and makes each formula a stop of the Tab key. The kernel-in-a-page tools (require.js, the
ipywidgets manager, Thebe) are left out: no figure of the book needs them. So is the theme's script of all icons,
1.5 MB: its style sheet shows the same icons from a font (icons.py).
"""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from built_pages import when_built

ICONS = re.compile(r"\s*<!-- So that users can add custom icons -->\s*<script [^>]*/fontawesome\.js[^>]*></script>")
PARTS = ("input/tex", "output/chtml", "a11y/assistive-mml")  # the last one: formulas for screen readers
FORMULA = re.compile(r'class="(?:[^"]* )?math[ "]|\\\(|\\\[')
INLINE = re.compile(r"<script.*?</script>", re.S)
MATHJAX = ("startup.js", "core.js", *(f"{part}.js" for part in PARTS), "output/chtml/fonts", "input/tex/extensions")


def _configure(app, config):
    config.mathjax_path = "mathjax/startup.js"
    config.mathjax3_config = {"loader": {"load": list(PARTS)}}
    config.nb_ipywidgets_js = {}
    config.thebe_config = {}


def _copy_mathjax(app):
    if app.builder.format != "html":
        return
    source = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    target = Path(app.outdir, "_static", "mathjax")
    for name in MATHJAX:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():  # an earlier build may have left a part of it
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        elif (source / name).exists():
            shutil.copy(source / name, target / name)


def _drop_scripts(app, pagename, templatename, context, doctree):
    """Keep each inline script once, none of Thebe's, and MathJax where there is a formula: Sphinx 7, Jupyter Book and
    the theme's extensions add them to all pages, and repeatedly."""
    seen, kept = set(), []
    formulas = FORMULA.search(INLINE.sub("", context.get("body") or ""))
    for script in context.get("script_files", []):
        name, body = str(getattr(script, "filename", script) or ""), getattr(script, "attributes", {}).get("body")
        words = f"{name} {body or ''}".lower()
        if "thebe" in words or (("mathjax" in words or "formulas.js" in words) and not formulas):
            continue
        if body is None or body not in seen:
            kept.append(script)
        seen.add(body)
    context["script_files"][:] = kept


def _drop_icon_script(app, exception):
    for path in Path(app.outdir, "_static", "scripts").glob("fontawesome.*"):
        path.unlink()


def setup(app):
    app.connect("config-inited", _configure)
    app.add_js_file("formulas.js", loading_method="defer")
    app.connect("builder-inited", _copy_mathjax)
    app.connect("html-page-context", _drop_scripts, priority=900)
    when_built(app, lambda text: ICONS.sub("", text))
    app.connect("build-finished", _drop_icon_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
