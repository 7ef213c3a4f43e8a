"""BLEU as sacrebleu counts it, and the positions of tokens that are moved."""

from sacrebleu.metrics import BLEU

from d2lmini.figures import translator

MODULE = "tests/javascript/runtime.js"
WITHIN = 1e-9
REFERENCES = [
    "Le chat noir dort dans la cuisine .",
    "un homme marche .",
    "Deux femmes et trois hommes regardent l'océan",
    "oui",
]
TRANSLATIONS = [
    [
        "le chat noir dort dans la cuisine .",
        "Un homme marche .",
        "deux femmes et trois hommes regardent l'océan",
        "oui",
    ],
    ["le chat le chat le chat le chat", "un un un", "trois hommes et deux femmes regardent", "non non non"],
    ["chat noir", "homme", "femmes", ""],
    ["dort le", "marche homme", "océan hommes trois et femmes deux regardent", "oui"],
    ["x y z w v", "x", "x", "x"],
    ["", "", "", ""],
    ["le chat noir dort dans une cuisine . Le chat noir dort dans une cuisine .", "a b", "c d e f g h", "i"],
]


def cases():
    for translations in TRANSLATIONS:
        score = BLEU(lowercase=True, tokenize="none", force=True).corpus_score(translations, [REFERENCES]).score
        yield "corpusBleu", [translations, REFERENCES], score
    for kind in translator.KINDS:
        for seed in (1, 2, 77):
            wanted = translator._places(kind, 9, 30, seed, 4)
            yield "places", [kind, 9, 30, {"seed": seed, "by": 4}], "in order" if wanted == () else wanted
