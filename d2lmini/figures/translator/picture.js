// English pieces, French pieces below, and lines between them: what a translator looked at when it chose each piece.
import { add, button, choice, draw, place, rove, strongest, told } from "../base/index.js";
import { goesOn, meanLooks, pieceText } from "../numbers/live_translator.js";

const BETWEEN = 56; // pixels from row to row, for the lines
const PIECE =
  "padding: 2px 4px; border: 1px solid #8886; border-radius: 4px; min-height: 28px; min-width: 24px; " +
  "box-sizing: border-box; text-align: center";

/** @typedef {{ node: HTMLElement, piece: string, text: string, weights: ArrayLike<number>[] }} Target */

// Pieces of one word stand side by side.
const pieceStyle = (piece, pieces) => (goesOn(piece, pieces) ? `${PIECE}; margin-left: -7px` : PIECE);

export function attentionPicture(parent, blocks, heads) {
  const controls = add(parent, "div", { class: "d2lmini-controls" });
  const chosen = { block: /** @type {number | "all"} */ ("all"), head: /** @type {number | "all"} */ ("all") };
  for (const [key, n] of Object.entries({ block: blocks, head: heads })) {
    const options = new Map([["all", "all (mean)"]]);
    for (let i = 0; i < n; i++) options.set(String(i), `${key} ${i + 1}`);
    choice(controls, { label: key, options, value: "all" }, (value) => {
      chosen[key] = value === "all" ? value : Number(value);
      paint();
    });
  }
  const box = add(parent, "div", { style: "position: relative" });
  const svg = draw(box, "svg", {
    "aria-hidden": true,
    style: "position: absolute; inset: 0; height: 100%; border: 0; pointer-events: none",
  });
  const row = (label, lang, style) =>
    add(box, "div", { class: "d2lmini-maps", role: "group", "aria-label": label, lang, style: `gap: 6px; ${style}` });
  const above = row("English", "en", ""),
    below = row("French", "fr", `margin-top: ${BETWEEN}px; min-height: 30px`);
  const look = add(parent, "div", { class: "d2lmini-note" });
  let sources = /** @type {{ node: HTMLElement, text: string }[]} */ ([]),
    targets = /** @type {Target[]} */ ([]),
    pointed = /** @type {number | null} */ (null),
    focused = /** @type {number | null} */ (null),
    writing = false;

  function paint() {
    const frame = box.getBoundingClientRect();
    const at = (node) => {
      const own = node.getBoundingClientRect();
      return { x: own.left + own.width / 2 - frame.left, top: own.top - frame.top, bottom: own.bottom - frame.top };
    };
    const shown = pointed ?? (writing && targets.length ? targets.length - 1 : null);
    const ends = sources.map(({ node }) => at(node)),
      looks = targets.map(({ weights }) => meanLooks(weights, sources.length, chosen.block, chosen.head));
    svg.replaceChildren();
    targets.forEach((target, t) => {
      const from = at(target.node),
        strong = t === shown;
      place(target.node, { "aria-pressed": strong });
      ends.forEach((end, s) => {
        const w = looks[t][s];
        if (w < 0.03 || (shown !== null && !strong)) return;
        const line = {
          x1: from.x,
          y1: from.top,
          x2: end.x,
          y2: end.bottom,
          stroke: strong ? "var(--orange)" : "var(--blue)",
        };
        draw(svg, "line", { ...line, "stroke-width": 1 + 3 * w, opacity: strong ? Math.max(w, 0.15) : 0.7 * w });
      });
    });
    sources.forEach(({ node }, s) => {
      const w = shown === null ? 0 : looks[shown][s];
      node.style.background = `color-mix(in srgb, var(--orange) ${(60 * w).toFixed(0)}%, transparent)`;
    });
    place(look, { "aria-live": writing ? "off" : "polite" });
    if (shown === null) look.textContent = targets.length ? told("Point at a French word.") : "";
    else {
      const words = sources.map(({ text }) => text),
        best = strongest(words, (s) => looks[shown][s]);
      look.textContent = `“${targets[shown].text}”: ${best || "nothing has half a per cent"}`;
    }
  }
  new ResizeObserver(paint).observe(box);
  below.addEventListener("pointerleave", () => {
    pointed = focused;
    paint();
  });

  function target(piece, weights) {
    const pieces = [...targets.map((before) => before.piece), piece],
      text = pieceText(piece),
      t = targets.length;
    const node = button(below, text, () => node.focus(), {
      style: pieceStyle(piece, pieces),
      "aria-label": `${text}: what the model looked at`,
    });
    node.addEventListener("pointerenter", () => point(t));
    node.addEventListener("focus", () => {
      focused = t;
      point(t);
    });
    node.addEventListener("blur", () => {
      focused = pointed = null;
      paint();
    });
    targets.push({ node, piece, text, weights });
    paint();
  }
  function point(t) {
    pointed = t;
    paint();
  }

  return {
    clear() {
      sources = [];
      targets = [];
      pointed = focused = null;
      writing = false;
      above.replaceChildren();
      below.replaceChildren();
      paint();
    },
    source(pieces) {
      writing = true;
      sources = pieces.map((piece) => {
        const text = pieceText(piece);
        return { text, node: add(above, "span", { style: pieceStyle(piece, pieces) }, text) };
      });
      paint();
    },
    target,
    end() {
      writing = false;
      rove(targets.map(({ node }) => node));
      paint();
    },
  };
}
