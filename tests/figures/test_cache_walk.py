"""The walk with the cache: what it counts is what real layers compute and keep, and the page marks it so."""

from types import SimpleNamespace

import pytest
import torch

import d2lmini as d2l
from d2lmini.figures import CacheWalk

TOKENS = ["once", "upon", "a", "time", "there", "was"]
CONFIG = SimpleNamespace(num_blks=2, num_heads=3, num_hiddens=12)


def walk(**changes):
    return CacheWalk(**{**dict(tokens=TOKENS, prompt=2, config=CONFIG), **changes})


def measured(cache):
    """What a model of this size does: of each step, tokens, scores that are not masked, and numbers kept."""
    torch.manual_seed(0)
    blocks = [d2l.TransformerEncoderBlock(12, 16, 3).eval() for _ in range(2)]
    X, caches, found = torch.randn(1, len(TOKENS), 12), [block.attention.empty_cache(1) for block in blocks], []
    for length in range(2, len(TOKENS)):
        fresh = X[:, caches[0].length if cache else 0 : length]
        rows = fresh
        with d2l.capture_attention(torch.nn.ModuleList(blocks)) as seen:
            for i, block in enumerate(blocks):
                if cache:
                    rows, caches[i] = block.extend(rows, caches[i], causal=True)
                else:
                    rows = block(rows, causal=True)
        scores = sum((weights > 0).sum().item() for (weights,) in seen.values())
        kept = sum(c.keys.numel() + c.values.numel() for c in caches)
        found.append({"tokens": fresh.shape[1], "scores": scores, "kept": kept})
    return found


@pytest.mark.parametrize("cache", [True, False])
def test_the_counts_are_those_of_real_layers(cache):
    want = {"tokens_so_far": 0, "scores_so_far": 0}
    for step, found in enumerate(measured(cache)):
        want = {**found, **{key: want[key] + found[key[:6]] for key in ("tokens_so_far", "scores_so_far")}}
        assert walk().counts(step, cache) == want


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"config": SimpleNamespace(num_blks=2)}, TypeError, "SimpleNamespace has no num_heads"),
        ({"config": SimpleNamespace(num_blks=2, num_heads=5, num_hiddens=12)}, ValueError, "heads that divide"),
        ({"config": SimpleNamespace(num_blks=0, num_heads=1, num_hiddens=12)}, ValueError, "positive"),
        ({"tokens": TOKENS[:2], "prompt": 1}, ValueError, "2 tokens, expected 3 to 13"),
        ({"tokens": TOKENS * 3}, ValueError, "18 tokens"),
        ({"prompt": 0}, ValueError, "the prompt has 0 of 6"),
        ({"prompt": 6}, ValueError, "expected 1 to 5"),
        ({"step": 4}, ValueError, "step is 4, expected 0 to 3"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        walk(**changes)


def test_the_fallback_counts_every_step():
    text = walk().fallback()
    assert text.count("<tr>") == 5
    new, again = walk().counts(3, True), walk().counts(3, False)
    cells = [f"{c[key]:,}" for key in ("tokens", "scores", "kept") for c in (new, again)]
    assert '<th scope="row">3</th><td>there</td>' + "".join(f"<td>{cell}</td>" for cell in cells) in text


def test_it_is_small():
    assert len(walk()._repr_html_()) < 28_000


def test_the_page_marks_and_counts(open_figure):
    shown = walk(config=SimpleNamespace(num_blks=12, num_heads=12, num_hiddens=768))
    page = open_figure(shown, width=390)
    N = len(TOKENS) - 1

    def marks():
        found = page.locator("svg rect").evaluate_all("all => all.map((node) => node.dataset.what)")
        rows = [found[i : i + N] for i in range(0, len(found), N)]
        return rows[:2], rows[2:]

    def sees(step, cache):
        length, first = 2 + step, 1 + step if step else 0
        old = "before" if cache else "again"
        token = [old if s < first else "now" if s < length else "later" for s in range(N)]
        strips, grid = marks()
        assert strips == [token, token]
        for t, row in enumerate(grid):
            assert row == [token[t] if token[t] == "later" or s <= t else "masked" for s in range(N)]
        cells = [int(text.replace(",", "")) for text in page.locator("tbody td").all_inner_texts()]
        both = shown.counts(step, True), shown.counts(step, False)
        names = ("tokens", "tokens_so_far", "scores", "scores_so_far", "kept")
        assert cells == [count[name] for name in names for count in both]
        note = page.locator(".d2lmini-note").inner_text()
        assert note.startswith(f"Step {step}:") and note.endswith(f"“{TOKENS[length]}” comes next.")
        assert step == 0 or ("alone goes in" in note) == cache
        caption = page.locator("figcaption").inner_text()  # tells of the colours that are there
        assert ("orange" in caption, "pale" in caption) == (bool(step) and not cache, bool(step) and cache)

    for step in range(4):
        sees(step, True)
        page.get_by_role("button", name="next").press("Enter")
    page.get_by_role("checkbox", name="cache").click()
    for step in (3, 2, 1, 0):
        sees(step, False)
        page.get_by_role("button", name="back").press("Enter")
    page.get_by_role("button", name="Reset").click()
    sees(0, True)
    assert page.log["errors"] == []
