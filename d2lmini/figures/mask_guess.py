"""Figure of chapter 13: mask a word, guess, and see what a model guesses that reads both sides, or the left one."""

from contextlib import nullcontext

import numpy
import torch

from ..data.text_encoder import TextEncoder
from ..modes import evaluating
from .base import Figure, table
from .packing import pack, unpack

LONGEST = 40  # tokens of a passage
MOST = 12  # guesses of a position
UNIT = 65535  # a probability travels as so many parts of it; as the index of a name it means that there is none


class MaskGuess(Figure):
    """Recorded guesses of masked words: the reader masks one, guesses first, then sees what the model predicts.

    Bars show the model's likeliest tokens at that position, with the true one marked; where it is not among them, it
    is below. With ``from_left`` a second set of bars shows what a model predicts that sees only what is before. At
    first one word is revealed; of any other, the bars are shown at once and the words on request. `MaskGuess.of` asks
    models. Probabilities travel in two bytes each.

    Args:
        passages: list of dicts. ``tokens``: T strings, at most 40. ``guesses``: for each of them a list of pairs of a
            token and its probability when this token alone is masked, at most 12. Optional: ``truth_probability``, T
            probabilities of the true tokens; ``from_left``, the same of a causal model: a dict of its own ``guesses``
            and ``truth_probability``, or the guesses alone. A place without guesses may have an empty list or None.
        passage: which one is shown first, from 0; None: the one with the telling position.
        position: which of its tokens is masked at first, from 0; None: the telling one, whose true token gains the most
            probability from the right side, or without ``from_left`` has the most.

    Raises:
        ValueError: there is nothing to show, lengths do not fit, numbers are no probabilities, the true token has
            another probability among the guesses, some passages alone have ``from_left``, or there is no such passage
            or position.

    Source: Devlin et al. 2019, section 3.1; UDL section 12.6.1 and figure 12.10.
    """

    name = "mask_guess"
    title = "Guess a hidden word from both sides"
    hint = (
        "Choose another word to hide it. The bars show how sure each model is there. Guess the word, and which model "
        "knows it; then reveal."
    )

    def __init__(self, passages, passage=None, position=None):
        passages = list(passages)
        if not passages:
            raise ValueError("there is nothing to show: expected at least one passage")
        cards = [_card(f"passage {i}", given) for i, given in enumerate(passages)]
        if len({len(views) for _, views in cards}) > 1:
            raise ValueError("some passages have from_left and others not: expected it of all or of none")
        gains = [_gains(tokens, views) for tokens, views in cards]
        if passage is None:
            passage = max(range(len(cards)), key=lambda n: max(gains[n]))
        if not 0 <= passage < len(cards):
            raise ValueError(f"passage is {passage}, expected 0 to {len(cards) - 1}")
        T = len(cards[passage][0])
        telling = [row.index(max(row)) for row in gains]
        position = telling[passage] if position is None else position
        if not 0 <= position < T:
            raise ValueError(f"position is {position}, expected 0 to {T - 1}, the tokens of passage {passage}")
        top = max(len(row) for _, views in cards for rows, _ in views for row in rows)
        names = {name: None for _, views in cards for rows, _ in views for row in rows for name, _ in row}
        index = {name: i for i, name in enumerate(names)}
        views = len(cards[0][1])
        alone = ", or from the left alone" if views > 1 else ""
        super().__init__(
            f"What {_who(views)} at each word of {len(cards)} passages, with that word masked{alone}.",
            passages=[
                {"tokens": tokens, "telling": t, "views": [_packed(*view, index, top) for view in views]}
                for (tokens, views), t in zip(cards, telling, strict=True)
            ],
            names="\n".join(names),
            top=top,
            passage=passage,
            position=position,
            guess="",
            revealed=True,
        )

    @classmethod
    @torch.no_grad()
    def of(cls, model, tokenizer, texts, top=6, from_left=None, **options):
        """Masks each token of each text by itself, and records what a model guesses: a forward pass a text.

        Class and separator stand around a text, as in pretraining. A word of several pieces is masked piece by piece.

        Args:
            model: a `BERTForPretraining`; in evaluation mode meanwhile.
            tokenizer: its tokenizer, of a kind that `TextEncoder` takes.
            texts: list of str.
            top: how many guesses are kept, at most 12.
            from_left: None, or a causal model over the same tokens: anything that takes ids (1, T), the first one the
                class token, and gives logits (1, T, V), such as a `GPT`.
            options: ``passage`` and ``position``, as for the class.

        Returns:
            A `MaskGuess`.

        Raises:
            TypeError: as `TextEncoder`.
            ValueError: the tokenizer is of another model or has no mask, a text is empty or too long, or ``top`` is out
                of range.
        """
        encoder = TextEncoder(tokenizer)
        V = model.bert.config.vocab_size
        if encoder.mask_id is None:
            raise ValueError("the tokenizer has no token for a mask: train it with [MASK] among its special tokens")
        if len(encoder) != V:
            raise ValueError(f"the tokenizer has {len(encoder)} tokens but the model {V}: is it that of another model?")
        if not 1 <= top <= min(MOST, V):
            raise ValueError(f"top is {top}, expected 1 to {min(MOST, V)}")
        device, passages = model.bert.embedding.weight.device, []
        for ids, _ in encoder.encode(texts):
            tokens = torch.tensor(encoder.join(ids)[0], device=device)  # (T + 2,): class and separator around
            chosen = torch.eye(len(tokens), dtype=torch.bool, device=device)[1:-1]  # (T, T + 2): one a copy
            guessed = _evaluated(model, tokens.masked_fill(chosen, encoder.mask_id), chosen=chosen)[0]  # (T, V)
            passage = {"tokens": encoder.pieces(ids), **_recorded(guessed, ids, encoder, top)}
            if from_left is not None:
                after = _evaluated(from_left, tokens[None])[0, :-2]  # (T, V): behind the class token, the first, ...
                passage["from_left"] = _recorded(after, ids, encoder, top)
            passages.append(passage)
        return cls(passages, **options)

    def guesses(self, passage, position, from_left=False):
        """What the page shows of a place: a list of pairs of a token and its probability, the likeliest first.

        Args:
            passage, position: as for the class.
            from_left: whether those of the causal model.
        """
        view, K, names = self._view(passage, from_left), self.state["top"], self.state["names"].split("\n")
        ids, parts = (
            unpack(view[key], kind="<u2").tolist()[K * position : K * (position + 1)] for key in ("ids", "parts")
        )
        return [(names[i], part / UNIT) for i, part in zip(ids, parts, strict=True) if i != UNIT]

    def truth_probability(self, passage, position, from_left=False):
        """The probability of the true token as the page shows it; None where it is not known. Arguments as above."""
        view, token = self._view(passage, from_left), self.state["passages"][passage]["tokens"][position]
        if view["truth"] and self.guesses(passage, position, from_left):
            return unpack(view["truth"], kind="<u2")[position].item() / UNIT
        return dict(self.guesses(passage, position, from_left)).get(token)

    def _view(self, passage, from_left):
        return self.state["passages"][passage]["views"][int(from_left)]

    def fallback(self):
        n = self.state["passage"]
        tokens, views = self.state["passages"][n]["tokens"], self.state["passages"][n]["views"]
        rows = []
        for t, token in enumerate(tokens):
            cells = []
            for left in range(len(views)):
                best, truth = self.guesses(n, t, left)[:1], self.truth_probability(n, t, left)
                cells += [f"{best[0][0]} {_said(best[0][1])}" if best else "nothing"]
                cells += ["not known" if truth is None else _said(truth)]
            rows.append([token, *cells])
        header = ["word", *(f"{what}, {how}" for how in ("from both sides", "from the left")[: len(views)]
                  for what in ("likeliest guess", "the word itself"))]  # fmt: skip
        caption = f"“{' '.join(tokens)}”: at each word, what {_who(len(views))}, with its probability."
        return table(header, rows, caption)


