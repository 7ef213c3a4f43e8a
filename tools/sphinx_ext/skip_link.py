"""*Skip to main content* leads to the article: the theme's link leads to the bar of buttons above it."""

import re

from built_pages import when_built

PLACE = re.compile(r'<article class="bd-article"|<div class="bd-search-container"')  # the search page has no article
THEIRS, OURS = '<a href="#main-content">Skip', '<a href="#the-article">Skip'


def aim(html):
    """The page with its skip link aimed at the article, or as it is where there is none. Args: html: str."""
    if THEIRS not in html or not PLACE.search(html):
        return html
    html = PLACE.sub(lambda found: f'{found[0]} id="the-article" tabindex="-1"', html, count=1)
    return html.replace(THEIRS, OURS, 1)


def setup(app):
    when_built(app, aim)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
