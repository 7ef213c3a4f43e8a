"""Windows over passages, answers as spans of tokens and back to text."""

import json

import pytest
import torch
from toy_pairs import needs
from toy_texts import SENTENCES, TOKENIZERS, each_tokenizer, put, rows

from d2lmini.data.question_answering import SQuAD
from d2lmini.data.squad import FILES, Question
from d2lmini.data.store import DataError
from d2lmini.objectives.masking import IGNORE_INDEX

PASSAGE = "A naïve café,  isn't it? " + " ".join(SENTENCES[:8])


def article(number, passage=PASSAGE):
    def answers(*texts):
        return [{"text": text, "answer_start": passage.index(text)} for text in texts]

    questions = [
        {"id": f"{number}a", "question": "who sees ?", "answers": answers("naïve café", "café")},
        {"id": f"{number}b", "question": "what is there ?", "answers": answers(SENTENCES[6])},
        {"id": f"{number}c", "question": "is it there ?", "answers": []},
    ]
    return {"title": f"Article {number}", "paragraphs": [{"context": passage, "qas": questions}]}


@pytest.fixture
def small(folder, monkeypatch):
    def give(tokenizer, **options):
        return SQuAD(tokenizer, download=False, **options)

    train = [article(number) for number in range(20)]
    for each in train:
        del each["paragraphs"][0]["qas"][2]
    for name, articles in (("train", train), ("squad2", [article(90)]), ("xquad", [article(91)])):
        put(folder, monkeypatch, "squad_small", FILES[name], json.dumps({"data": articles}))
    return give


def test_splits(small):
    data = small(TOKENIZERS["ours"])
    titles = {split: {question.title for question in data.examples(split)} for split in data.splits}
    assert len(titles["val"]) == 2 and len(titles["train"]) == 18 and not titles["val"] & titles["train"]
    assert [question.id for question in data.examples("test")] == ["90a", "90b"] and data.left_out == {
        "has no answer": 1
    }
    assert [question.id for question in small(TOKENIZERS["ours"], test="xquad").examples("test")] == ["91a", "91b"]


@each_tokenizer
@pytest.mark.parametrize(("max_len", "stride"), [(512, 128), (64, 16), (64, 33)])
def test_windows(small, tokenizer, max_len, stride):
    data = small(tokenizer, max_len=max_len, stride=stride)
    encoder = data.encoder
    (ids, offsets), *_ = encoder.encode([PASSAGE])
    for number, question in enumerate(data.examples("test")):
        asked = encoder.encode([question.question])[0][0]
        mine = [place for place, window in enumerate(data.windows("test")) if window.example == number]
        text, start = question.answers[0]
        inside = [p for p, (a, b) in enumerate(offsets) if a < start + len(text) and b > start and b > a]
        covered, labelled = set(), 0
        for order, place in enumerate(mine):
            tokens, segments, bounds, span = data._encoded("test")[place]
            window = data.windows("test")[place]
            piece = tokens[bounds[0] : bounds[1]]
            assert len(tokens) <= max_len and (len(tokens) == max_len or place == mine[-1])
            assert tokens == [encoder.cls_id, *asked, encoder.sep_id, *piece, encoder.sep_id]
            assert segments == [0] * window.first + [1] * (len(piece) + 1) and window.first == bounds[0]
            assert piece == ids[order * stride :][: len(piece)]
            assert list(window.offsets) == offsets[order * stride :][: len(piece)]
            covered |= {order * stride + n for n in range(len(piece))}
            whole = order * stride <= inside[0] and inside[-1] < order * stride + len(piece)
            assert (span == (IGNORE_INDEX, IGNORE_INDEX)) == (not whole)
            if whole:
                labelled += 1
                assert [ids[p] for p in inside] == tokens[span[0] : span[1] + 1]
        assert covered == set(range(len(ids))) and (labelled or max_len < 512)
    if max_len == 512 and tokenizer is TOKENIZERS["ours"]:
        assert len(data.windows("test")) == 2 and data.ceiling("test") == (100, 100)


