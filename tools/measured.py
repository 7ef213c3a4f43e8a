"""The page "Measured" of the book: bars and contests from the records of `benchmarks/`, and every experiment."""

import json

from d2lmini import results
from tools import _book, _chart, _in_page, _learning, site
from tools._bars import BARS, NEAR, NOT, Bar, load, missing

DEVICES = ("cpu", "cuda")
MIB = 2**20
HEAD = """\
How fast is what this book builds, beside what others use? Every number in the tables was written by a program,
often of [`benchmarks/`]({url}/tree/{branch}/benchmarks), into a record, and from there onto this page.

- **In turns.** Ours and its peers do the same work on the same inputs, in one process, one after the other, in
  every second round in the opposite order.
- **Median and quartiles.** Of the seconds, and of the ratio of our time to the peer's, which is taken round by round. A
  ratio below 1 says that ours is faster. In brackets are the quartiles.
- **Memory** is the peak beyond what was held before the call.
- On a CPU contests run on one thread, in single precision, and processor time is counted; on a GPU, in bf16.
- *As fast* holds where the median ratio is at most 1, or at most {near} with a lower quartile below 1: then the rounds
  do not tell the two apart. *Ahead* and *times as fast* are held to the median.
"""

EXPERIMENTS = """\
One row for each experiment of the chapters, with a main number of its run `full`, or else `laptop`. Each row is read
from a JSON file in `d2lmini/results/` that holds the whole curve, the configuration, the commit, the versions, the
device and the checksums of the data. With one seed, a small difference may be chance. `python -m d2lmini run --list`
shows the presets and how long they take.
"""


def measured_on(name, device="cpu", wants="contests"):
    """A line: device, versions and date of a record; or that there is none."""
    record = load(name, device, wants)
    if record is None:
        return f"Not measured: {missing(name, device)}."
    versions = ", ".join(f"{package} {number}" for package, number in record["versions"].items() if number)
    return f"Measured on {record['device']['name']}, {record['date'][:10]}, by `{record['command']}`; {versions}."


