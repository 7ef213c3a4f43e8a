"""The parts of README.md and of other pages that follow from the chapters, the records and the address."""

import json
import re
from types import CodeType, FunctionType

import yaml

from d2lmini import results
from d2lmini.exercises.engine import registry
from tools import course, findings, site
from tools._generated import ROOT, between, main, put

PAGES = ROOT / "pages"
TITLE = "Attention and Transformers, typed by you"


def _badge(notebook):
    return f"[Colab]({site.colab(notebook)})"


def chapter_table():
    """Markdown: a row for each chapter, with what to read first in the books, its exercises and where to run both."""
    rows = ["| | chapter | in the textbooks | run | exercises | solve |", "|---|---|---|---|---|---|"]
    for name, title in site.chapters():
        read, solve = f"chapters/{name}.ipynb", f"exercises/{name}.ipynb"
        rows.append(
            f"| {name[:2]} | [{title}]({read}) | {course.table()['chapters'][name[:2]]['sections']} | {_badge(read)} "
            f"| [exercises]({solve}) | {_badge(solve)} |"
        )
    return "\n".join(rows)


def start():
    """Markdown: where to read."""
    name, title = site.chapters()[0]
    minutes = course.spent(course.core_minutes([name[:2]]))
    online = f"<{site.address()}>, or " if site.address() else ""
    lines = (
        f"- Now, in a browser: [chapter 1, {title}]({site.colab(f'chapters/{name}.ipynb')}), on Colab, {minutes}.",
        f"- As a book with live figures: {online}build it with the second command below, "
        "then open `_build/html/index.html`.",
        f"- The code and the notebooks: <{site.repository()['url']}>.",
    )
    return "\n".join(lines)


def cost():
    """Markdown: what the two commands take, from the records of ``tools/footprint.py`` and ``tools/run_times.py``."""
    found = json.loads((results.FOLDER / "footprint.json").read_text(encoding="utf-8"))
    runs = [of["cpu"] for of in _run_times().values() if "cpu" in of]
    seconds, devices = [run["seconds"] for run in runs], sorted({run["device"] for run in runs})
    return (
        "| | |\n|---|---|\n"
        f"| disk | {found['venv_mb'] / 1000:.1f} GB in `.venv` ({found['system']}); with CUDA more |\n"
        f"| time | the download of the packages; then `make book` executes {len(seconds)} chapters: "
        f"{sum(seconds) / 60:.0f} minutes one by one, on {' and '.join(devices)} |\n"
        "| you need | Python 3.11 or newer, `make` |\n"
        "| you do not need | a GPU, an account, a data set, Node, LaTeX |"
    )


def measured():
    """Where README leads to for all records: the book, whose page its file in the repository does not show."""
    return f"{site.address()}measured.html" if site.address() else "pages/measured.md"


def cite():
    """Markdown: an entry for BibTeX."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return (
        f"```bibtex\n@misc{{d2lmini,\n  title  = {{d2lmini: {TITLE}}},\n  author = {{{{{config['author']}}}}},\n"
        f"  year   = {{{config['copyright']}}},\n  note   = {{Version {site.VERSION}}},\n"
        f"  url    = {{{site.repository()['url']}}}\n}}\n```"
    )


def grading_table():
    """Markdown: how long classes took to grade, from ``benchmarks/grading.py``."""
    record = _benchmark("grading")
    if record is None:
        return "`python -m benchmarks.grading` records what stands here."
    rows = [
        "| chapter | notebooks | answers | machine | time | verdicts other than they should be |",
        "|---|---|---|---|---|---|",
    ]
    busy = "every processor busy with something else"
    machines = {"nothing else to do": record["classes"], busy: record.get("loaded", {})}
    for machine, classes in machines.items():
        for chapter, graded in classes.items():
            minutes, others = graded["seconds"] / 60, len(graded["other_than_wanted"])
            counts = f"{graded['notebooks']} | {graded['answers']}"
            rows.append(f"| {chapter} | {counts} | {machine} | {minutes:.1f} min | {others} |")
    return "\n".join([*rows, "", f"Measured on {record['device']['name']}, {record['jobs']} notebooks at once."])


def memory():
    """Markdown: what the chapters' kernels took at most, from ``tools/run_times.py``."""
    measured = {name[:2]: found["cpu"] for name, found in _run_times().items()}
    number, found = max(measured.items(), key=lambda item: item[1]["peak_mb"])
    return (
        f"- **No room in memory.** On a CPU (Linux, torch {found['torch'].partition('+')[0]}) the kernel of a chapter "
        f"takes at most about {found['peak_mb'] / 1000:.1f} GB (chapter {number}); `make book` runs one on each core."
    )


