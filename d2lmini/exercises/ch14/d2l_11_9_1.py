r"""Several tasks in one minibatch

T5 translates, judges a review and shortens an article, all with the same weights: the input says what to do, and every
answer is a text. Can a minibatch hold examples of several tasks, then? And how would it be with GPT-2?

An example is a task's name, a source and a target, as `("sentiment", [17, 4], [9])`. `names` has for each task the ids
that tell the model what to do, as those of *"sentiment:"*.
"""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def collate(examples, names, pad, start, eos):
    """A batch for an encoder and a decoder.

    Args:
        examples: list of B tuples (task, source, target): a str and two lists of ids, of any lengths from 1.
        names: dict from a task to a list of ids.
        pad: id of padding. start: id that the decoder is given first; it may be the same as ``pad``, as in T5.
        eos: id that ends a text.

    Returns:
        dict of tensors:
        "inputs": integers (B, S): name, source, eos, then padding.
        "mask": booleans (B, S), True where the input is no padding.
        "shifted": integers (B, T), what the decoder is given: start, target, then padding.
        "labels": integers (B, T), what it has to say: target, eos, then -100.
    """
    ### BEGIN SOLUTION
    inputs = [names[task] + source + [eos] for task, source, _ in examples]
    shifted = [[start, *target] for _, _, target in examples]
    labels = [[*target, eos] for _, _, target in examples]
    S, T = max(map(len, inputs)), max(map(len, labels))
    return {
        "inputs": torch.tensor([row + [pad] * (S - len(row)) for row in inputs]),
        "mask": torch.tensor([[True] * len(row) + [False] * (S - len(row)) for row in inputs]),
        "shifted": torch.tensor([row + [pad] * (T - len(row)) for row in shifted]),
        "labels": torch.tensor([row + [-100] * (T - len(row)) for row in labels]),
    }
    ### END SOLUTION


def by_torch(examples, names, pad, start, eos):
    def padded(rows, value):
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, value)

    inputs = padded([[*names[task], *source, eos] for task, source, _ in examples], pad)
    labels = padded([[*target, eos] for *_, target in examples], -100)
    shifted = F.pad(labels[:, :-1], (1, 0), value=start)
    # behind the end nothing is asked: there the end itself goes, and is not needed
    ended = (labels == -100) | (shifted == -100)
    lengths = torch.tensor([len(names[task]) + len(source) + 1 for task, source, _ in examples])
    return {
        "inputs": inputs,
        "mask": torch.arange(inputs.shape[1]) < lengths[:, None],
        "shifted": shifted.masked_fill(ended, pad),
        "labels": labels,
    }


# mistakes of the first part


def _changed(batch, **fields):
    return {**batch, **fields}


def one_length(examples, names, pad, start, eos):
    """Inputs and targets are brought to one and the same length."""
    batch = collate(examples, names, pad, start, eos)
    longest = max(batch["inputs"].shape[1], batch["labels"].shape[1])
    values = {"inputs": pad, "mask": False, "shifted": pad, "labels": -100}
    return {name: F.pad(x, (0, longest - x.shape[1]), value=values[name]) for name, x in batch.items()}


def padded_on_the_left(examples, names, pad, start, eos):
    batch = collate(examples, names, pad, start, eos)
    turns = (batch["inputs"].shape[1] - batch["mask"].sum(1)).tolist()
    turned = {
        name: torch.stack([row.roll(n) for row, n in zip(batch[name], turns, strict=True)])
        for name in ("inputs", "mask")
    }
    return _changed(batch, **turned)


def one_name(examples, names, pad, start, eos):
    return collate(examples, dict.fromkeys(names, names[examples[0][0]]), pad, start, eos)


def name_behind(examples, names, pad, start, eos):
    turned = [(task, names[task], target) for task, _, target in examples]
    batch = collate(turned, {task: [] for task in names}, pad, start, eos)
    rows = [source + names[task] for task, source, _ in examples]
    inputs = [row + [eos] + [pad] * (batch["inputs"].shape[1] - len(row) - 1) for row in rows]
    longest = max(map(len, inputs))
    inputs = torch.tensor(
        [[*row[: len(rows[b]) + 1], *[pad] * (longest - len(rows[b]) - 1)] for b, row in enumerate(inputs)]
    )
    return _changed(batch, inputs=inputs, mask=inputs != pad)


