"""Figure of chapter 17: parameters, tokens, FLOPs and loss by a scaling law, and the best that a budget can do."""

from ..scaling import compute_optimal, training_flops
from ..scaling.literature import PUBLISHED_LAWS, PUBLISHED_MODELS
from .base import Figure, table

# of the runs of Hoffmann et al. 2022 (abstract), to which both published laws were fitted
CHINCHILLA_RUNS = {"parameters": (70e6, 16e9), "tokens": (5e9, 500e9)}
_KEYS = {"law", "parameters", "tokens", "unit", "note"}


class ScalingCalculator(Figure):
    """A calculator over scaling laws L(N, D) = E + A N^-alpha + B D^-beta.

    The reader chooses a law, N parameters and D tokens, and sees 6 N D, tokens per parameter, the loss in its three
    terms, and what the law would do with the same budget; models can be chosen as points. `ScalingCalculator.published`
    makes the usual one.

    Args:
        laws: dict from a name to a dict: ``law``, a `PowerLaw` of parameters and tokens; ``parameters`` and ``tokens``,
            the least and the largest of the runs it was fitted to, pairs; and, if wanted, ``unit`` of the loss
            ("nats a token") and ``note``, a sentence.
        models: `PublishedModel` or anything with ``name``, ``parameters``, ``tokens`` and, perhaps, ``active``. Those
            whose tokens are not known are left out. Of a mixture of experts the active parameters count.
        law: name of the law shown first; None: the first.
        parameters, tokens: of the first choice; None: the middle of the law's range, on a log scale.

    Raises:
        ValueError: there is no law, a `PowerLaw` is of another form or has no range, two models share a name, or
            there is no such law, or a choice is not above 0.

    Source: Hoffmann et al. 2022, section 3.3; Besiroglu et al. 2024.
    """

    name = "scaling_calculator"
    title = "What a budget of compute buys"
    hint = (
        "Move parameters or tokens: the budget follows. Move the budget: the tokens follow. Drag the point along the "
        "curve: the budget stays. Choose a published model by its point."
    )

    def __init__(self, laws, models=(), law=None, parameters=None, tokens=None):
        if not laws:
            raise ValueError("there is nothing to show: expected at least one law")
        law = next(iter(laws)) if law is None else law
        if law not in laws:
            raise ValueError(f"there is no law {law!r}, only {', '.join(map(str, laws))}")
        cards = [_law(name, given) for name, given in laws.items()]
        sparse = "the parameters that one token meets; the law is of dense models"
        points = [
            {"name": m.name, "parameters": getattr(m, "active", None) or m.parameters, "tokens": m.tokens,
             "note": sparse if getattr(m, "active", None) else ""}
            for m in models if m.tokens is not None
        ]  # fmt: skip
        points.sort(key=lambda m: m["parameters"])
        if len({m["name"] for m in points}) < len(points):
            raise ValueError("two models have the same name")
        chosen = cards[list(laws).index(law)]
        parameters = _middle(chosen["parameters"]) if parameters is None else float(parameters)
        tokens = _middle(chosen["tokens"]) if tokens is None else float(tokens)
        if not (parameters > 0 and tokens > 0):
            raise ValueError(f"got {parameters} parameters and {tokens} tokens, expected numbers above 0")
        self.laws = {name: given["law"] for name, given in laws.items()}
        super().__init__(
            f"Loss, FLOPs and the best use of a budget by {len(cards)} scaling laws.",
            laws=cards,
            models=points,
            limits={
                "parameters": _limits("parameters", cards, points, parameters),
                "tokens": _limits("tokens", cards, points, tokens),
            },
            law=list(laws).index(law),
            parameters=parameters,
            tokens=tokens,
        )

    @classmethod
    def published(cls, own=None, models=PUBLISHED_MODELS, **options):
        """Chinchilla's law, as published and as fitted anew, and laws of one's own beside them.

        Args:
            own: dict of further laws, as the class takes them; None: no other.
            models: as for the class.
            options: ``law``, ``parameters`` and ``tokens``, as for the class.

        Returns:
            A `ScalingCalculator`.
        """
        laws = {}
        for key in ("chinchilla", "chinchilla refitted"):
            given = PUBLISHED_LAWS[key]
            laws[given.name] = {"law": given.law, **CHINCHILLA_RUNS, "note": given.note}
        return cls({**laws, **(own or {})}, models, **options)

    def reckon(self, law, parameters, tokens):
        """What the page shows of a choice.

        Args:
            law: name of the law.
            parameters, tokens: N and D.

        Returns:
            dict of ``flops``, ``ratio`` (tokens per parameter), ``terms`` (of the loss: three numbers), ``loss``,
            ``optimum`` (an `Optimum` with the same budget) and ``outside`` (names of what is outside of the runs).
        """
        power = self.laws[law]
        card = next(card for card in self.state["laws"] if card["name"] == law)
        flops, given = training_flops(parameters, tokens), {"parameters": parameters, "tokens": tokens}
        (A, B), (alpha, beta) = power.factors, power.exponents
        return {
            "flops": flops,
            "ratio": tokens / parameters,
            "terms": (power.floor, A * parameters**-alpha, B * tokens**-beta),
            "loss": power(parameters, tokens),
            "optimum": compute_optimal(power, flops),
            "outside": [key for key, x in given.items() if not card[key][0] <= x <= card[key][1]],
        }

    def fallback(self):
        state, rows = self.state, []
        name = state["laws"][state["law"]]["name"]
        first = {"name": "first choice", "parameters": state["parameters"], "tokens": state["tokens"]}
        for m in [first, *state["models"]]:
            budget = self.reckon(name, m["parameters"], m["tokens"])
            best = budget["optimum"]
            numbers = (m["parameters"], m["tokens"], budget["flops"])
            rows.append(
                [m["name"], *(f"{x:.3g}" for x in numbers), f"{budget['ratio']:.3g}", f"{budget['loss']:.3f}"
                 + (" (outside)" if budget["outside"] else ""), f"{best.parameters:.3g}", f"{best.loss:.3f}"]
            )  # fmt: skip
        header = [
            "model",
            "parameters N",
            "tokens D",
            "FLOPs, 6ND",
            "D / N",
            "loss",
            "best N for these FLOPs",
            "its loss",
        ]
        caption = (
            f"{name}: the loss that the law expects, in {state['laws'][state['law']]['unit']}, and the best that the "
            "same FLOPs can do. Outside: N or D is outside of the runs that the law was fitted to."
        )
        return table(header, rows, caption)


