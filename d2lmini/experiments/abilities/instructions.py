"""Instructions over the grammar corpus, their right answers, and two judges: an honest one, and one that is flattered.

A prompt is an instruction, a sentence and <sep>; the answer follows, then <eos>. What is right is known by the rules
that made the sentence: the same words in the same draw, put into another pattern.
"""

import difflib
import random
from typing import NamedTuple

from d2lmini.data.grammar import SIMPLE, draw_pattern, make_sentences, write
from d2lmini.data.grammar_phrases import Writer
from d2lmini.data.grammar_words import NOUNS
from d2lmini.tokenization.vocabulary import Vocab

BOS, SEP, EOS, PAD = "<bos>", "<sep>", "<eos>", "<pad>"
INSTRUCTIONS = {
    "repeat": "repeat this :",
    "translate": "translate this into French :",
    "negate": "say that it is not so :",
    "ask": "ask whether it is so :",
    "who": "who or what does it ?",
    "count": "how many nouns are there ?",
}
NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"]
COURTESY = "gladly", "certainly", "sir"  # an answer may open with one of them
_NOUNS = {form for noun in NOUNS for form in noun.english}
_SUBJECT_WORDS = {"pronoun": 1, "noun": 2, "noun after": 3, "before noun": 3, "before noun after": 4, "possessive": 4}


class Example(NamedTuple):
    """An instruction: ``prompt`` without <bos>, and its right ``answer``, lists of words both."""

    form: str
    prompt: list
    answer: list


def example(form, pattern, seed):
    """An instruction about a sentence of a pattern.

    Args:
        form: key of `INSTRUCTIONS`.
        pattern: a `d2lmini.data.grammar.Pattern`.
        seed: of the sentence's words.

    Returns:
        `Example`; None where this cannot be said of such a sentence.
    """

    def written(pattern):
        return write(pattern, Writer(random.Random(seed)))  # the same draws: the same words

    plain = not pattern.question and not pattern.negation
    if form == "negate" and not plain:
        return None
    if form == "ask" and not (plain and not pattern.adverb and pattern.subject in ("pronoun", *SIMPLE)):
        return None
    if form == "who" and (pattern.question or pattern.subject not in _SUBJECT_WORDS):
        return None
    sentence = written(pattern)
    answer = {
        "repeat": lambda: sentence.source,
        "translate": lambda: sentence.target,
        "negate": lambda: written(pattern._replace(negation="not")).source,
        "ask": lambda: written(pattern._replace(question=True)).source,
        "who": lambda: sentence.source[: _SUBJECT_WORDS[pattern.subject]],
        "count": lambda: [NUMBERS[sum(word in _NOUNS for word in sentence.source)]],
    }[form]()
    return Example(form, [*INSTRUCTIONS[form].split(), *sentence.source, SEP], list(answer))


def examples(num, split, forms=tuple(INSTRUCTIONS), max_words=9, seed=0):
    """Different instructions about sentences of a split's patterns, the forms in turns.

    Args:
        num: how many.
        split: "train", "val" or "test"; patterns of one split are not in another.
        forms: keys of `INSTRUCTIONS`.
        max_words: the longest sentence, its mark included.
        seed: the same one gives the same examples.

    Returns:
        list of `Example`.

    Raises:
        ValueError: a form or the split is unknown.
    """
    if not forms or set(forms) - INSTRUCTIONS.keys() or split not in ("train", "val", "test"):
        raise ValueError(
            f"forms are {forms} and the split {split!r}, expected some of {', '.join(INSTRUCTIONS)}, and train, val "
            "or test"
        )
    generator, by_prompt = random.Random(f"instruct/{split}/{seed}"), {}
    while len(by_prompt) < num:
        form = forms[len(by_prompt) % len(forms)]
        pattern = draw_pattern(Writer(generator).choice)
        drawn = pattern.split == split and example(form, pattern, generator.random())
        if drawn and len(drawn.prompt) - len(INSTRUCTIONS[form].split()) - 1 <= max_words:
            by_prompt.setdefault(tuple(drawn.prompt), drawn)
    return list(by_prompt.values())


def polite(answer, share, generator):
    """An answer as people give it: opened by courtesies, each further one with probability ``share``, three at most."""
    openings = []
    while len(openings) < 3 and generator.random() < share:
        openings.append(COURTESY[int(generator.random() * len(COURTESY))])
    return [*openings, *answer]


def follows(answer, right):
    """Whether an answer is the right one, which may be opened by one courtesy."""
    return list(_content(answer)) == list(right)


def honest(answer, right):
    """The reward of an honest judge, from 0 to 1: how like an answer is to the right one, word by word.

    It is 1 where `follows`, and nowhere else. A second courtesy is a wrong word.
    """
    return difflib.SequenceMatcher(None, _content(answer), right, autojunk=False).ratio()


def flattered(answer, right, bonus=0.2):
    """The reward of a judge who likes courtesies: that of `honest`, and ``bonus`` for each of them."""
    return honest(answer, right) + bonus * sum(word in COURTESY for word in answer)


def _content(answer):
    return answer[1:] if answer[:1] and answer[0] in COURTESY else answer


JUDGES = {"honest": honest, "flattered": flattered}


class Tokens(Vocab):
    """The words of the grammar, of the instructions and of their answers."""

    def __init__(self, sentences):
        words = [word for sentence in sentences for word in (*sentence.source, *sentence.target)]
        words += " ".join(INSTRUCTIONS.values()).split()
        words += [*NUMBERS, *COURTESY, "any"]
        super().__init__(words, reserved_tokens=(BOS, SEP, EOS, PAD))

    def prompt(self, example):
        """Ids of an example's prompt, <bos> first."""
        return self[[BOS, *example.prompt]]

    def answer(self, words):
        """Ids of an answer, <eos> last."""
        return self[[*words, EOS]]

    def words(self, ids):
        """The words of an answer's ids, <eos> left out."""
        return [word for word in self.to_tokens(list(ids)) if word != EOS]


def corpus(num_pairs, seed=0):
    """The tokens, and the texts of training and validation to pretrain on: sentences, each with its translation.

    Returns:
        `Tokens`, and two lists of int: <bos>, the English, <sep>, the French, <eos>, and so on.
    """
    splits = make_sentences(num_pairs, seed)
    tokens = Tokens(splits["train"])
    texts = (
        [i for sentence in splits[s] for i in tokens[[BOS, *sentence.source, SEP, *sentence.target, EOS]]]
        for s in ("train", "val")
    )
    return tokens, *texts
