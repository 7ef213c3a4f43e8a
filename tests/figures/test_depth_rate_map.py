"""The map of depth and learning rate: what the record says, counted once in Python, and shown cell by cell."""

import copy
import json
import math
import re
from itertools import pairwise

import pytest
import torch
from examples import depth_record

from d2lmini.experiments import depth_by_rate
from d2lmini.figures import DepthRateMap
from d2lmini.figures.depth_rate_map import VERDICTS, in_short
from d2lmini.results import as_json

GOOD, BAD = "pre-norm", "post-norm, warm-up"
RATES = (0.001, 0.01, 1e9)


def record(seeds=1):
    """Two recipes at two depths and three rates: one trains here and there, the other nowhere."""
    config = {"depths": [1, 8], "rates": list(RATES), "steps": 40, "points": 4}
    loss = {GOOD: [[2.5, 2.25, math.nan], [2.75, 3.25, 5.5]], BAD: [[3.25, 3.4, None], [3.3, None, None]]}
    verdict = {
        GOOD: [["trains", "trains", "diverged"], ["trains", "stuck", "diverged"]],
        BAD: [["stuck", "stuck", "diverged"], ["stuck", "diverged", "diverged"]],
    }
    steps = {GOOD: [[40, 40, 25], [40, 40, 40]], BAD: [[40, 40, 0], [40, 40, 12]]}
    curves = {}
    for name, rows in steps.items():
        for depth, row in zip(config["depths"], rows, strict=True):
            for rate, made in zip(RATES, row, strict=True):
                curves[f"{name}, {depth}, {rate:g}"] = [4.0 - 0.1234567 * i for i in range(-(-made // 10))]
    curves[f"{GOOD}, 1, 1e+09"] = [4.5, 2500.0, math.inf]
    metrics = {"loss": loss, "verdict": verdict, "steps": steps}
    metrics = {key: {name: [rows] * seeds for name, rows in found.items()} for key, found in metrics.items()}
    return {"config": config, "metrics": {**metrics, "unigram": 3.3, "uniform": 4.2}, "curves": curves}


def test_the_cells_are_counted():
    figure = DepthRateMap(record())
    assert figure.reckon(GOOD) == {"settings": 6, "trains": 3, "best": [0.01, 0.001], "largest": 0.001, "deepest": 8}
    nothing = {"settings": 6, "trains": 0, "best": [None, None], "largest": None, "deepest": None}
    assert figure.reckon(BAD) == nothing
    good, bad = figure.state["recipes"]
    assert good["told"] == "3 of 6 settings train. At 8 blocks, the most, the largest rate that does is 0.001."
    assert bad["told"] == "None of 6 settings trains."
    assert good["best"] == [1, 0] and bad["best"] == [-1, -1]
    assert good["loss"] == [[2.5, 2.25, None], [2.75, 3.25, 5.5]]  # what is not finite is drawn as diverged
    assert [[VERDICTS[n] for n in row] for row in good["verdict"]] == record()["metrics"]["verdict"][GOOD][0]
    assert good["curves"][1][0] == [4.0, 3.88, 3.75, 3.63] and good["curves"][0][2] == [4.5, 2500]
    assert "agree" not in good and figure.state["every"] == 10

    shallow = record()
    shallow["metrics"]["verdict"][GOOD][0][1] = ["stuck"] * 3
    assert DepthRateMap(shallow).state["recipes"][0]["told"] == (
        "2 of 6 settings train. At 8 blocks, the most, no rate does; the deepest that trains has 1 block."
    )


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({}, (GOOD, "", 1, 0)),  # the largest rate that trains at the greatest depth
        ({"depth": 1}, (GOOD, "", 0, 1)),
        ({"recipe": BAD}, (BAD, "", 1, 0)),
        ({"recipe": BAD, "other": GOOD, "depth": 1, "rate": 1e9}, (BAD, GOOD, 0, 2)),
    ],
)
def test_what_is_shown_first(options, first):
    state = DepthRateMap(record(), **options).state
    assert tuple(state[key] for key in ("recipe", "other", "depth", "rate")) == first


def test_it_takes_what_the_experiment_gives():
    config = depth_by_rate.PRESETS["smoke"]
    found = depth_by_rate.run(config, torch.device("cpu"))
    figure = DepthRateMap(found, config)
    written = json.loads(json.dumps({**found, "config": as_json(config)}))
    assert DepthRateMap(written).state == figure.state
    for name, share in found["metrics"]["trains"].items():
        told = figure.reckon(name)
        assert told["trains"] / told["settings"] == share and told["deepest"] == found["metrics"]["deepest"][name]
    for card in figure.state["recipes"]:
        assert [row[1] for row in card["verdict"]] == [2, 2] and [row[1] for row in card["loss"]] == [None, None]


def test_long_curves_are_joined_and_seeds_are_counted():
    given = record(seeds=3)
    given["config"]["points"], given["config"]["steps"] = 40, 80
    for name, curve in given["curves"].items():
        given["curves"][name] = [float(i) for i in range(40)] if len(curve) == 4 else curve
    seeds = given["metrics"]["verdict"][GOOD]
    seeds[2] = [["stuck", *seeds[0][0][1:]], seeds[0][1]]
    figure = DepthRateMap(given)
    assert figure.state["every"] == 4 and figure.state["seeds"] == 3
    assert figure.state["recipes"][0]["curves"][0][0] == [2 * i + 0.5 for i in range(20)]
    assert figure.state["recipes"][0]["agree"] == [[2, 3, 0], [3, 0, 0]]


@pytest.mark.parametrize(
    ("rate", "short"),
    [
        (3e-4, "0.0003"),
        (1e-3, "0.001"),
        (0.0025, "0.0025"),
        (0.1, "0.1"),
        (3e-5, "3 × 10⁻⁵"),
        (1e-9, "10⁻⁹"),
        (2.0, "2"),
        (1e9, "10⁹"),
    ],
)
def test_how_a_rate_is_written(rate, short):
    assert in_short(rate) == short


def spoilt(path, value):
    given = copy.deepcopy(record())
    *way, last = path
    inside = given
    for key in way:
        inside = inside[key]
    inside[last] = value
    return given


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ({"metrics": {}, "curves": {}}, {}, "lacks depths, points, rates, steps: expected one of depth_by_rate"),
        ({"config": record()["config"]}, {}, "lacks curves, metrics"),
        (spoilt(["config", "rates"], [0.01, 0.001, 1e9]), {}, "rates are .* that rise"),
        (spoilt(["config", "depths"], [1, 1]), {}, "depths are .* that rise"),
        (spoilt(["config", "depths"], [1, 4, 8]), {}, "the loss of 'pre-norm' is not of 3 depths and 3 rates"),
        (spoilt(["metrics", "loss"], {}), {}, "lack recipes"),
        (spoilt(["metrics"], {"loss": {GOOD: []}}), {}, "lack steps, uniform, unigram, verdict"),
        (spoilt(["metrics", "steps", BAD], [[[1, 2, 3]]]), {}, "the steps of 'post-norm, warm-up' is not of 2 depths"),
        (spoilt(["metrics", "verdict", GOOD, 0, 0, 0], "fine"), {}, "the verdict 'fine', expected trains, stuck"),
        (spoilt(["curves"], {}), {}, "no curve 'pre-norm, 1, 0.001'"),
        (record(), {"recipe": "ante-norm"}, "no recipe 'ante-norm', only pre-norm; post-norm, warm-up"),
        (record(), {"other": "ante-norm"}, "no recipe 'ante-norm'"),
        (record(), {"depth": 4}, "no depth 4, only 1, 8"),
        (record(), {"rate": 0.003}, "no rate 0.003, only 0.001, 0.01, 1e"),
    ],
)
def test_bad_input_is_refused(given, options, message):
    with pytest.raises(ValueError, match=message):
        DepthRateMap(given, **options)


