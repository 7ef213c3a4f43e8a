"""The patterns: those of real models, which are the masks by the book, and the page marks what a token may look at."""

import pytest
import torch

from d2lmini.figures import PatternExplorer
from d2lmini.masks import causal_mask, prefix_mask

TOKENS = ["I", "love", "this", "red", "car"]
ALL, CAUSAL, PREFIX, BOTH = "encoder only", "decoder only", "decoder only, with a prefix", "encoder and decoder"


def patterns(shown):
    """The patterns of the page: dict from family to dict from attention to booleans (T, S)."""
    return {
        family["name"]: {
            block["name"]: torch.tensor([bit == "1" for bit in block["data"]]).view(len(block["rows"]), -1)
            for block in family["blocks"]
        }
        for family in shown.state["families"]
    }


@pytest.mark.parametrize("prefix", [1, 3, 4])
def test_the_families_are_as_the_masks_say(prefix):
    before = torch.get_rng_state()
    shown = PatternExplorer.of_families(TOKENS, prefix)
    assert torch.equal(torch.get_rng_state(), before)
    found, n = patterns(shown), 5 - prefix
    assert found[ALL][""].all() and found[ALL][""].shape == (5, 5)
    assert torch.equal(found[CAUSAL][""], causal_mask(5))
    assert torch.equal(found[PREFIX][""], prefix_mask(torch.tensor([prefix]), 5)[0])
    assert found[BOTH]["encoder"].shape == (prefix, prefix) and found[BOTH]["encoder"].all()
    assert found[BOTH]["cross"].shape == (n, prefix) and found[BOTH]["cross"].all()
    assert torch.equal(found[BOTH]["decoder"], causal_mask(n))
    assert shown.pairs(ALL) == {"": 25} and shown.pairs(CAUSAL) == {"": 15}
    assert shown.pairs(BOTH) == {"encoder": prefix**2, "cross": n * prefix, "decoder": n * (n + 1) // 2}
    # with a prefix, one stack of blocks computes the pairs that an encoder and a decoder compute
    assert sum(shown.pairs(PREFIX).values()) == sum(shown.pairs(BOTH).values())
    for token in TOKENS:
        assert shown.sees(PREFIX, token) == shown.sees(BOTH, token)


def test_tokens_that_repeat_are_told_apart():
    shown = PatternExplorer.of_families("the cat saw the dog", 2)
    assert shown.state["tokens"] == ["the", "cat", "saw", "the₂", "dog"]


def block(rows=TOKENS[:2], columns=TOKENS[:3], pattern=None):
    return rows, columns, torch.ones(len(rows), len(columns), dtype=torch.bool) if pattern is None else pattern


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "nothing to show"),
        ({"a": {}}, ValueError, "'a' has no pattern"),
        ({"a": block(pattern=torch.ones(2, 3))}, TypeError, "'a' is torch.float32, expected booleans"),
        ({"a": {"b": block(pattern=torch.ones(3, 2) > 0)}}, ValueError, r"'b' has shape \(3, 2\), expected \(2, 3\)"),
        ({"a": block(pattern=torch.ones(2, 2, 3) > 0)}, ValueError, r"shape \(2, 2, 3\)"),
        ({"a": block([], [])}, ValueError, "expected"),
        ({"a": block(["x", "x"])}, ValueError, "labels of the pattern 'a' repeat: x x"),
        ({"a": {"b": block(), "c": block(TOKENS[1:2], TOKENS[2:])}}, ValueError, "same pair of tokens"),
        ({"a": block(TOKENS, [str(i) for i in range(10)])}, ValueError, "15 tokens, expected at most 14"),
    ],
)
def test_bad_input_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        PatternExplorer(given)


