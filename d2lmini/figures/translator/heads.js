// Switches of all heads of a translator, and its score over test sentences without some.
import { add, button, place, rove, scroller } from "../base/index.js";
import { HEADS, headKey, scoreText, switchBeside } from "../numbers/live_translator.js";
import { announcer } from "../page/model_box.js";

export function headSwitches(box, { ask, stop, translate, now, turned, factors, size, tested, whole }) {
  const { sentences, references, metric } = tested;
  const mark = switches(box, size, now.off, changed);
  const controls = add(box, "div", { class: "d2lmini-controls", style: "margin-top: 8px" });
  button(controls, "all heads on", () => {
    now.off.clear();
    mark();
    changed();
  });
  const count = button(controls, "", () => (running ? pause() : go()));
  const bars = [scoreBar(box, "all heads"), scoreBar(box, "these heads")];
  const result = announcer(box);
  let found = /** @type {string[]} */ ([]),
    score = /** @type {{ before: number, score: number } | null} */ (null),
    running = false;
  paint();

  function paint() {
    const left = found.length && found.length < sentences.length;
    count.textContent = running ? "Pause" : left ? "Go on" : `Score over ${sentences.length} test sentences`;
    const said = (value) => scoreText(value, metric, found.length);
    const most = metric === "exact" ? found.length : 100;
    [score?.before, score?.score].forEach((value, i) =>
      bars[i](value === undefined ? 0 : value / most, value === undefined ? "not counted" : said(value)),
    );
    return score ? `All heads: ${said(score.before)}. These heads: ${said(score.score)}.` : "";
  }
  function changed() {
    turned();
    pause();
    found = [];
    score = null;
    result("");
    paint();
    translate();
  }
  function pause() {
    running = false;
    stop("score");
    paint();
  }
  async function go() {
    if (found.length === sentences.length) found = [];
    running = true;
    result("");
    paint();
    const options = { sentences, references, metric, found, whole, heads: factors() };
    const done = await ask("score", "score_translator", options, (told) => {
      whole[found.length] = told.whole;
      found.push(told.text);
      score = told;
      paint();
    });
    if (done === null) return; // paused
    running = false;
    const said = paint();
    if (done) result(said);
  }
  return { pause };
}

// A switch of each head, a row of each block; `off` has the keys of those that are off. Returns how to mark all.
function switches(parent, [blocks, heads], off, changed) {
  const grid = add(scroller(parent), "table");
  const top = add(add(grid, "thead"), "tr"),
    lines = add(grid, "tbody");
  add(top, "th", { scope: "col", style: "padding: 2px" }, "block");
  for (const name of Object.values(HEADS)) add(top, "th", { scope: "colgroup", colspan: heads }, name);
  const all = Array.from({ length: blocks }, (_, b) => {
    const line = add(lines, "tr");
    add(line, "th", { scope: "row" }, b + 1);
    return Object.keys(HEADS).flatMap((kind) =>
      Array.from({ length: heads }, (_, h) => {
        const key = headKey(kind, b, h),
          label = `${HEADS[kind]}, block ${b + 1}, head ${h + 1}`;
        const turn = () => {
          if (!off.delete(key)) off.add(key);
          mark();
          changed();
        };
        const style = "min-width: 24px; padding: 0 2px",
          node = button(add(line, "td", { style: "padding: 0" }), "", turn, {
            role: "switch",
            "aria-label": label,
            title: label,
            style,
          });
        const mark = () => {
          place(node, { "aria-checked": !off.has(key) });
          node.textContent = off.has(key) ? "–" : "✓";
          node.style.background = off.has(key) ? "none" : "color-mix(in srgb, var(--blue) 35%, transparent)";
        };
        mark();
        return { node, mark };
      }),
    );
  }).flat();
  rove(
    all.map(({ node }) => node),
    { to: (i, down, right) => switchBeside(i, down, right, 3 * heads) },
  );
  return () => {
    for (const { mark } of all) mark();
  };
}

// A bar with its name and a number. Returns a function that sets both.
function scoreBar(parent, name) {
  const line = add(parent, "div", { style: "display: flex; gap: 8px; align-items: center; margin: 3px 0" });
  add(line, "span", { style: "flex: 0 0 6rem" }, name);
  const track = add(line, "span", { style: "flex: 1 1 4rem; max-width: 14rem; height: 12px; border: 1px solid #8886" });
  const bar = add(track, "span", { style: "display: block; height: 100%; background: var(--blue)" });
  const number = add(line, "span", { style: "flex: 0 0 auto" });
  return (share, text) => {
    bar.style.width = `${100 * share}%`;
    number.textContent = text;
  };
}
