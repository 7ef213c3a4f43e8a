// Position encodings, and the scores that they make of a query and a key at all pairs of positions.

/**
 * Of D = `num_hiddens` features and N = `num_positions` positions.
 * @typedef {{ query: number[], key: number[], bias: number[], num_positions: number, num_hiddens: number, base: number,
 *   max_distance: number, encoding: "sinusoidal" | "rotary" | "t5" | "none", words: boolean }} Settings
 */

/** @param {Settings} settings */
const angle = ({ base, num_hiddens }, i, feature) => i * base ** (-(feature - (feature % 2)) / num_hiddens);

/** @param {Settings} settings */
const sine = (settings, i, feature) => (feature % 2 ? Math.cos : Math.sin)(angle(settings, i, feature));

/**
 * T5's bucket of an offset, key less query: one each for near ones, then ever wider ones; half of them to either side.
 * @param {Settings} settings
 * @param {number} offset
 */
function bucket({ bias, max_distance }, offset) {
  const side = bias.length / 2,
    exact = Math.floor(side / 2),
    far = Math.abs(offset);
  const growth = Math.log(Math.max(far, exact) / exact) / Math.log(max_distance / exact);
  const wide = Math.min(exact + Math.floor(growth * (side - exact) + 1e-5), side - 1);
  return (far < exact ? far : wide) + (offset > 0 ? side : 0);
}

const table = (rows, columns, value) =>
  Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (_, j) => /** @type {number} */ (value(i, j))),
  );

/**
 * The encoding, a row for each position, from -1 to 1: sines and cosines, cosines and sines of the turns, or the buckets
 * of all pairs.
 * @param {Settings} settings
 */
export function heatMap(settings) {
  const { encoding, num_positions: N, num_hiddens: D, bias } = settings;
  if (encoding === "t5") return table(N, N, (i, s) => (2 * bucket(settings, s - i)) / (bias.length - 1) - 1);
  if (encoding === "sinusoidal") return table(N, D, (i, f) => sine(settings, i, f));
  return table(N, D, (i, f) => (encoding === "rotary" ? sine(settings, i, f + 1 - 2 * (f % 2)) : 0));
}

/**
 * What stands at position i.
 * @param {Settings} settings
 * @param {number[]} word
 */
function at(settings, word, i) {
  const { num_hiddens, words, encoding } = settings,
    used = word.slice(0, num_hiddens).map((x) => (words ? x : 0));
  if (encoding === "sinusoidal") return used.map((x, f) => x + sine(settings, i, f));
  if (encoding !== "rotary") return used;
  return used.map((x, f) => {
    const [cos, sin] = [Math.cos(angle(settings, i, f)), Math.sin(angle(settings, i, f))];
    return f % 2 ? used[f - 1] * sin + x * cos : x * cos - used[f + 1] * sin;
  });
}

/**
 * Scores of the query at each position (rows) with the key at each position (columns).
 * @param {Settings} settings
 */
export function scores(settings) {
  const { query, key, bias, num_positions: N, num_hiddens: D, encoding } = settings,
    places = Array.from({ length: N }, (_, i) => i);
  const [queries, keys] = [query, key].map((word) => places.map((i) => at(settings, word, i)));
  return table(N, N, (i, s) => {
    const product = queries[i].reduce((sum, x, f) => sum + x * keys[s][f], 0);
    return product / Math.sqrt(D) + (encoding === "t5" ? bias[bucket(settings, s - i)] : 0);
  });
}

/**
 * The least and the greatest score of each offset, from 1 - N to N - 1.
 * @param {number[][]} scores
 */
export const byOffset = (scores) =>
  Array.from({ length: 2 * scores.length - 1 }, (_, n) => {
    const alike = scores.flatMap((row, i) => row[i + n + 1 - scores.length] ?? []);
    return [Math.min(...alike), Math.max(...alike)];
  });
