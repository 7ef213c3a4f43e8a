"""Paper: a printed page is light and whole; the PDF of the book has its order, outline, numbers and links."""

import io
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, serving
from pypdf import PdfReader

from tools import pdf

EXTENSIONS = ROOT / "tools" / "sphinx_ext"
PAGE = """<!DOCTYPE html><html data-theme="dark"><title>{title}</title>
<link rel=icon href="data:,"><link rel="stylesheet" media="print" href="/paper.css">
<script defer src="/paper.js"></script>
<style>html[data-theme="dark"] body {{ color: #eee; background: #111; }} pre {{ overflow: auto; }}</style>
<div class="bd-main"><div class="bd-content"><article class="bd-article"><h1>{title}<a class="headerlink">#</a></h1>
{body}</article></div></div>"""
CODE = (
    "<div class='cell_input'><pre>"
    + "".join(f"<span class='line'>line {i}</span>\n" for i in range(90))
    + "</pre></div>"
)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of three pages, of which one is below another, and what `_toc.yml` would say of it."""
    for path in (EXTENSIONS / "static" / "paper.css", EXTENSIONS / "built" / "static" / "paper.js"):
        shutil.copy(path, tmp_path)
    bodies = {
        "chapters/01_a": "<a href='../exercises/01_a.html#x'>inside</a> <a href='../api.html'>not printed</a>"
        "<a href='https://example.org/'>outside</a>" + CODE + "<details><summary>More</summary>FOLDED</details>"
        "<section><details class='fold'><summary><h2>Caveats</h2></summary></details>CAVEAT</section>",
        "exercises/01_a": "<div class='cell tag_setup'>SETUP</div><p>Solve it.</p><hr class='docutils'><p>ONWARD</p>",
        "chapters/02_b": "<table style='width: 1500px'><td>left</td><td style='text-align: right'>RIGHT</td></table>",
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.html").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.html").write_text(PAGE.format(title=f"Page {name[-4:]}", body=body), encoding="utf-8")
    listed = [("One", 0, "chapters/01_a"), ("One", 1, "exercises/01_a"), ("Two", 0, "chapters/02_b")]
    monkeypatch.setattr(pdf, "printed_pages", lambda: listed)
    with serving(tmp_path) as base:
        yield base


def text_of(reader):
    return "\n".join(page.extract_text() for page in reader.pages)


def test_the_book_in_one_file(chromium, book, tmp_path):
    out = Path(tmp_path, "out", "book.pdf")
    count = pdf.make(chromium, book, "core", out)
    reader = PdfReader(out)
    assert len(reader.pages) == count and reader.metadata.title.startswith("d2lmini")
    assert "/StructTreeRoot" not in reader.trailer["/Root"]  # no tags, as accessibility.md says
    assert "ONWARD" not in text_of(reader)  # to the next page
    outline = reader.outline
    assert [outline[0].title, [one.title for one in outline[1]]] == ["One", ["Page 01_a", "Page 01_a"]]
    starts = [reader.get_destination_page_number(one) for one in (*outline[1], outline[2])]
    for number, start in zip(("Page 01_a", "Solve it.", "Page 02_b"), starts, strict=True):
        assert number in reader.pages[start].extract_text()
    contents = reader.pages[1].extract_text()
    assert all(str(start + 1) in contents for start in starts) and "Two" in contents
    assert [page.extract_text().rstrip().endswith(str(n)) for n, page in enumerate(reader.pages, 1)][1:] == [True] * (
        count - 1
    )
    links = [link.get_object() for link in reader.pages[starts[0]]["/Annots"]]
    assert [link.get("/A", {}).get("/URI") for link in links] == [None, "https://example.org/"]
    assert links[0]["/Dest"][0] == reader.pages[starts[1]].indirect_reference


def test_core_leaves_out_what_is_folded_and_all_has_it(chromium, book):
    found = {paper: text_of(pdf.printed(chromium, f"{book}/chapters/01_a.html", paper)[0]) for paper in ("core", "all")}
    assert "FOLDED" not in found["core"] and "CAVEAT" not in found["core"] and "CAVEAT" in found["all"]
    assert "SETUP" not in text_of(pdf.printed(chromium, f"{book}/exercises/01_a.html", "all")[0])


def test_code_goes_on_over_the_page_and_nothing_is_cut(chromium, book):
    reader, title = pdf.printed(chromium, f"{book}/chapters/01_a.html", "core")
    pages = [page.extract_text() for page in reader.pages]
    assert title == "Page 01_a" and "line 0" in pages[0] and "line 89" in text_of(reader)
    reader, _ = pdf.printed(chromium, f"{book}/chapters/02_b.html", "core")
    (sheet,) = reader.pages
    found = []
    sheet.extract_text(visitor_text=lambda text, outer, inner, *_: found.append((text, inner[4] * outer[0] + outer[4])))
    (x,) = (x for text, x in found if "RIGHT" in text)
    assert 300 < x < float(sheet.mediabox.right) - 40


HIGHLIGHTED = """<p style="height: {height}px">before</p>
<div class="cell_input" style="display: flex; flex-direction: column; border: 1px solid"><i style="height: 0">BOX</i>
<div class="highlight-x" style="break-inside: avoid"><pre>{lines}</pre></div></div>"""


def test_a_box_begins_where_its_code_does_and_a_short_one_stays_whole(chromium, book, tmp_path):
    lines = "".join(f"<span class='line' style='display: block'>line {i}</span>" for i in range(20))
    path = tmp_path / "chapters" / "01_a.html"
    path.write_text(PAGE.format(title="Boxes", body=HIGHLIGHTED.format(height=780, lines=lines)), encoding="utf-8")
    first, second = pdf.printed(chromium, f"{book}/chapters/01_a.html", "core")[0].pages
    assert "before" in first.extract_text() and "BOX" not in first.extract_text()
    assert all(text in second.extract_text() for text in ("BOX", "line 0", "line 19"))


def test_88_letters_of_code_are_one_line_and_paper_overrules_the_sheet_of_the_book(chromium, small_book):
    page = chromium.new_page(viewport={"width": pdf.WIDTH, "height": 1000})
    page.goto(f"{small_book[1]}/chapters/01_one.html")
    page.emulate_media(media="print")
    size, room = page.evaluate(
        """() => {
          const shown = [...document.querySelectorAll(".bd-article .cell_input pre")].filter((pre) => pre.clientWidth);
          const style = getComputedStyle(shown[0]), letter = document.createElement("span");
          letter.textContent = "x".repeat(88);
          letter.style.whiteSpace = "pre";
          shown[0].prepend(letter);
          const used = letter.getBoundingClientRect().width + parseFloat(style.paddingLeft) * 2;
          return [style.fontSize, shown[0].clientWidth - used];
        }"""
    )
    page.close()
    assert size == "11px" and room >= 0


def test_a_long_table_begins_where_it_stands_and_core_keeps_the_answers_to_choices(chromium, book, tmp_path):
    css = (EXTENSIONS / "static" / "exercises.css").read_text(encoding="utf-8") + "table { break-inside: avoid; }"
    rows = "".join(f"<tr style='height: 30px'><td>row {i}</td></tr>" for i in range(20))
    body = f"<style>{css}</style><form><div class=option><details class=why open hidden>WHY</details></div></form>"
    body += f"<p style='height: 700px'>before</p><table><tbody>{rows}</tbody></table>"
    path = tmp_path / "exercises" / "01_a.html"
    path.write_text(PAGE.format(title="Choice", body=body), encoding="utf-8")
    found = {paper: pdf.printed(chromium, f"{book}/exercises/01_a.html", paper)[0] for paper in ("core", "all")}
    assert "WHY" in text_of(found["all"]) and "WHY" not in text_of(found["core"])
    first, second = found["core"].pages
    assert "row 0" in first.extract_text() and "row 19" in second.extract_text()


def test_a_live_figure_prints_without_what_only_a_screen_needs(chromium, book, tmp_path):
    figure = (
        "<d2l-x data-ready=yes><p class=d2lmini-hint>HINT</p><button>RESET</button><span class=d2lmini-cue>CUE</span>"
    )
    figure += "<button>head 1<svg width=9 height=9></svg></button></d2l-x>"
    path = tmp_path / "chapters" / "01_a.html"
    path.write_text(PAGE.format(title="Live", body=figure), encoding="utf-8")
    text = text_of(pdf.printed(chromium, f"{book}/chapters/01_a.html", "core")[0])
    assert "head 1" in text and not any(word in text for word in ("HINT", "RESET", "CUE"))


def test_a_dark_page_is_printed_light_and_is_dark_afterwards(chromium, book):
    page = chromium.new_page()
    page.goto(f"{book}/chapters/02_b.html")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("[document.documentElement.dataset.theme, document.querySelector('table').style.zoom]") == [
        "dark",
        "",
    ]
    assert PdfReader(io.BytesIO(page.pdf())).pages
    page.close()


def test_the_pages_are_those_of_the_table_of_contents():
    names = [name for _, _, name in pdf.printed_pages()]
    assert len(names) == len({*names}) and "chapters/01_queries_keys_values" in names and "notation" in names
    assert not {*names} & {*pdf.LEFT_OUT} and not any("solutions" in name for name in names)
    assert all((ROOT / "pages" / f"{name}.md").exists() or (ROOT / f"{name}.ipynb").exists() for name in names)
