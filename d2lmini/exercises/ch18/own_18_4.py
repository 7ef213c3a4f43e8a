r"""Pictures and their texts

CLIP has two encoders, one for pictures and one for texts, whose features have the same number D of dimensions. It is
trained on pairs. In a batch of B pairs each picture must tell which of the B texts is its own, and each text which of
the B pictures. How alike two are is the cosine of their features, times a scale that is learned with the encoders. What
is kept is the logarithm of the scale.

Afterwards the texts serve as classes. A picture of a class that nobody has trained on is told by the text that is
nearest, and a few wordings of each class do better than one.
"""

import math

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def clip_loss(images, texts, log_scale):
    """Which text is mine, which picture is mine?

    Args:
        images: (B, D), features of B pictures, of any length.
        texts: (B, D), of their texts; text n belongs to picture n.
        log_scale: scalar tensor, the logarithm of what cosines are multiplied by. A scale above 100 counts as 100.

    Returns:
        The loss, a scalar, in nats: the mean of both directions.
    """
    ### BEGIN SOLUTION
    images, texts = F.normalize(images, dim=-1), F.normalize(texts, dim=-1)
    scale = log_scale.exp().clamp(max=100.0)
    scores = scale * images @ texts.T  # (B, B): row n has the scores of picture n for all texts
    own = torch.arange(len(scores), device=scores.device)
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2
    ### END SOLUTION


def by_the_package(images, texts, log_scale):
    temperature = torch.exp(-torch.minimum(log_scale, log_scale.new_tensor(math.log(100))))
    return d2l.info_nce(images, texts, temperature, symmetric=True)


def by_logsumexp(images, texts, log_scale):
    cosines = torch.cosine_similarity(images[:, None], texts[None], dim=-1)
    scores = cosines * torch.exp(log_scale.clamp(max=math.log(100.0)))
    return ((scores.logsumexp(0) + scores.logsumexp(1)) / 2 - scores.diag()).mean()


# mistakes


def _cosines(images, texts):
    return F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T


def as_a_temperature(images, texts, log_scale):
    return clip_loss(images, texts, -log_scale)


def scale_is_a_number(images, texts, log_scale):
    return clip_loss(images, texts, log_scale.detach())


def both_softmaxes_in_one(images, texts, log_scale):
    """One softmax over all B x B pairs."""
    scores = log_scale.exp().clamp(max=100) * _cosines(images, texts)
    return scores.flatten().logsumexp(0) - scores.diag().mean()


def probability_only(images, texts, log_scale):
    scores = log_scale.exp().clamp(max=100) * _cosines(images, texts)
    return 1 - (scores.softmax(0).diag() + scores.softmax(1).diag()).mean() / 2


def each_pair_by_itself(images, texts, log_scale):
    """SigLIP's way: is this a pair?"""
    scores = log_scale.exp().clamp(max=100) * _cosines(images, texts)
    return F.binary_cross_entropy_with_logits(scores, torch.eye(len(scores)))


def naive(images, texts, log_scale):
    scores = torch.exp(log_scale.exp().clamp(max=100) * _cosines(images, texts))
    return -torch.log(scores.diag() ** 2 / (scores.sum(0) * scores.sum(1))).mean() / 2


def summed_over_the_batch(images, texts, log_scale):
    return clip_loss(images, texts, log_scale) * len(images)


def softmax_twice(images, texts, log_scale):
    scores = log_scale.exp().clamp(max=100) * _cosines(images, texts)
    own = torch.arange(len(scores))
    return (F.cross_entropy(scores.softmax(1), own) + F.cross_entropy(scores.T.softmax(1), own)) / 2


def same_direction_twice(images, texts, log_scale):
    scores = log_scale.exp().clamp(max=100) * _cosines(images, texts)
    own = torch.arange(len(scores))
    return (F.cross_entropy(scores, own) + F.cross_entropy(scores, own)) / 2


def other_images_too(images, texts, log_scale):
    """As SimCLR: pictures are told from pictures, too."""
    vectors = F.normalize(torch.cat([images, texts]), dim=-1)
    scores = log_scale.exp().clamp(max=100) * vectors @ vectors.T
    scores = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    return F.cross_entropy(scores, torch.arange(len(scores)).roll(len(images)))


