"""The scaling calculator: its page reckons as the package does, and says where a law is a guess."""

import math

import pytest

from d2lmini.figures import ScalingCalculator
from d2lmini.figures.scaling_calculator import CHINCHILLA_RUNS
from d2lmini.scaling import PowerLaw, compute_optimal
from d2lmini.scaling.literature import PUBLISHED_LAWS, PUBLISHED_MODELS, PublishedModel

LAW = PowerLaw(1.5, (400.0, 600.0), (0.34, 0.28))
GIVEN = {"law": LAW, "parameters": (1e6, 1e9), "tokens": (1e7, 1e11)}
ONE, OTHER = PublishedModel("one", 2020, 1e8, 2e9, "x"), PublishedModel("other", 2021, 5e10, 3e11, "x", active=5e9)
UNKNOWN = PublishedModel("unknown", 2019, 1e9, None, "x")


def test_it_reckons_with_the_laws_of_the_package():
    figure = ScalingCalculator({"ours": GIVEN}, [ONE, OTHER, UNKNOWN])
    told = figure.reckon("ours", 1e8, 2e9)
    assert told["flops"] == 6 * 1e8 * 2e9 and told["ratio"] == 20 and told["outside"] == []
    assert sum(told["terms"]) == pytest.approx(told["loss"]) == pytest.approx(LAW(1e8, 2e9))
    assert told["optimum"] == compute_optimal(LAW, told["flops"]) and told["optimum"].loss <= told["loss"]
    assert figure.reckon("ours", 1e5, 1e12)["outside"] == ["parameters", "tokens"]
    # a model whose tokens are not known has no place; of a mixture of experts the active parameters count
    assert [(m["name"], m["parameters"]) for m in figure.state["models"]] == [("one", 1e8), ("other", 5e9)]


