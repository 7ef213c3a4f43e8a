// Nadaraya-Watson regression: weights of the points for a query, what they give, and two errors of it.
import { softmax } from "../base/numbers.js";

/** @typedef {"gaussian" | "boxcar" | "epanechnikov"} Kernel */

/**
 * Weights of the keys for a query, or null where none is in reach; `skip` leaves one key out.
 * @param {Kernel} kernel
 * @param {number} width
 * @param {number[]} xs
 * @param {number} query
 */
export function poolWeights(kernel, width, xs, query, skip = -1) {
  const scaled = xs.map((x, i) => (i === skip ? Infinity : Math.abs(x - query) / width));
  if (kernel === "gaussian") return softmax(scaled.map((u) => (-u * u) / 2)); // as scores, so that nothing underflows
  const raw = scaled.map((u) => (u >= 1 ? 0 : kernel === "boxcar" ? 1 : 1 - u * u));
  const total = raw.reduce((a, b) => a + b, 0);
  return total > 0 ? raw.map((w) => w / total) : null;
}

/**
 * The output of weights, null where there are none.
 * @param {number[] | null} weights
 * @param {number[]} ys
 */
export const pooled = (weights, ys) => (weights ? weights.reduce((sum, w, i) => sum + w * ys[i], 0) : null);

/**
 * Outputs of the queries.
 * @param {{ kernel: Kernel, width: number, xs: number[], ys: number[] }} state
 * @param {number[]} queries
 */
export const outputs = ({ kernel, width, xs, ys }, queries) =>
  queries.map((query) => pooled(poolWeights(kernel, width, xs, query), ys));

/**
 * Mean squared errors over the points that have a prediction: of all points, and of each from the others; `alone` of
 * them have no other in reach.
 * @param {{ kernel: Kernel, width: number, xs: number[], ys: number[] }} state
 */
export function poolErrors({ kernel, width, xs, ys }) {
  const mean = (/** @type {boolean} */ leaveOut) => {
    const errors = xs
      .map((x, i) => pooled(poolWeights(kernel, width, xs, x, leaveOut ? i : -1), ys))
      .flatMap((output, i) => (output === null ? [] : [(output - ys[i]) ** 2]));
    const error = errors.length ? errors.reduce((a, b) => a + b) / errors.length : null;
    return { error, alone: xs.length - errors.length };
  };
  const { error: leftOut, alone } = mean(true);
  return { training: /** @type {number} */ (mean(false).error), leftOut, alone };
}
