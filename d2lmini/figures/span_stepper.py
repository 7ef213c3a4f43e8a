"""Figure of chapter 14: span corruption step by step, on words that are drawn or that the reader chooses."""

import numpy
import torch

from ..objectives.span_corruption import corrupt_spans, restore_spans
from ..objectives.spans import random_spans
from .base import Figure, table
from .packing import pack, unpack

FIVE_WORDS, FIRST_NOISE = "I love this red car", [1, 3, 4]  # of D2L's figure 11.9.3
MORE_WORDS = "the old man who lived by the sea sold his boat last summer and bought a small garden in the hills"
SHARES, MEANS = (0.15, 0.3, 0.5), (1, 3, 5)
SENTINELS = [f"<{letter}>" for letter in "XYZWVUTSRQPONMLKJIHGFEDCBA"]
LONGEST = 2 * (len(SENTINELS) - 1)  # words: every second one may be a span


class SpanStepper(Figure):
    """Span corruption in five steps: the words, the noise, the input, the target, the words restored.

    At first all steps are done. The reader goes through them, draws again, sets the share of noise and the mean length
    of a span among draws made before, or clicks words to choose the noise. The rule of
    `d2lmini.objectives.corrupt_spans` then runs in the page. `SpanStepper.of` draws.

    Args:
        words: T words of the text, 2 to 50.
        draws: dict from (noise_density, mean_span) to booleans (n, T), the noise of n draws: every density with every
            mean, n the same for all.
        noise_density, mean_span: which setting is shown first.
        noise: None: its first draw is shown first; or the places of the words, from 0, that are noise at first.
        others: more texts to choose from, pairs of words and draws of the same settings.
        step: which one is shown first, from 1.

    Raises:
        ValueError: too few or too many words, draws that do not fit, or no such setting, place or step.

    Source: Raffel et al. 2020, sections 3.1.4 and 3.3.4; D2L section 11.9.2 and figure 11.9.3.
    """

    name = "span_stepper"
    title = "Span corruption: sentinels for what is hidden"
    hint = (
        "Choose yourself which words are noise, or have them drawn. At first all five steps are done: go back to see "
        "them one by one."
    )

    def __init__(self, words, draws, noise_density=0.15, mean_span=3, noise=None, others=(), step=5):
        shares, means = (sorted({setting[i] for setting in draws}) for i in (0, 1))
        if not draws or set(draws) != {(share, mean) for share in shares for mean in means}:
            raise ValueError(f"draws are of {list(draws)}, expected every noise_density with every mean_span")
        if (noise_density, mean_span) not in draws:
            raise ValueError(f"there are no draws of {(noise_density, mean_span)}, only of {list(draws)}")
        if any(set(more) != set(draws) for _, more in others):
            raise ValueError("the texts have unlike settings, expected the same of all")
        texts = [_text(words, draws) for words, draws in [(words, draws), *others]]
        if len({(text["draws"].shape[0], text["draws"].shape[1]) for text in texts}) > 1:
            raise ValueError("the texts have unlike numbers of draws, expected the same settings of all")
        T = len(texts[0]["words"])
        first = texts[0]["draws"][shares.index(noise_density) * len(means) + means.index(mean_span), 0].astype(int)
        if noise is not None:
            if not all(0 <= place < T for place in noise):
                raise ValueError(f"noise is {list(noise)}, expected places from 0 to {T - 1}")
            first = [int(place in set(noise)) for place in range(T)]
        if not 1 <= step <= 5:
            raise ValueError(f"step is {step}, expected 1 to 5")
        super().__init__(
            f"Span corruption of {' '.join(texts[0]['words'])}: noise, input, target, restored, step by step.",
            texts=[{**text, "draws": pack(numpy.packbits(text["draws"]))} for text in texts],
            shares=shares,
            means=means,
            count=texts[0]["draws"].shape[1],
            text=0,
            share=shares.index(noise_density),
            mean=means.index(mean_span),
            draw=-1 if noise is not None else 0,
            noise="".join(str(int(bit)) for bit in first),
            step=step,
            sentinels=" ".join(SENTINELS),
        )

    @classmethod
    def of(cls, text=None, noise_density=0.15, mean_span=3, seeds=range(8), others=None, **options):
        """Draws the noise of a text, for shares of 15, 30 and 50 % and mean spans of 1, 3 and 5 words.

        Args:
            text: str, cut at spaces, or a list of words; None: D2L's five words, with the noise of its figure at first,
                and a longer text to choose.
            noise_density, mean_span: which setting is shown first; another one than these is drawn, too.
            seeds: a draw of each setting for each.
            others: more texts to choose from.
            options: ``noise`` and ``step``, as for the class.

        Returns:
            A `SpanStepper`.

        Raises:
            ValueError: as the class and `d2lmini.objectives.random_spans`.
        """
        if text is None:
            text, others = FIVE_WORDS, [MORE_WORDS] if others is None else others
            options = {"noise": FIRST_NOISE, **options}
        texts = [t.split() if isinstance(t, str) else list(t) for t in (text, *(others or ()))]
        shares, means = sorted({*SHARES, noise_density}), sorted({*MEANS, mean_span})
        drawn = [
            {(share, mean): _draws(len(words), share, mean, seeds) for share in shares for mean in means}
            for words in texts
        ]
        more = list(zip(texts, drawn, strict=True))[1:]
        return cls(texts[0], drawn[0], noise_density, mean_span, others=more, **options)

    def draws(self, text=0):
        """The draws that the page has of a text, booleans (settings, n, T), by density, then by mean."""
        state = self.state
        words = state["texts"][text]["words"]
        shape = len(state["shares"]) * len(state["means"]), state["count"], len(words)
        bits = numpy.unpackbits(unpack(state["texts"][text]["draws"]).numpy().astype("u1"))
        return torch.from_numpy(bits[: numpy.prod(shape)].astype(bool)).view(shape)

    def corrupted(self, noise, text=0):
        """What `corrupt_spans` and `restore_spans` make of a text.

        Args:
            noise: booleans (T,).
            text: which one, from 0.

        Returns:
            dict of lists of str: ``input``, ``target``, ``restored``.
        """
        names = [*self.state["texts"][text]["words"], *SENTINELS]
        T = len(names) - len(SENTINELS)
        tokens, sentinels = torch.arange(T)[None], list(range(T, len(names)))  # a word's id is its place
        made = corrupt_spans(tokens, torch.as_tensor(noise, dtype=torch.bool)[None], sentinels)
        rows = {"input": made.inputs[0].tolist(), "target": made.targets[0].tolist()}
        rows["restored"] = restore_spans(made.inputs, made.targets, sentinels)[0]
        return {key: [names[i] for i in ids] for key, ids in rows.items()}

    def fallback(self):
        noise = [bit == "1" for bit in self.state["noise"]]
        words, made = self.state["texts"][0]["words"], self.corrupted(noise)
        rows = [
            ["1. the words", " ".join(words), len(words)],
            ["2. of them, noise", " ".join(w for w, dropped in zip(words, noise, strict=True) if dropped), sum(noise)],
            *([f"{i}. {name}", " ".join(row), len(row)] for i, (name, row) in enumerate(
                {"input": made["input"], "target": made["target"], "restored": made["restored"]}.items(), start=3)),
        ]  # fmt: skip
        caption = "Span corruption: each span of noise becomes a sentinel, and the target says what stood there."
        return table(["step", "tokens", "how many"], rows, caption)


def _draws(length, share, mean, seeds):
    """Noise of each seed, booleans (n, T)."""
    options = {"noise_density": share, "mean_span": mean}
    rows = [random_spans(1, length, generator=torch.Generator().manual_seed(seed), **options) for seed in seeds]
    return torch.cat(rows) if rows else torch.zeros(0, length, dtype=torch.bool)


def _text(words, draws):
    """A checked text: its words, and its draws as an array (settings, n, T)."""
    words = list(map(str, words))
    if not 2 <= len(words) <= LONGEST:
        raise ValueError(f"a text has {len(words)} words, expected 2 to {LONGEST}")
    if set(words) & set(SENTINELS):
        raise ValueError(f"the text holds {sorted(set(words) & set(SENTINELS))[0]}, which is a sentinel")
    rows = [torch.as_tensor(draws[setting]) for setting in sorted(draws)]
    for row in rows:
        if row.dtype != torch.bool or row.shape != (len(rows[0]), len(words)) or not len(row):
            raise ValueError(
                f"draws are {row.dtype} of shape {tuple(row.shape)}, expected booleans (n, {len(words)}), n the same "
                "in every setting and at least 1"
            )
    return {"words": words, "draws": torch.stack(rows).numpy()}
