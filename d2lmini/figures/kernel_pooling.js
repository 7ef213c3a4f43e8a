// Nadaraya-Watson regression over points that can be moved: weights, curve, and two errors that tell different stories.
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
  tick,
  ticks,
} from "./base/index.js";

const KERNELS = { gaussian: "Gaussian", boxcar: "boxcar", epanechnikov: "Epanechnikov" };

// Weights of the keys for a query, or null where none is in reach; `skip` leaves one key out.
function poolWeights(kernel, width, xs, query, skip = -1) {
  const scaled = xs.map((x, i) => (i === skip ? Infinity : Math.abs(x - query) / width));
  if (kernel === "gaussian") return softmax(scaled.map((u) => (-u * u) / 2)); // as scores, so that nothing underflows
  const raw = scaled.map((u) => (u >= 1 ? 0 : kernel === "boxcar" ? 1 : 1 - u * u));
  const total = raw.reduce((a, b) => a + b, 0);
  return total > 0 ? raw.map((w) => w / total) : null;
}

const pooled = (weights, ys) => (weights ? weights.reduce((sum, w, i) => sum + w * ys[i], 0) : null);

// Mean squared error over the points that have a prediction, and how many have none.
function poolErrors(kernel, width, xs, ys) {
  const mean = (leaveOut) => {
    const errors = xs
      .map((x, i) => pooled(poolWeights(kernel, width, xs, x, leaveOut ? i : -1), ys))
      .flatMap((output, i) => (output === null ? [] : [(output - ys[i]) ** 2]));
    return {
      error: errors.length ? errors.reduce((a, b) => a + b) / errors.length : null,
      alone: xs.length - errors.length,
    };
  };
  return { training: mean(false).error, leftOut: mean(true) };
}

// An SVG path through points [x, y]; it breaks where y is null.
function brokenPath(points, space) {
  let pen = "M";
  return points
    .map(([x, y]) => {
      if (y === null) {
        pen = "M";
        return "";
      }
      const piece = `${pen}${space.x(x).toFixed(1)} ${space.y(y).toFixed(1)}`;
      pen = "L";
      return piece;
    })
    .join("");
}

