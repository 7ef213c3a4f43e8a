"""The grammar corpus: sentences written down by hand, rules of French checked on thousands, splits, alignments."""

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from d2lmini.data import grammar_words
from d2lmini.data.grammar import NEGATIONS, SPLITS, Pattern, make_sentences, write
from d2lmini.data.grammar_phrases import Writer
from d2lmini.tokenization.vocabulary import join_words, split_sentence

MADE = make_sentences(6_000)
ALL = [sentence for split in SPLITS for sentence in MADE[split]]


class Scripted(Writer):
    """Draws what the script names, one word a choice: "-s" and "-" for plural and singular."""

    def __init__(self, script):
        super().__init__(random.Random(0))
        self.script = script.split()

    def choice(self, options):
        names, wanted = [name_of(option) for option in options], self.script.pop(0)
        assert wanted in names, f"{wanted!r} is not among {names}"
        return options[names.index(wanted)]


def name_of(option):
    if isinstance(option, bool):
        return "-s" if option else "-"
    name = getattr(option, "english", option)
    return name if isinstance(name, str) else name[0]


PLAIN = Pattern("pronoun", "", "present", "transitive", "", "", "", False)


def say(script, **pattern):
    writer = Scripted(script)
    made = write(PLAIN._replace(**pattern), writer)
    assert not writer.script, f"{writer.script} was not asked for"
    return made


