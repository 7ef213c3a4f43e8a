"""*Skip to main content* leads to the article: the theme's link leads to the bar of buttons above it."""

import re
from pathlib import Path

PLACE = re.compile(r'<article class="bd-article"|<div class="bd-search-container"')  # the search page has no article
THEIRS, OURS = '<a href="#main-content">Skip', '<a href="#the-article">Skip'


def aim(html):
    """The page with its skip link aimed at the article, or as it is where there is none. Args: html: str."""
    if THEIRS not in html or not PLACE.search(html):
        return html
    html = PLACE.sub(lambda found: f'{found[0]} id="the-article" tabindex="-1"', html, count=1)
    return html.replace(THEIRS, OURS, 1)


def _write(app, exception):
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        if (aimed := aim(html)) != html:
            page.write_text(aimed, encoding="utf-8")


def setup(app):
    app.connect("build-finished", _write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
