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
  tick,
  ticks,
} from "./base/index.js";
import { outputs, poolErrors, pooled, poolWeights } from "./numbers/kernel_pooling.js";

const KERNELS = { gaussian: "Gaussian", boxcar: "boxcar", epanechnikov: "Epanechnikov" };
const [LEFT, RIGHT, BOTTOM] = [36, 14, 36]; // room for the axes
const EXPONENTS = Array.from({ length: 61 }, (_, i) => -2 + i / 20); // of the widths whose errors are shown

const spread = (/** @type {number[]} */ [low, high], steps) =>
  Array.from({ length: steps + 1 }, (_, i) => low + (i / steps) * (high - low));

function margin(values, share) {
  const low = Math.min(...values),
    high = Math.max(...values),
    more = share * (high - low || 1);
  return [low - more, high + more];
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
    tick(value, text, upwards = false) {
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

// The points, the query and the curve. `state` is what they show and change; `moved(...keys)` follows a change of them.
function plot(box, state, moved) {
  const { xs, ys } = state,
    [WIDE, HIGH] = innerWidth > 600 ? [690, 320] : [340, 260],
    range = { x: margin(xs, 0.1), y: margin(ys, 0.25) };
  const space = axes(box, "points, query and curve", [WIDE, HIGH], range),
    steps = spread(range.x, 400);
  for (const v of ticks(range.x[0], range.x[1], 8)) space.tick(v, String(v));
  for (const v of ticks(range.y[0], range.y[1])) space.tick(v, String(v), true);
  space.name("x", "y");
  add(box, "figcaption", {}, "points (drag them), the query (drag it along) and the curve of all outputs");

  const curve = draw(space.svg, "path", { fill: "none", stroke: "var(--blue)", "stroke-width": 2 });
  const dash = { stroke: "var(--orange)", "stroke-dasharray": "5 4" };
  const plumb = draw(space.svg, "line", { y1: 0, y2: HIGH - BOTTOM, ...dash });
  const dots = xs.map((_, i) => {
    const group = draw(space.svg, "g");
    const disc = draw(group, "circle", { fill: "var(--blue)", "fill-opacity": 0.6, stroke: "currentColor" });
    const at = () => [xs[i], ys[i]];
    draggable(group, space, `point ${i + 1}`, at, ([x, y]) => {
      [xs[i], ys[i]] = [x, y];
      moved("x", "y");
    });
    return { group, disc };
  });
  const mark = draw(space.svg, "path", { d: "M0-9 9 0 0 9-9 0Z", fill: "var(--orange)" }); // the output
  const grip = draw(space.svg, "g");
  draw(grip, "path", { d: "M0-10 9 8-9 8Z", fill: "var(--orange)" });
  draw(grip, "text", { x: 13, y: 8 }, "q");
  const bottom = () => [state.query, range.y[0]];
  draggable(grip, space, "query", bottom, ([x]) => {
    state.query = x;
    moved("query");
  });
  rove([grip, ...dots.map(({ group }) => group)], { keys: PAGES });

  return (weights, output) => {
    const x = space.x(state.query),
      seen = outputs(state, steps);
    place(curve, {
      d: brokenPath(
        steps.map((at, i) => [at, seen[i]]),
        space,
      ),
    });
    place(plumb, { x1: x, x2: x });
    place(grip, { transform: `translate(${x} ${HIGH - BOTTOM - 12})` });
    const shown = output === null ? "none" : "inline";
    place(mark, { display: shown, transform: `translate(${x} ${space.y(output ?? 0)})` });
    dots.forEach(({ group, disc }, i) => {
      place(group, { transform: `translate(${space.x(xs[i])} ${space.y(ys[i])})` });
      place(disc, { r: 3 + 15 * Math.sqrt(weights ? weights[i] : 0) });
    });
  };
}

// Both errors against the width.
function errorPlot(box, state) {
  const wide = innerWidth > 600 ? 690 : 340,
    space = axes(box, "errors against the width", [wide, 180], { x: [-2, 1], y: [0, 1.1] });
  const lines = ["var(--blue)", "var(--orange)"].map((stroke, i) =>
    draw(space.svg, "path", { fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": i ? "6 3" : "none" }),
  );
  const dash = { stroke: "currentColor", "stroke-dasharray": "2 4" },
    here = draw(space.svg, "line", { y1: 0, y2: 180 - BOTTOM, ...dash });
  space.tick(0, "0", true);
  const highest = space.tick(1, "", true);
  for (const e of [-2, -1, 0, 1]) space.tick(e, String(10 ** e));
  space.name("width", "error");
  add(box, "figcaption", {}, "mean squared error on the points (solid) and leaving each out (dashed)");

  return () => {
    const errors = EXPONENTS.map((e) => poolErrors({ ...state, width: 10 ** e }));
    const top = Math.max(...errors.flatMap(({ training, leftOut }) => [training, leftOut ?? 0])) || 1;
    highest.textContent = top.toFixed(2);
    for (const [i, key] of ["training", "leftOut"].entries()) {
      const points = errors.map((of, j) => [EXPONENTS[j], of[key] === null ? null : of[key] / top]);
      place(lines[i], { d: brokenPath(points, space) });
    }
    const x = space.x(Math.log10(state.width));
    place(here, { x1: x, x2: x });
  };
}

function render({ model, el }) {
  const { x, y, query, width, kernel } = Object.fromEntries(
    ["x", "y", "query", "width", "kernel"].map((key) => [key, model.get(key)]),
  );
  const state = { xs: [...x], ys: [...y], query, width, kernel },
    kept = { x: () => [...state.xs], y: () => [...state.ys], query: () => state.query };
  const controls = add(el, "div", { class: "d2lmini-controls" });
  const set = (key) => (value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };
  slider(controls, { label: "width", min: 0.01, max: 10, step: 0.01, value: width, scale: "log" }, set("width"));
  choice(controls, { label: "kernel", options: KERNELS, value: kernel }, set("kernel"));
  tick(controls, { label: "show the errors at all widths", value: false }, (on) => {
    errorBox.hidden = !on;
    paint();
  });

  const newBox = () => add(add(el, "div", { class: "d2lmini-panels" }), "figure");
  const paintPlot = plot(newBox(), state, (...keys) => {
    for (const key of keys) keep(model, key, kept[key]());
    paint();
  });
  const rows = add(add(scroller(el), "table"), "tbody");
  const names = ["output at the query", "mean squared error on the points", "the same, leaving each point out"];
  const cells = names.map((text) => {
    const row = add(rows, "tr");
    add(row, "th", { scope: "row" }, text);
    return add(row, "td");
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const errorBox = newBox(), // below the table, which stays where it is
    paintErrors = errorPlot(errorBox, state);
  errorBox.hidden = true;

  function paint() {
    const weights = poolWeights(state.kernel, state.width, state.xs, state.query),
      output = pooled(weights, state.ys);
    paintPlot(weights, output);
    const { training, leftOut, alone } = poolErrors(state);
    const said = [output?.toFixed(2), training.toFixed(3), leftOut?.toFixed(3)];
    for (const [i, text] of said.entries()) cells[i].textContent = text ?? "nothing in reach";
    note.textContent = alone
      ? `Left out, ${alone} of ${state.xs.length} points have no other in reach; they do not count.`
      : "";
    if (!errorBox.hidden) paintErrors();
  }
  paint();
}

export default { render };
