"""What becomes of the verdicts: two tables, their totals, Gradescope's file, and a page that a student can be sent."""

import csv
import json
import os
from html import escape
from pathlib import Path

from ..engine.judge import PASSED, RECORDED
from ..engine.model import Discussion
from ..engine.registry import exercises, find
from ..reader.plain_math import plain
from .hand_ins import shown

COLUMNS = ("notebook", "exercise", "verdict", "code", "message")
COUNTED = ("notebook", "verified", "of", "to read", "note")  # of the gradebook, before its parts
ABSENT = ("unreadable", "no answers")  # verdicts on a whole notebook
STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid #8888; }
td:last-child { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def row(*values):
    """Return a row of the table; what no screen and no file of text can take is replaced."""
    return dict(zip(COLUMNS, (shown(value, keep="\n\t") for value in values), strict=True))


def write_csv(path, rows, columns=COLUMNS):
    """Write a table, or leave what was there. Raises: OSError: it cannot be written."""
    path = Path(path)
    half = path.with_name(path.name + ".tmp")
    with open(half, "w", newline="", encoding="utf-8-sig") as file:  # without the mark Excel reads no umlaut
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows({name: _no_formula(value) for name, value in r.items()} for r in rows)
    os.replace(half, path)


def _no_formula(value):
    """Keep a spreadsheet from taking a learner's text for a formula."""
    return "'" + value if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def by_notebook(rows) -> dict:
    """Return name -> rows, in order."""
    return {name: [r for r in rows if r["notebook"] == name] for name in dict.fromkeys(r["notebook"] for r in rows)}


def by_student(rows) -> tuple[list[dict], list[str]]:
    """Return one row for each notebook, which has a verdict in the column of each part, and the names of all columns.

    ``to read`` counts the texts that wait for you; ``of`` the parts that are no texts.
    """
    answered = {r["exercise"] for r in rows}
    parts = [part.key for one in exercises() for part in one.parts if part.key in answered]
    table = []
    for name, own in by_notebook(rows).items():
        absent = own[0]["verdict"] in ABSENT
        verified, most, texts, _ = (0, 0, 0, 0) if absent else _counted(own)
        line = dict.fromkeys(parts, "") | {r["exercise"]: r["verdict"] for r in own if r["exercise"] in parts}
        counted = {"notebook": name, "verified": str(verified), "of": str(most), "to read": str(texts)}
        table.append({**counted, "note": _total(own) if absent else "", **line})
    return table, [*COUNTED, *parts]


def totals(rows) -> str:
    """Return one line a notebook: how many of its answers are verified, and what is left to read."""
    return "\n".join(f"{name:<40} {_total(own)}" for name, own in by_notebook(rows).items())


def _total(rows):
    if rows[0]["verdict"] in ABSENT:
        return f"{rows[0]['verdict']}: {rows[0]['message']}"
    verified, most, written, texts = _counted(rows)
    more = f", {written} of {texts} texts to be read" if texts else ""
    return f"{verified:>3} of {most} verified{more}"


def _counted(rows):
    """Return how many parts of a notebook are verified, of how many, and how many texts are written, of how many."""
    texts = [r for r in rows if is_text(r["exercise"])]
    checked = [r for r in rows if r not in texts and _found(r["exercise"])[1]]
    verified = sum(r["verdict"] == PASSED for r in checked)
    return verified, len(checked), sum(r["verdict"] == RECORDED for r in texts), len(texts)


def is_text(key):
    return isinstance(_found(key)[1], Discussion)


def _title(key):
    exercise, _ = _found(key)
    return plain(exercise.title) if exercise else ""


def _found(key):
    try:
        return find(key)
    except KeyError:  # a student's own
        return None, None


def gradescope_results(name, rows) -> str:
    """Return the results of one notebook as Gradescope's ``results.json`` has them."""
    tests = []
    for r in rows:
        most = 0.0 if is_text(r["exercise"]) else 1.0
        tests.append(
            {
                "name": r["exercise"] or name,
                "score": most if r["verdict"] == PASSED else 0.0,
                "max_score": most,
                "status": "passed" if r["verdict"] in (PASSED, RECORDED) else "failed",
                "output": f"{r['verdict'].upper()}: {r['message']}",
            }
        )
    return json.dumps({"tests": tests}, indent=1)


def page(name, rows) -> str:
    """Return one HTML file on a notebook, for its student: each part, its verdict and its message."""
    cells = ([_title(r["exercise"]), r["verdict"], plain(r["message"])] for r in rows)
    lines = "".join(
        f"<tr><th scope='row'>{escape(r['exercise'])}</th><td>{'</td><td>'.join(map(escape, texts))}</td></tr>\n"
        for r, texts in zip(rows, cells, strict=True)
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Part", "Exercise", "Verdict", "Message"))
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(name)}</title><style>{STYLE}</style></head>
<body>
<h1>{escape(name)}</h1>
<p>{escape(_total(rows).strip())}</p>
<table>
<thead><tr>{heads}</tr></thead>
<tbody>
{lines}</tbody>
</table>
</body>
</html>
"""
