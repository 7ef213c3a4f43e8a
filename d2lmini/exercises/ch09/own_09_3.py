r"""Attention with a state: the decoder that does not remember single tokens

A decoder with softmax attention keeps the keys and values of all that it has read. With a kernel in place of the
exponential, $\kappa(\mathbf q, \mathbf k) = \phi(\mathbf q)^\top \phi(\mathbf k)$, two sums do:

$$\mathbf o_t^\top = \frac{\phi(\mathbf q_t)^\top \mathbf Z_t}{\phi(\mathbf q_t)^\top \mathbf z_t}, \qquad
\mathbf Z_t = \sum_{s \le t} \phi(\mathbf k_s)\, \mathbf v_s^\top, \qquad
\mathbf z_t = \sum_{s \le t} \phi(\mathbf k_s) .$$

The feature map is that of the linear Transformer, $\phi(x) = \operatorname{elu}(x) + 1$ for each feature by itself:
x + 1 above zero, exp(x) below. Nothing is divided by a root of D. Exercise udl-12.11 derives the sums, for any feature
map; here is what a *decoder* runs: one token, one step, for thousands of steps, and in half precision.
"""

from functools import partial

import torch
import torch.nn.functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Count, Exercise, Mutant


def step(query, key, value, state=None):
    """One token of causal linear attention.

    Args:
        query, key: (B, H, D), of the new token, float32 or bfloat16.
        value: (B, H, E), in the same dtype.
        state: what the step before returned; None at the start.

    Returns:
        output: (B, H, E), in the dtype of ``value``.
        state: (Z, z), shapes (B, H, D, E) and (B, H, D), of all tokens so far and this one, in float32 (or float64)
            whatever the token is in: it must be good after thousands of steps, too.
    """
    ### BEGIN SOLUTION
    dtype = value.dtype
    query, key, value = query.float(), key.float(), value.float()  # sums of bfloat16 soon stop growing
    to = torch.where(query > 0, query + 1, query.exp())
    by = torch.where(key > 0, key + 1, key.exp())  # elu(x) + 1 itself rounds to 0 below -17 or so
    Z, z = (0.0, 0.0) if state is None else state
    Z = Z + by[..., :, None] * value[..., None, :]
    z = z + by
    top = (to[..., None, :] @ Z)[..., 0, :]
    bottom = (to * z).sum(dim=-1, keepdim=True)
    return (top / bottom).to(dtype), (Z, z)
    ### END SOLUTION


def by_the_package(query, key, value, state=None):
    state = None if state is None else d2l.LinearState(*state)
    output, state = d2l.linear_attention_step(query[:, :, None], key[:, :, None], value[:, :, None], state)
    return output[:, :, 0], tuple(state)


def in_one_sum(query, key, value, state=None):
    """The normaliser is the last column; in float64, the state as well."""
    to, by = (torch.maximum(x.double() + 1, x.double().clamp(max=0).exp()) for x in (query, key))
    more = torch.cat([value.double(), torch.ones_like(value[..., :1]).double()], -1)
    sums = torch.einsum("bhd,bhe->bhde", by, more)
    if state is not None:
        sums = sums + torch.cat([state[0].double(), state[1][..., None].double()], -1)
    output = torch.einsum("bhd,bhde->bhe", to, sums)
    return (output[..., :-1] / output[..., -1:]).to(value.dtype), (sums[..., :-1], sums[..., -1])


# mistakes


def before_it_alone(query, key, value, state=None):
    """Reads the sums, then adds; the first reads itself."""
    output, new = step(query, key, value, state)
    if state is not None:
        to = torch.where(query > 0, query + 1, query.exp()).float()
        output = (torch.einsum("bhd,bhde->bhe", to, state[0]) / (to * state[1]).sum(-1, keepdim=True)).to(value.dtype)
    return output, new


def half(query, key, value, state=None):
    """The state has the dtype of the inputs."""
    to, by = (torch.where(x > 0, x + 1, x.exp()) for x in (query, key))
    Z, z = (0.0, 0.0) if state is None else state
    Z, z = Z + by[..., :, None] * value[..., None, :], z + by
    return (to[..., None, :] @ Z)[..., 0, :] / (to * z).sum(-1, keepdim=True), (Z, z)


def normaliser_in_half(query, key, value, state=None):
    """Z is in float32, and z is not."""
    to, by = (torch.where(x > 0, x + 1, x.exp()) for x in (query, key))
    Z, z = (0.0, 0.0) if state is None else state
    Z, z = Z + by[..., :, None].float() * value[..., None, :].float(), z + by
    top = (to.float()[..., None, :] @ Z)[..., 0, :]
    return (top / (to * z).sum(-1, keepdim=True)).to(value.dtype), (Z, z)


