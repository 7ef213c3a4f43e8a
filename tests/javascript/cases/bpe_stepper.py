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
    "so many words of a text " * 90: "text\n",
}


def cases():
    for given, word in TEXTS.items():
        text = given.replace("\r\n", "\n")[:LONGEST]
        trained = BytePairEncoding.train(text, LONGEST)
        names, steps, learned = trained.vocabulary, trained.steps, [_merge(step, trained) for step in trained.steps[1:]]
        symbols = BytePairEncoding.train(text, 0)
        yield (
            "learn",
            [given],
            {
                "letters": len(symbols.vocabulary),
                "names": names,
                "start": symbols.encode(text),
                "merges": learned,
                "used": [step.num_symbols for step in steps],
                "length": [step.num_tokens for step in steps],
            },
        )
        for done in {0, min(5, len(learned)), len(learned)}:
            ids = BytePairEncoding.train(text, done).encode(text)
            pairs = [pair for pair in pairwise(ids) if not names[pair[0]][-1].isspace()]
            ranked = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
            yield "rankedPairs", [ids, names], [[*pair, pairs.count(pair)] for pair in ranked]
            if done < len(learned):
                after = BytePairEncoding.train(text, done + 1)
                yield "join", [ids, learned[done]], after.encode(text)
            closed = word + " " if word.strip() == word and word else word
            unknown = sorted(set(closed) - set(text))  # they are symbols too here, behind all others
            split = BytePairEncoding(symbols.vocabulary + unknown, trained.merges[:done])
            tokens = [split.vocabulary[i] for i in split.encode(closed)] if closed else []
            yield (
                "split",
                [word, names, learned[:done]],
                [token if token in unknown else names.index(token) for token in tokens],
            )
    yield "learn", [""], {"letters": 0, "names": [], "start": [], "merges": [], "used": [0], "length": [0]}
    yield "join", [["x", 0, 0, 0, "x", 0], [0, 0, 5, 9]], ["x", 5, 0, "x", 0]
    for token in ("a ", "a", " a", "a\x85", "\x1c", "\ufeff", "🙂\u3000", "a\u200b"):
        yield "closes", [token], token[-1].isspace()


def _merge(step, trained):
    left, right = step.pair
    return [*map(trained.vocabulary.index, (left, right, left + right)), step.count]
