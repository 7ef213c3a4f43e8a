"""A document is taken apart, or refused in one sentence with file and line."""

import pytest
from documents import DOCUMENT, assert_is_refused

from d2lmini.exercises.engine.document import DocumentError, take_apart


def document(tmp_path, text, name="own_01_9.md"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_code_has_the_lines_of_the_document(tmp_path):
    lines, code = DOCUMENT.splitlines(), take_apart(document(tmp_path, DOCUMENT)).code.splitlines()
    assert all(line in ("", lines[number]) for number, line in enumerate(code))
    assert code.count("    doubled = 2 * x") == 1 and "> doubled = x | same | this is x itself" not in code


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf" + DOCUMENT.encode(), DOCUMENT.replace("\n", "\r\n").encode()])
def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path, text):
    plain, other = take_apart(document(tmp_path, DOCUMENT)), take_apart(document(tmp_path, text, "own_01_8.md"))
    assert other.parts == plain.parts and other.opening == plain.opening


@pytest.mark.parametrize(
    ("old", "new", "at", "sentence"),
    [
        ("# Twice as much\n", "Twice as much\n", "Twice", "must begin with its title"),
        ("## a: code", "## a: coding", "## a: coding", "the kinds are code, count, identity"),
        ("## a: code", "## code", "## code", "this part must be `## a: code`"),
        ("## b: choice", "## a: choice", "## a: choice", "this part must be `## b: choice`"),
        ("seconds=20", "second=20", "## a: code", "'second=20' is none of seconds=20 and min_checks=5"),
        ("seconds=20", "seconds=long", "## a: code", "'seconds=long' is none of"),
        ("### Hints\n\n1. A", "### Hint\n\n1. A", "### Hint", "below a part these are: Hints, Also right"),
        ("### Check\n", "### Mistakes\n", "### Mistakes", "this part has two sections 'Mistakes'"),
        ("```python also", "```python other", "```python other", "cannot be 'other'; its role is one of answer"),
        ("    return doubled\n```\n", "    return doubled\n", "```python answer", "this block of code does not end"),
    ],
)
def test_what_is_not_of_the_form_is_told_with_its_line(tmp_path, old, new, at, sentence):
    assert DOCUMENT.count(old) >= 1
    assert_is_refused(take_apart, tmp_path / "own_01_9.md", DOCUMENT.replace(old, new, 1), at, sentence)


def test_a_file_that_is_no_text_or_has_no_part_is_refused(tmp_path):
    with pytest.raises(DocumentError, match=r"\.md:2: this is not UTF-8"):
        take_apart(document(tmp_path, b"# Title\n\xff\xfe"))
    for text, sentence in (("", "must begin with its title"), ("# Title\n\nWords.\n", "it has no part")):
        with pytest.raises(DocumentError, match=rf"\.md:1: .*{sentence}"):
            take_apart(document(tmp_path, text))
    with pytest.raises(FileNotFoundError):
        take_apart(tmp_path / "absent.md")


def test_a_heading_within_a_block_of_code_is_none(tmp_path):
    text = DOCUMENT.replace("\n## a:", "\n```text\n## no part\n```\n\n## a:", 1)
    found = take_apart(document(tmp_path, text))
    assert len(found.parts) == 2 and "## no part" in found.opening.text