def with_features(query, key, value, state=None, phi=None, eps=0.0):
    """A right step but for its feature map, and for what is added to the denominator."""
    to, by = phi(query.float()), phi(key.float())
    Z, z = (0.0, 0.0) if state is None else state
    Z, z = Z + by[..., :, None] * value.float()[..., None, :], z + by
    return ((to[..., None, :] @ Z)[..., 0, :] / ((to * z).sum(-1, keepdim=True) + eps)).to(value.dtype), (Z, z)


def averages(query, key, value, state=None):
    """Z holds averages."""
    output, (Z, z) = step(query, key, value, state if state is None else (state[0] * state[1][..., None], state[1]))
    return output, (Z / z[..., None], z)


def _features(x):
    return torch.where(x > 0, x + 1, x.exp())


class _Roll:
    """Steps, one after the other, where the answer lives: (B, H, T, ...) to (B, H, T, E), and the dtypes of the "
    "state."""

    def __call__(self, answer, queries, keys, values):
        state, outputs = None, []
        for t in range(queries.shape[2]):
            output, state = answer(queries[:, :, t], keys[:, :, t], values[:, :, t], state)
            outputs.append(output)
        return torch.stack(outputs, 2), [str(part.dtype) for part in state]


def _phi(x):
    x = x.cpu().double()
    return torch.maximum(x + 1, x.clamp(max=0).exp())


def _quadratic(queries, keys, values):
    """All pairs, in float64."""
    weights = torch.einsum("bhtd,bhsd->bhts", _phi(queries), _phi(keys)).tril()
    return weights / weights.sum(-1, keepdim=True) @ values.cpu().double()