def _reference_loss(images, texts, log_scale):
    """Loss and gradients, pair by pair, in float64."""
    images, texts, log_scale = (x.detach().cpu().double().requires_grad_() for x in (images, texts, log_scale))
    B, scale = len(images), min(math.exp(log_scale.item()), 100.0)
    scale = torch.exp(log_scale) if scale < 100 else torch.tensor(100.0, dtype=torch.float64) + 0 * log_scale
    total = 0.0
    for n in range(B):
        for mine, others in ((images[n], texts), (texts[n], images)):
            scores = [scale * (mine @ other) / mine.norm() / other.norm() for other in others]
            top = max(score.item() for score in scores)
            total = total - scores[n] + top + torch.log(sum((score - top).exp() for score in scores))
    loss = total / (2 * B)
    return loss.detach(), *torch.autograd.grad(loss, (images, texts, log_scale))


def verify_loss(t, answer):
    B, D = t.sizes(2, 5, 11)
    for name, scale, near in (
        ("at a scale of CLIP's first step", 1 / 0.07, 0.4),
        ("at a scale below 1", 0.4, 0.4),
        ("at a scale beyond 100", 240.0, 0.0),  # pairs that do not fit: a larger scale costs more
    ):
        images = t.randn(B, D)
        texts = near * images + t.randn(B, D)
        lengths = 10 ** t.rand(2, B, 1, low=-2.0, high=0.5)
        lengths[:, 0] = 1e-3
        images, texts = lengths[0] * images, lengths[1] * texts
        log_scale = torch.tensor(math.log(scale), device=t.device)
        want, *slopes = _reference_loss(images, texts, log_scale)
        given = images.requires_grad_(), texts.requires_grad_(), log_scale.requires_grad_()
        got = t.call(answer, *given)
        tolerance = (1e-3, 1e-3)  # float32 knows a cosine only to 1e-7, and it is multiplied by up to 100
        t.same(got, want, f"the loss {name}", tolerance=tolerance)
        for place, whose in enumerate(("pictures", "texts", "logarithm of the scale")):
            if scale > 100 and place == 2:
                slope = t.host.gradient(got, place)  # none at all is right, too
                message = f"the loss {name} does not depend on `log_scale`: its gradient there is 0"
                t.that(slope is None or float(slope.abs()) < 1e-6, "gradient-above", message)
                continue
            what = f"the gradient in the {whose} {name}"
            t.same(t.gradient(got, place, f"the loss {name}"), slopes[place], what, tolerance=tolerance)


def zero_shot(images, prompts, class_of):
    """How near each picture is to each class.

    Args:
        images: (N, D), features of pictures, of any length.
        prompts: (P, D), features of P texts, of any length: all wordings of all classes, in any order.
        class_of: integers (P,), the class of each wording, 0 to C - 1. Each class has one wording at least, and some
            have more than others.

    Returns:
        Cosines (N, C) of a picture and a class. A class is the mean of its wordings' directions: a long vector counts
        no more than a short one.
    """
    ### BEGIN SOLUTION
    images, prompts = F.normalize(images, dim=-1), F.normalize(prompts, dim=-1)
    member = F.one_hot(class_of).to(prompts.dtype)  # (P, C)
    means = (member / member.sum(dim=0)).T @ prompts  # (C, D), shorter than 1 where wordings differ
    return images @ F.normalize(means, dim=-1).T
    ### END SOLUTION


def class_by_class(images, prompts, class_of):
    rows = []
    for c in range(int(class_of.max()) + 1):
        wordings = prompts[class_of == c]
        rows.append((wordings / wordings.norm(dim=1, keepdim=True)).mean(0))
    return torch.cosine_similarity(images[:, None], torch.stack(rows)[None], dim=-1)


def by_index_add(images, prompts, class_of):
    """Sums do as well as means: their length is taken out."""
    sums = prompts.new_zeros(int(class_of.max()) + 1, prompts.shape[1])
    sums = sums.index_add(0, class_of, F.normalize(prompts, dim=1))
    return F.normalize(images) @ F.normalize(sums).T


# mistakes


def mean_of_the_scores(images, prompts, class_of):
    cosines = F.normalize(images, dim=-1) @ F.normalize(prompts, dim=-1).T
    member = F.one_hot(class_of).to(cosines)
    return cosines @ member / member.sum(0)


def sum_of_the_scores(images, prompts, class_of):
    cosines = F.normalize(images, dim=-1) @ F.normalize(prompts, dim=-1).T
    return cosines @ F.one_hot(class_of).to(cosines)


