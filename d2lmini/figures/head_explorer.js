// Heads on real sentences: lines between words for one head, small maps for all heads of a layer.
import { add, button, choice, draw, keep, panel, place, rove, strongest, told, wordPicker } from "./base/index.js";
import { maps } from "./numbers/maps.js";

const WIDE = 340,
  ROW = 28; // for a word

const short = (/** @type {string} */ token) => (token.length > 14 ? token.slice(0, 13) + "…" : token);
const counted = (/** @type {string} */ word, /** @type {number} */ n) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [i + 1, `${word} ${i + 1}`]));

// The words, queries (side 0) and keys (side 1), and lines from where one looks to where it is looked at; `pointed`
// follows the word of `picker`. Paints weights (T, S).
function wordLines(box, { queries, keys }, pointed) {
  const rows = Math.max(queries.length, keys.length),
    size = { width: WIDE, height: ROW * (rows + 1), x: [0, WIDE], y: [rows + 0.5, -0.5] };
  const { svg } = panel(box, { ...size, label: "words; lines show where they look" });
  const y = (/** @type {number} */ i) => ROW * (i + 1.5);
  const picker = wordPicker(svg, { entry: [0, 0], downwards: true }, pointed);
  draw(svg, "text", { x: 128, y: 19, "text-anchor": "end", opacity: 0.8 }, "looking");
  draw(svg, "text", { x: 212, y: 19, opacity: 0.8 }, "looked at");
  const lines = queries.map((_, t) =>
    keys.map((_, s) => draw(svg, "line", { x1: 134, x2: 206, y1: y(t), y2: y(s), "pointer-events": "none" })),
  );
  const tokens = [queries, keys].map((words, side) =>
    words.map((word, i) => {
      const node = picker.word(side, i, side ? `${word}: who looks at it` : `${word}: where it looks`),
        at = { y: y(i) + 4 };
      const within = { x: side ? 207 : 31, y: y(i) - 13, width: 102, height: 26 };
      const shade = draw(node, "rect", { ...within, rx: 4, fill: "transparent" });
      draw(node, "text", side ? { x: 212, ...at } : { x: 128, ...at, "text-anchor": "end" }, short(word));
      return { shade, number: draw(svg, "text", { x: side ? 312 : 3, ...at }) };
    }),
  );

  function paint(weights) {
    const chosen = picker.pointed,
      involved = (t, s) => !chosen || (chosen.side ? s : t) === chosen.i;
    const colour = chosen?.side ? "var(--orange)" : "var(--blue)";
    lines.forEach((row, t) =>
      row.forEach((line, s) => {
        const w = weights[t][s],
          shown = involved(t, s) && w > 0.01;
        place(line, { stroke: colour, "stroke-width": 1 + 4 * w, opacity: shown ? Math.max(w, 0.1) : 0 });
      }),
    );
    tokens.forEach((column, side) =>
      column.forEach(({ shade, number }, i) => {
        const self = chosen?.side === side && chosen.i === i,
          other = chosen && chosen.side !== side;
        const w = other ? (side ? weights[chosen.i][i] : weights[i][chosen.i]) : 0;
        place(shade, { fill: self ? "#8885" : colour, "fill-opacity": self ? 1 : 0.6 * w });
        number.textContent = other ? w.toFixed(2) : "";
      }),
    );
    picker.mark();
  }
  return { picker, paint };
}

