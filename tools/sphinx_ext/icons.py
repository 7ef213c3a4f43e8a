"""Leave in the theme's icon fonts, 274 kB on every page, the few icons that the book shows.

An icon is a class of an element, `fa-rocket`, which the theme's style sheet turns into a letter of the font; a few
are letters in a style sheet of their own. What no page, script or style sheet names is cut out of the fonts.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset

FONTS = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/vendor/fontawesome/webfonts"
CLASS = re.compile(r"\bfa-[a-z0-9-]+")
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:+before,?)+)\{content:"\\([0-9a-f]+)"')
LETTER = re.compile(r'"\\(f[0-9a-f]{2,3})"')


def letters(style_sheets, texts):
    """The letters of the icons that are used.

    Args:
        style_sheets: str, all of them.
        texts: iterable of str, the pages and the scripts.

    Returns:
        set of int.
    """
    used = {name for text in texts for name in CLASS.findall(text)}
    of_classes = {int(code, 16) for names, code in RULE.findall(style_sheets) if used & set(CLASS.findall(names))}
    return of_classes | {int(code, 16) for code in LETTER.findall(RULE.sub("", style_sheets))}


def cut(source, target, kept):
    """Write a font with these letters alone, in its own format."""
    options = subset.Options(flavor="woff2" if source.suffix == ".woff2" else None, layout_features=[])
    font = subset.load_font(source, options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=kept)
    cutter.subset(font)
    subset.save_font(font, target, options)


def _cut(app, exception):
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    sheets = "\n".join(path.read_text(encoding="utf-8") for path in sorted((folder / "_static").rglob("*.css")))
    scripts = [*(folder / "_static").glob("*.js"), *(folder / "_static" / "scripts").glob("*.js")]
    pages = [*folder.rglob("*.html"), *scripts]
    kept = letters(sheets, (path.read_text(encoding="utf-8") for path in pages))
    for path in FONTS.glob("fa-*"):
        cut(path, folder / "_static" / "vendor" / "fontawesome" / "webfonts" / path.name, kept)


def setup(app):
    app.connect("build-finished", _cut, priority=700)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
