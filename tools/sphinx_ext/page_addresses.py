"""The pages of `pages/` are built where readers have known them, at the root of the book: none has another address."""

import posixpath


def _at_root(app):
    from tools.site import served

    builder = app.builder
    if builder.format != "html":
        return
    address, file = builder.get_target_uri, builder.get_outfilename
    builder.get_target_uri = lambda docname, typ=None: address(served(docname), typ)
    builder.get_outfilename = lambda pagename: file(served(pagename))


def _canonical(app, pagename, templatename, context, doctree):
    """Sphinx makes it of the name of the page's file."""
    if context.get("pageurl"):
        context["pageurl"] = posixpath.join(app.config.html_baseurl, app.builder.get_target_uri(pagename))


def setup(app):
    app.connect("builder-inited", _at_root)
    app.connect("html-page-context", _canonical)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