def end_in_the_decoder(examples, names, pad, start, eos):
    batch = collate(examples, names, pad, start, eos)
    longer = F.pad(batch["shifted"], (0, 1), value=pad)
    longer[torch.arange(len(longer)), [1 + len(target) for *_, target in examples]] = eos
    return _changed(batch, shifted=longer)


def ends_not_asked(examples, names, pad, start, eos):
    batch = collate(examples, names, pad, start, eos)
    return _changed(batch, labels=batch["labels"].masked_fill(batch["labels"] == eos, -100))


def end_of_short_targets_stays(examples, names, pad, start, eos):
    """The labels, one place later, with padding where they had none."""
    batch = collate(examples, names, pad, start, eos)
    shifted = F.pad(batch["labels"][:, :-1], (1, 0), value=start)
    return _changed(batch, shifted=shifted.masked_fill(shifted == -100, pad))


def found_by_id(examples, names, pad, start, eos):
    """Labels are made from what the decoder is given: where that is padding, nothing is asked."""
    batch = collate(examples, names, pad, start, eos)
    labels = torch.where(batch["shifted"] == pad, -100, batch["labels"])
    return _changed(batch, labels=labels)


def mixed_loss(logits, labels, tasks, weights):
    """The weighted sum of the losses of the tasks.

    Args:
        logits: (B, T, V).
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


# mistakes of the second part


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


def shifted_again(logits, labels, tasks, weights):
    return mixed_loss(logits[:, :-1], labels[:, 1:], tasks, weights)


def not_asked_is_token_0(logits, labels, tasks, weights):
    return mixed_loss(logits, labels.clamp(min=0), tasks, weights)


def collate_causal(examples, names, pad, eos):
    """A batch for a decoder alone: name, source and target are one sequence.

    Args:
        examples, names: as in the first part.
        pad: id that fills up; GPT-2 has none, and takes ``eos`` for it.
        eos: id that ends a text.

    Returns:
        dict of tensors:
        "inputs": integers (B, T): name, source, target, then ``pad``.
        "labels": integers (B, T): at each place the token that comes next, if it belongs to the target or is the eos
        after it; -100 elsewhere.
    """
    ### BEGIN SOLUTION
    inputs, labels = [], []
    for task, source, target in examples:
        prompt = names[task] + source
        inputs.append(prompt + target)
        labels.append([-100] * (len(prompt) - 1) + target + [eos])  # the last token of the prompt says the first
    T = max(map(len, inputs))
    return {
        "inputs": torch.tensor([row + [pad] * (T - len(row)) for row in inputs]),
        "labels": torch.tensor([row + [-100] * (T - len(row)) for row in labels]),
    }
    ### END SOLUTION


def by_shifting(examples, names, pad, eos):
    rows = [[*names[task], *source, *target, eos] for task, source, target in examples]
    text = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, pad)  # (B, T + 1)
    ends = torch.tensor([len(row) for row in rows])[:, None]
    starts = ends - 1 - torch.tensor([len(target) for *_, target in examples])[:, None]
    places = torch.arange(1, text.shape[1])
    labels = text[:, 1:].masked_fill((places < starts) | (places >= ends), -100)
    return {"inputs": text[:, :-1].masked_fill(places > ends - 1, pad), "labels": labels}


# mistakes of the third part


def eos_taken_for_padding(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    return _changed(batch, labels=batch["labels"].masked_fill(batch["labels"] == pad, -100))


def loss_on_everything(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    following = F.pad(batch["inputs"][:, 1:], (0, 1), value=-100)
    for row, (task, source, target) in zip(following, examples, strict=True):
        end = len(names[task]) + len(source) + len(target) - 1
        row[end], row[end + 1 :] = eos, -100
    return _changed(batch, labels=following)


def loss_on_source(examples, names, pad, eos):
    """All but the task's name is to be learned."""
    moved = [(task, source[:1], source[1:] + target) for task, source, target in examples]
    return collate_causal(moved, names, pad, eos)


