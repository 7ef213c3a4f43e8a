// Position encodings as a heat map, and the scores they make: does a score depend on the offset alone?
import { add, choice, draw, keep, panel, place, slider, tick, ticks } from "./base/index.js";

function render({ model, el }) {
  const now = Object.fromEntries(["encoding", "position", "offset", "words"].map((name) => [name, model.get(name)]));
  const [query, key, bias, N, D, base, max_distance] = [
    "query",
    "key",
    "bias",
    "num_positions",
    "num_hiddens",
    "base",
    "max_distance",
  ].map((name) => model.get(name));
  const change = (name) => (value) => {
    now[name] = value;
    keep(model, name, value);
    paint();
  };
  const signed = (text) => String(text).replace("-", "−");
  let controls = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 20px" });
  const whole = (label, min, max, name, say) =>
    slider(controls, { label, min, max, step: 1, value: now[name], say }, change(name));
  choice(
    controls,
    {
      label: "encoding",
      value: now.encoding,
      options: { sinusoidal: "sinusoidal", rotary: "rotary", t5: "T5 bias", none: "none" },
    },
    change("encoding"),
  );
  tick(controls, { label: "with words", value: now.words }, change("words"));
  controls = add(el, "div", { class: "d2lmini-controls", style: "gap: 6px 20px" });
  whole("query's position", 0, N - 1, "position", String);
  whole("offset of the key", 1 - N, N - 1, "offset", signed);
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 3em; margin-bottom: 6px",
  });

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    chart = add(panels, "figure"),
    pattern = add(panels, "figure"),
    width = 340,
    height = 215;
  const map = panel(pattern, { width, height, x: [0, 1], y: [0, N], label: "the encoding, a row for each position" });
  const cells = Array.from({ length: N * Math.max(N, D) }, () => draw(map.svg, "rect"));
  const chosen = draw(map.svg, "rect", {
    x: 1,
    width: width - 2,
    height: height / N,
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 2,
  });
  const title = add(pattern, "figcaption");

  const plot = panel(chart, { width, height, x: [-1.26 * N, N], y: [0, 1], label: "score against offset" });
  const [TOP, BOTTOM] = [26, height - 22]; // between them scores; above the chosen offset, below the offsets
  const grid = draw(plot.svg, "g", { stroke: "#8885" });
  const names = draw(plot.svg, "g", { "text-anchor": "end" });
  for (let offset = -10 * Math.floor((N - 1) / 10); offset < N; offset += 10) {
    draw(plot.svg, "line", { x1: plot.x(offset), x2: plot.x(offset), y1: TOP, y2: BOTTOM, stroke: "#8885" });
    draw(plot.svg, "text", { x: plot.x(offset), y: height - 6, "text-anchor": "middle" }, signed(offset));
  }
  const band = draw(plot.svg, "polygon", {
    fill: "var(--blue)",
    "fill-opacity": 0.3,
    stroke: "var(--blue)",
    "stroke-opacity": 0.6,
  });
  const own = draw(plot.svg, "polyline", { fill: "none", stroke: "var(--orange)", "stroke-width": 2.5 });
  const marker = draw(plot.svg, "line", {
    y1: TOP - 6,
    y2: BOTTOM,
    stroke: "currentColor",
    "stroke-dasharray": "3 4",
  });
  const where = draw(plot.svg, "text", { y: 15, "text-anchor": "middle" });
  const line = add(chart, "figcaption");

  const angle = (i, feature) => i * base ** (-(feature - (feature % 2)) / D);
  const sine = (i, f) => (f % 2 ? Math.cos : Math.sin)(angle(i, f));
  const turn = (i, f) => (f % 2 ? Math.sin : Math.cos)(angle(i, f));
  function bucket(offset) {
    const side = bias.length / 2,
      exact = Math.floor(side / 2),
      far = Math.abs(offset);
    const growth = Math.log(Math.max(far, exact) / exact) / Math.log(max_distance / exact);
    const wide = Math.min(exact + Math.floor(growth * (side - exact) + 1e-5), side - 1);
    return (far < exact ? far : wide) + (offset > 0 ? side : 0);
  }
  function turned(word, i) {
    return word.map((x, f) =>
      f % 2
        ? word[f - 1] * Math.sin(angle(i, f)) + x * Math.cos(angle(i, f))
        : x * Math.cos(angle(i, f)) - word[f + 1] * Math.sin(angle(i, f)),
    );
  }
  function at(word, i) {
    // what stands at position i
    const used = word.slice(0, D).map((x) => (now.words ? x : 0));
    if (now.encoding === "sinusoidal") return used.map((x, f) => x + sine(i, f));
    return now.encoding === "rotary" ? turned(used, i) : used;
  }
  function allScores() {
    const places = Array.from({ length: N }, (_, i) => i);
    const queries = places.map((i) => at(query, i)),
      keys = places.map((i) => at(key, i));
    return queries.map((q, i) =>
      keys.map(
        (k, s) =>
          q.reduce((sum, x, f) => sum + x * k[f], 0) / Math.sqrt(D) + (now.encoding === "t5" ? bias[bucket(s - i)] : 0),
      ),
    );
  }

  function paintMap() {
    const t5 = now.encoding === "t5",
      columns = t5 ? N : D;
    const value = {
      sinusoidal: sine,
      rotary: turn,
      none: () => 0,
      t5: (i, s) => (2 * bucket(s - i)) / (bias.length - 1) - 1,
    }[now.encoding];
    cells.forEach((cell, n) => {
      const i = Math.floor(n / columns),
        column = n % columns;
      if (i >= N) {
        place(cell, { visibility: "hidden" });
        return;
      }
      const v = value(i, column);
      place(cell, {
        visibility: "visible",
        x: (column * width) / columns,
        y: (i * height) / N,
        width: width / columns,
        height: height / N,
        fill: v < 0 ? "var(--orange)" : "var(--blue)",
        "fill-opacity": Math.abs(v).toFixed(3),
      });
    });
    place(chosen, { y: (now.position * height) / N });
    title.textContent = {
      sinusoidal: "A row for each position: its sines and cosines (blue positive, orange negative).",
      rotary: "A row for each position: cosine and sine of its turns (blue positive, orange negative).",
      t5: "The bucket of each pair: a row for each query, a column for each key.",
      none: "Without an encoding all positions are equal.",
    }[now.encoding];
  }

  function paint() {
    paintMap();
    const scores = allScores();
    const ranges = Array.from({ length: 2 * N - 1 }, (_, n) => {
      const alike = scores.flatMap((row, i) => row[i + n + 1 - N] ?? []);
      return [Math.min(...alike), Math.max(...alike)];
    });
    const low = Math.min(0, ...ranges.map((range) => range[0])),
      high = Math.max(low + 1, ...ranges.map((range) => range[1]));
    const y = (v) => TOP + ((high - v) / (high - low)) * (BOTTOM - TOP),
      point = (v, n) => `${plot.x(n + 1 - N)},${y(v)}`;
    grid.replaceChildren();
    names.replaceChildren();
    for (const value of ticks(low, high, 5)) {
      draw(grid, "line", { x1: plot.x(-N), x2: width, y1: y(value), y2: y(value) });
      draw(names, "text", { x: plot.x(-N) - 4, y: y(value) + 4 }, signed(value));
    }
    const tops = ranges.map((range, n) => point(range[1], n)),
      feet = ranges.map((range, n) => point(range[0], n));
    place(band, { points: [...tops, ...feet.reverse()].join(" ") });
    place(own, { points: scores[now.position].map((v, s) => point(v, s - now.position + N - 1)).join(" ") });
    const x = plot.x(now.offset);
    place(marker, { x1: x, x2: x });
    place(where, { x: Math.min(width - 40, x) });
    where.textContent = `offset ${signed(now.offset)}`;
    line.textContent = `Score at each offset. Orange: the query at position ${now.position}; blue: at any position.`;

    const shown = (v) => signed((Math.abs(v) < 0.005 ? 0 : v).toFixed(2)),
      target = now.position + now.offset,
      [least, greatest] = ranges[now.offset + N - 1];
    const pair =
      target < 0 || target >= N
        ? `There is no key at position ${target}.`
        : `A query at position ${now.position} and a key at position ${target} score ` +
          `${shown(scores[now.position][target])}.`;
    note.textContent =
      `${pair} ` +
      (greatest - least < 1e-9
        ? `At any other position the score of this offset is the same, ${shown(least)}.`
        : `At other positions the scores of this offset go from ${shown(least)} to ${shown(greatest)}.`);
  }
  paint();
}

export default { render };
