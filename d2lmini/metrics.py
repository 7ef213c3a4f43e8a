"""Scores of texts that were made or found: BLEU and chrF of translations, span F1 of tags, SQuAD's two of answers."""

import math
import re
import string
from collections import Counter
from typing import NamedTuple

from .renamed import names_of

__getattr__ = names_of(__name__)


def bleu(pred_seq, label_seq, k):
    """D2L's score of one sentence: exp(min(0, 1 - len_label / len_pred)) * prod_n p_n ** (1 / 2**n).

    Not the BLEU of papers: that one is of a whole test set and weighs all n alike (`corpus_bleu`). Where the prediction
    has fewer than ``k`` words, the longer n-grams are left out of the product, not counted as misses. So a one-word
    prediction is judged by that word alone, whatever ``k``: "le" against "le chat dort" loses by its length, not by
    the two-word matches that it cannot have. Compare one-word scores with one-word scores only.

    Args:
        pred_seq: the prediction, words separated by spaces.
        label_seq: the reference, the same.
        k: longest n-gram that counts, at least 1.

    Returns:
        float from 0 to 1. An empty prediction scores 0 (D2L's code takes it for one empty word).

    Raises:
        ValueError: the reference is empty, or ``k`` is below 1.

    Source: D2L section 10.7.8, equation 10.7.4.
    """
    predicted, label = pred_seq.split(), label_seq.split()
    if not label:
        raise ValueError("label_seq has no words: there is nothing to compare with")
    if k < 1:
        raise ValueError(f"k is {k}, expected at least 1")
    if not predicted:
        return 0.0
    score = math.exp(min(0, 1 - len(label) / len(predicted)))
    for n in range(1, min(k, len(predicted)) + 1):
        predicted_ngrams, label_ngrams = _ngrams(predicted, n), _ngrams(label, n)
        matches = sum((predicted_ngrams & label_ngrams).values())
        score *= (matches / (len(predicted) - n + 1)) ** (0.5**n)
    return score


def _ngrams(words, n):
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


class Score(NamedTuple):
    """A score from 0 to 100, and sacrebleu's signature, which says how it was computed. Prints as both."""

    value: float
    signature: str

    def __str__(self):
        return f"{self.value:.2f} ({self.signature})"


def corpus_bleu(hypotheses, references):
    """BLEU of a test set as sacrebleu defines it: cased, detokenised, tokenised by 13a.

    Args:
        hypotheses: list of str, one translation a source sentence.
        references: list of the same length; each entry a str, or a list of str where a sentence has several.

    Returns:
        `Score`.

    Raises:
        TypeError: something is not str.
        ValueError: the lists are empty or differ in length, or a sentence has no reference.

    Source: Papineni et al. 2002; Post 2018, arXiv:1804.08771.
    """
    from sacrebleu.metrics import BLEU

    return _score(BLEU(), hypotheses, references)


def tokenized_bleu(hypotheses, references):
    """BLEU of lower-cased words and punctuation marks, split as Moses does for French: the score that papers on
    Multi30k report. It is mostly higher than `corpus_bleu`: capitals are forgiven, and each ``l'`` is a word of its
    own.

    Args, Returns, Raises: those of `corpus_bleu`.
    """
    from sacrebleu.metrics import BLEU

    hypotheses, references = _checked(hypotheses, references)
    hypotheses = [split_words(text) for text in hypotheses]
    references = [[split_words(text) for text in several] for several in references]
    # force: the warning about text that looks tokenised would be about what is meant here
    return _score(BLEU(lowercase=True, tokenize="none", force=True), hypotheses, references)


def corpus_chrf(hypotheses, references):
    """chrF2 of a test set, the F-score of character n-grams, by sacrebleu.

    Args, Returns, Raises: those of `corpus_bleu`.

    Source: Popović 2015.
    """
    from sacrebleu.metrics import CHRF

    return _score(CHRF(), hypotheses, references)


def split_words(text):
    """Separates punctuation marks and elided words of a French sentence by spaces, as Moses' tokeniser does.

    Args:
        text: one sentence.

    Returns:
        str: ``"L'homme, là-bas."`` becomes ``"L' homme , là-bas ."``.

    Source: tokenizer.perl of Moses (Koehn et al. 2007), its rules for French, without abbreviations.
    """
    text = re.sub(r"([^\w\s.'`,-]|_)", r" \1 ", text)
    text = re.sub(r"(?<!\d),|,(?!\d)", " , ", text)  # 1,5 stays
    text = re.sub(r"(?<![^\W\d_])'", " ' ", text)
    text = re.sub(r"(?<=[^\W\d_])'(?![^\W\d_])", " ' ", text)
    text = re.sub(r"(?<=[^\W\d_])'(?=[^\W\d_])", "' ", text)
    text = re.sub(r"(\.{2,})", r" \1 ", text)
    text = re.sub(r"(?<!\.)\.(['\"\s]*)$", r" . \1", text)  # the full stop; others may be abbreviations
    return " ".join(text.split())


