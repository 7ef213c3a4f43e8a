// ImageGPT in the page: it finishes a picture whose upper half is chosen or painted, several times, pixel by pixel.
import { add, button, choice, draw, keep, panel, place, rove, slider, unpack } from "./base/index.js";
import { bitsPerPixel, shownPixel, strongest } from "./numbers/live_completion.js";
import { newestQuestion } from "./page/host.js";
import { announcer, runLine, withModel } from "./page/model_box.js";
import {
  controlRow,
  DRAWN,
  greyOf,
  narrowed,
  paintingGrid,
  paintingTools,
  pixelRects,
  stripes,
  turnToDrawing,
} from "./painting.js";

/**
 * @typedef {import("./numbers/live_completion.js").Walk} Walk
 * @typedef {{ names: string[], levels: number[], size: number[], given: number, picture: string, temperature: number,
 *   seed: number, completions: number, walks: Walk[], chosen: number, hovered: number | null, stayed: number | null
 *   }} State `stayed`: the pixel that was clicked, or reached by keyboard
 */

const EYES = 8, // circles: of the pixels that the model looks at the strongest
  CELL = 20,
  FLOOR = 110; // of the bars
const GIVEN = ["names", "levels", "size", "given", "picture", "temperature", "seed", "completions"];

function render({ model, el }) {
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) => completion(model, body));
}

// What the completions are drawn with, and a button that starts and stops, which is returned.
function settings(row, /** @type {State} */ { temperature, seed, completions }, change, act) {
  const heat = { label: "temperature", min: 0, max: 2, step: 0.05, value: temperature };
  narrowed(slider(row, heat, change("temperature")));
  const player = button(row, "complete", act);
  const seeds = { label: "seed", min: 1, max: 50, step: 1, value: seed, digits: 0 };
  const input = narrowed(slider(row, seeds, change("seed")));
  /** @type {HTMLElement} */ (input.nextSibling).style.minWidth = "1.4em";
  const counts = { 1: "1", 2: "2", 3: "3", 4: "4" };
  choice(row, { label: "completions", options: counts, value: completions }, change("completions"));
  return player;
}

// Over the picture: a line below what is given, circles, and a frame around the pixel that is told of.
function marks(/** @type {SVGSVGElement} */ svg, /** @type {State} */ { size: [, width], given }) {
  const orange = { stroke: "var(--orange)", "stroke-width": 2, "stroke-dasharray": "6 4", "pointer-events": "none" };
  draw(svg, "line", { x1: 0, x2: CELL * width, y1: CELL * given, y2: CELL * given, ...orange });
  const white = { fill: "var(--blue)", stroke: "white", "stroke-width": 1.5, "pointer-events": "none" };
  const eyes = Array.from({ length: EYES }, () => draw(svg, "circle", white));
  const edge = { fill: "none", stroke: "var(--orange)", "stroke-width": 3, "pointer-events": "none" };
  const frame = draw(svg, "rect", { width: CELL, height: CELL, ...edge });
  return (/** @type {{ index: number, seen: number[][] } | null} */ shown) => {
    frame.style.visibility = shown ? "visible" : "hidden";
    if (shown) place(frame, { x: CELL * (shown.index % width), y: CELL * Math.floor(shown.index / width) });
    eyes.forEach((eye, n) => {
      const [at, weight] = shown?.seen[n] ?? [0, 0],
        i = at - 1; // place 0 is the start sign, and no pixel
      if (shown)
        place(eye, {
          cx: CELL * ((i % width) + 0.5),
          cy: CELL * (Math.floor(i / width) + 0.5),
          r: Math.min(10, 13 * Math.sqrt(weight)),
          "data-place": at,
          "data-weight": weight,
        });
      eye.style.display = at > 0 && weight > 0.01 ? "" : "none";
    });
  };
}

