"""Part c of udl-12.11, "Kernels in place of the softmax": `causal_linear_attention`."""

import torch

from d2lmini.exercises.ch09.udl_12_11a import _Features, _features
from d2lmini.exercises.ch09.udl_12_11b import EPS, _grows_linearly, _quadratic
from d2lmini.exercises.engine import Code, Mutant

BEFORE = "a token attends to those before it and not to itself: add it to the sums, then read them"


def causal_linear_attention(queries, keys, values, phi, state=None):
    """Causal attention with the kernel of phi, in linear time: token t attends to those before it and to itself.

    Args:
        queries, keys: (B, H, T, D), values: (B, H, T, E), of the T tokens that come now; T may be 1.
        phi: maps (..., D) to (..., R), positive numbers, be they tiny.
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

    output, _ = t.unpack(t.call(answer, queries, keys, values, _Features(phi.weight, 1e-6)), "output", "state")
    t.same(output, want, "the output where all features are tiny")

    def run(length):
        queries, keys, values = (t.randn(1, 2, length, d) for d in (4, 4, 5))
        t.call(answer, queries, keys, values, _features(t, 4, 3))

    _grows_linearly(t, run)


MUTANTS = [
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
    Mutant("eps", ("top / bottom", "top / (bottom + 1e-6)"), EPS),
    Mutant("by-number", ("top / bottom", "top / (t + 1)"), "divided by the number of tokens: divide by phi(q_t) times "
        "the sum of the keys' features so far"),
    Mutant("own-normaliser", ("normaliser = normaliser + key", "normaliser = key"), "the normaliser has this token's "
        "features alone: sum them up as you do the products"),
    Mutant("own-sums", ("sums = sums + key", "sums = key"), "the products are those of this token alone: add them to "
        "the sums so far"),
    Mutant("state-added", ("return torch.stack(outputs, dim=2), (sums, normaliser)\n",
        "return torch.stack(outputs, dim=2), (by.mT @ values, by.sum(dim=2))\n"), "it holds the tokens of this call "
        "alone: what came before is in the state that you were given"),
    Mutant("state-divided", ("(sums, normaliser)\n", "(sums / normaliser[..., None], normaliser)\n"), "the sums are "
        "divided by the normaliser: keep them as they are, and divide the output alone"),
    Mutant("feature-sums", ("(to[:, :, t] * normaliser).sum(dim=-1, keepdim=True)", "normaliser.sum(dim=-1, "
        "keepdim=True)"),
        "divided by the sum of all features so far: weight them by the query's"),
    Mutant("no-features", ("top = (to[:, :, t, None, :] @ sums)", "top = (by[:, :, t, None, :] @ sums)"), "the key's "
        "features read the sums: the query's do"),
    Mutant("state", ("(sums, normaliser)\n", "sums\n")),  # the sums alone
]  # fmt: skip


PART = Code(
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
        "quadratic": "Carry the two sums from token to token; not anew. No block may grow with the length.",
        "values": "Go through two tokens by hand, of one head. Output t reads the sums up to t; the state has those "
        "of all tokens so far, of this call and of earlier ones, and the next call adds to them.",
        "future": "Both sums, that of the products and that of the features, end at t.",
        "mutates": "The state belongs to the caller: make new sums, `sums = sums + ...`.",
    },
    mutants=MUTANTS,
    explanation=r"""
A transformer with such attention *is* a recurrent network (Katharopoulos et al. 2020, arXiv:2006.16236): its state has
$R\,(E + 1)$ numbers for each head, and writing the millionth token costs what the second did. A key/value cache has
$T\,(D + E)$ numbers and grows. In training, a loop over single tokens leaves a GPU with little to do at a time; one
takes chunks, with the square inside of each and the state between them. Or all prefix sums at once, which costs memory:
$T\,R\,E$.
""",
)
