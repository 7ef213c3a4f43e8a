"""Do two English sentences mean the same? Pairs that counting words and their overlap says nothing about."""

import re
from collections import Counter, defaultdict

import torch

from .labels import LabelledText, check_labels, check_limits
from .tatoeba import group_by_sentence, hash_place, parse_pairs, sentence_key, tatoeba_text
from .text_encoder import check_lists

SHARE = 0.15  # of the groups with a paraphrase, for validation, and as much again for testing
_LOOKED_AT = 32  # candidates for a twin whose letters are compared
_FULL = [
    (re.compile(short), full)
    for short, full in (
        (r"\bwon't\b", "will not"),
        (r"\b(can|shan)'t\b", r"\1 not"),
        (r"n't\b", " not"),
        (r"\bcannot\b", "can not"),
        (r"'re\b", " are"),
        (r"'m\b", " am"),
        (r"'ll\b", " will"),
        (r"'ve\b", " have"),
        (r"'d\b", " would"),
        (r"\b(it|that|he|she|there|what|who|where|how|this|here)'s\b", r"\1 is"),
    )
]


class Paraphrases(LabelledText):
    """Pairs of short English sentences: 1 where both have been translated by one French sentence, else 0.

    The pairs come from Tatoeba's English-French pairs. Two English sentences with the same French translation are a
    paraphrase, more or less ("This smells good." and "That smells nice."), unless they are alike but for case,
    punctuation and contractions. Each has a *twin*, which is none: the same first sentence with another second one,
    which has as many words as the paraphrase and shares as many with the first, contractions written out ("This smells
    good." and "That smells delicious."). So half of the pairs are paraphrases, and neither the lengths nor the words
    shared tell which. Paraphrases without a twin are left out; often they share nearly all words. Of several possible
    twins the one is taken that is nearest to the paraphrase in the share of letter triples. No sentence is in two
    paraphrases, and none is in two twins as their second. What is left for simple rules is measured in
    tests/data/test_paraphrases.py: logistic regressions on lengths and letter triples, on the second sentence alone,
    and on which words and pairs of words the two share, are right on less than 66, 57 and 71 % of the test pairs.

    Sentences that are alike but for contractions, or connected by translations, over whatever others, form a group. A
    twin is of another group; it may mean the same by chance. A group goes to one split as a whole, by the SHA-256 of a
    sentence of it, so no sentence of one split is in another. Groups with a paraphrase go to ``train``, ``val`` and
    ``test`` as 70 to 15 to 15; the others, which give twins alone, in thirds, so that twins are as near in each split.

    Args:
        tokenizer: see `TextEncoder`.
        batch_size: B.
        max_len: most tokens of a sequence, special ones included.
        truncate: whether pairs that are too long are cut; else they are an error.
        seed: of the order of the batches; the pairs have none.
        download: whether to fetch what is not on this machine.

    Raises:
        DataError: the file is missing or damaged.

    Attributes:
        class_names: names of the labels, a tuple.

    Source: tatoeba.org, in the selection of manythings.org/anki of 2019; paraphrases by a common translation:
    Bannard and Callison-Burch 2005; pairs that overlap tells nothing about: Zhang, Baldridge, He 2019 (PAWS).
    """

    class_names = ("different", "paraphrase")

    def __init__(self, tokenizer, batch_size=32, max_len=128, truncate=False, seed=0, download=True):
        super().__init__()
        self.save_hyperparameters(ignore=["tokenizer"])
        check_limits(batch_size, max_len, 5)
        examples, left_out = paraphrases(parse_pairs(tatoeba_text(download), "fra.txt"))
        self._set_up(examples, tokenizer, {"has no twin": left_out})

    def build(self, firsts, seconds, labels=None):
        """One batch of any pairs, as the loaders give them, in the order given.

        Args:
            firsts, seconds: two lists of B str.
            labels: B integers, 0 or 1; None: the batch has none.

        Returns:
            tokens (B, T), segments (B, T), valid_lens (B,), and labels (B,) if there are any.

        Raises:
            TypeError: a list is one str, or holds something else than str.
            ValueError: the lists are empty or differ in length, a sentence is empty or a pair too long, or labels do
                not fit.
        """
        check_lists(firsts, seconds)
        if len(firsts) != len(seconds) or not len(firsts):
            raise ValueError(f"there are {len(firsts)} first and {len(seconds)} second sentences, expected as many")
        labels = None if labels is None else check_labels(labels, len(firsts), len(self.class_names))
        inputs = self._inputs(self._pairs(firsts, seconds))
        return inputs if labels is None else [*inputs, torch.tensor(labels)]

    def _encode(self, examples, split):
        firsts, seconds, labels = zip(*examples, strict=True) if examples else ([], [], [])
        return [(*texts, label) for texts, label in zip(self._pairs(firsts, seconds, split), labels, strict=True)]

    def _pairs(self, firsts, seconds, split=None):
        return self._joined(*([ids for ids, _ in self.encoder.encode(side)] for side in (firsts, seconds)), split)


