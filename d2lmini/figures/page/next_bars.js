// The page's side: what may come next, as bars.
import { add, draw, panel, place, rove } from "../base/index.js";
import { likeliest } from "../numbers/next_bars.js";

/** @typedef {{ id: number | string, name: string, own: number, after: number }} Next  a token that may come */

/** @type {(i: number) => (() => void) | undefined} */
const noAct = () => undefined;

// Hollow: the model's own probabilities; filled: those that are drawn from. `rows` lines, names at most `wide` units.
// Returns a function that shows tokens (null: what is there is of another place, and pales): `next` is the id of the
// token that came, `choose(id)` follows a press.
export function tokenBars(parent, rows, wide = 38) {
  const LINE = 25,
    LEFT = wide + 8,
    BAR = 214 - LEFT;
  const { svg } = panel(parent, {
    width: 340,
    height: LINE * (rows + 1) + 4,
    x: [0, 1],
    y: [0, 1],
    label: "what may come next",
  });
  draw(svg, "text", { x: LEFT, y: 15, opacity: 0.8 }, "next");
  draw(svg, "text", { x: 336, y: 15, "text-anchor": "end", opacity: 0.8 }, "probability → drawn from");
  let act = noAct, // what a press of line i does
    // and of the line that was under the pointer when it went down: the bars move
    pressed = /** @type {(() => void) | undefined} */ (undefined);
  const lines = Array.from({ length: rows }, (_, i) => {
    const y = LINE * (i + 1),
      line = draw(svg, "g", { role: "button", style: "cursor: pointer" });
    const bar = { x: LEFT, y: y + 4, height: LINE - 8 };
    line.addEventListener("pointerdown", () => {
      pressed = act(i);
    });
    line.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse") pressed = undefined; // a finger leaves before its click
    });
    line.addEventListener("pointercancel", () => {
      pressed = undefined;
    });
    line.addEventListener("click", () => {
      (pressed ?? act(i))?.();
      pressed = undefined;
    });
    line.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act(i)?.();
    });
    draw(line, "rect", { y, width: 340, height: LINE, fill: "transparent" });
    const name = draw(line, "text", { x: wide, y: y + 15, "text-anchor": "end" });
    line.append(" ");
    return {
      line,
      name,
      full: draw(line, "rect", { ...bar, "fill-opacity": 0.75 }),
      hollow: draw(line, "rect", { ...bar, fill: "none", stroke: "currentColor" }),
      number: draw(line, "text", { x: 336, y: y + 15, "text-anchor": "end" }),
    };
  });
  rove(lines.map(({ line }) => line));

  /**
   * @param {Next[] | null} tokens
   * @param {{ next?: number | string, choose?: (id: any) => void }} [settings]
   */
  const show = (tokens, { next, choose = () => {} } = {}) => {
    svg.style.opacity = tokens ? "" : "0.3";
    act = noAct;
    if (!tokens) return;
    const top = Math.max(...tokens.flatMap(({ own, after }) => [own, after]));
    act = (i) => tokens[i] && (() => choose(tokens[i].id));
    lines.forEach(({ line, name, full, hollow, number }, i) => {
      line.style.display = tokens[i] ? "" : "none";
      if (!tokens[i]) return;
      const { id, name: called, own, after } = tokens[i];
      name.textContent = (id === next ? "✓ " : "") + called;
      place(full, { width: (BAR * after) / top, fill: id === next ? "var(--orange)" : "var(--blue)" });
      place(hollow, { width: (BAR * own) / top });
      number.textContent = `${own.toFixed(3)} → ${after ? after.toFixed(3) : "dropped"}`;
      Object.assign(line.dataset, { id, own: own.toFixed(6), after: after.toFixed(6) });
      place(line, { "aria-label": `${name.textContent} ${number.textContent}: go on with it` });
    });
  };
  return show;
}

// The `most` likeliest of V tokens. Returns a function that shows scores (or none) under filters.
export function nextBars(parent, shown, V, most) {
  const rows = Math.min(most, V),
    bars = tokenBars(parent, rows);
  const caption = add(parent, "figcaption", { style: "min-height: 2.8em" });

  return ({ logits, filters, next, choose }) => {
    if (!logits) return bars(null);
    const { tokens, drawable, rest } = likeliest(logits, filters, rows);
    bars(
      tokens.map((token) => ({ ...token, name: shown(token.id) })),
      { next, choose },
    );
    caption.textContent =
      `${drawable} of ${V} can be drawn; the model gives ${rest.toFixed(3)} to those not shown. ` +
      (next === undefined ? "Nothing is drawn yet." : "Orange, with a tick: what came next.");
  };
}
