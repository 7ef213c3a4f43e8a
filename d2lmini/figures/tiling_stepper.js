// Attention in tiles: a row for each query, with the scores of one tile and what is known of the query so far.
import { add, choice, columns, keep, place, rove, rowName, scroller, stepper, tick } from "./base/index.js";
import { average, cuts, errorOf, known, memory, sees, statuses } from "./numbers/tiling_stepper.js";

/**
 * @typedef {import("./numbers/tiling_stepper.js").Tile} Tile
 * @typedef {import("./numbers/tiling_stepper.js").Known} Known
 * @typedef {{ scores: number[][], values: number[][], tiles: number[][], num_features: number, tile: number,
 *   causal: boolean, step: number, query: number }} State
 * @typedef {ReturnType<typeof reckon>} Found
 */

const ROOM = "0 clamp(1px, 1vw - 3px, 8px)"; // left and right of a number: on a phone just enough
const SIZE = "min(1em, 2.9vw)"; // of the keys and scores

const fix = (/** @type {number} */ x, digits = 2) => (x === -Infinity ? "−∞" : x.toFixed(digits).replace("-", "−"));
const small = (/** @type {number} */ x) =>
  x < 1e-9 ? "0" : x >= 0.01 ? x.toFixed(2) : x.toExponential(0).replace("-", "−");
const whole = (/** @type {State} */ { scores }) => scores.flat().every(Number.isInteger);
const plural = (name) => (name === "query" ? "queries" : `${name}s`),
  many = (n, name) => `${n} ${n === 1 ? name : plural(name)}`,
  span = (name, list) => (list.length > 1 ? `${plural(name)} ${list[0]} to ${list.at(-1)}` : `${name} ${list[0]}`);
const tint = (name, share) => `color-mix(in srgb, var(--${name}) ${share}%, transparent)`;
const light = (/** @type {HTMLElement} */ node, /** @type {boolean | undefined} */ on) => {
  node.style.fontWeight = on ? "700" : "400";
  node.style.color = on ? "var(--orange)" : "inherit";
};

const tilesOf = (/** @type {State} */ state) => cuts(state, state.tiles[state.tile]);

// All that a step shows.
function reckon(/** @type {State} */ state) {
  const tiles = tilesOf(state),
    sums = known(state, tiles.slice(0, state.step)),
    errors = sums.map((of, t) => (of ? errorOf(state, t, of) : 0));
  return {
    tiles,
    tile: /** @type {Tile | undefined} */ (tiles[state.step - 1]),
    sums,
    errors,
    status: statuses(state, tiles, state.step),
    ...memory(state, tiles, state.step),
  };
}

// The frame of a tile, of which each cell at the edge has its part.
const edges = (/** @type {Tile} */ { rows, columns }, t, s) =>
  [
    [t === rows[0], "0 2px"],
    [t === rows.at(-1), "0 -2px"],
    [s === columns[0], "2px 0"],
    [s === columns.at(-1), "-2px 0"],
  ]
    .flatMap(([is, shift]) => (is ? `inset ${shift} var(--orange)` : []))
    .join(", ");

// A row for each query: its scores, and what is known of it.
function sheet(/** @type {Element} */ el, /** @type {State} */ state, /** @type {(query: number) => void} */ follow) {
  const { scores, values, query } = state,
    [T, S] = [scores.length, values.length],
    digits = whole(state) ? 0 : 1,
    say = (/** @type {number} */ x) => fix(x, Math.abs(x) >= 9.95 ? 0 : digits); // a score, short enough for a cell
  const box = add(scroller(el), "table", { "aria-label": "scores, and what is known of each query" });
  box.style.cssText = "width: 100%; max-width: 44rem; table-layout: auto";
  const heads = add(add(box, "thead"), "tr"),
    body = add(box, "tbody");
  add(heads, "td");
  const keyNames = values.map((_, s) => add(heads, "th", { scope: "col" }, `k${s}`));
  for (const text of ["max", "sum", "average", "error"]) add(heads, "th", { scope: "col" }, text);
  const rows = scores.map((_, t) => {
    const row = add(body, "tr"),
      name = rowName(row, `q${t}`, `q${t}, follow query ${t}`, () => follow(t));
    for (const node of [row, name])
      node.style.cssText = "height: 24px; min-height: 24px; line-height: 1.2; white-space: pre";
    return { row, name, cells: values.map((_, s) => add(row, "td", { "data-pair": `${t} ${s}` })) };
  });
  const cells = rows.flatMap(({ row }) => [...row.cells]);
  for (const node of [...heads.cells, ...cells]) node.style.padding = ROOM;
  for (const node of [...keyNames, ...cells.filter((node) => node.localName === "td")]) {
    node.style.fontSize = SIZE;
    node.style.textAlign = "center";
  }
  const names = rows.map(({ name }) => name);
  rove(names, { entry: query });
  const caption =
    `Orange: the scores that exist now. Blue: used and gone.${T <= S ? " Striped: hidden." : ""} ` +
    "Max: the largest score so far. Sum: of exp(score − max). Average: of the values, weighted by these " +
    "exponentials. Error: how far it is from attention with the whole matrix.";
  add(el, "figcaption", {}, caption);

  return (/** @type {Found} */ { tile, sums, errors, status }) => {
    keyNames.forEach((node, s) => light(node, tile?.columns.includes(s)));
    rows.forEach(({ row, name, cells }, t) => {
      cells.forEach((cell, s) => {
        const is = status[t][s],
          hidden = !sees(state, t, s);
        cell.dataset.is = is;
        cell.className = is === "never" || (hidden && is !== "now") ? "masked" : "";
        cell.textContent = is === "now" ? say(hidden ? -Infinity : scores[t][s]) : "";
        cell.style.backgroundColor = { now: tint("orange", 25), gone: tint("blue", 45) }[is] ?? "";
        cell.style.boxShadow = tile && is === "now" ? edges(tile, t, s) : "";
      });
      const of = sums[t],
        inside = tile?.rows.includes(t);
      while (row.cells.length > S + 1) row.deleteCell(-1);
      const vector = of && average(of).map((x) => fix(x)), // a column
        told = vector ? [vector.join("\n"), small(errors[t])] : [],
        texts = of && inside ? [say(of.top), fix(of.total), ...told] : [of ? "done" : "to come", ...told];
      texts.forEach((text, i) => {
        const cell = add(row, "td", { style: "padding: 0 3px" }, text);
        cell.style.backgroundColor = inside ? tint("orange", 12) : "";
        if (inside || i) return;
        place(cell, { colspan: of ? 2 : 4 });
        cell.style.cssText += "text-align: center; opacity: 0.7";
      });
      light(name, t === state.query);
      place(name, { "aria-pressed": t === state.query });
    });
  };
}

