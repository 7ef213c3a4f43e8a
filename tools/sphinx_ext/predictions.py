"""Set off the places where the reader is asked to predict.

In a notebook they begin with bold words, ``**Predict:**`` or ``**Before you touch it:**``; in the book these words and
what follows to the end of the paragraph stand in a box of their own.
"""

from docutils import nodes
from sphinx.transforms import SphinxTransform

OPENINGS = ("Predict", "Before you touch")
SENTENCE_ENDS = (".", ":", "?", "!", ")")


class Predictions(SphinxTransform):
    """Splits such paragraphs before the bold words, and names the second part for the style sheet."""

    default_priority = 400

    def apply(self):
        for strong in list(self.document.findall(nodes.strong)):
            paragraph = strong.parent
            if not isinstance(paragraph, nodes.paragraph) or not " ".join(strong.astext().split()).startswith(OPENINGS):
                continue
            at = paragraph.index(strong)
            before = "".join(node.astext() for node in paragraph[:at]).rstrip()
            if not before:
                paragraph["classes"].append("predict")
            elif before.endswith(SENTENCE_ENDS):
                asked = nodes.paragraph("", "", *paragraph[at:], classes=["predict"])
                asked.source, asked.line = paragraph.source, paragraph.line
                del paragraph[at:]
                paragraph.parent.insert(paragraph.parent.index(paragraph) + 1, asked)


def setup(app):
    app.add_transform(Predictions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
