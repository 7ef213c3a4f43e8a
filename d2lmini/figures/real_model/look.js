// Inside the real model: where each head looks from the chosen token, what each block would say, and what is off.
import { add, button, choice, draw, onArrow, panel, place, scroller, strongest } from "../base/index.js";
import { REAL_MODEL } from "./load.js";
import { tokenName } from "./text.js";

const HEAD_SHADES = {
  first: "the first token",
  before: "the token before",
  itself: "the token itself",
  induction: "the token after its last occurrence",
};

// The share of a head's weights that goes where one of HEAD_SHADES says.
function headShare(weights, ids, shade) {
  const i = weights.length - 1;
  if (shade === "first") return weights[0];
  if (shade === "itself") return weights[i];
  if (shade === "before") return i ? weights[i - 1] : 0;
  let sum = 0;
  for (let j = 1; j <= i; j++) if (ids[j - 1] === ids[i]) sum += weights[j];
  return sum;
}

const shaded = (share) => ({ fill: "var(--blue)", "fill-opacity": (0.06 + 0.94 * share).toFixed(3) });

// What is off, [{block, head}], in words after `start`; "" where nothing is.
export function offNames(off, start) {
  const names = off.map(({ block, head }) => (head === null ? `block ${block + 1}` : `head ${block + 1}.${head + 1}`));
  return names.length ? `${start}with ${names.join(", ")} off` : "";
}

