"""Put the plots of matplotlib into the page itself, where they follow the theme, and give each drawing one caption.

An <img> cannot follow the theme's switch. Inlined, a plot loses its white card; black becomes the colour of the text,
white that of the page, and the colours of curves become variables that plots.css sets for each theme. Outside of the
book the same plot is on its card. A photograph or a map of colours inside of a plot stays as it is.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from html_piece import HtmlPiece, add_to
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from d2lmini.plot_style import PALETTE

LOGGER = logging.getLogger(__name__)
DRAWN = ("image/svg+xml", "image/png", "image/jpeg", "text/html")
MADE_BY_MATPLOTLIB = b'id="figure_1"'
COLOURS = {
    "#000000": "currentColor",
    "#ffffff": "var(--plot-paper)",
    **{colour: f"var(--curve-{i})" for i, colour in enumerate(PALETTE, 1)},
    # those of matplotlib, for chapters that name them: C0 to C7, b, g, r, c and m
    **{"#1f77b4": "var(--curve-1)", "#ff7f0e": "var(--curve-2)", "#2ca02c": "var(--curve-3)"},
    **{"#9467bd": "var(--curve-4)", "#17becf": "var(--curve-5)", "#d62728": "var(--curve-6)"},
    **{"#e377c2": "var(--curve-7)", "#7f7f7f": "var(--curve-8)", "#0000ff": "var(--curve-1)"},
    **{"#008000": "var(--curve-3)", "#00bfbf": "var(--curve-5)", "#ff0000": "var(--curve-6)"},
    "#bf00bf": "var(--curve-7)",
}
PAINTED = ("fill", "stroke", "color")
POINT = 4 / 3  # pixels


def inline(svg, prefix, label):
    """An SVG file of matplotlib as an element of a page.

    Args:
        svg: bytes or str, the file.
        prefix: str, put before the ids in it, as several plots share a page.
        label: str, what there is to see, for those who do not see it.

    Returns:
        str, the element.
    """
    root = ElementTree.fromstring(svg)
    _tidy(root)
    _take_paper(root)
    _paint(root, keep=False)
    _rename(root, prefix)
    width = float(root.attrib.pop("width").removesuffix("pt")) * POINT
    root.attrib.pop("height")
    root.attrib.update(
        {
            "class": "plot",
            "role": "img",
            "aria-label": " ".join(label.split()),
            # round joins: matplotlib says so in a style sheet for everything, which would be for the whole page
            "style": f"--width: {width:.0f}px; stroke-linejoin: round",
            "fill": "currentColor",
        }
    )
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(element):
    """Leave out names of spaces, metadata, style sheets and the blanks between elements."""
    element.tag = element.tag.rpartition("}")[2]
    element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    element.attrib.pop("version", None)
    if re.match(r"rotate\(-?0 ", element.get("transform", "")):
        del element.attrib["transform"]
    if "d" in element.attrib:
        element.set("d", " ".join(element.get("d").split()))
    element.tail = None
    if element.text and not element.text.strip() and element.tag not in ("text", "tspan"):
        element.text = None
    for child in list(element):
        _tidy(child)
        if child.tag in ("metadata", "style") or (child.tag == "defs" and not len(child)):
            element.remove(child)


def _take_paper(root):
    """The backgrounds of the figure and of its axes: the first patch of each."""
    for group in root.iter("g"):
        if not group.get("id", "").startswith(("figure_", "axes_")) or not len(group):
            continue
        first = group[0]
        if first.get("id", "").startswith("patch_") and len(first) == 1:
            style = _declarations(first[0])
            if style.get("fill") == "#ffffff" and style.get("stroke", "none") == "none":
                group.remove(first)


def _declarations(element):
    pairs = (part.partition(":") for part in element.get("style", "").split(";") if ":" in part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _paint(element, keep):
    """Colours that follow the theme and the font of the page, but for what is a map of colours (`keep`)."""
    keep = keep or element.get("id", "").startswith(("QuadMesh", "PolyQuadMesh"))
    if element.get("id", "").startswith("axes_") and element.find(".//image") is not None:
        marks = [child for child in element if child.get("id", "").startswith(("line2d_", "PathCollection"))]
    else:
        marks = []
    style = _declarations(element)
    style.pop("font-family", None)
    if "font" in style:  # the short form: slant, weight, size and family
        found = re.match(r"(.*?)([\d.]+px)", style.pop("font"))
        style["font-size"] = found[2]
        for word in found[1].split():
            style["font-style" if word in ("italic", "oblique") else "font-weight"] = word
    if not keep:
        for name in PAINTED:
            if name in style:
                style[name] = COLOURS.get(style[name].lower(), style[name])
            if name in element.attrib:
                element.set(name, COLOURS.get(element.get(name).lower(), element.get(name)))
    elif element.tag in ("path", "use") and "fill" not in style:
        style["fill"] = "#000000"  # matplotlib leaves out black
    if style:
        element.set("style", "; ".join(f"{name}: {value}" for name, value in style.items()))
    for child in element:
        _paint(child, keep or child in marks)  # marks on a picture stay as they were chosen for it


def _rename(root, prefix):
    """Ids that something in the plot refers to get the prefix, the others go."""
    used = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "href" and value.startswith("#"):
                used.add(value[1:])
                element.set(name, f"#{prefix}{value[1:]}")
            elif "url(#" in value:
                used.update(re.findall(r"url\(#([^)]+)\)", value))
                element.set(name, value.replace("url(#", f"url(#{prefix}"))
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in used:
            element.set("id", prefix + name)


def outputs(document):
    """What the cells of a page gave. Returns: list of containers."""
    return [node for node in document.findall(nodes.container) if node.get("nb_element") == "cell_code_output"]


def _draws(figure):
    """Whether what myst-nb took for a figure is one: a picture, or HTML that is no table."""
    found = {node["mime_type"]: node for node in figure.findall(nodes.container) if "mime_type" in node}
    html = found.get("text/html")
    return any(kind in found for kind in DRAWN) and not (html and "d2lmini-table" in html.astext())


class OneCaption(SphinxTransform):
    """The last drawing of a cell gets the caption that myst-nb gives to all its outputs, tables and text as well."""

    default_priority = 205  # before Sphinx gives figures their ids, by which they are numbered

    def apply(self):
        count = 0
        for output in outputs(self.document):
            figures = [node for node in output.children if isinstance(node, nodes.figure)]
            drawings = [figure for figure in figures if _draws(figure)]
            if figures and not drawings:
                LOGGER.warning("a cell has a caption but draws nothing", location=figures[0])
            for figure in figures:
                if drawings and figure is drawings[-1]:
                    count += 1
                    self._name(figure, f"figure-{count}")
                else:
                    kept = [node for node in figure.children if not isinstance(node, nodes.caption | nodes.legend)]
                    figure.replace_self(kept)

    def _name(self, figure, name):
        if not figure["ids"] and name not in self.document.ids:
            figure["ids"].append(name)
            self.document.ids[name] = figure


class Inline(SphinxPostTransform):
    """Puts an element where the picture was."""

    default_priority = 6  # myst-nb has chosen one form of each output by then
    formats = ("html",)

    def run(self):
        count = 0
        for output in outputs(self.document):
            for image in list(output.findall(nodes.image)):
                path = Path(self.env.srcdir, image["uri"])
                if path.suffix != ".svg" or MADE_BY_MATPLOTLIB not in (svg := path.read_bytes()):
                    continue
                count += 1
                element = inline(svg, f"plot{count}-", image.get("alt", ""))
                # the theme's class: a plot that is too wide scrolls, and the keyboard reaches it
                image.replace_self(
                    HtmlPiece(f'<div class="plot-frame pst-scrollable-table-container">{element}</div>\n')
                )


def setup(app):
    add_to(app)
    app.add_transform(OneCaption)
    app.add_post_transform(Inline)
    app.add_css_file("plots.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
