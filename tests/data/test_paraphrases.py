"""Paraphrases and their twins: what they share, what simple rules get out of them, no sentence in two splits."""

import numpy as np
import pytest
from toy_pairs import needs, put_tatoeba
from toy_texts import TOKENIZERS, each_tokenizer

from d2lmini.data.paraphrases import Paraphrases, overlap, paraphrases, written_out
from d2lmini.data.tatoeba import parse_pairs, sentence_key, tatoeba_text

# two sentences with one translation, and others of as many words of which as many are shared
PAIRS = [
    (f"Ann{n} {verb} the cat {animal}.", f"Ann{n} {'aime' if verb in ('likes', 'adores') else verb} {animal}")
    for n in range(60)
    for animal in ("Tom", "Kim")
    for verb in ("likes", "adores", "sees", "hears", "feeds", "finds", "wants", "hides")
]


def words(text):
    return written_out(text).split()


def check(examples):
    """What is promised of the pairs of a split."""
    assert len(examples) % 2 == 0
    for paraphrase, twin in zip(examples[::2], examples[1::2], strict=True):
        (first, second, one), (same, other, zero) = paraphrase, twin
        assert (one, zero) == (1, 0) and first == same and written_out(second) != written_out(other)
        assert len(words(second)) == len(words(other)) and overlap(first, second) == overlap(first, other)
    firsts = [written_out(first) for first, _, _ in examples[::2]]
    seconds = [written_out(second) for _, second, _ in examples]
    assert len({*firsts, *seconds[::2]}) == len(examples), "a sentence is in two paraphrases"
    assert len({*seconds[1::2]}) == len(examples) // 2, "a sentence is a twin twice"


def shared(splits):
    keys = [{written_out(text) for example in examples for text in example[:2]} for examples in splits.values()]
    return keys[0] & keys[1] | keys[0] & keys[2] | keys[1] & keys[2]


def test_written_out():
    assert written_out("He’s not mine, I can't; we'd say they're Tom's!") == (
        "he is not mine i can not we would say they are tom s"
    )
    assert written_out("It cannot be, won't it?") == "it can not be will not it" and written_out("?") == ""
    assert overlap("It's here.", "it is there") == 0.5 and overlap("a b", "A, b!") == 1 and overlap("?", "?") == 0


def test_small_pairs():
    splits, left_out = paraphrases(PAIRS)
    french = {}
    for english, translation in PAIRS:
        french.setdefault(written_out(english), set()).add(sentence_key(translation))
    for examples in splits.values():
        check(examples)
        for first, second, label in examples:
            assert bool(french[written_out(first)] & french[written_out(second)]) == bool(label)
    assert not shared(splits) and all(splits.values())
    assert left_out + sum(map(len, splits.values())) // 2 == 120
    again, _ = paraphrases(PAIRS[::-1])
    assert again == splits, "the order of the file does not matter"


def test_contractions_make_no_paraphrase():
    alike = [
        ("It's old.", "c'est vieux"),
        ("It is old!", "c'est vieux"),
        ("He is", "il est"),
        ("she was", "elle était"),
    ]
    splits, left_out = paraphrases(alike)
    assert not any(splits.values()) and left_out == 0


def test_sentences_alike_but_for_contractions_stay_together():
    pairs = [
        (f"{begin} {n} {word}", f"{french} {n}")
        for n in range(60)
        for begin, french, words in (("It is", "a", ("now", "here")), ("it's", "b", ("now!", "there")))
        for word in words
    ]
    pairs += [(f"it is {n} {word}", f"{word} {n}") for n in range(60) for word in ("late", "old", "dark", "red", "wet")]
    splits, _ = paraphrases(pairs)
    assert all(splits.values()) and not shared(splits)


@each_tokenizer
def test_batches(folder, monkeypatch, tokenizer):
    put_tatoeba(folder, monkeypatch, "".join(f"{english}\t{french}\n" for english, french in PAIRS))
    data = Paraphrases(tokenizer, batch_size=8, download=False)
    assert data.left_out == {"has no twin": paraphrases(PAIRS)[1]}
    labels = data.in_order("test", [batch[3] for batch in data.loader("test")])
    assert [int(label) for label in labels] == [label for *_, label in data.examples("test")]
    tokens, segments, valid_lens, labels = data.build(["Ann1 likes the cat Tom."], ["The cat is hers."], [1])
    ids = [data.encoder.encode([text])[0][0] for text in ("Ann1 likes the cat Tom.", "The cat is hers.")]
    assert tokens.tolist() == [data.encoder.join(*ids)[0]] and segments.tolist() == [data.encoder.join(*ids)[1]]
    assert valid_lens.tolist() == [len(ids[0]) + len(ids[1]) + 3] and labels.tolist() == [1]


def test_bad_input(folder, monkeypatch):
    put_tatoeba(folder, monkeypatch, "".join(f"{english}\t{french}\n" for english, french in PAIRS))
    data = Paraphrases(TOKENIZERS["published"], max_len=24, download=False)
    with pytest.raises(ValueError, match="there are 1 first and 2 second sentences"):
        data.build(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="text 0 is empty"):
        data.build(["a"], [""])
    with pytest.raises(ValueError, match="label 0 is 3"):
        data.build(["a"], ["b"], [3])
    with pytest.raises(ValueError, match="1 of 1 texts have more than 24 tokens"):
        data.build(["the cat " * 9], ["the cat " * 9])


# ---- the real pairs


@pytest.fixture(scope="module")
def real():
    return paraphrases(parse_pairs(tatoeba_text(download=False), "fra.txt"))[0]


@needs("tatoeba_enfr")
@pytest.mark.slow
def test_the_real_pairs(real):
    for examples in real.values():
        check(examples)
    assert not shared(real)
    assert len(real["train"]) > 4_000 and min(len(real["val"]), len(real["test"])) > 700


@needs("tatoeba_enfr")
@pytest.mark.slow
def test_what_simple_rules_get_out_of_the_real_pairs(real):
    """The bounds that the docstring of `Paraphrases` states."""
    linear = pytest.importorskip("sklearn.linear_model", reason="SIMPLE RULES NOT TESTED: pip install scikit-learn")
    from scipy.sparse import hstack
    from sklearn.feature_extraction.text import CountVectorizer

    def triples(text):
        return {f" {written_out(text)} "[i : i + 3] for i in range(len(written_out(text)))}

    def letters(first, second):
        a, b = triples(first), triples(second)
        return [len(a & b) / len(a | b), len(first), len(second), abs(len(first) - len(second))]

    def right(features):
        x, y = ({split: f(real[split]) for split in ("train", "test")} for f in (features, labels_of))
        model = linear.LogisticRegression(max_iter=2_000, C=0.3).fit(x["train"], y["train"])
        return model.score(x["test"], y["test"])

    def labels_of(examples):
        return [label for *_, label in examples]

    counts = CountVectorizer(binary=True, ngram_range=(1, 2)).fit([t for e in real["train"] for t in e[:2]])

    def words_of(examples, side):
        return counts.transform([example[side] for example in examples])

    def both_and_one(examples):
        a, b = words_of(examples, 0), words_of(examples, 1)
        return hstack([a.multiply(b), abs(a - b)]).tocsr()

    sizes = right(lambda e: np.array([[len(words(a)), len(words(b)), overlap(a, b)] for a, b, _ in e]))
    assert sizes == 0.5, "a paraphrase and its twin are the same in this"
    assert 0.5 < right(lambda e: np.array([letters(a, b) for a, b, _ in e])) < 0.66
    assert right(lambda e: words_of(e, 1)) < 0.57
    assert 0.6 < right(both_and_one) < 0.71