@each_tokenizer
def test_batches_and_back_to_text(small, tokenizer):
    data = small(tokenizer, max_len=128, stride=32, batch_size=2)
    spans = []
    for batch in data.loader("test"):
        tokens, segments, valid_lens, passage, span = batch
        assert tokens.shape == segments.shape == passage.shape and passage.dtype == torch.bool and span.shape[1] == 2
        assert torch.equal(passage.sum(1) + 1, segments.sum(1)), "the last separator is none of the passage's"
        assert (segments.cumsum(1)[:, -1:] >= segments.cumsum(1)).all() and not (passage & (segments == 0)).any()
        for row, (first, last) in enumerate(span.tolist()):
            assert (first == last == IGNORE_INDEX) or passage[row, first : last + 1].all()
        assert rows(batch)[0][-1] == data.encoder.sep_id and valid_lens.max() == tokens.shape[1]
        found = span.masked_fill(span == IGNORE_INDEX, -1)
        spans.append((found, torch.rand(len(span))))
    answers = data.answers("test", spans)
    for question in data.examples("test"):
        text = question.texts[0]
        assert text in answers[question.id] and len(answers[question.id]) <= len(text) + 1
    score = data.score("test", answers)
    assert score.exact_match == 100 and score.f1 == 100 == data.ceiling("test").f1


def test_the_best_window_answers(small):
    data = small(TOKENIZERS["ours"], max_len=64, stride=16)
    _, windows = data.build(["who ?"], [PASSAGE])
    question = Question("q", "", "who ?", PASSAGE, ())
    spans = [[window.first, window.first + 1] for window in windows]
    for best in range(len(windows)):
        scores = torch.full((len(windows),), -3.0)
        scores[best] = -1
        start, end = windows[best].offsets[0][0], windows[best].offsets[1][1]
        assert data.texts([question], windows, spans, scores) == {"q": PASSAGE[start:end]}
    nothing = [[-1, -1]] * len(windows)
    assert data.texts([question], windows, nothing, scores) == {"q": ""}


def test_a_token_that_is_more_than_the_answer(small):
    data = small(TOKENIZERS["published"], max_len=512)
    passage = "somebody sees the cats"
    whole = [Question("q", "", "who ?", passage, (("body", 4),))]
    ((tokens, _, _, span),) = data._encode(whole, "test")
    assert data.texts(whole, data._windows["test"], [span], [0.0])["q"] in ("body", "somebody")
    assert tokens[span[0]] in data.encoder.encode([passage])[0][0]


def test_bad_input(small, folder, monkeypatch):
    with pytest.raises(ValueError, match="stride is 0, expected at least 1"):
        small(TOKENIZERS["ours"], stride=0)
    with pytest.raises(ValueError, match="test is 'dev', expected 'squad2' or 'xquad'"):
        small(TOKENIZERS["ours"], test="dev")
    with pytest.raises(ValueError, match=r"leaves room for \d+ of the passage: fewer than the stride of 60"):
        small(TOKENIZERS["ours"], max_len=64, stride=60).loader("train")
    data = small(TOKENIZERS["ours"], max_len=64, stride=16)
    with pytest.raises(ValueError, match="the question 'who who"):
        data.build(["who " * 100], [PASSAGE])
    with pytest.raises(ValueError, match="text 0 is empty"):
        data.build(["who ?"], [" "])
    with pytest.raises(ValueError, match="there are 1 questions and 2 contexts"):
        data.build(["who ?"], ["a", "b"])
    windows = data.windows("test")
    with pytest.raises(ValueError, match=rf"there are {len(windows)} windows, 1 spans and 1 scores"):
        data.texts(data.examples("test"), windows, [[0, 1]], [0.0])
    first, last = windows[0].first, windows[0].first + len(windows[0].offsets) - 1
    for span in ([first - 1, first], [first, last + 1], [first + 1, first]):
        with pytest.raises(ValueError, match=r"the span of window 0 is .* outside of the passage"):
            data.texts(data.examples("test"), windows, [span] + [[-1, -1]] * (len(windows) - 1), [0.0] * len(windows))
    put(folder, monkeypatch, "squad_small", FILES["xquad"], "{")
    with pytest.raises(DataError, match="is no JSON"):
        small(TOKENIZERS["ours"], test="xquad")
    (folder / FILES["xquad"]).unlink()
    with pytest.raises(DataError, match=r"xquad.en.json of squad_small is not on this machine"):
        small(TOKENIZERS["ours"], test="xquad")


@needs("squad_small")
def test_the_real_questions():
    data = SQuAD(TOKENIZERS["published"], max_len=512, stride=128, download=False)
    assert sum(len(data.examples(split)) for split in ("train", "val")) == 11877 and len(data.examples("test")) == 2910
    titles = [{question.title for question in data.examples(split)} for split in data.splits]
    assert [len(names) for names in titles] == [40, 4, 16]
    assert not (titles[0] | titles[1]) & titles[2] and not titles[0] & titles[1]
    exact, f1 = data.ceiling("test")
    assert exact > 99 and f1 > 99 and f1 >= exact
