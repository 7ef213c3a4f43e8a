"""Change the pages of a built book: what comes out of the theme's templates is seen nowhere before."""

from pathlib import Path


def when_built(app, change):
    """Calls ``change(text)`` with each page once the book is built, and keeps what it returns.

    Args:
        app: Sphinx.
        change: a function from the HTML of a page, str, to another one or the same.
    """

    def write(app, exception):
        if exception or app.builder.format != "html":
            return
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            if (changed := change(text)) != text:
                page.write_text(changed, encoding="utf-8")

    app.connect("build-finished", write)
