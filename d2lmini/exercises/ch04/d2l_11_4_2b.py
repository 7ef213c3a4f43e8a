"""Part b of d2l-11.4.2, "Scaled dot products in Bahdanau's decoder": `compare`."""

import math
import statistics
import time
from itertools import pairwise

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Experiment, Mutant


def compare(make, train, valid, long, seed):
    """Train with both scores on one budget, and time them.

    Args:
        make: dict from "additive" and "dot" to a function without arguments that makes an untrained d2l.Seq2Seq.
        train: the one batch to train on, D2L's tuple (src, tgt_in, src_valid_len, tgt_out).
        valid: the batch to be judged on, and not to be trained on.
        long: a batch of long sources, for timing only.
        seed: for torch.manual_seed, before each model is made.

    Returns:
        dict: "additive" and "dot", the losses on ``valid`` after training, in evaluation mode; "additive_seconds" and
        "dot_seconds", the median CPU time of a loss on ``long`` with its backward pass; "more_parameters", how many the
        additive model has more.
    """
    ### BEGIN SOLUTION
    import time

    models, result = {}, {}
    for kind in ("additive", "dot"):
        torch.manual_seed(seed)
        model = models[kind] = make[kind]()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
        model.train()
        for _ in range(16):
            loss = model.loss(model(*train[:-1]), train[-1])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            result[kind] = model.loss(model(*valid[:-1]), valid[-1]).item()

    times = {"additive": [], "dot": []}
    for _ in range(4):
        for kind, model in models.items():  # in turns: whatever slows the machine down slows both
            start = time.process_time()
            model.loss(model(*long[:-1]), long[-1]).backward()
            times[kind].append(time.process_time() - start)
    for kind, seconds in times.items():
        result[kind + "_seconds"] = torch.tensor(seconds[1:]).median().item()  # the first is a warm-up
    count = {kind: sum(p.numel() for p in model.parameters()) for kind, model in models.items()}
    result["more_parameters"] = count["additive"] - count["dot"]
    return result
    ### END SOLUTION


def with_another_optimizer(make, train, valid, long, seed):
    report, seconds, models = {}, {}, {}
    for kind, build in make.items():
        torch.manual_seed(seed)
        model = models[kind] = build().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.04)
        for _ in range(16):
            optimizer.zero_grad()
            model.loss(model(*train[:-1]), train[-1]).backward()
            optimizer.step()
        report[kind] = model.eval().loss(model(*valid[:-1]), valid[-1]).item()
    report["more_parameters"] = sum(p.numel() for p in models["additive"].decoder.attention.parameters())
    for kind in [*models] * 4:
        start = time.process_time()
        models[kind].loss(models[kind](*long[:-1]), long[-1]).backward()
        seconds.setdefault(kind, []).append(time.process_time() - start)
    return {**report, **{f"{kind}_seconds": statistics.median(values) for kind, values in seconds.items()}}


def _toy(t, B, S=3, T=3, V=8):
    """Sentences to be 'translated' by adding one to each token and writing them backwards. 0: pad, 1: bos."""
    src = t.integers(2, V - 1, B, S)
    tgt = src.flip(1)[:, :T] + 1
    tgt_in = torch.cat([torch.ones(B, 1, dtype=torch.long), tgt[:, :-1]], 1)
    return src, tgt_in, torch.full((B,), S), tgt


DELAY = 0.06  # seconds: more than the two scores differ by
VALID = 40  # sentences to judge by: as many as in no other batch


FAULTS = {  # code, and what is told
    "part": ("part-of-batch", "a model was trained on a part of `train`: each step takes the whole batch"),
    "evaluation": ("not-training", "a model was trained in evaluation mode: call train() before the first step"),
    "late": (
        "timed-on-train",
        "a model that had been judged on `valid` ran backward on `train` in evaluation mode: the runs to time are on "
        "`long`, and those to train on come after train()",
    ),
    "uncleared": (
        "uncleared",
        "a model gets new gradients on top of old ones: clear them before every backward pass of the training",
    ),
    "judged": ("not-eval", "a model was run on `valid` in training mode: call eval() before you judge it"),
    "stepped": (
        "steps-timed",
        "parameters change while the model is timed: a loss on `long` and its backward pass alone",
    ),
}


