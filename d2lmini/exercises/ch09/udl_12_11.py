r"""Kernels in place of the softmax

Softmax attention compares every query with every key: $T \cdot S$ numbers. In place of $\exp(\mathbf q^\top \mathbf k)$
put a kernel that is a product of *features*, $k(\mathbf q, \mathbf k) = \phi(\mathbf q)^\top \phi(\mathbf k)$, where
the feature map $\phi$ takes a vector of D numbers to one of R positive numbers. Then there are two ways to the output
for query t:

$$\frac{\sum_s k(\mathbf q_t, \mathbf k_s)\, \mathbf v_s}{\sum_s k(\mathbf q_t, \mathbf k_s)} =
\frac{[\sum_s \mathbf v_s\, \phi(\mathbf k_s)^\top]\, \phi(\mathbf q_t)}
{\phi(\mathbf q_t)^\top \sum_s \phi(\mathbf k_s)} .$$

The sums in brackets and in the denominator on the right do not depend on t. (UDL prints the weights with a sum over
queries, (12.20); the sum of its own attention, and of ours, runs over the keys.)

In all parts `phi` is given: a function that maps a tensor (..., D) to (..., R), each vector for itself. Features are
not scaled by a root of D.
"""

import math

import torch
from torch.nn import functional as F
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode

from d2lmini.exercises.engine import Choice, Code, Exercise, Identity, Mutant, Option
from d2lmini.measure import LargestTensor

LENGTHS = 192, 384
BEFORE = "a token attends to those before it and not to itself: add it to the sums, then read them"
SLOPE, SPREAD = 1.3, 1.5  # one is linear, two is quadratic


class _Features:
    """phi: (..., D) to (..., R), all positive."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return F.softplus(x @ self.weight)


def _features(t, D, R, dtype=torch.float32):
    weight = t.randn(D, R, dtype=dtype)
    weight[:, 0] = -weight[:, 0].abs()  # what is very negative has one large feature at least
    return _Features(weight)


class _Kernel:
    """k: (T, D) and (S, D) to (T, S)."""

    def __init__(self, phi):
        self.phi = phi

    def __call__(self, queries, keys):
        return self.phi(queries) @ self.phi(keys).mT


def _exponential(queries, keys):
    return torch.exp(queries @ keys.mT)


class _Work(TorchDispatchMode):
    """Adds up the work: what torch's FlopCounterMode knows counts its FLOPs, all else the numbers that it makes."""

    work = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        flops = flop_counter.flop_registry.get(func._overloadpacket)
        if flops is not None:
            self.work += int(flops(*args, **kwargs, out_val=out))
        elif not func.is_view:
            made = out if isinstance(out, (list, tuple)) else [out]
            self.work += sum(x.numel() for x in made if isinstance(x, torch.Tensor))
        return out


# a: the identity


def two_orders(queries, keys, values, kernel, phi):
    """Compute both sides of the identity.

    Args:
        queries: (T, D), keys: (S, D), values: (S, E), float64.
        kernel: kernel(queries, keys) gives all values of the kernel, (T, S).
        phi: phi(queries) gives features, (T, R), and phi(keys) (S, R).

    Returns:
        (left, right), each (T, E). left: with the kernel alone. right: with the features alone.
    """
    ### BEGIN SOLUTION
    weights = kernel(queries, keys)  # (T, S)
    left = weights @ values / weights.sum(dim=1, keepdim=True)
    to, by = phi(queries), phi(keys)  # (T, R), (S, R)
    state = by.mT @ values  # (R, E): the sum over the keys, once for all queries
    normaliser = by.sum(dim=0)  # (R,)
    right = (to @ state) / (to @ normaliser)[:, None]
    return left, right
    ### END SOLUTION


def query_by_query(queries, keys, values, kernel, phi):
    left, right = [], []
    for query in queries:
        shares = kernel(query[None], keys)[0]
        left.append(shares @ values / shares.sum())
        outer = sum(torch.outer(v, phi(k)) for k, v in zip(keys, values, strict=True))
        right.append(outer @ phi(query) / (phi(query) @ sum(phi(k) for k in keys)))
    return torch.stack(left), torch.stack(right)


