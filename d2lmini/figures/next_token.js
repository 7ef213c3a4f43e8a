// Probabilities of the next token: the model's own, and what temperature, top-k and top-p leave to draw from.
import { add, button, choice, draw, keep, panel, place, slider, softmax, unpack } from "./base/index.js";

const SHOWN = 14,
  DRAWS = 20,
  LINE = 22,
  NAME = 92,
  BAR = 138;

// A generator of numbers from 0 to 1 that a seed determines (mulberry32).
const generator = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const bits = (p) => p.reduce((sum, x) => (x > 0 ? sum - x * Math.log2(x) : sum), 0) + 0; // no minus zero
const total = (p) => p.reduce((a, b) => a + b, 0);

function render({ model, el }) {
  const sampling = model.get("sampling"),
    contexts = model.get("contexts"),
    names = model.get("tokens"),
    V = names.length,
    unit = model.get("unit");
  const now = Object.fromEntries(
    ["context", "temperature", "top_k", "top_p", "seed"].map((key) => [key, model.get(key)]),
  );
  const below = unpack(model.get("logits"), Uint16Array),
    orders = contexts.map((_, n) => {
      const row = below.subarray(n * V, (n + 1) * V); // distances from the greatest score
      const order = [...row.keys()].sort((a, b) => row[a] - row[b] || a - b);
      return { order, scores: order.map((i) => -row[i] * unit) };
    });
  const drawn = (name) => name.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣") || "(empty)";
  const short = (name) => ([...name].length > 10 ? [...name].slice(0, 9).join("") + "…" : name);
  // few values for the sliders, close where it matters, and among them the one that is given
  const upTo = (n, step) => Array.from({ length: Math.round(n / step) }, (_, i) => Number(((i + 1) * step).toFixed(2)));
  const among = (values, own) => [...new Set([...values, own])].sort((a, b) => a - b);
  const heats = among([...upTo(2, 0.05).slice(1), 2.25, 2.5, 2.75, 3, 3.5, 4], now.temperature);
  const sizes = among(
    [...upTo(20, 1), 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, V].filter((k) => k <= V),
    now.top_k,
  );
  const masses = among(upTo(1, 0.01), now.top_p);
  const change =
    (key, to = Number) =>
    (value) => {
      now[key] = to(value);
      keep(model, key, now[key]);
      paint();
    };

  const choosing = add(el, "div", { class: "d2lmini-controls" });
  const titles = contexts.map((text) => (text.length > 40 ? "…" + text.slice(-39) : text)); // its end is what matters
  if (contexts.length > 1)
    choice(choosing, { label: "text", options: { ...titles }, value: now.context }, change("context"));
  const quote = add(el, "div", {
    class: "d2lmini-context",
    style: "margin: 0 0 8px; padding-left: 8px; border-left: 3px solid #8888; white-space: pre-wrap",
  });
  const controls = add(el, "div", { class: "d2lmini-controls" });
  const pick = (label, key, values, say) =>
    slider(
      controls,
      { label, min: 0, max: values.length - 1, step: 1, value: values.indexOf(now[key]), say: (i) => say(values[i]) },
      change(key, (i) => values[i]),
    );
  pick("temperature", "temperature", heats, (t) => t.toFixed(2));
  pick("top-k", "top_k", sizes, (k) => (k === V ? "all" : String(k)));
  pick("top-p", "top_p", masses, (p) => p.toFixed(2));

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure"),
    rows = Math.min(SHOWN, V),
    rest = V - rows; // the tail of the distribution
  const { svg } = panel(figure, {
    width: 340,
    height: LINE * (rows + (rest ? 2 : 1)) + 6,
    x: [0, 1],
    y: [0, 1],
    label: "the likeliest tokens and their probabilities",
  });
  draw(svg, "text", { x: NAME, y: 16, "text-anchor": "end", opacity: 0.8 }, "token");
  draw(svg, "text", { x: 336, y: 16, "text-anchor": "end", opacity: 0.8 }, sampling ? "model's → drawn from" : "share");
  const lines = Array.from({ length: rows }, (_, i) => {
    const y = LINE * (i + 1),
      row = draw(svg, "g");
    return {
      row,
      name: draw(row, "text", { x: NAME, y: y + 15, "text-anchor": "end" }),
      after: draw(row, "rect", { x: NAME + 6, y: y + 4, height: LINE - 8, fill: "var(--blue)", "fill-opacity": 0.75 }),
      before: draw(row, "rect", { x: NAME + 6, y: y + 4, height: LINE - 8, fill: "none", stroke: "currentColor" }),
      number: draw(row, "text", { x: 336, y: y + 15, "text-anchor": "end" }),
    };
  });
  const tail = draw(svg, "text", { x: 336, y: LINE * (rows + 1) + 15, "text-anchor": "end" });
  add(
    figure,
    "figcaption",
    {},
    `the ${rows} likeliest of ${V} tokens${sampling ? "; dropped ones are only hollow" : ""}`,
  );

  const side = add(panels, "div");
  const note = add(side, "div", { class: "d2lmini-note", "aria-live": "polite" });
  const drawing = add(side, "div", { class: "d2lmini-controls", style: "margin-top: 10px" });
  button(drawing, "draw again", () => change("seed")(now.seed + 1));
  const sample = add(side, "div", { class: "d2lmini-draws", "aria-live": "polite" });
  if (!sampling) for (const part of [controls, side]) part.style.display = "none";

  function paint() {
    const { order, scores } = orders[now.context];
    const before = softmax(scores),
      heated = softmax(scores, now.temperature);
    const best = softmax(scores.slice(0, now.top_k), now.temperature);
    let size = now.top_k;
    if (now.top_p < 1) {
      let mass = 0;
      const enough = best.findIndex((p) => {
        mass += p;
        return mass >= now.top_p - 1e-9;
      });
      size = enough + 1 || now.top_k;
    }
    const after = softmax(scores.slice(0, size), now.temperature),
      top = Math.max(before[0], after[0]);
    quote.textContent = contexts[now.context] + " …";
    lines.forEach(({ row, name, before: hollow, after: full, number }, i) => {
      const dropped = i >= size;
      name.textContent = short(drawn(names[order[i]]));
      place(row, { "data-kept": !dropped, opacity: dropped ? 0.75 : 1 });
      place(hollow, { width: (before[i] / top) * BAR });
      place(full, { width: ((after[i] ?? 0) / top) * BAR });
      number.textContent = before[i].toFixed(3) + (sampling ? ` → ${dropped ? "dropped" : after[i].toFixed(3)}` : "");
    });
    const beyond = (p) => total(p.slice(rows)).toFixed(3);
    tail.textContent = rest ? `the other ${rest}: ${beyond(before)}${sampling ? ` → ${beyond(after)}` : ""}` : "";
    note.textContent =
      `${size} of ${V} tokens stay. They have ${total(heated.slice(0, size)).toFixed(3)} of the mass ` +
      `at this temperature, ${total(before.slice(0, size)).toFixed(3)} of the model's own. Entropy: ` +
      `${bits(before).toFixed(2)} bits in the model, ` +
      `${bits(after).toFixed(2)} bits drawn from.`;

    const random = generator(now.seed),
      counts = new Map();
    for (let n = 0; n < DRAWS; n++) {
      let u = random(),
        i = 0;
      for (; i < size - 1; i++) {
        u -= after[i];
        if (u < 0) break;
      }
      counts.set(i, (counts.get(i) ?? 0) + 1);
    }
    const found = [...counts]
      .sort(([a], [b]) => a - b)
      .map(([i, n]) => drawn(names[order[i]]) + (n > 1 ? `\u00a0×\u00a0${n}` : ""));
    sample.textContent = `${DRAWS} draws (seed ${now.seed}), ${counts.size} different: ${found.join(", ")}`;
  }
  paint();
}

export default { render };