def written_out(text):
    """The words of a sentence in lower case, contractions written out: ``"He's not mine!"`` is ``"he is not mine"``.

    Returns:
        str, words separated by spaces, without punctuation.
    """
    text = text.lower().replace("’", "'")
    for short, full in _FULL:
        text = short.sub(full, text)
    return sentence_key(text)


def overlap(first, second):
    """The share of two sentences' distinct words, contractions written out, that both have: from 0 to 1."""
    first, second = set(written_out(first).split()), set(written_out(second).split())
    return len(first & second) / max(len(first | second), 1)


def paraphrases(pairs):
    """Makes pairs of sentences out of translations; see `Paraphrases`.

    Args:
        pairs: list of (English, French).

    Returns:
        dict from ``"train"``, ``"val"`` and ``"test"`` to lists of (first, second, label), a paraphrase and then its
        twin; and the number of paraphrases that have no twin.
    """
    splits = {"train": ([], []), "val": ([], []), "test": ([], [])}  # paraphrases and sentences: (key, text, group)
    keys = {english: written_out(english) for english, _ in pairs}
    for group, (place, indices) in enumerate(group_by_sentence([(keys[english], french) for english, french in pairs])):
        texts, by_french = {}, defaultdict(set)
        for index in indices:
            english, french = pairs[index]
            texts.setdefault(keys[english], english)
            by_french[sentence_key(french)].add(keys[english])
        paraphrases = _disjoint(by_french)
        bounds = (SHARE, 2 * SHARE) if paraphrases else (1 / 3, 2 / 3)
        positives, sentences = splits["test" if place < bounds[0] else "val" if place < bounds[1] else "train"]
        positives += paraphrases
        sentences += [(key, text, group) for key, text in texts.items()]
    examples, left_out = {}, 0
    for split, (positives, sentences) in splits.items():
        examples[split] = _with_twins(positives, sentences)
        left_out += len(positives) - len(examples[split]) // 2
    return examples, left_out


def _disjoint(by_french):
    """Pairs of keys that share a translation, none in two of them, in an order of their own."""
    pairs, used = [], set()
    for french in sorted(by_french, key=hash_place):
        free = sorted(by_french[french] - used, key=hash_place)
        for first, second in zip(free[::2], free[1::2], strict=False):
            pairs.append((first, second))
            used |= {first, second}
    return pairs


def _with_twins(positives, sentences):
    """The examples of a split: each pair of keys that has a twin, and the twin."""
    sentences = sorted(sentences, key=lambda sentence: hash_place(sentence[0]))
    texts = {key: text for key, text, _ in sentences}
    groups = {key: group for key, _, group in sentences}
    keys = list(texts)
    words = [frozenset(key.split()) for key in keys]
    sizes = [(len(key.split()), len(distinct)) for key, distinct in zip(keys, words, strict=True)]
    holding, alike = defaultdict(list), defaultdict(list)  # numbers of sentences by a word and sizes, by sizes
    for number, size in enumerate(sizes):
        alike[size].append(number)
        for word in words[number]:
            holding[word, size].append(number)
    place = {key: number for number, key in enumerate(keys)}
    used, examples = set(), []
    for first, second in sorted(positives, key=lambda pair: hash_place("\t".join(pair))):
        a, b = place[first], place[second]
        shared = len(words[a] & words[b])
        counts = Counter()
        for word in words[a]:
            counts.update(holding[word, sizes[b]])
        possible = [n for n, count in counts.items() if count == shared] if shared else alike[sizes[b]]
        free = []
        for n in sorted(possible, key=lambda n: (n - a) % len(keys)):  # each begins its search elsewhere
            if n not in used and groups[keys[n]] != groups[first] and (shared or n not in counts):
                free.append(n)
                if len(free) == _LOOKED_AT:
                    break
        if not free:
            continue
        wanted = _alike(first, second)
        twin = min(free, key=lambda n: abs(_alike(first, keys[n]) - wanted))
        used.add(twin)
        examples += [(texts[first], texts[second], 1), (texts[first], texts[keys[twin]], 0)]
    return examples


def _alike(first, second):
    """The share of two sentences' letter triples that both have."""
    first, second = ({f" {key} "[i : i + 3] for i in range(len(key))} for key in (first, second))
    return len(first & second) / len(first | second)
