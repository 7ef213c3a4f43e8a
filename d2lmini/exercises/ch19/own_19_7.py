r"""Accept a draft, or replace it

In *speculative decoding* a small model, the draft, proposes tokens, and the large model, the target, reads them all in
one pass. A token x that was drawn from the draft's distribution q is **accepted with the probability
min(1, p(x) / q(x))**, where p is the target's distribution at the same position. If it is rejected, another token is
drawn in its place, **from max(p - q, 0), scaled to sum to 1**. What comes out is distributed exactly as p (Leviathan et
al. 2023, Chen et al. 2023).
"""

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def accept_or_replace(p, q, drafted, u):
    """One decision for each text of a batch.

    Args:
        p: (B, V), the target's probabilities. q: (B, V), the draft's.
        drafted: integers (B,), drawn from q, so that q is above 0 there.
        u: (B,), random numbers, 0 <= u < 1: a token is accepted if u is below the probability to accept it.

    Returns:
        (accepted, rest): booleans (B,), and the distribution (B, V) that a replacement is drawn from. Where p equals q
        no replacement is ever needed, and the row is p.
    """
    ### BEGIN SOLUTION
    ratio = (p / q).gather(1, drafted[:, None])[:, 0]  # (B,)
    rest = (p - q).clamp(min=0)  # (B, V)
    total = rest.sum(dim=1, keepdim=True)
    rest = torch.where(total > 0, rest / total, p)
    return u < ratio, rest
    ### END SOLUTION


def row_by_row(p, q, drafted, u):
    accepted, rest = torch.zeros_like(u, dtype=torch.bool), p.clone()
    for b, x in enumerate(drafted.tolist()):
        accepted[b] = bool(u[b] * q[b, x] < p[b, x])
        over = torch.where(p[b] > q[b], p[b] - q[b], 0.0)
        if over.any():
            rest[b] = over / over.sum()
    return accepted, rest


def with_the_smaller(p, q, drafted, u):
    rows = torch.arange(len(p), device=p.device)
    likely = torch.minimum(torch.ones_like(u), p[rows, drafted] / q[rows, drafted])
    rest = p - torch.minimum(p, q)
    total = rest.sum(-1)
    return likely > u, torch.where((total == 0)[:, None], p, rest / total[:, None].clamp(min=1e-30))


def _distributions(t, B, V):
    """Two for each row: ratios far from each other, zeros in both, and a last row in which they are equal."""
    p, q = t.rand(B, V, low=0.2, high=1.0), t.rand(B, V, low=0.2, high=1.0)
    p[:, 0], q[:, 1] = 0.0, 0.0  # the target never says 0, the draft never 1
    p, q = p / p.sum(1, keepdim=True), q / q.sum(1, keepdim=True)
    q[-1] = p[-1]
    return p, q


