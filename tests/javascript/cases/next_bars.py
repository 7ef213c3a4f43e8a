"""The likeliest next tokens of scores, before and after the package's filters."""

import torch

from d2lmini.decoding.filters import Filters

MOST = 6


def cases():
    logits = 2 * torch.randn(11, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    own = logits.softmax(0)
    best = own.topk(MOST).indices.tolist()
    for filters in (
        {"temperature": 1},
        {"temperature": 0},
        {"temperature": 0.5, "top_k": 4},
        {"temperature": 1.35, "top_p": 0.8},
        {"temperature": 1, "top_p": 0.5, "min_p": 0.2},
    ):
        after = Filters(**filters).probabilities(logits)
        yield "likeliest", [logits.tolist(), filters, MOST], {
            "tokens": [{"id": i, "own": own[i].item(), "after": after[i].item()} for i in best],
            "drawable": int((after > 0).sum()),
            "rest": 1 - own[best].sum().item(),
        }  # fmt: skip