// `state()` is {ids, tokens, i}; `know()` asks anew about the chosen place, `changed()` hears that other heads are off.
export function realModelLook(parent, { state, know, changed, paint: paintText }, { blocks, heads, first, panelled }) {
  const CELL = [11, 24],
    LEFT = 14,
    KEY = 20,
    all = Array.from({ length: blocks * heads }, (_, n) => [Math.floor(n / heads), n % heads]);
  let chosen = [first.block, first.head],
    shade = "first",
    off = [], // {block, head}, head null for a whole block
    seen = null; // {i, ids, looks, layers} of the place that was asked about

  const fold = add(parent, "details");
  add(fold, "summary", { style: "min-height: 24px" }, `Look inside: ${blocks} × ${heads} heads, and the blocks`);
  fold.addEventListener("toggle", () => {
    if (fold.open) know();
    paintText();
  });
  const controls = add(fold, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
  const numbered = (n) => new Map(Array.from({ length: n }, (_, i) => [String(i), String(i + 1)]));
  const menus = [
    choice(controls, { label: "block", options: numbered(blocks), value: String(first.block) }, (value) =>
      pick([+value, chosen[1]]),
    ),
    choice(controls, { label: "head", options: numbered(heads), value: String(first.head) }, (value) =>
      pick([chosen[0], +value]),
    ),
  ];
  choice(controls, { label: "colour: attention to", options: HEAD_SHADES, value: shade }, (value) => {
    shade = value;
    paint();
  });
  const panels = add(fold, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const { svg } = panel(figure, {
    width: LEFT + CELL[0] * blocks + 4,
    height: CELL[1] * heads + 16 + KEY,
    x: [0, 1],
    y: [0, 1],
    label: "",
  });
  place(svg, { role: "img", tabindex: 0, "aria-label": "all heads: arrow keys choose a block and a head" });
  const cells = all.map(([b, h]) =>
    draw(svg, "rect", { x: LEFT + CELL[0] * b, y: 14 + CELL[1] * h, width: CELL[0] - 1, height: CELL[1] - 1 }),
  );
  for (let b = 0; b < blocks; b += b ? 5 : 4)
    draw(svg, "text", { x: LEFT + CELL[0] * (b + 0.5), y: 11, "text-anchor": "middle" }, String(b + 1));
  for (let h = 0; h < heads; h++) draw(svg, "text", { x: 2, y: 30 + CELL[1] * h }, String(h + 1));
  const under = 14 + CELL[1] * heads + 15,
    shares = [0, 0.25, 0.5, 0.75, 1];
  draw(svg, "text", { x: LEFT, y: under }, "across: block, down: head");
  shares.forEach((share, i) => {
    const x = LEFT + CELL[0] * (blocks - shares.length - 1.5 + i);
    draw(svg, "rect", { x, y: under - 10, width: CELL[0] - 1, height: 11, ...shaded(share) });
  });
  draw(
    svg,
    "text",
    { x: LEFT + CELL[0] * (blocks - shares.length - 2), y: under, "text-anchor": "end" },
    "attention 0",
  );
  draw(svg, "text", { x: LEFT + CELL[0] * (blocks - 1.2), y: under }, "1");
  const mark = draw(svg, "rect", {
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 2,
    "pointer-events": "none",
  });
  mark.setAttribute("width", CELL[0]);
  mark.setAttribute("height", CELL[1]);
  const follow = (event) => {
    const { left, top, width } = svg.getBoundingClientRect(),
      unit = (LEFT + CELL[0] * blocks + 4) / width;
    pick([
      Math.floor(((event.clientX - left) * unit - LEFT) / CELL[0]),
      Math.floor(((event.clientY - top) * unit - 14) / CELL[1]),
    ]);
  };
  svg.addEventListener("click", follow);
  onArrow(svg, (down, right) => pick([chosen[0] + right, chosen[1] + down]));
  const note = add(figure, "figcaption", { style: "min-height: 4.2em", "aria-live": "polite" });

  const switches = add(figure, "div", { class: "d2lmini-controls", style: "gap: 6px; margin: 4px 0" });
  const headOff = button(switches, "", () => toggle({ block: chosen[0], head: chosen[1] }));
  const blockOff = button(switches, "", () => toggle({ block: chosen[0], head: null }));
  const allOn = button(switches, "All on", () => put([]));
  const offNote = add(figure, "div", { role: "status" });
  const table = panelled ? null : realModelBlocks(add(panels, "div"), blocks);

  function pick([b, h]) {
    chosen = [Math.min(blocks - 1, Math.max(0, b)), Math.min(heads - 1, Math.max(0, h))];
    menus.forEach((menu, i) => {
      menu.value = String(chosen[i]);
    });
    paint();
    paintText();
  }

  const isOff = (one) => off.some(({ block, head }) => block === one.block && head === one.head);
  function toggle(one) {
    put(isOff(one) ? off.filter(({ block, head }) => block !== one.block || head !== one.head) : [...off, one]);
  }
  function put(others) {
    off = others;
    seen = null;
    changed();
    paint();
  }

  // What was seen, if it is of the chosen place of the text as it is.
  function current() {
    const { ids, i } = state();
    const same = seen && seen.i === i && seen.ids.length <= ids.length && seen.ids.every((id, j) => id === ids[j]);
    return same ? seen : null;
  }

  const weightsNow = () => current()?.looks[chosen[0] * heads + chosen[1]];

  function paint() {
    if (!fold.open) return;
    const { tokens, i } = state(),
      now = current(),
      [b, h] = chosen;
    svg.style.opacity = now ? "" : 0.3;
    svg.dataset.place = now ? i : "";
    cells.forEach((cell, n) => {
      const [block, head] = all[n],
        gone = isOff({ block, head }) || isOff({ block, head: null });
      const share = now && !gone ? headShare(now.looks[n], now.ids, shade) : 0;
      place(cell, {
        ...(gone ? { fill: "#8888", "fill-opacity": 1 } : shaded(share)),
        "data-share": share.toFixed(4),
      });
    });
    place(mark, { x: LEFT + CELL[0] * b - 0.5, y: 14 + CELL[1] * h - 0.5 });
    const gone = isOff({ block: b, head: h }) || isOff({ block: b, head: null }),
      weights = gone ? null : weightsNow(),
      names = tokens.slice(0, i + 1).map(({ name }, j) => `“${tokenName(name)}”${j === i ? " (itself)" : ""}`);
    note.textContent = weights
      ? `Block ${b + 1}, head ${h + 1}: at “${tokenName(tokens[i].name)}” it looks most ` +
        `at ${strongest(names, (j) => weights[j])}.`
      : `Block ${b + 1}, head ${h + 1}${gone ? " is off" : ""}.`;
    const before = now && shade === "induction" && now.ids.slice(0, i).includes(now.ids[i]);
    if (now && shade === "induction" && !before)
      note.textContent += ` “${tokenName(tokens[i].name)}” has not occurred before, so no cell has a colour.`;
    const single = { block: b, head: h },
      whole = { block: b, head: null };
    headOff.textContent = `Head ${b + 1}.${h + 1} ${isOff(single) ? "on" : "off"}`;
    blockOff.textContent = `Block ${b + 1} ${isOff(whole) ? "on" : "off"}`;
    allOn.style.display = off.length ? "" : "none";
    offNote.textContent = off.length ? `The model now writes${offNames(off, " ")}.` : "";
    table?.(now?.layers ?? null, b);
  }

  return {
    off: () => off.slice(),
    heads: () => (fold.open ? [chosen] : []),
    // The chosen head's weights at the chosen place: of a step while the model writes, else of what was asked.
    shade: (step) => (fold.open ? (weightsNow() ?? step?.looks?.[0] ?? null) : null),
    moved() {
      if (fold.open && !current()) know();
    },
    // Part of the question about a place.
    async ask(ask) {
      const { ids, i } = state();
      if (!fold.open || current()) return paint();
      const options = { tokens: ids.slice(0, i + 1), heads: all, layers: true, from: i, top: 5, off: off.slice() };
      await ask(REAL_MODEL, "real_look", options, ({ rows }) => {
        const row = rows.at(-1);
        if (!row) return; // it reads what comes before
        seen = { i: row.at, ids: options.tokens, looks: row.looks, layers: row.layers };
      });
      paint();
    },
  };
}

// A table of what each block would say. Returns a function that shows layers, or none.
function realModelBlocks(parent, blocks) {
  const box = scroller(parent);
  box.style.maxHeight = "20em";
  box.style.overflowY = "auto";
  const table = add(box, "table", { class: "d2lmini-words" });
  add(table, "caption", {}, "What the last layer would predict from the output of each block");
  const top = add(add(table, "thead"), "tr");
  for (const text of ["block", "likeliest next tokens"]) add(top, "th", { scope: "col" }, text);
  const body = add(table, "tbody");
  const lines = Array.from({ length: blocks + 1 }, (_, b) => {
    const line = add(body, "tr");
    add(line, "th", { scope: "row" }, b ? String(b) : "embedding");
    return { line, cell: add(line, "td") };
  });
  return (layers, block) =>
    lines.forEach(({ line, cell }, b) => {
      const said = layers?.[b];
      cell.textContent = said
        ? said.pieces
            .slice(0, 3)
            .map((piece, j) => `${tokenName(piece)} ${said.p[j].toFixed(2)}`)
            .join(" · ")
        : "…";
      line.classList.toggle("chosen", b === block + 1);
    });
}
