"""The directive `real-model` of the page *A real model*: its figure.

Where the book is built without the model's weights, the figure shows what was recorded, and says so.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

MISSING = "This book was built without the weights of the model. Here is what was recorded of it."


def figure(there):
    """The figure; `there` says whether the book has the model's pieces. Returns: str, HTML."""
    from d2lmini.figures import RealModel

    return RealModel(missing="" if there else MISSING)._repr_html_()


class RealModelPage(SphinxDirective):
    """```{real-model} figure"""

    required_arguments = 1
    has_content = True

    def run(self):
        from d2lmini.models.weights.smollm2 import is_there

        if self.arguments[0] != "figure":
            raise self.error(f"the page has no part {self.arguments[0]!r}, only figure")
        self.env.note_reread()  # it comes from the package, and from what is installed
        return [nodes.raw("", f'<div class="real-model-part">{figure(is_there())}</div>', format="html")]


def setup(app):
    app.add_directive("real-model", RealModelPage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
