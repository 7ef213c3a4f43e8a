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
    stepper, moved, row, largest = TilingStepper(*inputs(), tiles=[tile]), 0, None, 0
    steps = stepper.steps(tile, causal)
    assert stepper.memory(0, tile, causal) == {"scores": 0, "moved": 0, "plain": 15 + 21 + 140 + 14 + 10}
    for i, (rows, columns) in enumerate(steps, start=1):
        q, k, v = torch.zeros(T, D)[rows], torch.zeros(S, D)[columns], torch.zeros(S, E)[columns]
        largest, total, output = max(largest, (q @ k.T).numel()), q[:, :1], q[:, :1] * v[:1]
        moved += (q.numel() if rows != row else 0) + k.numel() + v.numel()
        if i == len(steps) or steps[i][0] != rows:
            moved += output.numel() + total.numel()
        row, found = rows, stepper.memory(i, tile, causal)
        assert found["scores"] == largest and found["moved"] == moved


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
        ({"tiles": (0,)}, "tile is 0"),
        ({"tiles": ((2, 0),)}, r"tile is \(2, 0\)"),
        ({"tile": 5}, r"no tile \(5, 5\), only \[\(2, 2\)"),
        ({"step": 13, "query": 0}, "step is 13, expected 0 to 12"),
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
        rows = steps[step - 1][0] if step else slice(0, 0)
        visible = torch.ones(T, S, dtype=torch.bool).tril(S - T) if self.causal else torch.ones(T, S, dtype=torch.bool)
        wanted = [["never"] * S for _ in range(T)]
        for i, (r, c) in enumerate(steps, start=1):
            for t in range(T)[r]:
                for s in range(S)[c]:
                    wanted[t][s] = "now" if i == step else "gone" if i < step else "to come"
        boxes = self.page.locator("td[data-pair]").evaluate_all("all => all.map((n) => n.dataset.is)")
        assert boxes == [kind for row in wanted for kind in row]
        texts = self.page.locator("td[data-pair]").all_text_contents()
        for t in range(T):
            for s in range(S):
                if wanted[t][s] == "now":
                    score = self.scores[t, s].item() if visible[t, s] else -math.inf
                    wide = abs(score) >= 9.95
                    assert number(texts[t * S + s]) == pytest.approx(score, abs=0.51 if wide else 0.051)
                else:
                    assert texts[t * S + s] == ""

        found = self.stepper.known(step, self.tile, self.causal)
        scores = self.scores.double().masked_fill(~visible, -math.inf)
        plain = torch.softmax(scores, -1) @ torch.tensor(self.stepper.state["values"]).double()
        started = max((r.stop for r, _ in steps[:step]), default=0)
        for t, row in enumerate(self.page.locator("table").first.locator("tbody tr").all()):
            known = row.locator("td:not([data-pair])").all_inner_texts()
            if t >= started:
                assert known == ["to come"]
                continue
            *state, average, off = known
            if t in range(T)[rows]:
                assert number(state[0]) == pytest.approx(found["top"][t].item(), abs=0.051)
                assert number(state[1]) == pytest.approx(found["total"][t].item(), abs=0.0051)
            else:
                assert state == ["done"]
            assert [number(x) for x in average.split("\n")] == pytest.approx(found["average"][t].tolist(), abs=0.0051)
            far = (found["average"][t] - plain[t]).abs().max().item()
            assert off == "0" if far < 1e-9 else number(off) == pytest.approx(far, rel=0.5, abs=0.0051)
        memory = self.stepper.memory(step, self.tile, self.causal)
        facts = self.page.locator("table").nth(1).locator("tbody td").all_inner_texts()
        assert facts == [str(n) for n in (memory["scores"], memory["moved"], T * S, memory["plain"])]
        assert self.page.locator("tbody [aria-pressed=true]").inner_text() == f"q{self.query}"
        assert self.page.log["errors"] == []
        return self.note.inner_text()


def test_the_page_goes_tile_by_tile(open_figure):
    stepper = TilingStepper(*inputs(), tiles=[(3, 2), 4], step=0, query=1)
    seen = Page(open_figure(stepper, width=390), stepper, (3, 2), query=1)
    assert seen.agrees(0).startswith("8 tiles to go.")
    for step in range(1, 9):
        seen.page.get_by_role("button", name="next").click()
        seen.query = 1 if step < 5 else 3  # the first of those whose turn it is
        text, part = seen.agrees(step), 0 if step < 5 else 1
        first = 2 * ((step - 1) % 4)
        keys = f"keys {first} to {first + 1}" if first < 6 else "key 6"
        assert text.startswith(f"Tile {step} of 8: queries {('0 to 2', '3 to 4')[part]} and {keys}. Query {seen.query}")
        assert ("last tile" in text) == (step == 8)
    seen.page.get_by_role("button", name="follow query 1").focus()
    seen.query, text = 1, seen.note.inner_text()
    assert "Query 1 is done" in text
    found = stepper.known(8, (3, 2))
    sums = (found["top"][1].item(), found["total"][1].item())
    assert f"= {sums[0] + math.log(sums[1]):.2f}.".replace("-", "−") in text
    seen.page.get_by_role("combobox").select_option("1")  # fewer tiles: still at the end
    seen.tile, seen.query = 4, 4
    assert "Tile 4 of 4" in seen.agrees(4)


