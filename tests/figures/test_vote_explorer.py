"""Votes: the page counts as the package does, starts with a vote that teaches, and hides the next answer."""

import itertools

import pytest

from d2lmini import results
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


MODELS = results.load("chain_of_thought", "laptop")["metrics"]["models"]
RECORDED = [card for card in MODELS["half of the steps wrong"]["shown"] if len(card["summands"]) == 6]  # the chapter's


def answers(card):
    return [numbers and numbers[-1] for numbers in card["samples"]]


def test_the_first_wrong_number_is_found_and_shares_are_those_of_votes():
    state = VoteExplorer([CHAINS, ANSWERS]).state
    assert state["sizes"] == [1, 5] and state["votes"] == 10 and state["revealed"]
    assert state["questions"][0]["wrong"] == [-1, 0, -1, 1, -1, 0, -1, 0, -1, 0]
    assert state["questions"][1]["wrong"] == [0, -1, -1, 0, -1, *([-1] * 5)]
    for n, *shares in zip(state["sizes"], *(card["shares"] for card in state["questions"]), strict=True):
        for share, card in zip(shares, (CHAINS, ANSWERS), strict=True):
            assert share == pytest.approx(vote_accuracy([answers(card)], [card["right"]], n)["accuracy"], abs=1e-5)
    assert state["shares"] == pytest.approx(
        [vote_accuracy([answers(CHAINS), answers(ANSWERS)], [95, 3], n)["accuracy"] for n in (1, 5)], abs=1e-5
    )


def shares(cards):
    return [
        vote_accuracy([answers(card) for card in cards], [card["right"] for card in cards], n)["accuracy"]
        for n in (1, 5, 20)
    ]


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
SAMPLES = (
    "all => all.map((row) => [...row.querySelectorAll('[data-sample]')].map((node) => Number(node.dataset.sample)))"
)


def go(page, n):
    """Lets n samples vote."""
    page.get_by_role("slider", name="samples").fill(str(n))


def test_the_page_counts_as_the_package_does(open_figure):
    page = open_figure(VoteExplorer([CHAINS, ANSWERS]), width=390)
    note, tally = page.locator(".d2lmini-note"), page.locator("table.tally")
    page.get_by_role("button", name="hide the right answer").click()
    for n, card in enumerate((CHAINS, ANSWERS)):
        page.get_by_role("combobox", name="question").select_option(str(n))
        for k in (1, 4, 10):
            go(page, k)
            voters = answers(card)[:k]
            vote = majority_vote(voters)
            assert tally.get_attribute("data-tied") == " ".join(map(str, vote.tied))
            assert tally.get_attribute("data-abstained") == str(vote.abstained)
            rows = [[str(answer), str(votes)] for answer, votes in vote.tally.items()]
            rows += [["none", str(vote.abstained)]] if vote.abstained else []
            assert tally.locator("tr").evaluate_all(CELLS) == rows
            names = [*vote.tally, *([None] if vote.abstained else [])]
            squares = [[i + 1 for i, answer in enumerate(voters) if answer == name] for name in names]
            assert tally.locator("tr").evaluate_all(SAMPLES) == squares
    go(page, 5)
    assert "5 samples of 10 voted. 4 and 3 are tied with 2 votes each, and a lot decides." in note.inner_text()
    assert note.inner_text().endswith("No answer could be read in 1 sample. Is the vote right?")
    page.get_by_role("button", name="show the right answer").click()
    assert note.inner_text().endswith("The right answer is 3, so the vote is right once in 2 lots.")
    assert page.log["errors"] == []


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_fits(open_figure, width):
    """All vote, the right answer is marked, the latest sample is beside the right way; 768 leaves the book's column."""
    page = open_figure(VoteExplorer(RECORDED), width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    tally, card = page.locator("table.tally"), RECORDED[0]
    vote = majority_vote(answers(card))
    assert list(vote.tied) == [card["right"]] and len(vote.tally) > 8  # else it would not be telling
    rows = tally.locator("tr").evaluate_all(CELLS)
    assert rows[0] == [f"✓ {card['right']}", str(vote.tally[card["right"]])] and len(rows) == len(vote.tally)
    assert f"{card['right']} leads with {rows[0][1]} votes." in page.locator(".d2lmini-note").inner_text()
    head, sample, right = page.locator("table.way tr").evaluate_all(CELLS)
    assert head[-1] == "answer" and sample == ["sample 20", *map(str, card["samples"][19])]
    assert right == ["right", *list(map(str, itertools.accumulate(card["summands"])))[1:]]
    assert page.locator("table.often td").all_inner_texts()[:3] == [f"{100 * x:.0f} %" for x in shares(RECORDED[:1])]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    box = page.locator(".d2lmini-figure").bounding_box()
    assert box["height"] <= (900 if width == 390 else 600)
    for cells in page.locator("table :is(th, td)").all():
        place = cells.bounding_box()
        assert box["x"] <= place["x"] and place["x"] + place["width"] <= box["x"] + box["width"]


def test_another_question_hides_what_is_right_until_it_is_asked(open_figure):
    page = open_figure(VoteExplorer([ANSWERS, CHAINS]))
    note, way = page.locator(".d2lmini-note"), page.locator("table.way tr")
    page.get_by_role("combobox", name="question").select_option("1")
    assert note.inner_text().endswith("95 leads with 5 votes. No answer could be read in 2 samples. Is the vote right?")
    assert way.evaluate_all(CELLS)[1:] == [["sample 10", "", "", "94"], ["right", "?", "", "?"]]
    often = page.locator("table.often tbody tr")
    assert often.evaluate_all(CELLS) == [["this question", "?", "?"], ["all 2 questions", "35 %", "50 %"]]
    assert not {"✓", "✗"} & set(page.locator(".d2lmini-panels").inner_text())
    for _ in range(8):
        page.get_by_role("button", name="samples: back").press("Enter")
    assert way.evaluate_all(CELLS)[1] == ["sample 2", "91", "", "96"]
    page.get_by_role("button", name="show the right answer").press("Enter")
    assert way.evaluate_all(CELLS)[1:] == [["sample 2", "✗ 91", "", "96"], ["right", "90", "", "95"]]
    assert "95 and 96 are tied with 1 vote each, and a lot decides." in note.inner_text()
    assert often.evaluate_all(CELLS)[0] == ["this question", "50 %", "75 %"]
    found = [["sample 3", "no answer could be read"], ["sample 4", "90", "", "✗ 96"], ["sample 5", "90", "", "95"]]
    for k, row in enumerate(found, start=3):
        go(page, k)
        assert way.evaluate_all(CELLS)[1] == row
    go(page, 8)
    assert way.evaluate_all(CELLS)[1] == ["sample 8", "✗ 80", "90", "95"]
    page.get_by_role("button", name="Reset").click()
    assert note.inner_text().startswith("10 samples of 10 voted. 4 and 3 are tied with 2 votes each")
    assert page.log["errors"] == []
