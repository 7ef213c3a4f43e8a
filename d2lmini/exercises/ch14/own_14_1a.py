"""Part a of own-14.1, "Spans behind sentinels": `corrupt`."""

import itertools

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


def corrupt(tokens, noise, sentinels):
    """Take the noise out of a text.

    Args:
        tokens: integers (T,), at least one, none of them a sentinel.
        noise: booleans (T,), True at what is taken out; all, some or no tokens.
        sentinels: integers (K,), more of them than there are spans. The first stands for the first span.

    Returns:
        inputs: integers, what is left, a sentinel in place of each span.
        targets: integers, each sentinel and its span, and last the sentinel after those used.
    """
    ### BEGIN SOLUTION
    inputs, targets, used = [], [], 0
    before = False  # whether the token before was noise
    for token, hidden in zip(tokens.tolist(), noise.tolist(), strict=True):
        if hidden and not before:
            mark = int(sentinels[used])
            inputs.append(mark)
            targets.append(mark)
            used += 1
        (targets if hidden else inputs).append(token)
        before = hidden
    targets.append(int(sentinels[used]))
    return tuple(torch.tensor(ids, dtype=tokens.dtype, device=tokens.device) for ids in (inputs, targets))
    ### END SOLUTION


def by_masks(tokens, noise, sentinels):
    """A sentinel in front of each token, of which few are kept."""
    starts = noise & ~torch.cat([noise.new_zeros(1), noise[:-1]])
    number = starts.cumsum(0)
    pairs = torch.stack([sentinels[(number - 1).clamp(min=0)], tokens], 1)
    inputs = pairs[torch.stack([starts, ~noise], 1)]
    targets = pairs[torch.stack([starts, noise], 1)]
    return inputs, torch.cat([targets, sentinels[starts.sum()][None]])


def by_groups(tokens, noise, sentinels):
    inputs, targets, left = [], [], iter(sentinels.tolist())
    for hidden, group in itertools.groupby(zip(tokens.tolist(), noise.tolist(), strict=True), key=lambda pair: pair[1]):
        span = [token for token, _ in group]
        if hidden:
            mark = next(left)
            inputs, targets = [*inputs, mark], [*targets, mark, *span]
        else:
            inputs += span
    return torch.tensor(inputs, device=tokens.device).long(), torch.tensor([*targets, next(left)], device=tokens.device)


def by_the_package(tokens, noise, sentinels):
    corrupted = d2l.corrupt_spans(tokens[None], noise[None], sentinels)
    return corrupted.inputs[0], corrupted.targets[0]


# mistakes


def _each_token(tokens, noise, sentinels):
    left = iter(sentinels.tolist())
    marks = [next(left) if hidden else None for hidden in noise.tolist()]
    inputs = [token if mark is None else mark for token, mark in zip(tokens.tolist(), marks, strict=True)]
    targets = [x for token, mark in zip(tokens.tolist(), marks, strict=True) if mark is not None for x in (mark, token)]
    return torch.tensor(inputs), torch.tensor([*targets, next(left)])


def masked_as_bert(tokens, noise, sentinels):
    inputs = corrupt(tokens, noise, sentinels)[0]
    starts = noise & ~torch.cat([noise.new_zeros(1), noise[:-1]])
    longer = torch.where(noise, sentinels[(starts.cumsum(0) - 1).clamp(min=0)], tokens)
    return longer if bool(noise.any()) else inputs, corrupt(tokens, noise, sentinels)[1]


def whole_text_as_target(tokens, noise, sentinels):
    return corrupt(tokens, noise, sentinels)[0], tokens.clone()


def sentinel_after_each_span(tokens, noise, sentinels, closing=True):
    ends = noise & ~torch.cat([noise[1:], noise.new_zeros(1)])
    number = (ends.cumsum(0) - 1).clamp(min=0)
    targets = torch.stack([tokens, sentinels[number]], 1)[torch.stack([noise, ends], 1)]
    last = sentinels[ends.sum()][None] if closing else targets[:0]
    return corrupt(tokens, noise, sentinels)[0], torch.cat([targets, last])


def behind_and_not_closed(tokens, noise, sentinels):
    return sentinel_after_each_span(tokens, noise, sentinels, closing=False)


def noise_stays(tokens, noise, sentinels):
    """A sentinel stands in front of each span, which stays."""
    starts = noise & ~torch.cat([noise.new_zeros(1), noise[:-1]])
    marks = sentinels[(starts.cumsum(0) - 1).clamp(min=0)]
    inputs = torch.stack([marks, tokens], 1)[torch.stack([starts, torch.ones_like(noise)], 1)]
    return inputs, corrupt(tokens, noise, sentinels)[1]


def before_the_first_comes_the_last(tokens, noise, sentinels):
    """`noise[i - 1]` at i = 0."""
    inputs, targets, used = [], [], 0
    for i, (token, hidden) in enumerate(zip(tokens.tolist(), noise.tolist(), strict=True)):
        if hidden and not noise[i - 1]:
            inputs.append(int(sentinels[used]))
            targets.append(int(sentinels[used]))
            used += 1
        (targets if hidden else inputs).append(token)
    return torch.tensor(inputs).long(), torch.tensor([*targets, int(sentinels[used])])


