// Drawings whose units are the data's, and what in them can be moved.
import { onArrow } from "./keys.js";
import { draw, place } from "./nodes.js";

/**
 * An SVG panel of the given size whose units are the data's: x to the right, y up. Where it has less room than its
 * width, its text keeps the size on the screen.
 * @param {Element} parent
 * @param {{ label: string, width: number, height: number, x: number[], y: number[] }} settings
 */
export function panel(parent, { label, width, height, x: [x0, x1], y: [y0, y1] }) {
  const svg = draw(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  svg.style.maxWidth = `${width}px`;
  if (parent.localName === "figure")
    place(parent, { style: `flex: 1 1 min(${width}px, 16rem); max-width: ${width}px` });
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width) svg.style.setProperty("--zoom", String(Math.max(1, width / contentRect.width)));
  }).observe(svg);
  return {
    svg,
    width,
    height,
    x: (/** @type {number} */ value) => ((value - x0) / (x1 - x0)) * width,
    y: (/** @type {number} */ value) => ((y1 - value) / (y1 - y0)) * height,
    invert(/** @type {{ clientX: number, clientY: number }} */ event) {
      const box = svg.getBoundingClientRect();
      const within = (t, low, high) => Math.min(high, Math.max(low, low + t * (high - low)));
      return [
        within((event.clientX - box.left) / box.width, x0, x1),
        within((box.bottom - event.clientY) / box.height, y0, y1),
      ];
    },
    clamp: (/** @type {number[]} */ [x, y]) => [Math.min(x1, Math.max(x0, x)), Math.min(y1, Math.max(y0, y))],
    step: [(x1 - x0) / 40, (y1 - y0) / 40],
  };
}

/**
 * Round values from `low` to `high`, at most `most` of them, as the ticks of an axis.
 * @param {number} low
 * @param {number} high
 */
export function ticks(low, high, most = 6) {
  const steps = [-3, -2, -1, 0, 1, 2, 3, 4].flatMap((power) => [1, 2, 5].map((n) => Number(`${n}e${power}`)));
  const step = steps.find((one) => (high - low) / one <= most - 1) ?? steps[steps.length - 1];
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toFixed(3)));
}

/**
 * Let `node` be moved by pointer and by arrow keys; `get` and `set` speak the panel's units. What is written on it
 * begins its name, as on every button: who commands by voice says what there is to see.
 * @param {SVGElement} node
 * @param {{ clamp: (at: number[]) => number[], invert: (event: PointerEvent) => number[], step: number[] }} space
 * @param {string} label
 * @param {() => number[]} get
 * @param {(at: number[]) => void} set
 */
export function draggable(node, space, label, get, set) {
  const seen = node.textContent && `${node.textContent}, `;
  place(node, { role: "button", "aria-label": `${seen}${label}: drag, or use the arrow keys` });
  node.classList.add("d2lmini-handle");
  node.prepend(draw(node, "circle", { class: "d2lmini-reach" })); // what a finger can hit
  node.addEventListener("pointerdown", (event) => {
    node.setPointerCapture(event.pointerId);
    event.preventDefault();
    node.focus();
  });
  node.addEventListener("pointermove", (event) => {
    if (node.hasPointerCapture(event.pointerId)) set(space.clamp(space.invert(event)));
  });
  onArrow(node, (down, right) => {
    const [x, y] = get();
    set(space.clamp([x + right * space.step[0], y - down * space.step[1]]));
  });
}
