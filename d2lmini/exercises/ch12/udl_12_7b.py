"""Part b of udl-12.7, "Byte-pair encoding of a nursery rhyme": `apply_merges`."""

import torch

from d2lmini.exercises.ch12.udl_12_7a import RHYME, _count, _drawn, _library, _strings, merge_by_merge
from d2lmini.exercises.engine import Code, Mutant


def apply_merges(word, merges):
    """Cut a word into tokens.

    Args:
        word: str.
        merges: list of pairs (left token, right token) of str, in the order in which they were learned.

    Returns:
        list of str, the tokens; together they are the word.
    """
    ### BEGIN SOLUTION
    ranks = {pair: rank for rank, pair in enumerate(map(tuple, merges))}
    tokens = list(word)
    while True:
        pairs = [(tokens[i], tokens[i + 1]) for i in range(len(tokens) - 1)]
        possible = [(ranks[pair], i) for i, pair in enumerate(pairs) if pair in ranks]
        if not possible:
            return tokens
        i = min(possible)[1]  # learned first; among equal pairs the leftmost
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    ### END SOLUTION


def longest_first(word, merges):
    known = {left + right for left, right in merges} | set(word)
    tokens = []
    while word:
        end = max(end for end in range(1, len(word) + 1) if word[:end] in known)
        tokens.append(word[:end])
        word = word[end:]
    return tokens


def from_the_left(word, merges):
    pairs, tokens, i = set(map(tuple, merges)), list(word), 0
    while i < len(tokens) - 1:
        if (tokens[i], tokens[i + 1]) in pairs:
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
        else:
            i += 1
    return tokens


def one_of_each(word, merges):
    tokens = list(word)
    for left, right in merges:
        for i in range(len(tokens) - 1):
            if (tokens[i], tokens[i + 1]) == (left, right):
                tokens[i : i + 2] = [left + right]
                break
    return tokens


def from_the_last(word, merges):
    return merge_by_merge(word, merges[::-1])


def text_replaced(word, merges):
    """Tokens in one string with a mark between them: it replaces across their ends."""
    text = "\n".join(word)
    for left, right in merges:
        text = text.replace(f"{left}\n{right}", left + right)
    return text.split("\n")


def one_pass(word, merges):
    """Pairs of characters only."""
    tokens = list(word)
    pairs = [(a, b) for a, b in merges if len(a) == len(b) == 1]
    return merge_by_merge(tokens, pairs)


def verify_applying(t, answer):
    rhyme, _ = _library(_count(RHYME), 40)
    drawn, _ = _library(_drawn(t, "ab", 12, 9), 12)
    repeated = [("a", "a"), ("aa", "aa"), ("aa", "b"), ("b", "a")]
    crossed = [("b", "c"), ("a", "b"), ("bc", "d"), ("ab", "c"), ("c", "d"), ("ab", "cd")]
    words = ["".join(t.random.choice("ab") for _ in range(length)) for length in (12, 9, 14, 17)]
    cases = [
        *(("abcd", crossed), ("aabcdab", crossed), ("aaaaaaab", repeated), ("baaabaa", repeated)),
        *(("", rhyme), ("Abc.c", [(".", "c"), ("b", "c")])),
        *((f"{word} ", drawn) for word in words),
        *((word, rhyme) for word in ("seesaw ", "toes ", "x", "bottomless ")),
    ]
    wanted, ends = [], []
    for word, merges in cases:
        wanted += _ends(merge_by_merge(word, merges))
        got = t.call(answer, word, list(merges))
        t.that(_strings(got), "type", f"the result is a {type(got).__name__}, expected a list of str")
        t.that("".join(got) == word, "not-the-word", f"the tokens of {word!r}, put together, are not {word!r}")
        ends += _ends(got)
    # together: of a single word two different mistakes may make the same
    t.same(torch.tensor(ends), torch.tensor(wanted), "the list of places where tokens end, of all words")


def _ends(tokens):
    """Booleans, one for each character: whether a token ends with it."""
    return [i == len(token) - 1 for token in tokens for i in range(len(token))]


MUTANTS = [
    Mutant("last-first", ("min(possible)", "max(possible)"), "the merge that was learned last is made first; it is the "
        "first one that counts"),
    Mutant("leftmost", ("min(possible)", "min(possible, key=lambda match: match[1])"), "the leftmost possible merge is "
        "made; it is the first learned one that comes first, wherever it is"),
    Mutant("rightmost", ("min(possible)", "min(possible, key=lambda match: (match[0], -match[1]))"),
        "of equal pairs the leftmost is merged first: aaa becomes aa a"),
    Mutant("reversed", from_the_last, "the list is gone through from its end; the merge that was learned first is made "
        "first"),
    Mutant("replaced", text_replaced, "a pair is also found where only the end of one token and the beginning of the "
        "next are like it: compare whole tokens, do not replace text"),
    Mutant("longest", longest_first, "the longest known token is taken from the left: so WordPiece cuts, and not "
        "byte-pair encoding"),
    Mutant("from-the-left", from_the_left, "pairs are merged as they are met from the left; the order in which they "
        "were learned decides"),
    Mutant("once", one_of_each, "each merge is made in one place only; it may be possible in several"),
    Mutant("characters", one_pass, "only characters are merged: what was merged may be merged again"),
    Mutant("no-merge", ("if not possible:", "if True:"), "nothing is merged"),
    Mutant("not-the-word", ("return tokens", "return tokens[:-1]")),  # ends lost
    Mutant("type", ("return tokens", "return [len(token) for token in tokens]")),  # ids
    Mutant("type", ("return tokens", 'return "|".join(tokens)')),  # a string
    Mutant("alphabet", ("enumerate(map(tuple, merges))", "enumerate(sorted(map(tuple, merges)))"), "the merges are "
        "made in alphabetical order; the order in which they were learned decides"),
    Mutant("not-the-last", ("range(len(tokens) - 1)", "range(len(tokens) - 2)"), "the last two tokens are never looked "
        "at"),
    Mutant("stops-early", ("if not possible:", "if len(possible) < 2:"), "the last possible merge is not made: go on "
        "until none is left"),
]  # fmt: skip


PART = Code(
    key="udl-12.7b",
    prompt="New text is cut by the merges that were learned: in each word, of all merges that are possible, "
    "the one that was learned first is made first. Write `apply_merges(word, merges)`.",
    hints=[
        "Start with the characters. Which neighbours are a pair of the list? Which of those pairs stands first "
        "in the list?",
        "A merge may make a new pair possible, and another one impossible: look again after each.",
        "Or go through the list of merges once, in order, and make each one wherever it is possible. Why does "
        "that give the same?",
    ],
    answer=apply_merges,
    verify=verify_applying,
    alternatives=[merge_by_merge],
    advice={
        "values": "Of all neighbours that are a pair of the list, the one that stands first in the list is merged, at "
        "its leftmost place; then look again, until there is none",
    },
    mutants=MUTANTS,
    explanation="""
A merge can only be made of tokens that exist, and those were made by merges learned before it. So one pass through the
list, in order, meets every merge that will ever be possible, and it gives what training itself gave for the words of
the training text. No dictionary of words is needed: a word
that was never seen is cut into the pieces that it shares with others. And `"".join(tokens)` is the text again, always.
""",
)