def verify(t, answer):
    V = t.random.randrange(6, 10)
    for B, case in ((V + 5, "a batch"), (1, "a batch of one")):
        p, q = _distributions(t, B + 3, V)
        p, q = (p, q) if B > 1 else (p[:4], q[:4])
        B = len(p)
        drafted = t.integers(2, V, B)
        drafted[0], drafted[-1] = 0, 2
        rows = range(B)
        ratios = [p[b, drafted[b]].double().item() / q[b, drafted[b]].double().item() for b in rows]
        # below and above the ratio in turns, and far enough from it
        u = [ratio * 0.8 if b % 2 else ratio * 1.2 for b, ratio in enumerate(ratios)]
        u = [x if x < 1 else 0.97 for x in u]
        u[0], u[-1] = 0.0, 0.999
        accept = torch.tensor([u[b] < ratios[b] for b in rows])
        rest = torch.zeros(B, V, dtype=torch.float64)
        for b in rows:
            over = [max(x - y, 0.0) for x, y in zip(p[b].tolist(), q[b].tolist(), strict=True)]
            total = sum(over)
            rest[b] = torch.tensor([x / total for x in over] if total > 0 else p[b].tolist(), dtype=torch.float64)
        u = torch.tensor(u, device=t.device)
        got = t.unpack(t.call(answer, p, q, drafted, u), "accepted", "rest")
        t.same(got[0], accept, f"accepted, {case}")
        t.same(got[1], rest, f"rest, {case}")
    # nearly equal is not equal; and each of the other numbers than p / q that u may be compared with decides otherwise
    p = torch.tensor([[0.50, 0.30, 0.20], [0.30, 0.20, 0.50], [0.30, 0.20, 0.50]], device=t.device)
    q = torch.tensor([[0.52, 0.29, 0.19], [0.31, 0.19, 0.50], [0.60, 0.20, 0.20]], device=t.device)
    drafted, u = torch.tensor([0, 0, 0], device=t.device), torch.tensor([0.9, 0.999, 0.4], device=t.device)
    got = t.unpack(t.call(answer, p, q, drafted, u), "accepted", "rest")
    t.same(got[0], torch.tensor([True, False, True]), "accepted, where rows are nearly equal")
    over = (p.cpu().double() - q.cpu().double()).clamp(min=0)
    t.same(got[1], over / over.sum(1, keepdim=True), "rest, where rows are nearly equal")
    # rows alone, so that no other row hides them: the target's 0 is never accepted, equal distributions always
    p, q = _distributions(t, 1, V)
    drafted, u = torch.tensor([3], device=t.device), torch.tensor([0.99], device=t.device)
    got = t.unpack(t.call(answer, p, q, drafted, u), "accepted", "rest")
    t.same(got[0], torch.tensor([True]), "accepted, where p equals q")
    t.same(got[1], p.cpu().double(), "rest, where p equals q")


MUTANTS_A = [
    Mutant("upside-down", ("(p / q)", "(q / p)"), "the ratio is q / p: it is p / q"),
    Mutant("rejected", ("return u < ratio", "return u >= ratio"), "accepted and rejected are exchanged"),
    Mutant("zero-accepted", ("return u < ratio", "return u <= ratio"), "with u = 0 a token of probability 0 is "
        "accepted: u must be *below* the ratio"),
    Mutant("no-chance", ("return u < ratio", "return ratio >= 1"), "a token is accepted only where p is at least q: "
        "below that, with the probability p / q, which u decides"),
    Mutant("greedy", ("return u < ratio", "return drafted == p.argmax(1)"), "a token is accepted where it is the "
        "target's likeliest: that is right for greedy decoding alone"),
    Mutant("by-p", ("return u < ratio", "return u < p.gather(1, drafted[:, None])[:, 0]"), "u is compared with p(x): "
        "compare it with p(x) / q(x)"),
    Mutant("by-overlap", ("return u < ratio", "return u < torch.minimum(p, q).sum(1)"), "u is compared with the mean "
        "probability to accept, the same for all tokens: it is p(x) / q(x) of the drafted one"),
    Mutant("always", ("return u < ratio", "return u < ratio + 1"), "every token is accepted"),
    Mutant("p-itself", ("rest = (p - q).clamp(min=0)", "rest = p.clone()"), "the replacement is drawn from p: then "
        "tokens that the draft likes come too often"),
    Mutant("without-drafted", ("rest = (p - q).clamp(min=0)", "rest = p.scatter(1, drafted[:, None], 0.0)"),
        "the replacement is drawn from p without the drafted token: it is max(p - q, 0)"),
    Mutant("absolute", ("(p - q).clamp(min=0)", "(p - q).abs()"), "absolute differences are taken: where q is larger "
        "it is 0"),
    Mutant("turned", ("(p - q).clamp(min=0)", "(q - p).clamp(min=0)"), "it is max(q - p, 0): what the draft has too "
        "little is made up for, so p - q"),
    Mutant("negative", ("(p - q).clamp(min=0)", "(p - q)"), "there are negative numbers, or NaN where p - q sums to 0: "
        "take max(p - q, 0)"),
    Mutant("where-larger", ("(p - q).clamp(min=0)", "torch.where(p > q, p, 0.0)"), "where p is larger, p is taken: it "
        "is p - q"),
    Mutant("softmax", ("torch.where(total > 0, rest / total, p)", "torch.where(total > 0, torch.softmax(rest, 1), p)"),
        "there is a softmax: what is left is divided by its sum"),
    Mutant("softmax-of-differences", ("torch.where(total > 0, rest / total, p)", "torch.softmax(p - q, 1)"), "this is "
        "a softmax of p - q: take max(p - q, 0), over its sum"),
    Mutant("accepted-too", ("torch.where(total > 0, rest / total, p)",
        "torch.where((total > 0) & ~(u < ratio)[:, None], rest / total, p)"), "where the token is accepted the row is "
        "p: it is max(p - q, 0), scaled, in every row in which the two differ"),
    Mutant("unscaled", ("torch.where(total > 0, rest / total, p)", "torch.where(total > 0, rest, p)"), "it does not "
        "sum to 1: divide by the sum of the row"),
    Mutant("by-one-sum", ("rest.sum(dim=1, keepdim=True)", "rest.sum()"), "all rows are divided by one sum: each row "
        "has its own"),
    Mutant("even", ("rest / total, p)", "rest / total, torch.ones_like(p))"), "where p equals q the row is not p"),
    Mutant("even", ("torch.where(total > 0, rest / total, p)", "(rest + 1e-10) / (rest + 1e-10).sum(1, keepdim=True)"),
        "where p equals q the row is not p"),
    Mutant("zeros", ("torch.where(total > 0, rest / total, p)", "rest / total.clamp(min=1e-9)"), "where p equals q the "
        "row is 0: it is p there"),
    Mutant("nonfinite", ("torch.where(total > 0, rest / total, p)", "rest / total")),
    Mutant("dtype", ("return u < ratio", "return (u < ratio).float()")),
    Mutant("shape", ("[:, 0]  # (B,)", "")),
]  # fmt: skip


