r"""Generative or contrastive?

A *generative* task asks a model to bring forth a part of the data: to give probabilities to all that could stand there.
A *contrastive* one shows it several finished things and asks which of them belong together: nothing is brought forth,
one only has to tell one from the other. BERT is pretrained with two tasks at once: it guesses tokens that were hidden,
and it says whether the second of two pieces of text followed the first one where they were found.
"""

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Discussion, Exercise, Mutant, Option


def contrastive_loss(queries, keys, groups, temperature):
    """Which of the keys of the batch belongs to me?

    Args:
        queries: (B, D), features of B pieces of text, of any length from 0.001.
        keys: (B, D), of B others; key n belongs to query n.
        groups: integers (B,): the document that pair n comes from. Keys of one's own document other than one's own key
            are left out, neither right nor wrong.
        temperature: a number above 0.

    Returns:
        The loss, a scalar, in nats.
    """
    ### BEGIN SOLUTION
    queries, keys = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)
    scores = queries @ keys.T / temperature  # (B, B): row n has the scores of query n for all keys
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    related = groups[:, None] == groups[None, :]
    scores = scores.masked_fill(related & ~own, -torch.inf)
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
    ### END SOLUTION


def by_logsumexp(queries, keys, groups, temperature):
    cosines = torch.cosine_similarity(queries[:, None], keys[None], dim=-1)
    losses = []
    for n, row in enumerate(cosines / temperature):
        counts = groups != groups[n]
        counts[n] = True
        losses.append(torch.logsumexp(row[counts], 0) - row[n])
    return torch.stack(losses).mean()


def with_the_margin(queries, keys, groups, temperature):
    """What the others have more than one's own key, through softplus."""
    length = queries.norm(dim=1)[:, None] * keys.norm(dim=1)
    scores = queries @ keys.mT / length / temperature
    ahead = (scores - scores.diag()[:, None]).masked_fill(groups[:, None] == groups, -torch.inf)
    return F.softplus(ahead.logsumexp(1)).mean()


# mistakes


def groups_left_out(queries, keys, groups, temperature):
    return d2l.info_nce(queries, keys, temperature)


def both_ways(queries, keys, groups, temperature):
    there = contrastive_loss(queries, keys, groups, temperature)
    return (there + contrastive_loss(keys, queries, groups, temperature)) / 2


def own_key_not_below(queries, keys, groups, temperature):
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    others = scores.masked_fill(groups[:, None] == groups, -torch.inf)
    return (others.logsumexp(1) - scores.diag()).mean()


def probability_only(queries, keys, groups, temperature):
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    related = (groups[:, None] == groups) & ~own
    return -scores.masked_fill(related, -torch.inf).softmax(1).diag().mean()


def pulled_together_only(queries, keys, groups, temperature):
    return -(torch.cosine_similarity(queries, keys) / temperature).mean()


def each_pair_by_itself(queries, keys, groups, temperature):
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    counted = own | (groups[:, None] != groups)
    return F.binary_cross_entropy_with_logits(scores[counted], own[counted].to(scores))


def naive(queries, keys, groups, temperature):
    scores = torch.exp(F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature)
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    scores = scores.masked_fill((groups[:, None] == groups) & ~own, 0.0)
    return -torch.log(scores.diag() / scores.sum(1)).mean()


def group_is_right(queries, keys, groups, temperature):
    """All keys of the document count as right."""
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    related = groups[:, None] == groups
    return (scores.logsumexp(1) - scores.masked_fill(~related, -torch.inf).logsumexp(1)).mean()


def group_in_the_targets(queries, keys, groups, temperature):
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    related = (groups[:, None] == groups).to(scores)
    return F.cross_entropy(scores, related / related.sum(1, keepdim=True))


def softmax_twice(queries, keys, groups, temperature):
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    shares = scores.masked_fill((groups[:, None] == groups) & ~own, -torch.inf).softmax(1)
    return F.cross_entropy(shares, torch.arange(len(scores)))


def documents_once(queries, keys, groups, temperature):
    first = torch.tensor([group not in groups[:n] for n, group in enumerate(groups)])
    return d2l.info_nce(queries[first], keys[first], temperature)


def all_vectors(queries, keys, groups, temperature):
    """As SimCLR: each of the 2 B vectors chooses among all others."""
    vectors, groups = F.normalize(torch.cat([queries, keys]), dim=-1), torch.cat([groups, groups])
    partner = torch.arange(len(vectors)).roll(len(queries))
    left_out = groups[:, None] == groups
    left_out[torch.arange(len(vectors)), partner] = False
    return F.cross_entropy((vectors @ vectors.T / temperature).masked_fill(left_out, -torch.inf), partner)


