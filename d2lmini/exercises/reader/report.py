"""How far the reader is: a table in a terminal, squares in a notebook."""

from html import escape

from ..engine.model import Discussion, Identity
from ..engine.registry import NOTEBOOKS, chapters, exercises
from .front_end import show
from .progress import NOT_KEPT, is_done, load_progress, progress_path, read_progress, write_progress

SIGNS = {
    "solved": "\N{BLACK SQUARE}",
    "ticked by you": "\N{SQUARED DOT OPERATOR}",
    "begun": "\N{SQUARE WITH LEFT HALF BLACK}",
    "not attempted": "\N{WHITE SQUARE}",
}


def progress(chapter=None, *, read=None, write=None):
    """Show which exercises are solved, and in how many tries: squares in a notebook, else a table.

    Args:
        chapter: ``"03"``; None: all.
        read: a file whose content is added first, such as the book's page *Your progress* writes.
        write: a file that gets a copy, for that page or for another machine.

    Raises:
        ValueError: no such chapter has exercises, or what was to be read is no file of progress.
        FileNotFoundError: there is no such file.
    """
    names = _chosen(chapter)
    if read is not None:
        print(f"read {read}: {_parts(read_progress(read))}")
    show(progress_report(chapter), _squares(names), "html")
    if write is not None:
        print(f"wrote {write}: {_parts(write_progress(write))}")


def _parts(count):
    return f"{count} {'part' if count == 1 else 'parts'}"


def progress_report(chapter=None) -> str:
    """Return a table of all parts, or of those of one chapter; what was self-assessed is counted apart.

    Args:
        chapter: ``"03"``; None: all.

    Raises:
        ValueError: no such chapter has exercises.
    """
    kept, lines = load_progress(), []
    verified = verifiable = assessed = assessable = ticked = 0
    for name in _chosen(chapter):
        lines += ["", f"Chapter {name}"]
        for exercise, part, entry in _entries(name, kept):
            marks = []
            if not isinstance(part, Discussion):
                verifiable += 1
                verified += bool(entry.get("passed"))
                last = entry.get("last") or "not attempted"
                marks.append(("verified" if entry.get("passed") else f"not yet ({last})") + _tries(entry))
            if isinstance(part, (Discussion, Identity)):
                assessable += 1
                assessed += bool(entry.get("review"))
                marks.append(f"self-assessed: {entry['review']}" if entry.get("review") else "not self-assessed")
            if entry.get("ticked"):
                ticked += 1
                marks.append("ticked by you")
            lines.append(f"  {part.key:<12} {part.kind:<11} {exercise.title[:48]:<49} {'; '.join(marks)}")
    head = [
        f"Verified by checks:  {verified} of {verifiable}",
        f"Self-assessed:       {assessed} of {assessable} (proofs and discussions)",
        *([f"Ticked by you:       {ticked} (in the book, where no check runs)"] if ticked else []),
    ]
    path = progress_path()
    return "\n".join(head + lines + ["", f"Kept in {path}" if path else f"Beware: {NOT_KEPT}"])


def _entries(chapter, kept):
    """Triples (exercise, part, what is kept of it) of a chapter."""
    return [(exercise, part, kept.get(part.key, {})) for exercise in exercises(chapter) for part in exercise.parts]


def _chosen(chapter):
    """Return the chapters that a reader asks for."""
    if chapter is None:
        return chapters()
    wanted = str(chapter).strip().zfill(2)
    if wanted not in chapters():
        expected = ", ".join(chapters())
        raise ValueError(f"there is no chapter {chapter!r} with exercises, expected one of {expected}")
    return [wanted]


def _tries(entry):
    count = entry.get("tries", 0)
    return f", {count} {'try' if count == 1 else 'tries'}" if count else ""


def _state(part, entry):
    if is_done(part, {**entry, "ticked": False}):
        return "solved"
    return "ticked by you" if entry.get("ticked") else "begun" if entry else "not attempted"


def _squares(names):
    """Return a line a chapter: a square for each part, in form and words, so that no colour is needed."""
    kept, lines = load_progress(), []
    for name in names:
        cells, done = [], 0
        for exercise, part, entry in _entries(name, kept):
            state = _state(part, entry)
            done += state == "solved"
            title = escape(f"{part.key}, {exercise.title}: {state}{_tries(entry)}", quote=True)
            cells.append(f'<span title="{title}">{SIGNS[state]}</span>')
        lines.append(
            f"<tr><td>{name}</td><td style='text-align:left'>{NOTEBOOKS[name][3:].replace('_', ' ')}</td>"
            f"<td style='text-align:right'>{done} of {len(cells)}</td>"
            f"<td style='text-align:left;font-size:1.2em'>{''.join(cells)}</td></tr>"
        )
    legend = ", ".join(f"{sign} {state}" for state, sign in SIGNS.items())
    return f"<table><caption>Your exercises: {legend}</caption>{''.join(lines)}</table>"
