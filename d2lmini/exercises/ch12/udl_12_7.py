r"""Byte-pair encoding of a nursery rhyme

A sailor went to sea, sea, sea, to see what he could see, see, see. The rhyme has 19 different characters, the space
among them. Byte-pair encoding starts from these. It makes one token of the two neighbours that stand side by side most
often, wherever they do; then it counts again. No merge reaches over the end of a word, and a space belongs to the word
before it: a token may end in a space, as `"sea "` and `"see "`, and has none elsewhere. Where pairs overlap all of them
count, and they are merged from the left: in `aaa` the pair of two `a` stands twice, and becomes `aa` and `a`.

A tie needs a rule, or no two programs agree. Ours is that of the `tokenizers` library. Every token has an id: the
characters have 0, 1, 2, ... in sorted order, and each merge gives the next id to the token that it makes. Among the
pairs that occur most often, take the one whose left token has the smallest id, and of those the one whose right token
has.
"""

import zlib
from itertools import pairwise

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option

RHYME = (
    "a sailor went to sea sea sea to see what he could see see see but all that he could see see see was the bottom "
    "of the deep blue sea sea sea "
)


def learn_merges(words, num_merges):
    """Learn which pairs to merge.

    Args:
        words: dict from a word, a str, to how often it occurs.
        num_merges: how many merges to make; fewer where no pair is left.

    Returns:
        list of pairs (left token, right token) of str, in the order in which they are merged.
    """
    ### BEGIN SOLUTION
    ids = {character: i for i, character in enumerate(sorted(set("".join(words))))}
    split = {word: list(word) for word in words}
    merges = []
    while len(merges) < num_merges:
        counts = {}
        for word, tokens in split.items():
            for i in range(len(tokens) - 1):
                pair = tokens[i], tokens[i + 1]
                counts[pair] = counts.get(pair, 0) + words[word]
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))
        merges.append(best)
        ids[best[0] + best[1]] = len(ids)
        for tokens in split.values():
            i = 0
            while i < len(tokens) - 1:
                if (tokens[i], tokens[i + 1]) == best:
                    tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
                i += 1
    return merges
    ### END SOLUTION


def by_the_package(words, num_merges):
    from d2lmini.tokenization.bpe import learn

    return [step.pair for step in learn(words, sorted(set("".join(words))), num_merges)][1:]


def by_replacing(words, num_merges):
    """Words as strings of tokens with a mark between them."""
    ids = {character: i for i, character in enumerate(sorted(set("".join(words))))}
    split, merges = ["\n".join(word) for word in words], []
    while len(merges) < num_merges:
        counts = {}
        for marked, n in zip(split, words.values(), strict=True):
            tokens = marked.split("\n")
            for i in range(1, len(tokens)):
                counts[tokens[i - 1], tokens[i]] = counts.get((tokens[i - 1], tokens[i]), 0) + n
        if not counts:
            return merges
        most = max(counts.values())
        left, right = min((p for p in counts if counts[p] == most), key=lambda p: [ids[p[0]], ids[p[1]]])
        merges.append([left, right])
        ids.setdefault(left + right, len(ids))
        split = [
            f"\n{marked}\n".replace("\n", "\n\n").replace(f"\n{left}\n\n{right}\n", f"\n{left}{right}\n")
            .replace("\n\n", "\n").strip("\n") for marked in split
        ]  # fmt: skip
    return merges


def over_words(words, num_merges):
    """One long word."""
    return learn_merges({"".join(word * n for word, n in words.items()): 1}, num_merges)


def without_spaces(words, num_merges):
    return learn_merges({word.strip(): n for word, n in words.items()}, num_merges)


