"""Part b of d2l-11.1.3, "A search engine with a slope": `refine`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.ch01.d2l_11_1_3a import PER_CLASS, pictures, search
from d2lmini.exercises.engine import Code, Mutant


def refine(query, documents, wanted, temperature, step):
    """Move a query so that the engine shows a certain document more strongly.

    Args:
        query: (D,).
        documents: (N, D), none of them zero.
        wanted: int, the row of the document that the user asks for.
        temperature: positive number, perhaps small.
        step: positive number.

    Returns:
        (D,): the query plus ``step`` times the gradient of log w[wanted] in the query.
    """
    ### BEGIN SOLUTION
    moved = query.detach().clone().requires_grad_()
    cosines = F.cosine_similarity(moved, documents, dim=-1)  # (N,)
    log_weights = torch.log_softmax(cosines / temperature, dim=-1)  # finite where the weight itself is 0
    (slope,) = torch.autograd.grad(log_weights[wanted], moved)
    return query + step * slope
    ### END SOLUTION


def refine_by_hand(query, documents, wanted, temperature, step):
    units, unit = F.normalize(documents, dim=-1), F.normalize(query, dim=-1)
    weights = torch.softmax(units @ unit / temperature, dim=-1)
    pull = (units[wanted] - weights @ units) / temperature
    return query + step * (pull - (pull @ unit) * unit) / query.norm()


# wrong answers


def refine_by_weight(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad(weights[wanted], moved)[0]


def refine_by_log_of_weight(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad(weights[wanted].log(), moved)[0]


def refine_by_log_with_a_bound(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad((weights[wanted] + 1e-9).log(), moved)[0]


def refine_at_the_unit_query(query, documents, wanted, temperature, step):
    moved = F.normalize(query, dim=-1).requires_grad_()
    log_weights = torch.log_softmax(F.normalize(documents, dim=-1) @ moved / temperature, dim=-1)
    return query + step * torch.autograd.grad(log_weights[wanted], moved)[0]


def verify_refine(t, answer):
    N, D = t.sizes(2, 4, 10)
    for temperature, step in ((0.7, 6.0), (1.6, 14.0)):  # long steps: the query alone is not nearly right
        query, documents, wanted = t.randn(D), t.randn(N, D), t.random.randrange(1, N)
        d = documents.cpu().double()
        units = d / d.square().sum(-1, keepdim=True).sqrt()

        q = query.cpu().double().requires_grad_()
        scores = units @ q / q.square().sum().sqrt() / temperature
        (slope,) = torch.autograd.grad(scores[wanted] - torch.exp(scores).sum().log(), q)
        got = t.call(answer, query, documents, wanted, temperature, step)
        t.same(got, q.detach() + step * slope, "the refined query")

    # cold, and the wanted document at the very bottom: its weight is 0 in float32, and then in float64
    message = (
        "the query has not moved. A small number that is added to a weight of 0, or a bound under it, leaves no slope: "
        "log_softmax never computes the weight"
    )
    for temperature in (0.01, 0.001):
        query = t.randn(6)
        documents = torch.cat([query + t.randn(4, 6, scale=0.2), -query + t.randn(1, 6, scale=0.2)])
        d, q = documents.cpu().double(), query.cpu().double().requires_grad_()
        units = d / d.square().sum(-1, keepdim=True).sqrt()
        log_weights = torch.log_softmax(units @ q / q.square().sum().sqrt() / temperature, 0)
        want = q.detach() + temperature / 10 * torch.autograd.grad(log_weights[4], q)[0]
        got = t.call(answer, query, documents, 4, temperature, temperature / 10)
        name = f"the refined query where the wanted weight is 0, at temperature {temperature}"
        t.same(got, want, name, tolerance=(1e-3, 1e-3), mistakes={"vanished": (q, message)})

    # a user who insists gets it: from the middle of the ranking to the top
    ((shelf, _),) = pictures(t, PER_CLASS)
    query = shelf[0]
    wanted = int((F.normalize(shelf, dim=-1) @ query).argsort()[len(shelf) // 2])
    before = search(query[None], shelf, 0.05)[0, wanted]
    for _ in range(15):
        query = t.call(answer, query, shelf, wanted, 0.05, 0.5)
        fits = isinstance(query, torch.Tensor) and query.shape == shelf[0].shape
        t.that(fits, "type", "a later step does not return a tensor (D,)")
        query = query.detach()
    after = search(query[None], shelf, 0.05)[0]
    t.that(
        bool(after[wanted] > before),
        "no-rise",
        "after 15 steps the wanted picture weighs no more than before",
    )
    t.same(after.argmax(), torch.tensor(wanted), "the picture shown first after 15 steps")


MUTANTS = [
    Mutant("downhill", ("query + step", "query - step"), "the query moves away from the wanted document: go up the "
        "gradient"),
    Mutant("no-step", ("step * slope", "slope"), "the step is not used"),
    Mutant("slope-only", ("return query + ", "return "), "this is the change; return the query plus the change"),
    Mutant("unmoved", ("return query + step * slope", "return query"), "the query has not moved"),
    Mutant("no-log", refine_by_weight, "this is the gradient of the weight; ours is that of its logarithm, which does "
        "not fade where the weight is small"),
    Mutant("nonfinite", refine_by_log_of_weight),
    Mutant("vanished", refine_by_log_with_a_bound),
    Mutant("vanished", ("torch.log_softmax(cosines / temperature, dim=-1)",
        "(torch.softmax(cosines.double() / temperature, dim=-1) + 1e-300).log()")),
    Mutant("long-query", ("F.cosine_similarity(moved, documents, dim=-1)", "F.normalize(documents, dim=-1) @ moved"),
        "the scores are not divided by the length of the query, so they are no cosines"),
    Mutant("unit-query", ("query.detach().clone()", "F.normalize(query.detach(), dim=-1)"), "the gradient is taken at "
        "the query divided by its length; take it at the query itself"),
    Mutant("unit-query-alone", refine_at_the_unit_query, "this is the gradient in the query divided by its length; "
        "differentiate in the query itself, through the division"),
    Mutant("from-unit-query", ("query.detach().clone()", "(query := F.normalize(query, dim=-1)).clone()"),
        "the query is divided by its length before the step; begin at the query as it is"),
    Mutant("after-softmax", ("torch.log_softmax(cosines / temperature, dim=-1)",
        "torch.log_softmax(cosines, dim=-1) / temperature"), "the temperature divides the logarithm of the weights; it "
        "must divide the scores, inside the softmax"),
    Mutant("score-only", ("torch.log_softmax(cosines / temperature, dim=-1)", "cosines / temperature"),
        "this is the gradient of the wanted score alone: the softmax also pushes away from what is shown now"),
    Mutant("no-temperature", ("cosines / temperature", "cosines"), "the temperature is not used"),
    Mutant("times-temperature", ("cosines / temperature", "cosines * temperature"), "multiplied by the temperature: "
        "divide the scores by it"),
    Mutant("softmax-twice", ("torch.log_softmax(cosines / temperature, dim=-1)",
        "torch.log_softmax(torch.softmax(cosines / temperature, dim=-1), dim=-1)"), "a softmax is taken of the weights "
        "once more: log_softmax (or cross_entropy) wants the scores"),
    Mutant("dot", ("F.cosine_similarity(moved, documents, dim=-1)", "documents @ moved"), "these scores are dot "
        "products, not cosines"),
    Mutant("straight", ("return query + step * slope", "return query + step * (documents[wanted] - query)"),
        "the query moves straight at the document; move along the gradient of log w"),
    Mutant("renormalised", ("return query + step * slope", "return F.normalize(query + step * slope, dim=0)"),
        "the new query has been divided by its length: return it as it is"),
    Mutant("unit-slope", ("return query + step * slope", "return query + step * F.normalize(slope, dim=0)"),
        "the gradient has been divided by its length: step times the gradient as it is"),
    Mutant("first", ("log_weights[wanted]", "log_weights[0]"), "this moves towards document 0, not towards the wanted "
        "one"),
    Mutant("query-length", ("F.cosine_similarity(moved, documents, dim=-1)",
        "F.normalize(documents, dim=-1) @ (moved / query.norm())"), "the cosine divides by the length of the query, "
        "and that changes with the query too: this part of the derivative is missing"),
    Mutant("all-wanted", ("log_weights[wanted]", "log_weights.mean()"), "this raises the logarithms of all weights: "
        "only that of `wanted` is to grow"),
    Mutant("plain-cosine", ("log_weights[wanted]", "cosines[wanted]"), "this is the gradient of the wanted cosine "
        "alone, without the temperature and without the softmax"),
    Mutant("signs", ("query + step * slope", "query + step * slope.sign()"), "only the signs of the gradient are used: "
        "step times the gradient itself"),
    Mutant("blend", ("query + step * slope", "(1 - step) * query + step * slope"), "query and gradient are blended: "
        "the whole query, plus step times the gradient"),
    Mutant("half-temperature", ("torch.log_softmax(cosines / temperature, dim=-1)",
        "cosines / temperature - cosines.logsumexp(-1)"), "the temperature is missing in the logsumexp: all scores are "
        "divided by it"),
    Mutant("left-out", ("log_weights[wanted]", "cosines[wanted] / temperature - torch.logsumexp((cosines / "
        "temperature)[torch.arange(len(cosines)) != wanted], 0)"), "the wanted document is left out of the sum: a "
        "softmax sums over all documents"),
    Mutant("distances", ("F.cosine_similarity(moved, documents, dim=-1)", "-(documents - moved).norm(dim=-1)"), "the "
        "scores are distances; they are cosines"),
]  # fmt: skip


PART = Code(
    key="d2l-11.1.3b",
    prompt=r"""
