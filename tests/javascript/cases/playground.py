"""Settings of the playground: what they are at first, their choices and ranges; and addresses that have them."""

from d2lmini.figures.playground import SETTINGS, Playground

MODULE = "tests/javascript/playground.js"


def cases():
    first = Playground().state["settings"]
    assert first == {key: value for key, (value, _, _) in SETTINGS.items()}
    yield "firstSettings", [], first
    yield "choices", [], {key: kept_by(*setting) for key, setting in SETTINGS.items()}
    changed = {"task": "look up", "heads": 4, "causal": False, "rate": 1e-05, "seed": 7}
    address = "task=look+up&causal=false&heads=4&rate=0.00001&seed=7"
    yield "addressOf", [first | changed], address
    yield "settingsOf", [address], {"settings": first | changed, "unknown": []}
    yield "settingsOf", ["optimiser=sgd"], {"settings": first | {"optimizer": "sgd"}, "unknown": []}  # its old name
    wrong = "task=fly&heads=3&rate=11&rate=&blocks=1.5&causal=yes&toString=1&size=2&residual=true"
    unknown = ["task=fly", "heads=3", "rate=11", "rate=", "blocks=1.5", "causal=yes", "toString=1"]
    yield "settingsOf", [wrong], {"settings": first | {"size": 2}, "unknown": unknown}


def kept_by(first, kept, _):
    """Choices, or the range: least, most, whether whole."""
    return [*kept, isinstance(first, int)] if isinstance(kept, tuple) else kept
