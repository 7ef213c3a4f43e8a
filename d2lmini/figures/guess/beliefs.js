// What a model believes about a hidden piece, and where it looks from there.
import { add, choice, strongest } from "../base/index.js";
import { headName, probability, rankOf, sharesOf } from "../numbers/live_guess.js";

const ROW = "display: flex; justify-content: space-between; gap: 6px; padding: 0 4px; line-height: 20px; height: 20px";
const CUT = "overflow: hidden; text-overflow: ellipsis; white-space: nowrap";

/** @typedef {import("../numbers/live_guess.js").View} View */
/** @typedef {import("../numbers/live_guess.js").Wanted & import("../numbers/live_guess.js").Found} Belief */

// The likeliest pieces, and the one that stood there, whose id is `own`; `any`: whether others have been changed.
export function beliefColumn(parent, /** @type {Belief} */ belief, own, any) {
  const { view, after, best, truth } = belief;
  const title = `${view.title}${any ? (after ? ", after" : ", before") : ""}`;
  const box = add(parent, "div", { role: "group", "aria-label": title, style: "min-width: 0" });
  add(box, "b", { style: `display: block; ${CUT}` }, title);
  const list = add(box, "ol", { style: "list-style: none; margin: 2px 0; padding: 0" });
  const row = (where, tag, piece, p, right) => {
    const share = `color-mix(in srgb, ${view.colour} 40%, transparent) ${(100 * p).toFixed(2)}%`,
      style = `${ROW}; background: linear-gradient(to right, ${share}, transparent 0); `;
    const node = add(where, tag, { style: style + (right ? "font-weight: 700" : "") });
    add(node, "span", { style: CUT }, right ? `✓ ${piece}` : piece);
    add(node, "span", { "data-p": p, style: "flex: none" }, probability(p));
  };
  best.pieces.forEach((piece, i) => row(list, "li", piece, best.p[i], best.ids[i] === own));
  row(box, "div", truth.piece, truth.p, true);
  add(box, "div", { style: "padding: 0 4px" }, rankOf(belief));
}

// Menus of a head and of whose it is. Returns a function that shades the pieces in `line`, as they stand now, by where
// it looks from number `hidden()`, and says so.
export function headLook(parent, /** @type {View[]} */ views, line, hidden) {
  const controls = add(parent, "div", { class: "d2lmini-controls" });
  const heads = choice(controls, { label: "shade by", options: { "": "nothing" }, value: "" }, shade);
  const whose = choice(controls, { label: "of", options: { 0: views[0].title, 1: views[1].title }, value: 0 }, shade);
  const where = add(parent, "div", { style: "margin: -4px 0 8px" });
  let found = /** @type {Belief[]} */ ([]);

  function shade() {
    const view = views[views[1].on ? Number(whose.value) : 0],
      column = found.findLast((one) => one.view === view),
      nodes = /** @type {HTMLElement[]} */ ([...line.children]),
      names = nodes.map((node) => node.textContent);
    for (const node of nodes) node.style.background = "";
    where.textContent = "";
    if (heads.value === "" || !column) return;
    const at = hidden(),
      [, count, length] = column.looks.size,
      n = Number(heads.value),
      weights = sharesOf(column.looks.weights.subarray(n * length, (n + 1) * length), column.slots, at);
    nodes.forEach((node, i) => {
      node.style.background = `color-mix(in srgb, ${view.colour} ${(70 * weights[i]).toFixed(1)}%, transparent)`;
    });
    const from = view.causal ? `“${names[at]}”, the place before the hidden piece,` : "the hidden piece",
      most = strongest(names, (i) => weights[i]) || "nothing much";
    where.textContent = `${headName(n, count, "Block")} looks from ${from} at ${most}.`;
  }

  return (/** @type {Belief[]} */ beliefs) => {
    found = beliefs;
    if (found.length) {
      const [blocks, count] = found[0].looks.size;
      if (heads.length === 1)
        for (let n = 0; n < blocks * count; n++) add(heads, "option", { value: n }, headName(n, count));
      /** @type {HTMLElement} */ (whose.parentElement).style.display = views[1].on ? "" : "none";
    }
    shade();
  };
}
