"""A file that should be a notebook: what it is instead is told."""

import json

import pytest
from stand_ins import no_answer_runs

from d2lmini.exercises import check_file

CELL = {"cell_type": "code", "source": ["# exercise: udl-12.5b\n", "answer = 'ü'"]}
NOTEBOOK = json.dumps({"cells": [CELL], "metadata": {}, "nbformat": 4}, ensure_ascii=False, indent=1)
CONFLICT = NOTEBOOK.replace(' "metadata"', '<<<<<<< HEAD\n "metadata"\n=======\n "x"\n>>>>>>> other\n "metadata"')
OLD = json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["x"]}]}], "nbformat": 3})


@pytest.fixture
def told(tmp_path, monkeypatch):
    def judge(notebook, rules):
        return dict.fromkeys(notebook["answers"], ("passed", "ok", str(notebook["answers"])))

    no_answer_runs(monkeypatch, judge)

    def tell(data):
        (tmp_path / "a.ipynb").write_bytes(data if isinstance(data, bytes) else data.encode())
        (line,) = check_file(tmp_path / "a.ipynb")
        return line

    return tell


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_notebook_is_read_with_any_byte_order_mark(encoding, told):
    assert told(NOTEBOOK.encode(encoding)).startswith("PASSED") and "ü" in told(NOTEBOOK.encode(encoding))


@pytest.mark.parametrize(
    ("data", "fragment"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("\ufeff", "the file is empty"),
        (bytes(5000), "the file is empty"),
        (CONFLICT, "merge conflict"),
        (CONFLICT.replace("\n", "\r\n"), "merge conflict"),
        (OLD, "nbformat 3"),
        (OLD.replace('"nbformat": 3', '"nbformat": 2'), "nbformat 2"),
        ("<!DOCTYPE html>\n<html><title>Sign in</title>", "HTML page"),
        ("\n\n  <HTML lang='de'>", "HTML page"),
        ("<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "HTML page"),
        (NOTEBOOK[:-30], "cut off"),
        (NOTEBOOK[:40], "cut off"),
        ("This is no notebook.", "no JSON"),
        ("# exercise: udl-12.5b\nanswer = 'A'\n", "no JSON"),
        ("[1, 2]", "no notebook"),
        ("{}", "no notebook"),
        ("null", "no notebook"),
        ('{"error": "not found"}', "no notebook"),
        (json.dumps({"cells": 5}), "no notebook"),
        (json.dumps({"cells": [CELL, 5]}), "cell 2"),
        (json.dumps({"cells": [{"cell_type": "code"}]}), "cell 1"),
        (json.dumps({"cells": [CELL, CELL, {**CELL, "source": [1]}]}), "cell 3"),
        (json.dumps({"cells": [{**CELL, "source": None}]}), "cell 1"),
        ("[" * 200_000, "no notebook"),
        (b"PK\x03\x04\x14\x00\x08", "zip archive"),
        (b"\x1f\x8b\x08\x00", "archive"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X", "Mac"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"),
        (NOTEBOOK.encode("latin-1"), "not UTF-8"),
        (b"\xff\xfe\x00\x01", "not"),
        ('{"cells": [], "metadata": {}, "nbformat": 4}', "no cell"),
    ],
)
def test_what_a_file_is_instead_is_told(data, fragment, told):
    assert fragment in told(data)


def test_a_file_that_is_far_too_large_is_not_read(told, tmp_path):
    with open(tmp_path / "a.ipynb", "wb") as file:
        file.truncate(2**36)  # a hole, which takes no room on the disk
    (line,) = check_file(tmp_path / "a.ipynb")
    assert line.startswith("UNREADABLE") and "65,536 MiB" in line