def nearest_wording(images, prompts, class_of):
    cosines = F.normalize(images, dim=-1) @ F.normalize(prompts, dim=-1).T
    return torch.stack([cosines[:, class_of == c].amax(1) for c in range(int(class_of.max()) + 1)], 1)


def first_wording(images, prompts, class_of):
    first = torch.stack([(class_of == c).int().argmax() for c in range(int(class_of.max()) + 1)])
    return F.normalize(images, dim=-1) @ F.normalize(prompts[first], dim=-1).T


def as_probabilities(images, prompts, class_of):
    return zero_shot(images, prompts, class_of).softmax(1)


def blocks(images, prompts, class_of):
    """As if the wordings stood sorted, and as many of each class."""
    C = int(class_of.max()) + 1
    each = len(prompts) // C
    means = F.normalize(prompts, dim=-1)[: C * each].view(C, each, -1).mean(1)
    return F.normalize(images, dim=-1) @ F.normalize(means, dim=-1).T


def verify_classes(t, answer):
    D, N, C = t.sizes(3, 4, 10)
    wordings = [t.random.randint(2, 5) for _ in range(C)]
    wordings[t.random.randrange(C)] = 1
    if len({*wordings} - {1}) == 1:  # some must have more than others
        wordings[wordings.index(max(wordings))] += 2
    for name, counts in (("where each class has one wording", [1] * C), ("where some have several wordings", wordings)):
        class_of = [c for c, count in enumerate(counts) for _ in range(count)]
        if len(class_of) > C:  # in order where there is one each
            t.random.shuffle(class_of)
        P = len(class_of)
        prompts = t.randn(P, D) * t.rand(P, 1, low=0.2, high=4.0)
        images = t.randn(N, D) * t.rand(N, 1, low=0.4, high=2.5)
        images[0], prompts[0] = 1e-3 * images[0], 1e-3 * prompts[0]
        rows = []
        for c in range(C):
            mean = sum(
                prompts[p].cpu().double() / prompts[p].cpu().double().norm() for p in range(P) if class_of[p] == c
            )
            rows.append([float(x.cpu().double() @ mean / x.cpu().double().norm() / mean.norm()) for x in images])
        want = torch.tensor(rows, dtype=torch.float64).T
        got = t.call(answer, images, prompts, torch.tensor(class_of, device=t.device))
        t.same(got, want, f"the cosines {name}")


NO_UNIT = "the inner product hangs on the lengths of the features, too: bring all of them to length 1"

MUTANTS_A = [
    Mutant("one-way", ("(F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2",
        "F.cross_entropy(scores, own)"), "only the pictures choose among the texts: each text chooses among the "
        "pictures, too"),
    Mutant("one-way", same_direction_twice, "only the pictures choose among the texts: each text chooses among the "
        "pictures, too"),
    Mutant("other-way", ("(F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2",
        "F.cross_entropy(scores.T, own)"), "only the texts choose among the pictures: each picture chooses among the "
        "texts, too"),
    Mutant("sum", ("F.cross_entropy(scores.T, own)) / 2", "F.cross_entropy(scores.T, own))"), "both directions are "
        "summed: take their mean"),
    Mutant("batch-summed", summed_over_the_batch, "the pairs are summed: take their mean"),
    Mutant("divided-again", ("/ 2", "/ 2 / len(images)"), "it is divided by B twice: `F.cross_entropy` takes the mean "
        "over the pairs by itself"),
    Mutant("softmax-twice", softmax_twice, "`F.cross_entropy` takes a softmax by itself, and is given probabilities: "
        "pass scores"),
    Mutant("not-normalised", ("    images, texts = F.normalize(images, dim=-1), F.normalize(texts, dim=-1)\n", ""),
        NO_UNIT),
    Mutant("texts-not-normalised", ("F.normalize(texts, dim=-1)", "texts"), "the texts keep their lengths: the cosine "
        "needs both at length 1"),
    Mutant("over-the-batch", ("F.normalize(images, dim=-1), F.normalize(texts, dim=-1)",
        "F.normalize(images, dim=0), F.normalize(texts, dim=0)"), "each feature is divided by its length over the "
        "batch: each vector has to have length 1 (dim=-1)"),
    Mutant("no-exp", ("log_scale.exp().clamp(max=100.0)", "log_scale.clamp(max=100.0)"), "the scale is given by its "
        "logarithm: exp is missing"),
    Mutant("divided", as_a_temperature, "the cosines are divided by the scale: it is one over a temperature, and "
        "multiplies"),
    Mutant("not-limited", (".clamp(max=100.0)", ""), "a scale above 100 counts as 100: it is not limited here"),
    Mutant("not-limited", ("log_scale.exp().clamp(max=100.0)", "log_scale.clamp(max=100.0).exp()"),
        "a scale above 100 counts as 100: it is not limited here"),
    Mutant("grad", scale_is_a_number),
    Mutant("gradient-above", ("log_scale.exp().clamp(max=100.0)",
        "log_scale.exp() * (100 / log_scale.exp()).clamp(max=1).detach()")),
    Mutant("one-softmax", both_softmaxes_in_one, "one softmax runs over all B x B pairs: each picture, and each text, "
        "has one of its own"),
    Mutant("no-logarithm", probability_only, "this is one less the mean probability of the right one: take the "
        "logarithm of each first"),
    Mutant("binary", each_pair_by_itself, "each pair is judged by itself, with a sigmoid: here B candidates share one "
        "softmax"),
    Mutant("simclr", other_images_too, "pictures are told from pictures and texts from texts, too: candidates are of "
        "the other kind alone"),
    Mutant("nonfinite", naive),
]  # fmt: skip