def measured_parts():
    """Markdown: the parts whose checks look at more than what answers return."""
    looking = [part.key for exercise in registry.exercises() for part in exercise.parts if _looks(part)]
    return "In these parts something is measured or counted beside the answer: " + ", ".join(looking) + "."


def _looks(part):
    """Whether the check, or a function of its file that it calls, uses `Trial.look`, `watching` or `refusing`."""
    left, seen = [getattr(part, "verify", None)], set()
    while left:
        function = left.pop()
        if isinstance(function, FunctionType) and function not in seen:
            seen.add(function)
            names = set(function.__code__.co_names).union(
                *(code.co_names for code in function.__code__.co_consts if isinstance(code, CodeType))
            )
            if names & {"look", "watching", "refusing"}:
                return True
            left += [function.__globals__.get(name) for name in names if name in function.__globals__]
    return False


def _run_times():
    return json.loads((results.FOLDER / "run_times.json").read_text(encoding="utf-8"))


def _benchmark(name):
    path = results.FOLDER / f"benchmark_{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _links():
    """The files in which one link holds the address: where it stands there, and what it is. Returns: dict."""
    url = site.repository()["url"]
    return {
        "pages/accessibility.md": (r"(?<=\[Open an issue\]\()\S+(?=/issues/new)", url),
        "pages/licences.md": (r"(?<=\[README\]\()\S+(?=#how-to-cite)", url),
        "d2lmini/exercises/engine/registry.py": (r'(?<=\nREPOSITORY = ")[^"]*', site.colab("").rstrip("/")),
    }


def _linked(name, place, link):
    """A file with the address in its link. Returns: str.

    Raises:
        ValueError: the link is not there, or not once.
    """
    text, found = re.subn(place, link, (ROOT / name).read_text(encoding="utf-8"))
    if found != 1:
        raise ValueError(f"{name}: expected one link to the repository, found {found}: _links of tools/pages.py")
    return text


def sync(check):
    """Returns: list of the files that were out of step."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = between(between(readme, "start", start()), "cost", cost())
    readme = between(between(readme, "results", findings.sentences()), "cite", cite())
    readme = re.sub(r"(?<=\[Measured\]\()[^)]*", measured(), readme)
    intro = between((ROOT / "intro.md").read_text(encoding="utf-8"), "chapters", chapter_table())
    intro = between(intro, "results", findings.sentences(findings.BAIT))
    lecturers = (PAGES / "lecturers.md").read_text(encoding="utf-8")
    lecturers = between(between(lecturers, "grading", grading_table()), "measured", measured_parts())
    troubleshooting = between((PAGES / "troubleshooting.md").read_text(encoding="utf-8"), "memory", memory())
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = re.sub(r"^title: .*\n", f'title: "d2lmini: {TITLE}"\n', citation, flags=re.M)
    citation = re.sub(r"^version: .*\n", f"version: {site.VERSION}\n", citation, flags=re.M)
    citation = re.sub(r"^repository-code: .*\n", "", citation, flags=re.M).rstrip("\n")
    citation += f"\nrepository-code: {site.repository()['url']}\n"
    return [
        *put(ROOT / "README.md", readme, check),
        *put(ROOT / "intro.md", intro, check),
        *put(PAGES / "lecturers.md", lecturers, check),
        *put(PAGES / "troubleshooting.md", troubleshooting, check),
        *put(ROOT / "CITATION.cff", citation, check),
        *(stale for name, link in _links().items() for stale in put(ROOT / name, _linked(name, *link), check)),
    ]


if __name__ == "__main__":
    main(sync, command="python -m tools.pages")
