// Windows on a picture: what a patch may attend to in a layer, and what has reached it through all layers so far.
import { add, choice, draw, keep, panel, place, rove, slider, tick } from "./base/index.js";

function render({ model, el }) {
  const titles = model.get("titles"),
    [rows, columns] = model.get("grid"),
    T = rows * columns;
  const photos = model.get("pictures").map(photo),
    h = model.get("num_hiddens"),
    layers = model.get("num_layers");
  const now = Object.fromEntries(["picture", "window_size", "layer", "shifted"].map((key) => [key, model.get(key)]));
  const set = (key, value) => {
    now[key] = value;
    keep(model, key, value);
    paint();
  };
  const cell = 420 / Math.max(rows, columns),
    width = cell * columns,
    height = cell * rows;
  const called = (t) => `row ${Math.floor(t / columns) + 1}, column ${(t % columns) + 1}`;
  const number = (n) => n.toLocaleString("en");

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "picture", options: { ...titles }, value: now.picture }, (v) =>
      set("picture", Number(v)),
    );
  const sizes = Object.fromEntries(
    model.get("window_sizes").map((M) => [M, M === rows && M === columns ? `${M} (all to all)` : `${M} × ${M}`]),
  );
  choice(controls, { label: "window", options: sizes, value: now.window_size }, (v) => set("window_size", Number(v)));
  slider(controls, { label: "layer", min: 1, max: layers, step: 1, value: now.layer, digits: 0 }, (v) =>
    set("layer", v),
  );
  tick(controls, { label: "shift every second layer", value: now.shifted }, (v) => set("shifted", v));

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const box = add(panels, "figure"),
    side = add(panels, "div", { style: "flex-basis: 14rem" });
  const space = panel(box, {
    width,
    height,
    x: [0, width],
    y: [height, 0],
    label: "the picture, cut into patches and windows",
  });
  const picture = draw(space.svg, "image", {
    width,
    height,
    preserveAspectRatio: "none",
    style: "image-rendering: pixelated",
  });
  const patches = Array.from({ length: T }, (_, t) => patch(t));
  const dark = "filter: drop-shadow(0 0 1px #000)"; // so that white can be seen on white
  const lines = draw(space.svg, "g", { "pointer-events": "none", style: dark });
  const frame = draw(space.svg, "rect", {
    width: cell,
    height: cell,
    fill: "none",
    stroke: "#fff",
    "stroke-width": 3,
    "pointer-events": "none",
    style: dark,
  });
  space.svg.addEventListener("pointerleave", () => {
    pointed = null;
    paint();
  });
  const legend = add(box, "figcaption");
  for (const [colour, text] of [
    ["#ff7a00", "may attend to, in this layer"],
    ["#2f9bff", "has reached it: paler, the more layers it took"],
  ]) {
    add(legend, "span", {
      style: `display: inline-block; width: 0.8em; height: 0.8em; background: ${colour}; margin: 0 0.3em 0 0.8em`,
    });
    add(legend, "span", {}, text);
  }
  const facts = add(add(side, "table", { "aria-label": "what the layer costs" }), "tbody");
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  let chosen = Math.floor(rows / 2) * columns + Math.floor(columns / 2),
    pointed = null;
  rove(patches, {
    entry: chosen,
    to(t, down, right) {
      const column = (t % columns) + right;
      return column >= 0 && column < columns ? t + down * columns + right : undefined;
    },
  });

  // A picture of grey numbers as the address of an image: drawn once, then scaled by the browser.
  function photo(grey) {
    const sheet = Object.assign(document.createElement("canvas"), { width: grey[0].length, height: grey.length });
    const pen = sheet.getContext("2d"),
      image = pen.createImageData(sheet.width, sheet.height);
    grey.flat().forEach((g, i) => image.data.set([g, g, g, 255], 4 * i));
    pen.putImageData(image, 0, 0);
    return sheet.toDataURL();
  }

  function patch(t) {
    const row = Math.floor(t / columns),
      column = t % columns;
    const node = draw(space.svg, "rect", {
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
    node.addEventListener("pointerenter", () => {
      pointed = t;
      paint();
    });
    node.addEventListener("click", () => node.focus());
    node.addEventListener("focus", () => {
      chosen = t;
      pointed = null;
      paint();
    });
    return node;
  }

  // Windows of the shifted layers begin at the shift; the one before it is what the edge of the picture leaves.
  const shift = (layer) => {
    const M = now.window_size;
    return now.shifted && layer % 2 === 0 && M !== rows && M !== columns ? Math.floor(M / 2) : 0;
  };
  const windowOf = (layer, t) => {
    const M = now.window_size,
      at = (i) => Math.floor((i + M - shift(layer)) / M);
    return at(Math.floor(t / columns)) * (rows + 1) * (columns + 1) + at(t % columns);
  };
  function spread(set, layer) {
    const windows = new Set([...set].map((t) => windowOf(layer, t)));
    return new Set(patches.map((_, t) => t).filter((t) => windows.has(windowOf(layer, t))));
  }

  function paint() {
    const t = pointed ?? chosen,
      M = now.window_size,
      s = shift(now.layer);
    const attends = spread(new Set([t]), now.layer);
    let reached = new Set([t]);
    const taken = patches.map(() => 0); // how many layers each patch took to get here
    // from the output back to the picture
    for (let layer = now.layer; layer >= 1; layer--) {
      reached = spread(reached, layer);
      for (const i of reached) taken[i] ||= now.layer - layer + 1;
    }
    picture.setAttribute("href", photos[now.picture]);
    patches.forEach((node, i) => {
      place(node, {
        fill: attends.has(i) ? "#ff7a00" : "#2f9bff",
        "fill-opacity": attends.has(i) ? 0.55 : taken[i] ? 0.7 * 0.65 ** (taken[i] - 1) : 0,
        "data-layers": taken[i],
        "aria-pressed": i === t,
      });
    });
    place(frame, { x: (t % columns) * cell, y: Math.floor(t / columns) * cell });
    lines.replaceChildren();
    const bar = { stroke: "#ffd400", "stroke-width": 2 };
    for (let at = s || M; at < rows; at += M)
      draw(lines, "line", { x1: 0, x2: width, y1: at * cell, y2: at * cell, ...bar });
    for (let at = s || M; at < columns; at += M)
      draw(lines, "line", { y1: 0, y2: height, x1: at * cell, x2: at * cell, ...bar });

    const scores = T * M * M;
    facts.replaceChildren();
    for (const [name, value] of [
      ["patches (tokens)", number(T)],
      ["patches in a window", number(M * M)],
      ["scores of a head", number(scores)],
      ["all to all", `${number(T * T)} (${(T / (M * M)).toFixed(1)} times)`],
      ["operations, scores and averages", number(4 * scores * h)],
      ["operations, projections", number(8 * T * h * h)],
    ]) {
      const row = add(facts, "tr");
      add(row, "th", { scope: "row" }, name);
      add(row, "td", {}, value);
    }
    const kind = s ? `shifted by ${s}` : "not shifted";
    const cut =
      attends.size < M * M ? ` (the edge of the picture cuts its window; ${M * M - attends.size} are masked)` : "";
    note.textContent =
      `Layer ${now.layer}, ${kind}: the patch in ${called(t)} may attend to ${attends.size} of ${T} patches${cut}. ` +
      `After this layer ${reached.size === T ? "all" : reached.size} have reached it.`;
  }
  paint();
}

export default { render };
