r"""A search engine with a slope

A search engine compares a query with every document and shows the best matches first. Exact search sorts; a
sort has no slope, so nothing can be learned through it. Attention can stand in: the weights of a query over
all documents say how strongly each is shown, sorting the weights gives back the ranking, and there is a
gradient.

Match by the cosine of the angle between query $\mathbf q$ and document $\mathbf d_i$, so that a document
does not win by being long, at a temperature $\tau$:

$$s_i = \frac{\mathbf q^\top \mathbf d_i}{\lVert\mathbf q\rVert\,\lVert\mathbf d_i\rVert}, \qquad
w_i = \frac{\exp(s_i/\tau)}{\sum_j \exp(s_j/\tau)} .$$

In three parts you build the engine, let a user correct it, and let it learn from examples what "similar"
means. The collection is real: the documents are pictures of clothes, made smaller, and a picture is
relevant for another if both show the same kind of garment.
"""

from functools import cache

import torch
from torch.nn import functional as F

from d2lmini.data.images import fashion_mnist
from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant

PER_CLASS, SHOWN = 20, 30  # relevant documents for a query, and how many the engine shows


def search(queries, documents, temperature):
    """Weigh every document for every query.

    Args:
        queries: (T, D).
        documents: (N, D). The cosine with a row of zeros, here or among the queries, counts as 0.
        temperature: positive number.

    Returns:
        (T, N); each row sums to one.
    """
    ### BEGIN SOLUTION
    queries, documents = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)
    cosines = queries @ documents.mT  # (T, N)
    return torch.softmax(cosines / temperature, dim=-1)
    ### END SOLUTION


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


def learn(start, documents, classes, queries, query_classes, shown):
    """Learn a matrix through the engine and measure what it brings.

    Args:
        start: (D, P), random matrix to start from.
        documents: (N, D). classes: (N,), integers: the kind of each document.
        queries: (T, D). query_classes: (T,); to measure with, not to learn from.
        shown: int, how many documents the engine shows for a query.

    Returns:
        dict: ``matrix`` (D, P), ``before`` and ``after``: the mean recall of the queries without and with it.
    """
    ### BEGIN SOLUTION

    def weigh(queries, documents, temperature=0.1):
        return F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).mT / temperature

    def recall(queries, documents):
        best = weigh(queries, documents).topk(shown, dim=-1).indices  # (T, shown)
        relevant = query_classes[:, None] == classes  # (T, N)
        return (relevant.gather(-1, best).sum(-1) / relevant.sum(-1)).mean().item()

    itself = torch.eye(len(documents), dtype=torch.bool, device=documents.device)
    relevant = (classes[:, None] == classes) & ~itself  # (N, N): every document is a query once
    matrix = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([matrix], lr=0.01)
    for _ in range(30):
        scores = weigh(documents @ matrix, documents @ matrix).masked_fill(itself, -torch.inf)
        log_weights = torch.log_softmax(scores, dim=-1)
        gain = torch.logsumexp(log_weights.masked_fill(~relevant, -torch.inf), dim=-1)
        optimizer.zero_grad()
        (-gain.mean()).backward()
        optimizer.step()
    matrix = matrix.detach()
    before, after = recall(queries, documents), recall(queries @ matrix, documents @ matrix)
    return {"matrix": matrix, "before": before, "after": after}
    ### END SOLUTION


# other right answers


def search_in_pairs(queries, documents, temperature):
    return torch.softmax(F.cosine_similarity(queries[:, None], documents[None], dim=-1) / temperature, dim=-1)


def refine_by_hand(query, documents, wanted, temperature, step):
    units, unit = F.normalize(documents, dim=-1), F.normalize(query, dim=-1)
    weights = torch.softmax(units @ unit / temperature, dim=-1)
    pull = (units[wanted] - weights @ units) / temperature
    return query + step * (pull - (pull @ unit) * unit) / query.norm()


