"""From logits to the distribution that the next token is drawn from.

Each filter takes logits (..., V) and gives new ones, with minus infinity at what must not be drawn; a softmax then
shares out the probability among the rest. Among tokens that are tied the lowest ids are kept.
"""

import math
from dataclasses import dataclass

import torch

from ..arguments import check_integer, check_number
from ..renamed import names_of
from ..utils import in_float64

__getattr__ = names_of(__name__)


def with_temperature(logits, temperature):
    """Logits over a temperature: below 1 likely tokens become likelier still, above 1 all come closer together.

    Args:
        logits: (..., V).
        temperature: finite, 0 or more; 0: only the likeliest token is left.

    Returns:
        (..., V), up to a shift, which a softmax does not see: so no small temperature overflows.

    Raises:
        ValueError: ``temperature`` is out of range.
    """
    check_number("temperature", temperature)
    if temperature == 0:
        return keep_top_k(logits, 1)
    if temperature == 1:
        return logits
    return (logits - logits.amax(-1, keepdim=True)) / max(temperature, torch.finfo(logits.dtype).tiny)


def keep_top_k(logits, k):
    """The k largest logits, and exactly k of them.

    Args:
        logits: (..., V).
        k: 1 to V.

    Returns:
        (..., V), the others minus infinity.

    Raises:
        ValueError: ``k`` is out of range.

    Source: Fan et al. 2018.
    """
    check_integer("top_k", k, 1, logits.shape[-1], why=", the number of tokens")
    least = logits.topk(k)[0][..., -1:]  # (..., 1)
    above, tied = logits > least, logits == least
    room = k - above.sum(-1, keepdim=True)
    return logits.masked_fill(~(above | (tied & (tied.cumsum(-1) <= room))), -torch.inf)


def keep_top_p(logits, p):
    """The nucleus: the fewest tokens, the likeliest first, whose probabilities add up to p or more.

    Sums are in float64, and a mass that misses p by no more than the rounding of the logits (about 5e-7 in float32)
    counts as p: so do 0.5 and 0.25 for p = 0.75.

    Args:
        logits: (..., V).
        p: above 0, up to 1; 1 keeps all.

    Returns:
        (..., V), the others minus infinity.

    Raises:
        ValueError: ``p`` is out of range.

    Source: Holtzman et al. 2020.
    """
    check_number("top_p", p, 0, 1, above=True)
    if p == 1:
        return logits
    rounding = 4 * torch.finfo(torch.promote_types(logits.dtype, torch.float32)).eps
    probabilities, order = in_float64(logits).softmax(-1).sort(dim=-1, descending=True, stable=True)
    kept = probabilities.cumsum(-1) - probabilities < p - rounding  # what stands before a token is not enough
    kept[..., 0] = True
    return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept).to(logits.device), -torch.inf)


def keep_min_p(logits, p):
    """The tokens whose probability is at least p times that of the likeliest.

    Args:
        logits: (..., V).
        p: above 0, up to 1.

    Returns:
        (..., V), the others minus infinity.

    Raises:
        ValueError: ``p`` is out of range.

    Source: Nguyen et al. 2024, "Min-p sampling".
    """
    check_number("min_p", p, 0, 1, above=True)
    return logits.masked_fill(logits < logits.amax(-1, keepdim=True) + math.log(p), -torch.inf)


def penalize_repetition(logits, previous, penalty):
    """Makes tokens less likely that have occurred: positive logits are divided, negative ones multiplied.

    It depends on where the logits have their zero, which a softmax does not see.

    Args:
        logits: (..., V).
        previous: integers (..., n), the tokens so far; those below 0 are none.
        penalty: above 0; 1 does nothing, below 1 favours what has occurred.

    Returns:
        (..., V).

    Raises:
        ValueError: ``penalty`` is out of range, or a token is outside of the vocabulary.

    Source: Keskar et al. 2019 (CTRL), section 4.1, who divide always, which favours a token with a negative logit; the
    form here is that of the transformers library.
    """
    check_number("repetition_penalty", penalty, above=True)
    if previous.numel() and previous.max() >= logits.shape[-1]:
        raise ValueError(
            f"previous holds the token {int(previous.max())}, expected at most {logits.shape[-1] - 1}: is it of "
            "another vocabulary?"
        )
    lower = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(_occurring(previous, logits), lower, logits)