def with_a_column_of_ones(queries, keys, values, kernel, phi):
    more = torch.cat([values, torch.ones_like(values[:, :1])], 1)  # its output is the normaliser
    sums = kernel(queries, keys) @ more, torch.einsum("tr,sr,se->te", phi(queries), phi(keys), more)
    return tuple(x[:, :-1] / x[:, -1:] for x in sums)


def verify_orders(t, answer):
    for name in ("the kernel of phi", "another kernel"):  # with the second no side can stand for the other
        T, S, D, E, R = t.sizes(5, 2, 10)
        queries, keys, values = (t.randn(n, d, scale=0.5, dtype=torch.float64) for n, d in ((T, D), (S, D), (S, E)))
        phi = _features(t, D, R, torch.float64)
        kernel = _exponential if name.startswith("another") else _Kernel(phi)
        q, k, v, w = (x.cpu() for x in (queries, keys, values, phi.weight))
        features = _Features(w)
        sides = []
        for table in ((_exponential if kernel is _exponential else _Kernel(features))(q, k), _Kernel(features)(q, k)):
            sides.append(torch.einsum("ts,se->te", table / table.sum(1, keepdim=True), v))
        got = t.unpack(t.call(answer, queries, keys, values, kernel, phi), "left", "right")
        for side, value, want in zip(("left", "right"), got, sides, strict=True):
            t.same(value, want, f"the {side} side with {name}, T={T}, S={S}")


# b: linear time


def linear_attention(queries, keys, values, phi, mask=None):
    """Attention with the kernel of phi, in time and memory that grow linearly in T and S.

    Args:
        queries: (B, H, T, D), keys: (B, H, S, D), values: (B, H, S, E).
        phi: maps (..., D) to (..., R), positive numbers.
        mask: (B, S), boolean, True where a key may be attended to, in all heads; None: all of them.

    Returns:
        (B, H, T, E); zero where there is no key to attend to.
    """
    ### BEGIN SOLUTION
    to, by = phi(queries), phi(keys)  # (B, H, T, R), (B, H, S, R)
    if mask is not None:
        by = by * mask[:, None, :, None]  # after phi, for phi(0) is not 0
    state = by.mT @ values  # (B, H, R, E)
    normaliser = to @ by.sum(dim=2)[..., None]  # (B, H, T, 1)
    return torch.where(normaliser > 0, to @ state / normaliser, 0)
    ### END SOLUTION


def by_einsum(queries, keys, values, phi, mask=None):
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by.masked_fill(~mask[:, None, :, None], 0)
    state = torch.einsum("bhsr,bhse->bhre", by, values)
    total = torch.einsum("bhtr,bhsr->bht", to, by.sum(2, keepdim=True))
    return torch.einsum("bhtr,bhre->bhte", to, state) / total.clamp(min=1e-9)[..., None]


def with_ones(queries, keys, values, phi, mask=None):
    keep = torch.ones_like(keys[:, 0, :, 0]) if mask is None else mask.to(values)
    more = torch.cat([values, torch.ones_like(values[..., :1])], -1) * keep[:, None, :, None]
    sums = phi(queries) @ (phi(keys).mT @ more)
    return (sums[..., :-1] / sums[..., -1:]).nan_to_num()


def in_the_square(queries, keys, values, phi, mask=None):
    weights = phi(queries) @ phi(keys).mT
    if mask is not None:
        weights = weights * mask[:, None, None]
    return (weights @ values / weights.sum(-1, keepdim=True)).nan_to_num()


def one_query_at_a_time(queries, keys, values, phi, mask=None):
    rows = [in_the_square(query, keys, values, phi, mask) for query in queries.split(1, 2)]
    return torch.cat(rows, 2)


def over_the_queries(queries, keys, values, phi, mask=None):
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by * mask[:, None, :, None]
    return to @ (by.mT @ (values / (by @ to.sum(2)[..., None]).clamp(min=1e-9)))


def each_for_itself(queries, keys, values, phi, mask=None):
    """Queries are normalised over the features, keys over the sequence."""
    to, by = phi(queries), phi(keys)
    if mask is not None:
        by = by * mask[:, None, :, None]
    to, by = to / to.sum(-1, keepdim=True), by / by.sum(2, keepdim=True).clamp(min=1e-9)
    return to @ (by.mT @ values)


