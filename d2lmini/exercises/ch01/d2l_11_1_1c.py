"""Part c of d2l-11.1.1, "A database's approximate match": `soft_within`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.ch01.d2l_11_1_1a import AWAY, away, chosen, places
from d2lmini.exercises.engine import Code, Mutant


def soft_within(queries, keys, radius, temperature):
    """Let keys in by degrees.

    Args:
        queries: (B, T, D).
        keys: (B, S, D).
        radius: number, or a tensor of shape (B, T, 1) with a radius for each query.
        temperature: positive number, perhaps tiny.

    Returns:
        (B, T, S); each row sums to one.
    """
    ### BEGIN SOLUTION
    room = radius - (queries[:, :, None] - keys[:, None]).norm(2, -1)  # (B, T, S): positive inside, negative outside
    scores = F.logsigmoid(room / temperature)  # the logarithm: exact where the sigmoid itself is 0
    return torch.softmax(scores, dim=-1)
    ### END SOLUTION


def soft_by_exponentials(queries, keys, radius, temperature):
    x = (radius - torch.cdist(queries, keys)) / temperature
    logs = torch.minimum(x, x * 0) - torch.log1p(torch.exp(-x.abs()))
    return torch.exp(logs - logs.logsumexp(-1, keepdim=True))


def soft_by_division(queries, keys, radius, temperature, least=0):
    degrees = torch.sigmoid((radius - torch.cdist(queries, keys)) / temperature)
    return degrees / (degrees.sum(-1, keepdim=True) + least)


def soft_by_safe_division(queries, keys, radius, temperature):
    return soft_by_division(queries, keys, radius, temperature, least=1e-9)


def soft_or_nearest(queries, keys, radius, temperature):
    distances = torch.cdist(queries, keys)
    degrees = torch.sigmoid((radius - distances) / temperature)
    nearest_alone = F.one_hot(distances.argmin(-1), distances.shape[-1]).to(keys.dtype)
    degrees = torch.where(degrees.sum(-1, keepdim=True) > 0, degrees, nearest_alone)
    return degrees / degrees.sum(-1, keepdim=True)


def soft_with_bare_root(queries, keys, radius, temperature):
    distances = (queries.unsqueeze(-2) - keys.unsqueeze(-3)).square().sum(-1).sqrt()
    return F.logsigmoid((radius - distances) / temperature).softmax(-1)


def verify_soft(t, answer):
    queries, keys = places(t)
    queries.requires_grad_()
    d = away(queries, keys)
    T, S = d.shape[1:]
    of_its_own = d.sort(-1).values[:, :S, 1:2] + 0.1  # a radius for each of as many queries as there are keys
    for radius, temperature, dtype, asked in (
        (1.3, 0.7, torch.float32, T),
        (of_its_own, 0.4, torch.float32, S),
        (0.8, 3.0, torch.float64, T),
    ):
        shown = radius.float().to(t.device) if isinstance(radius, torch.Tensor) else radius
        degrees = torch.sigmoid((radius - d[:, :asked]) / temperature)
        want = degrees / degrees.sum(-1, keepdim=True)
        got = t.call(answer, queries[:, :asked].to(dtype), keys.to(dtype), shown, temperature)
        name = f"the weight matrix at temperature {temperature}, in {str(dtype)[6:]}"
        t.same(got, want, name, tolerance=(1e-4, 1e-5))

    coefficients = t.randn(*d.shape)
    q = queries.detach().cpu().double().requires_grad_()
    pairs = (q[:, :, None, :] - keys.cpu().double()[:, None, :, :]).square().sum(-1).sqrt()
    exact = torch.softmax(F.logsigmoid((1.3 - pairs) / 0.7), -1)
    (slope,) = torch.autograd.grad((exact * coefficients.cpu().double()).sum(), q)
    got = t.call(answer, queries, keys, 1.3, 0.7)
    slopes = t.gradient(got, 0, weights=coefficients)
    t.same(slopes, slope, "the gradient in the queries", tolerance=(1e-3, 1e-4))

    # cold, with room between the k-th distance and the next: the hard search of the k nearest
    ordered = d.sort(-1).values
    k = 1 + int(ordered.diff()[:, :, :-1].amin((0, 1)).argmax())
    gap = float(ordered.diff()[:, :, k - 1].min())
    radius = ordered[:, :, k - 1 : k + 1].mean(-1, keepdim=True).float().to(t.device)
    cold = t.call(answer, queries, keys, radius, gap / 40)
    name = f"the cold weight matrix with a radius that holds {k} keys"
    t.same(cold, chosen(-d, k), name, tolerance=(1e-3, 1e-3))

    # far from all keys every degree underflows; the limit is the nearest key
    gap = 0
    while gap < 1e-3:
        lost = 9 * t.randn(*queries.shape).sign() + queries.detach()
        gap = float(away(lost, keys).sort(-1).values.diff()[:, :, 0].min())
    nearby = chosen(-away(lost, keys), 1)
    cold = t.call(answer, lost, keys, 0.5, min(gap / 20, 1e-2))
    t.same(cold, nearby, "the cold weight matrix of queries far from all keys", tolerance=(1e-3, 1e-3))

    # farther still and not so cold: every degree underflows, but several keys share the weight
    lost = 200 * F.normalize(t.randn(*queries.shape), dim=-1)
    want = torch.softmax(F.logsigmoid((0.5 - away(lost, keys)) / 0.25), -1)
    name = "the weight matrix of queries far from all keys, at temperature 0.25"
    t.same(t.call(answer, lost, keys, 0.5, 0.25), want, name, tolerance=(1e-2, 1e-3))

    # a query on a key, and another key so near that little may be added to the square of its distance
    twins, same_key = torch.cat([keys[:1], keys[:1] + 5e-4], dim=1), keys[:1, :2]
    want = torch.softmax(F.logsigmoid(-away(same_key, twins) / 5e-4), -1)
    got = t.call(answer, same_key, twins, 0.0, 5e-4)
    t.same(got, want, "the weight matrix of a query on a key, with another close by", tolerance=(1e-2, 1e-3))

    # all distances a millionth, and the radius and the temperature as well: the same weights
    tiny = [1e-6 * x.detach() for x in (queries, keys)]
    want = torch.softmax(F.logsigmoid((1.3e-6 - away(*tiny)) / 0.7e-6), -1)
    name = "the weight matrix with distances, radius and temperature all a million times smaller"
    t.same(t.call(answer, *tiny, 1.3e-6, 0.7e-6), want, name, tolerance=(1e-3, 1e-4))

    on_key = keys[:, :2].clone().requires_grad_()
    others = torch.ones(len(keys), 2, keys.shape[1], device=t.device)
    others[:, :, 0] = 0
    slope = t.gradient(t.call(answer, on_key, keys, 1.0, 0.5), 0, weights=others)
    t.that(
        bool(torch.isfinite(slope).all()),
        "cusp",
        "the gradient is not finite for a query that sits on a key: the derivative of a square root at "
        "zero is infinite",
    )


MUTANTS = [
    Mutant("no-temperature", ("room / temperature", "room"), "the temperature is not used"),
    Mutant("times-temperature", ("room / temperature", "room * temperature"), "multiplied by the temperature: a "
        "falling temperature must sharpen, so divide by it"),
    Mutant("outside", ("room / temperature", "-room / temperature"), "far keys get the large weights: check the sign"),
    Mutant("radius-cancels", ("F.logsigmoid(room / temperature)", "room / temperature"), "this is the softmax of "
        "(radius - distance) / temperature, in which the radius cancels: it is the same for every key"),
    Mutant("softmax-of-degrees", ("F.logsigmoid(", "torch.sigmoid("), "a softmax exponentiates: give it the logarithm "
        "of the degrees, or divide the degrees by their sum"),
    Mutant("squared", (AWAY, "torch.cdist(queries, keys).square()"), "the distance is squared"),
    Mutant("hard", ("torch.softmax(scores, dim=-1)", "F.normalize((room >= 0).to(keys.dtype), p=1, dim=-1)"),
        "a key is in or out, whatever the temperature: where is the sigmoid?"),
    Mutant("over-queries", ("softmax(scores, dim=-1)", "softmax(scores, dim=-2)"), "the columns sum to one; normalise "
        "along the keys"),
    Mutant("not-normalised", ("torch.softmax(scores, dim=-1)", "scores.exp()"), "these are the degrees themselves: "
        "divide each row by its sum"),
    Mutant("logs-divided", ("torch.softmax(scores, dim=-1)", "scores / scores.sum(dim=-1, keepdim=True)"),
        "the logarithms of the degrees are divided by their sum; it is the degrees that must sum to one"),
    Mutant("distance-alone", (f"room = radius - {AWAY}",
        "room = radius * temperature - torch.cdist(queries, keys)"), "the distance alone is divided by the "
        "temperature: the radius must be, too"),
    Mutant("temperature-outside", ("F.logsigmoid(room / temperature)", "F.logsigmoid(room) / temperature"),
        "the logarithm of the degree is divided by the temperature; the temperature belongs into the sigmoid"),
    Mutant("temperature-twice", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores / temperature, dim=-1)"),
        "the softmax is divided by the temperature once more; it belongs into the sigmoid alone"),
    Mutant("bent", ("F.logsigmoid(room / temperature)", "-F.relu(-room / temperature)"), "all keys inside the radius "
        "have degree 1, as with a ReLU; the degree is a sigmoid"),
    Mutant("by-largest", ("torch.softmax(scores, dim=-1)", "(scores - scores.amax(dim=-1, keepdim=True)).exp()"),
        "the degrees are divided by the largest of a row; divide by their sum"),
    Mutant("one-radius", ("room = radius -", "room = torch.as_tensor(radius).flatten()[0] -"), "all queries use the "
        "radius of the first one; the radius may be a tensor with one for each"),
    Mutant("turned-radius", ("room = radius -",
        "room = (radius.mT if isinstance(radius, torch.Tensor) and radius.shape[1] == keys.shape[1] else radius) -"),
        "each key gets a radius here; a tensor has one for each query, (B, T, 1)"),
    Mutant("one-radius", ("room = radius -", "room = torch.as_tensor(radius).mean() -"), "all queries use the mean "
        "radius; the radius may be a tensor with one for each"),
    Mutant("nonfinite", soft_by_division),
    Mutant("fallback", soft_or_nearest, "where all degrees are too small for float32, the nearest key gets everything. "
        "Their ratios are well defined, and at this temperature several keys share: work with the logarithms"),
    Mutant("vanishes", soft_by_safe_division, "all zero. Every degree is too small for float32, but their ratios are "
        "not: work with the logarithms of the degrees"),
    Mutant("even", ("F.logsigmoid(room / temperature)", "torch.log(torch.sigmoid(room / temperature) + 1e-9)"),
        "all keys weigh the same. Is there a small number inside a logarithm, or a bound on what goes into the "
        "sigmoid? It drowns degrees that are smaller still"),
    Mutant("cusp", soft_with_bare_root),
    Mutant("under-the-root", (AWAY,
        "((queries[:, :, None] - keys[:, None]).square().sum(-1) + 1e-6).sqrt()"), "close keys look farther than they "
        "are: is something added under the root, or a bound set under distances? torch.cdist needs no such help"),
    Mutant("dtype", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores.float(), dim=-1)")),  # always float32
    Mutant("no-radius", ("room = radius -", "room = -"), "the radius is not used"),
    Mutant("over-batch", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=0)"), "normalised along the "
        "batch; normalise along the keys, the last axis"),
    Mutant("room-squared", ("room / temperature", "room.square() / temperature"), "(radius - distance) is squared, so "
        "that keys outside count like keys inside"),
]  # fmt: skip


PART = Code(
    key="d2l-11.1.1c",
    prompt=r"""
