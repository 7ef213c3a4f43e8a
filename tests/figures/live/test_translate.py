"""What the translator's tasks count by themselves: BLEU as sacrebleu, and positions as the figure's Python."""

import pytest

from d2lmini.figures import translator

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


@pytest.mark.parametrize("translations", TRANSLATIONS)
def test_bleu_is_that_of_sacrebleu(live, translations):
    BLEU = pytest.importorskip("sacrebleu.metrics").BLEU
    score = BLEU(lowercase=True, tokenize="none", force=True).corpus_score(translations, [REFERENCES]).score
    found = live("return live.corpusBleu(given.translations, given.references);", {
        "translations": translations, "references": REFERENCES,
    })  # fmt: skip
    assert found == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 77])
@pytest.mark.parametrize("kind", translator.KINDS)
def test_positions_are_those_of_the_recorded_form(live, kind, seed):
    found = live("const x = live.placesOf(...given); return x === undefined ? 'in order' : x;",
                 [kind, 9, 30, {"seed": seed, "by": 4}])  # fmt: skip
    wanted = translator._places(kind, 9, 30, seed, 4)
    assert found == ("in order" if wanted == () else wanted)
    if kind == "shuffled":
        assert sorted(found) == list(range(30)) and found[9:] == list(range(9, 30)) and found[:9] != list(range(9))
