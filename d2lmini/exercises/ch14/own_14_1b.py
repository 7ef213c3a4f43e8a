"""Part b of own-14.1, "Spans behind sentinels": `restore`."""

import torch

from d2lmini.exercises.ch14.own_14_1a import _cases, _same, _text
from d2lmini.exercises.engine import Code, Mutant


def restore(inputs, targets, sentinels):
    """Put the spans back.

    Args:
        inputs, targets: integers, as ``corrupt`` makes them; the sentinels of both need not be the first ones, nor in
            order.
        sentinels: integers (K,), the ids that are sentinels, in any order.

    Returns:
        Integers (T,), the text; it has at least one token.
    """
    ### BEGIN SOLUTION
    marks = set(sentinels.tolist())
    spans, current = {}, None
    for token in targets.tolist():
        if token in marks:
            current = spans[token] = []
        else:
            current.append(token)
    text = []
    for token in inputs.tolist():
        if token in marks:
            text += spans.get(token, [])
        else:
            text.append(token)
    return torch.tensor(text, dtype=inputs.dtype, device=inputs.device)
    ### END SOLUTION


def by_cutting(inputs, targets, sentinels):
    places = torch.isin(targets, sentinels).nonzero()[:, 0].tolist()
    pieces = []
    for token in inputs:
        if not torch.isin(token, sentinels):
            pieces.append(token[None])
            continue
        if token not in targets:
            continue
        at = int((targets == token).nonzero()[0, 0])
        after = next((p for p in places if p > at), len(targets))
        pieces.append(targets[at + 1 : after])
    return torch.cat([inputs[:0], *pieces])


def verify_back(t, answer):
    for name, flags in _cases(t):
        text, sentinels, inputs, targets = _text(t, flags)
        sentinels = [*sentinels[1:3], sentinels[0], *sentinels[3:]]  # none of the used ones where it was
        given = (torch.tensor(ids, device=t.device).long() for ids in (inputs, targets, sentinels))
        _same(t, t.call(answer, *given), text, f"the text {name}")
    # spans that a model has written, in an order of its own, and one more
    text, sentinels, inputs, _ = _text(t, [0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0])
    first, second, third, *others = sentinels
    pieces = [[third, *text[7:10]], [first, *text[1:3]], [others[0], 1001, 1002], [second, *text[4:5]]]
    given = (torch.tensor(ids, device=t.device) for ids in (inputs, [x for piece in pieces for x in piece], sentinels))
    _same(t, t.call(answer, *given), text, "the text from spans in another order")
    given = (torch.tensor(x, device=t.device) for x in (inputs, [*pieces[0], *pieces[1]], sentinels))
    _same(t, t.call(answer, *given), text[:4] + text[5:], "the text of which a span is missing")


# mistakes


def in_the_order_of_the_target(inputs, targets, sentinels):
    marks, spans = set(sentinels.tolist()), []
    for token in targets.tolist():
        if token in marks:
            spans.append([])
        else:
            spans[-1].append(token)
    left, text = iter(spans), []
    for token in inputs.tolist():
        text += next(left) if token in marks else [token]
    return torch.tensor(text)


def in_the_order_of_the_sentinels(inputs, targets, sentinels):
    """Takes the n-th sentinel of the list for the n-th gap."""
    marks, spans = set(sentinels.tolist()), {}
    for token in targets.tolist():
        if token in marks:
            current = spans[token] = []
        else:
            current.append(token)
    left, text = iter(sentinels.tolist()), []
    for token in inputs.tolist():
        text += spans.get(next(left), []) if token in marks else [token]
    return torch.tensor(text).long()


def only_one_token(inputs, targets, sentinels):
    text = []
    for token in inputs.tolist():
        if token in sentinels.tolist():
            text.append(int(targets[(targets == token).nonzero()[0, 0] + 1]))
        else:
            text.append(token)
    return torch.tensor(text)


def sentinels_kept(inputs, targets, sentinels):
    marks, spans = set(sentinels.tolist()), {}
    for token in targets.tolist():
        if token in marks:
            current = spans[token] = [token]
        else:
            current.append(token)
    return torch.tensor([x for token in inputs.tolist() for x in spans.get(token, [token])])


def gaps_left(inputs, targets, sentinels):
    return inputs[~torch.isin(inputs, sentinels)]


def spans_at_the_end(inputs, targets, sentinels):
    ids = torch.cat([inputs, targets])
    return ids[~torch.isin(ids, sentinels)]


def up_to_the_end(inputs, targets, sentinels):
    """A span goes on to the end of the target, sentinels left out."""
    text = []
    for token in inputs.tolist():
        if token in sentinels.tolist():
            rest = targets[int((targets == token).nonzero()[0, 0]) + 1 :]
            text += rest[~torch.isin(rest, sentinels)].tolist()
        else:
            text.append(token)
    return torch.tensor(text).long()


def last_span_lost(inputs, targets, sentinels):
    """What has no sentinel after it is not seen as a span."""
    marks, spans, current = set(sentinels.tolist()), {}, None
    for token in targets.tolist():
        if token in marks:
            if current:
                spans[current[0]] = current[1:]
            current = [token]
        else:
            current.append(token)
    return torch.tensor([x for token in inputs.tolist() for x in (spans.get(token, []) if token in marks else [token])])


