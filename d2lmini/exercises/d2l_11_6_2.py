r"""A learned position encoding

Sines are computed. Positions can also be *learned*: one vector of its own for each of the first `max_len` positions, a
parameter like any other, added to the embeddings.

Write the class `LearnedPositions(num_hiddens, max_len)`, an `nn.Module` with a single parameter. Its `forward(X,
offset=0)` takes embeddings (B, T, h) at the positions `offset`, `offset + 1`, ... and returns them with the vectors
of these positions added, (B, T, h). Where a position is asked for that was never made, it raises `ValueError` with a
message that names both lengths. (Write it with torch alone, without the package's class.)
"""

import torch
from torch import nn

from d2lmini.exercises.engine import Code, Exercise, Mutant


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
        if end > len(self.P):
            raise ValueError(f"positions up to {end - 1} are asked for, but there are only {len(self.P)}")
        return X + self.P[offset:end]
        ### END SOLUTION


class WithEmbedding(nn.Module):
    def __init__(self, num_hiddens, max_len):
        super().__init__()
        self.table = nn.Embedding(max_len, num_hiddens)

    def forward(self, X, offset=0):
        positions = torch.arange(X.shape[1], device=X.device) + offset
        if X.shape[1] + offset > self.table.num_embeddings:
            raise ValueError(f"{X.shape[1] + offset} positions, but max_len is {self.table.num_embeddings}")
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


class SaysNothing(WithBatchDimension):
    def forward(self, X, offset=0):
        try:
            return super().forward(X, offset)
        except ValueError:
            raise ValueError("wrong length") from None


def verify(t, answer):
    B, T, h, extra = t.sizes(4, 3, 10)
    max_len, offset = T + extra, t.random.randint(1, extra)
    module = t.call(answer, h, max_len)
    t.that(isinstance(module, nn.Module), "type", "LearnedPositions(...) is not an nn.Module: inherit from it")
    module = module.to(t.device)
    parameters = list(module.parameters())
    t.that(
        len(parameters) == 1,
        "one-parameter",
        f"the module has {len(parameters)} parameters, expected one table: is it an nn.Parameter, so that an "
        "optimiser finds it?",
    )
    (table,) = parameters
    rows = t.randn(max_len, h)
    t.that(
        tuple(table.shape) in ((max_len, h), (1, max_len, h)) and table.dtype == torch.float32,
        "table-shape",
        f"the parameter has shape {tuple(table.shape)}, expected {h} features for each of {max_len} positions",
    )
    with torch.no_grad():
        table.copy_(rows.view(table.shape))

    X = t.randn(B, T, h)
    x, p = X.cpu().double(), rows.cpu().double()
    for start in (0, offset, extra):
        want = x + p[start : start + T]
        mistakes = {
            "offset-ignored": (x + p[:T], "the offset is not used: these are the vectors of the first positions"),
            "from-the-end": (x + p[-T:], "these are the vectors of the last positions"),
            "one-vector": (x + p[start], "all tokens get the vector of one position"),
            "off-by-one": (x + p.roll(-1, 0)[start : start + T], "every token gets the vector of the next position"),
            "replaced": ((p[start : start + T]).expand(B, T, h), "the embeddings are gone: add the positions to them"),
            "multiplied": (x * p[start : start + T], "the positions are multiplied; add them"),
            "scaled": (x * h**0.5 + p[start : start + T], "leave the embeddings as they are: nothing is scaled here"),
        }
        got = t.call(module, X, start)
        t.that(
            next(module.parameters()) is table,
            "made-anew",
            "forward makes a new parameter: make it once, in __init__, or the optimiser never sees what is used",
        )
        t.same(got, want, f"the result with offset {start}", mistakes=mistakes)
    t.same(t.call(module, X), x + p[:T], "the result without an offset")

    table.grad = None
    got = t.call(module, X, offset)
    t.that(got.requires_grad, "grad", "no gradient reaches the table: is it detached?")
    upstream = t.randn(B, T, h)
    (got * upstream).sum().backward()
    t.that(table.grad is not None, "grad", "no gradient reaches the table that was there when the module was made")
    want = torch.zeros(max_len, h, dtype=torch.float64)
    want[offset : offset + T] = upstream.cpu().double().sum(0)
    slope = table.grad.view(max_len, h)
    unused = slope.cpu()[(want == 0).all(1)]
    t.that(bool((unused == 0).all()), "unused-moved", "positions that were not used get a gradient, too")
    t.same(slope, want, "the gradient in the table", mistakes={"mean": (want / B, "the gradient is averaged")})

    def attempt(X, offset):
        try:
            return module(X, offset)
        except ValueError as error:
            return str(error)

    for start in (extra + 1, max_len + 3):
        got = t.call(attempt, X, start)
        t.that(
            isinstance(got, str),
            "no-error",
            f"{T} tokens from position {start} on, of {max_len}: something was returned, expected a ValueError",
        )
        t.that(
            str(max_len) in got or str(max_len - 1) in got,
            "unclear-error",
            "the message of the ValueError does not say how many positions there are",
        )