def learn_with_means(start, documents, classes, queries, query_classes, shown):
    """Learn otherwise: plain gradient steps through a warmer engine whose documents are the class means."""
    means = torch.stack([documents[classes == c].mean(0) for c in classes.unique()])
    targets = (classes[:, None] == classes.unique()).float()
    matrix = start.clone().requires_grad_()
    for _ in range(100):
        weights = torch.log(search(documents @ matrix, means @ matrix, 0.2))
        (slope,) = torch.autograd.grad(-(targets * weights).sum(-1).mean(), matrix)
        matrix = (matrix - 0.3 * slope).detach().requires_grad_()
    matrix = matrix.detach()
    before, _ = retrieved(queries, documents, query_classes, classes, shown)
    after, _ = retrieved(queries @ matrix, documents @ matrix, query_classes, classes, shown)
    return {"matrix": matrix, "before": before, "after": after}


# wrong answers


def refine_by_weight(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad(weights[wanted], moved)[0]


def refine_by_log_of_weight(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad(weights[wanted].log(), moved)[0]


def learn_from_both(start, documents, classes, queries, query_classes, shown):
    every, kinds = torch.cat([documents, queries]), torch.cat([classes, query_classes])
    found = learn(start, every, kinds, queries, query_classes, shown)
    before, _ = retrieved(queries, documents, query_classes, classes, shown)
    after, _ = retrieved(queries @ found["matrix"], documents @ found["matrix"], query_classes, classes, shown)
    return found | {"before": before, "after": after}


def learn_finding_itself(start, documents, classes, queries, query_classes, shown):
    matrix = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([matrix], lr=0.01)
    for _ in range(30):
        weights = search(documents @ matrix, documents @ matrix, 0.1)
        optimizer.zero_grad()
        (-(weights * (classes[:, None] == classes)).sum(-1).log().mean()).backward()
        optimizer.step()
    matrix = matrix.detach()
    before, _ = retrieved(queries, documents, query_classes, classes, shown)
    after, _ = retrieved(queries @ matrix, documents @ matrix, query_classes, classes, shown)
    return {"matrix": matrix, "before": before, "after": after}


def refine_by_log_with_a_bound(query, documents, wanted, temperature, step):
    moved = query.detach().clone().requires_grad_()
    weights = torch.softmax(F.cosine_similarity(moved, documents, dim=-1) / temperature, dim=-1)
    return query + step * torch.autograd.grad((weights[wanted] + 1e-9).log(), moved)[0]


def refine_at_the_unit_query(query, documents, wanted, temperature, step):
    moved = F.normalize(query, dim=-1).requires_grad_()
    log_weights = torch.log_softmax(F.normalize(documents, dim=-1) @ moved / temperature, dim=-1)
    return query + step * torch.autograd.grad(log_weights[wanted], moved)[0]


# checks


@cache
def collection():
    """Return 200 pictures of each class, (N, D), at half their size, and the classes, (N,)."""
    images, labels = fashion_mnist("train", subset="shipped")
    return F.avg_pool2d(images.unsqueeze(1) / 255, 2).flatten(1), labels


def pictures(t, *counts):
    """Return for each count that many random pictures a class, (count * C, D), and their classes."""
    images, labels = collection()
    groups = [[] for _ in counts]
    for c in labels.unique().tolist():
        rows = (labels == c).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=t.generator)[: sum(counts)]]
        for group, part in zip(groups, rows.split(counts), strict=True):
            group.append(part)
    return [(images[torch.cat(g)].to(t.device), labels[torch.cat(g)].to(t.device)) for g in groups]


def counted(queries, documents, query_classes, classes, shown):
    """Return for each query the hits of exact search by cosine, and the relevant documents."""
    order = (F.normalize(queries.double(), dim=-1) @ F.normalize(documents.double(), dim=-1).mT).argsort(-1)
    relevant = query_classes[:, None] == classes
    return relevant.gather(-1, order.flip(-1)[:, :shown]).sum(-1).double(), relevant.sum(-1)


def retrieved(queries, documents, query_classes, classes, shown):
    """Return (recall, precision), means over the queries, of exact search by cosine."""
    hits, relevant = counted(queries, documents, query_classes, classes, shown)
    return (hits / relevant).mean().item(), hits.mean().item() / shown