def written(p, q, drafted, u, v):
    """What one pass of the target writes.

    Args:
        p: (n + 1, V), the target's probabilities at the positions of the n drafted tokens, and after them.
        q: (n, V), the draft's. drafted: integers (n,); n may be 0.
        u: (n,), random numbers from 0 to 1: token i is accepted if u[i] is below p / q of it.
        v: one random number from 0 to 1, to draw with: the first token at which the cumulative sum of the
            distribution is *above* v; where rounding leaves none, the last token whose probability is above 0.

    Returns:
        List of integers: the drafted tokens up to the first that is rejected, and its replacement in its place;
        if all are accepted, all n and one more, drawn from the last row of p.
    """
    ### BEGIN SOLUTION
    tokens = []
    for i, x in enumerate(drafted.tolist()):
        if u[i] < p[i, x] / q[i, x]:
            tokens.append(x)
            continue
        last = (p[i] - q[i]).clamp(min=0)
        last = last / last.sum()
        break
    else:
        last = p[-1]
    above = torch.cumsum(last, dim=0) > v
    drawn = above.nonzero() if above.any() else last.nonzero()[-1:]
    return [*tokens, int(drawn[0])]
    ### END SOLUTION


def all_at_once(p, q, drafted, u, v):
    n = len(drafted)
    places = torch.arange(n, device=p.device)
    kept = int((u < p[places, drafted] / q[places, drafted]).int().cumprod(0).sum())
    padded = torch.cat([q, torch.zeros_like(p[:1])])  # nothing was drafted there: p - 0
    rest = (p[kept] - padded[kept]).relu()
    token = int((rest.cumsum(0) / rest.sum() <= v).sum())
    return [*drafted[:kept].tolist(), min(token, int(rest.nonzero().max()))]


def with_python(p, q, drafted, u, v):
    tokens = []
    for row, other, x, chance in zip(p.tolist(), q.tolist(), drafted.tolist(), u.tolist()):  # noqa: B905
        if chance * other[x] >= row[x]:
            rest = [max(a - b, 0) for a, b in zip(row, other)]  # noqa: B905
            break
        tokens.append(x)
    else:
        rest = p[len(tokens)].tolist()
    so_far, total = 0.0, sum(rest)
    for token, share in enumerate(rest):
        so_far += share / total
        if so_far > v:
            return [*tokens, token]
    return [*tokens, max(token for token, share in enumerate(rest) if share > 0)]