def test_what_makes_no_families_is_refused():
    for prefix in (0, 5):
        with pytest.raises(ValueError, match=f"prefix is {prefix}, expected 1 to 4"):
            PatternExplorer.of_families(TOKENS, prefix)
    with pytest.raises(ValueError, match="15 tokens, expected 2 to 14"):
        PatternExplorer.of_families("a " * 15, 2)
    with pytest.raises(ValueError, match="no token 'x', only I, love"):
        PatternExplorer.of_families(TOKENS, 2, token="x")


def test_the_fallback_tells_what_each_token_sees():
    text = PatternExplorer.of_families(TOKENS, 3).fallback()
    assert text.count("<tr>") == 6
    row = "<td>I love this red car</td><td>I love</td><td>I love this</td><td>I love this</td>"
    assert f'<th scope="row">love</th>{row}' in text
    assert f"{ALL}: 25; {CAUSAL}: 15; {PREFIX}: 18; {BOTH}: 18" in text


def test_it_is_small():
    assert len(PatternExplorer.of_families([f"word{i}" for i in range(14)], 7)._repr_html_()) < 33_000


def test_the_page_marks_the_row_and_what_it_sees(open_figure):
    shown = PatternExplorer.of_families(TOKENS, 3, token="love")
    page = open_figure(shown, width=390)
    names = [ALL, CAUSAL, PREFIX, BOTH]
    line, figures, note = (
        page.get_by_role("group", name="tokens", exact=True),
        page.locator("figure"),
        page.locator(".d2lmini-note"),
    )

    def cells(figure, what):
        nodes = figure.locator("rect[data-pair]")
        return nodes.evaluate_all(f"all => all.filter((n) => {what}).map((n) => n.dataset.pair)")

    def sees(token):
        counts = []
        for name, figure in zip(names, figures.all(), strict=True):
            wanted = shown.sees(name, token)
            assert figure.locator("span[data-seen=true]").all_inner_texts() == wanted
            assert sorted(cells(figure, "n.getAttribute('fill') === 'var(--orange)'")) == sorted(
                f"{token} {key}" for key in wanted
            )
            assert {pair.split()[0] for pair in cells(figure, "n.getAttribute('stroke') !== 'currentColor'")} == {token}
            counts.append(f"{name}: {len(wanted)}")
        assert note.inner_text() == f"How many tokens “{token}” may look at: {'; '.join(counts)}."
        assert line.locator("[aria-pressed=true]").all_inner_texts() == [token]

    sees("love")
    for name, figure in zip(names, figures.all(), strict=True):
        computed = {f"{token} {key}" for token in TOKENS for key in shown.sees(name, token)}
        assert set(cells(figure, "n.dataset.seen === 'true'")) == computed
        total = sum(shown.pairs(name).values())
        parts = ": encoder 9 + cross 6 + decoder 3" if name == BOTH else " of 25"
        assert figure.locator("figcaption").inner_text() == f"{total} pairs{parts}"
        there = 18 + 1 if name == BOTH else 25  # input does not meet output, one pair is masked
        assert figure.locator("rect[data-pair]").count() == there

    line.get_by_role("button", name="car").hover()
    sees("car")
    line.get_by_role("button", name="love").focus()
    for token in TOKENS[2:4]:
        page.keyboard.press("ArrowRight")
        sees(token)
    # one kind of model at a time on a phone, and the other by its name
    assert [figure.is_visible() for figure in figures.all()] == [True, False, False, False]
    page.get_by_role("button", name=CAUSAL, exact=True).click()
    assert [figure.is_visible() for figure in figures.all()] == [False, True, False, False]
    figures.nth(1).locator("rect[data-pair='I I']").hover()
    sees("I")
    page.get_by_role("button", name="Reset").click()
    page.mouse.move(1, 1)
    sees("love")
    assert page.log["errors"] == []


def test_a_token_without_a_row_is_said(open_figure):
    page = open_figure(PatternExplorer({"cross": block(["a"], ["x", "y"])}, token="y"))
    assert page.locator(".d2lmini-note").inner_text() == "How many tokens “y” may look at: cross: no row."
    assert page.locator("figure .count").inner_text() == "2 pairs of 2"
