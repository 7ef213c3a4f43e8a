"""The tiling stepper: step by step what `OnlineSoftmax` knows, in the end attention, in Python and on the page."""

import math

import pytest
import torch

from d2lmini.attention import scaled_dot_product_attention
from d2lmini.efficient.tiles import OnlineSoftmax, tiled_attention
from d2lmini.figures import TilingStepper

CASES = [(2, False), (3, True), ((2, 3), False), ((3, 2), True), (5, True), (1, False)]


def inputs(T=5, S=7, D=3, E=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [2 * torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((T, D), (S, D), (S, E))]


@pytest.mark.parametrize(("tile", "causal"), CASES)
def test_it_does_what_tiled_attention_does(tile, causal, monkeypatch):
    given = inputs()
    stepper = TilingStepper(*given, tiles=[tile])
    steps, taken = stepper.steps(tile, causal), []
    add = OnlineSoftmax.add

    def watched(self, scores, values):
        add(self, scores, values)
        taken.append((scores, self.top, self.total, self.output))

    with monkeypatch.context() as patch:
        patch.setattr(OnlineSoftmax, "add", watched)
        output = tiled_attention(*(x[None] for x in given), tile=tile, causal=causal)[0]
    assert len(taken) == len(steps)
    for i, ((rows, columns), (scores, *states)) in enumerate(zip(steps, taken, strict=True), start=1):
        assert scores.shape[1:] == torch.zeros(5, 7)[rows, columns].shape
        found = stepper.known(i, tile, causal)
        for name, state in zip(("top", "total", "output"), states, strict=True):
            torch.testing.assert_close(found[name][rows], state[0], rtol=1e-4, atol=1e-5)  # of 6 digits
        assert (found["top"][rows.stop :] == -math.inf).all() and (found["average"][rows.stop :] == 0).all()
    torch.testing.assert_close(found["average"], output, rtol=1e-4, atol=1e-5)
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2) if causal else None
    wanted = scaled_dot_product_attention(*(x[None] for x in given), mask=mask)[0]
    torch.testing.assert_close(output, wanted)


@pytest.mark.parametrize(("tile", "causal"), CASES)
def test_what_is_kept_and_moved_is_counted(tile, causal):
    """By going through the tiles as a kernel would, with a fast memory that forgets."""
    T, S, D, E = 5, 7, 3, 2
    stepper, moved, row = TilingStepper(*inputs(), tiles=[tile]), 0, None
    steps = stepper.steps(tile, causal)
    assert stepper.memory(0, tile, causal) == {"fast": 0, "moved": 0, "plain": 15 + 21 + 140 + 14 + 10}
    for i, (rows, columns) in enumerate(steps, start=1):
        q, k, v = torch.zeros(T, D)[rows], torch.zeros(S, D)[columns], torch.zeros(S, E)[columns]
        scores, top, total, output = q @ k.T, q[:, :1], q[:, :1], q[:, :1] * v[:1]
        moved += (q.numel() if rows != row else 0) + k.numel() + v.numel()
        if i == len(steps) or steps[i][0] != rows:
            moved += output.numel() + total.numel()
        row, found = rows, stepper.memory(i, tile, causal)
        assert found["fast"] == sum(x.numel() for x in (q, k, v, scores, top, total, output))
        assert found["moved"] == moved


def test_any_scores_can_be_shown():
    scores = torch.tensor([[1.0, 2, 3], [3, 2, 1]])
    stepper = TilingStepper(scores, torch.eye(3), torch.ones(3, 1), tiles=(2,), scale=1)
    assert stepper.state["scores"] == scores.tolist()
    assert stepper.known(2, 2)["top"].tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": torch.zeros(2, 2, 2)}, r"queries have shape \(2, 2, 2\), expected two"),
        ({"values": torch.zeros(7, 0)}, r"values have shape \(7, 0\)"),
        ({"keys": torch.zeros(6, 3)}, r"keys have shape \(6, 3\), expected \(7, 3\)"),
        ({"keys": torch.zeros(7, 2)}, r"expected \(7, 3\)"),
        ({"queries": torch.zeros(9, 3)}, "there are 9 queries, 7 keys and 2 features"),
        ({"queries": torch.zeros(1, 3)}, "there are 1 queries"),
        ({"values": torch.zeros(7, 4)}, "4 features of a value"),
        ({"queries": torch.zeros(8, 3), "causal": True}, "8 queries but 7 keys"),
        ({"tiles": ()}, "at least one"),
        ({"tiles": (8, 9)}, "each once"),
        ({"tiles": (0,)}, "tile is 0"),
        ({"tiles": ((2, 0),)}, r"tile is \(2, 0\)"),
        ({"tile": 5}, r"no tile \(5, 5\), only \[\(2, 2\)"),
        ({"step": 13}, "step is 13, expected 0 to 12"),
        ({"query": 5}, "query is 5, expected 0 to 4"),
        ({"query": -1}, "query is -1"),
    ],
)
def test_bad_input_is_refused(changes, message):
    given = dict(zip(("queries", "keys", "values"), inputs(), strict=True))
    with pytest.raises(ValueError, match=message):
        TilingStepper(**{**given, **changes})


