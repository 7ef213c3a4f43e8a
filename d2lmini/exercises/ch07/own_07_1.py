r"""Find the bugs in a decoder

This function runs the blocks of a `d2l.TransformerDecoder` on T new tokens that follow those in the caches. It was
written in a hurry. It runs, it raises nothing, a model can be trained with it, and it has **three faults**.

```python
def decode(decoder, tokens, memory, memory_mask, caches):
    X = decoder.embedding(tokens) * math.sqrt(decoder.num_hiddens)
    X = decoder.pos_encoding(X)
    for i, blk in enumerate(decoder.blks):
        mask = None
        if decoder.training:
            mask = d2l.causal_mask(tokens.shape[1], caches[i].length + tokens.shape[1])
        Y, caches[i] = blk.attention1.extend(X, X, X, caches[i], mask=mask)
        X = blk.addnorm1(X, Y)
        X = blk.addnorm2(X, blk.attention2(X, memory, memory, mask=memory_mask))
        X = blk.addnorm3(X, blk.ffn(X))
    return decoder.dense(X), caches
```

Copy it into your answer and repair it. `memory` is the encoder's output (B, S, h) and `memory_mask` says what of it is
real; `caches` is a list with one `KeyValueCache` for each block, empty ones at the beginning. The
function returns logits (B, T, V) and the list of the grown caches.

Do not search by staring. Find each fault with an experiment that it fails:

1. in training *and* in evaluation mode, change the words from some position on. Which logits may move?
2. decode word by word, and compare with all words at once;
3. go on from one and the same state twice, with two different words, as a beam search does.

To try it:

```python
decoder = d2l.TransformerDecoder(vocab_size=20, num_hiddens=16, ffn_num_hiddens=32, num_heads=2, num_blks=2)
memory, memory_mask = torch.randn(3, 5, 16), torch.ones(3, 1, 5, dtype=torch.bool)
start = [blk.attention1.empty_cache(3) for blk in decoder.blks]
logits, caches = decode(decoder, torch.randint(20, (3, 7)), memory, memory_mask, start)
```
"""

import copy
import math

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Code, Exercise, Mutant
from d2lmini.transformer import BlockCache, DecoderState


def decode(decoder, tokens, memory, memory_mask, caches):
    """Run a decoder on tokens that follow those in the caches.

    Args:
        decoder: a ``d2l.TransformerDecoder``; its parts are ``embedding``, ``pos_encoding``, ``num_hiddens``, ``blks``
            and ``dense``, those of a block ``attention1``, ``addnorm1``, ``attention2``, ``addnorm2``, ``ffn`` and
            ``addnorm3``.
        tokens: (B, T), integers.
        memory: (B, S, h), what the encoder made of the source.
        memory_mask: (B, 1, S), True where the source is no padding.
        caches: list, for each block the keys and values of earlier positions.

    Returns:
        Logits (B, T, V), and a list with the caches grown by T positions.
    """
    ### BEGIN SOLUTION
    num_new, past = tokens.shape[1], caches[0].length
    X = decoder.embedding(tokens) * math.sqrt(decoder.num_hiddens)
    X = decoder.pos_encoding(X, offset=past)  # the first new token stands at position `past`
    mask = d2l.causal_mask(num_new, past + num_new, device=tokens.device)  # in training and in evaluation
    grown = []  # a new list: the old state may be needed once more
    for blk, cache in zip(decoder.blks, caches, strict=True):
        Y, cache = blk.attention1.extend(X, X, X, cache, mask=mask)
        grown.append(cache)
        X = blk.addnorm1(X, Y)
        X = blk.addnorm2(X, blk.attention2(X, memory, memory, mask=memory_mask))
        X = blk.addnorm3(X, blk.ffn(X))
    return decoder.dense(X), grown
    ### END SOLUTION


def with_the_blocks(decoder, tokens, memory, memory_mask, caches):
    """The blocks do it all by themselves, given a state."""
    projected = [blk.attention2.project(memory, memory) for blk in decoder.blks]
    state = DecoderState(memory, memory_mask, tuple(map(BlockCache, caches, projected)))
    logits, state = decoder(tokens, state)
    return logits, [cache.self_attention for cache in state.caches]


def word_by_word(decoder, tokens, memory, memory_mask, caches):
    """One token after the other: then no mask is needed."""
    caches, logits = list(caches), []
    for t in range(tokens.shape[1]):
        X = decoder.embedding(tokens[:, t : t + 1]) * math.sqrt(decoder.num_hiddens)
        X = decoder.pos_encoding(X, caches[0].length)
        for i, blk in enumerate(decoder.blks):
            Y, caches[i] = blk.attention1.extend(X, X, X, caches[i])
            X = blk.addnorm1(X, Y)
            X = blk.addnorm2(X, blk.attention2(X, memory, memory, mask=memory_mask))
            X = blk.addnorm3(X, blk.ffn(X))
        logits.append(decoder.dense(X))
    return torch.cat(logits, 1), caches


