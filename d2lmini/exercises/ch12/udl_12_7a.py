"""Part a of udl-12.7, "Byte-pair encoding of a nursery rhyme": `learn_merges`."""

import zlib
from itertools import pairwise

import torch

from d2lmini.exercises.engine import Code, Mutant

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
        (_drawn(t, "pqr", 5, 5), 0, "no merge at all"),
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
            "that there are, if those are fewer (a pair that a merge has taken apart is gone)",
        )
        t.same(_codes(got), _codes(want), f"the list of merges of {name}", dtype=torch.int64)


MUTANTS = [
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
    Mutant("overlaps", overlaps_once, "in aaa the pair of two a stands twice, as a b in abab: count both, though in "
        "aaa only one can be merged"),
    Mutant("never-applied", never_applied, "these are the most frequent pairs of characters; after each merge the "
        "words consist of other tokens, and the pairs must be counted anew"),
    Mutant("old-counts", only_new_pairs, "a merge also changes the counts of pairs that it does not make: where s e "
        "became se, the pair e a is gone"),
    Mutant("shape", ("len(merges) < num_merges", "len(merges) < num_merges - 1")),  # one too few
    # the first one always
    Mutant("shape", ("while len(merges) < num_merges:", "while len(merges) < max(num_merges, 1):")),
    Mutant("raised", ("if not counts:", "if False:")),  # does not stop
    Mutant("type", ("merges.append(best)", "merges.append(best[0] + best[1])")),  # tokens, not pairs
    Mutant("ids-as-met", ('sorted(set("".join(words)))', 'dict.fromkeys("".join(words))'), "the characters have ids in "
        "the order in which they are met: they have them in sorted order"),
    Mutant("ids-turned", ('sorted(set("".join(words)))', 'sorted(set("".join(words)), reverse=True)'), "the characters "
        "have ids in reverse order"),
    Mutant("swapped", ("return merges", "return [(right, left) for left, right in merges]"), "left and right token "
        "have changed places in each pair"),
    Mutant("reversed", ("return merges", "return merges[::-1]"), "the merges come last first: the one that is made "
        "first comes first"),
    Mutant("ties-sum", ("ids[pair[0]], ids[pair[1]])", "ids[pair[0]] + ids[pair[1]])"), "ties go by the sum of the two "
        "ids: the left token's id decides, and the right one's only where that is equal"),
    Mutant("ties-short", ("ids[pair[0]], ids[pair[1]])", "len(pair[0] + pair[1]), ids[pair[0]], ids[pair[1]])"),
        "ties go to the shorter token; the ids alone decide"),
    Mutant("by-length", ("-counts[pair],", "-counts[pair] * len(pair[0] + pair[1]),"), "the count of a pair is "
        "weighted with its length; the most frequent one is merged, however long it is"),
    Mutant("new-ids-first", ("[best[0] + best[1]] = len(ids)", "[best[0] + best[1]] = -len(ids)"), "merged tokens have "
        "smaller ids than the characters: each gets the next id, larger than all before"),
    Mutant("every-second", ("range(len(tokens) - 1):", "range(0, len(tokens) - 1, 2):"), "only every second pair of "
        "neighbours is counted"),
]  # fmt: skip


PART = Code(
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
    advice={
        "raised": "If there is nothing to take the best of: fewer merges than asked for come back where no pair is "
        "left.",
        "values": "Count all pairs of neighbours, each word n times; take the most frequent, in a tie by the ids; merge"
        " it everywhere, from the left; count anew",
    },
    mutants=MUTANTS,
    explanation="""
The ids make the rule exact: they do not depend on the order in which words are met. No merge makes a token that there
is already, so that each one gets an id of its own: whatever becomes one token was cut in the same way wherever it stood
between two ends of tokens, so the same merge made it everywhere, at once. Counting anew after each merge goes through
all different words; `d2l.BytePairEncoding` recounts only those in which the pair stood.
""",
)