def up_to_the_next_of_the_input(inputs, targets, sentinels):
    """Cuts at the sentinels of the input, in its order."""
    marks = [token for token in inputs.tolist() if token in sentinels.tolist()]
    ids, text = targets.tolist(), []
    for token in inputs.tolist():
        if token in marks:
            number = marks.index(token) + 1
            end = ids.index(marks[number]) if number < len(marks) else len(ids) - 1
            text += ids[ids.index(token) + 1 : end]
        else:
            text.append(token)
    return torch.tensor(text).long()


def span_in_front_of_its_sentinel(inputs, targets, sentinels):
    marks, spans, current = set(sentinels.tolist()), {}, []
    for token in targets.tolist():
        if token in marks:
            spans[token] = current
            current = []
        else:
            current.append(token)
    return torch.tensor(
        [x for token in inputs.tolist() for x in (spans.get(token, []) if token in marks else [token])]
    ).long()


def unasked_at_the_end(inputs, targets, sentinels):
    """Spans whose sentinel the input does not have are kept, too."""
    marks = [token for token in targets.tolist() if token in set(sentinels.tolist()) - set(inputs.tolist())]
    return restore(torch.cat([inputs, torch.tensor(marks).long()]), targets, sentinels)


def turned(inputs, targets, sentinels):
    marks, spans = set(sentinels.tolist()), {}
    for token in targets.tolist():
        if token in marks:
            current = spans[token] = []
        else:
            current.insert(0, token)
    return torch.tensor([x for token in inputs.tolist() for x in (spans[token] if token in marks else [token])])


def from_the_wrong_one(inputs, targets, sentinels):
    return restore(targets, inputs, sentinels)


MUTANTS = [
    Mutant("target-order", in_the_order_of_the_target, "spans are put in as they come in the target: each belongs to "
        "its sentinel"),
    Mutant("list-order", in_the_order_of_the_sentinels, "the n-th gap gets the span of the n-th sentinel in your list: "
        "look which sentinel stands in the gap"),
    Mutant("one-token", only_one_token, "a sentinel is replaced by one token: its span goes on to the next sentinel"),
    Mutant("kept", sentinels_kept, "sentinels are still in the text"),
    Mutant("gaps", gaps_left, "the spans are missing (a dict does not find a tensor again: `int(token)`)"),
    Mutant("to-the-end", up_to_the_end, "a span goes on to the end of the target: it ends at the next sentinel"),
    Mutant("input-order", up_to_the_next_of_the_input, "a span is cut off where the next sentinel of the *input* "
        "stands: it ends at the next one of the target, whichever that is"),
    Mutant("in-front", span_in_front_of_its_sentinel, "the tokens in *front* of a sentinel are taken for its span: "
        "they come after it"),
    Mutant("last-lost", last_span_lost, "spans at the end of the target are lost: the last one "
        "needs no sentinel behind it, and one that nobody asked for may stand before it"),
    Mutant("at-the-end", spans_at_the_end, "all spans stand at the end: each belongs where its sentinel stands"),
    Mutant("unasked", unasked_at_the_end, "a span that nobody asked for stands at the end of the text: the input has "
        "no gap for it, so leave it out"),
    Mutant("turned", turned, "the tokens of each span come in the wrong order"),
    Mutant("raised", from_the_wrong_one),
    Mutant("stays", ("spans.get(token, [])", "spans.get(token, [token])"), "a sentinel without a span is still in the "
        "text: it leaves nothing"),
    Mutant("dtype", ("dtype=inputs.dtype", "dtype=torch.float32")),  # numbers
]  # fmt: skip


PART = Code(
    key="own-14.1b",
    prompt="And the way back. A model may write the spans in another order, some that nobody asked for, and not "
    "all that were: write `restore(inputs, targets, sentinels)` so that each sentinel of the input finds its own span; "
    "one without a span leaves nothing.",
    hints=[
        "Read the target once and keep, for each sentinel, the tokens that follow it up to the next one.",
        "Then read the input: a sentinel is replaced by its span, all else stays.",
    ],
    answer=restore,
    verify=verify_back,
    alternatives=[by_cutting],
    min_checks=14,
    mutants=MUTANTS,
    advice={
        "raised": "If a sentinel is not found: input and target may each hold one that the other has not, the last "
        "span of a target may have none behind it, and a dict does not find a tensor again: `int(token)`.",
        "values": "The text has the ordinary tokens of the input, and those of the target that follow a "
        "sentinel of the input, each up to the next sentinel; and no sentinel at all. The list alone says what is a "
        "sentinel: its ids are in no order, and others may lie between them.",
    },
    explanation="""
That there is a way back shows that nothing of the text is lost, and it is the best test of the way there: whatever the
noise, `restore(*corrupt(tokens, noise, sentinels), sentinels)` must be the tokens again. It does not find everything,
for both may have the same fault: a closing sentinel that is missing, for one.
""",
)
