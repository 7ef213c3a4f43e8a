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


def test_the_page_computes_what_the_package_computes(open_figure):
    shown = figure()
    page = open_figure(shown)

    def number(text):
        return None if text == "no key" else float(text.replace("−", "-"))

    settings = [("sinusoidal", 0, 8, 4, 9, True), ("sinusoidal", 9, 12, 2, 9, False), ("rotary", 5, 6, 1, 9, True)]
    settings += [("rotary", 2, 12, 4, 9, False), ("t5", 3, 8, 4, 3, True), ("t5", 7, 4, 4, 12, False)]
    settings += [("none", 1, 2, 4, 9, True)]
    for encoding, position, size, log_base, distance, with_words in settings:
        page.get_by_role("combobox", name="encoding").select_option(encoding)
        set_range(page, "position of the query", position)
        set_range(page, "features", size)
        if encoding == "t5":
            set_range(page, "largest distance", distance)
        elif encoding != "none":
            set_range(page, "base", log_base)
        page.get_by_role("checkbox", name="words count").set_checked(with_words)
        changes = dict(encoding=encoding, position=position, num_hiddens=size, max_distance=distance, words=with_words)
        found = shown.by_offset(**changes, base=10.0**log_base)
        cells = [number(text) for text in page.locator("tbody td").all_inner_texts()]
        for row in range(3):
            expected = [found[offset][row] for offset in range(-5, 6)]
            assert cells[11 * row : 11 * row + 11] == pytest.approx(expected, abs=6e-3), (encoding, row)
        # the heat map: how strongly each cell of the third row is painted
        table = shown.encoded(**changes, base=10.0**log_base)
        width = table.shape[1]
        painted = (
            page.locator("svg")
            .first.locator("rect")
            .evaluate_all(
                "(nodes, [from, to]) => nodes.slice(from, to).map((n) => Number(n.getAttribute('fill-opacity')))",
                [2 * width, 3 * width],
            )
        )
        row = table[2].double() if encoding != "t5" else 2 * table[2].double() / (BUCKETS - 1) - 1
        assert painted == pytest.approx(row.abs().tolist(), abs=6e-4)

    set_range(page, "offset of the key", 2)
    note = page.locator(".d2lmini-note").inner_text()
    assert "Query at 1, key at 3" in note and "the same everywhere" in note
    page.get_by_role("slider", name="position of the query").focus()
    page.keyboard.press("End")
    assert "There is no key at position 11" in page.locator(".d2lmini-note").inner_text()
    assert page.log["errors"] == []


def test_the_keyboard_reaches_a_table_that_is_wider_than_the_screen(open_figure):
    page = open_figure(figure(), width=1280)
    box = page.locator(".d2lmini-scroll")
    assert box.evaluate("node => node.tabIndex") == -1  # nothing to scroll to, nothing to stop at
    page.set_viewport_size({"width": 320, "height": 900})
    page.wait_for_function("document.querySelector('.d2lmini-scroll').tabIndex === 0")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.d2lmini-scroll').scrollLeft > 0")
