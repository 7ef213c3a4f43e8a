r"""What fewer key heads save

An attention layer has four matrices without biases: from h features to H heads of queries, to G heads of keys, to G
heads of values, all heads of size d, and from the H results back to h features. (H d need not be h.) A model has
`num_blks` such layers. While it writes, it keeps keys and values of all positions, at `itemsize` bytes a number.

Write `grouped_costs(h, H, G, d, num_blks, B, S, itemsize, memory)` that returns a dict of four whole numbers:

- `parameters`: of all attention layers together;
- `cache_bytes`: of the whole cache, for B texts of S positions each;
- `saved`: by how many bytes this cache is smaller than with G = H;
- `longest`: how many positions each of the B texts can have, so that the cache fits into `memory` bytes. One byte too
  many does not fit.
"""

import torch
from torch import nn

from d2lmini.exercises.engine import Count, Exercise, Mutant

# heads that are together narrower than h, SmolLM2-135M, heads wider than h, as many key heads; and random ones
CONFIGURATIONS = [
    (160, 8, 2, 12, 6, 5, 300, 4, 999_000),
    (576, 9, 3, 64, 30, 1, 8192, 2, 10**9),
    (96, 12, 4, 16, 3, 7, 50, 1, 123_456),
    (64, 4, 4, 16, 2, 3, 11, 8, 98_304),
]
DTYPES = {1: torch.int8, 2: torch.bfloat16, 4: torch.float32, 8: torch.float64}


def grouped_costs(h, H, G, d, num_blks, B, S, itemsize, memory):
    """Count what attention with G key heads keeps.

    Args:
        h: features of a token. H: heads of queries. G: heads of keys and of values. d: size of a head.
        num_blks: layers. B: texts. S: positions of each. itemsize: bytes a number. memory: bytes for the cache.

    Returns:
        dict with ``parameters``, ``cache_bytes``, ``saved`` and ``longest``.
    """
    ### BEGIN SOLUTION
    parameters = num_blks * (h * H * d + 2 * h * G * d + H * d * h)
    position = 2 * num_blks * B * G * d * itemsize  # bytes of a position: keys and values
    everyone = 2 * num_blks * B * H * d * itemsize  # as many key heads as query heads
    return {
        "parameters": parameters,
        "cache_bytes": S * position,
        "saved": S * (everyone - position),
        "longest": memory // position,
    }
    ### END SOLUTION


def layer_by_layer(h, H, G, d, num_blks, B, S, itemsize, memory):
    parameters = cache = full = 0
    for _ in range(num_blks):
        parameters += sum([h * (H * d), h * (G * d), h * (G * d), (H * d) * h])
        cache += B * G * S * d * itemsize + B * G * S * d * itemsize
        full += 2 * B * H * S * d * itemsize
    longest = int(memory / (cache / S))
    return {"parameters": parameters, "cache_bytes": cache, "saved": full - cache, "longest": longest}


def _real(h, H, G, d, num_blks, B, S, itemsize):
    """Bytes of real tensors, and parameters of real layers (which hold no memory)."""

    def cache(heads):
        return sum(
            torch.empty(B, heads, S, d, dtype=DTYPES[itemsize], device="meta").nbytes for _ in range(2 * num_blks)
        )

    with torch.device("meta"):
        matrices = ((h, H * d), (h, G * d), (h, G * d), (H * d, h))
        layers = [nn.Linear(i, o, bias=False) for _ in range(num_blks) for i, o in matrices]
    return sum(layer.weight.numel() for layer in layers), cache(G), cache(H)


def verify(t, answer):
    h, d, num_blks, B, S = t.sizes(5, 10, 70)
    G = t.random.randrange(2, 6)
    for config in (*CONFIGURATIONS, (h, 3 * G, G, d, num_blks, B, S, 4, t.random.randrange(10**8, 10**9))):
        h, H, G, d, num_blks, B, S, itemsize, memory = config
        parameters, cache, full = _real(*config[:-1])
        longest = (memory * S) // cache
        case = f"for h={h}, H={H}, G={G}, d={d}, num_blks={num_blks}, B={B}, S={S}, itemsize={itemsize}"
        names = ("parameters", "cache_bytes", "saved", "longest")
        got = t.fields(t.call(answer, *config), *names)
        t.number(got[0], parameters, f"parameters {case}")
        t.number(got[1], cache, f"cache_bytes {case}")
        t.number(got[2], full - cache, f"saved {case}")
        t.number(got[3], longest, f"longest {case}, memory={memory}")


