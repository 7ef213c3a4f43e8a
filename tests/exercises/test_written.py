"""From a document to an exercise: prose, code, options; and what is wrong with either."""

import inspect
import traceback

import pytest
import torch
from documents import DOCUMENT, assert_is_refused

from d2lmini.exercises.engine import source
from d2lmini.exercises.engine.judge import BROKEN, judge
from d2lmini.exercises.engine.written import key_of, read


def written(tmp_path, text=DOCUMENT, name="own_01_9.md"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read(path)


def test_prose_is_as_it_was_written(tmp_path):
    exercise = written(tmp_path)
    code, choice = exercise.parts
    assert (exercise.key, exercise.source, exercise.title) == ("own-01.9", "own", "Twice as much")
    assert exercise.statement.startswith("The double of a tensor") and code.prompt == "Write `twice(x)`."
    assert code.hints == ["A tensor can be multiplied by a number.", "`2 * x`."]
    assert code.explanation == "A sum of equals is a product."
    assert dict(code.advice) == {"values": "Compute one entry by hand."}
    assert dict(code.without) == {"alone": "there is no batch here."}
    assert (code.seconds, code.min_checks, code.kind, choice.kind) == (20, 1, "code", "choice")
    assert choice.prompt == "What does it cost?"
    assert [(option.text, option.right) for option in choice.options][1] == ("a multiplication an entry", True)
    assert choice.options[0].why == "Every entry is multiplied."


@pytest.mark.parametrize(
    ("name", "key", "source"),
    [
        ("d2l_11_3_1.md", "d2l-11.3.1", "D2L 11.3, exercise 1"),
        ("udl_12_10.md", "udl-12.10", "UDL problem 12.10"),
        ("own_08_2.md", "own-08.2", "own"),
    ],
)
def test_key_and_source_follow_from_the_name(tmp_path, name, key, source):
    exercise = written(tmp_path, name=name)
    assert key_of(name) == exercise.key == key and exercise.source == source
    assert [part.key for part in exercise.parts] == [f"{key}a", f"{key}b"]


def test_the_reader_starts_from_what_stands_above_the_solution(tmp_path):
    part = written(tmp_path).parts[0]
    assert source.stub(part).endswith('    """\n    raise NotImplementedError  # your code here\n')
    assert source.solution(part).endswith('    """\n    doubled = 2 * x\n    return doubled\n')
    given = DOCUMENT.replace("    doubled = 2 * x\n", "    x = x + 0\n    ### BEGIN SOLUTION\n    doubled = 2 * x\n", 1)
    given = given.replace("    return doubled\n", "    ### END SOLUTION\n    return doubled\n", 1)
    stub = source.stub(written(tmp_path, given, "own_01_8.md").parts[0])
    assert "x = x + 0\n    raise NotImplementedError" in stub and stub.endswith("    return doubled\n")


def test_right_answers_pass_and_mistakes_get_their_diagnosis(tmp_path):
    part = written(tmp_path).parts[0]
    assert [answer.__name__ for answer in part.alternatives] == ["added", "reference"]
    assert all(judge(part, answer, seed=0).passed for answer in (part.answer, *part.alternatives))
    codes = [judge(part, source.mutant(part, mutant), seed=0).code for mutant in part.mutants]
    assert codes == ["same", "one-more", "factor", "raised", "squared"]


def test_another_right_answer_may_have_the_name_of_the_solution(tmp_path):
    part = written(tmp_path, DOCUMENT.replace("def added(x):", "def twice(x):")).parts[0]
    assert part.answer.__doc__.startswith("The double.") and part.alternatives[0].__doc__ is None
    assert part.verify.__globals__["twice"] is part.answer


def test_code_has_the_lines_of_its_document(tmp_path):
    part = written(tmp_path).parts[0]
    with pytest.raises(TypeError) as caught:
        part.answer(object())
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert frame.filename.endswith("own_01_9.md") and frame.line == "doubled = 2 * x"
    assert DOCUMENT.splitlines()[frame.lineno - 1].strip() == frame.line
    assert inspect.getsource(part.verify).startswith("def verify(t, answer):")  # what a debugger shows


def test_a_part_may_use_what_the_parts_above_it_define(tmp_path):
    below = DOCUMENT[DOCUMENT.index("## a:") : DOCUMENT.index("## b:")].replace("## a:", "## b:")
    below = below.replace("def reference(x):\n    return x * 2\n\n\n", "")
    parts = written(tmp_path, DOCUMENT[: DOCUMENT.index("## b:")] + below).parts
    assert judge(parts[1], lambda x: 2 * x, seed=0).passed
    alone = written(tmp_path, DOCUMENT[: DOCUMENT.index("## a:")] + below.replace("## b:", "##"), "own_01_7.md")
    assert judge(alone.parts[0], lambda x: 2 * x, seed=0).status == BROKEN


@pytest.mark.parametrize(
    ("old", "new", "at", "sentence"),
    [
        ("- [x] a", "- [ ] a", "## b: choice", "a choice needs one right option"),
        ("- [ ] two", "- [x] two", "## b: choice", "a choice needs one right option"),
        ("  One is enough.\n", "One is enough.\n", "One is", "below an option stands why it is right or wrong"),
        ("  One is enough.\n", "", "- [ ] two", "nothing on why it is right or wrong"),
        ("1. Count.", "Count.", "Count.", "a list of hints is expected here"),
        ("    doubled = 2 * x\n    return", "    doubled = = x\n    return", "    doubled = =", "not valid Python"),
        ("def reference(x):", "reference = absent\ndef reference(x):", "reference =", "does not run: NameError"),
        ("def verify(t, answer)", "def verified(t, answer)", "```python check", "a function verify(t, answer)"),
        ("```python check", "```python also", "## a: code", "this part has 0 blocks ```python check, it needs one"),
        ("\n2 * x\n>", "\n2 * y\n>", "2 * y", "the text '2 * y' occurs 0 times in the solution"),
        ("= partial(raised, 2)", "= absent", "= absent", "'absent' is no wrong answer of ```python wrong"),
        ("- **values**: Compute", "- values: Compute", "- values", "expected `- **...**: a sentence`"),
        ("- without **alone**: ", "- without alone: ", "- without", "expected `- without **...**: a sentence`"),
        ('    """The double.', '    x = """The double.', "```python answer", "needs a docstring and code below it"),
        ("What does it cost?\n", "```python check\n1\n```\n", "```python check", "a choice has no code"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path, old, new, at, sentence):
    assert DOCUMENT.count(old) == 1
    assert_is_refused(read, tmp_path / "own_01_9.md", DOCUMENT.replace(old, new), at, sentence)


@pytest.mark.parametrize("name", ["exercise.md", "my_exercise.md", "own_08_9a.md", "own-08.9.md"])
def test_a_name_that_is_no_key_is_refused(tmp_path, name):
    assert_is_refused(read, tmp_path / name, DOCUMENT, "# Twice", "its name must be its key, as own_08_9.md")


def test_the_code_of_two_documents_does_not_mix(tmp_path):
    first = written(tmp_path).parts[0]
    written(tmp_path, DOCUMENT.replace("2 * x", "5 * x"), "own_01_6.md")
    assert torch.equal(first.answer(torch.ones(2)), torch.full((2,), 2.0))
