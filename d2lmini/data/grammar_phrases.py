"""Noun phrases and pronouns of the grammar corpus, and what French does where two words meet."""

from functools import cache
from typing import NamedTuple

from .grammar_words import AFTER, BEFORE, NOUNS

VOWELS = tuple("aeiouhâêîôûàéèœ")  # every h of ours is mute
ELIDED = ("je", "ne", "le", "la", "me", "de", "que")
CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}
# English, person (je il nous vous ils), feminine
SUBJECTS = {
    "I": ("je", 0, False),
    "he": ("il", 1, False),
    "she": ("elle", 1, True),
    "we": ("nous", 2, False),
    "you": ("vous", 3, False),
    "they": ("ils", 4, False),
}
# English: direct, dative, person that it would reflect
OBJECTS = {
    "me": ("me", "me", (0, 2)),
    "us": ("nous", "nous", (0, 2)),
    "you": ("vous", "vous", (3,)),
    "him": ("le", "lui", ()),
    "her": ("la", "lui", ()),
    "them": ("les", "leur", ()),
}
# masculine, feminine
SINGULAR = {
    "the": ("le", "la"),
    "a": ("un", "une"),
    "this": ("ce", "cette"),
    "my": ("mon", "ma"),
    "his": ("son", "sa"),
    "her": ("son", "sa"),
    "our": ("notre", "notre"),
    "your": ("votre", "votre"),
}
PLURAL = {
    "the": "les",
    "some": "des",
    "these": "ces",
    "my": "mes",
    "his": "ses",
    "her": "ses",
    "our": "nos",
    "your": "vos",
    "two": "deux",
    "three": "trois",
}
BEFORE_VOWEL = {"ce": "cet", "ma": "mon", "sa": "son"}


class Source:
    """An English word. Two of the same text are two words, so they are told apart by identity."""

    def __init__(self, text):
        self.text = text


class Target(NamedTuple):
    """A French word, and the English words that it comes from."""

    text: str
    sources: list


class Phrase(NamedTuple):
    """Words of both languages, and what has to agree with them."""

    english: list
    french: list
    person: int = 1  # je, il, nous, vous, ils
    feminine: bool = False
    kind: str = "human"

    @classmethod
    def empty(cls):
        return cls([], [])

    @property
    def plural(self):
        return self.person >= 2

    def agreement(self, participle):
        """The ending that a participle gets after this direct object; none where there is none, or a dative."""
        if not self.english:
            return ""
        return ("e" if self.feminine else "") + ("s" if self.plural and not participle.endswith("s") else "")


