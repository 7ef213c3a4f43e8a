r"""Count GPT-3

GPT-2 and GPT-3 have the same parts. Tokens are looked up in an embedding, (V, h), and a learned vector is added for
each of the `max_len` positions. Then come L blocks. A block is a layer norm and causal self-attention (four matrices, h
x h), another layer norm and a feed-forward network with a hidden layer of 4 h; both have residual connections. After
the last block stands one more layer norm. The scores of the V tokens are made with the embedding's own matrix (the
weights are tied), without a bias. All other linear layers have biases; a layer norm has a factor and a bias for each
feature.

Write `gpt_counts(vocab_size, max_len, num_hiddens, num_blks, past, itemsize)` that returns a dict of three integers:

- `parameters`: how many there are;
- `cache_bytes`: what the key/value cache (chapter 16) grows by with one token, at `itemsize` bytes a number;
- `flops`: floating-point operations of the matrix products when one token more is read, after `past` tokens that are in
  the cache. A multiplication and an addition are two. Biases, norms, activations and the softmax are left out, and so
  is the embedding, which is looked up and not multiplied.

The check compares with `d2l.GPT`. Then put in GPT-3: V = 50,257, 2,048 positions, h = 12,288 and 96 blocks.
"""

from functools import cache

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import d2lmini as d2l
from d2lmini.exercises.engine import Count, Exercise, Mutant

# (V, positions, h, L, past, bytes, heads): two toys in which everything differs, GPT-2 and GPT-3 as published
CONFIGURATIONS = [
    (65, 40, 24, 3, 17, 4, 2),
    (311, 29, 40, 5, 0, 8, 4),
    (50257, 1024, 768, 12, 1023, 4, 12),
    (50257, 2048, 12288, 96, 511, 2, 96),
]
DTYPES = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}


def gpt_counts(vocab_size, max_len, num_hiddens, num_blks, past, itemsize):
    """Count what a GPT is made of, and what a token costs.

    Args:
        vocab_size: V. max_len: positions. num_hiddens: h. num_blks: L.
        past: tokens in the cache before the one that is read.
        itemsize: bytes a number.

    Returns:
        dict with ``parameters``, ``cache_bytes`` and ``flops``.
    """
    ### BEGIN SOLUTION
    h, hidden = num_hiddens, 4 * num_hiddens
    attention = 4 * h * h
    ffn = h * hidden + hidden * h
    attention_biases = 4 * h
    ffn_biases = hidden + h
    norm = 2 * h
    block = attention + attention_biases + ffn + ffn_biases + 2 * norm
    tokens, positions = vocab_size * h, max_len * h
    multiplied = num_blks * (attention + ffn) + tokens  # matrices that the token meets; the last is the scores'
    looked_at = 2 * num_blks * h * (past + 1)  # its query with all keys, its weights with all values
    return {
        "parameters": tokens + positions + num_blks * block + norm,
        "cache_bytes": 2 * num_blks * h * itemsize,
        "flops": 2 * (multiplied + looked_at),
    }
    ### END SOLUTION


def in_closed_form(vocab_size, max_len, num_hiddens, num_blks, past, itemsize):
    V, T, h, L = vocab_size, max_len, num_hiddens, num_blks
    return {
        "parameters": L * (12 * h**2 + 13 * h) + (V + T + 2) * h,
        "cache_bytes": L * (h + h) * itemsize,
        "flops": 24 * L * h**2 + 2 * V * h + 4 * L * h * (past + 1),
    }


@cache
def measure(V, T, h, L, past, itemsize, H):
    """Counts of a real model without numbers in it: parameters, bytes of a token in the cache, operations."""
    with torch.device("meta"):
        model = d2l.GPT(d2l.GPTConfig(V, T, h, H, L)).to(DTYPES[itemsize]).eval()
        with torch.no_grad():
            state = model.empty_state(1)
            if past:
                _, state = model.extend(torch.zeros(1, past, dtype=torch.long), state)
            # the counter knows matrix products, not every fused kernel
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as work:
                _, grown = model.extend(torch.zeros(1, 1, dtype=torch.long), state)

    def size(state):
        return sum(x.nbytes for kept in state.caches for x in kept)

    return sum(p.numel() for p in model.parameters()), size(grown) - size(state), work.get_total_flops()


