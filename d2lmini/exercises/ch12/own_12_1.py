r"""The likeliest cut of a word

A *unigram* vocabulary gives each piece $u$ a probability $\Pr(u)$. A cut of a word into pieces $u_1, \dots, u_m$ has
the probability $\Pr(u_1) \cdots \Pr(u_m)$, and the word is written as its likeliest cut. A word of $n$ letters has
$2^{n-1}$ cuts: too many to try where the word is long. But the best cut of the first $k$ letters ends in *some* piece,
and what stands before that piece is the best cut of fewer letters. So with $b_0 = 0$,

$$b_k = \max_{j < k}\ \bigl(b_j + \log \Pr(\text{letters } j+1 \text{ to } k)\bigr),$$

the maximum being over all $j$ for which these letters are a piece. That takes about $n^2/2$ steps (Viterbi's
algorithm). Write `likeliest_cut(word, log_probs)`, for words of up to 100 letters and probabilities of any
size up to 1. The check ends with a word of 60 letters whose best cut has a probability too small for a floating-point
number.
"""

import functools
import math

import torch

from d2lmini.exercises.engine import Code, Exercise, Mutant


def likeliest_cut(word, log_probs):
    """Cut a word into the pieces that are likeliest together.

    Args:
        word: str of one letter or more.
        log_probs: dict from each piece of the vocabulary to the logarithm of its probability; every single letter of
            the word is a piece.

    Returns:
        list of str, the pieces from left to right; together they are the word.
    """
    ### BEGIN SOLUTION
    best = [0.0] + [-math.inf] * len(word)  # best[k]: log-probability of the best cut of the first k letters
    begins = [0] * (len(word) + 1)  # where the last piece of that cut begins
    for end in range(1, len(word) + 1):
        for begin in range(end):
            score = best[begin] + log_probs.get(word[begin:end], -math.inf)
            if score > best[end]:
                best[end], begins[end] = score, begin
    pieces, end = [], len(word)
    while end > 0:
        pieces.append(word[begins[end] : end])
        end = begins[end]
    return pieces[::-1]
    ### END SOLUTION


def all_cuts(word):
    """Every cut of a word."""
    for end in range(1, len(word)):
        for rest in all_cuts(word[end:]):
            yield [word[:end], *rest]
    yield [word]


def by_trying(word, log_probs):
    possible = (cut for cut in all_cuts(word) if all(piece in log_probs for piece in cut))
    return max(possible, key=lambda cut: sum(log_probs[piece] for piece in cut))


def recursive(word, log_probs):
    """The best cut of what begins at each place, by recursion that is memorised."""

    @functools.cache
    def best(begin):
        ends = [end for end in range(begin + 1, len(word) + 1) if word[begin:end] in log_probs]
        cuts = [(log_probs[word[begin:end]] + best(end)[0], [word[begin:end], *best(end)[1]]) for end in ends]
        return max(cuts, default=(0.0, []))

    return best(0)[1]


def recursive_without_memory(word, log_probs):
    if not word:
        return []
    ends = [end for end in range(1, len(word) + 1) if word[:end] in log_probs]
    cuts = ([word[:end], *recursive_without_memory(word[end:], log_probs)] for end in ends)
    return max(cuts, key=lambda cut: sum(log_probs[piece] for piece in cut))


def from_the_end(word, log_probs):
    cuts = {len(word): (0.0, ())}  # of what begins there
    for begin in range(len(word) - 1, -1, -1):
        cuts[begin] = max(
            (cuts[end][0] + log_probs[word[begin:end]], (word[begin:end], *cuts[end][1]))
            for end in range(begin + 1, len(word) + 1)
            if word[begin:end] in log_probs
        )
    return list(cuts[0][1])


def longest_piece_first(word, log_probs):
    pieces = []
    while word:
        end = max(end for end in range(1, len(word) + 1) if word[:end] in log_probs)
        pieces.append(word[:end])
        word = word[end:]
    return pieces


def likeliest_next_piece(word, log_probs):
    pieces = []
    while word:
        ends = [end for end in range(1, len(word) + 1) if word[:end] in log_probs]
        end = max(ends, key=lambda end: log_probs[word[:end]])
        pieces.append(word[:end])
        word = word[end:]
    return pieces


def likeliest_piece_anywhere(word, log_probs):
    if not word:
        return []
    places = [(b, e) for b in range(len(word)) for e in range(b + 1, len(word) + 1) if word[b:e] in log_probs]
    b, e = max(places, key=lambda place: log_probs[word[slice(*place)]])
    before, after = (likeliest_piece_anywhere(part, log_probs) for part in (word[:b], word[e:]))
    return [*before, word[b:e], *after]


def best_on_average(word, log_probs):
    possible = (cut for cut in all_cuts(word) if all(piece in log_probs for piece in cut))
    return max(possible, key=lambda cut: sum(log_probs[piece] for piece in cut) / len(cut))


