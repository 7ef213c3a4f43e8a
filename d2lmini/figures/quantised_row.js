// A row of weights as bars, the levels of its groups, and the error of each weight.
import { add, choice, draw, keep, panel, place, scroller, slider, tick } from "./base/index.js";

const LEFT = 44,
  WIDTH = 340,
  TALL = 190,
  LOW = 74;

function render({ model, el }) {
  const names = model.get("names"),
    rows = model.get("rows"),
    n = rows[0].length;
  const now = Object.fromEntries(["row", "bits", "group", "minimum", "weight"].map((key) => [key, model.get(key)]));
  const change =
    (key, to = Number) =>
    (value) => {
      now[key] = to(value);
      keep(model, key, now[key]);
      paint();
    };
  const groups = new Map([
    [0, `the whole row (${n})`],
    [32, "groups of 32"],
    [16, "groups of 16"],
  ]);

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  if (rows.length > 1) choice(choosing, { label: "row", options: { ...names }, value: now.row }, change("row"));
  const controls = add(el, "div", { class: "d2lmini-controls" });
  slider(controls, { label: "bits", min: 2, max: 8, step: 1, value: now.bits, digits: 0 }, change("bits"));
  choice(controls, { label: "one scale for", options: groups, value: now.group }, change("group"));
  tick(controls, { label: "with a minimum", value: now.minimum }, change("minimum", Boolean));

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const bar = (WIDTH - LEFT - 4) / n,
    x = (i) => LEFT + i * bar;
  const make = (height, label) => panel(figure, { width: WIDTH, height, x: [0, 1], y: [0, 1], label });
  const above = make(TALL, "weights as bars, their levels as lines, and the level that each goes to"),
    below = make(LOW, "the error of each weight");
  below.svg.style.marginTop = "6px";
  const grid = draw(above.svg, "g", { stroke: "currentColor" });
  const mark = [above, below].map(({ svg, height }) =>
    draw(svg, "rect", { y: 0, height, width: Math.max(bar, 3), fill: "currentColor", "fill-opacity": 0.18 }),
  );
  const bars = rows[0].map((_, i) =>
    draw(above.svg, "rect", { x: x(i) + bar * 0.2, width: bar * 0.6, fill: "var(--blue)" }),
  );
  const dots = rows[0].map((_, i) =>
    draw(above.svg, "rect", { x: x(i), width: bar, height: 2.6, fill: "var(--orange)" }),
  );
  const errors = rows[0].map((_, i) =>
    draw(below.svg, "rect", { x: x(i) + bar * 0.15, width: bar * 0.7, fill: "var(--orange)" }),
  );
  const label = ({ svg }, y, text = "") => draw(svg, "text", { x: LEFT - 4, y, "text-anchor": "end" }, text);
  const ends = [label(above, 14), label(above, TALL - 5)];
  label(below, 15, "error");
  const limit = label(below, 32);
  add(
    figure,
    "figcaption",
    {},
    "above: a weight is a blue bar, its level the orange mark, and lines are the levels (a band where they lie close)" +
      "; below: the size of each error, up to half a step of the whole row",
  );

  const side = add(panels, "div");
  slider(side, { label: "weight", min: 0, max: n - 1, step: 1, value: now.weight, digits: 0 }, change("weight"));
  const follow = side.querySelector("input");
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite", style: "min-height: 4.4em" });
  const sheet = add(scroller(side), "table");
  const caption = add(sheet, "caption");
  const head = add(add(sheet, "thead"), "tr");
  for (const name of ["one scale for", "mean squared error", "bytes a weight"]) add(head, "th", { scope: "col" }, name);
  const body = add(sheet, "tbody");
  const lines = [...groups].map(([size, name]) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return { size, row, cells: [add(row, "td"), add(row, "td")] };
  });

  // As `quantised` of quantised_row.py: a part for each group.
  function quantised(group) {
    const weights = rows[now.row],
      size = group || n,
      parts = [],
      values = [];
    for (let start = 0; start < n; start += size) {
      const part = weights.slice(start, start + size),
        low = now.minimum ? Math.min(...part) : 0;
      const step = now.minimum
        ? (Math.max(...part) - low) / (2 ** now.bits - 1)
        : Math.max(...part.map(Math.abs)) / (2 ** (now.bits - 1) - 1);
      const codes = part.map((w) => (step ? Math.floor((w - low) / step + 0.5) : 0));
      parts.push({ start, size, low, step, codes });
      values.push(...codes.map((code) => low + step * code));
    }
    const missed = values.map((value, i) => Math.abs(value - weights[i]));
    return { parts, values, missed, error: missed.reduce((sum, e) => sum + e * e, 0) / n };
  }

  function levels({ start, size, low, step }, y) {
    const most = 2 ** (now.bits - 1) - 1,
      [first, last] = now.minimum ? [0, 2 ** now.bits - 1] : [-most, most];
    const [left, right, top, bottom] = [x(start) + 1, x(start + size) - 1, y(low + step * last), y(low + step * first)];
    if ((bottom - top) / (last - first) < 2.2)
      draw(grid, "rect", { x: left, y: top, width: right - left, height: bottom - top, stroke: "none", opacity: 0.1 });
    else
      for (let code = first; code <= last; code++) {
        const at = y(low + step * code);
        draw(grid, "path", { d: `M${left} ${at}H${right}`, opacity: 0.35 });
      }
  }

  function paint() {
    const weights = rows[now.row],
      found = quantised(now.group),
      whole = quantised(0).parts[0].step / 2;
    const most = Math.max(...weights.map(Math.abs)) * 1.06,
      y = (value) => ((most - value) / (2 * most)) * TALL;
    grid.replaceChildren();
    place(grid, { fill: "currentColor" });
    for (const part of found.parts) levels(part, y);
    weights.forEach((weight, i) => {
      place(bars[i], { y: Math.min(y(weight), y(0)), height: Math.max(0.6, Math.abs(y(weight) - y(0))) });
      place(dots[i], { y: y(found.values[i]) - 1.3 });
      const tall = whole ? (found.missed[i] / whole) * (LOW - 6) : 0;
      place(errors[i], { y: LOW - tall, height: tall });
    });
    for (const node of mark) place(node, { x: x(now.weight) + bar / 2 - Math.max(bar, 3) / 2 });
    ends[0].textContent = `+${most.toFixed(2)}`;
    ends[1].textContent = `−${most.toFixed(2)}`;
    limit.textContent = whole.toFixed(3);

    const i = now.weight,
      part = found.parts.find(({ start, size }) => i < start + size),
      code = part.codes[i - part.start];
    const how = now.minimum ? `${part.low.toFixed(4)} + ${code}` : `${code}`;
    note.textContent =
      `Weight ${i} is ${weights[i].toFixed(4)}. It gets the code ${code}: ${how} × ${part.step.toFixed(4)} = ` +
      `${found.values[i].toFixed(4)}, an error of ${found.missed[i].toFixed(4)}. ` +
      `${new Set(part.codes).size} of ${2 ** now.bits - (now.minimum ? 0 : 1)} levels of its ` +
      `${now.group ? "group" : "row"} are in use.`;
    caption.textContent = `${now.bits} bits, ${now.minimum ? "with a minimum" : "symmetric"}; float32 takes 4 bytes`;
    for (const { size, row, cells } of lines) {
      cells[0].textContent = quantised(size).error.toPrecision(3).replace("-", "−");
      cells[1].textContent = (now.bits / 8 + (now.minimum ? 4 : 2) / (size || n)).toFixed(3);
      row.classList.toggle("chosen", size === now.group);
    }
    place(figure, { "data-error": found.error });
  }

  // Under the mouse, or where a finger taps: the weight there.
  for (const { svg } of [above, below]) {
    const point = (event) => {
      const box = svg.getBoundingClientRect(),
        at = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / bar;
      follow.value = Math.min(n - 1, Math.max(0, Math.floor(at)));
      follow.dispatchEvent(new Event("input"));
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
  }
  paint();
}

export default { render };
