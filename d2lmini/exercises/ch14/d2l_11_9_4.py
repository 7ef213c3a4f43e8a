r"""When the input is always there

In translation, summarising or question answering there is always an input, all of it known before the first token of
the output is written. A decoder-only model takes both as one sequence: the input is the beginning, the *prefix*, and
the output goes on from it. What does it lose against an encoder and a decoder, and what can be done about it without a
second stack of layers?
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def prefix_mask(prefix_lens, real):
    """Who may attend to whom: the prefix is seen by all, the rest is causal.

    Args:
        prefix_lens: integers (B,), how many tokens the prefix of each text has, from 0 to all of them; padding is not
            counted.
        real: booleans (B, T), True at tokens, False at padding. The tokens of a text stand side by side, with padding
            before them, after them or both.

    Returns:
        Booleans (B, T, T): True where the query (row) may attend to the key (column). No token attends to padding. What
        stands in rows of padding does not matter.
    """
    ### BEGIN SOLUTION
    T = real.shape[1]
    number = real.cumsum(dim=1)  # (B, T): 1 at the first token, 2 at the second, ...
    in_prefix = number <= prefix_lens[:, None]  # (B, T); padding in front, too, which `real` takes out
    places = torch.arange(T, device=real.device)
    causal = places[None, :] <= places[:, None]  # (T, T)
    return (causal | in_prefix[:, None, :]) & real[:, None, :]
    ### END SOLUTION


def by_places(prefix_lens, real):
    first = real.int().argmax(dim=1)
    T = real.shape[1]
    ends = torch.arange(T, device=real.device).expand(len(real), T)
    last_seen = torch.maximum(ends, (first + prefix_lens - 1)[:, None])  # (B, T), of each query
    return (ends[:, None] <= last_seen[..., None]) & real[:, None]


def by_the_package(prefix_lens, real):
    shifted = d2l.prefix_mask((real.int().argmax(1) + prefix_lens).minimum(torch.tensor(real.shape[1])), real.shape[1])
    return shifted & real.unsqueeze(1)


def key_by_key(prefix_lens, real):
    B, T = real.shape
    mask = torch.zeros(B, T, T, dtype=torch.bool, device=real.device)
    for b in range(B):
        tokens = real[b].nonzero().flatten().tolist()
        for place in tokens:
            mask[b, place:, place] = True
        mask[b, :, tokens[: int(prefix_lens[b])]] = True
    return mask


def prefix_square_and_triangle(prefix_lens, real):
    """No row of padding may attend to anything."""
    number = real.cumsum(1) * real
    prefix = (number > 0) & (number <= prefix_lens[:, None])
    earlier = number[:, None] <= number[..., None]
    return ((prefix[:, None] & prefix[..., None]) | earlier) & real[:, None] & real[..., None]


# mistakes


def padding_in_front_counted(prefix_lens, real):
    return d2l.prefix_mask(prefix_lens, real.shape[1]) & real[:, None]


def blocks(prefix_lens, real):
    """The target does not see the prefix."""
    number = real.cumsum(1)
    prefix = (number <= prefix_lens[:, None]) & real
    target = ~prefix & real
    causal = d2l.causal_mask(real.shape[1])
    return (prefix[:, :, None] & prefix[:, None]) | (causal & target[:, None] & ~prefix[:, :, None])


def prefix_sees_all(prefix_lens, real):
    number = real.cumsum(1)
    prefix = number <= prefix_lens[:, None]
    return (d2l.causal_mask(real.shape[1]) | prefix[:, :, None]) & real[:, None]


def one_prefix_for_all(prefix_lens, real):
    return prefix_mask(prefix_lens[:1].expand_as(prefix_lens), real)


def padding_queries_only(prefix_lens, real):
    T = real.shape[1]
    in_prefix = real.cumsum(1) <= prefix_lens[:, None]
    return (d2l.causal_mask(T) | in_prefix[:, None]) & real[:, :, None]


def turned_around(prefix_lens, real):
    return ~prefix_mask(prefix_lens, real)


def transposed(prefix_lens, real):
    return prefix_mask(prefix_lens, real).mT.contiguous()


def scores(prefix_lens, real):
    return torch.zeros(*real.shape, real.shape[1]).masked_fill(~prefix_mask(prefix_lens, real), -torch.inf)


def from_the_end(prefix_lens, real):
    """The lengths are taken for those of the targets."""
    return prefix_mask(real.sum(1) - prefix_lens, real)


def _cases(t):
    B = 5
    T = t.random.randrange(10, 14)
    lengths = [T - 4, *t.random.sample(range(3, T - 4), B - 2), 3]
    prefixes = [t.random.randrange(3, 5), 0, 1, lengths[3] - 1, 3]  # the last one is a text without target
    prefixes[3] = max(prefixes[3], 2)
    starts = {
        "on the right": [0] * B,
        "on the left": [T - n for n in lengths],
        "on both sides": [1 + t.random.randrange(3) for _ in range(B)],
    }
    for side, first in starts.items():
        order = [0, *t.random.sample(range(1, B), B - 1)]  # one with a prefix of several tokens and a target first
        rows = [[False] * first[b] + [True] * lengths[b] + [False] * (T - first[b] - lengths[b]) for b in order]
        yield f"with padding {side}", [prefixes[b] for b in order], rows
    whole = t.random.randrange(3, 6)
    yield "without padding", [whole, 2], [[True] * (whole + 4)] * 2


def verify(t, answer):
    for name, prefixes, rows in _cases(t):
        T, want = len(rows[0]), []
        for prefix, row in zip(prefixes, rows, strict=True):
            tokens = [s for s in range(T) if row[s]]
            want.append([[s in tokens and (s <= i or s in tokens[:prefix]) for s in range(T)] for i in range(T)])
        given = torch.tensor(prefixes, device=t.device), torch.tensor(rows, device=t.device)
        got, want = t.call(answer, *given), torch.tensor(want)
        if isinstance(got, torch.Tensor) and got.shape == want.shape and got.dtype == want.dtype:
            got = torch.where(given[1][:, :, None].to(got.device), got, want.to(got.device))
        t.same(got, want, f"the mask {name}")


MUTANTS = [
    Mutant("causal", ("(causal | in_prefix[:, None, :])", "causal"), "the whole text is causal: tokens of the prefix "
        "see later ones of the prefix as well"),
    Mutant("prefix-only", ("(causal | in_prefix[:, None, :])", "in_prefix[:, None, :].expand(-1, T, -1)"),
        "only the prefix is seen: what follows also sees itself and what is before it"),
    Mutant("and", ("causal | in_prefix", "causal & in_prefix"), "a key must be in the prefix *and* not after the "
        "query: one of the two is enough"),
    Mutant("prefix-sees-all", prefix_sees_all, "queries of the prefix see everything, the target too: it is the *keys* "
        "of the prefix that all see. So the answer leaks into the input"),
    Mutant("blocks", blocks, "the target does not see the prefix: it goes on from it"),
    Mutant("padding", (" & real[:, None, :]", ""), "padding can be attended to: `real` belongs to the keys, the last "
        "axis"),
    Mutant("padding", padding_queries_only, "padding can be attended to: `real` belongs to the keys, the last axis"),
    Mutant("from-place-0", padding_in_front_counted, "the prefix is counted from place 0: with padding in front it "
        "begins later"),
    Mutant("one-less", ("number <= prefix_lens", "number < prefix_lens"), "the last token of the prefix is not in it: "
        "`prefix_lens` tokens are"),
    Mutant("one-more", ("number <= prefix_lens", "number <= 1 + prefix_lens"), "the first token of the target counts "
        "as prefix: everybody sees it, also those who are to guess it"),
    Mutant("no-diagonal", ("places[None, :] <= places[:, None]", "places[None, :] < places[:, None]"),
        "tokens do not see themselves"),
    Mutant("upper", ("places[None, :] <= places[:, None]", "places[None, :] >= places[:, None]"),
        "the triangle is turned around, or rows and columns are exchanged: keys after the query are seen, and not "
        "those before it"),
    Mutant("turned", turned_around, "True and False are exchanged: True is where one may attend"),
    Mutant("all", ("(causal | in_prefix[:, None, :])", "torch.ones_like(causal)"), "every token sees all others: what "
        "follows the prefix must stay causal, or it sees what it is to guess"),
    Mutant("one-prefix", ("prefix_lens[:, None]",
        "prefix_lens.max()"), "one prefix is taken for all texts of the batch: each has its own"),
    Mutant("transposed", transposed, "queries and keys are exchanged: queries are rows, keys are columns"),
    Mutant("one-prefix", one_prefix_for_all, "one prefix is taken for all texts of the batch: each has its own"),
    Mutant("targets", from_the_end, "`prefix_lens` are taken for the lengths of the targets: they are those of the "
        "prefixes"),
    Mutant("dtype", scores),
    Mutant("dtype", ("& real[:, None, :]\n", "& real[:, None, :] * 1\n")),  # integers
    Mutant("shape", ("return (causal | in_prefix[:, None, :]) & real[:, None, :]",
        "return ((causal | in_prefix[:, None, :]) & real[:, None, :])[:, None]")),  # with heads
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.9.4",
    doc=__doc__,
    source="D2L 11.9, exercise 4",
    parts=[
        Choice(
            key="d2l-11.9.4a",
            prompt="The input is always there. What is the limit of a decoder-only model with its causal mask?",
            hints=[
                "What can the features of the *first* token of the input depend on, in an encoder and in a causal "
                "model?",
                "Which of the drawbacks below is gone if keys and values are kept in a cache?",
            ],
            options=[
                Option(
                    "It cannot be given any input: that takes cross-attention to an encoder.",
                    "The input is the beginning of its sequence, and every later token attends to it by "
                    "self-attention.",
                ),
                Option(
                    "Each token of the input is read without those after it, which are known.",
                    "So its features may miss what decides its meaning, while an encoder looks both ways. The causal "
                    "model can make up for it only at places further back, which see all of it; that costs layers. A "
                    "mask for the prefix takes the limit away.",
                    right=True,
                ),
                Option(
                    "For each token that it writes it must read the whole input once more.",
                    "With a cache the input is read once, just as an encoder reads it once.",
                ),
                Option(
                    "Its loss has to count the tokens of the input as well as the output's.",
                    "One may give them the label -100. To count them is a choice, which makes a language model of the "
                    "inputs, too.",
                ),
            ],
        ),
        Code(
            key="d2l-11.9.4b",
            prompt="""
