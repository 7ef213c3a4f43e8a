// A pattern joined from parts: its matrix, what has met after n layers, the way from an output to the inputs, its cost.
import {
  add,
  button,
  choice,
  columns,
  draw,
  fold,
  keep,
  keepAll,
  panel,
  place,
  scroller,
  slider,
  tick,
  unpack,
  views,
} from "./base/index.js";
import { layersPerPair, metAfter, pairs, pattern, reach } from "./numbers/pattern_designer.js";

/**
 * @typedef {import("./numbers/pattern_designer.js").Parts} Parts
 * @typedef {Parts & { num_tokens: number, limits: Record<string, number[]>, presets: Record<string, Parts>,
 *   orders: Uint8Array, draws: number, lengths: number[], draw: number, layers: number, query: number }} State
 * @typedef {{ keys: number[][], layers: number[][] }} Found
 */

const WIDE = 340,
  LEFT = 26,
  TOP = 20,
  FOOT = 22;
const LABELS = {
  window: "window",
  dilation: "dilation",
  block_size: "block",
  num_global: "global tokens",
  every: "chosen tokens, one in",
  num_random: "random keys",
};
const PARTS = [...Object.keys(LABELS), "causal"];
const GIVEN = ["num_tokens", "limits", "presets", "orders", "draws", "lengths", "draw", "layers", "query"];

