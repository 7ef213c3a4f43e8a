r"""An LSTM in place of the GRU

The decoder of section 11.4 carries one vector for each layer, the state of its GRU. An LSTM carries two: the
*hidden* state, which it shows, and the *cell*, which it keeps to itself. Both must be handed from step to step, and
only one of them can be the query. First write the decoder, then find out whether it was worth it.
"""

import torch
import torch.nn.functional as F
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Experiment, Mutant


def decode(decoder, X, memory, state, valid_lens):
    """Run the decoder over all tokens of X, step by step.

    Args:
        decoder: a module with ``embedding`` (nn.Embedding), ``attention`` (d2l.AdditiveAttention), ``rnn`` (nn.LSTM of
            several layers, time first) and ``dense`` (nn.Linear).
        X: (B, T), tokens.
        memory: (B, S, h), the encoder's outputs: keys and values.
        state: a pair (hidden, cell), each (layers, B, h).
        valid_lens: (B,), how many of the S keys count.

    Returns:
        Logits (B, T, V), and the pair (hidden, cell) after the last step.
    """
    ### BEGIN SOLUTION
    hidden, cell = state
    outputs = []
    for x in decoder.embedding(X.t()):  # (B, embed_size)
        query = hidden[-1].unsqueeze(1)  # (B, 1, h): of the top layer
        context = decoder.attention(query, memory, memory, valid_lens)  # (B, 1, h)
        step = torch.cat([x, context.squeeze(1)], dim=-1)
        output, (hidden, cell) = decoder.rnn(step.unsqueeze(0), (hidden, cell))
        outputs.append(decoder.dense(output.squeeze(0)))
    return torch.stack(outputs, dim=1), (hidden, cell)
    ### END SOLUTION


