"""SQuAD: questions whose answer is a piece of a passage, in windows that a model can read."""

from dataclasses import dataclass

import torch

from ..metrics import squad_scores
from ..objectives.masking import IGNORE_INDEX
from .labels import LabelledText, check_limits
from .squad import Question, load_questions
from .tatoeba import hash_place


@dataclass(frozen=True)
class Window:
    """What the model reads of a passage: token ``first + i`` of the sequence is at ``offsets[i]`` of the passage.

    ``offsets`` holds (start, end) in characters; ``example`` is the number of its question.
    """

    example: int
    first: int
    offsets: tuple


class SQuAD(LabelledText):
    """Questions and passages of Wikipedia, as far as small parts of SQuAD go; all have an answer.

    To train on and to validate with: 11,877 questions about 44 articles of SQuAD 1.1's training data, one answer each;
    a tenth of the articles (four), those whose titles have the smallest SHA-256, is for validation. To test with: of
    half of the articles of SQuAD 2.0's development data the questions that have an answer, half of them with several
    right ones, or XQuAD's English questions, with one each. The two share articles: use one.

    A sequence is the question and as much of the passage as has room. Of a longer passage there are several windows,
    each beginning ``stride`` tokens after the one before. A training window is labelled with the first and the last
    token of its first right answer, counted in the sequence; where the answer is not whole in the window, with
    `IGNORE_INDEX` twice: there is nothing to be found.

    A batch is tokens (B, T), segments (B, T), valid_lens (B,), passage (B, T), True where the tokens are those of the
    passage, and spans (B, 2).

    Args:
        tokenizer: see `TextEncoder`.
        batch_size: B, in windows.
        max_len: most tokens of a sequence, special ones included.
        stride: by how many tokens the next window begins later.
        test: ``"squad2"`` or ``"xquad"``.
        seed: of the order of the batches.
        download: whether to fetch what is not on this machine.

    Raises:
        ValueError: there is no such test set, or a size is too small.
        DataError: a file is missing or damaged.

    Source: Rajpurkar et al. 2016; Rajpurkar, Jia, Liang 2018; windows as in the code of Devlin et al. 2019.
    """

    def __init__(self, tokenizer, batch_size=16, max_len=384, stride=128, test="squad2", seed=0, download=True):
        super().__init__()
        self.save_hyperparameters(ignore=["tokenizer"])
        check_limits(batch_size, max_len, 5)
        if stride < 1:
            raise ValueError(f"stride is {stride}, expected at least 1 token")
        if test not in ("squad2", "xquad"):
            raise ValueError(f"test is {test!r}, expected 'squad2' or 'xquad'")
        known = load_questions("train", download)
        held_out = _held_out(known)
        examples = {
            "train": [question for question in known if question.title not in held_out],
            "val": [question for question in known if question.title in held_out],
        }
        asked = load_questions(test, download)
        examples["test"] = [question for question in asked if question.answers]
        self._set_up(examples, tokenizer, {"has no answer": len(asked) - len(examples["test"])})
        self._windows = {}

    def windows(self, split):
        """The `Window` s of a split, a list, those of one question one after the other."""
        self._encoded(split)
        return self._windows[split]

    def build(self, questions, contexts):
        """One batch of the windows of any questions, without labels, and these windows.

        Args:
            questions: list of str.
            contexts: list of str, as many passages.

        Returns:
            tokens (B, T), segments (B, T), valid_lens (B,), passage (B, T), as a list; and a list of B `Window`.

        Raises:
            ValueError: the lists are empty or differ in length, a text is empty, or a question too long.
        """
        if len(questions) != len(contexts) or not len(questions):
            raise ValueError(f"there are {len(questions)} questions and {len(contexts)} contexts, expected as many")
        asked = [Question(str(n), "", *texts, ()) for n, texts in enumerate(zip(questions, contexts, strict=True))]
        items, windows = self._windows_of(asked)
        return self._collate(items)[:-1], windows

    def texts(self, questions, windows, spans, scores):
        """The answers, cut out of the passages: of each question that of the window with the highest score.

        Args:
            questions: list of `Question`.
            windows: list of N `Window` of them.
            spans: integers (N, 2), the first and the last token of what is predicted in each window, counted in the
                sequence; -1 where nothing is.
            scores: numbers (N,): the higher, the better.

        Returns:
            dict from a question's id to str; empty where no window has a prediction.

        Raises:
            ValueError: numbers of windows differ, or a span ends before it begins or is outside of the passage.
        """
        if not len(windows) == len(spans) == len(scores):
            raise ValueError(f"there are {len(windows)} windows, {len(spans)} spans and {len(scores)} scores")
        best = {}
        for number, (window, span, score) in enumerate(zip(windows, spans, scores, strict=True)):
            start, end, score = int(span[0]), int(span[1]), float(score)
            if start == end == -1 or score <= best.get(window.example, (-float("inf"),))[0]:
                continue
            start, end = start - window.first, end - window.first
            if not 0 <= start <= end < len(window.offsets):
                last = window.first + len(window.offsets) - 1
                raise ValueError(
                    f"the span of window {number} is {list(map(int, span))}, outside of the passage, which is from "
                    f"token {window.first} to {last}: are spans and windows in one order? in_order brings them there"
                )
            best[window.example] = score, (window.offsets[start][0], window.offsets[end][1])
        texts_by_id = {}
        for number, question in enumerate(questions):
            _, (start, end) = best.get(number, (None, (0, 0)))
            texts_by_id[question.id] = question.context[start:end]
        return texts_by_id

    def answers(self, split, batches):
        """The answers to the questions of a split; see `texts`.

        Args:
            split: one of ``splits``.
            batches: iterable, of each batch of ``loader(split, shuffle=False)`` spans (B, 2) and scores (B,).

        Returns:
            dict from a question's id to str.
        """
        rows = self.in_order(split, (list(zip(*batch, strict=True)) for batch in batches))
        spans, scores = zip(*rows, strict=True)
        return self.texts(self.examples(split), self.windows(split), spans, scores)

    def score(self, split, answers):
        """Exact match and F1; see `d2lmini.metrics.squad_scores`.

        Args:
            split: one of ``splits``.
            answers: dict from a question's id to str.

        Returns:
            `d2lmini.metrics.AnswerScore`.
        """
        return squad_scores(answers, {question.id: question.texts for question in self.examples(split)})

    def ceiling(self, split):
        """The score of a model that always points at the first right answer: what tokens and windows cost.

        Returns:
            `d2lmini.metrics.AnswerScore`.
        """
        spans = [item[-1] if item[-1][0] != IGNORE_INDEX else (-1, -1) for item in self._encoded(split)]
        texts_by_id = self.texts(self.examples(split), self.windows(split), spans, [0.0] * len(spans))
        return self.score(split, texts_by_id)

    def _encode(self, examples, split):
        items, self._windows[split] = self._windows_of(examples)
        return items

    def _windows_of(self, examples):
        contexts = list(dict.fromkeys(example.context for example in examples))  # many questions, one passage
        passages = dict(zip(contexts, self.encoder.encode(contexts), strict=True))
        questions = self.encoder.encode([example.question for example in examples])
        items, windows = [], []
        for number, (example, (question, _)) in enumerate(zip(examples, questions, strict=True)):
            ids, offsets = passages[example.context]
            room = self.max_len - len(question) - 3
            if room < min(self.stride, len(ids)):
                raise ValueError(
                    f"the question {example.question[:60]!r} has {len(question)} tokens, which leaves room for {room} "
                    f"of the passage: fewer than the stride of {self.stride}. Raise max_len or lower stride"
                )
            answer = _tokens_of(example, offsets)
            for start in range(0, max(len(ids) - room, 0) + self.stride, self.stride):
                piece = ids[start : start + room]
                tokens, segments = self.encoder.join(question, piece)
                window = Window(number, len(question) + 2, tuple(offsets[start : start + room]))
                span = (IGNORE_INDEX, IGNORE_INDEX)
                if answer and start <= answer[0] and answer[1] < start + len(piece):
                    span = tuple(place - start + window.first for place in answer)
                items.append((tokens, segments, (window.first, window.first + len(piece)), span))
                windows.append(window)
                if start + room >= len(ids):
                    break
        return items, windows

    def _collate(self, items):
        tokens, segments, valid_lens = self._inputs(items)
        bounds = torch.tensor([item[2] for item in items])  # (B, 2)
        places = torch.arange(tokens.shape[1])
        passage = (places >= bounds[:, :1]) & (places < bounds[:, 1:])
        return [tokens, segments, valid_lens, passage, torch.tensor([item[-1] for item in items])]


def _tokens_of(example, offsets):
    """The first and the last token that share a character with the first right answer; None where none does."""
    if not example.answers:
        return None
    text, start = example.answers[0]
    end = start + len(text)
    inside = [place for place, (first, last) in enumerate(offsets) if first < end and last > start and last > first]
    return (inside[0], inside[-1]) if inside else None


def _held_out(questions):
    """Titles of articles for validation."""
    titles = {question.title for question in questions}
    return set(sorted(titles, key=hash_place)[: len(titles) // 10])
