"""What the benchmarks are to reach, and whether the records say that it is reached."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from d2lmini import results
from tools import site

NEAR = 1.05
MET, MISSED, NOT = "met", "**missed**", "not measured"
D2L = ("d2l", "D2L's formulation", "D2L's formula")


@dataclass(frozen=True)
class Bar:
    """A bar for the contests of a benchmark.

    Args:
        text: what is to be reached.
        benchmark: name of the script.
        peers: the contestants that it speaks of.
        limit: how many times the peer's time ours may take; None: ours is to be as fast or faster, or so near (`NEAR`)
            that a quarter of the rounds said so.
        where: facts of the contests that it speaks of.
        wants: the package that a peer is of, where it may be missing.
        reason: why ours is behind, where it is and that was found out; one sentence, with what shows it.
    """

    text: str
    benchmark: str
    peers: tuple
    limit: float | None = None
    where: dict = field(default_factory=dict)
    wants: str | None = None
    reason: str = ""

    def ratios(self, record):
        """Of each contest that the bar speaks of: its name and the quartiles of the ratio."""
        chosen = [of for of in record["contests"] if all(of.get(key) == value for key, value in self.where.items())]
        return [
            (contest["what"], of["ratio"])
            for contest in chosen
            for name, of in contest["contestants"].items()
            if name in self.peers
        ]

    def holds(self, quartiles):
        low, middle, _ = quartiles
        return middle <= self.limit if self.limit is not None else middle <= 1 or (low <= 1 and middle <= NEAR)

    def behind(self, device="cpu"):
        """The contests, with their quartiles, in which the bar is not reached; none where there is no record."""
        record = load(self.benchmark, device)
        return [] if record is None else [of for of in self.ratios(record) if not self.holds(of[1])]

    def judge(self, device="cpu"):
        """Returns: the verdict, `MET`, `MISSED` or `NOT`, and a sentence that says why."""
        record = load(self.benchmark, device)
        if record is None:
            return NOT, missing(self.benchmark, device)
        found = self.ratios(record)
        if not found:
            absent = self.wants and record["versions"].get(self.wants) is None
            return NOT, f"`{self.wants}` was not installed" if absent else "the record has no such contest"
        worst, (low, middle, high) = max(found, key=lambda item: item[1][1])
        held = sum(self.holds(quartiles) for _, quartiles in found)
        told = f"{held} of {len(found)}; at worst {middle:.2f} ({low:.2f} to {high:.2f}): {worst}"
        return (MET if held == len(found) else MISSED), told


@dataclass(frozen=True)
class Value:
    """A bar for one number.

    Args:
        text: what is to be reached.
        find: from the device to the number with its unit in words, and whether it is enough; None: it was not measured.
        how: from the device to why it was not.
    """

    text: str
    find: Callable
    how: Callable

    def judge(self, device="cpu"):
        """As `Bar.judge`."""
        found = self.find(device)
        return (NOT, self.how(device)) if found is None else (MET if found[1] else MISSED, found[0])


def load(name, device="cpu", wants="contests"):
    """The record of a benchmark; None where there is none, or one of another form."""
    path = results.FOLDER / f"benchmark_{name}{'' if device == 'cpu' else '_' + device}.json"
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return record if wants in record else None


def missing(name, device="cpu"):
    """Why there is no record."""
    return "no GPU could be had" if device == "cuda" else f"`python -m benchmarks.{name}` was not run"


def _utilization(device):
    record = load("utilization", device, "utilization") if device == "cuda" else None
    return record and (f"{100 * record['utilization']:.0f} % of the measured rate", record["utilization"] >= 0.45)


def build_seconds():
    """How long the chapters take to execute, one after the other, and how many they are; None: one has no record."""
    path, names = results.FOLDER / "run_times.json", [name for name, _ in site.chapters()]
    times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if any("cpu" not in times.get(name, {}) for name in names):
        return None
    return sum(times[name]["cpu"]["seconds"] for name in names), len(names)


def _build(device):
    found = build_seconds() if device == "cpu" else None
    return found and (f"{found[1]} chapters execute in {found[0] / 60:.1f} min", found[0] < 8 * 60)


BARS = (
    Bar("Attention within 5 % of torch's fused kernel", "attention", ("SDPA",), 1.05),
    Bar("Attention everywhere ahead of D2L's formula", "attention", D2L, 1),
    Bar(
        "Multi-head attention everywhere ahead of `nn.MultiheadAttention`",
        "attention",
        ("nn.MultiheadAttention",),
        1,
        reason="At such lengths both spend most of their time in the same kernel and the same four products: equal to "
        "about a per cent.",
    ),
    Bar(
        "The Transformer's training step as fast as D2L's",
        "training",
        D2L,
        None,
        {"model": "transformer"},
        reason="Dropout of the weights is not in torch's fused kernel for CPUs, so with it ours runs the formula, as "
        "D2L's does; at nine tokens attention is a small part of the step, and without dropout the two are equal, too.",
    ),
    Bar(
        "... twice as fast at 512 tokens",
        "training",
        D2L,
        0.5,
        {"model": "transformer", "T": 512},
        reason="Half of the multiplications of an attention layer are its projections here, 4 h² beside 2 T h for a "
        "token, with h = 256, and these are the same in both; attention alone takes less time than the formula.",
    ),
    Bar("... as fast as `nn.Transformer`'s", "training", ("nn.Transformer",), None, {"model": "transformer"}),
    Bar("A ViT's as fast as `transformers`'", "training", ("transformers",), None, {"model": "vit"}),
    Bar("... as `timm`'s", "training", ("timm",), None, {"model": "vit"}, "timm"),
    Bar("A GPT's as fast as `transformers`' GPT-2", "training", ("transformers",), None, {"model": "gpt"}),
    Bar(
        "A BERT's as fast as `transformers`'",
        "training",
        ("transformers",),
        None,
        {"model": "bert"},
        reason="Both run the same kernels on the same sizes; they are equal to about a per cent.",
    ),
    Bar(
        "Decoding one sequence 1.5 times as fast as `transformers`",
        "decoding",
        ("transformers",),
        2 / 3,
        {"sentences": 1},
        reason="The larger the matrices, the more of a step goes into the products with them, which both have to do.",
    ),
    Bar(
        "Decoding 32 sequences 1.5 times as fast",
        "decoding",
        ("transformers",),
        2 / 3,
        {"sentences": 32},
        reason="The larger the matrices or the vocabulary, the more of a step goes into the products with them, which "
        "both have to do.",
    ),
    Value(
        "GPT-2 124M trains at 45 % of the card's measured matrix rate",
        _utilization,
        lambda device: "of a GPU alone" if device == "cpu" else missing("utilization", device),
    ),
    Value(
        "The chapters execute in 8 minutes",
        _build,
        lambda device: (
            "`python -m tools.run_times` was not run for all chapters" if device == "cpu" else "of the CPU alone"
        ),
    ),
)
