"""Votes: the page counts as the package does, and hides what is right until it is asked."""

import pytest

from d2lmini.decoding.votes import majority_vote, vote_accuracy
from d2lmini.figures import VoteExplorer

CHAINS = {
    "summands": [70, 20, 5],
    "right": 95,
    "samples": [[90, 95], [91, 96], None, [90, 96], [90, 95], [91, 95], None, [80, 90, 95], [95], [94]],
}
ANSWERS = {
    "summands": [1, 2],
    "right": 3,
    "samples": [[4], [3], [3], [4], None, *([None] * 5)],
}


def answers(card):
    return [numbers and numbers[-1] for numbers in card["samples"]]


def test_the_first_wrong_number_is_found_and_shares_are_those_of_votes():
    state = VoteExplorer([CHAINS, ANSWERS]).state
    assert state["sizes"] == [1, 5] and state["votes"] == 5
    assert state["questions"][0]["wrong"] == [-1, 0, -1, 1, -1, 0, -1, 0, -1, 0]
    assert state["questions"][1]["wrong"] == [0, -1, -1, 0, -1, *([-1] * 5)]
    for n, *shares in zip(state["sizes"], *(card["shares"] for card in state["questions"]), strict=True):
        for share, card in zip(shares, (CHAINS, ANSWERS), strict=True):
            assert share == pytest.approx(vote_accuracy([answers(card)], [card["right"]], n)["accuracy"], abs=1e-5)
    assert state["shares"] == pytest.approx(
        [vote_accuracy([answers(CHAINS), answers(ANSWERS)], [95, 3], n)["accuracy"] for n in (1, 5)], abs=1e-5
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions": []}, "nothing to show"),
        ({"questions": [{"summands": [1, 2]}]}, "lacks right, samples"),
        ({"questions": [CHAINS | {"right": 96}]}, "right 96: expected at least two, and their sum"),
        ({"questions": [CHAINS | {"summands": [95]}]}, "at least two"),
        ({"questions": [CHAINS | {"samples": []}]}, "no samples"),
        ({"questions": [CHAINS | {"samples": [[]]}]}, "an empty one"),
        ({"question": 1}, "question is 1, expected 0 to 0"),
        ({"question": -1}, "question is -1, expected 0 to 0"),
        ({"sizes": [20]}, "from 1 to 10"),
        ({"sizes": [0, 1]}, "from 1 to 10"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        VoteExplorer(**{"questions": [CHAINS], **changes})


def test_the_fallback_tells_of_every_question():
    text = VoteExplorer([CHAINS, ANSWERS]).fallback()
    assert '<th scope="row">70 + 20 + 5</th><td>95</td><td>95 (5), 96 (2), 94 (1)</td><td>2</td><td>50%</td>' in text
    assert '<th scope="row">1 + 2</th><td>3</td><td>4 (2), 3 (2)</td><td>6</td><td>20%</td><td>25%</td>' in text


CELLS = "all => all.map((row) => [...row.cells].map((cell) => cell.textContent))"


def test_the_page_counts_as_the_package_does(open_figure):
    page = open_figure(VoteExplorer([CHAINS, ANSWERS]), width=390)
    note, press = page.locator(".d2lmini-note"), lambda name: page.get_by_role("button", name=name, exact=True).click()
    chains, tally = page.locator("table.chains tbody tr"), page.locator("table.tally")
    for n, card in enumerate((CHAINS, ANSWERS)):
        page.get_by_role("combobox", name="question").select_option(str(n))
        for size in (1, 5):
            page.get_by_role("combobox", name="samples that vote").select_option(str(size))
            for start in range(0, 10, size):
                for k in range(1, size + 1):
                    press("draw one")
                    vote = majority_vote(answers(card)[start : start + k])
                    assert tally.get_attribute("data-tied") == " ".join(map(str, vote.tied))
                    assert tally.get_attribute("data-abstained") == str(vote.abstained)
                    rows = [[str(answer), "", str(votes)] for answer, votes in vote.tally.items()]
                    rows += [["no answer", "", str(vote.abstained)]] if vote.abstained else []
                    assert tally.locator("tr").evaluate_all(CELLS) == rows
                assert chains.count() == size
                page.get_by_role("button", name="other samples").click()
        assert chains.count() == 0
    press("draw all")
    assert "A tie: 4 and 3 have 2 each, a lot decides. 1 without an answer." in note.inner_text()
    press("reveal")
    assert "Right is 3. The vote is right once in 2 lots." in note.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.log["errors"] == []


def test_what_is_right_is_hidden_until_it_is_asked(open_figure):
    page = open_figure(VoteExplorer([CHAINS, ANSWERS]))
    note, chains = page.locator(".d2lmini-note"), page.locator("table.chains tbody tr")
    page.get_by_role("button", name="no", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="no", exact=True).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="draw all").focus()
    page.keyboard.press("Enter")
    assert note.inner_text() == "5 of 5 drawn. A tie: 95 and 96 have 2 each, a lot decides. 1 without an answer."
    assert page.locator("table.often tr").count() == 0
    assert not {"✓", "✗"} & set(page.locator(".d2lmini-panels").inner_text())
    page.get_by_role("button", name="other samples").click()
    page.get_by_role("button", name="no", exact=True).click()
    page.get_by_role("button", name="draw all").click()
    page.get_by_role("button", name="reveal").click()
    assert chains.evaluate_all(CELLS) == [
        ["6", "✗ 91", "", "95"],
        ["7", "no answer"],
        ["8", "✗ 80", "90", "95"],
        ["9", "", "", "95"],
        ["10", "", "", "✗ 94"],
    ]
    said = note.inner_text()
    assert "95 leads with 3 of 5. 1 without an answer. Right is 95. The vote is right. You guessed no: not so." in said
    assert page.locator("table.tally th").first.inner_text() == "✓ 95"
    often = page.locator("table.often tbody tr").evaluate_all(CELLS)
    assert often == [["this question", "50%", "75%"], ["all 2 questions", "35%", "50%"]]
    page.get_by_role("button", name="Reset").click()
    assert chains.count() == 0 and "70 + 20 + 5 = ?" in note.inner_text()
    assert page.log["errors"] == []
