"""What the real language model costs a reader, in headless Chromium: tokens a second, loading, memory, pauses.

    python -m benchmarks.real_model

SmolLM2-135M-Instruct by its pieces, from a file server on this machine, in a worker. Seconds are those of the processor
that all of Chromium spends, which other work on the machine does not add to; beside them those on the clock. A pause is
the time between two turns of the page that asks for one all the time.
"""

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks._common import main, quartiles, short
from benchmarks.live import processor_seconds
from d2lmini.models.weights import model_pieces
from tools.bundles import host, runtime

STOP = """import { ChatTokenizer } from "./live/chat_tokenizer.js";
ChatTokenizer.prototype.isStop = () => false; // every round writes as much"""
PAGE = """<!doctype html><meta charset="utf-8"><script>{host}</script><script>
{runtime}
const pauses = {{ longest: 0, last: performance.now() }};
(function turn() {{
  const now = performance.now();
  pauses.longest = Math.max(pauses.longest, now - pauses.last);
  pauses.last = now;
  setTimeout(turn);
}})();
const begin = () => Object.assign(pauses, {{ longest: 0, last: performance.now() }});
async function load() {{
  begin();
  const manifest = await (await fetch("pieces/manifest.json")).json(), feed = await LIVE.feed(manifest);
  for (const [i, {{ file }}] of manifest.pieces.entries())
    await feed.piece(i, await (await fetch(`pieces/${{file}}`)).arrayBuffer());
  await feed.done();
  return pauses.longest;
}}
async function ask(task, options) {{
  begin();
  await LIVE.ask("smollm2", task, options, () => {{}}).done;
  return pauses.longest;
}}
</script>"""


@dataclass(frozen=True)
class Sizes:
    """A text of ``prompt`` tokens is read, then ``steps`` more are written, ``rounds`` times."""

    rounds: int = 5
    prompt: int = 256
    steps: int = 64


QUICK = replace(Sizes(), rounds=2, prompt=20, steps=3)
HEADS = [[block, head] for block in range(30) for head in range(9)]
WORK = {
    "plain": {},
    "with_attention": {"heads": HEADS},
    "with_layers": {"layers": True},
    "float_products": {"float_products": True},
}


def _peak_bytes(line):
    """The most memory that a process of Chromium which draws a page, its worker included, has held: 0 without Linux."""
    found = [0]
    for process in line.send("SystemInfo.getProcessInfo")["processInfo"]:
        path = Path(f"/proc/{process['id']}/status")
        if process["type"] == "renderer" and path.exists():
            found += [1024 * int(row.split()[1]) for row in path.read_text().splitlines() if row.startswith("VmHWM")]
    return max(found)


class _Meter:
    """Runs JavaScript of a page, and says what it took."""

    def __init__(self, page, line):
        self.page, self.line = page, line

    def __call__(self, script, given=None):
        before, start = processor_seconds(self.line), self.page.evaluate("performance.now()")
        pause = self.page.evaluate(script, given)
        wall = (self.page.evaluate("performance.now()") - start) / 1000
        return {"seconds": max(processor_seconds(self.line) - before, 1e-6), "wall": wall, "pause_ms": pause}


def _rates(runs, tokens):
    """Tokens a second of the processor and on the clock, quartiles, and the longest pause."""
    return {
        "per_second": quartiles([tokens / run["seconds"] for run in runs]),
        "per_second_on_the_clock": quartiles([tokens / run["wall"] for run in runs]),
        "longest_pause_ms": short(max(run["pause_ms"] for run in runs)),
    }


def measure_page(page, line, sizes):
    """Returns: dict of what was measured in one page."""
    meter = _Meter(page, line)
    loading = meter("load()")
    found = {"load_s": short(loading["seconds"]), "load_wall_s": short(loading["wall"])}
    found["load_pause_ms"] = short(loading["pause_ms"])
    for name, options in WORK.items():
        read, written = [], []
        for i in range(sizes.rounds):
            first = 100 + 31 * len(WORK) * i + list(WORK).index(name)  # no text begins as the one before
            tokens = [100 + (first + 7 * j) % 40_000 for j in range(sizes.prompt)]
            given = {"tokens": tokens, "filters": {"temperature": 1, "top_p": 0.9}, "count": 0}
            given |= {key: value for key, value in options.items() if key == "float_products"}
            read.append(meter("options => ask('real_write', options)", given))
            written.append(meter("options => ask('real_write', options)", given | options | {"count": sizes.steps}))
        # the last token of what was read is read again
        found[name] = {"reading": _rates(read, sizes.prompt), "writing": _rates(written, sizes.steps + 1)}
        print(f"  {name}: {json.dumps(found[name])}", flush=True)
    return found | {"peak_bytes": _peak_bytes(line)}


def measure(sizes):
    """Returns: dict with ``model``, its ``bytes`` and ``memory`` as the manifest tells them, and what was measured."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS, serving

    made = model_pieces.cached_pieces()
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, serving(folder) as url, sync_playwright() as playwright:
        Path(folder, "pieces").symlink_to(made)
        text = PAGE.format(host=host(), runtime=runtime(STOP))
        Path(folder, "index.html").write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page, line = browser.new_page(), browser.new_browser_cdp_session()
        page.set_default_timeout(0)
        page.goto(f"{url}/index.html")
        found = measure_page(page, line, sizes)
        browser.close()
    return {"model": manifest["title"], "bytes": manifest["bytes"], "memory": manifest["memory"], **found}


if __name__ == "__main__":
    main("real_model", measure, Sizes(), QUICK, gpu=False)
