r"""What does depth cost, and what does it buy?

A deeper Transformer is slower and, one hopes, better. You are to measure both, fairly: the same kind of data, the same
number of steps, one clock.

The task is small enough for seconds and honest enough to need depth. A sequence of T = 6 tokens is a table of
pointers: token $x_i$, a number from 0 to 5, says to which position $i$ points. The target at position $i$ is what
comes after **three** jumps,

$$y_i = f(f(f(i))), \qquad f(i) = x_i .$$

One attention layer can follow one jump: position $i$ attends to position $x_i$ and brings back what stands there. The
whole chain has to be *composed*, and to compose is what a second layer is for.

Write `compare_depths(make_model, make_batch, depths, num_steps, clock)`. For each depth it makes a new model, trains
it for `num_steps` steps with cross-entropy and an optimiser of your choice (Adam with learning rate 0.01 does well),
each step on a new batch of 64 sequences. It returns a dict of two lists, with one number for each depth:

- `"seconds"`: the **median** time of all training steps (the first may be left out), from before the forward pass to
  after the optimiser;
- `"accuracy"`: the share of right tokens on a new batch of 256 sequences, in evaluation mode, after training.

The check does not judge by a real clock, since that would tell what else your machine is doing. Its `clock` goes on by
the work that the models do; some steps are disturbed, the first among them, as they are on a real machine.

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

from statistics import mean, median

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
        num_steps: training steps of each model, at least 9.
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
    """AdamW, and the median of all steps but the first."""
    result = {"seconds": [], "accuracy": []}
    for depth in depths:
        model = make_model(depth).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.001)
        gaps = []
        for _ in range(num_steps):
            tokens, targets = make_batch(64)
            begin = clock()
            optimizer.zero_grad()
            F.cross_entropy(model(tokens).mT, targets).backward()
            optimizer.step()
            gaps.append(clock() - begin)
        tokens, targets = make_batch(256)
        hits = model.eval()(tokens).argmax(-1) == targets
        result["seconds"].append(median(gaps[1:]))
        result["accuracy"].append(hits.sum() / hits.numel())
    return result


V = 6
FORWARD, BACKWARD, UPDATE = 1.0, 2.0, 0.5  # how long each takes, in proportion
BATCHING = 0.004  # time of making a batch, which is no part of a step
# of eleven steps: the first two and the last, fast ones, the middle one among them, and one beside something else
DISTURBED = {0: 6.0, 1: 4.0, 2: 0.5, 5: 0.6, 7: 30.0, 9: 0.7, 10: 9.0}


def _time(num_blks, share=FORWARD + BACKWARD + UPDATE):
    """Time of a part of a step, or of a whole one, that nothing disturbs."""
    return 0.001 * (1 + num_blks) * share


class _Pointers(nn.Module):
    """The model of the statement; it notes what is done with it, and its work moves the clock."""

    def __init__(self, num_blks, bench, h=32):
        super().__init__()
        self.token, self.position = nn.Embedding(V, h), nn.Parameter(torch.randn(V, h))
        self.blks = nn.ModuleList(TransformerEncoderBlock(h, 2 * h, 2, norm_first=True) for _ in range(num_blks))
        self.head = nn.Sequential(nn.LayerNorm(h), nn.Linear(h, V))
        self.num_blks, self.bench, self.step, self.last = num_blks, bench, 0, None
        self.batches, self.updates, self.uncleared = [], 0, 0
        self.bias = self.head[1].bias.detach().clone().cpu()

    def forward(self, tokens):
        X = self.token(tokens) + self.position
        for blk in self.blks:
            X = blk(X)
        logits = self.head(X)
        if logits.requires_grad:
            logits.register_hook(lambda grad: self.note(tokens))
        self.step = len(self.batches)
        self.spend(FORWARD)
        new = tokens.tolist() == self.bench.made.get(len(tokens))
        self.last = tokens, logits.detach().argmax(-1), self.training, len(self.batches) if new else None
        return logits

    def note(self, tokens):
        """A backward pass begins."""
        old = self.head[1].bias.grad
        self.uncleared += old is not None and bool(old.any())
        self.batches.append(tuple(tokens.flatten().tolist()))
        self.spend(BACKWARD)

    def spend(self, share):
        self.bench.time += _time(self.num_blks, share) * DISTURBED.get(self.step, 1.0)

    def notice(self):
        """Was the optimiser here since the last look?"""
        bias = self.head[1].bias.detach().cpu()
        if not torch.equal(bias, self.bias):
            self.updates, self.bias = self.updates + 1, bias.clone()
            self.spend(UPDATE)


class _Bench:
    """What the answer gets: models, batches and a clock, with a record of what it does with them."""

    def __init__(self, device):
        self.device, self.models, self.time, self.made = device, [], 1.0, {}  # made: the last batch of each size

    def make_model(self, num_blks):
        self.models.append(_Pointers(num_blks, self).to(self.device))
        return self.models[-1]

    def make_batch(self, B):
        self.clock()  # what an optimiser has done belongs to the step before
        self.time += BATCHING
        tokens = torch.randint(V, (B, V), device=self.device)
        self.made[B] = tokens.tolist()
        return tokens, tokens.gather(1, tokens.gather(1, tokens))

    def clock(self):
        for model in self.models:
            model.notice()
        return self.time


def _record(given):
    """What was done with the models: plain data, by depth."""
    given[0].__self__.clock()  # notices the last step
    return [
        (m.num_blks, len(m.batches), len({b for b in m.batches if len(b) == 64 * V}), m.updates, m.uncleared, m.last)
        for m in given[0].__self__.models
    ]


def verify(t, answer):
    torch.manual_seed(t.seed)
    _run(t, answer, [3, 1, 6], 11)
    shallow, deep = [], []
    for depths in ([1, 2], [2, 1], [1, 2]):
        accuracy = _run(t, answer, depths, 110)
        shallow.append(accuracy[1])
        deep.append(accuracy[2])
        t.that(
            accuracy[2] > 0.5,
            "untrained",
            "after training, the model of two blocks is still mostly wrong: does the optimiser have all parameters of "
            "the model, is the learning rate near 0.01, and does each target meet the logits of its own position (a "
            "reshape is no transposition)?",
        )
    t.below(shallow, deep, 0.12, "no-gain", "two blocks should do clearly better on this task than one")


def _run(t, answer, depths, num_steps):
    """One call, checked; returns the accuracy by depth."""
    bench = _Bench(t.device)
    got = t.call(answer, bench.make_model, bench.make_batch, list(depths), num_steps, bench.clock)
    seconds, accuracy = t.fields(got, "seconds", "accuracy")
    for name, values in (("seconds", seconds), ("accuracy", accuracy)):
        message = f"`{name}` must be a list of {len(depths)} numbers, one for each depth"
        t.that(isinstance(values, (list, tuple)) and len(values) == len(depths), "shape", message)
    rows = t.look(_record)
    made, records = [row[0] for row in rows], {row[0]: row[1:] for row in rows}
    t.that(
        sorted(made) == sorted(depths),
        "models",
        f"make_model must be called once for each depth of {depths}; it was called for {made}",
    )
    shares = {}
    for depth, reported in zip(depths, accuracy, strict=True):
        (steps, fresh, updates, uncleared, last), model = records[depth], f"the model of {depth} blocks"
        t.that(steps == num_steps, "steps", f"{model} got {steps} backward passes, expected {num_steps}")
        t.that(fresh == num_steps, "same-batch", f"{model} must get a new batch of 64 sequences at every step")
        t.that(
            uncleared == 0, "uncleared", f"{model} gets new gradients on top of those of the step before: clear them"
        )
        message = f"{model} changes after {updates} of {num_steps} steps: is the optimiser's step called in each?"
        t.that(updates == num_steps, "no-update", message)
        tokens, chosen, training, after = last
        t.that(training is False, "not-eval", f"{model} is judged in training mode: call eval() before")
        message = f"{model} must be run on 256 new sequences of `make_batch` at the end, after all steps"
        t.that(len(tokens) == 256 and after == num_steps, "no-evaluation", message)
        hits = chosen == tokens.gather(1, tokens.gather(1, tokens))
        share = hits.double().mean().item()
        mistakes = {
            "error-rate": (1 - share, "this is the share of wrong tokens"),
            "summed": (hits.sum().item(), "this is the number of right tokens: divide by that of all tokens"),
            "sequences": (hits.all(1).double().mean().item(), "this is the share of sequences without any error"),
            "percent": (100 * share, "a share lies between 0 and 1"),
        }
        t.number(reported, share, f"`accuracy` for {depth} blocks", mistakes=mistakes, rtol=1e-4)
        shares[depth] = share
    factors = [DISTURBED.get(step, 1.0) for step in range(num_steps)]
    for depth, other, reported in zip(depths, depths[::-1], seconds, strict=True):
        whole = _time(depth)
        mistakes = {
            "total": (whole * sum(factors), "this is the time of all steps together, not that of one"),
            "mean": (whole * mean(factors), "this is the mean, which a single disturbed step spoils: take the median"),
            "first": (whole * factors[0], "this is the first step, which warms up: take the median of all"),
            "mean-of-rest": (
                whole * mean(factors[1:]),
                "this is the mean without the first step, which another disturbed one spoils: take the median",
            ),
            "slow-start": (whole * median(factors[:3]), "this is the median of the first few steps: take that of all"),
            "last": (whole * factors[-1], "this is the last step: take the median of all"),
            "unsorted": (
                whole * factors[num_steps // 2],
                "this is the step in the middle of the list as it stands: the median is the middle of the *sorted* one",
            ),
            "fastest": (whole * min(factors), "this is the fastest step: take the median"),
            "slowest": (whole * max(factors), "this is the slowest step: take the median"),
            "forward-only": (
                _time(depth, FORWARD),
                "only the forward pass is timed; backward and optimiser belong to it",
            ),
            "with-batch": (whole + BATCHING, "making the batch is timed, too: read the clock after it"),
            "no-optimiser": (_time(depth, FORWARD + BACKWARD), "the optimiser's step is not timed"),
            "no-forward": (_time(depth, BACKWARD + UPDATE), "the forward pass is not timed"),
            "turned": (_time(other), "this is the time of another depth: keep the order of `depths`"),
        }
        t.number(reported, whole, f"`seconds` for {depth} blocks", mistakes=mistakes, rtol=1e-4)
    return shares


MUTANTS = [
    Mutant("total", (".median().item()", ".sum().item()")),  # all steps together
    Mutant("mean", (".median().item()", ".mean().item()")),
    Mutant("fastest", (".median().item()", ".min().item()")),
    Mutant("mean-of-rest", (".median().item()", "[1:].mean().item()")),  # mean of the rest
    Mutant("last", (".median().item()", "[-1].item()")),
    Mutant("unsorted", (".median().item()", "[num_steps // 2].item()")),  # middle of the unsorted
    Mutant("forward-only", ("            optimizer.zero_grad()\n            loss.backward()\n            "
        "optimizer.step()\n            times.append(clock() - start)\n", "            times.append(clock() - start)\n"
        "            optimizer.zero_grad()\n            loss.backward()\n            optimizer.step()\n")),
    Mutant("no-optimiser", ("            optimizer.step()\n            times.append(clock() - start)\n",
        "            times.append(clock() - start)\n            optimizer.step()\n")),  # optimiser not timed
    Mutant("no-update", ("optimizer.step()", "pass")),  # no step of the optimiser
    Mutant("no-update", ("optimizer.step()", "len(times) % 2 and optimizer.step()")),  # every other time
    Mutant("with-batch", ("            tokens, targets = make_batch(64)\n            start = clock()\n",
        "            start = clock()\n            tokens, targets = make_batch(64)\n")),
    Mutant("slow-start", (".median().item()", "[:3].median().item()")),  # three steps
    Mutant("no-evaluation", ("tokens, targets = make_batch(256)", "tokens = tokens.repeat(4, 1)\n            targets = "
        "targets.repeat(4, 1)")),  # judged on what it has learned
    Mutant("uncleared", ("optimizer.zero_grad()", "pass")),  # gradients not cleared
    Mutant("untrained", ("lr=0.01", "lr=1e-6")),  # tiny learning rate
    Mutant("same-batch", ("tokens, targets = make_batch(64)",
        "tokens, targets = (tokens, targets) if times else make_batch(64)")),  # one batch for all steps
    Mutant("steps", ("range(num_steps)", "range(num_steps // 2)")),  # half of the steps
    Mutant("not-eval", ("model.eval()", "pass")),  # training mode
    Mutant("no-evaluation", ("make_batch(256)", "make_batch(64)")),  # judged on few
    Mutant("error-rate", ("argmax(-1) == targets", "argmax(-1) != targets")),  # share of errors
    Mutant("summed", (".float().mean().item()", ".float().sum().item()")),  # summed hits
    Mutant("sequences", ("targets).float()", "targets).all(1).float()")),  # whole sequences
    Mutant("models", ("make_model(depth)", "make_model(depths[0])")),  # one depth for all
    Mutant("turned", ('"seconds": seconds', '"seconds": seconds[::-1]')),  # list turned
    Mutant("shape", ('"accuracy": accuracy}', '"accuracy": accuracy[-1:]}')),  # one number
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.7.1",
    doc=__doc__,
    source="D2L 11.7, exercise 1",
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
            seconds=60.0,
            advice={
                "values": "Write down all readings of the clock for one model: which two belong to a step, and which "
                "of the steps is the median? The accuracy is the number of right tokens over that of all 256 x T.",
            },
            mutants=MUTANTS,
            explanation=r"""
Time grows as $a + bL$: each of the L blocks does the same work, forward and backward, and $a$ is what is outside of
them. Memory for the activations does likewise. So depth has a plain price.

What it buys depends on the task. Here one block of this size is stuck: it can follow a jump, but nothing has composed
two jumps *before* it looks. The second block finds at each position what the first has put there, and so jumps twice at
once. A third block makes the same time dearer and has nothing left to compose. Quality rises with depth until the task
is met, or until the data are too few, or until the optimiser no longer manages; the price rises on.

Is it the same on translation? Repeat the measurement with the chapter's corpus and `num_blks` of 1, 2 and 4, several
seeds each, and put the spread over seeds beside the differences before you say that one is better.
With the norm after the residual connections, deep stacks may also train *worse*, for reasons that have nothing to do
with what they could express.
""",
        )
    ],
)
