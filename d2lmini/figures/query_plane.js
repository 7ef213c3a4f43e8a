// A query among keys: weights as areas, the output among the values.
import {
  add,
  choice,
  draggable,
  draw,
  keep,
  PAGES,
  panel,
  place,
  rove,
  scroller,
  slider,
  softmax,
} from "./base/index.js";

const SIDE = 340; // of a plane

function render({ model, el }) {
  const query = [...model.get("query")],
    keys = model.get("key_points").map((k) => [...k]),
    values = model.get("values");
  let temperature = model.get("temperature"),
    score = model.get("score");
  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(controls, { label: "temperature", min: 0.02, max: 20, step: 0.01, value: temperature, scale: "log" }, (t) => {
    temperature = t;
    keep(model, "temperature", t);
    paint();
  });
  choice(
    controls,
    { label: "score", options: { dot: "dot product", distance: "minus half squared distance" }, value: score },
    (s) => {
      score = s;
      keep(model, "score", s);
      paint();
    },
  );

  const panels = add(el, "div", { class: "d2lmini-panels d2lmini-pair" });
  const size = { width: SIDE, height: SIDE, x: [-2.2, 2.2], y: [-2.2, 2.2] };
  const hold = (caption) => {
    const box = add(panels, "figure");
    const space = panel(box, { ...size, label: caption });
    draw(space.svg, "line", { x1: 0, x2: SIDE, y1: space.y(0), y2: space.y(0), stroke: "#8886" });
    draw(space.svg, "line", { y1: 0, y2: SIDE, x1: space.x(0), x2: space.x(0), stroke: "#8886" });
    add(box, "figcaption", {}, caption);
    return space;
  };
  const left = hold("keys and query: drag them"),
    right = hold("values and the output, which stays among them");

  // A distance lies between two points; a dot product is of two arrows from the origin.
  const links = keys.map(() => draw(left.svg, "line", { stroke: "var(--blue)", "stroke-linecap": "round" })),
    asking = draw(left.svg, "line", { stroke: "var(--orange)", "stroke-width": 2 });
  const hull = draw(right.svg, "polygon", { fill: "#8882", stroke: "#8888" });
  const pulls = keys.map(() => draw(right.svg, "line", { stroke: "var(--blue)" }));
  const dots = keys.map((_, i) => {
    const group = draw(left.svg, "g");
    const disc = draw(group, "circle", { fill: "var(--blue)", "fill-opacity": 0.75 });
    const name = draw(group, "text", {}, `k${i + 1}`);
    draggable(
      group,
      left,
      `key ${i + 1}`,
      () => keys[i],
      (p) => {
        keys[i] = p;
        keep(
          model,
          "key_points",
          keys.map((k) => [...k]),
        );
        paint();
      },
    );
    return { group, disc, name };
  });
  const valuesAt = values.map(([x, y]) => [right.x(x), right.y(y)]);
  const ends = valuesAt.map(([cx, cy]) =>
      draw(right.svg, "circle", { cx, cy, fill: "var(--blue)", "fill-opacity": 0.75 }),
    ),
    valueNames = valuesAt.map((at, i) => draw(right.svg, "text", { transform: `translate(${at})` }, `v${i + 1}`));
  const star = draw(left.svg, "g");
  draw(star, "path", { d: "M0-9 9 0 0 9-9 0Z", fill: "var(--orange)" });
  const sign = draw(star, "text", {}, "q");
  draggable(
    star,
    left,
    "query",
    () => query,
    (p) => {
      [query[0], query[1]] = p;
      keep(model, "query", [...query]);
      paint();
    },
  );
  rove([star, ...dots.map(({ group }) => group)], { keys: PAGES });
  const mean = draw(right.svg, "path", { d: "M0-9 9 0 0 9-9 0Z", fill: "var(--orange)" });
  place(hull, {
    points: convexHull(values)
      .map(([x, y]) => `${right.x(x)},${right.y(y)}`)
      .join(" "),
  });

  const scroll = scroller(el);
  const sheet = add(scroll, "table", { "aria-label": "weights" });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(add(sheet, "tbody"), "tr");
  add(head, "th", { scope: "col" }, "key");
  add(body, "th", { scope: "row" }, "weight");
  const cells = keys.map((_, i) => {
    add(head, "th", { scope: "col" }, String(i + 1));
    return add(body, "td", { class: "shade" });
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const scores = keys.map((k) =>
      score === "dot" ? k[0] * query[0] + k[1] * query[1] : -((k[0] - query[0]) ** 2 + (k[1] - query[1]) ** 2) / 2,
    );
    const weights = softmax(scores, temperature);
    const output = [0, 1].map((axis) => weights.reduce((sum, w, i) => sum + w * values[i][axis], 0));
    const [qx, qy] = [left.x(query[0]), left.y(query[1])],
      [x1, y1] = score === "dot" ? [left.x(0), left.y(0)] : [qx, qy];
    place(star, { transform: `translate(${qx} ${qy})` });
    place(asking, { x1, y1, x2: qx, y2: qy });
    beside(
      [sign, ...dots.map(({ name }) => name)],
      [query, ...keys].map(([x, y]) => [left.x(x), left.y(y)]),
      left.svg,
    );
    place(mean, { transform: `translate(${right.x(output[0])} ${right.y(output[1])})` });
    weights.forEach((w, i) => {
      const [x, y] = [left.x(keys[i][0]), left.y(keys[i][1])],
        radius = 4 + 12 * Math.sqrt(w);
      place(dots[i].group, { transform: `translate(${x} ${y})` });
      place(dots[i].disc, { r: radius });
      place(ends[i], { r: radius });
      place(links[i], { x1, y1, x2: x, y2: y, "stroke-width": 0.5 + 4 * w });
      place(pulls[i], {
        x1: right.x(output[0]),
        y1: right.y(output[1]),
        x2: right.x(values[i][0]),
        y2: right.y(values[i][1]),
        "stroke-width": 4 * w,
      });
      cells[i].textContent = w.toFixed(3);
      cells[i].style.setProperty("--w", w);
    });
    beside(valueNames, valuesAt, right.svg);
    note.textContent = `Output: (${output.map((x) => x.toFixed(2)).join(", ")})`;
  }
  paint();
  new ResizeObserver(paint).observe(left.svg);
}

// Names beside their points: each at the first corner that is inside and where no other name or point is, as long as
// there is one. Where the plane is small on the screen, letters are large in its units.
function beside(names, points, svg) {
  const letter = 12 * (Number(svg.style.getPropertyValue("--zoom")) || 1),
    [wide, high] = [1.3 * letter, letter],
    taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  names.forEach((name, i) => {
    const corners = [
      [1, -1],
      [1, 1],
      [-1, -1],
      [-1, 1],
    ].map(([right, down]) => {
      const [x, y] = [right > 0 ? 14 : -14 - wide, down > 0 ? 8 + high : -8];
      const box = [points[i][0] + x, points[i][1] + y - high, points[i][0] + x + wide, points[i][1] + y];
      return { x, y, box };
    });
    const inside = corners.filter(({ box }) => box[0] > 0 && box[1] > 0 && box[2] < SIDE && box[3] < SIDE);
    const free = inside.find(({ box }) => !taken.some((other) => meet(box, other)));
    const { x, y, box } = free ?? inside[0] ?? corners[0];
    taken.push(box);
    place(name, { x, y });
  });
}

const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Monotone chain (Andrew 1979): the corners of the smallest convex polygon around the points.
function convexHull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const left = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const chain = (list) => {
    const out = [];
    for (const p of list) {
      while (out.length > 1 && left(out.at(-2), out.at(-1), p) <= 0) out.pop();
      out.push(p);
    }
    return out.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.reverse())];
}

export default { render };