function render({ model, el }) {
  const xs = [...model.get("x")],
    ys = [...model.get("y")];
  let query = model.get("query"),
    width = model.get("width"),
    kernel = model.get("kernel"),
    all = false;
  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(controls, { label: "width", min: 0.01, max: 10, step: 0.01, value: width, scale: "log" }, (w) => {
    width = w;
    keep(model, "width", w);
    paint();
  });
  choice(controls, { label: "kernel", options: KERNELS, value: kernel }, (k) => {
    kernel = k;
    keep(model, "kernel", k);
    paint();
  });
  tick(controls, { label: "show the errors at all widths", value: false }, (on) => {
    all = on;
    paint();
  });

  const newBox = () => add(add(el, "div", { class: "d2lmini-panels" }), "figure");
  const box = newBox(),
    [WIDE, HIGH] = innerWidth > 600 ? [690, 320] : [340, 260],
    [LEFT, RIGHT, BOTTOM] = [36, 14, 36]; // room for the axes
  const margin = (values, share) => {
    const low = Math.min(...values),
      high = Math.max(...values),
      more = share * (high - low || 1);
    return [low - more, high + more];
  };
  const range = { x: margin(xs, 0.1), y: margin(ys, 0.25) };
  const space = axes(box, "points, query and curve", [WIDE, HIGH], range);
  for (const v of ticks(...range.x, 8)) space.tick(v, String(v));
  for (const v of ticks(...range.y, 6)) space.tick(v, String(v), true);
  space.name("x", "y");
  add(box, "figcaption", {}, "points (drag them), the query (drag it along) and the curve of all outputs");

  const curve = draw(space.svg, "path", { fill: "none", stroke: "var(--blue)", "stroke-width": 2 });
  const plumb = draw(space.svg, "line", {
    y1: 0,
    y2: HIGH - BOTTOM,
    stroke: "var(--orange)",
    "stroke-dasharray": "5 4",
  });
  const dots = xs.map((_, i) => {
    const group = draw(space.svg, "g");
    const disc = draw(group, "circle", { fill: "var(--blue)", "fill-opacity": 0.6, stroke: "currentColor" });
    draggable(
      group,
      space,
      `point ${i + 1}`,
      () => [xs[i], ys[i]],
      ([x, y]) => {
        [xs[i], ys[i]] = [x, y];
        keep(model, "x", [...xs]);
        keep(model, "y", [...ys]);
        paint();
      },
    );
    return { group, disc };
  });
  const mark = draw(space.svg, "path", { d: "M0-9 9 0 0 9-9 0Z", fill: "var(--orange)" }); // the output
  const grip = draw(space.svg, "g");
  draw(grip, "path", { d: "M0-10 9 8-9 8Z", fill: "var(--orange)" });
  draw(grip, "text", { x: 13, y: 8 }, "q");
  draggable(
    grip,
    space,
    "query",
    () => [query, range.y[0]],
    ([x]) => {
      query = x;
      keep(model, "query", x);
      paint();
    },
  );
  rove([grip, ...dots.map(({ group }) => group)], { keys: PAGES });

  const rows = add(add(scroller(el), "table"), "tbody");
  const cells = ["output at the query", "mean squared error on the points", "the same, leaving each point out"].map(
    (text) => {
      const row = add(rows, "tr");
      add(row, "th", { scope: "row" }, text);
      return add(row, "td");
    },
  );
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  // below the table, which stays where it is
  const errorBox = newBox(),
    errorSpace = axes(errorBox, "errors against the width", [WIDE, 180], { x: [-2, 1], y: [0, 1.1] });
  const lines = ["var(--blue)", "var(--orange)"].map((stroke, i) =>
    draw(errorSpace.svg, "path", { fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": i ? "6 3" : "none" }),
  );
  const here = draw(errorSpace.svg, "line", {
    y1: 0,
    y2: 180 - BOTTOM,
    stroke: "currentColor",
    "stroke-dasharray": "2 4",
  });
  errorSpace.tick(0, "0", true);
  const highest = errorSpace.tick(1, "", true);
  for (const e of [-2, -1, 0, 1]) errorSpace.tick(e, String(10 ** e));
  errorSpace.name("width", "error");
  add(errorBox, "figcaption", {}, "mean squared error on the points (solid) and leaving each out (dashed)");

  // A panel with a margin at the left and below: its units are the data's, `tick` and `name` write into the margin.
  function axes(parent, label, [width, height], { x, y }) {
    const [right, up] = [width - LEFT - RIGHT, height - BOTTOM],
      wide = ([low, high], share) => low - share * (high - low);
    const space = panel(parent, {
      label,
      width,
      height,
      x: [wide(x, LEFT / right), wide([x[1], x[0]], RIGHT / right)],
      y: [wide(y, BOTTOM / up), y[1]],
    });
    const within = (value, [low, high]) => Math.min(high, Math.max(low, value)),
      { svg } = space;
    draw(svg, "path", { d: `M${LEFT} 0V${up}H${width - RIGHT}`, fill: "none", stroke: "currentColor", opacity: 0.5 });
    return Object.assign(space, {
      clamp: ([a, b]) => [within(a, x), within(b, y)],
      tick(value, text, upwards) {
        const at = upwards ? space.y(value) : space.x(value),
          d = upwards ? `M${LEFT} ${at}h-4` : `M${at} ${up}v4`,
          where = upwards
            ? { x: LEFT - 7, y: at + 4, "text-anchor": "end" }
            : { x: at, y: up + 16, "text-anchor": "middle" };
        draw(svg, "path", { d, stroke: "currentColor" });
        return draw(svg, "text", where, text);
      },
      name(below, beside) {
        draw(svg, "text", { x: width - RIGHT, y: height - 5, "text-anchor": "end", "font-style": "italic" }, below);
        draw(svg, "text", { x: LEFT + 5, y: 14, "font-style": "italic" }, beside);
      },
    });
  }

  function paint() {
    const weights = poolWeights(kernel, width, xs, query),
      output = pooled(weights, ys);
    const at = (x) => [x, pooled(poolWeights(kernel, width, xs, x), ys)];
    const steps = Array.from({ length: 401 }, (_, i) => range.x[0] + (i / 400) * (range.x[1] - range.x[0]));
    place(curve, { d: brokenPath(steps.map(at), space) });
    place(plumb, { x1: space.x(query), x2: space.x(query) });
    place(grip, { transform: `translate(${space.x(query)} ${HIGH - BOTTOM - 12})` });
    place(mark, {
      display: output === null ? "none" : "inline",
      transform: `translate(${space.x(query)} ${space.y(output ?? 0)})`,
    });
    dots.forEach(({ group, disc }, i) => {
      place(group, { transform: `translate(${space.x(xs[i])} ${space.y(ys[i])})` });
      place(disc, { r: 3 + 15 * Math.sqrt(weights ? weights[i] : 0) });
    });
    const { training, leftOut } = poolErrors(kernel, width, xs, ys);
    cells[0].textContent = output === null ? "nothing in reach" : output.toFixed(2);
    cells[1].textContent = training.toFixed(3);
    cells[2].textContent = leftOut.error === null ? "nothing in reach" : leftOut.error.toFixed(3);
    note.textContent = leftOut.alone
      ? `Left out, ${leftOut.alone} of ${xs.length} points have no other in reach; they do not count.`
      : "";
    errorBox.hidden = !all;
    if (all) paintErrors();
  }

  function paintErrors() {
    const exponents = Array.from({ length: 61 }, (_, i) => -2 + i / 20);
    const errors = exponents.map((e) => poolErrors(kernel, 10 ** e, xs, ys));
    const top = Math.max(...errors.flatMap((e) => [e.training, e.leftOut.error ?? 0])) || 1;
    highest.textContent = top.toFixed(2);
    const scaled = (error) => (error === null ? null : error / top);
    place(lines[0], {
      d: brokenPath(
        errors.map((e, i) => [exponents[i], scaled(e.training)]),
        errorSpace,
      ),
    });
    place(lines[1], {
      d: brokenPath(
        errors.map((e, i) => [exponents[i], scaled(e.leftOut.error)]),
        errorSpace,
      ),
    });
    place(here, { x1: errorSpace.x(Math.log10(width)), x2: errorSpace.x(Math.log10(width)) });
  }
  paint();
}

export default { render };