// A small map of weights (T, S). Paints whether it is the chosen head, and the row or column of the word pointed at.
function smallMap(parent, name, weights, choose) {
  const [T, S] = [weights.length, weights[0].length],
    cell = Math.max(3, Math.min(9, Math.floor(88 / Math.max(T, S))));
  const node = button(parent, "", choose, { "aria-label": name });
  const svg = draw(node, "svg", { viewBox: `0 0 ${S * cell} ${T * cell}`, "aria-hidden": "true" });
  svg.style.cssText = `width: ${S * cell}px; max-width: 100%`;
  weights.forEach((row, t) =>
    row.forEach((w, s) => {
      const at = { x: s * cell, y: t * cell, width: cell, height: cell };
      if (w > 0.02) draw(svg, "rect", { ...at, fill: "var(--blue)", opacity: w });
    }),
  );
  const mark = draw(svg, "rect", { fill: "none", stroke: "var(--orange)", "stroke-width": 1.5 });
  add(node, "span", {}, name);

  function paint(pressed, pointed) {
    place(node, { "aria-pressed": pressed });
    if (pointed?.side) place(mark, { x: pointed.i * cell, y: 0, width: cell, height: T * cell });
    else place(mark, { x: 0, y: (pointed?.i ?? 0) * cell, width: S * cell, height: pointed ? cell : 0 });
    mark.style.display = pointed ? "" : "none";
  }
  return { node, paint };
}

function render({ model, el }) {
  const titles = model.get("titles"),
    names = model.get("names");
  const cards = model.get("cards").map((row) =>
    row.map((card) => {
      const { data, size, queries, keys } = card;
      return { size, queries, keys, maps: maps(data, queries.length, keys.length) };
    }),
  );
  const now = Object.fromEntries(["sentence", "attention", "layer", "head"].map((key) => [key, model.get(key)]));
  const card = () => cards[now.sentence][now.attention];
  const ofLayer = () => card().maps.slice((now.layer - 1) * card().size[1], now.layer * card().size[1]);
  const change = (key) => (value) => {
    box.replaceChildren(); // now: a word that has the focus is painted once more as it loses it
    now[key] = Number(value);
    const [layers, heads] = card().size;
    now.layer = Math.min(now.layer, layers);
    now.head = Math.min(now.head, heads);
    for (const name of Object.keys(now)) if (now[name] !== model.get(name)) keep(model, name, now[name]);
    build();
  };

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "sentence", options: { ...titles }, value: now.sentence }, change("sentence"));
  if (names.length > 1)
    choice(controls, { label: "attention", options: { ...names }, value: now.attention }, change("attention"));
  const layerBox = add(controls, "span");
  const panels = add(el, "div", { class: "d2lmini-panels" });
  const box = add(panels, "figure"),
    side = add(panels, "figure", { style: "flex-basis: 12rem" }),
    named = { role: "group", "aria-label": "all heads of the layer", class: "d2lmini-maps d2lmini-thumbs" },
    thumbBox = add(side, "div", named);
  add(side, "figcaption", {}, "small maps: a row for each word that looks, a column for each word looked at");
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  let words, thumbs;
  function build() {
    const [layers] = card().size;
    layerBox.replaceChildren();
    if (layers > 1)
      choice(layerBox, { label: "layer", options: counted("layer", layers), value: now.layer }, change("layer"));
    words = wordLines(box, card(), paint);
    thumbBox.replaceChildren();
    thumbs = ofLayer().map((weights, h) =>
      smallMap(thumbBox, `head ${h + 1}`, weights, () => {
        now.head = h + 1;
        keep(model, "head", now.head);
        paint();
      }),
    );
    rove(
      thumbs.map(({ node }) => node),
      { entry: now.head - 1 },
    );
    paint();
  }

  function paint() {
    const { pointed } = words.picker,
      weights = ofLayer()[now.head - 1];
    words.paint(weights);
    thumbs.forEach((thumb, h) => thumb.paint(h + 1 === now.head, pointed));
    note.textContent = pointed ? sentence(pointed, weights) : told(`Head ${now.head}. Point at a word.`);
  }

  function sentence({ side, i }, weights) {
    const { queries, keys } = card(),
      best = strongest(side ? queries : keys, (j) => (side ? weights[j][i] : weights[i][j]));
    if (side) return `Head ${now.head}: “${keys[i]}” is looked at by ${best || "nobody"}.`;
    return `Head ${now.head}: “${queries[i]}” looks at ${best || "nothing"}.`;
  }

  build();
}

export default { render };
