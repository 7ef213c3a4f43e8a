"""Part b of d2l-11.7.3, "Encoder, decoder, or both: which one is a language model?": `LanguageModel`."""

import math
from functools import partial

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Mutant


class LanguageModel(nn.Module):
    """A language model of causal Transformer blocks.

    Args:
        vocab_size: V.
        num_hiddens: h.
        ffn_num_hiddens: hidden size of the network in each block.
        num_heads: H, a divisor of h.
        num_blks: how many blocks.
    """

    def __init__(self, vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks):
        super().__init__()
        ### BEGIN SOLUTION
        self.embedding, self.num_hiddens = nn.Embedding(vocab_size, num_hiddens), num_hiddens
        self.positions = d2l.PositionalEncoding(num_hiddens)
        self.blks = nn.ModuleList(
            d2l.TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads) for _ in range(num_blks)
        )
        self.dense = nn.Linear(num_hiddens, vocab_size)
        ### END SOLUTION

    def forward(self, tokens):
        """Tokens (B, T) to logits (B, T, V): those at position t are for the token that follows it."""
        ### BEGIN SOLUTION
        X = self.positions(self.embedding(tokens) * math.sqrt(self.num_hiddens))  # (B, T, h)
        mask = d2l.causal_mask(tokens.shape[1], device=tokens.device)  # (T, T), in training and in evaluation
        for blk in self.blks:
            X = blk(X, mask=mask)
        return self.dense(X)
        ### END SOLUTION


class WithLengths(nn.Module):
    """Learned positions, the norm first, and the mask as a length for each query."""

    def __init__(self, vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        self.positions = nn.Embedding(64, num_hiddens)
        self.blks = nn.ModuleList(
            d2l.TransformerEncoderBlock(num_hiddens, ffn_num_hiddens, num_heads, norm_first=True)
            for _ in range(num_blks)
        )
        self.dense = nn.Sequential(nn.LayerNorm(num_hiddens), nn.Linear(num_hiddens, vocab_size, bias=False))

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        X = self.embedding(tokens) + self.positions(places)
        for blk in self.blks:
            X = blk(X, (places + 1).expand(tokens.shape))
        return self.dense(X)


class WithTorch(nn.Module):
    def __init__(self, vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks):
        super().__init__()
        layer = nn.TransformerEncoderLayer(num_hiddens, num_heads, ffn_num_hiddens, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, num_blks, enable_nested_tensor=False)
        self.embedding, self.positions = nn.Embedding(vocab_size, num_hiddens), d2l.PositionalEncoding(num_hiddens)
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def forward(self, tokens):
        hidden = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).triu(1)
        return self.dense(self.body(self.positions(self.embedding(tokens)), mask=hidden))


class WithWeakMask(WithTorch):
    def forward(self, tokens):
        forbidden = -20.0 * (~d2l.causal_mask(tokens.shape[1], device=tokens.device)).float()
        return self.dense(self.body(self.positions(self.embedding(tokens)), mask=forbidden))


class FewPositions(LanguageModel):
    def __init__(self, vocab_size, num_hiddens, *sizes):
        super().__init__(vocab_size, num_hiddens, *sizes)
        self.positions = nn.Embedding(33, num_hiddens)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device).clamp(max=32)
        X, mask = self.embedding(tokens) + self.positions(places), d2l.causal_mask(len(places), device=tokens.device)
        for blk in self.blks:
            X = blk(X, mask=mask)
        return self.dense(X)


class WithSmallWeights(LanguageModel):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)


class Recurrent(nn.Module):
    """A language model, but not this one."""

    def __init__(self, vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks, kind=nn.GRU):
        super().__init__()
        self.embedding, self.dense = nn.Embedding(vocab_size, num_hiddens), nn.Linear(num_hiddens, vocab_size)
        self.rnn = kind(num_hiddens, num_hiddens, num_blks, batch_first=True)

    def forward(self, tokens):
        return self.dense(self.rnn(self.embedding(tokens))[0])


