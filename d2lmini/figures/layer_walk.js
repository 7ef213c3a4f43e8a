// One encoder block, stage by stage: a drawing of the block, and a small shaded table whose rows are the tokens.
// Where the stages stand in the drawing, [left, width, row from below], by where the norm is.
import { add, button, choice, draw, keep, panel, place, rove, rowName, scroller } from "./base/index.js";

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

function render({ model, el }) {
  const STAGES = model.get("norm_first") ? FIRST : AFTER;
  const tokens = model.get("tokens"),
    stages = model.get("stages"),
    heads = model.get("num_heads"),
    N = tokens.length;
  const now = { stage: model.get("stage"), head: model.get("head") };
  let chosen = 0;
  const change = (key) => (value) => {
    now[key] = Number(value);
    keep(model, key, now[key]);
    paint();
  };
  const go = (step) => () => change("stage")(Math.min(stages.length, Math.max(1, now.stage + step)));

  const controls = add(el, "div", { class: "d2lmini-controls" });
  const back = button(controls, "← previous", go(-1)),
    forth = button(controls, "next →", go(1));
  const counted = Object.fromEntries(Array.from({ length: heads }, (_, i) => [i + 1, `head ${i + 1}`]));
  if (heads > 1) choice(controls, { label: "head", options: counted, value: now.head }, change("head"));

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const { svg } = panel(figure, {
    width: 252,
    height: BOTTOM + 6,
    x: [0, 1],
    y: [0, 1],
    label: "the stages, from the bottom up",
  });
  const arrows = stages.map((stage, i) => stage.uses.map(([from]) => arrow(from - 1, i)));
  const boxes = stages.map(box);
  rove(
    boxes.map(({ node }) => node),
    { entry: now.stage - 1, to: (i, down, right) => i - down + right },
  );

  const side = add(panels, "div");
  const formulas = add(side, "div", {
    class: "d2lmini-formulas",
    style: "font-family: 'Times New Roman', Tinos, serif; font-size: 1.05em; line-height: 1.2; margin-bottom: 6px",
  });
  for (const line of model.get("equations")) formula(add(formulas, "div"), line);
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const sheet = add(scroller(side), "table", { class: "d2lmini-close" }),
    header = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  const rows = tokens.map((token, t) => {
    const row = add(body, "tr"),
      name = rowName(row, token, `follow ${token}`, () => {
        chosen = t;
        mark();
      });
    return { row, name };
  });
  rove(rows.map(({ name }) => name));
  const made = add(side, "div", { class: "d2lmini-made", "aria-live": "polite" });
  add(el, "div", { class: "d2lmini-key" }, `Orange: now; blue: what it is made from. ${model.get("weights")}`);

  // A line of parts: texts, where _x is an index, and lists of a stage's number and parts.
  function formula(parent, parts) {
    for (const part of parts)
      if (Array.isArray(part)) formula(add(parent, "span", { "data-stage": part[0] }), part.slice(1));
      else part.split(/_(\w)/).forEach((text, i) => add(parent, i % 2 ? "sub" : "span", {}, text));
  }

  // From the top of one box to the bottom of another; past what lies between, from right side to right side.
  function arrow(from, to) {
    const [x0, w0, r0] = STAGES[from],
      [x1, w1, r1] = STAGES[to];
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
  function box(stage, i) {
    const [x, width, row] = STAGES[i],
      y = BOTTOM - row * ROW - BOX,
      height = (BOX - 6) / N;
    const node = draw(svg, "g", {
      role: "button",
      "aria-label": `stage ${i + 1}, ${stage.title}`,
      style: "cursor: pointer",
    });
    const frame = draw(node, "rect", { x, y, width, height: BOX, rx: 5 });
    draw(node, "text", { x: x + 5, y: y + BOX / 2 + 4 }, stage.title);
    const bars = tokens.map((_, t) =>
      draw(node, "rect", { x: x + width - 13, y: y + 3 + t * height, width: 9, height: 0.75 * height }),
    );
    node.addEventListener("click", () => node.focus());
    node.addEventListener("focus", () => {
      if (now.stage !== i + 1) change("stage")(i + 1);
    });
    return { node, frame, bars };
  }

  // What the chosen row of this stage is made from: in the drawing, and in words.
  function mark() {
    const { uses } = stages[now.stage - 1];
    rows.forEach(({ row, name }, t) => {
      row.classList.toggle("chosen", t === chosen);
      place(name, { "aria-pressed": t === chosen });
    });
    boxes.forEach(({ node, frame, bars }, i) => {
      const here = i === now.stage - 1,
        used = uses.find(([n]) => n === i + 1);
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
        const lit = here ? t === chosen : used && (used[1] === "all rows" || t === chosen);
        place(bar, { fill: lit ? colour : "currentColor", opacity: lit ? 1 : 0.25 });
      });
    });
    arrows.forEach((list, i) =>
      list.forEach((node) =>
        place(
          node,
          i === now.stage - 1
            ? { color: "var(--blue)", "stroke-width": 2 }
            : { color: "currentColor", "stroke-width": 1, opacity: 1 },
        ),
      ),
    );
    const parts = uses.map(
      ([n, which]) => `${which === "all rows" ? "all rows" : "its own row"} of ${stages[n - 1].title}`,
    );
    const meet = uses.some(([, which]) => which === "all rows");
    made.textContent = parts.length
      ? `The row of “${tokens[chosen]}” is made from ${parts.join(" and ")}: ` +
        `${meet ? "here tokens meet." : "no other row."}`
      : `The row of “${tokens[chosen]}” is what came in.`;
  }

  // A row of many numbers, without letters: blue above zero, orange below.
  const strip = (top) => (row) => {
    const cell = document.createElement("td"),
      width = STRIP / row.length;
    cell.style.cssText = "width: 100%; padding: 0; vertical-align: middle";
    const svg = draw(cell, "svg", {
      viewBox: `0 0 ${STRIP} 20`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${row.length} numbers from ${Math.min(...row).toFixed(2)} to ${Math.max(...row).toFixed(2)}`,
      style: "border: 0; height: 24px; width: 100%",
    });
    row.forEach((x, i) =>
      draw(svg, "rect", {
        x: i * width,
        width,
        height: 20,
        fill: `var(${x < 0 ? "--orange" : "--blue"})`,
        "fill-opacity": (Math.abs(x) / top).toFixed(2),
      }),
    );
    return cell;
  };

  function paint() {
    const stage = stages[now.stage - 1],
      perHead = Array.isArray(stage.numbers[0][0]);
    const numbers = perHead ? stage.numbers[now.head - 1] : stage.numbers;
    const whose = perHead && heads > 1 ? ` (head ${now.head} of ${heads})` : "";
    // not disabled: a button that is would lose the focus
    place(back, { "aria-disabled": now.stage === 1 });
    place(forth, { "aria-disabled": now.stage === stages.length });
    for (const part of formulas.querySelectorAll("[data-stage]")) {
      const lit = Number(part.dataset.stage) === now.stage;
      part.style.cssText = lit
        ? "background: color-mix(in srgb, var(--orange) 30%, transparent); border-radius: 3px; font-weight: 600"
        : "";
      place(part, lit ? { "aria-current": "step" } : {});
      if (!lit) part.removeAttribute("aria-current");
    }
    note.textContent = `${now.stage} of ${stages.length}: ${stage.title}${whose}, ${stage.shape}. ${stage.text}`;
    sheet.setAttribute("aria-label", `${stage.title}${whose}, a row for each token`);
    header.replaceChildren();
    add(header, "th", { scope: "col" }, "token");
    const wide = numbers[0].length,
      shades = !stage.among && wide > LETTERS;
    if (shades) add(header, "th", { scope: "col", style: "text-align: left" }, `features 1 to ${wide}`);
    else numbers[0].forEach((_, i) => add(header, "th", { scope: "col" }, stage.among ? tokens[i] : String(i + 1)));
    const top = Math.max(...numbers.flat().map(Math.abs), 1e-9);
    rows.forEach(({ row, name }, t) => {
      row.replaceChildren(
        name.parentNode,
        ...(shades ? [numbers[t]] : []).map(strip(top)),
        ...(shades ? [] : numbers[t]).map((x) => {
          const cell = document.createElement("td"),
            colour = x < 0 ? "--orange" : "--blue";
          cell.textContent = x.toFixed(2).replace("-", "−");
          cell.style.background =
            `color-mix(in srgb, var(${colour}) ${((45 * Math.abs(x)) / top).toFixed(0)}%, ` + `transparent)`;
          return cell;
        }),
      );
    });
    mark();
  }
  paint();
}

export default { render };