def largest_sum(word, log_probs):
    possible = (cut for cut in all_cuts(word) if all(piece in log_probs for piece in cut))
    return max(possible, key=lambda cut: sum(math.exp(log_probs[piece]) for piece in cut))


def letters(word, log_probs):
    return list(word)


def verify(t, answer):
    log_probs, wanted, scores = _vocabulary(t), [], []
    for number in range(1, 22):
        length = {5: 1, 21: 3}.get(number) or t.random.randint(7, 11)
        word = "".join(t.random.choice("abcd") for _ in range(length))
        if number == 21:  # the word is a piece that is certain
            log_probs = log_probs | {word: 0.0}
        wanted.append(sum(log_probs[piece] for piece in by_trying(word, log_probs)))
        scores.append(_score(t, t.call(answer, word, log_probs), word, log_probs))
    # together: of a single word two different mistakes may make the same
    want, got = (torch.tensor(values, dtype=torch.float64) for values in (wanted, scores))
    t.same(got, want, "the list of log-probabilities of the cuts of twenty-one words", dtype=torch.float64)
    for piece in (word[:2], word[1:]):  # the last word again, which was a piece itself
        log_probs = dict.fromkeys("abcd", -2.0) | {piece: -1.0}
        cut = t.call(answer, word, log_probs)
        known = isinstance(cut, (list, tuple)) and all(x in log_probs for x in cut)
        message = f"the cut of {word!r} with another vocabulary is wrong: is something kept from one call to the next?"
        t.that(known and sum(log_probs[x] for x in cut) == -3.0, "kept", message)
    word, log_probs, best = _unlikely(t)
    score = _score(t, t.call(answer, word, Counted(log_probs)), word, log_probs)
    t.number(score, best, f"the log-probability of the cut of a word of {LETTERS} letters")


def _score(t, cut, word, log_probs):
    """Return the log-probability of a cut, if it is one."""
    right = isinstance(cut, (list, tuple)) and all(isinstance(piece, str) for piece in cut)
    t.that(right, "type", f"the result is a {type(cut).__name__}, expected a list of str")
    t.that("".join(cut) == word, "not-the-word", f"the pieces of {word!r}, put together in order, are not {word!r}")
    foreign = [piece for piece in cut if piece not in log_probs]
    t.that(
        not foreign,
        "no-piece",
        f"the cut of {word!r} has parts that are no pieces of the vocabulary: {', '.join(map(repr, foreign))} "
        "(does what is best so far begin at minus infinity? A log-probability may lie below any other number. And "
        "are products of probabilities taken? They become 0, and then all are alike: add the logarithms)",
    )
    return float(sum(log_probs[piece] for piece in cut))


LETTERS, MOST_ASKED = 60, 100_000


class TooManySteps(Exception):
    """Of a long word every cut is tried, or the same letters are cut again and again."""


class Counted(dict):
    """A vocabulary that can be asked so many times only: n^2 questions are few, 2^n are not."""

    asked = 0

    def _ask(self):
        self.asked += 1
        if self.asked > MOST_ASKED:
            raise TooManySteps(
                f"the vocabulary was asked {MOST_ASKED:,} times for one word of {LETTERS} letters. Does your code try "
                "every cut, or cut the same letters again and again? Keep the best cut of the first k letters, for "
                "each k"
            )

    def __getitem__(self, piece):
        self._ask()
        return super().__getitem__(piece)

    def __contains__(self, piece):
        self._ask()
        return super().__contains__(piece)

    def get(self, piece, default=None):
        self._ask()
        return super().get(piece, default)


def _unlikely(t):
    """Return a word of many letters, a vocabulary of rare pieces, some of them long, and the score of the best cut."""
    while True:
        word = "".join(t.random.choice("abcd") for _ in range(LETTERS))
        begins = [(t.random.randrange(LETTERS - 12), length) for length in range(2, 13) for _ in range(4)]
        pieces = sorted({*"abcd", *(word[begin : begin + length] for begin, length in begins)})
        log_probs = {piece: -t.random.uniform(20, 40) * len(piece) ** 0.9 for piece in pieces}
        # without its longest pieces the word is less likely
        short = {piece: score for piece, score in log_probs.items() if len(piece) <= 6}
        best, without = (sum(known[p] for p in from_the_end(word, known)) for known in (log_probs, short))
        if best > without + 1:
            return word, log_probs, best


def _vocabulary(t):
    """Letters, and pieces of two to four, whose probabilities do not simply fall with their length."""
    pieces = set("abcd")
    while len(pieces) < 60:
        pieces.add("".join(t.random.choice("abcd") for _ in range(t.random.choice((2, 2, 3, 3, 4)))))
    weights = {piece: math.exp(t.random.gauss(0, 1.5)) * 2.5 ** -max(len(piece), 2) for piece in sorted(pieces)}
    total = sum(weights.values())
    return {piece: math.log(weight / total) for piece, weight in weights.items()}


