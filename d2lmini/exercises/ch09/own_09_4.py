r"""Longer than in training: angles that a model has seen, and a bias that knows no length

A model was trained on texts of n tokens, and now it is to read f n of them. Rotary positions turn the j-th pair of D
features by the angle $p\, \theta_j$ at position p, where $\theta_j = b^{-2j/D}$ for j = 0 ... D/2 - 1, with the base
b = 10,000. Past n there are angles that the model never met, first of all in the slowest pairs, which never
completed a turn. Two remedies change the angles of a trained model:

- *interpolation*: all angles at position f p are as those at p were, so that no pair leaves what it has seen;
- *another base*: the **slowest** pair alone (j = D/2 - 1) turns f times as slowly, exactly, and the fastest (j = 0) as
  before; those between follow from the new base.

ALiBi turns nothing. It subtracts from each score the distance, times a slope that each head has for itself.
"""

import math

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def angles(positions, head_size, factor, method, base=10_000.0):
    """By which angles the pairs of features are turned.

    Args:
        positions: (T,), float64, any positions, in any order.
        head_size: D, even, at least 4.
        factor: f, a number, 1 or more: how many times as long texts became; not always an integer.
        method: "as trained", "interpolated" or "base changed".
        base: b, of the training.

    Returns:
        (T, D/2), float64, and computed in it: the angle of pair j at each position.
    """
    ### BEGIN SOLUTION
    D = head_size
    if method == "interpolated":
        positions = positions / factor
    if method == "base changed":
        base = base * factor ** (D / (D - 2))  # to the power of -(D - 2)/D, that of the slowest, it is 1/f
    j = torch.arange(D // 2, dtype=positions.dtype, device=positions.device)
    return positions[:, None] * base ** (-2 * j / D)
    ### END SOLUTION


def pair_by_pair(positions, head_size, factor, method, base=10_000.0):
    columns = []
    for j in range(head_size // 2):
        turns = positions * math.pow(base, -2 * j / head_size)
        if method == "interpolated":
            turns = turns / factor
        if method == "base changed":
            turns = turns / factor ** (2 * j / (head_size - 2))
        columns.append(turns)
    return torch.stack(columns, dim=1)


def by_logarithms(positions, head_size, factor, method, base=10_000.0):
    """Speeds are a straight line in logarithms, from 1 to the slowest."""
    pairs = head_size // 2
    slowest = -math.log(base) * (head_size - 2) / head_size - (math.log(factor) if method == "base changed" else 0)
    speeds = torch.linspace(0, slowest, pairs, dtype=positions.dtype, device=positions.device).exp()
    return positions[:, None] * speeds / (factor if method == "interpolated" else 1)


# mistakes


def cut_off(positions, head_size, factor, method, base=10_000.0):
    """Positions past the largest over f stay there."""
    if method == "interpolated":
        return angles(positions.clamp(max=positions.max() / factor), head_size, 1, "as trained", base)
    return angles(positions, head_size, factor, method, base)


def begins_anew(positions, head_size, factor, method, base=10_000.0):
    if method == "interpolated":
        return angles(positions % (positions.max() / factor), head_size, 1, "as trained", base)
    return angles(positions, head_size, factor, method, base)


def whole_positions(positions, head_size, factor, method, base=10_000.0):
    if method == "interpolated":
        return angles((positions / factor).floor(), head_size, 1, "as trained", base)
    return angles(positions, head_size, factor, method, base)


def slowest_alone(positions, head_size, factor, method, base=10_000.0):
    result = angles(positions, head_size, factor, "as trained" if method == "base changed" else method, base)
    if method == "base changed":
        result = torch.cat([result[:, :-1], result[:, -1:] / factor], 1)
    return result


def doubled(positions, head_size, factor, method, base=10_000.0):
    return angles(positions, head_size, factor, method, base).repeat_interleave(2, 1)


def _speeds(D, base):
    return [math.exp(-2 * j / D * math.log(base)) for j in range(D // 2)]


class _Turned:
    """Dot products of pairs, turned by an answer's angles: (D,), (D,) and (T, D/2) twice to (T,)."""

    def __init__(self, queries, keys):
        self.queries, self.keys = queries, keys

    def __call__(self, answer, queries_at, keys_at, *rest):
        turn = answer(queries_at, *rest) - answer(keys_at, *rest)
        return (self.queries * self.keys.conj() * torch.polar(torch.ones_like(turn), turn)).real.sum(-1)


def verify_angles(t, answer):
    for case in ("as trained", "interpolated", "base changed"):
        for factor, D in ((4, 2 * t.random.randint(6, 9)), (1.5 + t.random.random(), 4)):
            T, base = t.random.randint(5, 9), t.random.choice([1e4, 5e5])
            positions = t.integers(0, 9000, T).double()
            positions[:4] = positions.new_tensor([8192.0, 3.0, 700.625, -5.0])  # any, in any order
            speeds = _speeds(D, base)
            if case == "base changed":  # a straight line in logarithms with a new end
                speeds = [speed * factor ** (-j / (D / 2 - 1)) for j, speed in enumerate(speeds)]
            at = positions.cpu() / (factor if case == "interpolated" else 1)
            want = torch.tensor([[p * speed for speed in speeds] for p in at.tolist()], dtype=torch.float64)
            inputs = (positions, D, factor, case, base)
            name = f'the angles "{case}" for D={D}, factor {factor:.3g}'
            t.same(t.call(answer, *inputs), want, name)
    D, factor, T = 12, 4, 6
    queries, keys = (torch.view_as_complex(t.randn(D // 2, 2, dtype=torch.float64)) for _ in range(2))
    queries_at, keys_at = t.integers(0, 500, T).double(), t.integers(0, 500, T).double()
    speeds = torch.tensor(_speeds(D, 1e4), dtype=torch.float64)
    # the scores of the training, at its own positions
    turned = [x.cpu() * torch.exp(1j * p.cpu()[:, None] * speeds) for x, p in ((queries, queries_at), (keys, keys_at))]
    want = (turned[0] * turned[1].conj()).real.sum(-1)
    got = t.call(_Turned(queries, keys), answer, factor * queries_at, factor * keys_at, D, factor, "interpolated")
    name = "scores of queries and keys, interpolated, that stand f times as far apart"
    t.same(got, want, name, dtype=torch.float64, tolerance=(1e-3, 1e-3))


def alibi_bias(num_heads, num_queries, num_keys):
    """What ALiBi adds to the scores of a decoder.

    Args:
        num_heads: H, a power of two.
        num_queries: T, the last T of the positions 0 ... S - 1: earlier keys may come from a cache.
        num_keys: S, at least T.

    Returns:
        (H, T, S), float32: minus the slope of the head times the distance; minus infinity for keys later than the
        query. Slopes are a geometric sequence for i = 1 ... H, from 2^(-8/H) down to 2^(-8): of 8 heads 1/2, 1/4, ...,
        1/256.
    """
    ### BEGIN SOLUTION
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)  # (H,)
    queries = torch.arange(num_keys - num_queries, num_keys)
    distances = queries[:, None] - torch.arange(num_keys)  # (T, S), below 0 for later keys
    bias = -slopes[:, None, None] * distances
    return bias.masked_fill(distances < 0, -math.inf)
    ### END SOLUTION


def by_the_package(num_heads, num_queries, num_keys):
    offsets = d2l.masks.position_offsets(num_queries, num_keys)
    slopes = torch.logspace(-8 / num_heads, -8, num_heads, base=2.0)
    return torch.where(d2l.causal_mask(num_queries, num_keys), torch.einsum("h,ts->hts", slopes, offsets), -math.inf)


def number_by_number(num_heads, num_queries, num_keys):
    ratio, slope, heads = 2 ** (-8 / num_heads), 1.0, []
    for _ in range(num_heads):
        slope *= ratio
        places = range(num_keys - num_queries, num_keys)
        heads.append([[slope * (s - t) if s <= t else -math.inf for s in range(num_keys)] for t in places])
    return torch.tensor(heads)


# mistakes


def both_sides(num_heads, num_queries, num_keys):
    bias = alibi_bias(num_heads, num_queries, num_keys)
    slopes = -bias[:, -1, -2] if num_keys > 1 else bias[:, 0, 0]
    distances = torch.arange(num_keys - num_queries, num_keys)[:, None] - torch.arange(num_keys)
    return -slopes[:, None, None] * distances.abs()


def verify_bias(t, answer):
    for H, T, S, name in (
        (8, 5, 5, "as many keys as queries"),
        (8, 3, 7, "earlier keys from a cache"),
        (4, 5, 9, "4 heads"),
        (32, 2, 6, "32 heads"),
        (1, 1, 12, "a single query"),
    ):
        want = torch.full((H, T, S), -math.inf, dtype=torch.float64)
        for i in range(H):
            for row in range(T):
                for s in range(S - T + row + 1):
                    want[i, row, s] = -(2 ** (-8 * (i + 1) / H)) * (S - T + row - s)
        t.same(t.call(answer, H, T, S), want, f"the bias for {name}, H={H}, T={T}, S={S}", dtype=torch.float32)


MUTANTS_A = [
    Mutant("float32", ("return positions[:, None] * base ** (-2 * j / D)",
        "return (positions[:, None].float() * base ** (-2 * j.float() / D)).double()"), "these are computed in "
        "float32, whose rounding shows at far positions: compute in float64 throughout"),
    Mutant("from-one", ("torch.arange(D // 2, dtype=positions.dtype, device=positions.device)",
        "torch.arange(1, D // 2 + 1, dtype=positions.dtype, device=positions.device)"), "pairs are counted from 1: the "
        "fastest has j = 0 and turns by 1 a position"),
    Mutant("half-exponent", ("(-2 * j / D)", "(-j / D)"), "the exponent is half of what it should be: -2j/D, where j "
        "counts pairs"),
    Mutant("to-the-end", ("(-2 * j / D)", "(-2 * j / (D - 2))"), "the slowest pair turns by 1/b: the exponent is "
        "-2j/D, which ends short of -1"),
    Mutant("faster", ("(-2 * j / D)", "(2 * j / D)"), "later pairs turn faster: the exponent has a minus"),
    Mutant("order", ("base ** (-2 * j / D)", "base ** (-2 * j.flip(0) / D)"), "the pairs are in the reverse order: the "
        "fastest is the first"),
    Mutant("multiplied", ("positions / factor", "positions * factor"), "positions are multiplied by the factor: that "
        "makes large angles larger"),
    Mutant("cut-off", cut_off, "all far positions have the same angle: divide positions, so that each keeps one of its "
        "own"),
    Mutant("anew", begins_anew, "positions begin anew past the trained length: tokens far apart would look like "
        "neighbours; divide"),
    Mutant("whole", whole_positions, "positions are rounded, so that neighbours share one: angles between those of "
        "whole positions are what interpolation is about"),
    Mutant("by-f", ("factor ** (D / (D - 2))", "factor"), "the base is multiplied by f: the slowest pair has the "
        "exponent -(D - 2)/D, so that it turns a little less than f times as slowly; it should be exactly f"),
    Mutant("upside-down", ("(D / (D - 2))", "((D - 2) / D)"), "the exponent of f is upside down"),
    Mutant("divided", ("base * factor **", "base / factor **"), "the base is divided: a smaller base turns faster"),
    Mutant("power", ("base * factor ** (D / (D - 2))", "base**factor"), "the base is raised to the power of f: "
        "multiply it by a power of f"),
    Mutant("both", ('    if method == "base changed":\n',
        '    if method == "base changed":\n        positions = positions / factor\n'), "positions are divided as well: "
        "one of the two remedies, not both"),
    Mutant("as-trained", ('if method == "base changed":', "if False:"), "these are the angles as trained: nothing is "
        "changed"),
    Mutant("interpolates", ("base = base * factor ** (D / (D - 2))", "positions = positions / factor"), "all pairs "
        "turn f times as slowly, which is interpolation: by another base the fastest turns as before"),
    Mutant("rounded", ("torch.arange(D // 2, dtype=positions.dtype, ", "torch.arange(D // 2, "), "the speeds are "
        "computed in float32, which torch.arange(...) / D gives: pass it dtype=positions.dtype"),
    Mutant("slowest-alone", slowest_alone, "the slowest pair alone is changed: by a new base those between change, "
        "too, each by a part of f"),
    Mutant("shape", doubled),
    Mutant("by-index", ("    return positions[:, None] *", "    positions = "
        "torch.arange(len(positions)).to(positions)\n    return positions[:, None] *"),
        "positions are counted from 0, whatever was given: they come in any order, and need not begin at 0"),
    Mutant("integers", ("    return positions[:, None] *", "    positions = positions.long().double()\n    return "
        "positions[:, None] *"),
        "positions are rounded: they may lie between whole numbers"),
    Mutant("sizes", ("positions[:, None] *", "positions.abs()[:, None] *"), "positions below zero turn forwards: a "
        "negative position has negative angles"),
    Mutant("fixed-base", ("* base ** (", "* (10_000.0 if base < 2e4 or method != 'base changed' else base) ** "
        "("), "the base is 10,000, whatever was given: use the argument"),
    Mutant("anyway", ("    if method == \"interpolated\":\n", "    if method != \"base changed\":\n"), "positions are "
        "divided although nothing is to be changed: \"as trained\" are the angles of the training"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("from-zero", ("torch.arange(1, num_heads + 1)", "torch.arange(num_heads)"), "the first slope is 1: i goes "
        "from 1 to H"),
    Mutant("halved", ("(-8 * torch.arange(1, num_heads + 1) / num_heads)", "(-1.0 * torch.arange(1, num_heads + 1))"),
        "each slope is half of the one before, whatever the number of heads: that is so for 8 heads; the last one is "
        "always 1/256"),
    Mutant("order", ("-slopes[:, None, None] * distances", "-slopes.flip(0)[:, None, None] * distances"),
        "the slopes are in the reverse order: the first head is the steepest"),
    Mutant("one-slope", ("-slopes[:, None, None] * distances",
        "-slopes[:1].expand(num_heads)[:, None, None] * distances"), "all heads have the same slope: each has its "
        "own"),
    Mutant("straight", ("2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)",
        "torch.linspace(2.0 ** (-8 / num_heads), 2.0**-8, num_heads)"), "the slopes fall by the same *difference*: "
        "they fall by the same ratio"),
    Mutant("sign", ("-slopes[:, None, None] * distances", "slopes[:, None, None] * distances"),
        "the sign is wrong: what is far must get less"),
    # starts aligned
    Mutant("nonfinite", ("torch.arange(num_keys - num_queries, num_keys)", "torch.arange(num_queries)")),
    Mutant("future", ("bias.masked_fill(distances < 0, -math.inf)", "bias"), "later keys get a bonus: hide them, with "
        "minus infinity"),
    Mutant("both-sides", both_sides, "the bias goes to both sides, as in an encoder: later keys get minus infinity in "
        "a decoder"),
    Mutant("zero", ("distances < 0, -math.inf)", "distances < 0, 0.0)"), "later keys get 0, and so the largest of all: "
        "minus infinity hides"),
    Mutant("nonfinite", ("distances < 0, -math.inf)", "distances <= 0, -math.inf)")),  # itself hidden
    Mutant("finite", ("distances < 0, -math.inf)", "distances < 0, -1e9)"), "later keys get a large negative number: "
        "a score that is as large makes up for it, and minus infinity cannot be made up for"),
    Mutant("positions", ("-slopes[:, None, None] * distances\n", "-slopes[:, None, None] * "
        "torch.arange(num_keys)\n"), "the bias hangs on the key's position alone: it is a matter of the distance "
        "between query and key"),
    Mutant("distance-1", ("-slopes[:, None, None] * distances\n", "-slopes[:, None, None] * (distances + 1)\n"),
        "distances are one too large: a token is at distance 0 from itself"),
    Mutant("squared", ("-slopes[:, None, None] * distances\n", "-slopes[:, None, None] * distances**2\n"),
        "the distance is squared: the bias falls along a straight line"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-09.4",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-09.4a",
            prompt="Write `angles(positions, head_size, factor, method, base)`. The check compares all angles, then "
            "turns "
            "queries and keys by yours: interpolated, those that stand f times as far apart must have the scores of "
            "the training. Find the new base with pencil and paper first.",
            hints=[
                "Interpolation is a change of the positions alone.",
                "The slowest pair has j = D/2 - 1. What is its exponent, -2j/D, as a fraction of D - 2 and D?",
                "The new base B must have $B^{-(D-2)/D} = b^{-(D-2)/D} / f$. Solve for B.",
                "For j = 0 the exponent is zero: the fastest pair turns by 1 a position, with any base.",
            ],
            answer=angles,
            verify=verify_angles,
            alternatives=[pair_by_pair, by_logarithms],
            min_checks=14,
            advice={
                "dtype": "Angles of thousands need float64: torch.arange(..., dtype=positions.dtype).",
                "shape": "One angle for each *pair*: D/2 of them.",
                "values": "Look at position 1: pair 0 turns by 1, whatever the base. Interpolation divides positions "
                "by f, which need not be whole, and changes no base. Another base changes no position: put j = D/2 - "
                "1 into it, and the speed should be 1/f of what it was.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
$B = b\, f^{D/(D-2)}$. Pair j then turns $f^{2j/(D-2)}$ times as slowly: not at all for j = 0, f times for the last. So
the fast pairs, which tell neighbours apart, are left alone, and the slow ones are interpolated; for those between the
largest angle at f n is above that of the training, $f^{1 - 2j/(D-2)}$ times as large. Interpolation keeps them all, and
makes neighbours harder to tell apart. It was proposed by Chen et al. (2023, arXiv:2306.15595); Peng et al.
(2024, arXiv:2309.00071) have the new base, and a mixture in which each pair is treated by its wavelength.
""",
        ),
        Code(
            key="own-09.4b",
            prompt="Write `alibi_bias(num_heads, num_queries, num_keys)`.",
            hints=[
                "The last query stands at S - 1, the last key, too. Where does the first query stand?",
                "With 16 heads the first slope is the square root of 1/2, with 4 heads it is 1/4.",
                "`slopes[:, None, None] * distances` has shape (H, T, S).",
            ],
            answer=alibi_bias,
            verify=verify_bias,
            alternatives=[by_the_package, number_by_number],
            min_checks=10,
            advice={
                "shape": "(H, T, S): the batch comes by broadcasting.",
                "values": "Print the last row of each head: from the right 0, -m, -2m, ... with the head's slope m. "
                "The slopes m differ by a factor of 2^(-8/H) from head to head, and that of the last is 2^-8.",
                "nonfinite": "Minus infinity is for keys later than the query alone. A token sees itself, at distance "
                "0, and the queries are the last T of the S positions.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
Nothing here depends on a trained length, and nothing is learned. In the softmax a bias of -m d is a factor
$e^{-m d}$: a window with soft edges, of some 1/m positions, in each head another.
""",
        ),
        Choice(
            key="own-09.4c",
            prompt="A model with ALiBi and 8 heads was trained on 512 tokens, and its loss stays as it was on texts of "
            "16,384. Does it make use of what stands 10,000 tokens back, in a single layer?",
            hints=[
                "The flattest head has the slope 1/256. What is the bias at a distance of 10,000?",
                "How much larger than that of a near key would the score have to be to make up for it?",
            ],
            options=[
                Option(
                    "Hardly: in the head that sees farthest such a key has a factor of 10^-17.",
                    "The bias in the flattest head is -10,000 / 256 = -39 there. A key so far away would need a score "
                    "that is larger by 39 to count as much as a near one, whose bias is about zero, and in training, "
                    "at up to 511 tokens, scores had to make up for 2. So the bias is a soft window, and the loss "
                    "says that the window still works past the trained length. (Through several layers news may come "
                    "from farther, as with any window.)",
                    right=True,
                ),
                Option(
                    "Yes: if it did not, its loss on texts of 16,384 tokens would have gone up.",
                    "Not to fail is not yet to use. A model that looked at the last 500 tokens alone would have this "
                    "loss, too. To find out, cut the context off and see whether the loss rises.",
                ),
                Option(
                    "No: keys at distances that did not occur in training are hidden from it.",
                    "Nothing is hidden; the line goes on. That is why the model does not fail, unlike one with a table "
                    "of learned positions.",
                ),
                Option(
                    "Yes: its steepest head, the slope of which is 1/2, can see far enough.",
                    "Steep is short-sighted: 1/2 times 10,000 is a bias of -5,000. The flattest sees farthest.",
                ),
            ],
        ),
    ],
)