def _reference(queries, keys, groups, temperature):
    """Loss and the gradients in queries and keys, pair by pair, in float64."""
    queries, keys = (x.detach().cpu().double().requires_grad_() for x in (queries, keys))
    total = 0.0
    for n in range(len(queries)):
        scores = {}
        for m in range(len(keys)):
            if m == n or groups[m] != groups[n]:
                scores[m] = queries[n] @ keys[m] / (queries[n].norm() * keys[m].norm()) / temperature
        highest = max(score.item() for score in scores.values())
        total = total - scores[n] + highest + sum((score - highest).exp() for score in scores.values()).log()
    loss = total / len(queries)
    return loss.detach(), *torch.autograd.grad(loss, (queries, keys))


def _case(t, B, D, groups, near):
    """Keys that lie ``near`` their queries, of all lengths."""
    queries = t.randn(B, D)
    keys = near * queries + t.randn(B, D)
    lengths = t.rand(2, B, 1, low=0.4, high=2.5)
    lengths[:, ::2] /= 50  # short, and with a direction all the same
    return lengths[0] * queries, lengths[1] * keys, torch.tensor(groups, device=t.device)


def verify(t, answer):
    B, D = t.sizes(2, 6, 12)
    order = t.random.sample(range(100), B)
    shared = [order[0], order[0], order[0], order[1], order[1], *order[2 : B - 3]]
    t.random.shuffle(shared)
    cases = [
        ("where every pair has a document of its own", order, 0.3, 0.5),
        ("where some pairs share a document", shared, 0.3, 0.4),
        ("at a low temperature", shared, 1.0, 0.005),
        # a key far from its query: the right one has a probability that is rounded to 0, or the lowest of all scores
        ("at a low temperature, with right keys far away", shared, -3.0, 0.005),
        ("at a low temperature, with one document for all", order[:1] * B, -3.0, 5e-5),
    ]
    for name, groups, near, temperature in cases:
        queries, keys, groups = _case(t, B, D, groups, near)
        want, *slopes = _reference(queries, keys, groups, temperature)
        got = t.call(answer, queries.requires_grad_(), keys.requires_grad_(), groups, temperature)
        # at a low temperature float32 knows a cosine only to 1e-7 / temperature
        tolerance = (1e-3, 1e-3) if temperature < 0.1 else None
        t.same(got, want, f"the loss {name}", tolerance=tolerance)
        if temperature < 0.1:
            continue
        for argument, slope in enumerate(slopes):
            whose = ("queries", "keys")[argument]
            t.same(t.gradient(got, argument), slope, f"the gradient in the {whose} {name}")


