// Position encodings as a heat map, and the scores they make: does a score depend on the offset alone?
import { add, choice, draw, keep, panel, place, slider, tick, ticks } from "./base/index.js";
import { byOffset, heatMap, scores } from "./numbers/position_explorer.js";

/** @typedef {import("./numbers/position_explorer.js").Settings & { position: number, offset: number }} State */

const ENCODINGS = { sinusoidal: "sinusoidal", rotary: "rotary", t5: "T5 bias", none: "none" };
const CAPTIONS = {
  sinusoidal: "A row for each position: its sines and cosines (blue positive, orange negative).",
  rotary: "A row for each position: cosine and sine of its turns (blue positive, orange negative).",
  t5: "The bucket of each pair: a row for each query, a column for each key.",
  none: "Without an encoding all positions are equal.",
};
const FIXED = ["query", "key", "bias", "num_positions", "num_hiddens", "base", "max_distance"],
  CHOSEN = ["encoding", "position", "offset", "words"];
const WIDE = 340,
  HIGH = 215,
  [TOP, BOTTOM] = [26, HIGH - 22]; // between them scores; above the chosen offset, below the offsets

const signed = (/** @type {unknown} */ text) => String(text).replace("-", "−");

// The encoding, a row for each position; the query's is framed.
function map(box, /** @type {State} */ state) {
  const { num_positions: N, num_hiddens: D } = state,
    size = { width: WIDE, height: HIGH, x: [0, 1], y: [0, N] };
  const { svg } = panel(box, { ...size, label: "the encoding, a row for each position" });
  const cells = Array.from({ length: N * Math.max(N, D) }, () => draw(svg, "rect"));
  const inner = { x: 1, width: WIDE - 2, height: HIGH / N },
    chosen = draw(svg, "rect", { ...inner, fill: "none", stroke: "currentColor", "stroke-width": 2 });
  const title = add(box, "figcaption");

  return () => {
    const rows = heatMap(state),
      columns = rows[0].length;
    cells.forEach((cell, n) => {
      const i = Math.floor(n / columns),
        column = n % columns;
      if (i >= N) {
        place(cell, { visibility: "hidden" });
        return;
      }
      const value = rows[i][column];
      place(cell, {
        visibility: "visible",
        x: (column * WIDE) / columns,
        y: (i * HIGH) / N,
        width: WIDE / columns,
        height: HIGH / N,
        fill: value < 0 ? "var(--orange)" : "var(--blue)",
        "fill-opacity": Math.abs(value).toFixed(3),
      });
    });
    place(chosen, { y: (state.position * HIGH) / N });
    title.textContent = CAPTIONS[state.encoding];
  };
}

// Scores against the offset: a line from the chosen position, a band from all.
function plot(box, /** @type {State} */ state) {
  const N = state.num_positions,
    size = { width: WIDE, height: HIGH, x: [-1.26 * N, N], y: [0, 1] };
  const { svg, x } = panel(box, { ...size, label: "score against offset" });
  const grid = draw(svg, "g", { stroke: "#8885" });
  const names = draw(svg, "g", { "text-anchor": "end" });
  for (let offset = -10 * Math.floor((N - 1) / 10); offset < N; offset += 10) {
    const at = x(offset);
    draw(svg, "line", { x1: at, x2: at, y1: TOP, y2: BOTTOM, stroke: "#8885" });
    draw(svg, "text", { x: at, y: HIGH - 6, "text-anchor": "middle" }, signed(offset));
  }
  const blue = { fill: "var(--blue)", "fill-opacity": 0.3, stroke: "var(--blue)", "stroke-opacity": 0.6 },
    band = draw(svg, "polygon", blue);
  const own = draw(svg, "polyline", { fill: "none", stroke: "var(--orange)", "stroke-width": 2.5 });
  const dash = { stroke: "currentColor", "stroke-dasharray": "3 4" },
    marker = draw(svg, "line", { y1: TOP - 6, y2: BOTTOM, ...dash });
  const where = draw(svg, "text", { y: 15, "text-anchor": "middle" });
  const line = add(box, "figcaption");

  return (row, ranges) => {
    const { position, offset } = state,
      low = Math.min(0, ...ranges.map((range) => range[0])),
      high = Math.max(low + 1, ...ranges.map((range) => range[1]));
    const y = (value) => TOP + ((high - value) / (high - low)) * (BOTTOM - TOP),
      point = (value, n) => `${x(n + 1 - N)},${y(value)}`;
    grid.replaceChildren();
    names.replaceChildren();
    for (const value of ticks(low, high, 5)) {
      draw(grid, "line", { x1: x(-N), x2: WIDE, y1: y(value), y2: y(value) });
      draw(names, "text", { x: x(-N) - 4, y: y(value) + 4 }, signed(value));
    }
    const tops = ranges.map((range, n) => point(range[1], n)),
      feet = ranges.map((range, n) => point(range[0], n));
    place(band, { points: [...tops, ...feet.reverse()].join(" ") });
    place(own, { points: row.map((value, s) => point(value, s - position + N - 1)).join(" ") });
    const here = x(offset);
    place(marker, { x1: here, x2: here });
    place(where, { x: Math.min(WIDE - 40, here) });
    where.textContent = `offset ${signed(offset)}`;
    line.textContent = `Score at each offset. Orange: the query at position ${position}; blue: at any position.`;
  };
}

function render({ model, el }) {
  const state = /** @type {State} */ (Object.fromEntries([...FIXED, ...CHOSEN].map((name) => [name, model.get(name)])));
  const N = state.num_positions;
  const change = (name) => (value) => {
    state[name] = value;
    keep(model, name, value);
    paint();
  };
  const row = () => add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 20px" });
  const first = row();
  choice(first, { label: "encoding", value: state.encoding, options: ENCODINGS }, change("encoding"));
  tick(first, { label: "with words", value: state.words }, change("words"));
  const second = row();
  const whole = (label, min, name, say) =>
    slider(second, { label, min, max: N - 1, step: 1, value: state[name], say }, change(name));
  whole("query's position", 0, "position", String);
  whole("offset of the key", 1 - N, "offset", signed);
  const live = { class: "d2lmini-note", "aria-live": "polite" },
    note = add(el, "div", { ...live, style: "min-height: 3em; margin-bottom: 6px" });

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    paintPlot = plot(add(panels, "figure"), state),
    paintMap = map(add(panels, "figure"), state);

  function paint() {
    const all = scores(state),
      ranges = byOffset(all),
      { position, offset } = state;
    paintMap();
    paintPlot(all[position], ranges);
    const shown = (value) => signed((Math.abs(value) < 0.005 ? 0 : value).toFixed(2)),
      target = position + offset,
      [least, greatest] = ranges[offset + N - 1];
    const pair =
      target < 0 || target >= N
        ? `There is no key at position ${target}.`
        : `A query at position ${position} and a key at position ${target} score ${shown(all[position][target])}.`;
    note.textContent =
      `${pair} ` +
      (greatest - least < 1e-9
        ? `At any other position the score of this offset is the same, ${shown(least)}.`
        : `At other positions the scores of this offset go from ${shown(least)} to ${shown(greatest)}.`);
  }
  paint();
}

export default { render };
