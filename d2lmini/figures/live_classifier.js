// A vision Transformer in the page: a garment is picked or drawn, its patches are taken out and shuffled.
import { add, button, choice, draw, keep, panel, place, rove, unpack } from "./base/index.js";
import { looks, pixelsOf, sequenceOf, verdict } from "./numbers/live_classifier.js";
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
 * @typedef {{ names: string[], labels: string[], grid: number[], side: number, blocks: number, heads: number,
 *   picture: string, order: string, seed: number, look: string, head: string, out: Set<number> }} State `out`: patches
 *   that were taken out
 * @typedef {{ probabilities: number[], whole: number[], attention: number[][][], rollout: number[], kept: number[],
 *   sequence: number[], changed: boolean }} Found what the model said, with the order it was asked in
 */

const LINE = 21,
  NAME = 86,
  BAR = 190,
  CELL = 32; // of a patch
const GIVEN = ["names", "labels", "grid", "side", "blocks", "heads", "picture", "order", "seed", "look", "head"];
const ORDERS = {
  own: "in place",
  with: "shuffled, each with its position vector",
  without: "shuffled, position vectors stay",
};
const shade = (/** @type {number} */ value) => value / 255;
const counted = (word, n) =>
  Array.from({ length: n }, (_, i) => /** @type {const} */ ([String(i), `${word} ${i + 1}`]));
const rowOf = (/** @type {Found} */ { rollout, attention }, /** @type {State} */ { look, head }) =>
  look === "rollout" ? rollout : attention[look]?.[head];

function render({ model, el }) {
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) => classifier(model, body));
}

// What is done to the patches and what is shown of them. Returns a function that shows the choice of a head, or not.
function changes(row, /** @type {State} */ state, set, { ask, paint }) {
  choice(row, { label: "patches", options: ORDERS, value: state.order }, (value) => {
    set("order", value);
    ask();
  });
  button(row, "shuffle again", () => {
    set("seed", state.seed + 1);
    ask();
  });
  button(row, "put all back", () => {
    state.out.clear();
    ask();
  });
  const seen = new Map([["none", "hidden"], ["rollout", "rollout"], ...counted("block", state.blocks)]);
  choice(row, { label: "attention", options: seen, value: state.look }, (value) => {
    set("look", value);
    paint();
  });
  const heads = { label: "head", options: Object.fromEntries(counted("head", state.heads)), value: state.head };
  const head = choice(row, heads, (value) => {
    set("head", value);
    paint();
  });
  const line = /** @type {HTMLElement} */ (head.closest("label"));
  return (/** @type {boolean} */ on) => {
    line.style.visibility = on ? "visible" : "hidden";
  };
}

// The image as the model reads it: its patches, each a button.
function patchSheet(
  /** @type {Element} */ figure,
  /** @type {State} */ state,
  /** @type {(at: number) => void} */ take,
) {
  const { grid, side, out } = state,
    [rows, columns] = grid,
    N = rows * columns,
    p = side / rows;
  const where = (/** @type {number} */ i) => `row ${Math.floor(i / columns) + 1}, column ${(i % columns) + 1}`;
  const label = "the patches as the model reads them";
  const { svg } = panel(figure, { width: CELL * columns, height: CELL * rows, x: [0, 1], y: [0, 1], label });
  place(figure, { style: "flex: 1.3 1 10.7rem; max-width: 18rem" });
  const hatch = stripes(svg),
    pixel = pixelRects(svg, [side, side], CELL / p);
  const patches = Array.from({ length: N }, (_, at) => {
    const square = { x: CELL * (at % columns), y: CELL * Math.floor(at / columns), width: CELL, height: CELL };
    const node = draw(svg, "g", { role: "button", style: "cursor: pointer" });
    const orange = { fill: "#ff7a00", "fill-opacity": 0, stroke: "#888", "stroke-width": 0.6 };
    node.addEventListener("click", () => take(at));
    node.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      take(at);
    });
    return { node, cover: draw(node, "rect", { ...square, ...orange }) };
  });
  const nodes = patches.map(({ node }) => node);
  rove(nodes, {
    to(i, down, right) {
      const column = (i % columns) + right;
      return column >= 0 && column < columns ? i + columns * down + right : -1;
    },
  });
  const caption = add(figure, "figcaption");
  return {
    // The patches at their places.
    show(/** @type {number[]} */ sequence, /** @type {number[]} */ values) {
      sequence.forEach((patch, at) => {
        const [from, to] = [patch, at].map((i) => pixelsOf(i, columns, p));
        for (const [n, i] of to.entries()) pixel(i, out.has(patch) ? "transparent" : greyOf(shade(values[from[n]])));
        place(patches[at].node, {
          "aria-label": `patch in ${where(at)}${patch === at ? "" : `, from ${where(patch)}`}`,
          "aria-pressed": !out.has(patch),
          "data-patch": patch,
        });
        if (out.has(patch)) place(patches[at].cover, { fill: hatch, "fill-opacity": 1 });
      });
    },
    // Shades of what the class token looks at.
    paint(/** @type {Found} */ found) {
      const { kept, sequence } = found,
        row = rowOf(found, state);
      looks(sequence, kept, row).forEach((share, at) => {
        if (out.has(sequence[at])) return;
        place(patches[at].cover, { fill: "#ff7a00", "fill-opacity": (0.75 * share).toFixed(3) });
      });
      caption.textContent =
        `what it reads: ${kept.length} of ${N} patches` +
        (row ? `; orange: ${state.look === "rollout" ? "rollout" : "the class token's attention"}` : "");
    },
  };
}