def test_the_fallback_has_every_cell():
    text = DepthRateMap(record()).fallback()
    row = '<tr><th scope="row">1</th><td>2.5</td><td>★ 2.25 best</td><td>✕ diverged</td></tr>'
    assert row in text and "<td>○ 3.25 stuck</td><td>✕ 5.5 diverged</td>" in text
    assert text.count("<table>") == 2 and "rate 10⁹" in text
    assert "pre-norm: loss in nats a character. 3 of 6 settings train." in text


def test_it_is_small():
    shown = DepthRateMap(depth_record())
    assert len(json.dumps(shown.state)) < 30_000 and len(shown._repr_html_()) < 62_000


def read(page, figure, cards, d, n, chosen):
    """Asks that the page says what the record does, of the recipes that are shown and the cell that is pointed at."""
    state = figure.state
    tables = page.locator("table:visible")
    assert tables.count() == len(cards)
    for i, card in enumerate(cards):
        assert page.locator("figure:visible > figcaption").nth(i).inner_text() == card["told"]
        for (d2, row), n2 in ((row, n2) for row in enumerate(card["verdict"]) for n2 in range(len(state["rates"]))):
            cell = tables.nth(i).locator(f"[data-cell='{d2} {n2}']")
            loss, kind, best = card["loss"][d2][n2], VERDICTS[row[n2]], card["best"][d2] == n2
            said = cell.get_attribute("aria-label")
            assert cell.get_attribute("data-verdict") == kind and f": {kind}" in said
            assert f", {state['depths'][d2]} block" in said and f"rate {state['rates'][n2]}:" in said
            text = cell.inner_text().split()
            sign = "★" if best else state["signs"][row[n2]]
            word = kind if kind != "trains" else "best" if best else ""
            assert text == [part for part in (sign, "" if loss is None else f"{loss:.2f}", word) if part]
            assert cell.get_attribute("aria-pressed") == str([d2, n2] == chosen).lower()
        note = page.locator(".d2lmini-note > div").nth(i).inner_text()
        assert note.startswith(f"{card['name']}: it ")
        title = page.locator("figure:visible").last.locator("div").first.inner_text()
        assert title.startswith(f"{state['depths'][d]} block") and title.endswith(f"rate {state['rates'][n]}")
        kind, loss = VERDICTS[card["verdict"][d][n]], card["loss"][d][n]
        assert {"trains": "it trains.", "stuck": "it is stuck.", "diverged": "it diverged."}[kind] in note
        group = page.locator("g[data-recipe]").nth(i)
        assert group.get_attribute("data-recipe") == card["name"]
        assert group.get_attribute("data-points") == str(len(card["curves"][d][n]))
        assert group.locator("[data-broken]").count() == (loss is None)
        if kind != "diverged":
            off = loss - state["unigram"]
            far = f"{abs(off):.2f} {'below' if off < 0 else 'above'}" if abs(off) >= 0.005 else "just"
            assert f"its loss is {loss:.2f}, {far} that of" in note
            assert ("No other rate does better" in note) == (card["best"][d] == n)
    assert page.log["errors"] == []


