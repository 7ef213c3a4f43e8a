"""Chapter 13: where in a passage does the answer to a question stand?

Parts of SQuAD, in which every question has an answer. Three contestants: the sentence that has most words in common
with the question; a small encoder from scratch; the published six-layer weights, fine-tuned. Exact match and F1 are
those of SQuAD's own script. Not all training questions are used where minutes are few: the record says how many.
"""

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import mean

import torch

from d2lmini.data.question_answering import SQuAD
from d2lmini.data.squad import FILES
from d2lmini.data.text import split_sentences
from d2lmini.experiments.bert import fine_tuning
from d2lmini.experiments.bert.fine_tuning import Tuning
from d2lmini.experiments.bert.toy_texts import MadeQuestions
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.metrics import answer_scores, normalize_answer
from d2lmini.models.bert_config import BERT_CONFIGS, MODERN, BERTConfig
from d2lmini.models.span_head import SpanHead, best_spans
from d2lmini.modes import evaluating
from d2lmini.objectives.masking import IGNORE_INDEX
from d2lmini.tokenization.fast_bpe import BPETokenizer

NAMES = {
    "sentence": "the sentence with most common words",
    "scratch": "from scratch",
    "minilm": "MiniLM fine-tuned",
}
KINDS = "what", "who", "when", "where", "which", "how", "why"
_ENCODER = BERTConfig(max_len=512, num_hiddens=192, num_heads=3, num_blks=4, **MODERN)
_TUNING = Tuning(lr=5e-4, epochs=2, batch_size=16, checks=1)
_MINILM = Tuning(lr=1e-4, epochs=1, batch_size=16, checks=1)


@dataclass(frozen=True)
class Config:
    """Settings.

    ``contestants`` are keys of `NAMES`. ``encoder``, with a vocabulary of ``vocab_size``, learns from scratch.
    ``questions`` is how many windows with an answer are learned from, None: all; ``val_questions`` validate. ``test``
    is that of `SQuAD`. ``made`` takes questions made by rule, which need no data. An answer has at most ``longest``
    tokens. Of the questions ``shown`` are kept.
    """

    made: bool = False
    max_len: int = 320
    stride: int = 128
    test: str = "xquad"
    contestants: tuple = tuple(NAMES)
    encoder: BERTConfig = _ENCODER
    vocab_size: int = 8_192
    questions: int | None = None
    val_questions: int | None = None
    longest: int = 30
    scratch: Tuning = _TUNING
    minilm: Tuning = _MINILM
    shown: int = 6
    seeds: tuple = (0,)


_TOY = replace(BERT_CONFIGS["toy"], max_len=96)
_SMALL = Tuning(lr=1e-3, epochs=1, batch_size=32, checks=1, precision="float32")
PRESETS = {
    "smoke": Config(
        made=True, max_len=96, stride=32, contestants=("sentence", "scratch"), encoder=_TOY,
        vocab_size=320, questions=100, val_questions=40, scratch=replace(_SMALL, epochs=2, checks=2), shown=2,
    ),
    # questions about two persons, made by rule
    "cpu": Config(
        made=True, max_len=96, stride=32, contestants=("sentence", "scratch"), encoder=_TOY,
        vocab_size=400, scratch=replace(_SMALL, lr=2e-3, epochs=40, batch_size=16, checks=4),
    ),
    "laptop": Config(
        questions=5_500, val_questions=300, scratch=replace(_TUNING, precision="bf16"),
        minilm=replace(_MINILM, precision="bf16"),
    ),
    "full": Config(max_len=384, test="squad2", minilm=replace(_MINILM, epochs=3, checks=3), seeds=(0, 1, 2)),
}  # fmt: skip


def read(config, tokenizer):
    """The data of a configuration, for a tokenizer."""
    if config.made:
        return MadeQuestions(tokenizer, max_len=config.max_len, stride=config.stride)
    return SQuAD(tokenizer, max_len=config.max_len, stride=config.stride, test=config.test)


def kind_of(question):
    """The first of `KINDS` among the words of a question, else "other"."""
    return next((word for word in normalize_answer(question).split() if word in KINDS), "other")


def best_sentence(question):
    """The sentence of a passage that has the largest share of a question's words; of equals, the first."""
    wanted = set(normalize_answer(question.question).split())
    sentences = split_sentences(question.context) or [question.context]
    return max(sentences, key=lambda sentence: len(wanted & set(normalize_answer(sentence).split())))


@torch.no_grad()
def answers(head, data, questions, longest, batch_size=32):
    """What a model answers to questions: the best span of the window in which it is best.

    Args:
        head: a `SpanHead`.
        data: a `SQuAD`.
        questions: list of `Question`.
        longest: most tokens of an answer.
        batch_size: questions at once; those with passages of like length go together.

    Returns:
        dict from a question's id to str.
    """
    device, texts = next(head.parameters()).device, {}
    order = sorted(questions, key=lambda question: len(question.question) + len(question.context))
    with evaluating(head):
        for start in range(0, len(order), batch_size):
            asked = order[start : start + batch_size]
            asking = [question.question for question in asked], [question.context for question in asked]
            batch, windows = data.build(*asking)
            spans, sums = best_spans(head(*(part.to(device) for part in batch)).float().cpu(), longest)
            texts |= data.texts(asked, windows, spans.tolist(), sums.tolist())
    return {question.id: texts[question.id] for question in questions}


