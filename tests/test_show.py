"""Tables and sentences of a run: what a notebook and what a terminal shows."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from d2lmini.show import Table, Text, show_table, show_text


def cell(value):
    """How a value is written, in a terminal and in a notebook."""
    table = Table([[value]], ["x"])
    html = table._repr_html_().split("<td", 1)[1].split(">", 1)[1].split("</td>")[0]
    return repr(table).split("\n")[2], html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.500"),
        (1 / 3, "0.333"),
        (0.00123456, "0.00123"),
        (12.0, "12.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1234.5678, "1,235"),
        (0.0, "0"),
        (1_234_567, "1,234,567"),
        (-7, "-7"),
        (True, "yes"),
        (False, "no"),
        (None, ""),
        ("as it is", "as it is"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (np.float32(0.25), "0.250"),
        (np.int64(1000), "1,000"),
        (torch.tensor(0.125), "0.125"),
        (torch.tensor([3]), "3"),
    ],
)
def test_how_a_cell_is_written(value, text):
    assert cell(value)[0] == text
    assert cell(value)[1] == text.replace("-", "−")


@pytest.mark.parametrize(
    ("value", "text", "html"),
    [
        (1.234e-14, "1.23e-14", "1.23 × 10<sup>−14</sup>"),
        (-2.5e9, "-2.50e9", "−2.50 × 10<sup>9</sup>"),
        (0.0001, "0.000100", "0.000100"),
        (0.00009, "9.00e-5", "9.00 × 10<sup>−5</sup>"),
    ],
)
def test_powers_of_ten_where_nothing_else_is_readable(value, text, html):
    assert cell(value) == (text, html)


def test_a_table_in_a_terminal_is_aligned():
    table = Table([["encoder", 1200, 0.5], ["a", 7, 12.25]], ["model", "parameters", "loss"], "What **it** costs.")
    assert repr(table).splitlines() == [
        "What it costs.",
        "model    parameters   loss",
        "-------  ----------  -----",
        "encoder       1,200  0.500",
        "a                 7   12.2",
    ]


def test_a_table_in_a_notebook_has_headers_a_caption_and_a_scroller():
    html = Table([["a < b", 1200], ["c", 5]], ["name", "n"], "A & B.")._repr_html_()
    assert html.startswith('<div class="pst-scrollable-table-container"') and html.endswith("</table></div>")
    assert html.count('<th scope="col"') == 2 and html.count("<tr>") == 3
    assert "<caption>A &amp; B.</caption>" in html
    assert '<td style="text-align:left">a &lt; b</td><td style="text-align:right">1,200</td>' in html
    assert '<th scope="col" style="text-align:right">n</th>' in html


@pytest.mark.parametrize(
    ("cells", "side"),
    [
        (["79 %", "5 %"], "right"),
        (["1.2x", ""], "right"),
        (["-0.5 ± 0.1", "3"], "right"),
        (["12", "a word"], "left"),
        (["3 heads of it", "4"], "left"),
        (["", ""], "left"),
        (["nan", "0.5"], "right"),
    ],
)
def test_which_columns_are_set_to_the_right(cells, side):
    assert Table([[text] for text in cells], ["x"])._repr_html_().count(f"text-align:{side}") == 3


def test_marks_of_markdown_in_cells():
    table = Table([["`a_b*c`", "$x<y$", "**most** of *it*, 2 * 3 * 4"]], ["code", "$L$", "words"])
    html = table._repr_html_()
    assert "<code>a_b*c</code>" in html and "<strong>most</strong> of <em>it</em>, 2 * 3 * 4" in html
    assert r'<span class="math notranslate nohighlight">\(x&lt;y\)</span>' in html and r"\(L\)" in html
    assert repr(table).splitlines()[2].split("  ") == ["a_b*c", "x<y", "most of it, 2 * 3 * 4"]


@pytest.mark.parametrize(
    ("rows", "columns", "error", "message"),
    [
        ([[1, 2], [3]], ["a", "b"], ValueError, r"row 1 has 1 cells for 2 columns: \[3\]"),
        ([], ["a"], ValueError, "got 1 columns and 0 rows"),
        ([[]], [], ValueError, "got 0 columns and 1 rows"),
        ([[1, {}]], ["a", "b"], TypeError, "row 0, column 'b' holds {}, expected a number or a str"),
        ([[torch.ones(2)]], ["a"], TypeError, "row 0, column 'a' holds tensor"),
    ],
)
def test_a_table_of_what_does_not_fit(rows, columns, error, message):
    with pytest.raises(error, match=message):
        show_table(rows, columns)


def test_rows_may_be_anything_that_is_gone_through():
    assert repr(Table(zip("ab", (1, 2), strict=True), ("x", "y"))).splitlines()[2:] == ["a  1", "b  2"]


def test_a_terminal_prints(capsys):
    assert show_table([[1]], ["x"]) is None
    assert capsys.readouterr().out == "x\n-\n1\n"
    assert show_text("After **100** steps `loss` is $1.5$: see [chapter 3](03_x.ipynb#y), a_b, 2 * 3.") is None
    assert capsys.readouterr().out == "After 100 steps loss is 1.5: see chapter 3, a_b, 2 * 3.\n"


def test_text_over_several_lines_is_no_code():
    text = Text("""One,
        two.

        - three""")
    assert text._repr_markdown_() == repr(text) == "One,\ntwo.\n\n- three"


def test_sums_of_money_are_no_mathematics():
    assert repr(Text("from $5 to $6")) == "from $5 to $6"


def test_a_running_shell_displays_also_in_a_loop(monkeypatch, capsys):
    shown = []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    for i in range(2):
        show_table([[i]], ["x"])
        show_text(f"**{i}**")
    assert [type(thing) for thing in shown] == [Table, Text] * 2 and capsys.readouterr().out == ""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    show_text("*a*")
    assert len(shown) == 4 and capsys.readouterr().out == "a\n"


def test_it_needs_neither_ipython_nor_matplotlib_nor_torch():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['IPython', 'matplotlib', 'torch', 'numpy']));"
        "import d2lmini as d2l; d2l.show_table([[0.5]], ['loss']); d2l.show_text('**done**')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["loss", "-----", "0.500", "done"], done.stderr
