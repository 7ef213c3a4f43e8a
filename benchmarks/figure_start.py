"""How long a reader waits until a figure answers: built books in headless Chromium, on a slow line and processor.

    python -m benchmarks.figure_start before=/tmp/old/_build/html after=_build/html

The books are loaded in turns, each time with an empty cache; the median of each goes into
`d2lmini/results/figure_start.json`. Line and processor are those that Lighthouse calls slow 4G and a mid-tier phone.
"""

import gzip
import http.server
import json
import mimetypes
import statistics
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.conftest import CHROMIUM, CHROMIUM_FLAGS, serving

RECORD = Path(__file__).parent.parent / "d2lmini" / "results" / "figure_start.json"
PAGE, READY = "chapters/01_queries_keys_values.html", "d2lmini-query-plane[data-ready=yes]"
LINE = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
SLOWDOWN = 4
ROUNDS = 3


class Zipped(http.server.SimpleHTTPRequestHandler):
    """Files as hosts of static pages send them."""

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        body = gzip.compress(path.read_bytes(), 6, mtime=0)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the browser was closed meanwhile
            self.wfile.write(body)

    def log_message(self, *args):
        pass


def load(browser, url, ready=READY):
    """Loads a page once. Returns: dict of seconds until a figure answers and until all is loaded, and of kB sent."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    line = context.new_cdp_session(page)
    sent = []
    line.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
    line.send("Network.enable")
    line.send("Network.emulateNetworkConditions", LINE)
    line.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    page.add_init_script(
        f"""new MutationObserver((_, observer) => {{
          if (!document.querySelector({json.dumps(ready)})) return;
          window.figureReady = performance.now();
          observer.disconnect();
        }}).observe(document, {{ subtree: true, childList: true, attributeFilter: ["data-ready"] }});"""
    )
    page.goto(url, wait_until="load", timeout=180_000)
    page.wait_for_function("window.figureReady", timeout=180_000)
    seen = page.evaluate("[figureReady, performance.getEntriesByType('navigation')[0].loadEventStart]")
    context.close()
    return {"figure_s": seen[0] / 1000, "loaded_s": seen[1] / 1000, "sent_kB": sum(sent) / 1000}


def main(books):
    loads = {name: [] for name in books}
    with ExitStack() as servers, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        urls = {}
        for name, folder in books.items():
            urls[name] = f"{servers.enter_context(serving(folder, Zipped))}/{PAGE}"
        for _ in range(ROUNDS):
            for name, url in urls.items():
                loads[name].append(load(browser, url))
                print(name, {key: round(value, 1) for key, value in loads[name][-1].items()}, flush=True)
        browser.close()
    medians = {
        name: {key: round(statistics.median(load[key] for load in all_loads), 1) for key in all_loads[0]}
        for name, all_loads in loads.items()
    }
    line = {"Mbit_s": LINE["downloadThroughput"] * 8 / 1e6, "latency_ms": LINE["latency"], "slowdown": SLOWDOWN}
    record = {"page": PAGE, "rounds": ROUNDS, **line, "books": medians, "command": "python -m benchmarks.figure_start"}
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    if not sys.argv[1:] or any("=" not in book for book in sys.argv[1:]):
        sys.exit(f"expected name=FOLDER of one or more built books, got {' '.join(sys.argv[1:]) or 'none'}")
    main(dict(book.split("=", 1) for book in sys.argv[1:]))