# the script: subject (noun, number, adjectives, determiner), verb, object ...
GOLD = [
    # pronouns before the verb
    (("I see him", {"object": "pronoun"}), "I see him.", "je le vois."),
    (("I love her", {"object": "pronoun"}), "I love her.", "je l'aime."),
    (("we hear them", {"object": "pronoun", "negation": "not"}), "we do not hear them.", "nous ne les entendons pas."),
    (("she wait me", {"object": "pronoun", "negation": "never"}), "she never waits for me.",
     "elle ne m'attend jamais."),
    (("he look her", {"object": "pronoun", "frame": "can", "negation": "not"}), "he cannot look for her.",
     "il ne peut pas la chercher."),
    (("they forget us", {"object": "pronoun", "frame": "want", "negation": "no longer"}),
     "they no longer want to forget us.", "ils ne veulent plus nous oublier."),
    (("I avoid you", {"object": "pronoun", "frame": "going"}), "I am going to avoid you.", "je vais vous éviter."),
    # the participle agrees with what stands before it, and only with that
    (("I see her", {"object": "pronoun", "frame": "perfect", "negation": "not"}), "I have not seen her.",
     "je ne l'ai pas vue."),
    (("he paint them", {"object": "pronoun", "frame": "perfect", "adverb": "often"}), "he has often painted them.",
     "il les a souvent peints."),
    (("you understand them", {"object": "pronoun", "frame": "perfect"}), "you have understood them.",
     "vous les avez compris."),
    (("she find letter -s the", {"object": "noun", "frame": "perfect"}), "she has found the letters.",
     "elle a trouvé les lettres."),
    # adjectives, articles, elision, contraction
    (("cat - black small the love apple - red a", {"subject": "before noun after", "object": "noun after"}),
     "the small black cat loves a red apple.", "le petit chat noir aime une pomme rouge."),
    (("man - old this see bird -s beautiful these", {"subject": "before noun", "object": "before noun"}),
     "this old man sees these beautiful birds.", "ce vieil homme voit ces beaux oiseaux."),
    (("friend - my draw church - our", {"subject": "noun", "object": "noun"}), "my friend draws our church.",
     "mon ami dessine notre église."),
    (("aunt - her hide sword - his", {"subject": "noun", "object": "noun"}), "her aunt hides his sword.",
     "sa tante cache son épée."),
    (("boy - the show key - the king - the", {"subject": "noun", "verb": "give", "object": "noun"}),
     "the boy shows the key to the king.", "le garçon montre la clé au roi."),
    (("boy - the show key - the child -s the", {"subject": "noun", "verb": "give", "object": "noun"}),
     "the boy shows the key to the children.", "le garçon montre la clé aux enfants."),
    (("boy - the show key - the uncle - the", {"subject": "noun", "verb": "give", "object": "noun"}),
     "the boy shows the key to the uncle.", "le garçon montre la clé à l'oncle."),
    (("dog -s king the sleep", {"subject": "possessive", "verb": "intransitive"}), "the king's dogs sleep.",
     "les chiens du roi dorment."),
    (("umbrella - uncle my new", {"subject": "possessive", "verb": "be"}), "my uncle's umbrella is new.",
     "le parapluie de mon oncle est nouveau."),
    # un, des and de
    (("I see tree - a", {"object": "noun", "negation": "not"}), "I do not see a tree.", "je ne vois pas d'arbre."),
    (("I see cat -s some", {"object": "noun", "negation": "no longer"}), "I no longer see any cats.",
     "je ne vois plus de chats."),
    (("I see cat -s some", {"object": "noun"}), "I see some cats.", "je vois des chats."),
    (("I see cat -s big some", {"object": "before noun"}), "I see some big cats.", "je vois de grands chats."),
    (("I see cat -s the", {"object": "noun", "negation": "not"}), "I do not see the cats.",
     "je ne vois pas les chats."),
    # two objects
    (("she give book - the him", {"verb": "give", "object": "pronoun"}), "she gives the book to him.",
     "elle lui donne le livre."),
    (("she send book - a them", {"verb": "give", "object": "pronoun", "negation": "not", "frame": "perfect"}),
     "she has not sent a book to them.", "elle ne leur a pas envoyé de livre."),
    # to be
    (("flower -s the white", {"subject": "noun", "verb": "be"}), "the flowers are white.", "les fleurs sont blanches."),
    (("she happy", {"verb": "be", "negation": "never", "frame": "perfect"}), "she has never been happy.",
     "elle n'a jamais été heureuse."),
    (("queen - the child - the tired", {"subject": "and", "verb": "be"}), "the queen and the child are tired.",
     "la reine et l'enfant sont fatigués."),
    (("queen - the nurse - a tired", {"subject": "and", "verb": "be", "adverb": "always"}),
     "the queen and a nurse are always tired.", "la reine et une infirmière sont toujours fatiguées."),
    # clauses
    (("man - the hear her laugh", {"subject": "who pronoun", "verb": "intransitive"}), "the man who hears her laughs.",
     "l'homme qui l'entend rit."),
    (("man - the sleep laugh", {"subject": "who intransitive", "verb": "intransitive"}), "the man who sleeps laughs.",
     "l'homme qui dort rit."),
    (("see cat - the - woman - the sleep", {"subject": "that", "verb": "intransitive"}),
     "the cat that the woman sees sleeps.", "le chat que la femme voit dort."),
    (("love book -s the -s she old", {"subject": "that", "verb": "be"}), "the books that she loves are old.",
     "les livres qu'elle aime sont vieux."),
    # questions
    (("you see him", {"object": "pronoun", "question": True}), "do you see him?", "est-ce que vous le voyez ?"),
    (("she work", {"verb": "intransitive", "question": True, "frame": "perfect"}), "has she worked?",
     "est-ce qu'elle a travaillé ?"),
    (("car - the old", {"subject": "noun", "verb": "be", "question": True}), "is the car old?",
     "est-ce que la voiture est vieille ?"),
    (("he run", {"verb": "intransitive", "frame": "want", "question": True, "tail": "here"}),
     "does he want to run here?", "est-ce qu'il veut courir ici ?"),
    (("they walk forest - this", {"verb": "intransitive", "negation": "not", "tail": "in"}),
     "they do not walk in this forest.", "ils ne marchent pas dans cette forêt."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "english", "french"), GOLD, ids=[english for _, english, _ in GOLD])
def test_by_hand(call, english, french):
    script, pattern = call
    made = say(script, **pattern)
    assert (made.english, made.french) == (english, french)


def links(made):
    return {(made.source[i], made.target[j]) for i, j in made.alignment}


