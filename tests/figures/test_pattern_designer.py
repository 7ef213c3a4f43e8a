"""The pattern designer: its patterns, layers and pairs are the package's, in Python and on the page."""

import itertools

import pytest
import torch

from d2lmini.efficient.patterns import count_pairs, interaction_matrices, layers_per_pair, layers_to_reach, random_mask
from d2lmini.figures import PatternDesigner
from d2lmini.figures.packing import unpack
from d2lmini.figures.pattern_designer import OFF, PRESETS

# a part alone, in twos and all together
MIXED = [
    {},
    {"window": 3, "dilation": 4},
    {"block_size": 5, "num_global": 3},
    {"window": None, "dilation": 3, "block_size": 4, "num_global": 6},
    {"window": 2, "every": 5, "num_random": 1},
    {"window": 4, "dilation": 2, "block_size": 7, "num_global": 2, "every": 8, "num_random": 6},
]


def generator(seed):
    return torch.Generator().manual_seed(seed)


def test_the_presets_are_the_matrices_of_the_package():
    designer = PatternDesigner(24, seeds=(5, 6))
    for draw, seed in enumerate(designer.seeds):
        wanted = interaction_matrices(24, generator=generator(seed))
        for name, mask in wanted.items():
            assert torch.equal(designer.mask(**PRESETS[name], draw=draw), mask), name
        assert list(PRESETS)[: len(wanted)] == list(wanted)


def test_changes_stand_in_place_of_the_preset():
    designer = PatternDesigner(16, "local, decoder", window=3)
    assert designer.state["window"] == 3 and designer.state["causal"] is True
    assert designer.mask().sum() == 16 + 15 + 14 and designer.mask(causal=False).sum() == 16 + 30 + 28
    assert designer.state["presets"]["encoder"] == {**OFF, "window": 16}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("parts", MIXED)
def test_pairs_are_counted_without_a_mask(parts, causal):
    small, parts = PatternDesigner(8), {**OFF, **parts, "causal": causal}
    for T in (13, 32):  # of another length than it was designed for
        large, on = PatternDesigner(T), {**parts, "num_random": 0}
        assert small.pairs(T, **on) == count_pairs(large.mask(**on))
    if parts["num_random"]:
        large = PatternDesigner(32, seeds=range(60))
        drawn = torch.tensor([count_pairs(large.mask(**parts, draw=draw)) for draw in range(60)]).double()
        error = drawn.std() / 60**0.5
        assert abs(small.pairs(32, **parts) - drawn.mean()) < 4 * error + 1e-9 and error < 2


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"num_tokens": 7}, ValueError, "num_tokens is 7, expected 8 to 32"),
        ({"num_tokens": 33}, ValueError, "num_tokens is 33"),
        ({"preset": "dense"}, ValueError, "no preset 'dense', only encoder; decoder"),
        ({"stride": 2}, TypeError, "no part 'stride', only window"),
        ({"seeds": ()}, ValueError, "no seeds"),
        ({"lengths": (0,)}, ValueError, r"lengths are \[0\]"),
        ({"lengths": ()}, ValueError, "expected positive"),
        ({"window": 25}, ValueError, "window is 25, expected 0 to 24"),
        ({"dilation": 0}, ValueError, "dilation is 0, expected 1 to 8"),
        ({"block_size": 13}, ValueError, "block_size is 13"),
        ({"num_random": 7}, ValueError, "num_random is 7"),
        ({"layers": 24}, ValueError, "layers is 24, expected 1 to 23"),
        ({"query": 24}, ValueError, "query is 24, expected 0 to 23"),
        ({"draw": 4}, ValueError, "draw is 4, expected 0 to 3"),
    ],
)
def test_bad_input_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        PatternDesigner(**given)


def test_the_fallback_has_the_presets():
    text = PatternDesigner(24, lengths=(1000,)).fallback()
    for name, rest in [
        ("encoder", "<td>576</td><td>100.0%</td><td>1</td><td>1,000.0</td>"),
        ("decoder", "<td>300</td><td>52.1%</td><td>1</td><td>500.5</td>"),
        ("local, encoder", "<td>70</td><td>12.2%</td><td>23</td><td>3.0</td>"),
        ("blocks, encoder", "<td>116</td><td>20.1%</td><td>never</td><td>5.0</td>"),
    ]:
        assert f'<th scope="row">{name}</th>{rest}' in text


def test_it_is_small():
    assert len(PatternDesigner(32)._repr_html_()) < 38_000


CELLS = """all => all.map((n) => [n.dataset.seen === 'true', Number(n.dataset.layers), Number(n.getAttribute('width')),
  n.getAttribute('fill')])"""