def verify_search(t, answer):
    T, N, D = t.sizes(3, 3, 10)
    queries, documents = t.randn(T, D), t.randn(N, D) * t.rand(N, 1, low=0.3, high=2.0)
    queries.requires_grad_()
    q, d = queries.detach().cpu().double(), documents.cpu().double()
    unit_q, unit_d = q / q.square().sum(-1, keepdim=True).sqrt(), d / d.square().sum(-1, keepdim=True).sqrt()
    cosines = torch.einsum("td,nd->tn", unit_q, unit_d)
    for temperature in (0.5, 2.0):
        want = torch.softmax(cosines / temperature, -1)
        t.same(t.call(answer, queries, documents, temperature), want, f"the weight matrix at temperature {temperature}")

    coefficients = t.randn(T, N)
    exact = q.clone().requires_grad_()
    lengths = exact.square().sum(-1, keepdim=True).sqrt()
    weights = torch.softmax(exact @ unit_d.T / lengths / 2, -1)
    (slope,) = torch.autograd.grad((weights * coefficients.cpu().double()).sum(), exact)
    got = t.call(answer, queries, documents, 2.0)
    slopes = t.gradient(got, 0, weights=coefficients)
    t.same(slopes, slope, "the gradient in the queries", tolerance=(1e-3, 1e-4))

    blank, nothing = documents.clone(), queries.detach().clone()
    blank[0] *= 3e-3 / blank[0].norm()  # nearly empty, and yet it has a direction
    blank[1], nothing[2] = 0, 0
    cosines[:, 1], cosines[2] = 0, 0
    want = torch.softmax(cosines / 0.5, -1)
    name = "the weight matrix with a document and a query of zeros, and a document that is short"
    t.same(t.call(answer, nothing, blank, 0.5), want, name, tolerance=(2e-3, 2e-4))

    (shelf, kinds), (asked, asked_kinds) = pictures(t, PER_CLASS, 5)
    exact = F.normalize(asked.double(), dim=-1) @ F.normalize(shelf.double(), dim=-1).mT
    first, second = exact.topk(2, -1).values.T
    clear = first - second > 1e-4
    asked, asked_kinds, exact = asked[clear], asked_kinds[clear], exact[clear]
    best = F.one_hot(exact.argmax(-1), len(shelf)).double()
    got = t.call(answer, asked, shelf, 1e-5)
    t.same(got, best, "the very cold weight matrix for pictures", tolerance=(0.01, 0.01))
    got = t.call(answer, asked, shelf, 0.1)
    t.same(got, torch.softmax(exact / 0.1, -1), "the weight matrix for pictures")
    best = got.topk(SHOWN, -1).indices
    relevant = asked_kinds[:, None] == kinds
    recall = (relevant.gather(-1, best).sum(-1) / relevant.sum(-1)).double().mean().item()
    reference, _ = retrieved(asked, shelf, asked_kinds, kinds, SHOWN)
    t.number(recall, reference, f"recall among {SHOWN} of {len(shelf)} pictures", rtol=0.02)


def verify_refine(t, answer):
    N, D = t.sizes(2, 4, 10)
    for temperature, step in ((0.7, 0.3), (1.6, 0.9)):
        query, documents, wanted = t.randn(D), t.randn(N, D), t.random.randrange(1, N)
        d = documents.cpu().double()
        units = d / d.square().sum(-1, keepdim=True).sqrt()

        q = query.cpu().double().requires_grad_()
        scores = units @ q / q.square().sum().sqrt() / temperature
        (slope,) = torch.autograd.grad(scores[wanted] - torch.exp(scores).sum().log(), q)
        got = t.call(answer, query, documents, wanted, temperature, step)
        t.same(got, q.detach() + step * slope, "the refined query")

    # cold, and the wanted document at the very bottom: its weight is 0 in float32
    query = t.randn(6)
    documents = torch.cat([query + t.randn(4, 6, scale=0.2), -query + t.randn(1, 6, scale=0.2)])
    d, q = documents.cpu().double(), query.cpu().double().requires_grad_()
    units = d / d.square().sum(-1, keepdim=True).sqrt()
    log_weights = torch.log_softmax(units @ q / q.square().sum().sqrt() / 0.01, 0)
    want = q.detach() + 0.001 * torch.autograd.grad(log_weights[4], q)[0]
    t.same(
        t.call(answer, query, documents, 4, 0.01, 0.001),
        want,
        "the refined query where the wanted weight is 0",
        mistakes={
            "vanished": (
                q,
                "the query has not moved. A small number that is added to a weight of 0, or a bound under it, leaves "
                "no slope: log_softmax never computes the weight",
            )
        },
    )

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


