"""Byte-pair encoding: learning and making merges."""

from itertools import pairwise

from d2lmini.figures.bpe_stepper import LONGEST, RHYME
from d2lmini.tokenization.bpe import BytePairEncoding

TEXTS = {  # with a word to split
    RHYME: "seaweed",
    "aaaaa aaa aa a aaaa baaa": "aaaab ",
    "low lower  lowest\r\nnew newer\t newest ": "slower",
    "ünïcödé 日本 日本語 🙂🙂 👩‍👩‍👧 \ue000🙂 \ue0001": "日本🙂",
    "\ufeffa \ufeffa\x1fb\x85c": "\ufeff",
    "abc abc ab bc abc": "",  # two merges may give one token
}


def cases():
    for given, word in TEXTS.items():
        text, trained = given.replace("\r\n", "\n"), _trained(given)
        names, learned, symbols = trained.vocabulary, _merges(trained), _trained(given, 0).vocabulary
        yield _learn(given)
        for done in sorted({0, min(5, len(learned)), len(learned)}):
            ids = _trained(given, done).encode(text)
            pairs = [pair for pair in pairwise(ids) if not names[pair[0]][-1].isspace()]
            ranked = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
            yield "rankedPairs", [ids, names], [[*pair, pairs.count(pair)] for pair in ranked]
            if done < len(learned):
                yield "join", [ids, learned[done]], _trained(given, done + 1).encode(text)
            closed = word + " " if word.strip() == word and word else word
            unknown = sorted(set(closed) - set(text))  # they are symbols too here, behind all others
            split = BytePairEncoding(symbols + unknown, trained.merges[:done])
            tokens = [split.vocabulary[i] for i in split.encode(closed)] if closed else []
            pieces = [token if token in unknown else names.index(token) for token in tokens]
            yield "split", [word, names, learned[:done]], pieces
    yield _learn("so many words of a text " * 90)
    yield "learn", [""], {"letters": 0, "names": [], "start": [], "merges": [], "used": [0], "length": [0]}
    yield "join", [["x", 0, 0, 0, "x", 0], [0, 0, 5, 9]], ["x", 5, 0, "x", 0]
    for token in ("a ", "a", " a", "a\x85", "\x1c", "\ufeff", "🙂\u3000", "a\u200b"):
        yield "closes", [token], token[-1].isspace()


def _trained(given, merges=LONGEST):
    return BytePairEncoding.train(given.replace("\r\n", "\n")[:LONGEST], merges)


def _merges(trained):
    index = trained.vocabulary.index
    return [[index(a), index(b), index(a + b), count] for (a, b), count, *_ in trained.steps[1:]]


def _learn(given):
    trained, symbols = _trained(given), _trained(given, 0)
    return (
        "learn",
        [given],
        {
            "letters": len(symbols.vocabulary),
            "names": trained.vocabulary,
            "start": symbols.encode(given.replace("\r\n", "\n")[:LONGEST]),
            "merges": _merges(trained),
            "used": [step.num_symbols for step in trained.steps],
            "length": [step.num_tokens for step in trained.steps],
        },
    )
