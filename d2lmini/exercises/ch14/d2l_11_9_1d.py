"""Part d of d2l-11.9.1, "Several tasks in one minibatch": `collate_causal`."""

import torch
from torch.nn import functional as F

from d2lmini.exercises.ch14.d2l_11_9_1b import _changed, _examples, _same
from d2lmini.exercises.engine import Code, Mutant


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


# mistakes


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


def end_of_short_texts_stays(examples, names, pad, eos):
    """One row with its end, cut into inputs and labels: only the longest loses its end."""
    batch, ends = (
        collate_causal(examples, names, pad, eos),
        [names[task] + source + target for task, source, target in examples],
    )
    longer = F.pad(batch["inputs"], (0, 1), value=pad)
    longer[torch.arange(len(ends)), [len(text) for text in ends]] = eos
    return _changed(batch, inputs=longer[:, :-1])


def prompts_alone(examples, names, pad, eos):
    batch = collate_causal(examples, names, pad, eos)
    inputs = batch["inputs"].clone()
    for row, (task, source, _) in zip(inputs, examples, strict=True):
        row[len(names[task]) + len(source) :] = pad
    return _changed(batch, inputs=inputs)


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


MUTANTS = [
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
    Mutant("short-eos", end_of_short_texts_stays, "the inputs of all but the longest text end with eos: cut it off "
        "from each"),
    Mutant("no-target", prompts_alone, "the targets are missing in the inputs: without an encoder one sequence holds "
        "both"),
    Mutant("no-name", ("prompt = names[task] + source", "prompt = source"), "the inputs do not say which task it is: "
        "the name comes first"),
    Mutant("name-behind", ("names[task] + source", "source + names[task]"), "the name stands behind the source: it "
        "comes first"),
    Mutant("eos-between", ("names[task] + source", "names[task] + source + [eos]"), "an eos stands between source and "
        "target: here the target follows the source at once"),
    Mutant("minus-100", ("row + [pad]", "row + [-100]"), "-100 is no id of a token, and an embedding cannot look it "
        "up: it is for labels alone"),
    Mutant("type", ("    return {", "    return torch.tensor([[0]]) if True else {")),  # inputs alone
    Mutant("mutates", ("prompt = names[task] + source", "prompt = names[task]; prompt += source")),  # grown in place
]  # fmt: skip


PART = Code(
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
    mutants=MUTANTS,
    advice={
        "mutates": "`+=` and `append` change a list in place: `a + b` makes a new one.",
        "values": "Write out by hand a row that is wrong, and below each id its label: where does the target begin, "
        "and where does it end? Count the places, and look for no id: any may come twice.",
    },
    explanation="""
So a decoder alone learns several tasks as well, as later models show. Two things differ. The labels must say where the
task ends and the answer begins; in an encoder and a decoder the architecture says it. And the input is read with a
causal mask: what can be done about that is exercise `d2l-11.9.4`.
""",
)