def test_each_cell_is_told(open_figure):
    figure = DepthRateMap(record(), depth=1, rate=0.001)
    page = open_figure(figure, width=390)
    good, bad = figure.state["recipes"]
    read(page, figure, [good], 0, 0, [0, 0])
    for name, card in ((BAD, bad), (GOOD, good)):
        page.get_by_role("combobox", name="recipe").select_option(name)
        for d in range(2):
            for n in range(3):
                page.locator(f"table:visible [data-cell='{d} {n}']").click()
                read(page, figure, [card], d, n, [d, n])
    note = page.locator(".d2lmini-note")
    assert "its loss is 5.50, worse than at the first step and than 4.20" in note.inner_text()
    page.locator("table:visible [data-cell='0 2']").click()
    assert "In step 26 of 40 its loss or its gradient is not finite." in note.inner_text()
    assert "up to 2,500." in page.locator("figure:visible > figcaption").last.inner_text()
    page.get_by_role("combobox", name="recipe").select_option(BAD)
    page.locator("table:visible [data-cell='1 1']").click()
    assert "its loss on the validation text is not finite" in note.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_two_recipes_stand_beside_each_other(open_figure):
    figure = DepthRateMap(record(), rate=0.01)
    page = open_figure(figure)
    good, bad = figure.state["recipes"]
    beside = page.get_by_role("combobox", name="beside it")
    beside.select_option(BAD)
    read(page, figure, [good, bad], 1, 1, [1, 1])
    page.locator("table:visible").nth(1).locator("[data-cell='0 2']").click()  # one cell is chosen, in both
    read(page, figure, [good, bad], 0, 2, [0, 2])
    beside.select_option(GOOD)  # a recipe is not compared with itself
    read(page, figure, [good], 0, 2, [0, 2])
    beside.select_option(label="nothing")
    read(page, figure, [good], 0, 2, [0, 2])


