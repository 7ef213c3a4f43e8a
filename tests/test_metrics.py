"""Scores of translations, tags and answers, against values worked out by hand and an independent BLEU."""

import math
from collections import Counter

import pytest

from d2lmini.metrics import (
    answer_scores,
    bleu,
    corpus_bleu,
    corpus_chrf,
    normalize_answer,
    span_f1,
    split_words,
    squad_scores,
    tokenized_bleu,
)

# ---- D2L's


@pytest.mark.parametrize(
    ("predicted", "label", "k", "score"),
    [
        ("va !", "va !", 2, 1.0),
        ("j'ai perdu .", "j'ai perdu .", 2, 1.0),
        ("il est mouillé .", "il est calme .", 2, (3 / 4) ** 0.5 * (1 / 3) ** 0.25),  # D2L prints 0.658
        ("je suis chez moi bien .", "je suis chez moi .", 2, (5 / 6) ** 0.5 * (3 / 5) ** 0.25),
        ("A B B C D", "A B C D E F", 2, math.exp(1 - 6 / 5) * (4 / 5) ** 0.5 * (3 / 4) ** 0.25),  # D2L's p1, p2
        ("le le le", "le chat", 1, (1 / 3) ** 0.5),  # a word of the label counts once
        ("a b", "b a", 2, 0.0),
        ("x", "le chat dort", 2, 0.0),
    ],
)
def test_bleu(predicted, label, k, score):
    assert bleu(predicted, label, k) == pytest.approx(score, abs=1e-12)


def test_bleu_of_one_word():
    # the two-word matches it cannot have are left out: only its length counts against it
    assert bleu("le", "le chat dort", 2) == pytest.approx(math.exp(1 - 3)) == bleu("le", "le chat dort", 1) ** 1
    assert bleu("le", "le", 4) == 1.0
    assert bleu("le dort", "le chat dort", 2) == 0.0, "with two words the missing pair does count"


def test_bleu_of_nothing():
    assert bleu("", "le chat", 2) == 0.0 and bleu(" ", "le", 2) == 0.0
    with pytest.raises(ValueError, match="label_seq has no words"):
        bleu("le", " ", 2)
    with pytest.raises(ValueError, match="k is 0, expected at least 1"):
        bleu("le", "le", 0)


# ---- of a test set

HYPOTHESES = ["Le chat noir dort sur le lit.", "Deux hommes marchent dans la rue.", "Elle lit un livre."]
REFERENCES = ["Le chat noir dort sur un lit.", "Deux hommes marchent le long de la rue.", "Elle lit un gros livre."]


def plain_bleu(hypotheses, references):
    """Papineni et al. 2002, without smoothing, of words separated by spaces; references as lists."""
    found, there, length, wanted = Counter(), Counter(), 0, 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        words, several = hypothesis.split(), [reference.split() for reference in several]
        length += len(words)
        wanted += min((abs(len(r) - len(words)), len(r)) for r in several)[1]
        for n in range(1, 5):
            grams = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            most = Counter()
            for r in several:
                most |= Counter(tuple(r[i : i + n]) for i in range(len(r) - n + 1))
            found[n] += sum((grams & most).values())
            there[n] += sum(grams.values())
    mean = sum(math.log(found[n] / there[n]) for n in range(1, 5)) / 4
    return 100 * math.exp(min(0, 1 - wanted / length) + mean)


def full_stops_apart(texts):
    return [text.replace(".", " .") for text in texts]


def test_corpus_bleu_equals_the_formula():
    expected = plain_bleu(full_stops_apart(HYPOTHESES), [[r] for r in full_stops_apart(REFERENCES)])
    score = corpus_bleu(HYPOTHESES, REFERENCES)
    assert 10 < expected < 90 and score.value == pytest.approx(expected, abs=1e-6)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert str(score) == f"{score.value:.2f} ({score.signature})"


def test_several_references_and_not_the_same_number_for_all():
    references = [[REFERENCES[0], HYPOTHESES[0]], [REFERENCES[1]], [REFERENCES[2], "Elle lit.", "Un livre."]]
    expected = plain_bleu(full_stops_apart(HYPOTHESES), [full_stops_apart(several) for several in references])
    score = corpus_bleu(HYPOTHESES, references)
    assert score.value == pytest.approx(expected, abs=1e-6)
    assert score.value > corpus_bleu(HYPOTHESES, REFERENCES).value + 1
    assert corpus_chrf(HYPOTHESES, references).value > corpus_chrf(HYPOTHESES, REFERENCES).value


def test_case_counts_in_one_and_not_in_the_other():
    lower = [text.lower() for text in REFERENCES]
    assert corpus_bleu(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert corpus_bleu(lower, REFERENCES).value < 90
    assert tokenized_bleu(lower, REFERENCES).value == pytest.approx(100)


def test_tokenized_bleu_splits_elision():
    hypotheses, references = ["L'homme regarde l'eau d'un lac."], ["L'homme voit l'eau d'un étang."]
    score = tokenized_bleu(hypotheses, references)
    apart = ["l' homme regarde l' eau d' un lac ."], [["l' homme voit l' eau d' un étang ."]]
    assert score.value == pytest.approx(plain_bleu(*apart), abs=1e-6)
    assert score.value > corpus_bleu(hypotheses, references).value
    assert "|case:lc|" in score.signature and "|tok:none|" in score.signature


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'homme, là-bas.", "L' homme , là-bas ."),
        ("Est-ce qu'il dort ?", "Est-ce qu' il dort ?"),
        ("«Non!» dit-elle (deux fois).", "« Non ! » dit-elle ( deux fois ) ."),
        ("1,5 m, 3.2 kg", "1,5 m , 3.2 kg"),
        ("Attends...", "Attends ..."),
        ("un panneau 'stop' rouge", "un panneau ' stop ' rouge"),
        ("  a   b  ", "a b"),
        ("", ""),
    ],
)
def test_split_words(text, words):
    assert split_words(text) == words


