// A sequence that repeats: where a head looks, and the mean loss at first and again.

/**
 * `weights` of all heads in 255ths, (layers, heads, T, T).
 * @typedef {{ weights: ArrayLike<number>, heads: number, T: number }} Attention
 */

/**
 * Weights of a head, layer and head counted from 1, from place `t`: none on what comes later.
 * @param {Attention} attention
 * @param {{ layer: number, head: number, position: number }} place
 */
export function look({ weights, heads, T }, { layer, head, position: t }) {
  const row = (((layer - 1) * heads + head - 1) * T + t) * T;
  return Array.from({ length: T }, (_, s) => (s <= t ? weights[row + s] / 255 : 0));
}

/**
 * The three places of the largest weights, as far as they are worth telling.
 * @param {number[]} row
 */
export const strongest = (row) =>
  [...row.entries()]
    .filter(([, w]) => w >= 0.02)
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3);

/**
 * Mean losses at first and in the repetition.
 * @param {number[]} losses
 * @param {number} period
 */
export const meanLosses = (losses, period) =>
  [losses.slice(0, period), losses.slice(period)].map((part) => part.reduce((a, b) => a + b, 0) / part.length);
