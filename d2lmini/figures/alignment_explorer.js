// Source words above, target words below, lines whose opacity is the weight; dashed lines for the true alignment.
function render({ model, el }) {
  const titles = model.get("titles"),
    height = 230,
    high = 46,
    low = height - 46;
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
  if (cards.some((card) => card.true))
    tick(controls, { label: "true alignment", value: truth }, (value) => {
      truth = value;
      keep(model, "truth", truth);
      paint();
    });
  const box = scroller(el);
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  // Side 0 is the source, side 1 the target.
  let picker, words, lines, dashes;

  function build() {
    const { source, target, true: pairs } = card();
    box.replaceChildren();
    // each word gets room for its letters and for a number; the shorter line is spread to the length of the longer one
    const rooms = [source, target].map((side) => side.map((word) => Math.max(38, 7.5 * word.length + 14)));
    const totals = rooms.map((side) => side.reduce((a, b) => a + b, 0)),
      width = Math.max(...totals) + 70;
    const middles = rooms.map((side, k) => {
      const gap = (width - 70 - totals[k]) / side.length;
      let left = 66;
      return side.map((room) => {
        left += room + gap;
        return left - (room + gap) / 2;
      });
    });
    const { svg } = panel(box, { width, height, x: [0, 1], y: [0, 1], label: "words; lines show the weights" });
    svg.style.width = `${width}px`;
    picker = wordPicker(svg, { entry: [1, 0] }, paint);
    draw(svg, "text", { x: 6, y: high - 8, opacity: 0.75 }, "source");
    draw(svg, "text", { x: 6, y: low + 16, opacity: 0.75 }, "written");
    const line = (s, t, more) =>
      draw(svg, "line", { x1: middles[0][s], x2: middles[1][t], y1: high, y2: low, "pointer-events": "none", ...more });
    lines = target.map((_, t) => source.map((_, s) => line(s, t)));
    dashes = (pairs ?? []).map(([s, t]) => ({
      s,
      t,
      node: line(s, t, {
        stroke: "currentColor",
        "stroke-width": 1.3,
        "stroke-dasharray": "4 4",
        class: "d2lmini-true",
      }),
    }));
    words = [source, target].map((side, k) => side.map((text, i) => word(svg, k, i, text, middles[k][i], rooms[k][i])));
    paint();
  }

  function word(svg, side, i, text, x, room) {
    const y = side ? low + 16 : high - 8;
    const node = picker.word(side, i, side ? `${text}: where it comes from` : `${text}: where it goes`);
    const shade = draw(node, "rect", {
      x: x - room / 2 + 2,
      y: y - 17,
      width: room - 4,
      height: 26,
      rx: 4,
      fill: "transparent",
    });
    draw(node, "text", { x, y, "text-anchor": "middle" }, text);
    const number = draw(svg, "text", { x, y: side ? y + 24 : y - 24, "text-anchor": "middle" });
    return { shade, number };
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
    note.textContent = chosen ? sentence() : "Point at a word.";
  }

  function sentence() {
    const { source, target, weight, true: pairs } = card(),
      { side, i } = picker.pointed,
      others = side ? source : target;
    const of = (j) => (side ? weight(i, j) : weight(j, i));
    const best = strongest(others, of);
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
