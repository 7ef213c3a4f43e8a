// A row of weights as bars, the levels of its groups, and the error of each weight.
import { add, choice, columns, draw, keep, panel, place, scroller, slider, tick } from "./base/index.js";
import { bytesPerWeight, codeRange, quantized } from "./numbers/quantized_row.js";

/**
 * @typedef {import("./numbers/quantized_row.js").Settings & { rows: number[][], row: number, weight: number }} State
 * @typedef {ReturnType<typeof quantized>} Found
 */

const LEFT = 44,
  WIDTH = 340,
  TALL = 190,
  LOW = 74;

// Weights as bars over their levels, and below them their errors; `point(i)` follows a pointer at weight i. Returns: a
// function that shows a row.
function plot(figure, /** @type {State} */ state, point) {
  const [first] = state.rows,
    n = first.length,
    bar = (WIDTH - LEFT - 4) / n,
    x = (i) => LEFT + i * bar;
  const make = (height, label) => panel(figure, { width: WIDTH, height, x: [0, 1], y: [0, 1], label });
  const above = make(TALL, "weights as bars, their levels as lines, and the level that each goes to"),
    below = make(LOW, "the error of each weight");
  below.svg.style.marginTop = "6px";
  const grid = draw(above.svg, "g", { stroke: "currentColor" });
  const mark = [above, below].map(({ svg, height }) =>
    draw(svg, "rect", { y: 0, height, width: Math.max(bar, 3), fill: "currentColor", "fill-opacity": 0.18 }),
  );
  const each = ({ svg }, left, share, attributes) =>
    first.map((_, i) => draw(svg, "rect", { x: x(i) + bar * left, width: bar * share, ...attributes }));
  const bars = each(above, 0.2, 0.6, { fill: "var(--blue)" }),
    dots = each(above, 0, 1, { height: 2.6, fill: "var(--orange)" }),
    errors = each(below, 0.15, 0.7, { fill: "var(--orange)" });
  const label = ({ svg }, y, text = "") => draw(svg, "text", { x: LEFT - 4, y, "text-anchor": "end" }, text);
  const ends = [label(above, 14), label(above, TALL - 5)];
  label(below, 15, "error");
  const limit = label(below, 32);
  const words =
    "above: a weight is a blue bar, its level the orange mark, and lines are the levels (a band where they lie close)" +
    "; below: the size of each error, up to half a step of the whole row";
  add(figure, "figcaption", {}, words);
  for (const { svg } of [above, below]) {
    const follow = (event) => {
      const box = svg.getBoundingClientRect(),
        at = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / bar;
      point(Math.min(n - 1, Math.max(0, Math.floor(at))));
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow); // where a finger taps
  }

  function levels({ start, size, low, step }, y) {
    const [from, to] = codeRange(state),
      [left, right] = [x(start) + 1, x(start + size) - 1],
      [top, bottom] = [y(low + step * to), y(low + step * from)];
    const band = { x: left, y: top, width: right - left, height: bottom - top, stroke: "none", opacity: 0.1 };
    if ((bottom - top) / (to - from) < 2.2) draw(grid, "rect", band);
    else
      for (let code = from; code <= to; code++)
        draw(grid, "path", { d: `M${left} ${y(low + step * code)}H${right}`, opacity: 0.35 });
  }
  return (/** @type {Found} */ found) => {
    const weights = state.rows[state.row],
      whole = quantized(weights, { ...state, group: 0 }).parts[0].step / 2;
    const most = Math.max(...weights.map(Math.abs)) * 1.06,
      y = (value) => ((most - value) / (2 * most)) * TALL;
    grid.replaceChildren();
    place(grid, { fill: "currentColor" });
    for (const part of found.parts) levels(part, y);
    weights.forEach((weight, i) => {
      place(bars[i], { y: Math.min(y(weight), y(0)), height: Math.max(0.6, Math.abs(y(weight) - y(0))) });
      place(dots[i], { y: y(found.values[i]) - 1.3 });
      const tall = whole ? (found.missed[i] / whole) * (LOW - 6) : 0;
      place(errors[i], { y: LOW - tall, height: tall });
    });
    for (const node of mark) place(node, { x: x(state.weight) + bar / 2 - Math.max(bar, 3) / 2 });
    ends[0].textContent = `+${most.toFixed(2)}`;
    ends[1].textContent = `−${most.toFixed(2)}`;
    limit.textContent = whole.toFixed(3);
    place(figure, { "data-error": found.error });
  };
}

