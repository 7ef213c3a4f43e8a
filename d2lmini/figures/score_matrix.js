// A small score matrix: scale, mask and temperature, and one row in detail.
import { add, columns, draw, keep, panel, place, rove, rowName, scroller, slider, tick } from "./base/index.js";
import { entropy, rowsOf } from "./numbers/score_matrix.js";

/** @typedef {import("./numbers/score_matrix.js").State & { tokens: string[] }} State */

// The weights, a row for each query; `follow` takes the row that is pointed at. Paints all rows, and which is chosen.
function matrix(parent, tokens, entry, follow) {
  const scroll = scroller(parent);
  /** @type {HTMLElement} */ (scroll.parentElement).style.flexBasis = "23rem"; // six words side by side
  const sheet = add(scroll, "table", { "aria-label": "attention weights, a row for each query" });
  const body = columns(sheet, ["query", ...tokens]);
  const lines = tokens.map((token, t) => {
    const row = add(body, "tr"),
      name = rowName(row, token, `show the row of ${token}`, () => follow(t));
    return { row, name, cells: tokens.map(() => add(row, "td")) };
  });
  rove(
    lines.map(({ name }) => name),
    { entry },
  );

  return (rows, chosen) =>
    lines.forEach(({ row, name, cells }, t) => {
      const { scores, weights } = rows[t];
      cells.forEach((cell, s) => {
        cell.className = scores[s] === null ? "masked" : "shade";
        cell.style.setProperty("--w", weights[s]);
        cell.textContent = weights[s].toFixed(2);
      });
      row.classList.toggle("chosen", t === chosen);
      place(name, { "aria-pressed": t === chosen });
    });
}

// One row: weights as bars, and under each key the number that enters the softmax.
function detail(parent, tokens) {
  const box = add(parent, "figure"),
    width = 50 * tokens.length,
    size = { width, height: 190, x: [0, tokens.length], y: [-0.5, 1.2] };
  const { svg, x, y } = panel(box, { ...size, label: "the chosen row: its weights as bars" });
  draw(svg, "line", { x1: 0, x2: width, y1: y(0), y2: y(0), stroke: "#8888" });
  const bars = tokens.map((token, s) => {
    const at = x(s + 0.5),
      middle = { x: at, "text-anchor": "middle" };
    draw(svg, "text", { ...middle, y: y(0) + 18 }, token);
    return {
      bar: draw(svg, "rect", { x: at - 16, width: 32, fill: "var(--blue)" }),
      weight: draw(svg, "text", middle),
      score: draw(svg, "text", { ...middle, y: y(0) + 40 }),
    };
  });
  const title = add(box, "figcaption");

  return (query, { scores, weights }, temperature) => {
    bars.forEach(({ bar, weight, score }, s) => {
      const masked = scores[s] === null;
      place(bar, { y: y(weights[s]), height: y(0) - y(weights[s]) });
      place(weight, { y: y(weights[s]) - 5 });
      weight.textContent = masked ? "" : weights[s].toFixed(2);
      score.textContent = masked ? "−∞" : (scores[s] / temperature).toFixed(1);
    });
    title.textContent = `query “${query}”: weights as bars; under each key the number that enters the softmax`;
  };
}

function render({ model, el }) {
  const names = ["tokens", "scores", "num_features", "scaled", "causal", "valid_len", "temperature"],
    state = /** @type {State} */ (Object.fromEntries(names.map((key) => [key, model.get(key)]))),
    { tokens } = state;
  let chosen = tokens.length - 1;
  const change = (key) => (value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };
  const controls = add(el, "div", { class: "d2lmini-controls" });
  tick(controls, { label: `divide by √${state.num_features}`, value: state.scaled }, change("scaled"));
  tick(controls, { label: "causal mask", value: state.causal }, change("causal"));
  const lengths = { min: 0, max: tokens.length, step: 1, digits: 0 },
    temperatures = { min: 0.05, max: 20, step: 0.01, scale: "log" };
  slider(controls, { label: "valid length", ...lengths, value: state.valid_len }, change("valid_len"));
  slider(controls, { label: "temperature", ...temperatures, value: state.temperature }, change("temperature"));

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const paintMatrix = matrix(panels, tokens, chosen, (t) => {
    chosen = t;
    paint();
  });
  const paintDetail = detail(panels, tokens);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  function paint() {
    const rows = rowsOf(state),
      { weights } = rows[chosen];
    paintMatrix(rows, chosen);
    paintDetail(tokens[chosen], rows[chosen], state.temperature);
    const sum = weights.reduce((a, b) => a + b, 0),
      bits = entropy(weights);
    note.textContent =
      sum === 0
        ? `“${tokens[chosen]}” may attend to nothing: its weights are all zero, and so is its output.`
        : `“${tokens[chosen]}”: sum ${sum.toFixed(2)}, entropy ${bits.toFixed(2)} bits, as if ` +
          `${(2 ** bits).toFixed(1)} keys shared the weight evenly.`;
  }
  paint();
}

export default { render };