def goes_on_after_a_rejection(p, q, drafted, u, v):
    tokens = [
        x if u[i] < p[i, x] / q[i, x] else written(p[i:], q[i : i + 1], drafted[i : i + 1], u[i : i + 1], v)[0]
        for i, x in enumerate(drafted.tolist())
    ]
    return [*tokens, written(p[-1:], q[:0], drafted[:0], u[:0], v)[0]]


def accepts_what_comes_after(p, q, drafted, u, v):
    kept = [x for i, x in enumerate(drafted.tolist()) if u[i] < p[i, x] / q[i, x]]
    return kept + written(p, q, drafted, u, v)[-1:]


def keeps_the_rejected(p, q, drafted, u, v):
    tokens = written(p, q, drafted, u, v)
    return tokens if len(tokens) > len(drafted) else drafted[: len(tokens)].tolist()


def all_or_nothing(p, q, drafted, u, v):
    tokens = written(p, q, drafted, u, v)
    return tokens if len(tokens) > len(drafted) else tokens[-1:]


EDGES = (  # p, q, drafted, u, v, what is written, what is said
    ([[0.5, 0.5, 0.0, 0.0], [0.25] * 4], [[0.2, 0.2, 0.1, 0.5]], [3], [0.0], 0.75, [1], "a token that the target never "
        "says, and u is 0, which is not *below* 0"),
    ([[0.25] * 4, [0.0, 0.25, 0.25, 0.5]], [[0.25] * 4], [2], [0.5], 0.0, [2, 1], "v is 0, and the first token has "
        "the probability 0: its sum is not *above* v"),
    ([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]], [[0.6, 0.2, 0.2]], [0], [0.9], 0.0, [1], "v is 0, and the replacement cannot "
        "be the first token"),
    ([[0.25, 0.75, 0.0]], [], [], [], 1 - 1e-12, [1], "v is so near to 1 that no sum may be above it: it is the last "
        "token that has a probability"),
)  # fmt: skip


