r"""Five decoders, one of them right

Faults in attention raise no errors. Five decoders come in the same clothes: same layers, same call, logits and
weights of the right shape. One does what Bahdanau's does. The other four differ from it in one thing each:

- `"padding"`: it attends to all keys, padding too;
- `"unnormalised"`: it masks *after* the softmax, so that padding has no weight, but the weights no longer sum to one;
- `"late"`: the query of a step is a state that has already read this step's token;
- `"stale"`: the query is the same at every step, the state from the very beginning.

Write `diagnose(decoder, X, state)`, which finds out which one it was given, by looking at what goes in and what
comes out alone. Sources may be long and scores weak, so that all weights and their changes are small. You may call
the decoder as often as you like, with any tokens, memory and lengths. It shows its
`attention_weights` and `embedding.num_embeddings`, and nothing else: if your code asks for its layers or looks into
it by other ways, the check notes it and rejects the answer.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant


def diagnose(decoder, X, state):
    """Find the fault of a decoder.

    Args:
        decoder: to be called as a module. ``decoder(X, state)`` gives logits (B, T, V) and a new state; afterwards
            ``decoder.attention_weights`` is a list of T tensors (B, 1, S). Tokens are smaller than
            ``decoder.embedding.num_embeddings``.
        X: (B, T), tokens; T is at least 3.
        state: (memory (B, S, h), hidden (B, layers, h), valid_lens (B,)); every example has some padding, and
            two keys or more that are none.

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
    """Other probes: lengths of one, and every token changed in turn."""
    memory, hidden, valid_lens = state
    decoder(X[:, :1], (memory, hidden, torch.ones_like(valid_lens)))
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


SHOWN = ("__class__", "forward", "eval", "attention_weights", "embedding", "asked_for")


def _suspect(layers, score, share, mix):
    """A decoder that is right or faulty by numbers, and notes what it is asked for beyond what it should show.

    Args:
        layers: where its layers are. score: is added to the scores of padding. share: of the weights of padding that is
            left after the softmax. mix: how much the query has of the first state, of the last, and of one that has
            read this step's token.
    """
    weights, asked_for = [], []

    class Tokens:
        num_embeddings = layers.embedding.num_embeddings

        def __getattr__(self, name):
            raise AttributeError(f"the decoder's embedding does not show {name!r}, num_embeddings alone")

    class Suspect:
        embedding = Tokens()

        def __getattribute__(self, name):
            if name not in SHOWN:
                asked_for.append(name)
            return object.__getattribute__(self, name)

        def __getattr__(self, name):
            raise AttributeError(f"the decoder does not show {name!r}: find out by calling it")

        def __reduce__(self):  # it travels without its notes
            return _suspect, (layers, score, share, mix)

        @property
        def attention_weights(self):
            return list(weights)

        @property
        def asked_for(self):
            return list(asked_for)

        def eval(self):
            return self

        def __call__(self, X, state):
            memory, hidden, valid_lens = state
            padding = torch.arange(memory.shape[1]) >= valid_lens[:, None]
            hidden = hidden.transpose(0, 1).contiguous()
            first, logits = hidden[-1], []
            weights.clear()
            for x in layers.embedding(X.t()):
                late = layers.rnn(torch.cat([x, torch.zeros_like(first)], -1)[None], hidden)[0][0]
                query = sum(a * b for a, b in zip(mix, (first, hidden[-1], late), strict=True))
                layer = layers.attention
                scores = layer.w_v(torch.tanh(layer.W_q(query)[:, None] + layer.W_k(memory)))[..., 0]
                row = torch.softmax(torch.where(padding, scores + score, scores), -1)
                row = torch.where(padding, row * share, row)
                weights.append(row[:, None].detach())
                context = (row[..., None] * memory).sum(1)
                output, hidden = layers.rnn(torch.cat([x, context], -1)[None], hidden)
                logits.append(layers.dense(output[0]))
            return torch.stack(logits, 1), (memory, hidden.transpose(0, 1), valid_lens)

        forward = __call__

    return Suspect()


CASES = {  # what it is, and its numbers
    "right": ("that does everything right", -torch.inf, 1, (0, 1, 0)),
    "padding": ("that attends to padding", 0, 1, (0, 1, 0)),
    "unnormalised": ("whose weights do not sum to one", 0, 0, (0, 1, 0)),
    "late": ("whose query has already read the token of its step", -torch.inf, 1, (0, 0, 1)),
    "stale": ("whose query never changes", -torch.inf, 1, (1, 0, 0)),
}


HINTS = {  # what a decoder was called that is right in this: what may have misled
    "late": ". Compare weights of the first step, not logits: these have read the first token in every decoder",
    "unnormalised": ". Do you allow for rounding where you compare sums with one?",
}


