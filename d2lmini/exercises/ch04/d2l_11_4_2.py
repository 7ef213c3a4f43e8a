r"""Scaled dot products in Bahdanau's decoder

Bahdanau scores a state against an encoder output with a small network. Both are vectors of the same size h here, so
a scaled dot product would do as well, and it needs no parameters at all. Replace the one by the other. Then measure
what that changes: parameters, time, and what is learned.
"""

import math
import time
from itertools import pairwise

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant


def decode(decoder, X, memory, hidden, valid_lens):
    """Run the decoder over all tokens of X with scaled dot-product attention.

    Args:
        decoder: a module with ``embedding`` (nn.Embedding), ``rnn`` (nn.GRU of several layers, time first) and
            ``dense`` (nn.Linear).
        X: (B, T), tokens.
        memory: (B, S, h), the encoder's outputs: keys and values.
        hidden: (layers, B, h), the state of the GRU.
        valid_lens: (B,), how many of the S keys count, at least 1.

    Returns:
        Logits (B, T, V), and the attention weights (B, T, S).
    """
    ### BEGIN SOLUTION
    S, h = memory.shape[1:]
    padding = torch.arange(S, device=memory.device) >= valid_lens[:, None]  # (B, S)
    logits, weights = [], []
    for x in decoder.embedding(X.t()):  # (B, embed_size)
        query = hidden[-1]  # (B, h)
        scores = (memory @ query[:, :, None]).squeeze(-1) / math.sqrt(h)  # (B, S)
        scores = scores.masked_fill(padding, -torch.inf)
        row = torch.softmax(scores, dim=-1)
        context = (row[:, :, None] * memory).sum(dim=1)  # (B, h)
        output, hidden = decoder.rnn(torch.cat([x, context], dim=-1)[None], hidden)
        logits.append(decoder.dense(output[0]))
        weights.append(row)
    return torch.stack(logits, dim=1), torch.stack(weights, dim=1)
    ### END SOLUTION


def with_the_package(decoder, X, memory, hidden, valid_lens):
    """The package's decoder with another module for its attention."""
    vocab_size, embed_size = decoder.embedding.weight.shape
    sizes = vocab_size, embed_size, memory.shape[-1], decoder.rnn.num_layers
    model = d2l.Seq2SeqAttentionDecoder(*sizes, attention=d2l.DotProductAttention()).eval()
    for name in ("embedding", "rnn", "dense"):
        setattr(model, name, getattr(decoder, name))
    logits, _ = model(X, (memory, hidden.transpose(0, 1), valid_lens))
    return logits, torch.cat(model.attention_weights, 1)


class _Decoder(nn.Module):
    """What the learner gets: the parts, without a forward."""

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = nn.GRU(embed_size + num_hiddens, num_hiddens, num_layers)
        self.dense = nn.Linear(num_hiddens, vocab_size)


def _reference(decoder, X, memory, hidden, valid_lens):
    """Logits and weights in the dtype of the decoder."""
    logits, weights = [], []
    padding = torch.arange(memory.shape[1]) >= valid_lens[:, None]
    for x in decoder.embedding(X.T):
        scores = torch.einsum("bh,bsh->bs", hidden[-1], memory) * memory.shape[-1] ** -0.5
        row = torch.softmax(scores.masked_fill(padding, -torch.inf), -1)
        step = torch.cat([x, torch.einsum("bs,bsh->bh", row, memory)], -1)
        output, hidden = decoder.rnn(step[None], hidden)
        logits.append(decoder.dense(output[0]))
        weights.append(row)
    return torch.stack(logits, 1), torch.stack(weights, 1)


