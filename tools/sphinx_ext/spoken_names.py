"""What a screen reader, and a voice that commands, is told of the theme's parts and of tables.

The theme and MyST-NB call the search button and folded cells by other words than are seen on them, the theme's logo
lies in no landmark, and docutils makes a header of a table's empty corner.
"""

import re

from built_pages import when_built

SEARCH = re.compile(r'(<button class="btn search-button-field [^>]*?) aria-label="[^"]*"')
FOLDED = '<summary aria-label="Toggle hidden content">'  # of a cell whose code or output is hidden
SIDEBAR = '<div id="pst-primary-sidebar" class='
CORNER = re.compile(r"<th\b([^>]*)>(\s*(?:<p>\s*</p>\s*)?)</th>")


def named(html):
    """The page with names that say what is seen. Args: html: str."""
    html = SEARCH.sub(r"\1", html)
    html = html.replace(FOLDED, "<summary>")
    html = html.replace(SIDEBAR, SIDEBAR.replace(" class=", ' role="region" aria-label="The book" class='))
    return CORNER.sub(r"<td\1>\2</td>", html)


def setup(app):
    when_built(app, named)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
