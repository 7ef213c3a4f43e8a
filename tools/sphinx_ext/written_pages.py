"""What a page gets from data when the book is built: a fence `{written} NAME` gives way to Markdown that tools/ makes.

NAME is that of the page, and the line in the fence is to be read where nothing is built.
"""

import re
import sys
from pathlib import Path

from execution_cache import package_digest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the package `tools`

FENCE = re.compile(r"^```\{written\} (\w+)\n.*?^```$", re.M | re.S)
MADE_OF = "chapters", "tools"  # and of the package


def written(name):
    """Markdown, str."""
    from tools import coverage, glossary, measured

    return {
        "bibliography": lambda: "```{bibliography}\n:style: author_year\n```",
        "book_index": glossary.index,
        "coverage": coverage.tables,
        "glossary": glossary.glossary,
        "measured": measured.page,
    }[name]()


def _fill(app, docname, source):
    if docname.startswith("pages/"):
        source[0] = FENCE.sub(lambda found: written(found[1]), source[0])


def _read_again(app, env, added, changed, removed):
    """What such a page is made of is in no file that Sphinx knows of."""
    now = [app.d2lmini_digest, *(package_digest(Path(app.srcdir, folder)) for folder in MADE_OF)]
    before, env.made_of = getattr(env, "made_of", now), now
    pages = [name for name in env.found_docs if name.startswith("pages/")] if before != now else []
    return [name for name in pages if FENCE.search(Path(env.doc2path(name)).read_text(encoding="utf-8"))]


def setup(app):
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _read_again)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