def overlaps_once(words, num_merges):
    """Of the two pairs in aaa only one is counted."""
    ids = {character: i for i, character in enumerate(sorted(set("".join(words))))}
    split, merges = {word: list(word) for word in words}, []
    while len(merges) < num_merges:
        counts = {}
        for word, tokens in split.items():
            ends = {}  # of the last place of a pair that was counted
            for i, pair in enumerate(pairwise(tokens)):
                if ends.get(pair) != i:
                    counts[pair], ends[pair] = counts.get(pair, 0) + words[word], i + 1
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))
        merges.append(best)
        ids[best[0] + best[1]] = len(ids)
        split = {word: merge_by_merge(tokens, [best]) for word, tokens in split.items()}
    return merges


def never_applied(words, num_merges):
    counts = {}
    for word, n in words.items():
        for pair in pairwise(word):
            counts[pair] = counts.get(pair, 0) + n
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:num_merges]


def only_new_pairs(words, num_merges):
    """Counts are kept, and only pairs with the new token are counted anew."""
    ids = {character: i for i, character in enumerate(sorted(set("".join(words))))}
    split, merges, counts = {word: list(word) for word in words}, [], {}
    while len(merges) < num_merges:
        fresh = {}
        for word, tokens in split.items():
            for pair in pairwise(tokens):
                fresh[pair] = fresh.get(pair, 0) + words[word]
        counts = {**fresh, **{pair: n for pair, n in counts.items() if pair in fresh}}
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))
        merges.append(best)
        ids.setdefault(best[0] + best[1], len(ids))
        for tokens in split.values():
            i = 0
            while i < len(tokens) - 1:
                if (tokens[i], tokens[i + 1]) == best:
                    tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
                i += 1
    return merges


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


def merge_by_merge(word, merges):
    tokens = list(word)
    for left, right in merges:
        done = []
        for token in tokens:
            if done and done[-1] == left and token == right:
                done[-1] += right
            else:
                done.append(token)
        tokens = done
    return tokens


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


def _strings(got):
    return isinstance(got, (list, tuple)) and all(isinstance(token, str) for token in got)


def _codes(merges):
    """Merges as integers (num_merges, 2): equal where the tokens are."""
    return torch.tensor([[zlib.crc32(token.encode()) for token in pair] for pair in merges]).long().view(-1, 2)


def _library(words, num_merges):
    """Merges and model of the tokenizers library."""
    import json

    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\S*\s|\S+"), "isolated")
    size = len(set("".join(words))) + num_merges
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator([word for word, n in words.items() for _ in range(n)], trainer)
    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]], tokenizer


def _count(text):
    words = {}
    for word in text.split():
        words[f"{word} "] = words.get(f"{word} ", 0) + 1
    return words


def _drawn(t, letters, number, longest):
    """Random words, each with a frequency."""
    words = {}
    for _ in range(number):
        length = t.random.randint(2, longest)
        words["".join(t.random.choice(letters) for _ in range(length)) + " "] = t.random.randint(1, 9)
    return words


def verify_learning(t, answer):
    cases = [
        (_drawn(t, "abcdé", 30, 7), 25, "random words"),
        (_count(RHYME), 12, "the rhyme"),
        ({"aaaaab ": 3, "baaa ": 2, "aab ": 1}, 4, "words with a letter that is repeated"),
        ({"aaa ": 2, "baaa ": 1, "bc ": 4}, 3, "words with pairs that overlap"),
        (_drawn(t, "pqr", 5, 5), 1, "one merge"),
        (_count("été très été même été fête été très".encode().decode("latin-1")), 9, "the bytes of French words"),
        (_count(RHYME), 60, "the rhyme until nothing is left"),
    ]
    for words, number, name in cases:
        want, _ = _library(words, number)
        got = t.call(answer, words, number)
        t.that(
            isinstance(got, (list, tuple)), "type", f"the result is a {type(got).__name__}, expected a list of pairs"
        )
        right = all(_strings(pair) and len(pair) == 2 for pair in got)
        t.that(right, "type", "the result holds something else than pairs (left token, right token) of str")
        t.that(
            len(got) == len(want),
            "shape",
            f"{name}: {len(got)} merges came back; as many are expected as were asked for ({number}), or all "
            "that there are, if those are fewer",
        )
        t.same(_codes(got), _codes(want), f"the list of merges of {name}", dtype=torch.int64)