def verify_decode(t, answer):
    B, S, T, h, embed, V = t.sizes(6, 3, 10)
    torch.manual_seed(t.seed)
    decoder = _Decoder(V, embed, h, num_layers=2)
    with torch.no_grad():
        for parameter in decoder.parameters():  # large enough that every fault shows
            parameter.copy_(t.randn(*parameter.shape, scale=0.6))
    X, memory, hidden = t.integers(0, V, B, T), t.randn(B, S, h), t.randn(2, B, h)
    valid_lens = t.integers(1, S, B)  # all of them leave some padding
    valid_lens[0] = 2
    memory.requires_grad_()

    exact = _Decoder(V, embed, h, num_layers=2).double()
    exact.load_state_dict(decoder.state_dict())
    inputs = X, memory.detach().double().requires_grad_(), hidden.double(), valid_lens
    logits, weights = _reference(exact, *inputs)
    (slope,) = torch.autograd.grad(logits.sum(), inputs[1])
    got = t.call(answer, decoder, X, memory, hidden, valid_lens)
    got_logits, got_weights = t.unpack(got, "logits", "weights")
    t.same(got_logits, logits.detach(), "the logits")
    t.same(got_weights, weights.detach(), "the weights")
    t.same(t.gradient(got_logits, 2, "the logits"), slope, "the gradient in the memory", tolerance=(1e-3, 1e-4))

    # whatever stands in the padding makes no difference
    padding = torch.arange(S) >= valid_lens[:, None]
    other = memory.detach().masked_fill(padding[..., None], 30.0)
    got_logits, got_weights = t.unpack(t.call(answer, decoder, X, other, hidden, valid_lens), "logits", "weights")
    t.same(got_logits, logits.detach(), "the logits with other numbers in the padding")
    t.same(got_weights, weights.detach(), "the weights with other numbers in the padding")

    # a batch of one, with scores of about -30 for all that counts, and of 0 in the padding
    query = hidden[-1, :1]  # (1, h)
    far = -30 * math.sqrt(h) * query / query.square().sum() * t.rand(1, S, 1, low=0.99, high=1.01)
    far = far.masked_fill(padding[:1, :, None], 0.0)
    inputs = X[:1, :1], far, hidden[:, :1], valid_lens[:1]
    logits, weights = _reference(exact, inputs[0], far.double(), inputs[2].double(), inputs[3])
    got_logits, got_weights = t.unpack(t.call(answer, decoder, *inputs), "logits", "weights")
    t.same(got_logits, logits.detach(), "with a batch of one and low scores, the logits")
    t.same(got_weights, weights.detach(), "with a batch of one and low scores, the weights")


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
    found, seconds, models = {"more_parameters": 0}, {}, {}
    for kind, build in make.items():
        torch.manual_seed(seed)
        model = models[kind] = build().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.04)
        for _ in range(16):
            optimizer.zero_grad()
            model.loss(model(*train[:-1]), train[-1]).backward()
            optimizer.step()
        found[kind] = model.eval().loss(model(*valid[:-1]), valid[-1]).item()
    found["more_parameters"] = sum(p.numel() for p in models["additive"].decoder.attention.parameters())
    for kind in [*models] * 4:
        start = time.process_time()
        models[kind].loss(models[kind](*long[:-1]), long[-1]).backward()
        seconds.setdefault(kind, []).append(time.process_time() - start)
    return {**found, **{f"{kind}_seconds": min(values) for kind, values in seconds.items()}}


def _toy(t, B, S=3, T=3, V=8):
    """Sentences to be 'translated' by adding one to each token and writing them backwards. 0: pad, 1: bos."""
    src = t.integers(2, V - 1, B, S)
    tgt = src.flip(1)[:, :T] + 1
    tgt_in = torch.cat([torch.ones(B, 1, dtype=torch.long), tgt[:, :-1]], 1)
    return src, tgt_in, torch.full((B,), S), tgt