MUTANTS = [
    Mutant("all-heads", ("2 * h * G * d", "2 * h * H * d"), "all four matrices have H heads: keys and values have G"),
    Mutant("no-output", (" + H * d * h)", ")"), "the matrix from the results back to h features is missing"),
    Mutant("output-G", (" + H * d * h)", " + G * d * h)"), "the matrix of the queries or that of the output has G "
        "heads: both have H, as there is a result for each query head"),
    Mutant("output-square", ("H * d * h)", "h * h)"), "the output matrix is counted as h x h: it reads "
        "H heads of size d"),
    Mutant("keys-alone", ("+ 2 * h * G * d", "+ h * G * d"), "keys or values are missing: each of them has a matrix "
        "of its own"),
    Mutant("square", ("h * H * d + 2 * h * G * d + H * d * h", "2 * h * h + 2 * h * h * G // H"), "it is counted with "
        "H d = h, which need not be: the heads have the size d"),
    Mutant("biases", ("+ H * d * h)", "+ H * d * h + (H + 2 * G) * d + h)"), "there are no biases"),
    Mutant("one-layer", ("num_blks * (h * H", "(h * H"), "this is one layer of `num_blks`"),
    Mutant("shared", ("num_blks * (h * H * d + 2 * h * G * d + H * d * h)",
        "num_blks * (2 * h * H * d) + 2 * h * G * d"), "each layer has key and value matrices of its own"),
    Mutant("half", ("position = 2 * num_blks", "position = num_blks"), "keys *and* values are kept: twice as many "
        "numbers"),
    Mutant("query-heads", ("B * G * d * itemsize", "B * H * d * itemsize"), "the cache has H heads: keys and values "
        "have G"),
    Mutant("queries-kept", ("2 * num_blks * B * G * d * itemsize", "num_blks * B * (H + 2 * G) * d * itemsize"),
        "the queries are kept as well: no later position asks for them"),
    Mutant("width", ("B * G * d * itemsize  #", "B * h * itemsize  #"), "h numbers a position are kept: keys and "
        "values have G heads of size d"),
    Mutant("numbers", ("B * G * d * itemsize", "B * G * d"), "these are numbers, not bytes"),
    Mutant("one-text", ("num_blks * B * G * d * itemsize", "num_blks * G * d * itemsize"), "this is the cache of one "
        "text: there are B"),
    Mutant("cache-of-a-layer", ("position = 2 * num_blks *", "position = 2 *"), "this is the cache of one layer"),
    Mutant("one-position", ('"cache_bytes": S * position', '"cache_bytes": position'), "this is one position: there "
        "are S"),
    Mutant("bits", ("B * G * d * itemsize", "8 * B * G * d * itemsize"), "these are bits, not bytes"),
    Mutant("ratio", ('S * (everyone - position)', 'everyone / position'), "this is the factor by which the cache is "
        "smaller: the difference in bytes is asked for"),
    Mutant("minus", ("(everyone - position)", "(position - everyone)"), "the sign is turned: how much *smaller* the "
        "cache is"),
    Mutant("full", ('S * (everyone - position)', 'S * everyone'), "this is the cache with G = H: take away the one "
        "with G"),
    Mutant("saved-a-position", ('S * (everyone - position)', '(everyone - position)'), "this is saved for one "
        "position: there are S"),
    Mutant("up", ("memory // position", "-(-memory // position)"), "it is rounded up: the last position does not fit"),
    Mutant("fraction", ("memory // position", "memory / position"), "half a position cannot be kept: round down to a "
        "whole number"),
    Mutant("rounded", ("memory // position", "round(memory / position)"), "it is rounded to the nearest: what does not "
        "fit whole does not fit"),
    Mutant("texts-share", ("memory // position", "memory * B // position"), "these are the positions of all B texts "
        "together: how many can *each* have"),
    Mutant("caches", ("memory // position", "memory // (S * position)"), "it is divided by the whole cache of S "
        "positions: divide by the bytes of one"),
    Mutant("parameters-too", ("memory // position", "(memory - parameters * itemsize) // position"), "the parameters "
        "are taken off the memory: it is all for the cache"),
    Mutant("one-less", ("memory // position", "(memory - 1) // position"), "what fills the memory exactly fits"),
    Mutant("more-than-S", ("memory // position", "memory // position - S"), "these are positions *more* than S: all "
        "are asked for"),
    Mutant("limited", ("memory // position", "min(S, memory // position)"), "it stops at S: the text may be longer "
        "than that"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-19.2",
    doc=__doc__,
    source="own",
    parts=[
        Count(
            key="own-19.2",
            hints=[
                "Write the shapes of the four matrices: two of them have H d on one side, two G d.",
                "A position keeps, in each layer and for each text, G keys and G values of d numbers.",
                "For `longest` divide the memory by the bytes of one position (of all B texts), and round down.",
            ],
            answer=grouped_costs,
            verify=verify,
            alternatives=[layer_by_layer],
            mutants=MUTANTS,
            min_checks=25,
            advice={
                "values": "Parameters: queries and output with H heads, keys and values with G, all layers. Cache: two "
                "(keys, values), layers, texts, G heads, positions, d numbers, bytes a number.",
            },
            explanation=r"""
SmolLM2-135M has 9 query heads and 3 key heads. Its cache is a third of what 9 key heads would need, and that factor
does not depend on anything else. Its attention matrices are two thirds as large as with 9, and attention is the
smaller part of a block: fewer key heads are there for the cache, not for the parameters.

At 8,192 positions and 2 bytes a number the cache takes 70 % of the memory of the model in bfloat16. Reading it is what
a step costs when many texts are written at once, so that the factor H / G is won twice: in room and in time.
""",
        )
    ],
)
