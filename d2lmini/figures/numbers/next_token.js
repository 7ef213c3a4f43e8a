// From scores of the next token to draws: temperature, top-k, then top-p.
import { softmax } from "../base/numbers.js";
import { drawn, randomNumbers } from "../live/filters.js";

/**
 * The order of tokens, the likeliest first, among equals the lowest token, and their scores in it.
 * @param {ArrayLike<number>} below distances from the greatest score, in units
 * @param {number} unit
 */
export function ranking(below, unit) {
  const order = Array.from(below, (_, i) => i).sort((a, b) => below[a] - below[b]); // stable
  return { order, scores: order.map((i) => -below[i] * unit) };
}

/**
 * Probabilities of scores in their order: the model's own, at the temperature, and of the `size` tokens that stay.
 * @param {number[]} scores
 * @param {{ temperature: number, top_k: number, top_p: number }} settings
 */
export function distributions(scores, { temperature, top_k, top_p }) {
  let size = top_k;
  if (top_p < 1) {
    let mass = 0;
    const enough = softmax(scores.slice(0, top_k), temperature).findIndex((p) => {
      mass += p;
      return mass >= top_p - 1e-9;
    });
    size = enough + 1 || top_k;
  }
  const after = softmax(scores.slice(0, size), temperature);
  return { size, before: softmax(scores), heated: softmax(scores, temperature), after };
}

export const total = (/** @type {number[]} */ p) => p.reduce((a, b) => a + b, 0);

/**
 * Entropy.
 * @param {number[]} p
 */
export const bits = (p) => p.reduce((sum, x) => (x > 0 ? sum - x * Math.log2(x) : sum), 0);

/**
 * Which places are drawn, and how often each.
 * @param {number[]} p
 * @param {number} seed
 * @param {number} draws
 */
export function drawnPlaces(p, seed, draws) {
  const random = randomNumbers(seed),
    counts = /** @type {Map<number, number>} */ (new Map());
  for (let n = 0; n < draws; n++) {
    const i = drawn(p, random);
    counts.set(i, (counts.get(i) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => a - b);
}