def test_the_pointer_looks_and_keys_choose(open_figure):
    figure = DepthRateMap(record())
    page = open_figure(figure)
    cards = figure.state["recipes"][:1]
    page.locator("table:visible [data-cell='0 2']").hover()
    read(page, figure, cards, 0, 2, [1, 0])
    page.mouse.move(1, 1)
    read(page, figure, cards, 1, 0, [1, 0])

    page.get_by_role("combobox", name="beside it").focus()
    page.keyboard.press("Tab")
    for key, cell in [("ArrowRight", [1, 1]), ("ArrowUp", [0, 1]), ("ArrowUp", [0, 1]), ("ArrowRight", [0, 2]),
                      ("ArrowRight", [0, 2]), ("ArrowDown", [1, 2]), ("ArrowLeft", [1, 1])]:  # fmt: skip
        page.keyboard.press(key)
        read(page, figure, cards, *cell, cell)
    page.get_by_role("button", name="Reset").click()
    read(page, figure, cards, 1, 0, [1, 0])


def test_of_several_seeds_it_says_how_many_train(open_figure):
    page = open_figure(DepthRateMap(record(seeds=2)))
    assert page.locator(".d2lmini-note").inner_text().endswith(" With 2 of 2 seeds it trains.")
    key = page.locator(".d2lmini-key").inner_text()
    assert "Of 2 seeds the first is shown." in key
    assert re.search(r"^The bluer, the lower the loss: 3\.30\s+2\.25, for all recipes alike\. ★ best", key)


def test_where_nothing_learns_nothing_is_shaded(open_figure):
    given = record()
    for cells in (given["metrics"][key] for key in ("loss", "verdict", "steps")):
        del cells[GOOD]
    given["metrics"]["loss"][BAD][0][0][0] = 3.3
    page = open_figure(DepthRateMap(given))
    assert page.locator(".d2lmini-key").inner_text().startswith("★ best")
    shares = page.locator("td.shade").evaluate_all("all => all.map((n) => n.style.getPropertyValue('--w'))")
    assert {float(share) for share in shares} == {0.0} and len(shares) == 3
    assert page.get_by_role("combobox", name="beside it").count() == 0


def test_curves_and_baselines_stand_at_their_heights(open_figure):
    figure = DepthRateMap(record(), rate=0.001)
    page = open_figure(figure)
    heights = page.locator("g[data-recipe] circle").evaluate_all("all => all.map((n) => Number(n.getAttribute('cy')))")
    ticks = page.locator("svg > text[text-anchor=end]").evaluate_all(
        "all => all.map((n) => [n.textContent, Number(n.getAttribute('y')) - 4]).filter(([t]) => /^\\d$/.test(t))"
    )
    (low, y0), (high, y1) = [(float(text), y) for text, y in (ticks[0], ticks[-1])]
    losses = figure.state["recipes"][0]["curves"][1][0]
    assert [low + (y0 - y) * (high - low) / (y0 - y1) for y in heights] == pytest.approx(losses, abs=1e-6)
    dashed = page.locator("svg > path[stroke-dasharray]").evaluate_all(
        "all => all.map((n) => Number(n.getAttribute('d').match(/ ([\\d.]+)H/)[1]))"
    )
    assert [low + (y0 - y) * (high - low) / (y0 - y1) for y in dashed] == pytest.approx([4.2, 3.3], abs=1e-6)
    across = page.locator("g[data-recipe] circle").evaluate_all("all => all.map((n) => Number(n.getAttribute('cx')))")
    gaps = {round(b - a, 3) for a, b in pairwise(across)}
    assert len(gaps) == 1  # stretches of ten steps, each at its middle
