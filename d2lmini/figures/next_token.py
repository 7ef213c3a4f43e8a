"""Figure of chapter 16: from a model's scores of the next token to a draw: temperature, top-k and nucleus."""

import math
import numbers

import numpy
import torch

from .base import Figure, table
from .packing import pack, unpack

LARGEST = 5000  # of a vocabulary: a page would hold more than 100 KB
STEPS = 65535  # of a score, which travels as its distance from the greatest one


class NextToken(Figure):
    """Recorded scores of the next token, and what temperature, top-k and nucleus (top-p) make of them.

    Bars show the likeliest tokens under the model's own distribution and under the one that is drawn from. Scores are
    divided by the temperature; of the result the k greatest stay; of these, renormalised, the smallest set of
    the likeliest whose mass is at least p. Among equals the lowest token stays. Twenty draws by a seeded generator
    stand below. Scores travel in two bytes each.

    Args:
        contexts: n texts that the model continues.
        tokens: V strings, the vocabulary, at most 5,000.
        logits: (n, V), the model's scores after each context.
        context: which one is shown first, from 0.
        temperature: at first; positive, the reader's slider goes from 0.1 to 4.
        top_k: at first, from 1 to V; None: all.
        top_p: at first, above 0 and at most 1.
        seed: of the generator that draws at first, 0 or more.
        sampling: whether the reader sees the three settings and the draws; if not, the probabilities alone.

    Raises:
        ValueError: there is nothing to show, shapes do not fit, a score is not finite, or a setting is out of
            its range.

    Source: Fan et al. 2018 for top-k, Holtzman et al. 2020 for the nucleus; the order is that of `transformers`.
    """

    name = "next_token"
    title = "From scores to a draw"
    hint = (
        "Move temperature, top-k and top-p: hollow bars are the model's own probabilities, filled ones those that are "
        "drawn from. Then draw."
    )

    def __init__(
        self, contexts, tokens, logits, context=0, temperature=1.0, top_k=None, top_p=1.0, seed=1, sampling=True
    ):
        contexts, tokens = list(map(str, contexts)), list(map(str, tokens))
        logits = torch.as_tensor(logits).detach().cpu().double()
        n, V = len(contexts), len(tokens)
        if not n or V < 2:
            raise ValueError(f"there are {n} contexts and {V} tokens: expected at least one and two")
        if V > LARGEST:
            raise ValueError(
                f"the vocabulary has {V} tokens, expected at most {LARGEST}, or the page grows too large: train a "
                "smaller tokenizer"
            )
        if tuple(logits.shape) != (n, V):
            raise ValueError(
                f"logits have shape {tuple(logits.shape)}, expected ({n}, {V}): {n} contexts and {V} tokens, and of "
                "every context only the scores behind its last token"
            )
        if not logits.isfinite().all():
            raise ValueError("logits hold numbers that are not finite")
        top_k = V if top_k is None else top_k
        _check(temperature, top_k, top_p, V)
        if not 0 <= context < n or seed < 0:
            raise ValueError(f"context is {context} and seed {seed}, expected 0 to {n - 1} and 0 or more")
        below = logits.max(1, keepdim=True).values - logits  # (n, V), from 0
        step = float(f"{max(below.max().item(), 1e-6) / STEPS * (1 + 1e-5):.6g}")  # as it travels, and large enough
        caption = f"The next token after {n} texts: probabilities of the likeliest, and of all others together."
        if sampling:
            caption = f"The next token after {n} texts, out of {V}: probabilities under temperature, top-k and top-p."
        super().__init__(
            caption,
            contexts=contexts,
            tokens=tokens,
            logits=pack((below / step).round().numpy().astype(numpy.dtype("<u2"))),
            unit=step,
            context=context,
            temperature=float(temperature),
            top_k=top_k,
            top_p=float(top_p),
            seed=seed,
            sampling=sampling,
        )

    def logits(self):
        """The scores that the page has, (n, V), the greatest of each context 0; right to 1/131070 of their range."""
        shape = len(self.state["contexts"]), len(self.state["tokens"])
        return -unpack(self.state["logits"], *shape, kind="<u2").double() * self.state["unit"]

    def probabilities(self, context, temperature=1.0, top_k=None, top_p=1.0):
        """What the page draws from.

        Args:
            context: which one, from 0.
            temperature, top_k, top_p: as for the class.

        Returns:
            (V,), zero where a token is dropped.

        Raises:
            ValueError: a setting is out of its range.
        """
        logits = self.logits()[context]
        V = len(logits)
        top_k = V if top_k is None else top_k
        _check(temperature, top_k, top_p, V)
        scores, order = torch.sort(logits / temperature, descending=True, stable=True)  # lowest token first
        kept = scores[:top_k].softmax(0)
        size = top_k if top_p == 1 else min(top_k, int((kept.cumsum(0) < top_p - 1e-9).sum()) + 1)
        return torch.zeros(V, dtype=torch.float64).index_copy(0, order[:size], scores[:size].softmax(0))

    def fallback(self):
        state = self.state
        before = self.probabilities(state["context"])
        after = self.probabilities(*(state[key] for key in ("context", "temperature", "top_k", "top_p")))
        rows = [
            [repr(state["tokens"][i]), f"{before[i]:.3f}", f"{after[i]:.3f}"]
            for i in before.sort(descending=True, stable=True).indices[:10].tolist()
        ]
        if not state["sampling"]:
            caption = f"What follows “{state['contexts'][state['context']]}”: the likeliest tokens."
            return table(["token", "share"], [row[:2] for row in rows], caption)
        caption = (
            f"What follows “{state['contexts'][state['context']]}”: the model's own probabilities, and those with "
            f"temperature {state['temperature']:g}, the {state['top_k']} likeliest, and mass {state['top_p']:g}. "
            f"{int((after > 0).sum())} of {len(after)} tokens stay; {_bits(before):.2f} bits of entropy become "
            f"{_bits(after):.2f}."
        )
        return table(["token", "the model's", "drawn from"], rows, caption)


def _check(temperature, top_k, top_p, V):
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"temperature is {temperature}, expected a positive number; for greedy decoding set top_k=1")
    if not (isinstance(top_k, numbers.Integral) and 1 <= top_k <= V):
        raise ValueError(f"top_k is {top_k}, expected an integer from 1 to {V}, the number of tokens")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}, expected a number above 0 and at most 1")


def _bits(probabilities):
    kept = probabilities[probabilities > 0]
    return -(kept * kept.log2()).sum().item()
