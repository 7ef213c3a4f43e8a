// Patches of an image in some order: which is where, which pixels they have, and how strongly each is looked at.
import { randomNumbers, shuffled } from "../live/filters.js";

/**
 * Which of N patches is at each place; `order` "own": each in its own.
 * @param {number} N
 * @param {{ order: string, seed: number }} settings
 * @returns {number[]}
 */
export function sequenceOf(N, { order, seed }) {
  const own = Array.from({ length: N }, (_, i) => i);
  return order === "own" ? own : shuffled(own, randomNumbers(seed));
}

/**
 * The pixels of a patch p wide, row by row, in an image of so many columns of patches.
 * @param {number} patch
 * @param {number} columns
 * @param {number} p
 */
export const pixelsOf = (patch, columns, p) =>
  Array.from(
    { length: p * p },
    (_, n) => (Math.floor(patch / columns) * p + Math.floor(n / p)) * columns * p + (patch % columns) * p + (n % p),
  );

/**
 * Of each place, how strongly the class token looks at it, as a share of the most; `row`: its weights on itself and on
 * the patches kept, in this order; none: 0.
 * @param {number[]} sequence
 * @param {number[]} kept
 * @param {ArrayLike<number>} [row]
 */
export function looks(sequence, kept, row) {
  const weights = new Map(kept.map((patch, i) => [patch, row ? row[i + 1] : 0])),
    most = Math.max(...weights.values(), 1e-9);
  return sequence.map((patch) => (weights.get(patch) ?? 0) / most);
}

/**
 * The likeliest class with its probability, and the largest move of a probability.
 * @param {{ probabilities: ArrayLike<number>, whole: ArrayLike<number> }} answer `whole`: of all patches in place
 */
export function verdict({ probabilities, whole }) {
  const best = (/** @type {ArrayLike<number>} */ shares) => {
    const all = Array.from(shares),
      share = Math.max(...all);
    return { k: all.indexOf(share), share };
  };
  const moves = Array.from(probabilities, (share, k) => Math.abs(share - whole[k]));
  return { now: best(probabilities), before: best(whole), moved: Math.max(...moves) };
}
