// Windows on a picture: what a patch may attend to in a layer, and what has reached it through all layers so far.
import { add, choice, draw, keep, panel, place, rove, slider, tick } from "./base/index.js";
import { costs, layersTaken, mayAttend, shift } from "./numbers/swin_explorer.js";
import { photo } from "./page/photo.js";

const LONG = 420, // of the longer side
  NOW = "#ff7a00",
  BEFORE = "#2f9bff",
  DARK = "filter: drop-shadow(0 0 1px #000)"; // so that white can be seen on white

const number = (/** @type {number} */ n) => n.toLocaleString("en");

// The picture in patches and windows; one patch is chosen, another may be pointed at. Paints what may attend and what
// has reached the patch.
function board(box, state, called, moved) {
  const { rows, columns } = state,
    cell = LONG / Math.max(rows, columns),
    [width, height] = [cell * columns, cell * rows];
  const size = { width, height, x: [0, width], y: [height, 0] };
  const { svg } = panel(box, { ...size, label: "the picture, cut into patches and windows" });
  const whole = { width, height, preserveAspectRatio: "none" },
    picture = draw(svg, "image", { ...whole, style: "image-rendering: pixelated" });
  const look = (change) => {
    Object.assign(state, change);
    moved();
  };
  const patches = Array.from({ length: rows * columns }, (_, t) => {
    const [row, column] = [Math.floor(t / columns), t % columns];
    const node = draw(svg, "rect", {
      x: column * cell,
      y: row * cell,
      width: cell,
      height: cell,
      role: "button",
      stroke: "#9998",
      "stroke-width": 0.5,
      "aria-label": `patch in ${called(t)}`,
      style: "cursor: pointer; outline: none",
    });
    node.addEventListener("pointerenter", () => look({ pointed: t }));
    node.addEventListener("click", () => node.focus());
    node.addEventListener("focus", () => look({ chosen: t, pointed: null }));
    return node;
  });
  const lines = draw(svg, "g", { "pointer-events": "none", style: DARK });
  const border = { fill: "none", stroke: "#fff", "stroke-width": 3, "pointer-events": "none", style: DARK },
    frame = draw(svg, "rect", { width: cell, height: cell, ...border });
  svg.addEventListener("pointerleave", () => look({ pointed: null }));
  rove(patches, {
    entry: state.chosen,
    to(t, down, right) {
      const column = (t % columns) + right;
      return column >= 0 && column < columns ? t + down * columns + right : -1;
    },
  });

  return (href, t, attends, taken) => {
    place(picture, { href });
    patches.forEach((node, i) => {
      const now = attends.includes(i);
      place(node, {
        fill: now ? NOW : BEFORE,
        "fill-opacity": now ? 0.55 : taken[i] ? 0.7 * 0.65 ** (taken[i] - 1) : 0,
        "data-layers": taken[i],
        "aria-pressed": i === t,
      });
    });
    place(frame, { x: (t % columns) * cell, y: Math.floor(t / columns) * cell });
    lines.replaceChildren();
    const bar = { stroke: "#ffd400", "stroke-width": 2 },
      M = state.window_size,
      first = shift(state, state.layer) || M;
    for (let at = first; at < rows; at += M)
      draw(lines, "line", { x1: 0, x2: width, y1: at * cell, y2: at * cell, ...bar });
    for (let at = first; at < columns; at += M)
      draw(lines, "line", { y1: 0, y2: height, x1: at * cell, x2: at * cell, ...bar });
  };
}

function legend(parent) {
  for (const [colour, text] of [
    [NOW, "may attend to, in this layer"],
    [BEFORE, "has reached it: paler, the more layers it took"],
  ]) {
    const style = `display: inline-block; width: 0.8em; height: 0.8em; background: ${colour}; margin: 0 0.3em 0 0.8em`;
    add(parent, "span", { style });
    add(parent, "span", {}, text);
  }
}

function render({ model, el }) {
  const titles = model.get("titles"),
    [rows, columns] = model.get("grid"),
    T = rows * columns,
    h = model.get("num_hiddens");
  const photos = model.get("pictures").map((grey) => photo(grey.flat(), grey[0].length, grey.length));
  const state = {
    rows,
    columns,
    picture: model.get("picture"),
    window_size: model.get("window_size"),
    layer: model.get("layer"),
    shifted: model.get("shifted"),
    chosen: Math.floor(rows / 2) * columns + Math.floor(columns / 2),
    pointed: /** @type {number | null} */ (null),
  };
  const set = (key) => (value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };
  const whole = (key) => (value) => set(key)(Number(value));
  const called = (/** @type {number} */ t) => `row ${Math.floor(t / columns) + 1}, column ${(t % columns) + 1}`;

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "picture", options: { ...titles }, value: state.picture }, whole("picture"));
  const sizes = Object.fromEntries(
    model.get("window_sizes").map((M) => [M, M === rows && M === columns ? `${M} (all to all)` : `${M} × ${M}`]),
  );
  choice(controls, { label: "window", options: sizes, value: state.window_size }, whole("window_size"));
  const layers = { min: 1, max: model.get("num_layers"), step: 1, digits: 0 };
  slider(controls, { label: "layer", ...layers, value: state.layer }, set("layer"));
  tick(controls, { label: "shift every second layer", value: state.shifted }, set("shifted"));

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    box = add(panels, "figure"),
    side = add(panels, "div", { style: "flex-basis: 14rem" }),
    paintBoard = board(box, state, called, paint);
  legend(add(box, "figcaption"));
  const facts = add(add(side, "table", { "aria-label": "what the layer costs" }), "tbody");
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const t = state.pointed ?? state.chosen,
      { window_size: M, layer } = state,
      by = shift(state, layer);
    const attends = mayAttend(state, layer, t),
      taken = layersTaken(state, layer, t);
    paintBoard(photos[state.picture], t, attends, taken);

    const { scores, attention, projections } = costs(state, h);
    facts.replaceChildren();
    for (const [name, value] of [
      ["patches (tokens)", number(T)],
      ["patches in a window", number(M * M)],
      ["scores of a head", number(scores)],
      ["all to all", `${number(T * T)} (${(T / (M * M)).toFixed(1)} times)`],
      ["operations, scores and averages", number(attention)],
      ["operations, projections", number(projections)],
    ]) {
      const row = add(facts, "tr");
      add(row, "th", { scope: "row" }, name);
      add(row, "td", {}, value);
    }
    const hidden = M * M - attends.length,
      cut = hidden ? ` (the edge of the picture cuts its window; ${hidden} are masked)` : "",
      reached = taken.filter(Boolean).length;
    note.textContent =
      `Layer ${layer}, ${by ? `shifted by ${by}` : "not shifted"}: the patch in ${called(t)} may attend to ` +
      `${attends.length} of ${T} patches${cut}. ` +
      `After this layer ${reached === T ? "all" : reached} have reached it.`;
  }
  paint();
}

export default { render };
