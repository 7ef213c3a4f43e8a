r"""What does depth cost, and what does it buy?

A deeper Transformer is slower and, one hopes, better. You are to measure both, fairly: the same data, the same number
of steps, one clock.

The task is small enough for seconds and honest enough to need depth. A sequence of T = 6 tokens is a table of
pointers: token $x_i$, a number from 0 to 5, says to which position $i$ points. The target at position $i$ is what
comes after **three** jumps,

$$y_i = f(f(f(i))), \qquad f(i) = x_i .$$

One attention layer can follow one jump: position $i$ attends to position $x_i$ and brings back what stands there. The
whole chain has to be *composed*, and to compose is what a second layer is for.

Write `compare_depths(make_model, make_batch, depths, num_steps, clock)`. For each depth it makes a new model, trains
it for `num_steps` steps with cross-entropy and an optimiser of your choice (Adam with learning rate 0.01 does well),
each step on a new batch of 64 sequences. It returns a dict of two lists, with one number for each depth:

- `"seconds"`: the **median** time of a whole training step, from before the forward pass to after the optimiser;
- `"accuracy"`: the share of right tokens on a new batch of 256 sequences, in evaluation mode.

**Predict** first: how do the seconds grow with depth? And the accuracy from one block to two, and from two to three?

To try it yourself:

```python
class Pointers(nn.Module):
    def __init__(self, num_blks, h=32):
        super().__init__()
        self.token, self.position = nn.Embedding(6, h), nn.Parameter(torch.randn(6, h))
        self.blks = nn.ModuleList(d2l.TransformerEncoderBlock(h, 2 * h, 2, norm_first=True) for _ in range(num_blks))
        self.head = nn.Sequential(nn.LayerNorm(h), nn.Linear(h, 6))

    def forward(self, tokens):  # (B, T) to logits (B, T, 6)
        X = self.token(tokens) + self.position
        for blk in self.blks:
            X = blk(X)
        return self.head(X)

def make_batch(B):
    x = torch.randint(6, (B, 6))
    return x, x.gather(1, x.gather(1, x))

import time
print(compare_depths(Pointers, make_batch, [1, 2, 3], 120, time.perf_counter))
```
"""

import time
from itertools import pairwise
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.exercises.engine import Exercise, Experiment, Mutant
from d2lmini.transformer import TransformerEncoderBlock


def compare_depths(make_model, make_batch, depths, num_steps, clock):
    """Train a model of each depth; say how long a step takes and how good the model becomes.

    Args:
        make_model: function of the number of blocks; gives a new model that takes tokens (B, T) to logits (B, T, V).
        make_batch: function of B; gives new tokens and targets, both (B, T), integers.
        depths: list of numbers of blocks.
        num_steps: training steps of each model, at least 5.
        clock: function without arguments that gives the time in seconds.

    Returns:
        A dict: ``"seconds"`` and ``"accuracy"``, lists with one number for each depth.
    """
    ### BEGIN SOLUTION
    seconds, accuracy = [], []
    for depth in depths:
        model, times = make_model(depth), []
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(num_steps):
            tokens, targets = make_batch(64)
            start = clock()
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            times.append(clock() - start)
        seconds.append(torch.tensor(times).median().item())  # a step that was disturbed does not count
        model.eval()
        with torch.no_grad():
            tokens, targets = make_batch(256)
            accuracy.append((model(tokens).argmax(-1) == targets).float().mean().item())
    return {"seconds": seconds, "accuracy": accuracy}
    ### END SOLUTION


def step_by_step(make_model, make_batch, depths, num_steps, clock):
    """AdamW, and one reading of the clock a step."""
    result = {"seconds": [], "accuracy": []}
    for depth in depths:
        model = make_model(depth).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.001)
        readings = [clock()]
        for _ in range(num_steps):
            tokens, targets = make_batch(64)
            optimizer.zero_grad()
            F.cross_entropy(model(tokens).mT, targets).backward()
            optimizer.step()
            readings.append(clock())
        gaps = [b - a for a, b in pairwise(readings)]
        tokens, targets = make_batch(256)
        hits = model.eval()(tokens).argmax(-1) == targets
        result["seconds"].append(median(gaps))
        result["accuracy"].append(hits.sum() / hits.numel())
    return result