def verify_applying(t, answer):
    rhyme, _ = _library(_count(RHYME), 40)
    drawn, _ = _library(_drawn(t, "ab", 12, 9), 12)
    repeated = [("a", "a"), ("aa", "aa"), ("aa", "b"), ("b", "a")]
    crossed = [("b", "c"), ("a", "b"), ("bc", "d"), ("ab", "c"), ("c", "d"), ("ab", "cd")]
    words = ["".join(t.random.choice("ab") for _ in range(length)) for length in (12, 9, 14, 17)]
    cases = [
        *(("abcd", crossed), ("aabcdab", crossed), ("aaaaaaab", repeated), ("baaabaa", repeated)),
        *((f"{word} ", drawn) for word in words),
        *((word, rhyme) for word in ("seesaw ", "toes ", "x", "bottomless ")),
    ]
    wanted, found = [], []
    for word, merges in cases:
        wanted += _ends(merge_by_merge(word, merges))
        got = t.call(answer, word, list(merges))
        t.that(_strings(got), "type", f"the result is a {type(got).__name__}, expected a list of str")
        t.that("".join(got) == word, "not-the-word", f"the tokens of {word!r}, put together, are not {word!r}")
        found += _ends(got)
    # together: of a single word two different mistakes may make the same
    t.same(torch.tensor(found), torch.tensor(wanted), "the list of places where tokens end, of all words")


def _ends(tokens):
    """Booleans, one for each character: whether a token ends with it."""
    return [i == len(token) - 1 for token in tokens for i in range(len(token))]


MUTANTS_A = [
    Mutant("frequency", ("+ words[word]", "+ 1"), "a pair in a word that occurs n times counts n times"),
    Mutant("rarest", ("-counts[pair]", "counts[pair]"), "the most frequent pair is merged first"),
    Mutant("ties-turned", ("ids[pair[0]], ids[pair[1]])", "-ids[pair[0]], -ids[pair[1]])"), "ties go to the smallest "
        "ids, not to the largest"),
    Mutant("ties-right", ("ids[pair[0]], ids[pair[1]])", "ids[pair[1]], ids[pair[0]])"), "in a tie the left token's id "
        "counts first, then the right one's"),
    Mutant("ties-alphabet", ("ids[pair[0]], ids[pair[1]])", "pair)"), "ties are broken by the alphabet; the ids "
        "decide, and a merged token has a larger one than any character"),
    Mutant("ties-last", ("min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))",
        "max(counts, key=lambda pair: (counts[pair], pair))"), "ties go to the pair that is last in the alphabet; the "
        "smallest ids decide"),
    Mutant("ties-left-only", ("ids[pair[0]], ids[pair[1]])", "ids[pair[0]])"), "of equally frequent pairs several may "
        "have the same left token: then the right one's id decides"),
    Mutant("ties-first-seen", ("(-counts[pair], ids[pair[0]], ids[pair[1]])", "-counts[pair]"),
        "a tie goes to the pair that was met first, so the result hangs on the order of the words: use the ids"),
    Mutant("once-a-word", ("[tokens[i] + tokens[i + 1]]\n", "[tokens[i] + tokens[i + 1]]\n                    break\n"),
        "a pair is merged once in each word; it may occur there again"),
    Mutant("over-words", over_words, "merges reach over the ends of words: count the pairs inside of each word"),
    Mutant("spaces", without_spaces, "the words have lost their spaces: a space is a character of its word like any "
        "other"),
    Mutant("overlaps", overlaps_once, "in aaa the pair of two a stands twice: count both, though only one can be "
        "merged"),
    Mutant("never-applied", never_applied, "these are the most frequent pairs of characters; after each merge the "
        "words consist of other tokens, and the pairs must be counted anew"),
    Mutant("old-counts", only_new_pairs, "a merge also changes the counts of pairs that it does not make: where s e "
        "became se, the pair e a is gone"),
    Mutant("shape", ("len(merges) < num_merges", "len(merges) < num_merges - 1")),  # one too few
    Mutant("raised", ("if not counts:", "if False:")),  # does not stop
    Mutant("type", ("merges.append(best)", "merges.append(best[0] + best[1])")),  # tokens, not pairs
]  # fmt: skip

