// Attention in tiles: their order, what is known of each query after some of them, and what is kept and moved.
import { softmax } from "../base/numbers.js";

/**
 * @typedef {{ scores: number[][], values: number[][], causal: boolean }} Inputs
 * @typedef {{ rows: number[], columns: number[] }} Tile
 * @typedef {{ top: number, total: number, output: number[] }} Sums the largest score, the sum of exponentials, and the
 *   same sum with the values as factors
 * @typedef {Sums & { before: Sums | null, factor: number, fresh: number }} Known with those before the query's last
 *   tile, the factor that corrected them, and what was added to their total
 */

const range = (/** @type {number} */ from, /** @type {number} */ to) =>
  Array.from({ length: to - from }, (_, i) => from + i);

/** @type {(inputs: Inputs, t: number, s: number) => boolean} */
export const sees = ({ scores, values, causal }, t, s) => !causal || s <= t + values.length - scores.length;

/**
 * The tiles in their order, as TilingStepper.steps: those that hide all are left out.
 * @param {Inputs} inputs
 * @param {number[]} size
 */
export function cuts(inputs, [height, width]) {
  const [T, S] = [inputs.scores.length, inputs.values.length],
    all = /** @type {Tile[]} */ ([]);
  for (let t = 0; t < T; t += height)
    for (let s = 0; s < S; s += width) {
      const rows = range(t, Math.min(t + height, T)),
        columns = range(s, Math.min(s + width, S));
      if (rows.some((t) => columns.some((s) => sees(inputs, t, s)))) all.push({ rows, columns });
    }
  return all;
}

// One tile of keys for one query, as OnlineSoftmax.add. All queries see key 0, so that the largest score is finite.
/** @type {(before: Known | null, inputs: Inputs, t: number, columns: number[]) => Known} */
function take(before, inputs, t, columns) {
  const seen = columns.filter((s) => sees(inputs, t, s)),
    scores = seen.map((s) => inputs.scores[t][s]),
    top = Math.max(before?.top ?? -Infinity, ...scores),
    factor = before ? Math.exp(before.top - top) : 0;
  const powers = scores.map((score) => Math.exp(score - top)),
    fresh = powers.reduce((a, b) => a + b, 0);
  const weighted = (/** @type {number} */ e) => powers.reduce((sum, p, i) => sum + p * inputs.values[seen[i]][e], 0);
  return {
    top,
    total: factor * (before?.total ?? 0) + fresh,
    output: inputs.values[0].map((_, e) => factor * (before?.output[e] ?? 0) + weighted(e)),
    before: before && { top: before.top, total: before.total, output: before.output },
    factor,
    fresh,
  };
}

/**
 * What is known of each query after some tiles; null: its turn has not come.
 * @param {Inputs} inputs
 * @param {Tile[]} tiles
 */
export function known(inputs, tiles) {
  const found = inputs.scores.map(() => /** @type {Known | null} */ (null));
  for (const { rows, columns } of tiles) for (const t of rows) found[t] = take(found[t], inputs, t, columns);
  return found;
}

export const average = (/** @type {Sums} */ { total, output }) => output.map((o) => o / total);

/**
 * How far the average of a query is from attention with the whole matrix: the largest difference of a feature.
 * @param {Inputs} inputs
 * @param {number} t
 * @param {Sums} sums
 */
export function errorOf(inputs, t, sums) {
  const weights = softmax(inputs.scores[t].map((score, s) => (sees(inputs, t, s) ? score : -Infinity)));
  const plain = (/** @type {number} */ e) => weights.reduce((sum, w, s) => sum + w * inputs.values[s][e], 0);
  return Math.max(...average(sums).map((o, e) => Math.abs(o - plain(e))));
}

/**
 * Of each pair whether its score exists at a step, has existed, is to come, or never exists.
 * @param {Inputs} inputs
 * @param {Tile[]} tiles
 * @param {number} step
 */
export function statuses({ scores, values }, tiles, step) {
  const found = scores.map(() => values.map(() => "never"));
  for (const [i, { rows, columns }] of tiles.entries())
    for (const t of rows)
      for (const s of columns) found[t][s] = i >= step ? "to come" : i === step - 1 ? "now" : "gone";
  return found;
}

/**
 * Scores of the largest tile and numbers moved so far, and what the plain form moves, as TilingStepper.memory.
 * @param {Inputs & { num_features: number }} inputs
 * @param {Tile[]} tiles
 * @param {number} step
 */
export function memory({ scores, values, num_features: D }, tiles, step) {
  const [T, S, E] = [scores.length, values.length, values[0].length],
    done = tiles.slice(0, step);
  const other = (/** @type {number} */ i, /** @type {Tile} */ { rows }) => tiles[i]?.rows[0] !== rows[0];
  const moved = done.map(
    (tile, i) =>
      tile.columns.length * (D + E) +
      (other(i - 1, tile) ? tile.rows.length * D : 0) +
      (other(i + 1, tile) ? tile.rows.length * (E + 1) : 0),
  );
  return {
    scores: Math.max(0, ...done.map(({ rows, columns }) => rows.length * columns.length)),
    moved: moved.reduce((a, b) => a + b, 0),
    plain: T * D + S * D + 4 * T * S + S * E + T * E,
  };
}
