"""The transform that sets off what the reader is asked to predict."""

import pytest
from conftest import sphinx_extension
from docutils import nodes
from small_book import empty_page

predictions = sphinx_extension("predictions")


def paragraphs(*parts):
    """What becomes of a paragraph of words and bold words (tuples): texts, and whether each is set off."""
    document, section = empty_page(), nodes.section()
    section += nodes.paragraph(
        "", "", *(nodes.strong("", *p) if isinstance(p, tuple) else nodes.Text(p) for p in parts)
    )
    document += section
    predictions.Predictions(document).apply()
    return [(p.astext(), "predict" in p["classes"]) for p in document.findall(nodes.paragraph)]


@pytest.mark.parametrize("opening", ["Predict:", "Predict", "Before you touch it:", "Before you\ntouch anything:"])
def test_a_paragraph_that_asks_is_set_off(opening):
    assert paragraphs((opening,), " how many?") == [(f"{opening} how many?", True)]
    assert paragraphs("Guessing gives one in ten. ", (opening,), " how many?") == [
        ("Guessing gives one in ten. ", False),
        (f"{opening} how many?", True),
    ]


def test_other_bold_words_and_words_in_a_sentence_are_left_alone():
    assert paragraphs(("Shapes.",), " (B, T, h)") == [("Shapes. (B, T, h)", False)]
    assert paragraphs("Models ", ("Predict",), " words.") == [("Models Predict words.", False)]