def last_of_all_closes(tokens, noise, sentinels):
    inputs, targets = corrupt(tokens, noise, sentinels)
    return inputs, torch.cat([targets[:-1], sentinels[-1:]])


def first_closes(tokens, noise, sentinels):
    inputs, targets = corrupt(tokens, noise, sentinels)
    return inputs, torch.cat([targets[:-1], sentinels[:1]])


def last_used_closes(tokens, noise, sentinels):
    inputs, targets = corrupt(tokens, noise, sentinels)
    used = torch.isin(inputs, sentinels).sum()
    return inputs, torch.cat([targets[:-1], sentinels[(used - 1).clamp(min=0)][None]])


def exchanged(tokens, noise, sentinels):
    inputs, targets = corrupt(tokens, noise, sentinels)
    return targets, inputs


FULL = 64  # more than any of the texts has
FILL = -999  # far from every id


def _same(t, got, want, name):
    """Compares sequences of which the lengths may differ: both are filled up, so that a mistake can be told."""
    if isinstance(got, torch.Tensor):
        shape = f"{name} has shape {tuple(got.shape)}, expected one axis: ids, one after the other"
        t.that(got.dim() == 1, "shape", shape)
        got = torch.nn.functional.pad(got, (0, FULL - len(got)), value=FILL)
    want = torch.tensor(want + [FILL] * (FULL - len(want)))
    t.same(got, want, f"{name} (filled up to {FULL})")


def _verify_pair(t, got, want, name):
    inputs, targets = t.unpack(got, "inputs", "targets")
    _same(t, inputs, want[0], f"the input of a text {name}")
    _same(t, targets, want[1], f"the target of a text {name}")


