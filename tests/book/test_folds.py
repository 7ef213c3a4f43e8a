"""What is tagged `fold`: the metadata for JupyterLab and Colab, the setup cell, and which parts answer a prediction."""

import nbformat
import pytest
from conftest import sphinx_extension
from docutils import nodes
from docutils.utils import new_document
from small_book import code, empty_page, notebook, text

from tools import chapters, folds, setup_cell

predictions = sphinx_extension("predictions")
transform = sphinx_extension("folds")


def test_a_folded_heading_is_collapsed_in_jupyterlab_and_colab():
    made = notebook(text("# A page"), text("## Further", "fold"), text("Words."), text("### Aside", "fold"))
    for at in (1, 3):
        assert made.cells[at].metadata["jp-MarkdownHeadingCollapsed"] is True
        assert made.cells[at].metadata["id"] == made.cells[at].id == f"cell-0{at}"
    assert made.metadata.colab == {"collapsed_sections": ["cell-01", "cell-03"]}
    assert dict(made.cells[0].metadata) == dict(made.cells[2].metadata) == {}
    nbformat.validate(made)


def test_folded_code_is_hidden_in_jupyterlab_and_a_form_on_colab():
    made = notebook(code("# @title Check: it agrees\nassert True", "fold"), code("1 + 1"))
    assert made.cells[0].metadata == {"tags": ["fold"], "jupyter": {"source_hidden": True}, "cellView": "form"}
    assert made.cells[1].metadata == {} and "colab" not in made.metadata


def test_what_is_no_longer_tagged_is_no_longer_folded():
    made = notebook(text("## Further", "fold"), code("# @title Plot: a line\nplot()", "fold"))
    again = nbformat.from_dict(made)
    assert folds.fold(again) == made
    for cell in again.cells:
        del cell.metadata["tags"]
    again.cells[1].source = "plot()"
    folds.fold(again)
    assert [dict(cell.metadata) for cell in again.cells] == [{}, {}] and "colab" not in again.metadata


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (text("## Further\n\nMore words.", "fold"), "cell-00, '## Further': .* is one heading"),
        (text("(target)=\n## Further", "fold"), "is one heading"),
        (text("# A page", "fold"), "## or smaller"),
        (text("Words.", "fold"), "is one heading"),
        (code("assert True", "fold"), "cell-00, 'assert True': a code cell tagged fold begins with '# @title"),
        (code("x = 1\n# @title Late", "fold"), "begins with '# @title"),
        (code("# @title\nx = 1", "fold"), "begins with '# @title"),
        (code("# @title Check: one\nx = 1"), "with a '# @title' is tagged fold"),
    ],
)
def test_another_shape_is_refused(cell, message):
    with pytest.raises(ValueError, match=message):
        notebook(cell)


def test_normalizing_a_chapter_keeps_what_folds_it():
    made = notebook(text("## Further", "fold"), code("# @title Plot: a line\nplot()", "fold"))
    again = chapters.normalize(nbformat.from_dict(made))
    assert again.cells == [
        c | {"outputs": [], "execution_count": None} if c.cell_type == "code" else c for c in made.cells
    ]
    assert again.metadata == made.metadata


@pytest.mark.parametrize("page", ["import math\n\nprint(math.pi)", ""])
def test_the_setup_cell_keeps_what_its_page_does(page):
    source = setup_cell.source(page)
    assert source.startswith("# @title Setup: ") and source.endswith(f"# This page\n{page}".rstrip("\n"))
    assert setup_cell.page(source) == page
    made = chapters.normalize(notebook(code(source.replace("pip", "conda"), "setup", "fold")))
    assert made.cells[0].source == source


def test_the_setup_cell_says_how_threads_wait_before_its_page_loads_torch(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    exec(setup_cell.source("waits = os.environ['OMP_WAIT_POLICY']"), names := {})
    assert names["waits"] == "PASSIVE"


@pytest.mark.parametrize(
    ("source", "page"),
    [
        ("", ""),
        ("# This page\nimport math", "import math"),
        ("import math\nimport torch", "import math\nimport torch"),  # nothing that an author wrote is lost
        (setup_cell.source().removesuffix("\n\n# This page"), ""),
        (setup_cell.source().removesuffix("# This page") + "import math", "import math"),
    ],
)
def test_a_setup_cell_that_is_not_filled_in_yet(source, page):
    untitled = source.partition("\n")[2] if source.startswith("# @title") else source
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(untitled, metadata={"tags": ["setup"]})])
    cell = chapters.normalize(made).cells[0]
    assert cell.source == setup_cell.source(page) and cell.metadata.tags == ["setup", "fold"]