V = 6
TIMED, TAUGHT = (2, 4, 8), (1, 2)  # depths that are timed, and those that are compared in quality
TIMED_STEPS, TAUGHT_STEPS = 9, 60


class Pointers(nn.Module):
    """A stack of encoder blocks that notes when it runs and when gradients come back."""

    def __init__(self, num_blks, events, h=32):
        super().__init__()
        self.token, self.position = nn.Embedding(V, h), nn.Parameter(torch.randn(V, h))
        self.blks = nn.ModuleList(TransformerEncoderBlock(h, 2 * h, 2, norm_first=True) for _ in range(num_blks))
        self.head = nn.Sequential(nn.LayerNorm(h), nn.Linear(h, V))
        self.events = events

    def forward(self, tokens):
        X = self.token(tokens) + self.position
        for blk in self.blks:
            X = blk(X)
        logits = self.head(X)
        if logits.requires_grad and self.training:
            self.events.append("forward")
            logits.register_hook(lambda grad: self.events.append("backward"))
        return logits


def verify(t, answer):
    torch.manual_seed(t.seed)
    times, _, span = _run(t, answer, TIMED, TIMED_STEPS)
    t.that(min(times) > 0, "not-positive", "a step takes more than no time: `seconds` must be > 0")
    share = TIMED_STEPS * sum(times) / span
    t.that(
        share < 1.5,
        "total",
        "`seconds` add up to more than the clock has run: give the time of one step, not of all steps together",
    )
    t.that(
        share > 0.1,
        "too-short",
        "`seconds` are far less than the clock has run: divide by nothing, and time the whole step",
    )
    for (small, large), (low, high) in zip(pairwise(TIMED), pairwise(times), strict=True):
        t.that(
            1.2 < high / low < 3.3,
            "not-linear",
            f"a step with {large} blocks takes {'not much more than' if high < 2 * low else 'far more than twice'} "
            f"one with {small}: is the list in the order of `depths`, and is each time that of one whole step?",
        )
    shallow, deep = [], []
    for _ in range(3):
        _, (one, two), _ = _run(t, answer, TAUGHT, TAUGHT_STEPS)
        t.that(
            two > 0.65,
            "untrained",
            "after training, the model of two blocks is still mostly wrong: does every step clear the gradients, "
            "compute new ones and call the optimiser? Is the learning rate near 0.01?",
        )
        shallow.append(one)
        deep.append(two)
    t.below(shallow, deep, 0.12, "no-gain", "two blocks should do clearly better on this task than one")


def _run(t, answer, depths, num_steps):
    """One call: the learner's seconds, the accuracy of the models themselves, and how long the clock ran."""
    made, events, readings = [], [], []

    def make_model(num_blks):
        made.append((num_blks, Pointers(num_blks, events).to(t.device)))
        return made[-1][1]

    def make_batch(B):
        tokens = t.integers(0, V, B, V)
        return tokens, tokens.gather(1, tokens.gather(1, tokens))

    def clock():
        events.append("clock")
        # time of this process alone, so that a busy machine disturbs little
        readings.append(time.perf_counter() if t.device.type == "cuda" else time.process_time())
        return readings[-1]

    got = t.call(answer, make_model, make_batch, list(depths), num_steps, clock)
    seconds, accuracy = t.fields(got, "seconds", "accuracy")
    seconds, accuracy = _floats(t, seconds, "seconds", depths), _floats(t, accuracy, "accuracy", depths)
    t.that(
        [depth for depth, _ in made] == list(depths),
        "models",
        f"make_model must be called once for each depth, in the order of `depths`; it was called for "
        f"{[depth for depth, _ in made]}",
    )
    t.that(
        events.count("backward") == num_steps * len(depths),
        "steps",
        f"expected {num_steps} forward and backward passes for each depth, saw {events.count('backward')} backward "
        f"passes for {len(depths)} depths",
    )
    t.that(len(readings) > num_steps * len(depths), "no-clock", "the clock must be read around every single step")
    t.that(
        not any(pair == ("forward", "clock") for pair in pairwise(events)),
        "forward-only",
        "the clock is read between forward and backward pass: a training step is both, and the optimiser too",
    )
    true = []
    for reported, (_, model) in zip(accuracy, made, strict=True):
        with torch.no_grad():
            tokens, targets = make_batch(1024)
            true.append((model.eval()(tokens).argmax(-1) == targets).double().mean().item())
        t.that(
            abs(1 - reported - true[-1]) > 0.08 or abs(reported - true[-1]) <= 0.08,
            "error-rate",
            "`accuracy` is the share of right tokens, this is the share of wrong ones",
        )
        t.that(
            abs(reported - true[-1]) <= 0.08,
            "accuracy",
            "`accuracy` is not what the trained model reaches on new sequences: count right tokens among all tokens, "
            "after the last step",
        )
    return seconds, true, readings[-1] - readings[0]