def verify(t, answer):
    names = "parameters", "cache_bytes", "flops"
    for V, T, h, L, past, itemsize, H in CONFIGURATIONS:
        case = f"for V={V}, {T} positions, h={h}, L={L}, past={past}, itemsize={itemsize}"
        got = t.fields(t.call(answer, V, T, h, L, past, itemsize), *names)
        for name, value, want in zip(names, got, measure(V, T, h, L, past, itemsize, H), strict=True):
            t.number(value, want, f"{name} {case}")
            t.that(isinstance(value, int), "type", f"{name} are a {type(value).__name__}: counts are integers")


MUTANTS = [
    Mutant("untied", ('"parameters": tokens + positions', '"parameters": 2 * tokens + positions'),
        "the embedding counts twice: the last layer has the same matrix"),
    Mutant("no-positions", ('"parameters": tokens + positions', '"parameters": tokens'), "the positions are learned, "
        "too: (max_len, h)"),
    Mutant("no-embedding", ('"parameters": tokens + positions', '"parameters": positions'), "the embedding is missing"),
    Mutant("blocks-only", ("tokens + positions + num_blks * block + norm", "num_blks * block"), "these are the blocks "
        "alone: embedding, positions and the last norm are missing"),
    Mutant("no-last-norm", ("num_blks * block + norm", "num_blks * block"), "a norm is missing: one more stands after "
        "the last block"),
    Mutant("one-norm", ("+ 2 * norm\n", "+ norm\n"), "2 h a block are missing, as many as a layer norm has: a block "
        "has two of them"),
    Mutant("no-norms", ("norm = 2 * h", "norm = 0"), "the layer norms are missing: each has a factor and a bias for "
        "every feature"),
    Mutant("norm-biases", ("norm = 2 * h", "norm = h"), "a layer norm has a factor *and* a bias for every feature"),
    Mutant("no-biases", ("attention + attention_biases + ffn + ffn_biases", "attention + ffn"),
        "the biases of the linear layers are missing"),
    Mutant("no-attention-biases", ("attention + attention_biases + ffn", "attention + ffn"), "the four matrices of "
        "attention have biases, too"),
    Mutant("no-W_o-bias", ("attention_biases = 4 * h", "attention_biases = 3 * h"), "h a block are missing: all four "
        "matrices of attention have biases, the one that mixes heads, too"),
    Mutant("no-ffn-biases", ("+ ffn + ffn_biases", "+ ffn"), "the two layers of the feed-forward network have biases, "
        "too"),
    Mutant("biases-of-inputs", ("ffn_biases = hidden + h", "ffn_biases = h + h"), "a linear layer has as many biases "
        "as outputs: the first one of the feed-forward network has 4 h"),
    Mutant("scores-bias", ("num_blks * block + norm", "num_blks * block + norm + vocab_size"), "the layer that scores "
        "tokens has no bias"),
    Mutant("no-W_o", ("attention = 4 * h * h", "attention = 3 * h * h"), "attention has a fourth matrix, which mixes "
        "the heads' outputs"),
    Mutant("one-layer", ("ffn = h * hidden + hidden * h", "ffn = h * hidden"), "the feed-forward network has two "
        "matrices"),
    Mutant("narrow", ("hidden = num_hiddens, 4 * num_hiddens", "hidden = num_hiddens, num_hiddens"),
        "the hidden layer of the feed-forward network has 4 h units"),
    Mutant("one-block", ("num_blks * block + norm", "block + norm"), "these are the parameters of one block: there are "
        "L"),
    Mutant("keys-only", ("2 * num_blks * h * itemsize", "num_blks * h * itemsize"), "this is the half: keys *and* "
        "values are kept, and a number takes `itemsize` bytes, not always two"),
    Mutant("numbers", ("2 * num_blks * h * itemsize", "2 * num_blks * h"), "these are numbers, not bytes"),
    Mutant("type", ("hidden = num_hiddens, 4 * num_hiddens", "hidden = num_hiddens, 4.0 * num_hiddens")),  # floats
    Mutant("four-bytes", ("2 * num_blks * h * itemsize", "2 * num_blks * h * 4"), "a number takes `itemsize` bytes, "
        "not always four"),
    Mutant("cache-one-block", ("2 * num_blks * h * itemsize", "2 * h * itemsize"), "every block has a cache of its "
        "own"),
    Mutant("whole-cache", ("2 * num_blks * h * itemsize", "2 * num_blks * h * itemsize * (past + 1)"),
        "this is the whole cache: asked for is what one token adds"),
    Mutant("cache-context", ("2 * num_blks * h * itemsize", "2 * num_blks * h * itemsize * max_len"),
        "this is the cache of a full context: asked for is what one token adds"),
    Mutant("queries-kept", ("2 * num_blks * h * itemsize", "3 * num_blks * h * itemsize"), "nobody asks an old query "
        "again: keys and values alone are kept"),
    Mutant("multiply-add", ('"flops": 2 * (multiplied + looked_at)', '"flops": multiplied + looked_at'),
        "a multiplication and an addition count as two operations"),
    Mutant("two-N", ('"flops": 2 * (multiplied + looked_at)',
        '"flops": 2 * (tokens + positions + num_blks * block + norm)'), "2 N is the rule of thumb: it counts biases, "
        "norms and positions, and not attention's products"),
    Mutant("no-attention", ("2 * (multiplied + looked_at)", "2 * multiplied"), "the token's query meets all keys, and "
        "its weights all values"),
    Mutant("not-itself", ("h * (past + 1)", "h * past"), "the token attends to itself, too: past + 1 keys"),
    Mutant("whole-context", ("h * (past + 1)", "h * max_len"), "the query is taken to meet max_len keys: it meets "
        "those that are there, past + 1"),
    Mutant("attention-once", ("looked_at = 2 * num_blks", "looked_at = 2"), "attention's products are counted for one "
        "block: every block has them"),
    Mutant("all-pairs", ("h * (past + 1)", "h * (past + 1) ** 2"), "these are all pairs of tokens: one token is read, "
        "and its query alone meets past + 1 keys"),
    Mutant("read-again", ('"flops": 2 * (multiplied + looked_at)',
        '"flops": 2 * (past + 1) * (multiplied + looked_at)'), "the earlier tokens are in the cache: they do not go "
        "through the blocks again"),
    Mutant("training", ('"flops": 2 * (multiplied + looked_at)', '"flops": 6 * (multiplied + looked_at)'),
        "this is three times as much, as in training: a token that is only read has no backward pass"),
    Mutant("scores-only", ("looked_at = 2 * num_blks", "looked_at = num_blks"), "attention has two products: query "
        "with keys, and weights with values"),
    Mutant("no-last-layer", ("(attention + ffn) + tokens  #", "(attention + ffn)  #"), "the last layer is a product "
        "with the embedding's matrix: 2 V h"),
    Mutant("embedding-multiplied", ("(attention + ffn) + tokens  #", "(attention + ffn) + 2 * tokens  #"),
        "the embedding is looked up, not multiplied: its matrix counts once, for the scores"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-15.1",
    doc=__doc__,
    source="own",
    parts=[
        Count(
            key="own-15.1",
            hints=[
                "Begin with the matrices of a block: four of h x h, one of h x 4h and one of 4h x h, 12 h^2 together.",
                "A linear layer has as many biases as outputs, a layer norm 2 h numbers, and there are 2 L + 1 norms.",
                "A token meets each entry of a matrix once: a multiplication and an addition. The embedding counts, "
                "too, where it makes the scores.",
                "The token's query meets past + 1 keys of h numbers in each block (all heads together), and its "
                "weights as many values.",
            ],
            answer=gpt_counts,
            verify=verify,
            alternatives=[in_closed_form],
            min_checks=16,
            seconds=60.0,  # torch's counter of operations loads much at its first use
            advice={
                "values": "Make the `d2l.GPT` of the first configuration and print name and shape of each parameter: "
                "which do you count too often or not at all? For `flops` write down the products of one token, "
                "matrix by matrix, and then attention's two; a bias is added, and counts nothing.",
                "type": "`//` divides integers, and 4 h is `4 * h`: no number here has a fraction.",
            },
            mutants=MUTANTS,
            explanation=r"""
$N = L(12h^2 + 13h) + (V + T + 2)h$. For GPT-3 this is 174.6 billion, and $12 L h^2$ alone gives 173.9: width counts
squared, depth once, and biases, norms and even the vocabulary hardly show. For GPT-2, the smallest, the embedding is
31 % of all.

A token costs $24 L h^2 + 2 V h + 4 L h\,(t + 1)$ operations after $t$ others. The first two terms are $2N$ but for
positions, biases and norms: each parameter is used once, in a multiplication and an addition. Hence the rule that a
token costs $2N$, and in training, with a backward pass twice as expensive, $6N$. The third term is attention's: it
equals $24 L h^2$ at $t + 1 = 6h$. For GPT-3 that would be a context of 73,728 tokens.

The cache grows by $2Lh$ numbers with each token, for GPT-3 in bfloat16 4.7 MB. A full context of 2,048 tokens takes 9.7
GB, for *one* text. That is why later models share keys and values between heads.
""",
        )
    ],
)
