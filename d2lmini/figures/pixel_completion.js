// A picture is finished pixel by pixel: what each pixel was drawn from, and where a head of the last layer looked.
import { add, button, choice, draw, fold, keep, panel, place, slider } from "./base/index.js";
import { direction, stepOf, unpackWalk } from "./numbers/pixel_completion.js";
import { greyOf, pixelRects, stripes } from "./painting.js";

/**
 * @typedef {import("./numbers/pixel_completion.js").Walk} Walk
 * @typedef {ReturnType<typeof stepOf>} Found
 * @typedef {{ levels: number[], names: string[], true: number[][] | null, walks: Walk[][], picture: number,
 *   sample: number, head: number, step: number }} State
 */

const CELL = 20,
  FLOOR = 150; // of the bars
const counted = (word, n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [i, `${word} ${i + 1}`]));

// A picture; what was given is above the dashed line.
function canvas(/** @type {HTMLElement} */ box, /** @type {Walk} */ { size, given }, label, caption = "") {
  const [height, width] = size;
  const { svg } = panel(box, { width: CELL * width, height: CELL * height, x: [0, width], y: [height, 0], label });
  svg.style.cssText = "max-width: 17rem; margin: 0 auto";
  const show = pixelRects(svg, size, CELL),
    dash = { stroke: "var(--orange)", "stroke-width": 2, "stroke-dasharray": "6 4" };
  draw(svg, "line", { x1: 0, x2: CELL * width, y1: CELL * given, y2: CELL * given, ...dash });
  box.style.flex = "1 1 12rem"; // three in a row
  if (caption) add(box, "figcaption", {}, caption);
  return { svg, show };
}

// The picture as far as it is written, and where the model looks.
function written(/** @type {Element} */ panels, /** @type {State} */ { levels, walks }, leap) {
  const [first] = walks[0],
    [height, width] = first.size,
    label = "the picture as far as it is written";
  const caption =
    "given above the dashed line, written below it; circles: where the model looks for the pixel in the orange frame";
  const { svg, show } = canvas(add(panels, "figure"), first, label, caption);
  const hatch = stripes(svg, 0.18),
    white = { fill: "var(--blue)", stroke: "white", "stroke-width": 1.5, "pointer-events": "none" };
  const eyes = Array.from({ length: first.shown }, () => draw(svg, "circle", white));
  const edge = { fill: "none", stroke: "var(--orange)", "stroke-width": 3 };
  const frame = draw(svg, "rect", { width: CELL, height: CELL, ...edge });
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * height);
    leap((row - first.given) * width + column + 1);
  });
  return (/** @type {Walk} */ { pixels }, /** @type {Found} */ { index, seen }) => {
    for (const [i, k] of pixels.entries()) show(i, i <= index ? greyOf(levels[k]) : hatch);
    place(frame, { x: CELL * (index % width), y: CELL * Math.floor(index / width) });
    eyes.forEach((eye, n) => {
      const [at, weight] = seen[n],
        i = at - 1; // place 0 is the start sign, and no pixel
      place(eye, {
        cx: CELL * ((i % width) + 0.5),
        cy: CELL * (Math.floor(i / width) + 0.5),
        r: Math.min(10, 13 * Math.sqrt(weight)),
      });
      eye.style.display = at > 0 && weight > 0.01 ? "" : "none";
    });
  };
}

// The probability of each grey value.
function bars(/** @type {Element} */ panels, /** @type {number[]} */ levels) {
  const box = add(panels, "figure"),
    one = Math.max(24, 200 / levels.length),
    wide = one * levels.length,
    label = "the probability of each grey value";
  const { svg } = panel(box, { width: wide, height: 185, x: [0, 1], y: [0, 1], label });
  box.style.flex = "1 1 12rem";
  const columns = levels.map((level, k) => {
    const middle = one * (k + 0.5),
      square = { x: middle - 9, y: FLOOR + 8, width: 18, height: 18 };
    draw(svg, "rect", { ...square, fill: greyOf(level), stroke: "#8888" });
    return {
      bar: draw(svg, "rect", { x: middle - 9, width: 18 }),
      number: draw(svg, "text", { x: Math.min(wide - 14, Math.max(14, middle)), "text-anchor": "middle" }),
    };
  });
  draw(svg, "line", { x1: 0, x2: wide, y1: FLOOR, y2: FLOOR, stroke: "#8888" });
  const caption = "what the pixel was drawn from: the probability of each grey value; in orange the one drawn";
  add(box, "figcaption", {}, caption);
  return (/** @type {Found} */ { shares, drawn }) =>
    columns.forEach(({ bar, number }, k) => {
      const top = FLOOR - 125 * shares[k];
      place(bar, { y: top, height: FLOOR - top, fill: k === drawn ? "var(--orange)" : "var(--blue)" });
      place(number, { y: top - 5 });
      number.textContent = k === drawn ? shares[k].toFixed(2) : "";
    });
}