def _text(t, flags):
    """A text, its noise, sentinels, and what `corrupt` makes of it, by way of strings."""
    spans = list(_spans(flags))
    ids = t.random.sample(range(1, 1000), 60)
    text = ids[12 : 12 + len(flags)]
    text[len(text) // 2], text[1] = 0, text[-1]  # 0 is an id like any other, and a token may come again
    for first, after in spans:
        if after > first + 1:
            text[first + 1] = text[first]  # at once, too
    sentinels = ids[: len(spans) + 1 if len(text) == 5 else 12]  # to some texts just as many as they take
    inputs, targets, end = [], [], 0
    for number, (first, after) in enumerate(spans):
        inputs += [*text[end:first], sentinels[number]]
        targets += [sentinels[number], *text[first:after]]
        end = after
    return text, sentinels, [*inputs, *text[end:]], [*targets, sentinels[len(spans)]]


def _spans(flags):
    edges = [i for i, (a, b) in enumerate(itertools.pairwise([0, *flags, 0])) if a != b]
    return zip(edges[::2], edges[1::2], strict=True)


def _cases(t):
    """Names and noise: spans of different lengths inside, at both ends, none, all."""
    first, second = t.random.sample(range(2, 5), 2)
    gap = t.random.randrange(1, 4)
    inside = [*[0] * gap, *[1] * first, 0, 0, 1, 0, *[1] * second, *[0] * (4 - gap)]
    ends = [*[1] * second, *[0] * gap, 1, 0, 0, *[1] * first]
    yield "with three spans inside", inside
    yield "that begins and ends with noise", ends
    yield "like D2L's sentence", [0, 1, 0, 1, 0]
    yield "without noise", [0] * (gap + 3)
    yield "of noise alone", [1] * (gap + 2)


def verify(t, answer):
    for name, flags in _cases(t):
        text, sentinels, *want = _text(t, flags)
        given = (torch.tensor(ids, device=t.device) for ids in (text, sentinels))
        tokens, sentinels = given
        noise = torch.tensor(flags, device=t.device).bool()
        _verify_pair(t, t.call(answer, tokens, noise, sentinels), want, name)


MUTANTS = [
    Mutant("each-token", _each_token, "each token of noise has a sentinel of its own: neighbours are one span"),
    Mutant("not-closed", ("    targets.append(int(sentinels[used]))\n", ""), "the sentinel that closes the target is "
        "missing"),
    Mutant("not-closed-alone", ("    targets.append(int", "    if used: targets.append(int"),
        "without noise the target is not empty: the first sentinel says that nothing follows"),
    Mutant("input-closed", ("    targets.append(int(sentinels[used]))\n",
        "    targets.append(int(sentinels[used]))\n    inputs.append(targets[-1])\n"), "the input has the closing "
        "sentinel, too: it stands for no span of it"),
    Mutant("input-bare", ("            inputs.append(mark)\n", ""), "there are no sentinels in the input: nobody sees "
        "where something is missing"),
    Mutant("target-bare", ("            targets.append(mark)\n", ""), "there are no sentinels in front of the spans: "
        "nobody sees where one ends and the next begins"),
    Mutant("as-bert", masked_as_bert, "there is a sentinel for each token of noise: one for the whole span, so that "
        "the input gets shorter and tells nothing of its length"),
    Mutant("whole-text", whole_text_as_target, "the target is the whole text: it has the spans alone, each behind its "
        "sentinel"),
    Mutant("exchanged", exchanged, "input and target are exchanged, or `noise` is taken the other way round: it is "
        "True at what is taken out"),
    Mutant("exchanged", ("if hidden and not before", "if (hidden := not hidden) and not before"),
        "input and target are exchanged, or `noise` is taken the other way round: it is True at what is taken out"),
    Mutant("one-sentinel", ("            used += 1\n", ""), "the same sentinel stands for all spans: each has its own, "
        "or nobody could say which span goes where"),
    Mutant("second-first", ("mark = int(sentinels[used])", "mark = int(sentinels[used + 1])"), "the first span has the "
        "second sentinel: count from 0"),
    Mutant("from-the-last", ("mark = int(sentinels[used])", "mark = int(sentinels[-1 - used])"), "sentinels are taken "
        "from the end of the list: the first stands for the first span"),
    Mutant("sorted", ("inputs, targets, used = [], [], 0",
        "inputs, targets, used, sentinels = [], [], 0, sentinels.sort().values"), "sentinels are sorted by their ids: "
        "take them in the order in which they come"),
    Mutant("sorted", ("inputs, targets, used = [], [], 0",
        "inputs, targets, used, sentinels = [], [], 0, sentinels.sort(descending=True).values"), "sentinels are "
        "sorted by their ids: take them in the order in which they come"),
    Mutant("counted-on", ("mark = int(sentinels[used])", "mark = int(sentinels[0]) + used"), "the ids of sentinels are "
        "counted on from the first: take those of the list, in its order"),
    Mutant("counted-on", ("mark = int(sentinels[used])", "mark = int(sentinels[0]) - used"), "the ids of sentinels are "
        "counted on from the first: take those of the list, in its order"),
    Mutant("numbers", ("mark = int(sentinels[used])", "mark = used"), "spans are marked by 0, 1, 2, ...: these are ids "
        "of ordinary tokens; the sentinels have theirs"),
    Mutant("closed-by-last", last_of_all_closes, "the last of all sentinels closes the target: it is the one after "
        "those used"),
    Mutant("closed-by-used", last_used_closes, "the sentinel of the last span closes the target as well: it is the "
        "next one, which stands nowhere else"),
    Mutant("closed-by-first", first_closes, "the first sentinel closes the target: it is the one after those used"),
    Mutant("behind", sentinel_after_each_span, "each sentinel stands behind its span: in the target it comes first, so "
        "that the model says which gap it fills"),
    Mutant("behind", behind_and_not_closed, "each sentinel stands behind its span: in the target it comes first, so "
        "that the model says which gap it fills"),
    Mutant("noise-stays", noise_stays, "the noise is still in the input, behind its sentinel"),
    Mutant("wrapped", before_the_first_comes_the_last, "a span at the very beginning gets no sentinel: in front of the "
        "first token nothing is noise (and `noise[-1]` is the last one)"),
    Mutant("id-0", ("inputs).append(token)", "inputs).extend([token] * (token > 0))"), "the token with the id 0 is "
        "lost: it is a token like any other, so mark what is to go in another way"),
    Mutant("looked-up", ("    for token, hidden in zip(tokens.tolist(), noise.tolist(), strict=True):\n",
        "    for token in tokens.tolist():\n        hidden = noise[tokens.tolist().index(token)].item()\n"),
        "a token that comes twice is taken for noise at both places or at none: go by places, not by ids"),
    Mutant("backwards", ("for ids in (inputs, targets)", "for ids in (inputs, targets[-2::-1] + targets[-1:])"),
        "the target is written backwards"),
    Mutant("dtype", ("dtype=tokens.dtype", "dtype=torch.float32")),  # numbers
]  # fmt: skip


PART = Code(
    key="own-14.1a",
    prompt="Write `corrupt(tokens, noise, sentinels)` for one text. Which tokens are noise is given, so that "
    "there is one right result.",
    hints=[
        "Go through the text token by token. When does a new span begin?",
        "Where a token is noise and the one before it is not, both lists get the next sentinel. Then the token "
        "itself goes into one of the two.",
        "At the end the target gets one sentinel more, also if there was no noise at all.",
    ],
    answer=corrupt,
    verify=verify,
    alternatives=[by_masks, by_groups, by_the_package],
    min_checks=15,
    mutants=MUTANTS,
    advice={
        "values": "Count: the input has the tokens that are left and one sentinel a span; the target has the "
        "noise, one sentinel a span, and last the first sentinel that was not used, not an end token. "
        "Neighbouring tokens of noise are one span, and the same token may come twice. "
        "The list of sentinels is used from its first on, in its own order."
    },
    explanation="""
Both together are little longer than the text: with 15 % of noise in spans of three tokens, a text of 512 tokens becomes
an input of 461 and a target of 104. BERT's input is as long as the text, and most of what it computes is not asked
about. D2L's text names the second sentinel as the first one; its figure is as above, and only so the spans can be told
apart.

`d2l.corrupt_spans` does this for a batch and without a loop, as the second solution does: in front of each token it
writes a sentinel, and then it keeps what is needed.
""",
)
