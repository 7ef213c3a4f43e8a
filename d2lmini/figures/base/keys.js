// Moving among things by keys.
import { button } from "./controls.js";
import { add, place } from "./nodes.js";

/** @typedef {Record<string, number[]>} Keys */

/** @type {Keys} */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
/** @type {Keys} */
export const PAGES = { PageUp: [-1, 0], PageDown: [1, 0] };
/** @type {Keys} */
export const ENDS = { Home: [0], End: [-1] };

/**
 * Call `move(down, right)` when one of the keys, by default an arrow key, is pressed on a node.
 * @param {HTMLElement | SVGElement} node
 * @param {(down: number, right: number) => void} move
 * @param {Keys} [keys]
 */
export function onArrow(node, move, keys = ARROWS) {
  node.addEventListener("keydown", (/** @type {any} */ event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const [down, right] = keys[event.key];
    move(down, right);
  });
}

/**
 * One stop of the Tab key for many nodes: the last that had the focus, else `entry`. The keys go on from node `i` to
 * number `to(i, down, right)`, if there is one. Nodes that the arrow keys move take Page Up and Page Down.
 * @param {(HTMLElement | SVGElement)[]} nodes
 * @param {{ entry?: number, to?: (i: number, down: number, right: number) => number, keys?: Keys }} [settings]
 */
export function rove(nodes, { entry = 0, to = (i, down, right) => i + down + right, keys = ARROWS } = {}) {
  const enter = (at) => nodes.forEach((node, i) => place(node, { tabindex: i === at ? 0 : -1 }));
  nodes.forEach((node, i) => {
    node.addEventListener("focus", () => enter(i));
    onArrow(node, (down, right) => nodes[to(i, down, right)]?.focus(), keys);
    onArrow(node, (end) => nodes.at(end)?.focus(), ENDS);
  });
  enter(entry);
}

// The row names of a table, to follow a row by pointer or by keyboard. Returns the button.
export function rowName(row, token, label, choose) {
  row.addEventListener("pointerenter", choose);
  const node = button(add(row, "th", { scope: "row" }), token, choose, { "aria-label": label });
  node.addEventListener("focus", choose);
  row.style.cursor = "pointer";
  row.addEventListener("click", () => node.focus()); // anywhere: a name is small
  return node;
}
