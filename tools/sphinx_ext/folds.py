"""Fold what is tagged `fold` in a notebook: the section below a heading, the code of a cell that has a `# @title`.

The tree gets classes; <details> is put in for HTML alone. Of the cell that is tagged `setup` the output is folded as
well. What HTML does not do by itself (links into a fold, one switch, paper) is in scripts/folds.js and folds.css.
"""

import json
import re
from pathlib import Path

import exercise_pages
from docutils import nodes
from html_piece import HtmlPiece, add_to, inline, of_class
from sphinx.transforms import SphinxTransform

TITLE = re.compile(r"# ?@title +(.*?) *(?:\{.*\})?(?:\n|$)")  # Colab's title of a form; JupyterLab shows this line
SWITCH = (
    '<p class="fold-switch"><label><input type="checkbox" role="switch" autocomplete="off"> Open everything</label></p>'
)


class Folds(SphinxTransform):
    default_priority = 390  # before Predictions

    def apply(self):
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix == ".ipynb" and not exercise_pages.solved(self.env.srcdir, self.env.docname):
            mark(self.document, json.loads(path.read_text(encoding="utf-8"))["cells"])


def mark(document, cells):
    """Name the sections that are folded, and take the titles of code cells out of their code."""
    folded = {number for number, cell in enumerate(cells, 1) if "fold" in cell["metadata"].get("tags", [])}
    for section in document.findall(nodes.section):
        if (section.line or 0) // 10_000 in folded:  # myst-nb: cell n, from 1, has the lines n0001, n0002, ...
            section["classes"].append("fold")
    for cell in of_class(document, "tag_fold"):
        code = cell.next_node(nodes.literal_block)
        if found := TITLE.match(code.astext()):
            code.rawsource = code.astext()[found.end() :]
            code[:] = [nodes.Text(code.rawsource)]
            cell["fold_title"] = found[1]


def _wrap(app, doctree, docname):
    if app.builder.format != "html":
        return
    sections = of_class(doctree, "fold")
    cells = [cell for cell in of_class(doctree, "tag_fold") if "fold_title" in cell]
    for section in sections:
        at = section.first_child_matching_class(nodes.title)
        section.insert(at + 1, HtmlPiece("</summary>"))
        section.insert(at, HtmlPiece('<details class="fold"><summary>'))
        section.append(HtmlPiece("</details>"))
    for cell in cells:
        cell.insert(len(cell) if "tag_setup" in cell["classes"] else 1, HtmlPiece("</details>"))
        title = nodes.inline("", cell["fold_title"])
        cell[0:0] = [HtmlPiece('<details class="fold code"><summary>'), title, HtmlPiece("</summary>")]
    # hints and solutions of exercises are opened one at a time
    if (sections or cells or of_class(doctree, "predict-answer")) and not docname.startswith("exercises/"):
        top = doctree.next_node(nodes.title)
        top.parent.insert(top.parent.index(top) + 1, HtmlPiece(SWITCH))


def setup(app):
    add_to(app)
    app.add_transform(Folds)
    app.connect("doctree-resolved", _wrap)
    app.add_css_file("folds.css")
    app.add_js_file(None, body=inline("folds_early"), priority=100)
    app.add_js_file("folds.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
