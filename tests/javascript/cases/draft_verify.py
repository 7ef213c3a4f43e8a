"""Distributions of draft and target, and passes, decision by decision."""

import torch

from d2lmini.figures import DraftVerify
from d2lmini.figures.draft_verify import _generator
from d2lmini.figures.packing import unpack

SYMBOLS, V = "abcd ", 5
COUNTS = torch.randint(6, (V + 1, V, V), generator=torch.Generator().manual_seed(0))
DRAFT = COUNTS[0].clamp(min=1)
PASSES = 3


def cases():
    figure = DraftVerify(SYMBOLS, COUNTS[1:], DRAFT, prompt="ab")
    counts = {key: unpack(figure.state[key], -1).tolist() for key in ("target", "draft")}
    models = {"V": V, **counts}
    for text in ("ab", "cab d", "  "):
        p, q = (shares.tolist() for shares in figure.distributions(text))
        yield "distributions", [models, _ids(text)], {"p": p, "q": q}
        yield "overlap", [{"p": p, "q": q}], torch.minimum(*figure.distributions(text)).sum().item()
    for n, seed in ((1, 3), (3, 1), (8, 2**32 - 1)):
        yield "passes", [models, [0, 1], n, seed, PASSES], _passes(figure, n, seed)


def _ids(text):
    return [SYMBOLS.index(symbol) for symbol in text]


def _passes(figure, n, seed):
    """What `DraftVerify.passes` gives, with the shares and the random number of every decision."""
    text, random, found = "ab", _generator(seed), []
    for one in figure.passes(PASSES, n, seed):
        drafted, accepted = one["drafted"], one["accepted"]
        both = [figure.distributions(text + drafted[:i]) for i in range(n + 1)]

        def step(kind, i, x, both=both, **more):
            p, q = (shares.tolist() for shares in both[i])
            return {"kind": kind, "i": i, "p": p, "q": q, **more, "u": next(random), "x": x}

        ids = _ids(drafted)
        steps = [step("draft", i, x, **{"from": both[i][1].tolist()}) for i, x in enumerate(ids)]
        for i, x in enumerate(ids[: accepted + 1]):
            limit = min(1, (both[i][0][x] / both[i][1][x]).item())
            steps.append({**step("accept" if i < accepted else "reject", i, x), "limit": limit})
        p, q = both[accepted]
        last = p if accepted == n else (p - q).clamp(min=0) / (p - q).clamp(min=0).sum()
        kind, (*_, x) = "add" if accepted == n else "replace", _ids(one["written"])
        steps.append(step(kind, accepted, x, **{"from": last.tolist()}))
        found.append({"text": _ids(text), "steps": steps, "drafted": ids, "written": _ids(one["written"])})
        text += one["written"]
    return found
