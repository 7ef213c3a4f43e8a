"""Attention maps that figures pack: what a page makes of them is what the figure gives."""

import torch

from d2lmini.figures import AlignmentExplorer, HeadExplorer, PatchAttention


def _weights(*shape):
    return torch.softmax(3 * torch.randn(*shape, generator=torch.Generator().manual_seed(0)), -1)


def cases():
    queries, keys = ["le", "chat"], ["the", "black", "cat"]
    heads = HeadExplorer({"one": {"cross": (queries, keys, _weights(2, 3, 2, 3))}})
    yield "maps", [heads.state["cards"][0][0]["data"], 2, 3], heads.weights("one", "cross").flatten(0, 1).tolist()
    words = AlignmentExplorer({"one": (keys, queries, _weights(2, 3))})
    yield "maps", [words.state["cards"][0]["data"], 2, 3], [words.weights("one").tolist()]
    patches = PatchAttention({"one": (torch.rand(4, 2), {"block 1": _weights(2, 3, 3)})}, (2, 1))
    yield "maps", [patches.state["maps"][0][0]["data"], 3, 3], patches.weights("one", "block 1").tolist()
