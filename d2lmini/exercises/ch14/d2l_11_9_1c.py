"""Part c of d2l-11.9.1, "Several tasks in one minibatch": `mixed_loss`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Code, Mutant


def mixed_loss(logits, labels, tasks, weights):
    """The weighted sum of the losses of the tasks.

    Args:
        logits: (B, T, V), of any size.
        labels: integers (B, T), -100 where nothing is asked.
        tasks: integers (B,), from 0: which task an example belongs to.
        weights: (K,), how much each of K tasks counts.

    Returns:
        A scalar: the sum over the tasks of weight times the mean cross-entropy over all labels *of this task*, in
        nats. A task without labels in this batch adds nothing.
    """
    ### BEGIN SOLUTION
    asked = labels != -100  # (B, T)
    nats = F.cross_entropy(
        logits.transpose(1, 2), labels, ignore_index=-100, reduction="none"
    )  # (B, T), 0 where not asked
    total = torch.zeros_like(weights).index_add(0, tasks, nats.sum(dim=1))  # (K,)
    number = torch.zeros_like(weights).index_add(0, tasks, asked.sum(dim=1).to(weights))
    return (weights * total / number.clamp(min=1)).sum()
    ### END SOLUTION


def task_by_task(logits, labels, tasks, weights):
    loss = logits.sum() * 0
    for task, weight in enumerate(weights):
        rows = tasks == task
        if (labels[rows] != -100).any():
            loss = loss + weight * F.cross_entropy(logits[rows].flatten(0, 1), labels[rows].flatten())
    return loss


def a_weight_for_each_label(logits, labels, tasks, weights):
    """Each label gets the weight of its task over the number of its labels."""
    asked = labels != -100
    number = torch.stack([(asked & (tasks == task)[:, None]).sum() for task in range(len(weights))])
    share = (weights / number.clamp(min=1))[tasks]
    log_probs = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return -torch.einsum("bt,b->", log_probs * asked, share)


# mistakes


def all_labels_alike(logits, labels, tasks, weights):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def _nats(logits, labels):
    return F.cross_entropy(logits.mT, labels, reduction="none")


def weights_on_labels(logits, labels, tasks, weights):
    return (_nats(logits, labels) * weights[tasks][:, None]).sum() / (labels != -100).sum()


def weights_on_labels_and_below(logits, labels, tasks, weights):
    shares = weights[tasks][:, None] * (labels != -100)
    return (_nats(logits, labels) * shares).sum() / shares.sum()


def weights_on_examples(logits, labels, tasks, weights):
    each = _nats(logits, labels).sum(1) / (labels != -100).sum(1).clamp(min=1)
    return (weights[tasks] * each).mean()


def means_of_examples(logits, labels, tasks, weights):
    each = _nats(logits, labels).sum(1) / (labels != -100).sum(1).clamp(min=1)
    total = torch.zeros_like(weights).index_add(0, tasks, each)
    return (weights * total / torch.bincount(tasks, minlength=len(weights)).clamp(min=1)).sum()


def shares_of_those_present(logits, labels, tasks, weights):
    asked = torch.zeros_like(weights).index_add(0, tasks, (labels != -100).sum(1).to(weights))
    return mixed_loss(logits, labels, tasks, weights) / weights[asked > 0].sum()


def shares_of_all(logits, labels, tasks, weights):
    return mixed_loss(logits, labels, tasks, weights) / weights.sum()


def mean_over_tasks(logits, labels, tasks, weights):
    return mixed_loss(logits, labels, tasks, weights) / len(tasks.unique())


def weights_in_order_of_presence(logits, labels, tasks, weights):
    return sum(
        weight * F.cross_entropy(logits[tasks == task].flatten(0, 1), labels[tasks == task].flatten())
        for weight, task in zip(weights, tasks.unique(), strict=False)
    )


def empty_tasks_are_nan(logits, labels, tasks, weights):
    losses = [
        F.cross_entropy(logits[tasks == k].flatten(0, 1), labels[tasks == k].flatten()) for k in range(len(weights))
    ]
    return (weights * torch.stack(losses)).sum()


def softmax_then_log(logits, labels, tasks, weights):
    """The logarithm of a probability that was rounded to 0."""
    return mixed_loss(logits.softmax(-1).log(), labels, tasks, weights)


def shifted_again(logits, labels, tasks, weights):
    return mixed_loss(logits[:, :-1], labels[:, 1:], tasks, weights)


def not_asked_is_token_0(logits, labels, tasks, weights):
    return mixed_loss(logits, labels.clamp(min=0), tasks, weights)


def prefixes_asked(logits, labels, tasks, weights):
    """The first labels of a text, as many as it has."""
    ended = torch.arange(labels.shape[1]) >= (labels != -100).sum(1, keepdim=True)
    return mixed_loss(logits, labels.clamp(min=0).masked_fill(ended, -100), tasks, weights)


def verify_loss(t, answer):
    B, T, V = 9, *t.sizes(2, 6, 11)
    without = "where two tasks do not occur, the last one of them", "where a task has no label"
    for case in ("of four tasks", *without, "with large logits"):
        K = 4
        absent = {t.random.randrange(K - 2), K - 1} if "do not" in case else ()
        present = [k for k in range(K) if k not in absent]
        tasks = [*present, *t.random.choices(present, k=B - len(present))]
        t.random.shuffle(tasks)
        numbers = [1 + (3 * k + b) % (T - 1) for b, k in enumerate(tasks)]  # labels of each example
        numbers[0] = T
        if "no label" in case:
            empty = tasks[1] if tasks[1] != tasks[0] else (tasks[0] + 1) % K
            numbers = [0 if k == empty else n for k, n in zip(tasks, numbers, strict=True)]
        logits, labels = t.randn(B, T, V, scale=90.0 if "large" in case else 2.0), t.integers(0, V, B, T)
        ranks = t.rand(B, T).argsort(1)  # what is asked stands anywhere
        labels[ranks >= torch.tensor(numbers, device=t.device)[:, None]] = -100
        weights = t.rand(K, low=0.2, high=2.0)
        wide = logits.cpu().double().requires_grad_()
        want = 0.0
        for k in range(K):
            nats = [
                -wide[b, i].log_softmax(0)[labels[b, i]]
                for b in range(B)
                for i in range(T)
                if tasks[b] == k and labels[b, i] != -100
            ]
            if nats:
                want = want + weights[k].item() * sum(nats) / len(nats)
        (slope,) = torch.autograd.grad(want, wide)
        got = t.call(answer, logits.requires_grad_(), labels, torch.tensor(tasks, device=t.device), weights)
        t.same(got, want.detach(), f"the loss of a batch {case}")
        t.same(t.gradient(got, 0), slope, f"the gradient of a batch {case}")


MUTANTS = [
    Mutant("all-alike", all_labels_alike, "this is the mean over all labels of the batch, without tasks and weights"),
    Mutant("label-weights", weights_on_labels, "each label is weighted by its task, and then all are averaged: a task "
        "with long targets still counts more. Take the mean within each task first"),
    Mutant("weighted-mean", weights_on_labels_and_below, "this is the weighted mean over all labels: a task with long "
        "targets still counts more. Take the mean within each task first"),
    Mutant("example-weights", weights_on_examples, "the means of the *examples* are averaged: a task with many "
        "examples counts more. Take the mean within each task first"),
    Mutant("example-means", means_of_examples, "within a task the means of its examples are averaged: all its *labels* "
        "count alike here"),
    Mutant("normalised", shares_of_all, "it is divided by the sum of the weights: the sum is asked for, not a mean"),
    Mutant("normalised", shares_of_those_present, "it is divided by the sum of the weights: the sum is asked for, not "
        "a mean"),
    Mutant("mean-of-tasks", mean_over_tasks, "it is divided by the number of tasks: the sum is asked for, not a mean"),
    Mutant("no-weights", ("(weights * total", "(total"), "the weights are not used"),
    Mutant("sums", (" / number.clamp(min=1)", ""), "these are the sums over the labels of the tasks, not their means"),
    Mutant("padding-counted", ("asked.sum(dim=1)", "torch.ones_like(asked).sum(dim=1)"), "the means are divided by all "
        "places, also by those where nothing is asked"),
    Mutant("by-examples", ("asked.sum(dim=1)", "asked.any(dim=1)"), "the sums are divided by the number of examples: "
        "by that of the labels"),
    Mutant("token-0", not_asked_is_token_0, "where the label is -100 token 0 is asked for"),
    Mutant("shifted", shifted_again, "the labels are shifted by one place more: at each place stands already what is "
        "asked there"),
    Mutant("wrong-weights", weights_in_order_of_presence, "the weights are dealt out to the tasks that occur, one "
        "after the other: weight k belongs to task k"),
    Mutant("prefix", prefixes_asked, "labels are taken up to the number of those that are asked: -100 may stand "
        "anywhere, before them as well, so compare each with -100"),
    Mutant("raised", ("return (", "number = torch.stack([asked[tasks == k].sum() for k in range(tasks.max() + 1)])\n"
        "    return (")),  # as many tasks as the batch has
    Mutant("sign", ("return (weights", "return -(weights"), "the sign is turned: it is a loss, above 0"),
    Mutant("nonfinite", (".clamp(min=1)", "")),  # tasks without labels
    Mutant("nonfinite", empty_tasks_are_nan),
    Mutant("nonfinite", softmax_then_log),
    Mutant("shape", (".clamp(min=1)).sum()", ".clamp(min=1))")),  # for each task
]  # fmt: skip


PART = Code(
    key="d2l-11.9.1c",
    prompt="""