def verify_written(t, answer):
    n, V = t.random.randrange(4, 7), 2000  # so many tokens that wrong distributions give different ones
    slope = torch.linspace(0.0, 1.0, V, device=t.device)
    for length, kept, case in (
        (n, 2, "where the third of the drafted tokens is rejected"),
        (n, 0, "where the first is rejected"),
        (n, n - 1, "where the last is rejected"),
        (n, n, "where all are accepted"),
        (1, 1, "of one drafted token, which is accepted"),
        (0, 0, "without drafted tokens"),
        (n, 1, "where the second is rejected"),
    ):
        p, q = (t.rand(length + 1, V, low=0.2) * (t.rand(length + 1, 1, high=3.0) - slope).abs() for _ in "pq")
        p, q = p / p.sum(1, keepdim=True), q / q.sum(1, keepdim=True)
        q = q[:length]
        drafted, u = t.integers(0, V, length), t.rand(length)
        for i in range(length):  # the one that is rejected needs a ratio below 1
            order = (p[i] / q[i]).argsort()
            drafted[i] = order[t.random.randrange(V // 9) if i == kept else t.random.randrange(V // 9, V)]
            ratio = (p[i, drafted[i]] / q[i, drafted[i]]).item()
            low, high = (min(1.0, ratio) * 1.1, 1.0) if i == kept else (0.0, min(1.0, ratio) * 0.9)
            u[i] = low + (high - low) * t.random.random() if i <= kept else 0.9 * min(1.0, ratio)
        last = p[kept].double().cpu()
        if kept < length:
            last = (last - q[kept].double().cpu()).clamp(min=0)
        last = last / last.sum()
        token = t.random.choice([x for x in range(V // 4, V) if last[x] > 0.5 / V])
        v = (last.cumsum(0)[token] - 0.5 * last[token]).item()  # in the middle, where no rounding decides
        want = [*drafted[:kept].tolist(), token]
        got = t.call(answer, p, q, drafted, u, v)
        t.that(isinstance(got, list), "type", f"the result is a {type(got).__name__}, expected a list")
        t.that(all(type(x) is int for x in got), "dtype", "the list holds something else than integers (`.item()`?)")
        message = f"there are {len(got)} tokens {case}, expected {len(want)}"
        t.that(len(got) <= len(want), "too-many", message)
        t.that(len(got) >= len(want), "too-few", message)
        t.same(torch.tensor(got), torch.tensor(want), f"what is written {case}")
    for p, q, drafted, u, v, want, case in EDGES:
        p, u = torch.tensor(p, device=t.device), torch.tensor(u, device=t.device)
        q = torch.tensor(q, device=t.device).view(-1, p.shape[1])
        got = t.call(answer, p, q, torch.tensor(drafted, dtype=torch.long, device=t.device), u, v)
        t.that(got == want, "edge", f"what is written is not right where {case}")


MUTANTS_B = [
    Mutant("too-many", goes_on_after_a_rejection),
    Mutant("too-many", accepts_what_comes_after),
    Mutant("too-few", all_or_nothing),
    Mutant("too-few", lambda *args: written(*args)[:-1] or written(*args)),  # nothing in place of the rejected one
    Mutant("too-few", ("return [*tokens, int(drawn[0])]",
        "return [*tokens, int(drawn[0])][:max(1, len(drafted))]")),  # no token more where all are accepted
    Mutant("raised", ("    else:\n        last = p[-1]\n", "")),  # nothing to draw from where all are accepted
    Mutant("kept-the-rejected", keeps_the_rejected, "the rejected token stands where its replacement belongs"),
    Mutant("from-p", ("last = (p[i] - q[i]).clamp(min=0)", "last = p[i]"), "the replacement is drawn from p: it is "
        "max(p - q, 0), scaled"),
    Mutant("turned", ("(p[i] - q[i])", "(q[i] - p[i])"), "the replacement is drawn from max(q - p, 0): it is "
        "max(p - q, 0)"),
    Mutant("unscaled", ("last = last / last.sum()", "last = last"), "max(p - q, 0) is not scaled to sum to 1, so that "
        "its cumulative sum stays below v"),
    Mutant("likeliest", ("return [*tokens, int(drawn[0])]", "return [*tokens, int(last.argmax())]"),
        "the last token is the likeliest: draw it, with v"),
    Mutant("one-less", ("return [*tokens, int(drawn[0])]", "return [*tokens, int((~above).sum()) - 1]"),
        "the drawn token is one too low: the first whose cumulative sum "
        "is *above* v"),
    Mutant("backwards", ("torch.cumsum(last, dim=0)", "torch.cumsum(last.flip(0), dim=0)"), "the cumulative sum begins "
        "at the last token: it begins at token 0"),
    Mutant("last-row", ("last = (p[i] - q[i])", "last = (p[-1] - q[i])"), "p is taken from its last row, where a token "
        "is rejected: it is the row of that position"),
    Mutant("next-row", ("last = (p[i] - q[i])", "last = (p[i + 1] - q[i])"), "p is taken one position too late, where "
        "a token is rejected"),
    Mutant("bonus-row", ("last = p[-1]", "last = p[len(drafted) - 1]"), "where all are accepted, the last token is "
        "drawn from the last row of p"),
    Mutant("type", ("return [*tokens, int(drawn[0])]", "return torch.tensor([*tokens, 0])")),
    Mutant("dtype", ("int(drawn[0])", "drawn[0]")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.7",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-19.7a",
            prompt="Write `accept_or_replace(p, q, drafted, u)`.",
            hints=[
                "Work one text by hand: V = 2, q = [0.5, 0.5], p = [0.8, 0.2]. When is token 1 accepted, and what "
                "replaces it?",
                "`gather` takes the drafted token's entry of each row. A ratio above 1 needs no care: u is below it.",
                "max(p - q, 0) sums to 0 only where p equals q: `torch.where` gives p there.",
            ],
            answer=accept_or_replace,
            verify=verify,
            alternatives=[row_by_row, with_the_smaller],
            mutants=MUTANTS_A,
            min_checks=9,
            advice={
                "nonfinite": "Where p equals q, max(p - q, 0) sums to 0, and 0 / 0 is NaN: the row is p there.",
                "shape": "There is one decision for each text, (B,).",
                "values": "Take one row: p(x) / q(x) of the drafted token beside u; then p - q with the negative "
                "entries set to 0, over its sum.",
            },
            explanation=r"""
Why it is exact, for any p and q: a token x comes out in two ways. It is drafted and accepted, with
$q(x)\min(1, p(x)/q(x)) = \min(p(x), q(x))$. Or some token is rejected and x replaces it. A token is rejected with the
probability $R = 1 - \sum_y \min(p(y), q(y)) = \sum_y \max(p(y) - q(y), 0)$, and x then comes with
$\max(p(x) - q(x), 0) / R$. Together: $\min(p(x), q(x)) + \max(p(x) - q(x), 0) = p(x)$.
""",
        ),
        Code(
            key="own-19.7b",
            prompt="Now the whole pass. Write `written(p, q, drafted, u, v)`.",
            hints=[
                "What is written is one token longer than what is accepted, in every case.",
                "A `for` loop that ends with `break` at the first rejection; its `else` is for the case that all are "
                "accepted.",
                "With the cumulative sum of the distribution, `(sums > v)` is False and then True: its first True is "
                "the token.",
            ],
            answer=written,
            verify=verify_written,
            alternatives=[all_at_once, with_python],
            mutants=MUTANTS_B,
            min_checks=35,
            advice={
                "too-few": "Each pass writes what is accepted *and* one more: a replacement, or one from p's last row.",
                "too-many": "After the first rejection nothing of the draft counts: it followed another text.",
                "raised": "If it is where all are accepted or where nothing was drafted: then the last row of p is "
                "what is drawn from.",
                "dtype": "`int(...)` or `.item()` makes an integer of a tensor.",
                "values": "The last token is the one that v draws, not one of `torch.multinomial`: the first whose "
                "cumulative sum is above v. A replacement is drawn from max(p - q, 0) *over its sum*.",
            },
            explanation=r"""
A pass writes 1 to n + 1 tokens, and never none. So the target is asked at most as often as without a draft. What comes
after a rejected token is thrown away, however likely it is: the target read it after a text that is no longer there.
With a cache, its keys and values are thrown away, too.
""",
        ),
        Choice(
            key="own-19.7c",
            prompt="Two tokens, p = [0.8, 0.2] and q = [0.5, 0.5]. Somebody draws the replacement from p instead of "
            "max(p - q, 0). How often does token 1 come out, which should come with 0.2?",
            hints=["With which probability is token 1 drafted and rejected? What replaces it, and how often?"],
            options=[
                Option(
                    "0.2, as every replacement follows p in any case.",
                    "Replacements follow p then, but accepted tokens do not: token 1 is accepted with 0.5 x 0.4 = 0.2 "
                    "already, and each replacement that is token 1 is too much.",
                ),
                Option(
                    "0.26: accepted with 0.2, and 0.2 of the 0.3 rejections.",
                    "The draft proposes token 1 with 0.5, and 0.4 of that is accepted: 0.2. In the other 0.3 p gives "
                    "token 1 again with 0.2, so 0.06 more. From max(p - q, 0) = [0.3, 0] it never comes.",
                    right=True,
                ),
                Option(
                    "0.35, the mean of what p and q say about the token.",
                    "p and q do not have equal shares in the result: q has a say in what is accepted only.",
                ),
                Option(
                    "0.06: all that is rejected is drawn anew, from p.",
                    "That is what the replacements add. The accepted ones come on top of it.",
                ),
            ],
        ),
    ],
)
