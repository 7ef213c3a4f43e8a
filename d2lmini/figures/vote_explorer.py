"""Figure of chapter 18: the answers of several chains of thought vote."""

from itertools import accumulate

from ..decoding.votes import majority_vote, vote_accuracy
from .base import Figure, table


class VoteExplorer(Figure):
    """Recorded samples of what a model answers to sums, and how their answers vote.

    Each sample is a square in the row of its answer. The reader chooses how many vote; the latest sample is shown with
    its steps. At first all samples of a question vote and the right answer is marked. For another question the right
    answer, and the first wrong number of a sample, are shown on request. Votes are counted as `majority_vote` does. A
    table shows how often votes of each size are right, by `vote_accuracy`.

    Args:
        questions: list of dicts as the experiment ``chain_of_thought`` records them. ``summands``: at least two
            numbers; ``right``: their sum; ``samples``: for each sample its numbers, running sums and at the end the
            answer (or the answer alone), or None where it could not be read.
        question: which one is shown first, from 0.
        sizes: of the votes in the table; those larger than the number of samples are left out.

    Raises:
        ValueError: there is nothing to show, a question is not of this form, or there is no such question or size.

    Source: Wang et al. 2023, "Self-consistency improves chain of thought reasoning in language models".
    """

    name = "vote_explorer"
    title = "Answers vote: scattered errors lose"
    hint = (
        "Each square is a sample, in the row of its answer. Go back to one sample and let the others vote one by one. "
        "Then choose another question, and guess whether the leader is right before you show the right answer."
    )

    def __init__(self, questions, question=0, sizes=(1, 5, 20)):
        questions = list(questions)
        if not questions:
            raise ValueError("there is nothing to show: expected at least one question")
        cards = [_card(f"question {i}", given) for i, given in enumerate(questions)]
        if not 0 <= question < len(cards):
            raise ValueError(f"question is {question}, expected 0 to {len(cards) - 1}")
        fewest = min(len(card["samples"]) for card in cards)
        wanted, sizes = tuple(sizes), sorted({n for n in sizes if n <= fewest})
        if not sizes or sizes[0] < 1:
            raise ValueError(
                f"sizes are {wanted}, expected one or more from 1 to {fewest}, the samples of each question"
            )
        answers = [[numbers and numbers[-1] for numbers in card["samples"]] for card in cards]
        rights = [card["right"] for card in cards]
        for card, row in zip(cards, answers, strict=True):
            card["shares"] = [vote_accuracy([row], [card["right"]], n)["accuracy"] for n in sizes]
        super().__init__(
            f"Samples of answers to {len(cards)} sums, and what they come to when they vote.",
            questions=cards,
            sizes=sizes,
            shares=[vote_accuracy(answers, rights, n)["accuracy"] for n in sizes],  # of all questions together
            question=question,
            votes=len(cards[question]["samples"]),
            revealed=True,
        )

    def fallback(self):
        sizes, rows = self.state["sizes"], []
        for card in self.state["questions"]:
            vote = majority_vote(numbers and numbers[-1] for numbers in card["samples"])
            tally = ", ".join(f"{answer} ({votes})" for answer, votes in vote.tally.items())
            row = [_text(card["summands"]), card["right"], tally or "none", vote.abstained]
            rows.append(row + [f"{share:.0%}" for share in card["shares"]])
        rows.append(["all together", "", "", "", *(f"{share:.0%}" for share in self.state["shares"])])
        header = ["question", "right answer", "answers (votes)", "without an answer"]
        header += [f"votes of {n} that are right" for n in sizes]
        return table(header, rows, "What the samples of each question answer, and how often a vote of n is right.")


def _text(summands):
    return " + ".join(map(str, summands))


def _card(what, given):
    """A checked question; of each sample the place of its first wrong number, -1 where there is none."""
    missing = {"summands", "right", "samples"} - set(given)
    if missing:
        raise ValueError(f"{what} lacks {', '.join(sorted(missing))}: expected summands, right and samples")
    summands, right = list(given["summands"]), given["right"]
    if len(summands) < 2 or sum(summands) != right:
        raise ValueError(f"{what} has the summands {summands} and right {right}: expected at least two, and their sum")
    samples = [None if numbers is None else list(numbers) for numbers in given["samples"]]
    if not samples or [] in samples:
        raise ValueError(f"{what} has no samples or an empty one: expected numbers, or None for one not readable")
    wrong = [_first_wrong(summands, numbers) for numbers in samples]
    return {"summands": summands, "right": right, "samples": samples, "wrong": wrong}


def _first_wrong(summands, numbers):
    """Where a chain leaves the running sums: unlike `adds_up`, this asks for the way to the right answer."""
    if numbers is None:
        return -1
    *steps, answer = numbers
    running = list(accumulate(summands))
    for i, number in enumerate(steps):
        if i + 2 >= len(running) or number != running[i + 1]:  # the last sum is the answer's
            return i
    return -1 if answer == running[-1] else len(steps)