def measured(t, answer, start, documents, classes, queries, kinds, shown):
    """Return the matrix that is learned, (D, P), if the recalls are what it gives."""
    got = t.call(answer, start, documents, classes, queries, kinds, shown)
    matrix, *recalls = t.fields(got, "matrix", "before", "after")
    t.that(
        isinstance(matrix, torch.Tensor),
        "type",
        f"matrix is a {type(matrix).__name__}, expected a tensor",
    )
    t.that(
        matrix.shape == start.shape,
        "shape",
        f"matrix has shape {tuple(matrix.shape)}, expected (D, P), that of start",
    )
    t.that(matrix.dtype == start.dtype, "dtype", f"matrix has dtype {matrix.dtype}, expected that of start")
    matrix = matrix.detach()
    t.that(bool(torch.isfinite(matrix).all()), "nonfinite", "the matrix has entries that are NaN or infinite")

    def search(map, queries=queries, kinds=kinds, shown=shown):
        return retrieved(map(queries), map(documents), kinds, classes, shown)

    def plain(x):
        return x

    def mapped(x):
        return x @ matrix

    for map, recall, name in zip((plain, mapped), recalls, ("before", "after"), strict=True):
        want, precision = search(map)
        hits, relevant = counted(map(queries), map(documents), kinds, classes, shown)
        mistakes = {
            "precision": (
                precision,
                f"this is precision, hits among the {shown} shown; recall divides by the relevant ones",
            ),
            "percent": (100 * want, "this is in percent; give the share, between 0 and 1"),
            "hits": (
                hits.mean().item(),
                "this is the number of hits; divide by the number of relevant documents",
            ),
            "missed": (1 - want, "this is the share that was missed"),
            "in-sample": (
                search(map, documents, classes)[0],
                "this is the recall of the documents among themselves; measure on the queries",
            ),
            "one-less": (search(map, shown=shown - 1)[0], f"only {shown - 1} of {shown} documents are shown"),
            "exchanged": (
                search(mapped if map is plain else plain)[0],
                f"this is the recall {'with' if map is plain else 'without'} the matrix: have the two changed places?",
            ),
            "pooled": (
                (hits.sum() / relevant.sum()).item(),
                "these are the hits of all queries over the relevant documents of all; recall is a share for each "
                "query, and then their mean",
            ),
            "bounded": (
                (hits / relevant.clamp(max=shown)).mean().item(),
                "the hits are divided by the number of documents shown where more are relevant; divide by all "
                "relevant ones",
            ),
        }
        if map is plain:
            message = "this is measured through the random matrix; before means without any matrix"
            mistakes["start"] = search(lambda x: x @ start)[0], message
        t.number(recall, want, name, rtol=0.002, mistakes=mistakes)
    return matrix


