"""Texts made by rule, with labels, for the presets of the fine-tunings that need no data: tiny stand-ins for the real.

Each kind has something that counting words misses: which clause of a review decides, what surrounds a name that was
never seen, which of several facts a question asks for, who did what to whom.
"""

import itertools
import random

from d2lmini.data.paraphrases import Paraphrases
from d2lmini.data.question_answering import SQuAD
from d2lmini.data.sentiment import SentencePolarity
from d2lmini.data.squad import Question
from d2lmini.data.tagging import EmergingEntities

_THINGS = [
    "plot",
    "cast",
    "music",
    "script",
    "ending",
    "dialogue",
    "pace",
    "camera",
    "humour",
    "hero",
    "villain",
    "scenery",
]
_GOOD = ["clever", "moving", "fresh", "funny", "rich", "gripping", "warm", "honest", "lovely", "sharp"]
_BAD = ["dull", "hollow", "stale", "clumsy", "thin", "tedious", "cold", "false", "ugly", "flat"]
_SYLLABLES = ["ba", "den", "ka", "lo", "mi", "nor", "pe", "ri", "sa", "tu", "vel", "zo"]
_TAGGED = (
    "{person} moved to {location} last year .",
    "we met {person} and {person} at the office of {corporation} .",
    "is {location} far from {location} ?",
    "{corporation} opens a shop in {location} .",
    "{person} works for {corporation} now .",
    "nothing ever happens here .",
    "my friend {person} hates the food in {location} .",
)
_FACTS = (
    ("{who} lives in {what} .", "Where does {who} live ?"),
    ("{who} works for {what} .", "For whom does {who} work ?"),
    ("{who} keeps a {what} .", "Which animal does {who} keep ?"),
    ("{who} was born in {what} .", "Where was {who} born ?"),
)
_ANIMALS = ["cat", "dog", "hen", "goat", "horse", "parrot", "snake", "lizard"]
_PAIRED = (  # what one says of the first and the second, the other says with the two in turn
    ("{a} gave {b} the {thing} .", "{b} got the {thing} from {a} ."),
    ("{a} is older than {b} .", "{b} is younger than {a} ."),
    ("{a} taught {b} .", "{b} was taught by {a} ."),
    ("{a} sold the {thing} to {b} .", "{b} bought the {thing} from {a} ."),
)
_GIVEN = ["book", "lamp", "coat", "chair", "bottle", "ring"]
_SIZES = {"train": 0.7, "val": 0.15, "test": 0.15}


class MadeReviews(SentencePolarity):
    """`SentencePolarity` of 1,200 sentences made by rule: the clause that does not begin with "although", or that
    follows "but", decides.
    """

    def __init__(self, tokenizer, batch_size=32, max_len=64, truncate=False, seed=0):
        _begin(self, tokenizer, batch_size, max_len, truncate, seed)
        self._set_up(_split(_reviews(random.Random(seed), 1_200)), tokenizer)


class MadeNames(EmergingEntities):
    """`EmergingEntities` of 700 sentences made by rule, with names of syllables."""

    def __init__(self, tokenizer, batch_size=32, max_len=64, truncate=False, seed=0):
        _begin(self, tokenizer, batch_size, max_len, truncate, seed)
        self.label_all = False
        self._set_up(_split(_tagged(random.Random(seed), 700)), tokenizer)


class MadeQuestions(SQuAD):
    """`SQuAD` of 800 questions made by rule, each about one of four facts."""

    def __init__(self, tokenizer, batch_size=32, max_len=96, stride=32, seed=0):
        _begin(self, tokenizer, batch_size, max_len, False, seed)
        self.stride, self._windows = stride, {}
        self._set_up(_split(_questions(random.Random(seed), 800)), tokenizer)


class MadePairs(Paraphrases):
    """`Paraphrases` of 800 pairs made by rule; a twin has the two names in the wrong places."""

    def __init__(self, tokenizer, batch_size=32, max_len=64, truncate=False, seed=0):
        _begin(self, tokenizer, batch_size, max_len, truncate, seed)
        self._set_up(_split(_pairs(random.Random(seed), 400), 2), tokenizer)


def _begin(data, tokenizer, batch_size, max_len, truncate, seed):
    data.batch_size, data.max_len, data.truncate, data.seed = batch_size, max_len, truncate, seed


def _split(examples, together=1):
    """Splits by their sizes; so many examples in a row stay together."""
    bounds, number = [0], len(examples) // together
    for share in _SIZES.values():
        bounds.append(bounds[-1] + round(share * number))
    pairs = itertools.pairwise(together * bound for bound in bounds)
    return {split: examples[start:end] for split, (start, end) in zip(_SIZES, pairs, strict=True)}


def _reviews(source, number):
    def clause(thing):
        good, turned = source.random() < 0.5, source.random() < 0.3
        word = source.choice(_GOOD if good else _BAD)
        return f"the {thing} is {'not ' * turned}{word}", int(good != turned)

    labels = {}
    while len(labels) < number:
        (first, weak), (second, strong) = (clause(thing) for thing in source.sample(_THINGS, 2))
        form = source.randrange(4)
        texts = (f"{second} .", f"{first} , but {second} .", f"although {first} , {second} .")
        text = (*texts, f"{second} , although {first} .")[form]
        if form == 0 or weak != strong or source.random() < 0.3:  # most of the time the clauses disagree
            labels[text] = strong
    return list(labels.items())


def _name(source):
    return "".join(source.sample(_SYLLABLES, source.choice((2, 2, 3)))).capitalize()


def _tagged(source, number):
    examples = []
    for _ in range(number):
        words, tags = [], []
        for word in source.choice(_TAGGED).split():
            kind = word.strip("{}")
            entity = [word]
            if kind != word:
                entity = [_name(source) for _ in range(source.choice((1, 2)) if kind == "person" else 1)]
                entity += ["Inc"] * (kind == "corporation" and source.random() < 0.5)
            words += entity
            tags += ["O"] if kind == word else [f"B-{kind}", *[f"I-{kind}"] * (len(entity) - 1)]
        examples.append((words, tags))
    return examples


def _questions(source, number):
    questions = []
    while len(questions) < number:
        people = [_name(source) for _ in range(2)]
        if people[0] == people[1]:
            continue
        facts = [(who, fact) for who in people for fact in source.sample(_FACTS, 2)]
        sentences, answers = [], []
        for who, (statement, _) in facts:
            what = source.choice(_ANIMALS) if "keeps" in statement else _name(source)
            start = len(" ".join([*sentences, ""])) + statement.format(who=who, what="\0").index("\0")
            sentences.append(statement.format(who=who, what=what))
            answers.append((what, start))
        asked = source.randrange(len(facts))
        who, (_, question) = facts[asked]
        context = " ".join(sentences)
        questions.append(Question(f"made-{len(questions)}", "", question.format(who=who), context, (answers[asked],)))
    return questions


def _pairs(source, number):
    pairs = []
    while len(pairs) < 2 * number:
        forms = source.choice(_PAIRED)
        forms = forms if source.random() < 0.5 else forms[::-1]
        a, b = source.sample(_SYLLABLES, 2)
        a, b, thing = a.capitalize(), b.capitalize(), source.choice(_GIVEN)
        first, second = (form.format(a=a, b=b, thing=thing) for form in forms)
        twin = forms[1].format(a=b, b=a, thing=thing)
        pairs += [(first, second, 1), (first, twin, 0)]
    return pairs
