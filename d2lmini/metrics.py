"""Scores of translations: D2L's `bleu` for one sentence, BLEU and chrF of a whole test set by sacrebleu."""

import math
import re
from collections import Counter
from typing import NamedTuple


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

    Source: D2L section 10.7.6, equation 10.7.4.
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
        found, wanted = _ngrams(predicted, n), _ngrams(label, n)
        matches = sum((found & wanted).values())
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


def tokenised_bleu(hypotheses, references):
    """BLEU of lower-cased words and punctuation marks, split as Moses does for French: the score that papers on
    Multi30k report. It is higher than `corpus_bleu`: capitals are forgiven, and each ``l'`` is a word of its own.

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
