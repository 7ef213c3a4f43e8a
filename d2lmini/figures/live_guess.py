"""Live figure of chapter 13: hide a word, and see what a trained encoder believes; change another, and see it move."""

import torch

from ..data.text_encoder import TextEncoder
from ..models.weights.trained import trained
from .live.page import LiveFigure

TOP = 10  # guesses that are shown
SENTENCES = {  # of the words of four letters or more, the one whose probability the right side raises most
    "The road runs along the river and crosses the bridge.": "road",
    "This claim was not recognised by the United Kingdom.": "united",
    "The storm moved to the north and reached the coast of Florida.": "coast",
    "He scored two goals in the second half of the game.": "scored",
    "Most of the book was written while she lived in Paris.": "book",
}


class LiveGuess(LiveFigure):
    """What an encoder believes about a hidden piece: the likeliest ten, and how likely the true one is.

    The reader types a sentence or picks one, hides a piece, and changes others: the beliefs before and after stand side
    by side. A second model, loaded when asked for, sees only what is before the hidden piece. The pieces are shaded by
    where a head looks from the hidden one.

    Args:
        weights: name of exported weights of a BERT, as `d2lmini.trained` takes it.
        causal: the same of one that was trained on the next token, with the same tokenizer; None: there is none.
        sentences: dict of sentences and of the piece of each that is hidden at first; None: `SENTENCES`. Of all of them
            the beliefs are recorded.

    Raises:
        WeightsError: a file of weights is damaged, or of another version.
        ValueError: there are no such weights, there is no sentence, one is longer than the model reads, or a piece is
            not in its sentence.

    Source: Devlin et al. 2019, section 3.1.
    """

    name = "live_guess"
    title = "Hide a word and see what the model believes"
    hint = (
        "Pick a sentence or type one. Choose a piece to hide it; then change another piece, and see the belief move. "
        "By keyboard: arrow keys go from piece to piece, Enter chooses."
    )

    def __init__(self, weights="bert_wikitext", causal="causal_wikitext", sentences=None):
        sentences = SENTENCES if sentences is None else dict(sentences)
        if not sentences:
            raise ValueError("there is nothing to show: expected at least one sentence")
        models = [trained(name) for name in (weights, causal) if name is not None]
        rows, places = [], []
        for text, hidden in sentences.items():
            pieces, place = _place(models[0], text, hidden)
            shown = " ".join([*pieces[:place], "[MASK]", *pieces[place + 1 :]])
            rows.append([shown, hidden])
            places.append(place)
            for number, model in enumerate(models):
                found = belief(model, text, place, causal=number > 0, top=3)
                rows[-1] += [", ".join(f"{piece}\u00a0{p:.3f}" for piece, p in found["best"])]
                rows[-1] += [f"{found['p']:.3f}, rank\u00a0{found['rank']:,}"]
        header = ["sentence", "hidden"]
        for view in ("both sides", "left side")[: len(models)]:
            header += [f"{view}: likeliest", f"{view}: the hidden piece"]
        super().__init__(
            "What a trained encoder believes about a hidden piece of a sentence, and how that moves when another piece "
            "changes.",
            weights,
            (
                "Recorded: a hidden piece of each sentence, and the model's belief about it, in probabilities.",
                header,
                rows,
            ),
            more=[] if causal is None else [causal],
            sentences=list(sentences),
            places=places,
            text=next(iter(sentences)),
            place=places[0],
            top=TOP,
        )


@torch.no_grad()
def belief(model, text, place, causal=False, top=TOP, others=()):
    """What a model believes about a hidden piece of a text.

    Args:
        model: a `BERTForPretraining` with its tokenizer, as `d2lmini.trained` gives it.
        text: str.
        place: of the piece, from 0.
        causal: whether the model was trained on the next token: its belief comes from the output before the place.
        top: how many guesses are wanted.
        others: places of other pieces that are hidden as well.

    Returns:
        dict: ``best``, pairs of a piece and its probability; ``p`` and ``rank``, from 1, of the true piece.
    """
    encoder = TextEncoder(model.tokenizer)
    ids = encoder.encode([text])[0][0]
    tokens = torch.tensor(encoder.join(ids)[0])  # (T,): class and separator around
    tokens[[1 + i for i in (place, *others)]] = encoder.mask_id
    Y = model.bert(tokens[None], causal=causal)[0, place if causal else 1 + place]  # (h,)
    probabilities = model.mlm(Y).softmax(-1)  # (V,)
    best, p = probabilities.topk(top), probabilities[ids[place]]
    pairs = list(zip(encoder.pieces(best.indices.tolist()), best.values.tolist(), strict=True))
    return {"best": pairs, "p": p.item(), "rank": 1 + int((probabilities > p).sum())}


def _place(model, text, hidden):
    """The pieces of a text, and the place of one of them."""
    encoder, most = TextEncoder(model.tokenizer), model.bert.config.max_len
    pieces = encoder.pieces(encoder.encode([text])[0][0])
    if len(pieces) + 2 > most:
        raise ValueError(f"a sentence has {len(pieces) + 2} tokens, but the model reads at most {most}: {text[:40]!r}")
    if hidden not in pieces:
        raise ValueError(f"{hidden!r} is no piece of {text[:80]!r}, expected one of {', '.join(pieces)}")
    return pieces, pieces.index(hidden)