**Feedback.** A user looks at the result and says: "more like document 17". Write `refine(query, documents,
wanted, temperature, step)` that makes one step of gradient ascent on the logarithm of the wanted document's
weight: it returns $\mathbf q + \text{step} \cdot \nabla_{\mathbf q} \log w_{\text{wanted}}$. The scores are
the cosines of part a, divided by the temperature. It must also work where the wanted document's weight is
zero in float32.
""",
    hints=[
        "Take a copy of the query that requires a gradient, compute the wanted weight's "
        "logarithm, and ask autograd for its derivative in the copy.",
        "The logarithm of a softmax has a function of its own, which never computes the weight itself.",
        "`torch.autograd.grad(torch.log_softmax(cosines / temperature, dim=-1)[wanted], copy)`",
    ],
    answer=refine,
    verify=verify_refine,
    alternatives=[refine_by_hand],
    seconds=30.0,  # the first optimiser of a process loads much of torch
    advice={
        "values": "The query plus step times d(log w[wanted])/d(query), where w is the softmax of cosines over the "
        "temperature, and the derivative is taken at the query as it came",
        "nonfinite": "The weight of the wanted document can be 0 in float32, and log 0 is minus "
        "infinity: use log_softmax",
        "raised": "If no gradient can be taken: does the query that you differentiate in require one? That which you "
        "get does not.",
    },
    mutants=MUTANTS,
    explanation=r"""
For unit vectors the slope of a score is the document itself, so the gradient of $\log w_a$ is
$\frac1\tau(\mathbf d_a - \sum_i w_i \mathbf d_i)$: towards the wanted document, away from the mean of what
is shown now. (Then the part along the query is taken out, because its length does not matter to a cosine,
and the rest divided by that length.) Search engines had this rule by hand in 1971, as Rocchio's relevance
feedback; here it falls out of a softmax.
""",
)
