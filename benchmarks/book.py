"""What the built book costs: seconds to build it, bytes and requests of its pages, time until a figure answers.

    python -m benchmarks.book            # needs a book: make book
    python -m benchmarks.book --build    # builds one anew, all chapters executed, and times that

Bytes are those sent to a first visitor, compressed as hosts of static pages do. The figure is that of
`benchmarks.figure_start`, on the slow line and processor that are described there.
"""

import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from statistics import median

import torch
from playwright.sync_api import sync_playwright

from benchmarks import figure_start
from d2lmini import results
from d2lmini.experiments import runner
from tests.conftest import CHROMIUM, CHROMIUM_FLAGS
from tools import site

ROOT = Path(__file__).parent.parent


def build():
    """Seconds in which jupyter-book executes all chapters and writes the HTML, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        command = [Path(sys.executable).parent / "jupyter-book", "build", "--all", "--path-output", folder, "."]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - start


def visit(browser, url):
    """Loads a page with an empty cache. Returns: dict of kB and requests until the network is quiet."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, sent = context.new_page(), []
    line = context.new_cdp_session(page)
    line.on("Network.loadingFinished", lambda event: sent.append(event["encodedDataLength"]))
    line.send("Network.enable")
    page.goto(url, wait_until="networkidle", timeout=60_000)
    context.close()
    return {"kB": round(sum(sent) / 1000, 1), "requests": len(sent)}


def measure(book, rounds=3):
    """Returns: dict with ``pages`` [name] and ``figure_s``, the median wait for the figure of chapter 01."""
    handler = partial(figure_start.Zipped, directory=book)
    with sync_playwright() as playwright, http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser, url = (
            playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS),
            f"http://127.0.0.1:{server.server_port}",
        )
        pages = {name: visit(browser, f"{url}/chapters/{name}.html") for name, _ in site.chapters()}
        waits = [figure_start.load(browser, f"{url}/{figure_start.PAGE}")["figure_s"] for _ in range(rounds)]
        server.shutdown()
    return {"pages": pages, "figure_s": round(median(waits), 2)}


def main():
    book, source = ROOT / "_build" / "html", runner._source()
    if not (book / figure_start.PAGE).exists():
        sys.exit(f"there is no book in {book}: make book")
    if source["dirty"] is not False:
        sys.exit("files differ from the commit: commit first")
    path = results.FOLDER / "benchmark_book.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    build_s = round(build(), 1) if "--build" in sys.argv[1:] else before.get("build_s")
    record = {
        "benchmark": "book",
        "build_s": build_s,
        **measure(book),
        "source": source,
        "device": runner._described(torch.device("cpu")),
        "command": "python -m benchmarks.book --build",
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    path.write_text(runner.dump(record), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
