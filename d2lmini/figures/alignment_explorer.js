// Source words above, target words below, lines whose opacity is the weight; dashed lines for the true alignment.
import {
  add,
  choice,
  draw,
  keep,
  panel,
  place,
  scroller,
  strongest,
  tick,
  told,
  unpack,
  wordPicker,
} from "./base/index.js";

function render({ model, el }) {
  const titles = model.get("titles"),
    height = 230,
    high = 46,
    low = height - 46,
    upright = innerWidth <= 600; // no room for a sentence in a line: the words stand below each other
  const cards = model.get("cards").map((card) => {
    const bytes = unpack(card.data);
    return { ...card, weight: (t, s) => bytes[t * card.source.length + s] / 255 };
  });
  let now = model.get("sentence"),
    truth = model.get("truth");
  const card = () => cards[now];

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1) {
    choice(controls, { label: "sentence", options: { ...titles }, value: now }, (value) => {
      now = Number(value);
      keep(model, "sentence", now);
      build();
    });
  }
  const attention = model.get("attention");
  if (attention && cards.some((card) => card.true))
    tick(controls, { label: "true alignment", value: truth }, (value) => {
      truth = value;
      keep(model, "truth", truth);
      paint();
    });
  const box = scroller(el);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  // Side 0 is the source, side 1 the target.
  let picker, words, lines, dashes;

  // Where the middle of each word is along its list, and how long the lists are. Each word gets room for its letters
  // and for a number; the shorter list is spread to the length of the longer one.
  function lists(sides, room, before) {
    const rooms = sides.map((side) => side.map(room)),
      totals = rooms.map((side) => side.reduce((a, b) => a + b, 0)),
      length = Math.max(...totals);
    const middles = rooms.map((side, k) => {
      const gap = (length - totals[k]) / side.length;
      let end = before;
      return side.map((own) => {
        end += own + gap;
        return end - (own + gap) / 2;
      });
    });
    return { rooms, middles, length: length + before + 4 };
  }

  function build() {
    const { source, target, true: pairs } = card(),
      sides = [source, target];
    box.replaceChildren();
    const letters = (word) => Math.max(38, 7.5 * word.length + 14),
      { rooms, middles, length } = upright ? lists(sides, () => 27, 26) : lists(sides, letters, 66);
    const size = upright ? { width: 340, height: length } : { width: length, height };
    const { svg } = panel(box, { ...size, x: [0, 1], y: [0, 1], label: "words; lines show the weights" });
    svg.style.width = `${size.width}px`;
    picker = wordPicker(svg, { entry: [1, 0], downwards: upright }, paint);
    const heads = upright
      ? [
          { x: 132, y: 18, "text-anchor": "end" },
          { x: 210, y: 18 },
        ]
      : [
          { x: 6, y: high - 8 },
          { x: 6, y: low + 16 },
        ];
    ["source", "written"].forEach((name, side) => draw(svg, "text", { ...heads[side], opacity: 0.75 }, name));
    const line = (s, t, more) => {
      const [from, to] = [middles[0][s], middles[1][t]],
        at = upright ? { x1: 138, x2: 204, y1: from, y2: to } : { x1: from, x2: to, y1: high, y2: low };
      return draw(svg, "line", { ...at, "pointer-events": "none", ...more });
    };
    lines = target.map((_, t) => source.map((_, s) => line(s, t)));
    // each dash with a rim of the page's colour, so that it is seen on a thick line
    dashes = (pairs ?? []).flatMap(([s, t]) =>
      [
        { stroke: "Canvas", "stroke-width": 5, class: "d2lmini-rim" },
        { stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": "5 4", class: "d2lmini-true" },
      ].map((look) => ({ s, t, node: line(s, t, look) })),
    );
    words = sides.map((side, k) => side.map((text, i) => word(svg, k, i, text, middles[k][i], rooms[k][i])));
    paint();
  }

  function word(svg, side, i, text, at, room) {
    const node = picker.word(side, i, side ? `${text}: where it comes from` : `${text}: where it goes`),
      shade = draw(node, "rect", { rx: 4, fill: "transparent" });
    if (upright) {
      const short = [...text].length > 13 ? [...text].slice(0, 12).join("") + "…" : text,
        [x, anchor] = side ? [210, "start"] : [132, "end"];
      place(shade, { x: side ? 205 : 32, y: at - 13, width: 105, height: 25 });
      draw(node, "text", { x, y: at + 4, "text-anchor": anchor }, short);
      return { shade, number: draw(svg, "text", { x: side ? 312 : 3, y: at + 4 }) };
    }
    const y = side ? low + 16 : high - 8;
    place(shade, { x: at - room / 2 + 2, y: y - 17, width: room - 4, height: 26 });
    draw(node, "text", { x: at, y, "text-anchor": "middle" }, text);
    return { shade, number: draw(svg, "text", { x: at, y: side ? y + 24 : y - 24, "text-anchor": "middle" }) };
  }

  function paint() {
    const { weight } = card(),
      chosen = picker.pointed,
      involved = (t, s) => !chosen || (chosen.side ? t : s) === chosen.i;
    const colour = chosen && !chosen.side ? "var(--orange)" : "var(--blue)";
    lines.forEach((row, t) =>
      row.forEach((line, s) => {
        const w = weight(t, s);
        place(line, { stroke: colour, "stroke-width": 1 + 4 * w, opacity: involved(t, s) && w > 0.01 ? w : 0 });
      }),
    );
    dashes.forEach(({ s, t, node }) => {
      node.style.display = truth && involved(t, s) ? "" : "none";
    });
    words.forEach((line, side) =>
      line.forEach(({ shade, number }, i) => {
        const self = chosen?.side === side && chosen.i === i,
          other = chosen && chosen.side !== side;
        const w = other ? (side ? weight(i, chosen.i) : weight(chosen.i, i)) : 0;
        place(shade, { fill: self ? "#8885" : colour, "fill-opacity": self ? 1 : 0.6 * w });
        number.textContent = other ? w.toFixed(2) : "";
      }),
    );
    picker.mark();
    note.textContent = chosen ? sentence() : told("Point at a word.");
  }

  function sentence() {
    const { source, target, weight, true: pairs } = card(),
      { side, i } = picker.pointed,
      others = side ? source : target;
    const of = (j) => (side ? weight(i, j) : weight(j, i));
    const best = strongest(others, of);
    if (!attention) return `“${(side ? target : source)[i]}” belongs to ${best || "no word"}.`;
    const text = side
      ? `“${target[i]}” comes from ${best || "nothing"}.`
      : `“${source[i]}” is looked at for ${best || "no word"}.`;
    if (!truth || !pairs) return text;
    const right = pairs.filter((pair) => pair[side] === i).map((pair) => pair[1 - side]);
    return `${text} It belongs to ${right.map((j) => `“${others[j]}” ${of(j).toFixed(2)}`).join(", ") || "no word"}.`;
  }

  build();
}

export default { render };
