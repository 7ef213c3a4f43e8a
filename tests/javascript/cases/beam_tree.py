"""Sequences in the tree of a beam search, which a step at a time is made of a table of log-probabilities."""

from itertools import pairwise

import torch

from d2lmini import beam_search, greedy_search
from d2lmini.figures import BeamTree
from d2lmini.figures.beam_tree import _parting, spelled

WORDS = ["<bos>", "<eos>", "the", "a", "cat", "sleeps", "eats"]
LOGITS = 1.5 * torch.randn(7, 7, generator=torch.Generator().manual_seed(64), dtype=torch.float64)
LOGITS[:, 0] = LOGITS[0, 1] = -9
STEPS = 4


def step(tokens, state):
    return LOGITS[tokens], state


def cases():
    searches = BeamTree.of(step, (), 0, 1, STEPS, WORDS, beam_sizes=(1, 2, 3)).state["searches"]
    log_probs = LOGITS.log_softmax(-1)
    greedy = _words(greedy_search(step, (), torch.tensor([0]), 1, STEPS).tokens[0])
    for size in (2, 3):
        columns = searches[str(size)]["columns"]
        best = _words(beam_search(step, (), torch.tensor([0]), 1, STEPS, size).tokens[0])
        places = {}  # of each sequence in the tree, the places of its beginnings
        for t, column in enumerate(columns, start=1):
            for i, (parent, word, *_) in enumerate(column):
                before = () if t == 1 else next(of for of, path in places.items() if path[-1] == [t - 1, parent])
                places[(*before, word)] = [*places.get(before, []), [t, i]]
                ids = [0, *map(WORDS.index, (*before, word))]
                column[i][2] = sum(log_probs[a, b].item() for a, b in pairwise(ids))  # not rounded, as on a page
        for tokens in (tuple(best), *list(places)[7::9]):
            path, ids = places[tokens], [0, *map(WORDS.index, tokens)]
            yield "path", [columns, path[-1]], path
            yield "tokensAt", [columns, path], list(tokens)
            yield "find", [columns, list(tokens)], path
            yield "gains", [columns, path], [log_probs[a, b].item() for a, b in pairwise(ids)]
        ends = [places[tuple(greedy[:n])][-1] for n in range(1, len(greedy) + 1) if tuple(greedy[:n]) in places]
        yield "beginnings", [columns, greedy], ends
    yield "path", [columns, [0, 0]], []
    yield "find", [columns, ["no", "such"]], []
    yield "find", [columns, []], []
    yield "beginnings", [columns, ["no", "such"]], []
    for one, other in ((greedy, best), (["a"], ["a", "cat"]), (["a", "cat"], ["a"]), (["the"], ["a"]), (best, best)):
        at = _parting(one, other)
        yield "parting", [one, other], None if at == "never" else at
    for tokens in (["a", "cat", "eats"], ["▁I", "▁know", "."], ["▁st", "ill"], ["eats"]):
        yield "spelled", [tokens], spelled(tokens)


def _words(ids):
    words = [WORDS[i] for i in ids]
    return words[: words.index("<eos>") + 1] if "<eos>" in words else words
