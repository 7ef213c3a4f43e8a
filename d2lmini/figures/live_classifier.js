// A vision Transformer in the page: a garment is picked or drawn, its patches are taken out and shuffled.
import { add, button, choice, draw, keep, panel, place, rove, unpack } from "./base/index.js";
import { randomNumbers, shuffled } from "./live/filters.js";
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

const LINE = 21,
  NAME = 86,
  BAR = 190;

function render({ model, el }) {
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) => classifier(model, body));
}

function classifier(model, body) {
  const names = model.get("names"),
    labels = model.get("labels"),
    [rows, columns] = model.get("grid"),
    side = model.get("side"),
    N = rows * columns,
    p = side / rows;
  const pictures = model.get("pictures").map((text) => unpack(text));
  const now = Object.fromEntries(["picture", "order", "seed", "look", "head"].map((key) => [key, model.get(key)]));
  const set = (key, value) => {
    now[key] = value;
    keep(model, key, value);
  };
  const shade = (value) => value / 255,
    palette = Array.from({ length: 21 }, (_, k) => Math.round((255 * k) / 20));
  const out = new Set(); // patches that were taken out
  const question = newestQuestion(body),
    weights = model.get("weights");
  let found = null, // what the model said, with the order it was asked in
    speak = true;

  const drawing = controlRow(body);
  const picking = choice(
    drawing,
    {
      label: "image",
      options: { ...names, [DRAWN]: "your drawing" },
      value: now.picture,
    },
    (value) => {
      set("picture", value);
      out.clear();
      grid.set(pictures[value] ?? Array(side * side).fill(0));
      ask();
    },
  );
  const panels = add(body, "div", { class: "d2lmini-panels" });
  const easel = add(panels, "figure"),
    table = add(panels, "figure"),
    bars = add(panels, "figure");
  const grid = paintingGrid(
    easel,
    { label: "the image: arrow keys move, Space paints", size: [side, side], unit: 7, shade },
    { painted },
  );
  place(easel, { style: "flex: 1 1 8.5rem; max-width: 14rem" });
  add(easel, "figcaption", {}, "paint here");
  paintingTools(drawing, grid, { palette, shade, painted });
  narrowed(picking, "8rem");
  const changing = controlRow(body);
  panels.before(drawing, changing);

  choice(
    changing,
    {
      label: "patches",
      options: {
        own: "in place",
        with: "shuffled, each with its position vector",
        without: "shuffled, position vectors stay",
      },
      value: now.order,
    },
    (value) => {
      set("order", value);
      ask();
    },
  );
  button(changing, "shuffle again", () => {
    set("seed", now.seed + 1);
    ask();
  });
  button(changing, "put all back", () => {
    out.clear();
    ask();
  });
  const blocks = Array.from({ length: model.get("blocks") }, (_, i) => [i, `block ${i + 1}`]);
  choice(
    changing,
    {
      label: "attention",
      options: new Map([["none", "hidden"], ["rollout", "rollout"], ...blocks]),
      value: now.look,
    },
    (value) => {
      set("look", value);
      paint();
    },
  );
  const heads = Object.fromEntries(Array.from({ length: model.get("heads") }, (_, i) => [i, `head ${i + 1}`]));
  const head = choice(changing, { label: "head", options: heads, value: now.head }, (value) => {
    set("head", value);
    paint();
  }).closest("label");

  // the picture as the model reads it: its patches, each a button
  const cell = 32,
    unit = cell / p;
  const label = "the patches as the model reads them";
  const sheet = panel(table, { width: cell * columns, height: cell * rows, x: [0, 1], y: [0, 1], label });
  place(table, { style: "flex: 1.3 1 10.7rem; max-width: 18rem" });
  const hatch = stripes(sheet.svg),
    pixel = pixelRects(sheet.svg, [side, side], unit);
  const patches = Array.from({ length: N }, (_, at) => {
    const where = { x: cell * (at % columns), y: cell * Math.floor(at / columns), width: cell, height: cell };
    const node = draw(sheet.svg, "g", { role: "button", style: "cursor: pointer" });
    const cover = draw(node, "rect", {
      ...where,
      fill: "#ff7a00",
      "fill-opacity": 0,
      stroke: "#888",
      "stroke-width": 0.6,
    });
    node.addEventListener("click", () => take(at));
    node.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      take(at);
    });
    return { node, cover };
  });
  rove(
    patches.map(({ node }) => node),
    {
      to(i, down, right) {
        const column = (i % columns) + right;
        return column >= 0 && column < columns ? i + columns * down + right : undefined;
      },
    },
  );
  const caption = add(table, "figcaption");

  const chart = panel(bars, {
    width: 320,
    height: LINE * labels.length + 4,
    x: [0, 1],
    y: [0, 1],
    label: "probabilities of the classes",
  });
  place(bars, { style: "flex: 1.6 1 15rem; max-width: 22rem" });
  const lines = labels.map((text, k) => {
    const y = LINE * k + 2,
      row = draw(chart.svg, "g"),
      box = { x: NAME + 6, y: y + 4, height: LINE - 8 };
    draw(row, "text", { x: NAME, y: y + 15, "text-anchor": "end" }, text);
    return {
      after: draw(row, "rect", { ...box, fill: "var(--blue)", "fill-opacity": 0.8 }),
      before: draw(row, "rect", { ...box, fill: "none", stroke: "currentColor" }),
      number: draw(row, "text", { x: 316, y: y + 15, "text-anchor": "end" }),
    };
  });
  add(bars, "figcaption", {}, "filled: now; hollow: all patches, in place");
  const say = announcer(body);
  runLine(body, weights);

  function painted(done) {
    turnToDrawing(picking, now, set);
    speak = done;
    ask();
  }

  // Which patch is drawn at each place.
  const order = () => {
    const own = Array.from({ length: N }, (_, i) => i);
    return now.order === "own" ? own : shuffled(own, randomNumbers(now.seed));
  };

  function take(at) {
    const patch = order()[at];
    if (!out.delete(patch)) out.add(patch);
    ask();
  }

  async function ask() {
    const sequence = order(),
      kept = sequence.filter((patch) => !out.has(patch)),
      places = sequence.map((_, patch) => sequence.indexOf(patch));
    const changed = out.size > 0 || now.order !== "own";
    place(body, { "aria-busy": true });
    showPatches(sequence);
    try {
      const answer = await question.asked((of) =>
        of(weights.name, "classify", {
          pixels: grid.values.map(shade),
          kept: changed ? kept : null,
          places: now.order === "without" ? places : null,
        }),
      );
      if (!answer) return; // a newer question came
      found = { ...answer, kept, sequence, changed };
      paint();
      if (speak) tell();
    } catch (error) {
      say(`The model cannot answer: ${error.message}.`);
    }
    speak = true;
    place(body, { "aria-busy": false });
  }

  function showPatches(sequence) {
    sequence.forEach((patch, at) => {
      for (let y = 0; y < p; y++)
        for (let x = 0; x < p; x++) {
          const [from, to] = [patch, at].map((i) => (Math.floor(i / columns) * p + y) * side + (i % columns) * p + x);
          pixel(to, out.has(patch) ? "transparent" : greyOf(shade(grid.values[from])));
        }
      const where = (i) => `row ${Math.floor(i / columns) + 1}, column ${(i % columns) + 1}`;
      place(patches[at].node, {
        "aria-label": `patch in ${where(at)}${patch === at ? "" : `, from ${where(patch)}`}`,
        "aria-pressed": !out.has(patch),
        "data-patch": patch,
      });
      if (out.has(patch)) place(patches[at].cover, { fill: hatch, "fill-opacity": 1 });
    });
  }

  // What the model said: shades on the patches, and bars.
  function paint() {
    if (!found) return;
    const { kept, sequence, attention, rollout, probabilities, whole, changed } = found;
    const row = now.look === "rollout" ? rollout : attention[now.look]?.[now.head];
    const weights = new Map(kept.map((patch, i) => [patch, row ? row[i + 1] : 0]));
    const most = Math.max(...weights.values(), 1e-9);
    sequence.forEach((patch, at) => {
      if (out.has(patch)) return;
      const share = (0.75 * (weights.get(patch) ?? 0)) / most;
      place(patches[at].cover, { fill: "#ff7a00", "fill-opacity": share.toFixed(3) });
    });
    head.style.visibility = attention[now.look] ? "visible" : "hidden";
    caption.textContent =
      `what it reads: ${kept.length} of ${N} patches` +
      (row ? `; orange: ${now.look === "rollout" ? "rollout" : "the class token's attention"}` : "");
    lines.forEach(({ before, after, number }, k) => {
      place(after, { width: (BAR * probabilities[k]).toFixed(2), "data-probability": probabilities[k] });
      place(before, { width: (BAR * whole[k]).toFixed(2), visibility: changed ? "visible" : "hidden" });
      number.textContent = probabilities[k].toFixed(2);
    });
  }

  function tell() {
    const { kept, probabilities, whole, changed } = found;
    const best = (shares) => {
      const k = shares.indexOf(Math.max(...shares));
      return `${labels[k]}, with probability ${shares[k].toFixed(2)}`;
    };
    const empty = kept.length === 0 || grid.values.every((value) => value === 0);
    const moved = Math.max(...probabilities.map((share, k) => Math.abs(share - whole[k])));
    say(
      `${empty ? "The model sees nothing, and must name a class: " : "The model says: "}${best(probabilities)}.` +
        (changed
          ? ` With all patches in place: ${best(whole)}. The largest move of a probability is ${moved.toFixed(2)}.`
          : ""),
    );
  }

  grid.set(pictures[now.picture] ?? Array(side * side).fill(0));
  ask();
}

export default { render };
