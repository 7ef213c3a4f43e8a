"""Part a of d2l-11.1.3, "A search engine with a slope": `search`."""

from functools import cache

import torch
from torch.nn import functional as F

from d2lmini.data.images import fashion_mnist
from d2lmini.exercises.engine import Code, Mutant

PER_CLASS, SHOWN = 20, 30  # relevant documents for a query, and how many the engine shows


def search(queries, documents, temperature):
    """Weigh every document for every query.

    Args:
        queries: (T, D).
        documents: (N, D). The cosine with a row of zeros, here or among the queries, counts as 0; all other rows are
            longer than 1e-5.
        temperature: positive number.

    Returns:
        (T, N); each row sums to one.
    """
    ### BEGIN SOLUTION
    queries, documents = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)
    cosines = queries @ documents.mT  # (T, N)
    return torch.softmax(cosines / temperature, dim=-1)
    ### END SOLUTION


# other right answers


def search_in_pairs(queries, documents, temperature):
    return torch.softmax(F.cosine_similarity(queries[:, None], documents[None], dim=-1) / temperature, dim=-1)


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
    for temperature, asked, name in ((0.5, T, ""), (2.0, 1, " for a single query")):
        want = torch.softmax(cosines[:asked] / temperature, -1)
        got = t.call(answer, queries[:asked], documents, temperature)
        t.same(got, want, f"the weight matrix at temperature {temperature}{name}")

    coefficients = t.randn(T, N)
    exact = q.clone().requires_grad_()
    lengths = exact.square().sum(-1, keepdim=True).sqrt()
    weights = torch.softmax(exact @ unit_d.T / lengths / 2, -1)
    (slope,) = torch.autograd.grad((weights * coefficients.cpu().double()).sum(), exact)
    got = t.call(answer, queries, documents, 2.0)
    slopes = t.gradient(got, 0, weights=coefficients)
    t.same(slopes, slope, "the gradient in the queries", tolerance=(1e-3, 1e-4))

    blank, nothing = documents.clone(), queries.detach().clone()
    blank[0] *= 2e-5 / blank[0].norm()  # nearly empty, and yet it has a direction
    nothing[0] *= 2e-5 / nothing[0].norm()
    blank[1], nothing[2] = 0, 0
    cosines[:, 1], cosines[2] = 0, 0
    want = torch.softmax(cosines / 0.5, -1)
    name = "the weight matrix with a document and a query of zeros, and one of each that is short"
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


MUTANTS = [
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
    Mutant("added", ("queries, documents = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)\n    cosines = "
        "queries @ documents.mT", "lengths = queries.norm(dim=-1)[:, None] * documents.norm(dim=-1)\n    cosines = "
        "queries @ documents.mT / (lengths + 1e-10)"), "something is added to the product of the lengths, which is "
        "small itself where both rows are short: divide each row by its own length, only a row of zeros is special"),
    Mutant("empty-left-out", ("cosines / temperature",
        "cosines.masked_fill((documents == 0).all(-1), -torch.inf) / temperature"), "the empty document weighs "
        "nothing; its cosine counts as 0, and exp(0) is 1"),
    Mutant("empty-query", ("torch.softmax(cosines / temperature, dim=-1)",
        "torch.softmax(cosines / temperature, dim=-1) * (queries != 0).any(-1, keepdim=True)"), "a query of zeros gets "
        "no weights; its cosines count as 0, so all documents weigh the same"),
    # bare division
    Mutant("nonfinite", ("F.normalize(documents, dim=-1)", "documents / documents.norm(dim=-1, keepdim=True)")),
    Mutant("shape", ("queries @ documents.mT", "(queries @ documents.mT).squeeze()")),  # one query squeezed
    Mutant("dtype", ("temperature, dim=-1)", "temperature, dim=-1).argsort(-1, True)")),  # positions
    Mutant("distance-of-cosines", ("cosines / temperature", "(1 - cosines) / temperature"), "one minus the cosine is a "
        "distance: what is alike gets the small weights"),
    Mutant("correlation", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "(F.normalize(x - x.mean(-1, True), dim=-1) for x in (queries, documents))"), "the mean of each row is taken "
        "off first: that is a correlation, not a cosine"),
    Mutant("one-length", ("F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)",
        "queries / queries.norm(), documents / documents.norm()"), "all rows are divided by one number, the length of "
        "the whole matrix: give the norm a dim"),
    Mutant("sigmoid", ("torch.softmax(cosines / temperature, dim=-1)", "torch.sigmoid(cosines / temperature)"), "each "
        "document gets a sigmoid of its own: weights that sum to one come from a softmax over all"),
    Mutant("no-exponential", ("torch.softmax(cosines / temperature, dim=-1)",
        "cosines / cosines.sum(dim=-1, keepdim=True)"), "the cosines are divided by their sum: where are the "
        "exponential and the temperature?"),
]  # fmt: skip


PART = Code(
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
        "nothing else; the weights of a query are the softmax of its scores. A row of zeros has cosine 0 with every "
        "other, and the shortest row has a direction: add nothing to its length, and set no high bound under it",
    },
    mutants=MUTANTS,
    explanation=r"""
A softmax keeps the order of its scores, so at *every* temperature the
sorted weights are exact search (until they are so cold that the small ones underflow and tie). The
temperature sets how many documents share in the gradient: cold, only the best and its rival; warm, all of
them.
""",
)
