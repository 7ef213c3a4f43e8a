"""The next token: what stays is what the field's library keeps, and the page draws from it by a known generator."""

import re

import pytest
import torch
from torch.testing import assert_close

from d2lmini.figures import NextToken

TEXTS = ["once upon a", "the cat sat on the"]
V = 60
WORDS = ["\n", " a", *(f"w{i}" for i in range(2, V))]
LOGITS = 2 * torch.randn(2, V, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
SETTINGS = [(1.0, V, 1.0), (0.5, V, 0.9), (2.0, 10, 1.0), (1.35, 25, 0.8), (0.1, V, 1.0), (1.0, 1, 1.0), (4.0, V, 0.01)]

PUT = """(node, value) => {
  for (let v = 0; v <= node.max; v++) {
    node.value = v;
    node.dispatchEvent(new Event("input"));
    if (node.getAttribute("aria-valuetext") === value) return true;
  }
}"""


def figure(**changes):
    return NextToken(**{**dict(contexts=TEXTS, tokens=WORDS, logits=LOGITS), **changes})


def test_the_scores_come_back():
    step = (LOGITS.max(1).values - LOGITS.min(1).values).max() / 65535
    want = LOGITS - LOGITS.max(1, keepdim=True).values
    assert_close(figure().logits(), want, rtol=0, atol=0.51 * step.item())
    assert_close(figure(logits=torch.zeros(2, V)).logits(), torch.zeros(2, V).double())


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_what_stays_is_what_transformers_keeps(temperature, top_k, top_p):
    generation = pytest.importorskip("transformers.generation.logits_process")
    scores, shown = LOGITS, figure()
    for warp in (
        generation.TemperatureLogitsWarper(temperature),
        generation.TopKLogitsWarper(top_k),
        generation.TopPLogitsWarper(top_p),
    ):
        scores = warp(None, scores)
    for context in range(2):
        got = shown.probabilities(context, temperature, top_k, top_p)
        assert_close(got, scores[context].softmax(0), rtol=2e-3, atol=1e-6)
        assert torch.equal(got > 0, scores[context].softmax(0) > 0)


def test_ties_go_to_the_lowest_token_and_a_mass_that_is_met_is_enough():
    shown = figure(logits=torch.tensor([1.0, 2.0] * (V // 2)).repeat(2, 1))
    kept = shown.probabilities(0, top_k=4)
    assert kept.nonzero().flatten().tolist() == [1, 3, 5, 7]
    four = figure(contexts=["x"], tokens=list("abcd"), logits=torch.zeros(1, 4))
    assert [int((four.probabilities(0, top_p=p) > 0).sum()) for p in (0.25, 0.26, 0.5, 0.75, 0.76, 1)] == [
        1,
        2,
        2,
        3,
        4,
        4,
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contexts": [], "logits": torch.zeros(0, V)}, "0 contexts"),
        ({"tokens": ["a"], "logits": torch.zeros(2, 1)}, "1 tokens"),
        ({"tokens": ["a"] * 5001}, "5001 tokens, expected at most 5000"),
        ({"logits": torch.zeros(2, 5, V)}, r"shape \(2, 5, 60\), expected \(2, 60\)"),
        ({"logits": LOGITS.log()}, "not finite"),
        ({"temperature": 0.0}, "greedy decoding set top_k=1"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_k": V + 1}, "top_k is 61, expected an integer from 1 to 60"),
        ({"top_k": 2.5}, "top_k is 2.5"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.1}, "at most 1"),
        ({"context": 2}, "context is 2"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_fallback_is_of_what_is_shown_first():
    shown = figure(context=1, top_k=3)
    text, kept = shown.fallback(), shown.probabilities(1, top_k=3)
    best = kept.argmax().item()
    assert text.count("<tr>") == 11 and "3 of 60 tokens stay" in text and TEXTS[1] in text
    assert f"&#x27;{WORDS[best]}&#x27;</th>" in text and f"<td>{kept[best]:.3f}</td>" in text


def test_it_is_small():
    big = NextToken(["x"] * 6, [f"w{i}" for i in range(2000)], torch.randn(6, 2000))
    assert len(big._repr_html_()) < 95_000


def draws(seed, probabilities, order):
    """Twenty draws by mulberry32, the likeliest token first."""
    counts = {}
    for _ in range(20):
        seed = (seed + 0x6D2B79F5) & 0xFFFFFFFF
        t = ((seed ^ seed >> 15) * (1 | seed)) & 0xFFFFFFFF
        t = (t + (t ^ t >> 7) * (61 | t) & 0xFFFFFFFF) & 0xFFFFFFFF ^ t
        at = int((probabilities[order].cumsum(0) <= (t ^ t >> 14) / 2**32).sum())
        counts[at] = counts.get(at, 0) + 1
    return [WORDS[order[i]] + (f" × {n}" if n > 1 else "") for i, n in sorted(counts.items())]


def bits(p):
    return torch.special.entr(p).sum().item() / torch.tensor(2.0).log().item()


def test_the_page_shows_the_distribution_and_draws_from_it(open_figure):
    shown = figure(temperature=0.37, top_k=33)  # of the reader's sliders, neither is a value of their own
    page = open_figure(shown)

    def put(label, value):
        """Walks a slider to the value that it says."""
        node = page.get_by_role("slider", name=label)
        assert node.evaluate(PUT, value), f"{label} does not go to {value}"

    def sees(context, temperature, top_k, top_p, seed):
        before, after = shown.probabilities(context), shown.probabilities(context, temperature, top_k, top_p)
        order = before.sort(descending=True, stable=True).indices
        numbers = page.locator("svg g text:last-child").all_text_contents()
        assert len(numbers) == 14
        for i, text in zip(order.tolist(), numbers, strict=False):
            assert text == f"{before[i]:.3f} → " + (f"{after[i]:.3f}" if after[i] > 0 else "dropped")
        tail = page.locator("svg > text").last.text_content()
        rest = [p[order[14:]].sum().item() for p in (before, after)]
        assert tail.startswith("the other 46: ")
        assert [float(x) for x in re.findall(r"\d\.\d+", tail)] == pytest.approx(rest, abs=6e-4)
        kept = after > 0
        heated = (shown.logits()[context] / temperature).softmax(0)
        said = page.locator(".d2lmini-note").inner_text()
        assert said.startswith(f"{int(kept.sum())} of 60 tokens stay.")
        assert [float(x) for x in re.findall(r"\d+\.\d+", said)] == pytest.approx(
            [heated[kept].sum().item(), before[kept].sum().item(), bits(before), bits(after)], abs=6e-3
        )
        found = page.locator(".d2lmini-draws").inner_text().replace("\xa0", " ")
        assert f"(seed {seed})" in found
        want = [name.replace("\n", "↵").replace(" a", "␣a") for name in draws(seed, after, order)]
        assert found.split(": ")[1].split(", ") == want
        bars = page.locator("svg g rect:nth-of-type(1)").evaluate_all("all => all.map((x) => +x.getAttribute('width'))")
        assert [bar > 0 for bar in bars] == [bool(after[i] > 0) for i in order[:14]]

    sees(0, 0.37, 33, 1.0, 1)
    walked = SETTINGS[1], SETTINGS[-1]  # of all, tests/javascript compares the numbers
    for seed, (temperature, top_k, top_p) in enumerate(walked, start=2):
        put("temperature", f"{temperature:.2f}")
        put("top-k", "all" if top_k == V else str(top_k))
        put("top-p", f"{top_p:.2f}")
        page.get_by_role("button", name="draw again").click()
        sees(0, temperature, top_k, top_p, seed)
    page.get_by_role("combobox", name="text").select_option("1")
    sees(1, *SETTINGS[-1], 3)
    assert page.locator(".d2lmini-context").inner_text() == f"{TEXTS[1]} …"
    page.get_by_role("button", name="Reset").click()
    sees(0, 0.37, 33, 1.0, 1)
    assert page.log["errors"] == []


def test_counts_alone_have_no_settings_and_no_draws(open_figure):
    shown = figure(sampling=False)
    page = open_figure(shown)
    assert page.get_by_role("slider").count() == 0 and page.get_by_role("button", name="draw again").count() == 0
    assert "→" not in page.locator("d2lmini-next-token").inner_text()
    best = shown.probabilities(0).max().item()
    assert page.locator("svg g text:last-child").first.text_content() == f"{best:.3f}"
    assert "drawn from" not in shown.fallback() and f"<td>{best:.3f}</td>" in shown.fallback()