const number = (/** @type {number} */ x) => Math.round(x).toLocaleString("en"),
  short = (/** @type {number} */ x) => Number(x.toPrecision(3)),
  many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`,
  share = (/** @type {number} */ x) => `${short(100 * x)} %`,
  none = (/** @type {number} */ x) => (x ? String(x) : "none");

// Of T tokens in a row or column: how wide one is, how high a chart, and where the middle of one lies.
function measures(/** @type {number} */ T) {
  const cell = (WIDE - LEFT - 8) / T;
  return { cell, high: TOP + T * cell + 8, x: (/** @type {number} */ s) => LEFT + (s + 0.5) * cell };
}

// A chart; pointing at a place asks for the query that `at` finds there.
function chart(figure, label, height, at, ask) {
  const space = panel(figure, { width: WIDE, height, x: [0, WIDE], y: [0, height], label });
  for (const kind of /** @type {const} */ (["pointermove", "pointerdown"]))
    space.svg.addEventListener(kind, (event) => {
      const [right, up] = space.invert(event);
      ask(Math.floor(at(right, height - up)));
    });
  return { svg: space.svg, caption: add(figure, "figcaption") };
}

// The matrix: a row for each query, a column for each key.
function matrix(figure, /** @type {State} */ state, /** @type {(query: number) => void} */ ask) {
  const T = state.num_tokens,
    { cell, high, x } = measures(T),
    label = "the pattern: a row for each query, a column for each key";
  const { svg, caption } = chart(figure, label, high, (_, down) => (down - TOP) / cell, ask);
  const wide = T * cell,
    orange = { fill: "var(--orange)", "fill-opacity": 0.15 };
  const band = draw(svg, "rect", { x: LEFT, width: wide, height: cell, ...orange });
  const cells = Array.from({ length: T * T }, (_, i) =>
    draw(svg, "rect", { "data-pair": `${Math.floor(i / T)} ${i % T}` }),
  );
  const edge = { fill: "none", stroke: "currentColor", opacity: 0.4 };
  draw(svg, "rect", { x: LEFT, y: TOP, width: wide, height: wide, ...edge });
  for (let t = 0; t < T; t += 5) {
    draw(svg, "text", { x: LEFT - 5, y: TOP + (t + 0.5) * cell + 4, "text-anchor": "end" }, t);
    draw(svg, "text", { x: x(t), y: TOP - 6, "text-anchor": "middle" }, t);
  }
  return (/** @type {Found} */ { keys, layers }) => {
    const met = metAfter(layers, state.layers);
    cells.forEach((node, i) => {
      const t = Math.floor(i / T),
        s = i % T,
        seen = keys[t].includes(s),
        size = seen ? cell - 1 : met[t][s] ? cell * 0.4 : 0;
      place(node, {
        x: x(s) - size / 2,
        y: TOP + (t + 0.5) * cell - size / 2,
        width: size,
        height: size,
        "data-seen": seen,
        "data-layers": layers[t][s],
        fill: t === state.query ? "var(--orange)" : "var(--blue)",
        "fill-opacity": seen ? 0.9 : 0.7,
      });
    });
    place(band, { y: TOP + state.query * cell });
    const here = keys.flat().length;
    caption.textContent =
      `${here} pairs of ${T * T}, ${share(here / T ** 2)}. Squares: computed in each layer; ` +
      `dots: what has met by now through others.`;
  };
}

// The positions of each layer on which the query's output depends, and the pairs that bring them.
function tower(figure, /** @type {State} */ state, /** @type {(query: number) => void} */ ask) {
  const T = state.num_tokens,
    { cell, high, x } = measures(T),
    label = "the way from the output of the query down to the inputs, layer by layer";
  const { svg, caption } = chart(figure, label, high, (right) => (right - LEFT) / cell, ask);
  for (let t = 0; t < T; t += 5) draw(svg, "text", { x: x(t), y: high - 6, "text-anchor": "middle" }, t);
  const dash = { fill: "none", stroke: "currentColor", "stroke-dasharray": "2 3", opacity: 0.5 };
  const stay = draw(svg, "path", dash);
  const ways = draw(svg, "path", { fill: "none", stroke: "var(--blue)", "stroke-opacity": 0.5 });
  const dots = draw(svg, "g");

  return (/** @type {Found} */ { keys, layers }) => {
    const { query, layers: n } = state,
      gap = (high - TOP - FOOT) / n,
      y = (/** @type {number} */ layer) => high - FOOT - 6 - layer * gap;
    const at = (/** @type {number} */ s, /** @type {number} */ layer) => `${x(s).toFixed(1)} ${y(layer).toFixed(1)}`;
    let met = "",
      same = "";
    dots.replaceChildren();
    for (let layer = 0; layer <= n; layer++) {
      const within = metAfter(layers, n - layer)[query];
      if (layer % Math.ceil(14 / gap) === 0 || layer === n)
        draw(dots, "text", { x: LEFT - 8, y: y(layer) + 4, "text-anchor": "end" }, layer || "in");
      within.forEach((lit, s) => {
        draw(dots, "circle", {
          cx: x(s),
          cy: y(layer),
          r: Math.min(lit ? 4 : 2, gap / 3),
          fill: lit ? (layer ? "var(--blue)" : "var(--orange)") : "currentColor",
          opacity: lit ? 1 : 0.35,
          "data-lit": lit,
          "data-layer": layer,
        });
        if (!lit || !layer) return;
        for (const u of keys[s]) met += `M${at(s, layer)}L${at(u, layer - 1)}`;
        if (!keys[s].includes(s)) same += `M${at(s, layer)}V${y(layer - 1).toFixed(1)}`;
      });
    }
    place(ways, { d: met });
    place(stay, { d: same });
    caption.textContent =
      `What the output of query ${query} is made of. Lines: pairs of the pattern; ` +
      `dotted: residual connections alone.`;
  };
}

// What the same pattern costs in longer sequences.
function costs(/** @type {Element} */ el, /** @type {State} */ state) {
  const folded = fold(el, "longer sequences"),
    sheet = add(scroller(folded), "table"),
    body = columns(sheet, ["tokens T", "pairs", "of T²", "keys a query"]),
    T = state.num_tokens;
  const caption =
    "The same pattern in longer sequences. The parts keep their numbers; a window of all and the chosen tokens " +
    "grow with T.";
  add(sheet, "caption", {}, caption);
  const rows = [T, ...state.lengths].map((length) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, number(length));
    return { length, cells: [add(row, "td"), add(row, "td"), add(row, "td")] };
  });
  const key =
    "Global tokens see all and are seen by all; chosen tokens see all. Random keys of longer sequences are " +
    "counted on average. " +
    "A mask alone saves no time: a kernel has to compute these pairs and no others.";
  add(folded, "div", { class: "d2lmini-key" }, key);
  return (/** @type {Found} */ { keys }) => {
    for (const { length, cells } of rows) {
      const count = length === T ? keys.flat().length : pairs(T, state, length),
        about = length !== T && state.num_random ? "≈ " : "",
        texts = [number(count), share(count / length ** 2), short(count / length).toLocaleString("en")];
      for (const [i, text] of texts.entries()) cells[i].textContent = about + text;
    }
  };
}

function tell(/** @type {State} */ { query, layers: n, causal }, /** @type {Found} */ { keys, layers }) {
  const { wanted, arrived, most } = reach(layers, n, causal),
    inputs = metAfter(layers, n)[query].filter(Boolean).length;
  return (
    `Query ${query} attends to ${many(keys[query].length, "key")}. After ${many(n, "layer")} its output depends ` +
    `on ${inputs} of ${causal ? query + 1 : keys.length} inputs` +
    `${causal ? " up to its own" : ""}, and ${arrived} of ${wanted} pairs have met. ` +
    (most === null
      ? "Some pairs never meet, however many layers there are."
      : `It takes ${many(most, "layer")} until all have met.`)
  );
}

function render({ model, el }) {
  const state = /** @type {State} */ (Object.fromEntries([...PARTS, ...GIVEN].map((key) => [key, model.get(key)])));
  state.orders = unpack(model.get("orders"));
  const { num_tokens: T, limits, presets, draws } = state;
  const change = (changes) => {
    keepAll(model, state, changes);
    paint();
  };

  const top = add(el, "div", { class: "d2lmini-controls" });
  const options = { "": "your own", ...Object.fromEntries(Object.keys(presets).map((name) => [name, name])) };
  const which = choice(top, { label: "pattern", options, value: "" }, (name) => {
    if (name) fill(presets[name]);
    else paint();
  });
  const causal = tick(top, { label: "causal", value: state.causal }, (on) => change({ causal: on }));
  const move = (/** @type {HTMLInputElement} */ input, /** @type {number} */ value) => {
    input.value = String(value);
    input.dispatchEvent(new Event("input"));
  };
  function fill(/** @type {Parts} */ parts) {
    for (const key of PARTS) {
      state[key] = parts[key];
      keep(model, key, parts[key]);
    }
    causal.checked = state.causal;
    for (const [key, input] of inputs) move(input, state[key]);
  }
  const ask = (/** @type {number} */ query) => {
    if (query >= 0 && query < T && query !== state.query) move(asked, query);
  };
  const boxes = views(el, "view", ["the pattern", "the way down"]),
    paintMatrix = matrix(boxes[0], state, ask),
    paintTower = tower(boxes[1], state, ask);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.2em" });
  const sliding = add(el, "div", { class: "d2lmini-controls d2lmini-compact" });
  const says = { window: (x) => (x === T ? "all" : none(x)), dilation: String };
  const inputs = Object.entries(LABELS).map(([key, label]) => {
    const [min, max] = limits[key],
      settings = { label, min, max, step: 1, value: state[key], say: says[key] ?? none };
    return /** @type {const} */ ([key, slider(sliding, settings, (x) => change({ [key]: x }))]);
  });
  button(top, "draw again", () => change({ draw: (state.draw + 1) % draws }));
  const steps = { label: "layers", min: 1, max: T - 1, step: 1, value: state.layers, digits: 0 };
  slider(sliding, steps, (layers) => change({ layers }));
  const places = { label: "query", min: 0, max: T - 1, step: 1, value: state.query, digits: 0 };
  const asked = slider(sliding, places, (query) => change({ query }));
  const paintCosts = costs(el, state);

  let known = "", // the parts that `found` was computed from
    found = /** @type {Found} */ ({ keys: [], layers: [] });
  function paint() {
    const parts = JSON.stringify([...PARTS, "draw"].map((key) => state[key]));
    if (parts !== known) {
      known = parts;
      const keys = pattern(state, state);
      found = { keys, layers: layersPerPair(keys) };
      which.value = Object.keys(presets).find((name) => PARTS.every((key) => presets[name][key] === state[key])) ?? "";
      paintCosts(found);
    }
    paintMatrix(found);
    paintTower(found);
    note.textContent = tell(state, found);
  }
  paint();
}

export default { render };
