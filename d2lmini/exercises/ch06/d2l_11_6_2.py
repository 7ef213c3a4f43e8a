r"""A learned position encoding

Sines are computed. Positions can also be *learned*: one vector of its own for each of the first `max_len` positions, a
parameter like any other, added to the embeddings.

Write the class `LearnedPositions(num_hiddens, max_len)`, an `nn.Module` with a single parameter: a table with an axis
of `max_len` and one of `num_hiddens`, in either order. Its `forward(X, offset=0)` takes embeddings (B, T, h) at the
positions `offset`, `offset + 1`, ... and returns them with the vectors of these positions added, (B, T, h). Where a
position is asked for that was never made, beyond the last or below 0, it raises `ValueError`; where it is beyond the
last, with a message that says in numbers what was asked for and how many positions there are. Write it with torch
alone, without the package's class.
"""

import re
from functools import partial

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant
from d2lmini.exercises.engine.provenance import Calls


class LearnedPositions(nn.Module):
    """Adds a learned vector for each position.

    Args:
        num_hiddens: h, features of an embedding.
        max_len: how many positions there are.
    """

    def __init__(self, num_hiddens, max_len):
        super().__init__()
        ### BEGIN SOLUTION
        self.P = nn.Parameter(0.02 * torch.randn(max_len, num_hiddens))
        ### END SOLUTION

    def forward(self, X, offset=0):
        """Embeddings X (B, T, h) at positions offset, offset + 1, ...; returns (B, T, h)."""
        ### BEGIN SOLUTION
        end = offset + X.shape[1]
        if offset < 0 or end > len(self.P):
            raise ValueError(f"positions {offset} to {end - 1} are asked for, but there are only {len(self.P)}")
        return X + self.P[offset:end]
        ### END SOLUTION


class WithEmbedding(nn.Module):
    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.table = nn.Embedding(max_len, num_hiddens)

    def forward(self, X, offset=0):
        positions = torch.arange(X.shape[1], device=X.device) + offset
        if offset < 0 or X.shape[1] + offset > self.table.num_embeddings:
            raise ValueError(
                f"offset {offset}, {X.shape[1] + offset} positions, but max_len is {self.table.num_embeddings}"
            )
        return self.table(positions) + X


class WithBatchDimension(nn.Module):
    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(1, max_len, num_hiddens))

    def forward(self, X, offset=0):
        if not 0 <= offset <= self.positions.shape[1] - X.shape[1]:
            raise ValueError(f"{X.shape[1]} positions from {offset} on do not fit into {self.positions.shape[1]}")
        return X + self.positions.narrow(1, offset, X.shape[1])


class Sines(WithEmbedding):
    """Nothing is learned."""

    def __init__(self, num_hiddens, max_len):
        nn.Module.__init__(self)
        angles = torch.arange(max_len)[:, None] * 10000 ** (-torch.arange(num_hiddens) / num_hiddens)
        self.register_buffer("P", angles.sin())

    def forward(self, X, offset=0):
        if X.shape[1] + offset > len(self.P):
            raise ValueError(f"{X.shape[1] + offset} positions, but max_len is {len(self.P)}")
        return X + self.P[offset : offset + X.shape[1]]


class ReLearned(WithBatchDimension):
    """A fresh parameter at each call."""

    def forward(self, X, offset=0):
        self.positions = nn.Parameter(torch.randn_like(self.positions))
        return super().forward(X, offset)


class WholeTable(WithBatchDimension):
    """The gradient of a stray term reaches all rows."""

    def forward(self, X, offset=0):
        return super().forward(X, offset) + 1e-12 * self.positions.sum()


class WrapsAround(WithEmbedding):
    """Past the end it begins again."""

    def forward(self, X, offset=0):
        positions = torch.arange(X.shape[1], device=X.device) + offset
        return self.table(positions % self.table.num_embeddings) + X


class AxesTurned(nn.Module):
    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.columns = nn.Parameter(torch.rand(num_hiddens, max_len))

    def forward(self, X, offset=0):
        asked, there = offset + X.shape[1], self.columns.shape[1]
        if offset < 0:
            raise ValueError("offset is negative")
        if asked > there:
            raise ValueError(f"asked for {asked} positions of {there}")
        return X + self.columns[:, offset:asked].T


class Borrowed(nn.Module):
    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.ready = d2l.LearnedPositionalEncoding(num_hiddens, max_len=max_len)


class SaysNothing(WithBatchDimension):
    def forward(self, X, offset=0):
        try:
            return super().forward(X, offset)
        except ValueError:
            raise ValueError("wrong length") from None


def _tables(given, module):
    """Shape and dtype of each parameter; None where it is no module."""
    if isinstance(module, nn.Module):
        return [[list(p.shape), str(p.dtype)] for p in module.parameters()]


def _rows(table, max_len):
    """A view of the table in which a row is a position."""
    table = table.detach().squeeze()
    return table if len(table) == max_len else table.mT


def _fill(given, module, rows):
    (table,) = module.to(rows.device).parameters()
    _rows(table, len(rows)).copy_(rows)
    table.filled_here = True