def verify_learn(t, answer):
    befores, afters = [], []
    for _ in range(3):
        (documents, classes), (queries, kinds), (fresh, fresh_kinds) = pictures(t, PER_CLASS, 15, 15)
        start = t.randn(documents.shape[1], 32, scale=documents.shape[1] ** -0.5)
        matrix = measured(t, answer, start, documents, classes, queries, kinds, SHOWN)
        fresh_before, _ = retrieved(fresh, documents, fresh_kinds, classes, SHOWN)
        fresh_after, _ = retrieved(fresh @ matrix, documents @ matrix, fresh_kinds, classes, SHOWN)
        befores.append(fresh_before)
        afters.append(fresh_after)
    t.below(
        befores,
        afters,
        0.04,
        "no-gain",
        "on queries that your code has not seen, the matrix finds hardly more than plain cosine does "
        "(recall must rise by 0.04). Does the mean log weight rise while you learn? Does each document "
        "find itself, so that there is nothing to learn? Leave it out of its own search",
    )
    shuffled = kinds[torch.randperm(len(kinds), generator=t.generator)]
    got = t.call(answer, start, documents, classes, queries, shuffled, SHOWN)
    matrix, *_ = t.fields(got, "matrix", "before", "after")
    t.that(isinstance(matrix, torch.Tensor) and matrix.shape == start.shape, "shape", "matrix has not the shape (D, P)")
    matrix = matrix.detach()
    misled, _ = retrieved(fresh @ matrix, documents @ matrix, fresh_kinds, classes, SHOWN)
    t.that(
        misled > fresh_after - 0.06,
        "learns-from-queries",
        "where the classes of the queries are shuffled, your code learns a worse matrix. The queries are there to "
        "measure with: learn from the documents alone",
    )

    # some kinds are rarer than others, and of some more is relevant than is shown
    rare = torch.tensor(t.random.sample(sorted(set(classes.tolist())), 5), device=t.device)
    kept = ~torch.isin(classes, rare) | (torch.arange(len(classes), device=t.device) % 2 == 0)
    measured(t, answer, start, documents[kept], classes[kept], queries, kinds, PER_CLASS - 8)


MUTANTS_A = [
    Mutant("dot", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)", "queries, documents"),
        "these scores are dot products: divide by both lengths"),
    Mutant("scaled", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "queries, documents / documents.shape[-1] ** 0.5"), "dot products over sqrt(D) are not cosines"),
    Mutant("long-documents", ("F.normalize(documents, dim=-1)", "documents"), "the documents are not divided by their "
        "length, so long ones win"),
    Mutant("long-queries", ("F.normalize(queries, dim=-1)", "queries"), "the queries are not divided by their length: "
        "a long query searches at another temperature"),
    Mutant("no-temperature", ("cosines / temperature", "cosines"), "the temperature is not used"),
    Mutant("times-temperature", ("cosines / temperature", "cosines * temperature"), "multiplied by the temperature: "
        "the colder, the sharper, so divide by it"),
    Mutant("after-softmax", ("torch.softmax(cosines / temperature, dim=-1)",
        "torch.softmax(cosines, dim=-1) / temperature"), "the temperature divides the weights; it must divide the "
        "scores, inside the softmax"),
    Mutant("scores", ("torch.softmax(cosines / temperature, dim=-1)", "cosines / temperature"), "these are the scores; "
        "weights come from a softmax over the documents"),
    Mutant("over-queries", ("temperature, dim=-1", "temperature, dim=0"), "the columns sum to one: normalise over the "
        "documents"),
    Mutant("euclid",
        ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)\n    cosines = queries @ documents.mT",
        "queries, documents\n    cosines = -torch.cdist(queries, documents)"), "the scores are distances; the score "
        "asked for is the cosine"),
    Mutant("distance", ("queries @ documents.mT", "-torch.linalg.vector_norm(queries[:, None] - documents, dim=-1)"),
        "this is the distance of the directions; the score is their cosine"),
    Mutant("normalised-over-the-collection", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "F.normalize(queries, dim=0), F.normalize(documents, dim=0)"), "each feature is divided by its length over the "
        "collection; divide each row by its own"),
    Mutant("squared-lengths", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "(x / x.square().sum(-1, True).clamp(min=1e-12) for x in (queries, documents))"), "the rows are divided by "
        "their squared lengths: take the root"),
    Mutant("manhattan", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "F.normalize(queries, p=1, dim=-1), F.normalize(documents, p=1, dim=-1)"), "the rows are divided by the sum of "
        "the sizes of their entries; a length is Euclidean"),
    Mutant("scaled-cosines", ("cosines / temperature", "cosines / temperature / documents.shape[-1] ** 0.5"),
        "besides the temperature there is a 1/sqrt(D); cosines need none"),
    Mutant("absolute", ("cosines / temperature", "cosines.abs() / temperature"), "a document in the opposite direction "
        "weighs as much as one in the same: the cosine has a sign"),
    Mutant("floor", ("F.normalize(documents, dim=-1)", "F.normalize(documents, dim=-1, eps=0.01)"),
        "a short document is not divided by its length: only a row of zeros is special"),
    Mutant("empty-left-out", ("cosines / temperature",
        "cosines.masked_fill((documents == 0).all(-1), -torch.inf) / temperature"), "the empty document weighs "
        "nothing; its cosine counts as 0, and exp(0) is 1"),
    Mutant("empty-query", ("torch.softmax(cosines / temperature, dim=-1)",
        "torch.softmax(cosines / temperature, dim=-1) * (queries != 0).any(-1, keepdim=True)"), "a query of zeros gets "
        "no weights; its cosines count as 0, so all documents weigh the same"),
    # bare division
    Mutant("nonfinite", ("F.normalize(documents, dim=-1)", "documents / documents.norm(dim=-1, keepdim=True)")),
    Mutant("dtype", ("temperature, dim=-1)", "temperature, dim=-1).argsort(-1, True)")),  # positions
]  # fmt: skip

