"""A search that lands on sections: its index is a file that the search page alone loads, its ranking is search.js.

Sphinx's own leads to the top of a page, and its index was a script of every page.
"""

import json
import re
from pathlib import Path

from tools import section_index

SPHINX = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')
GONE = "searchindex.js", "_static/searchtools.js", "_static/language_data.js"
OURS = '<script defer src="_static/sections.js"></script>\n<script defer src="_static/search.js"></script>\n</head>'


def _no_index(app):
    """Keep Sphinx from writing an index that nobody loads; its search page comes by `_page` then."""
    app.builder.search = False


def _page(app):
    return [("search", {}, "search.html")]


def _write(app, exception):
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    data = {"entries": section_index.entries(app.env), "synonyms": section_index.synonyms()}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    (folder / "_static" / "sections.js").write_text(f"window.bookSections={text};\n", encoding="utf-8")
    for page in folder.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        clean = SPHINX.sub("", html)
        if page == folder / "search.html":
            clean = clean.replace("</head>", OURS, 1)
        if clean != html:
            page.write_text(clean, encoding="utf-8")
    for name in GONE:
        (folder / name).unlink(missing_ok=True)


def setup(app):
    app.connect("builder-inited", _no_index)
    app.connect("html-collect-pages", _page)
    app.connect("build-finished", _write, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