MUTANTS_B = [
    Mutant("last-first", ("min(possible)", "max(possible)"), "the merge that was learned last is made first; it is the "
        "first one that counts"),
    Mutant("leftmost", ("min(possible)", "min(possible, key=lambda found: found[1])"), "the leftmost possible merge is "
        "made; it is the first learned one that comes first, wherever it is"),
    Mutant("rightmost", ("min(possible)", "min(possible, key=lambda found: (found[0], -found[1]))"),
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
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.7",
    doc=__doc__,
    source="UDL problem 12.7",
    parts=[
        Code(
            key="udl-12.7a",
            prompt="Write `learn_merges(words, num_merges)`. The words come counted and with their spaces: "
            '`{"a ": 1, "sailor ": 1, "sea ": 6, ...}`. What it finds is compared with what the `tokenizers` library '
            "finds, on the rhyme and on other words.",
            hints=[
                "Keep each word as a list of tokens, at first its characters. A word that occurs five times needs to "
                "be kept only once.",
                "Count each pair of neighbours, a word of frequency n giving n; take the best; replace it in all "
                "words; count again.",
                "`min(counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]]))` takes the most frequent "
                "pair and follows the rule of the ties.",
            ],
            answer=learn_merges,
            verify=verify_learning,
            alternatives=[by_the_package, by_replacing],
            mutants=MUTANTS_A,
            explanation="""
The ids make the rule exact: they do not depend on the order in which words are met. No merge makes a token that there
is already, so that each one gets an id of its own: whatever becomes one token was cut in the same way wherever it stood
between two ends of tokens, so the same merge made it everywhere, at once. Counting anew after each merge goes through
all different words; `d2l.BytePairEncoding` recounts only those in which the pair stood.
""",
        ),
        Code(
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
            mutants=MUTANTS_B,
            explanation="""
A merge can only be made of tokens that exist, and those were made by merges learned before it. So one pass through the
list, in order, meets every merge that will ever be possible, and it gives what training itself gave for the words of
the training text. No dictionary of words is needed: a word
that was never seen is cut into the pieces that it shares with others. And `"".join(tokens)` is the text again, always.
""",
        ),
        Choice(
            key="udl-12.7c",
            prompt="As the merges go on, the number of *different* tokens that the rhyme consists of first rises, "
            "from 19, and then falls, to 18. Why?",
            hints=[
                "A merge makes one new token. When do its two parts disappear from the text?",
                "How many different words has the rhyme?",
            ],
            options=[
                Option(
                    "At first merges are frequent, later they are rare; rare tokens are removed from the vocabulary.",
                    "Nothing is removed: the vocabulary grows with every merge. What falls is the number of tokens in "
                    "use.",
                ),
                Option(
                    "Each merge adds a token. Early on its parts still occur elsewhere, so the number rises. Later a "
                    "merge often takes the last places where its parts occurred, and they go out of use. In the end "
                    "each different word is one token, and there are 18.",
                    "The text becomes shorter with each merge; the number of different tokens is highest somewhere in "
                    "the middle, and at the end it is that of the words.",
                    right=True,
                ),
                Option(
                    "The later merges join two words, so that there are fewer tokens.",
                    "No merge reaches over the end of a word. If merges did, the rhyme would end as a single token.",
                ),
                Option(
                    "The ids of tokens that are alike are given to one of them.",
                    "Tokens are different strings, and each has an id of its own, however alike two of them are.",
                ),
            ],
        ),
    ],
)
