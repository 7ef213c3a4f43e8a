// The scores of a causal model, token by token: what is computed now, before, again, or never.
import { add, columns, draw, keep, panel, place, scroller, stepper, tick } from "./base/index.js";
import { counts, scoreMarks, tokenMarks } from "./numbers/cache_walk.js";

/**
 * @typedef {import("./numbers/cache_walk.js").Mark} Mark
 * @typedef {import("./numbers/cache_walk.js").Sizes} Sizes
 * @typedef {{ prompt: number, step: number, cache: boolean }} State
 */

const LEFT = 74,
  TOP = 104,
  RIGHT = 86;
const FAINT = { fill: "none", "fill-opacity": 1, stroke: "currentColor", "stroke-opacity": 0.2 },
  LOOKS = {
    now: { fill: "var(--blue)", "fill-opacity": 0.85, stroke: "var(--blue)", "stroke-opacity": 1 },
    again: { fill: "var(--orange)", "fill-opacity": 0.6, stroke: "var(--orange)", "stroke-opacity": 1 },
    before: { fill: "var(--blue)", "fill-opacity": 0.16, stroke: "var(--blue)", "stroke-opacity": 0.6 },
    masked: FAINT,
    later: FAINT,
  };
const COUNTERS = {
  tokens: "tokens that go in, now",
  tokens_so_far: "so far",
  scores: "scores computed, now",
  scores_so_far: "so far",
  kept: "numbers kept",
};

const short = (word, n = 9) => ([...word].length > n ? [...word].slice(0, n - 1).join("") + "…" : word);

// Keys, values and scores as squares. Returns: a function that marks them.
function grid(figure, /** @type {string[]} */ tokens) {
  const T = tokens.length - 1, // the last one does not go in again
    cell = Math.min(26, Math.floor((340 - LEFT - RIGHT) / T)),
    each = (make) => Array.from({ length: T }, (_, i) => make(i));
  const x = (s) => LEFT + s * cell,
    y = (t) => TOP + t * cell;
  const label = "scores: a row for each query, a column for each key",
    { svg } = panel(figure, { width: 340, height: TOP + T * cell + 6, x: [0, 1], y: [0, 1], label });
  const box = (s, top) => draw(svg, "rect", { x: x(s) + 1, y: top + 1, width: cell - 2, height: cell - 2, rx: 2 });
  const named = (top, text) => draw(svg, "text", { x: LEFT - 5, y: top + cell / 2 + 4, "text-anchor": "end" }, text);
  const keys = ["keys", "values"].map((name, n) => {
    const top = TOP - 6 - (2 - n) * cell;
    named(top, name);
    return each((s) => box(s, top));
  });
  const above = { y: TOP - 10 - 2 * cell, "text-anchor": "end", style: "writing-mode: vertical-rl" };
  for (let s = 0; s < T; s++) draw(svg, "text", { x: x(s) + cell / 2, ...above }, short(tokens[s], 6));
  const cross = (s, t) => {
    const d = `M${x(s) + 4} ${y(t) + 4}l${cell - 8} ${cell - 8}m0 ${8 - cell}l${8 - cell} ${cell - 8}`;
    return draw(svg, "path", { d, stroke: "currentColor", opacity: 0.3 });
  };
  const rows = each((t) => ({
    name: named(y(t), short(tokens[t])),
    cells: each((s) => box(s, y(t))),
    crosses: Array.from({ length: T - t - 1 }, (_, i) => cross(t + 1 + i, t)),
    next: draw(svg, "text", { x: x(T) + 6, y: y(t) + cell / 2 + 4 }),
  }));
  const show = (node, mark) => place(node, { ...LOOKS[mark], "data-what": mark });

  return (/** @type {Mark[]} */ marks) => {
    const scores = scoreMarks(marks),
      newest = marks.lastIndexOf("now");
    rows.forEach(({ name, cells, crosses, next }, t) => {
      const later = marks[t] === "later";
      cells.forEach((node, s) => show(node, scores[t][s]));
      for (const node of crosses) node.style.display = later ? "none" : "";
      next.textContent = t === newest ? `→ ${short(tokens[t + 1])}` : "";
      for (const node of [name, next]) place(node, { opacity: later ? 0.6 : 1 });
      place(name, { "font-weight": marks[t] === "now" ? 600 : 400 });
    });
    for (const strip of keys) strip.forEach((node, s) => show(node, marks[s]));
  };
}

// What a step costs with the cache and without. Returns: a function that counts.
function costs(box, /** @type {Sizes} */ sizes) {
  const { layers, heads, size } = sizes,
    sheet = add(scroller(box), "table");
  add(sheet, "caption", {}, `what it costs a model of ${layers} layers with ${heads} heads of ${size}`);
  const body = columns(sheet, [null, "cache", "no cache"]);
  const cells = Object.values(COUNTERS).map((name) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return [true, false].map(() => add(row, "td"));
  });
  const words =
    `A score is one query times one key, in each of ${layers} × ${heads} heads. ` +
    `Kept are 2 (key and value) × ${layers} layers × ${heads} heads × ${size} numbers for each token.`;
  add(box, "div", { style: "margin-top: 6px" }, words);

  return (/** @type {State} */ { step, cache }) => {
    const both = [counts(sizes, step, true), counts(sizes, step, false)];
    for (const [i, key] of Object.keys(COUNTERS).entries())
      cells[i].forEach((node, n) => {
        node.textContent = both[n][key].toLocaleString("en");
        node.style.fontWeight = (n === 0) === cache ? "600" : "400";
      });
  };
}

function say(/** @type {string[]} */ tokens, /** @type {State} */ { prompt, step, cache }) {
  const length = prompt + step,
    last = tokens[length - 1],
    given = `“${tokens[length]}” comes next.`;
  if (step === 0)
    return (
      `Step 0: all ${prompt} token${prompt > 1 ? "s" : ""} of the prompt go in at once; the mask lets each ` +
      `see itself and those before. The last row predicts: ${given}`
    );
  return cache
    ? `Step ${step}: “${last}” alone goes in: one query, one new key and value; the other ${length - 1} ` +
        `come from the cache. ${given}`
    : `Step ${step}: all ${length} tokens go in again, though only the row of “${last}” is new. The ` +
        `others come out as before. ${given}`;
}

function render({ model, el }) {
  const keys = ["tokens", "prompt", "num_blks", "num_heads", "head_size", "step", "cache"],
    [tokens, prompt, layers, heads, size, first, cached] = keys.map((key) => model.get(key));
  /** @type {State} */
  const state = { prompt, step: first, cache: cached };
  const set = (key) => (value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };
  const walk = add(el, "div", { class: "d2lmini-controls" });
  stepper(walk, { label: "step", max: tokens.length - prompt - 1, value: first }, set("step"));
  tick(walk, { label: "keep keys and values (cache)", value: cached }, set("cache"));
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });
  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const paintGrid = grid(figure, tokens),
    caption = add(figure, "figcaption"),
    paintCosts = costs(add(panels, "div"), { prompt, layers, heads, size });

  function paint() {
    const { step, cache } = state;
    paintGrid(tokenMarks(state, tokens.length - 1));
    const old = cache
      ? "pale: computed before (keys and values are in the cache, scores are needed no more)"
      : "orange: computed again, to the same number";
    caption.textContent = `blue: computed now; ${step ? `${old}; ` : ""}crossed: masked, no query looks ahead`;
    paintCosts(state);
    note.textContent = say(tokens, state);
  }
  paint();
}

export default { render };