MUTANTS = [
    Mutant("short", ("F.normalize(queries, dim=-1)", "F.normalize(queries, dim=-1, eps=0.1)"), "short features keep a "
        "length below 1: nothing is to be added to a length, or to bound it from below"),
    Mutant("lengths", ("queries, keys = F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)", ""),
        "these are inner products: the cosine takes vectors of length 1"),
    Mutant("keys-long", ("F.normalize(keys, dim=-1)", "keys"), "the keys keep their lengths: the cosine takes both at "
        "length 1"),
    Mutant("queries-long", ("F.normalize(queries, dim=-1)", "queries"), "the queries keep their lengths: the cosine "
        "takes both at length 1"),
    Mutant("wrong-axis", ("F.normalize(queries, dim=-1), F.normalize(keys, dim=-1)",
        "F.normalize(queries, dim=0), F.normalize(keys, dim=0)"), "each feature is scaled over the batch: each "
        "*vector* gets length 1, dim=-1"),
    Mutant("times-temperature", ("keys.T / temperature", "keys.T * temperature"), "the cosines are multiplied by the "
        "temperature: divide, so that a low one sharpens"),
    Mutant("no-temperature", ("keys.T / temperature", "keys.T"), "the temperature is not used"),
    Mutant("sqrt", ("keys.T / temperature", "keys.T / temperature / queries.shape[1] ** 0.5"), "the cosines are also "
        "divided by sqrt(D): the temperature alone scales them"),
    Mutant("transposed", ("queries @ keys.T", "keys @ queries.T"), "the keys choose among the queries: the softmax of "
        "a query runs over the keys"),
    Mutant("symmetric", both_ways, "this is the mean of both directions, as in CLIP: here the queries alone choose"),
    Mutant("no-groups", groups_left_out, "other keys of the own document count as wrong answers: take them out of the "
        "sum"),
    Mutant("only-related", ("related & ~own", "~related"), "keys of *other* documents are left out: they are the wrong "
        "answers, and those of the own document are to go"),
    Mutant("nonfinite", ("related & ~own", "related")),  # own key left out
    Mutant("zero", ("-torch.inf", "0.0"), "keys that are left out have the score 0, whose exponential is 1: minus "
        "infinity takes them out"),
    Mutant("not-below", own_key_not_below, "the own key is missing in the sum below: the loss may fall under 0, and it "
        "is no cross-entropy"),
    Mutant("finite", ("-torch.inf", "-1e4"), "keys that are left out get a number that scores can be below, at a low "
        "temperature: minus infinity takes them out, whatever the scores are"),
    Mutant("many-right", group_is_right, "all keys of the document count as right: only key n belongs to query n"),
    Mutant("shared-right", group_in_the_targets, "the right answer is shared out over the document's keys: only key n "
        "belongs to query n"),
    Mutant("sum", ("device=scores.device))\n", 'device=scores.device), reduction="sum")\n'), "this is the sum over the "
        "queries: take the mean"),
    Mutant("sign", ("return F.cross_entropy", "return -F.cross_entropy"), "the sign is turned: it is a loss, and never "
        "below 0"),
    Mutant("no-log", probability_only, "this is the mean probability of the right key, without the logarithm"),
    Mutant("no-negatives", pulled_together_only, "right pairs are pulled together, but nothing pushes the others "
        "apart: with one and the same vector for all texts this loss would be lowest"),
    Mutant("binary", each_pair_by_itself, "each pair is judged by itself, yes or no: here the keys of a row compete in "
        "one softmax"),
    Mutant("twice", softmax_twice, "`F.cross_entropy` takes scores and makes the softmax itself: it was given "
        "probabilities"),
    Mutant("dropped", documents_once, "of each document only the first pair is kept: all pairs have a row, and only "
        "keys are left out of a row's sum"),
    Mutant("all-vectors", all_vectors, "queries also compete with queries, and keys with keys: here a query chooses "
        "among the keys alone"),
    Mutant("nonfinite", naive),
    Mutant("no-temperature", (" / temperature", ""), "the temperature is not used: scores are divided by it"),
    Mutant("shape", ("device=scores.device))\n", 'device=scores.device), reduction="none")\n')),  # row by row
]  # fmt: skip