VALID = 40  # sentences to judge by: as many as in no other batch
FAULTS = {  # code, and what is told
    "part": ("part-of-batch", "a model was trained on a part of `train`: each step takes the whole batch"),
    "evaluation": ("not-training", "a model was trained in evaluation mode: call train() before the first step"),
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

    ``order`` is one list for all: a letter for every run on long sources.
    """

    SIZES = 8, 16, 16, 1

    def __init__(self, kind, src=None, order=None):
        self.kind, self.src, self.model, self.start = kind, src, None, None
        self.order = [] if order is None else order
        self.sentences, self.foreign, self.long, self.timed, self.faults = 0, 0, 0, None, set()

    def __call__(self):
        attention = d2l.DotProductAttention() if self.kind == "dot" else None
        decoder = d2l.Seq2SeqAttentionDecoder(*self.SIZES, attention=attention)
        self.model = d2l.Seq2Seq(d2l.Seq2SeqEncoder(*self.SIZES), decoder, 0, 0.02)
        self.model.register_forward_hook(self.watch)
        self.start = {name: value.clone() for name, value in self.model.state_dict().items()}
        return self.model

    def watch(self, module, args, logits):
        if len(args[0]) == VALID and module.training:
            self.faults.add("judged")
        if args[0].shape[1] > 20:
            self.order.append(self.kind)
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

    def note(self, src):
        known = (src[:, None] == self.src).all(-1).any(-1)  # (B,): is it a sentence of `train`?
        self.sentences, self.foreign = self.sentences + len(src), self.foreign + int((~known).sum())
        faults = {
            "part": len(src) < len(self.src),
            "evaluation": not self.model.training,
            "uncleared": all(p.grad is not None and bool(p.grad.any()) for p in self.model.parameters()),
        }
        self.faults |= {name for name, found in faults.items() if found}


def _state(given):
    """What `compare` did with the makers: plain data."""
    made = {kind: maker for kind, maker in given[0].items() if maker.model is not None}
    states = {kind: (maker.start, dict(maker.model.state_dict())) for kind, maker in made.items()}
    runs = {kind: (maker.sentences, maker.foreign, maker.long) for kind, maker in made.items()}
    return states, runs, sorted(set().union(*(maker.faults for maker in made.values()))), given[0]["dot"].order


def verify_compare(t, answer):
    V, size = _Maker.SIZES[:2]
    more = 2 * size**2 + size
    names = "additive", "dot", "additive_seconds", "dot_seconds", "more_parameters"
    reports = []
    for seed in (t.seed % 1000, t.seed % 1000 + 1):
        train, valid, long = _toy(t, 64), _toy(t, VALID), _toy(t, 24, 40, 6)
        order = []
        makers = {kind: _Maker(kind, train[0], order) for kind in ("additive", "dot")}
        got = t.call(answer, makers, train, valid, long, seed)
        report = dict(zip(names, t.fields(got, *names), strict=True))
        for name in ("additive_seconds", "dot_seconds"):  # shown and not judged: a clock tells what else is running
            value = report[name]
            number = isinstance(value, (int, float)) or (isinstance(value, torch.Tensor) and value.numel() == 1)
            t.that(number, "type", f"{name!r} is a {type(value).__name__}, expected a number")
        states, runs, faults, order = t.look(_state)
        t.that(set(states) == {"additive", "dot"}, "not-made", "both models must be made with the functions in `make`")
        negative = {"fewer": (-more, "it is the additive model that has more: turn the difference around")}
        t.number(report["more_parameters"], more, "'more_parameters'", mistakes=negative)
        (additive, foreign, additive_long), (dot, more_foreign, dot_long) = runs["additive"], runs["dot"]
        message = "a model was trained on sentences that are not in `train`: `valid` is for judging alone"
        t.that(foreign == more_foreign == 0, "trained-on-valid", message)
        t.that(additive == dot, "budget", "the two models were not trained on equally many sentences")
        t.that(additive > 0, "not-trained", "no backward pass of a loss on `train` was seen: that is what to train on")
        for fault in faults:
            t.that(False, *FAULTS[fault])
        message = "for a median each model must run on `long`, forward and backward, three times or more"
        t.that(additive_long == dot_long >= 3, "not-timed", f"{message}, and both equally often")
        changes = sum(a != b for a, b in pairwise(order))
        message = "the two models must be timed in turns: whatever slows the machine down then slows both"
        t.that(changes >= 3, "no-turns", message)
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


MUTANTS_A = [
    Mutant("mask-low", ("-torch.inf", "-20.0"), "a score of minus twenty is low but a score: where all others are "
        "lower, padding gets the weight"),
    Mutant("late-query", ("        query = hidden[-1]  # (B, h)", "        ahead = torch.cat([x, "
        "torch.zeros_like(hidden[-1])], dim=-1)[None]\n        query = decoder.rnn(ahead, hidden)[0][0]"),
        "the query has already read the token of its step: it is the state from before"),
    Mutant("weights-late", ("weights.append(row)", "scores = (memory @ hidden[-1][:, :, None]).squeeze(-1) / "
        "math.sqrt(memory.shape[2])\n        weights.append(torch.softmax(scores.masked_fill(padding, -1e9), dim=-1))"),
        "these are the weights of the state *after* the step: return those that made the context"),
    Mutant("longest", (">= valid_lens[:, None]", ">= valid_lens.max().expand(len(X))[:, None]"), "all examples get the "
        "valid length of the longest: each has its own"),
    Mutant("reshaped", ("torch.stack(logits, dim=1)", "torch.stack(logits).reshape(*X.shape, -1)"),
        "these are the numbers of (T, B, ...), counted off as if they were (B, T, ...): the axes must be swapped"),
    Mutant("reshaped", ("torch.stack(weights, dim=1)", "torch.stack(weights).reshape(*X.shape, -1)"),
        "these are the numbers of (T, B, ...), counted off as if they were (B, T, ...): the axes must be swapped"),
    Mutant("raised", ("(scores, dim=-1)", "(scores.squeeze(), dim=-1)")),  # squeezed
    Mutant("unscaled", (" / math.sqrt(h)", ""), "the scores are not divided by the root of h"),
    Mutant("by-h", (" / math.sqrt(h)", " / h"), "the scores are divided by h, not by its root"),
    Mutant("by-keys", ("math.sqrt(h)", "math.sqrt(S)"), "the scores are divided by the root of the number of keys, not "
        "of h, the number of features"),
    Mutant("unmasked", ("masked_fill(padding, -torch.inf)", "clone()"), "padding gets weight: where are the valid "
        "lengths?"),
    Mutant("polarity", (">= valid_lens", "< valid_lens"), "the mask is upside down: padding gets all of the weight, "
        "and the real keys none"),
    Mutant("one-more", (">= valid_lens", "> valid_lens"), "one key of the padding gets weight: with valid length n, "
        "the keys 0 to n - 1 count"),
    Mutant("mask-zero", ("-torch.inf", "0.0"), "padding gets weight: a score of zero is an ordinary score, it takes "
        "minus infinity to say no"),
    Mutant("mask-late",
        ("scores = scores.masked_fill(padding, -torch.inf)\n        row = torch.softmax(scores, dim=-1)",
        "row = torch.softmax(scores, dim=-1).masked_fill(padding, 0)"), "the mask comes after the softmax, so that the "
        "weights of a short sentence do not sum to one"),
    Mutant("query-layer", ("query = hidden[-1]", "query = hidden[0]"), "the query is the state of the first layer, not "
        "of the last"),
    Mutant("stale-query", ("logits, weights = [], []\n    for x in decoder.embedding(X.t()):  # (B, embed_size)\n"
        "        query = hidden[-1]  # (B, h)",
        "logits, weights, query = [], [], hidden[-1]\n    for x in decoder.embedding(X.t()):"), "the query is the same "
        "at every step: take the state that the last step left"),
    Mutant("state-kept", ("output, hidden = decoder.rnn", "output, _ = decoder.rnn"), "every step starts from the "
        "state that was given: carry on the one that the GRU gives back"),
    Mutant("order", ("torch.cat([x, context]", "torch.cat([context, x]"), "the token's embedding comes first, the "
        "context second"),
    Mutant("nonfinite", ("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=0)")),  # over the batch
    Mutant("nonfinite", ("weights.append(row)", "weights.append(scores)")),  # scores for weights
    Mutant("shape", ("torch.stack(weights, dim=1)", "torch.stack(weights)")),  # weights time first
]  # fmt: skip

MUTANTS_B = [
    Mutant("budget", ("range(16)", "range(16 if kind == 'dot' else 19)")),  # more steps for one
    Mutant("unseeded", ("torch.manual_seed(seed)", "pass")),  # never seeded
    Mutant("partly-trained", ("Adam(model.parameters()", "Adam(model.decoder.parameters()")),  # decoder alone
    # part of the batch
    Mutant("part-of-batch", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "half = [x[:32] for x in train]\n            loss = model.loss(model(*half[:-1]), half[-1])")),
    Mutant("not-trained", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "loss = model.loss(model(*long[:-1]), long[-1])")),  # trained on long
    Mutant("not-training", ("model.train()", "model.eval()")),  # trained in evaluation mode
    Mutant("not-eval", ("model.eval()", "pass")),  # judged in training mode
    Mutant("uncleared", ("optimizer.zero_grad()", "pass")),  # gradients not cleared
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
    # names swapped
    Mutant("swapped", ("return result", 'return {**result, "dot": result["additive"], "additive": result["dot"]}')),
    Mutant("not-timed", ("for _ in range(4):", "for _ in range(2):")),  # timed once
    Mutant("type", ("return result", "return list(result.values())")),  # a list
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.4.2",
    doc=__doc__,
    source="D2L 11.4, exercise 2",
    parts=[
        Code(
            key="d2l-11.4.2a",
            prompt="""
Write `decode(decoder, X, memory, hidden, valid_lens)`: the decoder of section 11.4 over all T tokens, with softmax of
$\\mathbf q^\\top \\mathbf k_i / \\sqrt h$ for its weights. Keys beyond the valid length get none. As before, the
query of a step is the state of the top layer *before* the step reads its token. Return the weights, too: you will
want to look at them.
""",
            hints=[
                "Keys and values are the same tensor, `memory`. The query of a step is one vector for each example.",
                "Scores of shape (B, S); minus infinity where `torch.arange(S) >= valid_lens[:, None]`, then softmax.",
                "`d2l.Seq2SeqAttentionDecoder` takes any attention: see its argument `attention`, and "
                "`d2l.DotProductAttention`. Or write the loop of chapter 04 with three lines changed.",
            ],
            answer=decode,
            verify=verify_decode,
            alternatives=[with_the_package],
            advice={
                "nonfinite": "A softmax over nothing but minus infinities is NaN: is it taken over the keys, and does "
                "the mask leave some? And it is the weights that are asked for, not the scores.",
                "raised": "If it is a batch of one that fails: `.squeeze()` takes every axis of size one, so name the "
                "one that you mean.",
            },
            mutants=MUTANTS_A,
            explanation="""
Three lines changed and a layer less. What was lost? The additive score has two matrices of its own, so that it may
compare any direction of the state with any other of the outputs. The dot product compares number with number, and
leaves it to the two GRUs to put matching things at matching places. They are trained together, so they can.
""",
        ),
        Experiment(
            key="d2l-11.4.2b",
            prompt="""
Write `compare(make, train, valid, long, seed)`. Train both models on one budget (16 steps of Adam with learning
rate 0.03 will do) and report their losses on `valid`. Then time both, forward and backward on `long`, in turns, and
report medians. The toy corpus has sentences of three tokens, to be written backwards, each token raised by one;
`long` has sources of forty.

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
            mutants=MUTANTS_B,
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
        ),
    ],
)
