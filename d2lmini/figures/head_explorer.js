// Heads on real sentences: lines between words for one head, small maps for all heads of a layer.
import {
  add,
  button,
  choice,
  draw,
  keep,
  panel,
  place,
  rove,
  strongest,
  told,
  unpack,
  wordPicker,
} from "./base/index.js";

function render({ model, el }) {
  const titles = model.get("titles"),
    names = model.get("names");
  const cards = model.get("cards").map((row) =>
    row.map((card) => {
      const bytes = unpack(card.data),
        [, H, T, S] = card.size;
      return { ...card, weight: (layer, head, t, s) => bytes[(((layer - 1) * H + head - 1) * T + t) * S + s] / 255 };
    }),
  );
  const now = Object.fromEntries(["sentence", "attention", "layer", "head"].map((key) => [key, model.get(key)]));
  const card = () => cards[now.sentence][now.attention];
  const short = (token) => (token.length > 14 ? token.slice(0, 13) + "…" : token);
  const counted = (word, n) => Object.fromEntries(Array.from({ length: n }, (_, i) => [i + 1, `${word} ${i + 1}`]));
  const change = (key) => (value) => {
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
    maps = add(side, "div", {
      role: "group",
      "aria-label": "all heads of the layer",
      class: "d2lmini-maps d2lmini-thumbs",
    });
  add(side, "figcaption", {}, "small maps: a row for each word that looks, a column for each word looked at");
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  // Side 0 are the queries, side 1 the keys.
  let picker, tokens, lines, thumbs;

  function build() {
    const {
      queries,
      keys,
      size: [layers, heads],
    } = card();
    layerBox.replaceChildren();
    if (layers > 1)
      choice(layerBox, { label: "layer", options: counted("layer", layers), value: now.layer }, change("layer"));
    box.replaceChildren();
    const rows = Math.max(queries.length, keys.length),
      height = 28 * (rows + 1),
      width = 340;
    const space = panel(box, {
      width,
      height,
      x: [0, width],
      y: [rows + 0.5, -0.5],
      label: "words; lines show where they look",
    });
    const y = (i) => 28 * (i + 1.5);
    picker = wordPicker(space.svg, { entry: [0, 0], downwards: true }, paint);
    draw(space.svg, "text", { x: 128, y: 19, "text-anchor": "end", opacity: 0.8 }, "looking");
    draw(space.svg, "text", { x: 212, y: 19, opacity: 0.8 }, "looked at");
    lines = queries.map((_, t) =>
      keys.map((_, s) => draw(space.svg, "line", { x1: 134, x2: 206, y1: y(t), y2: y(s), "pointer-events": "none" })),
    );
    tokens = [queries, keys].map((words, side) => words.map((word, i) => token(space.svg, side, i, word, y(i))));

    maps.replaceChildren();
    thumbs = Array.from({ length: heads }, (_, h) => thumb(h + 1));
    rove(
      thumbs.map(({ node }) => node),
      { entry: now.head - 1 },
    );
    paint();
  }

  function token(svg, side, i, word, y) {
    const node = picker.word(side, i, side ? `${word}: who looks at it` : `${word}: where it looks`);
    const shade = draw(node, "rect", {
      x: side ? 207 : 31,
      y: y - 13,
      width: 102,
      height: 26,
      rx: 4,
      fill: "transparent",
    });
    draw(node, "text", side ? { x: 212, y: y + 4 } : { x: 128, y: y + 4, "text-anchor": "end" }, short(word));
    const number = draw(svg, "text", side ? { x: 312, y: y + 4 } : { x: 3, y: y + 4 });
    return { shade, number };
  }

  function thumb(head) {
    const {
        size: [, , T, S],
        weight,
      } = card(),
      cell = Math.max(3, Math.min(9, Math.floor(88 / Math.max(T, S))));
    const choose = () => {
      now.head = head;
      keep(model, "head", head);
      paint();
    };
    const node = button(maps, "", choose, { "aria-label": `head ${head}` });
    const svg = draw(node, "svg", { viewBox: `0 0 ${S * cell} ${T * cell}`, "aria-hidden": "true" });
    svg.style.cssText = `width: ${S * cell}px; max-width: 100%`;
    for (let t = 0; t < T; t++)
      for (let s = 0; s < S; s++) {
        const w = weight(now.layer, head, t, s);
        if (w > 0.02)
          draw(svg, "rect", { x: s * cell, y: t * cell, width: cell, height: cell, fill: "var(--blue)", opacity: w });
      }
    const mark = draw(svg, "rect", { fill: "none", stroke: "var(--orange)", "stroke-width": 1.5 });
    add(node, "span", {}, `head ${head}`);
    return { node, mark, cell };
  }

  function paint() {
    const {
        queries,
        keys,
        size: [, , T, S],
        weight,
      } = card(),
      of = (t, s) => weight(now.layer, now.head, t, s);
    const chosen = picker.pointed,
      involved = (t, s) => !chosen || (chosen.side ? s === chosen.i : t === chosen.i);
    const colour = chosen?.side ? "var(--orange)" : "var(--blue)";
    lines.forEach((row, t) =>
      row.forEach((line, s) => {
        const w = of(t, s),
          shown = involved(t, s) && w > 0.01;
        place(line, { stroke: colour, "stroke-width": 1 + 4 * w, opacity: shown ? Math.max(w, 0.1) : 0 });
      }),
    );
    tokens.forEach((column, side) =>
      column.forEach(({ shade, number }, i) => {
        const self = chosen?.side === side && chosen.i === i,
          other = chosen && chosen.side !== side;
        const w = other ? (side ? of(chosen.i, i) : of(i, chosen.i)) : 0;
        place(shade, { fill: self ? "#8885" : colour, "fill-opacity": self ? 1 : 0.6 * w });
        number.textContent = other ? w.toFixed(2) : "";
      }),
    );
    thumbs.forEach(({ node, mark, cell }, h) => {
      place(node, { "aria-pressed": h + 1 === now.head });
      if (chosen?.side) place(mark, { x: chosen.i * cell, y: 0, width: cell, height: T * cell });
      else place(mark, { x: 0, y: (chosen?.i ?? 0) * cell, width: S * cell, height: chosen ? cell : 0 });
      mark.style.display = chosen ? "" : "none";
    });
    picker.mark();
    note.textContent = chosen ? sentence(queries, keys, of) : told(`Head ${now.head}. Point at a word.`);
  }

  function sentence(queries, keys, of) {
    const { side, i } = picker.pointed,
      best = strongest(side ? queries : keys, (j) => (side ? of(j, i) : of(i, j)));
    if (side) return `Head ${now.head}: “${keys[i]}” is looked at by ${best || "nobody"}.`;
    return `Head ${now.head}: “${queries[i]}” looks at ${best || "nothing"}.`;
  }

  build();
}

export default { render };