def verify(t, answer):
    for form in ("usual", "one sentence", "small weights"):
        first = t.random.choice(("right", "late"))  # of these two, one has the first token of all and one the last
        for case in t.random.sample(list(CASES), len(CASES)):
            B, S, T, h, embed, V = t.sizes(6, 3, 10)
            S = 1500 if form == "small weights" else S
            layers = d2l.Seq2SeqAttentionDecoder(V, embed, h, 1).eval()
            with torch.no_grad():
                for parameter in layers.parameters():
                    parameter.copy_(t.randn(*parameter.shape, scale=0.6))
                layers.attention.w_v.weight *= 0.04 if form == "small weights" else 1
            what, *numbers = CASES[case]
            # with one key alone, a query changes nothing
            lengths = torch.full((B,), S - 1) if form == "small weights" else t.integers(S // 2 + 1, S, B)
            state = t.randn(B, S, h), t.randn(B, 1, h), lengths
            X = t.integers(0, V, B, T)
            X[:2, 0] = torch.tensor([1, 2])
            if form == "one sentence":  # one sentence of one token again and again, and one key of padding
                token = 0 if case == first else V - 1
                X, state = torch.full_like(X[:1], token), (state[0][:1], state[1][:1], torch.full((1,), S - 1))
            got = t.call(answer, _suspect(layers, *numbers), X, state)
            asked_for = t.look(lambda given: given[0].asked_for)
            message = f"your code asks the decoder for {', '.join(map(repr, asked_for[:3]))}: find out by calling it"
            t.that(not asked_for, "looked-inside", message)
            known = isinstance(got, str) and got in CASES
            t.that(known, "type", f"the result is {got!r:.40}, expected one of {', '.join(map(repr, CASES))}")
            alone = case in ("right", "stale") or (got == "unnormalised" and case == "late")  # as it should be in this
            hint = HINTS.get(got, "") if alone else ""
            code = "false-alarm" if case == "right" or hint else f"missed-{case}" if got == "right" else "mixed-up"
            if form == "one sentence" and got == "stale" and case in ("right", "late"):
                code = "no-change"
            elif form == "small weights":
                code = "tolerance"
            t.that(got == case, code, f"a decoder {what} was called {got!r}{hint}")


def by_reading(decoder, X, state):
    return "right" if vars(decoder) else "late"


MUTANTS = [
    Mutant("missed-padding", ("if (weights * padding[:, None]).sum() > 0:", "if False:")),  # padding not tested
    Mutant("missed-unnormalised", ("- 1).abs().max() > 1e-4", "- 1).abs().max() > 2")),  # sums not tested
    Mutant("missed-late", ("if moved[0]:", "if False:")),  # first row not tested
    Mutant("missed-stale", ("if not moved[1:].any():", "if False:")),  # change not wanted
    Mutant("false-alarm", ("if moved[0]:", "if moved.any() and moved[1]:")),  # all rows must stay
    Mutant("no-change", ("(X[:, 0] + 1) % decoder.embedding.num_embeddings", "0")),  # zero for another token
    Mutant("no-change", ("(X[:, 0] + 1) % decoder.embedding.num_embeddings",
        "(X[:, 0] + 1).clamp(max=decoder.embedding.num_embeddings - 1)")),  # the last token stays
    # another sentence's token
    Mutant("no-change", ("(X[:, 0] + 1) % decoder.embedding.num_embeddings", "X[:, 0].roll(1)")),
    Mutant("missed-unnormalised", ("1e-4", "0.5")),  # sums roughly tested
    Mutant("tolerance", ("padding[:, None]).sum() > 0", "padding[:, None]).max() > 0.01")),  # little is taken for none
    Mutant("tolerance", ("padding[:, None]).sum() > 0", "padding[:, None]).sum() > 0.05")),  # one key's share is less
    Mutant("tolerance", ("> 1e-4", "> 1e-3")),  # one key's share of a sum
    Mutant("mixed-up", ('return "late"', 'return "stale"')),  # names mixed up
    Mutant("looked-inside", by_reading),
    Mutant("raised", ("def look(X):", "decoder.rnn\n\n    def look(X):")),  # asks for its layers
    Mutant("type", ('return "padding"', "return int(padding.sum())")),  # where, not what
]  # fmt: skip


EXERCISE = Exercise(
    key="own-04.1",
    doc=__doc__,
    source="own, chapter 04",
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
                "sums, and for both before you test what a row depends on. Each example has a length of its own.",
                "tolerance": "The sources are long here and the scores weak, so that weights and their changes are "
                "small: is a tolerance too wide, or too narrow for rounding?",
                "no-change": "If you ask with other tokens: are they others for every X? X may be one sentence, of "
                "one token again and again, the first of all or the last. And if they are: with a large memory of your "
                "own, scores are so large that no weight moves.",
            },
            mutants=MUTANTS,
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