MUTANTS_B = [
    Mutant("scores-averaged", mean_of_the_scores, "the cosines of a class's wordings are averaged (or the mean of the "
        "wordings keeps its length, which is the same): bring the mean to length 1, or a class whose wordings differ "
        "loses"),
    Mutant("scores-averaged", ("F.normalize(means, dim=-1)", "means"), "the cosines of a class's wordings are averaged "
        "(or the mean of the wordings keeps its length, which is the same): bring the mean to length 1, or a class "
        "whose wordings differ loses"),
    Mutant("long-wordings", ("F.normalize(prompts, dim=-1)", "prompts"), "a wording with a long vector counts more: "
        "bring each to length 1 before the mean"),
    Mutant("pictures-not-normalised", ("F.normalize(images, dim=-1)", "images"), "the pictures keep their lengths: "
        "these are no cosines"),
    Mutant("scores-summed", sum_of_the_scores, "the cosines of a class's wordings are summed (or the sum of the "
        "wordings keeps its length, which is the same): a class with more wordings wins. Bring the sum to length 1"),
    Mutant("over-the-batch", ("F.normalize(images, dim=-1), F.normalize(prompts, dim=-1)",
        "F.normalize(images, dim=0), F.normalize(prompts, dim=0)"),
        "each feature is divided by its length over all rows: each *vector* has to have length 1 (dim=-1)"),
    Mutant("distances", ("return images @ F.normalize(means, dim=-1).T",
        "return torch.cdist(images, F.normalize(means, dim=-1))"),
        "these are distances: cosines are inner products of vectors of length 1"),
    Mutant("nearest", nearest_wording, "the nearest wording speaks for its class: take their mean"),
    Mutant("appearance", ("F.one_hot(class_of)",
        "F.one_hot(torch.tensor([list(dict.fromkeys(class_of.tolist())).index(c) for c in class_of.tolist()]))"),
        "classes stand in the order in which they first appear: column c belongs to class c"),
    Mutant("first", first_wording, "only the first wording of each class is used"),
    Mutant("blocks", blocks, "wordings are cut into blocks of as many for each class, in the order given: `class_of` "
        "says which belong together"),
    Mutant("softmax", as_probabilities, "these are probabilities: return the cosines"),
    Mutant("shape", ("F.normalize(means, dim=-1).T", "prompts.T")),  # each wording
]  # fmt: skip