class SpanScore(NamedTuple):
    """Precision, recall and F1 of entities, each from 0 to 100."""

    precision: float
    recall: float
    f1: float


def span_f1(predictions, references):
    """How many entities were found whole, with both ends and the type right, by seqeval: micro-averaged.

    As in the scorer of CoNLL-2000, a tag ``I-x`` that follows no ``x`` begins an entity.

    Args:
        predictions: list of lists of tags, one of each sentence, as ``["O", "B-person", "I-person"]``.
        references: the right ones, of the same lengths.

    Returns:
        `SpanScore`; 0 where nothing was predicted, or nothing was there to be found.

    Raises:
        ImportError: seqeval is not installed.
        ValueError: there is no sentence, or numbers of sentences or of tags differ.

    Source: Tjong Kim Sang and Buchholz 2000; Nakayama 2018, github.com/chakki-works/seqeval.
    """
    try:
        from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
    except ImportError as error:
        raise ImportError("span F1 needs seqeval: pip install seqeval") from error

    predictions, references = [list(tags) for tags in predictions], [list(tags) for tags in references]
    if len(predictions) != len(references) or not references:
        raise ValueError(f"there are {len(predictions)} predictions and {len(references)} references, expected as many")
    for number, (predicted, wanted) in enumerate(zip(predictions, references, strict=True)):
        if len(predicted) != len(wanted):
            raise ValueError(f"sentence {number} has {len(wanted)} tags, but {len(predicted)} were predicted")
    scores = precision_recall_fscore_support(references, predictions, average="micro", zero_division=0)
    return SpanScore(*(100 * float(score) for score in scores[:3]))


class AnswerScore(NamedTuple):
    """SQuAD's two scores, each from 0 to 100: exact match, and F1 of words."""

    exact_match: float
    f1: float


def normalize_answer(text):
    """An answer as SQuAD compares it: lower case, without ASCII punctuation and the words a, an, the, spaces single.

    Source: Rajpurkar et al. 2016, section 5; the official script of SQuAD 1.1.
    """
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def answer_scores(prediction, answers):
    """The scores of one answer: each the best over the right ones.

    Args:
        prediction: str; empty for "there is no answer".
        answers: list of str, the right ones; empty where there is none.

    Returns:
        `AnswerScore`. Of no words (there is no answer, or nothing is left of it but articles) F1 is the exact match.

    Source: Rajpurkar et al. 2016, section 5; without an answer: the official script of SQuAD 2.0.
    """
    words = normalize_answer(prediction).split()
    # as the official script does: a right answer that vanishes does not count beside others
    wanted = [normalised.split() for normalised in map(normalize_answer, answers) if normalised] or [[]]
    exact, best = False, 0.0
    for right in wanted:
        exact |= words == right
        shared = sum((Counter(words) & Counter(right)).values())
        if words and right:
            best = max(best, 2 * shared / (len(words) + len(right)))
        else:
            best = max(best, float(words == right))
    return AnswerScore(100.0 * exact, 100.0 * best)


def squad_scores(predictions, references):
    """The scores of all answers: means over the questions.

    Args:
        predictions: dict from a question's id to str.
        references: dict from a question's id to its list of right answers.

    Returns:
        `AnswerScore`. A question without a prediction scores 0.

    Raises:
        ValueError: there is no question, or a prediction is of another one.
        TypeError: the right answers of a question are one str.
    """
    if not references:
        raise ValueError("there are no questions: nothing to score")
    strangers = set(predictions) - set(references)
    if strangers:
        raise ValueError(f"{len(strangers)} predictions are of no question, such as {sorted(strangers)[0]!r}")
    scores = []
    for question, answers in references.items():
        if isinstance(answers, str):
            raise TypeError(f"the answers of {question!r} are one str, expected a list of str")
        scores.append(answer_scores(predictions[question], answers) if question in predictions else (0.0, 0.0))
    return AnswerScore(*(sum(column) / len(scores) for column in zip(*scores, strict=True)))


def _checked(hypotheses, references):
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError("expected a list of hypotheses and a list of references, got one str: put it into a list")
    hypotheses = list(hypotheses)
    references = [[several] if isinstance(several, str) else list(several) for several in references]
    if len(hypotheses) != len(references):
        raise ValueError(f"there are {len(hypotheses)} hypotheses but {len(references)} references")
    if not hypotheses:
        raise ValueError("there are no hypotheses: nothing to score")
    for position, (hypothesis, several) in enumerate(zip(hypotheses, references, strict=True)):
        if not several:
            raise ValueError(f"sentence {position} has no reference")
        for text in (hypothesis, *several):
            if not isinstance(text, str):
                raise TypeError(f"sentence {position} has a {type(text).__name__}, expected str")
    return hypotheses, references


def _score(metric, hypotheses, references):
    hypotheses, references = _checked(hypotheses, references)
    most = max(map(len, references))
    # sacrebleu wants one list for the first references of all, one for the second, ...; None where there is none
    streams = [[several[i] if i < len(several) else None for several in references] for i in range(most)]
    value = metric.corpus_score(hypotheses, streams).score
    return Score(value, str(metric.get_signature()))