def _who(views):
    return "two models guess" if views > 1 else "a model guesses"


def _said(p):
    return f"{p:.3f}" if p >= 0.0005 else "< 0.001"


def _evaluated(model, *inputs, **options):
    """What a model gives in evaluation mode; a function is just called."""
    with evaluating(model) if isinstance(model, torch.nn.Module) else nullcontext():
        return model(*inputs, **options)


def _recorded(logits, ids, encoder, top):
    """The likeliest tokens of logits (T, V) and the probabilities of ids, as a passage has them."""
    probabilities = logits.float().softmax(-1).cpu()
    best, tokens = probabilities.topk(top)  # (T, top)
    return {
        "guesses": [
            list(zip(encoder.pieces(row), shares, strict=True))
            for row, shares in zip(tokens.tolist(), best.tolist(), strict=True)
        ],
        "truth_probability": probabilities.gather(1, torch.tensor(ids)[:, None])[:, 0].tolist(),
    }


def _card(what, given):
    """A checked passage: its tokens, and of each view guesses and probabilities of the truth."""
    unknown = set(given) - {"tokens", "guesses", "truth_probability", "from_left"}
    if unknown or not {"tokens", "guesses"} <= set(given):
        raise ValueError(
            f"{what} has {', '.join(sorted(given))}: expected tokens and guesses, and truth_probability and from_left"
        )
    tokens = [_one_line(token) for token in given["tokens"]]
    if not 1 <= len(tokens) <= LONGEST:
        raise ValueError(f"{what} has {len(tokens)} tokens, expected 1 to {LONGEST}")
    views = [_view(what, tokens, given["guesses"], given.get("truth_probability"))]
    left = given.get("from_left")
    if left is not None:
        left = left if isinstance(left, dict) else {"guesses": left}
        if "guesses" not in left:
            raise ValueError(f"{what} has from_left without guesses")
        views.append(_view(f"{what}, from the left,", tokens, left["guesses"], left.get("truth_probability")))
    return tokens, views


