r"""Additive attention inside a Transformer?

Bahdanau's decoder scored a query against a key with a small network,

$$a(\mathbf q, \mathbf k) = \mathbf w_v^\top \tanh(\mathbf W_q \mathbf q + \mathbf W_k \mathbf k),$$

and chapter 04 was happy with it. A Transformer scores with a scaled dot product. Should one swap the two? Decide
first, then measure what it would cost.
"""

import math

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from d2lmini.exercises.engine import Choice, Exercise, Experiment, LargestTensor, Mutant, Option


def price_of_additive(inputs, W_q, W_k, w_v, clock, largest):
    """Compare additive scores with dot-product scores at several lengths.

    Args:
        inputs: list of pairs (queries, keys), both (B, T, h); T grows along the list and is larger than h.
        W_q, W_k: (h, h), to be applied to queries and keys as ``queries @ W_q.T``.
        w_v: (h,).
        clock: function without arguments that gives the time in seconds.
        largest: ``largest(function)`` runs the function and gives the number of elements of the largest tensor that
            was made on the way.

    Returns:
        A dict of three lists with one entry for each pair: ``"scores"``, the additive scores (B, T, T); ``"time"``,
        the time of the additive scores divided by that of the dot-product scores; ``"memory"``, the same for the
        largest tensor.
    """
    ### BEGIN SOLUTION
    result = {"scores": [], "time": [], "memory": []}
    for queries, keys in inputs:

        def additive(queries=queries, keys=keys):
            q, k = queries @ W_q.T, keys @ W_k.T  # (B, T, h)
            features = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))  # (B, T, 1, h) + (B, 1, T, h): all pairs
            return features @ w_v  # (B, T, T)

        def dot(queries=queries, keys=keys):
            q, k = queries @ W_q.T, keys @ W_k.T
            return q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])  # (B, T, T)

        times = {additive: [], dot: []}
        for _ in range(7):
            for score in times:  # in turn, so that a disturbance meets both
                start = clock()
                score()
                times[score].append(clock() - start)
        slow, fast = (torch.tensor(times[score]).median().item() for score in (additive, dot))
        result["scores"].append(additive())
        result["time"].append(slow / fast)
        result["memory"].append(largest(additive) / largest(dot))
    return result
    ### END SOLUTION


def with_the_module(inputs, W_q, W_k, w_v, clock, largest):
    def timed(score):
        readings = [clock()]
        for _ in range(5):
            score()
            readings.append(clock())
        return torch.tensor(readings, dtype=torch.float64).diff().median()

    scores, times, sizes = [], [], []
    for queries, keys in inputs:
        additive = lambda q=queries, k=keys: nn.functional.linear(  # noqa: E731
            torch.tanh((q @ W_q.mT)[:, :, None] + (k @ W_k.mT)[:, None]), w_v[None]
        )[..., 0]
        dot = lambda q=queries, k=keys: torch.einsum("btd,bsd->bts", q @ W_q.mT, k @ W_k.mT)  # noqa: E731
        scores.append(additive())
        times.append(timed(additive) / timed(dot))
        sizes.append(largest(additive) / largest(dot))
    return {"scores": scores, "time": times, "memory": sizes}


LENGTHS = (48, 192)


class _Work(TorchDispatchMode):
    """Counts the numbers that are written: the time of the check. Keeps what `_largest` saw returned."""

    written, at, time, spans, returned = 0, 0, 0.0, [], []  # spans: what was written between readings of the clock

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not func.is_view:
            _Work.written += out.numel()
        return out


def _clock():
    _Work.spans.append(_Work.written - _Work.at)
    _Work.at = _Work.written
    # of eleven readings the second comes late and the fourth early, not always alike: of five timings at most two do
    often, number = divmod(len(_Work.spans), 11)
    _Work.time += _Work.spans[-1] * (4e-10 + 1e-10 * (often % 5) if number == 4 else 1e-9) + (number == 2)
    return _Work.time


def _largest(function):
    with LargestTensor() as seen:
        _Work.returned.append(function())
    return seen.numel


def _returned(given):
    return [x if isinstance(x, torch.Tensor) else None for x in _Work.returned]


