"""Learning in the page, as the page "Measured" tells of it: steps a second, distance from torch, and the challenges."""

from d2lmini.figures.playground.challenges import CHALLENGES

TITLE = "Learning in the page"
CHALLENGES_WORDS = """\
Each challenge of the playground was trained in headless Chromium as its links set it, with several seeds. We count the
seeds whose runs find what the challenge promises. `benchmarks/challenges.py` states the criterion of each.
"""


def speed(record):
    """Markdown: steps a second of the processor, by model."""
    rows = [
        "| width | sequences | activation | positions | to be reached | steps a second |",
        "|---|---|---|---|---|---|",
    ]
    for of in record["speed"]:
        low, middle, high = of["per_second"]
        rows.append(
            f"| {of['num_hiddens']} | {of['batch']} of {of['size']} | {of['ffn']} | {of['positions']} | {of['goal']} "
            f"| {middle:.0f} ({low:.0f} to {high:.0f}) |"
        )
    return "Two blocks; forward, backward and a step of AdamW, by the processor time of Chromium.\n\n" + "\n".join(rows)


def equality(record):
    """A few sentences: how far losses and gradients are from torch's."""
    of = record["equality"]
    return (
        f"In {of['settings']} settings, the loss and the gradient of each weight differ from torch's in float64 by at "
        f"most {of['gradients']:.1e}, relative to their norms. Torch's own in float32 differ by at most "
        f"{of['torch_float32']:.1e}. The difference is above 1e-4 in {of['above']} settings. In {of['runs']} training "
        f"runs of fifty steps the losses differ by at most {of['losses']:.1e}, relative to torch's."
    )


def challenges(record):
    """Markdown: a row for each challenge that was run."""
    rows = ["| challenge | steps | seeds that find it | what is found |", "|---|---|---|---|"]
    for challenge in CHALLENGES:
        if challenge.name in record["challenges"]:
            of = record["challenges"][challenge.name]
            seeds = len(next(iter(of["runs"].values())))
            found = f"{len(of['hold'])} of {seeds}"
            rows.append(f"| {challenge.title} | {of['steps']:,} | {found} | {challenge.found(record)} |")
    return f"{CHALLENGES_WORDS}\nMedians over the seeds:\n\n" + "\n".join(rows)
