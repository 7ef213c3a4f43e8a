// Two charts over parameters: the loss along a budget, and models by parameters and tokens.
import { add, draggable, draw, onArrow, panel, place, rove } from "../base/index.js";
import { alongBudget, count, flops, inside, loss, optimum } from "../numbers/scaling_calculator.js";

/**
 * @typedef {import("../numbers/scaling_calculator.js").Model} Model
 * @typedef {import("../numbers/scaling_calculator.js").State} State
 * @typedef {import("../numbers/scaling_calculator.js").Found} Found
 * @typedef {import("./scaling_calculator.js").Change} Change
 */

const WIDE = 340,
  HIGH = 250,
  LEFT = 44,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 38;
const log = Math.log10;

const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low)) * (to - from);
const axis = (/** @type {number[]} */ [low, high], from, to) => {
  const at = scale(log(low), log(high), from, to);
  return (/** @type {number} */ value) => at(log(value));
};
const decades = (/** @type {number[]} */ [low, high]) =>
  Array.from({ length: Math.floor(log(high)) - Math.ceil(log(low)) + 1 }, (_, i) => 10 ** (Math.ceil(log(low)) + i));

// A chart over parameters: {svg, x}.
function chart(figure, label, caption, /** @type {number[]} */ ends) {
  const { svg } = panel(figure, { width: WIDE, height: HIGH, x: [0, 1], y: [0, 1], label });
  add(figure, "figcaption", {}, caption);
  const x = axis(ends, LEFT, WIDE - RIGHT),
    all = decades(ends),
    every = Math.ceil(all.length / 6);
  all.forEach((value, i) => {
    draw(svg, "path", { d: `M${x(value)} ${TOP}V${HIGH - BOTTOM}`, stroke: "currentColor", opacity: 0.12 });
    if (i % every === 0)
      draw(svg, "text", { x: x(value), y: HIGH - BOTTOM + 16, "text-anchor": "middle" }, count(value));
  });
  draw(svg, "text", { x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle" }, "parameters N");
  return { svg, x };
}

// What stands at a height beside the axis.
function level(parent, y, /** @type {string | null} */ text) {
  draw(parent, "path", { d: `M${LEFT} ${y}H${WIDE - RIGHT}`, stroke: "currentColor", opacity: 0.12 });
  if (text !== null) draw(parent, "text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, text);
}

// what leaves the axes is cut off there
function line(svg, attributes) {
  const id = `d2lmini-axes-${Math.random().toString(36).slice(2)}`,
    clip = draw(draw(svg, "defs"), "clipPath", { id });
  draw(clip, "rect", { x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: HIGH - TOP - BOTTOM });
  return draw(svg, "path", { fill: "none", "stroke-width": 2, "clip-path": `url(#${id})`, ...attributes });
}
const diamond = (svg) => draw(svg, "path", { d: "M0 -8L8 0L0 8L-8 0Z", fill: "var(--blue)", stroke: "currentColor" });

// The loss along the budget, and the choice, which can be dragged along it.
export function lossChart(figure, /** @type {State} */ state, /** @type {Change} */ change) {
  const ends = state.limits.parameters,
    caption = "Loss at this budget. Diamond: the optimum. Ring: your choice.",
    { svg, x } = chart(figure, "loss against parameters with the same budget", caption, ends);
  const marks = draw(svg, "g"),
    curve = line(svg, { stroke: "var(--blue)" }),
    best = diamond(svg),
    point = draw(svg, "g");
  draw(point, "circle", { r: 7, fill: "none", stroke: "var(--orange)", "stroke-width": 3 });
  const [from, to] = ends.map(log);
  const along = (/** @type {number} */ wanted) => {
    const C = flops(state.parameters, state.tokens),
      N = alongBudget(state.limits, C, wanted);
    change({ parameters: N, tokens: C / 6 / N });
  };
  const span = {
    clamp: (/** @type {number[]} */ [N, y]) => [inside(N, ends), y],
    step: [0, 0],
    invert(/** @type {PointerEvent} */ event) {
      const box = svg.getBoundingClientRect();
      const share = (((event.clientX - box.left) * WIDE) / box.width - LEFT) / (WIDE - RIGHT - LEFT);
      return [10 ** (from + share * (to - from)), 0];
    },
  };
  const at = () => [state.parameters, 0];
  draggable(point, span, "your choice, along the budget", at, ([N]) => along(N));
  place(point, { tabindex: 0 });
  onArrow(point, (down, right) => along(state.parameters * 10 ** (0.05 * (right - down))));

  return (/** @type {Found} */ { law, N, C, L, bestN, bestD, least }) => {
    const high = Math.max(L, loss(law, bestN * 30, bestD / 30), loss(law, bestN / 30, bestD * 30)),
      pad = 0.08 * (high - least),
      up = scale(least - pad, high + pad, HIGH - BOTTOM, TOP);
    const points = Array.from({ length: 161 }, (_, i) => 10 ** (from + (i / 160) * (to - from)));
    const shown = points.map((n) => [x(n), up(loss(law, n, C / 6 / n))]).filter(([, v]) => v > -HIGH);
    place(curve, { d: "M" + shown.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L") });
    const visibility = x(bestN) >= LEFT && x(bestN) <= WIDE - RIGHT ? "visible" : "hidden";
    place(best, { transform: `translate(${x(bestN)} ${up(least)})`, visibility });
    place(point, { transform: `translate(${x(N)} ${up(L)})` });
    marks.replaceChildren();
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((s) => (high - least) / s <= 6) ?? 100;
    for (let v = Math.ceil((least - pad) / step) * step; v < high + pad; v += step)
      level(marks, up(v), up(v) > TOP + 18 ? v.toFixed(step < 0.1 ? 2 : 1) : null);
    draw(marks, "text", { x: LEFT + 4, y: TOP + 12 }, `loss by this law, ${law.unit}`);
  };
}

// The models in the plane of parameters and tokens.
export function modelsChart(figure, /** @type {State} */ { models, limits }, /** @type {Change} */ change) {
  const caption =
    "Dashed: the optimum of every budget. Dotted: this budget. Shaded: the runs that the law was fitted to.";
  const { svg, x } = chart(figure, "published models by parameters and tokens", caption, limits.parameters);
  const y = axis(limits.tokens, HIGH - BOTTOM, TOP),
    all = decades(limits.tokens),
    every = Math.ceil(all.length / 7);
  all.forEach((value, i) => level(svg, y(value), i % every === 0 ? count(value) : null));
  draw(svg, "text", { x: LEFT + 4, y: TOP + 12 }, "tokens D");
  const range = draw(svg, "rect", { fill: "var(--blue)", "fill-opacity": 0.15 });
  const path = line(svg, { stroke: "var(--blue)", "stroke-dasharray": "7 4" }),
    iso = line(svg, { stroke: "currentColor", "stroke-dasharray": "2 4" });
  const ideal = diamond(svg),
    here = draw(svg, "circle", { r: 8, fill: "none", stroke: "var(--orange)", "stroke-width": 3 });
  const name = draw(svg, "text", { "pointer-events": "none", "font-weight": 600 });
  let chosen = /** @type {Model | undefined} */ (undefined);
  const call = (/** @type {Model=} */ m) => {
    name.textContent = m?.name ?? "";
    if (!m) return;
    const at = x(m.parameters),
      left = at > WIDE / 2;
    place(name, { x: at + (left ? -14 : 14), y: y(m.tokens) + 4, "text-anchor": left ? "end" : "start" });
  };
  const fill = (/** @type {Model} */ { parameters, tokens }) => change({ parameters, tokens });
  const dots = models.map((m) => {
    const node = draw(svg, "g", {
      role: "button",
      "aria-label": `${m.name}: ${count(m.parameters)} parameters, ${count(m.tokens)} tokens`,
      style: "cursor: pointer",
      transform: `translate(${x(m.parameters)} ${y(m.tokens)})`,
    });
    draw(node, "circle", { class: "d2lmini-reach" });
    draw(node, "circle", { r: 4, fill: "currentColor" });
    node.addEventListener("click", () => {
      node.focus();
      fill(m);
    });
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        fill(m);
      }
    });
    for (const kind of ["pointerenter", "focus"]) node.addEventListener(kind, () => call(m));
    for (const kind of ["pointerleave", "blur"]) node.addEventListener(kind, () => call(chosen));
    return node;
  });
  if (dots.length) rove(dots);

  const at = (/** @type {number[]} */ [n, d]) => `${x(n).toFixed(1)} ${y(d).toFixed(1)}`;
  return (/** @type {Found} */ { law, N, D, C, bestN, bestD, chosen: number }) => {
    const budgets = [0, 1].map((i) => flops(limits.parameters[i], limits.tokens[i]) * 10 ** (6 * i - 3));
    place(path, { d: "M" + budgets.map((budget) => at(optimum(law, budget))).join("L") });
    place(iso, { d: `M${limits.parameters.map((n) => at([n, C / 6 / n])).join("L")}` });
    const [n0, n1] = law.parameters.map(x),
      [d0, d1] = law.tokens.map(y);
    place(range, { x: n0, width: n1 - n0, y: d1, height: d0 - d1 });
    const [idealX, idealY] = [x(bestN), y(bestD)],
      within = idealX >= LEFT && idealX <= WIDE - RIGHT && idealY >= TOP && idealY <= HIGH - BOTTOM;
    place(ideal, { transform: `translate(${at([bestN, bestD])})`, visibility: within ? "visible" : "hidden" });
    place(here, { cx: x(N), cy: y(D) });
    dots.forEach((node, i) => place(node, { "aria-pressed": i === number }));
    chosen = models[number];
    call(chosen);
  };
}
