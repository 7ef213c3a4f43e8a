// A query among keys: weights as areas, the output among the values.
import { add, choice, draggable, draw, keep, PAGES, panel, place, rove, scroller, slider } from "./base/index.js";
import { beside, convexHull, output, weights } from "./numbers/query_plane.js";

const SIDE = 340, // of a plane
  SCORES = { dot: "dot product", distance: "minus half squared distance" },
  DIAMOND = { d: "M0-9 9 0 0 9-9 0Z", fill: "var(--orange)" },
  DISC = { fill: "var(--blue)", "fill-opacity": 0.75 };

function plane(parent, caption) {
  const box = add(parent, "figure"),
    axis = { stroke: "#8886" };
  const size = { width: SIDE, height: SIDE, x: [-2.2, 2.2], y: [-2.2, 2.2] },
    space = panel(box, { ...size, label: caption });
  draw(space.svg, "line", { x1: 0, x2: SIDE, y1: space.y(0), y2: space.y(0), ...axis });
  draw(space.svg, "line", { y1: 0, y2: SIDE, x1: space.x(0), x2: space.x(0), ...axis });
  add(box, "figcaption", {}, caption);
  return Object.assign(space, { at: (/** @type {number[]} */ [x, y]) => [space.x(x), space.y(y)] });
}

// Where the plane is small on the screen, letters are large in its units.
function putNames(names, points, svg) {
  const letter = 12 * (Number(svg.style.getPropertyValue("--zoom")) || 1);
  beside(points, letter, SIDE).forEach((where, i) => place(names[i], where));
}

const radius = (/** @type {number} */ w) => 4 + 12 * Math.sqrt(w);

// Keys and query, which can be dragged: `moved` takes which of them. Paints weights; a distance lies between two points,
// a dot product is of two arrows from the origin.
function keyPlane(parent, state, moved) {
  const { query, keys } = state,
    space = plane(parent, "keys and query: drag them"),
    { svg, at } = space;
  const links = keys.map(() => draw(svg, "line", { stroke: "var(--blue)", "stroke-linecap": "round" })),
    asking = draw(svg, "line", { stroke: "var(--orange)", "stroke-width": 2 });
  const dots = keys.map((_, i) => {
    const group = draw(svg, "g"),
      disc = draw(group, "circle", DISC),
      name = draw(group, "text", {}, `k${i + 1}`);
    const get = () => keys[i];
    draggable(group, space, `key ${i + 1}`, get, (point) => {
      keys[i] = point;
      moved("key_points");
    });
    return { group, disc, name };
  });
  const star = draw(svg, "g");
  draw(star, "path", DIAMOND);
  const sign = draw(star, "text", {}, "q");
  const get = () => query;
  draggable(star, space, "query", get, (point) => {
    [query[0], query[1]] = point;
    moved("query");
  });
  rove([star, ...dots.map(({ group }) => group)], { keys: PAGES });

  const paint = (shares) => {
    const here = at(query),
      [x1, y1] = state.score === "dot" ? at([0, 0]) : here;
    place(star, { transform: `translate(${here.join(" ")})` });
    place(asking, { x1, y1, x2: here[0], y2: here[1] });
    putNames([sign, ...dots.map(({ name }) => name)], [here, ...keys.map(at)], svg);
    shares.forEach((w, i) => {
      const [x, y] = at(keys[i]);
      place(dots[i].group, { transform: `translate(${x} ${y})` });
      place(dots[i].disc, { r: radius(w) });
      place(links[i], { x1, y1, x2: x, y2: y, "stroke-width": 0.5 + 4 * w });
    });
  };
  return { svg, paint };
}

// Values, their hull, and the output. Paints weights and output.
function valuePlane(parent, values) {
  const { svg, at } = plane(parent, "values and the output, which stays among them"),
    points = values.map(at);
  const hull = draw(svg, "polygon", { fill: "#8882", stroke: "#8888" });
  const pulls = values.map(() => draw(svg, "line", { stroke: "var(--blue)" }));
  const ends = points.map(([cx, cy]) => draw(svg, "circle", { cx, cy, ...DISC })),
    names = points.map((point, i) => draw(svg, "text", { transform: `translate(${point})` }, `v${i + 1}`));
  const mean = draw(svg, "path", DIAMOND);
  place(hull, { points: convexHull(values).map(at).join(" ") });

  return (shares, out) => {
    const [x1, y1] = at(out);
    place(mean, { transform: `translate(${x1} ${y1})` });
    shares.forEach((w, i) => {
      place(ends[i], { r: radius(w) });
      place(pulls[i], { x1, y1, x2: points[i][0], y2: points[i][1], "stroke-width": 4 * w });
    });
    putNames(names, points, svg);
  };
}

// A row of weights. Returns the function that writes them.
function weightTable(parent, count) {
  const sheet = add(scroller(parent), "table", { "aria-label": "weights" });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(add(sheet, "tbody"), "tr");
  add(head, "th", { scope: "col" }, "key");
  add(body, "th", { scope: "row" }, "weight");
  const cells = Array.from({ length: count }, (_, i) => {
    add(head, "th", { scope: "col" }, String(i + 1));
    return add(body, "td", { class: "shade" });
  });
  return (shares) =>
    cells.forEach((cell, i) => {
      cell.textContent = shares[i].toFixed(3);
      cell.style.setProperty("--w", shares[i]);
    });
}

function render({ model, el }) {
  const values = model.get("values");
  const state = {
    query: [...model.get("query")],
    keys: model.get("key_points").map((point) => [...point]),
    temperature: model.get("temperature"),
    score: model.get("score"),
  };
  const kept = { query: () => [...state.query], key_points: () => state.keys.map((point) => [...point]) };
  const set = (key) => (value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };
  const controls = add(el, "div", { class: "d2lmini-controls" }),
    range = { min: 0.02, max: 20, step: 0.01, scale: "log" };
  slider(controls, { label: "temperature", ...range, value: state.temperature }, set("temperature"));
  choice(controls, { label: "score", options: SCORES, value: state.score }, set("score"));

  const panels = add(el, "div", { class: "d2lmini-panels d2lmini-pair" });
  const left = keyPlane(panels, state, (key) => {
    keep(model, key, kept[key]());
    paint();
  });
  const paintValues = valuePlane(panels, values),
    paintTable = weightTable(el, values.length);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const shares = weights(state),
      out = output(shares, values);
    left.paint(shares);
    paintValues(shares, out);
    paintTable(shares);
    note.textContent = `Output: (${out.map((x) => x.toFixed(2)).join(", ")})`;
  }
  paint();
  new ResizeObserver(paint).observe(left.svg);
}

export default { render };
