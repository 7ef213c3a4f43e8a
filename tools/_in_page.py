"""Models in the page, as the page "Measured" tells of them: what rounding costs, how fast they are, and their peers."""

TITLE = "Models in the page"
ROUNDING = "live_rounding.json"
ROUNDING_WORDS = """\
Weights that ship with the package, rounded to whole numbers of 8 bits with a scale for each row, or to 16 bits where
that loses more than 0.2 points. A point is one of BLEU, one percentage point of accuracy, or one per cent of
perplexity.
"""
SPEED_WORDS = """\
By the processor time that Chromium spends, in a worker; a token of a translator is a word or a piece of one.
"""
WORDS = """\
We compare the GPT of the book's pages (`d2lmini/figures/live/`) with the same weights in ONNX, run by `onnxruntime-web`
on one thread of the CPU, with a cache of keys and values, in float32 and with matrices and activations in 8 bits. Each
writes greedily after one prompt, in a worker of a page that is opened anew for each turn. The time to the first
character is from the click that begins to load code and weights, from a server on the same machine. The characters a
second are those of the second text in that page. Processor time is that of the browser's process for the page.
"""
HEAD = (
    "whose",
    "first character",
    "characters a second",
    "processor time for the first, and for each further one",
    "to load",
    "our time to the first over it",
    "our time a character over it",
    "our bytes over its",
)
COMPARED = ("bytes", "gzipped")


def rounding(costs):
    """Markdown: a row for each model of `ROUNDING`."""
    head = "weights", "run", "million numbers", "MB", "kept as", "score", "before", "after", "points lost"
    rows = [head, ["---"] * len(head)]
    for name, of in costs.items():
        ((score, before),) = list(of["before"].items())[:1]
        size, sent, lost = of["parameters"] / 1e6, of["bytes"] / 1e6, of["lost_points"][of["kind"]]
        row = f"`{name}`", f"{of['experiment']} {of['preset']}", f"{size:.2f}", f"{sent:.2f}", of["kind"], score
        rows.append([*row, f"{before:.4g}", f"{of['after'][score]:.4g}", f"{lost:.2f}"])
    return ROUNDING_WORDS + "\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def speed(record):
    """Markdown: what the models in the page cost a reader."""
    rows = ["| weights | MB | a second | with attention weights | in the first text | first output |", "|---" * 6 + "|"]
    for of in record["models"]:
        rows.append(
            f"| `{of['model']}` | {of['MB']} | {of['plain']:,.0f} {of['unit']} | {of['with_attention']:,.0f} | "
            f"{of['first_text']:,.0f} | {of['first_output_s']:.2f} s after the click |"
        )
    return "\n".join(rows)


REAL_WORDS = """\
The published language model of the page *A real model*, in pieces from a server on the same machine: what Chromium's
processor time gives, as the median of the rounds. The longest pause is that of the page, whose worker computes.
"""


def real(record):
    """Markdown: what the real language model in the page costs a reader."""
    kinds = {
        "plain": "writing",
        "with_attention": "with the weights of all heads",
        "with_layers": "with what every block would say",
        "float_products": "with products in float32",
    }
    rows = ["| | tokens read a second | tokens written a second | longest pause |", "|---" * 4 + "|"]
    for key, name in kinds.items():
        read, written = record[key]["reading"], record[key]["writing"]
        pause = max(read["longest_pause_ms"], written["longest_pause_ms"])
        speeds = (f"{of['per_second'][1]:,.0f}" for of in (read, written))
        rows.append(f"| {name} | {' | '.join(speeds)} | {pause:.0f} ms |")
    loaded = (
        f"{record['model']}: {record['bytes'] / 1e6:.0f} MB, loaded in {record['load_wall_s']:.1f} s with a longest "
        f"pause of {record['load_pause_ms']:.0f} ms; {record['memory'] / 1e6:.0f} MB of memory for the model."
    )
    return "\n".join([REAL_WORDS, *rows, "", loaded])


def table(record, in_range):
    """Markdown: a row for each contestant; `in_range` writes quartiles by a format."""
    rows = [HEAD, ["---"] * len(HEAD)]
    for name, of in record["contestants"].items():
        served, zipped = (sum(of[key].values()) / 1e6 for key in COMPARED)
        row = [
            name,
            in_range(of["first"], "{:.2f}") + " s",
            f"{of['per_second']:,.0f}",
            f"{of['first_processor'][1]:.2f} s, {1000 * of['processor'][1]:.2f} ms",
            f"{served:.2f} MB, zipped {zipped:.2f} MB",
        ]
        if name == "ours":
            row += [""] * 3
        else:
            found = ratios(record, name)
            row += [in_range(of["ratio"][key], "{:.2f}") for key in ("first", "warm")]
            row.append(f"{found['bytes to load']:.2f}, zipped {found['zipped bytes to load']:.2f}")
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def ratios(record, name):
    """Of ours to a peer: dict from what is compared to a number, below 1 where ours is ahead."""
    ours, of = (record["contestants"][whose] for whose in ("ours", name))
    served, zipped = (sum(ours[key].values()) / sum(of[key].values()) for key in COMPARED)
    first, character = (of["ratio"][key][1] for key in ("first", "warm"))
    return {
        "the time to the first character": first,
        "the time a character takes": character,
        "bytes to load": served,
        "zipped bytes to load": zipped,
    }


def verdict(record):
    """A few sentences: where ours is behind, whether all wrote the same, and what was run."""
    peers = [name for name in record["contestants"] if name != "ours"]
    behind = [
        f"{what}, {x:.2f} times that of {name}" for name in peers for what, x in ratios(record, name).items() if x > 1
    ]
    told = f"Ours is behind in {'; '.join(behind)}." if behind else "Ours is ahead in all of it."
    count = record["config"]["count"]
    others = [f"{name} after {of['same']}" for name, of in record["contestants"].items() if of["same"] < count]
    same = f"All write the {count} characters that the model writes in Python"
    same += f", but {' and '.join(others)} characters another one." if others else "."
    return f"{told} {same} {record['browser']}; weights of {record['run']}."
