// A query among keys in the plane: weights, output, and what frames the values and the names of points.
import { softmax } from "../base/numbers.js";

/** @typedef {number[]} Point x and y */

/**
 * Weights of the keys.
 * @param {{ query: Point, keys: Point[], score: "dot" | "distance", temperature: number }} state
 */
export function weights({ query: [x, y], keys, score, temperature }) {
  const scores = keys.map(([a, b]) => (score === "dot" ? a * x + b * y : -((a - x) ** 2 + (b - y) ** 2) / 2));
  return softmax(scores, temperature);
}

/**
 * The mean of the values by those weights.
 * @param {number[]} weights
 * @param {Point[]} values
 */
export const output = (weights, values) =>
  [0, 1].map((axis) => weights.reduce((sum, w, i) => sum + w * values[i][axis], 0));

/**
 * Monotone chain (Andrew 1979): the corners of the smallest convex polygon around the points.
 * @param {Point[]} points
 */
export function convexHull(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const left = (/** @type {Point} */ o, /** @type {Point} */ a, /** @type {Point} */ b) =>
    (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const chain = (/** @type {Point[]} */ list) => {
    const out = /** @type {Point[]} */ ([]);
    for (const p of list) {
      while (out.length > 1 && left(out[out.length - 2], out[out.length - 1], p) <= 0) out.pop();
      out.push(p);
    }
    return out.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.reverse())];
}

/**
 * Where the names of points begin, beside each: at the first corner that is inside of the plane and where no other name
 * or point is, as long as there is one.
 * @param {Point[]} points
 * @param {number} letter its height
 * @param {number} side of the plane
 */
export function beside(points, letter, side) {
  const [wide, high] = [1.3 * letter, letter],
    taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const meet = (/** @type {number[]} */ a, /** @type {number[]} */ b) =>
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  return points.map(([atX, atY]) => {
    const [right, left, above, below] = [14, -14 - wide, -8, 8 + high];
    const corners = [
      [right, above],
      [right, below],
      [left, above],
      [left, below],
    ].map(([x, y]) => ({ x, y, box: [atX + x, atY + y - high, atX + x + wide, atY + y] }));
    const inside = corners.filter(({ box }) => box[0] > 0 && box[1] > 0 && box[2] < side && box[3] < side);
    const free = inside.find(({ box }) => !taken.some((other) => meet(box, other)));
    const { x, y, box } = free ?? inside[0] ?? corners[0];
    taken.push(box);
    return { x, y };
  });
}