def softmax_as_ever(queries, keys, values, phi, mask=None):
    mask = None if mask is None else mask[:, None, None]
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask).nan_to_num()


def softmax_of_features(queries, keys, values, phi, mask=None):
    scores = phi(queries) @ phi(keys).mT
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    return (scores.softmax(-1) @ values).nan_to_num()


def _quadratic(queries, keys, values, weight, allowed):
    """In float64, with all pairs; allowed: (B, 1, T or 1, S)."""
    phi = _Features(weight)
    table = torch.einsum("bhtr,bhsr->bhts", phi(queries), phi(keys)) * allowed
    return torch.einsum("bhts,bhse->bhte", table / table.sum(-1, keepdim=True).clamp(min=1e-300), values)


def _grows_linearly(t, run):
    """Reject an answer whose work or largest tensor grows faster than the length; ``run`` calls it at a length."""
    work, largest = [], []
    for T in LENGTHS:
        with t.watching(_Work, "work") as done, t.watching(LargestTensor, "numel") as seen:
            run(T)
        work.append(done.work)
        largest.append(seen.numel)
    doublings = math.log2(LENGTHS[1] / LENGTHS[0])
    lengths = f"from {LENGTHS[0]} to {LENGTHS[1]} tokens"
    t.that(
        math.log2(largest[1] / largest[0]) / doublings < SPREAD,
        "square",
        f"the largest tensor grows by {largest[1] / largest[0]:.1f} times {lengths}, which are twice as many: a tensor "
        "has an axis of queries and one of keys",
    )
    slope = math.log2(work[1] / work[0]) / doublings
    t.that(
        slope < SLOPE,
        "quadratic",
        f"the work grows by {work[1] / work[0]:.1f} times {lengths}, which are twice as many",
    )


def verify_linear(t, answer):
    B, H, T, S, D, E, R = t.sizes(7, 4, 13)
    for case in ("without a mask", "with a mask", "with a mask that leaves one sequence no key"):
        queries, keys = t.randn(B, H, T, D, scale=0.5), t.randn(B, H, S, D, scale=0.5)
        values, phi = t.randn(B, H, S, E), _features(t, D, R)
        mask = t.rand(B, S) < 0.6
        mask[:, 0], mask[:, -2:] = True, False
        if "no key" in case:
            mask[t.random.randrange(B)] = False
        if case.startswith("without"):
            mask = None
        allowed = torch.ones(1, 1, 1, S) if mask is None else mask.cpu()[:, None, None].double()
        want = _quadratic(*(x.cpu().double() for x in (queries, keys, values, phi.weight)), allowed)
        inputs = (queries, keys, values, phi) if mask is None else (queries, keys, values, phi, mask)
        t.same(t.call(answer, *inputs), want, f"the result {case}")

    def run(length):
        queries, keys, values = (t.randn(1, 2, length, d) for d in (4, 4, 5))
        t.call(answer, queries, keys, values, _features(t, 4, 3), t.rand(1, length) < 0.6)

    _grows_linearly(t, run)


# c: causal


def causal_linear_attention(queries, keys, values, phi, state=None):
    """Causal attention with the kernel of phi, in linear time: token t attends to those before it and to itself.

    Args:
        queries, keys: (B, H, T, D), values: (B, H, T, E), of the T tokens that come now; T may be 1.
        phi: maps (..., D) to (..., R), positive numbers.
        state: what the call for the tokens before these returned; None at the start.

    Returns:
        output: (B, H, T, E).
        state: (sums, normaliser), shapes (B, H, R, E) and (B, H, R), of all tokens so far.
    """
    ### BEGIN SOLUTION
    to, by = phi(queries), phi(keys)  # (B, H, T, R) each
    sums, normaliser = (0, 0) if state is None else state
    outputs = []
    for t in range(queries.shape[2]):
        key = by[:, :, t]  # (B, H, R)
        sums = sums + key[..., :, None] * values[:, :, t, None, :]  # (B, H, R, E)
        normaliser = normaliser + key
        top = (to[:, :, t, None, :] @ sums)[:, :, 0]  # (B, H, E)
        bottom = (to[:, :, t] * normaliser).sum(dim=-1, keepdim=True)  # (B, H, 1)
        outputs.append(top / bottom)
    return torch.stack(outputs, dim=2), (sums, normaliser)
    ### END SOLUTION


