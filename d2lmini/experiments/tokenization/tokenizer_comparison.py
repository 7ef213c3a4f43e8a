"""Chapter 12: byte-pair encoding, WordPiece and unigram with vocabularies of one size, on real text.

How long texts become and what that costs, what happens to rare words and to typing errors, what is unknown, how a
vocabulary of one language does on another, and how the length hangs on the size of the vocabulary. Every number is of
text that the vocabularies were not learned from.
"""

import gzip
import random
import re
from collections import Counter
from dataclasses import dataclass, replace

from d2lmini.data import registry
from d2lmini.data.grammar import make_sentences
from d2lmini.data.tatoeba import parse_pairs, split_by_sentence, tatoeba_text
from d2lmini.data.text import LANGUAGES, load_text
from d2lmini.lab.parts import Parts
from d2lmini.tokenization.subwords import KINDS, SubwordTokenizer

WITHOUT_SPACES = "ja", "zh-cn"
BINS = (0, 1), (1, 2), (2, 5), (5, 20), (20, 100), (100, 10**9)  # how often a word occurs in training: from, below
HELD_OUT_NOVELS = 11, 35
_WORDS = re.compile(r"\w+").findall


@dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        texts: names as `load` takes them; the first one is that of the sizes and of the dropout.
        transfer: those of them whose vocabularies are tried on each other.
        max_characters: of training text, drawn at random by lines.
        max_lines: of test text.
    """

    texts: tuple = ("book", "grammar.en", "grammar.fr")
    transfer: tuple = ("grammar.en", "grammar.fr")
    kinds: tuple = KINDS
    vocab_size: int = 1000
    sizes: tuple = (500, 1000, 2000)
    max_characters: int = 1_000_000
    max_lines: int = 1000
    num_typos: int = 1000
    dropouts: tuple = (0.0, 0.1, 0.5)
    seeds: tuple = (0,)


_MANUAL = tuple(f"debian.{language}" for language in LANGUAGES)
PRESETS = {
    # without WordPiece, whose trainer breaks ties at random: smoke runs are compared with each other
    "smoke": replace(Config(), kinds=("bpe", "unigram"), sizes=(500, 1000), max_characters=50_000, max_lines=50),
    "cpu": Config(),
    "laptop": replace(
        Config(),
        texts=("gutenberg", "multi30k.en", "multi30k.fr", "tatoeba.en", "tatoeba.fr", *_MANUAL),
        transfer=_MANUAL,
        vocab_size=4000,  # Chinese alone has more than 1,500 characters in that manual
        sizes=(500, 1000, 2000, 4000, 8000, 16000, 32000),
        max_characters=4_000_000,
        max_lines=3000,
        num_typos=5000,
        dropouts=(0.0, 0.1, 0.2, 0.5, 0.9),
    ),
}


def load(name):
    """A text in lines, none of them twice, by what is learned from and what is tested on.

    Args:
        name: ``"book"``, ``"gutenberg"``, or a set and a language: ``"grammar.fr"``, ``"multi30k.en"``,
            ``"tatoeba.fr"``, ``"debian.de"``.

    Returns:
        list of str to train, list of str to test, and dict of checksums.

    Raises:
        ValueError: there is no such text.
        DataError: it is not on this machine and cannot be fetched.
    """
    train, test, sums = _load(name)
    test = dict.fromkeys(test)
    return [line for line in dict.fromkeys(train) if line not in test], list(test), sums


def _load(name):
    source, _, language = name.partition(".")
    side = ("en", "fr").index(language) if language in ("en", "fr") else None
    if source == "grammar" and side is not None:
        splits = make_sentences()
        return *([made[side] for made in splits[part]] for part in ("train", "test")), {}
    if source == "multi30k" and side is not None:
        files = [f"{part}.{language}.gz" for part in ("train", "test_2016_flickr")]
        texts = (gzip.decompress(registry.path(source, file).read_bytes()).decode().strip() for file in files)
        return *(text.split("\n") for text in texts), registry.checksums(source, files)
    if source == "tatoeba" and side is not None:
        splits = split_by_sentence(parse_pairs(tatoeba_text()))
        texts = ([pair[side] for pair in splits[part]] for part in ("train", "test"))
        return *texts, registry.checksums("tatoeba_enfr", ["fra-eng.zip"])
    if name == "gutenberg":
        files = [file.name for file in registry.get(name).files]
        novels = {int(file.removesuffix(".txt")): file for file in files}
        lines = {number: _paragraphs(load_text(name, number)) for number in novels}
        test = [line for number in HELD_OUT_NOVELS for line in lines.pop(number)]
        return [line for novel in lines.values() for line in novel], test, registry.checksums(name, files)
    if name == "book" or (source == "debian" and language in LANGUAGES):
        if name == "book":
            lines, sums = _paragraphs(load_text("book")), {}
        else:
            lines = load_text("debian_reference", language).split("\n")
            sums = registry.checksums("debian_reference", [f"debian-reference.{language}.txt.gz"])
        return [line for i, line in enumerate(lines) if i % 10], lines[::10], sums
    raise ValueError(f"there is no text {name!r}, expected one as in the presets: {', '.join(PRESETS['laptop'].texts)}")


def _paragraphs(text):
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]


def sample(lines, most, rng):
    """Lines in random order, as many as fit into so many characters; one at least."""
    lines, total, chosen = rng.sample(lines, len(lines)), 0, []
    for line in lines:
        total += len(line)
        if chosen and total > most:
            break
        chosen.append(line)
    return chosen


def lengths(tokenizer, lines):
    """What a tokenizer makes of lines: sums of tokens, of pairs of tokens (what attention costs), of unknown ones."""
    ids = tokenizer.encode_batch(lines)
    return {
        "tokens": sum(map(len, ids)),
        "pairs": sum(len(line) ** 2 for line in ids),
        "unknown": sum(map(tokenizer.num_unknown, ids)),
    }


def plain_lengths(lines, vocabulary, with_words):
    """The same for units that need no learning: characters, bytes, and words out of a vocabulary."""

    def row(units):
        return {"tokens": sum(map(len, units)), "pairs": sum(len(line) ** 2 for line in units), "unknown": 0}

    by_kind = {"characters": row(lines), "bytes": row([line.encode() for line in lines])}
    if with_words:
        words = [re.findall(r"\w+|[^\w\s]", line) for line in lines]
        by_kind["words"] = row(words) | {"unknown": sum(word not in vocabulary for line in words for word in line)}
    return by_kind


def pieces_by_frequency(tokenizer, frequency, words):
    """Mean number of tokens of a word, for each of `BINS`; None where no word of the test has such a frequency."""
    means = []
    for low, high in BINS:
        chosen = [word for word in words if low <= frequency[word] < high]
        count = sum(len(ids) for ids in tokenizer.encode_batch([f" {word}" for word in chosen]))
        means.append(count / len(chosen) if chosen else None)
    return means


def with_typo(word, letters, rng):
    """A word with one of its inner letters replaced by another letter."""
    place = rng.randrange(1, len(word) - 1)
    other = rng.choice([letter for letter in letters if letter != word[place]])
    return word[:place] + other + word[place + 1 :]


def typos(tokenizer, words, number, rng):
    """What one wrong letter does to a word: tokens before and after, and how many of those after are new.

    Words of four letters or more are drawn from the running text, letters from its words.
    """
    words = [word for word in words if len(word) > 3 and word.isalpha()]
    letters = sorted(set("".join(words).lower()))
    right = [rng.choice(words) for _ in range(number)]
    wrong = [with_typo(word, letters, rng) for word in right]
    pairs = [tokenizer.encode_batch([f" {word}" for word in side]) for side in (right, wrong)]
    before, after = (sum(map(len, side)) for side in pairs)
    new = sum((Counter(b) - Counter(a)).total() for a, b in zip(*pairs, strict=True))
    unknown = sum(map(tokenizer.num_unknown, pairs[1]))
    return {"before": before / number, "after": after / number, "new": new / number, "unknown": unknown / number}


def compare(config, name, seed):
    """One text, all kinds: what `run` records of it."""
    rng = random.Random(seed)
    train, test, sums = load(name)
    train, test = sample(train, config.max_characters, rng), test[: config.max_lines]
    spaces = name.partition(".")[2] not in WITHOUT_SPACES
    frequent = Counter(word for line in train for word in re.findall(r"\w+|[^\w\s]", line))
    vocabulary = {word for word, _ in frequent.most_common(config.vocab_size - 1)}
    record = {
        "train_characters": sum(map(len, train)),
        "characters": sum(map(len, test)),
        "bytes": sum(len(line.encode()) for line in test),
        "words": sum(len(line.split()) for line in test) if spaces else None,
        "kinds": plain_lengths(test, vocabulary, spaces),
        "rare": {},
        "typos": {},
    }
    running = [word for line in test for word in _WORDS(line)]
    for kind in config.kinds:
        tokenizer = SubwordTokenizer.train(kind, train, config.vocab_size)
        record["kinds"][kind] = lengths(tokenizer, test) | {"vocab_size": len(tokenizer)}
        if spaces:
            frequency = Counter(word for line in train for word in _WORDS(line))
            record["rare"][kind] = pieces_by_frequency(tokenizer, frequency, set(running))
            record["typos"][kind] = typos(tokenizer, running, config.num_typos, random.Random(seed))
    for row in record["kinds"].values():
        row["bytes_per_token"] = record["bytes"] / row["tokens"]
        row["tokens_per_word"] = row["tokens"] / record["words"] if spaces else None
        row["unknown_share"] = row["unknown"] / row["tokens"]
        row["pairs_of_characters"] = row["pairs"] / record["kinds"]["characters"]["pairs"]
    return {"found": record, "data": sums}


def by_size(config, seed):
    """The first text with vocabularies of all sizes: tokens of a word, by kind; None where the text has no so many."""
    train, test, _ = load(config.texts[0])
    train, test = sample(train, config.max_characters, random.Random(seed)), test[: config.max_lines]
    words, by_kind = sum(len(line.split()) for line in test), {}
    for kind in config.kinds:
        by_kind[kind] = []
        for size in config.sizes:
            tokenizer = SubwordTokenizer.train(kind, train, size)
            full = len(tokenizer) >= 0.98 * size  # the trainer of unigram may stop a little below
            by_kind[kind].append(lengths(tokenizer, test)["tokens"] / words if full else None)
    return by_kind


def transfer(config, seed):
    """Byte-pair encodings of one language on the others.

    Returns:
        dict from the language of the training text, or ``"all"``, to a dict from that of the test to the number of
        tokens, as a multiple of what a vocabulary of the same size makes that was learned on that language.
    """
    rng = random.Random(seed)
    texts = {name: load(name)[:2] for name in config.transfer}
    train = {name: sample(lines, config.max_characters, rng) for name, (lines, _) in texts.items()}
    train["all"] = [line for lines in train.values() for line in lines]
    tokens = {}
    for name, lines in train.items():
        tokenizer = SubwordTokenizer.train("bpe", lines, config.vocab_size)
        tokens[name] = {other: lengths(tokenizer, test)["tokens"] for other, (_, test) in texts.items()}
    return {name: {other: row[other] / tokens[other][other] for other in row} for name, row in tokens.items()}


def dropout(config, seed):
    """BPE dropout on the first text: tokens as a multiple of those without, and in how many ways a word is cut."""
    rng = random.Random(seed)
    train, test, _ = load(config.texts[0])
    tokenizer = SubwordTokenizer.train("bpe", sample(train, config.max_characters, rng), config.vocab_size).by_hand()
    text = "\n".join(test)[:50_000]
    words = [f" {word}" for word in rng.sample(sorted(set(_WORDS(text))), 100)]
    whole, rows = len(tokenizer.encode(text)), []
    for p in config.dropouts:
        ways = [len({tuple(tokenizer.encode(word, p, rng)) for _ in range(20)}) for word in words]
        rows.append({"p": p, "tokens": len(tokenizer.encode(text, p, rng)) / whole, "ways": sum(ways) / len(ways)})
    return rows


def run(config, device, parts=None):
    """Compares on each text; ``device`` is not used, ``parts`` are those of `Parts`.

    Returns:
        dict with metrics and curves.
    """
    parts = parts or Parts()
    seed = config.seeds[0]
    compared = {name: parts(name, compare, config, name, seed) for name in config.texts}
    metrics = {
        "texts": {name: part["found"] for name, part in compared.items()},
        "bins": [list(pair) for pair in BINS],
        "transfer": parts("transfer", transfer, config, seed),
        "dropout": parts("dropout", dropout, config, seed),
    }
    curves = {"vocab_size": list(config.sizes)} | parts("sizes", by_size, config, seed)
    first, (home, *others) = metrics["texts"][config.texts[0]]["kinds"], config.transfer
    words = ", ".join(f"{kind} {first[kind]['tokens_per_word']:.2f}" for kind in config.kinds)
    most = max(others, key=metrics["transfer"][home].get)
    metrics["headline"] = (
        f"{config.texts[0]}, vocabulary of {config.vocab_size:,}: tokens per word {words}; with a vocabulary of "
        f"{home}, {most} takes {metrics['transfer'][home][most]:.1f} times the tokens of its own"
    )
    data = {name: hash for part in compared.values() for name, hash in part["data"].items()}
    return {"metrics": metrics, "curves": curves, "data": data}
