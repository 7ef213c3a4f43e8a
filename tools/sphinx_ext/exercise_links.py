"""Links from a chapter to its exercises: a line at the end of the section where one can first be done, and mentions.

Which section that is, is in `tools/exercise_places.yml`; the page of the exercises links back. What of an exercise is
done, the browser knows: scripts/exercise_links.js shows it in the line.
"""

import re

import exercise_pages
from docutils import nodes
from html_piece import HtmlPiece, add_to, of_class
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

CHAPTER = re.compile(r"chapters/((\d\d)_\w+)")
KEY = re.compile(r"\b(?:d2l|udl|own)-\d+(?:\.\d+)+[a-h]?\b")


class ExerciseLinks(SphinxTransform):
    default_priority = 410  # after Predictions: the line answers no question

    def apply(self):
        if not re.match("chapters/|exercises/", self.env.docname):
            return
        complete_links(self.document)
        link_mentions(self.document, self.env)
        found = CHAPTER.fullmatch(self.env.docname)
        if found and exercise_pages.solved(self.env.srcdir, f"exercises/{found[1]}"):
            from d2lmini.exercises.engine import registry

            slugs = self.env.metadata[self.env.docname].get("myst_slugs", {})
            sections = {name: node for node in self.document.findall(nodes.section) for name in node["ids"]}
            for exercise in registry.exercises(found[2]):
                place(exercise, slugs, sections, self.env.docname)


def place(exercise, slugs, sections, docname):
    """Put the line for an exercise at the end of its section.

    Args:
        exercise: of the registry.
        slugs: of the page's headings, as MyST has them: to (line, id, title).
        sections: of the page, by id.
        docname: of the page.
    """
    from tools import exercise_places

    section = sections[slugs[exercise_places.places()[exercise.key].slug][1]]
    line = nodes.paragraph("", "", nodes.strong("", "Exercise"), nodes.Text(": "), classes=["exercise-here"])
    line += reference(exercise.key, exercise.title, docname)
    line["parts"] = " ".join(part.key for part in exercise.parts)
    line.source, line.line = section.source, section.line
    section += line


def complete_links(document):
    """Links to a page of exercises whose text names one lead to its place on that page."""
    for link in document.findall(addnodes.pending_xref):
        named = KEY.search(link.astext())
        if named and not link.get("reftargetid") and exercise_pages.PAGE.fullmatch(link["reftarget"] or ""):
            link["reftargetid"] = named[0].replace(".", "-")


def link_mentions(document, env):
    """Make links of the keys in running text that have no link yet and name an exercise of this book."""
    from d2lmini.exercises.engine import registry

    every = registry.keys()
    ours = {key for key in every if exercise_pages.solved(env.srcdir, target(key))}
    for text in list(document.findall(nodes.Text)):
        if not KEY.search(text) or not isinstance(text.parent, (nodes.paragraph, nodes.emphasis, nodes.strong)):
            continue
        made, last = [], 0
        for named in KEY.finditer(text):
            if named[0].rstrip("abcdefgh") in ours:
                made += [nodes.Text(text[last : named.start()]), reference(named[0], named[0], env.docname)]
                last = named.end()
        if made:
            text.parent.replace(text, [*made, nodes.Text(text[last:])])


def target(key):
    """The page of an exercise, or of one of its parts."""
    from d2lmini.exercises.engine import registry

    return f"exercises/{registry.NOTEBOOKS[registry.chapter_of(key.rstrip('abcdefgh'))]}"


def reference(key, text, docname):
    """A link to an exercise, as MyST makes it of ``[text](../exercises/03_x.ipynb#d2l-11-3-1)``."""
    from d2lmini.exercises.engine import registry

    where = {"reftarget": target(key), "reftargetid": registry.anchor(key), "refdoc": docname}
    link = addnodes.pending_xref("", refdomain="doc", reftype="myst", refexplicit=True, **where)
    link += nodes.inline("", text, classes=["xref", "myst"])
    return link


def _add_marks(app, doctree, docname):
    for line in of_class(doctree, "exercise-here"):
        line += HtmlPiece(f' <span class="exercise-done" data-parts="{line["parts"]}"></span>')


def _assets(app, pagename, templatename, context, doctree):
    if doctree is not None and of_class(doctree, "exercise-here"):
        app.add_js_file("progress.js", loading_method="defer")
        app.add_js_file("exercise_links.js", loading_method="defer")


def setup(app):
    add_to(app)
    app.connect("doctree-resolved", _add_marks)
    app.connect("html-page-context", _assets)
    app.add_transform(ExerciseLinks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
