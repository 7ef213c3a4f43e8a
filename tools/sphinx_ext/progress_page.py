"""The directive `progress`: how far the reader is, as the browser knows it. `table` is the page, `line` a sentence.

What it can count is written here; what was done, and the buttons, are up to scripts/progress_page.js.
"""

import html
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the package `tools`

UNKNOWN = "Without JavaScript this page does not know what you did. It only shows how many parts there are."


def keys(chapter):
    """The keys of the parts of a chapter. Returns: (of choices, of all others), two lists."""
    from d2lmini.exercises.engine import registry

    parts = [part for exercise in registry.exercises(chapter) for part in exercise.parts]
    return [p.key for p in parts if p.kind == "choice"], [p.key for p in parts if p.kind != "choice"]


def line():
    """A sentence for the front page; it is empty until the reader has done something."""
    from d2lmini.exercises.engine import registry

    every = sum(len(found) for chapter in registry.chapters() for found in keys(chapter))
    return f'<p class="progress-line" data-parts="{every}" hidden><a href="your_progress.html">Your progress</a>: </p>'


def _of(parts):
    return f"of {len(parts)}" if parts else "–"


def table():
    """A row for each chapter, and what can be done with all of it."""
    from tools.exercise_cells import CHAPTERS

    rows = []
    for chapter, (name, title) in CHAPTERS.items():
        choices, others = keys(chapter)
        rows.append(
            f'<tr data-choices="{" ".join(choices)}" data-others="{" ".join(others)}">'
            f'<th scope="row"><a href="exercises/{name}.html">{chapter} {html.escape(title)}</a></th>'
            f"<td>{_of(choices)}</td><td>{_of(others)}</td><td>–</td></tr>"
        )
    columns = "Exercises", "choices right", "other parts you ticked", "other parts a notebook checked"
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return f"""\
<noscript><p>{UNKNOWN}</p></noscript>
<table class="table progress-table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody><tfoot></tfoot></table>
<form class="progress-tools" hidden>
<p><button type="button" data-do="write">Write a file</button>
<label>Read a file: <input type="file" accept=".json,application/json"></label>
<button type="button" data-do="forget">Forget everything</button></p>
<p role="status"></p>
</form>"""


class Progress(SphinxDirective):
    """```{progress} line | table```"""

    required_arguments = 1

    def run(self):
        self.env.note_reread()  # the exercises are in the package
        shown = {"line": line, "table": table}[self.arguments[0]]()
        return [nodes.raw("", shown, format="html")]


def _assets(app, pagename, templatename, context, doctree):
    if doctree is not None and any("progress-" in raw.astext() for raw in doctree.findall(nodes.raw)):
        app.add_js_file("progress.js", loading_method="defer")
        app.add_js_file("progress_page.js", loading_method="defer")
        app.add_css_file("exercises.css")


def setup(app):
    app.add_directive("progress", Progress)
    app.connect("html-page-context", _assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
