// Attention in tiles: the scores of one tile, what is known of each query so far, and what was kept and moved.
const WIDE = 340,
  LEFT = 38,
  TOP = 24;

function render({ model, el }) {
  const scores = model.get("scores"),
    values = model.get("values"),
    tiles = model.get("tiles"),
    D = model.get("num_features");
  const T = scores.length,
    S = values.length,
    E = values[0].length;
  const now = Object.fromEntries(["tile", "causal", "step", "query"].map((key) => [key, model.get(key)]));
  const set = (key, value) => {
    if (now[key] !== value) {
      now[key] = value;
      keep(model, key, value);
    }
  };
  const seen = (t, s) => !now.causal || s <= t + S - T,
    score = (t, s) => (seen(t, s) ? scores[t][s] : -Infinity);
  const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
  const fix = (x, digits = 2) => (x === -Infinity ? "−∞" : x.toFixed(digits).replace("-", "−"));
  const vector = (x) => x.map((number) => fix(number)).join("\n"); // a column
  const span = (name, list) =>
    list.length > 1
      ? `${name === "query" ? "queries" : `${name}s`} ${list[0]} to ${list.at(-1)}`
      : `${name} ${list[0]}`;

  // The tiles in their order, as TilingStepper.steps: those that hide all are left out.
  function cuts() {
    const [height, width] = tiles[now.tile],
      all = [];
    for (let t = 0; t < T; t += height)
      for (let s = 0; s < S; s += width) {
        const rows = range(t, Math.min(t + height, T)),
          columns = range(s, Math.min(s + width, S));
        if (rows.some((t) => columns.some((s) => seen(t, s)))) all.push({ rows, columns });
      }
    return all;
  }
  // One tile of keys for one query, as OnlineSoftmax.add.
  function take({ top, total, output }, t, columns) {
    const high = Math.max(top, ...columns.map((s) => score(t, s))),
      base = high === -Infinity ? 0 : high;
    const factor = Math.exp(top - base),
      powers = columns.map((s) => Math.exp(score(t, s) - base));
    const fresh = powers.reduce((a, b) => a + b, 0);
    return {
      factor,
      fresh,
      before: { top, total },
      top: high,
      total: total * factor + fresh,
      output: output.map((o, e) => o * factor + powers.reduce((sum, p, i) => sum + p * values[columns[i]][e], 0)),
    };
  }
  const average = ({ total, output }) => output.map((o) => o / (total || 1));
  const plain = (t) =>
    softmax(range(0, S).map((s) => score(t, s))).reduce(
      (sum, w, s) => sum.map((o, e) => o + w * values[s][e]),
      Array(E).fill(0),
    );

  const walking = add(el, "div", { class: "d2lmini-controls" });
  const walk = stepper(walking, { label: "tile", max: cuts().length, value: now.step }, (step) => {
    set("step", step);
    paint();
  });
  const settings = add(el, "div", { class: "d2lmini-controls" });
  const cut = () => {
    const { length } = cuts();
    walk.end(length);
    walk.go(Math.min(now.step, length));
  };
  if (tiles.length > 1)
    choice(
      settings,
      { label: "queries × keys of a tile", options: { ...tiles.map(([t, s]) => `${t} × ${s}`) }, value: now.tile },
      (n) => {
        set("tile", Number(n));
        cut();
      },
    );
  if (T <= S)
    tick(settings, { label: "causal", value: now.causal }, (on) => {
      set("causal", on);
      cut();
    });
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 5.8em; margin-bottom: 6px",
  });

  const panels = add(el, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure"),
    cell = Math.min(38, (WIDE - LEFT - 6) / S);
  const width = LEFT + S * cell + 6,
    height = TOP + T * cell + 6,
    x = (s) => LEFT + s * cell,
    y = (t) => TOP + t * cell;
  const { svg } = panel(figure, {
    width,
    height,
    x: [0, 1],
    y: [0, 1],
    label: "the scores: a row for each query, a column for each key",
  });
  const keyNames = range(0, S).map((s) =>
    draw(svg, "text", { x: x(s) + cell / 2, y: TOP - 8, "text-anchor": "middle" }, `k${s}`),
  );
  const queryNames = [],
    cells = range(0, T).map((t) => {
      const row = draw(svg, "g");
      row.addEventListener("pointerenter", () => follow(t));
      draw(row, "rect", { x: 0, y: y(t), width, height: cell, fill: "transparent" }); // what a pointer can hit
      queryNames.push(draw(row, "text", { x: LEFT - 7, y: y(t) + cell / 2 + 4, "text-anchor": "end" }, `q${t}`));
      return range(0, S).map((s) => ({
        box: draw(row, "rect", {
          x: x(s) + 1,
          y: y(t) + 1,
          width: cell - 2,
          height: cell - 2,
          rx: 2,
          "data-pair": `${t} ${s}`,
        }),
        cross: draw(row, "path", {
          d: `M${x(s) + 9} ${y(t) + 9}l${cell - 18} ${cell - 18}m0 ${18 - cell}l${18 - cell} ${cell - 18}`,
          stroke: "currentColor",
          opacity: 0.35,
        }),
        text: draw(row, "text", { x: x(s) + cell / 2, y: y(t) + cell / 2 + 4, "text-anchor": "middle" }),
      }));
    });
  const frame = draw(svg, "rect", {
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 3,
    "pointer-events": "none",
  });
  add(
    figure,
    "figcaption",
    {},
    "Orange: the tile whose scores are there now, and what of queries and keys is in fast memory. Blue: scores " +
      "that were there and are gone. Crossed: hidden.",
  );

  const side = add(panels, "div", { style: "flex: 2 1 22rem" }),
    sheet = add(scroller(side), "table", { "aria-label": "what is known of each query" });
  const heads = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  for (const text of ["", "factor", "top", "total", "output", "average", "error"])
    add(heads, text ? "th" : "td", text ? { scope: "col" } : {}, text);
  const rows = range(0, T).map((t) => {
    const row = add(body, "tr", { style: `height: ${1.4 * E + 0.8}em; white-space: pre` }),
      name = rowName(row, `q${t}`, `follow query ${t}`, () => follow(t));
    return { row, name, cells: range(0, 6).map(() => add(row, "td")) };
  });
  rove(
    rows.map(({ name }) => name),
    { entry: now.query },
  );
  const counts = add(add(scroller(side), "table", { "aria-label": "what is kept and moved" }), "tbody");
  const facts = ["", "scores at once", "numbers in fast memory", "numbers moved so far"].map((name, i) => {
    const row = add(counts, "tr"),
      kind = i ? "td" : "th",
      scope = i ? {} : { scope: "col" };
    add(row, i ? "th" : "td", i ? { scope: "row" } : {}, name);
    return [add(row, kind, scope), add(row, kind, scope)];
  });
  [facts[0][0].textContent, facts[0][1].textContent] = ["in tiles", "plain form, in all"];
  add(
    el,
    "div",
    { class: "d2lmini-key" },
    "Top: the largest score so far. Total: the sum of exp(score − top). Output: the same sum with the values as " +
      "factors. Average: output over total; " +
      "error: how far it is from attention with the plain softmax. A query that is done leaves its average and " +
      "one more number in slow memory, the logarithm of its sum of " +
      "exponentials. The plain form writes and reads scores and weights.",
  );

  function follow(t) {
    if (t !== now.query) {
      set("query", t);
      paint();
    }
  }

  function paint() {
    const all = cuts(),
      { step } = now,
      tile = all[step - 1],
      done = new Map(range(0, T).map((t) => [t, null])),
      met = new Set();
    let moved = 0;
    all.slice(0, step).forEach(({ rows, columns }, i) => {
      for (const t of rows) {
        done.set(t, take(done.get(t) ?? { top: -Infinity, total: 0, output: Array(E).fill(0) }, t, columns));
        for (const s of columns) met.add(t * S + s);
      }
      moved +=
        columns.length * (D + E) +
        (all[i - 1]?.rows[0] !== rows[0] ? rows.length * D : 0) +
        (all[i + 1]?.rows[0] !== rows[0] ? rows.length * (E + 1) : 0);
    });
    const here = (t, s) => Boolean(tile?.rows.includes(t) && tile.columns.includes(s)),
      within = new Set(all.flatMap(({ rows, columns }) => rows.flatMap((t) => columns.map((s) => t * S + s))));
    cells.forEach((row, t) =>
      row.forEach(({ box, cross, text }, s) => {
        const is = here(t, s) ? "now" : !within.has(t * S + s) ? "never" : met.has(t * S + s) ? "gone" : "to come";
        place(box, {
          "data-is": is,
          fill: is === "now" ? "var(--orange)" : is === "gone" ? "var(--blue)" : "transparent",
          "fill-opacity": is === "now" ? 0.2 : 0.35,
          stroke: "currentColor",
          "stroke-opacity": 0.25,
        });
        cross.style.display = is === "never" || (!seen(t, s) && is !== "now") ? "" : "none";
        text.textContent = is === "now" ? fix(score(t, s), Math.abs(score(t, s)) < 9.95 ? 1 : 0) : "";
      }),
    );
    const light = (node, on) =>
      place(node, {
        fill: on ? "var(--orange)" : "currentColor",
        "font-weight": on ? 700 : 400,
        style: on ? "fill: var(--orange)" : "",
      });
    keyNames.forEach((node, s) => light(node, tile?.columns.includes(s)));
    queryNames.forEach((node, t) => light(node, tile?.rows.includes(t)));
    frame.style.display = tile ? "" : "none";
    if (tile)
      place(frame, {
        x: x(tile.columns[0]),
        y: y(tile.rows[0]),
        width: tile.columns.length * cell,
        height: tile.rows.length * cell,
      });

    let worst = 0;
    rows.forEach(({ row, name, cells }, t) => {
      const state = done.get(t),
        inside = tile?.rows.includes(t),
        off = state && Math.max(...average(state).map((o, e) => Math.abs(o - plain(t)[e])));
      worst = Math.max(worst, off ?? 0);
      const text = [
        ...(inside ? [fix(state.factor), fix(state.top), fix(state.total), vector(state.output)] : ["", "", "", ""]),
        ...(state ? [vector(average(state)), small(off)] : ["", ""]),
      ];
      cells.forEach((node, i) => {
        node.textContent = text[i];
      });
      cells.slice(0, 4).forEach((node) => {
        node.style.background = inside ? "color-mix(in srgb, var(--orange) 18%, transparent)" : "";
      });
      row.classList.toggle("chosen", t === now.query);
      place(name, { "aria-pressed": t === now.query });
    });
    const [t, s] = [tile?.rows.length ?? 0, tile?.columns.length ?? 0];
    [
      [t * s, T * S],
      [t * D + s * (D + E) + t * s + t * (2 + E), ""],
      [moved, T * D + S * D + 4 * T * S + S * E + T * E],
    ].forEach((pair, i) =>
      pair.forEach((n, j) => {
        facts[i + 1][j].textContent = n;
      }),
    );
    note.textContent = tile
      ? tell(tile, all.length, done.get(now.query)) +
        (step === all.length
          ? ` This was the last tile: the largest difference to the plain softmax is ${small(worst)}.`
          : "")
      : `${all.length} tiles to go. Queries, keys and values are in slow memory; of the scores there is none.`;
  }
  const small = (x) => (x === 0 ? "0" : x >= 0.01 ? x.toFixed(2) : x.toExponential(0).replace("-", "−"));

  function tell({ rows, columns }, length, state) {
    const q = now.query,
      begin = `Tile ${now.step} of ${length}: ${span("query", rows)} and ${span("key", columns)}. `;
    if (!state) return `${begin}Query ${q} has its turn later.`;
    const { factor, fresh, before, top, total } = state;
    if (!rows.includes(q))
      return (
        `${begin}Query ${q} is done: its average is written, and the logarithm of its sum, ${fix(top)} + ln ` +
        `${fix(total)} = ${fix(top + Math.log(total))}.`
      );
    if (!columns.some((s) => seen(q, s))) return `${begin}Query ${q} sees none of these keys: nothing changes.`;
    if (before.top === -Infinity)
      return (
        `${begin}Query ${q}: the largest score is ${fix(top)}. The sum of the exponentials of score − ` +
        `${fix(top)} is ${fix(total)}.`
      );
    return (
      begin +
      (top > before.top
        ? `Query ${q}: the largest score goes from ${fix(before.top)} to ${fix(top)}, so both sums shrink by the ` +
          `factor exp(${fix(before.top)} − ${fix(top)}) = ${fix(factor)}.`
        : `Query ${q}: the largest score stays ${fix(top)}, so the factor is 1.`) +
      ` The sum is now ${fix(factor)} × ${fix(before.total)} + ${fix(fresh)} = ${fix(total)}.`
    );
  }
  paint();
}

export default { render };