class Convolutional(nn.Module):
    def __init__(self, vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks):
        super().__init__()
        self.embedding, self.dense = nn.Embedding(vocab_size, num_hiddens), nn.Linear(num_hiddens, vocab_size)
        self.blks = nn.ModuleList(nn.Conv1d(num_hiddens, num_hiddens, 9) for _ in range(num_blks))

    def forward(self, tokens):
        X = self.embedding(tokens).mT  # (B, h, T)
        for blk in self.blks:
            X = X + blk(nn.functional.pad(X, (8, 0))).relu()
        return self.dense(X.mT)


class Averaging(Convolutional):
    """Each position reads the mean of those before: weights that look at nothing."""

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])[:, None]  # (T, 1)
        X = (self.embedding(tokens) + places / 10).tanh()
        for blk in self.blks:
            mean = X.cumsum(1) / (places + 1)
            X = X + (mean @ blk.weight.mean(-1) + blk.bias).relu()
        return self.dense(X)


class _Names(TorchDispatchMode):
    """The names of all operations."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


LONGEST = 64
NONFINITE = "the logits are not finite: does each word see itself at least? Turned around, a mask leaves the last none"
TURNED = (
    "the mask is turned around: each position sees the words that come after it, and not those that were before. Does "
    "True mean what may be seen, or what may not? (In `d2l` it is what may be seen, in `nn.MultiheadAttention` what "
    "may not.) And are its rows the queries, its columns the keys?"
)


def verify(t, answer):
    torch.manual_seed(t.seed)
    B, T, V = t.random.randrange(2, 5), 8, t.random.randrange(17, 24)  # T is fixed: it is the number of checks
    h, ffn, H, L = 16, 24, t.random.choice((2, 4)), 2
    model = _make(t, answer, V, h, ffn, H, L)
    tokens = t.integers(0, V, B, T)
    for mode in ("training", "evaluation"):
        t.look(partial(_switch, training=mode == "training"), model)
        logits = t.call(model, tokens)
        t.that(isinstance(logits, torch.Tensor), "type", f"the model returns a {type(logits).__name__}, not a tensor")
        t.that(
            logits.shape == (B, T, V),
            "shape",
            f"the logits have shape {tuple(logits.shape)}, expected {(B, T, V)}: for every position one for each word",
        )
        t.that(logits.is_floating_point(), "dtype", f"the logits have dtype {logits.dtype}, expected floating point")
        t.that(bool(torch.isfinite(logits).all()), "nonfinite", NONFINITE)
        message = f"in {mode} mode the same words get other logits the second time: is there dropout?"
        t.that(not bool(_moved(t.call(model, tokens), logits).any()), "dropout", message)
        for place in range(1, T):
            changed = tokens.clone()
            changed[:, place:] = (changed[:, place:] + t.integers(1, V, B, T - place)) % V
            moved = _moved(t.call(model, changed), logits)
            if bool(moved[:, :place].any()):
                t.that(not _turned(t, answer, (V, h, ffn, H, 1), mode), "turned-mask", TURNED)
            t.that(
                not bool(moved[:, :place].any()),
                f"leak-{mode}",
                f"in {mode} mode, other words from position {place} on change the logits before it: the model sees the "
                "future. The same mask belongs into every block, in training and in evaluation; and nothing beside "
                "it may mix positions, as a mean over them or a batch norm does",
            )
            t.that(
                bool(moved[:, place].all()),
                "blind",
                f"other words from position {place} on leave the logits at {place} as they were: the word there must "
                "count, as the one that has just been read",
            )
        t.that(
            bool(_moved(t.call(model, _other(tokens, V, 0)), logits)[:, -1].all()),
            "no-context",
            f"in {mode} mode another first word leaves the logits at the last position as they were: words must reach "
            "all that follow them",
        )
        changed = tokens.clone()
        changed[0] = (changed[0] + 1) % V
        t.that(
            not bool(_moved(t.call(model, changed), logits)[1:].any()),
            "batch",
            f"in {mode} mode, another first sentence changes the logits of the others",
        )
        t.that(
            not bool(_moved(t.call(model, tokens[:, : T - 3]), logits[:, : T - 3]).any()),
            "length",
            "the first words of a text get other logits when nothing follows them: what belongs to the length of the "
            "text must not enter",
        )
    t.that(
        not torch.allclose(logits.logsumexp(-1), torch.zeros(B, T, device=t.device), atol=1e-4)
        and not torch.allclose(logits.sum(-1), torch.ones(B, T, device=t.device), atol=1e-4),
        "not-logits",
        "these are probabilities, or their logarithms; return what goes into the softmax",
    )
    text = t.integers(0, V, 8, LONGEST)
    before = t.call(model, text)
    moved = _moved(t.call(model, _other(text, V, 0)), before, least=3e-4)
    t.that(
        bool(moved[:, -1].any()),
        "forgets",
        f"in a text of {LONGEST} words the first leaves the last logits as they were. A recurrence forgets and a "
        "convolution does not reach so far; self-attention reads every earlier word directly",
    )
    for place in (t.random.randrange(T + 1, 32), 33, 48, LONGEST - 1):
        changed = torch.cat([text[:, :place], (text[:, place:] + 1) % V], 1)
        t.that(
            not bool(_moved(t.call(model, changed), before)[:, :place].any()),
            "leak-late",
            f"in a text of {LONGEST} words, other words from position {place} on change the logits before it: the "
            "future must be hidden from every position of the longest text",
        )
    single = _make(t, answer, V, h, ffn, H, 1)
    moved = _moved(t.call(single, _other(text, V, 0)), t.call(single, text))
    t.that(
        bool(moved[:, -1].any()),
        "window",
        f"with one block, in a text of {LONGEST} words the first leaves the last logits as they were: every block's "
        "attention must reach all the words before, not a window of them",
    )
    with t.watching(_Names, "names") as seen:
        t.call(single, tokens)
    t.that(
        any(word in name for name in seen.names for word in ("softmax", "attention", "exp")),
        "no-attention",
        "no softmax is computed on the way: where are the attention weights?",
    )
    text = t.random.randrange(V) + torch.arange(16, device=t.device)[:, None]
    text = (text + torch.arange(LONGEST, device=t.device)) % V  # (16, 64): one of them may move little
    for first, place in ((0, 1), (0, 32), (40, 45), (61, 62)):  # where other words stand, as V is from 17 to 23
        swapped = text.clone()
        swapped[:, [first, place]] = text[:, [place, first]]
        t.that(
            bool(_moved(t.call(single, swapped), t.call(single, text))[:, -1].any()),
            "no-positions",
            f"with one block, the last logits stay as they are when the words {first} and {place} change places: add "
            "to the embeddings positions that are all different",
        )
    t.look(partial(_enlarge, factor=20), single)  # so that scores are far from each other
    before = t.call(single, text)
    for place in (7, 40, LONGEST - 1):
        changed = torch.cat([text[:, :place], (text[:, place:] + 1) % V], 1)
        t.that(
            not bool(_moved(t.call(single, changed), before)[:, :place].any()),
            "weak-mask",
            f"with parameters 20 times as large, other words from position {place} on change the logits before it: "
            "what is taken from the scores of later words is too little. It takes minus infinity to forbid",
        )
    t.look(partial(_enlarge, factor=1 / 20), single)
    heads, wide = _make(t, answer, V, h, ffn, 6 - H, 1), _make(t, answer, V, h, 2 * ffn, H, 1)
    message = "with the same weights, 2 heads and 4 give the same logits: is `num_heads` used?"
    fits = t.look(_share, heads, single)
    t.that(not fits or bool(_moved(t.call(heads, tokens), t.call(single, tokens)).any()), "heads", message)
    message = "twice `ffn_num_hiddens` does not bring more parameters: is it used?"
    t.that(t.look(_size, wide) > t.look(_size, single), "ffn", message)
    deep = _make(t, answer, V, h, ffn, H, 3)
    sizes = [t.look(_size, stack) for stack in (single, model, deep)]
    t.that(
        sizes[2] - sizes[1] == sizes[1] - sizes[0] > h * h,
        "blocks",
        "each further block must bring its own parameters: are there `num_blks` blocks of their own?",
    )
    t.call(deep, tokens)
    idle = t.look(_idle, deep)
    t.that(not idle, "grad", f"no gradient reaches {', '.join(idle[:3])}: is it used, and is nothing detached?")


def _turned(t, answer, sizes, mode):
    """Whether a word, in one block, is moved by those after it and not by the first one."""
    single, text = _make(t, answer, *sizes), t.integers(0, sizes[0], 8, 8)
    t.look(partial(_switch, training=mode == "training"), single)
    before = t.call(single, text)  # of the last place nothing: it may see nothing at all, or everything
    first, last = (_moved(t.call(single, _other(text, sizes[0], i)), before)[:, -2] for i in (0, 7))
    return bool(last.any()) and not bool(first.any())


def _make(t, answer, *sizes):
    model = t.call(answer, *sizes)
    kind = "None" if model is None else f"a {type(model).__name__}"
    size = t.look(partial(_prepare, seed=t.seed, device=t.device), model)
    t.that(size is not None, "type", f"expected an nn.Module, got {kind}")
    t.that(size > 0, "type", "the model has no parameters")
    return model


def _prepare(given, model, seed, device):
    """Draw weights large enough for all to be seen. Returns how many there are, or None: it is no model."""
    if not isinstance(model, nn.Module):
        return None
    generator = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        if p.dim() > 1:
            p.data = torch.randn(p.shape, generator=generator) * p.shape[-1] ** -0.5
    return sum(p.numel() for p in model.to(device).parameters())


def _enlarge(given, model, factor):
    for p in model.parameters():
        p.data = p.data * factor


def _size(given, model):
    return sum(p.numel() for p in model.parameters())


def _share(given, model, other):
    """Give a model the weights of another, and say whether they fit."""
    try:
        model.load_state_dict(other.state_dict())
    except RuntimeError:
        return False
    return True


def _switch(given, model, training):
    model.train(training)


def _idle(given, model):
    """The names of the parameters that get no gradient."""
    model(*given).square().mean().backward()
    return [name for name, p in model.named_parameters() if p.grad is None or not bool(p.grad.abs().sum() > 0)]


def _other(tokens, V, place):
    """The same words but for the one at a place."""
    changed = tokens.clone()
    changed[:, place] = (changed[:, place] + 1) % V
    return changed


def _moved(a, b, least=3e-5):
    """Where logits (B, T, V) differ by more than rounding: (B, T)."""
    return (a - b).detach().abs().amax(-1) > least * b.detach().abs().max()


MUTANTS = [
    Mutant("leak-training", ("blk(X, mask=mask)", "blk(X)")),  # no mask
    # mask in training only
    Mutant("leak-evaluation", ("blk(X, mask=mask)", "blk(X, mask=mask if self.training else None)")),
    # mask in evaluation only
    Mutant("leak-training", ("blk(X, mask=mask)", "blk(X, mask=None if self.training else mask)")),
    Mutant("turned-mask", ("blk(X, mask=mask)", "blk(X, mask=~mask)")),  # polarity
    Mutant("turned-mask", ("blk(X, mask=mask)", "blk(X, mask=mask.T)")),  # transposed
    Mutant("no-positions", FewPositions),  # all alike from 32 on
    Mutant("weak-mask", WithWeakMask),
    Mutant("leak-training", ("blk(X, mask=mask)", "blk(X, mask=torch.ones_like(mask).tril(1))")),  # one ahead
    # a mask for few words
    Mutant("leak-late", ("blk(X, mask=mask)", "blk(X, mask=mask | (torch.arange(len(mask)) >= 48))")),
    Mutant("leak-late", ("blk(X, mask=mask)", "blk(X, mask=mask | (torch.arange(len(mask)) >= 32)[:, None])")),
    Mutant("no-context", ("blk(X, mask=mask)", "blk(X, mask=torch.eye(len(mask)).bool())")),  # only itself
    Mutant("blind", ("self.embedding(tokens)", "self.embedding(F.pad(tokens, (1, -1)))")),  # shifted once more
    Mutant("no-positions", ("self.positions(self.embedding(tokens) * math.sqrt(self.num_hiddens))",
        "self.embedding(tokens)")),
    Mutant("not-logits", ("return self.dense(X)", "return self.dense(X).softmax(-1)")),  # probabilities
    Mutant("shape", ("return self.dense(X)", "return self.dense(X[:, -1])")),  # last position only
    Mutant("window", ("blk(X, mask=mask)", "blk(X, mask=mask.triu(-40))")),  # a window
    Mutant("heads", ("ffn_num_hiddens, num_heads)", "ffn_num_hiddens, 1)")),  # one head
    # a network of h
    Mutant("ffn", ("num_hiddens, ffn_num_hiddens, num_heads)", "num_hiddens, num_hiddens, num_heads)")),
    Mutant("blocks", ("range(num_blks)", "range(1)")),  # one block
    # mean of the text
    Mutant("leak-training", ("return self.dense(X)", "return self.dense(X + X.mean(1, keepdim=True))")),
    # centred over the batch
    Mutant("batch", ("return self.dense(X)", "return self.dense(X - X.mean(0, keepdim=True))")),
    Mutant("length", ("        mask =", "        X = X + tokens.shape[1]\n        mask =")),  # position from the end
    Mutant("dropout", ("num_heads) for _", "num_heads, 0.1) for _")),
    Mutant("forgets", Recurrent),
    Mutant("forgets", partial(Recurrent, kind=nn.LSTM)),
    Mutant("forgets", Convolutional),
    Mutant("no-attention", Averaging),
    Mutant("grad", ("for blk in self.blks:", "X = X.detach()\n        for blk in self.blks:")),  # detached
]  # fmt: skip


PART = Code(
    key="d2l-11.7.3b",
    prompt=r"""
