"""How a page shows a diagram: as it was drawn, and on a phone the same text on fewer pixels.

There the columns move together and words go on in a second line. What is still too wide scrolls, and says so.
"""

import html
import re
from copy import deepcopy
from itertools import combinations

from ..base import built

ROW, HEIGHT = 50, 32  # pixels: a row of the grid, a box
PHONE = 388  # units: as many of them, shrunk to 0.92, are the column of a phone, and letters of 12 are 11 pixels there
LETTER = 7.4  # pixels: about what a letter of 13 is wide
LINE = 15
_BETWEEN = re.compile(r" (?!\()(?![^(]*\))")
_COLUMNS = range(96, 38, -2)  # pixels that are tried for a column


def lines(text, width):
    """A text cut into lines of at most so many pixels, between words and not in brackets. Returns: list of str."""
    cut = [""]
    for word in _BETWEEN.split(text):
        longer = f"{cut[-1]} {word}".strip()
        if cut[-1] and len(longer) * LETTER > width:
            cut.append(word)
        else:
            cut[-1] = longer
    return cut


def narrow(diagram):
    """The diagram on the column of a phone. Returns: a `Diagram`, or None where it fits as it is or cannot be had."""
    if not diagram.narrows or diagram.picture().width <= PHONE:
        return None
    for column in _COLUMNS:
        small = _again(diagram, column, ROW)
        tallest = max(place.height for place in small.places.values() if place.height >= HEIGHT)
        if tallest > HEIGHT:
            small = _again(diagram, column, ROW + tallest - HEIGHT)
        picture = small.picture()
        if picture.width <= PHONE:
            return small if _clear(small, picture.labels) else None
    return None


def _clear(diagram, labels):
    """Whether nothing lies on anything else."""
    areas = [(*p.edge("left"), *p.edge("right"), p.height / 2) for p in diagram.places.values()]
    areas = [(left, y - half, right, y + half) for left, y, right, _, half in areas] + labels
    return not any(
        min(a[2], b[2]) - max(a[0], b[0]) > 2 and min(a[3], b[3]) - max(a[1], b[1]) > 2
        for a, b in combinations(areas, 2)
    )


def _again(diagram, column, row):
    """The same things on columns and rows of other sizes."""
    again = type(diagram)(diagram.title, diagram.description, diagram.caption)
    again.column, again.row, again.folds = column, row, True
    for method, args, options in diagram.calls:
        getattr(again, method)(*args, **options)
    again.arrows = deepcopy(diagram.arrows)
    return again


def element(diagram):
    """The diagram as HTML with its style, in all that a page needs of it. Returns: str."""
    title = html.escape(diagram.title)
    caption = f"<figcaption>{html.escape(diagram.caption)}</figcaption>" if diagram.caption else ""
    small = narrow(diagram)
    if small:
        more = f'<div class="narrow">{small.picture().svg}</div>'
    else:
        more = '<p class="d2lmini-more" aria-hidden="true">scroll for more →</p>'
    picture = diagram.picture()
    # the second class is the book's theme's: it takes the tab stop away where nothing scrolls
    return (
        f"<style>{built('diagram.css')}</style>"
        f'<figure class="d2lmini-diagram" style="--width: {picture.width:g}px">'
        f'<div class="d2lmini-scroll pst-scrollable-table-container" role="group" tabindex="0" aria-label="{title}">'
        f"{picture.svg}</div>{more}{caption}</figure>"
    )
