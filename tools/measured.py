"""What `benchmarks/` measured, as tables for README.md and the page *Measured*, each bar beside what was found."""

import json

from d2lmini import results

NAMES = {"sdpa": "torch's fused kernel", "d2l": "D2L's formula"}


def record(name):
    """The JSON of a benchmark, or None where there is none."""
    path = results.FOLDER / f"benchmark_{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def missing(name):
    """What stands in place of a table that nobody measured."""
    return f"Not measured here: `python -m benchmarks.{name}` records what stands here."


def attention_table():
    """Markdown: time of attention over that of each peer, forward / forward and backward, by length."""
    found = record("attention")
    if found is None:
        return missing("attention")
    lengths, long = found["config"]["lengths"], found["config"]["long"]
    rows = ["| attention | " + " | ".join(f"{n:,} tokens" for n in (*lengths, *long)) + " |"]
    rows += ["|---" * (1 + len(lengths) + len(long)) + "|"]
    for part in "function", "module":
        for case, peers in found[part].items():
            for peer, of in peers.items():
                further = found["long"].get(case, {}).get(peer) if part == "function" else None
                pairs = [*_pairs(of), *(_pairs(further) if further else [None] * len(long))]
                cells = (f"{pair[0]:.2f} / {pair[1]:.2f}" if pair else "" for pair in pairs)
                rows.append(f"| {case}, over {NAMES.get(peer, f'`{peer}`')} | " + " | ".join(cells) + " |")
    names = {"ours": "ours", **NAMES}
    at = list(found["extra_bytes"])
    rows += ["", "| MiB at the peak, causal, one sequence | " + " | ".join(f"{int(n):,} tokens" for n in at) + " |"]
    rows += ["|---" * (1 + len(at)) + "|"]
    for name, said in names.items():
        cells = (f"{found['extra_bytes'][n][name] / 2**20:,.1f}" for n in at)
        rows.append(f"| {said} | " + " | ".join(cells) + " |")
    return "\n".join([*rows, "", _when(found)])


def models_table():
    """Markdown: training steps and searches of whole models over their peers, in time and memory."""
    rows = ["| whole models | over | time | half of the rounds | peak memory |", "|---|---|---|---|---|"]
    lines = []
    for name in "training", "translation", "decoding":
        found = record(name)
        if found is None:
            lines.append(missing(name))
            continue
        lines.append(f"`{name}`: {_when(found)}")
        for work, peers in found["work"].items():
            for peer, of in peers.items():
                if isinstance(of, dict):
                    half = f"{of['low']:.2f} to {of['high']:.2f}"
                    rows.append(f"| training step, {work} | {peer} | {of['time']:.2f} | {half} | {of['memory']:.2f} |")
                else:
                    rows.append(f"| {work} | {peer} | {of:.2f} | | |")
    return "\n".join([*rows, "", " ".join(lines)])


def growth_table():
    """Markdown: with which power cost grows, measured and by the formula."""
    found = record("growth")
    if found is None:
        return missing("growth")
    rows = ["| forward and backward | what doubles | multiplications | power | counted | time | memory |"]
    rows += ["|---" * 7 + "|"]
    for of in found["growth"]:
        rows.append(
            f"| {of['way']} | {of['grows']}, {of['at'][-2]:,} to {of['at'][-1]:,} | {of['formula']} | {of['power']} "
            f"| {of['work']:.2f} | {of['time']:.2f} | {of['memory']:.2f} |"
        )
    return "\n".join([*rows, "", _when(found)])


def book_table():
    """Markdown: what the book costs to build and to read."""
    found = record("book")
    if found is None:
        return missing("book")
    heaviest = max(found["pages"], key=lambda name: found["pages"][name]["kB"])
    page = found["pages"][heaviest]
    built = f"{found['build_s'] / 60:.1f} min" if found["build_s"] else "not measured"
    return "\n".join(
        [
            "| the book | |",
            "|---|---|",
            f"| built, all {len(found['pages'])} chapters executed | {built} |",
            f"| heaviest page, `{heaviest}`, first visit | {page['kB']:,.0f} kB in {page['requests']} requests |",
            f"| until the figure of chapter 01 answers, slow line and phone | {found['figure_s']:.1f} s |",
            "",
            _when(found),
        ]
    )