class _Maker:
    """Makes one model, and notes how it begins and what it is run on.

    ``order`` is one list for all: a word for every run on long sources. In such a run the model is held up, ``forward``
    or ``backward``: a ``slow`` one each time, another one the first and the fifth time and for long. No times but those
    of this run are then right.
    """

    SIZES = 8, 16, 16, 1

    def __init__(self, kind, src=None, order=None, slow=False, waits=None):
        self.kind, self.src, self.model, self.start, self.slow, self.waits = kind, src, None, None, slow, waits
        self.order = [] if order is None else order
        self.sentences, self.foreign, self.long, self.timed, self.faults = 0, 0, 0, None, set()
        self.judged, self.begun, self.elapsed = (
            False,
            None,
            0.0,
        )  # seconds from when it is made to its last run on long sources

    def __call__(self):
        attention = d2l.DotProductAttention() if self.kind == "dot" else None
        decoder = d2l.Seq2SeqAttentionDecoder(*self.SIZES, attention=attention)
        self.model = d2l.Seq2Seq(d2l.Seq2SeqEncoder(*self.SIZES), decoder, 0, 0.02)
        self.model.register_forward_hook(self.watch)
        self.begun = time.process_time(), time.perf_counter()
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}
        return self.model

    def watch(self, module, args, logits):
        self.judged |= len(args[0]) == VALID
        if len(args[0]) == VALID and module.training:
            self.faults.add("judged")
        if args[0].shape[1] > 20:
            self.order.append(self.kind)
            self.wait("forward")
            if logits.requires_grad:
                logits.register_hook(lambda grad: self.time())
        elif logits.requires_grad:
            logits.register_hook(lambda grad: self.note(args[0]))

    def time(self):
        """A backward pass on long sources: none of the parameters may have changed since the last one."""
        now = self.sentences, [p.detach().clone() for p in self.model.parameters()]
        if self.timed and self.timed[0] == now[0] and not all(map(torch.equal, self.timed[1], now[1])):
            self.faults.add("stepped")
        self.long, self.timed = self.long + 1, now
        self.wait("backward")
        self.elapsed = max(time.process_time() - self.begun[0], time.perf_counter() - self.begun[1])

    def wait(self, where):
        if where != self.waits:
            return
        seconds = DELAY if self.slow else DELAY * {1: 6, 5: 6}.get(self.order.count(self.kind), 0)
        begun = time.process_time(), time.perf_counter()
        while min(time.process_time() - begun[0], time.perf_counter() - begun[1]) < seconds:
            pass

    def note(self, src):
        known = (src[:, None] == self.src).all(-1).any(-1)  # (B,): is it a sentence of `train`?
        self.sentences, self.foreign = self.sentences + len(src), self.foreign + int((~known).sum())
        faults = {
            "part": len(src) < len(self.src),
            "evaluation": not (self.model.training or self.judged),
            "late": self.judged and not self.model.training,
            "uncleared": all(p.grad is not None and bool(p.grad.any()) for p in self.model.parameters()),
        }
        self.faults |= {name for name, made in faults.items() if made}


def _state(given):
    """What `compare` did with the makers: plain data."""
    made = {kind: maker for kind, maker in given[0].items() if maker.model is not None}
    states = {kind: (maker.start, dict(maker.model.state_dict())) for kind, maker in made.items()}
    runs = {kind: (maker.sentences, maker.foreign, maker.long) for kind, maker in made.items()}
    elapsed = max((maker.elapsed for maker in made.values()), default=0.0)
    return states, runs, sorted(set().union(*(maker.faults for maker in made.values()))), given[0]["dot"].order, elapsed


