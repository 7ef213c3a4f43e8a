// Inside the real model: where each head looks from the chosen token, what each block would say, and what is off.
import { add, button, choice, columns, scroller, strongest } from "../base/index.js";
import { HEAD_SHADES, headShare, isGone, isOff, toggled } from "../numbers/real_model.js";
import { headGrid } from "./head_grid.js";
import { REAL_MODEL } from "./load.js";
import { headName, namesBefore, offNames, tokenName } from "./text.js";

/**
 * @typedef {{ i: number, ids: number[], looks: ArrayLike<number>[], layers: { pieces: string[], p: number[] }[] }} Seen
 *   how all heads look, and what each block would say, at a place that was asked about
 */

// `state()` is {ids, tokens, i}; `know()` asks anew about the chosen place, `changed()` hears that other heads are off.
export function realModelLook(parent, { state, know, changed, paint: paintText }, { blocks, heads, first, panelled }) {
  const all = Array.from({ length: blocks * heads }, (_, n) => [Math.floor(n / heads), n % heads]);
  let [block, head] = [first.block, first.head],
    shade = "first",
    off = /** @type {import("../numbers/real_model.js").Off[]} */ ([]),
    seen = /** @type {Seen | null} */ (null);

  const fold = add(parent, "details");
  add(fold, "summary", { style: "min-height: 24px" }, `Look inside: ${blocks} × ${heads} heads, and the blocks`);
  fold.addEventListener("toggle", () => {
    if (fold.open) know();
    paintText();
  });
  const controls = add(fold, "div", { class: "d2lmini-controls", style: "margin: 4px 0" });
  const menu = (label, n, value, act) => {
    const options = new Map(Array.from({ length: n }, (_, i) => [String(i), String(i + 1)]));
    return choice(controls, { label, options, value: String(value) }, (chosen) => act(Number(chosen)));
  };
  const blockMenu = menu("block", blocks, block, (b) => pick(b, head)),
    headMenu = menu("head", heads, head, (h) => pick(block, h));
  choice(controls, { label: "colour: attention to", options: HEAD_SHADES, value: shade }, (value) => {
    shade = value;
    paint();
  });
  const panels = add(fold, "div", { class: "d2lmini-panels" }),
    figure = add(panels, "figure");
  const grid = headGrid(figure, blocks, heads, { pick, move: (down, right) => pick(block + right, head + down) });
  const note = add(figure, "figcaption", { style: "min-height: 4.2em", "aria-live": "polite" });
  const switches = add(figure, "div", { class: "d2lmini-controls", style: "gap: 6px; margin: 4px 0" });
  const headOff = button(switches, "", () => put(toggled(off, { block, head })));
  const blockOff = button(switches, "", () => put(toggled(off, { block, head: null })));
  const allOn = button(switches, "All on", () => put([]));
  const offNote = add(figure, "div", { role: "status" });
  const table = panelled ? null : blockTable(add(panels, "div"), blocks);

  function pick(b, h) {
    block = Math.min(blocks - 1, Math.max(0, b));
    head = Math.min(heads - 1, Math.max(0, h));
    blockMenu.value = String(block);
    headMenu.value = String(head);
    paint();
    paintText();
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

  const weightsNow = () => current()?.looks[block * heads + head];

  function paint() {
    if (!fold.open) return;
    const { tokens, i } = state(),
      now = current();
    grid({
      shares: all.map(([b, h], n) => (isGone(off, b, h) ? null : now ? headShare(now.looks[n], now.ids, shade) : 0)),
      place: now ? i : null,
      block,
      head,
    });
    note.textContent = lookText(tokens.slice(0, i + 1).map(({ name }) => name));
    const before = now?.ids.slice(0, i).includes(now.ids[i]);
    if (now && shade === "induction" && !before)
      note.textContent += ` “${tokenName(tokens[i].name)}” has not occurred before, so no cell has a colour.`;
    headOff.textContent = `Head ${block + 1}.${head + 1} ${isOff(off, { block, head }) ? "on" : "off"}`;
    blockOff.textContent = `Block ${block + 1} ${isOff(off, { block, head: null }) ? "on" : "off"}`;
    allOn.style.display = off.length ? "" : "none";
    offNote.textContent = off.length ? `The model now writes${offNames(off, " ")}.` : "";
    table?.(now?.layers ?? null, block);
  }

  // Where the chosen head looks from the last of some tokens.
  function lookText(pieces) {
    const gone = isGone(off, block, head),
      weights = gone ? null : weightsNow(),
      name = headName({ block, head });
    if (!weights) return `${name}${gone ? " is off" : ""}.`;
    const most = strongest(namesBefore(pieces), (j) => weights[j]);
    return `${name}: at “${tokenName(pieces.at(-1))}” it looks most at ${most}.`;
  }

  return {
    off: () => off.slice(),
    heads: () => (fold.open ? [[block, head]] : []),
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
function blockTable(parent, blocks) {
  const box = scroller(parent);
  box.style.maxHeight = "20em";
  box.style.overflowY = "auto";
  const table = add(box, "table", { class: "d2lmini-words" });
  add(table, "caption", {}, "What the last layer would predict from the output of each block");
  const body = columns(table, ["block", "likeliest next tokens"]);
  const lines = Array.from({ length: blocks + 1 }, (_, b) => {
    const line = add(body, "tr");
    add(line, "th", { scope: "row" }, b ? String(b) : "embedding");
    return { line, cell: add(line, "td") };
  });
  return (/** @type {Seen["layers"] | null} */ layers, block) =>
    lines.forEach(({ line, cell }, b) => {
      const said = layers?.[b],
        names = said?.pieces.slice(0, 3).map((piece, j) => `${tokenName(piece)} ${said.p[j].toFixed(2)}`);
      cell.textContent = names ? names.join(" · ") : "…";
      line.classList.toggle("chosen", b === block + 1);
    });
}