def test_the_fallback_has_the_tiles():
    scores = torch.tensor([[0.0, math.log(3)], [0, 0]])
    stepper = TilingStepper(scores, torch.eye(2), torch.tensor([[4.0], [8]]), tiles=[(2, 1)], scale=1)
    text = stepper.fallback()
    assert '<th scope="row">1</th><td>0 to 1</td><td>0</td><td>0.00; 0.00</td><td>1.00; 1.00</td><td>4.00; 4.00' in text
    assert '<th scope="row">2</th><td>0 to 1</td><td>1</td><td>1.10; 0.00</td><td>1.33; 2.00</td><td>7.00; 6.00' in text


def test_it_is_small():
    assert len(TilingStepper(*inputs(8, 8, 8, 3))._repr_html_()) < 34_000


def number(text):
    return float(text.replace("−", "-").replace("∞", "inf"))


class Page:
    """What a reader sees, and what the package says of it."""

    def __init__(self, page, stepper, tile, causal=False, query=0):
        self.page, self.stepper, self.tile, self.causal, self.query = page, stepper, tile, causal, query
        self.scores = torch.tensor(stepper.state["scores"])
        self.T, self.S = self.scores.shape
        self.note = page.locator(".d2lmini-note")

    def agrees(self, step):
        """All that depends on the step, the tile, the mask and the query. Returns the note."""
        steps, T, S = self.stepper.steps(self.tile, self.causal), self.T, self.S
        rows, columns = steps[step - 1] if step else (slice(0, 0), slice(0, 0))
        visible = torch.ones(T, S, dtype=torch.bool).tril(S - T) if self.causal else torch.ones(T, S, dtype=torch.bool)
        wanted = [["never"] * S for _ in range(T)]
        for i, (r, c) in enumerate(steps, start=1):
            for t in range(T)[r]:
                for s in range(S)[c]:
                    wanted[t][s] = "now" if i == step else "gone" if i < step else "to come"
        boxes = self.page.locator("rect[data-pair]").evaluate_all("all => all.map((n) => n.dataset.is)")
        assert boxes == [kind for row in wanted for kind in row]
        texts = self.page.locator("svg g text").all_text_contents()
        texts = [row[1:] for row in zip(*[iter(texts)] * (S + 1), strict=True)]
        for t in range(T):
            for s in range(S):
                if wanted[t][s] == "now":
                    score = self.scores[t, s].item() if visible[t, s] else -math.inf
                    assert number(texts[t][s]) == pytest.approx(score, abs=0.051 if abs(score) < 9.95 else 0.51)
                else:
                    assert texts[t][s] == ""

        found, before = (self.stepper.known(n, self.tile, self.causal) for n in (step, max(0, step - 1)))
        scores = self.scores.double().masked_fill(~visible, -math.inf)
        plain = torch.softmax(scores, -1) @ torch.tensor(self.stepper.state["values"]).double()
        table = [
            row.locator("td").all_inner_texts() for row in self.page.locator("table").first.locator("tbody tr").all()
        ]
        started = max((r.stop for r, _ in steps[:step]), default=0)
        for t, (factor, top, total, output, average, off) in enumerate(table):
            if t in range(T)[rows]:
                shown = [number(x) for x in (top, total, *output.split("\n"))]
                states = torch.cat([found[name][t] for name in ("top", "total", "output")])
                assert shown == pytest.approx(states.tolist(), abs=0.0051)
                old, new = before["top"][t].item(), found["top"][t].item()
                assert number(factor) == pytest.approx(0 if old == -math.inf else math.exp(old - new), abs=0.0051)
            else:
                assert (factor, top, total, output) == ("", "", "", "")
            if t < started:
                assert [number(x) for x in average.split("\n")] == pytest.approx(
                    found["average"][t].tolist(), abs=0.0051
                )
                far = (found["average"][t] - plain[t]).abs().max().item()
                assert number(off) < 1e-12 if far < 1e-12 else number(off) == pytest.approx(far, rel=0.5, abs=0.0051)
            else:
                assert (average, off) == ("", "")
        memory = self.stepper.memory(step, self.tile, self.causal)
        facts = self.page.locator("table").nth(1).locator("tbody tr td:not(:empty)").all_inner_texts()
        at_once = len(range(T)[rows]) * len(range(S)[columns])
        assert facts == [str(n) for n in (at_once, T * S, memory["fast"], memory["moved"], memory["plain"])]
        assert self.page.locator("tr.chosen button").inner_text() == f"q{self.query}"
        assert self.page.log["errors"] == []
        return self.note.inner_text()