class Writer:
    """Makes the phrases of one sentence, in which no noun comes twice.

    Args:
        generator: a ``random.Random``.
    """

    def __init__(self, generator):
        self._random = generator.random
        self._used = set()

    def choice(self, options):
        """One of a sequence. ``random()`` is the one method that gives the same numbers in every Python."""
        return options[int(self._random() * len(options))]

    def _noun(self, kinds):
        nouns = _nouns(tuple(kinds))
        while (noun := self.choice(nouns)) in self._used:
            pass
        self._used.add(noun)
        return noun

    def pronoun(self, words=None):
        """A subject pronoun, of ``words`` or of all."""
        english = self.choice(tuple(words or SUBJECTS))
        french, person, feminine = SUBJECTS[english]
        word = Source(english)
        return Phrase([word], [Target(french, [word])], person, feminine)

    def object_pronoun(self, subject, dative=False, known_gender=False):
        """An object pronoun that does not reflect the subject; with ``known_gender`` one of the third person."""
        able = [word for word, (*_, same) in OBJECTS.items() if subject.person not in same]
        english = self.choice([word for word in able if word in ("him", "her", "them") or not known_gender])
        word = Source(english)
        return Phrase(
            [word], [Target(OBJECTS[english][dative], [word])], 4 if english == "them" else 1, english == "her"
        )

    def noun_phrase(self, shape, kinds, negated=False):
        """A noun with a determiner.

        Args:
            shape: "noun", "noun after", "before noun", "before noun after" (where French puts the adjectives) or
                "possessive".
            kinds: of noun that will do.
            negated: whether it is the direct object of a negated verb: then un and des become de.
        """
        noun = self._noun(kinds)
        plural = self.choice((False, False, True))
        if shape == "possessive":
            return self._possessive(noun, plural)
        form = 2 * plural + noun.feminine
        english, french = [word := Source(noun.english[plural])], [Target(noun.french[plural], [word])]
        if "after" in shape:
            adjective = self.choice(_adjectives(AFTER, noun.kind))
            english.insert(0, word := Source(adjective.english))
            french.append(Target(adjective.french[form], [word]))
        if "before" in shape:
            adjective = self.choice(_adjectives(BEFORE, noun.kind))
            special = form == 0 and french[0].text.startswith(VOWELS)
            english.insert(0, word := Source(adjective.english))
            french.insert(0, Target(adjective.before_vowel if special else adjective.french[form], [word]))
        determiner = self.choice(tuple(PLURAL if plural else SINGULAR))
        article = _article(determiner, noun, plural, negated, shape, french[0].text)
        if determiner == "a" and english[0].text.startswith(tuple("aeiou")) and english[0].text != "useful":
            determiner = "an"
        if determiner == "some" and negated:
            determiner = "any"
        english.insert(0, word := Source(determiner))
        french.insert(0, Target(article, [word]))
        return Phrase(english, french, 4 if plural else 1, noun.feminine, noun.kind)

    def _possessive(self, noun, plural):
        """The king's garden: le jardin du roi. The mark 's is what makes the article and de."""
        owner = self._noun(("human",))
        determiner = self.choice(("the", "this", "my"))
        whose, who, mark, what = map(Source, (determiner, owner.english[0], "'s", noun.english[plural]))
        french = [
            Target(PLURAL["the"] if plural else SINGULAR["the"][noun.feminine], [mark]),
            Target(noun.french[plural], [what]),
            Target("de", [mark]),
            Target(_article(determiner, owner, False, False, "noun", owner.french[0]), [whose]),
            Target(owner.french[0], [who]),
        ]
        return Phrase([whose, who, mark, what], french, 4 if plural else 1, noun.feminine, noun.kind)

    def coordination(self, kinds):
        """Two nouns joined by and: plural, and feminine only if both are."""
        first, second = self.noun_phrase("noun", kinds), self.noun_phrase("noun", kinds)
        word = Source("and")
        return Phrase(
            [*first.english, word, *second.english],
            [*first.french, Target("et", [word]), *second.french],
            4,
            first.feminine and second.feminine,
            first.kind,
        )

    def predicate(self, subject):
        """An adjective said of the subject, which it agrees with."""
        adjective = self.choice(_adjectives(BEFORE + AFTER, subject.kind))
        word = Source(adjective.english)
        return Phrase([word], [Target(adjective.french[2 * subject.plural + subject.feminine], [word])])


@cache
def _nouns(kinds):
    return [noun for noun in NOUNS if noun.kind in kinds]


@cache
def _adjectives(adjectives, kind):
    return [adjective for adjective in adjectives if kind in adjective.kinds]


def _article(determiner, noun, plural, negated, shape, following):
    """The French determiner in front of the word ``following``."""
    if negated and determiner in ("a", "some"):
        return "de"
    if determiner == "some" and "before" in shape:
        return "de"  # de petits chats
    if plural:
        return PLURAL[determiner]
    french = SINGULAR[determiner][noun.feminine]
    return BEFORE_VOWEL.get(french, french) if following.startswith(VOWELS) else french


def adapt(french):
    """Elision, then contraction: le homme becomes l' homme, à le roi au roi.

    Args:
        french: list of `Target`.

    Returns:
        list of `Target`. A contracted word comes from all that its parts came from.
    """
    words = []
    for target, following in zip(french, [*french[1:], None], strict=True):
        text = target.text
        if text in ELIDED and following is not None and following.text.startswith(VOWELS):
            text = text[:-1] + "'"
        if words and (words[-1].text, text) in CONTRACTED:
            last = words.pop()
            words.append(Target(CONTRACTED[last.text, text], [*last.sources, *target.sources]))
        else:
            words.append(Target(text, target.sources))
    return words
