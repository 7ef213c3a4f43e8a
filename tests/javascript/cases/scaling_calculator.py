"""Terms, losses and optima of scaling laws, and where they say nothing."""

from d2lmini.figures import ScalingCalculator
from d2lmini.scaling import PowerLaw, compute_optimal
from d2lmini.scaling.literature import PublishedModel

LAW = PowerLaw(1.5, (400.0, 600.0), (0.34, 0.28))
GIVEN = {"law": LAW, "parameters": (1e6, 1e9), "tokens": (1e7, 1e11)}
CHOICES = ("ours", 1e8, 2e9), ("ours", 1e5, 1e12), ("Chinchilla, approach 3", 5e9, 3e11), ("ours", 10.0, 20.0)


def cases():
    models = [PublishedModel("one", 2020, 1e8, 2e9, "x"), PublishedModel("other", 2021, 5e9, 3e11, "x")]
    figure = ScalingCalculator.published({"ours": GIVEN}, models)
    for name, N, D in CHOICES:
        told = figure.reckon(name, N, D)
        best, cards = told["optimum"], figure.state["laws"]
        at = [card["name"] for card in cards].index(name)
        card = cards[at]
        yield "flops", [N, D], told["flops"]
        yield "terms", [card, N, D], list(told["terms"])
        yield "loss", [card, N, D], told["loss"]
        yield "optimum", [card, told["flops"]], [best.parameters, best.tokens]
        yield "outside", [card, N, D], told["outside"]
        state = {**{key: figure.state[key] for key in ("laws", "models", "limits")}, "law": at}
        found = {
            "law": card, "C": told["flops"], "N": N, "D": D, "L": told["loss"], "bestN": best.parameters,
            "bestD": best.tokens, "least": best.loss, "mine": told["outside"], "ideals": _outside(card, best),
            "known": not _outside(card, best, 100),
            "chosen": next((i for i, m in enumerate(models) if (m.parameters, m.tokens) == (N, D)), -1),
        }  # fmt: skip
        yield "reckon", [{**state, "parameters": N, "tokens": D}], found
    tiny = compute_optimal(LAW, 8.0)  # a budget for no more than one parameter
    yield "optimum", [figure.state["laws"][-1], 8.0], [tiny.parameters, tiny.tokens]
    yield from _along_a_budget()
    for x, short in ((5, 5), (-1, 0), (12, 10)):
        yield "inside", [x, [0, 10]], short
    for x, short, long in (
        (1.4e12, "1.4T", "1.40 × 10¹²"),
        (999.6e6, "1B", "1.00 × 10⁹"),
        (70e9, "70B", "7.00 × 10¹⁰"),
        (3.2e21, "3.20 × 10²¹", "3.20 × 10²¹"),
        (20, "20", "2.00 × 10¹"),
        (0.05, "0.05", "5.00 × 10⁻²"),
    ):
        yield "count", [x], short
        yield "power", [x], long
    for x in (20.0, 0.0512345, 123.456):
        yield "cut", [x], f"{x:.3g}"


def _outside(card, best, factor=1):
    sizes = {"parameters": best.parameters, "tokens": best.tokens}
    return [key for key, x in sizes.items() if not card[key][0] / factor <= x <= card[key][1] * factor]


def _along_a_budget():
    """Wanted, and the nearest N with which D = C/6/N is within its limits, and N too where the budget has one."""
    limits = {"parameters": [10, 1000], "tokens": [100, 1000]}
    for C, wanted, nearest in ((6e4, 50, 50), (6e4, 1, 10), (6e4, 900, 100), (6e5, 20, 100), (6e5, 5000, 1000)):
        yield "alongBudget", [limits, C, wanted], nearest
    yield "alongBudget", [limits, 6e7, 5], 10_000
