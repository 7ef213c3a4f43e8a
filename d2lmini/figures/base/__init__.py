"""What every interactive figure shares: one front-end module, shown as a custom element or as an anywidget.

``tools/bundle.mjs`` bundles modules into ``figures/built``: `base` is what all figures share, ``<name>`` a figure.
"""

import html
import json
import os
from functools import cache
from importlib.resources import files

IN_BOOK = "D2LMINI_BOOK"  # set while the book is built: its pages load scripts from files of the book


@cache
def built(name):
    """The text of a bundled file. Returns: str."""
    return files("d2lmini.figures").joinpath("built", name).read_text(encoding="utf-8")


def _numbers(value):
    """Tensors and arrays as nested lists, floats cut to 6 significant digits: a page holds a few KB."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"a figure shows finite numbers only, one of them is {value}")
        return float(f"{value:.6g}")
    return value


def table(header, rows, caption):
    """An HTML table, first column as row headers: what a reader without JavaScript sees. Returns: str."""
    head = "".join(f'<th scope="col">{html.escape(str(cell))}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{html.escape(str(first))}</th>'
        + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    caption = html.escape(caption)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Figure:
    """A figure whose work is done in the page.

    A subclass names its front-end module (``name``: ``<name>.js``, ending in ``export default { render };``)
    and what stands over the figure (``title``, and ``hint``: what to do, in a sentence or two), passes its data to
    ``Figure.__init__`` and writes ``fallback``, the static form. In a notebook or in the built book the object shows
    itself; ``widget()`` gives the same module as an anywidget whose ``state`` Python can read.

    Args:
        label: what the figure shows, in a sentence, for readers who cannot see it.
        state: JSON-like data (numbers, strings, lists, dicts, tensors); every float must be finite. ``keys`` is not a
            name to use: the widget form has an attribute of that name.

    Raises:
        ValueError: a number in ``state`` is NaN or infinite.
    """

    name = title = hint = ""

    def __init__(self, label, **state):
        self.label = label
        self.state = _numbers(state)

    def fallback(self):
        """HTML that says the same without JavaScript. Returns: str."""
        raise NotImplementedError

    @classmethod
    def tag(cls):
        """The name of the figure's element. Returns: str."""
        return f"d2lmini-{cls.name.replace('_', '-')}"

    @classmethod
    def script(cls):
        """What makes the figure's elements alive, after the script ``base.js``. Returns: str, JavaScript."""
        show = f"d2lminiBase.show({json.dumps(cls.tag())}, d2lminiFigure.default);"
        return f"(() => {{{built(f'{cls.name}.js')}{show}}})();\n"

    def module(self):
        """The front-end module in the anywidget form, which needs nothing else. Returns: str, JavaScript."""
        said = f"{json.dumps(self.title)}, {json.dumps(self.hint)}"
        render = f"d2lminiBase.framed(d2lminiFigure.default.render, {said})"
        own = built("base.js") + built(f"{self.name}.js")
        return f"{own}{self.brought()}export default {{ render: {render} }};\n"

    def brought(self):
        """What else a notebook's output has to bring, as there is no book to load it from. Returns: str, JavaScript."""
        return ""

    def _repr_html_(self):
        tag = self.tag()
        # title and hint are the object's: a script is that of all figures of a kind
        said = {"data-title": self.title, "data-hint": self.hint, "aria-label": self.label}
        said |= {"data-state": json.dumps(self.state, separators=(",", ":"))}
        attributes = " ".join(f'{name}="{html.escape(value)}"' for name, value in said.items())
        shown = f'<{tag} role="group" {attributes}>{self.fallback()}</{tag}>'
        # neither modules nor deferred: they run before the page's fonts and formulas are there
        if os.environ.get(IN_BOOK):  # tools/sphinx_ext/figure_scripts.py knows where the files are
            return f'{shown}<script data-d2lmini="base"></script><script data-d2lmini="{self.name}"></script>'
        scripts = built("base.js"), self.script(), self.brought()
        return "".join([shown, *(f"<script>{one}</script>" for one in scripts if one)])

    def __repr__(self):
        return f"{type(self).__name__}: {self.label}"

    def widget(self):
        """The same figure as an anywidget: its ``state`` trait follows what the reader does. Returns: AnyWidget.

        Raises:
            ImportError: anywidget is not installed.
        """
        try:
            import anywidget
            import traitlets
        except ImportError as error:
            raise ImportError("the widget form needs anywidget: pip install 'd2lmini[widgets]'") from error

        traits = {key: traitlets.Any().tag(sync=True) for key in self.state}
        body = {"_esm": self.module(), "_css": built("base.css"), **traits}
        return type(type(self).__name__, (anywidget.AnyWidget,), body)(**self.state)
