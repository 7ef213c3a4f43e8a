// Position encodings as a heat map, and the scores they make: does a score depend on the offset alone?
function render({ model, el }) {
  const names = ["encoding", "position", "offset", "num_hiddens", "base", "max_distance", "words"];
  const now = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  const query = model.get("query"),
    key = model.get("key"),
    bias = model.get("bias"),
    N = model.get("num_positions");
  const SHOWN = 5;
  const change = (name) => (value) => {
    now[name] = value;
    keep(model, name, value);
    paint();
  };
  const controls = add(el, "div", { class: "d2lmini-controls" });
  const whole = (label, min, max, name, step = 1) =>
    slider(controls, { label, min, max, step, value: now[name], digits: 0 }, change(name)).parentNode;
  choice(
    controls,
    {
      label: "encoding",
      value: now.encoding,
      options: { sinusoidal: "sinusoidal", rotary: "rotary", t5: "T5 bias", none: "none" },
    },
    change("encoding"),
  );
  whole("position of the query", 0, N - 1, "position");
  whole("offset of the key", 1 - N, N - 1, "offset");
  whole("features", 2, query.length, "num_hiddens", 2);
  const base = slider(
    controls,
    { label: "base", min: 10, max: 100000, step: 0.01, value: now.base, scale: "log", digits: 0 },
    change("base"),
  ).parentNode;
  const distance = whole("largest distance", bias.length / 4 + 1, 64, "max_distance");
  tick(controls, { label: "words count", value: now.words }, change("words"));

  const panels = add(el, "div", { class: "d2lmini-panels" });
  const left = add(panels, "figure"),
    side = 320;
  const map = panel(left, {
    width: side,
    height: side,
    x: [0, 1],
    y: [0, N],
    label: "the encoding, a row for each position",
  });
  const cells = Array.from({ length: N * Math.max(N, query.length) }, () => draw(map.svg, "rect"));
  const chosen = draw(map.svg, "rect", {
    x: 1,
    width: side - 2,
    height: side / N,
    fill: "none",
    stroke: "currentColor",
    "stroke-width": 2,
  });
  const title = add(left, "figcaption");

  const right = add(panels, "figure"),
    height = 320;
  const plot = panel(right, { width: 420, height, x: [-N, N], y: [0, 1], label: "score against offset" });
  const zero = draw(plot.svg, "line", { x1: 0, x2: 420, stroke: "#8888" });
  const marker = draw(plot.svg, "line", { y1: 0, y2: height, stroke: "currentColor", "stroke-dasharray": "3 4" });
  const curve = (attributes) => draw(plot.svg, "polyline", { fill: "none", ...attributes });
  const others = Array.from({ length: 8 }, () => curve({ stroke: "var(--blue)", "stroke-opacity": 0.45 }));
  const own = curve({ stroke: "var(--orange)", "stroke-width": 2.5 });
  const top = draw(plot.svg, "text", { x: 6, y: 16 }),
    bottom = draw(plot.svg, "text", { x: 6, y: height - 6 });
  draw(plot.svg, "line", { x1: plot.x(0), x2: plot.x(0), y1: 0, y2: height, stroke: "#8886" });
  const where = draw(plot.svg, "text", { y: height - 24 });
  add(right, "figcaption", {}, "score against offset: from the chosen position (thick) and from eight others");

  const scroll = scroller(el);
  const sheet = add(scroll, "table", { "aria-label": "scores by offset" });
  const head = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  const columns = Array.from({ length: 2 * SHOWN + 1 }, (_, i) => i - SHOWN);
  add(head, "th", { scope: "col" }, "offset");
  for (const offset of columns) add(head, "th", { scope: "col" }, String(offset).replace("-", "−"));
  const rows = ["from here", "least from anywhere", "greatest from anywhere"].map((name) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return columns.map(() => add(row, "td"));
  });
  const note = add(el, "div", { class: "d2lmini-note", "aria-live": "polite" });

  const angle = (i, feature) => i * now.base ** (-(feature - (feature % 2)) / now.num_hiddens);
  const sine = (i, f) => (f % 2 ? Math.cos : Math.sin)(angle(i, f));
  const turn = (i, f) => (f % 2 ? Math.sin : Math.cos)(angle(i, f));
  function bucket(offset) {
    const side = bias.length / 2,
      exact = Math.floor(side / 2),
      far = Math.abs(offset);
    const growth = Math.log(Math.max(far, exact) / exact) / Math.log(now.max_distance / exact);
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
    const used = word.slice(0, now.num_hiddens).map((x) => (now.words ? x : 0));
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
          q.reduce((sum, x, f) => sum + x * k[f], 0) / Math.sqrt(now.num_hiddens) +
          (now.encoding === "t5" ? bias[bucket(s - i)] : 0),
      ),
    );
  }

  function paintMap() {
    const t5 = now.encoding === "t5",
      width = t5 ? N : now.num_hiddens;
    const value = {
      sinusoidal: sine,
      rotary: turn,
      none: () => 0,
      t5: (i, s) => (2 * bucket(s - i)) / (bias.length - 1) - 1,
    }[now.encoding];
    cells.forEach((cell, n) => {
      const i = Math.floor(n / width),
        column = n % width;
      if (i >= N) {
        place(cell, { visibility: "hidden" });
        return;
      }
      const v = value(i, column);
      place(cell, {
        visibility: "visible",
        x: (column * side) / width,
        y: (i * side) / N,
        width: side / width,
        height: side / N,
        fill: v < 0 ? "var(--orange)" : "var(--blue)",
        "fill-opacity": Math.abs(v).toFixed(3),
      });
    });
    place(chosen, { y: (now.position * side) / N });
    title.textContent = {
      sinusoidal:
        "sines and cosines: a row for each position, a column for each feature (blue positive, orange negative)",
      rotary: "cosine and sine of the turns: a row for each position, a column for each feature",
      t5: "bucket of each pair: a row for each query, a column for each key",
      none: "no encoding: nothing to see at any position",
    }[now.encoding];
  }

  function paint() {
    const usesBase = now.encoding === "sinusoidal" || now.encoding === "rotary";
    base.style.display = usesBase ? "" : "none";
    distance.style.display = now.encoding === "t5" ? "" : "none";
    paintMap();
    const scores = allScores(),
      all = scores.flat();
    let low = Math.min(0, ...all),
      high = Math.max(0, ...all);
    if (high - low < 1e-9) [low, high] = [-1, 1];
    const y = (v) => 24 + ((high - v) / (high - low)) * (height - 48);
    const line = (i) => scores[i].map((v, s) => `${plot.x(s - i)},${y(v)}`).join(" ");
    others.forEach((node, n) => place(node, { points: line(Math.round((n * (N - 1)) / 7)) }));
    place(own, { points: line(now.position) });
    place(zero, { y1: y(0), y2: y(0) });
    const x = plot.x(now.offset),
      before = now.offset > N / 2;
    place(marker, { x1: x, x2: x });
    place(where, { x: x + (before ? -6 : 6), "text-anchor": before ? "end" : "start" });
    where.textContent = `offset ${now.offset}`;
    top.textContent = high.toFixed(1);
    bottom.textContent = low.toFixed(1);

    const shown = (v) => (Math.abs(v) < 0.005 ? 0 : v).toFixed(2).replace("-", "−");
    const range = (offset) => {
      const alike = scores.flatMap((row, i) => (i + offset >= 0 && i + offset < N ? [row[i + offset]] : []));
      return [Math.min(...alike), Math.max(...alike)];
    };
    columns.forEach((offset, c) => {
      const here = scores[now.position][now.position + offset],
        [least, greatest] = range(offset);
      rows[0][c].textContent = here === undefined ? "no key" : shown(here);
      rows[1][c].textContent = shown(least);
      rows[2][c].textContent = shown(greatest);
    });
    const target = now.position + now.offset,
      [least, greatest] = range(now.offset);
    const pair =
      target < 0 || target >= N
        ? `There is no key at position ${target}.`
        : `Query at ${now.position}, key at ${target}: score ${shown(scores[now.position][target])}.`;
    note.textContent =
      `${pair} All pairs at offset ${now.offset}: from ${shown(least)} to ${shown(greatest)}` +
      (greatest - least < 1e-9 ? ", the same everywhere." : `, a spread of ${shown(greatest - least)}.`);
  }
  paint();
}

export default { render };