def bars_table():
    """Markdown: each bar, whether it is met on a CPU and on a GPU, and what was found."""
    rows = ["| to be reached | on a CPU | on a GPU |", "|---|---|---|"]
    for bar in BARS:
        cells = (f"{verdict}: {why}" for verdict, why in map(bar.judge, DEVICES))
        rows.append(f"| {bar.text} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def when():
    """A line: on what the bars were measured, and on which days."""
    dates = {}
    for device in DEVICES:
        for name in ("attention", "training", "translation", "decoding"):
            if (record := load(name, device)) is not None:
                dates.setdefault(record["device"]["name"], set()).add(record["date"][:10])
    found = "; ".join(f"{name}, {' and '.join(sorted(days))}" for name, days in dates.items())
    return f"Measured on {found}." if found else "No benchmark was run yet: `make bench`."


def experiments_table():
    """Markdown: the headline of each experiment's largest recorded run; the experiment says which number that is."""
    rows = ["| experiment | preset | seeds | result | device | wall time |", "|---|---|---|---|---|---|"]
    for name in sorted({name for name, _ in results.recorded()}):
        (record,) = results.largest(name)
        device = record["device"]
        processes = f", {device['processes']} processes" if "processes" in device else ""
        cost = f"{device['name']}{processes} | {record['wall_s'] / 60:.1f} min"
        told = record["metrics"]["headline"].replace(" |", ";")  # which would begin another cell
        rows.append(f"| `{name}` | `{record['preset']}` | {len(record['seeds'])} | {told} | {cost} |")
    return "\n".join(rows)


def contests_table(record, chosen=lambda contest: True):
    """Markdown: a row for each contestant of each contest."""
    rows = ["| work | whose | a second | seconds | our time over it | peak memory |", "|---|---|---|---|---|---|"]
    for contest in filter(chosen, record["contests"]):
        for name, of in contest["contestants"].items():
            ratio = _range(of["ratio"], "{:.2f}") if "ratio" in of else ""
            rows.append(
                f"| {contest['what']} | {name} | {of['per_second']:,.4g} {contest['unit']} "
                f"| {_range(of['seconds'], '{:.3g}')} | {ratio} | {of['peak_bytes'] / MIB:,.1f} MiB |"
            )
    return "\n".join(rows)


def by_length(record, value):
    """Of causal attention forward and backward: dict from contestants to pairs (tokens, value)."""
    found = {}
    for contest in record["contests"]:
        if (contest["subject"], contest["case"], contest["way"]) == ("attention", "causal", "forward and backward"):
            for name, of in contest["contestants"].items():
                found.setdefault(name, []).append((contest["T"], value(contest, of)))
    return found


def attention_part(device):
    record = load("attention", device)
    if record is None:
        return []
    seconds = by_length(record, lambda contest, of: 1000 * of["seconds"][1] / contest["B"])
    memory = by_length(record, lambda contest, of: max(of["peak_bytes"], 1) / MIB / contest["B"])
    lead = "Causal attention, forward and backward, by the number of tokens:"
    words = "; ".join(f"{name} {of[-1][1]:.3g}" for name, of in seconds.items())
    room = "; ".join(f"{name} {of[-1][1]:.3g}" for name, of in memory.items())
    longest = max(contest["T"] for contest in record["contests"])
    rows = ["| causal attention, forward and backward | " + " | ".join(f"{T:,}" for T, _ in seconds["ours"]) + " |"]
    rows.append("|---" * (1 + len(seconds["ours"])) + "|")
    for unit, table in (("milliseconds a sequence", seconds), ("MiB a sequence", memory)):
        for name, of in table.items():
            rows.append(f"| {name}, {unit} | " + " | ".join(f"{value:.3g}" for _, value in of) + " |")
    return [
        _chart.lines(f"{lead} at {longest:,} tokens, milliseconds: {words}.", seconds, "tokens", "milliseconds"),
        _chart.lines(f"{lead} at {longest:,} tokens, MiB of memory: {room}.", memory, "tokens", "MiB"),
        "\n".join(rows),
        _folded("All of it", contests_table(record)),
    ]


def contests_part(name, device):
    record = load(name, device)
    return [] if record is None else [contests_table(record)]


def utilization_part(device):
    record = load("utilization", device, "utilization")
    if record is None:
        return []
    tokens = record["contests"][0]["contestants"]["ours"]["per_second"]
    return [
        f"GPT-2 124M, compiled, trains on {tokens:,.0f} tokens a second: {100 * record['utilization']:.1f} % of the "
        f"{record['matrix_flops'] / 1e12:,.0f} TFLOP a second that the card was measured to do in products of matrices."
    ]


def cost_part(device):
    record = load("cost", device, "curves")
    if record is None:
        return []
    rows = ["| what grows | of | FLOPs forward | exponent of the formula | measured |", "|---|---|---|---|---|"]
    rows += [
        f"| {of['variable']}, {min(of['values']):,} to {max(of['values']):,} | {of['kind']} | {of['formula']} "
        f"| {of['formula_exponent']:.2f} | {of['measured_exponent']:.2f} |"
        for of in record["curves"]
    ]
    in_T = {
        of["kind"]: list(zip(of["values"], (1000 * s for s in of["seconds"]), strict=True))
        for of in record["curves"]
        if of["variable"] == "T"
    }
    words = ", ".join(f"{of['kind']} {of['measured_exponent']:.2f}" for of in record["curves"] if of["variable"] == "T")
    alt = f"Time of attention of several kinds by the number of tokens; slopes of the lines: {words}."
    return ["\n".join(rows), _chart.lines(alt, in_T, "tokens", "milliseconds")]


def in_page_part():
    """The section on models in the page: list of Markdown."""
    path = results.FOLDER / _in_page.ROUNDING
    parts = [f"## {_in_page.TITLE}\n"] + ([_in_page.rounding(json.loads(path.read_text()))] if path.is_file() else [])
    speed, peers = ("live", "cpu", "models"), ("live_peers", "cpu", "contestants")
    real = "real_model", "cpu", "plain"
    if record := load(*speed):
        parts += [_in_page.SPEED_WORDS, _in_page.speed(record), measured_on(*speed)]
    if record := load(*peers):
        parts += [_in_page.WORDS, _in_page.table(record, _range), _in_page.verdict(record), measured_on(*peers)]
    if record := load(*real):
        parts += [_in_page.real(record), measured_on(*real)]
    return parts


def learning_part():
    """The section on what learns in the page: list of Markdown, empty where nothing was recorded."""
    learning, challenges = ("learning", "cpu", "speed"), ("challenges", "cpu", "challenges")
    parts = []
    if record := load(*learning):
        parts += [_learning.speed(record), _learning.equality(record), measured_on(*learning)]
    if record := load(*challenges):
        parts += [_learning.challenges(record), measured_on(*challenges)]
    return [f"## {_learning.TITLE}\n", *parts] if parts else []


def behind():
    """Markdown: where a bar is missed, by how much, and why, as far as that is known."""
    lines = []
    for device in DEVICES:
        for bar in (bar for bar in BARS if isinstance(bar, Bar)):
            if found := bar.behind(device):
                works = "; ".join(f"{work}, {_range(quartiles, '{:.2f}')}" for work, quartiles in found)
                place = "on a GPU" if device == "cuda" else "on a CPU"
                lines.append(f"- {bar.text}, {place}: {works}. {bar.reason or 'Why, is not found out yet.'}")
    return "\n".join(lines) or "In nothing that was measured."


def not_measured():
    """Markdown: what the page does not tell, and why."""
    reasons = {}
    for device in DEVICES:
        for bar in BARS:
            verdict, why = bar.judge(device)
            if verdict == NOT and not why.startswith("of "):  # what is of the other device is not missing
                reasons.setdefault(("on a GPU" if device == "cuda" else "on a CPU", why), []).append(bar.text)
    lines = []
    for (place, why), texts in reasons.items():
        what = "; ".join(texts) if len(texts) < len(BARS) / 2 else f"{len(texts)} of {len(BARS)} bars"
        lines.append(f"- {what}, {place}: {why}.")
    lines.append(
        "- Quality at equal compute is no part of the suite: the chapters state it, recipe by recipe, from records of "
        "experiments, which are listed under *Every experiment*."
    )
    return "\n".join(lines)


PARTS = (
    (
        "Attention",
        "attention",
        "contests",
        attention_part,
        "The function of [chapter 03](../chapters/03_attention_scoring.ipynb) and the module of "
        "[chapter 05](../chapters/05_multi_head_attention.ipynb), from short to long sequences.",
    ),
    (
        "A training step",
        "training",
        "contests",
        lambda device: contests_part("training", device),
        "Forward, backward and a step of Adam. *d2l* is D2L's own package, whose encoder and layers are taken as they "
        "are; where it is not installed, its formulation is written out in `benchmarks/_d2l.py`.",
    ),
    (
        "Decoding",
        "decoding",
        "contests",
        lambda device: contests_part("decoding", device),
        "Greedy decoding with a cache, as in [chapter 16](../chapters/16_decoding.ipynb); ours is the copy that "
        "`for_decoding` makes.",
    ),
    (
        "Translation",
        "translation",
        "contests",
        lambda device: contests_part("translation", device),
        "Greedy and beam search from a batch of sources to tokens, beside `transformers`' Marian.",
    ),
    (
        "How the cost grows",
        "cost",
        "curves",
        cost_part,
        "[Chapter 06](../chapters/06_self_attention_and_position.ipynb) counts what a layer costs at T tokens of D "
        "features, and the chapter on long sequences what is left of it with a window of w and in linear time, in H "
        "heads and L blocks. An exponent is the slope of a line through logarithms, of the formula over the same sizes "
        "and of the time forward and backward. Where the time grows more slowly than its formula, there "
        "are costs that do not grow, or larger products run better.",
    ),
    (
        "The use of a GPU",
        "utilization",
        "utilization",
        utilization_part,
        "Model FLOPs of a training step of GPT-2 124M over what the card does in products of matrices, both measured "
        "in one process.",
    ),
)


def page():
    """All below the title of the page, Markdown."""
    place = site.repository()
    parts = [
        HEAD.format(near=NEAR, url=place["url"], branch=place["branch"]),
        "## What was to be reached\n",
        bars_table(),
        when(),
    ]
    for title, name, wants, render, words in PARTS:
        parts += [f"## {title}\n", words]
        for device in DEVICES:
            if name == "utilization" and device == "cpu":
                continue
            where = "On a GPU: " if device == "cuda" else ""
            parts += [*render(device), where + measured_on(name, device, wants)]
    parts += [
        *in_page_part(),
        *learning_part(),
        "## The book itself\n",
        _book.part(),
        "## Where ours is behind\n",
        behind(),
    ]
    parts += ["## What was not measured\n", not_measured()]
    parts += ["## Every experiment\n", EXPERIMENTS, experiments_table()]
    return "\n\n".join(part.strip("\n") for part in parts)


def _range(quartiles, form):
    low, middle, high = (form.format(value) for value in quartiles)
    return f"{middle} ({low} to {high})"


def _folded(title, table):
    return f":::{{dropdown}} {title}\n{table}\n:::"
