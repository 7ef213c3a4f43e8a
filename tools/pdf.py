"""Print the built book into one PDF, by the Chromium that tests it: `make pdf`.

    python -m tools.pdf                    # the core: what stands open
    python -m tools.pdf --everything       # checks, hints, solutions and Going further, too

Pages come in the order of `_toc.yml`, each printed by itself; a title, the contents with page numbers, an outline and
the page numbers are put in, and links between pages lead inside the PDF.
"""

import argparse
import html
import io
import sys
from datetime import date
from pathlib import Path
from urllib.parse import unquote, urlparse

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject

from tools import pages, site
from tools._generated import ROOT

TITLE = f"d2lmini: {pages.TITLE}"
LEFT_OUT = ("api", "book_index", "coverage", "playground", "real_model", "your_progress", "troubleshooting")
SHEET = {"format": "A4", "print_background": True, "prefer_css_page_size": True}
WIDTH = 658  # CSS pixels between the margins of paper.css: wide things are measured in it
NUMBERS = """<style>
@page { size: A4; margin: 0; }
body { margin: 0; font: 9pt sans-serif; color: #555; }
div { height: 296.5mm; position: relative; break-after: page; }
p { position: absolute; bottom: 7mm; margin: 0; width: 100%; text-align: center; }
</style>"""
FRONT = """<style>
@page { size: A4; margin: 25mm 22mm; }
body { font: 11pt sans-serif; }
h1 { margin: 0; font-size: 18pt; }
h2 { margin: 5mm 0 1mm; font-size: 12pt; }
p { margin: 0 0 1mm; display: flex; gap: 2mm; }
p span:first-child { flex: 1; border-bottom: 1px dotted #aaa; }
.of { padding-left: 6mm; font-size: 10pt; color: #333; }
.title { break-after: page; }
.title h1 { margin: 60mm 0 10mm; font-size: 30pt; }
</style>"""


def printed_pages():
    """(part, level, name) of each page that is printed, in the order of the book. Returns: list."""
    pages = ((part, level, site.served(name)) for part, level, name in site.pages())
    return [page for page in pages if page[2] not in LEFT_OUT]


TITLE_OF_PAGE = """() => [...document.querySelector("article h1").childNodes]
  .filter((node) => !node.matches?.("a.headerlink")).map((node) => node.textContent).join("").trim()"""


def printed(browser, url, paper):
    """One page as a PDF, and its title. Returns: pair of a PdfReader and a str."""
    context = browser.new_context(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
    page = context.new_page()
    page.goto(url, wait_until="networkidle", timeout=180_000)
    page.evaluate("paper => { document.documentElement.dataset.paper = paper; }", paper)
    page.emulate_media(media="print", color_scheme="light")
    page.wait_for_function("!window.MathJax || !!MathJax.startup?.promise", timeout=60_000)
    page.evaluate("window.MathJax?.startup?.promise")
    title, text = page.evaluate(TITLE_OF_PAGE), page.pdf(**SHEET)
    context.close()
    return PdfReader(io.BytesIO(text)), title


def sheet(browser, text):
    """HTML of our own as a PDF. Returns: PdfReader."""
    page = browser.new_page()
    page.set_content(text)
    found = PdfReader(io.BytesIO(page.pdf(**SHEET)))
    page.close()
    return found


def contents(chapters, first):
    """The title page and the contents, as HTML; the book begins on page `first`."""
    origin = f"Version {site.VERSION}, printed {date.today()}<br>{site.repository()['url']}"
    lines = [f"<div class='title'><h1>{html.escape(TITLE)}</h1>{origin}</div><h1>Contents</h1>"]
    part, at = None, first
    for name, level, title, count in chapters:
        if name != part:
            lines.append(f"<h2>{html.escape(name)}</h2>")
            part = name
        kind = "of" if level else ""
        lines.append(f"<p class='{kind}'><span>{html.escape(title)}</span><span>{at}</span></p>")
        at += count
    return FRONT + "".join(lines)


def turn_inwards(writer, starts, base):
    """Links to pages of the book lead to their first sheets, those to what is not printed go. Returns: the former."""
    turned = 0
    for page in writer.pages:
        kept = ArrayObject()
        for reference in page.get("/Annots", []):
            link = reference.get_object()
            address = link.get("/A", {}).get("/URI", "")
            name = unquote(urlparse(address).path).strip("/").removesuffix(".html")
            if address.startswith(base):
                if name not in starts:
                    continue
                del link["/A"]
                there = writer.pages[starts[name]].indirect_reference
                link[NameObject("/Dest")] = ArrayObject([there, NameObject("/Fit")])
                turned += 1
            kept.append(reference)
        page[NameObject("/Annots")] = kept
    return turned


def make(browser, base, paper, out):
    """Prints the book. Returns: number of sheets."""
    done = []
    for part, level, name in printed_pages():
        reader, title = printed(browser, f"{base}/{name}.html", paper)
        done.append((part, level, name, title, reader))
        print(f"{title}: {len(reader.pages)}", flush=True)
    listed = [(part, level, title, len(reader.pages)) for part, level, _, title, reader in done]
    first = 1 + len(sheet(browser, contents(listed, 1)).pages)
    front = sheet(browser, contents(listed, first))
    writer, starts, parts = PdfWriter(), {}, {}
    for reader in (front, *(reader for *_, reader in done)):
        writer.append(reader, import_outline=False)
    at = len(front.pages)
    for part, _, name, title, reader in done:
        starts[name] = at
        parts.setdefault(part, None)
        if parts[part] is None:
            parts[part] = writer.add_outline_item(title=part, page_number=at)
        writer.add_outline_item(title=title, page_number=at, parent=parts[part])
        at += len(reader.pages)
    numbers = sheet(browser, NUMBERS + "".join(f"<div><p>{n + 1 if n else ''}</p></div>" for n in range(at)))
    for page, number in zip(writer.pages, numbers.pages, strict=False):
        page.merge_page(number)
    turn_inwards(writer, starts, base)
    writer.add_metadata({"/Title": TITLE, "/Author": "The d2lmini authors"})
    writer.compress_identical_objects()
    out.parent.mkdir(parents=True, exist_ok=True)
    writer.write(out)
    return at


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__.splitlines()[0])
    parser.add_argument("--everything", action="store_true", help="what is folded, too")
    parser.add_argument("--out", type=Path, help="the file; without it pdf/ of the built book")
    parser.add_argument("--book", type=Path, default=ROOT / "_build" / "html", help="the built book")
    options = parser.parse_args()
    paper = "all" if options.everything else "core"
    try:
        site.built(options.book)
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS, serving

    if not CHROMIUM:
        sys.exit("error: there is no Chromium on this machine (Debian: apt-get install chromium)")
    made = f"pdf/d2lmini-{paper}.pdf"
    out = options.out or options.book / made
    with sync_playwright() as playwright, serving(options.book) as base:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        sheets = make(browser, base, paper, out)
        browser.close()
    if not options.out:
        words = "The whole book in one PDF" if options.everything else "The book in one PDF, without what is folded"
        site.lead_to(options.book, made, words)
    print(f"{out}: {sheets} pages, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
