// A row of weights in few bits: as `quantized` of quantized_row.py, a part for each group.
const SCALE_BYTES = 2; // of a scale or a minimum: float16

/** @typedef {{ bits: number, group: number, minimum: boolean }} Settings `group`: 0 is the whole row */

/**
 * The first and the last code.
 * @param {Settings} settings
 */
export function codeRange({ bits, minimum }) {
  const most = 2 ** (bits - 1) - 1;
  return minimum ? [0, 2 ** bits - 1] : [-most, most];
}

/**
 * The parts of a row, the levels that its weights go to, what each misses, and the mean squared error.
 * @param {number[]} weights
 * @param {Settings} settings
 */
export function quantized(weights, settings) {
  const { group, minimum } = settings,
    size = group || weights.length,
    [, last] = codeRange(settings);
  const parts = Array.from({ length: weights.length / size }, (_, i) => {
    const start = i * size,
      part = weights.slice(start, start + size),
      low = minimum ? Math.min(...part) : 0;
    const step = (minimum ? Math.max(...part) - low : Math.max(...part.map(Math.abs))) / last;
    return { start, size, low, step, codes: part.map((w) => (step ? Math.floor((w - low) / step + 0.5) : 0)) };
  });
  const values = parts.flatMap(({ low, step, codes }) => codes.map((code) => low + step * code)),
    missed = values.map((value, i) => Math.abs(value - weights[i]));
  return { parts, values, missed, error: missed.reduce((sum, e) => sum + e * e, 0) / weights.length };
}

/**
 * Bytes a weight, of a row of n.
 * @param {number} n
 * @param {Settings} settings
 */
export const bytesPerWeight = (n, { bits, group, minimum }) =>
  bits / 8 + (SCALE_BYTES * (minimum ? 2 : 1)) / (group || n);
