// Who may attend to whom: a grid for each family, a row for each query, a column for each key.
import { add, button, draw, keep, panel, place, rove, views } from "./base/index.js";
import { joined } from "./numbers/pattern_explorer.js";

/**
 * @typedef {import("./numbers/pattern_explorer.js").Block} Block
 * @typedef {{ name: string, blocks: Block[] } & ReturnType<typeof joined>} Family
 */

const LEFT = 74,
  TOP = 58;
const short = (word, n) => ([...word].length > n ? [...word].slice(0, n - 1).join("") + "…" : word);

// A pair that is there: a square, crossed where it is masked.
function pair(row, { x, y, size }, name, /** @type {boolean} */ seen) {
  const node = draw(row, "rect", { x, y, width: size, height: size, rx: 2, "data-pair": name, "data-seen": seen });
  if (!seen)
    draw(row, "path", {
      d: `M${x + 3} ${y + 3}l${size - 6} ${size - 6}m0 ${6 - size}l${6 - size} ${size - 6}`,
      stroke: "currentColor",
      opacity: 0.3,
    });
  return node;
}

// A family: its grid, how many pairs it computes, and the tokens that the one pointed at sees.
function view(figure, /** @type {Family} */ family, /** @type {string[]} */ tokens, point) {
  const { name, blocks, grid, rows, columns, counts } = family,
    cell = Math.min(20, Math.floor((330 - LEFT) / tokens.length)),
    width = LEFT + columns.length * cell + 8,
    height = TOP + rows.length * cell + 8;
  add(figure, "b", {}, name);
  const label = `${name}: a row for each token that looks, a column for each that is looked at`;
  const { svg } = panel(figure, { width, height, x: [0, 1], y: [0, 1], label });
  figure.style.maxWidth = "345px"; // two in a row, with room for the names below
  const x = (/** @type {number} */ s) => LEFT + columns.indexOf(s) * cell,
    y = (/** @type {number} */ t) => TOP + rows.indexOf(t) * cell;
  const heads = columns.map((s) => {
    const at = { x: x(s) + cell / 2, y: TOP - 6, "text-anchor": "end", style: "writing-mode: vertical-rl" };
    return draw(svg, "text", at, short(tokens[s], 7));
  });
  const lines = rows.map((t) => {
    const row = draw(svg, "g");
    row.addEventListener("pointerenter", () => point(t));
    draw(row, "rect", { x: 0, y: y(t), width, height: cell, fill: "transparent" }); // what a pointer can hit
    const at = { x: LEFT - 6, y: y(t) + cell / 2 + 4, "text-anchor": "end" };
    const title = draw(row, "text", at, short(tokens[t], 9));
    const cells = columns.flatMap((s) => {
      const seen = grid[t][s];
      if (seen === null) return [];
      return { node: pair(row, { x: x(s) + 2, y: y(t) + 2, size: cell - 4 }, `${tokens[t]} ${tokens[s]}`, seen), seen };
    });
    return { t, title, cells };
  });
  // a frame around each attention, where there are several
  const edge = { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "pointer-events": "none" };
  if (blocks.length > 1)
    for (const { rows: ts, columns: ss } of blocks)
      draw(svg, "rect", { x: x(ss[0]), y: y(ts[0]), width: ss.length * cell, height: ts.length * cell, ...edge });
  const total = counts.reduce((a, b) => a + b),
    parts = blocks.map((block, i) => `${block.name} ${counts[i]}`).join(" + "),
    of = blocks.length > 1 ? `: ${parts}` : ` of ${rows.length * columns.length}`;
  add(figure, "figcaption", { class: "count" }, `${total} pairs${of}`);
  const seeing = add(figure, "div", {
    role: "group",
    "aria-label": `${name}: what the token sees`,
    style: "display: flex; flex-wrap: wrap; gap: 3px; margin-top: 6px",
  });
  const chips = columns.map((s) => add(seeing, "span", {}, tokens[s]));

  return (/** @type {number} */ token) => {
    const bold = (node, /** @type {boolean} */ on) =>
      place(node, { "font-weight": on ? 700 : 400, opacity: on ? 1 : 0.75 });
    for (const { t, title, cells } of lines) {
      const lit = t === token;
      bold(title, lit);
      for (const { node, seen } of cells)
        place(node, {
          fill: !seen ? "transparent" : lit ? "var(--orange)" : "var(--blue)",
          "fill-opacity": lit ? 0.9 : 0.45,
          stroke: lit ? "var(--orange)" : "currentColor",
          "stroke-opacity": lit ? 1 : 0.25,
          "stroke-width": lit ? 2 : 1,
        });
    }
    columns.forEach((s, i) => {
      const sees = grid[token][s] === true;
      bold(heads[i], sees);
      place(chips[i], { "data-seen": sees, "aria-hidden": !sees });
      chips[i].style.cssText =
        "padding: 1px 6px; border-radius: 4px; border: 1px solid; " +
        (sees
          ? "border-color: var(--orange); background: color-mix(in srgb, var(--orange) 30%, transparent)"
          : "border-color: transparent; opacity: 0.8; text-decoration: line-through");
    });
  };
}

function render({ model, el }) {
  const tokens = model.get("tokens"),
    given = /** @type {{ name: string, blocks: Block[] }[]} */ (model.get("families")),
    families = given.map((family) => ({ ...family, ...joined(family.blocks, tokens.length) }));
  let token = model.get("token");
  const point = (/** @type {number} */ t) => {
    if (t === token) return;
    token = t;
    keep(model, "token", t);
    paint();
  };

  add(el, "div", { style: "opacity: 0.85" }, "the token that looks");
  const line = add(el, "div", {
    class: "d2lmini-maps",
    role: "group",
    "aria-label": "tokens",
    style: "gap: 5px; margin: 2px 0 6px",
  });
  const picks = tokens.map((word, t) => {
    const node = button(line, word, () => point(t));
    for (const kind of ["pointerenter", "focus"]) node.addEventListener(kind, () => point(t));
    return node;
  });
  rove(picks, { entry: token });
  const note = add(el, "div", {
    class: "d2lmini-note",
    "aria-live": "polite",
    style: "min-height: 2.8em; margin-bottom: 6px",
  });
  const names = families.map(({ name }) => name),
    boxes = views(el, "kind of model", names),
    painters = families.map((family, n) => view(boxes[n], family, tokens, point));
  add(
    el,
    "div",
    { class: "d2lmini-key" },
    "Filled: a pair that is computed, and may have weight. Crossed: masked, weight 0. " +
      (families.some(({ blocks }) => blocks.length > 1)
        ? "Empty: there is no such pair; each frame is an attention of its own."
        : ""),
  );

  function paint() {
    picks.forEach((node, t) => place(node, { "aria-pressed": t === token }));
    for (const painter of painters) painter(token);
    const counted = families.map(({ name, grid, rows }) => {
      return `${name}: ${rows.includes(token) ? grid[token].filter(Boolean).length : "no row"}`;
    });
    note.textContent = `How many tokens “${tokens[token]}” may look at: ${counted.join("; ")}.`;
  }
  paint();
}

export default { render };
