"""Part a of d2l-11.4.1, "An LSTM in place of the GRU": `decode`."""

import torch
import torch.nn.functional as F
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


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
    decoder = _Decoder(V, embed, h, num_layers=3)
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():  # large enough that every fault shows
            parameter.copy_(t.randn(*parameter.shape, scale=1.0 if "attention" in name else 0.5))
    X, memory = t.integers(0, V, B, T), t.randn(B, S, h)
    state = t.randn(3, B, h), t.randn(3, B, h)
    valid_lens = t.integers(1, S, B)  # all of them leave some padding
    memory.requires_grad_()

    exact = _Decoder(V, embed, h, num_layers=3).double()
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

    single = tuple(part[:, :1] for part in state)
    got, _ = t.unpack(t.call(answer, decoder, X[:1], memory[:1], single, valid_lens[:1]), "logits", "(hidden, cell)")
    t.same(got, logits[:1].detach(), "with a batch of one, the logits")

    # two calls of one token each must be one call of two: the state holds all that is needed
    both, _ = t.unpack(t.call(answer, decoder, X[:, :2], memory, state, valid_lens), "logits", "(hidden, cell)")
    first, kept = t.unpack(t.call(answer, decoder, X[:, :1], memory, state, valid_lens), "logits", "(hidden, cell)")
    second, _ = t.unpack(t.call(answer, decoder, X[:, 1:2], memory, kept, valid_lens), "logits", "(hidden, cell)")
    t.same(torch.cat([first, second], 1), both.detach().double(), "token by token from the returned pair, the logits")


MUTANTS = [
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
    Mutant("second-layer", ("hidden[-1].unsqueeze", "hidden[1].unsqueeze"), "the query is the state of the second "
        "layer; there may be more, and the top one is the last: hidden[-1]"),
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
    Mutant("query-mean", ("hidden[-1].unsqueeze", "hidden.mean(dim=0).unsqueeze"), "the query is the mean over the "
        "layers; the top layer asks"),
    Mutant("no-context", ("[x, context.squeeze(1)]", "[x, query.squeeze(1)]"), "the LSTM reads the query in place of "
        "the context"),
    Mutant("plain-mean", ("[x, context.squeeze(1)]", "[x, memory.mean(dim=1)]"), "the LSTM reads the plain mean of the "
        "memory: the context is its mean under the attention weights"),
    Mutant("first-out", ("decoder.dense(output.squeeze(0))", "decoder.dense(hidden[0])"), "the logits are made of the "
        "first layer's state; the top layer is shown"),
    Mutant("cell-out", ("decoder.dense(output.squeeze(0))", "decoder.dense(cell[-1])"), "the logits are made of the "
        "cell; the LSTM shows its hidden state"),
    Mutant("softmax", ("torch.stack(outputs, dim=1)", "torch.stack(outputs, dim=1).softmax(dim=-1)"), "these are "
        "probabilities; logits come straight from the last layer"),
    Mutant("one-less", ("memory, memory, valid_lens", "memory, memory, (valid_lens - 1).clamp(min=1)"), "one key too "
        "few gets weight: with valid length n, the keys 0 to n - 1 count"),
]  # fmt: skip


PART = Code(
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
        "values": "A step: the query is the top layer's state from before; its context; embedding and context, in this "
        "order, into the LSTM with the pair from before; its output into `dense`",
        "raised": "If it is a batch of one that fails: `.squeeze()` takes every axis of size one, so name the "
        "one that you mean.",
    },
    mutants=MUTANTS,
    explanation="""
One line of the loop changes, and it changes twice: a pair goes in, a pair comes out. Everything else in the program
that touches the state has to know as well. The encoder must be an LSTM, or the cell begins from nothing; a beam
search must reorder both halves. That is why the decoders of this book keep their state in one object that nobody
else looks into.

Why is the query the hidden state and not the cell? The hidden state has passed the output gate: it is what the LSTM has
decided to show, and bounded. The cell may grow without limit, and large queries saturate the tanh of an additive score.
""",
)
