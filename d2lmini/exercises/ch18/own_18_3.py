r"""Let the chains vote

One question, n chains of thought: each writes some steps and ends with an answer. Some chains never come to one. The
answers vote, and the chains are forgotten (*self-consistency*, Wang et al. 2023).

Answers come as texts, read from the end of each chain: `"42"`, `" 42. "`, `"042"`, `"-7"`, or something that is no
integer at all, as `"forty"`, `""` or `"4 2"`. A text means an integer if it is made of the digits 0 to 9, perhaps with
a minus before them, perhaps with one full stop right behind them, and with spaces around all that or none. Texts that
mean the same integer are the same answer. What is no integer has abstained.
"""

import collections
import re
from fractions import Fraction

import torch

from d2lmini.decoding import majority_vote
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def chance_of(texts, right):
    """How likely the vote is right.

    Args:
        texts: list of n texts, n at least 1.
        right: the right answer, an integer.

    Returns:
        The probability that ``right`` wins where a tie is decided by lot, a float: 0.0, 1.0, or 1 / r where r answers
        have the most votes and ``right`` is one of them. 0.0 where all have abstained.
    """
    ### BEGIN SOLUTION
    votes = {}
    for text in texts:
        text = text.strip().removesuffix(".")
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            continue  # abstains
        answer = int(text)
        votes[answer] = votes.get(answer, 0) + 1
    if not votes:
        return 0.0
    most = max(votes.values())
    winners = [answer for answer, count in votes.items() if count == most]
    return 1 / len(winners) if right in winners else 0.0
    ### END SOLUTION


def by_the_package(texts, right):
    matches = [re.fullmatch(r"\s*(-?[0-9]+)\.?\s*", text) for text in texts]
    return majority_vote([int(match[1]) if match else None for match in matches]).chance(right)


def by_counter(texts, right):
    def read(text):
        try:
            return int(text.strip().rstrip(".")) if " " not in text.strip() else None
        except ValueError:
            return None

    tally = collections.Counter(read(text) for text in texts)
    del tally[None]
    tied = [answer for answer in tally if tally[answer] == max(tally.values())]
    return (right in tied) / max(len(tied), 1)


# mistakes


def _read(text):
    match = re.fullmatch(r"\s*(-?[0-9]+)\.?\s*", text)
    return int(match[1]) if match else None


def texts_vote(texts, right):
    tally = collections.Counter(text for text in texts if _read(text) is not None)
    tied = [text for text in tally if tally[text] == max(tally.values())]
    return sum(_read(text) == right for text in tied) / max(len(tied), 1)


def first_wins(texts, right):
    answers = [_read(text) for text in texts if _read(text) is not None]
    return float(bool(answers) and collections.Counter(answers).most_common(1)[0][0] == right)


def abstaining_wins(texts, right):
    tally = collections.Counter(map(_read, texts))
    tied = [answer for answer in tally if tally[answer] == max(tally.values())]
    return (right in tied) / len(tied)


def absolute_majority(texts, right):
    return float(2 * sum(_read(text) == right for text in texts) > len(texts))


def share_of_votes(texts, right):
    answers = [_read(text) for text in texts if _read(text) is not None]
    return answers.count(right) / max(len(answers), 1)


def any_chain(texts, right):
    return float(right in map(_read, texts))


def ties_count_whole(texts, right):
    return float(chance_of(texts, right) > 0)


def ties_count_nothing(texts, right):
    return float(chance_of(texts, right) == 1)


def sign_lost(texts, right):
    return chance_of([text.replace("-", "") for text in texts], right)


def digits_collected(texts, right):
    """What is no digit is thrown away: "4 2" is 42."""
    return chance_of([re.sub(r"[^0-9-]", "", text) for text in texts], right)


def fractions_vote(texts, right):
    answers = []
    for text in texts:
        try:
            answers.append(float(text.strip().rstrip(".")))
        except ValueError:
            continue
    return _winner(answers, right)


def first_number(texts, right):
    matches = (re.search(r"-?\d+", text) for text in texts)
    return _winner([int(match[0]) for match in matches if match], right)


def _winner(answers, right):
    tied = [answer for answer in set(answers) if answers.count(answer) == max(map(answers.count, answers))]
    return (right in tied) / max(len(tied), 1)


def zero_for_none(texts, right):
    """An abstention is an answer of 0."""
    return chance_of([text if _read(text) is not None else "0" for text in texts], right)


def _write(t, number):
    """An integer in one of its forms."""
    sign, digits = "-" * (number < 0), str(abs(number))
    forms = (f"{number}", f" {number}. ", f"{sign}0{digits}", f"{number}.", f"  {number}")
    return t.random.choice(forms)


