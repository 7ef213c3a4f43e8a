"""Captions of Fashion-MNIST, made by rule: what is on a picture, in one of many wordings.

A caption names a class by one of its names, or describes it by facts that it shares with others, or both. Before that
may stand what is seen in the picture itself: that it is dark or bright, narrow or wide, plain or patterned. So a text
tells more than a label, and of a class without pictures there is still a text made of known words.
"""

import torch

from ..tokenization.vocabulary import WordTokenizer
from .images import FASHION_MNIST_LABELS

TEMPLATES = "{}", "photo of {}", "small picture of {}", "for sale: {}", "{} in the shop"
NEW_TEMPLATES = "catalogue page with {}", "look at this {}", "{} on a black table"  # of no caption
KINDS = "item", "piece", "article"
# names of captions for each class, and last one word that no caption has
NAMES = {
    "t-shirt": ("t-shirt", "tee", "jersey"),
    "trouser": ("trousers", "pants", "slacks"),
    "pullover": ("pullover", "jumper", "sweater"),
    "dress": ("dress", "frock", "gown"),
    "coat": ("coat", "overcoat", "jacket"),
    "sandal": ("sandal", "flip-flop", "slipper"),
    "shirt": ("shirt", "button-up", "blouse"),
    "sneaker": ("sneaker", "running shoe", "trainer"),
    "bag": ("bag", "handbag", "purse"),
    "ankle boot": ("ankle boot", "winter boot", "bootee"),
}
# what holds of a class by and large: where it goes, how far, whether it is open, and what it is made of; nearly each
# word is shared with another class, and no two classes share all
FACTS = {
    "t-shirt": ("for the upper body", "with short sleeves", "closed", "thin"),
    "trouser": ("for the legs", "with long legs", "closed", "thin"),
    "pullover": ("for the upper body", "with long sleeves", "closed", "thick"),
    "dress": ("for the upper body, for the legs", "with no sleeves", "closed", "thin"),
    "coat": ("for the upper body", "with long sleeves", "open", "thick"),
    "sandal": ("for the feet", "with no shaft", "open", "thin"),
    "shirt": ("for the upper body", "with long sleeves", "open", "thin"),
    "sneaker": ("for the feet", "with short shaft", "closed", "thick"),
    "bag": ("for the hand", "with short strap", "closed", "thick"),
    "ankle boot": ("for the feet", "with long shaft", "closed", "thick"),
}
WORDINGS = "names", "new sentences", "new words", "descriptions"


def brightness(images):
    """The mean of the pixels that are not background: images (N, 1, height, width), floats, to (N,)."""
    return images.sum((1, 2, 3)) / (images > 0).sum((1, 2, 3)).clamp(min=1)


def width_over_height(images):
    """Of the rectangle around what is not background: images (N, 1, height, width) to (N,); 0 if empty."""
    ink = images[:, 0] > 0
    return _extent(ink.any(1)) / _extent(ink.any(2)).clamp(min=1)


def contrast(images):
    """The mean step between pixels side by side that are no background: images (N, 1, height, width) to (N,)."""
    X = images[:, 0]
    both = (X[:, :, 1:] > 0) & (X[:, :, :-1] > 0)
    return (X.diff(dim=2).abs() * both).sum((1, 2)) / both.sum((1, 2)).clamp(min=1)


# the word for little of it, that for much, and what is measured
ATTRIBUTES = {
    "brightness": ("dark", "bright", brightness),
    "shape": ("narrow", "wide", width_over_height),
    "pattern": ("plain", "patterned", contrast),
}