def verify_compare(t, answer):
    V, size = _Maker.SIZES[:2]
    more = 2 * size**2 + size
    names = "additive", "dot", "additive_seconds", "dot_seconds", "more_parameters"
    reports = []
    kinds = t.random.sample(("additive", "dot"), 2)
    for seed, slow, waits in zip((t.seed % 1000, t.seed % 1000 + 1), kinds, ("forward", "backward"), strict=True):
        train, valid, long = _toy(t, 64), _toy(t, VALID), _toy(t, 24, 40, 6)
        order = []
        makers = {kind: _Maker(kind, train[0], order, kind == slow, waits) for kind in ("additive", "dot")}
        got = t.call(answer, makers, train, valid, long, seed)
        report = dict(zip(names, t.fields(got, *names), strict=True))
        for name in ("additive_seconds", "dot_seconds"):
            value = report[name]
            number = isinstance(value, (int, float)) or (isinstance(value, torch.Tensor) and value.numel() == 1)
            t.that(number, "type", f"{name!r} is a {type(value).__name__}, expected a number")
        states, runs, faults, order, elapsed = t.look(_state)
        t.that(set(states) == {"additive", "dot"}, "not-made", "both models must be made with the functions in `make`")
        negative = {"fewer": (-more, "it is the additive model that has more: turn the difference around")}
        t.number(report["more_parameters"], more, "'more_parameters'", mistakes=negative)
        (additive, foreign, additive_long), (dot, more_foreign, dot_long) = runs["additive"], runs["dot"]
        message = "a model was trained on sentences that are not in `train`: `valid` is for judging alone"
        t.that(foreign == more_foreign == 0, "trained-on-valid", message)
        t.that(additive == dot, "budget", "the two models were not trained on equally many sentences")
        t.that(additive > 0, "not-trained", "no backward pass of a loss on `train` was seen: that is what to train on")
        message = (
            "no backward pass on `long` was seen, and new gradients of a loss on `train` came on top of old ones: the "
            "runs to time are on `long`, and before each backward pass of the training the gradients are cleared"
        )
        t.that(additive_long + dot_long > 0 or "uncleared" not in faults, "timed-on-train", message)
        for fault in faults:
            t.that(False, *FAULTS[fault])
        message = "for a median each model must run on `long`, forward and backward, three times or more"
        t.that(additive_long == dot_long >= 3, "not-timed", f"{message}, and both equally often")
        changes = sum(a != b for a, b in pairwise(order))
        message = "the two models must be timed in turns: whatever slows the machine down then slows both"
        t.that(changes >= 3, "no-turns", message)
        other = "dot" if slow == "additive" else "additive"
        seconds, fewer = float(report[f"{slow}_seconds"]), float(report[f"{other}_seconds"])
        message = (
            f"in this run the model {slow!r} was held up in each {waits} pass on `long`, and {other!r} only in the "
            "first and the fifth, but for longer. Your times do not show it: are they measured in this run, forward "
            "and backward, is each the median of its model, and under its own name?"
        )
        t.that(seconds >= DELAY and seconds > fewer, "not-measured", message)
        message = "your times are too long for the runs on `long` that were seen: are they in seconds, each of one run?"
        t.that(seconds <= 2 * elapsed / dot_long, "too-long", message)  # half of all times are no shorter than a median
        losses = {}
        for kind, (begun, state) in states.items():
            torch.manual_seed(seed)
            model = _Maker(kind)().eval()
            same = all(torch.equal(value, begun[name]) for name, value in model.state_dict().items())
            message = "does not begin as torch.manual_seed(seed) has it: seed torch just before each model is made"
            t.that(same, "unseeded", f"the model {kind!r} {message}")
            still = [name for name, value in begun.items() if torch.equal(value, state[name])]
            moved = len(still) in (0, len(begun))  # where nothing moves, nothing is learned: see below
            message = f"in the model {kind!r} {', '.join(still[:2])} never change: give the optimizer all parameters"
            t.that(moved, "partly-trained", message)
            model.load_state_dict(state)
            with torch.no_grad():
                losses[kind] = [float(model.loss(model(*batch[:-1]), batch[-1])) for batch in (valid, train, long)]
        for kind, other in (("additive", "dot"), ("dot", "additive")):
            mistakes = {
                "swapped": (losses[other][0], f"{kind!r} holds the loss of the other model"),
                "train-loss": (losses[kind][1], f"{kind!r} is the loss on `train`, not on `valid`"),
                "long-loss": (losses[kind][2], f"{kind!r} is the loss on `long`, which is for timing only"),
            }
            t.number(report[kind], losses[kind][0], repr(kind), mistakes=mistakes, rtol=1e-3)
        reports.append(report)
    for kind in ("additive", "dot"):
        message = (
            f"the model {kind!r} has hardly learned: its validation loss is still near that of guessing. Are all "
            "parameters given to the optimizer, in enough steps?"
        )
        bounds = [0.75 * math.log(V - 2)] * 2
        t.below([report[kind] for report in reports], bounds, 0.0, "not-learned", message)


