r"""Five decoders, one of them right

Faults in attention raise no errors. Five decoders come in the same clothes: same layers, same call, logits and
weights of the right shape. One does what Bahdanau's does. The other four differ from it in one thing each:

- `"padding"`: it attends to all keys, padding too;
- `"unnormalised"`: it masks *after* the softmax, so that padding has no weight, but the weights no longer sum to one;
- `"late"`: the query of a step is a state that has already read this step's token;
- `"stale"`: the query is the same at every step, the state from the very beginning.

Write `diagnose(decoder, X, state)`, which finds out which one it was given, by looking at what goes in and what
comes out alone. You may call the decoder as often as you like, with any tokens, memory and lengths. Do not look at
its layers: the check makes them anew each time, and its name tells nothing.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def diagnose(decoder, X, state):
    """Find the fault of a decoder.

    Args:
        decoder: a module in evaluation mode. ``decoder(X, state)`` gives logits (B, T, V) and a new state; afterwards
            ``decoder.attention_weights`` is a list of T tensors (B, 1, S). Tokens are smaller than
            ``decoder.embedding.num_embeddings``.
        X: (B, T), tokens; T is at least 3.
        state: (memory (B, S, h), hidden (B, layers, h), valid_lens (B,)); every example has some padding.

    Returns:
        "right", "padding", "unnormalised", "late" or "stale".
    """
    ### BEGIN SOLUTION
    memory, hidden, valid_lens = state

    def look(X):
        decoder(X, (memory, hidden, valid_lens))
        return torch.cat(decoder.attention_weights, dim=1)  # (B, T, S)

    weights = look(X)
    padding = torch.arange(memory.shape[1]) >= valid_lens[:, None]  # (B, S)
    if (weights * padding[:, None]).sum() > 0:
        return "padding"
    if (weights.sum(dim=-1) - 1).abs().max() > 1e-4:
        return "unnormalised"
    changed = X.clone()
    changed[:, 0] = (X[:, 0] + 1) % decoder.embedding.num_embeddings  # another first token
    moved = (look(changed) - weights).abs().amax(dim=(0, 2)) > 0  # (T,): which rows?
    if moved[0]:
        return "late"
    if not moved[1:].any():
        return "stale"
    return "right"
    ### END SOLUTION


def by_all_tokens(decoder, X, state):
    """Other probes: lengths of one, gradients for what a row has read, logits of the last step."""
    memory, hidden, valid_lens = state
    one = torch.ones_like(valid_lens)
    decoder(X[:, :1], (memory, hidden, one))
    row = decoder.attention_weights[0][:, 0]  # with one key, all of the weight is on it
    if row[:, 1:].abs().max() > 0:
        return "padding"
    if not torch.allclose(row[:, 0], torch.ones(len(row))):
        return "unnormalised"

    def rows(tokens):
        decoder(tokens, state)
        return [w.clone() for w in decoder.attention_weights]

    others = [X.clone() for _ in range(X.shape[1])]
    for t, other in enumerate(others):
        other[:, t] = (other[:, t] + 1) % decoder.embedding.num_embeddings
    before, after = rows(X), [rows(other) for other in others]
    if any(not torch.equal(before[t], after[t][t]) for t in range(len(before))):
        return "late"
    same = all(torch.equal(before[-1], other[-1]) for other in after)
    return "stale" if same else "right"


class _Suspect(d2l.Seq2SeqAttentionDecoder):
    """The decoder of the package with a planted fault."""

    def __init__(self, fault, sizes):
        super().__init__(*sizes)
        self._fault = fault

    def forward(self, X, state):
        memory, hidden, valid_lens = state
        real = torch.arange(memory.shape[1]) < valid_lens[:, None]
        hidden = hidden.transpose(0, 1).contiguous()
        first, logits, self._weights = hidden, [], []
        for x in self.embedding(X.t()):
            query = first[-1] if self._fault == "stale" else hidden[-1]
            if self._fault == "late":
                query = self.rnn(torch.cat([x, torch.zeros_like(query)], -1)[None], hidden)[0][0]
            layer = self.attention
            scores = layer.w_v(torch.tanh(layer.W_q(query)[:, None] + layer.W_k(memory)))[..., 0]
            if self._fault not in ("padding", "unnormalised"):
                scores = scores.masked_fill(~real, -torch.inf)
            row = torch.softmax(scores, -1)
            row = row * real if self._fault == "unnormalised" else row
            self._weights.append(row[:, None].detach())
            context = (row[..., None] * memory).sum(1)
            output, hidden = self.rnn(torch.cat([x, context], -1)[None], hidden)
            logits.append(self.dense(output[0]))
        return torch.stack(logits, 1), (memory, hidden.transpose(0, 1), valid_lens)


CASES = {
    "right": "a decoder that does everything right was called faulty",
    "padding": "a decoder that attends to padding was not caught",
    "unnormalised": "a decoder whose weights do not sum to one was not caught",
    "late": "a decoder whose query has already read the token of its step was not caught",
    "stale": "a decoder whose query never changes was not caught",
}


def verify(t, answer):
    for _ in range(2):
        for case in t.random.sample(list(CASES), len(CASES)):
            B, S, T, h, embed, V = t.sizes(6, 3, 10)
            decoder = _Suspect(case, (V, embed, h, 1)).eval()
            with torch.no_grad():
                for parameter in decoder.parameters():
                    parameter.copy_(t.randn(*parameter.shape, scale=0.6))
            state = t.randn(B, S, h), t.randn(B, 1, h), t.integers(1, S, B)
            got = t.call(answer, decoder, t.integers(0, V, B, T), state)
            known = isinstance(got, str) and got in CASES
            t.that(known, "type", f"the result is {got!r:.40}, expected one of {', '.join(map(repr, CASES))}")
            code = "false-alarm" if case == "right" else f"missed-{case}" if got == "right" else "mixed-up"
            message = "one fault was taken for another" if code == "mixed-up" else CASES[case]
            t.that(got == case, code, message)


EXERCISE = Exercise(
    key="own-04.1",
    doc=__doc__,
    source="own, chapter 04",
    chapter="04",
    parts=[
        Code(
            key="own-04.1",
            hints=[
                "Two of the faults show in the weights of a single call. Which numbers should be zero, and which one?",
                "For the other two, ask what a row of weights *depends* on. Change a token of X: which rows move?",
                "In the right decoder the weights of step t depend on the tokens before t and no other. Change token "
                "0: row 0 must stay, and later rows must move.",
            ],
            answer=diagnose,
            verify=verify,
            alternatives=[by_all_tokens],
            advice={
                "mixed-up": "One call can show several things: test for weight on padding before you test for "
                "sums, and for both before you test what a row depends on."
            },
            mutants=[
                Mutant(
                    "padding not tested", "missed-padding", "if (weights * padding[:, None]).sum() > 0:", "if False:"
                ),
                Mutant("sums not tested", "missed-unnormalised", "- 1).abs().max() > 1e-4", "- 1).abs().max() > 2"),
                Mutant("first row not tested", "missed-late", "if moved[0]:", "if False:"),
                Mutant("change not wanted", "missed-stale", "if not moved[1:].any():", "if False:"),
                Mutant("all rows must stay", "false-alarm", "if moved[0]:", "if moved.any() and moved[1]:"),
                Mutant("names mixed up", "mixed-up", 'return "late"', 'return "stale"'),
                Mutant("where, not what", "type", 'return "padding"', "return int(padding.sum())"),
                Mutant("in place", "mutates", "changed = X.clone()", "changed = X"),
            ],
            explanation="""
What a row of weights depends on is the question that tells a decoder's design. In Bahdanau's, the row of step t has
read the tokens before t only: the context is chosen first, and then goes into the recurrence together with token t.
Luong's decoder asks *after* the recurrence; that is not wrong, but it is another model, and weights trained for one
are useless in the other.

The method carries over to any model: **change an input, see which outputs move**. It finds attention to padding,
leaks from the future and dead connections, needs no access to the layers, and works on a model that is already
trained.
""",
        )
    ],
)
