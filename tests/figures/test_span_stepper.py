"""The span stepper: the page corrupts and restores as the package does, on draws and on what a reader chooses."""

import itertools

import pytest
import torch

from d2lmini.figures import SpanStepper
from d2lmini.figures.span_stepper import FIVE_WORDS, LONGEST, MORE_WORDS
from d2lmini.objectives import corrupted_lengths, random_spans

DRAWS = {(0.5, 1): [[True, False, True], [False, True, True]]}


def test_the_sentence_of_the_book_comes_out():
    shown = SpanStepper.of()
    assert shown.corrupted([bit == "1" for bit in shown.state["noise"]]) == {
        "input": ["I", "<X>", "this", "<Y>"],
        "target": ["<X>", "love", "<Y>", "red", "car", "<Z>"],
        "restored": FIVE_WORDS.split(),
    }


def test_the_draws_are_those_of_random_spans():
    shown = SpanStepper.of(MORE_WORDS, 0.2, 2, seeds=(3, 5), others=[FIVE_WORDS.split()])
    assert shown.state["shares"] == [0.15, 0.2, 0.3, 0.5] and shown.state["means"] == [1, 2, 3, 5]
    for text, words in enumerate((MORE_WORDS, FIVE_WORDS)):
        T, draws = len(words.split()), shown.draws(text)
        assert draws.shape == (16, 2, T)
        for i, (share, mean) in enumerate(itertools.product(shown.state["shares"], shown.state["means"])):
            for j, seed in enumerate((3, 5)):
                generator = torch.Generator().manual_seed(seed)
                wanted = random_spans(1, T, generator=generator, noise_density=share, mean_span=mean)[0]
                assert torch.equal(draws[i, j], wanted)
                made = shown.corrupted(draws[i, j], text)
                assert (len(made["input"]), len(made["target"])) == corrupted_lengths(T, share, mean)
                assert made["restored"] == words.split()
    assert shown.state["noise"] == "".join(str(int(bit)) for bit in shown.draws()[5, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": {}}, "draws are of"),
        ({"draws": {(0.5, 1): [[True] * 3], (0.3, 2): [[True] * 3]}}, "every noise_density with every mean_span"),
        ({"noise_density": 0.3}, "no draws of"),
        ({"words": ["a"]}, "1 words, expected 2 to 50"),
        ({"words": ["a"] * (LONGEST + 1)}, "51 words"),
        ({"words": ["a", "<Y>", "b"]}, "holds <Y>, which is a sentinel"),
        ({"words": ["a", "b"]}, r"shape \(2, 3\), expected booleans \(n, 2\)"),
        ({"draws": {(0.5, 1): [[0, 1, 0]]}}, "torch.int64"),
        ({"draws": {(0.5, 1): torch.zeros(0, 3, dtype=torch.bool)}}, "at least 1"),
        ({"others": [(["a", "b"], {(0.5, 1): [[True, False]]})]}, "unlike numbers of draws"),
        ({"noise": [3]}, r"noise is \[3\], expected places from 0 to 2"),
        ({"step": 6}, "step is 6"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SpanStepper(**{"words": ["a", "b", "c"], "draws": DRAWS, "noise_density": 0.5, "mean_span": 1, **changes})


def test_the_fallback_has_all_steps():
    text = SpanStepper(["a", "b", "c"], DRAWS, 0.5, 1).fallback()
    for name, tokens, count in [
        ("1. the words", "a b c", 3),
        ("2. of them, noise", "a c", 2),
        ("3. input", "&lt;X&gt; b &lt;Y&gt;", 3),
        ("4. target", "&lt;X&gt; a &lt;Y&gt; c &lt;Z&gt;", 5),
        ("5. restored", "a b c", 3),
    ]:
        assert f'<th scope="row">{name}</th><td>{tokens}</td><td>{count}</td>' in text


def test_it_is_small():
    assert len(SpanStepper.of()._repr_html_()) < 29_000


class Page:
    """What a reader sees."""

    def __init__(self, page):
        self.page, self.note = page, page.locator(".d2lmini-note")
        self.words = page.get_by_role("group", name="words", exact=True).get_by_role("button")

    def row(self, name):
        box = self.page.locator(f"[role=group][aria-label='{name}']")
        return box.locator("span").all_text_contents() if box.is_visible() else None

    def noise(self):
        return [node.get_attribute("aria-pressed") == "true" for node in self.words.all()]

    def lengths(self):
        return [node.inner_text() for node in self.page.locator(".d2lmini-length").all() if node.is_visible()]

    def menus(self):
        """What the menus of share and mean span say."""
        texts = "all => all.map((menu) => menu.selectedOptions[0].textContent)"
        return self.page.locator("select").evaluate_all(texts)[-2:]

    def press(self, name):
        self.page.get_by_role("button", name=name).press("Enter")

    def agrees(self, shown, text=0):
        """All of step 5 is what the package makes of the noise on the page. Returns the noise."""
        self.press("to the end")
        noise = self.noise()
        made, T = shown.corrupted(noise, text), len(noise)
        assert [self.row("the input"), self.row("the target"), self.row("restored")] == list(made.values())
        spans = sum(now and not before for before, now in itertools.pairwise([False, *noise]))
        n, count = sum(noise), lambda key, what: f"{len(made[key])} {what}{'' if len(made[key]) == 1 else 's'}"
        assert self.lengths() == [
            f"words: {T}, of them noise: {n} ({100 * n / T:.0f} %), in {spans} span{'' if spans == 1 else 's'}",
            f"the input: {T} − {n} + {spans} = {count('input', 'token')}",
            f"the target: {n} + {spans} + 1 = {count('target', 'token')}",
            f"restored: {count('restored', 'word')}",
        ]
        return noise


def test_the_page_goes_step_by_step(open_figure):
    seen = Page(open_figure(SpanStepper.of(step=1), width=390))
    rows = ("the input", "the target", "restored")
    for step in range(1, 6):
        assert seen.note.inner_text().startswith(f"{step}. ")
        assert [seen.row(name) is not None for name in rows] == [step >= 3, step >= 4, step >= 5]
        assert seen.noise() == ([False] * 5 if step == 1 else [False, True, False, True, True])
        assert len(seen.lengths()) == max(1, step - 1) and ("noise" in seen.lengths()[0]) == (step > 1)
        seen.press("next")
    assert seen.page.get_by_role("button", name="next").get_attribute("aria-disabled") == "true"
    seen.press("back")
    assert seen.row("restored") is None and "<X> love <Y> red car <Z>" in seen.note.inner_text()
    assert seen.page.log["errors"] == []


def test_what_a_reader_chooses_is_corrupted_as_by_the_package(open_figure):
    shown = SpanStepper.of(step=1)
    seen = Page(open_figure(shown))
    seen.words.nth(2).click()  # at the first step a choice begins
    assert seen.noise() == [False, False, True, False, False]
    assert "1 word of 5 is noise, in 1 span (chosen word by word)" in seen.note.inner_text()
    wanted = {2}
    assert seen.agrees(shown) == [i in wanted for i in range(5)]
    for i in (0, 1, 2, 1):  # by mouse and by key
        if i % 2:
            seen.words.nth(i).click()
        else:
            seen.words.nth(i).focus()
            seen.page.keyboard.press("Enter")
        wanted ^= {i}
        assert seen.agrees(shown) == [j in wanted for j in range(5)]
    seen.words.nth(0).click()
    assert seen.agrees(shown) == [False] * 5 and seen.row("the target") == ["<X>"]
    seen.press("Reset")
    assert seen.note.inner_text().startswith("1. ")
    assert seen.page.log["errors"] == []


def test_draws_and_settings_are_those_of_the_package(open_figure):
    shown = SpanStepper.of(seeds=range(2))
    seen = Page(open_figure(shown))
    for text in (0, 1):
        if text:
            seen.page.get_by_role("combobox", name="text").select_option("1")
        for i, j in ((0, 0), (1, 2)):
            seen.page.get_by_role("combobox", name="share").select_option(index=i)
            seen.page.get_by_role("combobox", name="mean span").select_option(index=j)
            for draw in (0, 1):
                assert seen.agrees(shown, text) == shown.draws(text)[3 * i + j, draw].tolist()
                for _ in range(3):
                    seen.press("back")
                assert f"(draw {draw + 1} of 2)" in seen.note.inner_text()
                assert seen.menus() == [f"about {(15, 30, 50)[i]} %", str((1, 3, 5)[j])]
                seen.press("draw again")
    assert seen.page.log["errors"] == []


def test_as_many_sentinels_as_there_can_be(open_figure):
    words = [f"w{i}" for i in range(LONGEST)]
    shown = SpanStepper(words, {(0.5, 1): [[i % 2 == 0 for i in range(LONGEST)]]}, 0.5, 1)
    seen = Page(open_figure(shown, width=390))
    seen.agrees(shown)
    assert seen.row("the target")[-1] == "<A>" and seen.page.log["errors"] == []


SHORT = "we met her old friends in Rome"  # those of chapter 14
LONG = "the letter that she had lost for years lay under the stairs behind a box of old photographs and a broken clock"


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_all_fit(open_figure, width):
    """All four rows are filled, and the menus do not claim a share that the words do not have."""
    shown = SpanStepper.of(SHORT, 0.3, 1, noise=[1, 3, 4], others=[LONG])
    page = open_figure(shown, width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    seen, box = Page(page), page.locator(".d2lmini-figure")
    assert seen.row("the input") == ["we", "<X>", "her", "<Y>", "in", "Rome"]
    assert seen.row("the target") == ["<X>", "met", "<Y>", "old", "friends", "<Z>"]
    assert seen.row("restored") == SHORT.split() and "3 (43 %)" in seen.lengths()[0]
    assert seen.menus() == ["as chosen", "as chosen"]
    most = 900 if width == 390 else 640
    assert box.bounding_box()["height"] <= most
    page.get_by_role("combobox", name="text").select_option("1")
    for i in range(3):
        page.get_by_role("combobox", name="share").select_option(index=i)
        for j in range(3):
            page.get_by_role("combobox", name="mean span").select_option(index=j)
            assert box.bounding_box()["height"] <= most
    seen.words.nth(0).click()
    assert seen.menus() == ["as chosen", "as chosen"]
    assert page.evaluate("document.documentElement.scrollWidth") == width and page.log["errors"] == []
