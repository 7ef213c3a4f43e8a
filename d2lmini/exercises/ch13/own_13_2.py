r"""The best answer of a passage

A question and a passage go through BERT as one sequence, and a layer on top gives two scores to each token: how well
the answer could *start* there, and how well it could *end* there. The answer is a span of the passage, from its first
to its last token, both counted. Its score is the sum of the start score of the first and the end score of the last.

Not every pair of places is a span: it must lie in the passage, it may not end before it starts, and answers are short,
so that a limit keeps out what cannot be meant.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def best_answers(start, end, passage, max_len):
    """The span with the largest score in each row.

    Args:
        start: (B, T), scores of the first token; of any size, outside of the passage, too.
        end: (B, T), scores of the last token.
        passage: booleans (B, T), True at tokens of the passage, which stand side by side; at least one in each row.
        max_len: the most tokens that an answer may have, 1 or more.

    Returns:
        int64 (B, 2): the places of the first and of the last token.
    """
    ### BEGIN SOLUTION
    T = start.shape[1]
    start, end = (scores.masked_fill(~passage, -torch.inf) for scores in (start, end))
    sums = start[:, :, None] + end[:, None, :]  # (B, T, T): from row to column
    places = torch.arange(T, device=start.device)
    lengths = places[None, :] - places[:, None] + 1  # (T, T)
    allowed = (lengths >= 1) & (lengths <= max_len)
    best = sums.masked_fill(~allowed, -torch.inf).flatten(1).argmax(dim=1)  # (B,)
    return torch.stack([best // T, best % T], dim=1)
    ### END SOLUTION


def by_the_package(start, end, passage, max_len):
    return d2l.best_spans(torch.stack([start, end], -1).masked_fill(~passage[..., None], -torch.inf), max_len)[0]


def length_by_length(start, end, passage, max_len):
    """Memory for T numbers a row, not T * T."""
    T = start.shape[1]
    best = torch.full((len(start),), -torch.inf, device=start.device)
    spans = torch.zeros(len(start), 2, dtype=torch.long, device=start.device)
    for more in range(min(max_len, T)):
        sums = start[:, : T - more] + end[:, more:]
        sums = torch.where(passage[:, : T - more] & passage[:, more:], sums, -torch.inf)
        largest, place = sums.max(1)
        spans = torch.where((largest > best)[:, None], torch.stack([place, place + more], 1), spans)
        best = torch.maximum(best, largest)
    return spans


def by_trying(start, end, passage, max_len):
    spans = []
    for b in range(len(start)):
        places = passage[b].nonzero().flatten().tolist()
        pairs = [(i, j) for i in places for j in places if i <= j < i + max_len]
        spans.append(max(pairs, key=lambda pair: float(start[b, pair[0]] + end[b, pair[1]])))
    return torch.tensor(spans, device=start.device)


# mistakes


def each_by_itself(start, end, passage, max_len):
    ends = [scores.masked_fill(~passage, -torch.inf).argmax(1) for scores in (start, end)]
    return torch.stack(ends, 1)


def start_then_end(start, end, passage, max_len):
    """The best start first, then the best end that fits to it."""
    first = start.masked_fill(~passage, -torch.inf).argmax(1)
    offsets = torch.arange(start.shape[1]) - first[:, None]
    fits = passage & (offsets >= 0) & (offsets < max_len)
    return torch.stack([first, end.masked_fill(~fits, -torch.inf).argmax(1)], 1)


def end_then_start(start, end, passage, max_len):
    last = end.masked_fill(~passage, -torch.inf).argmax(1)
    offsets = last[:, None] - torch.arange(start.shape[1])
    fits = passage & (offsets >= 0) & (offsets < max_len)
    return torch.stack([start.masked_fill(~fits, -torch.inf).argmax(1), last], 1)


def sorted_ends(start, end, passage, max_len):
    return each_by_itself(start, end, passage, max_len).sort(1).values


def set_to_zero(start, end, passage, max_len):
    return best_answers(start * passage, end * passage, torch.ones_like(passage), max_len)


def cut_afterwards(start, end, passage, max_len):
    spans = best_answers(start, end, passage, start.shape[1])
    return torch.stack([spans[:, 0], spans[:, 1].minimum(spans[:, 0] + max_len - 1)], 1)


def within_the_passage(start, end, passage, max_len):
    return best_answers(start, end, passage, max_len) - passage.int().argmax(1)[:, None]


def of_the_first_row(start, end, passage, max_len):
    return best_answers(start, end, passage[:1].expand_as(passage), max_len)


def only_start_in_passage(start, end, passage, max_len):
    return best_answers(start.masked_fill(~passage, -torch.inf), end, torch.ones_like(passage), max_len)


def only_end_in_passage(start, end, passage, max_len):
    return best_answers(start, end.masked_fill(~passage, -torch.inf), torch.ones_like(passage), max_len)


def by_length(start, end, passage, max_len):
    T = start.shape[1]
    start, end = (scores.masked_fill(~passage, -torch.inf) for scores in (start, end))
    lengths = torch.arange(T) - torch.arange(T)[:, None] + 1
    sums = (start[:, :, None] + end[:, None]) / lengths.clamp(min=1)
    best = sums.masked_fill((lengths < 1) | (lengths > max_len), -torch.inf).flatten(1).argmax(1)
    return torch.stack([best // T, best % T], 1)


def few_candidates(start, end, passage, max_len):
    """The two best starts and the two best ends; the first place of the passage where none fit."""
    T, first = start.shape[1], passage.int().argmax(1)
    sums = torch.full((len(start), T, T), -torch.inf)
    for b in range(len(start)):
        k = min(2, int(passage[b].sum()))
        starts, ends = (scores[b].masked_fill(~passage[b], -torch.inf).topk(k).indices for scores in (start, end))
        sums[b, starts[:, None], ends] = start[b, starts][:, None] + end[b, ends]
    offsets = torch.arange(T) - torch.arange(T)[:, None]
    score, best = sums.masked_fill((offsets < 0) | (offsets >= max_len), -torch.inf).flatten(1).max(1)
    spans = torch.stack([best // T, best % T], 1)
    return torch.where(score.isinf()[:, None], first[:, None], spans)


def the_tokens(start, end, passage, max_len):
    spans = best_answers(start, end, passage, max_len)
    places = torch.arange(start.shape[1])
    return (places >= spans[:, :1]) & (places <= spans[:, 1:])


def in_windows(start, end, passage, max_len):
    """All ends of a start at once, as many as an answer may have tokens."""
    start, end = (scores.masked_fill(~passage, -torch.inf) for scores in (start, end))
    rest = torch.cat([end, torch.full_like(end[:, : max_len - 1], -torch.inf)], 1)
    sums = start[..., None] + rest.unfold(1, max_len, 1)
    best = sums.flatten(1).argmax(1)
    return torch.stack([best // max_len, best // max_len + best % max_len], 1)


def the_whole_span(start, end, passage, max_len):
    T, before = start.shape[1], (start + end).cumsum(1) - start - end
    sums = ((start + end).cumsum(1)[:, None] - before[:, :, None]).masked_fill(~passage[:, None], -torch.inf)
    offsets = torch.arange(T) - torch.arange(T)[:, None]
    fits = passage[:, :, None] & (offsets >= 0) & (offsets < max_len)
    best = sums.masked_fill(~fits, -torch.inf).flatten(1).argmax(1)
    return torch.stack([best // T, best % T], 1)


def for_all_rows(start, end, passage, max_len):
    spans = best_answers(start.sum(0, keepdim=True), end.sum(0, keepdim=True), passage.any(0, keepdim=True), max_len)
    return spans.expand(len(start), 2)


def _rows(t, T, max_len):
    """Rows in each of which another mistake gives another span: passages, and (place, start or end, score)."""
    n, r = max_len, t.random.randrange(2)
    a = 4 + r  # the passage is from a to T - 3 - r: more than 2 n + 4 tokens
    z = T - 3 - r
    free = t.random.randrange(a + n + 2, z - n)
    yield "one token", a, z, [(free, 0, 6), (free, 1, 6)]
    yield "just as long as may be", a, z, [(free, 0, 6), (free + n - 1, 1, 6), (free, 1, 4)]
    yield "one token too long", a, z, [(free, 0, 6), (free + n, 1, 6), (free + 1, 1, 3.5)]
    yield "end before start", a, z, [(free, 0, 6), (free - 1, 1, 6), (free + 1, 1, 3.5)]
    yield "far apart", a, z, [(a, 0, 6), (z, 1, 6), (a + 1, 1, 3.2), (z - 1, 0, 3.9)]
    yield "not the best start", a, z, [(a, 0, 6), (free, 0, 5), (free + 1, 1, 6), (a + 1, 1, 1)]
    yield "not the best end", a, z, [(z, 1, 6), (free - 1, 0, 6), (free, 1, 5), (z, 0, -1)]
    yield "fair at both ends", a, z, [(free, 0, 6), (a, 1, 6), (free - 1, 0, 3.6), (free - 1, 1, 3.6)]
    yield "at the edges", a, z, [(a - 1, 0, 9), (a, 1, 6), (a, 0, 4), (z, 0, 7), (z + 1, 1, 9), (z, 1, 2)]
    yield "larger outside", a, z, [(1, 0, 12), (1, 1, 12), (T - 1, 0, 12), (T - 1, 1, 12), (free, 0, 5), (free, 1, 5)]
    yield "larger outside, another passage", a + 1, free, [(free + 1, 0, 12), (free + 2, 1, 12), (a + 2, 1, 3)]
    yield "a passage of one token", free, free, [(free, 0, -2), (free, 1, -3), (free - 1, 0, 5), (free + 1, 1, 5)]


def _best(start, end, passage, max_len):
    best, span = float("-inf"), None
    for i in range(len(start)):
        for j in range(i, min(i + max_len, len(start))):
            if passage[i] and passage[j] and start[i] + end[j] > best:
                best, span = start[i] + end[j], [i, j]
    return span


def verify(t, answer):
    some = t.random.randrange(4, 7)
    # in the last case no text is as long as an answer may be
    for length, max_len, shift, scale in ((3, 3, 0, 1), (some, some, -20, 1e30), (1, 1, 0, 1), (3, 99, 0, 1)):
        T = 4 * length + t.random.randrange(20, 24)
        rows = list(_rows(t, T, length))
        t.random.shuffle(rows)
        # nearer than 0.3 no two spans may come that matter: what is given lies further apart
        scores = t.rand(len(rows), T, 2, low=0.0, high=0.3).cpu()
        passage = torch.zeros(len(rows), T, dtype=torch.bool)
        for b, (_, first, last, given) in enumerate(rows):
            passage[b, first : last + 1] = True
            for place, which, score in given:
                scores[b, place, which] = score
        scores = (scores + shift) * scale
        if max_len == 99:  # as large as to swallow whatever is added to it
            scores[~passage] *= 1e9
        start, end = scores.to(t.device).unbind(2)
        want = [_best(*(x.tolist() for x in row), max_len) for row in zip(start, end, passage, strict=True)]
        got = t.call(answer, start, end, passage.to(t.device), max_len)
        below = ", with scores far below 0" if shift else ""
        t.same(got, torch.tensor(want), f"the table of spans of up to {max_len} token{'s' * (max_len > 1)}{below}")


FINITE = "what is not allowed gets a number that scores can be below: minus infinity keeps out, whatever the scores are"

MUTANTS = [
    Mutant("each-alone", each_by_itself, "start and end are chosen each by itself: the end may come before the start, "
        "or far behind"),
    Mutant("sorted", sorted_ends, "start and end are chosen each by itself and then put in order: a place that is good "
        "as an end need not be good as a start"),
    Mutant("start-first", start_then_end, "the best start is taken, and then the best end for it: the best sum may "
        "have another start"),
    Mutant("end-first", end_then_start, "the best end is taken, and then the best start for it: the best sum may have "
        "another end"),
    Mutant("no-passage", ("scores.masked_fill(~passage, -torch.inf)", "scores"), "answers lie outside of the passage, "
        "in the question or in the padding"),
    Mutant("end-outside", only_start_in_passage, "answers end outside of the passage: both ends must lie in it"),
    Mutant("start-outside", only_end_in_passage, "answers start outside of the passage: both ends must lie in it"),
    Mutant("passage-turned", ("masked_fill(~passage", "masked_fill(passage"), "answers lie where there is no passage: "
        "`passage` is True in it"),
    Mutant("zero", set_to_zero, "0 is more than a score below 0: is it set outside of the passage, or does the best "
        "so far begin at it? Minus infinity keeps out"),
    Mutant("any-order", ("(lengths >= 1) & ", ""), "answers end before they start"),
    Mutant("any-order", ("(lengths >= 1)", "(lengths > 1 - max_len)"), "answers end before they start"),
    Mutant("no-single", ("lengths >= 1", "lengths >= min(2, max_len)"), "an answer of one token starts and ends at the "
        "same place: it is allowed"),
    Mutant("no-limit", (" & (lengths <= max_len)", ""), "answers have more than max_len tokens"),
    Mutant("too-long", ("lengths <= max_len", "lengths <= max_len + 1"), "answers have up to max_len + 1 tokens: from "
        "i to j there are j - i + 1"),
    Mutant("too-short", ("lengths <= max_len", "lengths <= max(1, max_len - 1)"), "answers of just max_len tokens are "
        "left out"),
    Mutant("cut", cut_afterwards, "the best span of any length is found and then cut: what is left need not be the "
        "best short one"),
    Mutant("exchanged", ("start[:, :, None] + end[:, None, :]", "end[:, :, None] + start[:, None, :]"),
        "the scores of start and end are exchanged"),
    Mutant("last-first", ("[best // T, best % T]", "[best % T, best // T]"), "the last token comes first in your rows: "
        "first, then last"),
    Mutant("exclusive", ("[best // T, best % T]", "[best // T, best % T + 1]"), "the end is the place *after* the last "
        "token, as in a slice: here it is the last token itself"),
    Mutant("length", ("[best // T, best % T]", "[best // T, best % T - best // T + 1]"), "the second number is the "
        "length of the answer: it is the place of its last token"),
    Mutant("from-passage", within_the_passage, "places are counted from the beginning of the passage: count from that "
        "of the row"),
    Mutant("smallest", ("sums.masked_fill(~allowed, -torch.inf).flatten(1).argmax(dim=1)",
        "sums.masked_fill(~allowed | sums.isinf(), torch.inf).flatten(1).argmin(dim=1)"), "these are the smallest "
        "sums"),
    Mutant("product", ("sums = start[:, :, None] + end[:, None, :]",
        "sums = start.exp()[:, :, None] + end.exp()[:, None, :]"), "the exponentials of the scores are added: add the "
        "scores, which multiplies the probabilities"),
    Mutant("probabilities", ("sums = start[:, :, None] + end[:, None, :]",
        "sums = start.softmax(1)[:, :, None] + end.softmax(1)[:, None, :]"), "the probabilities are added: add the "
        "scores, which multiplies the probabilities"),
    Mutant("zeros", ("sums.masked_fill(~allowed, -torch.inf)", "sums.masked_fill(~allowed, 0)"),
        "pairs that are no span have the sum 0 (as triu and tril give), which is more than a sum below 0: minus "
        "infinity keeps them out"),
    Mutant("finite", ("(scores.masked_fill(~passage, -torch.inf) for", "(scores.masked_fill(~passage, -1e4) "
        "for"), FINITE),
    Mutant("finite", ("(scores.masked_fill(~passage, -torch.inf) for", "(scores.masked_fill(~passage, -1e9) "
        "for"), FINITE),
    Mutant("finite", ("sums.masked_fill(~allowed, -torch.inf)", "sums.masked_fill(~allowed, -1e9)"), FINITE),
    Mutant("finite", ("scores.masked_fill(~passage, -torch.inf) for", "scores - 1e4 * ~passage for"), FINITE),
    Mutant("raised", in_windows),
    Mutant("whole-span", the_whole_span, "the scores of the tokens between the ends are added: only the two ends "
        "count"),
    Mutant("one-passage", of_the_first_row, "the passage of the first row is taken for all rows"),
    Mutant("one-answer", for_all_rows, "all rows get one and the same span"),
    Mutant("by-length", by_length, "the sums are divided by the length of the span: nothing is divided here"),
    Mutant("candidates", few_candidates, "only the best starts and ends are tried, and in some rows no two of them "
        "make a span: a worse start with a worse end may be the best there is"),
    Mutant("shape", ("torch.stack([best // T, best % T], dim=1)", "best")),  # place in the table
    Mutant("shape", ("dim=1)\n", "dim=0)\n")),  # columns
    Mutant("dtype", the_tokens),
    Mutant("dtype", ("best // T, best % T], dim=1)", "best / T, best % T], dim=1)")),  # as numbers
]  # fmt: skip


EXERCISE = Exercise(
    key="own-13.2",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-13.2a",
            prompt="Write `best_answers(start, end, passage, max_len)`.",
            hints=[
                "The largest start and the largest end, each taken by itself, may not make a span. Which pairs are "
                "there, and which are allowed?",
                "`start[:, :, None] + end[:, None, :]` is (B, T, T): row i, column j has the score of the span from i "
                "to j.",
                "Set to minus infinity what is not allowed: starts and ends outside of the passage, j < i, and "
                "j - i + 1 > max_len. Then take the largest of T * T numbers.",
                "The place in the flattened table is i * T + j: `// T` and `% T` give both back.",
            ],
            answer=best_answers,
            verify=verify,
            alternatives=[by_the_package, length_by_length, by_trying],
            advice={
                "values": "Column 0 is the first token, column 1 the last. Take a row that is wrong: does your span "
                "break a rule, or is there one with a larger sum? Add the scores as they are: products change the "
                "order, and probabilities are rounded to 0 where scores are large."
            },
            mutants=MUTANTS,
            explanation=r"""
