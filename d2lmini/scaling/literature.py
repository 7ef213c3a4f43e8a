"""Large language models and scaling laws as published. FLOPs and tokens per parameter are computed, not copied."""

from dataclasses import dataclass

from .flops import training_flops
from .laws import PowerLaw

PETAFLOP_DAY = 1e15 * 24 * 60 * 60  # FLOPs, the unit of Kaplan et al. and of Brown et al.


@dataclass(frozen=True)
class PublishedModel:
    """A model as its paper tells of it.

    Args:
        name: of the largest of its family, or of the one that is named.
        year: of the paper's first version.
        parameters: N, all of them.
        tokens: D, read in training; None: not published.
        source: key in ``references.bib``.
        active: parameters that one token meets, in a mixture of experts; None: all.
        flops_in_paper: training FLOPs as the paper states them; None: it does not, or they were not looked up.
        note: what the numbers do not tell.
    """

    name: str
    year: int
    parameters: float
    tokens: float | None
    source: str
    active: float | None = None
    flops_in_paper: float | None = None
    note: str = ""

    @property
    def flops(self):
        """6 N D, with the active parameters; None where the tokens are not known."""
        return None if self.tokens is None else training_flops(self.active or self.parameters, self.tokens)

    @property
    def tokens_per_parameter(self):
        """D / N, with all parameters; None where the tokens are not known."""
        return None if self.tokens is None else self.tokens / self.parameters


_M = PublishedModel
PUBLISHED_MODELS = (
    _M(
        "GPT-2", 2019, 1.542e9, None, "radford2019language", note="40 GB of text; the number of tokens is not published"
    ),
    _M("GPT-3", 2020, 174.6e9, 300e9, "brown2020language", flops_in_paper=3.14e23),
    _M("Megatron-Turing NLG", 2022, 530e9, 270e9, "smith2022using"),
    _M("Gopher", 2021, 280e9, 300e9, "rae2021scaling"),
    _M("Chinchilla", 2022, 70e9, 1.4e12, "hoffmann2022training", flops_in_paper=5.76e23, note="with Gopher's budget"),
    _M("PaLM", 2022, 540e9, 780e9, "chowdhery2022palm"),
    _M("OPT", 2022, 175e9, 180e9, "zhang2022opt", note="tokens of the corpus: how many were read may be more"),
    _M("BLOOM", 2022, 176e9, 366e9, "scao2022bloom"),
    _M("Minerva", 2022, 540e9, 806e9, "lewkowycz2022solving", note="PaLM, and 26 billion tokens more"),
    _M("Galactica", 2022, 120e9, 450e9, "taylor2022galactica", note="a corpus of 106 billion tokens, read 4.25 times"),
    _M("LLaMA 7B", 2023, 6.7e9, 1.0e12, "touvron2023llama"),
    _M("LLaMA", 2023, 65.2e9, 1.4e12, "touvron2023llama"),
    _M("Llama 2", 2023, 70e9, 2.0e12, "touvron2023llama2"),
    _M("Falcon", 2023, 180e9, 3.5e12, "almazrouei2023falcon"),
    _M("Llama 3.1", 2024, 405e9, 15.6e12, "grattafiori2024llama", flops_in_paper=3.8e25),
    _M("DeepSeek-V3", 2024, 671e9, 14.8e12, "deepseek2024v3", active=37e9, note="a mixture of experts"),
)


@dataclass(frozen=True)
class PublishedLaw:
    """A scaling law as its paper states it, or the exponent with which the best sizes grow.

    Args:
        name: of the law.
        of: what it takes: "parameters", "tokens", "compute" (FLOPs), or "parameters and tokens".
        law: a `PowerLaw`, in nats a token; None: none is given.
        best_parameters: a in N_best ~ C^a; that of the tokens is 1 - a. None: none is given.
        source: key in ``references.bib``.
        note: what counts as a parameter, and how it was found.
    """

    name: str
    of: str
    law: PowerLaw | None
    best_parameters: float | None
    source: str
    note: str = ""


def _kaplan(critical, exponent):
    """(x_c / x)^b as a `PowerLaw`."""
    return PowerLaw(0.0, (critical**exponent,), (exponent,))


def _parametric(E, A, B, alpha, beta):
    law = PowerLaw(E, (A, B), (alpha, beta))
    return law, beta / (alpha + beta)


_HOFFMANN, _HOFFMANN_BEST = _parametric(1.69, 406.4, 410.7, 0.34, 0.28)
_BESIROGLU, _BESIROGLU_BEST = _parametric(1.8172, 482.01, 2085.43, 0.3478, 0.3658)

PUBLISHED_LAWS = {
    "kaplan parameters": PublishedLaw(
        "Kaplan, parameters", "parameters", _kaplan(8.8e13, 0.076), None, "kaplan2020scaling", "without embeddings"
    ),
    "kaplan tokens": PublishedLaw("Kaplan, tokens", "tokens", _kaplan(5.4e13, 0.095), None, "kaplan2020scaling"),
    "kaplan compute": PublishedLaw(
        "Kaplan, compute", "compute", _kaplan(3.1e8 * PETAFLOP_DAY, 0.050), 0.73, "kaplan2020scaling",
        "without embeddings, and reckoned for small batches",
    ),
    "chinchilla envelope": PublishedLaw(
        "Chinchilla, approach 1", "compute", None, 0.50, "hoffmann2022training", "least loss over training curves"
    ),
    "chinchilla isoflop": PublishedLaw(
        "Chinchilla, approach 2", "compute", None, 0.49, "hoffmann2022training", "isoFLOP profiles"
    ),
    "chinchilla": PublishedLaw(
        "Chinchilla, approach 3", "parameters and tokens", _HOFFMANN, _HOFFMANN_BEST, "hoffmann2022training",
        "the constants are rounded",
    ),
    "chinchilla refitted": PublishedLaw(
        "Chinchilla, refitted", "parameters and tokens", _BESIROGLU, _BESIROGLU_BEST, "besiroglu2024chinchilla",
        "from the points of the paper's figure",
    ),
}  # fmt: skip