def _view(what, tokens, guesses, truth):
    T = len(tokens)
    rows = [
        sorted(((_one_line(name), float(p)) for name, p in row or ()), key=lambda pair: -pair[1]) for row in guesses
    ]
    if len(rows) != T or (truth is not None and len(truth) != T):
        raise ValueError(
            f"{what} has {T} tokens, guesses of {len(rows)}"
            + ("" if truth is None else f" and truth_probability of {len(truth)}")
            + ": expected as many"
        )
    for t, row in enumerate(rows):
        if len(row) > MOST or not (all(0 <= p <= 1 for _, p in row) and sum(p for _, p in row) < 1 + 1e-3):
            raise ValueError(f"{what} has at token {t} the guesses {row}: expected at most {MOST}, of probabilities")
        if truth is not None and truth[t] is not None:
            _check_truth(f"{what} has at token {t}, {tokens[t]!r},", truth[t], dict(row).get(tokens[t]))
    return rows, truth


def _check_truth(what, p, among):
    """Raises where p is no probability, or not that of the true token among the guesses, if it is there."""
    if not 0 <= p <= 1:
        raise ValueError(f"{what} truth_probability {p}, expected a probability")
    if among is not None and abs(among - p) > 0.01:
        raise ValueError(f"{what} truth_probability {p}, but {among:.3f} among the guesses")


def _gains(tokens, views):
    """For each token, what the last view lacks of its probability in the first; all of it where there is one view."""
    known = [
        [
            (dict(row).get(token, 0.0) if truth is None else truth[t]) or 0.0
            for t, (token, row) in enumerate(zip(tokens, rows, strict=True))
        ]
        for rows, truth in views
    ]
    return [p - q for p, q in zip(known[0], known[1] if len(known) > 1 else [0.0] * len(tokens), strict=True)]


def _one_line(name):
    return str(name).replace("\n", "↵")  # names travel in one text, a line each


def _packed(rows, truth, index, top):
    """A view as it travels: for each place `top` names, and their probabilities in parts of `UNIT`."""
    ids = numpy.full((len(rows), top), UNIT, "<u2")
    parts = numpy.zeros((len(rows), top), "<u2")
    for t, row in enumerate(rows):
        ids[t, : len(row)] = [index[name] for name, _ in row]
        parts[t, : len(row)] = [round(p * UNIT) for _, p in row]
    truths = [] if truth is None else [round((p or 0) * UNIT) for p in truth]
    return {"ids": pack(ids), "parts": pack(parts), "truth": pack(numpy.array(truths, "<u2"))}