def quality_table():
    """Markdown: losses beside those of published recipes, from the records of the chapters."""
    rows = [
        "| what is learned | recipe | nats a character | parameters | characters seen | seconds |",
        "|---|" + "---|" * 5,
    ]
    small, parts = results.load("gpt_shakespeare", "cpu")["metrics"], results.load("gpt_ablations", "laptop")["metrics"]
    ours = {key: of[0] for key, of in small.items() if key in small["rival"]}
    for what, recipe, of in (
        ("Shakespeare, a minute", "ours", ours),
        ("", "nanoGPT's for a CPU", small["rival"]),
        ("Shakespeare, 400 steps each", "ours", parts["base"]),
        ("", "GPT-2's form with AdamW", parts["GPT-2 with AdamW"]),
    ):
        counts = f"{of['parameters']:,} | {of['tokens_seen']:,} | {of['train_s']:.0f}"
        rows.append(f"| {what} | {recipe} | {of['crops']:.3f} | {counts} |")
    return "\n".join(rows)


def bars():
    """List of (what is asked, what was found, verdict): "met", "missed", "within the spread", or "not measured"."""
    rows = []

    def add(asked, name, judge):
        found = record(name)
        rows.append((asked, *(judge(found) if found else ("", "not measured"))))

    def below(ratio, bar, low=None):
        said = f"{ratio:.2f}"
        if ratio <= bar:
            return said, "met"
        return said, "within the spread" if low is not None and low <= bar else "missed"

    def worst(found, peers, bar):
        tables = [found[part] for part in ("function", "module", "long")]
        every = [
            (ratio, f"{case}, {said} at {n:,} tokens")
            for part, table in zip(("function", "module", "long"), tables, strict=True)
            for case, of_case in table.items()
            for peer, of in of_case.items()
            if peer in peers
            for way, said in (("forward", "forward"), ("both", "forward and backward"))
            for n, ratio in zip(found["config"]["long" if part == "long" else "lengths"], of[way], strict=True)
        ]
        ratio, where = max(every)
        more = sum(ratio > bar for ratio, _ in every)
        said = f"worst {ratio:.2f} ({where}); {len(every) - more} of {len(every)} keep it"
        return said, "met" if ratio <= bar else "missed"

    add("attention at most 1.05 of torch's fused kernel", "attention", lambda f: worst(f, ("sdpa",), 1.05))
    add("attention ahead of D2L's formula", "attention", lambda f: worst(f, ("d2l",), 1.0))
    add("attention ahead of `nn.MultiheadAttention`", "attention", lambda f: worst(f, ("nn.MultiheadAttention",), 1.0))
    training = record("training")
    for work, peers in training["work"].items() if training else ():
        for peer, of in peers.items():
            bar = 0.5 if peer.startswith("D2L") and work.endswith("512 tokens") else 1.0
            rows.append((f"step of {work}, at most {bar:g} of {peer}", *below(of["time"], bar, of["low"])))
    if not training:
        rows.append(("training steps at most as long as the peers'", "", "not measured"))
    decoding = record("decoding")
    for work, peers in decoding["work"].items() if decoding else ():
        if work.endswith("its copy"):
            ((peer, ratio),) = peers.items()
            rows.append((f"{work.removesuffix(', its copy')}, 1.5 times as fast as {peer}", *_faster(ratio, 1.5)))
    add(
        "utilization of a GPU, GPT-2 124M, 45 % of the measured matrix rate",
        "utilization",
        lambda f: (f"{f['utilization']:.0%}", "met" if f["utilization"] >= 0.45 else "missed"),
    )
    add("the book built in under 8 minutes", "book", lambda f: _minutes(f["build_s"], 8))
    return rows


def bars_table():
    """Markdown: `bars`, a row each."""
    rows = ["| what is asked | found | |", "|---|---|---|"]
    return "\n".join([*rows, *(f"| {asked} | {found} | {verdict} |" for asked, found, verdict in bars())])


def _faster(ratio, bar):
    return f"{1 / ratio:.2f} times", "met" if 1 / ratio >= bar else "missed"


def _minutes(seconds, bar):
    return (f"{seconds / 60:.1f} min", "met" if seconds < 60 * bar else "missed") if seconds else ("", "not measured")


def _pairs(of):
    return list(zip(of["forward"], of["both"], strict=True))


def _when(found):
    device = found["device"]["name"].replace(", 1 threads", ", one thread")
    return f"Measured {found['date'][:10]} on {device}."
