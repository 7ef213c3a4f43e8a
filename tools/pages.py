"""The parts of README.md, intro.md and CITATION.cff that follow from the chapters, the results and the address."""

import json
import re

from d2lmini import results
from tools import site
from tools._generated import ROOT, between, main, put


def _badge(notebook):
    return f"[Colab]({site.colab(notebook)})"


def chapter_table(in_book):
    """Markdown: a row for each chapter, with its exercises and where to run both."""
    rows = ["| chapter | run | exercises | solve | |", "|---|---|---|---|---|"]
    for name, title in site.chapters():
        solve = f"exercises/{name}.ipynb"
        rows.append(
            f"| [{title}](chapters/{name}.ipynb) | {_badge(f'chapters/{name}.ipynb')} | [exercises]({solve}) "
            f"| {_badge(solve)} | [solutions](exercises/solutions/{name}.ipynb) |"
        )
    if not in_book:
        rows += ["", f"The repository is <{site.repository()['url']}>."]
    return "\n".join(rows)


def results_table():
    """Markdown: the headline of each experiment's largest recorded run; the experiment says which number that is."""
    rows = ["| experiment | preset | result | device | wall time |", "|---|---|---|---|---|"]
    for name in sorted({name for name, _ in results.recorded()}):
        (record,) = results.largest(name)
        device = record["device"]
        processes = f", {device['processes']} processes" if "processes" in device else ""
        cost = f"{device['name']}{processes} | {record['wall_s'] / 60:.1f} min"
        rows.append(f"| `{name}` | `{record['preset']}` | {record['metrics']['headline']} | {cost} |")
    return "\n".join(rows)


def peers_table():
    """Markdown: the time of attention and of whole models as multiples of their peers', from ``benchmarks/``."""
    attention, models = (_benchmark(name) for name in ("attention", "models"))
    if attention is None or models is None:
        return "`python -m benchmarks.attention` and `python -m benchmarks.models` record what stands here."
    names = {"sdpa": "torch's fused kernel", "d2l": "D2L's formula"}
    lengths = attention["config"]["lengths"]
    rows = ["| attention | " + " | ".join(f"{n:,} tokens" for n in lengths) + " |", "|---" * (1 + len(lengths)) + "|"]
    for part in "function", "module":
        for case, peers in attention[part].items():
            for peer, of in peers.items():
                cells = (f"{a:.2f} / {b:.2f}" for a, b in zip(of["forward"], of["both"], strict=True))
                rows.append(f"| {case}, over {names.get(peer, f'`{peer}`')} | " + " | ".join(cells) + " |")
    rows += ["", "| whole models | over | |", "|---|---|---|"]
    for work, peers in models["work"].items():
        rows += [f"| {work} | {peer} | {ratio:.2f} |" for peer, ratio in peers.items()]
    extra = {name: attention["extra_bytes"]["causal"][name] / 2**20 for name in ("ours", *names)}
    rows += [
        "",
        f"Extra memory of causal attention at {lengths[-1]:,} tokens: {extra['ours']:.0f} MiB, torch's kernel "
        f"{extra['sdpa']:.0f} MiB, D2L's formula {extra['d2l']:.0f} MiB. Measured on one thread: "
        f"{models['device']['name'].removesuffix(', 1 threads')}.",
    ]
    return "\n".join(rows)


def _benchmark(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def sync(check):
    """Returns: list of the files that were out of step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = between(between(readme, "chapters", chapter_table(False)), "results", results_table())
    readme = between(readme, "peers", peers_table())
    intro = between((ROOT / "intro.md").read_text(encoding="utf-8"), "chapters", chapter_table(True))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = re.sub(r"^version: .*\n", f"version: {site.VERSION}\n", citation, flags=re.M)
    citation = re.sub(r"^repository-code: .*\n", "", citation, flags=re.M).rstrip("\n")
    citation += f"\nrepository-code: {site.repository()['url']}\n"
    return [
        *put(ROOT / "README.md", readme, check),
        *put(ROOT / "intro.md", intro, check),
        *put(ROOT / "CITATION.cff", citation, check),
    ]


if __name__ == "__main__":
    main(sync, command="python -m tools.pages")
