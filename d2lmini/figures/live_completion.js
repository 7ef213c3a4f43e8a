// ImageGPT in the page: it finishes a picture whose upper half is chosen or painted, several times, pixel by pixel.
import { add, button, choice, draw, keep, panel, place, rove, slider, unpack } from "./base/index.js";
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

const EYES = 8; // circles: of the pixels that the model looks at the strongest

function render({ model, el }) {
  withModel(el, { weights: model.get("weights"), recorded: model.get("recorded") }, (body) => completion(model, body));
}

function completion(model, body) {
  const names = model.get("names"),
    levels = model.get("levels"),
    [height, width] = model.get("size"),
    first = model.get("given") * width,
    steps = height * width - first,
    K = levels.length,
    cell = 20;
  const pictures = model.get("pictures").map((text) => Array.from(unpack(text)).slice(0, first));
  const now = Object.fromEntries(["picture", "temperature", "seed", "completions"].map((key) => [key, model.get(key)]));
  const set = (key, value) => {
    now[key] = value;
    keep(model, key, value);
  };
  const shade = (k) => levels[k],
    percent = (k) => `${Math.round(100 * levels[k])} %`,
    still = matchMedia("(prefers-reduced-motion: reduce)");
  const { asked, stop, busy } = newestQuestion(body),
    weights = model.get("weights");
  let walks = [], // of each completion {values, probabilities, looks}, pixel by pixel
    chosen = 0,
    hovered = null,
    stayed = null; // the pixel that was clicked, or reached by keyboard

  const drawing = controlRow(body),
    setting = controlRow(body),
    panels = add(body, "div", { class: "d2lmini-panels" });
  const options = { ...names, [DRAWN]: "your drawing" };
  const picking = choice(drawing, { label: "image", options, value: now.picture }, (value) => {
    set("picture", value);
    grid.set(pictures[value] ?? Array(first).fill(0));
    start();
  });
  const easel = add(panels, "figure");
  const grid = paintingGrid(
    easel,
    {
      label: "the picture: arrow keys move, Space paints in the upper half",
      size: [height, width],
      rows: first / width,
      unit: cell,
      shade,
    },
    { painted, pointed },
  );
  place(easel, { style: "flex: 2 1 11.5rem; max-width: 17.5rem" });
  add(easel, "figcaption", {}, "paint above the line; circles: where it looked for the pixel in the frame");
  const hatch = stripes(grid.svg);
  draw(grid.svg, "line", {
    x1: 0,
    x2: cell * width,
    y1: (cell * first) / width,
    y2: (cell * first) / width,
    stroke: "var(--orange)",
    "stroke-width": 2,
    "stroke-dasharray": "6 4",
    "pointer-events": "none",
  });
  const eyes = Array.from({ length: EYES }, () =>
    draw(grid.svg, "circle", { fill: "var(--blue)", stroke: "white", "stroke-width": 1.5, "pointer-events": "none" }),
  );
  const frame = draw(grid.svg, "rect", {
    width: cell,
    height: cell,
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 3,
    "pointer-events": "none",
  });
  const palette = Array.from({ length: K }, (_, k) => k);
  paintingTools(drawing, grid, { palette, shade, painted });

  const change = (key) => (value) => {
    set(key, Number(value));
    start();
  };
  const heat = { label: "temperature", min: 0, max: 2, step: 0.05, value: now.temperature };
  narrowed(slider(setting, heat, change("temperature")));
  const player = button(setting, "complete", () => (busy() ? halt() : start()));
  const seeds = { label: "seed", min: 1, max: 50, step: 1, value: now.seed, digits: 0 };
  const seed = narrowed(slider(setting, seeds, change("seed")));
  seed.nextSibling.style.minWidth = "1.4em";
  const counts = { 1: "1", 2: "2", 3: "3", 4: "4" };
  choice(setting, { label: "completions", options: counts, value: now.completions }, change("completions"));

  narrowed(picking, "8rem");
  const sheet = add(panels, "div", {
    role: "group",
    "aria-label": "which completion",
    class: "d2lmini-maps",
    style: "flex: 1 1 4.3rem; max-width: 4.6rem",
  });
  let thumbs = [];

  const box = add(panels, "figure"),
    wide = 24 * K,
    floor = 110;
  const label = "the probability of each grey value";
  const bars = panel(box, { width: wide, height: 140, x: [0, 1], y: [0, 1], label });
  const lines = levels.map((level, k) => {
    const swatch = { x: 24 * k + 3, y: floor + 6, width: 18, height: 18, fill: greyOf(level), stroke: "#8888" };
    draw(bars.svg, "rect", swatch);
    return {
      bar: draw(bars.svg, "rect", { x: 24 * k + 3, width: 18 }),
      number: draw(bars.svg, "text", { x: Math.min(wide - 20, Math.max(20, 24 * k + 12)), "text-anchor": "middle" }),
    };
  });
  draw(bars.svg, "line", { x1: 0, x2: wide, y1: floor, y2: floor, stroke: "#8888" });
  add(box, "figcaption", {}, "what it was drawn from; orange: the grey drawn");
  const note = add(body, "div", { class: "d2lmini-note", style: "min-height: 3em" });
  const say = announcer(body);
  runLine(body, weights);

  function painted(done) {
    turnToDrawing(picking, now, set);
    if (done) start();
    else if (busy() || walks[0]?.values.length) forget();
  }

  function pointed(index, stays) {
    const written = index !== null && index >= first ? index : null;
    hovered = written;
    if (stays) stayed = written;
    paint();
  }

  // What was written is of another upper half.
  function forget() {
    stop();
    say("");
    walks = Array.from({ length: now.completions }, () => ({ values: [], probabilities: [], looks: [] }));
    hovered = stayed = null;
    chosen = Math.min(chosen, walks.length - 1);
    build();
  }

  function working(yes) {
    place(body, { "aria-busy": yes });
    note.setAttribute("aria-live", yes ? "off" : "polite");
    player.textContent = yes ? "stop" : "complete";
  }

  async function start() {
    const before = stayed;
    forget();
    stayed = before;
    const mine = walks;
    working(true);
    const { temperature, seed, completions } = now;
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
      const each = mine.map(bits).join(", ");
      const count = completions === 1 ? "One completion is" : `${completions} completions are`;
      say(`${count} done: ${each} bits per pixel at this temperature.`);
    } catch (error) {
      say(`The model cannot answer: ${error.message}.`);
    }
    working(false);
    paint();
  }

  function halt() {
    stop();
    working(false);
    paint();
    say(`Stopped after ${walks[0].values.length} of ${steps} pixels.`);
  }

  const bits = ({ values, probabilities }) => {
    const sum = values.reduce((total, value, i) => total - Math.log2(probabilities[i][value]), 0);
    return (sum / values.length + 0).toFixed(2);
  };

  function build() {
    if (thumbs.length !== walks.length) {
      sheet.replaceChildren();
      thumbs = walks.map((_, n) => thumb(n));
      rove(
        thumbs.map(({ node }) => node),
        { entry: chosen },
      );
    }
    paint();
  }

  function thumb(n) {
    const choose = () => {
      chosen = n;
      paint();
    };
    const node = button(sheet, "", choose, { "aria-label": `completion ${n + 1}` });
    const svg = draw(node, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.style.cssText = "width: 50px; max-width: 100%";
    return { node, show: pixelRects(svg, [height, width], 1) };
  }

  function paint() {
    thumbs.forEach(({ node, show }, n) => {
      place(node, { "aria-pressed": n === chosen });
      for (let i = 0; i < height * width; i++) show(i, colour(n, i, "transparent"));
    });
    for (let i = first; i < height * width; i++) grid.show(i, colour(chosen, i, hatch));
    const { values, probabilities, looks } = walks[chosen];
    const index = [hovered, stayed, first + values.length - 1].find((i) => i !== null && i - first < values.length);
    const there = index >= first;
    for (const node of [frame, box]) node.style.visibility = there ? "visible" : "hidden";
    if (!there) {
      for (const eye of eyes) eye.style.display = "none";
      note.textContent = "";
      return;
    }
    place(frame, { x: cell * (index % width), y: cell * Math.floor(index / width) });
    const value = values[index - first],
      shares = probabilities[index - first],
      look = looks[index - first];
    const seen = Array.from(look, (weight, at) => [at, weight]).sort((a, b) => b[1] - a[1]);
    eyes.forEach((eye, n) => {
      const [at, weight] = seen[n] ?? [0, 0];
      const i = at - 1; // place 0 is the start sign, and no pixel
      place(eye, {
        cx: cell * ((i % width) + 0.5),
        cy: cell * (Math.floor(i / width) + 0.5),
        r: Math.min(10, 13 * Math.sqrt(weight)),
        "data-place": at,
        "data-weight": weight,
      });
      eye.style.display = at > 0 && weight > 0.01 ? "" : "none";
    });
    lines.forEach(({ bar, number }, k) => {
      const top = floor - 90 * shares[k];
      place(bar, { y: top, height: floor - top, fill: k === value ? "var(--orange)" : "var(--blue)" });
      place(bar, { "data-probability": shares[k] });
      place(number, { y: top - 5 });
      number.textContent = k === value ? shares[k].toFixed(2) : "";
    });
    const best = shares.indexOf(Math.max(...shares));
    const where = (i) => `row ${Math.floor(i / width) + 1}, column ${(i % width) + 1}`;
    const most = seen.slice(0, 2).map(([at, w]) => `${at ? where(at - 1) : "the start sign"} (${w.toFixed(2)})`);
    note.textContent =
      `Completion ${chosen + 1}, ${where(index)}: ${percent(value)} of white, drawn with probability ` +
      `${shares[value].toFixed(2)}` +
      (shares[best] > shares[value] ? `; likelier: ${percent(best)}, with ${shares[best].toFixed(2)}. ` : ". ") +
      `It looks most at ${most.join(" and ")}.`;
  }

  function colour(n, i, nothing) {
    const k = i < first ? grid.values[i] : walks[n].values[i - first];
    return k === undefined ? nothing : greyOf(levels[k]);
  }

  grid.set(pictures[now.picture] ?? Array(first).fill(0));
  start();
}

export default { render };
