"""Challenges of the playground: what to do, which links set it, and what a reader should find, from the record."""

import json
from dataclasses import dataclass
from pathlib import Path

from ... import results

RECORD = "benchmark_challenges.json"  # written by `python -m benchmarks.challenges`


@dataclass(frozen=True)
class Challenge:
    """A question that a reader answers in the playground.

    Args:
        name: in the address of the page.
        title: the question.
        task_for_reader: what to do and to look at, one to three sentences.
        addresses: dict from labels to settings, as the page's address has them.
        find: what a reader should find; ``{found[label][...]}`` are medians over the record's seeds.
        steps: how many each training run takes.
    """

    name: str
    title: str
    task_for_reader: str
    addresses: dict
    find: str
    steps: int

    def found(self, record=None):
        """``find`` with the numbers of a record, by default the package's, and for how many seeds it does not hold.

        Returns:
            str; None without a record.
        """
        record = record or recorded()
        if record is None:
            return None
        of = record["challenges"][self.name]
        text, seeds = self.find.format(found=of["median"], steps=self.steps), len(next(iter(of["runs"].values())))
        held = len(of["hold"])
        return text if held == seeds else f"{text} This is so for {held} of {seeds} seeds."


def recorded():
    """Returns: dict, the record of all challenges; None where there is none."""
    path = Path(results.FOLDER) / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


_RECALL = "task=recall&size=8&letters=26&rate=0.005&warmup=100"
_NOWHERE = {
    f"{task}, {sees}": f"task={task}&positions={positions}&causal={causal}&rate=0.003&warmup=100"
    for sees, positions, causal in (
        ("with positions", "learned", "false"),
        ("without positions", "none", "false"),
        ("without positions, causal", "none", "true"),
    )
    for task in ("copy", "reverse", "sort")
}

CHALLENGES = [
    Challenge(
        "induction",
        "One block cannot do this, two can: find the head that does it",
        "The model reads a word of different letters, then pieces of that word, and predicts which letter comes next. "
        "Train one block, then two. Which heads of two blocks look at the letter after the earlier occurrence of the "
        "present letter?",
        {"one block": f"{_RECALL}&blocks=1", "two blocks": _RECALL},
        "After {steps:,} steps, one block predicts {found[one block][right]:.0f} % of the held-out letters, two blocks "
        "{found[two blocks][right]:.0f} %. The best head of the second block puts {found[two blocks][head]:.0f} % of "
        "its weight on the letter after an earlier occurrence of the present one: an induction head.",
        1000,
    ),
    Challenge(
        "positions",
        "Without positions, which tasks are lost?",
        "Copy, reverse and sort six letters with positions, then without them. Then let the model without positions "
        "see only earlier tokens (causal). Where it sees everything, a blank stands at each place of the answer.",
        _NOWHERE,
        "A model that sees everything loses all three: it predicts {found[copy, without positions][right]:.0f} %, "
        "{found[reverse, without positions][right]:.0f} % and {found[sort, without positions][right]:.0f} % of the "
        "letters, because all blanks get the same guess. A causal mask gives some of the position away: of the letters "
        "of a copy it predicts {found[copy, without positions, causal][right]:.0f} %, in reverse "
        "{found[reverse, without positions, causal][right]:.0f} % and sorted "
        "{found[sort, without positions, causal][right]:.0f} %.",
        1000,
    ),
    Challenge(
        "norm",
        "Put the norm after each sublayer and find the rate at which it still trains",
        "Four blocks reverse six letters. Which rate is too high with the norm after each sublayer, and does a warm-up "
        "help?",
        {
            "before, 0.01": "blocks=4&norm=before&rate=0.01",
            "after, 0.01": "blocks=4&norm=after&rate=0.01",
            "after, 0.003": "blocks=4&norm=after&rate=0.003",
            "after, 0.01, warm-up": "blocks=4&norm=after&rate=0.01&warmup=200",
        },
        "With the norm before, the model predicts {found[before, 0.01][right]:.0f} % at a rate of 0.01. With the norm "
        "after it stays at {found[after, 0.01][right]:.0f} %. A rate of 0.003 gives {found[after, 0.003][right]:.0f} "
        "%, and 0.01 after a warm-up of 200 steps {found[after, 0.01, warm-up][right]:.0f} %.",
        500,
    ),
    Challenge(
        "residual",
        "Take away the residual connections",
        "Four blocks reverse six letters. Train them with residual connections, then without. Can another rate help?",
        {
            "with": "blocks=4",
            "without": "blocks=4&residual=false",
            "without, 0.001": "blocks=4&residual=false&rate=0.001",
        },
        "With residual connections the model predicts {found[with][right]:.0f} % after {steps:,} steps, without them "
        "{found[without][right]:.0f} %. At a third of the rate it predicts {found[without, 0.001][right]:.0f} % "
        "without them.",
        1000,
    ),
    Challenge(
        "longer",
        "Train at 16, ask at 64: which positions hold?",
        "Train on 16 characters of Shakespeare at a time, and watch the held-out loss at 64. Try each kind of "
        "positions.",
        {
            positions: f"task=text&size=16&longer=64&rate=0.005&positions={positions}"
            for positions in ("none", "learned", "sines", "rotary", "alibi")
        },
        "The loss at 64 is higher than at 16 by {found[alibi][extra]:.2f} nats with ALiBi, {found[none][extra]:.2f} "
        "without positions, {found[rotary][extra]:.2f} with rotary positions, {found[sines][extra]:.2f} with sines "
        "and {found[learned][extra]:.2f} with learned positions. With ALiBi it rises least. Learned positions beyond "
        "the 16th were never trained.",
        1000,
    ),
    Challenge(
        "by-heart",
        "Learn the answer by heart: make it overfit, then mend it",
        "The model adds numbers of six digits, and has 200 sums to learn from. Watch both losses. Which of a smaller "
        "model, weight decay and more sums mends it?",
        {
            "200 sums": "task=add&examples=200",
            "smaller": "task=add&examples=200&blocks=1&width=16",
            "weight decay": "task=add&examples=200&decay=1",
            "2,000 sums": "task=add&examples=2000",
        },
        "With 200 sums the training loss falls to {found[200 sums][train]:.3f} nats and the held-out loss rises to "
        "{found[200 sums][loss]:.1f}; it was lowest, {found[200 sums][lowest]:.1f}, at step "
        "{found[200 sums][lowest_step]:.0f}. With a smaller model it ends at {found[smaller][loss]:.1f}, with weight "
        "decay at {found[weight decay][loss]:.1f}. Neither learns to add: {found[smaller][right]:.0f} % and "
        "{found[weight decay][right]:.0f} % of the digits are right. With 2,000 sums {found[2,000 sums][right]:.0f} % "
        "are.",
        2000,
    ),
]
