"""A page for addresses that lead nowhere, 404.html, which most hosts show for them.

It is shown in any folder of the book, so it loads nothing, and its links are named from the folder of the book. The
folder itself leads to the front page, by an index.html for which no browser asks for an icon.
"""

import html
from pathlib import Path

from html_piece import inline

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>This page is not in the book - {name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 12vh auto; padding: 0 1rem; }}
h1 {{ font-size: 1.75rem; line-height: 1.25; }}
input, button {{ font: inherit; min-height: 2rem; }}
</style>
</head>
<body>
<h1>This page is not in the book</h1>
<p>The address is mistyped, or what it led to has another name today.</p>
<form action="search.html"><label>Search the book: <input type="search" name="q"></label> <button>Search</button></form>
<p><a href="{root}.html">The front page</a> leads to all chapters, <a href="book_index.html">the index</a> to all
terms.</p>
<script>{script}</script>
</body>
</html>
"""
INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>{name}</title>
<meta http-equiv="refresh" content="0; url={root}.html">
<p><a href="{root}.html">The front page</a></p>
</html>
"""


def _write(app, exception):
    if exception or app.builder.format != "html":
        return
    told = {"name": html.escape(app.config.html_title), "root": app.config.root_doc, "script": inline("not_found")}
    Path(app.outdir, "404.html").write_text(PAGE.format(**told), encoding="utf-8")
    if app.config.root_doc != "index":
        Path(app.outdir, "index.html").write_text(INDEX.format(**told), encoding="utf-8")


def setup(app):
    app.connect("build-finished", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
