"""Files in SQuAD's format: what is read, and what is refused."""

import copy

import pytest
from toy_pairs import needs

from d2lmini.data.squad import FILES, load_questions, parse_squad
from d2lmini.data.store import DataError

CONTENT = {
    "version": "1.1",
    "data": [
        {
            "title": "Cats",
            "paragraphs": [
                {
                    "context": "The café's cat sleeps. It is grey.",
                    "qas": [
                        {"id": "a", "question": " Who sleeps? ", "answers": [
                            {"text": "cat", "answer_start": 11},
                            {"text": "The café's cat", "answer_start": 0},
                            {"text": "cat", "answer_start": 11},
                        ]},
                        {"id": "b", "question": "Who barks?", "answers": [], "is_impossible": True},
                    ],
                }
            ],
        }
    ],
}  # fmt: skip


def test_parse():
    first, second = parse_squad(CONTENT)
    assert (first.id, first.title, first.question, second.id) == ("a", "Cats", "Who sleeps?", "b")
    assert first.answers == (("cat", 11), ("The café's cat", 0)) and first.texts == ["cat", "The café's cat"]
    assert second.answers == () and second.context == first.context


@pytest.mark.parametrize(
    ("text", "start", "there"),
    [
        ("dog", 11, "'cat'"),
        ("cat", 12, "'at '"),
        ("grey.", 40, "''"),
        ("The", -1, "'The'"),
        ("grey. Or so", 29, "'grey.'"),
        (" ", 10, "' '"),
    ],
)
def test_an_answer_outside_of_the_passage(text, start, there):
    content = copy.deepcopy(CONTENT)
    content["data"][0]["paragraphs"][0]["qas"][0]["answers"][1] = {"text": text, "answer_start": start}
    with pytest.raises(DataError, match=rf"an answer to question a of x is {text!r} at character {start}.*has {there}"):
        parse_squad(content, "x")


def test_bad_files():
    for content in ({}, {"data": [{}]}, {"data": 3}, []):
        with pytest.raises(DataError, match="x is not in SQuAD's format"):
            parse_squad(content, "x")
    for field in ("question", "context"):
        content = copy.deepcopy(CONTENT)
        paragraph = content["data"][0]["paragraphs"][0]
        (paragraph["qas"][0] if field == "question" else paragraph)[field] = " "
        with pytest.raises(DataError, match="question a of x is empty, or its passage is"):
            parse_squad(content, "x")
    with pytest.raises(ValueError, match="there are no questions 'dev', only train, squad2, xquad"):
        load_questions("dev")


@needs("squad_small")
def test_the_real_questions():
    found = {name: load_questions(name, download=False) for name in FILES}
    assert {name: len(questions) for name, questions in found.items()} == {
        "train": 11877,
        "squad2": 6078,
        "xquad": 1190,
    }
    titles = {name: {question.title for question in questions} for name, questions in found.items()}
    assert [len(titles[name]) for name in FILES] == [44, 16, 48]
    assert not titles["train"] & (titles["squad2"] | titles["xquad"]) and len(titles["squad2"] & titles["xquad"]) == 16
    assert sum(not question.answers for question in found["squad2"]) == 3168
