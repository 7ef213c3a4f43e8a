"""Figure of chapter 04: which source words the decoder looked at for each word that it wrote."""

import torch

from .base import Figure, table
from .packing import pack, unpack


class AlignmentExplorer(Figure):
    """Source words above, target words below, a line for each weight: point at a word to see its row or column.

    The true alignment, where it is known, can be laid over the weights. Weights travel as one byte each, so what the
    page shows is right to 1/510.

    Args:
        sentences: dict from the title of a sentence to a tuple: S source words, T target words, weights (T, S), and the
            true alignment as pairs (index of source word, index of target word), None where it is not known. Row t
            must be the one from which target word t is predicted, so target words start without ``<bos>``.
        sentence: title of the sentence shown first; None: the first.
        truth: whether the true alignment is shown at first.
        attention: False: the weights are no attention but the alignment itself, each row divided by its sum.

    Raises:
        ValueError: there is nothing to show or no such sentence, sizes differ, weights are outside of 0 to 1, or a pair
            of the alignment is outside of the sentence.
    """

    name = "alignment_explorer"
    title = "Where each written word comes from"
    hint = "Choose a sentence and point at a word of either language. By keyboard: arrow keys go from word to word."

    def __init__(self, sentences, sentence=None, truth=False, attention=True):
        if not sentences:
            raise ValueError("there is nothing to show: expected at least one sentence")
        titles = list(sentences)
        sentence = titles[0] if sentence is None else sentence
        if sentence not in titles:
            raise ValueError(f"there is no sentence {sentence!r}, only {', '.join(map(repr, titles))}")
        what = "Attention weights between the words" if attention else "The true alignment"
        super().__init__(
            f"{what} of {len(titles)} sentences and their translations: choose a sentence and point at a word.",
            titles=titles,
            cards=[_card(title, *parts) for title, parts in sentences.items()],
            sentence=titles.index(sentence),
            truth=bool(truth),
            attention=bool(attention),
        )

    def weights(self, title):
        """The weights that the page shows, multiples of 1/255.

        Args:
            title: of the sentence.

        Returns:
            (T, S).

        Raises:
            ValueError: there is no such sentence.
        """
        card = self.state["cards"][self.state["titles"].index(title)]
        return unpack(card["data"], len(card["target"]), len(card["source"])).double() / 255

    def fallback(self):
        title = self.state["titles"][self.state["sentence"]]
        card, weights = self.state["cards"][self.state["sentence"]], self.weights(title)
        true = {(s, t) for s, t in card["true"] or ()}
        rows = [
            [word, *(f"{w:.2f}{' ✓' if (s, t) in true else ''}" for s, w in enumerate(weights[t].tolist()))]
            for t, word in enumerate(card["target"])
        ]
        ticks = " ✓ marks the words that belong together." if true else ""
        what = "the weights on" if self.state["attention"] else "equal shares of"
        caption = f"“{title}”: for every word written, {what} the source words.{ticks}"
        return table(["written", *card["source"]], rows, caption)


def _card(title, source, target, weights, alignment=None):
    """One sentence, as the page takes it."""
    source, target = [str(word) for word in source], [str(word) for word in target]
    weights = torch.as_tensor(weights).detach().cpu().double()
    if weights.shape != (len(target), len(source)) or not weights.numel():
        raise ValueError(
            f"weights of {title!r} have shape {tuple(weights.shape)}, expected (T, S) = ({len(target)}, {len(source)}) "
            f"for {len(target)} target and {len(source)} source words: is <bos> among the target words?"
        )
    true = None if alignment is None else sorted((int(s), int(t)) for s, t in alignment)
    for s, t in true or ():
        if not (0 <= s < len(source) and 0 <= t < len(target)):
            raise ValueError(
                f"the alignment of {title!r} has the pair ({s}, {t}), but there are {len(source)} source and "
                f"{len(target)} target words: expected (source, target)"
            )
    return {"source": source, "target": target, "data": pack(weights, f"weights of {title!r}"), "true": true}