**The same with a slope.** A network cannot learn through a step. Write `soft_within(queries, keys, radius,
temperature)`, in which a key is let in to the *degree*

$$g_i = \sigma\!\left(\frac{r - \lVert \mathbf q - \mathbf k_i\rVert}{\tau}\right), \qquad
\alpha_i = \frac{g_i}{\sum_j g_j},$$

with $\sigma$ the sigmoid. As $\tau$ falls, it tends to `within` where a key is inside and none at the radius itself;
and with a radius for each query that holds just k keys, to `nearest`. A query far from all keys is the hard case: all
its degrees are too small for float32, but the weights above are still well defined (as $\tau$ falls they tend to the
nearest key), and yours must be right there too, at any temperature. A gradient must reach the queries, and it must be
finite even for a query that sits exactly on a key.
""",
    hints=[
        "First write it as it stands. Then ask what float32 makes of a sigmoid of -200.",
        r"$g_i / \sum_j g_j$ is a softmax of $\log g_i$.",
        "`F.logsigmoid` computes the logarithm of a sigmoid without computing the sigmoid; "
        "`(queries[:, :, None] - keys[:, None]).norm(dim=-1)` has a finite gradient at distance zero.",
    ],
    answer=soft_within,
    verify=verify_soft,
    alternatives=[soft_by_exponentials],
    advice={
        "values": "The degree is sigmoid((radius - distance) / temperature), with the Euclidean distance; the weights "
        "are the degrees over their sum along the keys, at any temperature and distance: nothing added "
        "under a root, and no bounds",
        "nonfinite": "A sigmoid of -200 is zero in float32, and zero divided by a sum of zeros "
        "is NaN: what is the softmax of log g?",
        "grad": "A comparison has no gradient, and .detach() or .item() cut it off",
        "cusp": "`norm` and torch.linalg.vector_norm take zero there",
    },
    mutants=MUTANTS,
    explanation=r"""
For a key inside, $g_i \to 1$; for one outside, $g_i \to 0$; so with $m$ inside the weights go to $1/m$ and 0, which is
`within`. Without a match $g_i \approx e^{(r - d_i)/\tau}$: now the radius cancels and a plain softmax of $-d_i/\tau$ is
left, which goes to the nearest key. So the soft version never says "nothing here". If you want it to, add one key more
that always has degree $\epsilon$ and value zero.

The way to `nearest`: let each query have its own radius, halfway between its k-th distance and the next.
""",
)
