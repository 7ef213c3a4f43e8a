// Source words above, target words below, lines whose opacity is the weight; dashed lines for the true alignment.
import { add, choice, draw, keep, panel, place, scroller, strongest, tick, told, wordPicker } from "./base/index.js";
import { spread } from "./numbers/alignment_explorer.js";
import { maps } from "./numbers/maps.js";

const HIGH = 230,
  [UPPER, LOWER] = [46, HIGH - 46]; // ends of the lines, where words stand beside each other

// A word of the upright form, where there is no room for a sentence in a line: at `y`; cut if it is long.
function uprightWord(svg, node, shade, { side, text, y }) {
  const short = [...text].length > 13 ? [...text].slice(0, 12).join("") + "…" : text,
    [x, anchor] = side ? [210, "start"] : [132, "end"];
  place(shade, { x: side ? 205 : 32, y: y - 13, width: 105, height: 25 });
  draw(node, "text", { x, y: y + 4, "text-anchor": anchor }, short);
  return draw(svg, "text", { x: side ? 312 : 3, y: y + 4 });
}

// A word in its line: at `x`, with `room` to both sides.
function wordInLine(svg, node, shade, { side, text, x, room }) {
  const y = side ? LOWER + 16 : UPPER - 8;
  place(shade, { x: x - room / 2 + 2, y: y - 17, width: room - 4, height: 26 });
  draw(node, "text", { x, y, "text-anchor": "middle" }, text);
  return draw(svg, "text", { x, y: side ? y + 24 : y - 24, "text-anchor": "middle" });
}

// The words, source (side 0) and target (side 1), and lines between them; `pointed` follows the word of `picker`. Paints
// the weights of the card, and its true alignment where that is asked for.
function wordLines(box, { source, target, weights, pairs }, upright, pointed) {
  const sides = [source, target],
    room = (/** @type {string} */ word) => (upright ? 27 : Math.max(38, 7.5 * word.length + 14)),
    rooms = sides.map((side) => side.map(room)),
    { middles, length } = spread(rooms, upright ? 26 : 66);
  const size = upright ? { width: 340, height: length } : { width: length, height: HIGH };
  const { svg } = panel(box, { ...size, x: [0, 1], y: [0, 1], label: "words; lines show the weights" });
  svg.style.width = `${size.width}px`;
  const picker = wordPicker(svg, { entry: [1, 0], downwards: upright }, pointed);
  const heads = upright
    ? [
        { x: 132, y: 18, "text-anchor": "end" },
        { x: 210, y: 18 },
      ]
    : [
        { x: 6, y: UPPER - 8 },
        { x: 6, y: LOWER + 16 },
      ];
  ["source", "written"].forEach((name, side) => draw(svg, "text", { ...heads[side], opacity: 0.75 }, name));
  const line = (s, t, more = {}) => {
    const [from, to] = [middles[0][s], middles[1][t]],
      at = upright ? { x1: 138, x2: 204, y1: from, y2: to } : { x1: from, x2: to, y1: UPPER, y2: LOWER };
    return draw(svg, "line", { ...at, "pointer-events": "none", ...more });
  };
  const lines = target.map((_, t) => source.map((_, s) => line(s, t)));
  // each dash with a rim of the page's colour, so that it is seen on a thick line
  const looks = [
    { stroke: "Canvas", "stroke-width": 5, class: "d2lmini-rim" },
    { stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": "5 4", class: "d2lmini-true" },
  ];
  const dashes = (pairs ?? []).flatMap(([s, t]) => looks.map((look) => ({ s, t, node: line(s, t, look) })));
  const words = sides.map((side, k) =>
    side.map((text, i) => {
      const node = picker.word(k, i, k ? `${text}: where it comes from` : `${text}: where it goes`),
        shade = draw(node, "rect", { rx: 4, fill: "transparent" });
      const number = upright
        ? uprightWord(svg, node, shade, { side: k, text, y: middles[k][i] })
        : wordInLine(svg, node, shade, { side: k, text, x: middles[k][i], room: rooms[k][i] });
      return { shade, number };
    }),
  );

  function paint(truth) {
    const chosen = picker.pointed,
      involved = (t, s) => !chosen || (chosen.side ? t : s) === chosen.i;
    const colour = chosen && !chosen.side ? "var(--orange)" : "var(--blue)";
    lines.forEach((row, t) =>
      row.forEach((line, s) => {
        const w = weights[t][s];
        place(line, { stroke: colour, "stroke-width": 1 + 4 * w, opacity: involved(t, s) && w > 0.01 ? w : 0 });
      }),
    );
    for (const { s, t, node } of dashes) node.style.display = truth && involved(t, s) ? "" : "none";
    words.forEach((line, side) =>
      line.forEach(({ shade, number }, i) => {
        const self = chosen?.side === side && chosen.i === i,
          other = chosen && chosen.side !== side;
        const w = other ? (side ? weights[i][chosen.i] : weights[chosen.i][i]) : 0;
        place(shade, { fill: self ? "#8885" : colour, "fill-opacity": self ? 1 : 0.6 * w });
        number.textContent = other ? w.toFixed(2) : "";
      }),
    );
    picker.mark();
  }
  return { picker, paint };
}

// What the word pointed at comes from, or goes to; `truth`: and what it belongs to.
function sentence({ source, target, weights, pairs }, attention, truth, { side, i }) {
  const others = side ? source : target,
    of = (/** @type {number} */ j) => (side ? weights[i][j] : weights[j][i]),
    best = strongest(others, of);
  if (!attention) return `“${(side ? target : source)[i]}” belongs to ${best || "no word"}.`;
  const text = side
    ? `“${target[i]}” comes from ${best || "nothing"}.`
    : `“${source[i]}” is looked at for ${best || "no word"}.`;
  if (!truth || !pairs) return text;
  const right = pairs.filter((pair) => pair[side] === i).map((pair) => pair[1 - side]);
  return `${text} It belongs to ${right.map((j) => `“${others[j]}” ${of(j).toFixed(2)}`).join(", ") || "no word"}.`;
}

function render({ model, el }) {
  const titles = model.get("titles"),
    attention = model.get("attention"),
    upright = innerWidth <= 600;
  const cards = model.get("cards").map(({ source, target, data, true: pairs }) => {
    const [weights] = maps(data, target.length, source.length);
    return { source, target, weights, pairs };
  });
  const state = { sentence: model.get("sentence"), truth: model.get("truth") };

  const controls = add(el, "div", { class: "d2lmini-controls" });
  if (titles.length > 1)
    choice(controls, { label: "sentence", options: { ...titles }, value: state.sentence }, (value) => {
      box.replaceChildren(); // now: a word that has the focus is painted once more as it loses it
      state.sentence = Number(value);
      keep(model, "sentence", state.sentence);
      build();
    });
  if (attention && cards.some(({ pairs }) => pairs))
    tick(controls, { label: "true alignment", value: state.truth }, (value) => {
      state.truth = value;
      keep(model, "truth", value);
      paint();
    });
  const box = scroller(el);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  let words;
  function build() {
    words = wordLines(box, cards[state.sentence], upright, paint);
    paint();
  }

  function paint() {
    const { pointed } = words.picker;
    words.paint(state.truth);
    note.textContent = pointed
      ? sentence(cards[state.sentence], attention, state.truth, pointed)
      : told("Point at a word.");
  }

  build();
}

export default { render };