MUTANTS_B = [
    Mutant("downhill", ("query + step", "query - step"), "the query moves away from the wanted document: go up the "
        "gradient"),
    Mutant("no-step", ("step * slope", "slope"), "the step is not used"),
    Mutant("slope-only", ("return query + ", "return "), "this is the change; return the query plus the change"),
    Mutant("unmoved", ("return query + step * slope", "return query"), "the query has not moved"),
    Mutant("no-log", refine_by_weight, "this is the gradient of the weight; ours is that of its logarithm, which does "
        "not fade where the weight is small"),
    Mutant("nonfinite", refine_by_log_of_weight),
    Mutant("vanished", refine_by_log_with_a_bound),
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
]  # fmt: skip

MUTANTS_C = [
    Mutant("no-gain", learn_finding_itself),
    Mutant("learns-from-queries", learn_from_both),
    Mutant("no-gain", ("range(30)", "range(0)")),  # no training
    Mutant("no-gain", ("(-gain.mean())", "gain.mean()")),  # downhill
    # measured on the documents
    Mutant("in-sample", ("before, after = recall(queries, documents), ",
        "before = recall(queries, documents)\n    queries, query_classes = documents, classes\n    after = ")),
    Mutant("precision", ("/ relevant.sum(-1)", "/ shown")),
    Mutant("pooled", ("(relevant.gather(-1, best).sum(-1) / relevant.sum(-1)).mean().item()",
        "(relevant.gather(-1, best).sum() / relevant.sum()).item()")),  # hits of all over relevant of all
    Mutant("bounded", ("/ relevant.sum(-1)", "/ relevant.sum(-1).clamp(max=shown)")),  # no more than shown
    Mutant("one-less", (".topk(shown,", ".topk(shown - 1,")),  # one shown less
    Mutant("exchanged", ('"before": before, "after": after', '"before": after, "after": before')),
    # through the start
    Mutant("start", ("recall(queries, documents), recall", "recall(queries @ start, documents @ start), recall")),
    Mutant("nonfinite", ("matrix = matrix.detach()", "matrix = matrix.detach() / 0")),  # diverged
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.1.3",
    doc=__doc__,
    source="D2L 11.1, exercise 3",
    parts=[
        Code(
            key="d2l-11.1.3a",
            prompt="**The engine.** Write `search(queries, documents, temperature)` that returns the "
            "weights (T, N). A document of zeros (an empty page) has cosine 0 with everything. "
            "Sorted, your weights must give the ranking of exact search; very cold, all weight is "
            "on the best match.",
            hints=[
                "Divide every query and every document by its own length. What is a dot product then?",
                "`F.normalize(x, dim=-1)` divides rows by their lengths and leaves a row of zeros alone.",
                "`torch.softmax(cosines / temperature, dim=-1)`: over the documents, the last axis of (T, N).",
            ],
            answer=search,
            verify=verify_search,
            alternatives=[search_in_pairs],
            advice={
                "nonfinite": "A document of zeros has length 0: 0 / 0 is NaN. Its cosine counts as 0. And an "
                "exponential of a cosine over a small temperature overflows: torch.softmax subtracts the largest first",
                "values": "A score is the dot product over both lengths (Euclidean ones) and over the temperature, and "
                "nothing else; the weights of a query are the softmax of its scores",
            },
            mutants=MUTANTS_A,
            explanation=r"""
A softmax keeps the order of its scores, so at *every* temperature the
sorted weights are exact search (until they are so cold that the small ones underflow and tie). The
temperature sets how many documents share in the gradient: cold, only the best and its rival; warm, all of
them.
""",
        ),
        Code(
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
                "nonfinite": "The weight of the wanted document can be 0 in float32, and log 0 is minus "
                "infinity: use log_softmax",
                "raised": "Does the query that you differentiate in require a gradient? The one you get does not",
            },
            mutants=MUTANTS_B,
            explanation=r"""
For unit vectors the slope of a score is the document itself, so the gradient of $\log w_a$ is
$\frac1\tau(\mathbf d_a - \sum_i w_i \mathbf d_i)$: towards the wanted document, away from the mean of what
is shown now. (Then the part along the query is taken out, because its length does not matter to a cosine,
and the rest divided by that length.) Search engines had this rule by hand in 1971, as Rocchio's relevance
feedback; here it falls out of a softmax.
""",
        ),
        Experiment(
            key="d2l-11.1.3c",
            prompt=r"""
**Learning what similar means.** Pixels side by side are a poor idea of similarity. Let the engine search
among $\mathbf x^\top \mathbf M$ in place of $\mathbf x$, queries and documents alike, and learn the
matrix $\mathbf M$ (D, P); the scores stay cosines. Every document serves as a query among the *others*;
raise the mean of

$$\log \sum_{i \text{ relevant}} w_i .$$

Write `learn(start, documents, classes, queries, query_classes, shown)`. Begin at the random matrix `start`, use
`documents` and `classes` alone to learn from, and measure on `queries` (the check also measures, on queries that it
keeps to itself; and it shuffles `query_classes` once, which your matrix must not notice): recall is the share of all
relevant documents that are among the `shown` best, averaged over the queries (not all kinds need be equally frequent).
Return a dict with `matrix`, `before` (recall by plain cosine, without a matrix) and `after` (with yours), the last two
as numbers. About 30 full-batch steps of Adam at a learning rate of 0.01 and a temperature of 0.1 are enough, in well
under a second; on new queries recall must rise by at least 0.04.
""",
            hints=[
                "Write a small function for the scores and use it three times: before, while learning, after.",
                "A document is its own best match. Set the diagonal of the (N, N) scores to minus infinity.",
                "The logarithm of a sum of weights, without underflow: `torch.logsumexp` of the log "
                "weights, with those of irrelevant documents set to minus infinity.",
                "Recall: `relevant.gather(-1, scores.topk(shown, dim=-1).indices).sum(-1) / relevant.sum(-1)`.",
            ],
            answer=learn,
            verify=verify_learn,
            alternatives=[learn_with_means],
            seconds=60.0,  # the first optimiser of a process loads much of torch
            mutants=MUTANTS_C,
            explanation=r"""
This is neighbourhood components analysis (Goldberger et al., 2004), and with large networks in place of
$\mathbf M$ this is close to how dense retrievers are trained today. The sort that a user sees has no
gradient; the softmax that stands for it while learning has.

Leaving each document out of its own search is what makes it learn. A document matches itself with cosine 1,
so at a low temperature it collects all the weight, the objective is satisfied and its gradient gone, while
nothing has been learned about others. (At a higher temperature enough weight is left for the rest, and even
the careless version learns.) The same trap returns in exercise 11.2.2.
""",
        ),
    ],
)
