"""Figure of chapters 05 and 07: where every head of a model looks, word by word."""

import torch

from .base import Figure, table
from .packing import pack, unpack


class HeadExplorer(Figure):
    """Real attention maps: choose a sentence, a layer and a head, point at a word, see where it looks.

    All heads of a layer stand beside each other as small maps. The weights travel as one byte each, so what the page
    shows is right to 1/510.

    Args:
        sentences: dict from the title of a sentence to a dict from the name of an attention (as "cross") to a triple:
            T query tokens, S key tokens, and weights (layers, H, T, S), one layer may also come as (H, T, S). Every
            sentence has the same names; of one name, all have the same numbers of layers and heads.
        attention: name of the attention shown first; None: the first.
        layer: which layer is shown first, from 1.
        head: which head, from 1.

    Raises:
        ValueError: there is nothing to show, names or sizes differ, weights are outside of 0 to 1, or there is no such
            attention, layer or head.
    """

    name = "head_explorer"
    title = "Where each head looks"
    hint = (
        "Choose a head by its small map, then point at a word: lines and numbers are its weights. By "
        "keyboard: arrow keys go from word to word."
    )

    def __init__(self, sentences, attention=None, layer=1, head=1):
        if not sentences or not all(sentences.values()):
            raise ValueError("there is nothing to show: expected at least one sentence with one attention")
        titles, names = list(sentences), list(next(iter(sentences.values())))
        for title, maps in sentences.items():
            if list(maps) != names:
                raise ValueError(f"sentence {title!r} has the attentions {list(maps)}, the first one {names}")
        cards = [[_card(f"{name!r} of {title!r}", *maps[name]) for name in names] for title, maps in sentences.items()]
        for name, first, *others in zip(names, *cards, strict=True):
            for other in others:
                if other["size"][:2] != first["size"][:2]:
                    raise ValueError(
                        f"{name!r} has {first['size'][:2]} layers and heads in the first sentence, "
                        f"{other['size'][:2]} in another: are the maps of one model?"
                    )
        attention = names[0] if attention is None else attention
        if attention not in names:
            raise ValueError(f"there is no attention {attention!r}, only {', '.join(names)}")
        layers, heads = cards[0][names.index(attention)]["size"][:2]
        if not (1 <= layer <= layers and 1 <= head <= heads):
            raise ValueError(f"layer {layer} and head {head} of {attention!r}: expected 1 to {layers} and 1 to {heads}")
        several = {"sentence": len(titles), "attention": len(names), "layer": max(card["size"][0] for card in cards[0])}
        choices = ", ".join(name for name, count in several.items() if count > 1)
        super().__init__(
            f"Attention maps: choose {choices + ' and ' if choices else ''}head, and point at a row.",
            titles=titles,
            names=names,
            cards=cards,
            sentence=0,
            attention=names.index(attention),
            layer=layer,
            head=head,
        )

    def weights(self, title, name):
        """The weights that the page shows, a multiple of 1/255.

        Args:
            title: of the sentence.
            name: of the attention.

        Returns:
            (layers, H, T, S).

        Raises:
            ValueError: there is no such sentence or attention.
        """
        card = self.state["cards"][self.state["titles"].index(title)][self.state["names"].index(name)]
        return unpack(card["data"], *card["size"]).double() / 255

    def fallback(self):
        state = self.state
        card, name = state["cards"][0][state["attention"]], state["names"][state["attention"]]
        weights = self.weights(state["titles"][0], name)[state["layer"] - 1]  # (H, T, S)
        best, where = weights.max(-1)  # (H, T)
        rows = [
            [query, *(f"{card['keys'][where[h, t]]} {best[h, t]:.2f}" for h in range(len(weights)))]
            for t, query in enumerate(card["queries"])
        ]
        caption = (
            f"“{state['titles'][0]}”, {name}, layer {state['layer']}: for each row, where each head looks most, with "
            "its weight."
        )
        return table(["word", *(f"head {h + 1}" for h in range(len(weights)))], rows, caption)


def _card(what, queries, keys, weights):
    """One attention on one sentence, as the page takes it."""
    queries, keys = [str(token) for token in queries], [str(token) for token in keys]
    weights = torch.as_tensor(weights).detach().cpu().double()
    weights = weights[None] if weights.dim() == 3 else weights  # (layers, H, T, S)
    if weights.dim() != 4 or weights.shape[2:] != (len(queries), len(keys)) or not weights.numel():
        raise ValueError(
            f"weights of {what} have shape {tuple(weights.shape)}, expected (layers, H, {len(queries)}, {len(keys)}): "
            f"there are {len(queries)} query tokens and {len(keys)} key tokens"
        )
    data = pack(weights, f"weights of {what}")
    return {"queries": queries, "keys": keys, "size": list(weights.shape), "data": data}
