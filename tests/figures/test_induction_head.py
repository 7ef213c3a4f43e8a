"""The induction head: its score is the weight that it should be, and the page shows weights and losses as given."""

import re

import pytest
import torch
from torch.testing import assert_close

from d2lmini.figures import InductionHead
from d2lmini.figures.induction_head import NAMES

P, T = 5, 13
TOKENS = [f"w{t % P}" for t in range(T)]
GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(2, 3, T, T, generator=GENERATOR)
SCORES[1, 1] += 6.0 * torch.eye(T).roll(1 - P, 1)
WEIGHTS = SCORES.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf).softmax(-1)
LOSSES = torch.rand(T, generator=GENERATOR) * 3
OFF = LOSSES + torch.rand(T, generator=GENERATOR)


def figure(**changes):
    return InductionHead(**{**dict(tokens=TOKENS, weights=WEIGHTS, losses=LOSSES, period=P), **changes})


def test_the_score_is_the_mean_weight_behind_the_previous_occurrence():
    shown = figure()
    for layer in range(2):
        for head in range(3):
            found = []
            for t in range(P, T):
                last = max(s for s in range(t) if TOKENS[s] == TOKENS[t])
                found.append(WEIGHTS[layer, head, t, last + 1].item())
            assert shown.state["scores"][layer][head] == pytest.approx(sum(found) / len(found), rel=1e-4)
    assert (shown.state["layer"], shown.state["head"]) == (2, 2)  # the greatest is shown first


def test_the_weights_come_back():
    assert_close(figure().weights().float(), WEIGHTS, rtol=0, atol=1 / 510 + 1e-6)


def test_the_position_shown_first_is_in_the_sequence():
    short = figure(tokens=TOKENS[:6], weights=WEIGHTS[..., :6, :6], losses=LOSSES[:6])
    assert short.state["position"] == 5 and figure().state["position"] == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"period": 1}, "period is 1 and there are 13 tokens"),
        ({"period": 13}, "expected 2 <= period < tokens <= 96"),
        ({"tokens": [*TOKENS[:-1], "x"]}, "'x' at 12 was 'w2' 5 before"),
        ({"weights": WEIGHTS[0]}, r"shape \(3, 13, 13\), expected \(layers, H, 13, 13\)"),
        ({"weights": WEIGHTS.mT}, "look ahead"),
        ({"weights": -WEIGHTS}, "outside of 0 to 1"),
        ({"losses": LOSSES[:-1]}, r"losses given have shape \(12,\), expected \(13,\)"),
        ({"losses": LOSSES.log() / 0}, "all finite"),
        ({"without": {(1, 4): OFF}}, r"no head \(1, 4\)"),
        ({"without": {(1, 3): OFF[1:]}}, r"with head \(1, 3\) off have shape"),
        ({"layer": 1}, "expected both or neither"),
        ({"layer": 3, "head": 1}, "layer 3, head 1"),
        ({"position": 13}, "0 to 12"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_fallback_has_every_score_and_the_losses():
    shown = figure(without={(2, 2): OFF})
    text = shown.fallback()
    for row in shown.state["scores"]:
        assert "".join(f"<td>{score:.2f}</td>" for score in row) in text
    assert f"{LOSSES[:P].mean():.2f} nats at first, {LOSSES[P:].mean():.2f} in the repetition" in text
    assert f"Without head 2.2 (layer.head): {OFF[:P].mean():.2f}" in text


def test_tokens_that_are_numbers_get_words():
    numbers = InductionHead([61, 19, 8, 61, 19], torch.ones(1, 1, 5, 5).tril() / 5, torch.ones(5), 3)
    words = numbers.state["tokens"]
    assert words[:2] == words[3:] and len(set(words)) == 3 and all(word.isalpha() for word in words)
    assert len(set(NAMES)) == len(NAMES)
    named = InductionHead(["a", "b", "a"], torch.ones(1, 1, 3, 3).tril() / 3, torch.ones(3), 2)
    assert named.state["tokens"] == ["a", "b", "a"]


def test_it_is_small():
    N = 50
    weights = torch.ones(2, 4, N, N).tril() / N
    big = InductionHead([f"w{t % 25}" for t in range(N)], weights, torch.ones(N), 25)
    assert len(big._repr_html_()) < 56_000  # 20,000 weights


def test_the_page_shows_weights_and_losses(open_figure):
    shown = figure(without={(2, 2): OFF})
    page = open_figure(shown)
    note = page.locator(".d2lmini-note")

    def sees(layer, head, t):
        row = shown.weights()[layer - 1, head - 1, t]
        texts = page.locator("svg").first.locator("> text").all_text_contents()
        assert texts == [f"{w:.2f}" if w >= 0.05 else "" for w in row.tolist()]
        arcs = sum(1 for s, w in enumerate(row.tolist()) if w >= 0.02 and s != t)
        assert page.locator("svg path").count() == arcs
        best = row.argmax().item()
        assert f"from “{TOKENS[t]}” at {t}, looks at “{TOKENS[best]}” at {best} ({row[best]:.2f})" in note.inner_text()
        if t >= P:
            last = t - P
            assert (
                f"was at {last}, and “{TOKENS[last + 1]}” came after it: weight {row[last + 1]:.2f}"
                in note.inner_text()
            )
            frames = page.locator("svg").first.locator("rect")
            assert frames.nth(last + 1).get_attribute("stroke") == "var(--blue)"
            assert frames.nth(last).get_attribute("stroke-dasharray") == "4 3"
        else:
            assert "not there before" in note.inner_text()
        pressed = page.locator(".d2lmini-maps [aria-pressed=true]")
        assert pressed.inner_text() == f"{layer}.{head}: {shown.state['scores'][layer - 1][head - 1]:.2f}"
        loss = page.locator("figure svg .d2lmini-loss").text_content()
        want = [LOSSES[t], *([OFF[t]] if (layer, head) == (2, 2) else [])]
        assert [float(x) for x in re.findall(r"\d+\.\d+", loss)] == pytest.approx([x.item() for x in want], abs=6e-3)
        means = [x.mean().item() for x in (LOSSES[:P], LOSSES[P:], *((OFF[:P], OFF[P:]) if len(want) > 1 else ()))]
        said = page.locator("figcaption").inner_text().split("Mean:")[1].replace("head 2.2", "it")
        assert [float(x) for x in re.findall(r"\d+\.\d+", said)] == pytest.approx(means, abs=6e-3)

    sees(2, 2, 7)
    page.get_by_role("button", name="w1 at 11").hover()
    sees(2, 2, 11)
    page.get_by_role("button", name="layer 1, head 3").click()
    sees(1, 3, 11)
    page.get_by_role("button", name="layer 1, head 3").press("ArrowRight")
    page.keyboard.press("Enter")
    sees(2, 1, 11)
    page.get_by_role("button", name="w1 at 11").focus()
    for key, t in (("ArrowUp", 6), ("ArrowLeft", 5), ("ArrowUp", 0), ("ArrowLeft", 0), ("ArrowRight", 1)):
        page.keyboard.press(key)
        sees(2, 1, t)
    page.get_by_role("button", name="Reset").click()
    page.mouse.move(1, 1)
    sees(2, 2, 7)
    assert page.log["errors"] == []
