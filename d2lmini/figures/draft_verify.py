"""Figure of chapter 19: speculative decoding step by step: a draft proposes, a target accepts or replaces."""

import numpy
import torch

from .base import Figure, table
from .packing import pack, unpack

SYMBOLS = "abcdefghijklmnopqrstuvwxyz "
MOST = 8  # drafted tokens of a pass
TURNS = 255  # counts travel as one byte each, so many for the commonest of a row


class DraftVerify(Figure):
    """Speculative decoding of two small models of characters, one decision at a time.

    The draft knows one character of context, the target two. A pass: the draft draws up to n characters; the target
    gives its distribution at each of them at once; a character x is accepted with the probability min(1, p(x) / q(x)).
    The first that is rejected is replaced by a draw from max(p - q, 0), scaled, and ends the pass; if all are accepted
    the target adds one of its own. The reader steps through a pass, sees each random number on a line, and repeats
    passes from the same text: what they write follows p, whatever q is.

    Counts are rounded to 255ths of the largest of their row; p and q are what is left, divided by its sum.

    Args:
        symbols: V different characters.
        target: counts (V, V, V): how often a character follows two others. A row of zeros is that of the draft.
        draft: counts (V, V): how often a character follows another.
        prompt: text that is there at first, two characters at least.
        n: how many characters are drafted at first, from 1 to 8.
        seed: of the generator, 0 or more.

    Raises:
        ValueError: shapes do not fit, a symbol has no successor, or prompt, n or seed is out of its range.

    Source: Leviathan et al. 2023; Chen et al. 2023.
    """

    name = "draft_verify"
    title = "Draft and verify"
    hint = (
        "Step through a pass: the draft proposes, the target accepts or replaces. Then repeat passes from the same "
        "text and watch their first characters settle at p, not at q."
    )

    def __init__(self, symbols, target, draft, prompt="th", n=4, seed=1):
        symbols = "".join(symbols)
        V = len(symbols)
        target, draft = (torch.as_tensor(x).detach().cpu().double() for x in (target, draft))
        if V < 2 or len(set(symbols)) < V:
            raise ValueError(f"the symbols are {symbols!r}, expected two or more different ones")
        if tuple(target.shape) != (V, V, V) or tuple(draft.shape) != (V, V):
            raise ValueError(
                f"counts have shapes {tuple(target.shape)} and {tuple(draft.shape)}, expected {(V, V, V)} and {(V, V)}"
            )
        if not (draft.sum(1) > 0).all() or min(draft.min(), target.min()) < 0:
            raise ValueError("counts must not be negative, and each symbol needs a successor in those of the draft")
        if len(prompt) < 2 or not set(prompt) <= set(symbols):
            raise ValueError(f"the prompt is {prompt!r}, expected two or more of the symbols {symbols!r}")
        if not 1 <= n <= MOST or seed < 0:
            raise ValueError(f"n is {n} and seed {seed}, expected 1 to {MOST} and 0 or more")
        target = torch.where(target.sum(-1, keepdim=True) > 0, target, draft)  # (V, V, V)
        super().__init__(
            f"A draft of one character's context and a target of two, over {V} characters: accepted and replaced.",
            symbols=symbols,
            target=_bytes(target),
            draft=_bytes(draft),
            prompt=prompt,
            n=n,
            seed=seed,
        )
        numbers = (
            unpack(self.state[key], *shape).double() for key, shape in (("target", (V,) * 3), ("draft", (V,) * 2))
        )
        self._p, self._q = (x / x.sum(-1, keepdim=True) for x in numbers)  # as the page has them

    @classmethod
    def of(cls, text=None, **options):
        """Counts of a text: its letters in lower case, and a space for all that stands between them.

        Args:
            text: str; None: the book's text of Shakespeare. After a character that is not in it any may follow.
            options: as for the class.

        Returns:
            A `DraftVerify` over 26 letters and the space.

        Raises:
            ValueError: the text has fewer than three letters and spaces.
        """
        if text is None:
            from ..data.text import load_text

            text = load_text("shakespeare")
        text = " ".join("".join(c if c in SYMBOLS else " " for c in text.lower()).split())
        if len(text) < 3:
            raise ValueError(f"the text has {len(text)} letters and spaces, expected at least 3")
        ids = torch.tensor([SYMBOLS.index(c) for c in text])
        V = len(SYMBOLS)
        pairs = torch.bincount(ids[:-1] * V + ids[1:], minlength=V**2).view(V, V)
        triples = torch.bincount((ids[:-2] * V + ids[1:-1]) * V + ids[2:], minlength=V**3).view(V, V, V)
        pairs = torch.where(pairs.sum(1, keepdim=True) > 0, pairs, 1)
        return cls(SYMBOLS, triples, pairs, **options)

    def distributions(self, text):
        """What target and draft say comes next.

        Args:
            text: two of the symbols or more.

        Returns:
            (p, q), each (V,), float64.
        """
        symbols = self.state["symbols"]
        a, b = (symbols.index(c) for c in text[-2:])
        return self._p[a, b], self._q[b]

    def passes(self, count, n=None, seed=None, again=False):
        """Passes as the page makes them.

        Args:
            count: how many. n: of drafted characters. seed: of the generator; None: as it is shown first.
            again: whether each begins at the prompt; if not, where the one before it ended.

        Returns:
            List of dicts with ``drafted`` (n characters), ``accepted`` (how many of them) and ``written``, a string.
        """
        state = self.state
        symbols, text, found = state["symbols"], state["prompt"], []
        n, random = state["n"] if n is None else n, _generator(state["seed"] if seed is None else seed)
        for _ in range(count):
            drafted = ""
            for _ in range(n):
                drafted += symbols[_draw(self.distributions(text + drafted)[1], next(random))]
            for accepted, symbol in enumerate(drafted):
                p, q = self.distributions(text + drafted[:accepted])
                x = symbols.index(symbol)
                if next(random) >= p[x] / q[x]:
                    rest = (p - q).clamp(min=0)
                    last = rest / rest.sum()
                    break
            else:
                accepted, last = n, self.distributions(text + drafted)[0]
            written = drafted[:accepted] + symbols[_draw(last, next(random))]
            found.append({"drafted": drafted, "accepted": accepted, "written": written})
            text = text if again else text + written
        return found

    def fallback(self):
        shown = str.maketrans(" ", "␣")
        rows = [
            [i, one["drafted"].translate(shown), one["accepted"], one["written"].translate(shown)]
            for i, one in enumerate(self.passes(8), start=1)
        ]
        tokens = sum(len(one["written"]) for one in self.passes(200))
        caption = (
            f"Passes after “{self.state['prompt']}”, {self.state['n']} characters drafted in each. In 200 passes the "
            f"target writes {tokens} characters, {tokens / 200:.2f} a pass."
        )
        return table(["pass", "the draft proposes", "accepted", "written"], rows, caption)


def _bytes(counts):
    """Counts rounded to 255ths of the largest of each row. Returns: str."""
    return pack((counts / counts.amax(-1, keepdim=True) * TURNS).round().numpy().astype(numpy.uint8))


def _generator(seed):
    """Numbers from 0 to 1 that a seed determines: mulberry32, as in the page."""
    while True:
        seed = (seed + 0x6D2B79F5) & 0xFFFFFFFF
        t = ((seed ^ seed >> 15) * (1 | seed)) & 0xFFFFFFFF
        t = (t + ((t ^ t >> 7) * (61 | t) & 0xFFFFFFFF)) & 0xFFFFFFFF ^ t
        yield ((t ^ t >> 14) & 0xFFFFFFFF) / 2**32


def _draw(p, u):
    """The first token at which the cumulative sum is above u. Returns: int."""
    so_far = 0.0
    for x, share in enumerate(p.tolist()):
        so_far += share
        if so_far > u:
            return x
    return int(p.nonzero()[-1])  # the sum may end a rounding below 1
