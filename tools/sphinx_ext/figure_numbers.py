"""Number all that a chapter shows, so that its text can point: plots, diagrams and live figures, tables, equations.

A diagram and a live figure get a caption of their own words. A link of the source to one of them, `[the
figure](#fig-layer-walk)`, reads so in JupyterLab; in the book it is "Figure 7.1". One that leads nowhere is a warning.

Names: `fig-layer-walk` of the live figure LayerWalk, `fig-encoder-block` of diagrams.encoder_block, `tab-` and the
caption of a table in lower case, and for a plot the `name` beside its caption in the metadata of the cell. Of the
equations only those are numbered that have a name, on a line of its own before them: `<a id="eq-attention"></a>`.
"""

import html
import re

from docutils import nodes
from plots import outputs
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
CHAPTER = re.compile(r"chapters/(\d\d)_")
LIVE = re.compile(r'<d2lmini-([a-z0-9-]+) [^>]*?aria-label="([^"]*)"')
DIAGRAM = re.compile(r'<figure class="d2lmini-diagram".*?aria-label="([^"]*)"', re.S)
OWN_CAPTION = re.compile(r"<figcaption>(.*?)</figcaption>", re.S)
TABLE = re.compile(r'(<table class="table d2lmini-table"><caption>)(.*?)</caption>', re.S)
EQUATION = re.compile(r'<a id="(eq-[a-z0-9-]+)"></a>')
POINTER = re.compile(r"(the|this) (figure|diagram|plot|map|table|equation|formula)", re.I)


def slug(words):
    """Words as part of an address. Returns: str."""
    return re.sub(r"[^a-z0-9]+", "-", html.unescape(re.sub(r"<[^>]*>", "", words)).lower()).strip("-")


def _raws(node):
    return [raw for raw in node.findall(nodes.raw) if raw.get("format") == "html"]


def _set(raw, text):
    raw.children = [nodes.Text(text)]
    raw.rawsource = text


class Numbers(SphinxTransform):
    """Makes a figure of each diagram and live figure, and names what has a number."""

    default_priority = 206  # after plots.OneCaption, before Sphinx gives figures their ids

    def apply(self):
        chapter = CHAPTER.match(self.env.docname)
        if not chapter:
            return
        self.tables = 0
        for output in outputs(self.document):
            calls = iter(re.findall(r"\bdiagrams\.(\w+)\(", output.parent.astext()))
            for child in list(output.children):
                for raw in _raws(child):
                    self._table(child, raw, int(chapter[1]))
                    self._drawing(child, raw, calls)
        self._equations()
        self._link()

    def _equations(self):
        for line in list(self.document.findall(nodes.paragraph)):
            if found := EQUATION.fullmatch(line.astext()):
                following = line.next_node(siblings=True, descend=False)
                if not isinstance(following, nodes.math_block):
                    LOGGER.warning("no equation follows the name %s", found[1], location=line)
                    continue
                line.parent.remove(line)
                following["number"] = True  # Sphinx counts those that have an id
                self._name(following, found[1])

    def _drawing(self, child, raw, calls):
        text = raw.astext()
        live, diagram = LIVE.search(text), DIAGRAM.search(text)
        if diagram:
            own = OWN_CAPTION.search(text)
            name, caption = next(calls, slug(diagram[1])).replace("_", "-"), own[1] if own else f"{diagram[1]}."
            if own:
                _set(raw, OWN_CAPTION.sub("", text))
        elif live:
            name, caption = live[1], live[2]
        else:
            return
        figure = child
        if not isinstance(child, nodes.figure):
            figure = nodes.figure("")
            child.replace_self(figure)
            figure += [child, nodes.caption("", html.unescape(caption))]
        self._name(figure, f"fig-{name}")

    def _table(self, child, raw, chapter):
        found = TABLE.search(raw.astext())
        if not found:
            return
        self.tables += 1
        number = f"Table {chapter}.{self.tables}"
        _set(raw, TABLE.sub(rf'\1<span class="caption-number">{number} </span>\2</caption>', raw.astext(), count=1))
        child["number"] = number
        self._name(child, f"tab-{slug(found[2])}")

    def _name(self, node, name):
        # not a label of Sphinx: these are of the whole book, and chapters may show the same figure
        if name not in self.document.ids:
            node["ids"].append(name)
            self.document.ids[name] = node

    def _link(self):
        """Resolves the links of this page; what is left, myst resolves or warns of."""
        for link in self.document.findall(nodes.reference):
            target = link.get("refuri", "").removeprefix("#")
            if link.get("id_link") and target.startswith(("fig-", "tab-", "eq-")) and target in self.document.ids:
                del link["refuri"], link["id_link"]
                link["refid"] = target


class Pointers(SphinxPostTransform):
    """Puts the number into a link to something that has one."""

    default_priority = 7
    formats = ("html",)

    def run(self):
        counted = self.env.toc_fignumbers.get(self.env.docname, {})
        figures = counted.get("figure", {})
        for name, number in counted.get("displaymath", {}).items():
            self.document.ids[name]["number"] = ".".join(map(str, number))
        for link in self.document.findall(nodes.reference):
            node = self.document.ids.get(link.get("refid"))
            if node is None or not POINTER.fullmatch(link.astext()):
                continue
            number = node.get("number")
            if isinstance(node, nodes.figure) and node["ids"][0] in figures:
                number = f"Figure {'.'.join(map(str, figures[node['ids'][0]]))}"
            elif isinstance(node, nodes.math_block):
                number = f"{'Equation' if link.astext()[0].isupper() else 'equation'} {number}"
            if number:
                link.children = [nodes.inline("", number)]


def setup(app):
    app.add_transform(Numbers)
    app.add_post_transform(Pointers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
