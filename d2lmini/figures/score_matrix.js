// A small score matrix: scale, mask and temperature, and one row in detail.
import { add, draw, keep, panel, place, rove, rowName, scroller, slider, softmax, tick } from "./base/index.js";

function render({ model, el }) {
  const tokens = model.get("tokens"),
    scores = model.get("scores"),
    size = model.get("num_features"),
    N = tokens.length;
  const now = Object.fromEntries(["scaled", "causal", "valid_len", "temperature"].map((key) => [key, model.get(key)]));
  let chosen = N - 1;
  const change = (key) => (value) => {
    now[key] = value;
    keep(model, key, value);
    paint();
  };
  const controls = add(el, "div", { class: "d2lmini-controls" });
  tick(controls, { label: `divide by √${size}`, value: now.scaled }, change("scaled"));
  tick(controls, { label: "causal mask", value: now.causal }, change("causal"));
  slider(
    controls,
    { label: "valid length", min: 0, max: N, step: 1, value: now.valid_len, digits: 0 },
    change("valid_len"),
  );
  slider(
    controls,
    { label: "temperature", min: 0.05, max: 20, step: 0.01, value: now.temperature, scale: "log" },
    change("temperature"),
  );

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const scroll = scroller(panels);
  scroll.parentElement.style.flexBasis = "23rem"; // six words side by side
  const sheet = add(scroll, "table", { "aria-label": "attention weights, a row for each query" });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(head, "th", { scope: "col" }, "query");
  for (const token of tokens) add(head, "th", { scope: "col" }, token);
  const rows = tokens.map((token, t) => {
    const row = add(body, "tr"),
      name = rowName(row, token, `show the row of ${token}`, () => {
        chosen = t;
        paint();
      });
    return { row, name, cells: tokens.map(() => add(row, "td")) };
  });
  rove(
    rows.map(({ name }) => name),
    { entry: chosen },
  );

  const box = add(panels, "figure"),
    width = 50 * N;
  const space = panel(box, {
    width,
    height: 190,
    x: [0, N],
    y: [-0.5, 1.2],
    label: "the chosen row: its weights as bars",
  });
  draw(space.svg, "line", { x1: 0, x2: width, y1: space.y(0), y2: space.y(0), stroke: "#8888" });
  const bars = tokens.map((token, s) => {
    const x = space.x(s + 0.5),
      middle = { x, "text-anchor": "middle" };
    draw(space.svg, "text", { ...middle, y: space.y(0) + 18 }, token);
    return {
      bar: draw(space.svg, "rect", { x: x - 16, width: 32, fill: "var(--blue)" }),
      weight: draw(space.svg, "text", middle),
      score: draw(space.svg, "text", { ...middle, y: space.y(0) + 40 }),
    };
  });
  const title = add(box, "figcaption");
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const allowed = (t, s) => s < now.valid_len && (!now.causal || s <= t);
    const divisor = now.scaled ? Math.sqrt(size) : 1;
    rows.forEach(({ row, name, cells }, t) => {
      const seen = scores[t].map((score, s) => (allowed(t, s) ? score / divisor : -Infinity));
      const weights = softmax(seen, now.temperature);
      cells.forEach((cell, s) => {
        cell.className = allowed(t, s) ? "shade" : "masked";
        cell.style.setProperty("--w", weights[s]);
        cell.textContent = weights[s].toFixed(2);
      });
      row.classList.toggle("chosen", t === chosen);
      place(name, { "aria-pressed": t === chosen });
      if (t === chosen) detail(seen, weights);
    });
  }

  function detail(seen, weights) {
    bars.forEach(({ bar, weight, score }, s) => {
      place(bar, { y: space.y(weights[s]), height: space.y(0) - space.y(weights[s]) });
      place(weight, { y: space.y(weights[s]) - 5 });
      weight.textContent = seen[s] === -Infinity ? "" : weights[s].toFixed(2);
      score.textContent = seen[s] === -Infinity ? "−∞" : (seen[s] / now.temperature).toFixed(1);
    });
    title.textContent = `query “${tokens[chosen]}”: weights as bars; under each key the number that enters the softmax`;
    const sum = weights.reduce((a, b) => a + b, 0);
    const bits = weights.reduce((total, w) => (w > 0 ? total - w * Math.log2(w) : total), 0);
    note.textContent =
      sum === 0
        ? `“${tokens[chosen]}” may attend to nothing: its weights are all zero, and so is its output.`
        : `“${tokens[chosen]}”: sum ${sum.toFixed(2)}, entropy ${bits.toFixed(2)} bits, as if ` +
          `${(2 ** bits).toFixed(1)} keys shared the weight evenly.`;
  }
  paint();
}

export default { render };
