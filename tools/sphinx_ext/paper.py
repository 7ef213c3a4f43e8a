"""A printed page: light, its code wrapped, its figures whole, nothing that only a screen needs."""


def setup(app):
    app.add_css_file("paper.css", media="print", priority=900)  # after book.css, which it overrules
    app.add_js_file("paper.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
