// All heads of a model as cells: across its blocks, down the heads of each.
import { draw, onArrow, panel, place } from "../base/index.js";

const [WIDE, HIGH] = [11, 24], // of a cell
  LEFT = 14, // room for the numbers of the heads,
  TOP = 14, // and for those of the blocks
  KEY = 20,
  SHARES = [0, 0.25, 0.5, 0.75, 1]; // in the key

const shaded = (share) => ({ fill: "var(--blue)", "fill-opacity": (0.06 + 0.94 * share).toFixed(3) });

// `pick(block, head)` follows a press, `move(down, right)` an arrow key. Returns a function that shows a share of each
// head, null for one that is off; `place` is the text's, null: nothing is known, and the cells pale.
export function headGrid(parent, blocks, heads, { pick, move }) {
  const width = LEFT + WIDE * blocks + 4;
  const { svg } = panel(parent, { width, height: HIGH * heads + 16 + KEY, x: [0, 1], y: [0, 1], label: "" });
  place(svg, { role: "img", tabindex: 0, "aria-label": "all heads: arrow keys choose a block and a head" });
  const cells = Array.from({ length: blocks * heads }, (_, n) => {
    const at = { x: LEFT + WIDE * Math.floor(n / heads), y: TOP + HIGH * (n % heads) };
    return draw(svg, "rect", { ...at, width: WIDE - 1, height: HIGH - 1 });
  });
  for (let b = 0; b < blocks; b += b ? 5 : 4)
    draw(svg, "text", { x: LEFT + WIDE * (b + 0.5), y: 11, "text-anchor": "middle" }, b + 1);
  for (let h = 0; h < heads; h++) draw(svg, "text", { x: 2, y: 30 + HIGH * h }, h + 1);

  const under = TOP + HIGH * heads + 15,
    column = (n) => LEFT + WIDE * (blocks - SHARES.length + n);
  draw(svg, "text", { x: LEFT, y: under }, "across: block, down: head");
  SHARES.forEach((share, i) => {
    draw(svg, "rect", { x: column(i - 1.5), y: under - 10, width: WIDE - 1, height: 11, ...shaded(share) });
  });
  draw(svg, "text", { x: column(-2), y: under, "text-anchor": "end" }, "attention 0");
  draw(svg, "text", { x: column(SHARES.length - 1.2), y: under }, "1");
  const mark = draw(svg, "rect", {
    fill: "none",
    stroke: "var(--orange)",
    "stroke-width": 2,
    "pointer-events": "none",
    width: WIDE,
    height: HIGH,
  });

  svg.addEventListener("click", ({ clientX, clientY }) => {
    const { left, top, width: seen } = svg.getBoundingClientRect(),
      at = (pixels) => (pixels * width) / seen;
    pick(Math.floor((at(clientX - left) - LEFT) / WIDE), Math.floor((at(clientY - top) - TOP) / HIGH));
  });
  onArrow(svg, move);

  return ({ shares, place: at, block, head }) => {
    svg.style.opacity = at === null ? "0.3" : "";
    svg.dataset.place = at ?? "";
    cells.forEach((cell, n) => {
      const look = shares[n] === null ? { fill: "#8888", "fill-opacity": 1 } : shaded(shares[n]);
      place(cell, { ...look, "data-share": (shares[n] ?? 0).toFixed(4) });
    });
    place(mark, { x: LEFT + WIDE * block - 0.5, y: TOP + HIGH * head - 0.5 });
  };
}