def verify_step(t, answer):
    B, H, D, E = t.sizes(4, 2, 7)
    for case in ("the first token", "a later token"):
        query, key, value = t.randn(B, H, D), t.randn(B, H, D), t.randn(B, H, E)
        state = None
        if case == "a later token":
            z = t.rand(B, H, D, low=1.0, high=9.0)
            state = (z[..., None] * t.randn(B, H, D, E), z)
        Z, z = (0.0, 0.0) if state is None else (part.cpu().double() for part in state)
        Z = Z + torch.einsum("bhd,bhe->bhde", _phi(key), value.cpu().double())
        z = z + _phi(key)
        want = torch.einsum("bhd,bhde->bhe", _phi(query), Z) / torch.einsum("bhd,bhd->bh", _phi(query), z)[..., None]
        inputs = (query, key, value) if state is None else (query, key, value, state)
        output, state = t.unpack(t.call(answer, *inputs), "output", "state")
        state = t.unpack(state, "Z", "z")
        for name, got, expected in (("the output", output, want), ("z", state[1], z), ("Z", state[0], Z)):
            wide = isinstance(got, torch.Tensor) and got.dtype == torch.float64 and name != "the output"
            t.same(got, expected, f"{name} after {case}", dtype=torch.float64 if wide else torch.float32)
    for case, T, shift in (("step by step", 11, 0.0), ("step by step, where all features are tiny", 7, -22.0)):
        queries, keys, values = t.randn(B, H, T, D) + shift, t.randn(B, H, T, D) + shift, t.randn(B, H, T, E)
        want = _quadratic(queries, keys, values)
        t.same(t.call(_Roll(), answer, queries, keys, values)[0], want, f"the outputs {case}")
    T = t.random.randint(700, 800)
    queries, keys = (t.randn(1, 2, T, D).bfloat16() for _ in range(2))
    values = t.randn(1, 2, T, E) + torch.where(torch.arange(T) < T // 3, 1.0, 5.0).to(t.device)[:, None]
    values = values.bfloat16()
    want = _quadratic(queries, keys, values)
    got, dtypes = t.call(_Roll(), answer, queries, keys, values)
    state_in = f"after {T} steps in bfloat16 the state (Z, z) is in {' and '.join(dtypes)}"
    t.that(set(dtypes) <= {"torch.float32", "torch.float64"}, "half", f"{state_in}: {STOPPED}")
    t.same(got, want, f"the outputs of {T} steps in bfloat16", tolerance=(3e-2, 6e-2))


def memory(num_blks, num_heads, head_size, value_size, num_tokens):
    """How many numbers a decoder remembers for one text, with either kind of attention.

    Args:
        num_blks: L, layers. num_heads: H in each. head_size: D. value_size: E.
        num_tokens: T, read so far.

    Returns:
        dict of integers: ``state``, numbers in the states of linear attention with elu + 1; ``cache``, numbers in the
        caches of keys and values of softmax attention; ``length``, the smallest T for which the cache is larger than
        the state.
    """
    ### BEGIN SOLUTION
    L, H, D, E = num_blks, num_heads, head_size, value_size
    of_state = D * E + D  # Z, and z
    of_token = D + E  # a key and a value
    return {"state": L * H * of_state, "cache": L * H * num_tokens * of_token, "length": of_state // of_token + 1}
    ### END SOLUTION


def by_counting(num_blks, num_heads, head_size, value_size, num_tokens):
    heads = num_blks * num_heads
    state, length = heads * head_size * (value_size + 1), 1
    while heads * length * (head_size + value_size) <= state:
        length += 1
    return {"state": state, "cache": heads * num_tokens * (head_size + value_size), "length": length}


CONFIGURATIONS = (3, 2, 8, 5, 100), (1, 4, 4, 2, 3), (2, 5, 16, 16, 1), (5, 3, 6, 48, 40)


def verify_memory(t, answer):
    names = "state", "cache", "length"
    for L, H, D, E, T in CONFIGURATIONS:
        query, value = torch.zeros(1, H, 1, D), torch.zeros(1, H, 1, E)
        _, state = d2l.linear_attention_step(query, query, value)
        numel = sum(part.numel() for part in state)
        cached = [torch.zeros(1, H, n, D).numel() + torch.zeros(1, H, n, E).numel() for n in range(D * E + 2)]
        length = next(n for n, numbers in enumerate(cached) if numbers > numel)
        wants = L * numel, L * T * cached[1], length
        case = f"for L={L}, H={H}, D={D}, E={E}, T={T}"
        got = t.fields(t.call(answer, L, H, D, E, T), *names)
        for name, value, want in zip(names, got, wants, strict=True):
            t.number(value, want, f"{name} {case}")
            t.that(isinstance(value, int), "type", f"{name} {case} is a {type(value).__name__}: counts are integers")


EPS = (
    "the denominator is not that of the formula: a small number added to it, or a smallest value for it, outweighs "
    "features that are tiny themselves, or hides that they are 0: elu(x) + 1 rounds to 0 below about -17. As exp(x) "
    "they are not 0 here, so nothing is needed"
)
STOPPED = (
    "sums stop growing, in bfloat16 at 256 times what is added, in float16 at 2,048: keep the state, Z and z, in "
    "float32, and return the output in the dtype of the value"
)
BY = "by = torch.where(key > 0, key + 1, key.exp())"

MUTANTS_A = [
    Mutant("elu", (BY, "by = F.elu(key)"), "the keys' features are elu(x), which may be below zero: add 1"),
    Mutant("no-phi", (BY, "by = key"), "the keys have no feature map"),
    Mutant("no-phi-q", ("to = torch.where(query > 0, query + 1, query.exp())", "to = query"), "the queries have no "
        "feature map"),
    Mutant("relu", (BY, "by = F.relu(key) + 1"), "below zero the keys' features are 1: elu(x) + 1 is exp(x) there"),
    Mutant("exp", (BY, "by = key.exp()"), "the keys' features are exp(x) everywhere: above zero elu(x) + 1 is x + 1"),
    Mutant("softmax", partial(with_features, phi=lambda x: x.softmax(-1)), "features are put through a softmax: "
        "elu(x) + 1, each by itself"),
    Mutant("scaled", (BY,
        "by = torch.where(key > 0, key / key.shape[-1] ** 0.5 + 1, (key / key.shape[-1] ** 0.5).exp())"),
        "the keys are divided by a root of D: here nothing is"),
    Mutant("elu", partial(with_features, phi=F.elu), "features are elu(x), which may be below zero: add 1"),
    Mutant("no-phi", partial(with_features, phi=torch.clone), "there is no feature map: queries and keys go through "
        "phi, values do not"),
    Mutant("relu", partial(with_features, phi=lambda x: F.relu(x) + 1), "below zero the features are 1: elu(x) + 1 is "
        "exp(x) there"),
    Mutant("nonfinite", partial(with_features, phi=F.relu)),
    Mutant("exp", partial(with_features, phi=torch.exp), "features are exp(x) everywhere: above zero elu(x) + 1 is x "
        "+ 1"),
    Mutant("exp-and-1", partial(with_features, phi=lambda x: torch.where(x > 0, x + 1, x.exp() + 1)), "below zero 1 "
        "is added once more: elu(x) is exp(x) - 1 there, so that elu(x) + 1 is exp(x)"),
    Mutant("branches", partial(with_features, phi=lambda x: torch.where(x > 0, x, x.exp())), "above zero the 1 is "
        "missing: elu(x) + 1 is x + 1 there"),
    Mutant("softplus", partial(with_features, phi=F.softplus), "features are log(1 + exp(x)): elu(x) + 1 is x + 1 "
        "above zero, and exp(x) below"),
    Mutant("scaled", partial(with_features, phi=lambda x: F.elu(x / x.shape[-1] ** 0.5) + 1), "queries and keys are "
        "divided by a root of D: here nothing is"),
    Mutant("eps", partial(with_features, phi=_features, eps=1e-6), EPS),
    Mutant("eps", partial(with_features, phi=_features, eps=1e-12), EPS),
    Mutant("values-too", ("value[..., None, :]", "torch.where(value > 0, value + 1, value.exp())[..., None, "
        ":]"), "the values go through the feature map, too: queries and keys alone do"),
    Mutant("per-feature", ("top = (to[..., None, :] @ Z)[..., 0, :]\n    bottom = (to * z).sum(dim=-1, keepdim=True)",
        "top = (to[..., None, :] @ (Z / z[..., None]))[..., 0, :]\n    bottom = to.sum(dim=-1, keepdim=True)"), "each "
        "feature's row of Z is divided by its own z: divide once, at the end, by the query's features times z"),
    Mutant("apart", ("(to * z).sum(dim=-1, keepdim=True)", "to.sum(dim=-1, keepdim=True) * z.sum(dim=-1, "
        "keepdim=True)"),
        "the features of the query and z are summed apart: the denominator is their inner product"),
    Mutant("query-added", ("z = z + by", "z = z + to"), "the query's features are added: z is the sum of the keys' "
        "features"),
    Mutant("key-reads", ("top = (to[", "top = (by["), "the key's features read Z: the query's do"),
    Mutant("half", ("return (top / bottom).to(dtype), (Z, z)", "return (top / bottom).to(dtype), (Z.to(dtype), "
        "z.to(dtype))"),
        STOPPED),
    Mutant("half", ("return (top / bottom).to(dtype), (Z, z)", "return (top / bottom).to(dtype), tuple(x if dtype == "
        "torch.float32 else x.half() for x in (Z, z))"), STOPPED),
    Mutant("nonfinite", partial(with_features, phi=lambda x: F.elu(x) + 1)),
    Mutant("half", half, STOPPED),
    Mutant("half", normaliser_in_half, STOPPED),
    Mutant("not-itself", before_it_alone, "a later token does not attend to itself: add it to the sums, then read "
        "them"),
    Mutant("state-ignored", ("(0.0, 0.0) if state is None else state", "(0.0, 0.0)"), "the state is not used: the "
        "token sees itself alone"),
    Mutant("normaliser-anew", ("z = z + by", "z = by"), "it has this token's features alone: sum them up, as Z"),
    Mutant("sums-anew", ("Z = Z + by[", "Z = by["), "it has this token's product alone: add it to those before"),
    Mutant("unnormalised", ("(top / bottom)", "top"), "this is the numerator alone: divide by phi(q) times z"),
    Mutant("own-features", ("(to * z).sum(dim=-1, keepdim=True)", "z.sum(dim=-1, keepdim=True)"),
        "divided by the sum of z: z has to be weighted by the query's features"),
    Mutant("averages", averages, "the state is divided: keep the sum, and divide the output alone"),
    Mutant("heads", ("top = (to[..., None, :] @ Z)[..., 0, :]",
        "top = (to[..., None, :] @ Z.mean(dim=1, keepdim=True))[..., 0, :]"), "heads share a state: each has its own"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("no-normaliser", ("D * E + D ", "D * E "), "the normaliser z is a part of the state, too"),
    Mutant("E", ("D * E + D ", "D * E + E "), "z is the sum of features, which are D numbers, not E"),
    Mutant("square", ("D * E + D ", "D * D + D "), "Z is the sum of products of features and *values*: D times E"),
    Mutant("one-head", ('"state": L * H * of_state', '"state": L * of_state'), "each head has a state of its own"),
    Mutant("one-layer", ('"state": L * H * of_state', '"state": H * of_state'), "each layer has states of its own"),
    Mutant("per-token", ('"state": L * H * of_state', '"state": L * H * num_tokens * of_state'), "the state is counted "
        "for each token: it is added to, and does not grow"),
    Mutant("keys-alone", ('"cache": L * H * num_tokens * of_token', '"cache": L * H * num_tokens * D'),
        "the values have to be kept, too"),
    Mutant("pairs", ('"cache": L * H * num_tokens * of_token', '"cache": L * H * num_tokens**2'),
        "these are the weights, which nobody keeps: a cache has keys and values"),
    Mutant("equal", ("of_state // of_token + 1", "-(-of_state // of_token)"), "at this length the two are equal: the "
        "cache should be *larger*"),
    Mutant("below", ("of_state // of_token + 1", "of_state // of_token"), "at this length the cache is not yet larger"),
    Mutant("type", ("of_state // of_token + 1", "of_state / of_token // 1 + 1")),
    Mutant("normaliser-E", ("D * E + D ", "D * E + D * E "), "z is as large as Z here: it is a sum of features alone, "
        "D numbers"),
    Mutant("normaliser-1", ("D * E + D ", "D * E + 1 "), "the normaliser has one number: z has one for each feature"),
    Mutant("shared-cache", ('"cache": L * H * num_tokens * of_token', '"cache": H * num_tokens * of_token'), "each "
        "layer has keys and values of its own"),
    Mutant("head-cache", ('"cache": L * H * num_tokens * of_token', '"cache": L * num_tokens * of_token'), "each head "
        "has keys and values of its own"),
    Mutant("length-D", ('"length": of_state // of_token + 1', '"length": of_state // D + 1'), "the cache has a key "
        "*and* a value for each token: D + E numbers"),
    Mutant("length-all", ('"length": of_state // of_token + 1', '"length": L * H * of_state // of_token + 1'), "the "
        "state of all layers and heads is held against the cache of one: both have as many of them"),
    Mutant("work", ('"length": of_state // of_token + 1', '"length": D + 1'), "this is where the *multiplications* "
        "turn if D = E: asked for is memory"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-09.3",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-09.3a",
            prompt="Write `step(query, key, value, state=None)`. The check goes step by step through texts, and "
            "compares with all pairs. Two texts are hard: one whose queries and keys are far below zero, so that all "
            "features are tiny, and one of some 700 tokens in bfloat16.",
            hints=[
                "Add the new token to both sums first; it attends to itself.",
                "An outer product is `by[..., :, None] * value[..., None, :]`.",
                "What is `torch.nn.functional.elu(torch.tensor(-20.0)) + 1`? And exp(-20)?",
                "What is 256 + 1 in bfloat16? The state may be in another dtype than the tokens.",
            ],
            answer=step,
            verify=verify_step,
            alternatives=[by_the_package, in_one_sum],
            without={"double": "its steps are taken in float32 and in bfloat16, where the state is the point"},
            min_checks=15,
            seconds=30.0,
            advice={
                "nonfinite": "The weights are divided by a sum. It is zero if the first token does not attend to "
                "itself, or if all features are: max(x, 0) is 0 below zero, where exp(x) is not; and elu(x) is so "
                "close to -1 below about -17 that elu(x) + 1 rounds to 0, "
                "where exp(x) does not.",
                "dtype": "The state may be in float32 throughout; the output goes back to the dtype of the value.",
                "values": "Check phi first: x + 1 above zero, exp(x) below, for queries and keys, nothing divided by a "
                "root of D. Then the sums: of all tokens so far, this one too. Then one division by phi(q) times z, to "
                "which nothing is added, be it tiny.",
                "mutates": "The state belongs to the caller, who may go on from it in two ways: make new sums.",
            },
            mutants=MUTANTS_A,
            explanation=r"""
Two numerical lessons that softmax attention hides. A sum without end needs a wide type: in bfloat16, with eight bits of
precision, 256 + 1 is 256. And a function may be exact in mathematics and lost in floating point: elu(-20) + 1 is a
difference of two numbers that agree in all the digits that there are.
""",
        ),
        Count(
            key="own-09.3b",
            prompt="Write `memory(num_blks, num_heads, head_size, value_size, num_tokens)`. With D = E = 64 in each "
            "head, from which length on does linear attention keep fewer numbers? Guess first.",
            hints=[
                "A head's state is Z and z: how many numbers have they, if phi makes D features of D?",
                "A head's cache has a key and a value for each token.",
                "Both are per head and layer, so the length depends on D and E alone. At equality the cache is not yet "
                "larger.",
            ],
            answer=memory,
            verify=verify_memory,
            alternatives=[by_counting],
            min_checks=16,
            advice={
                "values": "Count for one head of one layer first: which tensors are kept, and of which shapes? "
                "`length` is a whole number, the first T at which the cache has more."
            },
            mutants=MUTANTS_B,
            explanation=r"""
With D = E = 64 it is 33 tokens: D (E + 1) / (D + E), about half of D where D = E. So the state is small; that is its
charm, and the price as well: what was said in a million tokens has to fit into the numbers of some 33 keys and values.
""",
        ),
    ],
)
