"""Questions in SQuAD's format, each answer found where it is said to be."""

import json
from dataclasses import dataclass

from . import registry
from .store import DataError

FILES = {
    "train": "squad-train-v1.1.du-test-44articles.json",
    "squad2": "squad-dev-v2.0.cs224n-half.json",
    "xquad": "xquad.en.json",
}


@dataclass(frozen=True)
class Question:
    """A question about a passage, ``context``; ``answers`` holds (text, character where it starts) of each right one.

    ``title`` is that of the passage's article.
    """

    id: str
    title: str
    question: str
    context: str
    answers: tuple

    @property
    def texts(self):
        """The right answers, a list of str."""
        return [text for text, _ in self.answers]


def load_questions(name, download=True):
    """The questions of a file in SQuAD's format.

    Args:
        name: ``"train"``, ``"squad2"`` (of which a half has no answer) or ``"xquad"``; see `SQuAD`.
        download: whether to fetch it where it is not on this machine.

    Returns:
        list of `Question`.

    Raises:
        ValueError: there is no such name.
        DataError: the file is missing or damaged.
    """
    if name not in FILES:
        raise ValueError(f"there are no questions {name!r}, only {', '.join(FILES)}")
    path = registry.path("squad_small", FILES[name], download)
    try:
        return parse_squad(json.loads(path.read_bytes()), path.name)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is no JSON: {error}") from error


def parse_squad(content, name="the file"):
    """The questions of what a file in SQuAD's format holds.

    Args:
        content: dict.
        name: what to call it in an error.

    Returns:
        list of `Question`. Answers that stand there more than once are there once.

    Raises:
        DataError: something is missing, a text is empty, or an answer is not where it is said to be.
    """
    try:
        entries = [
            (entry, paragraph["context"], article["title"])
            for article in content["data"]
            for paragraph in article["paragraphs"]
            for entry in paragraph["qas"]
        ]
        questions = []
        for entry, context, title in entries:
            answers = tuple(dict.fromkeys((answer["text"], answer["answer_start"]) for answer in entry["answers"]))
            questions.append(Question(entry["id"], title, entry["question"].strip(), context, answers))
    except (KeyError, TypeError) as error:
        raise DataError(f"{name} is not in SQuAD's format: {error!r}") from error
    for question in questions:
        if not question.question or not question.context.strip():
            raise DataError(f"question {question.id} of {name} is empty, or its passage is")
        for text, start in question.answers:
            there = question.context[max(start, 0) : max(start, 0) + len(text)]
            if not text.strip() or start < 0 or there != text:
                raise DataError(
                    f"an answer to question {question.id} of {name} is {text!r} at character {start}, where the "
                    f"passage has {there!r}"
                )
    return questions