// What is kept and moved, beside the plain form.
function counts(/** @type {Element} */ el, /** @type {State} */ { scores, values }) {
  const box = add(el, "table", { "aria-label": "what is kept and moved", style: "margin-top: 8px" }),
    body = columns(box, [null, "scores at once", "numbers moved"]);
  const cells = ["in tiles, so far", "whole matrix"].flatMap((name) => {
    const row = add(body, "tr");
    add(row, "th", { scope: "row" }, name);
    return [add(row, "td"), add(row, "td")];
  });
  return (/** @type {Found} */ { scores: largest, moved, plain }) => {
    for (const [i, n] of [largest, moved, scores.length * values.length, plain].entries())
      cells[i].textContent = String(n);
  };
}

function tell(/** @type {State} */ state, /** @type {Found} */ { tiles, tile, sums, errors }) {
  const { step, query: q } = state,
    exact = (/** @type {number} */ x) => fix(x, whole(state) ? 0 : 2);
  if (!tile)
    return `${tiles.length} tiles to go. Queries, keys and values are in slow memory; of the scores there is none.`;
  const end =
    step === tiles.length ? ` This was the last tile: the largest error is ${small(Math.max(...errors))}.` : "";
  return `Tile ${step} of ${tiles.length}: ${span("query", tile.rows)} and ${span("key", tile.columns)}. ${ofQuery()}${end}`;

  function ofQuery() {
    const of = sums[q];
    if (!of || !tile) return `Query ${q} has its turn later.`;
    const { factor, fresh, before, top, total } = of;
    if (!tile.rows.includes(q))
      return (
        `Query ${q} is done: its average is written, and the logarithm of its sum, ${exact(top)} + ln ` +
        `${fix(total)} = ${fix(top + Math.log(total))}.`
      );
    if (!tile.columns.some((s) => sees(state, q, s))) return `Query ${q} sees none of these keys: nothing changes.`;
    if (!before)
      return (
        `Query ${q}: the largest score is ${exact(top)}. The sum of the exponentials of score − ` +
        `${exact(top)} is ${fix(total)}.`
      );
    return (
      (top > before.top
        ? `Query ${q}: the largest score goes from ${exact(before.top)} to ${exact(top)}, so both sums shrink by the ` +
          `factor exp(${exact(before.top)} − ${exact(top)}) = ${fix(factor)}.`
        : `Query ${q}: the largest score stays ${exact(top)}, so the factor is 1.`) +
      ` The sum is now ${fix(factor)} × ${fix(before.total)} + ${fix(fresh)} = ${fix(total)}.`
    );
  }
}

function render({ model, el }) {
  const keys = ["scores", "values", "tiles", "num_features", "tile", "causal", "step", "query"],
    state = /** @type {State} */ (Object.fromEntries(keys.map((key) => [key, model.get(key)])));
  const set = (key, value) => {
    if (state[key] === value) return;
    state[key] = value;
    keep(model, key, value);
  };
  const walking = add(el, "div", { class: "d2lmini-controls" });
  const steps = { label: "tile", max: tilesOf(state).length, value: state.step };
  const walk = stepper(walking, steps, (step) => {
    set("step", step);
    const { rows } = tilesOf(state)[step - 1] ?? { rows: [state.query] };
    if (!rows.includes(state.query)) set("query", rows[0]);
    paint();
  });
  const settings = add(el, "div", { class: "d2lmini-controls" });
  const cut = (key, value) => {
    set(key, value);
    const { length } = tilesOf(state);
    walk.end(length);
    walk.go(Math.min(state.step, length));
  };
  const sizes = state.tiles.map(([t, s]) => `${many(t, "query")} × ${many(s, "key")}`),
    options = new Map(sizes.entries());
  if (sizes.length > 1)
    choice(settings, { label: "tiles of", options, value: state.tile }, (n) => cut("tile", Number(n)));
  if (state.scores.length <= state.values.length)
    tick(settings, { label: "causal", value: state.causal }, (on) => cut("causal", on));
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 4.2em; margin-bottom: 6px",
  });
  const paintSheet = sheet(el, state, (query) => {
    if (query === state.query) return;
    set("query", query);
    paint();
  });
  const paintCounts = counts(el, state);

  function paint() {
    const found = reckon(state);
    paintSheet(found);
    paintCounts(found);
    note.textContent = tell(state, found);
  }
  paint();
}

export default { render };