def _floats(t, values, name, depths):
    t.that(
        isinstance(values, (list, tuple)) and len(values) == len(depths),
        "shape",
        f"`{name}` must be a list of {len(depths)} numbers, one for each depth",
    )
    numbers = []
    for value in values:
        plain = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
        t.that(isinstance(plain, (int, float)), "type", f"`{name}` must hold numbers, not {type(value).__name__}")
        t.that(plain == plain and abs(plain) < 1e9, "nonfinite", f"`{name}` holds {plain}")
        numbers.append(float(plain))
    return numbers


EXERCISE = Exercise(
    key="d2l-11.7.1",
    doc=__doc__,
    source="D2L 11.7, exercise 1",
    chapter="07",
    parts=[
        Experiment(
            key="d2l-11.7.1",
            hints=[
                "One loop over depths, within it one over steps: read the clock before the forward pass and after "
                "`optimizer.step()`.",
                "Keep the times of the steps in a list and take its median: a step in which the machine did something "
                "else does not spoil it.",
                "`F.cross_entropy` wants logits (B * T, V) and targets (B * T,): flatten the first two axes of both.",
            ],
            answer=compare_depths,
            verify=verify,
            alternatives=[step_by_step],
            seconds=120.0,  # some hundred steps of training, and machines are busy
            mutants=[
                Mutant("all steps together", "total", ".median().item()", ".sum().item()"),
                Mutant(
                    "forward only",
                    "forward-only",
                    "            optimizer.zero_grad()\n",
                    "            times.append(clock() - start)\n            optimizer.zero_grad()\n",
                ),
                Mutant("no step of the optimiser", "untrained", "optimizer.step()", "pass"),
                Mutant("tiny learning rate", "untrained", "lr=0.01", "lr=1e-6"),
                Mutant("share of errors", "error-rate", "argmax(-1) == targets", "argmax(-1) != targets"),
                Mutant("summed hits", "accuracy", ".float().mean().item()", ".float().sum().item()"),
                Mutant("one depth for all", "models", "make_model(depth)", "make_model(depths[0])"),
                Mutant("half of the steps", "steps", "range(num_steps)", "range(num_steps // 2)"),
                Mutant("list turned", "not-linear", '"seconds": seconds', '"seconds": seconds[::-1]'),
                Mutant("pairs", "shape", '"accuracy": accuracy}', '"accuracy": accuracy[-1:]}'),
            ],
            explanation=r"""
Time grows as $a + bL$: each of the L blocks does the same work, forward and backward, and $a$ is what is outside of
them. Memory for the activations does likewise. So depth has a plain price.

What it buys depends on the task. Here one block is stuck, whatever you do: it can follow a jump, but nothing has
composed two jumps *before* it looks. The second block finds at each position what the first has put there, and so
jumps twice at once. A third block makes the same time dearer and has nothing left to compose. Quality rises with
depth until the task is met, or until the data are too few, or until the optimiser no longer manages; the price rises
on.

On translation the picture is the same, only slower and noisier: repeat it with the chapter's corpus and `num_blks` of
1, 2 and 4, several seeds each, and put the spread over seeds beside the differences before you say that one is better.
With the norm after the residual connections, deep stacks may also train *worse*, for reasons that have nothing to do
with what they could express.
""",
        )
    ],
)
