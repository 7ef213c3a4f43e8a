"""Where the browser denies the page its storage, the theme's scripts have one in memory instead of an error each: the
button of the theme works until the page is left. Ours have no part in it: they say that nothing is kept."""

from html_piece import inline


def _before_the_theme(app, pagename, templatename, context, doctree):
    context["metatags"] = (context.get("metatags") or "") + f"<script>{inline('denied_storage')}</script>"


def setup(app):
    app.connect("html-page-context", _before_the_theme)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