Take the limit away: all tokens of the prefix see each other, both ways, and what follows stays causal. In a batch the
prefixes are of different lengths, and so are the texts; they may be padded on the right, on the left, or on both sides,
as when inputs are brought to one length on the left before outputs of different lengths follow. Write
`prefix_mask(prefix_lens, real)`. True is where one may attend.
""",
            hints=[
                "A key may be attended to if it is no padding *and* (it is in the prefix *or* not after the query).",
                "With padding in front the prefix does not begin at place 0. `real.cumsum(dim=1)` numbers the tokens.",
                "Keys are the last axis: what depends on the key alone is `[:, None, :]`.",
            ],
            answer=prefix_mask,
            verify=verify,
            alternatives=[by_places, by_the_package, key_by_key, prefix_square_and_triangle],
            min_checks=8,
            mutants=MUTANTS,
            advice={
                "values": "Take a wrong entry [b, i, s]: may query i of text b attend to key s? Ask in this "
                "order: is s padding? Which number has token s in its text, and is that within the prefix? If not, is "
                "s after i?",
            },
            explanation="""
A prefix of no or of one token leaves the causal mask, one as long as the text leaves the mask of an encoder. So three
architectures are three masks. What remains between this one and an encoder with a decoder: the same weights read input
and output, and one attention does what self- and cross-attention do there. Raffel et al. 2020 (section 3.2) compare
them: the prefix is better than the causal mask on their tasks, and with denoising an encoder with a decoder is better
still, with twice the parameters at the same cost.

