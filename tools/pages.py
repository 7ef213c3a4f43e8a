"""The parts of README.md and other pages that follow from the chapters, the results and the address."""

import json
import re
from types import CodeType, FunctionType

from d2lmini import results
from d2lmini.exercises.engine import registry
from tools import measured, site
from tools._generated import ROOT, between, main, put


def _badge(notebook):
    return f"[Colab]({site.colab(notebook)})"


def chapter_table(in_book):
    """Markdown: a row for each chapter, with its exercises and where to run both."""
    rows = ["| | chapter | run | exercises | solve | |", "|---|---|---|---|---|---|"]
    for name, title in site.chapters():
        read, solve = f"chapters/{name}.ipynb", f"exercises/{name}.ipynb"
        rows.append(
            f"| {name[:2]} | [{title}]({read}) | {_badge(read)} | [exercises]({solve}) | {_badge(solve)} "
            f"| [solutions](exercises/solutions/{name}.ipynb) |"
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


def grading_table():
    """Markdown: how long classes took to grade, from ``benchmarks/grading.py``."""
    record = _benchmark("grading")
    if record is None:
        return "`python -m benchmarks.grading` records what stands here."
    rows = ["| chapter | notebooks | answers | time | verdicts other than they should be |", "|---|---|---|---|---|"]
    for chapter, found in record["classes"].items():
        minutes, others = found["seconds"] / 60, len(found["other_than_wanted"])
        rows.append(f"| {chapter} | {found['notebooks']} | {found['answers']} | {minutes:.1f} min | {others} |")
    return "\n".join([*rows, "", f"Measured on {record['device']['name']}, {record['jobs']} answers at once."])


def memory():
    """Markdown: what the chapters' kernels took at most, from ``tools/run_times.py``."""
    measured = json.loads((results.FOLDER / "run_times.json").read_text(encoding="utf-8"))
    measured = {name[:2]: found["cpu"] for name, found in measured.items()}
    number, found = max(measured.items(), key=lambda item: item[1]["peak_mb"])
    return (
        f"- **No room in memory.** On a CPU (Linux, torch {found['torch'].partition('+')[0]}) the kernel of a chapter "
        f"takes at most about {found['peak_mb'] / 1000:.1f} GB (chapter {number})."
    )


def measured_parts():
    """Markdown: the parts whose checks look at more than what answers return."""
    looking = [part.key for exercise in registry.exercises() for part in exercise.parts if _looks(part)]
    return "In these parts something is measured or counted beside the answer: " + ", ".join(looking) + "."


def _looks(part):
    """Whether the check, or a function of its file that it calls, uses `Trial.look` or `Trial.watching`."""
    left, seen = [getattr(part, "verify", None)], set()
    while left:
        function = left.pop()
        if isinstance(function, FunctionType) and function not in seen:
            seen.add(function)
            names = set(function.__code__.co_names).union(
                *(code.co_names for code in function.__code__.co_consts if isinstance(code, CodeType))
            )
            if names & {"look", "watching"}:
                return True
            left += [function.__globals__.get(name) for name in names if name in function.__globals__]
    return False


def _benchmark(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def sync(check):
    """Returns: list of the files that were out of step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = between(between(readme, "chapters", chapter_table(False)), "results", results_table())
    readme = between(readme, "peers", measured.readme_table())
    intro = between((ROOT / "intro.md").read_text(encoding="utf-8"), "chapters", chapter_table(True))
    lecturers = (ROOT / "lecturers.md").read_text(encoding="utf-8")
    lecturers = between(between(lecturers, "grading", grading_table()), "measured", measured_parts())
    troubleshooting = between((ROOT / "troubleshooting.md").read_text(encoding="utf-8"), "memory", memory())
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = re.sub(r"^version: .*\n", f"version: {site.VERSION}\n", citation, flags=re.M)
    citation = re.sub(r"^repository-code: .*\n", "", citation, flags=re.M).rstrip("\n")
    citation += f"\nrepository-code: {site.repository()['url']}\n"
    return [
        *put(ROOT / "README.md", readme, check),
        *put(ROOT / "intro.md", intro, check),
        *put(ROOT / "lecturers.md", lecturers, check),
        *put(ROOT / "troubleshooting.md", troubleshooting, check),
        *put(ROOT / "CITATION.cff", citation, check),
    ]


if __name__ == "__main__":
    main(sync, command="python -m tools.pages")
