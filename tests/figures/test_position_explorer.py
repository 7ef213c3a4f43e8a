"""The position explorer of chapter 06: its numbers are the package's, in Python and on the page."""

import math

import pytest
import torch
from browser_actions import set_range

from d2lmini.figures import PositionExplorer
from d2lmini.figures.position_explorer import ENCODINGS
from d2lmini.position import RelativePositionBias, sinusoidal
from d2lmini.rotation import rotary

BUCKETS = 8


def figure(**changes):
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 12, generator=generator, dtype=torch.float64)
    bias = torch.randn(BUCKETS, generator=generator, dtype=torch.float64)
    settings = dict(query=query, key=key, bias=bias, num_positions=10, position=4, num_hiddens=8)
    return PositionExplorer(**{**settings, **changes})


def words(shown, size):
    return [torch.tensor(shown.state[name][:size], dtype=torch.float64) for name in ("query", "key")]


def test_the_table_of_sines_is_the_package_s():
    torch.testing.assert_close(figure().encoded().float(), sinusoidal(10, 8))
    assert not torch.allclose(figure().encoded(base=100.0).float(), sinusoidal(10, 8), atol=1e-2)


def test_the_table_of_turns_holds_cosine_and_sine():
    table = figure(encoding="rotary").encoded(base=50.0)
    for i, feature in ((0, 0), (3, 2), (9, 7)):
        angle = i * 50.0 ** (-(feature // 2 * 2) / 8)
        assert table[i, feature].item() == pytest.approx(math.sin(angle) if feature % 2 else math.cos(angle))


def test_the_buckets_are_those_of_t5():
    offsets = torch.arange(10) - torch.arange(10)[:, None]
    for distance in (3, 5, 16):
        expected = RelativePositionBias(1, BUCKETS, distance).bucket(offsets)
        assert torch.equal(figure(encoding="t5").encoded(max_distance=distance), expected)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_scores_are_what_a_loop_over_pairs_gives(encoding):
    shown = figure(encoding=encoding, base=100.0, max_distance=6)
    q, k = words(shown, 8)
    bucket = RelativePositionBias(1, BUCKETS, 6).bucket
    scores = shown.scores()
    P = shown.encoded(encoding="sinusoidal")
    for i in range(10):
        for s in range(10):
            if encoding == "sinusoidal":
                expected = (q + P[i]) @ (k + P[s])
            elif encoding == "rotary":
                expected = rotary(q[None], i, base=100.0)[0] @ rotary(k[None], s, base=100.0)[0]
            else:
                expected = q @ k
            expected = expected.item() / 8**0.5
            if encoding == "t5":
                expected += shown.state["bias"][bucket(torch.tensor(s - i)).item()]
            assert scores[i, s].item() == pytest.approx(expected, abs=1e-5)


def test_what_depends_on_the_offset_alone():
    spread = {}
    for name in ENCODINGS:
        spread[name] = max(high - low for _, low, high in figure().by_offset(encoding=name).values())
    assert spread["sinusoidal"] > 0.5 and max(spread[name] for name in ("rotary", "t5", "none")) < 1e-6
    bare = figure().by_offset(words=False)
    assert max(high - low for _, low, high in bare.values()) < 1e-9  # sines alone do, words spoil it


def test_the_fallback_shows_scores_and_settings():
    shown = figure()
    text, found = shown.fallback(), shown.by_offset()
    assert "encoding sinusoidal, 8 features, base 10000, query at position 4 of 10" in text
    spread = max(high - low for _, low, high in found.values())
    assert f"one offset has scores up to {spread:.2f} apart." in text
    assert "From all positions, the offset alone decides." in figure(encoding="rotary").fallback()
    assert f"<td>{found[2][0]:.2f}</td><td>{found[2][1]:.2f}</td>" in text
    assert "no key" in text and found[-5][0] is None and found[-4][0] is not None
    assert len(figure()._repr_html_()) < 40_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": torch.zeros(10)}, r"got \(12,\), \(10,\)"),
        ({"query": torch.zeros(5), "key": torch.zeros(5)}, "D even"),
        ({"encoding": "alibi"}, "encoding is one of sinusoidal, rotary, t5, none, not 'alibi'"),
        ({"position": 10}, "out of range for 10 positions"),
        ({"offset": -10}, "out of range"),
        ({"num_hiddens": 7}, "even and from 2 to 12, not 7"),
        ({"num_hiddens": 14}, "even and from 2 to 12, not 14"),
        ({"base": 1.0}, "above 1"),
        ({"bias": torch.full((8,), float("nan"))}, "finite"),
        ({"max_distance": 2, "encoding": "t5"}, "max_distance"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


DRAWN = """svg => {
  const points = (node) => node.getAttribute('points').split(' ').map((pair) => pair.split(',').map(Number));
  const scale = [...svg.querySelectorAll('g text')].map((node) => [node.textContent, +node.getAttribute('y') - 4]);
  return { scale, own: points(svg.querySelector('polyline')), band: points(svg.querySelector('polygon')) };
}"""


def number(text):
    return float(text.replace("−", "-"))


def drawn(page):
    """The scores that the plot shows, by its own scale: of the line, and the greatest and least of the band."""
    found = page.get_by_label("score against offset").evaluate(DRAWN)
    (one, y1), (two, y2) = found["scale"][0], found["scale"][-1]
    one, two = number(one), number(two)
    own, band = ([one + (y - y1) * (two - one) / (y2 - y1) for _, y in found[key]] for key in ("own", "band"))
    return own, band[: len(band) // 2], band[len(band) // 2 :][::-1]


@pytest.mark.parametrize(
    "changes",
    [
        dict(encoding="sinusoidal", position=9, words=False, num_hiddens=12, base=100.0),
        dict(encoding="rotary", position=5, num_hiddens=6, base=10.0),
        dict(encoding="t5", position=3, max_distance=5),
    ],
)
def test_the_page_computes_what_the_package_computes(open_figure, changes):
    fixed = {name: value for name, value in changes.items() if name in ("num_hiddens", "base", "max_distance")}
    shown = figure(**fixed)
    page = open_figure(shown)
    page.get_by_role("combobox", name="encoding").select_option(changes["encoding"])
    set_range(page, "query's position", changes["position"])
    page.get_by_role("checkbox", name="with words").set_checked(changes.get("words", True))
    found, N, position = shown.by_offset(**changes), 10, changes["position"]
    own, high, low = drawn(page)
    assert own == pytest.approx([found[s - position][0] for s in range(N)], abs=2e-3)
    assert low == pytest.approx([found[offset][1] for offset in range(1 - N, N)], abs=2e-3)
    assert high == pytest.approx([found[offset][2] for offset in range(1 - N, N)], abs=2e-3)

    # the heat map: how strongly each cell of the third row is painted
    table = shown.encoded(**changes)
    width = table.shape[1]
    opacities = "(nodes, [from, to]) => nodes.slice(from, to).map((n) => Number(n.getAttribute('fill-opacity')))"
    cells = page.get_by_label("the encoding, a row for each position").locator("rect")
    row = table[2].double() if changes["encoding"] != "t5" else 2 * table[2].double() / (BUCKETS - 1) - 1
    assert cells.evaluate_all(opacities, [2 * width, 3 * width]) == pytest.approx(row.abs().tolist(), abs=6e-4)

    for offset in (-2, 0, 8):
        set_range(page, "offset of the key", offset)
        note, (here, least, greatest) = page.locator(".d2lmini-note").inner_text(), found[offset]
        texts = [f"{abs(x) if abs(x) < 0.005 else x:.2f}".replace("-", "−") for x in (here or 0, least, greatest)]
        assert f"score {texts[0]}." in note if here is not None else f"no key at position {position + offset}." in note
        same = greatest - least < 1e-9
        assert f"is the same, {texts[1]}." in note if same else f"go from {texts[1]} to {texts[2]}." in note
        assert page.get_by_text(f"offset {offset}".replace("-", "−"), exact=True).count() == 1
    assert page.log["errors"] == []


def chapter():
    """As chapter 06 calls it."""
    query, key = torch.randn(2, 32, generator=torch.Generator().manual_seed(5))
    slope = -0.3 * torch.arange(8.0)
    return PositionExplorer(query, key, torch.cat([slope, slope - 0.5]), num_hiddens=16)


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_fits(open_figure, width):
    """Sines with words: a wide band around the line, and four controls; no text touches another in any encoding."""
    page = open_figure(chapter(), width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    _, high, low = drawn(page)
    assert sum(top - foot for top, foot in zip(high, low, strict=True)) / len(high) > 1
    assert page.locator("input, select").count() == 4
    plot = page.get_by_label("score against offset")
    for encoding in ENCODINGS:
        page.get_by_role("combobox", name="encoding").select_option(encoding)
        assert page.locator(".d2lmini-figure").bounding_box()["height"] <= (900 if width == 390 else 520)
        for offset in (-31, 0, 31):
            set_range(page, "offset of the key", offset)
            boxes, frame = [text.bounding_box() for text in plot.locator("text").all()], plot.bounding_box()
            for i, a in enumerate(boxes):
                assert frame["x"] <= a["x"] and a["x"] + a["width"] <= frame["x"] + frame["width"]
                for b in boxes[:i]:
                    apart = (
                        a["x"] >= b["x"] + b["width"],
                        b["x"] >= a["x"] + a["width"],
                        a["y"] >= b["y"] + b["height"],
                        b["y"] >= a["y"] + a["height"],
                    )
                    assert any(apart), (encoding, offset, a, b)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.log["errors"] == []


def test_few_positions_have_few_offsets():
    explorer = PositionExplorer(torch.ones(16), torch.ones(16), torch.zeros(8), num_positions=4, position=1, offset=1)
    table = explorer.fallback()
    assert '<th scope="row">-3' in table and '<th scope="row">-4' not in table
