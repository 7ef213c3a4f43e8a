"""Part b of d2l-11.4.1, "An LSTM in place of the GRU": `compare`."""

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.ch04.d2l_11_4_1a import _Decoder, decode
from d2lmini.exercises.engine import Experiment, Mutant


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


def with_another_optimizer(make, train, valid, seed):
    report, sizes = {}, {}
    for kind, build in make.items():
        torch.manual_seed(seed)
        model = build()
        with torch.no_grad():
            report[f"{kind}_start"] = float(model.eval().loss(model(*valid[:-1]), valid[-1]))
        optimizer = torch.optim.AdamW(model.train().parameters(), lr=0.04)
        for _ in range(16):
            optimizer.zero_grad()
            model.loss(model(*train[:-1]), train[-1]).backward()
            optimizer.step()
        with torch.no_grad():
            report[kind] = float(model.eval().loss(model(*valid[:-1]), valid[-1]))
        sizes[kind] = sum(p.numel() for p in model.decoder.rnn.parameters())
    return {**report, "ratio": sizes["lstm"] / sizes["gru"]}


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


def _toy(t, B, S=3, V=8, turned=True):
    """Sentences of S tokens, to be 'translated' by adding one to each and writing them backwards. 0: pad, 1: bos."""
    src = t.integers(2, V - 1, B, S)
    tgt = (src.flip(1) if turned else src) + 1
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

    def __init__(self, kind, src, size):
        self.kind, self.src, self.size = kind, src, size
        self.models, self.starts, self.sentences, self.foreign = [], [], 0, 0
        self.faults = set()

    def __call__(self):
        V, size = 8, self.size
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
        self.faults |= {name for name, made in faults.items() if made}


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
    for seed, size in ((t.seed % 1000, 16), (t.seed % 1000 + 1, t.random.choice((18, 20, 22)))):  # of the LSTM
        # in the second run other rules hold in `valid`, so that the last loss there is not the least
        train, valid = _toy(t, 64), _toy(t, VALID, turned=not reports)
        makers = {kind: _Maker(kind, train[0], 16 if kind == "gru" else size) for kind in kinds}
        got = t.call(answer, makers, train, valid, seed)
        report = dict(zip(names, t.fields(got, *names), strict=True))
        states, losses, whole, own, others, matrices = t.look(_states), {}, {}, {}, {}, {}
        for kind in kinds:
            count, starts, ends, _, foreign, faults = states[kind]
            t.that(count == 1, "not-made", f"the model {kind!r} must be made with its function in `make`, and once")
            torch.manual_seed(seed)
            model = _Maker(kind, train[0], makers[kind].size)()
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
            own[kind] = sum(p.numel() for p in model.decoder.rnn.parameters())
            others[kind] = [sum(p.numel() for p in x.parameters()) for x in (model.decoder, model.encoder.rnn)]
            matrices[kind] = sum(p.numel() for p in model.decoder.rnn.parameters() if p.dim() > 1)
            for name, state in ((f"{kind}_start", starts[0]), (kind, ends[0])):
                model.load_state_dict(state)
                with torch.no_grad():
                    losses[name] = [float(model.eval().loss(model(*x[:-1]), x[-1])) for x in (valid, train)]
        t.that(
            states["gru"][3] == states["lstm"][3],
            "budget",
            "the two models were not trained on equally many sentences",
        )
        mistakes = {
            "upside-down": (own["gru"] / own["lstm"], "the ratio is upside down"),
            "not-counted": (4 / 3, "this is the ratio for models of one size; these have two: count their parameters"),
            "no-biases": (
                matrices["lstm"] / matrices["gru"],
                "the biases are left out of the ratio: they are parameters as well",
            ),
            "decoder": (
                others["lstm"][0] / others["gru"][0],
                "this counts the embedding, the attention and the last layer, too: `model.decoder.rnn` alone",
            ),
            "encoder": (others["lstm"][1] / others["gru"][1], "this is the ratio of the encoders: the decoder's `rnn`"),
            "tensors": (1.0, "are these numbers of tensors? Add up `p.numel()`"),
            "whole-model": (whole["lstm"] / whole["gru"], "only the parameters of `model.decoder.rnn` are asked for"),
        }
        t.number(report["ratio"], own["lstm"] / own["gru"], "'ratio'", mistakes=mistakes)
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
        t.below([reports[0][kind]], [reports[0][f"{kind}_start"] * 2 / 3], 0.0, "not-learned", message)