EXERCISE = Exercise(
    key="own-18.4",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-18.4a",
            prompt=r"""
Write `clip_loss(images, texts, log_scale)`:

$$L = -\frac1{2B} \sum_n \left[ \log \frac{\exp s_{nn}}{\sum_m \exp s_{nm}}
    + \log \frac{\exp s_{nn}}{\sum_m \exp s_{mn}} \right] ,$$

$$s_{nm} = \min(e^{\lambda}, 100) \, \cos(\mathbf v_n, \mathbf t_m) ,$$

with $\mathbf v_n$ the features of picture n, $\mathbf t_m$ those of text m and $\lambda$ the `log_scale`. The scale is
learned: its gradient is checked as are those of the features.
""",
            hints=[
                "All B x B cosines are one product of two matrices, once the rows of both have length 1.",
                "A row of the scores has one picture and all texts. Where are one text and all pictures?",
                "`F.cross_entropy(scores, own)` is one direction. In both the right answer of row n is n.",
                "`log_scale.exp().clamp(max=100)` is the scale, and has a gradient below 100.",
            ],
            answer=clip_loss,
            verify=verify_loss,
            alternatives=[by_the_package, by_logsumexp],
            without={"alone": "a pair alone has nothing to be told from"},
            min_checks=14,
            advice={
                "grad": "Argument 3 is the scale, which is learned: `.item()`, `.detach()` and `float()` take its "
                "gradient away. Arguments 1 and 2 are the features: is something computed under `no_grad`?",
                "nonfinite": "A sum of exponentials of large scores overflows: use `F.cross_entropy` or "
                "`torch.logsumexp`.",
                "values": "Four tests: one pair alone has the loss 0; a feature times 3 changes nothing; neither do "
                "pictures and texts exchanged; and all scales above 100 give the same. Which of them fails?",
            },
            mutants=MUTANTS_A,
            explanation=r"""
This is InfoNCE twice (Radford et al. 2021, figure 3). The two directions differ: a picture that every text fits costs
log B in its row, and is a rival in every column. Both share the scores.

Why is the scale learned? With unit vectors all scores lie between -1 and 1. A softmax over B of them is nearly even,
and the loss could not fall far below log B. A fixed scale would have to be tuned with B; a learned one finds its own
value. Its logarithm is kept so that a step of the optimiser is a factor, and nothing has to be kept above 0. The limit
of 100 is there against unstable training. Where it binds, `clamp` gives the scale no gradient: d2lmini clips the
parameter itself between steps, so that it can come back.
""",
        ),
        Code(
            key="own-18.4b",
            prompt=r"""
Write `zero_shot(images, prompts, class_of)`. A class has several wordings, as "a photo of a bag" and "a picture of a
handbag". They become one vector: the wordings' features are brought to length 1 and averaged, and what a picture is
compared with is the direction of that mean.
""",
            hints=[
                "Three times something is brought to length 1: pictures, wordings, and what comes of the mean.",
                "`F.one_hot(class_of)` is a matrix (P, C) of who belongs to whom. A product with it sums the wordings "
                "of each class.",
                "Nothing says that the wordings of a class stand together.",
            ],
            answer=zero_shot,
            verify=verify_classes,
            alternatives=[class_by_class, by_index_add],
            min_checks=4,
            advice={
                "values": "A picture times 3 changes nothing, a wording times 3 changes nothing, and a class whose "
                "wording is given twice keeps its scores. If all that holds, take a class with two wordings, and "
                "compute its scores by hand: the mean of two directions, itself brought to length 1.",
            },
            mutants=MUTANTS_B,
            explanation=r"""
The class vectors are computed once; after that a class costs one inner product a picture, however many wordings it has
(Radford et al. 2021, section 3.1.4, who used up to 80). Averaging *features* is a cheap ensemble: what wordings share,
the class, stays, and what is each one's own cancels. A class whose wordings differ much has a short mean. Were it not
brought to length 1, all of its scores would be smaller, and it would be chosen less often for no good reason.
""",
        ),
        Choice(
            key="own-18.4c",
            prompt='In a batch two pictures of different bags have the same text, word for word: "a bag". What does '
            "the loss of part a do with them?",
            hints=["Look at the row of one of these pictures: how many of its candidates are right?"],
            options=[
                Option(
                    "Nothing special: what it asks of the two pictures cancels, as a gradient.",
                    "Only if both are equally near to it. Else the nearer one is pushed away from a text that is "
                    "right for it.",
                ),
                Option(
                    "It asks each picture to prefer its own of two copies that are the same.",
                    "No encoder can tell them apart, so it punishes one for being right: the other copy is a false "
                    "negative. With the text there m times a picture cannot give its own more than 1/m, so the loss "
                    "has a floor of log m for these pairs, and the nearer picture is pushed away from a text that "
                    "fits. With few classes and short texts this happens in every batch: `d2l.CLIP(repeats=False)` "
                    "leaves such pairs out.",
                    right=True,
                ),
                Option(
                    "It counts both copies as right, and the picture may choose either of them.",
                    "The right answer of row n is n alone. A loss that takes either could reach 0.",
                ),
                Option(
                    "It makes the scale larger, until the two copies are told apart by it.",
                    "The two scores are equal at any scale. If one picture is nearer to the text, a larger scale even "
                    "costs more.",
                ),
            ],
        ),
    ],
)
