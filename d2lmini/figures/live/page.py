"""How models reach a page: files of the book that are loaded when a reader asks, or a notebook's own output."""

import base64
import json

from ... import results
from ...data.catalogue import SETS
from ...data.text import playground_text
from ...models.weights import files
from ..base import Figure, built, table

FREE = ("MIT", "LicenseRef-Public-Domain")  # what was learned from such data stands under no terms of theirs


def runtime_script(bundle=None):
    """The runtime as a script of the book; ``bundle``: another text than what ships. Returns: str, JavaScript."""
    # a worker is made of the function's text
    return f"d2lminiLive.runtime(() => {{ {bundle or built('runtime.js')} return d2lminiRuntime; }});\n"


def weights_script(name):
    """The exported weights of a model as a script of the book. Returns: str, JavaScript."""
    text = base64.b64encode(files.path_of(name).read_bytes()).decode()
    return f'd2lminiLive.deliver("{name}", "{text}");\n'


def text_script(name):
    """A text that the playground learns from as a script of the book. Returns: str, JavaScript."""
    return f'd2lminiLive.deliver("text_{name}", {json.dumps(playground_text(name))});\n'


def made_of(name):
    """The data sets in the record of the run that weights of a name are from. Returns: list of `DataSet`."""
    run = files.read(files.path_of(name)).metadata["run"]
    named = {file.split("/")[0] for file in results.load(run["experiment"], run["preset"])["data"]}
    return [SETS[data] for data in sorted(named & SETS.keys())]


def _told(name):
    """What a page says of weights before they are there; ``data``: those whose licence asks to be named.

    ``megabytes`` is the size of the weights' file. The book sends it as base64, a third longer, which a server that
    compresses (gzip; most do) brings back to the file's size or a little less; one that does not sends the third as
    well. From ``file://`` and in a notebook nothing is sent.
    """
    path = files.path_of(name)
    run = files.read(path).metadata["run"]
    try:
        made = made_of(name)
    except FileNotFoundError:  # a run of the reader's own, whose record is elsewhere
        made = []
    data = [f"{one.title.partition(':')[0]} ({one.licence})" for one in made if one.spdx not in FREE]
    said = {"name": name, "megabytes": path.stat().st_size / 1e6, "run": f"{run['experiment']} {run['preset']}"}
    return said | {"data": "; ".join(data)}


def check_sliders(**ranges):
    """Raises ValueError where a value is not within its slider: ``name=(value, lowest, highest)``."""
    for name, (value, low, high) in ranges.items():
        if not low <= value <= high:
            raise ValueError(f"{name} is {value}, expected {low} to {high}, as far as the slider goes")


class LiveFigure(Figure):
    """A figure that asks a trained model. Nothing is loaded before the reader presses the button.

    In the built book the model is a file of the book; in a notebook it is in the figure's own output, which so needs
    neither a server nor a kernel. A subclass passes what was recorded, which a reader without JavaScript sees, and one
    who has not loaded the model yet.

    Args:
        label: what the figure shows, in a sentence.
        weights: name of exported weights, as `d2lmini.trained` takes it.
        recorded: (caption, header, rows) of a table.
        more: names of other exported weights, which a reader may ask for as well.
        state: see `Figure`.

    Raises:
        WeightsError: there are no such weights.
    """

    def __init__(self, label, weights, recorded, more=(), **state):
        caption, header, rows = recorded
        super().__init__(
            label,
            weights=_told(weights),
            more=[_told(name) for name in more],
            recorded={"caption": caption, "header": list(header), "rows": [list(map(str, row)) for row in rows]},
            **state,
        )

    def brought(self):
        return runtime_script() + "".join(map(weights_script, self._names()))

    def _names(self):
        return [said["name"] for said in (self.state["weights"], *self.state["more"])]

    def fallback(self):
        recorded = self.state["recorded"]
        return table(recorded["header"], recorded["rows"], recorded["caption"])