// What groups of each size would give. Returns: a function that tells of a row.
function groupTable(box, /** @type {State} */ state, /** @type {Map<number, string>} */ groups) {
  const sheet = add(scroller(box), "table"),
    caption = add(sheet, "caption"),
    body = columns(sheet, ["one scale for", "mean squared error", "bytes a weight"]);
  const lines = [...groups].map(([group, name]) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return { group, row, cells: [add(row, "td"), add(row, "td")] };
  });
  return () => {
    const { bits, minimum, rows } = state,
      weights = rows[state.row];
    caption.textContent = `${bits} bits, ${minimum ? "with a minimum" : "symmetric"}; float32 takes 4 bytes`;
    for (const { group, row, cells } of lines) {
      const settings = { bits, group, minimum };
      cells[0].textContent = quantized(weights, settings).error.toPrecision(3).replace("-", "−");
      cells[1].textContent = bytesPerWeight(weights.length, settings).toFixed(3);
      row.classList.toggle("chosen", group === state.group);
    }
  };
}

function say(/** @type {State} */ { rows, row, weight: i, bits, group, minimum }, /** @type {Found} */ found) {
  const { parts } = found,
    part = parts[Math.floor(i / parts[0].size)],
    code = part.codes[i - part.start],
    how = minimum ? `${part.low.toFixed(4)} + ${code}` : `${code}`;
  return (
    `Weight ${i} is ${rows[row][i].toFixed(4)}. It gets the code ${code}: ${how} × ${part.step.toFixed(4)} = ` +
    `${found.values[i].toFixed(4)}, an error of ${found.missed[i].toFixed(4)}. ` +
    `${new Set(part.codes).size} of ${2 ** bits - (minimum ? 0 : 1)} levels of its ` +
    `${group ? "group" : "row"} are in use.`
  );
}

function render({ model, el }) {
  const keys = ["names", "rows", "row", "bits", "group", "minimum", "weight"],
    [names, rows, row, bits, group, minimum, weight] = keys.map((key) => model.get(key)),
    n = rows[0].length;
  /** @type {State} */
  const state = { rows, row, bits, group, minimum, weight };
  const set = (key) => (value) => {
    state[key] = typeof value === "string" ? Number(value) : value; // a menu gives texts
    keep(model, key, state[key]);
    paint();
  };
  const groups = new Map([
    [0, `the whole row (${n})`],
    [32, "groups of 32"],
    [16, "groups of 16"],
  ]);

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  if (rows.length > 1) choice(choosing, { label: "row", options: { ...names }, value: row }, set("row"));
  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(controls, { label: "bits", min: 2, max: 8, step: 1, value: bits, digits: 0 }, set("bits"));
  choice(controls, { label: "one scale for", options: groups, value: group }, set("group"));
  tick(controls, { label: "with a minimum", value: minimum }, set("minimum"));

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const paintPlot = plot(add(panels, "figure"), state, (i) => {
    follow.value = String(i);
    follow.dispatchEvent(new Event("input"));
  });
  const side = add(panels, "div"),
    followed = { label: "weight", min: 0, max: n - 1, step: 1, value: weight, digits: 0 },
    follow = slider(side, followed, set("weight"));
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });
  const paintTable = groupTable(side, state, groups);

  function paint() {
    const found = quantized(rows[state.row], state);
    paintPlot(found);
    note.textContent = say(state, found);
    paintTable();
  }
  paint();
}

export default { render };
