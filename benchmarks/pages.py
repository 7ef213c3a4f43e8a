"""The pages of the built book, counted: errors, links, widths, heights, tab stops, weight and waiting.

    python -m benchmarks.pages

Needs the book in `_build/html` (`make book`). All pages are opened wide and light, and phone-sized and dark; some
chapters are also loaded on a slow line and processor, those of `benchmarks.figure_start`, with an empty cache.
"""

from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urldefrag, urlparse

from benchmarks._common import main
from benchmarks.book import opened
from benchmarks.figure_start import load

VIEWS = {
    "wide": {"width": 1280, "theme": "light"},
    "phone": {"width": 390, "theme": "dark", "has_touch": True},
}
COUNT = """() => {
  const DIAGRAM = ".d2lmini-diagram svg", PLOT = "svg.plot";
  const article = document.querySelector("article") ?? document.body, nav = document.querySelector(".bd-links");
  const seen = (node) => node.getClientRects().length > 0;
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && seen(node));
  const inside = stops.filter((node) => article.contains(node));
  const before = stops.filter((node) => node.compareDocumentPosition(article) & 4);
  const wider = (node) => node.scrollWidth > node.clientWidth + 1;
  const tall = (node) => Math.round(node.getBoundingClientRect().height);
  const column = article.clientWidth;
  const drawn = (selector) => [...article.querySelectorAll(selector)].filter(seen);
  const letters = (selector) => drawn(`${selector} text`).map((node) => {
    const svg = node.ownerSVGElement, box = svg.viewBox.baseVal;
    const scale = box.width ? svg.getBoundingClientRect().width / box.width : 1;
    return parseFloat(getComputedStyle(node).fontSize) * scale;
  });
  const cut = (selector) => drawn(selector).filter((node) => node.getBoundingClientRect().width > column + 1).length;
  const smallest = (sizes) => (sizes.length ? Math.min(...sizes) : null);
  return {
    wider_than_screen: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    height: tall(article),
    stops_before_article: before.length,
    formulas_as_stops: inside.filter((node) => node.closest("mjx-container")).length,
    copy_buttons: inside.filter((node) => node.matches(".copybtn")).length,
    stops_in_article: inside.length,
    navigation_entries: nav ? [...nav.querySelectorAll("a")].filter(seen).length : 0,
    navigation_height: nav ? nav.scrollHeight : 0,
    figures: [...article.querySelectorAll("*")].filter((node) => node.localName.startsWith("d2lmini-") && seen(node))
      .map((node) => ({ figure: node.localName.slice(8), height: tall(node), cut: node.scrollWidth > column + 1 })),
    diagrams: drawn(DIAGRAM).length,
    diagrams_that_scroll: cut(DIAGRAM),
    plots: drawn(PLOT).length,
    plots_that_scroll: cut(PLOT),
    smallest_in_diagrams: smallest(letters(DIAGRAM)),
    smallest_in_plots: smallest(letters(PLOT)),
  };
}"""


@dataclass(frozen=True)
class Sizes:
    """``folder`` is that of the built book, from the root of the repository; ``slow``: chapters that are timed."""

    folder: str = "_build/html"
    slow: tuple = ("01_queries_keys_values", "09_long_sequences", "17_scaling")
    rounds: int = 3


QUICK = replace(Sizes(), folder="", slow=(), rounds=1)


class _Page(HTMLParser):
    """The links and the names of places of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names += [found["id"]] if found.get("id") else []
        self.links += [found["href"]] if tag == "a" and found.get("href") else []


def broken_links(folder):
    """Follows each link between the pages of a folder.

    Returns:
        Dict with the number of ``links``, ``broken`` ones as "page -> link", and pages with an id twice, ``doubled``.
    """
    folder = Path(folder).resolve()
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    links, broken = 0, []
    for path, page in pages.items():
        for link in page.links:
            if urlparse(link).scheme or link.startswith("//"):
                continue
            links += 1
            name, place = urldefrag(link)
            there = (path.parent / unquote(urlparse(name).path)).resolve() if urlparse(name).path else path
            there = there / "index.html" if there.is_dir() else there
            there_is = there in pages and (not place or "=" in place or unquote(place) in pages[there].names)
            if not (there_is or (there not in pages and there.is_file())):
                broken.append(f"{path.relative_to(folder)} -> {link}")
    doubled = [str(path.relative_to(folder)) for path, page in pages.items() if len(page.names) > len({*page.names})]
    return {"links": links, "broken": broken, "doubled": doubled}


def look(browser, url, view):
    """Opens a page. Returns: dict of what `COUNT` finds, of errors and warnings, and of requests to other hosts."""
    from tests.conftest import open_in

    page, host = open_in(browser, url, **VIEWS[view]), urlparse(url).netloc
    page.wait_for_load_state("networkidle", timeout=180_000)
    foreign = [asked for asked in page.log["requests"] if urlparse(asked).netloc not in (host, "")]
    found = {**page.evaluate(COUNT), "errors": page.log["errors"], "foreign": foreign}
    page.context.close()
    return found


def together(pages):
    """What holds of all pages of a view; what is drawn is counted in the book, not again on slides. Returns: dict."""
    book = {name: page for name, page in pages.items() if not name.startswith("slides/")}
    figures = [(figure["height"], figure["figure"], name) for name, page in book.items() for figure in page["figures"]]
    chapters = {name: page for name, page in pages.items() if name.startswith("chapters/")} or pages
    spread = lambda key: [f(page[key] for page in chapters.values()) for f in (min, median, max)]  # noqa: E731
    smallest = lambda key: round(min((page[key] for page in book.values() if page[key]), default=0), 1)  # noqa: E731
    total = lambda key: sum(page[key] for page in book.values())  # noqa: E731
    return {
        "errors": sum(len(page["errors"]) for page in pages.values()),
        "foreign_requests": sum(len(page["foreign"]) for page in pages.values()),
        "wider_than_screen": [name for name, page in pages.items() if page["wider_than_screen"] > 0],
        "chapters_height": sum(page["height"] for page in chapters.values()),
        "figures": len(figures),
        "figures_above_900": sorted(f"{name}: {figure}, {height}" for height, figure, name in figures if height > 900),
        "figures_cut": sum(figure["cut"] for page in book.values() for figure in page["figures"]),
        **{key: total(key) for key in ("diagrams", "diagrams_that_scroll", "plots", "plots_that_scroll")},
        **{key: smallest(key) for key in ("smallest_in_diagrams", "smallest_in_plots")},
        **{
            key: spread(key)
            for key in ("stops_before_article", "formulas_as_stops", "copy_buttons", "stops_in_article")
        },
        "navigation": spread("navigation_entries") + spread("navigation_height"),
    }


def measure(sizes):
    """Returns: dict with ``links``, ``views`` (all pages together), ``pages`` (each) and ``slow``."""
    slow = {}
    with opened(sizes.folder) as (folder, url, browser):
        names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.html"))]
        names = [name for name in names if not name.startswith(("_static", "exercises/solutions/", "slides/reveal"))]
        pages = {view: {name: look(browser, f"{url}/{name}", view) for name in names} for view in VIEWS}
        for name in sizes.slow:
            loads = [load(browser, f"{url}/chapters/{name}.html", "[data-ready=yes]") for _ in range(sizes.rounds)]
            slow[name] = {key: round(median(one[key] for one in loads), 1) for key in loads[0]}
        links = broken_links(folder)
    return {"links": links, "views": {view: together(of) for view, of in pages.items()}, "slow": slow, "pages": pages}


if __name__ == "__main__":
    main("pages", measure, Sizes(), QUICK, gpu=False)
