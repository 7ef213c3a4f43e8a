// Who may attend to whom: a grid for each family, a row for each query, a column for each key.
import { add, button, draw, keep, panel, place, rove, views } from "./base/index.js";

const LEFT = 74,
  TOP = 58;

function render({ model, el }) {
  const tokens = model.get("tokens"),
    N = tokens.length,
    cell = Math.min(20, Math.floor((330 - LEFT) / N));
  const short = (word, n) => ([...word].length > n ? [...word].slice(0, n - 1).join("") + "…" : word);
  let token = model.get("token");
  const families = model.get("families").map(({ name, blocks }) => {
    const grid = new Map(); // the pairs that there are, and whether they are seen
    for (const { rows, columns, data } of blocks)
      rows.forEach((t, i) => columns.forEach((s, j) => grid.set(t * N + s, data[i * columns.length + j] === "1")));
    const axis = (side) => [...new Set(blocks.flatMap((block) => block[side]))].sort((a, b) => a - b);
    return { name, blocks, grid, rows: axis("rows"), columns: axis("columns") };
  });
  const point = (t) => {
    if (t !== token) {
      token = t;
      keep(model, "token", t);
      paint();
    }
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

  const boxes = views(
    el,
    "kind of model",
    families.map(({ name }) => name),
  );
  const drawn = families.map(({ name, blocks, grid, rows, columns }, n) => {
    const figure = boxes[n];
    add(figure, "b", {}, name);
    const width = LEFT + columns.length * cell + 8,
      height = TOP + rows.length * cell + 8;
    const { svg } = panel(figure, {
      width,
      height,
      x: [0, 1],
      y: [0, 1],
      label: `${name}: a row for each token that looks, a column for each that is looked at`,
    });
    figure.style.maxWidth = "345px"; // two in a row, with room for the names below
    const x = (s) => LEFT + columns.indexOf(s) * cell,
      y = (t) => TOP + rows.indexOf(t) * cell;
    const heads = new Map(
      columns.map((s) => [
        s,
        draw(
          svg,
          "text",
          { x: x(s) + cell / 2, y: TOP - 6, "text-anchor": "end", style: "writing-mode: vertical-rl" },
          short(tokens[s], 7),
        ),
      ]),
    );
    const names = new Map(),
      cells = [];
    for (const t of rows) {
      const row = draw(svg, "g");
      row.addEventListener("pointerenter", () => point(t));
      draw(row, "rect", { x: 0, y: y(t), width, height: cell, fill: "transparent" }); // what a pointer can hit
      names.set(
        t,
        draw(row, "text", { x: LEFT - 6, y: y(t) + cell / 2 + 4, "text-anchor": "end" }, short(tokens[t], 9)),
      );
      for (const s of columns) {
        const seen = grid.get(t * N + s),
          [a, b, size] = [x(s) + 2, y(t) + 2, cell - 4];
        if (seen === undefined) continue;
        const node = draw(row, "rect", {
          x: a,
          y: b,
          width: size,
          height: size,
          rx: 2,
          "data-pair": `${tokens[t]} ${tokens[s]}`,
          "data-seen": seen,
        });
        if (!seen)
          draw(row, "path", {
            d: `M${a + 3} ${b + 3}l${size - 6} ${size - 6}m0 ${6 - size}l${6 - size} ${size - 6}`,
            stroke: "currentColor",
            opacity: 0.3,
          });
        cells.push({ node, t, seen });
      }
    }
    // a frame around each attention, where there are several
    if (blocks.length > 1)
      for (const { rows: ts, columns: ss } of blocks)
        draw(svg, "rect", {
          x: x(ss[0]),
          y: y(ts[0]),
          width: ss.length * cell,
          height: ts.length * cell,
          fill: "none",
          stroke: "currentColor",
          "stroke-width": 1.5,
          "pointer-events": "none",
        });
    const counts = blocks.map(({ name: what, data }) => [what, [...data].filter((bit) => bit === "1").length]);
    const total = counts.reduce((sum, [, n]) => sum + n, 0),
      parts = counts.map(([what, n]) => `${what} ${n}`).join(" + ");
    add(
      figure,
      "figcaption",
      { class: "count" },
      `${total} pairs` + (blocks.length > 1 ? `: ${parts}` : ` of ${grid.size}`),
    );
    const seeing = add(figure, "div", {
      role: "group",
      "aria-label": `${name}: what the token sees`,
      style: "display: flex; flex-wrap: wrap; gap: 3px; margin-top: 6px",
    });
    return { names, heads, cells, chips: columns.map((s) => ({ s, node: add(seeing, "span", {}, tokens[s]) })) };
  });
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
    const counted = families.map(({ name, grid, rows }, n) => {
      const { names, heads, cells, chips } = drawn[n],
        sees = (s) => grid.get(token * N + s) === true;
      for (const [t, node] of names)
        place(node, { "font-weight": t === token ? 700 : 400, opacity: t === token ? 1 : 0.75 });
      for (const [s, node] of heads) place(node, { "font-weight": sees(s) ? 700 : 400, opacity: sees(s) ? 1 : 0.75 });
      for (const { node, t, seen } of cells) {
        const lit = t === token;
        place(node, {
          fill: !seen ? "transparent" : lit ? "var(--orange)" : "var(--blue)",
          "fill-opacity": lit ? 0.9 : 0.45,
          stroke: lit ? "var(--orange)" : "currentColor",
          "stroke-opacity": lit ? 1 : 0.25,
          "stroke-width": lit ? 2 : 1,
        });
      }
      for (const { s, node } of chips) {
        place(node, { "data-seen": sees(s), "aria-hidden": !sees(s) });
        node.style.cssText =
          "padding: 1px 6px; border-radius: 4px; border: 1px solid; " +
          (sees(s)
            ? "border-color: var(--orange); background: color-mix(in srgb, var(--orange) 30%, transparent)"
            : "border-color: transparent; opacity: 0.8; text-decoration: line-through");
      }
      const count = chips.filter(({ s }) => sees(s)).length;
      return `${name}: ${rows.includes(token) ? count : "no row"}`;
    });
    note.textContent = `How many tokens “${tokens[token]}” may look at: ${counted.join("; ")}.`;
  }
  paint();
}

export default { render };
