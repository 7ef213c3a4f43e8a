"""Part c of d2l-11.1.3, "A search engine with a slope": `learn`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.ch01.d2l_11_1_3a import PER_CLASS, SHOWN, counted, pictures, retrieved, search
from d2lmini.exercises.engine import Experiment, Mutant


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


def learn_from_both(start, documents, classes, queries, query_classes, shown):
    every, kinds = torch.cat([documents, queries]), torch.cat([classes, query_classes])
    learned = learn(start, every, kinds, queries, query_classes, shown)
    before, _ = retrieved(queries, documents, query_classes, classes, shown)
    after, _ = retrieved(queries @ learned["matrix"], documents @ learned["matrix"], query_classes, classes, shown)
    return learned | {"before": before, "after": after}


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


def shown_of(classes, queries, documents):
    """Return how many documents of each class are shown for each query, (T, C)."""
    best = (F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).mT).topk(SHOWN, dim=-1).indices
    return F.one_hot(classes[best]).sum(-2)


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
    # for each query the class that is shown less and less while one learns: by these it is best to learn nothing
    lost = [shown_of(classes, queries @ map, documents @ map) for map in (start, matrix)]
    for misleading in (shuffled, (lost[0] - lost[1]).argmax(-1).to(kinds.dtype)):
        got = t.call(answer, start, documents, classes, queries, misleading, SHOWN)
        matrix, *_ = t.fields(got, "matrix", "before", "after")
        fits = isinstance(matrix, torch.Tensor) and matrix.shape == start.shape
        t.that(fits, "shape", "matrix has not the shape (D, P)")
        matrix = matrix.detach()
        misled, _ = retrieved(fresh @ matrix, documents @ matrix, fresh_kinds, classes, SHOWN)
        t.that(
            misled > fresh_after - 0.06,
            "learns-from-queries",
            "with other classes of the queries your code learns a worse matrix. The queries are there to measure with: "
            "learn from the documents alone, and let no recall of the queries choose among your steps",
        )

    # some kinds are rarer than others, and of some more is relevant than is shown
    rare = torch.tensor(t.random.sample(sorted(set(classes.tolist())), 5), device=t.device)
    kept = ~torch.isin(classes, rare) | (torch.arange(len(classes), device=t.device) % 2 == 0)
    start = torch.cat([start[:, 1:], 0 * start[:, :1]], dim=1)
    matrix = measured(t, answer, start, documents[kept], classes[kept], queries, kinds, PER_CLASS - 8)
    t.that(
        not matrix[:, -1].any(),
        "not-from-start",
        "the last column of this `start` is zero. A feature that is zero for all documents changes no cosine, so no "
        "gradient moves it away from zero; in your matrix it is not zero. Begin at `start` itself",
    )


MUTANTS = [
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
    # from a matrix of one's own
    Mutant("not-from-start", ("start.clone()", "(torch.randn_like(start) / len(start) ** 0.5)")),
    Mutant("nonfinite", ("matrix = matrix.detach()", "matrix = matrix.detach() / 0")),  # diverged
]  # fmt: skip


PART = Experiment(
    key="d2l-11.1.3c",
    prompt=r"""
**Learning what similar means.** Pixels side by side are a poor idea of similarity. Let the engine search
among $\mathbf x^\top \mathbf M$ in place of $\mathbf x$, queries and documents alike, and learn the
matrix $\mathbf M$ (D, P); the scores stay cosines. Every document serves as a query among the *others*;
raise the mean of

$$\log \sum_{i \text{ relevant}} w_i .$$

Write `learn(start, documents, classes, queries, query_classes, shown)`. Begin at the random matrix `start`, use
`documents` and `classes` alone to learn from, and measure on `queries` (the check also measures, on queries that it
keeps to itself; and twice it gives other `query_classes`, which must not change your matrix): recall is the share of
all relevant documents that are among the `shown` best, averaged over the queries (not all kinds need be equally
frequent). Return a dict with `matrix`, `before` (recall by plain cosine, without a matrix) and `after` (with yours),
the last two as numbers. The check looks at recall and not at how you learn: another objective or optimiser will do, if
it begins at `start` and its gradient goes through the cosines. About 30 full-batch steps of Adam at a learning rate of
0.01 and a temperature of 0.1 are enough, in well under a second; on new queries recall must rise by at least 0.04.
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
    advice={
        "values": "Both are mean recalls of `queries` among `documents`: the hits among the `shown` documents of the "
        "largest cosines, over all relevant ones. For `after` both sides go through your matrix",
    },
    seconds=60.0,  # the first optimiser of a process loads much of torch
    mutants=MUTANTS,
    explanation=r"""
But for the cosines this is neighbourhood components analysis (Goldberger et al., 2004); with large networks in place of
$\mathbf M$ it is close to how dense retrievers are trained today. The sort that a user sees has no gradient; the
softmax that stands for it while learning has.

Leaving each document out of its own search is what makes it learn. A document matches itself with cosine 1,
so at a low temperature it collects all the weight, the objective is satisfied and its gradient gone, while
nothing has been learned about others. (At a higher temperature enough weight is left for the rest, and even
the careless version learns.) The same trap returns in exercise 11.2.2.
""",
)