Build it: a class `LanguageModel(vocab_size, num_hiddens, ffn_num_hiddens, num_heads, num_blks)`, an `nn.Module` whose
`forward(tokens)` takes integers (B, T) to logits (B, T, V). `d2l.TransformerEncoderBlock` takes a `mask`; blocks of
your own will do as well. No dropout. Texts have at most 64 words. The check looks at no names and no weights. It
changes words and looks which logits move: no word may move the logits before it, in training *and* in evaluation; every
word must move those at its place and at all later ones, however far; and exchanging any two different earlier words
must move the last logits, as all 64 places are different. Self-attention is to do it: a recurrence or a convolution is
a language model, too, but not the one that is asked for.
""",
    hints=[
        "Embedding, positions, blocks, and a linear layer to V numbers at the end.",
        "`d2l.causal_mask(T)` is (T, T), True where a position may attend. Pass it as `mask=` to every block.",
        "Do not ask `self.training` anything: a language model is causal all its life.",
    ],
    advice={
        "raised": "If a block fails: blocks live in an `nn.ModuleList`; each takes (B, T, h) and `mask=` and "
        "returns (B, T, h). If an index is out of bounds: texts have up to 64 words, and learned positions "
        "must be as many.",
    },
    answer=LanguageModel,
    verify=verify,
    alternatives=[WithLengths, WithTorch, WithSmallWeights],
    min_checks=40,
    seconds=30.0,
    mutants=MUTANTS,
    explanation=r"""
The encoder's block with a causal mask *is* the decoder's block without cross-attention: GPT is a stack of these. The
only thing that makes it a language model is the mask, and so the mask is what one tests. Three tests are worth
keeping for any model that writes:

- change the future: nothing before may move, in **both** modes;
- change the past: everything after must move, or the mask hides too much;
- cut the text short: what is left must get the same logits as before, or writing word by word will differ from what
  was trained.

That a mask alone can carry order is a curiosity: position 1 sees one word and position 2 sees two, so a *stack* of
causal blocks can count. One block cannot tell the order of what it sees, and the check asks one block.
""",
)
