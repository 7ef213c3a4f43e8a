// Words that a reader points at.
import { ENDS, onArrow } from "./keys.js";
import { draw, place } from "./nodes.js";

// Two lists of words in an SVG, of which the reader points at one by pointer or by keyboard: `pointed` is then
// {side, i}, else null. Focus stays when the pointer has left. `downwards`: the lists stand beside each other.
export function wordPicker(svg, { entry, downwards }, changed) {
  /** @typedef {{ side: number, i: number } | null} Word */
  const picker = { pointed: /** @type {Word} */ (null), word, mark },
    nodes = /** @type {SVGElement[][]} */ ([[], []]);
  let focused = /** @type {Word} */ (null);
  svg.addEventListener("pointerleave", () => {
    picker.pointed = focused;
    changed();
  });

  function word(side, i, label) {
    const node = draw(svg, "g", { role: "button", tabindex: -1, style: "cursor: pointer", "aria-label": label });
    const point = () => {
      picker.pointed = { side, i };
      changed();
    };
    node.addEventListener("pointerenter", point);
    node.addEventListener("click", () => node.focus());
    node.addEventListener("focus", () => {
      focused = { side, i };
      entry = [side, i];
      point();
    });
    node.addEventListener("blur", () => {
      focused = picker.pointed = null;
      changed();
    });
    node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") node.blur();
    });
    onArrow(node, (down, right) => {
      const [along, across] = downwards ? [down, right] : [right, down],
        list = nodes[side + across];
      list?.[across ? Math.min(i, list.length - 1) : i + along]?.focus();
    });
    onArrow(node, (end) => nodes[side].at(end)?.focus(), ENDS);
    nodes[side][i] = node;
    return node;
  }

  // Tab reaches one word, the last that had the focus; the arrow keys reach the others.
  function mark() {
    nodes.forEach((list, side) =>
      list.forEach((node, i) =>
        place(node, {
          tabindex: entry[0] === side && entry[1] === i ? 0 : -1,
          "aria-pressed": picker.pointed?.side === side && picker.pointed.i === i,
        }),
      ),
    );
  }
  return picker;
}

// The three words of the largest weights, as text. `weight` takes the index of a word.
export const strongest = (words, weight) =>
  words
    .map((word, i) => [word, weight(i)])
    .filter((pair) => pair[1] >= 0.005)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
    .map(([word, w]) => `${word} ${w.toFixed(2)}`)
    .join(", ");