MUTANTS = [
    Mutant("budget", ("range(16)", "range(16 if kind == 'gru' else 19)")),  # more steps for one
    Mutant("unseeded", ("torch.manual_seed(seed)", "pass")),  # never seeded
    Mutant("unseeded", ("torch.manual_seed(seed)", "kind == 'gru' and torch.manual_seed(seed)")),  # seeded once
    Mutant("trained-on-valid", ("loss = model.loss(model(*train[:-1]), train[-1])",
        "loss = model.loss(model(*valid[:-1]), valid[-1])")),
    Mutant("other-time", ('result["ratio"] =',
        'result |= {"gru_start": result["gru"], "lstm_start": result["lstm"]}\n    result["ratio"] =')),
    Mutant("no-biases", ("for p in model.decoder.rnn.parameters()",
        "for p in model.decoder.rnn.parameters() if p.dim() > 1")),
    Mutant("whole-model", ("model.decoder.rnn.parameters()", "model.parameters()")),  # whole models
    Mutant("decoder", ("model.decoder.rnn.parameters()", "model.decoder.parameters()")),
    Mutant("encoder", ("model.decoder.rnn.parameters()", "model.encoder.rnn.parameters()")),
    Mutant("tensors", ("p.numel() for p in model.decoder", "1 for p in model.decoder")),
    Mutant("not-counted", ('sizes["lstm"] / sizes["gru"]', "4 / 3")),  # known beforehand
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
    Mutant("best", ("optimizer.step()\n        result[kind] = judge()", "optimizer.step()\n            result[kind] = "
        "min(judge(), result.get(kind, 9))\n            model.train()"), "this is the least loss of all steps on "
        "`valid`: take the one after the last step"),
    Mutant("type", ('("gru", "lstm"):', '("gru",):\n        sizes["lstm"] = 4\n       ')),  # one model only
]  # fmt: skip


PART = Experiment(
    key="d2l-11.4.1b",
    prompt="""
Is it better? Write `compare(make, train, valid, seed)`. It trains both models on one budget: the same batch for the
same number of steps (16 steps of Adam with learning rate 0.03 will do), each from the same seed, and returns five
numbers in a dict. The toy corpus has sentences of three tokens, to be written backwards, each token raised by one.

Predict first: an LSTM has four sets of weights where a GRU has three. What is the ratio of their parameters if both
have vectors of one size? And will the larger one have the smaller loss? (In the check's second run the LSTM's vectors
are longer: count. And the sentences of `valid` are not turned round there: report its losses as they are.)
""",
    hints=[
        "Loss of a model on a batch: `model.loss(model(*batch[:-1]), batch[-1])`.",
        "Before and after training: `model.eval()` and `torch.no_grad()`; for training `model.train()`.",
        "The parameters: `sum(p.numel() for p in model.decoder.rnn.parameters())`.",
    ],
    answer=compare,
    verify=verify_compare,
    alternatives=[with_another_optimizer],
    seconds=60.0,
    advice={
        "values": "The ratio: numbers in `model.decoder.rnn` alone. A loss: `model.loss` on all of `valid`, before the "
        "first step or after the last one"
    },
    mutants=MUTANTS,
    explanation="""
A GRU has three sets of weights (reset, update, candidate), an LSTM four (input, forget, output, candidate), so the
ratio is 4/3 whatever the size that they share. On a budget this small the order of the two losses may hang on the
learning rate alone, so do not conclude from one. Look at your numbers for several rates and seeds: if the difference
between kinds is not larger than the difference between these, the honest answer is *no difference found*. What a cell
is good for, carrying something unchanged over many steps, is what attention does better: it need not be carried at all.
""",
)