def scores(answers_by_id, questions):
    """What is counted of answers: dict with ``exact_match`` and ``f1``, from 0 to 100, with their ``standard_errors``;
    ``by_kind`` the two means and how many questions; ``exact`` and ``f1s`` of each question.
    """
    rows = [answer_scores(answers_by_id[question.id], question.texts) for question in questions]
    exact, f1 = ([row[i] for row in rows] for i in (0, 1))
    kinds = defaultdict(list)
    for question, row in zip(questions, rows, strict=True):
        kinds[kind_of(question.question)].append(row)
    by_kind = {
        kind: {
            "questions": len(pairs),
            "exact_match": mean(pair[0] for pair in pairs),
            "f1": mean(pair[1] for pair in pairs),
        }
        for kind, pairs in sorted(kinds.items())
    }
    errors = {name: summaries.standard_error(row) for name, row in (("exact_match", exact), ("f1", f1))}
    return {
        "exact_match": mean(exact),
        "f1": mean(f1),
        "standard_errors": errors,
        "by_kind": by_kind,
        "exact": [int(value > 0) for value in exact],
        "f1s": [round(value, 2) for value in f1],
    }


def learn(contestant, seed, encoders, config, device, parts, name):
    """Fine-tunes an encoder: a dict with its ``answers`` to the test, and how it was trained."""
    encoder, data, tuning = fine_tuning.begin(contestant, seed, encoders, config, read)
    head = SpanHead(encoder)
    asked = data.examples("val")
    if config.val_questions:  # drawn, for those of an article stand together
        asked = [asked[place] for place in fine_tuning.drawn(len(asked), config.val_questions)]

    def score(split):
        if split == "test":
            return answers(head, data, data.examples("test"), config.longest)
        answers_by_id = answers(head, data, asked, config.longest)
        counted = scores(answers_by_id, asked)
        return {"chosen_by": counted["f1"], "exact_match": counted["exact_match"]}

    windows = data.loader("train").dataset
    places = [place for place, window in enumerate(windows) if window[-1][0] != IGNORE_INDEX]
    if config.questions:
        places = [places[place] for place in fine_tuning.drawn(len(places), config.questions)]
    record, history = fine_tuning.fine_tune(
        head, data, places, tuning, device, score, seed=seed, parts=parts, name=name
    )
    record["answers"] = record.pop("test")
    ceiling = data.ceiling("test")._asdict()
    counts = {"parameters": head.num_parameters, "windows": len(places), "ceiling": ceiling}
    return record | counts | {"curves": fine_tuning.curves(history)}


def run(config, device, parts=None):
    """Lets every contestant answer the test's questions; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics``, ``curves`` of each training and ``data``. The metrics are ``examples`` (questions of each
        split), ``right`` (dict from the id of a test question to its right answers), ``contestants`` (of each, of the
        first seed ``answers`` by id, what `scores` gives, how it was trained and ``ceiling``, what tokens and windows
        cost; of all seeds ``f1_seeds``), and ``questions``: some, drawn, with what each contestant answers.

    Raises:
        ValueError: a contestant is unknown.
    """
    if set(config.contestants) - NAMES.keys():
        raise ValueError(f"contestants are {config.contestants}, expected some of {', '.join(NAMES)}")
    parts = parts or Parts()
    plain = read(config, BPETokenizer.train(["none is read with it"], 260))
    asked = plain.examples("test")
    texts = [text for question in plain.examples("train") for text in (question.question, question.context)]
    texts = list(dict.fromkeys(texts))  # many questions, one passage
    encoders = fine_tuning.Encoders(scratch=lambda: fine_tuning.from_scratch(config.encoder, texts, config.vocab_size))
    by_contestant, curves = {}, {}
    for contestant in config.contestants:
        if contestant == "sentence":
            seed_records = [
                parts(contestant, lambda: {"answers": {question.id: best_sentence(question) for question in asked}})
            ]
        else:
            seed_records = []
            for seed in config.seeds:
                name = f"{contestant}, {seed}"
                seed_records.append(parts(name, learn, contestant, seed, encoders, config, device, parts, name))
                curves[name] = seed_records[-1].pop("curves")
        f1 = [scores(record["answers"], asked)["f1"] for record in seed_records]
        by_contestant[contestant] = seed_records[0] | scores(seed_records[0]["answers"], asked) | {"f1_seeds": f1}
    kept = random.Random(config.seeds[0]).sample(asked, min(config.shown, len(asked)))
    metrics = {
        "examples": {split: len(plain.examples(split)) for split in plain.splits},
        "right": {question.id: question.texts for question in asked},
        "contestants": by_contestant,
        "questions": [
            {
                "id": question.id,
                "question": question.question,
                "context": question.context,
                "right": question.texts,
                "answers": {contestant: rows["answers"][question.id] for contestant, rows in by_contestant.items()},
            }
            for question in kept
        ],
    }
    phrases = [
        f"{by_contestant[name]['exact_match']:.1f} and {by_contestant[name]['f1']:.1f} ({NAMES[name]})"
        for name in config.contestants
    ]
    metrics["headline"] = f"exact match and F1 on {len(asked)} questions: {', '.join(phrases)}"
    files = "squad_small", [FILES["train"], FILES[config.test]]
    return {
        "metrics": metrics,
        "curves": curves,
        "data": fine_tuning.checksums(config.made, files, config.contestants),
    }