// Back, play, next and a slider over the steps. `moved(step)`; `playing(on)`. Returns a function that goes to a step.
function player(/** @type {Element} */ el, steps, /** @type {number} */ step, { moved, playing }) {
  const row = add(el, "div", { class: "d2lmini-controls" });
  let timer = 0;
  const at = () => Number(bar.value);
  const go = (/** @type {number} */ to) => {
    bar.value = String(Math.min(steps, Math.max(1, to)));
    bar.dispatchEvent(new Event("input"));
  };
  const leap = (/** @type {number} */ to) => {
    stop();
    go(to);
  };
  const back = button(row, "← back", () => leap(at() - 1), { "aria-label": "one pixel back" });
  const both = button(row, "▶ play", () => (timer ? stop() : play()), { "aria-label": "play" });
  const forth = button(row, "next →", () => leap(at() + 1), { "aria-label": "next pixel" });
  const bar = slider(row, { label: "pixel", min: 1, max: steps, step: 1, value: step, digits: 0 }, (to) => {
    mark();
    moved(to);
  });
  for (const kind of ["pointerdown", "keydown"]) bar.addEventListener(kind, stop);

  function play() {
    if (at() === steps) go(1);
    playing(true);
    timer = setInterval(() => {
      if (at() < steps && el.isConnected) go(at() + 1);
      else stop();
    }, 100);
    named("❚❚ pause", "pause");
  }
  function stop() {
    if (!timer) return;
    clearInterval(timer);
    timer = 0;
    named("▶ play", "play");
    playing(false);
  }
  function named(text, label) {
    both.textContent = text;
    place(both, { "aria-label": label });
  }
  // not disabled: a button that is would lose the focus
  function mark() {
    place(back, { "aria-disabled": at() === 1 });
    place(forth, { "aria-disabled": at() === steps });
  }
  mark();
  return leap;
}

function tell(/** @type {State} */ { levels, step, head }, /** @type {Walk} */ walk, /** @type {Found} */ found) {
  const { size, given, mean_heads: mean, shown } = walk,
    { index, drawn, likeliest, shares, bits, seen } = found,
    [height, width] = size,
    percent = (/** @type {number} */ k) => `${Math.round(100 * levels[k])} %`;
  const most = seen
    .filter(([, w]) => w >= 0.005)
    .slice(0, 3)
    .map(([at, w]) => `${direction(at, index, width)} (${w.toFixed(2)})`);
  return (
    `Pixel ${step} of ${(height - given) * width}, row ${Math.floor(index / width) + 1}, ` +
    `column ${(index % width) + 1}: ${percent(drawn)} of white was drawn, with probability ` +
    `${shares[drawn].toFixed(2)}${bits === null ? "" : ` (${bits.toFixed(1)} bits)`}` +
    (shares[likeliest] > shares[drawn]
      ? `; likelier was ${percent(likeliest)}, with ${shares[likeliest].toFixed(2)}. `
      : ", the likeliest. ") +
    `${mean ? "The last layer" : `Head ${head + 1} of the last layer`} looks most at ${most.join(", ")}; ` +
    `the ${shown} strongest have ${seen.reduce((sum, [, w]) => sum + w, 0).toFixed(2)} of its weight.`
  );
}

function render({ model, el }) {
  const keys = ["levels", "names", "true", "picture", "sample", "head", "step"],
    state = /** @type {State} */ (Object.fromEntries(keys.map((key) => [key, model.get(key)])));
  state.walks = model.get("walks").map((samples) => samples.map(unpackWalk));
  const { levels, names, true: truth, walks } = state,
    [first] = walks[0],
    steps = (first.size[0] - first.given) * first.size[1];
  const controls = add(el, "div", { class: "d2lmini-controls" });
  const change = (key) => (value) => {
    state[key] = Number(value);
    keep(model, key, state[key]);
    build();
  };
  const pictures = new Map(names.entries());
  choice(controls, { label: "picture", options: pictures, value: state.picture }, change("picture"));
  const sampleBox = add(controls, "span"),
    heads = { label: "head", options: counted("head", first.heads), value: state.head };
  if (first.heads > 1) choice(controls, heads, change("head"));
  const leap = player(el, steps, state.step, {
    moved(step) {
      state.step = step;
      keep(model, "step", step);
      paint();
    },
    playing(on) {
      place(note, { "aria-live": on ? "off" : "polite" }); // nobody can listen to ten pixels a second
      if (!on) paint();
    },
  });
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 4.6em; margin-bottom: 0.4rem",
  });
  const panels = add(el, "div", { class: "d2lmini-panels d2lmini-pair" });
  const paintPicture = written(panels, state, (/** @type {number} */ step) => {
    if (step >= 1 && step <= steps) leap(step);
  });
  const paintBars = bars(panels, levels);
  const original = truth && canvas(fold(panels, "the true picture"), first, "the true picture");

  function build() {
    const samples = walks[state.picture].length;
    state.sample = Math.min(state.sample, samples - 1);
    if (state.sample !== model.get("sample")) keep(model, "sample", state.sample);
    if (sampleBox.dataset.samples !== String(samples)) {
      // not made anew under the reader's hands
      sampleBox.dataset.samples = String(samples);
      sampleBox.replaceChildren();
      const options = counted("sample", samples);
      if (samples > 1) choice(sampleBox, { label: "sample", options, value: state.sample }, change("sample"));
    }
    if (original) for (const [i, k] of truth[state.picture].entries()) original.show(i, greyOf(levels[k]));
    paint();
  }

  function paint() {
    const walk = walks[state.picture][state.sample],
      found = stepOf(walk, state.step, state.head);
    paintPicture(walk, found);
    paintBars(found);
    note.textContent = tell(state, walk, found);
  }
  build();
}

export default { render };
