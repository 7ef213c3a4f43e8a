"""Draft and verify: what is written follows the target, and the page makes the same passes."""

import collections
import itertools
import re

import pytest
import torch

from d2lmini.figures import DraftVerify

TEXT = "a cab can bad a dab add a cad bab a " * 9
SIGNS = "abcdn "


def counts(text=TEXT, symbols=SIGNS):
    V = len(symbols)
    pairs, triples = torch.zeros(V, V), torch.zeros(V, V, V)
    ids = [symbols.index(c) for c in text]
    for a, b in itertools.pairwise(ids):
        pairs[a, b] += 1
    for i in range(2, len(ids)):
        triples[ids[i - 2], ids[i - 1], ids[i]] += 1
    return triples, pairs


def figure(**changes):
    triples, pairs = counts()
    return DraftVerify(**{**dict(symbols=SIGNS, target=triples, draft=pairs, prompt=" a", n=3), **changes})


def test_the_distributions_are_counts_over_their_sum():
    triples, pairs = counts()
    p, q = figure().distributions("bad")
    a, d = SIGNS.index("a"), SIGNS.index("d")
    assert p.tolist() == pytest.approx((triples[a, d] / triples[a, d].sum()).tolist(), abs=4e-3)
    assert q.tolist() == pytest.approx((pairs[d] / pairs[d].sum()).tolist(), abs=4e-3)
    p, q = figure().distributions("nc")  # never seen: the target says what the draft says
    assert p.tolist() == q.tolist()


def test_of_a_text_counts_its_letters():
    shown = DraftVerify.of("Abba, abba!\n\nAh; so\tabbot.")
    p, q = shown.distributions("ab")
    symbols = shown.state["symbols"]
    assert p[symbols.index("b")] == 1.0  # "ab" is followed by b three times
    _, q = shown.distributions(" a")  # a is followed by b three times, twice by a space, once by h
    assert q[[symbols.index(c) for c in "b h"]].tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6], abs=3e-3)


@pytest.mark.parametrize("prompt", [" a", "ca", "ba"])
@pytest.mark.parametrize("n", [1, 4])
def test_what_is_written_follows_the_target_and_not_the_draft(prompt, n):
    """Chi-square, with passes from the same text; the draft's distribution must fail by the same test."""
    shown, count = figure(prompt=prompt, n=n), 2000
    found = collections.Counter(one["written"][0] for one in shown.passes(count, seed=7, again=True))
    p, q = shown.distributions(prompt)

    def off(shares):
        kept = [(found[c], count * share) for c, share in zip(SIGNS, shares.tolist(), strict=True) if share > 0]
        assert sum(number for number, _ in kept) in ({count} if shares is p else range(count + 1))
        return sum((number - want) ** 2 / want for number, want in kept), len(kept) - 1

    statistic, freedom = off(p)
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5
    assert off(q)[0] > 5 * (freedom + 4 * (2 * freedom) ** 0.5)


def test_a_pass_is_what_was_accepted_and_one_more():
    for one in figure(n=4).passes(300):
        assert one["written"][:-1] == one["drafted"][: one["accepted"]]
        assert len(one["written"]) == one["accepted"] + 1
        if one["accepted"] < 4:
            assert one["written"][-1] != one["drafted"][one["accepted"]]  # p - q was below 0 there
    found = [len(one["written"]) for one in figure(n=4).passes(300)]
    assert min(found) == 1 and max(found) == 5


def test_the_same_seed_gives_the_same_passes():
    assert figure().passes(20, seed=3) == figure(seed=3).passes(20) != figure().passes(20, seed=4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"symbols": "aabcdn"}, "'aabcdn', expected two or more different"),
        ({"target": torch.ones(6, 6)}, r"shapes \(6, 6\) and \(6, 6\), expected \(6, 6, 6\)"),
        ({"draft": torch.zeros(6, 6)}, "each symbol needs a successor"),
        ({"draft": torch.eye(6) * 2 - 0.1}, "must not be negative"),
        ({"prompt": "a"}, "the prompt is 'a'"),
        ({"prompt": "axe"}, "the prompt is 'axe'"),
        ({"n": 0}, "n is 0"),
        ({"n": 9}, "expected 1 to 8"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_fallback_shows_passes_and_counts_them():
    shown = figure()
    text = shown.fallback()
    tokens = sum(len(one["written"]) for one in shown.passes(200))
    assert text.count("<tr>") == 9 and f"writes {tokens} characters, {tokens / 200:.2f} a pass" in text
    first = shown.passes(1)[0]
    assert f"<td>{first['drafted'].replace(' ', '␣')}</td><td>{first['accepted']}</td>" in text


def test_it_is_small():
    assert len(DraftVerify.of()._repr_html_()) < 60_000


def test_the_page_makes_the_same_passes(open_figure):
    shown = figure()
    page = open_figure(shown)
    step, whole = (page.get_by_role("button", name=name) for name in ("next step →", "next pass"))

    def written():
        return "".join(page.locator(".d2lmini-text span:not([data-kind=proposed])").all_inner_texts()).replace("␣", " ")

    text = " a"
    for one in shown.passes(4):
        whole.click()
        text += one["written"]
        assert written() == text
    said = page.locator(".d2lmini-tally").inner_text()
    assert f"Passes of the target: 4, characters written: {len(text) - 2}, {(len(text) - 2) / 4:.2f} a pass." in said

    page.get_by_role("button", name="Reset").click()
    first = shown.passes(1)[0]
    note = page.locator(".d2lmini-note")
    for i, symbol in enumerate(first["drafted"].replace(" ", "␣"), start=1):
        assert f"proposes character {i} of 3" in note.inner_text() and f"draws “{symbol}” from q" in note.inner_text()
        step.click()
    for i in range(first["accepted"]):
        assert "so it is accepted" in note.inner_text()
        p, q = shown.distributions(" a" + first["drafted"][:i])
        x = SIGNS.index(first["drafted"][i])
        assert f"p / q = {p[x]:.3f} / {q[x]:.3f}" in note.inner_text()
        step.click()
    if first["accepted"] < 3:
        assert "so it is rejected" in note.inner_text()
        step.click()
        assert "max(p − q, 0)" in note.inner_text()
    else:
        assert "All 3 are accepted" in note.inner_text()
    assert written() == " a" + first["written"]

    slider = page.get_by_role("slider", name="drafted a pass")
    slider.press("ArrowRight")
    page.get_by_role("button", name="again, with other numbers").click()
    whole.click()
    assert written() == " a" + shown.passes(1, n=4, seed=shown.state["seed"] + 1)[0]["written"]
    assert page.log["errors"] == []


def test_repeated_passes_settle_at_the_target(open_figure):
    shown = figure(prompt="da")
    page = open_figure(shown)
    for _ in range(4):
        page.get_by_role("button", name=re.compile("^500 passes")).click()
    tally = page.locator(".d2lmini-tally")
    found = [int(x) for x in tally.get_attribute("data-counts").split()]
    p, q = shown.distributions("da")
    off = [sum(abs(n / 2000 - share) for n, share in zip(found, shares.tolist(), strict=True)) for shares in (p, q)]
    assert sum(found) == 2000 and "Repetitions: 2000" in tally.inner_text()
    assert off[0] < 0.06 < 0.3 < off[1]
    shares = torch.minimum(p, q).sum().item()
    assert f"with the probability {shares:.2f}" in tally.inner_text()
    page.get_by_role("button", name="next pass").click()  # the pass that is shown: the text is the same still
    page.get_by_role("button", name="next pass").click()
    assert set(tally.get_attribute("data-counts").split()) == {"0"}
    assert page.log["errors"] == []