The mean over all labels of a mixed batch lets long targets decide. Say how much each task counts instead: write
`mixed_loss(logits, labels, tasks, weights)`, with

$$L = \\sum_k w_k \\, L_k ,$$

$L_k$ being the mean cross-entropy over all labels of task k in this batch.
""",
    hints=[
        'With `reduction="none"` the cross-entropy is (B, T), and 0 where the label is -100. It wants the '
        "classes on axis 1: (B, V, T).",
        "For each task you need two sums, of nats and of labels. A loop over the tasks will do.",
        "What is the mean over no labels? Divide by at least 1.",
    ],
    answer=mixed_loss,
    verify=verify_loss,
    alternatives=[task_by_task, a_weight_for_each_label],
    min_checks=9,
    advice={
        "nonfinite": "The mean over no labels is 0 / 0: a task without labels in the batch adds nothing. And with "
        "large logits exp overflows, or a probability is rounded to 0: use `F.cross_entropy` or `log_softmax`.",
        "raised": "If it is -100: it is no class. `F.cross_entropy` leaves it out by itself; to look up a probability "
        "with it fails. If shapes do not fit: `F.cross_entropy` wants the classes on axis 1, (B, V, T). If a task is "
        "missing: `weights` says how many there are; the last ones may not occur in a batch.",
        "values": "Three tests: with one task of weight 1 it is `F.cross_entropy` of the batch; a batch repeated twice "
        "has the same loss; and with the weights 1 and 0 what the second task says does not matter. Which of "
        "them fails?",
    },
    mutants=MUTANTS,
    explanation=r"""
With $w_k = n_k / n$, the share of task k among the labels, it is the plain mean again. So the plain mean is one choice
of weights, which nobody made, and which changes from batch to batch. The other way to decide is to leave the loss as
it is and to choose how often each task is drawn: T5 draws in proportion to the number of examples, up to a limit
(Raffel et al. 2020, section 3.5.2).
""",
)