In rows of padding something should be True (here nothing is for a prefix of 0 with padding in front), for a softmax
over no key at all is NaN, and a weight of 0 does not stop it: NaN times 0 is NaN.

The input need not be computed again while the output grows: no key of the output is ever seen by it. So a cache works
as in a causal model. `d2l.prefix_mask` is this mask without padding.
""",
        ),
        Choice(
            key="d2l-11.9.4c",
            prompt="A model with this mask is trained on the sequence of input and output: at each place it guesses "
            "the next token. At which places may the loss be counted?",
            hints=["At which places does the model see the token that it shall guess?"],
            options=[
                Option(
                    "At all places, also those inside of the prefix, as in any language model.",
                    "At a place inside of the prefix the next token is seen: the model would learn to copy it, one "
                    "place to the left, and the loss would tell nothing.",
                ),
                Option(
                    "At the places of the output alone, from its first token to its last one.",
                    "One is missing: the first token of the output. Nobody would learn to begin.",
                ),
                Option(
                    "From the last place of the input on: there the output's first is guessed.",
                    "It is not in the prefix, and after the query, so it is hidden. Every earlier place sees what it "
                    "should guess. The last token of the output guesses the end.",
                    right=True,
                ),
                Option(
                    "At the places of the input alone, as the output is causal in any case.",
                    "It is the input where the next token can be seen.",
                ),
            ],
        ),
    ],
)
