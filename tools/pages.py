"""The parts of README.md, intro.md and CITATION.cff that follow from the chapters, the results and the address."""

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


def sync(check):
    """Returns: list of the files that were out of step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = between(between(readme, "chapters", chapter_table(False)), "results", results_table())
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
