"""What a reader without JavaScript sees: formulas in MathML, the light theme, no dead button, what is missing.

With JavaScript nothing changes: MathJax sets the formulas, and what is in a <noscript> is not even read.
"""

import re

from built_pages import when_built
from docutils import nodes
from html_piece import HtmlPiece, add_to
from latex2mathml.converter import convert
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

MOVES = re.compile(r'<d2lmini-|class="(?:choice|tick|predict-place)"')  # figures, exercises, predictions
MISSING = "Without JavaScript figures are tables, and nothing can be moved, ticked or kept."
LOGGER = logging.getLogger(__name__)
STYLE = """
<noscript><style>
.math.notranslate, .bd-header-article :is(button, .dropdown), .fold-switch { display: none !important; }
.without-javascript { border-left: 4px solid #c2410c; background: #8881; border-radius: 4px; padding: 0.4rem 0.9rem; }
noscript > math { font-size: 1.1em; }
noscript > math[display=block] { overflow-x: auto; margin: 1rem 0; }
</style></noscript>"""


def mathml(tex, display):
    """A formula of TeX as an element of MathML. Returns: str."""
    return convert(tex, display="block" if display else "inline")


class Formulas(SphinxPostTransform):
    """Behind each formula, which MathJax reads as TeX, the same one in MathML."""

    default_priority = 900
    formats = ("html",)

    def run(self):
        for node in list(self.document.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))):
            try:
                element = mathml(node.astext(), isinstance(node, nodes.math_block))
            except Exception as error:  # of the converter: many kinds
                LOGGER.warning("a formula that MathML cannot have: %r", error, location=node)
                continue
            number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
            node.parent.insert(node.parent.index(node) + 1, HtmlPiece(f"<noscript>{number}{element}</noscript>"))


def _style(app, pagename, templatename, context, doctree):
    context["metatags"] = (context.get("metatags") or "") + STYLE


def _say_what_is_missing(app, pagename, templatename, context, doctree):
    if MOVES.search(body := context.get("body") or ""):
        line = f'<noscript><p class="without-javascript">{MISSING}</p></noscript>'
        context["body"] = body.replace("</h1>", f"</h1>{line}", 1)


def _choose_theme(text):
    """Without a script nobody resolves the theme "auto", which has no colours."""
    return re.sub(r'(<html [^>]*data-theme=)"auto"', r'\1"light"', text, count=1)


def setup(app):
    add_to(app)
    app.add_post_transform(Formulas)
    app.connect("html-page-context", _style)
    app.connect("html-page-context", _say_what_is_missing)
    when_built(app, _choose_theme)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
