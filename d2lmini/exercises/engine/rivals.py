"""What a check sees of models that an answer trains on one batch, to compare them.

An answer gets a `Maker` in place of each model. It notes how its model begins, on which rows it is trained, and in
which mode it is run; `examine` rejects what was not trained as it should be.
"""

import torch

FAULTS = {  # of a training step, or of measuring: what is said of the model
    "not-training": "was trained in evaluation mode: call train() before the first step",
    "not-eval": "was run on `valid` in training mode: call eval() before you measure its loss",
    "part-of-batch": "was trained on a part of `train`: each step takes the whole batch",
    "uncleared": "gets new gradients on top of old ones: clear them before every backward pass",
}


class Maker:
    """Makes one model when it is called without arguments, and notes what is done with it.

    Args:
        build: function without arguments that returns a model, whose first argument is a batch of rows.
        train: (N, T), the rows to train on.
        held_out: how many rows the batch has on which losses are measured: as many as no other.
    """

    def __init__(self, build, train, held_out):
        self.build, self.train, self.held_out = build, train, held_out
        self.models, self.starts, self.rows, self.foreign, self.faults = [], [], 0, 0, set()

    def __call__(self):
        model = self.build()
        model.register_forward_hook(self.watch)
        self.models.append(model)
        self.starts.append(_values(model))
        return model

    def watch(self, model, args, output):
        if len(args[0]) == self.held_out and model.training:
            self.faults.add("not-eval")
        if output.requires_grad:
            output.register_hook(lambda grad: self.note(args[0], model))

    def note(self, rows, model):
        """A backward pass begins."""
        known = (rows[:, None] == self.train).all(-1).any(-1)
        self.rows, self.foreign = self.rows + len(rows), self.foreign + int((~known).sum())
        made = {
            "part-of-batch": len(rows) < len(self.train),
            "not-training": not model.training,
            "uncleared": all(p.grad is not None and bool(p.grad.any()) for p in model.parameters()),
        }
        self.faults |= {fault for fault in made if made[fault]}

    def seen(self):
        """What was done: plain data. Returns: (states at the start, states now, rows, foreign rows, faults)."""
        return self.starts, [_values(model) for model in self.models], self.rows, self.foreign, sorted(self.faults)


def _values(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def examine(t, name, build, seed, seen):
    """Reject a model that was not made once from its seed, or not trained as a whole on the batch alone.

    Args:
        t: the `Trial`. name: of the model. build: as of its `Maker`. seen: what that has `seen`.

    Returns:
        (the model, its state at the start, its state now).
    """
    starts, ends, _, foreign, faults = seen
    called = f"the model {name!r}"
    t.that(len(starts) == 1, "not-made", f"{called} must be made with its function in `make`, and once")
    (start,), (end,) = starts, ends
    torch.manual_seed(seed)
    model = build()
    same = all(torch.equal(value, start[key]) for key, value in model.state_dict().items())
    message = "does not begin as torch.manual_seed(seed) has it: seed torch just before each model is made"
    t.that(same, "unseeded", f"{called} {message}")
    message = "was trained on sentences that are not in `train`: `valid` is for measuring losses alone"
    t.that(foreign == 0, "trained-on-valid", f"{called} {message}")
    for fault, message in FAULTS.items():
        t.that(fault not in faults, fault, f"{called} {message}")
    still = [key for key, value in start.items() if torch.equal(value, end[key])]
    message = f"in {called} {', '.join(still[:2])} never change: give the optimizer all parameters"
    t.that(len(still) in (0, len(start)), "partly-trained", message)  # if none moves, nothing was learned
    return model, start, end


def reversed_words(t, B, S=3, T=3, V=8, turned=True):
    """A toy corpus in D2L's form: add one to each word of a sentence and write it backwards. 0: pad, 1: bos."""
    src = t.integers(2, V - 1, B, S)
    label = (src.flip(1) if turned else src)[:, :T] + 1
    tgt = torch.cat([torch.ones(B, 1, dtype=torch.long), label[:, :-1]], 1)
    return src, tgt, torch.full((B,), S), label


def losses(model, state, *batches):
    """The loss of a model with a state on each batch, in evaluation mode."""
    model.load_state_dict(state)
    with torch.no_grad():
        return [float(model.eval().loss(model(*batch[:-1]), batch[-1])) for batch in batches]
