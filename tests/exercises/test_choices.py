"""Who has not understood a question learns nothing from the look of its options."""

import re
import statistics
from collections import Counter

from d2lmini import results
from d2lmini.exercises.engine.model import Choice
from d2lmini.exercises.engine.registry import exercises

CHOICES = [part for exercise in exercises() for part in exercise.parts if isinstance(part, Choice)]
LONGER = 1.35  # times the next in length, at most
MAY_BE_LONGEST = 0.4


def right(part):
    return next(letter for letter, option in part.lettered.items() if option.right)


def test_the_longest_option_is_seldom_the_right_one():
    longest = [max(part.options, key=lambda option: len(option.text)).right for part in CHOICES]
    assert len(CHOICES) > 30 and statistics.mean(longest) <= MAY_BE_LONGEST
    shortest = [min(part.options, key=lambda option: len(option.text)).right for part in CHOICES]
    assert statistics.mean(shortest) <= MAY_BE_LONGEST


def test_no_option_is_much_longer_than_the_next():
    outgrown = []
    for part in CHOICES:
        second, first = sorted(len(option.text) for option in part.options)[-2:]
        if first > LONGER * second:
            outgrown.append(f"{part.key}: {first} characters, then {second}")
    assert not outgrown


def test_no_letter_is_right_much_more_often_than_the_others():
    """Of the choices that have this letter: few have an E."""
    have = Counter(letter for part in CHOICES for letter in part.lettered)
    are = Counter(map(right, CHOICES))
    shares = {letter: are[letter] / number for letter, number in have.items() if number > 1}
    assert all(0.15 <= share <= 0.35 for share in shares.values()), shares


def test_no_explanation_counts_on_the_order_of_the_options():
    """The order is drawn: "as in A" would speak of another option."""
    for part in CHOICES:
        for text in (part.prompt, part.explanation, *part.hints, *(o.text + " " + o.why for o in part.options)):
            assert not any(f"{word} {letter}" in text for word in ("option", "Option", "answer") for letter in "ABCDE")


def test_the_numbers_of_our_own_run_are_its_records():
    metrics = results.load("t5_pretrain", "laptop")["metrics"]["downstream"]["translate"]["starts"]
    (part,) = (part for part in CHOICES if part.key == "own-14.1c")
    (why,) = (option.why for option in part.options if option.right)
    said = re.search(r"(\d+) ?% of a grammar's .* spans, (\d+) ?% .* texts, (\d+) ?% .* FLOPs,? and (\d+) ?%", why)
    ways = "spans of 3", "masked", "masked, as many FLOPs", "not pretrained"
    assert [int(number) for number in said.groups()] == [round(metrics[way]["score"]) for way in ways]