def test_the_published_laws_and_models():
    figure = ScalingCalculator.published({"ours": GIVEN}, law="ours", parameters=2e7)
    assert figure.state["law"] == 2 and figure.state["parameters"] == 2e7 and figure.state["tokens"] == 1e9
    assert figure.laws["Chinchilla, approach 3"] == PUBLISHED_LAWS["chinchilla"].law
    assert [card["parameters"] for card in figure.state["laws"][:2]] == [list(CHINCHILLA_RUNS["parameters"])] * 2
    known = {m.name for m in PUBLISHED_MODELS if m.tokens is not None}
    assert {m["name"] for m in figure.state["models"]} == known
    for m in figure.state["models"]:  # all are on the page
        for key in ("parameters", "tokens"):
            low, high = figure.state["limits"][key]
            assert low < m[key] < high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"laws": {}}, "at least one law"),
        ({"law": "theirs"}, "no law 'theirs', only ours"),
        ({"laws": {"ours": {**GIVEN, "law": PowerLaw(1.0, (2.0,), (0.1,))}}}, "falls with parameters and tokens"),
        ({"laws": {"ours": {"law": LAW}}}, "expected a dict of law, parameters and tokens"),
        ({"laws": {"ours": {**GIVEN, "tokens": (5, 1)}}}, "the least and the largest"),
        ({"models": [ONE, ONE]}, "the same name"),
        ({"parameters": -1}, "expected numbers above 0"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ScalingCalculator(**{"laws": {"ours": GIVEN}, **arguments})


def test_the_fallback_has_every_model():
    text = ScalingCalculator({"ours": GIVEN}, [ONE, OTHER, UNKNOWN]).fallback()
    assert text.count("<tr>") == 4 and "unknown" not in text
    assert f"<td>{LAW(1e8, 2e9):.3f}</td>" in text and f"{LAW(5e9, 3e11):.3f} (outside)" in text


def number(text):
    """Of a cell: 1.2B, 3.4 × 10²¹, 20."""
    head, _, tail = text.partition(" × 10")
    if tail:
        return float(head) * 10.0 ** int(tail.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")))
    return float(text.rstrip("KMBT")) * 10.0 ** ({"K": 3, "M": 6, "B": 9, "T": 12}.get(text[-1], 0))


def test_the_page_reckons_as_the_package_does(open_figure):
    figure = ScalingCalculator.published({"ours": GIVEN}, [ONE, OTHER], law="ours", parameters=1e8, tokens=2e9)
    page = open_figure(figure, width=390)
    rows, note = page.locator("tbody tr"), page.locator(".d2lmini-note")

    def column(i):
        return [number(row.locator("td").nth(i).text_content()) for row in rows.all()]

    def same(law, N, D):
        told = figure.reckon(law, N, D)
        best = told["optimum"]
        assert column(0)[:4] == pytest.approx([told["flops"], N, D, told["ratio"]], rel=6e-3)
        assert column(0)[4:] == pytest.approx([*told["terms"], told["loss"]], abs=6e-4)
        assert column(1)[:4] == pytest.approx(
            [told["flops"], best.parameters, best.tokens, best.tokens / best.parameters], rel=6e-3
        )
        assert column(1)[7] == pytest.approx(best.loss, abs=6e-4)
        return told

    same("ours", 1e8, 2e9)
    assert "within the range" in note.inner_text() and "one: the loss is what this law expects" in note.inner_text()
    # wherever a loss is printed it says whose it is
    assert rows.locator("th").last.text_content() == "loss by this law"
    assert "loss by this law, nats a token" in page.locator("svg").first.text_content()
    choose = page.get_by_role("combobox")
    assert choose.nth(1).input_value() == "0"  # the model that has these numbers

    choose.nth(1).select_option("1")
    told = same("ours", 5e9, 3e11)
    assert "other (N: the parameters that one token meets; the law is of dense models)" in note.inner_text()
    assert told["outside"] == ["parameters", "tokens"]
    assert "your parameters and tokens" in note.inner_text() and "a guess" in note.inner_text()
    for i, law in enumerate(figure.laws):
        choose.nth(0).select_option(str(i))
        same(law, 5e9, 3e11)

    # the budget stays on the way to the optimum, and there nothing is left to gain
    before = column(0)[0]
    page.get_by_role("button", name="go to the optimum").click()
    assert column(0)[0] == pytest.approx(before, rel=1e-6) and column(0) == column(1)
    assert "its loss is 0.000 lower" in note.inner_text()

    # along the budget by keyboard
    page.get_by_label("your choice, along the budget").focus()
    page.keyboard.press("ArrowRight")
    assert column(0)[0] == pytest.approx(before, rel=6e-3) and column(0)[1] > column(1)[1]
    assert column(0)[7] >= column(1)[7]

    # tokens follow the budget, parameters stay
    N, budget = column(0)[1], page.get_by_label("budget in FLOPs")
    budget.focus()
    page.keyboard.press("ArrowRight")
    assert column(0)[0] > before and column(0)[1] == N

    page.get_by_role("button", name="Reset").click()
    same("ours", 1e8, 2e9)
    assert page.log["errors"] == []


def test_of_what_is_far_from_its_runs_a_law_says_nothing(open_figure):
    small = {"law": LAW, "parameters": (1e3, 1e5), "tokens": (1e4, 1e6)}
    page = open_figure(ScalingCalculator({"ours": small}, [OTHER], parameters=5e9, tokens=3e11))
    columns = page.locator("tbody tr").evaluate_all("all => all.map((row) => row.children[2].textContent)")
    assert set(columns[1:]) == {"no claim"} and columns[0] != "no claim"
    assert "more than 100 times outside" in page.locator(".d2lmini-note").inner_text()
    # what leaves the axes is cut off at them, and a mark outside is not drawn
    assert page.locator("svg path[clip-path]").count() == 3
    hidden = page.locator("svg").last.locator("path[visibility=hidden]").count()
    least, most = (page.get_by_label("tokens D").get_attribute(end) for end in ("min", "max"))
    best = compute_optimal(LAW, 6 * 5e9 * 3e11).tokens
    assert (hidden == 1) == (not float(least) <= math.log10(best) <= float(most))
