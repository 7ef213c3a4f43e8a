"""The list of capitals is in order, holds nothing twice, and is spelled alike; some facts by hand."""

import re

from d2lmini.data.capitals import capitals


def test_in_order_and_nothing_twice():
    found = capitals()
    lines = (capitals.__globals__["_FILE"]).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(found) >= 150
    keys = [country.removeprefix("the ").lower() for country in found]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert len(set(found.values())) == len(found)


def test_spelling():
    word = r"(?:[A-Z][a-z]+(?:'[a-z]+)?|N'Djamena)"
    joined = rf"(?:la|of|and|the|au|{word})"
    name = re.compile(rf"{word}(?:[ -]{joined})*")
    for country, capital in capitals().items():
        assert name.fullmatch(country.removeprefix("the ")), country
        assert name.fullmatch(capital), capital


def test_some_by_hand():
    found = capitals()
    some = {"Australia": "Canberra", "Canada": "Ottawa", "Kenya": "Nairobi", "Turkey": "Ankara", "Peru": "Lima"}
    assert some.items() <= found.items() and found["the Netherlands"] == "Amsterdam"
    assert not {"Bolivia", "South Africa", "Sri Lanka", "Israel", "Switzerland", "Benin"} & found.keys()
