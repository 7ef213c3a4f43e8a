// One encoder block, stage by stage: a drawing of the block, and a small shaded table whose rows are the tokens.
import { add, button, choice, draw, keep, panel, place, rove, rowName, scroller } from "./base/index.js";
import { madeFrom, makes, shownOf } from "./numbers/layer_walk.js";

// Where the stages stand in the drawing, [left, width, row from below], by where the norm is.
const whole = (row) => [8, 212, row];
const attending = (row) => [
  [8, 68, row],
  [80, 68, row],
  [152, 68, row],
  [8, 140, row + 1],
  [8, 140, row + 2],
];
const AFTER = [whole(0), ...attending(1), ...[4, 5, 6, 7, 8, 9, 10, 11].map(whole)];
const FIRST = [whole(0), whole(1), ...attending(2), ...[5, 6, 7, 8, 9, 10, 11].map(whole)];
const ROW = 28,
  BOX = 25,
  LETTERS = 8, // columns whose numbers have room; more are shades alone
  STRIP = 320,
  BOTTOM = 12 * ROW - 2;

// A line of parts: texts, where _x is an index, and lists of a stage's number and parts. Returns the nodes of stages.
function formula(parent, parts) {
  return parts.flatMap((part) => {
    if (Array.isArray(part)) {
      const node = add(parent, "span", { "data-stage": part[0] });
      return [node, ...formula(node, part.slice(1))];
    }
    part.split(/_(\w)/).forEach((text, i) => add(parent, i % 2 ? "sub" : "span", {}, text));
    return [];
  });
}

// From the top of one box to the bottom of another; past what lies between, from right side to right side.
function arrow(svg, [x0, w0, r0], [x1, w1, r1]) {
  const middle = w0 < w1 ? x0 + w0 / 2 : x1 + w1 / 2,
    top = BOTTOM - r0 * ROW - BOX,
    bottom = BOTTOM - r1 * ROW;
  const skip = r1 - r0 > 1 && w0 === w1,
    y = [BOTTOM - r0 * ROW - BOX / 2, BOTTOM - r1 * ROW - BOX / 2];
  const line = skip ? `M${x0 + w0} ${y[0]}H238V${y[1]}H${x1 + w1 + 5}` : `M${middle} ${top}V${bottom + 3}`;
  const tip = skip ? `M${x1 + w1} ${y[1]}l6 -3v6z` : `M${middle} ${bottom}l-3 4h6z`;
  const node = draw(svg, "g", { stroke: "currentColor", fill: "currentColor" });
  draw(node, "path", { d: line, fill: "none" });
  draw(node, "path", { d: tip, stroke: "none" });
  return node;
}

// A box is a button; in its right end, the rows of its numbers.
function box(svg, number, title, [x, width, row], N) {
  const y = BOTTOM - row * ROW - BOX,
    height = (BOX - 6) / N;
  const named = { role: "button", "aria-label": `stage ${number}, ${title}` };
  const node = draw(svg, "g", { ...named, style: "cursor: pointer" });
  const frame = draw(node, "rect", { x, y, width, height: BOX, rx: 5 });
  draw(node, "text", { x: x + 5, y: y + BOX / 2 + 4 }, title);
  const bars = Array.from({ length: N }, (_, t) =>
    draw(node, "rect", { x: x + width - 13, y: y + 3 + t * height, width: 9, height: 0.75 * height }),
  );
  node.addEventListener("click", () => node.focus());
  return { node, frame, bars };
}

// The block: boxes, and arrows from what each is made of; `reach` takes the number of the box that got the focus.
// Paints `state`: the stage, and the row that is followed.
function drawing(parent, stages, places, N, state, reach) {
  const size = { width: 252, height: BOTTOM + 6, x: [0, 1], y: [0, 1] };
  const { svg } = panel(parent, { ...size, label: "the stages, from the bottom up" });
  const arrows = stages.map(({ uses }, i) => uses.map(([from]) => arrow(svg, places[from - 1], places[i])));
  const boxes = stages.map(({ title }, i) => {
    const one = box(svg, i + 1, title, places[i], N);
    one.node.addEventListener("focus", () => reach(i + 1));
    return one;
  });
  rove(
    boxes.map(({ node }) => node),
    { entry: state.stage - 1, to: (i, down, right) => i - down + right },
  );

  return () => {
    const stage = stages[state.stage - 1];
    boxes.forEach(({ node, frame, bars }, i) => {
      const here = i === state.stage - 1,
        used = stage.uses.some(([n]) => n === i + 1);
      const colour = here ? "var(--orange)" : used ? "var(--blue)" : "currentColor";
      place(node, { "aria-pressed": here });
      place(frame, {
        fill: colour,
        "fill-opacity": here ? 0.25 : used ? 0.15 : 0.03,
        stroke: colour,
        "stroke-width": here ? 2.5 : used ? 2 : 1,
        "stroke-opacity": here || used ? 1 : 0.6,
      });
      bars.forEach((bar, t) => {
        const lit = here ? t === state.chosen : makes(stage, i + 1, state.chosen, t);
        place(bar, { fill: lit ? colour : "currentColor", opacity: lit ? 1 : 0.25 });
      });
    });
    const made = { color: "var(--blue)", "stroke-width": 2 },
      other = { color: "currentColor", "stroke-width": 1, opacity: 1 };
    arrows.forEach((list, i) => {
      for (const node of list) place(node, i === state.stage - 1 ? made : other);
    });
  };
}