// A bar for each class, a hollow one for that of all patches in place.
function bars(/** @type {Element} */ figure, /** @type {string[]} */ labels) {
  const { svg } = panel(figure, {
    width: 320,
    height: LINE * labels.length + 4,
    x: [0, 1],
    y: [0, 1],
    label: "probabilities of the classes",
  });
  place(figure, { style: "flex: 1.6 1 15rem; max-width: 22rem" });
  const lines = labels.map((text, k) => {
    const y = LINE * k + 2,
      row = draw(svg, "g"),
      box = { x: NAME + 6, y: y + 4, height: LINE - 8 };
    draw(row, "text", { x: NAME, y: y + 15, "text-anchor": "end" }, text);
    return {
      after: draw(row, "rect", { ...box, fill: "var(--blue)", "fill-opacity": 0.8 }),
      before: draw(row, "rect", { ...box, fill: "none", stroke: "currentColor" }),
      number: draw(row, "text", { x: 316, y: y + 15, "text-anchor": "end" }),
    };
  });
  add(figure, "figcaption", {}, "filled: now; hollow: all patches, in place");
  return (/** @type {Found} */ { probabilities, whole, changed }) =>
    lines.forEach(({ before, after, number }, k) => {
      place(after, { width: (BAR * probabilities[k]).toFixed(2), "data-probability": probabilities[k] });
      place(before, { width: (BAR * whole[k]).toFixed(2), visibility: changed ? "visible" : "hidden" });
      number.textContent = probabilities[k].toFixed(2);
    });
}

function tell(/** @type {string[]} */ labels, /** @type {Found} */ found, /** @type {boolean} */ empty) {
  const { now, before, moved } = verdict(found),
    name = ({ k, share }) => `${labels[k]}, with probability ${share.toFixed(2)}`;
  return (
    `${empty ? "The model sees nothing, and must name a class: " : "The model says: "}${name(now)}.` +
    (found.changed
      ? ` With all patches in place: ${name(before)}. The largest move of a probability is ${moved.toFixed(2)}.`
      : "")
  );
}

function classifier(model, /** @type {HTMLElement} */ body) {
  const given = Object.fromEntries(GIVEN.map((key) => [key, model.get(key)])),
    state = /** @type {State} */ ({ ...given, out: new Set() }),
    { names, labels, side, out } = state,
    weights = model.get("weights"),
    pictures = model.get("pictures").map((text) => unpack(text)),
    question = newestQuestion(body);
  const set = (key, value) => {
    state[key] = value;
    keep(model, key, value);
  };
  const picture = () => pictures[state.picture] ?? Array(side * side).fill(0);
  let found = /** @type {Found | null} */ (null),
    speak = true;

  const drawing = controlRow(body),
    changing = controlRow(body),
    panels = add(body, "div", { class: "d2lmini-panels" }),
    options = Object.fromEntries([...names.entries(), [DRAWN, "your drawing"]]);
  const picking = choice(drawing, { label: "image", options, value: state.picture }, (value) => {
    set("picture", value);
    out.clear();
    grid.set(picture());
    ask();
  });
  const [easel, table, chart] = [0, 1, 2].map(() => add(panels, "figure"));
  const label = "the image: arrow keys move, Space paints";
  const grid = paintingGrid(easel, { label, size: [side, side], unit: 7, shade }, { painted });
  place(easel, { style: "flex: 1 1 8.5rem; max-width: 14rem" });
  add(easel, "figcaption", {}, "paint here");
  const palette = Array.from({ length: 21 }, (_, k) => Math.round((255 * k) / 20));
  paintingTools(drawing, grid, { palette, shade, painted });
  narrowed(picking, "8rem");
  const showHead = changes(changing, state, set, { ask, paint });
  const sheet = patchSheet(table, state, (at) => {
    const patch = sequence()[at];
    if (!out.delete(patch)) out.add(patch);
    ask();
  });
  const paintBars = bars(chart, labels);
  const say = announcer(body);
  runLine(body, weights);

  function painted(/** @type {boolean} */ done) {
    turnToDrawing(picking, state, set);
    speak = done;
    ask();
  }

  function sequence() {
    return sequenceOf(state.grid[0] * state.grid[1], state);
  }

  async function ask() {
    const shown = sequence(),
      kept = shown.filter((patch) => !out.has(patch)),
      places = shown.map((_, patch) => shown.indexOf(patch));
    const changed = out.size > 0 || state.order !== "own";
    place(body, { "aria-busy": true });
    sheet.show(shown, grid.values);
    try {
      const answer = await question.asked((of) =>
        of(weights.name, "classify", {
          pixels: grid.values.map(shade),
          kept: changed ? kept : null,
          places: state.order === "without" ? places : null,
        }),
      );
      if (!answer) return; // a newer question came
      found = { ...answer, kept, sequence: shown, changed };
      paint();
      const empty = kept.length === 0 || grid.values.every((value) => value === 0);
      if (speak) say(tell(labels, /** @type {Found} */ (found), empty));
    } catch (error) {
      say(`The model cannot answer: ${/** @type {Error} */ (error).message}.`);
    }
    speak = true;
    place(body, { "aria-busy": false });
  }

  function paint() {
    if (!found) return;
    sheet.paint(found);
    showHead(Boolean(found.attention[state.look]));
    paintBars(found);
  }

  grid.set(picture());
  ask();
}

export default { render };
