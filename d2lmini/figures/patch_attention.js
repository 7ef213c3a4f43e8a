// Attention over patches: a large picture with the weights of the chosen patch, small ones for all heads of the layer.
import { add, button, choice, draw, keep, panel, place, rove, unpack } from "./base/index.js";

function render({ model, el }) {
  const titles = model.get("titles"),
    names = model.get("names"),
    [rows, columns] = model.get("grid");
  const extra = model.get("class_token") ? 1 : 0,
    T = rows * columns + extra;
  const maps = model.get("maps").map((row) => row.map(({ size: [H], data }) => ({ H, data: unpack(data) })));
  const photos = model.get("pixels").map(photo);
  const now = Object.fromEntries(["picture", "layer", "head"].map((key) => [key, model.get(key)]));
  const map = () => maps[now.picture][now.layer];
  const weight = (head, t, s) => map().data[((head - 1) * T + t) * T + s] / 255;
  const place_of = (t) => [Math.floor((t - extra) / columns), (t - extra) % columns];
  const called = (t) => (t < extra ? "class token" : `row ${place_of(t)[0] + 1}, column ${place_of(t)[1] + 1}`);
  const set = (key, value) => {
    now[key] = value;
    keep(model, key, value);
  };
  const change = (key) => (value) => {
    set(key, Number(value));
    if (now.head > map().H) set("head", map().H);
    build();
  };

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "picture", options: { ...titles }, value: now.picture }, change("picture"));
  if (names.length > 1) choice(controls, { label: "layer", options: { ...names }, value: now.layer }, change("layer"));
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const box = add(panels, "figure"),
    side = add(panels, "div", {
      role: "group",
      "aria-label": "all maps of the layer",
      class: "d2lmini-maps d2lmini-thumbs",
      style: "flex-basis: 12rem",
    });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  const [high, wide] = model.get("pixels")[0].size;
  const unit = 300 / Math.max(high, wide),
    width = unit * wide,
    height = unit * high,
    top = extra ? 40 : 0;
  const cell = [width / columns, height / rows];
  let chosen = extra ? 0 : Math.floor(T / 2),
    pointed = null,
    tokens,
    picture,
    thumbs;

  // A picture of grey bytes as the address of an image: drawn once, then scaled by the browser.
  function photo({ size: [height, width], data }) {
    const sheet = Object.assign(document.createElement("canvas"), { width, height }),
      pen = sheet.getContext("2d");
    const image = pen.createImageData(width, height);
    unpack(data).forEach((grey, i) => image.data.set([grey, grey, grey, 255], 4 * i));
    pen.putImageData(image, 0, 0);
    return sheet.toDataURL();
  }

  function start() {
    const space = panel(box, {
      width,
      height: height + top,
      x: [0, width],
      y: [height + top, 0],
      label: "the picture, cut into patches",
    });
    picture = draw(space.svg, "image", {
      x: 0,
      y: top,
      width,
      height,
      preserveAspectRatio: "none",
      style: "image-rendering: pixelated",
    });
    tokens = Array.from({ length: T }, (_, t) => token(space.svg, t));
    rove(
      tokens.map(({ node }) => node),
      { entry: chosen, to: neighbour },
    );
    space.svg.addEventListener("pointerleave", () => {
      pointed = null;
      paint();
    });
    add(box, "figcaption", {}, "outlined: the token that looks; shaded: where it looks");
  }

  function token(svg, t) {
    const [row, column] = place_of(t);
    const where =
      t < extra
        ? { x: 4, y: 4, width: width - 8, height: top - 8, rx: 5 }
        : { x: column * cell[0], y: top + row * cell[1], width: cell[0], height: cell[1] };
    const node = draw(svg, "g", {
      role: "button",
      "aria-label": `${called(t)}: where it looks`,
      style: "cursor: pointer; outline: none",
    });
    // the page's own colour would vanish on the picture: the shades are of one strong colour in both themes
    const shade = draw(node, "rect", {
      ...where,
      fill: "#ff7a00",
      stroke: t < extra ? "currentColor" : "#aaa",
      "stroke-width": 0.6,
    });
    const middle = {
      x: where.x + where.width / 2,
      y: where.y + where.height / 2 + 4,
      "text-anchor": "middle",
      "pointer-events": "none",
    };
    const number = draw(
      svg,
      "text",
      t < extra
        ? middle
        : {
            ...middle,
            style: "fill: white; stroke: black; stroke-width: 3.5px; paint-order: stroke; font-weight: 600",
            visibility: Math.min(...cell) < 34 ? "hidden" : "visible",
          },
    );
    const frame = draw(svg, "rect", {
      ...where,
      fill: "none",
      stroke: "#2f9bff",
      "stroke-width": 3.5,
      "pointer-events": "none",
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
    return { node, shade, number, frame };
  }

  function neighbour(t, down, right) {
    if (t < extra) return down > 0 ? extra : undefined;
    const [row, column] = place_of(t).map((at, axis) => at + [down, right][axis]);
    if (row < 0 && extra) return 0;
    const inside = row >= 0 && row < rows && column >= 0 && column < columns;
    return inside ? extra + row * columns + column : undefined;
  }

  function build() {
    picture.setAttribute("href", photos[now.picture]);
    side.replaceChildren();
    thumbs = Array.from({ length: map().H }, (_, h) => thumb(h + 1));
    rove(
      thumbs.map(({ node }) => node),
      { entry: now.head - 1 },
    );
    paint();
  }

  function thumb(head) {
    const node = button(
      side,
      "",
      () => {
        set("head", head);
        paint();
      },
      { "aria-label": map().H > 1 ? `head ${head}` : names[now.layer] },
    );
    const svg = draw(node, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.style.cssText = "width: 90px; max-width: 100%";
    draw(svg, "image", {
      width,
      height,
      href: photos[now.picture],
      preserveAspectRatio: "none",
      style: "image-rendering: pixelated",
    });
    const shades = tokens.slice(extra).map((_, i) =>
      draw(svg, "rect", {
        x: (i % columns) * cell[0],
        y: Math.floor(i / columns) * cell[1],
        width: cell[0],
        height: cell[1],
        fill: "#ff7a00",
      }),
    );
    add(node, "span", {}, map().H > 1 ? `head ${head}` : names[now.layer]);
    return { node, shades };
  }

  function paint() {
    const t = pointed ?? chosen,
      row = Array.from({ length: T }, (_, s) => weight(now.head, t, s));
    const strongest = Math.max(...row, 1 / 255);
    tokens.forEach(({ node, shade, number, frame }, s) => {
      shade.setAttribute("fill-opacity", (0.75 * row[s]) / strongest);
      number.textContent = (s < extra ? "class token " : "") + row[s].toFixed(2);
      frame.setAttribute("visibility", s === t ? "visible" : "hidden");
      place(node, { "aria-pressed": s === t });
    });
    thumbs.forEach(({ node, shades }, h) => {
      const own = shades.map((_, i) => weight(h + 1, t, extra + i)),
        most = Math.max(...own, 1 / 255);
      shades.forEach((shade, i) => shade.setAttribute("opacity", (0.75 * own[i]) / most));
      place(node, { "aria-pressed": h + 1 === now.head });
    });
    const best = row
      .map((w, s) => [w, s])
      .filter(([w]) => w >= 0.005)
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3);
    const list = best.map(([w, s]) => `${called(s)}: ${w.toFixed(2)}`).join("; ");
    note.textContent =
      `${names[now.layer]}${map().H > 1 ? `, head ${now.head}` : ""}: ` +
      `${t < extra ? "the class token" : `the patch in ${called(t)}`} looks at ${list}.`;
  }

  start();
  build();
}

export default { render };
