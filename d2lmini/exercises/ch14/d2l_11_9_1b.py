"""Part b of d2l-11.9.1, "Several tasks in one minibatch": `collate`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.engine import Code, Mutant


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


# mistakes


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


FULL = 640  # no row is longer


def _examples(t, eos, special):
    """Examples of three tasks with sources and targets of different lengths, the longest input with a short target."""
    words = [i for i in range(60) if i not in {eos, *special}]
    sizes = t.random.sample(range(1, 5), 3)
    names = {
        task: t.random.sample(words, n) for task, n in zip(("translate", "sentiment", "shorten"), sizes, strict=True)
    }
    lengths = [("translate", 7, 8), ("sentiment", 6, 1), ("shorten", 600, 4), ("sentiment", 3, 1), ("translate", 2, 3)]
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
    t.same(got, F.pad(want, (0, FULL - longest), value=-1), f"{name} (filled up with -1 to {FULL} columns)")


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


MUTANTS = [
    Mutant("no-name", ("names[task] + source + [eos]", "source + [eos]"), "the inputs do not say which task it is: the "
        "name comes first"),
    Mutant("one-name", one_name, "all inputs have the name of the first example's task"),
    Mutant("name-behind", name_behind, "the name stands behind the source: it comes first"),
    Mutant("input-start", ("names[task] + source + [eos]", "[start] + names[task] + source + [eos]"), "the inputs "
        "begin with the start token: that is the decoder's"),
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
    Mutant("zero-labels", ("row + [-100] * (T - len(row)) for row in labels",
        "row + [0] * (T - len(row)) for row in labels"), "behind its end a target goes on with label 0, which is a "
        "token like any other: nothing is asked there"),
    Mutant("eos-labels", ("row + [-100] * (T - len(row)) for row in labels",
        "row + [eos] * (T - len(row)) for row in labels"), "behind its end a target goes on with eos: nothing is asked "
        "there"),
    Mutant("shifted-100", ("row + [pad] * (T - len(row)) for row in shifted",
        "row + [-100] * (T - len(row)) for row in shifted"), "-100 is no id of a token, and an embedding cannot look "
        "it up: it is for labels alone"),
    Mutant("shifted-start", ("row + [pad] * (T - len(row)) for row in shifted",
        "row + [start] * (T - len(row)) for row in shifted"), "behind its end a target goes on with the start token: "
        "what fills up is `pad`"),
    Mutant("no-start", ("[start, *target] for", "[*target] for"), "the decoder is not given the start token: the "
        "targets come one place later, behind it"),
    Mutant("mask-eos", ("[[True] * len(row) + [False] * (S - len(row))",
        "[[True] * (len(row) - 1) + [False] * (S - len(row) + 1)"), "the eos of the input is masked: it is no padding"),
    Mutant("mask-all", ("[True] * len(row) + [False] * (S - len(row))", "[True] * S"), "the mask is True at padding, "
        "too, as that of the longest row may be: each row has its own"),
    Mutant("mask-turned", ("[[True] * len(row) + [False] * (S - len(row))",
        "[[False] * len(row) + [True] * (S - len(row))"), "the mask is turned around: True is at what is no padding"),
    Mutant("left", padded_on_the_left, "the inputs are padded on the left; here padding comes last"),
    Mutant("one-length", one_length, "inputs and targets are filled up to one and the same length: each to its own "
        "longest"),
    Mutant("by-id", found_by_id, "labels are left out where the decoder is given the id of padding; but that is its "
        "start token, too, so that the first token of each target is never learned"),
    Mutant("type", ('        "mask": torch', '        "masks": torch')),  # no mask
    Mutant("dtype", ("[True] * len(row) + [False]", "[1] * len(row) + [0]")),  # mask of numbers
    Mutant("mutates", ("inputs = [names", "[names[k].append(eos) for k in names]; inputs = [names")),  # names grow
]  # fmt: skip


PART = Code(
    key="d2l-11.9.1b",
    prompt="Write `collate(examples, names, pad, start, eos)`, which makes one batch of examples of several tasks.",
    hints=[
        "Make four lists of lists first, without padding. What has to be as long as what?",
        "`shifted` and `labels` are of one length: start + target against target + eos.",
        "Fill up each row on its right: inputs and shifted targets with `pad`, labels with -100, the mask with "
        "False. The length of each row says where.",
    ],
    answer=collate,
    verify=verify,
    alternatives=[by_torch],
    min_checks=8,
    mutants=MUTANTS,
    advice={
        "mutates": "`+=` and `append` change a list in place: `a + b` makes a new one.",
        "values": "Write out by hand a row that is wrong: which ids belong there, and what comes behind them?",
    },
    explanation="""
Nothing in the batch says how many tasks there are, and nothing in the model needs to. That is the point of text to
text: what tells the tasks apart is data. One thing remains for the batch: examples of very different lengths in one
batch waste time on padding; so one draws batches of like lengths, or packs several examples into a row.
""",
)
