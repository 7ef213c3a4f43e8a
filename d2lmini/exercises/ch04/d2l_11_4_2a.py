"""Part a of d2l-11.4.2, "Scaled dot products in Bahdanau's decoder": `decode`."""

import math

import torch
from torch import nn

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


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
        input_size = embed_size + num_hiddens  # a token, and the context beside it
        self.rnn = nn.GRU(input_size, num_hiddens, num_layers)
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
    decoder = _Decoder(V, embed, h, num_layers=3)
    with torch.no_grad():
        for parameter in decoder.parameters():  # large enough that every fault shows
            parameter.copy_(t.randn(*parameter.shape, scale=0.6))
    X, memory, hidden = t.integers(0, V, B, T), t.randn(B, S, h), t.randn(3, B, h)
    valid_lens = t.integers(1, S, B)  # all of them leave some padding
    valid_lens[0] = 2
    memory.requires_grad_()

    exact = _Decoder(V, embed, h, num_layers=3).double()
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

    # a batch of one, with scores of about -120 for all that counts, whose exponentials are 0, and of 0 in the padding
    query = hidden[-1, :1]  # (1, h)
    far = -120 * math.sqrt(h) * query / query.square().sum() * t.rand(1, S, 1, low=0.998, high=1.002)
    far = far.masked_fill(padding[:1, :, None], 0.0)
    inputs = X[:1, :1], far, hidden[:, :1], valid_lens[:1]
    logits, weights = _reference(exact, inputs[0], far.double(), inputs[2].double(), inputs[3])
    got_logits, got_weights = t.unpack(t.call(answer, decoder, *inputs), "logits", "weights")
    t.same(got_logits, logits.detach(), "with a batch of one and low scores, the logits")
    t.same(got_weights, weights.detach(), "with a batch of one and low scores, the weights")


MUTANTS = [
    Mutant("mask-low", ("-torch.inf", "-20.0"), "a score of minus twenty is low but a score: where all others are "
        "lower, padding gets the weight"),
    Mutant("mask-low", ("-torch.inf", "-10.0"), "a score of minus ten is low but a score: padding gets weight, and "
        "minus infinity says no"),
    Mutant("one-less", (">= valid_lens[:, None]", ">= (valid_lens[:, None] - 1).clamp(min=1)"), "one key too few gets "
        "weight: with valid length n, the keys 0 to n - 1 count"),
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
    Mutant("second-layer", ("query = hidden[-1]", "query = hidden[1]"), "the query is the state of the second layer; "
        "there may be more, and the top one is the last: hidden[-1]"),
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
    Mutant("query-mean", ("query = hidden[-1]", "query = hidden.mean(dim=0)"), "the query is the mean over the layers; "
        "the top layer asks"),
    Mutant("no-context", ("[x, context]", "[x, query]"), "the GRU reads the query in place of the context"),
    Mutant("plain-mean", ("(row[:, :, None] * memory).sum(dim=1)", "memory.mean(dim=1)"), "the context is the plain "
        "mean of the memory: the weights are not used"),
    Mutant("mean-for-sum", ("(row[:, :, None] * memory).sum(dim=1)", "(row[:, :, None] * memory).mean(dim=1)"), "the "
        "weighted outputs are averaged: the weights sum to one already, so add"),
    Mutant("first-out", ("decoder.dense(output[0])", "decoder.dense(hidden[0])"), "the logits are made of the first "
        "layer's state; the top layer is shown"),
    Mutant("softmax", ("torch.stack(logits, dim=1)", "torch.stack(logits, dim=1).softmax(dim=-1)"), "these are "
        "probabilities; logits come straight from the last layer"),
    Mutant("sigmoid", ("torch.softmax(scores, dim=-1)", "torch.sigmoid(scores)"), "each key gets a sigmoid of its own: "
        "the weights of a query sum to one, by a softmax"),
    Mutant("by-embedding", ("math.sqrt(h)", "math.sqrt(x.shape[-1])"), "the scores are divided by the root of the "
        "embedding's size; query and keys have h features"),
]  # fmt: skip


PART = Code(
    key="d2l-11.4.2a",
    prompt="""
Write `decode(decoder, X, memory, hidden, valid_lens)`: the decoder of D2L's section 11.4 over all T tokens, with
softmax of $\\mathbf q^\\top \\mathbf k_i / \\sqrt h$ for its weights. Keys beyond the valid length get none. As before,
the query of a step is the state of the top layer *before* the step reads its token. Return the weights, too: you will
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
        "values": "A step: the query is the top layer's state from before; its context; embedding and context, in this "
        "order, into the GRU with the state from before; its output into `dense`. Weights: softmax of q.k / "
        "sqrt(h) over the valid keys",
        "nonfinite": "A softmax over nothing but minus infinities is NaN: is it taken over the keys, and does "
        "the mask leave some? One by hand needs the largest score subtracted first, the largest of those that "
        "count. And it is the weights that are "
        "asked for, not the scores.",
        "raised": "If it is a batch of one that fails: `.squeeze()` takes every axis of size one, so name the "
        "one that you mean.",
    },
    mutants=MUTANTS,
    explanation="""
Three lines changed and a layer less. What was lost? The additive score has two matrices of its own, so that it may
compare any direction of the state with any other of the outputs. The dot product compares number with number, and
leaves it to the two GRUs to put matching things at matching places. They are trained together, so they can.
""",
)