def _law(name, given):
    """A checked law as it travels."""
    if not isinstance(given, dict) or not {"law", "parameters", "tokens"} <= set(given) <= _KEYS:
        raise ValueError(
            f"law {name!r} is {given!r}, expected a dict of law, parameters and tokens (pairs: the range of its runs), "
            "and perhaps unit and note"
        )
    law = given["law"]
    if len(law.factors) != 2 or min(*law.factors, *law.exponents) <= 0:
        raise ValueError(f"law {name!r} is {law}: expected one that falls with parameters and tokens")
    for key in ("parameters", "tokens"):
        if not (len(given[key]) == 2 and 0 < given[key][0] < given[key][1]):
            raise ValueError(f"law {name!r} has {key} {given[key]}, expected the least and the largest of its runs")
    return {
        "name": str(name),
        "floor": float(law.floor),
        "factors": [float(a) for a in law.factors],
        "exponents": [float(b) for b in law.exponents],
        **{key: [float(x) for x in given[key]] for key in ("parameters", "tokens")},
        "unit": given.get("unit", "nats a token"),
        "note": given.get("note", ""),
    }


def _middle(pair):
    return (pair[0] * pair[1]) ** 0.5


def _limits(key, cards, points, first):
    """Least and largest value of a slider: half a decade beyond all that is shown."""
    values = [x for card in cards for x in card[key]] + [m[key] for m in points] + [first]
    return [min(values) / 10**0.5, max(values) * 10**0.5]