class FashionCaptions:
    """Writes captions of pictures of Fashion-MNIST, and turns texts into tokens.

    Args:
        images: (N, 1, 28, 28), floats in [0, 1]: what is in the lower third of these is called dark, in the upper third
            bright, and between nothing is said; so with the other attributes.

    Raises:
        ValueError: there are fewer than three images, which have no thirds.

    Attributes:
        vocab: the words, with those of the test: an unseen word has an embedding of its own, too, but no training.
        thresholds: dict from an attribute to a pair of numbers.
    """

    def __init__(self, images):
        if len(images) < 3:
            raise ValueError(f"there are {len(images)} images, expected at least 3: attributes are told by thirds")
        words = [*TEMPLATES, *NEW_TEMPLATES, *KINDS, ","]
        words += [text for table in (NAMES, FACTS) for texts in table.values() for text in texts]
        words += [word for low, high, _ in ATTRIBUTES.values() for word in (low, high)]
        self.vocab = WordTokenizer(words)
        thirds = torch.tensor([1 / 3, 2 / 3])
        self.thresholds = {
            name: measure(images).cpu().float().quantile(thirds).tolist()
            for name, (_, _, measure) in ATTRIBUTES.items()
        }

    def sides(self, images):
        """On which side each picture is: dict from an attribute to (N,), -1 for little, 1 for much, else 0."""
        sides = {}
        for name, (_, _, measure) in ATTRIBUTES.items():
            (low, high), value = self.thresholds[name], measure(images)
            sides[name] = (value > high).int() - (value < low).int()
        return sides

    def write(self, images, labels, *, plain=False, generator=None):
        """A caption of each picture, drawn anew in each call.

        Args:
            images: (N, 1, height, width), floats.
            labels: integers (N,) below 10.
            plain: whether all captions of a class are alike: one sentence, and its first name.
            generator: of the random numbers; None: torch's own.

        Returns:
            list of N str.
        """
        names = [FASHION_MNIST_LABELS[i] for i in labels.tolist()]
        if plain:
            return [TEMPLATES[1].format(NAMES[name][0]) for name in names]
        sides = torch.stack(list(self.sides(images).values()), 1).tolist()  # (N, 3)
        # one row of numbers in [0, 1) for each caption: attributes 3, facts 4, and how it is worded 5
        draws = torch.rand(len(names), 12, generator=generator).tolist()
        return [self._caption(*arguments) for arguments in zip(names, sides, draws, strict=True)]

    def _caption(self, name, sides, draws):
        attribute_draws, fact_draws, (template, kind, called, described, first) = draws[:3], draws[3:7], draws[7:]
        words = [
            ATTRIBUTES[attribute][int(side > 0)]
            for attribute, side, draw in zip(ATTRIBUTES, sides, attribute_draws, strict=True)
            if side and draw < 0.5
        ]
        named = called < 0.5
        head = NAMES[name][int(2 * kind)] if named else KINDS[int(3 * kind)]
        facts = []
        if not named or described < 0.5:
            at_least = int(4 * first)  # one fact is told for sure
            facts = [fact for i, fact in enumerate(FACTS[name]) if i == at_least or fact_draws[i] < 0.5]
        return TEMPLATES[int(len(TEMPLATES) * template)].format(", ".join([" ".join([*words, head]), *facts]))

    def class_texts(self, wording="names", labels=None):
        """Texts to tell classes by.

        Args:
            wording: "names" and sentences of captions; "new sentences" with these names; "new words", names that no
                caption has; "descriptions" by all facts, without a name.
            labels: integers; None: all classes.

        Returns:
            a list of texts for each class.

        Raises:
            ValueError: there is no such wording.
        """
        if wording not in WORDINGS:
            raise ValueError(f"wording is {wording!r}, expected one of {', '.join(map(repr, WORDINGS))}")
        chosen = FASHION_MNIST_LABELS if labels is None else [FASHION_MNIST_LABELS[i] for i in labels]
        heads = {name: NAMES[name][-1:] if wording == "new words" else NAMES[name][:-1] for name in chosen}
        if wording == "descriptions":
            heads = {name: [", ".join([kind, *FACTS[name]]) for kind in KINDS] for name in chosen}
        return [_sentences(heads[name], NEW_TEMPLATES if wording == "new sentences" else TEMPLATES) for name in chosen]

    def never_written(self, seen, wording, labels=None):
        """Words of texts that tell of classes, but that no caption of other classes has.

        Args:
            seen: labels of the classes that there are captions of.
            wording, labels: as `class_texts`.

        Returns:
            sorted list of str.
        """
        names = [FASHION_MNIST_LABELS[i] for i in seen]
        captions = [*TEMPLATES, *KINDS, *(word for low, high, _ in ATTRIBUTES.values() for word in (low, high))]
        captions += [text for name in names for text in (*NAMES[name][:-1], *FACTS[name])]
        asked = [text for texts in self.class_texts(wording, labels) for text in texts]
        return sorted(self._words(asked) - self._words([*captions, ","]))

    def _words(self, texts):
        return {self.vocab.to_tokens(i) for row in self.vocab.encode_batch(texts) for i in row}

    def attribute_texts(self, attribute):
        """Texts for little and for much of an attribute, a pair of lists, without a word on the class."""
        return [_sentences([f"{word} {kind}" for kind in KINDS], TEMPLATES) for word in ATTRIBUTES[attribute][:2]]

    def encode(self, texts):
        """Texts to tokens (M, T), padded, and ``valid_lens`` (M,)."""
        rows = self.vocab.encode_batch(texts)
        valid_lens = torch.tensor([len(row) for row in rows])
        pad = self.vocab["<pad>"]
        return torch.tensor([row + [pad] * (int(valid_lens.max()) - len(row)) for row in rows]), valid_lens

    @property
    def max_len(self):
        """As many tokens as no text exceeds."""
        words = " ".join(low for low, _, _ in ATTRIBUTES.values())
        heads = [f"{words} running shoe, {', '.join(facts)}" for facts in FACTS.values()]
        return max(map(len, self.vocab.encode_batch(_sentences(heads, TEMPLATES + NEW_TEMPLATES))))


def _sentences(heads, templates):
    return [template.format(head) for head in heads for template in templates]


def _extent(occupied):
    """From the first to the last True of each row: (N, n) to (N,), 0 where there is none."""
    places = torch.arange(1, occupied.shape[1] + 1, device=occupied.device)
    last = (occupied * places).amax(1)
    first = (occupied * places.flip(0)).amax(1)  # counted from the end
    return (last + first - occupied.shape[1]).clamp(min=0)