// The completions, small, each a button. `choose(n)`. Returns a function that shows so many and colours them.
function thumbnails(
  panels,
  /** @type {State} */ state,
  choose,
  /** @type {(n: number, i: number) => string} */ colour,
) {
  const [height, width] = state.size;
  const sheet = add(panels, "div", {
    role: "group",
    "aria-label": "which completion",
    class: "d2lmini-maps",
    style: "flex: 1 1 4.3rem; max-width: 4.6rem",
  });
  const thumb = (_, /** @type {number} */ n) => {
    const node = button(sheet, "", () => choose(n), { "aria-label": `completion ${n + 1}` });
    const svg = draw(node, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.style.cssText = "width: 50px; max-width: 100%";
    return { node, show: pixelRects(svg, [height, width], 1) };
  };
  let thumbs = /** @type {ReturnType<typeof thumb>[]} */ ([]);
  return () => {
    if (thumbs.length !== state.walks.length) {
      sheet.replaceChildren();
      thumbs = state.walks.map(thumb);
      const nodes = thumbs.map(({ node }) => node);
      rove(nodes, { entry: state.chosen });
    }
    thumbs.forEach(({ node, show }, n) => {
      place(node, { "aria-pressed": n === state.chosen });
      for (let i = 0; i < height * width; i++) show(i, colour(n, i));
    });
  };
}

// The probability of each grey value, and the one that was drawn.
function bars(/** @type {Element} */ panels, /** @type {number[]} */ levels) {
  const box = add(panels, "figure"),
    wide = 24 * levels.length,
    label = "the probability of each grey value";
  const { svg } = panel(box, { width: wide, height: 140, x: [0, 1], y: [0, 1], label });
  const lines = levels.map((level, k) => {
    const square = { x: 24 * k + 3, y: FLOOR + 6, width: 18, height: 18, fill: greyOf(level), stroke: "#8888" };
    draw(svg, "rect", square);
    return {
      bar: draw(svg, "rect", { x: 24 * k + 3, width: 18 }),
      number: draw(svg, "text", { x: Math.min(wide - 20, Math.max(20, 24 * k + 12)), "text-anchor": "middle" }),
    };
  });
  draw(svg, "line", { x1: 0, x2: wide, y1: FLOOR, y2: FLOOR, stroke: "#8888" });
  add(box, "figcaption", {}, "what it was drawn from; orange: the grey drawn");
  return (/** @type {{ shares: ArrayLike<number>, value: number } | null} */ shown) => {
    box.style.visibility = shown ? "visible" : "hidden";
    if (!shown) return;
    const { shares, value } = shown;
    lines.forEach(({ bar, number }, k) => {
      const top = FLOOR - 90 * shares[k];
      place(bar, { y: top, height: FLOOR - top, fill: k === value ? "var(--orange)" : "var(--blue)" });
      place(bar, { "data-probability": shares[k] });
      place(number, { y: top - 5 });
      number.textContent = k === value ? shares[k].toFixed(2) : "";
    });
  };
}

// What is shown of the chosen completion: a pixel, what it was drawn from, and where the model looked; null: nothing.
function shownOf(/** @type {State} */ { size, given, walks, chosen, hovered, stayed }) {
  const first = given * size[1],
    { values, probabilities, looks } = walks[chosen],
    index = shownPixel([hovered, stayed], first, values.length),
    n = index - first;
  return n < 0 ? null : { index, value: values[n], shares: probabilities[n], seen: strongest(looks[n]) };
}

/** @type {(state: State, shown: NonNullable<ReturnType<typeof shownOf>>) => string} */
function tell({ levels, size: [, width], chosen }, { index, value, shares, seen }) {
  const percent = (/** @type {number} */ k) => `${Math.round(100 * levels[k])} %`,
    where = (/** @type {number} */ i) => `row ${Math.floor(i / width) + 1}, column ${(i % width) + 1}`,
    best = levels.reduce((most, _, k) => (shares[k] > shares[most] ? k : most), 0);
  const most = seen.slice(0, 2).map(([at, w]) => `${at ? where(at - 1) : "the start sign"} (${w.toFixed(2)})`);
  return (
    `Completion ${chosen + 1}, ${where(index)}: ${percent(value)} of white, drawn with probability ` +
    `${shares[value].toFixed(2)}` +
    (shares[best] > shares[value] ? `; likelier: ${percent(best)}, with ${shares[best].toFixed(2)}. ` : ". ") +
    `It looks most at ${most.join(" and ")}.`
  );
}

function completion(model, /** @type {HTMLElement} */ body) {
  const state = /** @type {State} */ (Object.fromEntries(GIVEN.map((key) => [key, model.get(key)]))),
    { names, levels, size } = Object.assign(state, { walks: [], chosen: 0, hovered: null, stayed: null }),
    [height, width] = size,
    first = state.given * width,
    steps = height * width - first;
  const pictures = model.get("pictures").map((text) => Array.from(unpack(text)).slice(0, first)),
    picture = () => pictures[state.picture] ?? Array(first).fill(0);
  const set = (key, value) => {
    state[key] = value;
    keep(model, key, value);
  };
  const shade = (/** @type {number} */ k) => levels[k],
    still = matchMedia("(prefers-reduced-motion: reduce)");
  const { asked, stop, busy } = newestQuestion(body),
    weights = model.get("weights");

  const drawing = controlRow(body),
    setting = controlRow(body),
    panels = add(body, "div", { class: "d2lmini-panels" });
  const options = Object.fromEntries([...names.entries(), [DRAWN, "your drawing"]]);
  const picking = choice(drawing, { label: "image", options, value: state.picture }, (value) => {
    set("picture", value);
    grid.set(picture());
    start();
  });
  const easel = add(panels, "figure"),
    label = "the picture: arrow keys move, Space paints in the upper half";
  const grid = paintingGrid(easel, { label, size, rows: state.given, unit: CELL, shade }, { painted, pointed });
  place(easel, { style: "flex: 2 1 11.5rem; max-width: 17.5rem" });
  add(easel, "figcaption", {}, "paint above the line; circles: where it looked for the pixel in the frame");
  const hatch = stripes(grid.svg),
    paintMarks = marks(grid.svg, state);
  paintingTools(drawing, grid, { palette: levels.map((_, k) => k), shade, painted });

  const change = (key) => (value) => {
    set(key, Number(value));
    start();
  };
  const player = settings(setting, state, change, () => (busy() ? halt() : start()));
  narrowed(picking, "8rem");

  const colour = (/** @type {number} */ n, /** @type {number} */ i, nothing = "transparent") => {
    const k = i < first ? grid.values[i] : state.walks[n].values[i - first];
    return k === undefined ? nothing : greyOf(levels[k]);
  };
  const choose = (/** @type {number} */ n) => {
    state.chosen = n;
    paint();
  };
  const paintThumbs = thumbnails(panels, state, choose, colour),
    paintBars = bars(panels, levels);
  const note = add(body, "div", { class: "d2lmini-note", style: "min-height: 3em" });
  const say = announcer(body);
  runLine(body, weights);

  function painted(/** @type {boolean} */ done) {
    turnToDrawing(picking, state, set);
    if (done) start();
    else if (busy() || state.walks[0]?.values.length) forget();
  }

  function pointed(/** @type {number | null} */ index, /** @type {boolean} */ stays) {
    const written = index !== null && index >= first ? index : null;
    state.hovered = written;
    if (stays) state.stayed = written;
    paint();
  }

  // What was written is of another upper half.
  function forget() {
    stop();
    say("");
    state.walks = Array.from({ length: state.completions }, () => ({ values: [], probabilities: [], looks: [] }));
    state.hovered = state.stayed = null;
    state.chosen = Math.min(state.chosen, state.walks.length - 1);
    paint();
  }

  function working(/** @type {boolean} */ yes) {
    place(body, { "aria-busy": yes });
    place(note, { "aria-live": yes ? "off" : "polite" });
    player.textContent = yes ? "stop" : "complete";
  }

  async function start() {
    const before = state.stayed;
    forget();
    state.stayed = before;
    const { walks: mine, temperature, seed, completions } = state;
    working(true);
    try {
      const options = { top: grid.values.slice(0, first), temperature, seed, completions };
      const done = await asked((of) =>
        of(weights.name, "complete", options, (step) => {
          step.values.forEach((value, n) => {
            mine[n].values.push(value);
            mine[n].probabilities.push(step.probabilities[n]);
            mine[n].looks.push(step.looks[n]);
          });
          if (!still.matches) paint();
        }),
      );
      if (!done || mine[0].values.length < steps) return;
      const each = mine.map((walk) => bitsPerPixel(walk).toFixed(2)).join(", ");
      const count = completions === 1 ? "One completion is" : `${completions} completions are`;
      say(`${count} done: ${each} bits per pixel at this temperature.`);
    } catch (error) {
      say(`The model cannot answer: ${/** @type {Error} */ (error).message}.`);
    }
    working(false);
    paint();
  }

  function halt() {
    stop();
    working(false);
    paint();
    say(`Stopped after ${state.walks[0].values.length} of ${steps} pixels.`);
  }

  function paint() {
    paintThumbs();
    for (let i = first; i < height * width; i++) grid.show(i, colour(state.chosen, i, hatch));
    const shown = shownOf(state);
    paintMarks(shown);
    paintBars(shown);
    note.textContent = shown ? tell(state, shown) : "";
  }

  grid.set(picture());
  start();
}

export default { render };
