"""The BPE stepper: the page merges as a short reference does, and says what a text that it cannot use lacks."""

import re
from itertools import pairwise

import pytest

from d2lmini.figures import BPEStepper
from d2lmini.figures.bpe_stepper import RHYME


def reference(text, count=None):
    """Merges (left, right, times) and tokens, on ids: independent of the figure's own, which is on strings."""
    names = sorted(set(text))
    ids, merges = [names.index(letter) for letter in text], []
    while count is None or len(merges) < count:
        pairs = [pair for pair in pairwise(ids) if not names[pair[0]][-1].isspace()]
        if not pairs:
            break
        a, b = max(set(pairs), key=lambda pair: (pairs.count(pair), -pair[0], -pair[1]))
        merges.append((names[a], names[b], pairs.count((a, b))))
        if names[a] + names[b] not in names:
            names.append(names[a] + names[b])
        made = names.index(names[a] + names[b])
        for i in range(len(ids)):  # what was joined leaves a gap behind it
            if ids[i : i + 2] == [a, b]:
                ids[i : i + 2] = [made, None]
        ids = [i for i in ids if i is not None]
    return merges, [names[i] for i in ids]


TEXTS = [
    RHYME,
    "aaaaa aaa aa a aaaa baaa",  # pairs that overlap
    "low lower  lowest\nnew newer\t newest ",  # white space of all kinds, two in a row
    "ünïcödé 日本 日本語 🙂🙂 👩‍👩‍👧 \ue000🙂 \ue0001",  # above the first 65,536: by code point, not by half a pair
    "x",
    "\ufeffa \ufeffa\x1fb\x85c",  # the first is no white space, the last two are
]


def drawn(text):
    return text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")


@pytest.mark.parametrize("text", TEXTS)
def test_the_merges_are_those_of_the_reference(text):
    shown = BPEStepper(text)
    merges, tokens = reference(text)
    assert [merge[:3] for merge in shown.merges] == merges
    if merges:
        assert shown.merges[-1][3] == len(tokens)


def test_the_rhyme_is_merged_as_in_the_book():
    (first, second), tokens = reference(RHYME)[0][:2], reference(RHYME)[1]
    assert first[:2] == ("s", "e") and second[:2] == ("e", " ")
    assert tokens == re.findall(r"\w+ ?", RHYME)  # in the end whole words


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"text": 3}, TypeError, "text is a int, expected a string"),
        ({"word": b"sea"}, TypeError, "word is a bytes"),
        ({"text": "a" * 2001}, ValueError, "2001 characters, expected at most 2000"),
        ({"word": "a" * 41}, ValueError, "at most 40"),
        ({"text": "a\ud800"}, ValueError, "half a surrogate pair"),
        ({"text": "a b", "step": 2}, ValueError, "step is 2, expected 0 to 1"),
        ({"step": -1}, ValueError, "step is -1"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        BPEStepper(**changes)


def test_the_fallback_tells_the_first_merges():
    text = BPEStepper("low lower\r\nlowest").fallback()
    (left, right, times), *_ = reference("low lower\nlowest")[0]
    assert f"<td>{left} + {right}</td><td>{left + right}</td><td>{times}</td>" in text and "↵" in text
    assert "The first 0 of the 0 merges" in BPEStepper("").fallback()


def test_it_is_small():
    assert len(BPEStepper()._repr_html_()) < 31_000


def said(page):
    return page.locator(".d2lmini-note").first.inner_text()


def tokens_of(page, where="the text as tokens"):
    return page.get_by_role("group", name=where).locator(".token").all_text_contents()


def test_the_page_merges_as_the_reference(open_figure):
    page = open_figure(BPEStepper())
    for text in (RHYME, TEXTS[3], TEXTS[-1]):  # of the others, tests/javascript compares the merges
        page.get_by_role("textbox", name="text").fill(text)
        merges, tokens = reference(text)
        page.get_by_role("button", name="to the end").press("Enter")
        listed = page.get_by_role("group", name="merges so far").text_content()
        plain = lambda s: "".join(  # noqa: E731
            f"⟨{ord(c):x}⟩" if c in "\u200d\ufeff\x1f\x85\ue000" else c for c in drawn(s)
        )
        rows = [f"{i}. {plain(a)} + {plain(b)} → {plain(a + b)} ({n})" for i, (a, b, n) in enumerate(merges, 1)]
        assert listed == ("\n".join(rows) or "none")
        assert tokens_of(page) == [plain(token) for token in tokens]
        assert f"After {len(merges)} of {len(merges)} merges: {len(tokens)} tokens" in said(page)
    assert page.log["errors"] == []


def test_the_page_walks_shows_the_table_and_asks_for_a_word(open_figure):
    page = open_figure(BPEStepper(step=3), width=390)
    counts = []
    for step in range(3, 8):
        tokens = reference(RHYME, step)[1]
        assert tokens_of(page) == [drawn(token) for token in tokens]
        left, right, times = reference(RHYME, step + 1)[0][-1]
        first = page.locator("tbody tr.chosen > *").all_inner_texts()
        assert first == [f"{drawn(left)} + {drawn(right)}", drawn(left + right), str(times)]
        assert f"{len(set(tokens))} of them different. Next: {drawn(left)} + {drawn(right)}, {times} times" in said(
            page
        )
        graphs = page.locator("figure svg text").all_text_contents()
        assert [int(re.search(r": (\d+) of at most", text)[1]) for text in graphs] == [len(set(tokens)), len(tokens)]
        counts.append(page.locator("tbody tr").count())
        page.get_by_role("button", name="next").click()
    assert counts == [8] * 5
    page.get_by_role("button", name="back").click()
    assert "After 7 of" in said(page)

    # another word, split by the same merges; what the text does not have is said
    asked = page.get_by_role("textbox", name="another word")
    assert tokens_of(page, "the word as tokens") == ["se", "a", "w", "e", "e", "d", "␣"]  # the merge is of sea␣
    asked.fill("see🙂q")
    assert tokens_of(page, "the word as tokens") == ["se", "e", "🙂", "q", "␣"]
    assert page.locator(".d2lmini-note").last.inner_text().endswith("no token stands for it: 🙂 q")
    asked.fill("")
    assert page.locator(".d2lmini-note").last.inner_text() == "Type a word to see its tokens."

    # texts that are empty, too long, or have line ends of another kind
    area = page.get_by_role("textbox", name="text", exact=True)
    area.fill("")
    assert said(page) == "There is no text to merge: type some." and tokens_of(page) == []
    area.fill("a b c " * 400 + "\na b\n")
    assert "its last 405 characters are left out" in said(page)
    page.get_by_role("button", name="to the end").click()
    assert "No pair is left: every word is one token." in said(page)
    assert set(tokens_of(page)) == {"a␣", "b␣", "c␣"}
    assert page.get_by_role("button", name="next").get_attribute("aria-disabled") == "true"
    area.fill("a b\na b\n")
    page.get_by_role("button", name="to the end").press("Enter")
    assert tokens_of(page) == ["a␣", "b↵", "a␣", "b↵"]
    page.get_by_role("button", name="Reset").click()
    assert area.input_value() == RHYME and "After 3 of" in said(page)
    assert page.log["errors"] == []