def all_prefixes(queries, keys, values, phi, state=None):
    to, by = phi(queries), phi(keys)
    sums = (by[..., None] * values[..., None, :]).cumsum(2)  # (B, H, T, R, E)
    normaliser = by.cumsum(2)
    if state is not None:
        sums, normaliser = sums + state[0][:, :, None], normaliser + state[1][:, :, None]
    output = torch.einsum("bhtr,bhtre->bhte", to, sums) / (to * normaliser).sum(-1, keepdim=True)
    return output, (sums[:, :, -1], normaliser[:, :, -1])


def in_chunks(queries, keys, values, phi, state=None):
    to, by = phi(queries), phi(keys)
    if state is None:
        state = (by[:, :, :1].mT @ values[:, :, :1] * 0, by[:, :, 0] * 0)
    (sums, normaliser), outputs = state, []
    for q, k, v in zip(to.split(16, 2), by.split(16, 2), values.split(16, 2), strict=True):
        inside = (q @ k.mT).tril()
        top = inside @ v + q @ sums
        outputs.append(top / (inside.sum(-1, keepdim=True) + q @ normaliser[..., None]))
        sums, normaliser = sums + k.mT @ v, normaliser + k.sum(2)
    return torch.cat(outputs, 2), (sums, normaliser)


def _both(by, values):
    return by.mT @ values, by.sum(2)


def everybody(queries, keys, values, phi, state=None):
    """The whole of these tokens, the future among them."""
    sums, normaliser = _both(phi(keys), values)
    if state is not None:
        sums, normaliser = sums + state[0], normaliser + state[1]
    to = phi(queries)
    return to @ sums / (to @ normaliser[..., None]), (sums, normaliser)


def future_in_the_normaliser(queries, keys, values, phi, state=None):
    output, (sums, normaliser) = all_prefixes(queries, keys, values, phi, state)
    to, by = phi(queries), phi(keys)
    own = by.cumsum(2) if state is None else by.cumsum(2) + state[1][:, :, None]
    return output * (to * own).sum(-1, keepdim=True) / (to @ normaliser[..., None]), (sums, normaliser)


def with_a_triangle(queries, keys, values, phi, state=None):
    to, by = phi(queries), phi(keys)
    inside, (sums, normaliser) = (to @ by.mT).tril(), _both(by, values)
    top, bottom = inside @ values, inside.sum(-1, keepdim=True)
    if state is not None:
        top, bottom = top + to @ state[0], bottom + to @ state[1][..., None]
        sums, normaliser = sums + state[0], normaliser + state[1]
    return top / bottom, (sums, normaliser)


def prefix_by_prefix(queries, keys, values, phi, state=None):
    """Each token sums up all that came before it anew."""
    outputs = []
    for t in range(queries.shape[2]):
        output, after = everybody(queries[:, :, t : t + 1], keys[:, :, : t + 1], values[:, :, : t + 1], phi, state)
        outputs.append(output)
    return torch.cat(outputs, 2), after


def before_it_alone(queries, keys, values, phi, state=None, first=0):
    """The state is read before the token is added; ``first`` stands where there is none."""
    _, after = all_prefixes(queries, keys, values, phi, state)
    to, by = phi(queries), phi(keys)
    sums, normaliser = (by[..., None] * values[..., None, :]).cumsum(2), by.cumsum(2)
    if state is not None:
        sums, normaliser = sums + state[0][:, :, None], normaliser + state[1][:, :, None]
    sums, normaliser = sums - by[..., None] * values[..., None, :], normaliser - by
    bottom = (to * normaliser).sum(-1, keepdim=True)
    top = torch.einsum("bhtr,bhtre->bhte", to, sums)
    return torch.where(bottom.abs() > 1e-4, top / bottom, first), after


def before_it_and_the_first(queries, keys, values, phi, state=None):
    return before_it_alone(queries, keys, values, phi, state, first=values)


def heads_added_up(queries, keys, values, phi, state=None):
    """A sum along the wrong axis."""
    to, by = phi(queries), phi(keys)
    sums, normaliser = (by[..., None] * values[..., None, :]).cumsum(1), by.cumsum(1)
    output = torch.einsum("bhtr,bhtre->bhte", to, sums) / (to * normaliser).sum(-1, keepdim=True)
    return output, (sums[:, :, -1], normaliser[:, :, -1])