MUTANTS = [
    Mutant("longest", longest_piece_first, "the longest piece is taken from the left, as WordPiece does; a long piece "
        "may be unlikely, or leave an unlikely rest"),
    Mutant("greedy", likeliest_next_piece, "the likeliest next piece is taken from the left: the whole cut has to be "
        "likely, the rest with it"),
    Mutant("greedy-anywhere", likeliest_piece_anywhere, "the likeliest single piece is cut out first: the whole cut "
        "has to be likely, not one piece"),
    Mutant("fewest", ("log_probs.get(word[begin:end], -math.inf)",
        "(-1 if word[begin:end] in log_probs else -math.inf)"), "this is the cut into the fewest pieces; their "
        "probabilities have no say in it"),
    Mutant("last-alone", ("best[begin] + log_probs", "log_probs"), "only the last piece is scored: what stands before "
        "it, best[begin], has to be added"),
    Mutant("sum", largest_sum, "probabilities are added; those of a cut are multiplied, so their logarithms are added"),
    Mutant("mean", best_on_average, "this is the best mean over the pieces: the log-probability of a cut is the sum, "
        "and more pieces cost more"),
    Mutant("short-pieces", ("for begin in range(end):", "for begin in range(max(0, end - 6), end):"),
        "pieces of more than six letters are never tried: j runs from 0, whatever k is"),
    Mutant("letters", letters, "these are single letters, a possible cut, but seldom the likeliest (is the least kept "
        "instead of the largest?)"),
    Mutant("raised", by_trying),
    Mutant("kept", ("best = [0.0] +", "if len(word) == 3 and word not in log_probs:\n        return [word]\n"
        "    best = [0.0] +")),
    Mutant("raised", recursive_without_memory),
    Mutant("raised", ("log_probs.get(word[begin:end], -math.inf)", "log_probs[word[begin:end]]")),  # unknown pieces
    Mutant("no-piece", ("[-math.inf] * len(word)", "[-100] * len(word)")),  # best so far begins at -100
    Mutant("no-piece", ("score = best[begin] + log_probs.get(word[begin:end], -math.inf)", "score = "
        "math.log(math.exp(best[begin] + log_probs.get(word[begin:end], -math.inf)) + 5e-324)")),  # probabilities
    Mutant("not-the-word", ("pieces[::-1]", "pieces")),  # not reversed
    Mutant("no-piece", ("word[begin:end], -math.inf", "word[begin:end], 0.0")),  # unknown pieces are free
    Mutant("not-the-word", ("pieces, end = [], len(word)", "pieces, end = [], len(word) - 1")),  # the last letter lost
    Mutant("by-length", ("word[begin:end], -math.inf)", "word[begin:end], -math.inf) * (end - begin)"), "each "
        "log-probability is weighted with the length of its piece; a piece counts once, however long it is"),
    Mutant("per-letter", ("word[begin:end], -math.inf)", "word[begin:end], -math.inf) / (end - begin)"), "each "
        "log-probability is divided by the length of its piece; a piece counts once, however long it is"),
    Mutant("never-whole", ("if score > best[end]:", "if score > best[end] and end - begin < max(len(word), 2):"),
        "a word that is itself a piece is cut all the same: is the whole word tried? And is a piece of log-probability "
        "0, the surest there is, taken for missing?"),
    Mutant("bounded", ("score = best[begin] +", "score = max(best[begin], -100) +"), "the best so far is not let below "
        "a bound: beyond it all cuts look alike"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-12.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-12.1",
            hints=[
                "Fill a list b from left to right: `b[k]` is the best that can be had for the first k letters. `b[0]` "
                "is 0, and the others begin at `-math.inf`.",
                "For each k try every j < k: is `word[j:k]` a piece, and is `b[j] + log_probs[word[j:k]]` more than "
                "the best so far? Remember the j that won.",
                "At the end go back from k = n: the last piece is `word[j:n]` with the j remembered for n, the one "
                "before it ends at that j. The pieces come out in reverse.",
            ],
            answer=likeliest_cut,
            verify=verify,
            alternatives=[recursive, from_the_end],
            advice={
                "values": "b[k] is the largest of b[j] + log_probs[word[j:k]] over all j < k, however long the piece "
                "is; going back follows the j that won. Add logarithms, since a product of small probabilities becomes "
                "0, and begin at minus infinity, since a sum may be below any other number",
                "raised": "If it is a KeyError: not all letters are a piece. Ask with `in`, or with `.get(piece, "
                "-math.inf)`.",
                "not-the-word": "Going back, the last piece comes first: turn the list around. And the first and the "
                "last letter count, too.",
            },
            mutants=MUTANTS,
            explanation=r"""
Byte-pair encoding replays its merges and never asks whether the result is a good cut. The unigram vocabulary of Kudo
(2018) asks just that, and has more than one answer: replace the maximum by a sum of probabilities and the same loop
gives the probability of the word over *all* its cuts, which is what its training maximises; draw the cut at random by
its probability and the model sees a word in several forms.
""",
        ),
    ],
)
