"""One page of exercises a chapter: choices that answer, solutions folded.

The page has the name of the unsolved notebook, so that Colab and JupyterLab open that one; what it shows comes from
`tools/exercise_cells.py`, with the outputs of the solved notebook, which has no page of its own any more: where that
was, a line leads here.
"""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the package `tools`

PAGE = re.compile(r"exercises/((\d\d)_\w+)")
KEY = re.compile(r"(?:d2l|udl|own)(?:-\d+)+[a-h]?")  # as an address has it: registry.anchor
GONE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Moved</title>
<meta http-equiv="refresh" content="0; url=../{name}.html">
<link rel="canonical" href="../{name}.html">
<p>The solutions are on <a href="../{name}.html">the page of the exercises</a>.</p>
</html>
"""


def solved(srcdir, docname):
    """Returns: path of the solved notebook whose outputs this page shows; None if it is no page of exercises."""
    found = PAGE.fullmatch(docname)
    path = Path(srcdir, "exercises", "solutions", f"{found[1]}.ipynb") if found else None
    return path if path and path.exists() else None


def _read(app, docname, source):
    if not (path := solved(app.srcdir, docname)):
        return
    import nbformat

    from tools import exercise_cells, exercise_places

    app.env.note_dependency(str(path))
    app.env.note_dependency(str(exercise_places.TABLE))
    app.env.note_dependency(exercise_cells.__file__)
    made = exercise_cells.page(PAGE.fullmatch(docname)[2], nbformat.read(path, as_version=4))
    source[0] = nbformat.writes(made)


class Addresses(SphinxTransform):
    """The address of an exercise is its key, whatever its title: ``exercises/03_x.html#udl-12-5b``."""

    default_priority = 395  # targets have been resolved

    def apply(self):
        if not solved(self.env.srcdir, self.env.docname):
            return
        slugs = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
        for section in self.document.findall(nodes.section):
            if keys := [name for name in section["ids"] if KEY.fullmatch(name)]:
                section["ids"] = keys + [name for name in section["ids"] if name not in keys]
                slugs[keys[0]] = section.line, keys[0], section.next_node(nodes.title).astext()


def _assets(app, pagename, templatename, context, doctree):
    if solved(app.srcdir, pagename):
        app.add_js_file("progress.js", loading_method="defer")
        app.add_js_file("exercises.js", loading_method="defer")
        app.add_css_file("exercises.css")


def _name_folds(app, pagename, templatename, context, doctree):
    """The theme's arrow beside a chapter has no name for those who cannot see it."""
    draw = context.get("generate_toctree_html")

    def named(kind, *args, **options):
        drawn = draw(kind, *args, **options)
        return str(drawn).replace("<summary>", '<summary aria-label="Exercises">') if kind == "sidebar" else drawn

    if draw:
        context["generate_toctree_html"] = named


def _lead_on(app, exception):
    if exception or app.builder.format != "html":
        return
    for docname in app.env.found_docs:
        if path := solved(app.srcdir, docname):
            old = Path(app.outdir, "exercises", "solutions", f"{path.stem}.html")
            old.parent.mkdir(parents=True, exist_ok=True)
            old.write_text(GONE.format(name=path.stem), encoding="utf-8")


def setup(app):
    app.connect("source-read", _read)
    app.add_transform(Addresses)
    app.connect("html-page-context", _assets)
    app.connect("html-page-context", _name_folds, priority=900)
    app.connect("build-finished", _lead_on)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
