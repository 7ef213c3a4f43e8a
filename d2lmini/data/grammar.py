"""Sentences of a small grammar in English and correct French, with the true alignment of their words.

What makes attention cross is all there: adjectives after the noun (the black cat: le chat noir), pronouns before the
verb (I see him: je le vois), negation around it (je ne le vois pas), agreement in gender and number, also of the
participle (je l'ai vue), elision (l'homme), contraction (au roi), and a question that English asks by word order. Only
sentence-initial capitals are left out. English "you" is always "vous", and "they" "ils".
"""

import hashlib
import random
from collections import Counter
from typing import NamedTuple

from ..tokenization.vocabulary import join_words
from .grammar_phrases import Phrase, Source, Target, Writer, adapt
from .grammar_words import ALL_KINDS, ANIMATE, BE, HAVE, MODALS, VERBS

SIMPLE = ("noun", "noun after", "before noun")
NOUN_SHAPES = (*SIMPLE, "before noun after", "possessive")
RELATIVES = ("who intransitive", "who noun", "who pronoun", "that")
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
ADVERBS = {"often": "souvent", "always": "toujours"}
PLACES = {"here": "ici", "now": "maintenant"}
SPLITS = ("train", "val", "test")


class Pattern(NamedTuple):
    """The construction of a sentence, without its words. A pattern belongs to one split."""

    subject: str  # "pronoun", one of NOUN_SHAPES, "and", one of RELATIVES
    negation: str
    frame: str  # "present", "perfect", "can", "must", "want", "going"
    verb: str  # "transitive", "intransitive", "give", "be"
    object: str  # "", "pronoun" or one of NOUN_SHAPES; of "give": to whom
    adverb: str
    tail: str  # "", "here", "now", "with", "in"
    question: bool

    @property
    def split(self):
        """``"train"``, ``"val"`` or ``"test"``, by the SHA-256 of the pattern: 80, 10 and 10 of 100."""
        place = hashlib.sha256("|".join(map(str, self)).encode()).digest()[0] / 256
        return "test" if place < 0.1 else "val" if place < 0.2 else "train"


class Sentence(NamedTuple):
    """A pair. ``alignment`` is a frozenset of (index into ``source``, index into ``target``); every word is in it."""

    english: str
    french: str
    source: tuple  # words, punctuation among them
    target: tuple
    alignment: frozenset
    pattern: Pattern


def make_sentences(num_pairs=12_000, seed=0):
    """Distinct sentences, split by pattern: validation and test have patterns that training has not.

    Args:
        num_pairs: sentences in all, at least 1,000. Those of validation and test with a word that training lacks are
            left out; at the usual number a few.
        seed: integer. The same one gives the same sentences, on every machine.

    Returns:
        dict from ``"train"``, ``"val"`` and ``"test"`` to lists of `Sentence`.

    Raises:
        ValueError: ``num_pairs`` is too small.
    """
    if num_pairs < 1_000:
        raise ValueError(f"num_pairs is {num_pairs}, expected at least 1,000: training has to see every word")
    generator = random.Random(f"grammar/{seed}")
    made = {}
    while len(made) < num_pairs:
        writer = Writer(generator)
        sentence = write(draw_pattern(writer.choice), writer)
        made.setdefault(sentence.english, sentence)
    splits = {split: [s for s in made.values() if s.pattern.split == split] for split in SPLITS}
    known = Counter(word for s in splits["train"] for word in (*s.source, *s.target))
    for split in ("val", "test"):
        splits[split] = [s for s in splits[split] if all(word in known for word in (*s.source, *s.target))]
    return splits


def draw_pattern(choose):
    """A random pattern that makes sense.

    Args:
        choose: function that gives one item of a sequence.
    """
    # an item that is there twice is drawn twice as often
    verb = choose(("transitive",) * 5 + ("intransitive", "give", "be") * 2)
    question = choose((True, *[False] * 6))
    if question:
        subject, negation = choose(("pronoun", *SIMPLE)), ""
    else:
        subject = choose(("pronoun", "pronoun", *NOUN_SHAPES, "and", *RELATIVES))
        negation = choose(("", "", "", *NEGATIONS))
    frame = choose(("present", "present", "present", "perfect", *MODALS))
    if frame == "perfect" and negation == "no longer":
        negation = "not"
    adverb = ""
    if not question and negation in ("", "not") and frame != "going":
        adverb = choose(("",) * 6 + tuple(ADVERBS))
    objects = {"transitive": ("pronoun", "pronoun", *NOUN_SHAPES), "give": ("pronoun", *SIMPLE)}
    tails = ("here", "now", "in") if verb == "be" else ("here", "now", "in", "with")
    tail = choose(("",) * 9 + tails)
    return Pattern(subject, negation, frame, verb, choose(objects.get(verb, ("",))), adverb, tail, question)