EXERCISE = Exercise(
    key="d2l-11.6.2",
    doc=__doc__,
    source="D2L 11.6, exercise 2",
    chapter="06",
    parts=[
        Code(
            key="d2l-11.6.2",
            hints=[
                "A tensor becomes a parameter of the module when it is wrapped in nn.Parameter and made an attribute.",
                "The vectors of T positions from `offset` on are a slice of the table; broadcasting adds it to every "
                "sentence.",
                "A slice that reaches past the end is silently shorter. Compare the lengths before you slice.",
            ],
            answer=LearnedPositions,
            verify=verify,
            alternatives=[WithEmbedding, WithBatchDimension],
            min_checks=12,
            advice={"raised": "A slice that is too short does not broadcast; raise a ValueError before that"},
            mutants=[
                Mutant(
                    "no parameter",
                    "one-parameter",
                    "nn.Parameter(0.02 * torch.randn(max_len, num_hiddens))",
                    "0.02 * torch.randn(max_len, num_hiddens)",
                ),
                Mutant("sines", "one-parameter", function=Sines),
                Mutant(
                    "axes swapped",
                    "table-shape",
                    "torch.randn(max_len, num_hiddens)",
                    "torch.randn(num_hiddens, max_len)",
                ),
                Mutant(
                    "one row short",
                    "table-shape",
                    "torch.randn(max_len, num_hiddens)",
                    "torch.randn(max_len - 1, num_hiddens)",
                ),
                Mutant(
                    "a number a position", "table-shape", "torch.randn(max_len, num_hiddens)", "torch.randn(max_len, 1)"
                ),
                Mutant("offset ignored", "offset-ignored", "self.P[offset:end]", "self.P[: X.shape[1]]"),
                Mutant("last positions", "from-the-end", "self.P[offset:end]", "self.P[-X.shape[1] :]"),
                Mutant("one vector", "one-vector", "self.P[offset:end]", "self.P[offset]"),
                Mutant("replaced", "replaced", "X + self.P[offset:end]", "self.P[offset:end].expand_as(X)"),
                Mutant("multiplied", "multiplied", "X + self.P", "X * self.P"),
                Mutant("scaled", "scaled", "X + self.P", "X * X.shape[-1] ** 0.5 + self.P"),
                Mutant("detached", "grad", "self.P[offset:end]", "self.P[offset:end].detach()"),
                Mutant("made anew", "made-anew", function=ReLearned),
                Mutant("stray term", "unused-moved", function=WholeTable),
                Mutant("in place", "mutates", "return X + self.P[offset:end]", "return X.add_(self.P[offset:end])"),
                Mutant("wraps around", "no-error", function=WrapsAround),
                Mutant("no check", "raised", "end > len(self.P)", "False"),
                Mutant("says nothing", "unclear-error", function=SaysNothing),
            ],
            explanation=r"""
The gradient in a row is the sum of what arrives at that position, over the batch. So a row that no sequence reaches
never moves: if all training sequences have 100 tokens, the rows from 100 on are noise, and there is no error to warn
of it. Beyond `max_len` there is not even noise. Sinusoidal positions need no table, and can be computed for any
position; whether a model can *use* a position that it never saw is another question, which the chapter's experiment
answers.
""",
        )
    ],
)