def test_alignments_by_hand():
    assert links(say("I see her", object="pronoun", frame="perfect", negation="not")) == {
        ("I", "je"), ("have", "ai"), ("not", "ne"), ("not", "pas"), ("seen", "vue"), ("her", "l'"), (".", "."),
    }  # fmt: skip
    assert links(say("dog - king the sleep", subject="possessive", verb="intransitive", negation="not")) == {
        ("dog", "chien"), ("king", "roi"), ("the", "du"), ("'s", "le"), ("'s", "du"), ("not", "ne"), ("not", "pas"),
        ("does", "dort"), ("sleep", "dort"), (".", "."),
    }  # fmt: skip
    assert links(say("you look him", object="pronoun", question=True, frame="going")) == {
        ("are", "est-ce"), ("are", "que"), ("are", "allez"), ("going", "allez"), ("you", "vous"), ("to", "chercher"),
        ("look", "chercher"), ("for", "chercher"), ("him", "le"), ("?", "?"),
    }  # fmt: skip
    assert links(say("he give book - a me", verb="give", object="pronoun", negation="never")) == {
        ("he", "il"), ("never", "ne"), ("never", "jamais"), ("gives", "donne"), ("a", "de"), ("book", "livre"),
        ("to", "me"), ("me", "me"), (".", "."),
    }  # fmt: skip


def test_two_words_of_the_same_text_are_aligned_apart():
    made = say("man - the love woman - the", subject="noun", object="noun")
    assert made.source == ("the", "man", "loves", "the", "woman", ".")
    assert made.alignment == {(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)}


# ---- rules, on all sentences

VOWELS = "aeiouhéèêàâîôûœ"
NOUNS = {form: noun for noun in grammar_words.NOUNS for form in noun.french}
MASCULINE, FEMININE = {"le", "un", "ce", "cet"}, {"la", "une", "cette"}


def test_elision():
    for made in ALL:
        for word, following in zip(made.target, made.target[1:], strict=False):
            vowel = following[0] in VOWELS
            if word.endswith("'"):
                assert vowel and word[:-1] in ("j", "n", "l", "m", "d", "qu"), made.french
            if word in ("je", "ne", "le", "la", "me", "de", "que", "ma", "sa", "ce"):
                assert not vowel, made.french
            if word == "cet":
                assert vowel, made.french


def test_contraction():
    for made in ALL:
        for pair in zip(made.target, made.target[1:], strict=False):
            assert pair not in {("à", "le"), ("à", "les"), ("de", "le"), ("de", "les")}, made.french


def test_nouns_agree_with_their_articles():
    seen = Counter()
    for made in ALL:
        for word, following in zip(made.target, made.target[1:], strict=False):
            if following in NOUNS and word in MASCULINE | FEMININE:
                assert (word in FEMININE) == NOUNS[following].feminine, made.french
                seen[word] += 1
            if following in NOUNS and word in ("le", "la", "un", "une", "ce", "cette", "mon", "ma"):
                assert following in {noun.french[0] for noun in NOUNS.values()}, made.french
            if following in NOUNS and word in ("les", "des", "ces", "mes", "aux", "deux"):
                assert following in {noun.french[1] for noun in NOUNS.values()} or word == "des", made.french
    assert set(seen) == MASCULINE | FEMININE and min(seen.values()) > 20


def test_negation_surrounds_a_verb():
    for made in ALL:
        particles = [word for word in made.target if word in NEGATIONS.values()]
        ne = [j for j, word in enumerate(made.target) if word in ("ne", "n'")]
        assert len(ne) == len(particles) == bool(made.pattern.negation), made.french
        if particles:
            assert particles[0] == NEGATIONS[made.pattern.negation]
            assert 2 <= made.target.index(particles[0]) - ne[0] <= 3, made.french


