// Attention in tiles: a row for each query, with the scores of one tile and what is known of the query so far.
import { add, choice, keep, place, rove, rowName, scroller, softmax, stepper, tick } from "./base/index.js";

const ROOM = "0 clamp(1px, 1vw - 3px, 8px)"; // left and right of a number: on a phone just enough
const SIZE = "min(1em, 2.9vw)"; // of the keys and scores

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
  const whole = scores.flat().every(Number.isInteger),
    say = (x) => fix(x, whole || Math.abs(x) >= 9.95 ? 0 : 1), // a score, short enough for a cell
    exact = (x) => fix(x, whole ? 0 : 2);
  const vector = (x) => x.map((number) => fix(number)).join("\n"); // a column
  const names = (name, n) => (n === 1 ? name : name === "query" ? "queries" : `${name}s`),
    many = (n, name) => `${n} ${names(name, n)}`,
    span = (name, list) => (list.length > 1 ? `${names(name, 2)} ${list[0]} to ${list.at(-1)}` : `${name} ${list[0]}`);

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
    const { rows } = cuts()[step - 1] ?? { rows: [now.query] };
    if (!rows.includes(now.query)) set("query", rows[0]);
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
      {
        label: "tiles of",
        options: { ...tiles.map(([t, s]) => `${many(t, "query")} × ${many(s, "key")}`) },
        value: now.tile,
      },
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
    style: "min-height: 4.2em; margin-bottom: 6px",
  });

  // A row for each query: its scores, and what is known of it.
  const sheet = add(scroller(el), "table", { "aria-label": "scores, and what is known of each query" });
  sheet.style.cssText = "width: 100%; max-width: 44rem; table-layout: auto";
  const heads = add(add(sheet, "thead"), "tr"),
    body = add(sheet, "tbody");
  add(heads, "td");
  const keyNames = range(0, S).map((s) => add(heads, "th", { scope: "col" }, `k${s}`));
  for (const text of ["max", "sum", "average", "error"]) add(heads, "th", { scope: "col" }, text);
  const rows = range(0, T).map((t) => {
    const row = add(body, "tr"),
      name = rowName(row, `q${t}`, `q${t}, follow query ${t}`, () => follow(t));
    for (const node of [row, name])
      node.style.cssText = "height: 24px; min-height: 24px; line-height: 1.2; white-space: pre";
    return { row, name, cells: range(0, S).map((s) => add(row, "td", { "data-pair": `${t} ${s}` })) };
  });
  for (const node of [...heads.cells, ...body.querySelectorAll("td, th")]) node.style.padding = ROOM;
  for (const node of [...keyNames, ...body.querySelectorAll("td")]) node.style.fontSize = SIZE;
  for (const node of [...keyNames, ...body.querySelectorAll("td")]) node.style.textAlign = "center";
  rove(
    rows.map(({ name }) => name),
    { entry: now.query },
  );
  add(
    el,
    "figcaption",
    {},
    `Orange: the scores that exist now. Blue: used and gone.${T <= S ? " Striped: hidden." : ""} ` +
      "Max: the largest score so far. Sum: of exp(score − max). Average: of the values, weighted by these " +
      "exponentials. Error: how far it is from attention with the whole matrix.",
  );
  const counts = add(el, "table", { "aria-label": "what is kept and moved", style: "margin-top: 8px" }),
    top = add(add(counts, "thead"), "tr"),
    ways = add(counts, "tbody");
  add(top, "td");
  for (const text of ["scores at once", "numbers moved"]) add(top, "th", { scope: "col" }, text);
  const facts = ["in tiles, so far", "whole matrix"].map((name) => {
    const row = add(ways, "tr");
    add(row, "th", { scope: "row" }, name);
    return [add(row, "td"), add(row, "td")];
  });

  function follow(t) {
    if (t !== now.query) {
      set("query", t);
      paint();
    }
  }

  const tint = (name, share) => `color-mix(in srgb, var(--${name}) ${share}%, transparent)`;
  const light = (node, on) => {
    node.style.fontWeight = on ? 700 : 400;
    node.style.color = on ? "var(--orange)" : "inherit";
  };
  // The frame of a tile, of which each cell at the edge has its part.
  const edges = ({ rows, columns }, t, s) =>
    [
      [t === rows[0], "0 2px"],
      [t === rows.at(-1), "0 -2px"],
      [s === columns[0], "2px 0"],
      [s === columns.at(-1), "-2px 0"],
    ]
      .flatMap(([is, shift]) => (is ? `inset ${shift} var(--orange)` : []))
      .join(", ");

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
    keyNames.forEach((node, s) => light(node, tile?.columns.includes(s)));
    let worst = 0;
    rows.forEach(({ row, name, cells }, t) => {
      cells.forEach((cell, s) => {
        const is = here(t, s) ? "now" : !within.has(t * S + s) ? "never" : met.has(t * S + s) ? "gone" : "to come";
        cell.dataset.is = is;
        cell.className = is === "never" || (!seen(t, s) && is !== "now") ? "masked" : "";
        cell.textContent = is === "now" ? say(score(t, s)) : "";
        cell.style.backgroundColor = { now: tint("orange", 25), gone: tint("blue", 45) }[is] ?? "";
        cell.style.boxShadow = is === "now" ? edges(tile, t, s) : "";
      });
      const state = done.get(t),
        inside = tile?.rows.includes(t),
        off = state && Math.max(...average(state).map((o, e) => Math.abs(o - plain(t)[e])));
      worst = Math.max(worst, off ?? 0);
      while (row.cells.length > S + 1) row.lastChild.remove();
      const known = state && [vector(average(state)), small(off)],
        texts = inside ? [say(state.top), fix(state.total), ...known] : state ? ["done", ...known] : ["to come"];
      texts.forEach((text, i) => {
        const cell = add(row, "td", { style: "padding: 0 3px" }, text);
        cell.style.backgroundColor = inside ? tint("orange", 12) : "";
        if (inside || i) return;
        place(cell, { colspan: state ? 2 : 4 });
        cell.style.cssText += "text-align: center; opacity: 0.7";
      });
      light(name, t === now.query);
      place(name, { "aria-pressed": t === now.query });
    });
    const largest = Math.max(0, ...all.slice(0, step).map(({ rows, columns }) => rows.length * columns.length));
    [
      [largest, moved],
      [T * S, T * D + S * D + 4 * T * S + S * E + T * E],
    ].forEach((pair, i) =>
      pair.forEach((n, j) => {
        facts[i][j].textContent = n;
      }),
    );
    note.textContent = tile
      ? tell(tile, all.length, done.get(now.query)) +
        (step === all.length ? ` This was the last tile: the largest error is ${small(worst)}.` : "")
      : `${all.length} tiles to go. Queries, keys and values are in slow memory; of the scores there is none.`;
  }
  const small = (x) => (x < 1e-9 ? "0" : x >= 0.01 ? x.toFixed(2) : x.toExponential(0).replace("-", "−"));

  function tell({ rows, columns }, length, state) {
    const q = now.query,
      begin = `Tile ${now.step} of ${length}: ${span("query", rows)} and ${span("key", columns)}. `;
    if (!state) return `${begin}Query ${q} has its turn later.`;
    const { factor, fresh, before, top, total } = state;
    if (!rows.includes(q))
      return (
        `${begin}Query ${q} is done: its average is written, and the logarithm of its sum, ${exact(top)} + ln ` +
        `${fix(total)} = ${fix(top + Math.log(total))}.`
      );
    if (!columns.some((s) => seen(q, s))) return `${begin}Query ${q} sees none of these keys: nothing changes.`;
    if (before.top === -Infinity)
      return (
        `${begin}Query ${q}: the largest score is ${exact(top)}. The sum of the exponentials of score − ` +
        `${exact(top)} is ${fix(total)}.`
      );
    return (
      begin +
      (top > before.top
        ? `Query ${q}: the largest score goes from ${exact(before.top)} to ${exact(top)}, so both sums shrink by the ` +
          `factor exp(${exact(before.top)} − ${exact(top)}) = ${fix(factor)}.`
        : `Query ${q}: the largest score stays ${exact(top)}, so the factor is 1.`) +
      ` The sum is now ${fix(factor)} × ${fix(before.total)} + ${fix(fresh)} = ${fix(total)}.`
    );
  }
  paint();
}

export default { render };