def _slopes(given, module, X, offset, upstream, max_len):
    """The gradients in the table and in X; None where none arrives."""
    (table,), X = module.parameters(), X.clone().requires_grad_()
    got = module(X, offset)
    if not (got.requires_grad and table.requires_grad):
        return None, None
    slope, through = torch.autograd.grad(got, (table, X), upstream, allow_unused=True)
    return None if slope is None else _rows(slope, max_len), through


def _error(given, module, X, offset):
    """Name and text of what forward raises; None where it raises nothing."""
    try:
        module(X, offset)
    except Exception as error:
        return type(error).__name__, str(error)


def verify(t, answer):
    B, T, h = t.sizes(3, 3, 10)
    max_len = t.random.randint(12, 16)
    extra = max_len - T
    offset = t.random.randint(1, extra - 1)
    with t.watching(partial(Calls, "d2lmini.position."), "names") as calls:
        module = t.call(answer, h, max_len)
    t.that(not calls.names, "ready", "this is made of the package's own class of positions: write it with torch alone")
    tables = t.look(_tables, module)
    t.that(tables is not None, "type", "LearnedPositions(...) is not an nn.Module: inherit from it")
    t.that(
        len(tables) == 1,
        "one-parameter",
        f"the module has {len(tables)} parameters, expected one table"
        + ("" if tables else ": is it an nn.Parameter, so that an optimiser finds it?"),
    )
    ((shape, dtype),) = tables
    t.that(
        [n for n in shape if n > 1] in ([max_len, h], [h, max_len]) and dtype == "torch.float32",
        "table-shape",
        f"the parameter has shape {tuple(shape)} and dtype {dtype}, expected a float32 table with {h} features for "
        f"each of {max_len} positions",
    )
    rows = t.randn(max_len, h)
    t.look(lambda given, module: _fill(given, module, rows), module)

    X = t.randn(B, T, h)
    x, p = X.cpu().double(), rows.cpu().double()
    for start in (0, offset, extra):
        want = x + p[start : start + T]
        got = t.call(module, X, start)
        t.that(
            t.look(lambda given, module: hasattr(next(module.parameters()), "filled_here"), module),
            "made-anew",
            "forward makes a new parameter: make it once, in __init__, or the optimiser never sees what is used",
        )
        t.same(got, want, f"the result with offset {start}")
    t.same(t.call(module, X), x + p[:T], "the result without an offset")
    square = t.randn(T, T, h)
    t.same(t.call(module, square), square.cpu().double() + p[:T], "the result for as many sequences as tokens")
    t.same(t.call(module, X[:1]), x[:1] + p[:T], "the result for a batch of one")
    t.same(t.call(module, X[:, :1], extra), x[:, :1] + p[extra], "the result for one token")

    upstream = t.randn(B, T, h)
    slope, through = t.look(lambda given, module: _slopes(given, module, X, offset, upstream, max_len), module)
    t.that(slope is not None, "grad", "no gradient reaches the table: is it detached?")
    want = torch.zeros(max_len, h, dtype=torch.float64)
    want[offset : offset + T] = upstream.cpu().double().sum(0)
    unused = slope.cpu()[(want == 0).all(1)]
    t.that(bool((unused == 0).all()), "unused-moved", "positions that were not used get a gradient, too")
    t.same(slope, want, "the gradient in the table")
    t.that(through is not None, "grad", "no gradient reaches the embeddings: are they detached?")

    for start in (extra + 1, max_len + 3, -1, -X.shape[1] - 1):
        raised = t.look(lambda given, module, start=start: _error(given, module, X, start), module)
        case = f"{T} tokens from position {start} on, of {max_len}"
        t.that(raised is not None, "no-error", f"{case}: something was returned, expected a ValueError")
        kind, text = raised
        t.that(
            kind == "ValueError", "other-error", f"{case}: your code raises {kind}, expected a ValueError of your own"
        )
        if start < 0:  # a check of its own need not speak of the end
            continue
        numbers = [int(n) for n in re.findall(r"\d+", text)]
        there, asked = {max_len, max_len - 1}, {T, start, start + T, start + T - 1}
        message = "the ValueError should say in numbers what was asked for and how many positions there are"
        missing = [word for word, known in (("the first", asked), ("the second", there)) if known.isdisjoint(numbers)]
        missing = " and ".join(missing) or ("one of the two" if len(numbers) < 2 else "")
        t.that(not missing, "unclear-error", f"{message}; missing: {missing}")