def write(pattern, writer):
    """A sentence of a pattern, its words drawn at random.

    Args:
        pattern: a `Pattern`, as `draw_pattern` gives it.
        writer: a new `d2lmini.data.grammar_phrases.Writer`, which draws them.

    Returns:
        `Sentence`.
    """
    subject = _subject(writer, pattern)
    verb = BE if pattern.verb == "be" else writer.choice(VERBS[pattern.verb])
    before, after = _complements(writer, pattern, verb, subject)
    front, middle = _verb_phrase(pattern, verb, subject, before)
    last = _tail(writer, pattern)
    mark = Source("?" if pattern.question else ".")
    english = [*front, *subject.english, *middle.english, *before.english, *after.english, *last.english, mark]
    asking = [Target(word, front) for word in ("est-ce", "que")] if pattern.question else []
    french = [*asking, *subject.french, *middle.french, *after.french, *last.french, Target(mark.text, [mark])]
    french = adapt(french)
    index = {id(word): i for i, word in enumerate(english)}
    alignment = frozenset((index[id(word)], j) for j, target in enumerate(french) for word in target.sources)
    source, target = tuple(word.text for word in english), tuple(word.text for word in french)
    return Sentence(join_words(source, ""), join_words(target), source, target, alignment, pattern)


def _subject(writer, pattern):
    shape = pattern.subject
    # things and places only are something; what they do, want and can is for the living
    kinds = ALL_KINDS if pattern.verb == "be" and pattern.frame in ("present", "perfect", "going") else ANIMATE
    if shape == "pronoun":
        # the gender of the others is not known, so an adjective could not agree
        return writer.pronoun(("he", "she", "they") if pattern.verb == "be" else None)
    if shape == "and":
        return writer.coordination(("human",))
    if shape.startswith("who "):
        return _who(writer, shape.removeprefix("who "))
    if shape == "that":
        return _that(writer, kinds)
    return writer.noun_phrase(shape, kinds)


def _who(writer, object):
    """The man who sees the cat: l'homme qui voit le chat."""
    head = writer.noun_phrase("noun", ANIMATE)
    kind = "intransitive" if object == "intransitive" else "transitive"
    inner = Pattern("", "", "present", kind, "" if kind == "intransitive" else object, "", "", False)
    verb = writer.choice(VERBS[kind])
    before, after = _complements(writer, inner, verb, head)
    _, middle = _verb_phrase(inner, verb, head, before)
    who = Source("who")
    return head._replace(
        english=[*head.english, who, *middle.english, *before.english, *after.english],
        french=[*head.french, Target("qui", [who]), *middle.french, *after.french],
    )


def _that(writer, kinds):
    """The cat that the man sees: le chat que l'homme voit."""
    verb = writer.choice(VERBS["transitive"])
    head = writer.noun_phrase("noun", [kind for kind in kinds if kind in verb.kinds])
    subject = writer.pronoun() if writer.choice((True, False)) else writer.noun_phrase("noun", ANIMATE)
    inner = Pattern("", "", "present", "transitive", "", "", "", False)
    _, middle = _verb_phrase(inner, verb, subject, Phrase.empty())
    that = Source("that")
    return head._replace(
        english=[*head.english, that, *subject.english, *middle.english],
        french=[*head.french, Target("que", [that]), *subject.french, *middle.french],
    )


