"""The built book, as the page "Measured" tells of it: how long it takes, what its pages weigh, and their faults."""

import json

from d2lmini import results
from tools._bars import build_seconds, load, missing


def pages(record):
    """What was counted on all built pages. Returns: str. ``record``: of `benchmarks.pages`, or None."""
    if record is None:
        return f"Faults of its pages: not counted: {missing('pages')}."
    views, links = record["views"].values(), record["links"]
    total = lambda key: sum(len(of[key]) if isinstance(of[key], list) else of[key] for of in views)  # noqa: E731
    names = record["pages"]["wide"]
    slides = sum(name.startswith("slides/") for name in names)
    also = f" and {slides} of slides" if slides else ""
    return (
        f"Its {len(names) - slides} pages{also} were opened wide and on a phone ({record['date'][:10]}): "
        f"{total('errors')} errors and warnings of the browser, {total('foreign_requests')} requests to other hosts, "
        f"{total('wider_than_screen')} pages wider than the screen, {total('figures_cut')} of {total('figures')} "
        f"figures cut; {len(links['broken'])} of {links['links']:,} links lead nowhere."
    )


def part():
    """Markdown: how long it takes to execute, what its pages weigh, and what is wrong with them."""
    lines, found = [], build_seconds()
    if found:
        lines.append(f"- Its {found[1]} chapters execute in {found[0] / 60:.1f} minutes, one after the other.")
    record = load("book", "cpu", "pages")
    if record is None:
        lines.append(f"- Bytes and requests of its pages: not measured: {missing('book')}.")
    else:
        page = record["pages"][0]
        lines.append(
            f"- Its heaviest page, `{page['page']}`, takes {page['requests']} requests and {page['kB']:,.0f} kB, "
            f"zipped ({record['date'][:10]})."
        )
    lines.append(f"- {pages(load('pages', 'cpu', 'views'))}")
    lines.append(
        "- These are numbers of Chromium. [What was tried in Firefox and WebKit](accessibility.md#browsers) is a table."
    )
    path = results.FOLDER / "figure_start.json"
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
        *_, newest = record["books"].values()
        lines.append(
            f"- A figure of `{record['page']}` answers {newest['figure_s']} seconds after the page was asked for, on a "
            f"line of {record['Mbit_s']} Mbit/s with {record['latency_ms']} ms to the host and a processor slowed down "
            f"{record['slowdown']} times."
        )
    else:
        lines.append(
            "- The time until a figure answers: not measured: `python -m benchmarks.figure_start` was not run."
        )
    return "\n".join(lines)