def as_given(decoder, tokens, memory, memory_mask, caches, *, mask=False, position=False, state=False):
    """The broken function; each keyword repairs one of its faults."""
    caches = list(caches) if state else caches
    X = decoder.embedding(tokens) * math.sqrt(decoder.num_hiddens)
    X = decoder.pos_encoding(X, caches[0].length if position else 0)
    for i, blk in enumerate(decoder.blks):
        causal = None
        if decoder.training or mask:
            causal = d2l.causal_mask(tokens.shape[1], caches[i].length + tokens.shape[1])
        Y, caches[i] = blk.attention1.extend(X, X, X, caches[i], mask=causal)
        X = blk.addnorm1(X, Y)
        X = blk.addnorm2(X, blk.attention2(X, memory, memory, mask=memory_mask))
        X = blk.addnorm3(X, blk.ffn(X))
    return decoder.dense(X), caches


def repaired(**which):
    return lambda *args: as_given(*args, **which)


def verify(t, answer):
    torch.manual_seed(t.seed)
    B, S = t.sizes(2, 4, 7)
    T, V, h, L = 7, 16 + t.random.randrange(4), 16, 2  # T is the number of calls: always the same
    decoder = d2l.TransformerDecoder(V, h, 24, t.random.choice((2, 4)), L).to(t.device)
    memory, tokens = t.randn(B, S, h), t.integers(0, V, B, T)
    memory_mask = torch.arange(S, device=t.device) < t.integers(1, S, B)[:, None, None]  # (B, 1, S): some padding each

    memory.requires_grad_()
    weights = t.randn(B, T, V)  # of the logits in the sum whose gradient is compared
    exact = copy.deepcopy(decoder).cpu().double().eval()
    source = memory.detach().cpu().double().requires_grad_()
    want = exact(tokens.cpu(), DecoderState(source, memory_mask.cpu(), (None,) * L))[0]
    (slope,) = torch.autograd.grad((weights.cpu() * want).sum(), source)
    want = want.detach()

    def start():
        return [blk.attention1.empty_cache(B) for blk in decoder.blks]

    def run(words, caches, past=0):
        got = t.call(answer, decoder, words, memory, memory_mask, caches)
        logits, grown = t.unpack(got, "logits", "caches")
        message = "your code leaves the decoder in another mode than it was in: who calls it decides on that"
        t.that(t.look(_mode) == decoder.training, "mode", message)
        t.that(isinstance(logits, torch.Tensor), "type", f"the logits are a {type(logits).__name__}, expected a tensor")
        shape, total = (B, words.shape[1], V), past + words.shape[1]
        t.that(logits.shape == shape, "shape", f"the logits have shape {tuple(logits.shape)}, expected {shape}")
        have = t.look(_lengths, grown)
        fits = have is not None and len(have) == L
        t.that(fits, "type", f"the second result must be a list of {L} caches, one for each block")
        message = f"after {total} words the caches hold {have} positions: each block's must grow by the new ones"
        t.that(have == [total] * L, "cache", message)
        return logits, grown

    # 1. change the future
    for mode in ("training", "evaluation"):
        decoder.train(mode == "training")
        logits, _ = run(tokens, start())
        place = t.random.randrange(1, T)
        changed = tokens.clone()
        changed[:, place:] = (changed[:, place:] + t.integers(1, V, B, T - place)) % V
        other, _ = run(changed, start())
        t.that(
            bool(torch.allclose(other[:, :place], logits[:, :place], atol=1e-4)),
            f"leak-{mode}",
            f"in {mode} mode, other words from position {place} on change the logits before it: the decoder sees the "
            "future",
        )
        t.same(logits, want, f"the logits for all words at once, in {mode} mode")
        logits, _ = run(tokens, start())
        slopes = t.gradient(logits, 2, "the logits", weights)
        t.same(slopes, slope, f"the gradient in the memory, in {mode} mode", tolerance=(1e-3, 1e-3))

    # 2. word by word, and in pieces
    pieces = [T - 3, 3]
    for name, lengths in (
        ("word by word", [1] * T),
        ("in two pieces", pieces),
        ("in two pieces, in training mode", pieces),
    ):
        decoder.train("training" in name)
        caches, pieces_read, past = start(), [], 0
        for words in tokens.split(lengths, 1):
            logits, caches = run(words, caches, past)
            pieces_read.append(logits)
            past += words.shape[1]
        t.same(torch.cat(pieces_read, 1), want, f"the logits {name}", tolerance=(1e-3, 1e-4))

    # 3. twice from one and the same state, which may be the first
    _, middle = run(tokens[:, :3], start())
    for state, past, words in (
        (middle, 3, tokens[:, 3:4]),
        (middle, 3, (tokens[:, 3:4] + 1) % V),
        (start(), 0, tokens),
    ):
        run(words, state, past)
        t.that(
            t.look(_lengths_given) == [past] * L,
            "state",
            "your code changes the list `caches` that it was given: a second hypothesis of a beam search that goes on "
            "from the same state would read the first one's word. Return a new list",
        )


def _mode(given):
    return given[0].training