def verify(t, answer):
    mine, rival, third = t.random.sample(range(10, 99), 3)
    rival, third = -rival, third + 200
    no = ["forty", "", "4 2", "x = 1", "-", "3.5"]
    torn = f"{str(mine)[:-1]} {str(mine)[-1]}"
    cases = [  # (name, who votes, who abstains, or how many, the right one, how likely it wins)
        ("clear", [mine] * 3 + [rival] * 2, 0, mine, Fraction(1)),
        ("lost", [mine] * 2 + [rival] * 3, 0, mine, Fraction(0)),
        ("no absolute majority", [mine] * 3 + [rival] * 2 + [third] * 2, 0, mine, Fraction(1)),
        ("tie of two, right one first", [mine] * 2 + [rival] * 2 + [third], 0, mine, Fraction(1, 2)),
        ("tie of two, right one last", [rival] * 2 + [third] + [mine] * 2, 0, mine, Fraction(1, 2)),
        ("tie of three", [rival, third, mine], 0, mine, Fraction(1, 3)),
        ("tie of others", [rival] * 2 + [third] * 2 + [mine], 0, mine, Fraction(0)),
        ("most abstain", [mine] * 2 + [rival], 4, mine, Fraction(1)),
        ("all abstain", [], 3, mine, Fraction(0)),
        ("all abstain and 0 is right", [], 3, 0, Fraction(0)),
        ("opposite number", [-mine] * 3 + [mine] * 2, 0, mine, Fraction(0)),
        ("right one torn apart", [rival] * 2 + [mine], [torn] * 2, mine, Fraction(0)),
        ("two fractions", [mine], ["3.5"] * 2, mine, Fraction(1)),
        ("two with words", [mine], [f"x = {rival}"] * 2, mine, Fraction(1)),
        ("a stop in front", [rival], [f".{mine}"] * 2, mine, Fraction(0)),
        ("one votes", [mine], ["forty", ""], mine, Fraction(1)),
        ("0 in three forms", [rival] * 2, ["0", "-0", "00."], 0, Fraction(1)),
        ("neighbours of 16 digits", [2**53] + [2**53 + 1] * 2, 0, 2**53, Fraction(0)),
    ]
    chances, votes = [], []
    for name, numbers, abstaining, right, _ in cases:
        texts = [_write(t, number) for number in numbers]
        texts[:2] = [f"{x}" if i else f" {x}. " for i, x in enumerate(numbers[:2])]  # two forms at least
        texts += abstaining if isinstance(abstaining, list) else t.random.sample(no, abstaining)
        if not name.startswith("tie of two"):
            t.random.shuffle(texts)
        got = t.call(answer, texts, right)
        number = isinstance(got, (int, float)) and not isinstance(got, bool)
        t.that(number, "type", f"the result is a {type(got).__name__}, expected a float")
        t.that(0 <= got <= 1, "no-chance", "the result is no probability, from 0 to 1")
        chances.append(float(got))
        votes.append(f"{name}, texts {texts}, right is {right}")
    want = torch.tensor([float(case[-1]) for case in cases], dtype=torch.float64)
    # all at once: a single vote has few outcomes, and does not tell one mistake from another
    wrong = [vote for vote, chance, case in zip(votes, chances, cases, strict=True) if abs(chance - case[-1]) > 1e-6]
    name = f"the chances in {len(votes)} votes (the first that is wrong: {wrong[0]})" if wrong else "the chances"
    t.same(torch.tensor(chances, dtype=torch.float64, device=t.device), want, name, dtype=torch.float64)