class Page:
    """What a reader sees, and what the package says of it."""

    def __init__(self, page, designer):
        self.page, self.designer, self.T = page, designer, designer.state["num_tokens"]
        self.parts = {key: designer.state[key] for key in (*OFF, "draw")}
        self.layers, self.query = designer.state["layers"], designer.state["query"]

    def slide(self, label, value):
        self.page.get_by_role("slider", name=label, exact=True).fill(str(value))

    def agrees(self):
        """All that depends on the pattern, the layers and the query."""
        T, n, q, causal = self.T, self.layers, self.query, self.parts["causal"]
        mask = self.designer.mask(**self.parts)
        needed = layers_per_pair(mask)
        met = (needed >= 0) & (needed <= n)
        seen, layers, widths, fills = zip(*self.page.locator("rect[data-pair]").evaluate_all(CELLS), strict=True)
        assert torch.equal(torch.tensor(seen).view(T, T), mask)
        assert torch.equal(torch.tensor(layers).view(T, T), needed)
        # squares, dots for what has met through others, nothing; the row of the query in its colour
        wide = torch.tensor(widths).view(T, T)
        assert torch.equal(wide > 0, mask | met)
        assert not mask.any() or (wide[mask] > 2 * wide[~mask].max() if (~mask).any() else wide.min() > 0).all()
        assert {i // T for i, fill in enumerate(fills) if fill == "var(--orange)"} == {q}
        for layer in range(n + 1):
            dots = self.page.locator(f"circle[data-layer='{layer}']").evaluate_all("a => a.map((n) => n.dataset.lit)")
            assert [dot == "true" for dot in dots] == ((needed[q] >= 0) & (needed[q] <= n - layer)).tolist()

        wanted = torch.ones(T, T, dtype=torch.bool).tril() if causal else torch.ones(T, T, dtype=torch.bool)
        text, reach = self.page.locator(".d2lmini-note").inner_text(), layers_to_reach(mask, wanted)
        keys = int(mask[q].sum())
        assert text.startswith(f"Query {q} attends to {keys} key{'' if keys == 1 else 's'}. After {n} layer")
        assert f"depends on {int(met[q].sum())} of {q + 1 if causal else T} inputs" in text
        assert f"{int(met[wanted].sum())} of {int(wanted.sum())} pairs have met" in text
        assert ("never meet" in text) == (reach is None)
        assert reach is None or f"It takes {reach} layer{'' if reach == 1 else 's'} until all" in text

        rows = [row.locator("th, td").all_text_contents() for row in self.page.locator("tbody tr").all()]
        for length, row in zip([T, *self.designer.state["lengths"]], rows, strict=True):
            pairs = count_pairs(mask) if length == T else self.designer.pairs(length, **self.parts)
            assert row[0] == f"{length:,}" and ("≈" in row[1]) == bool(length != T and self.parts["num_random"])
            shown = [float(cell.replace("≈ ", "").replace(",", "").replace(" %", "")) for cell in row[1:]]
            assert abs(shown[0] - pairs) <= 0.51
            assert shown[1:] == pytest.approx([100 * pairs / length**2, pairs / length], rel=0.006)
        caption = self.page.locator("figcaption").first.inner_text()
        assert caption.startswith(f"{count_pairs(mask)} pairs of {T * T}, ")
        assert self.page.log["errors"] == []


def test_the_patterns_on_the_page_are_those_of_the_package(open_figure):
    designer = PatternDesigner(16, lengths=(1000, 70_000), seeds=(3, 9))
    seen = Page(open_figure(designer, width=390), designer)
    seen.agrees()
    choice = seen.page.get_by_role("combobox", name="pattern")
    for name, parts in designer.state["presets"].items():
        choice.select_option(name)
        seen.parts.update(parts)
        assert choice.input_value() == name
        seen.layers = 4 - seen.layers  # 3, 1, 3 and so on
        seen.slide("layers", seen.layers)
        seen.agrees()


def test_each_part_moves_the_pattern(open_figure):
    designer = PatternDesigner(12, "local, decoder", lengths=(999,), window=0, layers=2, query=5)
    seen = Page(open_figure(designer), designer)
    labels = {
        "window": "window",
        "dilation": "dilation",
        "block_size": "block",
        "num_global": "global tokens",
        "every": "chosen tokens, one in",
        "num_random": "random keys",
    }
    seen.agrees()  # a pattern of nothing: residual connections alone
    for parts, causal in zip(MIXED, itertools.cycle((False, True)), strict=False):
        for key, label in labels.items():
            value = {**OFF, **parts}[key]
            seen.parts[key] = 12 if value is None else value
            seen.slide(label, seen.parts[key])
        seen.parts["causal"] = causal
        seen.page.get_by_role("checkbox", name="causal").set_checked(causal)
        seen.agrees()
    assert seen.page.get_by_role("combobox", name="pattern").input_value() == ""
    for draw in (1, 2, 3, 0):
        seen.page.get_by_role("button", name="draw again").click()
        seen.parts["draw"] = draw
        seen.agrees()
    seen.slide("layers", 11)
    seen.layers = 11
    seen.slide("query", 0)
    seen.query = 0
    seen.agrees()


def test_pointing_follows_a_query(open_figure):
    designer = PatternDesigner(10, layers=2)
    seen = Page(open_figure(designer), designer)
    for seen.query in (0, 9, 4):
        seen.page.locator(f"rect[data-pair='{seen.query} {seen.query}']").hover()
        seen.agrees()
        assert seen.page.get_by_role("slider", name="query").input_value() == str(seen.query)
    seen.page.locator("circle[data-layer='2']").nth(7).hover()
    seen.query = 7
    seen.agrees()
    seen.page.get_by_role("button", name="Reset").click()
    seen.page.mouse.move(1, 1)
    seen.query = 5
    seen.agrees()


def test_the_draws_are_those_of_random_mask():
    designer = PatternDesigner(9, seeds=(4, 8))
    orders = unpack(designer.state["orders"], 2, 2, 9, 6)
    for causal, (draw, seed), n in itertools.product((0, 1), enumerate((4, 8)), range(7)):
        mask = torch.zeros(9, 256, dtype=torch.bool).scatter(1, orders[causal, draw, :, :n], True)[:, :9]
        assert torch.equal(mask, random_mask(9, n, causal=bool(causal), generator=generator(seed)))