def verify(t, answer):
    B, h = 2, t.random.choice((24, 28, 32))
    inputs = [(t.randn(B, T, h), t.randn(B, T, h)) for T in LENGTHS]
    W_q, W_k, w_v = t.randn(h, h, scale=h**-0.5), t.randn(h, h, scale=h**-0.5), t.randn(h)
    references = [_scores(*(x.cpu().double() for x in (*pair, W_q, W_k, w_v))) for pair in inputs]
    _Work.written, _Work.at, _Work.time, _Work.spans, _Work.returned = 0, 0, 0.0, [], []
    with t.watching(_Work, "spans") as seen:
        got = t.call(answer, inputs, W_q, W_k, w_v, _clock, _largest)
    lists = dict(zip(("scores", "time", "memory"), t.fields(got, "scores", "time", "memory"), strict=True))
    for name, values in lists.items():
        message = f"`{name}` must be a list of {len(inputs)}, one for each pair of queries and keys"
        t.that(isinstance(values, (list, tuple)) and len(values) == len(inputs), "shape", message)
    for T, scores, want in zip(LENGTHS, lists["scores"], references, strict=True):
        t.same(scores, want, f"the scores for T={T}", tolerance=(1e-3, 1e-4))
    for T, ratio in zip(LENGTHS, lists["memory"], strict=True):
        pairs, features = B * T * T, B * T * T * h
        mistakes = {
            "upside-down": (1 / h, "this is dot product by additive; turn it round"),
            "difference": (features - pairs, "this is a difference; divide the one by the other"),
            "not-a-ratio": (features, "this is the number of elements alone; divide by that of the dot product"),
        }
        t.number(ratio, h, f"`memory` for T={T}", mistakes=mistakes)
    measured = t.look(_returned)
    message = "`largest` must be asked about both scorings of each pair: a formula is no measurement"
    t.that(len(measured) >= 2 * len(inputs), "not-measured", message)
    for (queries, keys), additive in zip(inputs, references, strict=True):
        dot = (queries @ W_q.mT @ (keys @ W_k.mT).mT).cpu().double()
        known = additive, dot, dot / math.sqrt(h)  # the root is one operation more or less
        for returned in measured:
            scores = isinstance(returned, torch.Tensor) and returned.shape == dot.shape
            t.that(
                not scores or any(torch.allclose(returned.cpu().double(), x, 1e-2, 1e-2) for x in known),
                "other-scores",
                "`largest` was asked about a function that computes neither the additive scores nor the dot products "
                "of the *projected* queries and keys: compare bare scores, without a softmax, of the same projections",
            )
    message = "`clock` must be read before and after each scoring, five times or more for each"
    spans = torch.tensor([span for span in seen.spans if span], dtype=torch.float64)
    t.that(len(spans) >= 10 * len(inputs), "no-clock", message)
    ratios = spans[:, None] / spans  # the clock tells nothing else, but where it is disturbed
    for T, ratio in zip(LENGTHS, lists["time"], strict=True):
        number = isinstance(ratio, (int, float)) or (isinstance(ratio, torch.Tensor) and ratio.numel() == 1)
        t.that(number, "type", f"`time` for T={T} is a {type(ratio).__name__}, expected a number")
        t.that(
            float(ratio) > 1.0,
            "time-turned",
            f"`time` for T={T}: additive scores, which write h numbers for each pair, cannot be cheaper. Is it the "
            "time of additive scores divided by that of the dot product? And of medians: the clock is disturbed now "
            "and then",
        )
        t.that(
            bool(torch.isclose(ratios, torch.tensor(float(ratio), dtype=torch.float64), 1e-3).any()),
            "time",
            f"`time` for T={T} is no ratio of two times that were measured: divide the median time of one additive "
            "scoring by that of one dot-product scoring, for the same queries and keys. The clock is disturbed now "
            "and then, which a median forgets, and a mean, a first or a least time does not",
        )


def _scores(queries, keys, W_q, W_k, w_v):
    """The additive scores, one query at a time."""
    rows = [torch.tanh(W_q @ q + K @ W_k.mT) @ w_v for Q, K in zip(queries, keys, strict=True) for q in Q]
    return torch.stack(rows).unflatten(0, queries.shape[:2])