With T = 384 and B = 32 the table has 4.7 million sums, which is nothing beside the model. A long passage in one piece
is another matter: `length_by_length`, in the file of this exercise, needs B T numbers only, for as many steps as an
answer may have tokens. `d2l.best_spans` does what you wrote.

What to do where the passage has no answer? For SQuAD 2 BERT lets start and end be the class token, and takes that
"answer" if its score is larger than that of the best span by a threshold, which is chosen on validation data (Devlin et
al. 2019, section 4.3).
""",
        ),
        Choice(
            key="own-13.2b",
            prompt="The two scores go through a softmax each, over the tokens of the passage. What does it mean to "
            "take the span with the largest sum?",
            hints=[
                "What is the sum of two scores in terms of the two probabilities, up to what all spans have in common?"
            ],
            options=[
                Option(
                    "It is the likeliest span if start and end are taken as independent.",
                    "The logarithm of a softmax is the score minus a constant, so the sum is the logarithm of the "
                    "product of both probabilities, up to a constant. That the two are *not* independent (an end far "
                    "off, or in front) is put in afterwards, by looking at spans alone.",
                    right=True,
                ),
                Option(
                    "It is the span whose tokens have the largest scores on average.",
                    "The tokens between the ends have no part in it. A span with a bad middle loses nothing.",
                ),
                Option(
                    "It is the sum that training has made large: minus the sum was its loss.",
                    "The loss has the normalisers, too: they hold the scores of all other places down. And it treats "
                    "each end by itself; it never compares spans.",
                ),
                Option(
                    "It is the likeliest start together with the likeliest end of all.",
                    "A sum is largest where both terms are. That would be so without conditions. Where the two best "
                    "places make no span, another pair wins, and perhaps one with neither of them.",
                ),
            ],
        ),
    ],
)