def chunks_in_full(queries, keys, values, phi, state=None):
    """Within a chunk of two all attend to all."""
    outputs = []
    for q, k, v in zip(queries.split(2, 2), keys.split(2, 2), values.split(2, 2), strict=True):
        output, state = everybody(q, k, v, phi, state)
        outputs.append(output)
    return torch.cat(outputs, 2), state


def _is_like(got, want):
    return isinstance(got, torch.Tensor) and got.shape == want.shape


def verify_causal(t, answer):
    B, H, D, E, R = t.sizes(5, 2, 10)
    T = t.random.choice([10, 11, 12])
    queries, keys = t.randn(B, H, T, D, scale=0.5), t.randn(B, H, T, D, scale=0.5)
    values, phi = t.randn(B, H, T, E), _features(t, D, R)
    exact = [x.cpu().double() for x in (queries, keys, values, phi.weight)]
    want = _quadratic(*exact, torch.ones(T, T).tril())
    features = _Features(exact[3])(exact[1])
    prefixes = torch.einsum("bhsr,bhse->bhsre", features, exact[2]).cumsum(2), features.cumsum(2)

    def step(state, start, end, case):
        part = [x[:, :, start:end] for x in (queries, keys, values)]
        given = (*part, phi) if state is None else (*part, phi, state)
        output, state = t.unpack(t.call(answer, *given), "output", "state")
        t.same(output, want[:, :, start:end], f"the output {case}")
        pair = isinstance(state, (tuple, list)) and len(state) == 2
        t.that(pair, "state", f"the state {case} is no pair (sums, normaliser)")
        for name, got, prefix in zip(("sums", "normaliser"), state, prefixes, strict=True):
            t.same(got, prefix[:, :, end - 1], f"the state's {name} {case}")
        return state

    for cut in (1, T // 2):  # the tokens from here on are others the second time
        others = [torch.cat([x[:, :, :cut], t.randn(B, H, T - cut, x.shape[-1])], 2) for x in (queries, keys, values)]
        outputs = []
        for tokens in ((queries, keys, values), others):
            output, _ = t.unpack(t.call(answer, *tokens, phi), "output", "state")
            outputs.append(output[:, :, :cut].nan_to_num() if _is_like(output, want) else None)
        t.that(
            None in outputs or torch.allclose(*outputs, rtol=1e-4, atol=1e-5),
            "future",
            f"the first {cut} of {T} outputs change when only the tokens after them are changed: the future leaks",
        )
    step(None, 0, T, "for a whole sequence")
    state = None
    for i in range(4):
        state = step(state, i, i + 1, f"token by token, at token {i}")
    step(state, 4, T, "for the rest of a sequence, from a state")

    def run(length):
        queries, keys, values = (t.randn(1, 2, length, d) for d in (4, 4, 5))
        t.call(answer, queries, keys, values, _features(t, 4, 3))

    _grows_linearly(t, run)


MUTANTS_A = [
    Mutant("right-unnormalised", (" / (to @ normaliser)[:, None]", ""), "this is the numerator alone: divide by "
        "phi(q_t) times the sum of phi(k_s)"),
    Mutant("left-unnormalised", (" / weights.sum(dim=1, keepdim=True)", ""), "the weights do not sum to one: divide by "
        "their sum over the keys"),
    Mutant("summed-early", ("by.sum(dim=0)", "phi(keys.sum(dim=0))"), "the normaliser is phi of the sum of the keys; "
        "phi is not linear: sum the features"),
    Mutant("summed-early", ("by.sum(dim=0)", "len(keys) * phi(keys.mean(dim=0))"), "the normaliser has phi of a mean "
        "of keys; phi is not linear: sum the features"),
    Mutant("over-queries", ("weights @ values / weights.sum(dim=1, keepdim=True)",
        "weights / weights.sum(dim=0, keepdim=True) @ values"), "the weights of each key sum to one over the queries; "
        "those of each query should, over the keys"),
    Mutant("over-queries", ("right = (to @ state) / (to @ normaliser)[:, None]",
        "right = to @ (by.mT @ (values / (by @ to.sum(dim=0))[:, None]))"), "the weights of each key sum to one over "
        "the queries; those of each query should, over the keys"),
    Mutant("all-queries", ("(to @ normaliser)[:, None]", "(to @ normaliser).sum()"), "divided by the normalisers of "
        "all queries together: each query has its own"),
    Mutant("features-apart", ("(to @ normaliser)[:, None]", "(to.sum(dim=1) * normaliser.sum())[:, None]"),
        "the features of query and keys are summed apart in the denominator: it is an inner product"),
    Mutant("apart", ("state = by.mT @ values", "state = by.sum(0)[:, None] * values.sum(0)"), "keys and values are "
        "summed apart and then multiplied: sum the products phi(k_s) v_s"),
    Mutant("raised", ("phi(queries), phi(keys)", "queries, phi(keys)")),  # no feature map for queries
    Mutant("softmax", ("weights @ values / weights.sum(dim=1, keepdim=True)", "torch.softmax(weights, dim=1) @ values"),
        "the values of the kernel are put through a softmax; it is a kernel in place of exp: divide by the sum"),
    Mutant("left-twice", ("return left, right", "return left, left"), "this is the left side again: use phi, and no "
        "kernel"),
    Mutant("right-twice", ("return left, right", "return right, right"), "this is the right side: use the kernel that "
        "is given, and no phi; or are the two turned?"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("square", in_the_square),
    Mutant("quadratic", one_query_at_a_time),
    Mutant("unnormalised", ("to @ state / normaliser", "to @ state"), "this is the numerator alone: divide by phi(q_t) "
        "times the sum of the keys' features"),
    Mutant("over-queries", over_the_queries, "the weights of each key sum to one over the queries; those of each query "
        "should, over the keys"),
    Mutant("each-for-itself", each_for_itself, "features of queries and of keys are normalised each for itself: divide "
        "by their inner product, phi(q_t) times the sum of the keys' features"),
    Mutant("no-phi", ("phi(queries), phi(keys)", "queries, keys"), "queries and keys are multiplied as they are: where "
        "is phi?"),
    Mutant("softmax", softmax_as_ever, "this is softmax attention: use the kernel of phi"),
    Mutant("softmax-features", softmax_of_features, "the products of features are put through a softmax: phi stands in "
        "place of exp"),
    Mutant("mask-ignored", ("mask is not None", "False"), "the mask is not used"),
    Mutant("mask-turned", ("by * mask[:, None, :, None]", "by * ~mask[:, None, :, None]"), "the mask is turned round: "
        "True is where a key may be attended to"),
    Mutant("masked-early", ("by = by * mask[:, None, :, None]", "by = phi(keys * mask[:, None, :, None])"),
        "keys are set to zero before phi, and phi(0) is not 0: mask the features"),
    Mutant("filled-early", ("by = by * mask[:, None, :, None]",
        "by = phi(keys.masked_fill(~mask[:, None, :, None], -1e9))"), "masked keys are filled with a large negative "
        "number before phi, as scores are before a softmax; phi makes anything of it: set the features to zero"),
    Mutant("values-masked", ("by = by * mask[:, None, :, None]", "values = values * mask[:, None, :, None]"),
        "masked keys still count in the normaliser: mask both sums"),
    Mutant("by-number", ("to @ by.sum(dim=2)[..., None]", "(to * 0 + keys.shape[2]).mean(dim=-1, keepdim=True)"),
        "divided by the number of keys: divide by phi(q_t) times the sum of the keys' features"),
    Mutant("raised", ("phi(queries), phi(keys)", "queries, phi(keys)")),  # features of queries not made
    # 0 / 0
    Mutant("nonfinite", ("torch.where(normaliser > 0, to @ state / normaliser, 0)", "to @ state / normaliser")),
    Mutant("scaled", ("phi(queries), phi(keys)", "phi(queries / math.sqrt(queries.shape[-1])), phi(keys)"),
        "the queries are divided by the root of D: phi gets them as they are"),
    Mutant("heads", ("state = by.mT @ values", "state = (by.mT @ values).mean(dim=1, keepdim=True)"),
        "the heads share their sums: each head has its own"),
]  # fmt: skip

MUTANTS_C = [
    Mutant("future", everybody),
    Mutant("future", future_in_the_normaliser),
    Mutant("future", chunks_in_full),
    Mutant("axis", heads_added_up, "the sums run over the heads: they should run over the tokens, of each head for "
        "itself"),
    Mutant("square", with_a_triangle),
    Mutant("quadratic", prefix_by_prefix),
    Mutant("not-itself", before_it_alone, BEFORE),
    Mutant("not-itself", before_it_and_the_first, BEFORE),
    Mutant("state-ignored", ("(0, 0) if state is None else state", "(0, 0)"), "the state is not used: these tokens do "
        "not see those of earlier calls"),
    Mutant("normaliser-anew", ("(0, 0) if state is None else state", "(0, 0) if state is None else (state[0], 0)"),
        "the sums go on from the state, and the normaliser begins anew"),
    Mutant("unnormalised", ("top / bottom", "top"), "this is the numerator alone: divide by phi(q_t) times the sum of "
        "the keys' features so far"),
    Mutant("by-number", ("top / bottom", "top / (t + 1)"), "divided by the number of tokens: divide by phi(q_t) times "
        "the sum of the keys' features so far"),
    Mutant("own-normaliser", ("normaliser = normaliser + key", "normaliser = key"), "the normaliser has this token's "
        "features alone: sum them up as you do the products"),
    Mutant("own-sums", ("sums = sums + key", "sums = key"), "the products are those of this token alone: add them to "
        "the sums so far"),
    Mutant("state", ("(sums, normaliser)\n", "sums\n")),  # the sums alone
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.11",
    doc=__doc__,
    source="UDL problem 12.11",
    parts=[
        Identity(
            key="udl-12.11a",
            prompt=r"""
Write `two_orders(queries, keys, values, kernel, phi)`, which returns the two sides for all queries. Compute the left
one with `kernel` alone, which gives all of $k(\mathbf q_t, \mathbf k_s)$ at once, and the right one with `phi` alone:
the check also tries a kernel that is not that of `phi`, and then they differ. Then prove the identity on paper, compare
with the model proof, and call `review("udl-12.11a", "agrees")`.
""",
            hints=[
                "Write the kernel as a sum over the R features, and look which factors depend on s.",
                r"$(\mathbf Q' \mathbf K'^\top)\, \mathbf V = \mathbf Q'\, (\mathbf K'^\top \mathbf V)$, where a row "
                r"of $\mathbf Q'$ is $\phi(\mathbf q_t)$: brackets may be moved.",
                "The denominator is the same with a value of one for each key.",
            ],
            answer=two_orders,
            verify=verify_orders,
            alternatives=[query_by_query, with_a_column_of_ones],
            mutants=MUTANTS_A,
            explanation=r"""
Put the kernel in. The numerator is $\sum_s \big(\phi(\mathbf q_t)^\top \phi(\mathbf k_s)\big)\, \mathbf v_s$. The
bracket is a number, so it may stand behind the vector: $\sum_s \mathbf v_s\, \phi(\mathbf k_s)^\top \phi(\mathbf q_t)$.
Here $\phi(\mathbf q_t)$ does not depend on s and is taken out of the sum: $[\sum_s \mathbf v_s\, \phi(\mathbf
k_s)^\top]\, \phi(\mathbf q_t)$. The denominator is the same with $v_s = 1$: $\phi(\mathbf q_t)^\top \sum_s
\phi(\mathbf k_s)$. No more is used than that products of matrices may be bracketed at will. A softmax between the
two products forbids it.
""",
        ),
        Code(
            key="udl-12.11b",
            prompt=r"""
Write `linear_attention(queries, keys, values, phi, mask=None)` for a batch with several heads. No tensor may have an
axis of queries and one of keys, and no loop may bring the pairs back: the check counts operations at two
lengths (FLOPs of products of matrices, and the numbers that all else makes) and wants them to grow as the length does.
""",
            hints=[
                "Which of the two orders of part (a) never makes T times S numbers?",
                "A key that is masked must add nothing to either sum. What is phi of a key of zeros?",
                "Where no key is left, both sums are zero: 0 / 0. The output is to be zero.",
            ],
            answer=linear_attention,
            verify=verify_linear,
            alternatives=[by_einsum, with_ones],
            min_checks=6,
            advice={
                "nonfinite": "A masked key's features are zero (minus infinity is for scores before a softmax). And "
                "what becomes of 0 / 0 where a sequence has no key to attend to?",
                "square": "Sum over the keys first: phi(K)ᵀ V has R rows.",
                "quadratic": "A loop over queries that goes through all keys for each is the same work as a square.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
The work for each head is $O((T + S)\, R\, E)$ in place of $O(T\, S\, (D + E))$. That is less as soon as the
length is well above R; for short sequences, or an R in the thousands, the square is cheaper. A mask of *keys* fits in,
since it leaves keys out for all queries alike. A mask with a row of its own for each query does not, in general: then
the sums depend on t.
""",
        ),
        Code(
            key="udl-12.11c",
            prompt=r"""
One mask with a row for each query does fit in: the causal one, since the sum for token t is that for token t - 1 and
one term more. Write `causal_linear_attention(queries, keys, values, phi, state=None)`. It returns the output and the
*state*, from which a later call goes on: the whole sequence at once, token by token, or in pieces must give the same.
Work must again grow as the length does.
""",
            hints=[
                "What must be kept of all tokens so far? Two sums, and no key and no value.",
                "Add token t to the sums first, then read them with query t: a token attends to itself, too.",
                "`sums = sums + ...` makes a new tensor; `sums += ...` changes the state that the caller still holds.",
            ],
            answer=causal_linear_attention,
            verify=verify_causal,
            alternatives=[all_prefixes, in_chunks],
            min_checks=25,
            advice={
                "nonfinite": "Does the first token attend to itself?",
                "square": "Keep the two sums and carry them along.",
                "quadratic": "Carry the two sums from token to token; do not form them anew.",
                "future": "Both sums, that of the products and that of the features, end at t.",
                "mutates": "The state belongs to the caller: make new sums, `sums = sums + ...`.",
            },
            mutants=MUTANTS_C,
            explanation=r"""
A transformer with such attention *is* a recurrent network (Katharopoulos et al. 2020, arXiv:2006.16236): its state has
$R\,(E + 1)$ numbers for each head, and writing the millionth token costs what the second did. A key/value cache has
$T\,(D + E)$ numbers and grows. In training, a loop over single tokens leaves a GPU with little to do at a time; one
takes chunks, with the square inside of each and the state between them. Or all prefix sums at once, which costs memory:
$T\,R\,E$.
""",
        ),
        Choice(
            key="udl-12.11d",
            prompt=r"Why not take the feature map of $\exp(\mathbf q^\top \mathbf k)$ itself, and have softmax "
            "attention exactly, in linear time?",
            hints=[
                r"Expand $\exp(\mathbf q^\top \mathbf k)$ as a power series. Each power of the product is itself a "
                "product of features: of how many?",
                "With R features, what is the rank of the table of all kernel values, at most?",
            ],
            options=[
                Option(
                    "The exponential is no kernel of the form φ(q)·φ(k), whatever φ is.",
                    "It is one, with infinitely many features: all products of components, of every degree n, divided "
                    "by the root of n!. That is the power series.",
                ),
                Option(
                    "Its feature map has infinitely many features. With R of them the table of weights before the "
                    "division has rank R at most; that of the exponential may have any rank.",
                    "Take n different vectors, for queries and keys alike. Their table of exponentials has full rank, "
                    "n (the kernel is strictly positive definite), so no finite R does for every length. With R fixed "
                    "one gives up sharp choices among many more keys than features, such as to copy one token out of "
                    "thousands. Random features come close on average, and the error falls with R (Choromanski et al. "
                    "2021, arXiv:2009.14794).",
                    right=True,
                ),
                Option(
                    "It has a finite feature map, but some features are negative, and weights must not be.",
                    "Signs of features are no matter where the kernel itself is positive, as the exponential is. What "
                    "fails is that they are finitely many.",
                ),
                Option(
                    "One can: the quadratic cost comes from the softmax's division by the sum alone.",
                    "The division is cheap in both forms: one number for each query. What keeps the products from "
                    "being bracketed otherwise is the exponential between them.",
                ),
                Option(
                    "One can, and nothing is lost; it is only that GPUs are faster with the square.",
                    "For short sequences the square is fast. But no finite feature map gives the exponential "
                    "exactly, so that what is computed differs, too.",
                ),
            ],
        ),
    ],
)