MUTANTS = [
    Mutant("one-parameter", ("nn.Parameter(0.02 * torch.randn(max_len, num_hiddens))",
        "0.02 * torch.randn(max_len, num_hiddens)")),  # no parameter
    Mutant("one-parameter", Sines),
    # rows of the other axis
    Mutant("raised", ("torch.randn(max_len, num_hiddens)", "torch.randn(num_hiddens, max_len)")),
    # one row short
    Mutant("table-shape", ("torch.randn(max_len, num_hiddens)", "torch.randn(max_len - 1, num_hiddens)")),
    Mutant("table-shape", ("torch.randn(max_len, num_hiddens)", "torch.randn(max_len, 1)")),  # a number a position
    Mutant("offset-ignored", ("self.P[offset:end]", "self.P[: X.shape[1]]"), "the offset is not used: these are the "
        "vectors of the first positions"),
    Mutant("along-the-batch", ("return X + self.P[offset:end]", "rows = self.P[offset:end]\n        return X + "
        "(rows[:, None] if len(X) == len(rows) else rows)"), "the positions run along the batch: they run along T"),
    Mutant("from-the-end", ("self.P[offset:end]", "self.P[-X.shape[1] :]"), "these are the vectors of the last "
        "positions"),
    Mutant("one-vector", ("self.P[offset:end]", "self.P[offset]"), "all tokens get the vector of one position"),
    Mutant("replaced", ("X + self.P[offset:end]", "self.P[offset:end].expand_as(X)"), "the embeddings are gone: add "
        "the positions to them"),
    Mutant("multiplied", ("X + self.P", "X * self.P"), "the positions are multiplied; add them"),
    Mutant("scaled", ("X + self.P", "X * X.shape[-1] ** 0.5 + self.P"), "leave the embeddings as they are: nothing is "
        "scaled here"),
    Mutant("grad", ("self.P[offset:end]", "self.P[offset:end].detach()")),  # detached
    Mutant("made-anew", ReLearned),
    Mutant("unused-moved", WholeTable),
    Mutant("mutates", ("return X + self.P[offset:end]", "return X.add_(self.P[offset:end])")),  # in place
    Mutant("no-error", WrapsAround),
    Mutant("other-error", ("offset < 0 or end > len(self.P)", "False")),  # no check
    Mutant("raised", ("end > len(self.P)", "end >= len(self.P)")),  # raises too early
    Mutant("unclear-error", ("positions {offset} to {end - 1} are asked for, but there", "there")),  # one length
    Mutant("unclear-error", SaysNothing),
    Mutant("ready", Borrowed),
    Mutant("other-error", ("offset < 0 or end", "end")),  # negative offset
    Mutant("grad", ("return X + self.P", "return X.detach() + self.P")),  # embeddings detached
    # batch of one lost
    Mutant("shape", ("return X + self.P[offset:end]", "return (X + self.P[offset:end]).squeeze()")),
    Mutant("turned-round", ("self.P[offset:end]", "self.P[offset:end].flip(0)"), "the vectors come in reverse: the "
        "first token is at position `offset`"),
    Mutant("one-too-far", ("self.P[offset:end]", "self.P.roll(-1, 0)[offset:end]"), "the vectors are one position too "
        "far on: the first token is at position `offset`, counted from 0"),
    Mutant("first-only", ("X + self.P[offset:end]", "torch.cat([X[:1] + self.P[offset:end], X[1:]])"),
        "the positions are added in the first example alone"),
    Mutant("dropout", ("X + self.P[offset:end]", "nn.functional.dropout(X + self.P[offset:end], 0.1)"),
        "something is dropped: nothing but the positions is asked for"),
    # frozen
    Mutant("grad", ("torch.randn(max_len, num_hiddens))", "torch.randn(max_len, num_hiddens), requires_grad=False)")),
    Mutant("normed", ("X + self.P[offset:end]", "nn.functional.layer_norm(X + self.P[offset:end], X.shape[-1:])"),
        "the sum is normalised: nothing but the addition is asked for"),
    Mutant("subtracted", ("X + self.P", "X - self.P"), "the positions are subtracted; add them"),
    Mutant("position-scaled", ("X + self.P[offset:end]", "X + self.P[offset:end] * X.shape[-1] ** 0.5"),
        "the positions are multiplied by the root of h: add them as they stand in the table"),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.6.2",
    doc=__doc__,
    source="D2L 11.6, exercise 2",
    parts=[
        Code(
            key="d2l-11.6.2",
            hints=[
                "A tensor becomes a parameter of the module when it is wrapped in nn.Parameter and made an attribute.",
                "The vectors of T positions from `offset` on are a slice of the table; broadcasting adds it to every "
                "sentence.",
                "A slice that reaches past the end is silently shorter, and one from a negative offset is empty or "
                "counts from the end. Look at both ends before you slice.",
            ],
            answer=LearnedPositions,
            verify=verify,
            alternatives=[WithEmbedding, WithBatchDimension, AxesTurned],
            min_checks=12,
            advice={
                "values": "The result is X with rows `offset` to `offset + T - 1` of the table added to each example, "
                "and nothing else, whatever was called before",
                "raised": "If this is your own ValueError: all positions that are asked for here exist.",
            },
            mutants=MUTANTS,
            explanation=r"""
The gradient in a row is the sum of what arrives at that position, over the batch. So the loss never moves a row that no
sequence reaches: if all training sequences have 100 tokens, the rows from 100 on are noise, and there is no error to
warn of it. Beyond `max_len` there is not even noise. Sinusoidal positions need no table, and can be computed for any
position; whether a model can *use* a position that it never saw is another question, which the chapter's experiment
answers.
""",
        )
    ],
)