def paragraph(source, cell, *classes):
    node = nodes.paragraph("", source, classes=list(classes))
    node.line = cell * 10_000 + 1
    return node


def asks(source, cell):
    node = paragraph("", cell)
    node += [nodes.strong("", "Predict:"), nodes.Text(f" {source}")]
    return node


def runs(*classes, markdown=False):
    shown = [nodes.container("", nodes.paragraph("", "shown"), mime_type="text/markdown")] if markdown else []
    return nodes.container("", *shown, classes=["cell", *classes])


def hidden(*behind):
    """Which of the nodes behind a question in cell 1 are put into its container."""
    document, section = empty_page(), nodes.section()
    document += section
    section += [asks("how many?", 1), *behind]
    predictions.Predictions(document).apply()
    return [behind.index(node) for box in section if "predict-answer" in box.get("classes", ()) for node in box]


P, HEADING = paragraph, nodes.section
LIST, TABLE, FORMULA = nodes.bullet_list, nodes.table, nodes.math_block


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ([runs(), P("answer", 3), P("more", 3)], [0, 1]),
        ([runs(), runs(), P("answer", 4), runs()], [0, 1, 2]),
        ([runs(), P("answer", 3), LIST(), FORMULA(), P("more", 3)], [0, 1, 2, 3]),
        ([runs(), P("answer", 3), TABLE(), runs()], [0, 1, 2]),
        ([runs(), LIST(), P("answer", 3), P("more", 3)], [0, 1, 2]),
        ([P("answer", 2), P("more", 2), runs()], [0]),
        ([P("answer", 2), FORMULA(), P("more", 2)], [0, 1]),
        ([P("said first", 1), runs(), P("answer", 3), P("more", 3)], [0, 1, 2]),
        ([P("answer", 1), P("more", 1), HEADING()], [0]),
        ([runs(), runs("tag_fold", markdown=True), P("more", 4)], [0, 1]),
        ([runs("tag_fold", markdown=True), runs(), P("more", 4)], [0]),
        ([runs(markdown=True), P("answer", 3), P("more", 3)], [0, 1]),
        ([runs("tag_fold"), P("answer", 3), P("more", 3)], [0, 1]),
        ([runs(), HEADING()], [0]),
        ([runs(), P("touch", 3, "predict"), P("answer", 3)], [0]),
        ([HEADING()], []),
        ([], []),
    ],
)
def test_what_answers_a_prediction(behind, expected):
    assert hidden(*behind) == expected


def test_two_questions_have_two_answers_and_each_its_own_id():
    document, section = empty_page(), nodes.section()
    document += section
    section += [asks("how many?", 1), runs(), asks("how many?", 3), runs(), asks("which?", 5), runs()]
    predictions.Predictions(document).apply()
    boxes = [node for node in section if "predict-answer" in node["classes"]]
    assert len(boxes) == 3 and [len(box) for box in boxes] == [1, 1, 1]
    names = [box["question"] for box in boxes]
    assert len(set(names)) == 3 and names[1] == f"{names[0]}-again"
    assert [node["ids"] for node in section if "predict" in node["classes"]] == [[name] for name in names]


def test_before_you_touch_hides_nothing():
    document, section = empty_page(), nodes.section()
    document += section
    asked = paragraph("", 1)
    asked += [nodes.strong("", "Before you touch it:"), nodes.Text(" what will it do?")]
    section += [asked, runs(), P("answer", 3)]
    predictions.Predictions(document).apply()
    assert len(section) == 3 and asked["classes"] == ["predict"] and asked["ids"] == []


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("is it (a) one, (b) two or (c) three?", "abc"),
        ("is it (b) two, or (a) one, as (b) says?", "ba"),
        ("how many?", ""),
        ("what does (a) do?", ""),
        ("what is f(a) + f(b)?", ""),
    ],
)
def test_a_question_with_letters_is_a_choice(question, choices):
    html = predictions.form(question, "predict-1")
    assert html.count('type="radio"') == len(choices)
    assert all(f'value="({letter})"' in html for letter in choices)
    assert ('name="said" required pattern' in html) == (not choices)


def test_a_title_leaves_the_code():
    cell = nodes.container("", nodes.literal_block("", "# @title Check: all {x} agree\nassert x"), classes=["tag_fold"])
    document = new_document("page")
    document += cell
    transform.mark(document, [])
    assert cell["fold_title"] == "Check: all {x} agree"
    assert cell[0].astext() == cell[0].rawsource == "assert x"
