"""A piece of HTML in a page's tree: half of an element, or a form. Raw HTML would be indexed for the search."""

from pathlib import Path

from docutils import nodes

INLINE = Path(__file__).parent / "built" / "inline"


class HtmlPiece(nodes.Element):
    """Put in when the tree is resolved, for HTML alone."""

    def __init__(self, html=""):
        super().__init__(html=html)


def _write(translator, node):
    translator.body.append(node["html"])


def inline(name):
    """What is made of `scripts/inline/<name>.js`, for the text of a page. Returns: str."""
    return (INLINE / f"{name}.js").read_text(encoding="utf-8").strip()


def add_to(app):
    app.add_node(HtmlPiece, override=True, html=(_write, lambda translator, node: None))


def of_class(tree, name):
    """Returns: list of the nodes below `tree` that have a class."""
    return [node for node in tree.findall(nodes.Element) if name in node.get("classes", ())]
