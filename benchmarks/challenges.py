"""Whether the challenges of the playground keep what they promise: each trained in headless Chromium, with four seeds.

    python -m benchmarks.challenges

Every address goes the way of the page: `settingsOf`, `trainOptions`, the task `train` of the worker.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks._common import main
from d2lmini.data.text import playground_text
from d2lmini.figures.playground.challenges import CHALLENGES
from tools.bundles import bundled, host, runtime


@dataclass(frozen=True)
class Sizes:
    """``steps``: of each training run; None: as many as its challenge says. ``names``: None: all challenges."""

    seeds: tuple = (1, 2, 3, 4)
    steps: int | None = None
    every: int = 100
    names: tuple | None = None


QUICK = replace(Sizes(), seeds=(1,), steps=3, every=1, names=("induction", "longer"))

# Of each challenge, what has to hold of the runs of one seed. `right` and `head` in per cent, losses in nats.
PROMISES = {
    "induction": lambda of: (
        of["two blocks"]["right"] >= 95 and of["one block"]["right"] <= 40 and of["two blocks"]["head"] >= 50
    ),
    "positions": lambda of: (
        all(of[f"{task}, with positions"]["right"] >= 90 for task in ("copy", "reverse", "sort"))
        and all(of[f"{task}, without positions"]["right"] <= 45 for task in ("copy", "reverse", "sort"))
        and all(
            of[f"{task}, without positions, causal"]["right"] >= of[f"{task}, without positions"]["right"] + 5
            for task in ("copy", "reverse", "sort")
        )
    ),
    "norm": lambda of: (
        all(of[label]["right"] >= 95 for label in ("before, 0.01", "after, 0.003", "after, 0.01, warm-up"))
        and of["after, 0.01"]["right"] <= 30
    ),
    "residual": lambda of: (
        of["with"]["right"] >= 95 and of["without"]["right"] <= 60 and of["without, 0.001"]["right"] >= 95
    ),
    "longer": lambda of: (
        max(of[kind]["extra"] for kind in ("none", "alibi"))
        < of["rotary"]["extra"]
        < min(of[kind]["extra"] for kind in ("learned", "sines"))
        and of["alibi"]["extra"] < 0.25
    ),
    "by-heart": lambda of: (
        of["200 sums"]["train"] < 0.1
        and of["200 sums"]["loss"] > of["200 sums"]["lowest"] + 1
        and max(of[label]["right"] for label in ("200 sums", "smaller", "weight decay")) <= 50
        and of["2,000 sums"]["right"] >= 80
    ),
}

TRAIN = """async ({ address, seed, steps, every, text }) => {
  const { settings, unknown } = live.settingsOf(address);
  if (unknown.length) throw new Error(`unknown: ${unknown}`);
  const options = { ...live.trainOptions({ ...settings, seed }, text), steps, every, reset: true };
  const curve = [], losses = [];
  const ended = await d2lminiLive.ask(null, "train", options, (step) => {
    losses.push(...step.losses);
    if (!step.heldOut) return;
    const { loss, tokens, longer } = step.heldOut;
    curve.push({ step: step.step, loss, right: 100 * tokens, longer: longer.map((of) => of.loss) });
  }).done;
  if (ended.exploded) throw new Error(ended.exploded.why);
  const last = losses.slice(-100);
  const found = { curve, train: last.reduce((a, b) => a + b) / last.length };
  if (settings.task === "recall") found.head = await head(options);
  return found;

  // Of the last block: how much weight its best head puts on the token after an earlier occurrence of the present one.
  async function head({ data, model }) {
    const { examples } = await d2lminiLive.ask(null, "describe", { data, causal: model.causal, number: 32 }).done;
    const sums = [];
    let count = 0;
    for (const { tokens, targets } of examples) {
      const { weights } = await d2lminiLive.ask(null, "look", { tokens }).done;
      const { shape, data: all } = weights.at(-1), [heads, T] = shape.slice(-3);
      for (let i = 0; i < T; i++) {
        if (targets[i] < 0) continue;
        count++;
        for (let h = 0; h < heads; h++)
          for (let j = 1; j <= i; j++)
            if (tokens[j - 1] === tokens[i]) sums[h] = (sums[h] ?? 0) + all[(h * T + i) * T + j];
      }
    }
    return (100 * Math.max(...sums)) / count;
  }
}"""


def page_of(folder):
    """Writes a page that trains as the playground does. Returns: its address."""
    settings = bundled('export * from "./live/playground_settings.js";', "live")
    path = Path(folder) / "challenges.html"
    scripts = "".join(f"<script>{text}</script>" for text in (host(), runtime(), settings))
    path.write_text(f'<!doctype html><meta charset="utf-8">{scripts}', encoding="utf-8")
    return path.as_uri()


def run(page, address, seed, steps, every, text):
    """Returns: dict of one training run: ``curve``, and how it ended."""
    options = {"address": address, "seed": seed, "steps": steps, "every": every, "text": text}
    found = page.evaluate(TRAIN, options)
    *_, last = curve = found["curve"]
    lowest = min(curve, key=lambda of: of["loss"])
    found |= {"seed": seed, "right": last["right"], "loss": last["loss"]}
    found |= {"lowest": lowest["loss"], "lowest_step": lowest["step"]}
    if last["longer"]:
        found["extra"] = last["longer"][0] - last["loss"]
    return rounded(found)


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(of) for key, of in value.items()}
    if isinstance(value, list):
        return [rounded(of) for of in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def judged(challenge, runs):
    """Dict of one challenge: ``runs`` by label, their ``median``, and the seeds that ``hold`` what it promises."""
    keys = [key for key, value in next(iter(runs.values()))[0].items() if key not in ("seed", "curve")]
    middle = {label: {key: median(of[key] for of in all_of) for key in keys} for label, all_of in runs.items()}
    seeds = [of["seed"] for of in next(iter(runs.values()))]
    hold = [
        seed
        for i, seed in enumerate(seeds)
        if PROMISES[challenge.name]({label: all_of[i] for label, all_of in runs.items()})
    ]
    print(f"  {challenge.name}: holds for {len(hold)} of {len(seeds)} seeds", flush=True)
    return {"addresses": challenge.addresses, "steps": challenge.steps, "runs": runs, "median": middle, "hold": hold}


def measure(sizes):
    """Returns: dict with ``challenges``, by name what `judged` gives."""
    from playwright.sync_api import sync_playwright

    from tests.conftest import CHROMIUM, CHROMIUM_FLAGS

    text = playground_text("shakespeare")
    found = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page()
        page.set_default_timeout(0)
        page.goto(page_of(folder))
        for challenge in CHALLENGES:
            if sizes.names is not None and challenge.name not in sizes.names:
                continue
            runs = {
                label: [
                    run(page, address, seed, sizes.steps or challenge.steps, sizes.every, text) for seed in sizes.seeds
                ]
                for label, address in challenge.addresses.items()
            }
            found[challenge.name] = judged(challenge, runs)
        version = browser.version
        browser.close()
    return {"browser": f"Chromium {version}", "challenges": found}


if __name__ == "__main__":
    main("challenges", measure, Sizes(), QUICK, gpu=False)