def test_a_larger_score_rescales_the_sums(open_figure):
    scores = torch.tensor([[0.5, -1, 2, 1], [3, 0, 1, -12.4]])
    stepper = TilingStepper(
        scores, torch.eye(4), torch.tensor([[1.0], [2], [3], [4]]), scale=1, tile=2, tiles=[2], step=0
    )
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
    seen.page.locator("td[data-pair='0 0']").hover()
    seen.query = 0
    assert text in seen.agrees(2)


def test_hidden_tiles_are_left_out(open_figure):
    tile = 2, 3
    stepper = TilingStepper(*inputs(), tiles=[tile, 4], causal=False, step=0)
    seen = Page(open_figure(stepper), stepper, tile)
    seen.page.get_by_role("checkbox", name="causal").check()
    seen.causal = True
    for step in range(len(stepper.steps(tile, True)) + 1):
        seen.page.get_by_role("slider").fill(str(step))
        rows = range(5)[stepper.steps(tile, True)[step - 1][0]] if step else [0]
        seen.query = seen.query if seen.query in rows else rows[0]
        text = seen.agrees(step)
    assert "This was the last tile" in text
    seen.page.get_by_role("button", name="Reset").click()
    seen.causal, seen.query = False, 0
    seen.agrees(0)


def test_a_query_that_sees_nothing_of_a_tile_is_left_as_it_is(open_figure):
    stepper = TilingStepper(*inputs(4, 4), tiles=[(4, 1)], causal=True, step=3, query=0)
    seen = Page(open_figure(stepper), stepper, (4, 1), True)
    assert "Query 0 sees none of these keys: nothing changes." in seen.agrees(3)
    # more queries than keys: there is nothing to choose
    page = open_figure(TilingStepper(*inputs(6, 3), tiles=[2]))
    assert page.get_by_role("checkbox").count() == 0 and page.get_by_role("combobox").count() == 0


def chapter():
    """As chapter 09 calls it."""
    scores = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).mul(2).round()
    scores[0] = torch.tensor([1.0, 0, 2, 1, 5, 0, 3, 6])
    return TilingStepper(scores, torch.eye(8), torch.arange(8.0)[:, None], tiles=(2, 4), scale=1)


def test_it_starts_where_a_larger_score_corrects_a_query():
    for stepper in (chapter(), TilingStepper(*inputs(), tiles=[(2, 3)]), TilingStepper(*inputs(T=2), tiles=[2])):
        tile, step, query = stepper.state["tiles"][0], stepper.state["step"], stepper.state["query"]
        rows, _ = stepper.steps(tile)[step - 1]
        before, after = (stepper.known(i, tile)["top"][query].item() for i in (step - 1, step))
        assert -math.inf < before < after and query in range(8)[rows]
        assert bool(rows.start) == (len(stepper.state["scores"]) > 2)  # some are done, where there are several rows
    never = TilingStepper(torch.tensor([[2.0, 1], [2, 1]]), torch.eye(2), torch.ones(2, 1), tiles=[1], scale=1)
    assert (never.state["step"], never.state["query"]) == (4, 1)


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_fits(open_figure, width):
    """A query is done without error, one is corrected, others are to come; no number is cut or touches another."""
    page = open_figure(chapter(), width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    body = page.locator("table").first.locator("tbody tr")
    texts = [row.locator("td:not([data-pair])").all_inner_texts() for row in body.all()]
    assert texts[0][0] == "done" and texts[0][-1] == "0" and texts[-1] == ["to come"]
    now = [row for row in texts if len(row) == 4]
    assert len(now) == 2 and all(number(row[-1]) > 0.1 for row in now)
    assert "so both sums shrink by the factor" in page.locator(".d2lmini-note").inner_text()
    assert page.locator("thead").first.inner_text().split()[-4:] == ["max", "sum", "average", "error"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".d2lmini-scroll").evaluate("node => node.scrollWidth - node.clientWidth") == 0
    assert page.locator(".d2lmini-figure").bounding_box()["height"] <= (900 if width == 390 else 640)
    gaps = """all => all.flatMap((row) => {
      const boxes = [...row.cells].filter((cell) => cell.textContent).map((cell) => {
        const range = document.createRange(); range.selectNodeContents(cell); return range.getBoundingClientRect(); });
      return boxes.slice(1).map((box, i) => box.left - boxes[i].right); })"""
    for step in range(17):
        page.get_by_role("slider").fill(str(step))
        assert min(page.locator("table").first.locator("tr").evaluate_all(gaps)) >= 3


def test_tiles_larger_than_a_short_text_are_one():
    stepper = TilingStepper(torch.randn(3, 2), torch.randn(3, 2), torch.randn(3, 1))
    assert [tuple(tile) for tile in stepper.state["tiles"]] == [(2, 2), (3, 3)]