def _complements(writer, pattern, verb, subject):
    """What French puts before the verb (a pronoun) and after it (all else)."""
    before, after = Phrase.empty(), Phrase.empty()
    negated = bool(pattern.negation)
    if pattern.verb == "be":
        after = writer.predicate(subject)
    elif pattern.verb == "give":
        gift = writer.noun_phrase("noun", verb.kinds, negated)
        to = Source("to")
        if pattern.object == "pronoun":
            whom = writer.object_pronoun(subject, dative=True)
            pronoun = Target(whom.french[0].text, [to, *whom.english])
            # English says it last, French first: so English is kept with the gift
            return Phrase.empty()._replace(french=[pronoun]), gift._replace(english=[*gift.english, to, *whom.english])
        whom = writer.noun_phrase(pattern.object, ("human",))
        english, french = [*gift.english, to, *whom.english], [*gift.french, Target("à", [to]), *whom.french]
        after = gift._replace(english=english, french=french)
    elif pattern.object == "pronoun":
        before = writer.object_pronoun(subject, known_gender=pattern.frame == "perfect")
    elif pattern.object:
        after = writer.noun_phrase(pattern.object, verb.kinds, negated)
    return before, after


def _verb_phrase(pattern, verb, subject, before):
    """The English auxiliary that a question puts in front (a list), and the rest, French pronouns included."""
    be, person = verb is BE, subject.person
    third = person == 1  # he, she, it
    first = Source({0: "am", 1: "is"}.get(person, "are"))
    negation = [Source(word) for word in pattern.negation.split()]
    adverb = [Source(pattern.adverb)] if pattern.adverb else []
    base = [Source(word) for word in verb.english]
    inflected = [Source(word) for word in verb.third] if third else base
    do, modal = Source("does" if third else "do"), pattern.frame
    helped = pattern.question or pattern.negation == "not"  # English needs do
    infinitive, rest = [], []  # of French: sources of the infinitive, words after the finite verb
    if modal == "present" and be:
        auxiliary, english, finite, sources = [first], [*negation, *adverb], verb.french, [first]
    elif modal == "present":
        auxiliary = [do] if helped else []
        main = base if helped else inflected
        english, finite, sources = [*negation, *adverb, *main], verb.french, [*auxiliary, *main]
    elif modal == "perfect":
        auxiliary, past = [Source("has" if third else "have")], [Source(word) for word in verb.english_participle]
        english, finite, sources = [*negation, *adverb, *past], HAVE, auxiliary
        rest = [Target(verb.participle + before.agreement(verb.participle), past)]
    elif modal == "want":
        auxiliary, to = [do] if helped else [], Source("to")
        want = Source("wants" if third and not helped else "want")
        english, sources, infinitive = [*negation, *adverb, want, to, *base], [*auxiliary, want], [to, *base]
    elif modal == "going":
        auxiliary, going, to = [first], Source("going"), Source("to")
        english, sources, infinitive = [*negation, going, to, *base], [first, going], [to, *base]
    else:
        auxiliary, english, infinitive = [Source(modal)], [*negation, *adverb, *base], base
        if modal == "can" and pattern.negation == "not":  # one word
            auxiliary, english = [Source("cannot")], [*adverb, *base]
            negation = auxiliary
        sources = auxiliary
    if infinitive:
        finite, rest = MODALS[modal], [Target(verb.infinitive, infinitive)]
    around = [Target(NEGATIONS[pattern.negation], negation)] if negation else []
    adverbs = [Target(ADVERBS[pattern.adverb], adverb)] if adverb else []
    pronouns, verbal = before.french, [Target(finite[person], sources)]
    french = [*around, *adverbs]
    french = [*verbal, *french, *pronouns, *rest] if infinitive else [*pronouns, *verbal, *french, *rest]
    if negation:
        french.insert(0, Target("ne", negation))
    if pattern.question:
        return auxiliary, Phrase.empty()._replace(english=english, french=french)
    return [], Phrase.empty()._replace(english=[*auxiliary, *english], french=french)


def _tail(writer, pattern):
    if pattern.tail in PLACES:
        word = Source(pattern.tail)
        return Phrase.empty()._replace(english=[word], french=[Target(PLACES[pattern.tail], [word])])
    if not pattern.tail:
        return Phrase.empty()
    kinds, french = (ANIMATE, "avec") if pattern.tail == "with" else (("place",), "dans")
    word, noun = Source(pattern.tail), writer.noun_phrase("noun", kinds)
    return noun._replace(english=[word, *noun.english], french=[Target(french, [word]), *noun.french])
