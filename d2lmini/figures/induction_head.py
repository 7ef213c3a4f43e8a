"""Figure of chapter 15: a repeated random sequence, and the head that looks up what came next the last time."""

import re

import torch

from .base import Figure, table
from .packing import pack, unpack

LONGEST = 96  # tokens: a byte for each pair of them, in every head
# for tokens that are numbers: a word is kept in mind, and told from a position
NAMES = re.findall(
    r"\w+",
    "cat sun key box map tea hat owl pen jar fox bus egg ink oak pie rug sea toy van web yak zoo ant bee cup dog elf "
    "fig gem hen ice jam kit log mud nut orb pan ram sky tin urn vet wax arm bow cow day",
)


class InductionHead(Figure):
    """A repeated sequence: where each head looks, how much it looks up what followed the last time, and the loss.

    The copies stand under each other. The reader chooses a head by its induction score and points at a token: arcs show
    where the head looks from there, frames the previous occurrence and the token after it, which comes next
    again. The curve is the loss at each position; where given, also with the chosen head switched off.

    Args:
        tokens: T names of the tokens that go in, the same ``period`` ones again and again; at most 96. Up to 49
            numbers, which stand for nothing, get words.
        weights: (layers, H, T, T), the attention of a causal model.
        losses: (T,), at each position the loss of predicting the next token, in nats.
        period: after how many tokens they repeat, at least 2 and below T.
        without: None, or a dict from (layer, head), from 1, to the losses (T,) with that head switched off.
        layer: which layer is shown first, from 1; None: that of the head with the greatest induction score.
        head: which head; goes with ``layer``.
        position: which token is pointed at first, from 0; None: one in the middle of the first repetition.

    Raises:
        ValueError: shapes do not fit, the tokens do not repeat, weights are outside of 0 to 1 or look ahead, a loss is
            not finite, or there is no such head or position.

    Source: Elhage et al. 2021; Olsson et al. 2022.
    """

    name = "induction_head"
    title = "What came after this the last time?"
    hint = (
        "Choose a head, then point at a token: arcs show where the head looks from there. By keyboard: arrow keys go "
        "from token to token."
    )

    def __init__(self, tokens, weights, losses, period, without=None, layer=None, head=None, position=None):
        tokens, T = _named(tokens), len(tokens)
        weights = torch.as_tensor(weights).detach().cpu()
        if not (2 <= period < T <= LONGEST):
            raise ValueError(f"period is {period} and there are {T} tokens: expected 2 <= period < tokens <= {LONGEST}")
        differ = [t for t in range(period, T) if tokens[t] != tokens[t - period]]
        if differ:
            t = differ[0]
            raise ValueError(
                f"the tokens do not repeat: {tokens[t]!r} at {t} was {tokens[t - period]!r} {period} before"
            )
        if weights.dim() != 4 or tuple(weights.shape[2:]) != (T, T) or not weights.numel():
            raise ValueError(f"weights have shape {tuple(weights.shape)}, expected (layers, H, {T}, {T})")
        if weights.triu(1).max() > 1e-3:
            raise ValueError("weights look ahead: the model is not causal, or they are of another sequence")
        layers, H = weights.shape[:2]
        scores = induction_scores(weights, period)  # (layers, H)
        if (layer is None) != (head is None):
            raise ValueError(f"layer is {layer} and head {head}: expected both or neither")
        if layer is None:
            layer, head = (i + 1 for i in divmod(scores.argmax().item(), H))
        position = min(period + period // 2, T - 1) if position is None else position
        if not (1 <= layer <= layers and 1 <= head <= H and 0 <= position < T):
            raise ValueError(
                f"layer {layer}, head {head} and position {position}: expected 1 to {layers}, 1 to {H}, 0 to {T - 1}"
            )
        without = {
            _place(where, layers, H): _losses(values, T, f"with head {where} off")
            for where, values in (without or {}).items()
        }
        super().__init__(
            f"A sequence of {period} tokens that repeats: where {layers * H} heads look, and the loss at each token.",
            tokens=tokens,
            period=period,
            size=[layers, H],
            weights=pack(weights, "weights"),
            scores=scores,
            losses=_losses(losses, T, "given"),
            without=without,
            layer=layer,
            head=head,
            position=position,
        )

    def weights(self):
        """The weights that the page shows, (layers, H, T, T), multiples of 1/255."""
        T = len(self.state["tokens"])
        return unpack(self.state["weights"], *self.state["size"], T, T).double() / 255

    def fallback(self):
        state = self.state
        H = state["size"][1]
        rows = [[f"layer {i + 1}", *(f"{score:.2f}" for score in row)] for i, row in enumerate(state["scores"])]
        caption = (
            f"Induction score of each head: its mean weight on the token after the previous occurrence, in a sequence "
            f"of {state['period']} tokens that repeats. Mean loss: {self._mean(state['losses'])}."
        )
        for where, losses in state["without"].items():
            caption += f" Without head {where} (layer.head): {self._mean(losses)}."
        return table(["", *(f"head {i + 1}" for i in range(H))], rows, caption)

    def _mean(self, losses):
        first, again = losses[: self.state["period"]], losses[self.state["period"] :]
        return f"{sum(first) / len(first):.2f} nats at first, {sum(again) / len(again):.2f} in the repetition"


def _named(tokens):
    """Names of tokens: str; of numbers, words in the order in which they come, as long as there are enough."""
    different = dict.fromkeys(tokens)
    if any(isinstance(token, str) for token in different) or len(different) > len(NAMES):
        return list(map(str, tokens))
    words = dict(zip(different, NAMES, strict=False))
    return [words[token] for token in tokens]


def induction_scores(weights, period):
    """The mean weight of each head on the token after the previous occurrence.

    Args:
        weights: (..., T, T), of a sequence that repeats.
        period: after how many tokens, below T.

    Returns:
        (...), from 0 to 1.
    """
    return weights.diagonal(1 - period, -2, -1)[..., 1:].float().mean(-1)  # query t, key t - period + 1, t >= period


def _losses(losses, T, what):
    losses = torch.as_tensor(losses).detach().cpu().double()
    if tuple(losses.shape) != (T,) or not losses.isfinite().all():
        raise ValueError(f"losses {what} have shape {tuple(losses.shape)}, expected ({T},), all finite")
    return losses.tolist()


def _place(where, layers, H):
    layer, head = where
    if not (1 <= layer <= layers and 1 <= head <= H):
        raise ValueError(f"there is no head {where} to be off: layers are 1 to {layers}, heads 1 to {H}")
    return f"{layer}.{head}"