// A row of many numbers, without letters: blue above zero, orange below.
function strip(parent, row, top) {
  const cell = add(parent, "td"),
    width = STRIP / row.length;
  cell.style.cssText = "width: 100%; padding: 0; vertical-align: middle";
  const svg = draw(cell, "svg", {
    viewBox: `0 0 ${STRIP} 20`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": `${row.length} numbers from ${Math.min(...row).toFixed(2)} to ${Math.max(...row).toFixed(2)}`,
    style: "border: 0; height: 24px; width: 100%",
  });
  row.forEach((x, i) => {
    const look = { fill: `var(${x < 0 ? "--orange" : "--blue"})`, "fill-opacity": (Math.abs(x) / top).toFixed(2) };
    draw(svg, "rect", { x: i * width, width, height: 20, ...look });
  });
}

// The numbers of a stage, a row for each token; `follow` takes the row that is pointed at.
function numberTable(parent, tokens, follow) {
  const sheet = add(scroller(parent), "table", { class: "d2lmini-close" }),
    header = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  const rows = tokens.map((token, t) => {
    const row = add(body, "tr");
    return { row, name: rowName(row, token, `follow ${token}`, () => follow(t)) };
  });
  rove(rows.map(({ name }) => name));

  function cell(parent, x, top) {
    const node = add(parent, "td", {}, x.toFixed(2).replace("-", "−")),
      share = ((45 * Math.abs(x)) / top).toFixed(0);
    node.style.background = `color-mix(in srgb, var(${x < 0 ? "--orange" : "--blue"}) ${share}%, transparent)`;
  }
  return {
    mark(chosen) {
      rows.forEach(({ row, name }, t) => {
        row.classList.toggle("chosen", t === chosen);
        place(name, { "aria-pressed": t === chosen });
      });
    },
    paint(label, numbers, top, among) {
      const wide = numbers[0].length,
        shades = !among && wide > LETTERS;
      place(sheet, { "aria-label": label });
      header.replaceChildren();
      add(header, "th", { scope: "col" }, "token");
      if (shades) add(header, "th", { scope: "col", style: "text-align: left" }, `features 1 to ${wide}`);
      else numbers[0].forEach((_, i) => add(header, "th", { scope: "col" }, among ? tokens[i] : String(i + 1)));
      rows.forEach(({ row, name }, t) => {
        row.replaceChildren(/** @type {Element} */ (name.parentNode));
        if (shades) strip(row, numbers[t], top);
        else for (const x of numbers[t]) cell(row, x, top);
      });
    },
  };
}

function render({ model, el }) {
  const tokens = model.get("tokens"),
    stages = model.get("stages"),
    heads = model.get("num_heads");
  const state = { stage: model.get("stage"), head: model.get("head"), chosen: 0 };
  const change = (key) => (value) => {
    state[key] = Number(value);
    keep(model, key, state[key]);
    paint();
  };
  const go = (step) => () => change("stage")(Math.min(stages.length, Math.max(1, state.stage + step)));

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const back = button(controls, "← previous", go(-1)),
    forth = button(controls, "next →", go(1));
  const counted = Object.fromEntries(Array.from({ length: heads }, (_, i) => [i + 1, `head ${i + 1}`]));
  if (heads > 1) choice(controls, { label: "head", options: counted, value: state.head }, change("head"));

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    places = model.get("norm_first") ? FIRST : AFTER;
  const paintDrawing = drawing(add(panels, "figure"), stages, places, tokens.length, state, (number) => {
    if (state.stage !== number) change("stage")(number);
  });
  const side = add(panels, "div");
  const formulas = add(side, "div", {
    class: "d2lmini-formulas",
    style: "font-family: 'Times New Roman', Tinos, serif; font-size: 1.05em; line-height: 1.2; margin-bottom: 6px",
  });
  const parts = model.get("equations").flatMap((line) => formula(add(formulas, "div"), line));
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const sheet = numberTable(side, tokens, (t) => {
    state.chosen = t;
    mark();
  });
  const made = add(side, "div", { class: "d2lmini-made", "aria-live": "polite" });
  add(el, "div", { class: "d2lmini-key" }, `Orange: now; blue: what it is made from. ${model.get("weights")}`);

  // What the chosen row of this stage is made from: in the drawing, and in words.
  function mark() {
    sheet.mark(state.chosen);
    paintDrawing();
    made.textContent = madeFrom(stages, state.stage, tokens[state.chosen]);
  }

  function paint() {
    const stage = stages[state.stage - 1],
      { rows, perHead, top } = shownOf(stage, state.head);
    const title = `${stage.title}${perHead && heads > 1 ? ` (head ${state.head} of ${heads})` : ""}`;
    // not disabled: a button that is would lose the focus
    place(back, { "aria-disabled": state.stage === 1 });
    place(forth, { "aria-disabled": state.stage === stages.length });
    for (const part of parts) {
      const lit = Number(part.dataset.stage) === state.stage;
      part.style.cssText = lit
        ? "background: color-mix(in srgb, var(--orange) 30%, transparent); border-radius: 3px; font-weight: 600"
        : "";
      if (lit) place(part, { "aria-current": "step" });
      else part.removeAttribute("aria-current");
    }
    note.textContent = `${state.stage} of ${stages.length}: ${title}, ${stage.shape}. ${stage.text}`;
    sheet.paint(`${title}, a row for each token`, rows, top, stage.among);
    mark();
  }
  paint();
}

export default { render };
