"""Span corruption: what corrupt_spans and restore_spans make of words, and draws as they travel."""

import numpy
import torch

from d2lmini.figures.span_stepper import SENTINELS
from d2lmini.objectives.span_corruption import corrupt_spans, restore_spans

WORDS = ["the", "old", "man", "who", "lived", "by", "the", "sea"]
T = len(WORDS)


def cases():
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(5, T, generator=generator) < 0.5
    for noise in (*drawn, torch.zeros(T).bool(), torch.ones(T).bool(), torch.arange(T) % 2 == 0):
        sentinels = list(range(T, T + len(SENTINELS)))  # a word's id is its place
        made = corrupt_spans(torch.arange(T)[None], noise[None], sentinels)
        tokens = {key: [_token(i, noise) for i in getattr(made, key)[0].tolist()] for key in ("inputs", "targets")}
        spans = len(tokens["inputs"]) - int((~noise).sum())
        want = {"input": tokens["inputs"], "target": tokens["targets"], "spans": spans}
        yield "corrupt", [WORDS, noise.int().tolist(), SENTINELS], want
        again = restore_spans(made.inputs, made.targets, sentinels)[0]
        yield "restore", [want["input"], want["target"]], [_token(int(i), noise) for i in again]
    packed = numpy.packbits(drawn.numpy()).tolist()
    odd = numpy.packbits(drawn[:, :5].numpy()).tolist()
    for n, noise in enumerate(drawn.int().tolist()):
        yield "drawnNoise", [packed, T, n], "".join(map(str, noise))
        yield "drawnNoise", [odd, 5, n], "".join(map(str, noise[:5]))


def _token(i, noise):
    if i >= T:
        return {"text": SENTINELS[i - T], "kind": "sentinel"}
    return {"text": WORDS[i], "kind": "noise" if noise[i] else "kept"}
