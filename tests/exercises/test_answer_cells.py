"""What the grader reads of a notebook: answer cells as readers write them, magics and all."""

import ast

import pytest

from d2lmini.exercises.grading.answer_cells import answers, defined_elsewhere, imports, plain_python


@pytest.mark.parametrize(
    "header",
    [
        "# exercise: udl-12.5b",
        "#exercise: udl-12.5b",
        "# Exercise: UDL-12.5B",
        "  ##  EXERCISE :   12.5b   ",
        "%%time\n# exercise: udl-12.5b",
        "%%capture out\n\n%%time\n\n#exercise:udl-12.5b my answer",
    ],
)
def test_header_may_be_written_in_many_ways(header):
    ((key, source),) = answers(["import math", header + "\nanswer = 'B'"]).items()
    assert key == "udl-12.5b"
    names = {}
    exec(source, names)
    assert names["answer"] == "B"


def test_header_with_no_known_key_stays_as_it_is():
    cells = ["# exercise: d2l-99.9", "# exercise: UDL-12.5", "# exercise: =cmd()", "# my exercise: udl-12.5b"]
    cells += ["# exercise:\nanswer = 'B'", f"# exercise: {9 * '9' * 1000}"]
    assert list(answers(cells)) == ["d2l-99.9", "UDL-12.5", "=cmd()", 9000 * "9"]


def test_the_last_of_two_cells_counts_however_their_keys_are_written():
    assert answers(["# exercise: udl-12.5b\nx = 1", "# exercise: 12.5B\nx = 2"]) == {
        "udl-12.5b": "# exercise: 12.5B\nx = 2"
    }


def test_magics_inside_are_dropped_and_lines_keep_their_numbers():
    source = "%matplotlib inline\ndef f(x):\n    !ls it's (\n    %timeit f(2)\n    return x\nf?\n?f\nprint(f(1)\n"
    want = "pass\ndef f(x):\n    pass\n    pass\n    return x\npass\npass\nprint(f(1)\n"
    assert plain_python(source) == want
    with pytest.raises(SyntaxError) as caught:
        ast.parse(plain_python(source))
    assert caught.value.lineno == 8


@pytest.mark.parametrize(
    "source",
    [
        'x = """\n%d of\n!\n"""',
        "x = (17\n%d\n%(3))",
        "x = '%d' \\\n% 3",
        "\0",
        "x = (\n# why?\n1)",
        "x = 'a\x0cb\u2028'",
    ],
)
def test_what_is_no_magic_stays(source):
    assert plain_python(source) == source
    assert plain_python(f"%time\n{source}") in (f"pass\n{source}", f"%time\n{source}")


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("x = !ls | head", "x = get_ipython()"),
        ("    a.b[0], c = %timeit -o f(x == 1)", "    a.b[0], c = get_ipython()"),
        ("%time x = f(1)", "x = f(1)"),
        ("%time -q f(1)", "pass"),
        ("torch.*lin*?", "pass"),
        ("f(x)[0]??", "pass"),
        ("!ls \\\n  -la \\\n  x", "pass\npass\npass"),
        ("x = 1  # why?", "x = 1  # why?"),
        ("x = (1  # why?", "x = (1  # why?"),
        ("x != %", "x != %"),
        ("def f(: pass", "def f(: pass"),
    ],
)
def test_what_ipython_alone_understands_does_no_harm(line, plain):
    assert plain_python(f"y = 0\n{line}\n") == f"y = 0\n{plain}\n"


def test_a_cell_that_cannot_be_read_stays():
    deep = "-" * 300_000 + "1"
    assert plain_python(deep) == deep and imports([deep]) == [] and not defined_elsewhere("x", [deep])
    long = "x = 1\n" * 10**6
    assert plain_python(long) == long and imports([long + "import math"]) == []
    many = "%time\n" * 10_000  # of a hostile notebook
    assert plain_python(many).count("pass") == 100


def test_imports_are_found_beside_magics():
    assert imports(["%%time\nimport math\n!pip list\nfrom a import b", "%%bash\nls | grep import", "import ("]) == [
        "import math",
        "from a import b",
    ]


def test_a_name_that_another_cell_defines():
    cells = ["%%time\nimport math\ndef helper(x):\n    inner = 1", "class A: y = 2\nfor i in []: z = 1", "def ("]
    assert [n for n in ("helper", "A", "i", "z", "x", "inner", "y", "math", "no") if defined_elsewhere(n, cells)] == [
        "helper",
        "A",
        "i",
        "z",
    ]
