"""Which scores are computed when, and what they cost."""

from types import SimpleNamespace

from d2lmini.figures import CacheWalk

SIZES = {"layers": 12, "heads": 3, "size": 64}
CONFIG = SimpleNamespace(num_blks=12, num_heads=3, num_hiddens=3 * 64)
TOKENS = 7


def cases():
    for prompt, step in ((1, 0), (2, 3), (4, 2)):
        figure = CacheWalk(["a"] * (TOKENS + 1), prompt, CONFIG)
        for cache in (True, False):
            yield "counts", [{"prompt": prompt, **SIZES}, step, cache], figure.counts(step, cache)
            old, new = ("before", "now") if cache else ("again", "now")
            known = [old] * (prompt + step - 1) + [new] if step else [new] * prompt
            marks = known + ["later"] * (TOKENS - len(known))
            yield "tokenMarks", [{"prompt": prompt, "step": step, "cache": cache}, TOKENS], marks
            rows = [[mark] * (t + 1) + ["masked"] * (TOKENS - t - 1) for t, mark in enumerate(known)]
            yield "scoreMarks", [marks], rows + [["later"] * TOKENS] * (TOKENS - len(known))