MUTANTS = [
    Mutant("no-tanh", ("torch.tanh(q.unsqueeze(2) + k.unsqueeze(1))", "q.unsqueeze(2) + k.unsqueeze(1)"),
        "without tanh the score is a sum of one number for the query and one for the key, and the softmax over keys no "
        "longer knows the query"),
    Mutant("relu", ("torch.tanh(", "torch.relu("), "this is ReLU; the formula has tanh"),
    Mutant("product", ("q.unsqueeze(2) + k", "q.unsqueeze(2) * k"), "query and key are added in the formula, and "
        "multiplied in your code"),
    Mutant("axes", ("q.unsqueeze(2) + k.unsqueeze(1)", "q.unsqueeze(1) + k.unsqueeze(2)"), "rows are keys and columns "
        "queries: swap what you unsqueeze"),
    Mutant("swapped", ("queries @ W_q.T, keys @ W_k.T  #", "queries @ W_k.T, keys @ W_q.T  #"),
        "W_q belongs to the queries and W_k to the keys"),
    Mutant("transposed", ("queries @ W_q.T, keys @ W_k.T  #", "queries @ W_q, keys @ W_k  #"),
        "the matrices are applied transposed: it is `queries @ W_q.T`"),
    Mutant("transposed", ("queries @ W_q.T, keys @ W_k.T  #", "queries @ W_q, keys @ W_k.T  #"),
        "W_q is applied transposed: it is `queries @ W_q.T`"),
    Mutant("transposed", ("queries @ W_q.T, keys @ W_k.T  #", "queries @ W_q.T, keys @ W_k  #"),
        "W_k is applied transposed: it is `keys @ W_k.T`"),
    Mutant("not-projected", ("queries @ W_q.T, keys @ W_k.T  #", "queries, keys  #"), "W_q and W_k are not used"),
    Mutant("scaled", ("features @ w_v", "features @ w_v / math.sqrt(W_q.shape[0])"), "additive scores are not divided "
        "by sqrt(h): the formula has no such factor"),
    Mutant("dot", ('["scores"].append(additive())', '["scores"].append(dot())'), "these are the dot-product scores"),
    # memory upside down
    Mutant("upside-down", ("largest(additive) / largest(dot)", "largest(dot) / largest(additive)")),
    # memory as a difference
    Mutant("difference", ("largest(additive) / largest(dot)", "largest(additive) - largest(dot)")),
    Mutant("not-a-ratio", (" / largest(dot)", "")),  # memory of one
    Mutant("values-softmax", ("return features @ w_v  #", "return (features @ w_v).softmax(-1)  #"),
        "these are weights: the scores are what goes into the softmax"),
    # dot product not projected
    Mutant("other-scores", ("q, k = queries @ W_q.T, keys @ W_k.T\n", "q, k = queries, keys\n")),
    Mutant("other-scores", ("return q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])",
        "return torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]), -1)")),  # dot product with softmax
    Mutant("not-measured", ("largest(additive) / largest(dot)", "float(w_v.numel())")),  # memory by formula
    Mutant("time", (".median().item()", ".mean().item()")),  # mean time
    Mutant("time", (".median().item()", ".min().item()")),  # least time
    Mutant("no-clock", ("range(7)", "range(1)")),  # timed once
    Mutant("no-clock", ("range(7)", "range(3)")),
    Mutant("time", ("slow / fast", "float(w_v.numel())")),  # time by formula
    Mutant("time-turned", ("slow / fast", "fast / slow")),  # time upside down
    Mutant("time-turned", ("slow / fast", "slow - fast")),  # time as a difference
    Mutant("time", ("slow / fast", "slow * 1e9")),  # time of one
    Mutant("shape", ("return result", 'return {**result, "time": result["time"][-1:]}')),  # one number
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.7.2",
    doc=__doc__,
    source="D2L 11.7, exercise 2",
    parts=[
        Choice(
            key="d2l-11.7.2a",
            prompt="In all attentions of a Transformer, the scaled dot product is replaced by additive scoring. Is "
            "that "
            "a good idea?",
            hints=["How many numbers does each form make for one pair of a query and a key?"],
            options=[
                Option(
                    "Yes: a network with a hidden layer can express more than a dot product, so quality must rise.",
                    "Per head it can express other scores, but W_q and W_k in front of the dot product already learn "
                    "what should match what, and many heads and layers do the rest. Vaswani et al. (2017) call the two "
                    "similar for small heads; in the recurrent translators of Britz et al. (2017) additive scores "
                    "were slightly ahead. Their prices are far from similar.",
                ),
                Option(
                    "No: it takes h hyperbolic tangents for each pair of positions, and not one entry of a product.",
                    "The features are a tensor (B, T, S, h): h times the scores. A dot product never makes them: it "
                    "goes straight to (B, T, S), on the units of the machine that are built for matrix products. In "
                    "a decoder that scores one query a step the difference was bearable; a Transformer scores all "
                    "pairs, in each layer.",
                    right=True,
                ),
                Option(
                    "No: additive scores cannot be masked before the softmax, so the decoder would see the future.",
                    "A mask acts on scores, wherever they come from. Additive scores are masked in the same way: "
                    "chapter "
                    "03 did it.",
                ),
                Option(
                    "Yes: as tanh is bounded already, the weights need no softmax, which is the slowest step of all.",
                    "The bounded features are summed up with the weights w_v to a score of any size. Weights that are "
                    "positive and sum to one still take a softmax.",
                ),
            ],
        ),
        Experiment(
            key="d2l-11.7.2b",
            prompt=r"""
Now put numbers on it. Write `price_of_additive(inputs, W_q, W_k, w_v, clock, largest)`. For each pair of queries and
keys, all (B, T, h), it computes the additive scores as they stand in the formula, with the features of all pairs in one
tensor, and compares them with the scores of a scaled dot product of the same projections (without the division by the
root, if you like): time divided by time, and largest tensor divided by largest tensor. Take the median of several times
(five or more), best in turns. The check's `clock` goes on by the numbers that are written, so that no verdict depends
on what else your machine is doing. Now and then it jumps, or goes on too slowly, as real ones seem to do; the one below
is real. **Predict** both ratios for h = 32 before you run it:

```python
import time
from d2lmini.exercises.engine import LargestTensor

def largest(function):
    with LargestTensor() as seen:
        function()
    return seen.numel

inputs = [(torch.randn(2, T, 32), torch.randn(2, T, 32)) for T in (64, 256)]
W_q, W_k, w_v = torch.randn(32, 32) / 6, torch.randn(32, 32) / 6, torch.randn(32)
price = price_of_additive(inputs, W_q, W_k, w_v, time.perf_counter, largest)
print(price["time"], price["memory"])
```
""",
            hints=[
                "`q.unsqueeze(2) + k.unsqueeze(1)` has shape (B, T, T, h): every query with every key.",
                "Write both scorings as functions without arguments; then timing and measuring are the same for both.",
                "`features @ w_v` takes (B, T, T, h) to (B, T, T). The ratio of the largest tensors is exact.",
            ],
            answer=price_of_additive,
            verify=verify,
            alternatives=[with_the_module],
            seconds=30.0,
            advice={
                "values": "Compute the score of one query and one key by hand. And the features of all pairs are one "
                "tensor: nothing is computed query by query.",
            },
            mutants=MUTANTS,
            explanation=r"""
Memory: the features hold h numbers for each pair, the scores one. The ratio is h, at every T above h; both grow with
the square of T. At batch 128, 64 tokens and 256 features, the features alone are 512 MiB, in *each* layer, and the
backward pass needs them.

Time: the matrix product costs h multiplications and additions a pair, and the additive form costs about as many
operations. Counting operations would call it a draw. The clock does not: hyperbolic tangents are dear, the large tensor
goes to memory and back, and processors multiply matrices many times faster than they do anything else. The ratio grows
with the length while fixed costs fade.

The package's `AdditiveAttention` works through blocks of queries and so never holds all features. That mends the
memory, and the time is as it was.
""",
        ),
    ],
)
