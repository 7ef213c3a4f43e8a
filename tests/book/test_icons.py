"""The icon fonts hold what the book shows, and not much more."""

import re

import pytest
from conftest import BOOK, sphinx_extension
from fontTools.ttLib import TTFont

icons = sphinx_extension("icons")
SHEET = (
    '.fa-rocket:before{content:"\\f135"}.fa-close:before,.fa-xmark:before{content:"\\f00d"}.fa-crow:before'
    '{content:"\\f520"}.onthispage:after{content:"\\f107";font-weight:900}.quote:after{content:"\\201c"}'
)


def test_letters_are_those_of_classes_and_those_that_style_sheets_name():
    assert icons.letters(SHEET, ['<i class="fas fa-rocket">', 'icon = "fa-xmark"']) == {0xF135, 0xF00D, 0xF107}
    assert icons.letters(SHEET, []) == {0xF107}


@pytest.mark.parametrize("name", ["fa-solid-900.woff2", "fa-solid-900.ttf"])
def test_a_font_is_cut_and_keeps_its_format(tmp_path, name):
    icons.cut(icons.FONTS / name, tmp_path / name, {0xF135})
    before, after = TTFont(icons.FONTS / name), TTFont(tmp_path / name)
    assert set(after.getBestCmap()) == {0xF135} < set(before.getBestCmap())
    assert after.flavor == before.flavor
    assert (tmp_path / name).stat().st_size < (icons.FONTS / name).stat().st_size / 50


def test_every_icon_of_the_book_is_in_a_font_of_it():
    if not BOOK.exists():
        pytest.skip("the book is not built (make book)")
    sheets = "\n".join(path.read_text(encoding="utf-8") for path in BOOK.glob("_static/styles/*.css"))
    pages = [path.read_text(encoding="utf-8") for path in BOOK.rglob("*.html")]
    fonts = list((BOOK / "_static" / "vendor" / "fontawesome" / "webfonts").glob("*.woff2"))
    there = {letter for path in fonts for letter in TTFont(path).getBestCmap()}
    shown = {
        name
        for page in pages
        for name in re.findall(r'<i class="fa(?:-solid|-brands|\w)? (?:fa-lg )?(fa-[a-z-]+)', page)
    }
    assert len(shown) > 8 and icons.letters(sheets, shown) <= there
    assert sum(path.stat().st_size for path in fonts) < 20_000
