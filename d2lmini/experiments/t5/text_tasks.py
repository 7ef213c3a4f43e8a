"""Tasks as text to text: what each is asked with, its examples, and how its answers are scored.

Translation, forms and summaries are made of the grammar corpus, which ships with the package. In the test of each are
sentence patterns that its training has none of.
"""

import random
from typing import NamedTuple

from d2lmini.data.grammar import ADVERBS, make_sentences
from d2lmini.data.grammar_phrases import PLURAL, SINGULAR
from d2lmini.data.grammar_words import AFTER, BEFORE, NOUNS
from d2lmini.data.sentiment import SentencePolarity
from d2lmini.data.tagging import ENTITIES, EmergingEntities
from d2lmini.experiments.t5.answer_scores import entities, exact
from d2lmini.experiments.t5.text_to_text import collate
from d2lmini.tokenization.fast_bpe import BPETokenizer
from d2lmini.tokenization.vocabulary import join_words

SPLITS = "train", "val", "test"
_DETERMINERS = {*SINGULAR, *PLURAL}
_ADJECTIVES = {adjective.english for adjective in (*BEFORE, *AFTER)}
_NOUNS = {form for noun in NOUNS for form in noun.english}
_LONGEST_STORY = 3


class Task(NamedTuple):
    """``prefix`` begins each input. ``examples`` is a dict from a split to (text, answer) pairs, ``metric`` names the
    score, a ratio of sums, and ``row`` gives of an answer and the right one what it adds to both sums."""

    name: str
    prefix: str
    metric: str
    row: callable
    examples: dict


def translation(num_pairs, seed):
    """English sentences of the grammar, to be said in French."""
    made = make_sentences(num_pairs, seed)
    examples = {split: [(s.english, s.french) for s in made[split]] for split in SPLITS}
    return Task("translate", "translate English to French:", "exact match", exact, examples)


def form(num_pairs, seed):
    """The same sentences: is it a question, does it deny something, or is it a statement?"""
    made = make_sentences(num_pairs, seed)
    examples = {split: [(s.english, form_of(s.pattern)) for s in made[split]] for split in SPLITS}
    return Task("form", "form:", "accuracy", exact, examples)


def form_of(pattern):
    """ "question", "denial" or "statement"."""
    return "question" if pattern.question else "denial" if pattern.negation else "statement"


def summaries(num_pairs, seed):
    """Stories of one to three sentences, to be told as a telegram.

    What is asked or denied is left out of a telegram, of what is left adverbs, adjectives beside a noun, articles and
    their like, and where, when or with whom it was: see `telegram`. Each story has a statement.
    """
    examples = {}
    for split, sentences in make_sentences(num_pairs, seed).items():
        generator = random.Random(f"summaries/{split}/{seed}")
        statements = [s for s in sentences if form_of(s.pattern) == "statement"]
        examples[split] = []
        for _ in sentences:
            others = generator.sample(sentences, generator.randrange(_LONGEST_STORY))
            story = [generator.choice(statements), *others]
            generator.shuffle(story)
            telegrams = [telegram(s) for s in story if form_of(s.pattern) == "statement"]
            examples[split].append((" ".join(s.english for s in story), " ".join(telegrams)))
    return Task("summarise", "summarise:", "exact match", exact, examples)


def telegram(sentence):
    """A statement of the grammar without details: "three cows who sing often admire his happy friend with the woman."
    is "cows who sing admire friend."

    Args:
        sentence: a `d2lmini.data.grammar.Sentence`.

    Returns:
        str.
    """
    words, tail = list(sentence.source), sentence.pattern.tail
    if tail:
        last = len(words) - 1 - words[::-1].index(tail)
        words = [*words[:last], words[-1]]  # the full stop stays
    kept = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        beside = following in _ADJECTIVES or following in _NOUNS  # "her" may also be an object: he sees her
        if word not in ADVERBS and not (word in (_DETERMINERS | _ADJECTIVES) and beside):
            kept.append(word)
    return join_words(kept)


def sentiment(seed):
    """Sentences of film reviews: positive or negative."""
    # of the data, only the splits: any tokenizer will do
    data = SentencePolarity(BPETokenizer.train(["a"], 260), seed=seed)
    examples = {split: [(t, data.class_names[label]) for t, label in data.examples(split)] for split in SPLITS}
    return Task("sentiment", "sentiment:", "accuracy", exact, examples)


def tagging(_seed):
    """WNUT-17: the entities of a text in their order, as "person: Barack Obama; location: Paris", else "none"."""
    data = EmergingEntities(BPETokenizer.train(["a"], 260))
    examples = {
        split: [(" ".join(words), named(words, tags)) for words, tags in data.examples(split)] for split in SPLITS
    }
    return Task("tag", "tag:", "span F1", entities, examples)


def named(words, tags):
    """The entities of words by their tags, as text; ``I-x`` that follows no ``x`` begins one."""
    named_entities, last = [], ""
    for word, tag in zip(words, tags, strict=True):
        mark, _, kind = tag.partition("-")
        if mark == "I" and kind == last:
            named_entities[-1] += f" {word}"
        elif kind:
            named_entities.append(f"{kind}: {word}")
        last = kind
    return "; ".join(named_entities) or "none"


