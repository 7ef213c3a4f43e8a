"""The directive `problem-set`: all exercises with what each needs, and a form that chooses some of them.

The table is written here, from tools/problem_set.py; what fits and what is chosen is up to scripts/problem_set.js.
"""

import html
import sys
from pathlib import Path

from docutils import nodes
from html_piece import HtmlPiece, add_to, of_class
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the package `tools`


def row(one):
    """A row of the table. ``one``: an `Entry` of tools/problem_set.py."""
    from d2lmini.exercises.engine import registry
    from tools.problem_set import counted, ranges

    page = f"exercises/{registry.NOTEBOOKS[one.exercise.chapter]}.html#{registry.anchor(one.key)}"
    graded = ' data-graded="yes"' if one.graded else ""
    also = f"; needs {html.escape(', '.join(one.packages))}" if one.packages else ""
    return (
        f'<tr data-chapters="{" ".join(one.chapters)}" data-kind="{" ".join(one.words)}" data-source="{one.source}"'
        f' data-parts="{" ".join(one.kinds)}" data-seconds="{one.seconds}"{graded}><th scope="row">'
        f'<label><input type="checkbox" value="{one.key}" hidden> <code>{one.key}</code></label> '
        f'<a href="{page}">{html.escape(one.exercise.title)}</a></th>'
        f"<td>{ranges(one.chapters)}</td><td>{counted(one.kinds)}{also}</td><td>{one.seconds or '–'}</td></tr>"
    )


def _options(name, values):
    given = "".join(f'<option value="{value}">{said}</option>' for value, said in values)
    return f'<select name="{name}"><option value="">any</option>{given}</select>'


def form():
    """What the table is filtered by; it is shown where a script can use it."""
    from tools import course
    from tools.problem_set import KINDS, NO_CODE, SOURCES, builds_on

    chapters = "".join(
        f'<label title="{html.escape(course.TITLES[n])}"><input type="checkbox" name="had" value="{n}"'
        f' data-needs="{" ".join(builds_on(n))}"> {n}</label> '
        for n in course.chapters()
    )
    kinds = _options("kind", [(kind, "without code" if kind == NO_CODE else kind) for kind in KINDS])
    sources = _options("source", [(value, "ours" if value == "own" else value) for value in SOURCES.values()])
    return f"""\
<form class="set-tools" hidden>
<fieldset><legend>Chapters that your course has had (none: show all)</legend>{chapters}</fieldset>
<p><label>Kind: {kinds}</label> <label>From: {sources}</label>
<label><input type="checkbox" name="graded" value="yes"> no discussion, which only you can mark</label></p>
</form>"""


def chooser():
    """The form, the table of all exercises, and what is said of the chosen ones."""
    from tools.problem_set import entries

    columns = "Exercise", "needs chapters", "parts", "limit, s"
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return f"""\
{form()}
<div class="set-list"><table class="table set-table"><thead><tr>{head}</tr></thead>
<tbody>{"".join(map(row, entries()))}</tbody></table></div>
<div class="set-chosen" hidden>
<p role="status"></p>
<div class="highlight"><pre>python -m tools.problem_set</pre></div>
<p><button type="button">Choose none</button></p>
</div>"""


class ProblemSet(SphinxDirective):
    """```{problem-set}```"""

    def run(self):
        self.env.note_reread()  # the exercises are in the package
        return [nodes.container(classes=["problem-set"])]


def _fill(app, doctree, docname):
    for place in of_class(doctree, "problem-set"):
        place += HtmlPiece(chooser())


def _assets(app, pagename, templatename, context, doctree):
    if doctree is not None and of_class(doctree, "problem-set"):
        app.add_js_file("problem_set.js", loading_method="defer")
        app.add_css_file("problem_set.css")


def setup(app):
    add_to(app)
    app.add_directive("problem-set", ProblemSet)
    app.connect("doctree-resolved", _fill)
    app.connect("html-page-context", _assets)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