EXERCISE = Exercise(
    key="udl-12.8",
    doc=__doc__,
    source="UDL problem 12.8",
    parts=[
        Choice(
            key="udl-12.8a",
            prompt="A BERT with a vocabulary of 30,522 tokens is not trained yet: in each of its two tasks all "
            "candidates "
            "get the same score. What is its loss in a guess of each task, in nats, and which of the two could, once "
            "trained, write text?",
            hints=[
                "How many candidates has each task, and what is the cross-entropy where all are as likely?",
                "What does the output layer of each task score: what could stand there, or what does stand there?",
            ],
            options=[
                Option(
                    "10.3 for a hidden token and 0.7 for a pair; both could write text.",
                    "The label says of two finished pieces whether they belong together. No text comes of it: with "
                    "this task alone nobody could ask the model for a word.",
                ),
                Option(
                    "10.3 for a hidden token and 0.7 for a pair; the first could write text.",
                    "Guessing hidden tokens is generative: it gives a probability to each token of the vocabulary, and "
                    "log 30,522 is 10.3. Telling whether two pieces belong together is contrastive: it sees a true "
                    "pair or one with a piece from elsewhere, one of two answers, and log 2 is 0.7. Newer contrastive "
                    "losses compare with many.",
                    right=True,
                ),
                Option(
                    "0.7 for a hidden token and 0.7 for a pair; neither could write text.",
                    "So it would be if a finished token were shown and the model said whether it is right. It scores "
                    "the whole vocabulary, so that one can draw from it: the model fills the gap.",
                ),
                Option(
                    "0.7 for a hidden token and 10.3 for a pair; the second could write text.",
                    "The other way round: at a hidden place any of 30,522 tokens could stand, and a pair has one of "
                    "two labels. That the second piece is a continuation does not make it written: it is shown.",
                ),
            ],
        ),
        Discussion(
            key="udl-12.8b",
            prompt="Why might one want two tasks and not one? And propose two contrastive tasks, other than the one "
            "above, that could pretrain a language model. For each say where right and wrong pairs come from without "
            "labels, what a model has to learn in order to solve it, and by which trick it could be solved without "
            "learning that.",
            hints=[
                "What does the first task ever ask about two sentences together?",
                "What stays the same about a text when one changes something? What is near it in a collection of "
                "texts?",
                "Next-sentence prediction can mostly be solved by the topic: the wrong piece is from another document.",
            ],
            rubric=[
                "The two tasks teach different things: the first what words mean where they stand, the second what a "
                "whole piece of text says, which the class token has to gather.",
                "Two tasks that are contrastive: candidates are given, and nothing has to be written.",
                "Right and wrong pairs come from the text itself, for both tasks, and they are told exactly.",
                "For each a shortcut is named, such as topic, length, or words that both have, and what is done "
                "against it.",
                "It is said when a wrong pair may be right after all (a false negative).",
            ],
            explanation=r"""
**Why two.** Guessing a word rarely needs more than its own sentence, and that loss never reads the class token's
output. Many tasks are about two texts at once. The second loss was to teach that. RoBERTa (Liu et al. 2019) did as well
without it: a wrong piece comes from another document, whose topic gives it away (Lan et al. 2020).

**The order of sentences.** Two neighbouring pieces, as they stood or exchanged: which is it? Both have the same topic
and the same words, so the model must see how a text goes on. This is what ALBERT uses (Lan et al. 2020). Shortcut:
words such as "however" or "he" that hardly ever begin a text; that is part of what is to be learned, but it is not
all. No false negative, unless the two pieces read as well the other way round.

**Find the rest of your document.** Cut two pieces out of each of B documents. Piece n of one kind has to find the other
piece of its document among the B of the batch (part c is its loss). The model must gather what a piece is about.
Shortcuts: names and rare words that both have; hide them in one of the two, or take the wrong pieces from documents on
the same topic. False negatives: two documents of the batch on one event, or the same text twice.

Other good ones: which tokens were put in by another model (ELECTRA, Clark et al. 2020: right or wrong at each place);
the same sentence seen twice with different dropout (Gao et al. 2021); a gap, and which of several sentences fills it.
""",
        ),
        Code(
            key="udl-12.8c",
            prompt=r"""
B pairs of pieces of text have become vectors: $\mathbf q_n$ and $\mathbf k_n$ belong together. Each query is to be
classified among the keys of the batch, with the cross-entropy of the right one:

$$L = -\frac1B \sum_n \log \frac{\exp s_{nn}}{\sum_{m \in M_n} \exp s_{nm}} , \qquad
s_{nm} = \frac{\cos(\mathbf q_n, \mathbf k_m)}{\tau} .$$

This is InfoNCE (van den Oord et al. 2018). Two pairs may come from one document. Then key m is no fair *wrong* answer
for query n: $M_n$ has n itself and all m of other documents. Write `contrastive_loss(queries, keys, groups,
temperature)`. If all documents differ, it is the cross-entropy over the batch and nothing else. It must also hold at a
low temperature, where $\exp s$ is beyond what float32 can hold.
""",
            hints=[
                "The cosine is the inner product of vectors of length 1: `F.normalize`. One matrix product gives all "
                "B x B of them.",
                "What is the right class of row n? `F.cross_entropy` takes scores and right classes, and never "
                "computes a large exponential.",
                "A score of minus infinity takes a key out of the sum. `groups[:, None] == groups` says which; the "
                "diagonal must stay.",
            ],
            answer=contrastive_loss,
            verify=verify,
            alternatives=[by_logsumexp, with_the_margin],
            without={"alone": "a pair alone has nothing to be told from"},
            min_checks=9,
            advice={
                "nonfinite": "A sum of exponentials overflows where scores are large, and the logarithm of a "
                "probability that was rounded to 0 is infinite: `F.cross_entropy` or `torch.logsumexp` on the scores "
                "does neither. And key n, the right answer of row n, must never be left out: the target is n, not "
                "the document.",
                "values": "Try two pairs by hand: with two documents row n gives log(1 + exp(difference of its two "
                "scores)), and the loss is the mean of both rows; with one document for both it is 0. Then three "
                "pairs, of which the first and the last share a document.",
            },
            mutants=MUTANTS,
            explanation=r"""
The batch is the vocabulary: a classification with B classes, the classes being made by the model itself. A model that
cannot tell any key from another has a loss of $\log B$, so losses of different batch sizes cannot be compared. And a
larger batch asks a harder question: CLIP (Radford et al. 2021) took 32,768 pairs.

The gradient in a score is the probability minus 1 for the right key and the probability for the others. So the wrong
keys that look most like right ones push hardest, the more the lower the temperature. That is also why a false negative
does harm: it is the hardest of all. `d2l.info_nce` is this loss without documents.
""",
        ),
    ],
)
