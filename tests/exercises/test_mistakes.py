"""The table of mistakes: pieces of one line or of several, messages that go on, functions."""

from types import SimpleNamespace

import pytest

from d2lmini.exercises.engine.document import Block, DocumentError
from d2lmini.exercises.engine.mistakes import mistakes

SOLUTION = "def f(x):\n    if x:\n        return 1\n    return x | 2\n"
NOWHERE = SimpleNamespace(error=lambda line, sentence: DocumentError("own.md", line, sentence))


def found(text, **scope):
    return [(m.change, m.diagnosis, m.message) for m in mistakes(NOWHERE, Block("mistakes", 9, text), scope, SOLUTION)]


def test_rows():
    assert found("return 1\n> return 2 | two | it is two\n> return 3 | three\n") == [
        (("return 1", "return 2"), "two", "it is two"),
        (("return 1", "return 3"), "three", ""),
    ]


def test_a_piece_and_what_stands_instead_may_have_several_lines_and_be_nothing():
    text = "if x:\n        return 1\n> if not x:\n>>         return 1 | not | the other\n> | nothing | no branch\n"
    assert found(text) == [
        (("if x:\n        return 1", "if not x:\n        return 1"), "not", "the other"),
        (("if x:\n        return 1", ""), "nothing", "no branch"),
    ]


def test_a_message_goes_on_and_a_bar_may_be_code():
    text = (
        "return x | 2\n> return x & 2 | and |\n    another\n    operator\n> return x | 3 | three | it is\n    three\n"
    )
    assert found(text) == [
        (("return x | 2", "return x & 2"), "and", "another operator"),
        (("return x | 2", "return x | 3"), "three", "it is three"),
    ]


def test_a_function_is_named_or_made():
    def wrong(x):
        return x

    ((change, *rest),) = found("= wrong | same | x itself\n", wrong=wrong)
    assert change is wrong and rest == ["same", "x itself"]
    ((change, *_),) = found("= made(3) | same\n", made=lambda n: lambda x: n)
    assert change(0) == 3


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("return 1\n", 10, "below this piece of the solution no mistake follows"),
        ("return 1\n> return 2\n", 11, "a mistake is `> what stands there instead"),
        ("> return 2 | two\n", 10, "above this mistake the piece of the solution is missing"),
        ("return\n> stop | two\n", 10, "the text 'return' occurs 2 times"),
        ("= absent | two\n", 10, "'absent' is no wrong answer"),
    ],
)
def test_a_row_that_is_not_of_the_form_is_told_with_its_line(text, line, sentence):
    with pytest.raises(DocumentError, match=rf"own\.md:{line}: ") as caught:
        found(text)
    assert sentence in str(caught.value)
