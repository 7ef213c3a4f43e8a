"""What every interactive figure shares: one front-end module, shown as a custom element or as an anywidget."""

import html
import json
import re
from functools import cache
from importlib.resources import files

_EXPORT = "export default { render };"


@cache
def asset(name):
    """The text of a file of this folder. Returns: str."""
    text = files("d2lmini.figures").joinpath(name).read_text(encoding="utf-8")
    # comments and indentation would be in a page once for each of its figures
    return re.sub(r"^ *(//.*\n)?", "", text, flags=re.M)


def _style():
    text = re.sub(r"/\*.*?\*/", "", asset("theme.css") + asset("base.css"), flags=re.S)
    return re.sub(r"(?<=[:;,{}])\s+|\s+(?=[{}])", "", text).strip()  # once for each figure, as the scripts


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

    A subclass names its front-end module (``name``: ``figures/<name>.js``, ending in ``export default { render };``)
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
    def _script(cls):
        """JavaScript with the constant ``figure``: the figure's own ``render`` in the frame that all have."""
        source = asset(f"{cls.name}.js")
        if source.count(_EXPORT) != 1:
            raise ValueError(f"{cls.name}.js must hold the line {_EXPORT!r} once")
        frame = f"const figure = framed(render, {json.dumps(cls.title)}, {json.dumps(cls.hint)});"
        return asset("base.js") + source.replace(_EXPORT, frame)

    @classmethod
    def module(cls):
        """The front-end module in the anywidget form. Returns: str, JavaScript."""
        return cls._script() + "export default { render: figure };\n"

    def _module(self):
        """The module of the widget form. Returns: str, JavaScript."""
        return self.module()

    def _repr_html_(self):
        tag = f"d2lmini-{self.name.replace('_', '-')}"
        state = html.escape(json.dumps(self.state, separators=(",", ":")))
        names = f"const TAG = {json.dumps(tag)}, STYLE = {json.dumps(_style())};\n"
        script = names + self._script() + asset("element.js")
        label = html.escape(self.label)
        return (
            f'<{tag} role="group" aria-label="{label}" data-state="{state}">{self.fallback()}</{tag}>'
            # neither a module nor deferred: it runs before the page's fonts and formulas are there
            f"<script>(() => {{{script}}})();</script>"
        )

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
        body = {"_esm": self._module(), "_css": _style(), **traits}
        return type(type(self).__name__, (anywidget.AnyWidget,), body)(**self.state)