MUTANTS = [
    Mutant("budget", ("range(16)", "range(16 if kind == 'dot' else 19)")),  # more steps for one
    Mutant("unseeded", ("torch.manual_seed(seed)", "pass")),  # never seeded
    Mutant("partly-trained", ("Adam(model.parameters()", "Adam(model.decoder.parameters()")),  # decoder alone
    Mutant("part-of-batch", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "half = [x[:32] for x in train]\n            loss = model.loss(model(*half[:-1]), half[-1])")),
    Mutant("not-trained", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "loss = model.loss(model(*long[:-1]), long[-1])")),  # trained on long
    Mutant("not-training", ("model.train()", "model.eval()")),  # trained in evaluation mode
    Mutant("not-eval", ("model.eval()", "pass")),  # judged in training mode
    Mutant("uncleared", ("optimizer.zero_grad()", "pass")),  # gradients not cleared
    Mutant("timed-on-train", ("model(*long[:-1]), long[-1])", "model(*train[:-1]), train[-1])")),
    Mutant("timed-on-train", ("model.loss(model(*long[:-1]), long[-1])",
        "model.train().loss(model(*train[:-1]), train[-1])")),  # in training mode
    Mutant("not-timed", ("long[-1]).backward()", "long[-1])")),  # forward alone
    Mutant("steps-timed", ("long[-1]).backward()",
        "long[-1]).backward()\n            torch.optim.SGD(model.parameters(), 0.01).step()")),  # steps timed, too
    Mutant("no-turns", ("for _ in range(4):\n        for kind, model in models.items():",
        "for kind, model in models.items():\n        for _ in range(4):")),  # not in turns
    Mutant("not-learned", ("optimizer.step()", "pass")),  # no steps
    Mutant("trained-on-valid", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "loss = model.loss(model(*valid[:-1]), valid[-1])")),
    Mutant("fewer", ('count["additive"] - count["dot"]', 'count["dot"] - count["additive"]')),  # difference turned
    Mutant("train-loss", ("model(*valid[:-1]), valid[-1]", "model(*train[:-1]), train[-1]")),  # training loss
    Mutant("swapped", ("return result", 'return {**result, "dot": result["additive"], "additive": result["dot"]}')),
    Mutant("not-timed", ("for _ in range(4):", "for _ in range(2):")),  # timed once
    Mutant("too-long", ("median().item()", "median().item() * 1000")),  # milliseconds
    # invented
    Mutant("not-measured", ("torch.tensor(seconds[1:]).median().item()", "{'additive': 2.0, 'dot': 1.0}[kind]")),
    Mutant("not-measured", ("torch.tensor(seconds[1:]).median()", "torch.tensor(seconds).mean()")),  # of all, a mean
    # names of the times swapped
    Mutant("not-measured", ('[kind + "_seconds"]', '[{"dot": "additive", "additive": "dot"}[kind] + "_seconds"]')),
    # the backward pass alone
    Mutant("not-measured", ("start = time.process_time()\n            model.loss(model(*long[:-1]), long[-1])."
        "backward()", "loss = model.loss(model(*long[:-1]), long[-1])\n            start = time.process_time()\n"
        "            loss.backward()")),
    Mutant("type", ("return result", "return list(result.values())")),  # a list
]  # fmt: skip


PART = Experiment(
    key="d2l-11.4.2b",
    prompt="""
Write `compare(make, train, valid, long, seed)`. Train both models on one budget (16 steps of Adam with learning
rate 0.03 will do) and report their losses on `valid`. Then time both, forward and backward on `long`, in turns, and
report medians. The toy corpus has sentences of three tokens, to be written backwards, each token raised by one;
`long` has sources of forty. (The check holds the models up, to see that your times are measured: try them on
batches of your own, too. It can tell neither CPU time from that on the wall, nor medians from means, sums
or least values of a few times.)

Predict first: how many parameters does the additive score have with vectors of h numbers? At h = 256? And which
model takes longer?
""",
    hints=[
        "Loss of a model on a batch: `model.loss(model(*batch[:-1]), batch[-1])`.",
        "`time.process_time()` counts no other program (`import time` in your function). Drop the first value.",
        "Parameters: the difference of two sums of `p.numel()`. By hand: two matrices and a vector.",
    ],
    answer=compare,
    verify=verify_compare,
    alternatives=[with_another_optimizer],
    seconds=60.0,
    advice={"values": "Losses: on all of `valid`, after the last step. Parameters: of one model less the other"},
    mutants=MUTANTS,
    explanation="""
The additive score has $2 h^2 + h$ parameters: 131,328 at $h = 256$. For each pair of query and key it computes h
tangents where the dot product has one sum of h products, and the backward pass needs all of them. So it is slower. By
how much, in a decoder this small? Look at your two times: most of them goes into what both share, the recurrences. It
is in a model *without* recurrence that the score dominates, and there speed decided: chapter 07's model has dot
products. It gets the two matrices back as projections of queries and keys, where they cost one matrix product for the
whole sentence and not a network for each pair.

In quality the two can hardly be told apart here. What a score can express matters less when queries and keys are
learned anyway.
""",
)