def not_shifted(examples, names, pad, eos):
    """The label is the token itself, for a model that shifts by itself."""
    batch = collate_causal(examples, names, pad, eos)
    labels = torch.full_like(batch["labels"], -100)
    for row, (task, source, target) in zip(labels, examples, strict=True):
        first = len(names[task]) + len(source)
        row[first : first + len(target)] = torch.tensor(target)
    return _changed(batch, labels=labels)


def first_not_asked(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    labels = batch["labels"].clone()
    for row, (task, source, _) in zip(labels, examples, strict=True):
        row[len(names[task]) + len(source) - 1] = -100
    return _changed(batch, labels=labels)


def end_not_asked(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    labels = batch["labels"].clone()
    for row, (task, source, target) in zip(labels, examples, strict=True):
        row[len(names[task]) + len(source) + len(target) - 1] = -100
    return _changed(batch, labels=labels)


def one_too_far(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    return _changed(batch, labels=F.pad(batch["labels"][:, 1:], (0, 1), value=-100))


def padding_asked(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    labels = batch["labels"].clone()
    for row, (task, source, target) in zip(labels, examples, strict=True):
        row[len(names[task]) + len(source) + len(target) :] = pad
    return _changed(batch, labels=labels)


def causal_on_the_left(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    T = batch["inputs"].shape[1]
    turns = [T - len(names[task]) - len(source) - len(target) for task, source, target in examples]
    return {name: torch.stack([row.roll(n) for row, n in zip(x, turns, strict=True)]) for name, x in batch.items()}


def prompts_alone(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    inputs = batch["inputs"].clone()
    for row, (task, source, _) in zip(inputs, examples, strict=True):
        row[len(names[task]) + len(source) :] = pad
    return _changed(batch, inputs=inputs)


FULL = 48  # no row is longer


def _examples(t, eos, special):
    """Examples of three tasks with sources and targets of different lengths, the longest input with a short target."""
    words = [i for i in range(60) if i not in {eos, *special}]
    sizes = t.random.sample(range(1, 5), 3)
    names = {
        task: t.random.sample(words, n) for task, n in zip(("translate", "sentiment", "shorten"), sizes, strict=True)
    }
    lengths = [("translate", 7, 8), ("sentiment", 6, 1), ("shorten", 15, 4), ("sentiment", 3, 1), ("translate", 2, 3)]
    lengths += [(t.random.choice(list(names)), t.random.randrange(4, 10), t.random.randrange(2, 7))]
    first, *others = lengths
    t.random.shuffle(others)
    lengths = [first, *others]
    return [(task, t.random.choices(words, k=n), t.random.choices(words, k=m)) for task, n, m in lengths], names


def _same(t, got, rows, fill, name):
    """Compares rows that may be too short or too long: all are filled up, so that a mistake can be told."""
    longest = max(map(len, rows))
    want = torch.tensor([row + [fill] * (longest - len(row)) for row in rows])
    if isinstance(got, torch.Tensor):
        expected = f"expected two axes with {len(rows)} rows, one an example"
        fits = got.dim() == 2 and len(got) == len(rows)
        t.that(fits, "shape", f"{name} has shape {tuple(got.shape)}, {expected}")
        got = got.to(t.device)  # made of lists, it may be on any
        if want.dtype == torch.bool:
            t.same(got, want, name)
            return
        got = F.pad(got, (0, FULL - got.shape[1]), value=-1)
    t.same(got, F.pad(want, (0, FULL - longest), value=-1), f"{name} (with -1 behind its last column)")


def verify(t, answer):
    for case, alike in (("", False), (", with padding that is the start token", True)):
        pad, start, eos = t.random.sample(range(60), 3)
        start = pad if alike else start
        examples, names = _examples(t, eos, (pad, start))
        got = t.fields(t.call(answer, examples, names, pad, start, eos), "inputs", "mask", "shifted", "labels")
        inputs = [names[task] + source + [eos] for task, source, _ in examples]
        shifted = [[start, *target] for *_, target in examples]
        labels = [[*target, eos] for *_, target in examples]
        _same(t, got[0], inputs, pad, f"the field inputs{case}")
        _same(t, got[2], shifted, pad, f"the field shifted{case}")
        _same(t, got[3], labels, -100, f"the field labels{case}")
        _same(t, got[1], [[True] * len(row) for row in inputs], False, f"the field mask{case}")


def verify_loss(t, answer):
    B, T, V = 9, *t.sizes(2, 6, 11)
    for case in ("of four tasks", "where a task does not occur", "where a task has no label"):
        K = 4
        absent = t.random.randrange(K - 1) if "does not" in case else None
        present = [k for k in range(K) if k != absent]
        tasks = [*present, *t.random.choices(present, k=B - len(present))]
        t.random.shuffle(tasks)
        numbers = [1 + (3 * k + b) % (T - 1) for b, k in enumerate(tasks)]  # labels of each example
        numbers[0] = T
        if "no label" in case:
            empty = tasks[1] if tasks[1] != tasks[0] else (tasks[0] + 1) % K
            numbers = [0 if k == empty else n for k, n in zip(tasks, numbers, strict=True)]
        logits, labels = t.randn(B, T, V, scale=2.0), t.integers(0, V, B, T)
        labels[torch.arange(T, device=t.device) >= torch.tensor(numbers, device=t.device)[:, None]] = -100
        weights = t.rand(K, low=0.2, high=2.0)
        wide = logits.cpu().double().requires_grad_()
        want = 0.0
        for k in range(K):
            found = [
                -wide[b, i].log_softmax(0)[labels[b, i]] for b in range(B) for i in range(numbers[b]) if tasks[b] == k
            ]
            if found:
                want = want + weights[k].item() * sum(found) / len(found)
        (slope,) = torch.autograd.grad(want, wide)
        got = t.call(answer, logits.requires_grad_(), labels, torch.tensor(tasks, device=t.device), weights)
        t.same(got, want.detach(), f"the loss of a batch {case}")
        t.same(t.gradient(got, 0), slope, f"the gradient of a batch {case}")


def verify_causal(t, answer):
    for case, alike in (("", False), (", filled up with eos", True)):
        pad, eos = t.random.sample(range(60), 2)
        pad = eos if alike else pad
        examples, names = _examples(t, eos, (pad,))
        inputs, labels = t.fields(t.call(answer, examples, names, pad, eos), "inputs", "labels")
        texts = [(names[task] + source, target) for task, source, target in examples]
        _same(t, inputs, [prompt + target for prompt, target in texts], pad, f"the field inputs{case}")
        wanted = [[-100] * len(prompt[1:]) + [*target, eos] for prompt, target in texts]
        _same(t, labels, wanted, -100, f"the field labels{case}")


MUTANTS_B = [
    Mutant("no-name", ("names[task] + source + [eos]", "source + [eos]"), "the inputs do not say which task it is: the "
        "name comes first"),
    Mutant("one-name", one_name, "all inputs have the name of the first example's task"),
    Mutant("name-behind", name_behind, "the name stands behind the source: it comes first"),
    Mutant("input-eos", ("names[task] + source + [eos]", "names[task] + source"), "the inputs have no eos"),
    Mutant("shifted-eos", end_in_the_decoder, "the decoder is given the eos, too: after it nothing is asked, and no "
        "label belongs to it"),
    Mutant("short-eos", end_of_short_targets_stays, "the decoder is given the eos of all but the longest targets: the "
        "labels were moved by one place with what fills them up"),
    Mutant("no-start", ("[[start, *target] for", "[[*target, eos] for"), "the decoder is given what it has to say: the "
        "targets come one place later, behind the start token"),
    Mutant("start-eos", ("[start, *target]", "[eos, *target]"), "the decoder begins with eos: it begins with the start "
        "token"),
    Mutant("labels-eos", ends_not_asked, "nothing in the labels says that the target ends: the model would never learn "
        "to stop"),
    Mutant("labels-shifted", ("labels = [[*target, eos] for", "labels = [[start, *target] for"), "the labels are what "
        "the decoder is given: it has to say the token *after* each"),
    Mutant("padding-labels", ("row + [-100] * (T - len(row)) for row in labels",
        "row + [pad] * (T - len(row)) for row in labels"), "padding has labels: the model would learn to write "
        "padding, and short targets count more"),
    Mutant("eos-labels", ("row + [-100] * (T - len(row)) for row in labels",
        "row + [eos] * (T - len(row)) for row in labels"), "behind its end a target goes on with eos: nothing is asked "
        "there"),
    Mutant("shifted-100", ("row + [pad] * (T - len(row)) for row in shifted",
        "row + [-100] * (T - len(row)) for row in shifted"), "-100 is no id of a token, and an embedding cannot look "
        "it up: it is for labels alone"),
    Mutant("mask-eos", ("[[True] * len(row) + [False] * (S - len(row))",
        "[[True] * (len(row) - 1) + [False] * (S - len(row) + 1)"), "the eos of the input is masked: it is no padding"),
    Mutant("mask-turned", ("[[True] * len(row) + [False] * (S - len(row))",
        "[[False] * len(row) + [True] * (S - len(row))"), "the mask is turned around: True is at what is no padding"),
    Mutant("left", padded_on_the_left, "the inputs are padded on the left; here padding comes last"),
    Mutant("one-length", one_length, "inputs and targets are filled up to one and the same length: each to its own "
        "longest"),
    Mutant("by-id", found_by_id, "labels are left out where the decoder is given the id of padding; but that is its "
        "start token, too, so that the first token of each target is never learned"),
    Mutant("shape", ('        "mask": torch', '        "masks": torch')),  # no mask
    Mutant("dtype", ("[True] * len(row) + [False]", "[1] * len(row) + [0]")),  # mask of numbers
    Mutant("mutates", ("inputs = [names", "[names[k].append(eos) for k in names]; inputs = [names")),  # names grow
]  # fmt: skip

MUTANTS_C = [
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
    Mutant("sign", ("return (weights", "return -(weights"), "the sign is turned: it is a loss, above 0"),
    Mutant("nonfinite", (".clamp(min=1)", "")),  # tasks without labels
    Mutant("nonfinite", empty_tasks_are_nan),
    Mutant("shape", (".clamp(min=1)).sum()", ".clamp(min=1))")),  # for each task
]  # fmt: skip

MUTANTS_D = [
    Mutant("everything", loss_on_everything, "names and sources are to be learned, too: nothing is asked for until the "
        "target begins"),
    Mutant("sources", loss_on_source, "sources are to be learned, too: nothing is asked for until the target begins"),
    Mutant("not-shifted", not_shifted, "the label is the token at the same place: it is the one that comes next. (Some "
        "libraries shift inside of the model; here the batch does.)"),
    Mutant("first", first_not_asked, "the first token of the target is not asked for: the last place of the prompt "
        "says it"),
    Mutant("end", end_not_asked, "the eos is not asked for: the model would never learn to stop"),
    Mutant("eos-is-pad", eos_taken_for_padding, "the eos is not asked for where padding has the same id: look at the "
        "lengths, not at ids"),
    Mutant("too-far", one_too_far, "labels stand one place too early: they tell of the token after the next"),
    Mutant("padding", padding_asked, "padding is asked for behind the end"),
    Mutant("left", causal_on_the_left, "texts are padded on the left: on the right a causal model needs no mask, for "
        "no token sees what comes after it"),
    Mutant("eos-in", ("inputs.append(prompt + target)", "inputs.append(prompt + target + [eos])"),
        "the inputs have the eos, too: it is asked for, and nothing comes after it"),
    Mutant("no-target", prompts_alone, "the targets are missing in the inputs: without an encoder one sequence holds "
        "both"),
    Mutant("no-name", ("prompt = names[task] + source", "prompt = source"), "the inputs do not say which task it is: "
        "the name comes first"),
    Mutant("minus-100", ("row + [pad]", "row + [-100]"), "-100 is no id of a token, and an embedding cannot look it "
        "up: it is for labels alone"),
    Mutant("type", ("    return {", "    return torch.tensor([[0]]) if True else {")),  # inputs alone
    Mutant("mutates", ("prompt = names[task] + source", "prompt = names[task]; prompt += source")),  # grown in place
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.9.1",
    doc=__doc__,
    source="D2L 11.9, exercise 1",
    parts=[
        Choice(
            key="d2l-11.9.1a",
            prompt="Can T5 be fine-tuned with minibatches that hold examples of several tasks?",
            hints=["What differs between the tasks: the layers, the loss, or the texts alone?"],
            options=[
                Option(
                    "No: a batch needs one loss, and each task has its own.",
                    "Each task *is* text to text here, and the loss is the cross-entropy of the target's tokens for "
                    "all of them.",
                ),
                Option(
                    "Only if all their inputs are of the same length, and so are their targets.",
                    "Padding evens out lengths, within a task as between tasks. It costs time where lengths differ "
                    "much, and that is all.",
                ),
                Option(
                    "Yes: the input says which task it is, and weights, outputs and loss are the same for all. But how "
                    "much each task counts must be decided.",
                    "An average over all labels of the batch lets the task with the long targets count most: one of "
                    "200 tokens as much as 200 judgements of one token. Hence the proportions of the mixture, or a "
                    "weight for each task, as in part c. GPT-2 can do it, too (part d).",
                    right=True,
                ),
                Option(
                    "Yes, if each task gets a last layer of its own.",
                    "That would be needed for BERT, whose heads differ. A decoder that writes text needs none.",
                ),
                Option(
                    "T5 can, but GPT-2 cannot: it has no encoder to read which task it is.",
                    "GPT-2 reads the task in the same sequence in which it then writes. It takes care with the labels, "
                    "that is all.",
                ),
            ],
        ),
        Code(
            key="d2l-11.9.1b",
            prompt="Write `collate(examples, names, pad, start, eos)`, which makes one batch of examples of several "
            "tasks.",
            hints=[
                "Make four lists of lists first, without padding. What has to be as long as what?",
                "`shifted` and `labels` are of one length: start + target against target + eos.",
                "Fill up each row on its right: inputs and shifted targets with `pad`, labels with -100, the mask with "
                "False. Use the lengths, do not look for ids.",
            ],
            answer=collate,
            verify=verify,
            alternatives=[by_torch],
            min_checks=8,
            mutants=MUTANTS_B,
            advice={
                "mutates": "`+=` and `append` change a list in place: `a + b` makes a new one.",
                "values": "Write out by hand the row that is named: which ids belong there, and what comes behind "
                "them?",
            },
            explanation="""
Nothing in the batch says how many tasks there are, and nothing in the model needs to. That is the point of text to
text: what tells the tasks apart is data. One thing remains for the batch: examples of very different lengths in one
batch waste time on padding; so one draws batches of like lengths, or packs several examples into a row.
""",
        ),
        Code(
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
                "nonfinite": "The mean over no labels is 0 / 0. A task without labels in the batch adds nothing.",
                "raised": "-100 is no class: `F.cross_entropy` leaves it out by itself; to look up a probability with "
                "it fails.",
            },
            mutants=MUTANTS_C,
            explanation=r"""
With $w_k = n_k / n$, the share of task k among the labels, it is the plain mean again. So the plain mean is one choice
of weights, which nobody made, and which changes from batch to batch. The other way to decide is to leave the loss as
it is and to choose how often each task is drawn: T5 draws in proportion to the number of examples, up to a limit
(Raffel et al. 2020, section 3.5.2).
""",
        ),
        Code(
            key="d2l-11.9.1d",
            prompt="GPT-2 has no encoder: name, source and target are one sequence. It shall learn to write the "
            "target and the end, and not to write sources. Write `collate_causal(examples, names, pad, eos)`.",
            hints=[
                "At which place is the first token of the target predicted?",
                "With a prompt (name and source) of P tokens the labels begin with P - 1 times -100.",
                "Which labels are asked must come from the lengths: if `pad` is the eos, its id tells nothing.",
            ],
            answer=collate_causal,
            verify=verify_causal,
            alternatives=[by_shifting],
            mutants=MUTANTS_D,
            advice={
                "mutates": "`+=` and `append` change a list in place: `a + b` makes a new one.",
                "values": "Write out by hand the row that is named: which ids belong there, and what comes behind "
                "them?",
            },
            explanation="""
So a decoder alone learns several tasks as well, as GPT-2's authors and all who followed them showed. Two things differ.
The labels must say where the task ends and the answer begins; in an encoder and a decoder the architecture says it. And
the input is read with a causal mask: what can be done about that is exercise `d2l-11.9.4`.
""",
        ),
    ],
)