def _lengths(given, caches):
    """How many positions each cache holds; None where these are no caches."""
    kinds = (tuple, d2l.KeyValueCache)
    if not isinstance(caches, (list, tuple)) or not all(isinstance(x, kinds) and len([*x]) == 2 for x in caches):
        return None
    return [keys.shape[2] for keys, _ in caches]


def _lengths_given(given):
    """How many positions the caches hold now that the answer was given."""
    return _lengths(given, given[4])


MUTANTS = [
    Mutant("leak-evaluation", as_given),
    Mutant("leak-evaluation", repaired(position=True, state=True)),
    Mutant("position", repaired(mask=True, state=True), "every word gets the encoding of a position counted from 0 "
        "anew: how many are in the cache already?"),
    Mutant("position", repaired(mask=True)),
    Mutant("state", repaired(mask=True, position=True)),
    Mutant("state", ("    return decoder.dense(X), grown", "    if not past:\n        caches[:] = grown\n    return "
        "decoder.dense(X), grown")),  # the first list is filled
    Mutant("leak-training", ("cache, mask=mask", "cache")),  # no mask at all
    Mutant("position-ahead", ("offset=past)", "offset=past + 1 if past or num_new == 1 else 0)"), "every word gets the "
        "encoding of the position after its own"),
    Mutant("position-ahead", ("offset=past)", "offset=past + 1)"), "every word gets the encoding of the position after "
        "its own"),
    Mutant("position", ("offset=past)", "offset=0 if decoder.training else past)"), "in training mode every word gets "
        "the encoding of a position counted from 0 anew"),
    Mutant("unscaled", (" * math.sqrt(decoder.num_hiddens)", ""), "the embeddings are not multiplied by "
        "sqrt(num_hiddens), as in the function that was given"),
    Mutant("mode", ("num_new, past =", "decoder.eval()\n    num_new, past =")),  # evaluation mode
    Mutant("past-hidden", ("    grown = []", "    mask = mask & (torch.arange(mask.shape[1]) >= past)\n    grown = []"),
        "new words see one another and nothing of the past: all of what is in the cache may be seen"),
    Mutant("mask-offset", ("d2l.causal_mask(num_new, past + num_new, device=tokens.device)",
        "torch.ones(num_new, past + num_new).tril().bool()"), "the mask begins at the first key, as if there were no "
        "past: a new word may see all of the past, and the new words up to itself"),
    Mutant("mask-offset", ("d2l.causal_mask(num_new, past + num_new, device=tokens.device)",
        "torch.ones(num_new, past + num_new).tril().bool() if num_new > 1 else None"), "the mask begins at the first "
        "key, as if there were no past: a new word may see all of the past, and the new words up to itself"),
    Mutant("mask-past", ("d2l.causal_mask(num_new, past + num_new, device=tokens.device)",
        "None if past else d2l.causal_mask(num_new)"), "several new words after a past see one another's future: the "
        "mask is needed then, too"),
    Mutant("cache", ("return decoder.dense(X), grown", "return decoder.dense(X), list(caches)")),  # caches forgotten
    Mutant("cache", ("grown.append(cache)", "grown.append(caches[0])")),  # one cache for all
    Mutant("padding", ("mask=memory_mask", "mask=None"), "words of the source that are padding count: `memory_mask` "
        "must reach `attention2`"),
    Mutant("shape", ("return decoder.dense(X), grown", "return decoder.dense(X[:, -1]), grown")),  # last word only
]  # fmt: skip


EXERCISE = Exercise(
    key="own-07.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-07.1",
            hints=[
                "Read the three experiments again. The first fails in one mode only, the second from the second word "
                "on, "
                "and the third even when all logits are right.",
                "What does `decoder.training` have to do with what a word may see? And at which position does the "
                "first "
                "new word stand?",
                "The mask is made always, `pos_encoding` takes `offset=caches[0].length`, and grown caches go into a "
                "new "
                "list.",
            ],
            advice={
                "leak-training": "The function as given is right here: what has changed?",
                "leak-evaluation": "Look at where the mask is made.",
                "values": "Which is the first position that is wrong, and which call gave it? Print the position, the "
                "mask and the caches' lengths in that call. All else is right in the function as it was given.",
            },
            answer=decode,
            verify=verify,
            alternatives=[with_the_blocks, word_by_word, repaired(mask=True, position=True, state=True)],
            min_checks=40,
            seconds=30.0,
            mutants=MUTANTS,
            explanation=r"""
- **The mask** was made in training mode only. In training nothing is wrong, and the loss falls as it should. In
  evaluation every position sees the words that it is asked for.
- **The position** restarts at zero with every call. With all words in one call that is right, so teacher forcing never
  shows it. Word by word, every word claims to be the first.
- **The state** was changed in place. Greedy search never notices. A beam search that goes on from one state twice, or a
  retry after an error, finds the words of the first try in its past.

None of the three raises an error, and each is invisible to the usual look at a training curve. The tests that find
them need no trained model and no data, only random words. Keep them beside every decoder that you write.
""",
        )
    ],
)
