"""Records: how they are written, and which may stand among the results of the package."""

import json

import pytest

from d2lmini.lab import records


def test_lists_of_numbers_take_one_line():
    record = {"a": [1.5, 2.0], "b": [[1], [2, 3]], "c": "[\n 1,\n 2\n]", "d": [], "e": [{"x": 1}]}
    text = records.dump(record)
    assert json.loads(text) == record
    assert '"a": [1.5, 2.0]' in text and "[2, 3]" in text


def test_a_record_is_there_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "toy.json"
    records.write(path, lambda: {"a": 1})

    def fails():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        records.write(path, fails)
    assert json.loads(path.read_text()) == {"a": 1} and list(path.parent.iterdir()) == [path]