def block_repeated_ngrams(logits, previous, n):
    """Leaves out each token that would complete n tokens in a row which have occurred before.

    Args:
        logits: (..., V).
        previous: integers (..., m), the tokens so far; those below 0, if any, come first and are none.
        n: 1 or more; 1: no token twice.

    Returns:
        (..., V), what would repeat minus infinity.

    Raises:
        ValueError: ``n`` is below 1.

    Source: Paulus et al. 2018, section 2.5, for n = 3.
    """
    check_integer("no_repeat_ngram_size", n, 1)
    if previous.shape[-1] < n:
        return logits
    grams = previous.unfold(-1, n, 1)  # (..., m - n + 1, n)
    latest = previous[..., None, previous.shape[-1] - n + 1 :]  # (..., 1, n - 1)
    again = (grams[..., :-1] == latest).all(-1)  # (..., m - n + 1)
    return logits.masked_fill(_occurring(grams[..., -1].masked_fill(~again, -1), logits), -torch.inf)


@dataclass(frozen=True)
class Filters:
    """All filters, in the order in which they are applied.

    Args:
        repetition_penalty: see `penalize_repetition`; 1: none.
        no_repeat_ngram_size: see `block_repeated_ngrams`; None: nothing is blocked.
        temperature: see `with_temperature`; 0: always the likeliest token.
        top_k: see `keep_top_k`; None: all.
        top_p: see `keep_top_p`, of what the filters before leave; None: all.
        min_p: see `keep_min_p`; None: all.

    Raises:
        ValueError: a value is out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int | None = None

    def __post_init__(self):
        nothing = torch.zeros(1)
        with_temperature(nothing, self.temperature)
        penalize_repetition(nothing, nothing.long(), self.repetition_penalty)
        if self.top_k is not None:
            check_integer("top_k", self.top_k, 1)
        for name in ("top_p", "min_p"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), 0, 1, above=True)
        if self.no_repeat_ngram_size is not None:
            block_repeated_ngrams(nothing, nothing.long(), self.no_repeat_ngram_size)

    @property
    def looks_back(self):
        """Whether the tokens so far matter."""
        return self.repetition_penalty != 1 or self.no_repeat_ngram_size is not None

    def logits(self, logits, previous=None):
        """Filtered logits, minus infinity at what is not drawn.

        Args:
            logits: (..., V), with minus infinity where a token is out of the question already.
            previous: integers (..., n), the tokens so far; needed by those that look back.

        Returns:
            (..., V), in float32 at least.

        Raises:
            ValueError: logits are NaN or infinite, or no token is left; ``top_k`` is above V; or ``previous`` lacks.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        largest = logits.amax(-1)  # (...), NaN if one is
        if not largest.isfinite().all():
            raise ValueError(
                "logits are NaN or infinite, or minus infinity for all tokens: did the training diverge, or does a "
                "mask leave no token?"
            )
        if self.looks_back:
            if previous is None:
                raise ValueError("a penalty on repetition needs the tokens so far: pass previous, of shape (..., n)")
            if self.repetition_penalty != 1:
                logits = penalize_repetition(logits, previous, self.repetition_penalty)
            if self.no_repeat_ngram_size is not None:
                logits = block_repeated_ngrams(logits, previous, self.no_repeat_ngram_size)
            if not logits.amax(-1).isfinite().all():
                raise ValueError(f"no_repeat_ngram_size of {self.no_repeat_ngram_size} leaves no token to draw")
        logits = with_temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = keep_min_p(logits, self.min_p)
        return logits

    def probabilities(self, logits, previous=None):
        """What to draw from, (..., V); arguments and errors are those of `logits`."""
        return self.logits(logits, previous).softmax(-1)


def _occurring(tokens, logits):
    """Which of V tokens are among tokens (..., n), those below 0 left out: (..., V)."""
    V = logits.shape[-1]
    tokens = tokens.expand(*logits.shape[:-1], tokens.shape[-1]).masked_fill(tokens < 0, V)
    among = torch.zeros(*logits.shape[:-1], V + 1, dtype=torch.bool, device=logits.device)
    return among.scatter(-1, tokens, True)[..., :V]
