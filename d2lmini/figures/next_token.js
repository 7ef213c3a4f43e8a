// Probabilities of the next token: the model's own, and what temperature, top-k and top-p leave to draw from.
import { add, button, choice, draw, keep, panel, place, slider, unpack } from "./base/index.js";
import { bits, distributions, drawnPlaces, ranking, total } from "./numbers/next_token.js";

/**
 * @typedef {{ context: number, temperature: number, top_k: number, top_p: number, seed: number }} State
 * @typedef {ReturnType<typeof distributions>} Shares
 */

const SHOWN = 14,
  DRAWS = 20,
  LINE = 22,
  NAME = 92,
  BAR = 138;

const visible = (name) => name.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣") || "(empty)";
const short = (name) => ([...name].length > 10 ? [...name].slice(0, 9).join("") + "…" : name);

// Sliders over few values, close where it matters, and among them the one that is given.
function sliders(box, V, /** @type {State} */ state, set) {
  const upTo = (n, step) => Array.from({ length: Math.round(n / step) }, (_, i) => Number(((i + 1) * step).toFixed(2)));
  const pick = (label, key, values, say) => {
    const all = [...new Set([...values, state[key]])].sort((a, b) => a - b),
      settings = { min: 0, max: all.length - 1, step: 1, value: all.indexOf(state[key]) };
    slider(box, { label, ...settings, say: (i) => say(all[i]) }, (i) => set(key, all[i]));
  };
  const sizes = [...upTo(20, 1), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, V];
  pick("temperature", "temperature", [...upTo(2, 0.05).slice(1), 2.25, 2.5, 2.75, 3, 3.5, 4], (t) => t.toFixed(2));
  pick(
    "top-k",
    "top_k",
    sizes.filter((k) => k <= V),
    (k) => (k === V ? "all" : String(k)),
  );
  pick("top-p", "top_p", upTo(1, 0.01), (p) => p.toFixed(2));
}

// The likeliest tokens as bars: hollow the model's own shares, filled those that are drawn from.
function bars(figure, /** @type {string[]} */ names, sampling) {
  const V = names.length,
    rows = Math.min(SHOWN, V),
    rest = V - rows; // the tail of the distribution
  const label = "the likeliest tokens and their probabilities",
    height = LINE * (rows + (rest ? 2 : 1)) + 6,
    { svg } = panel(figure, { width: 340, height, x: [0, 1], y: [0, 1], label });
  const right = { x: 336, "text-anchor": "end" };
  draw(svg, "text", { x: NAME, y: 16, "text-anchor": "end", opacity: 0.8 }, "token");
  draw(svg, "text", { ...right, y: 16, opacity: 0.8 }, sampling ? "model's → drawn from" : "share");
  const lines = Array.from({ length: rows }, (_, i) => {
    const y = LINE * (i + 1),
      row = draw(svg, "g"),
      bar = { x: NAME + 6, y: y + 4, height: LINE - 8 };
    return {
      row,
      name: draw(row, "text", { x: NAME, y: y + 15, "text-anchor": "end" }),
      full: draw(row, "rect", { ...bar, fill: "var(--blue)", "fill-opacity": 0.75 }),
      hollow: draw(row, "rect", { ...bar, fill: "none", stroke: "currentColor" }),
      number: draw(row, "text", { ...right, y: y + 15 }),
    };
  });
  const tail = draw(svg, "text", { ...right, y: LINE * (rows + 1) + 15 });
  const words = `the ${rows} likeliest of ${V} tokens${sampling ? "; dropped ones are only hollow" : ""}`;
  add(figure, "figcaption", {}, words);

  return (/** @type {number[]} */ order, /** @type {Shares} */ { size, before, after }) => {
    const top = Math.max(before[0], after[0]);
    lines.forEach(({ row, name, hollow, full, number }, i) => {
      const dropped = i >= size;
      name.textContent = short(visible(names[order[i]]));
      place(row, { "data-kept": !dropped, opacity: dropped ? 0.75 : 1 });
      place(hollow, { width: (before[i] / top) * BAR });
      place(full, { width: ((after[i] ?? 0) / top) * BAR });
      number.textContent = before[i].toFixed(3) + (sampling ? ` → ${dropped ? "dropped" : after[i].toFixed(3)}` : "");
    });
    const beyond = (p) => total(p.slice(rows)).toFixed(3);
    tail.textContent = rest ? `the other ${rest}: ${beyond(before)}${sampling ? ` → ${beyond(after)}` : ""}` : "";
  };
}

function say(/** @type {Shares} */ { size, before, heated, after }) {
  const mass = (p) => total(p.slice(0, size)).toFixed(3);
  return (
    `${size} of ${before.length} tokens stay. They have ${mass(heated)} of the mass ` +
    `at this temperature, ${mass(before)} of the model's own. Entropy: ` +
    `${bits(before).toFixed(2)} bits in the model, ` +
    `${bits(after).toFixed(2)} bits drawn from.`
  );
}

function render({ model, el }) {
  const keys = ["sampling", "contexts", "tokens", "unit", "context", "temperature", "top_k", "top_p", "seed"],
    [sampling, contexts, names, unit, context, temperature, top_k, top_p, seed] = keys.map((key) => model.get(key));
  const V = names.length,
    below = unpack(model.get("logits"), Uint16Array),
    rankings = contexts.map((_, n) => ranking(below.subarray(n * V, (n + 1) * V), unit));
  /** @type {State} */
  const state = { context, temperature, top_k, top_p, seed };
  const set = (key, value) => {
    state[key] = value;
    keep(model, key, value);
    paint();
  };

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const titles = contexts.map((text) => (text.length > 40 ? "…" + text.slice(-39) : text)); // its end is what matters
  if (contexts.length > 1)
    choice(choosing, { label: "text", options: { ...titles }, value: context }, (n) => set("context", Number(n)));
  const look = "margin: 0 0 8px; padding-left: 8px; border-left: 3px solid #8888; white-space: pre-wrap",
    quote = add(el, "div", { class: "d2lmini-context", style: look });
  const controls = add(el, "div", { class: "d2lmini-controls" });
  sliders(controls, V, state, set);
  const panels = add(el, "div", { class: "d2lmini-panels" }),
    paintBars = bars(add(panels, "figure"), names, sampling);
  const side = add(panels, "div");
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const drawing = add(side, "div", { class: "d2lmini-controls", style: "margin-top: 10px" });
  button(drawing, "draw again", () => set("seed", state.seed + 1));
  const sample = add(side, "div", { class: "d2lmini-draws", "aria-live": "polite" });
  if (!sampling) for (const part of [controls, side]) part.style.display = "none";

  function paint() {
    const { order, scores } = rankings[state.context],
      shares = distributions(scores, state);
    quote.textContent = contexts[state.context] + " …";
    paintBars(order, shares);
    note.textContent = say(shares);
    const found = drawnPlaces(shares.after, state.seed, DRAWS).map(
      ([i, n]) => visible(names[order[i]]) + (n > 1 ? `\u00a0×\u00a0${n}` : ""),
    );
    sample.textContent = `${DRAWS} draws (seed ${state.seed}), ${found.length} different: ${found.join(", ")}`;
  }
  paint();
}

export default { render };