MUTANTS = [
    Mutant("texts", texts_vote, 'texts are counted and not what they mean: "42" and " 42." are one answer'),
    Mutant("first", first_wins, "of several winners the first one wins: each has the same chance"),
    Mutant("abstaining", abstaining_wins, "those that abstain are counted as an answer of their own, and win: they "
        "have no vote"),
    Mutant("absolute", absolute_majority, "more than half of all chains are asked for: the most votes are enough"),
    Mutant("share", share_of_votes, "this is the share of the right answers, the accuracy of *one* chain: the vote "
        "makes one answer of all"),
    Mutant("share", ("1 / len(winners) if right in winners else 0.0", "votes.get(right, 0) / len(texts)"), "this is "
        "the share of the right answers, the accuracy of *one* chain: the vote makes one answer of all"),
    Mutant("among-all", ("1 / len(winners)", "1 / len(votes)"), "it is divided by the number of all answers: only "
        "those with the most votes are in the draw"),
    Mutant("strings", ("answer = int(text)", "answer = text"), "the votes are for texts, and `right` is an integer, "
        "which equals none of them"),
    Mutant("none-is-right", ("    return 0.0\n", "    return 1.0\n"), "where all have abstained it counts as "
        "right: nobody has said the right answer"),
    Mutant("any", any_chain, "it counts as right if any chain is right. That needs somebody who knows which"),
    Mutant("ties-whole", ties_count_whole, "a tie with the right answer in it counts as right: it is so with "
        "probability 1 / r"),
    Mutant("ties-nothing", ties_count_nothing, "a tie counts as wrong: it is right with probability 1 / r"),
    Mutant("sign", sign_lost, "the sign is lost, or a text with a sign abstains: -42 is an integer, and not 42"),
    Mutant("collected", digits_collected, 'whatever is no digit is thrown away before reading: "4 2" is no integer, '
        "and abstains"),
    Mutant("fractions", fractions_vote, "3.5 has a vote: it is no integer, and abstains"),
    Mutant("first-number", first_number, "the first number anywhere in a text is taken for its answer: the whole text "
        "must be an integer, or it abstains"),
    Mutant("zero", zero_for_none, "a chain that abstains votes for 0"),
    Mutant("leading-zero", ("digits.isdigit())", "digits.isdigit() and str(int(digits)) == digits)"), '"042" '
        "abstains: texts that mean the same integer are the same answer"),
    Mutant("no-stop", ('.strip().removesuffix(".")', ".strip()"), '"42." abstains: a full stop at the end does not '
        "change the integer"),
    Mutant("votes-of-one", ("= votes.get(answer, 0) + 1", "= 1"),
        "each answer has one vote, however many chains give it: count them"),
    Mutant("two-or-more", ("if count == most", "if count == most > 1"), "an answer that was given once cannot win: the "
        "most votes may be one"),
    Mutant("raised", ("    if not votes:\n        return 0.0\n", "")),  # no chains left
    # winner returned
    Mutant("no-chance", ("return 1 / len(winners) if right in winners else 0.0", "return float(winners[0])")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-18.3",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-18.3a",
            prompt="Write `chance_of(texts, right)`. Its mean over questions is the accuracy of the vote, and has no "
            "luck in it: where a tie is decided by the order of the chains, the same chains in another order give "
            "another accuracy.",
            hints=[
                "First read each text: what is an integer, what is not? Only then count.",
                '`int(" 042 ")` is 42, and `int("4 2")` raises ValueError. A full stop at the end is none of '
                "`int`'s business.",
                "How many answers have the most votes? Each of them wins with the same probability.",
            ],
            answer=chance_of,
            verify=verify,
            alternatives=[by_the_package, by_counter],
            min_checks=55,
            advice={
                "raised": "If nothing is left to count: all may have abstained. If it is a ValueError: texts may be "
                "no numbers.",
                "values": "Read the texts of the vote that is named one by one: which integer does each mean, and "
                "which abstain? Then count the answers, not the texts, and see how many have the most votes.",
                "no-chance": "It is a probability that is asked for, not the answer that wins.",
            },
            mutants=MUTANTS,
            explanation=r"""
A vote helps where wrong chains err in different ways and right ones agree, even if each is right less than half of the
time: the most votes are enough. It harms where chains make the *same* mistake. Without a tie rule such a number depends
on the order of the chains, mostly for two or three of them, where ties are frequent; a vote of two is as good as one
chain, if none abstains. `d2l.majority_vote` and `d2l.vote_accuracy` do this.
""",
        ),
        Choice(
            key="own-18.3b",
            prompt="A chain of ours is right in 40 % of the cases. Of the wrong ones half give the same wrong answer, "
            "the others all differ. What does a vote of very many chains give?",
            hints=["Which shares do the answers of one question have, in the limit?"],
            options=[
                Option(
                    "The right one in 40 % of the cases, as chains are no better together.",
                    "The vote does not draw one chain, it looks for the most frequent answer.",
                ),
                Option(
                    "Nearly always the commonest wrong answer, as most chains are wrong.",
                    "Most are wrong, but not together: the right answer has 40 % of the votes, the commonest wrong one "
                    "30 %.",
                ),
                Option(
                    "Nearly always the right answer, as it has the most of the votes.",
                    "With 40 % against 30 % the right one is the most frequent, and with many chains the shares are "
                    "what is expected. With two thirds of the wrong chains on one answer, 40 % each, it would be a "
                    "toss; with more, the vote would be surely wrong.",
                    right=True,
                ),
                Option(
                    "It cannot be told without knowing how long the chains of thought are.",
                    "Length matters for how often a chain is right, and that is given.",
                ),
            ],
        ),
    ],
)