def test_the_page_goes_tile_by_tile(open_figure):
    stepper = TilingStepper(*inputs(), tiles=[(3, 2), 4], query=1)
    seen = Page(open_figure(stepper, width=390), stepper, (3, 2), query=1)
    assert seen.agrees(0).startswith("8 tiles to go.")
    for step in range(1, 9):
        seen.page.get_by_role("button", name="next").click()
        text, part = seen.agrees(step), 0 if step < 5 else 1
        first = 2 * ((step - 1) % 4)
        keys = f"keys {first} to {first + 1}" if first < 6 else "key 6"
        assert text.startswith(f"Tile {step} of 8: queries {('0 to 2', '3 to 4')[part]} and {keys}. Query 1")
        assert ("is done" in text) == (step > 4) and ("last tile" in text) == (step == 8)
    found = stepper.known(8, (3, 2))
    sums = (found["top"][1].item(), found["total"][1].item())
    assert f"= {sums[0] + math.log(sums[1]):.2f}.".replace("-", "−") in text
    seen.page.get_by_role("combobox").select_option("1")  # fewer tiles: still at the end
    seen.tile = 4
    assert "Tile 4 of 4" in seen.agrees(4)


def test_a_larger_score_rescales_the_sums(open_figure):
    scores = torch.tensor([[0.5, -1, 2, 1], [3, 0, 1, -12.4]])
    stepper = TilingStepper(scores, torch.eye(4), torch.tensor([[1.0], [2], [3], [4]]), scale=1, tile=2, tiles=[2])
    seen = Page(open_figure(stepper), stepper, 2)
    seen.page.get_by_role("slider").fill("1")
    assert (
        "Query 0: the largest score is 0.50." in seen.agrees(1)
        and f"is {1 + math.exp(-1.5):.2f}." in seen.note.inner_text()
    )
    seen.page.get_by_role("slider").fill("2")
    text = f"goes from 0.50 to 2.00, so both sums shrink by the factor exp(0.50 − 2.00) = {math.exp(-1.5):.2f}. "
    total = math.exp(-1.5) * (1 + math.exp(-1.5)) + 1 + math.exp(-1)
    text += f"The sum is now {math.exp(-1.5):.2f} × {1 + math.exp(-1.5):.2f} + {1 + math.exp(-1):.2f} = {total:.2f}."
    assert text in seen.agrees(2)
    seen.page.get_by_role("button", name="follow query 1").focus()
    seen.query = 1
    assert "the largest score stays 3.00, so the factor is 1." in seen.agrees(2)
    seen.page.locator("rect[data-pair='0 0']").hover()
    seen.query = 0
    assert text in seen.agrees(2)


@pytest.mark.parametrize("tile", [2, (2, 3), (5, 2)])
def test_hidden_tiles_are_left_out(open_figure, tile):
    stepper = TilingStepper(*inputs(), tiles=[tile, 4], causal=False)
    seen = Page(open_figure(stepper), stepper, tile)
    seen.page.get_by_role("checkbox", name="causal").check()
    seen.causal = True
    for step in range(len(stepper.steps(tile, True)) + 1):
        seen.page.get_by_role("slider").fill(str(step))
        text = seen.agrees(step)
    assert "This was the last tile" in text
    seen.page.get_by_role("button", name="Reset").click()
    seen.causal = False
    seen.agrees(0)


def test_a_query_that_sees_nothing_of_a_tile_is_left_as_it_is(open_figure):
    stepper = TilingStepper(*inputs(4, 4), tiles=[(4, 1)], causal=True, step=3, query=0)
    seen = Page(open_figure(stepper), stepper, (4, 1), True)
    assert "Query 0 sees none of these keys: nothing changes." in seen.agrees(3)
    # more queries than keys: there is nothing to choose
    page = open_figure(TilingStepper(*inputs(6, 3), tiles=[2]))
    assert page.get_by_role("checkbox").count() == 0 and page.get_by_role("combobox").count() == 0
