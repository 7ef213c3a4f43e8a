// A query among keys: weights as areas, the output among the values.
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

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const size = { width: 300, height: 300, x: [-2.2, 2.2], y: [-2.2, 2.2] };
  const hold = (caption) => {
    const box = add(panels, "figure");
    const space = panel(box, { ...size, label: caption });
    draw(space.svg, "line", { x1: 0, x2: 300, y1: space.y(0), y2: space.y(0), stroke: "#8886" });
    draw(space.svg, "line", { y1: 0, y2: 300, x1: space.x(0), x2: space.x(0), stroke: "#8886" });
    add(box, "figcaption", {}, caption);
    return space;
  };
  const left = hold("keys and query: drag them"),
    right = hold("values and the output, which stays among them");

  const links = keys.map(() => draw(left.svg, "line", { stroke: "var(--blue)" }));
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
  const ends = values.map((value, i) => {
    const at = { cx: right.x(value[0]), cy: right.y(value[1]) };
    const disc = draw(right.svg, "circle", { ...at, fill: "var(--blue)", "fill-opacity": 0.75 });
    const name = draw(right.svg, "text", { transform: `translate(${at.cx} ${at.cy})` }, `v${i + 1}`);
    beside(name, at.cx, at.cy);
    return disc;
  });
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
    place(star, { transform: `translate(${left.x(query[0])} ${left.y(query[1])})` });
    beside(sign, left.x(query[0]), left.y(query[1]));
    place(mean, { transform: `translate(${right.x(output[0])} ${right.y(output[1])})` });
    weights.forEach((w, i) => {
      const [x, y] = [left.x(keys[i][0]), left.y(keys[i][1])],
        radius = 4 + 12 * Math.sqrt(w);
      place(dots[i].group, { transform: `translate(${x} ${y})` });
      place(dots[i].disc, { r: radius });
      beside(dots[i].name, x, y);
      place(ends[i], { r: radius });
      place(links[i], { x1: left.x(query[0]), y1: left.y(query[1]), x2: x, y2: y, "stroke-width": 4 * w });
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
    note.textContent = `Output: (${output.map((x) => x.toFixed(2)).join(", ")})`;
  }
  paint();
}

// A name beside its point, on the side that has room.
const beside = (name, x, y) =>
  place(name, { x: x > 260 ? -14 : 14, y: y < 30 ? 20 : -8, "text-anchor": x > 260 ? "end" : "start" });

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
