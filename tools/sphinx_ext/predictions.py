"""Set off where the reader is asked to predict, and keep the answers out of sight until there is a prediction.

In a notebook they begin with bold words, ``**Predict:**`` or ``**Before you touch it:**``; in the book these words and
what follows to the end of the paragraph are in a box of their own. What answers a **Predict** gets a container, and in
HTML a form above it. Hiding is up to scripts/folds.js: without JavaScript the page reads as it is written.
"""

import hashlib
import re

from docutils import nodes
from html_piece import HtmlPiece, add_to, of_class
from sphinx.transforms import SphinxTransform

OPENINGS = ("Predict", "Before you touch")
SENTENCE_ENDS = (".", ":", "?", "!", ")")
CHOICE = re.compile(r"(?<![\w)])\(([a-f])\)")
BELONGS = (nodes.bullet_list, nodes.enumerated_list, nodes.definition_list, nodes.table, nodes.math_block)


class Predictions(SphinxTransform):
    """Splits such paragraphs before the bold words, names the second part for the style sheet, marks the answers."""

    default_priority = 400

    def apply(self):
        asked = []
        for strong in list(self.document.findall(nodes.strong)):
            paragraph = strong.parent
            if not isinstance(paragraph, nodes.paragraph) or not " ".join(strong.astext().split()).startswith(OPENINGS):
                continue
            at = paragraph.index(strong)
            before = "".join(node.astext() for node in paragraph[:at]).rstrip()
            if not before:
                paragraph["classes"].append("predict")
                asked.append(paragraph)
            elif before.endswith(SENTENCE_ENDS):
                box = nodes.paragraph("", "", *paragraph[at:], classes=["predict"])
                box.source, box.line = paragraph.source, paragraph.line
                del paragraph[at:]
                paragraph.parent.insert(paragraph.parent.index(paragraph) + 1, box)
                asked.append(box)
        if self.env.docname.startswith("exercises/"):
            return  # there the answer is for the reader to write
        for box in asked:
            if box.astext().startswith("Predict"):
                set_apart(box)


def set_apart(asked):
    """Put what answers a prediction into a container, and give the question an id that it keeps where it is moved."""
    found = answer(asked)
    if not found:
        return
    section, at = asked.parent, asked.parent.index(asked) + 1
    name = "predict-" + hashlib.sha256(" ".join(asked.astext().split()).encode()).hexdigest()[:8]
    while asked.document and name in asked.document.ids:  # asked twice on one page
        name += "-again"
    asked["ids"].append(name)
    if asked.document:
        asked.document.ids[name] = asked
    section[at : at + len(found)] = [nodes.container("", *found, classes=["predict-answer"], question=name)]


def answer(asked):
    """What answers a question: the code cells behind it and the first paragraph behind these, with what belongs to it.

    Where no code follows it is the next paragraph. A folded code cell that shows text takes the place of a paragraph.

    Returns:
        list of nodes, the next siblings of `asked`; empty if nothing answers.
    """
    behind = []
    for node in asked.parent[asked.parent.index(asked) + 1 :]:
        if isinstance(node, nodes.section) or "predict" in node.get("classes", ()):
            break
        behind.append(node)
    own = 0  # what the question's own Markdown cell goes on with
    while own < len(behind) and not _is_code(behind[own]) and _cell(behind[own]) == _cell(asked):
        own += 1
    end = own if own < len(behind) and _is_code(behind[own]) else 0
    while end < len(behind) and _is_code(behind[end]):
        end += 1
        if "tag_fold" in behind[end - 1]["classes"] and _shows_text(behind[end - 1]):
            return behind[:end]
    while end < len(behind):
        end += 1
        if isinstance(behind[end - 1], nodes.paragraph):
            break
    while end < len(behind) and isinstance(behind[end], BELONGS):
        end += 1
    return behind[:end]


def _is_code(node):
    return "cell" in node.get("classes", ())


def _cell(node):
    return (node.line or 0) // 10_000  # myst-nb: cell n, from 1, has the lines n0001, n0002, ...


def _shows_text(cell):
    return any(node.get("mime_type") == "text/markdown" for node in cell.findall(nodes.container))


def form(question, name):
    """Returns: the HTML where a reader commits to a prediction, and sees it again."""
    letters = list(dict.fromkeys(CHOICE.findall(question)))
    if len(letters) > 1:
        choices = (f'<label><input type="radio" name="said" value="({x})" required> ({x})</label>' for x in letters)
        field = f"<fieldset><legend>Your prediction:</legend>{''.join(choices)}</fieldset>"
    else:
        field = (
            '<label>Your prediction: <input name="said" required pattern=".*\\S.*" maxlength="120" autocomplete="off"'
            ' title="a number or a few words"></label>'
        )
    return (
        f'<div class="predict-place" data-question="{name}"><form aria-describedby="{name}">{field}'
        '<span><button>Commit</button> <button type="button">Show it</button></span></form>'
        '<p><span role="status"></span> <button type="button" hidden>Forget it</button></p></div>'
    )


def _add_forms(app, doctree, docname):
    if app.builder.format != "html":
        return
    for found in of_class(doctree, "predict-answer"):
        asked = found.parent[found.parent.index(found) - 1]
        found.parent.insert(found.parent.index(found), HtmlPiece(form(asked.astext(), found["question"])))
        hide = f'awaitPrediction(document.currentScript.parentElement, "{found["question"]}")'  # folds_early.js
        found.insert(0, HtmlPiece(f"<script>{hide}</script>"))


def setup(app):
    add_to(app)
    app.add_transform(Predictions)
    app.connect("doctree-resolved", _add_forms)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
