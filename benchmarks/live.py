"""What the live models cost a reader, in headless Chromium: characters and words a second, and the time from a click.

    python -m benchmarks.live

Weights of the package, each in a page of its own from ``file://``, in a worker. The GPT writes, the translators
translate greedily. Seconds are those of the processor that Chromium spends, which other work on the machine does not
add to, and those on the clock until a model that is loaded anew has answered once.
"""

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks._common import main
from d2lmini.figures.live import page as live_page
from d2lmini.models.weights import files
from tools.bundles import host, runtime

WORK = {"GPT": "characters", "Transformer": "tokens"}
TASKS = """
import { ranked } from "./live/filters.js";
import { watch } from "./live/plain_tasks.js";
import { TASKS } from "./live/tasks.js";
TASKS.benchmark = function* ({ model }, { steps, source, look }) {
  const { seen, weights } = watch(), options = look ? { seen } : {};
  const state = source ? model.start(source, steps + 1, options) : model.empty_state();
  const read = (tokens) => source
    ? model.decoder.forward(tokens, state, options)
    : model.extend(tokens, state, options);
  try {
    let token = 1;
    for (let i = 0; i < steps; i++) {
      if (!source && state.length === model.config.max_len) state.first(0);
      const scores = read([token]).data;
      token = ranked(scores)[0];
      weights.length = 0;
      yield token;
    }
  } finally {
    state.free();
  }
};
"""


@dataclass(frozen=True)
class Sizes:
    """``models`` by name, ``steps`` tokens a round, ``source`` tokens of a sentence to translate."""

    models: tuple = ("gpt_shakespeare", "translator_grammar", "translator_tatoeba")
    rounds: int = 7
    steps: int = 250
    source: int = 16


QUICK = replace(Sizes(), models=("translator_grammar",), rounds=2, steps=3, source=3)


def page_of(name, folder):
    """Writes a page that can load a model on request. Returns: its address."""
    path = Path(folder) / f"{name}.html"
    scripts = "".join(f"<script>{text}</script>" for text in (host(), runtime(TASKS), live_page.weights_script(name)))
    path.write_text(f'<!doctype html><meta charset="utf-8">{scripts}', encoding="utf-8")
    return path.as_uri()


def processor_seconds(line):
    """What the processes of Chromium have spent, its worker's included."""
    return sum(process["cpuTime"] for process in line.send("SystemInfo.getProcessInfo")["processInfo"])


ASK = """async ([name, options]) => {
  const start = performance.now();
  let first = null;
  await LIVE.load(name);
  await LIVE.ask(name, "benchmark", options, () => { first ??= performance.now() - start; }).done;
  return first / 1000;
}"""


def measure_model(browser, name, sizes, folder):
    """Returns: dict of what one model costs: tokens a second of the processor in a page's first text, then without and
    with attention weights."""
    kind = files.read(files.path_of(name)).metadata["model"]
    options = {"steps": sizes.steps} | ({"source": list(range(4, 4 + sizes.source))} if kind != "GPT" else {})
    line, address, first = browser.new_browser_cdp_session(), page_of(name, folder), []
    seconds = {"first_text": [], "plain": [], "with_attention": []}  # the first one compiles
    for _ in range(sizes.rounds):
        page = browser.new_page()
        page.goto(address)
        first.append(page.evaluate(ASK, [name, options | {"steps": 1}]))
        for look in seconds:
            before = processor_seconds(line)
            page.evaluate(ASK, [name, options | {"look": look == "with_attention"}])
            seconds[look].append(processor_seconds(line) - before)
        page.close()
    found = {look: round(sizes.steps / max(median(times), 1e-6), 1) for look, times in seconds.items()}
    found |= {"first_output_s": round(median(first), 3), "MB": round(files.path_of(name).stat().st_size / 1e6, 2)}
    print(f"  {name}: {json.dumps(found)}", flush=True)
    return {"model": name, "unit": WORK[kind], **found}


def measure(sizes):
    """Returns: dict with ``models``, a dict for each that is there."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    names = [name for name in sizes.models if name in files.names()]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        found = [measure_model(browser, name, sizes, folder) for name in names]
        browser.close()
    return {"models": found}


if __name__ == "__main__":
    main("live", measure, Sizes(), QUICK, gpu=False)