def test_chrf():
    assert corpus_chrf(REFERENCES, REFERENCES).value == pytest.approx(100)
    score = corpus_chrf(HYPOTHESES, REFERENCES)
    assert 50 < score.value < 95 and "nc:6|nw:0" in score.signature
    assert corpus_chrf(["xyz"], ["abc"]).value == 0


@pytest.mark.parametrize("score", [corpus_bleu, tokenized_bleu, corpus_chrf])
def test_bad_input(score):
    with pytest.raises(ValueError, match="there are 2 hypotheses but 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="no hypotheses"):
        score([], [])
    with pytest.raises(ValueError, match="sentence 1 has no reference"):
        score(["a", "b"], [["a"], []])
    with pytest.raises(TypeError, match="got one str: put it into a list"):
        score("a", ["a"])
    with pytest.raises(TypeError, match="sentence 0 has a NoneType, expected str"):
        score([None], ["a"])
    assert score(["", "a b c d e"], ["a", "a b c d e"]).value > 0, "an empty translation is bad, not an error"


# ---- spans of tags


def test_span_f1_by_hand():
    pytest.importorskip("seqeval", reason="SPAN F1 NOT TESTED: pip install seqeval")
    right = [["B-per", "I-per", "O", "B-loc"], ["O", "B-per"], ["B-loc", "B-loc"]]
    found = [["B-per", "I-per", "O", "B-per"], ["O", "O"], ["B-loc", "I-loc"]]
    # one of the three that were predicted is one of the five that are there: a wrong type and a wrong end are misses
    assert span_f1(found, right) == pytest.approx((100 / 3, 100 / 5, 200 / 8))
    assert span_f1(right, right) == (100, 100, 100)
    assert span_f1([["I-per", "I-per"]], [["B-per", "I-per"]]).f1 == 100, "a wrong first mark is forgiven"
    nothing = [["O"] * len(tags) for tags in right]
    assert span_f1(nothing, right) == span_f1(right, nothing) == span_f1(nothing, nothing) == (0, 0, 0)


def test_span_f1_of_what_does_not_fit(monkeypatch):
    pytest.importorskip("seqeval", reason="SPAN F1 NOT TESTED: pip install seqeval")
    with pytest.raises(ValueError, match="there are 1 predictions and 2 references"):
        span_f1([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="there are 0 predictions"):
        span_f1([], [])
    with pytest.raises(ValueError, match="sentence 1 has 2 tags, but 1 were predicted"):
        span_f1([["O"], ["O"]], [["O"], ["O", "O"]])
    monkeypatch.setitem(__import__("sys").modules, "seqeval.metrics.sequence_labeling", None)
    with pytest.raises(ImportError, match="span F1 needs seqeval: pip install seqeval"):
        span_f1([["O"]], [["O"]])


# ---- SQuAD's answers


def test_normalize_answer():
    assert normalize_answer("The  quick-brown fox's\tden.") == "quickbrown foxs den"
    assert normalize_answer("An A-team, a theme") == "ateam theme" and normalize_answer("the a an!") == ""
    assert normalize_answer("«Émile» – 5½ €") == "«émile» – 5½ €", "only ASCII punctuation goes"


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("the Denver Broncos.", ["Denver Broncos"], 1, 1),
        ("Broncos", ["Denver Broncos"], 0, 2 / 3),
        ("in the 10th and 11th centuries", ["10th and 11th centuries"], 0, 2 * 4 / (5 + 4)),
        ("10th and 11th", ["10th", "10th and 11th centuries"], 0, 2 * 3 / (3 + 4)),
        ("new new york", ["new york"], 0, 2 * 2 / (3 + 2)),  # a word of the answer counts once
        ("York", ["Paris", "york"], 1, 1),
        ("", ["York"], 0, 0),
        ("York", [], 0, 0),
        ("", [], 1, 1),
        ("the", [], 1, 1),
        ("the", ["a", "York"], 0, 0),  # a right answer of articles alone does not count beside others
        ("dog", ["cat"], 0, 0),
    ],
)
def test_answers_by_hand(prediction, answers, exact, f1):
    assert answer_scores(prediction, answers) == pytest.approx((100 * exact, 100 * f1))


def test_squad_scores():
    references = {"a": ["Denver Broncos"], "b": ["10th", "10th century"], "c": ["nobody"], "d": []}
    predictions = {"a": "Broncos", "b": "the 10th century", "d": ""}
    assert squad_scores(predictions, references) == pytest.approx((100 * 2 / 4, 100 * (2 / 3 + 1 + 0 + 1) / 4))
    with pytest.raises(ValueError, match="there are no questions"):
        squad_scores({}, {})
    with pytest.raises(ValueError, match="1 predictions are of no question, such as 'e'"):
        squad_scores({"e": "x"}, references)
    with pytest.raises(TypeError, match="the answers of 'a' are one str"):
        squad_scores({}, {"a": "Broncos"})
