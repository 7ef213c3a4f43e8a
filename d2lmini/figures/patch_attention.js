// Attention over patches: a large picture with the weights of the chosen patch, small ones for all heads of the layer.
import { add, button, choice, draw, keep, panel, place, rove, unpack } from "./base/index.js";
import { maps } from "./numbers/maps.js";
import { called, neighbour, shades, strongest } from "./numbers/patch_attention.js";
import { photo } from "./page/photo.js";

const LONG = 300, // of the longer side
  PIXELS = { preserveAspectRatio: "none", style: "image-rendering: pixelated" };

// The page's own colour would vanish on the picture: the shades are of one strong colour in both themes.
const SHADE = "#ff7a00";

// A token of the large picture: its shade is a button, its weight is written where there is room.
function token(svg, within, name, isPatch) {
  const { x, y, width, height } = within;
  const node = draw(svg, "g", {
    role: "button",
    "aria-label": `${name}: where it looks`,
    style: "cursor: pointer; outline: none",
  });
  const rim = { stroke: isPatch ? "#aaa" : "currentColor", "stroke-width": 0.6 },
    shade = draw(node, "rect", { ...within, fill: SHADE, ...rim });
  const middle = { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle", "pointer-events": "none" };
  const onPicture = {
    style: "fill: white; stroke: black; stroke-width: 3.5px; paint-order: stroke; font-weight: 600",
    visibility: Math.min(width, height) < 34 ? "hidden" : "visible",
  };
  const number = draw(svg, "text", isPatch ? { ...middle, ...onPicture } : middle);
  const outline = { fill: "none", stroke: "#2f9bff", "stroke-width": 3.5, "pointer-events": "none" },
    frame = draw(svg, "rect", { ...within, ...outline });
  node.addEventListener("click", () => node.focus());
  return { node, shade, number, frame };
}

// The large picture; `state` is the token that looks, chosen or pointed at. Paints the weights of that token.
function largePicture(box, grid, { width, height }, state, moved) {
  const { rows, columns, extra } = grid,
    top = extra ? 40 : 0,
    cell = { width: width / columns, height: height / rows };
  const units = { width, height: height + top, x: [0, width], y: [height + top, 0] };
  const { svg } = panel(box, { ...units, label: "the picture, cut into patches" });
  const picture = draw(svg, "image", { x: 0, y: top, width, height, ...PIXELS });
  const patches = Array.from({ length: rows * columns }, (_, i) => {
    return { x: (i % columns) * cell.width, y: top + Math.floor(i / columns) * cell.height, ...cell };
  });
  const places = extra ? [{ x: 4, y: 4, width: width - 8, height: top - 8, rx: 5 }, ...patches] : patches;
  const look = (change) => {
    Object.assign(state, change);
    moved();
  };
  const tokens = places.map((within, t) => {
    const one = token(svg, within, called(grid, t), t >= extra);
    one.node.addEventListener("pointerenter", () => look({ pointed: t }));
    one.node.addEventListener("focus", () => look({ chosen: t, pointed: null }));
    return one;
  });
  rove(
    tokens.map(({ node }) => node),
    { entry: state.chosen, to: (t, down, right) => neighbour(grid, t, down, right) },
  );
  svg.addEventListener("pointerleave", () => look({ pointed: null }));
  add(box, "figcaption", {}, "outlined: the token that looks; shaded: where it looks");

  return (href, t, weights) => {
    const strength = shades(weights);
    place(picture, { href });
    tokens.forEach(({ node, shade, number, frame }, s) => {
      place(shade, { "fill-opacity": strength[s] });
      number.textContent = (s < extra ? "class token " : "") + weights[s].toFixed(2);
      place(frame, { visibility: s === t ? "visible" : "hidden" });
      place(node, { "aria-pressed": s === t });
    });
  };
}

// A small picture of one head. Paints the weights on its patches, and whether it is the chosen head.
function smallPicture(parent, name, href, { rows, columns }, { width, height }, choose) {
  const node = button(parent, "", choose, { "aria-label": name });
  const svg = draw(node, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  svg.style.cssText = "width: 90px; max-width: 100%";
  draw(svg, "image", { width, height, href, ...PIXELS });
  const cell = { width: width / columns, height: height / rows };
  const patches = Array.from({ length: rows * columns }, (_, i) => {
    const at = { x: (i % columns) * cell.width, y: Math.floor(i / columns) * cell.height };
    return draw(svg, "rect", { ...at, ...cell, fill: SHADE });
  });
  add(node, "span", {}, name);
  const paint = (weights, pressed) => {
    shades(weights).forEach((opacity, i) => place(patches[i], { opacity }));
    place(node, { "aria-pressed": pressed });
  };
  return { node, paint };
}

function render({ model, el }) {
  const titles = model.get("titles"),
    names = model.get("names"),
    [rows, columns] = model.get("grid"),
    extra = model.get("class_token") ? 1 : 0,
    grid = { rows, columns, extra },
    T = rows * columns + extra;
  const weights = model.get("maps").map((row) => row.map(({ data }) => maps(data, T, T)));
  const photos = model.get("pixels").map(({ size: [high, wide], data }) => photo(unpack(data), wide, high));
  const state = { chosen: extra ? 0 : Math.floor(T / 2), pointed: /** @type {number | null} */ (null) };
  const now = Object.fromEntries(["picture", "layer", "head"].map((key) => [key, model.get(key)]));
  const ofLayer = () => weights[now.picture][now.layer]; // (H, T, T)
  const set = (key, value) => {
    now[key] = value;
    keep(model, key, value);
  };
  const change = (key) => (value) => {
    set(key, Number(value));
    if (now.head > ofLayer().length) set("head", ofLayer().length);
    build();
  };

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "picture", options: { ...titles }, value: now.picture }, change("picture"));
  if (names.length > 1) choice(controls, { label: "layer", options: { ...names }, value: now.layer }, change("layer"));
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const box = add(panels, "figure"),
    named = { role: "group", "aria-label": "all maps of the layer", class: "d2lmini-maps d2lmini-thumbs" },
    side = add(panels, "div", { ...named, style: "flex-basis: 12rem" });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  const [high, wide] = model.get("pixels")[0].size,
    unit = LONG / Math.max(high, wide),
    size = { width: unit * wide, height: unit * high },
    paintLarge = largePicture(box, grid, size, state, paint);
  let thumbs;
  function build() {
    side.replaceChildren();
    thumbs = ofLayer().map((_, h, { length: heads }) => {
      const name = heads > 1 ? `head ${h + 1}` : names[now.layer];
      return smallPicture(side, name, photos[now.picture], grid, size, () => {
        set("head", h + 1);
        paint();
      });
    });
    rove(
      thumbs.map(({ node }) => node),
      { entry: now.head - 1 },
    );
    paint();
  }

  function paint() {
    const t = state.pointed ?? state.chosen,
      heads = ofLayer(),
      row = heads[now.head - 1][t];
    paintLarge(photos[now.picture], t, row);
    thumbs.forEach((thumb, h) => thumb.paint(heads[h][t].slice(extra), h + 1 === now.head));
    const list = strongest(row).map(([w, s]) => `${called(grid, s)}: ${w.toFixed(2)}`);
    note.textContent =
      `${names[now.layer]}${heads.length > 1 ? `, head ${now.head}` : ""}: ` +
      `${t < extra ? "the class token" : `the patch in ${called(grid, t)}`} looks at ${list.join("; ")}.`;
  }

  build();
}

export default { render };