def tasks_of(names, num_pairs, seed):
    """Tasks by their names.

    Raises:
        ValueError: there is no task of such a name.
    """
    makers = {
        "translate": lambda: translation(num_pairs, seed),
        "form": lambda: form(num_pairs, seed),
        "summarise": lambda: summaries(num_pairs, seed),
        "sentiment": lambda: sentiment(seed),
        "tag": lambda: tagging(seed),
    }
    for name in names:
        if name not in makers:
            raise ValueError(f"there is no task {name!r}, expected one of {', '.join(makers)}")
    return {name: makers[name]() for name in names}


def kind_of(answer):
    """Which task an answer is an answer to, by its form: "sentiment", "form", "tag", "translate", "summarise", "none of
    these". A translation and a summary are told apart by which language's words of the grammar it has more of."""
    if answer in ("positive", "negative"):
        return "sentiment"
    if answer in ("question", "denial", "statement"):
        return "form"
    pieces = [piece.strip() for piece in answer.split(";")]
    if answer == "none" or all(any(piece.startswith(f"{kind}: ") for kind in ENTITIES) for piece in pieces):
        return "tag"
    words = answer.replace("'", "' ").replace(".", " ").replace("?", " ").split()
    counts = [sum(word in lexicon for word in words) for lexicon in _lexicons()]
    if max(counts) * 2 <= len(words):  # of no language that the grammar knows
        return "none of these"
    return "translate" if counts[1] > counts[0] else "summarise"


_LEXICONS = []


def _lexicons():
    """The words of the grammar, in English and in French."""
    if not _LEXICONS:
        made = make_sentences(4_000)["train"]
        _LEXICONS.extend(({w for s in made for w in s.source}, {w for s in made for w in s.target}))
    return _LEXICONS


# ---- as tokens


def texts_of(tasks):
    """What a tokenizer for tasks, a dict of `Task`, is to be trained on: prefixed training texts and answers."""
    pairs = [(task.prefix, *pair) for task in tasks.values() for pair in task.examples["train"]]
    return [text for prefix, asked, answer in pairs for text in (f"{prefix} {asked}", answer)]


def pairs_of(task, split, tokens, max_len=None, prefix=None):
    """The examples of a split as ids.

    Args:
        task: a `Task`.
        split: one of `SPLITS`.
        tokens: a `Tokens`.
        max_len: most tokens of an input or an answer; longer ones are left out. None: any.
        prefix: what to begin with in place of the task's own.

    Returns:
        list of (input ids, answer ids), each with ``<eos>``.
    """
    texts, wanted = zip(*task.examples[split], strict=True)
    prefix = task.prefix if prefix is None else prefix
    inputs = tokens.encode_batch([f"{prefix} {text}".strip() for text in texts])
    pairs = list(zip(inputs, tokens.encode_batch(list(wanted)), strict=True))
    return [pair for pair in pairs if max_len is None or max(map(len, pair)) <= max_len]


def build(tasks, tokens, examples, max_len=None):
    """One batch of examples of several tasks.

    Args:
        tasks: dict from names to `Task`.
        tokens: a `Tokens`.
        examples: list of B (name of the task, text, answer).
        max_len: most tokens of an input or an answer, ``<eos>`` and prefix included; None: any.

    Returns:
        what `T5` takes: inputs (B, S), targets shifted by one (B, T), lengths of inputs (B,), targets (B, T).

    Raises:
        ValueError: there is no example, a task is unknown, or a text is empty or too long.
    """
    if not examples:
        raise ValueError("there are no examples")
    pairs = []
    for number, (name, text, wanted) in enumerate(examples):
        if name not in tasks:
            raise ValueError(f"example {number} is of the task {name!r}, expected one of {', '.join(tasks)}")
        if not text.strip() or not wanted.strip():
            raise ValueError(f"example {number} has an empty {'text' if not text.strip() else 'answer'}")
        pair = tokens.encode_batch([f"{tasks[name].prefix} {text}", wanted])
        for what, ids in zip(("input", "answer"), pair, strict=True):
            if max_len is not None and len(ids) > max_len:
                raise ValueError(
                    f"the {what} of example {number} has {len(ids)} tokens with its prefix and <eos>, but max_len is "
                    f"{max_len}: {text[:40]!r}"
                )
        pairs.append(tuple(pair))
    return collate(pairs, tokens)


def mixing_rates(sizes, limit=None, temperature=1.0):
    """The share of each task in a mixture: its number of examples, at most ``limit``, to the power 1 / temperature.

    Args:
        sizes: numbers of examples, one of each task.
        limit: K, what a larger task counts as; None: what it is.
        temperature: 1: in proportion to the examples; the higher, the more equal.

    Returns:
        list of numbers that add up to 1.

    Raises:
        ValueError: a size, the limit or the temperature is not above 0.

    Source: Raffel et al. 2020, section 3.5.2.
    """
    if not sizes or min(sizes) <= 0:
        raise ValueError(f"sizes are {list(sizes)}, expected numbers above 0")
    if temperature <= 0 or (limit is not None and limit <= 0):
        raise ValueError(f"limit is {limit} and temperature {temperature}, expected both above 0")
    counted = [min(size, limit or size) for size in sizes]
    powers = [(count / sum(counted)) ** (1 / temperature) for count in counted]
    return [power / sum(powers) for power in powers]