def test_object_pronouns_stand_before_the_verb():
    found = Counter()
    for made in ALL:
        kind = made.pattern
        if (kind.subject, kind.object, kind.verb, kind.tail) == ("pronoun", "pronoun", "transitive", ""):
            pronoun = len(made.source) - 2  # the last word before the full stop
            verb = pronoun - 1 - (made.source[pronoun - 1] in ("for", "to"))
            (place,) = {j for i, j in made.alignment if i == pronoun}
            assert place < min(j for i, j in made.alignment if i == verb), (made.english, made.french)
            found[made.target[place]] += 1
    assert len(found) == 8 and sum(found.values()) > 100, found


# ---- the corpus


def test_every_word_is_aligned_and_the_texts_are_their_words():
    for made in ALL:
        sources, targets = ({pair[side] for pair in made.alignment} for side in (0, 1))
        assert sources == set(range(len(made.source))) and targets == set(range(len(made.target)))
        assert join_words(made.source, "") == made.english and join_words(made.target) == made.french
        assert tuple(split_sentence(made.english)) == made.source
        assert tuple(split_sentence(made.french)) == made.target


def test_many_words_cross():
    crossed = sum(any(i < k and j > m for i, j in s.alignment for k, m in s.alignment) for s in ALL)
    assert crossed > 0.6 * len(ALL)


def test_splits_share_no_pattern_and_no_sentence():
    sizes = {split: len(MADE[split]) for split in SPLITS}
    assert 5_900 < sum(sizes.values()) <= 6_000 and min(sizes["val"], sizes["test"]) > 300, sizes
    for take in (lambda s: s.pattern, lambda s: s.english, lambda s: s.french):
        sets = [{take(sentence) for sentence in MADE[split]} for split in SPLITS]
        assert not (sets[0] & sets[1] or sets[0] & sets[2] or sets[1] & sets[2])
    assert len({sentence.english for sentence in ALL}) == len(ALL)


def test_training_has_every_word_and_every_construction():
    train = MADE["train"]
    words = {word for made in train for word in (*made.source, *made.target)}
    parts = {part for made in train for part in enumerate(made.pattern)}
    for made in MADE["val"] + MADE["test"]:
        assert words.issuperset((*made.source, *made.target)) and parts.issuperset(enumerate(made.pattern))


def test_one_english_sentence_has_one_translation():
    translations = {}
    for made in ALL + [s for split in make_sentences(3_000, seed=1).values() for s in split]:
        assert translations.setdefault(made.english, made.french) == made.french


def test_the_same_everywhere():
    # what a change of the grammar, or of Python's random numbers, would alter
    def digest(made):
        return hashlib.sha256("".join(f"{s.english}{s.french}{sorted(s.alignment)}" for s in made).encode()).hexdigest()

    here = digest(make_sentences(1_000)["train"])
    code = (
        "import hashlib; from d2lmini.data.grammar import make_sentences; made = make_sentences(1_000)['train']\n"
        "text = ''.join(f'{s.english}{s.french}{sorted(s.alignment)}' for s in made)\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "11"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=120, check=True)
    assert done.stdout.decode().strip() == here
    assert digest(make_sentences(1_000, seed=1)["train"]) != here


def test_too_few():
    with pytest.raises(ValueError, match="num_pairs is 999, expected at least 1,000"):
        make_sentences(999)


# ---- the words


def test_the_lists_of_words_are_whole():
    nouns = grammar_words.NOUNS
    assert len({noun.english[0] for noun in nouns}) == len({noun.french[0] for noun in nouns}) == len(nouns) > 45
    for adjective in (*grammar_words.BEFORE, *grammar_words.AFTER):
        assert len(adjective.french) == 4 and adjective.kinds and "human" not in adjective.french
    for verbs in grammar_words.VERBS.values():
        for verb in verbs:
            assert (
                len(verb.french) == 5 and verb.infinitive[-2:] in ("er", "ir", "re") and verb.participle[-1] in "éiuts"
            )
            assert verb.french[2].endswith("ons") and verb.french[3].endswith("ez") and verb.french[4].endswith("ent")
    vieux = next(adjective for adjective in grammar_words.BEFORE if adjective.english == "old")
    assert vieux.french == ("vieux", "vieille", "vieux", "vieilles") and vieux.before_vowel == "vieil"
