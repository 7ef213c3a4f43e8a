// From scores to weights: scale, masks and temperature.
import { softmax } from "../base/numbers.js";

/**
 * @typedef {{ scores: number[][], num_features: number, scaled: boolean, causal: boolean, valid_len: number,
 *   temperature: number }} State
 */

/**
 * Of each query its scores, scaled or not, null where a key is masked, and its weights.
 * @param {State} state
 */
export function rowsOf({ scores, num_features, scaled, causal, valid_len, temperature }) {
  const divisor = scaled ? Math.sqrt(num_features) : 1;
  return scores.map((row, t) => {
    const seen = row.map((score, s) => (s < valid_len && (!causal || s <= t) ? score / divisor : null)),
      masked = seen.map((score) => score ?? -Infinity);
    return { scores: seen, weights: softmax(masked, temperature) };
  });
}

/**
 * Entropy in bits.
 * @param {number[]} weights
 */
export const entropy = (weights) => weights.reduce((total, w) => (w > 0 ? total - w * Math.log2(w) : total), 0);