def by_the_gates(decoder, X, memory, state, valid_lens):
    """The LSTM from its equations."""
    hidden, cell = (list(part) for part in state)
    logits = []
    for word in X.T:
        context = decoder.attention(hidden[-1][:, None], memory, memory, valid_lens)[:, 0]
        x = torch.cat([decoder.embedding(word), context], -1)
        for i in range(len(hidden)):
            weights = [
                getattr(decoder.rnn, f"{name}_l{i}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            gates = F.linear(x, weights[0], weights[2]) + F.linear(hidden[i], weights[1], weights[3])
            enter, forget, new, out = gates.chunk(4, -1)
            cell[i] = forget.sigmoid() * cell[i] + enter.sigmoid() * new.tanh()
            x = hidden[i] = out.sigmoid() * cell[i].tanh()
        logits.append(decoder.dense(x))
    return torch.stack(logits, 1), (torch.stack(hidden), torch.stack(cell))


def asking_afterwards(decoder, X, memory, state, valid_lens):
    """Wrong: the context goes into the step after."""
    context, logits = torch.zeros_like(state[0][-1]), []
    for x in decoder.embedding(X.T):
        output, state = decoder.rnn(torch.cat([x, context], -1)[None], state)
        context = decoder.attention(output[0][:, None], memory, memory, valid_lens)[:, 0]
        logits.append(decoder.dense(output[0]))
    return torch.stack(logits, 1), state


class _Decoder(nn.Module):
    """What the learner gets: the parts, without a forward."""

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.attention = d2l.AdditiveAttention(num_hiddens, query_size=num_hiddens, key_size=num_hiddens)
        self.rnn = nn.LSTM(embed_size + num_hiddens, num_hiddens, num_layers)
        self.dense = nn.Linear(num_hiddens, vocab_size)


def _reference(decoder, X, memory, state, valid_lens):
    """Logits, hidden and cell in the dtype of the decoder."""
    (hidden, cell), logits, layer = state, [], decoder.attention
    for x in decoder.embedding(X.T):
        scores = layer.w_v(torch.tanh(layer.W_q(hidden[-1])[:, None] + layer.W_k(memory)))[..., 0]  # (B, S)
        scores = scores.masked_fill(torch.arange(memory.shape[1]) >= valid_lens[:, None], -torch.inf)
        context = (torch.softmax(scores, -1)[..., None] * memory).sum(1)
        output, (hidden, cell) = decoder.rnn(torch.cat([x, context], -1)[None], (hidden, cell))
        logits.append(decoder.dense(output[0]))
    return torch.stack(logits, 1), hidden, cell


def verify_decode(t, answer):
    B, S, T, h, embed, V = t.sizes(6, 3, 10)
    torch.manual_seed(t.seed)
    decoder = _Decoder(V, embed, h, num_layers=2)
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():  # large enough that every fault shows
            parameter.copy_(t.randn(*parameter.shape, scale=1.0 if "attention" in name else 0.5))
    X, memory = t.integers(0, V, B, T), t.randn(B, S, h)
    state = t.randn(2, B, h), t.randn(2, B, h)
    valid_lens = t.integers(1, S, B)  # all of them leave some padding
    memory.requires_grad_()

    exact = _Decoder(V, embed, h, num_layers=2).double()
    exact.load_state_dict(decoder.state_dict())
    inputs = X, memory.detach().double().requires_grad_(), tuple(part.double() for part in state), valid_lens
    logits, hidden, cell = _reference(exact, *inputs)
    (slope,) = torch.autograd.grad(logits.sum(), inputs[1])
    got = t.call(answer, decoder, X, memory, state, valid_lens)
    got_logits, pair = t.unpack(got, "logits", "(hidden, cell)")
    got_hidden, got_cell = t.unpack(pair, "hidden", "cell")
    t.same(got_logits, logits.detach(), "the logits")
    t.same(got_hidden, hidden.detach(), "the hidden state")
    t.same(got_cell, cell.detach(), "the cell")
    t.same(t.gradient(got_logits, 2, "the logits"), slope, "the gradient in the memory", tolerance=(1e-3, 1e-4))

    one = tuple(part[:, :1] for part in state)
    got, _ = t.unpack(t.call(answer, decoder, X[:1], memory[:1], one, valid_lens[:1]), "logits", "(hidden, cell)")
    t.same(got, logits[:1].detach(), "with a batch of one, the logits")

    # two calls of one token each must be one call of two: the state holds all that is needed
    both, _ = t.unpack(t.call(answer, decoder, X[:, :2], memory, state, valid_lens), "logits", "(hidden, cell)")
    one, kept = t.unpack(t.call(answer, decoder, X[:, :1], memory, state, valid_lens), "logits", "(hidden, cell)")
    two, _ = t.unpack(t.call(answer, decoder, X[:, 1:2], memory, kept, valid_lens), "logits", "(hidden, cell)")
    t.same(torch.cat([one, two], 1), both.detach().double(), "token by token from the returned pair, the logits")


def compare(make, train, valid, seed):
    """Train a GRU and an LSTM on one budget.

    Args:
        make: dict from "gru" and "lstm" to a function without arguments that makes an untrained d2l.Seq2Seq; call
            each once.
        train: the one batch to train on, D2L's tuple (src, tgt_in, src_valid_len, tgt_out).
        valid: the batch to be judged on, and not to be trained on.
        seed: for torch.manual_seed, before each model is made.

    Returns:
        dict: "gru" and "lstm", the losses on ``valid`` after training; "gru_start" and "lstm_start", before;
        both in evaluation mode; "ratio", parameters of the decoder's ``rnn``, those of the LSTM over those of the GRU.
    """
    ### BEGIN SOLUTION
    result, sizes = {}, {}
    for kind in ("gru", "lstm"):
        torch.manual_seed(seed)
        model = make[kind]()

        def judge(model=model):
            model.eval()
            with torch.no_grad():
                return model.loss(model(*valid[:-1]), valid[-1]).item()

        result[kind + "_start"] = judge()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
        model.train()
        for _ in range(16):
            loss = model.loss(model(*train[:-1]), train[-1])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
        result[kind] = judge()
        sizes[kind] = sum(p.numel() for p in model.decoder.rnn.parameters())
    result["ratio"] = sizes["lstm"] / sizes["gru"]
    return result
    ### END SOLUTION


def by_sgd_with_momentum(make, train, valid, seed):
    found = {"ratio": 4 / 3}
    for kind, build in make.items():
        torch.manual_seed(seed)
        model = build()
        with torch.no_grad():
            found[f"{kind}_start"] = float(model.eval().loss(model(*valid[:-1]), valid[-1]))
        optimizer = torch.optim.AdamW(model.train().parameters(), lr=0.04)
        for _ in range(16):
            optimizer.zero_grad()
            model.loss(model(*train[:-1]), train[-1]).backward()
            optimizer.step()
        with torch.no_grad():
            found[kind] = float(model.eval().loss(model(*valid[:-1]), valid[-1]))
    return found


VALID = 40  # sentences to judge by: as many as in no other batch


class _LSTMEncoder(d2l.Encoder):
    def __init__(self, vocab_size, size):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(vocab_size, size), nn.LSTM(size, size)

    def forward(self, X, valid_lens):
        return self.rnn(self.embedding(X.t()))  # every sentence of the toy corpus fills its row


class _LSTMDecoder(d2l.Decoder):
    def __init__(self, vocab_size, size):
        super().__init__()
        self.parts = _Decoder(vocab_size, size, size, 1)
        self.rnn = self.parts.rnn

    def init_state(self, enc_all_outputs, valid_lens):
        outputs, state = enc_all_outputs
        return outputs.transpose(0, 1), state, valid_lens

    def forward(self, X, state):
        memory, pair, valid_lens = state
        logits, pair = decode(self.parts, X, memory, pair, valid_lens)
        return logits, (memory, pair, valid_lens)


def _toy(t, B, S=3, V=8):
    """Sentences of S tokens, to be 'translated' by adding one to each and writing them backwards. 0: pad, 1: bos."""
    src = t.integers(2, V - 1, B, S)
    tgt = src.flip(1) + 1
    tgt_in = torch.cat([torch.ones(B, 1, dtype=torch.long), tgt[:, :-1]], 1)
    return src, tgt_in, torch.full((B,), S), tgt


FAULTS = {  # of a training step, or of judging: code, what is told of the model
    "part": ("part-of-batch", "was trained on a part of `train`: each step takes the whole batch"),
    "evaluation": ("not-training", "was trained in evaluation mode: call train() before the first step"),
    "uncleared": ("uncleared", "gets new gradients on top of old ones: clear them before every backward pass"),
    "judged": ("not-eval", "was run on `valid` in training mode: call eval() before you judge it"),
}


class _Maker:
    """Makes one model, and notes how it begins and which sentences get a backward pass."""

    def __init__(self, kind, src):
        self.kind, self.src, self.models, self.starts, self.sentences, self.foreign = kind, src, [], [], 0, 0
        self.faults = set()

    def __call__(self):
        V, size = 8, 16
        if self.kind == "gru":
            sizes = V, size, size, 1
            model = d2l.Seq2Seq(d2l.Seq2SeqEncoder(*sizes), d2l.Seq2SeqAttentionDecoder(*sizes), 0, 0.02)
        else:
            model = d2l.Seq2Seq(_LSTMEncoder(V, size), _LSTMDecoder(V, size), 0, 0.02)
        model.register_forward_hook(self.watch)
        self.models.append(model)
        self.starts.append({name: value.clone() for name, value in model.state_dict().items()})
        return model

    def watch(self, module, args, logits):
        if len(args[0]) == VALID and module.training:
            self.faults.add("judged")
        if logits.requires_grad:
            logits.register_hook(lambda grad: self.note(args[0]))

    def note(self, src):
        known = (src[:, None] == self.src).all(-1).any(-1)  # (B,): is it a sentence of `train`?
        self.sentences, self.foreign = self.sentences + len(src), self.foreign + int((~known).sum())
        model = self.models[-1]
        faults = {
            "part": len(src) < len(self.src),
            "evaluation": not model.training,
            "uncleared": all(p.grad is not None and bool(p.grad.any()) for p in model.parameters()),
        }
        self.faults |= {name for name, found in faults.items() if found}


def _states(given):
    """What `compare` did with the makers: plain data."""
    return {
        kind: (
            len(m.models),
            m.starts,
            [dict(x.state_dict()) for x in m.models],
            m.sentences,
            m.foreign,
            sorted(m.faults),
        )
        for kind, m in given[0].items()
    }


def verify_compare(t, answer):
    kinds, names = ("gru", "lstm"), ("gru", "lstm", "gru_start", "lstm_start", "ratio")
    reports = []
    for seed in (t.seed % 1000, t.seed % 1000 + 1):
        train, valid = _toy(t, 64), _toy(t, VALID)
        got = t.call(answer, {kind: _Maker(kind, train[0]) for kind in kinds}, train, valid, seed)
        report = dict(zip(names, t.fields(got, *names), strict=True))
        found, losses, whole = t.look(_states), {}, {}
        for kind in kinds:
            count, starts, ends, _, foreign, faults = found[kind]
            t.that(count == 1, "not-made", f"the model {kind!r} must be made with its function in `make`, and once")
            torch.manual_seed(seed)
            model = _Maker(kind, train[0])()
            same = all(torch.equal(value, starts[0][name]) for name, value in model.state_dict().items())
            message = "does not begin as torch.manual_seed(seed) has it: seed torch just before each model is made"
            t.that(same, "unseeded", f"the model {kind!r} {message}")
            message = "was trained on sentences that are not in `train`: `valid` is for judging alone"
            t.that(foreign == 0, "trained-on-valid", f"the model {kind!r} {message}")
            for fault in faults:
                code, message = FAULTS[fault]
                t.that(False, code, f"the model {kind!r} {message}")
            still = [name for name, value in starts[0].items() if torch.equal(value, ends[0][name])]
            moved = len(still) in (0, len(starts[0]))  # where nothing moves, nothing is learned: see below
            message = f"in the model {kind!r} {', '.join(still[:2])} never change: give the optimizer all parameters"
            t.that(moved, "partly-trained", message)
            whole[kind] = sum(p.numel() for p in model.parameters())
            for name, state in ((f"{kind}_start", starts[0]), (kind, ends[0])):
                model.load_state_dict(state)
                with torch.no_grad():
                    losses[name] = [float(model.eval().loss(model(*x[:-1]), x[-1])) for x in (valid, train)]
        t.that(
            found["gru"][3] == found["lstm"][3],
            "budget",
            "the two models were not trained on equally many sentences",
        )
        mistakes = {
            "upside-down": (3 / 4, "the ratio is upside down"),
            "whole-model": (whole["lstm"] / whole["gru"], "only the parameters of `model.decoder.rnn` are asked for"),
        }
        t.number(report["ratio"], 4 / 3, "'ratio'", mistakes=mistakes)
        for kind, other in (kinds, kinds[::-1]):
            for name, swapped, early in ((f"{kind}_start", f"{other}_start", kind), (kind, other, f"{kind}_start")):
                when = "after" if early == kind else "before"
                mistakes = {
                    "swapped": (losses[swapped][0], f"{name!r} holds the loss of the other model"),
                    "train-loss": (losses[name][1], f"{name!r} is the loss on `train`, not on `valid`"),
                    "other-time": (losses[early][0], f"{name!r} is the loss {when} training"),
                }
                t.number(report[name], losses[name][0], repr(name), mistakes=mistakes, rtol=1e-3)
        reports.append(report)
    for kind in kinds:
        message = (
            f"the model {kind!r} has hardly learned: its validation loss did not fall by a third. Are all parameters "
            "given to the optimizer, in enough steps?"
        )
        bounds = [report[f"{kind}_start"] * 2 / 3 for report in reports]
        t.below([report[kind] for report in reports], bounds, 0.0, "not-learned", message)


MUTANTS_A = [
    Mutant("late-query", ("        query = hidden[-1].unsqueeze(1)", "        ahead = torch.cat([x, "
        "torch.zeros_like(hidden[-1])], dim=-1).unsqueeze(0)\n        query = decoder.rnn(ahead, (hidden, "
        "cell))[0][0].unsqueeze(1)"), "the query has already read the token of its step: it is the state from before"),
    Mutant("late-context", asking_afterwards, "the context of a step is asked for after the LSTM, and goes into the "
        "next step: ask first, with the state from before, then read token and context"),
    Mutant("longest", ("memory, memory, valid_lens", "memory, memory, valid_lens.max().expand(len(X))"),
        "all examples get the valid length of the longest: each has its own"),
    Mutant("one-more", ("memory, memory, valid_lens", "memory, memory, valid_lens + 1"), "one key of the padding gets "
        "weight: with valid length n, the keys 0 to n - 1 count"),
    Mutant("cell-lost", ("        outputs.append", "        cell = 0 * cell\n        outputs.append"),
        "the cell starts from zero at every later step: it has to be carried along with the hidden state"),
    Mutant("pair-swapped", ("output, (hidden, cell) =", "output, (cell, hidden) ="), "hidden state and cell change "
        "places on the way from one step to the next"),
    Mutant("reshaped", ("torch.stack(outputs, dim=1)", "torch.stack(outputs).reshape(*X.shape, -1)"),
        "these are the numbers of (T, B, V), counted off as if they were (B, T, V): the axes must be swapped"),
    Mutant("raised", ("context.squeeze(1)", "context.squeeze()")),  # squeezed
    Mutant("query-cell", ("hidden[-1].unsqueeze", "cell[-1].unsqueeze"), "the query is the cell; the LSTM shows its "
        "*hidden* state, and that is what may ask"),
    Mutant("query-layer", ("hidden[-1].unsqueeze", "hidden[0].unsqueeze"), "the query is the state of the first layer, "
        "not of the last"),
    Mutant("stale-query", ("hidden[-1].unsqueeze", "state[0][-1].unsqueeze"), "the query is the same at every step: "
        "take the state that the last step left"),
    Mutant("unmasked", ("memory, memory, valid_lens", "memory, memory"), "the decoder attends to padding: where are "
        "the valid lengths?"),
    Mutant("cell-lost", ("unsqueeze(0), (hidden, cell)", "unsqueeze(0), (hidden, 0 * cell)"), "the cell starts from "
        "zero at every step: it has to be carried along with the hidden state"),
    Mutant("cell-kept", ("unsqueeze(0), (hidden, cell)", "unsqueeze(0), (hidden, state[1])"), "the cell is the one "
        "from the beginning at every step: carry on the new one"),
    Mutant("pair-kept", ("output, (hidden, cell) =", "output, _ ="), "every step starts from the pair that was given: "
        "carry on the one that the LSTM gives back"),
    Mutant("pair-swapped", ("unsqueeze(0), (hidden, cell)", "unsqueeze(0), (cell, hidden)"), "hidden state and cell "
        "have changed places in the pair that goes into the LSTM"),
    Mutant("order", ("[x, context.squeeze(1)]", "[context.squeeze(1), x]"), "the token's embedding comes first, the "
        "context second"),
    Mutant("returned-swapped", ("dim=1), (hidden, cell)", "dim=1), (cell, hidden)"), "hidden state and cell are "
        "returned in the wrong order"),
    Mutant("returned-twice", ("dim=1), (hidden, cell)", "dim=1), (hidden, hidden)"), "this is the hidden state once "
        "more"),
    Mutant("returned-given", ("dim=1), (hidden, cell)", "dim=1), state"), "this is what was given: return the pair "
        "after the last step"),
    Mutant("shape", ("torch.stack(outputs, dim=1)", "torch.stack(outputs)")),  # time first
    Mutant("raised", ("unsqueeze(0), (hidden, cell)", "unsqueeze(0), hidden")),  # a GRU's call
]  # fmt: skip

MUTANTS_B = [
    Mutant("budget", ("range(16)", "range(16 if kind == 'gru' else 19)")),  # more steps for one
    Mutant("unseeded", ("torch.manual_seed(seed)", "pass")),  # never seeded
    Mutant("unseeded", ("torch.manual_seed(seed)", "kind == 'gru' and torch.manual_seed(seed)")),  # seeded once
    Mutant("trained-on-valid", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "loss = model.loss(model(*valid[:-1]), valid[-1])")),
    # start after training
    Mutant("other-time", ('result["ratio"] =',
        'result |= {"gru_start": result["gru"], "lstm_start": result["lstm"]}\n    result["ratio"] =')),
    Mutant("whole-model", ("model.decoder.rnn.parameters()", "model.parameters()")),  # whole models
    # part of the batch
    Mutant("part-of-batch", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "half = [x[:32] for x in train]\n            loss = model.loss(model(*half[:-1]), half[-1])")),
    Mutant("not-training", ("model.train()", "pass")),  # trained in evaluation mode
    Mutant("not-eval", ("model.eval()", "pass")),  # judged in training mode
    Mutant("uncleared", ("optimizer.zero_grad()", "pass")),  # gradients not cleared
    Mutant("partly-trained", ("Adam(model.parameters()", "Adam(model.decoder.parameters()")),  # decoder alone
    Mutant("not-learned", ("optimizer.step()", "pass")),  # no steps
    Mutant("not-learned", ("loss.backward()", "(-loss).backward()")),  # uphill
    Mutant("upside-down", ('sizes["lstm"] / sizes["gru"]', 'sizes["gru"] / sizes["lstm"]')),  # ratio upside down
    Mutant("swapped", ('result["ratio"] =',
        'result["gru"], result["lstm"] = result["lstm"], result["gru"]\n    result["ratio"] =')),  # names swapped
    Mutant("train-loss", ("model(*valid[:-1]), valid[-1]", "model(*train[:-1]), train[-1]")),  # training loss
    Mutant("shape", ('("gru", "lstm"):', '("gru",):\n        sizes["lstm"] = 4\n       ')),  # one model only
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.4.1",
    doc=__doc__,
    source="D2L 11.4, exercise 1",
    parts=[
        Code(
            key="d2l-11.4.1a",
            prompt="""
Write `decode(decoder, X, memory, state, valid_lens)`: Bahdanau's decoder over all T tokens of `X` with an LSTM.
`decoder` holds the layers; `state` is the pair (hidden, cell). As with the GRU, the query of a step is the state
*before* it reads its token, that of the top layer, and the token's embedding stands before the context in what the
LSTM reads.
""",
            hints=[
                "Start from the forward of d2l.Seq2SeqAttentionDecoder (chapter 04 shows it). What does nn.LSTM take"
                " and give where nn.GRU has one tensor?",
                "`output, (hidden, cell) = decoder.rnn(inputs, (hidden, cell))`, with inputs (1, B, embed_size + h).",
                "The query is `hidden[-1]`, with an axis for T = 1. The cell is never shown to the attention.",
            ],
            answer=decode,
            verify=verify_decode,
            alternatives=[by_the_gates],
            advice={
                "raised": "If it is a batch of one that fails: `.squeeze()` takes every axis of size one, so name the "
                "one that you mean.",
            },
            mutants=MUTANTS_A,
            explanation="""
One line of the loop changes, and it changes twice: a pair goes in, a pair comes out. Everything else in the program
that touches the state has to know as well. The encoder must be an LSTM, or the cell begins from nothing; a beam
search must reorder both halves. That is why the decoders of this book keep their state in one object that nobody
else looks into.

Why is the query the hidden state and not the cell? The hidden state has passed the output gate: it is what the LSTM has
decided to show, and bounded. The cell may grow without limit, and large queries saturate the tanh of an additive score.
""",
        ),
        Experiment(
            key="d2l-11.4.1b",
            prompt="""
Is it better? Write `compare(make, train, valid, seed)`. It trains both models on one budget: the same batch for the
same number of steps (16 steps of Adam with learning rate 0.03 will do), each from the same seed, and returns five
numbers in a dict. The toy corpus has sentences of three tokens, to be written backwards, each token raised by one.

Predict first: an LSTM has four sets of weights where a GRU has three. What is the ratio of their parameters? And
will the larger one have the smaller loss?
""",
            hints=[
                "Loss of a model on a batch: `model.loss(model(*batch[:-1]), batch[-1])`.",
                "Before and after training: `model.eval()` and `torch.no_grad()`; for training `model.train()`.",
                "The parameters: `sum(p.numel() for p in model.decoder.rnn.parameters())`.",
            ],
            answer=compare,
            verify=verify_compare,
            alternatives=[by_sgd_with_momentum],
            seconds=60.0,
            mutants=MUTANTS_B,
            explanation="""
A GRU has three sets of weights (reset, update, candidate), an LSTM four (input, forget, output, candidate), so the
ratio is 4/3 whatever the sizes. On a budget this small the order of the two losses changes with seed and learning
rate, and you should not conclude from one run. Look at your numbers for several seeds: if the difference between
kinds is not larger than the difference between seeds, the honest answer is *no difference found*. What a cell is
good for, carrying something unchanged over many steps, is what attention does better: it need not be carried at
all.
""",
        ),
    ],
)
